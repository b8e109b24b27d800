//! Several sensitive columns, each of which is hidden by itself.
//!
//! Two values of all columns *conflict* if they are equal in a column. A group may hold no two values in conflict. Of its `s` values at most one then has a
//! given secret, which is a value of one column. Where all values of a group are equally likely, each secret has probability `1/s` at most.
//!
//! Plans are made from how often values occur, and from lots. They never look at people, so the proofs for one column hold word for word
//! (`docs/theory.md`). Let `n` people make `g = n / l` groups. A plan for two columns exists if and only if no value of either column occurs more than
//! `g` times ([`colouring`]).

mod colouring;

#[cfg(test)]
mod tests;

use datafusion::arrow::array::{Array, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use rustc_hash::FxHashMap;

use super::assignment::{self, Step};
use super::lots::Lots;
use crate::error::{Cures, Error, Result, thousands};
use crate::microdata::{Attribute, Codes, is_of_each, part, parts_of};

/// Columns that a plan can keep apart.
const COLUMNS: usize = 2;
/// Bytes of a row while its part is planned: its places at both ends of its edge, its colour, and room for other edges.
pub(super) const BYTES: usize = 48;

/// Checks that so many columns can be kept apart.
///
/// # Errors
/// Why they cannot.
pub(super) fn check_columns(columns: usize) -> Result<(), &'static str> {
    match columns {
        COLUMNS => Ok(()),
        _ => Err("it hides two sensitive columns each by itself, not more of them"),
    }
}

/// Secrets of each value of a sensitive attribute.
#[derive(Debug, Clone)]
pub(super) struct Secrets {
    /// Names of the columns.
    names: Vec<String>,
    /// Number of the secret of each value, in each column.
    of_value: [Vec<u32>; COLUMNS],
}

impl Secrets {
    /// Returns the secrets of an attribute whose columns are hidden each by itself; `None` for other attributes.
    ///
    /// # Errors
    /// When there are more columns than can be planned, which planning should have refused.
    pub(super) fn of(attribute: &Attribute) -> Result<Option<Self>> {
        if !is_of_each(&attribute.field)? {
            return Ok(None);
        }
        let names: Vec<String> = parts_of(&attribute.field)?.iter().map(|part| part.name().clone()).collect();
        if names.len() != COLUMNS {
            return Err(Error::internal("columns that nobody can keep apart"));
        }
        let texts = cast(attribute.domain.values(), &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        let of_value = [numbers(&part(texts, |_| Some(0))?), numbers(&part(texts, |_| Some(1))?)];
        Ok(Some(Self { names, of_value }))
    }

    /// Returns the secrets of all columns, by values.
    pub(super) fn columns(&self) -> impl Iterator<Item = &[u32]> {
        self.of_value.iter().map(Vec::as_slice)
    }

    /// Returns true if no two of these values conflict.
    pub(super) fn are_apart(&self, values: &[u32]) -> bool {
        let mut sorted = Vec::with_capacity(values.len());
        self.columns().all(|of| {
            sorted.clear();
            sorted.extend(values.iter().map(|&value| of[value as usize]));
            sorted.sort_unstable();
            sorted.windows(2).all(|pair| pair[0] < pair[1])
        })
    }

    /// Refuses earlier groups with conflicts.
    ///
    /// # Errors
    /// When two values of a signature conflict: earlier releases bound the combination.
    pub(super) fn check_earlier<'a>(&self, signatures: impl IntoIterator<Item = &'a [u32]>) -> Result<()> {
        match signatures.into_iter().all(|signature| self.are_apart(signature)) {
            true => Ok(()),
            false => Err(Error::refused(format!(
                "earlier releases have groups in which people share a value of one sensitive column: they bound the combination only. Go on as they were \
                 made, with sensitive => composite({})",
                self.names.join(", ")
            ))),
        }
    }

    /// Counts the occurrences of each secret, column after column.
    pub(super) fn occurrences(&self, values: &[u32]) -> Vec<usize> {
        let of_column = |of: &[u32]| {
            let secrets: Vec<u32> = values.iter().map(|&value| of[value as usize]).collect();
            assignment::occurrences(&secrets)
        };
        self.columns().flat_map(of_column).collect()
    }

    /// Refuses rows of which one secret makes up more than `1/m`. Then no plan exists. `what` is what the rows are called.
    ///
    /// # Errors
    /// When there is such a secret. The error has the column, the share, and the greatest `m`.
    pub(super) fn check_eligible(&self, parameter: &'static str, m: usize, what: &str, values: &Codes) -> Result<()> {
        let rows = values.len();
        let most = |of: &[u32]| {
            let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
            values.iter().for_each(|value| *counts.entry(of[value as usize]).or_default() += 1);
            counts.into_values().max().unwrap_or(0)
        };
        let tightest = self.names.iter().zip(self.columns().map(most)).max_by_key(|(_, most)| *most);
        let Some((name, most)) = tightest.filter(|(_, most)| !assignment::is_eligible(*most, rows, m)) else {
            return Ok(());
        };
        let text = format!(
            "the {} {what} are not {m}-eligible: the most frequent value of {name} makes up {:.2}% of them and at most 1/{parameter} = {:.2}% is \
             allowed, as each sensitive column is hidden by itself (composite({}) hides the combination alone)",
            thousands(rows),
            100.0 * most as f64 / rows as f64,
            100.0 / m as f64,
            self.names.join(", "),
        );
        let lower = Some((parameter, rows / most)).filter(|(_, m)| *m > 1);
        Err(Error::unfit(text, Cures { lower, rows: "rows of other values", ..Cures::default() }))
    }

    /// Plans rings without conflicts. `values` are those that occur, each so many times; `order` has their places in random order.
    ///
    /// # Errors
    /// When a secret occurs more often than there are rings.
    fn rings(&self, values: &[u32], counts: &[usize], l: usize, order: &[u32]) -> Result<Vec<Step>> {
        let people: usize = counts.iter().sum();
        let rings = people / l.max(1);
        let ends = [0, 1].map(|column: usize| {
            let secret = |place: &u32| self.of_value[column][values[*place as usize] as usize];
            bins(order.iter().map(|place| (secret(place), counts[*place as usize])), rings)
        });
        let [a, b] = ends;
        let mut edges = Vec::with_capacity(people);
        let mut value_of = Vec::with_capacity(people);
        for (place, (&a, &b)) in order.iter().zip(a.iter().zip(&b)) {
            let count = counts[*place as usize];
            edges.extend(std::iter::repeat_n([a, b], count));
            value_of.extend(std::iter::repeat_n(*place, count));
        }
        let classes = colouring::balanced(&edges, rings)
            .ok_or_else(|| Error::internal("no rings for values that should be eligible"))?;
        let step = |edges: Vec<u32>| {
            let mut signature: Vec<u32> = edges.iter().map(|&edge| value_of[edge as usize]).collect();
            signature.sort_unstable();
            Step { signature: signature.into(), rows: 1 }
        };
        Ok(classes.into_iter().map(step).collect())
    }
}

/// Plans rings of at least `l` people, by how often values occur. Signatures have the places of values in `values`.
///
/// # Errors
/// When the values are not eligible.
pub(super) fn plan(
    secrets: Option<&Secrets>,
    values: &[u32],
    counts: &[usize],
    l: usize,
    lots: &mut impl Lots,
) -> Result<Vec<Step>> {
    let mut ties: Vec<u32> = (0..counts.len() as u32).collect();
    lots.arrange(&mut ties);
    match secrets {
        None => assignment::steps_by(counts, l, &ties),
        Some(secrets) => secrets.rings(values, counts, l, &ties),
    }
}

/// Numbers texts: equal texts have one number.
fn numbers(texts: &StringArray) -> Vec<u32> {
    let mut number_of = FxHashMap::default();
    let number = |row: usize| {
        let next = number_of.len() as u32;
        *number_of.entry(texts.is_valid(row).then(|| texts.value(row))).or_insert(next)
    };
    (0..texts.len()).map(number).collect()
}

/// Puts secrets into bins of at most `most` occurrences. Returns the bin of each item, in the order of the items.
///
/// Secrets of one bin share no ring. A plan exists if no bin is too full, so few bins cost nothing and make the plan fast. A secret that is too frequent
/// has a bin of its own.
fn bins(items: impl Iterator<Item = (u32, usize)> + Clone, most: usize) -> Vec<u32> {
    let mut count_of: FxHashMap<u32, usize> = FxHashMap::default();
    items.clone().for_each(|(secret, count)| *count_of.entry(secret).or_default() += count);
    let mut bin_of: FxHashMap<u32, u32> = FxHashMap::default();
    let (mut bin, mut held) = (0, 0);
    let of_item = |(secret, _): (u32, usize)| {
        *bin_of.entry(secret).or_insert_with(|| {
            let count = count_of.get(&secret).copied().unwrap_or(0);
            if held > 0 && held + count > most {
                (bin, held) = (bin + 1, 0);
            }
            held += count;
            bin
        })
    };
    items.map(of_item).collect()
}
