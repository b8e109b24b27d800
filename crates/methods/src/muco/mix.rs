//! Mixing the tables of a group so that no row comes out as it was.
//!
//! The paper draws from the tables and then replaces a value of each row that came out unchanged (Algorithm 2). That replacement is not in
//! the tables, and undoes delta: a value that only unchanged rows give up is then published by the others, and one that they get is
//! published by them alone. Here rows change by the tables. Let `c[i]` be the number of attributes in which row `i` changes on average, the sum
//! of `1 - p[i][own]` over its attributes. A row with `c[i] >= 1` can be drawn so that it always changes somewhere, without touching
//! the tables (see `draw`). Where some row has less, tables are mixed: a share of those that would publish a value
//! publish a neighbouring one instead, *whoever they are*. A column is then a sum of columns of the optimal table, each of which keeps
//! delta, so it keeps delta too, whatever the share.
//!
//! Neighbours are the values of the table next to it in the group's range, those of no row of the group among them: half stay, a
//! quarter goes either way. If all did so in two attributes, no row would keep its value in either with more than one
//! half, so every `c[i]` would be one at least. So some share in some attributes will always do. Attributes are taken that lose least
//! for what they change, one, two or more of them, and of these the choice that loses least with the least share that will do.

use super::reduced::Values;
use super::tables::{GroupTable, Solved};
use crate::error::{Error, Result};
use crate::microdata::Distance;

/// Steps of the share of those that go.
const STEPS: u64 = 1 << 10;
/// Of those that step aside, a quarter goes either way.
const QUARTERS: u64 = 4;
/// Fineness of mixed tables, as a multiple of the optimal tables'.
pub(super) const FINER: u64 = STEPS * QUARTERS;

/// Mixture of an attribute.
pub(super) struct Mixture {
    /// Of [`STEPS`], how many of those that publish a value step aside.
    share: u64,
    aside: Aside,
}

/// The table if everybody steps aside.
struct Aside {
    /// Codes that may be published; they ascend.
    columns: Vec<u32>,
    /// Parts of each value's probability, [`QUARTERS`] times finer than in the optimal table.
    parts: Vec<u64>,
    /// Parts with which rows of each value change, before and after; as fine.
    changes: Vec<[i64; 2]>,
    /// Additional mean way of the rows, as a share of the greatest distance.
    farther: f64,
}

/// Mixes the attributes; `None` if every row changes as it is, or none must.
pub(super) fn mixtures(solved: &[Solved<'_>]) -> Result<Option<Vec<Mixture>>> {
    let [first, _, ..] = solved else { return Ok(None) };
    let whole = first.table.whole();
    let rows = first.own.len();
    let change = |solved: &Solved<'_>, row: usize| whole - solved.table.parts_of(solved.own[row], solved.own[row]);
    let changes = |row: usize| solved.iter().map(|solved| change(solved, row)).sum::<u64>();
    if (0..rows).all(|row| changes(row) >= whole) {
        return Ok(None);
    }
    let aside: Vec<Aside> = solved.iter().map(Aside::new).collect();
    let whole = (whole * QUARTERS) as i64;
    let before: Vec<i64> = (0..rows).map(|row| (changes(row) * QUARTERS) as i64).collect();
    // What an attribute loses for what it changes in the rows that need it.
    let rate = |j: usize| {
        let gain = |row: usize| aside[j].gain(solved[j].own[row]);
        let gain: i64 = (0..rows).filter(|&row| before[row] < whole).map(gain).sum();
        if gain > 0 { aside[j].farther / gain as f64 } else { f64::INFINITY }
    };
    let mut order: Vec<(f64, usize)> = (0..solved.len()).map(|j| (rate(j), j)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut after, mut farther) = (before.clone(), 0.0);
    let mut best: Option<(f64, usize, u64)> = None;
    for (others, &(_, j)) in order.iter().enumerate() {
        after.iter_mut().zip(&solved[j].own).for_each(|(after, &own)| *after += aside[j].gain(own));
        farther += aside[j].farther;
        if let Some(share) = least_share(&before, &after, whole) {
            let loss = share as f64 * farther;
            if best.is_none_or(|(least, _, _)| loss < least) {
                best = Some((loss, others + 1, share));
            }
        }
    }
    let Some((_, count, share)) = best else { return Err(Error::internal("rows that cannot change")) };
    let mut shares = vec![0; solved.len()];
    order[..count].iter().for_each(|&(_, j)| shares[j] = share);
    Ok(Some(aside.into_iter().zip(shares).map(|(aside, share)| Mixture { share, aside }).collect()))
}

/// Returns the least share with which every row changes in one attribute on average: `before` with none of it, `after` with all.
fn least_share(before: &[i64], after: &[i64], whole: i64) -> Option<u64> {
    let mut share = 0;
    for (&before, &after) in before.iter().zip(after).filter(|(before, _)| **before < whole) {
        let gain = u64::try_from(after - before).ok().filter(|&gain| gain > 0)?;
        share = share.max((STEPS * (whole - before) as u64).div_ceil(gain));
    }
    let steps = STEPS as i64;
    let changes = |(&before, &after): (&i64, &i64)| steps * before + share as i64 * (after - before) >= steps * whole;
    (share <= STEPS && before.iter().zip(after).all(changes)).then_some(share)
}

impl Aside {
    fn new(solved: &Solved<'_>) -> Self {
        let Solved { values, table, distance, widest, .. } = solved;
        let codes = &values.codes;
        let d = codes.len();
        let to: Vec<[u32; 2]> = (0..d).map(|place| neighbours(distance, codes, place)).collect();
        let is_published = |place: &usize| (0..d).any(|value| table.parts_of(value, *place) > 0);
        let mut columns = codes.clone();
        columns.extend((0..d).filter(is_published).flat_map(|place| to[place]));
        columns.sort_unstable();
        columns.dedup();
        let column = |code: u32| columns.partition_point(|&other| other < code);
        let width = columns.len();
        let mut parts = vec![0; d * width];
        let (mut changes, mut farther) = (Vec::with_capacity(d), 0.0);
        for (value, parts) in parts.chunks_exact_mut(width).enumerate() {
            let own = codes[value];
            let mut moved = 0.0;
            for place in (0..d).filter(|&place| table.parts_of(value, place) > 0) {
                let part = table.parts_of(value, place);
                parts[column(codes[place])] += 2 * part;
                let further: f64 = to[place].iter().map(|&code| distance.between(own, code)).sum();
                moved += part as f64 * (further - 2.0 * distance.between(own, codes[place]));
                to[place].iter().for_each(|&code| parts[column(code)] += part);
            }
            farther += f64::from(values.weights[value]) * moved;
            let whole = table.whole() * QUARTERS;
            let before = whole - table.parts_of(value, value) * QUARTERS;
            changes.push([before as i64, (whole - parts[column(own)]) as i64]);
        }
        // The optimum can only be left, but for rounding.
        Self { columns, parts, changes, farther: farther.max(0.0) / widest }
    }

    /// Returns the number of rows of a value that change in addition.
    fn gain(&self, value: usize) -> i64 {
        let [before, after] = self.changes[value];
        after - before
    }
}

/// Returns the neighbours of a value that rows publish instead when they step aside. At an end of the range both are the same.
fn neighbours(distance: &Distance, codes: &[u32], place: usize) -> [u32; 2] {
    let code = codes[place];
    match distance.range(codes) {
        // Nothing is next to anything: round the values of the group.
        None => [codes.len() - 1, 1].map(|steps| codes[(place + steps) % codes.len()]),
        Some([first, last]) => {
            let below = if code > first { code - 1 } else { code + 1 };
            [below, if code < last { code + 1 } else { code - 1 }]
        }
    }
}

impl Mixture {
    /// Returns the mixed table.
    pub(super) fn apply(self, solved: Solved<'_>) -> GroupTable {
        if self.share == 0 {
            return GroupTable::of(solved);
        }
        let Aside { columns, mut parts, .. } = self.aside;
        let Values { codes, .. } = &solved.values;
        parts.iter_mut().for_each(|part| *part *= self.share);
        let stay = (STEPS - self.share) * QUARTERS;
        for (value, parts) in parts.chunks_exact_mut(columns.len()).enumerate() {
            for (place, code) in codes.iter().enumerate() {
                let column = columns.partition_point(|other| other < code);
                parts[column] += stay * solved.table.parts_of(value, place);
            }
        }
        GroupTable { attribute: solved.attribute, values: solved.values, own: solved.own, columns, parts }
    }
}
