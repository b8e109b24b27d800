//! Drawing the published values of rows from the output tables of their groups.

use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::reduced::{Memo, Values};
use super::table::OutputTable;
use crate::error::Result;
use crate::methods::Monitor;
use crate::microdata::{Distance, Microdata};
use crate::release::{Groups, Perturbed};

/// Groups drawn at a time.
const CHUNK: usize = 32;

/// What drawing needs to know of a table.
pub(super) struct Source<'a> {
    pub microdata: &'a Microdata,
    pub distances: &'a [Distance],
    pub memo: &'a Memo,
    /// Greatest distance in each attribute.
    pub widest: &'a [f64],
}

impl Source<'_> {
    /// Draws for all groups. Each has a stream of random numbers of its own, so threads do not matter.
    pub(super) fn draw(&self, groups: &Groups, secret: [u8; 32], monitor: &Monitor) -> Result<Perturbed> {
        let chunks: Vec<Range<usize>> =
            (0..groups.len()).step_by(CHUNK).map(|start| start..groups.len().min(start + CHUNK)).collect();
        let drawn: Vec<Result<Perturbed>> = chunks
            .into_par_iter()
            .map_init(
                || vec![Values::default(); self.distances.len()],
                |values, chunk| {
                    monitor.check()?;
                    let mut drawn = Perturbed::default();
                    for group in chunk {
                        let mut rng = ChaCha20Rng::from_seed(secret);
                        rng.set_stream(group as u64);
                        self.draw_group(&groups.members[groups.range(group)], values, &mut drawn, &mut rng);
                    }
                    Ok(drawn)
                },
            )
            .collect();
        let mut all = Perturbed::default();
        all.codes.reserve_exact(groups.members.len() * self.distances.len());
        for drawn in drawn {
            all.append(drawn?);
        }
        Ok(all)
    }

    fn draw_group(&self, rows: &[u32], values: &mut [Values], drawn: &mut Perturbed, rng: &mut impl Rng) {
        let d = values.len();
        let first = drawn.codes.len();
        drawn.codes.resize(first + rows.len() * d, 0);
        let codes = &mut drawn.codes[first..];
        let mut same = vec![true; rows.len()];
        let mut tables = Vec::with_capacity(d);
        for (j, values) in values.iter_mut().enumerate() {
            let code_of = |row: u32| self.microdata.quasi_of(row)[j];
            values.collect(rows.iter().map(|&row| code_of(row)));
            let table = (values.codes.len() > 1).then(|| self.memo.table(j, &self.distances[j], values));
            for ((&row, codes), same) in rows.iter().zip(codes.chunks_exact_mut(d)).zip(&mut same) {
                let code = code_of(row);
                codes[j] = match &table {
                    Some(table) => values.codes[table.draw(values.place(code), rng)],
                    None => code,
                };
                *same &= codes[j] == code;
            }
            tables.push(table);
        }
        let choices: Vec<Choice<'_>> = (0..d)
            .filter_map(|j| {
                let (values, table) = (&values[j], tables[j].as_ref()?);
                let range = self.distances[j].widest(&values.codes) / self.widest[j].max(f64::MIN_POSITIVE);
                Some(Choice { attribute: j, values, table, range })
            })
            .collect();
        drawn.unchangeable += usize::from(choices.is_empty());
        for (codes, _) in codes.chunks_exact_mut(d).zip(&same).filter(|(_, same)| **same) {
            let replaced = Choice::replace(&choices, codes, rng);
            drawn.randomized += usize::from(replaced);
            drawn.unchanged += usize::from(!replaced);
        }
    }
}

/// An attribute in which the rows of a group differ, so that a row which came out unchanged can change in it (MuCo, Algorithm 2).
///
/// The paper draws the new value from the range of the group. One that others in the group seldom publish would then mostly be published by
/// this row, which is what delta is against. So it is drawn among what the group publishes, as often as it does; if that is the row's own
/// value only, in all attributes, then among the values of the group.
pub(super) struct Choice<'a> {
    pub attribute: usize,
    pub values: &'a Values,
    pub table: &'a OutputTable,
    /// Range in the group as a share of that in the table.
    pub range: f64,
}

impl Choice<'_> {
    /// How often each value is to be drawn for a row with this place; empty if the group publishes no other.
    pub(super) fn shares(&self, own: usize) -> Vec<f64> {
        let weights = &self.values.weights;
        let mut shares: Vec<f64> = (0..weights.len()).map(|value| self.table.sum(value, weights)).collect();
        shares[own] = 0.0;
        if shares.iter().all(|share| *share <= 0.0) {
            shares.clear();
        }
        shares
    }

    /// Replaces one value of a row; false if nothing can be.
    fn replace(choices: &[Self], codes: &mut [u32], rng: &mut impl Rng) -> bool {
        let own = |choice: &Self| choice.values.place(codes[choice.attribute]);
        let mut possible: Vec<(&Self, Vec<f64>)> =
            choices.iter().map(|choice| (choice, choice.shares(own(choice)))).collect();
        if possible.iter().any(|(_, shares)| !shares.is_empty()) {
            possible.retain(|(_, shares)| !shares.is_empty());
        } else {
            for (choice, shares) in &mut possible {
                shares.resize(choice.values.codes.len(), 1.0);
                shares[own(choice)] = 0.0;
            }
        }
        // Different values may be at no distance; some attribute must be chosen all the same.
        let ranges = possible.iter().map(|(choice, _)| choice.range.max(1e-9));
        let Some((choice, shares)) = pick(ranges, rng).and_then(|chosen| possible.get(chosen)) else { return false };
        let Some(value) = pick(shares.iter().copied(), rng) else { return false };
        codes[choice.attribute] = choice.values.codes[value];
        true
    }
}

/// A place, drawn as often as its share says.
fn pick(shares: impl Iterator<Item = f64> + Clone, rng: &mut impl Rng) -> Option<usize> {
    let mut at = rng.random::<f64>() * shares.clone().sum::<f64>();
    let mut last = None;
    for (place, share) in shares.enumerate().filter(|(_, share)| *share > 0.0) {
        last = Some(place);
        at -= share;
        if at < 0.0 {
            break;
        }
    }
    last
}
