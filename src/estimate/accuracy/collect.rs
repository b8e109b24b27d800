//! Collects the original table and the release, from record batches to columns of codes.

use std::sync::OnceLock;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use rayon::prelude::*;

use super::bitmaps::Bitmaps;
use super::intervals::{Intervals, Sizes, Tight, Values};
use super::people::Originals;
use super::rows::{Column, Cumulative, Rows};
use super::{Axis, Comparison};
use crate::error::{Error, Result};
use crate::estimate::columns::{Form, OriginalColumn};
use crate::estimate::ends::Distribution;
use crate::estimate::prior::Prior;
use crate::estimate::scale::{Scale, coordinates};
use crate::microdata::{ColumnEncoder, Hierarchies, Order};

/// Collects an original table and its release.
pub(crate) struct Collector {
    columns: Vec<Collected>,
    sensitive: bool,
    sums: bool,
    /// Group of each row of the release, as far as rows have groups.
    groups: Option<(ColumnEncoder, Vec<u32>)>,
    /// The probability that a row of each group stands for a person.
    real: Vec<f64>,
    /// The people in each group; not a number where it is not told.
    sizes: Vec<f64>,
    /// True if rows say how likely they stand for somebody.
    counted: bool,
    distribution: Distribution,
    people: usize,
    rows: usize,
}

/// Values of one attribute.
struct Collected {
    column: OriginalColumn,
    encoder: ColumnEncoder,
    original: Vec<u32>,
    released: ReleasedColumn,
    codes: Vec<usize>,
}

/// Of rows or, where it is not exact, of groups.
enum ReleasedColumn {
    Exact(Vec<u32>),
    Interval { lo: Vec<u32>, hi: Vec<u32>, nulls: Vec<f64> },
    Histogram { starts: Vec<u32>, codes: Vec<u32>, counts: Vec<f64> },
}

/// Columns of a batch of the release.
#[derive(Debug)]
pub(crate) struct ReleaseBatch<'a> {
    /// Of each attribute: the value; or `lo`, `hi` and, of measured attributes, the number of NULLs; or the histogram.
    pub attributes: &'a [ArrayRef],
    /// Number of the group.
    pub group: Option<&'a ArrayRef>,
    /// Size of the group and its counterfeits.
    pub counts: Option<(&'a ArrayRef, &'a ArrayRef)>,
    /// True if they are those of the whole release.
    pub alone: bool,
}

impl Collector {
    /// Returns a collector for these attributes, the sensitive one (if there is one) last. `sums` says that sums of it are asked for.
    /// Fails when a type cannot be grouped by.
    pub(crate) fn try_new(
        columns: Vec<OriginalColumn>,
        sensitive: bool,
        sums: bool,
        groups: bool,
        distribution: Distribution,
    ) -> Result<Self> {
        let new = |column: OriginalColumn| {
            let released = match column.form {
                Form::Exact => ReleasedColumn::Exact(Vec::new()),
                Form::Interval { .. } => ReleasedColumn::Interval { lo: Vec::new(), hi: Vec::new(), nulls: Vec::new() },
                Form::Histogram => ReleasedColumn::Histogram { starts: vec![0], codes: Vec::new(), counts: Vec::new() },
            };
            let encoder = ColumnEncoder::try_new(FieldRef::clone(&column.field))?;
            Ok(Collected { column, encoder, original: Vec::new(), released, codes: Vec::new() })
        };
        let number = || ColumnEncoder::try_new(FieldRef::new(Field::new("group", DataType::Int64, false)));
        Ok(Self {
            columns: columns.into_iter().map(new).collect::<Result<_>>()?,
            sensitive,
            sums,
            groups: groups.then(number).transpose()?.map(|encoder| (encoder, Vec::new())),
            real: Vec::new(),
            sizes: Vec::new(),
            counted: false,
            distribution,
            people: 0,
            rows: 0,
        })
    }

    /// Appends rows of the original table, one column per attribute.
    /// Fails when grouping fails.
    pub(crate) fn append_original(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for (collected, values) in self.columns.iter_mut().zip(columns) {
            let Collected { encoder, original, codes, .. } = collected;
            intern(encoder, values, codes, original)?;
        }
        self.people += columns.first().map_or(0, |values| values.len());
        Ok(())
    }

    /// Appends rows of the release.
    /// Fails when grouping fails.
    pub(crate) fn append_released(&mut self, batch: &ReleaseBatch<'_>, rows: usize) -> Result<()> {
        // Rows that are the first of their group, which tell all about it.
        let mut first: Vec<usize> = (0..rows).collect();
        if let (Some((encoder, groups)), Some(numbers)) = (&mut self.groups, batch.group) {
            let (mut known, mut codes) = (self.real.len(), Vec::new());
            encoder.intern(numbers, &mut codes)?;
            first.retain(|&row| {
                let new = codes[row] >= known;
                known += usize::from(new);
                new
            });
            groups.extend(codes.iter().map(|&code| code as u32));
        }
        let counts = match batch.counts {
            Some((size, counterfeits)) => Some((numbers(size)?, numbers(counterfeits)?)),
            None => None,
        };
        let real = |&row: &usize| counts.as_ref().map_or(1.0, |(size, fake)| (size[row] - fake[row]) / size[row]);
        let people = |&row: &usize| counts.as_ref().map_or(1.0, |(size, fake)| size[row] - fake[row]);
        self.real.extend(first.iter().map(real));
        self.counted |= counts.is_some();
        let told = counts.is_some() && !batch.alone;
        self.sizes.extend(first.iter().map(|row| if told { people(row) } else { f64::NAN }));
        self.rows += rows;
        let mut columns = batch.attributes.iter();
        let mut next = || columns.next().ok_or_else(|| Error::internal("a release with too few columns"));
        for Collected { encoder, released, codes, column, .. } in &mut self.columns {
            match released {
                ReleasedColumn::Exact(values) => intern(encoder, next()?, codes, values)?,
                ReleasedColumn::Interval { lo, hi, nulls } => {
                    for ends in [lo, hi] {
                        let array = next()?;
                        let mut all = Vec::new();
                        intern(encoder, array, codes, &mut all)?;
                        ends.extend(first.iter().map(|&row| all[row]));
                    }
                    if matches!(column.form, Form::Interval { nulls: true, .. }) {
                        let count = numbers(next()?)?;
                        nulls.extend(first.iter().map(|row| count[*row] / people(row)));
                    }
                }
                ReleasedColumn::Histogram { starts, codes: values, counts } => {
                    let list = next()?.as_list::<i32>().clone();
                    for &row in &first {
                        let pairs = list.value(row);
                        let pairs = pairs.as_struct();
                        intern(encoder, pairs.column(0), codes, values)?;
                        let of_row = numbers(pairs.column(1))?;
                        let size: f64 = of_row.iter().sum();
                        counts.extend(of_row.iter().map(|count| count / size));
                        starts.push(values.len() as u32);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes held, and those that [`finish`](Self::finish) will need.
    pub(crate) fn size(&self) -> usize {
        let of_column = |collected: &Collected| {
            let released = match &collected.released {
                ReleasedColumn::Exact(codes) => codes.len() * 8 + Bitmaps::size(codes.len()),
                ReleasedColumn::Interval { lo, .. } => lo.len() * 104,
                ReleasedColumn::Histogram { codes, .. } => codes.len() * 32,
            };
            collected.encoder.size() + collected.original.len() * 8 + Bitmaps::size(self.people) + released
        };
        self.columns.iter().map(of_column).sum::<usize>() + (self.rows + self.people) * 16 + self.real.len() * 56
    }

    /// Sorts domains and makes what queries are answered with.
    /// Fails when the order of a column lacks values, a hierarchy is malformed, or `prior` has what is no value of its attribute.
    pub(crate) fn finish(self, hierarchies: Option<&Hierarchies>, prior: Option<&Prior>) -> Result<Comparison> {
        let Self { columns, sensitive, sums, groups, real, sizes, counted, distribution, people, rows } = self;
        let uncertain = counted || columns.iter().any(|collected| collected.column.form != Form::Exact);
        let (group_of, real) = match groups {
            Some((_, group_of)) => (group_of, real),
            None if uncertain => ((0..rows as u32).collect(), real),
            // Rows that all stand for themselves are one group.
            None => (vec![0; rows], vec![1.0]),
        };
        let (starts, order) = by_group(&group_of, real.len());
        let present: Vec<f64> = starts.windows(2).map(|pair| f64::from(pair[1] - pair[0])).collect();
        let mass = present.iter().zip(&real).map(|(rows, real)| rows * real).collect();
        let sizes = Sizes { people: sizes, rows: present, mass };
        let sizes = (distribution == Distribution::Fitted).then_some(sizes);
        let known = Known { hierarchies, sizes: sizes.as_ref(), prior };
        let finished: Vec<Finished> =
            columns.into_par_iter().map(|collected| collected.finish(&known, &order)).collect::<Result<_>>()?;
        let axes: Vec<Axis> =
            finished.iter().map(|column| Axis { places: column.places.clone(), counted: column.counted }).collect();
        let codes: Vec<Vec<Option<u32>>> = finished.iter().map(|column| column.original.clone()).collect();
        let value = |(codes, places): (&[Option<u32>], &[f64])| -> Vec<f64> {
            codes.iter().map(|code| code.map_or(0.0, |code| places[code as usize])).collect()
        };
        let last = finished.last().filter(|_| sums && sensitive);
        let values = last.map_or_else(Vec::new, |column| value((&column.original, &column.places)));
        let released = last.map_or_else(Vec::new, |column| value((&column.exact, &column.places)));
        let people_of = Originals::new(&codes, &axes, values);
        debug_assert_eq!(people, codes.first().map_or(0, Vec::len));
        let mut exact = finished.iter().enumerate().filter(|(_, column)| matches!(column.released, Column::Exact(_)));
        let cumulative = match (exact.next(), exact.next()) {
            (Some((place, column)), None) => Cumulative::of(place, &column.exact, column.places.len(), &starts, !sums),
            _ => None,
        };
        let columns = finished.into_iter().map(|column| column.released).collect();
        Ok(Comparison {
            axes,
            sensitive,
            people: people_of,
            rows: Rows { starts, real, columns, values: released, cumulative, joints: OnceLock::new() },
        })
    }
}

struct Finished {
    places: Vec<f64>,
    counted: bool,
    original: Vec<Option<u32>>,
    /// Codes of the release's rows in the order of groups, if it tells them.
    exact: Vec<Option<u32>>,
    released: Column,
}

impl Collected {
    fn finish(self, known: &Known<'_>, order: &[u32]) -> Result<Finished> {
        let Self { column, encoder, original, released, .. } = self;
        let Known { hierarchies, sizes, prior } = *known;
        let listed = hierarchies.and_then(|all| all.of(column.name()));
        let by = match (listed, column.order()) {
            (Some(paths), _) => Order::Tree(paths),
            (None, Some(order)) => Order::Given(order),
            (None, None) => Order::ByValue,
        };
        let encoded = encoder.finish(by)?;
        let values = encoded.attribute.domain.values();
        let in_list = column.scale() == Scale::Listed || listed.is_some() || column.order().is_some();
        let counted = in_list || column.scale() == Scale::Steps;
        let located = match in_list {
            true => None,
            false => Some(coordinates(&cast(values, column.field.data_type())?).map_err(Error::from)?),
        };
        let (mut places, mut code_of) = (Vec::new(), Vec::new());
        for rank in 0..values.len() {
            let place = match &located {
                _ if values.is_null(rank) => f64::NAN,
                None => places.len() as f64,
                Some(located) => located.value(rank),
            };
            code_of.push(place.is_finite().then_some(places.len() as u32));
            places.extend(place.is_finite().then_some(place));
        }
        let code = |provisional: u32| code_of[encoded.ranks[provisional as usize] as usize];
        let place = |provisional: u32| code(provisional).map(|code| places[code as usize]);
        let mut exact = Vec::new();
        let released = match released {
            ReleasedColumn::Exact(codes) => {
                exact = order.iter().map(|&row| code(codes[row as usize])).collect();
                Column::Exact(Bitmaps::new(&exact, places.len()))
            }
            ReleasedColumn::Interval { lo, hi, nulls } => {
                let ends: Vec<(Option<u32>, Option<u32>)> =
                    lo.into_iter().map(code).zip(hi.into_iter().map(code)).collect();
                let open = in_list && listed.is_none() && column.order().is_none();
                let mut intervals = intervals(&ends, &nulls, &places, counted, open);
                if let Some(sizes) = sizes {
                    let given = given(prior, &column, values, &code_of)?;
                    let tight = column.is_tight() && sizes.are_told(ends.len());
                    if tight || given.is_some() {
                        let values = Values { number: places.len(), counted, listed: in_list, given };
                        intervals.tight = Some(Tight::new(&ends, &intervals, sizes, tight, values));
                    }
                }
                intervals.merge();
                Column::Intervals(Box::new(intervals))
            }
            ReleasedColumn::Histogram { starts, codes, counts } => {
                let places = codes.iter().map(|&code| place(code).unwrap_or(f64::NAN)).collect();
                Column::Histograms { starts, places, shares: counts }
            }
        };
        let original = original.into_iter().map(code).collect();
        Ok(Finished { places, counted, original, exact, released })
    }
}

/// Knowledge besides the two tables.
struct Known<'a> {
    hierarchies: Option<&'a Hierarchies>,
    /// Unless values are spread evenly.
    sizes: Option<&'a Sizes>,
    prior: Option<&'a Prior>,
}

/// Returns the shares of a column's values that are given, by their codes.
fn given(
    prior: Option<&Prior>,
    column: &OriginalColumn,
    values: &ArrayRef,
    code_of: &[Option<u32>],
) -> Result<Option<Vec<f64>>> {
    let Some(prior) = prior else { return Ok(None) };
    let shares = prior.shares(column.name(), column.field.data_type(), values).map_err(Error::from)?;
    let of_codes = |shares: Vec<f64>| shares.into_iter().zip(code_of).filter_map(|(share, code)| code.map(|_| share));
    Ok(shares.map(|shares| of_codes(shares).collect()))
}

/// Makes the intervals; `open` says that only ends of intervals are known as values.
fn intervals(
    ends: &[(Option<u32>, Option<u32>)],
    nulls: &[f64],
    places: &[f64],
    counted: bool,
    open: bool,
) -> Intervals {
    let known = open.then(|| {
        let mut is_known = vec![false; places.len()];
        ends.iter().flat_map(|&(lo, hi)| [lo, hi]).flatten().for_each(|code| is_known[code as usize] = true);
        let mut before = vec![0];
        for known in is_known {
            before.push(before[before.len() - 1] + u32::from(known));
        }
        before
    });
    let place = |code: u32| match &known {
        Some(known) => f64::from(known[code as usize]),
        None => places[code as usize],
    };
    let least = ends.iter().filter_map(|&(lo, hi)| lo.or(hi)).map(place).fold(f64::INFINITY, f64::min);
    let least = if known.is_some() { 0.0 } else { least };
    let step = f64::from(u8::from(counted));
    let mut intervals = Intervals::default();
    for (i, &(first, last)) in ends.iter().enumerate() {
        let (lo, hi, whole) = match (first.map(place), last.map(place)) {
            (Some(lo), Some(hi)) => (lo, hi, 1.0),
            (None, Some(hi)) => {
                let lo = least.min(hi);
                let values = hi - lo + 1.0;
                let whole = if counted { values / (values + 1.0) } else { 1.0 - nulls.get(i).copied().unwrap_or(0.0) };
                (lo, hi, whole)
            }
            // Nobody has a value.
            _ => (f64::INFINITY, f64::NEG_INFINITY, 0.0),
        };
        let length = hi - lo + step;
        intervals.lo.push(lo);
        intervals.end.push(hi + step);
        intervals.points |= length == 0.0;
        intervals.whole.push(whole);
        intervals.per_length.push(if length > 0.0 { whole / length } else { 0.0 });
    }
    intervals.known = known;
    intervals
}

/// Lists the rows group after group: the first of each group, and the rows.
fn by_group(group_of: &[u32], groups: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0; groups + 1];
    group_of.iter().for_each(|&group| starts[group as usize + 1] += 1);
    for group in 0..groups {
        starts[group + 1] += starts[group];
    }
    let mut next = starts.clone();
    let mut order = vec![0; group_of.len()];
    for (row, &group) in (0..).zip(group_of) {
        order[next[group as usize] as usize] = row;
        next[group as usize] += 1;
    }
    (starts, order)
}

fn intern(encoder: &mut ColumnEncoder, values: &ArrayRef, codes: &mut Vec<usize>, all: &mut Vec<u32>) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    encoder.intern(values, codes)?;
    all.extend(codes.iter().map(|&code| code as u32));
    Ok(())
}

fn numbers(array: &ArrayRef) -> Result<Vec<f64>> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().values().to_vec())
}
