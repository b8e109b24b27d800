//! A balanced bucket of `h` rows per list becomes `h` groups of one row per list.
//!
//! Binary splits: with each list sorted by one attribute, the first `k` rows of every list form one side. m-Invariance's paper
//! (Section 4.3)
//! tries every attribute and every `k` at every split and takes the one with the least
//! `|B1| * sum_j len_j(B1) + |B2| * sum_j len_j(B2)`. That is done here once buckets are small enough to stay in cache
//! ([`fine`]); larger ones are halved at the medians of the attribute that shrinks most ([`coarse`]), which keeps the
//! depth logarithmic.
//!
//! Counterfeits have no quasi-identifiers. The paper sorts them first, which drags them to the low end of an attribute; here
//! they stand evenly between the rows, from a random place on, and extend nothing.

mod coarse;
mod fine;
mod median;
mod secret;

pub(super) use coarse::{Node, PARALLEL_FROM, best_attribute};
pub(super) use median::Spare;
use rayon::prelude::*;
#[cfg(test)]
pub(super) use secret::Choose;
pub(super) use secret::Secret;

use super::extent::{in_width, width};
use crate::error::{Error, Result};
use crate::methods::Monitor;
use crate::microdata::Microdata;

/// How a bucket is split.
pub(super) trait Splitter: Sync {
    /// Splits a bucket into groups; group `g` of `s` members goes to `members[g * s..][..s]`, in the order of the lists, with
    /// [`COUNTERFEIT`](crate::release::COUNTERFEIT) where a list has no row for it.
    fn split<const W: usize>(
        &self,
        microdata: &Microdata,
        bucket: usize,
        node: Node<'_, W>,
        members: &mut [u32],
        spare: &mut Spare<W>,
        monitor: &Monitor,
    );
}

/// Any row of a list goes with any row of another.
pub(super) struct Sorted;

impl Splitter for Sorted {
    fn split<const W: usize>(
        &self,
        microdata: &Microdata,
        _bucket: usize,
        node: Node<'_, W>,
        members: &mut [u32],
        spare: &mut Spare<W>,
        monitor: &Monitor,
    ) {
        coarse::split(microdata.quasi.len(), node, members, spare, monitor);
    }
}

/// Splits all buckets into as many groups as they are high. Returns the rows of the groups, bucket after bucket.
pub(super) fn split(
    microdata: &Microdata,
    lists: &Lists,
    heights: &[usize],
    secret: Secret,
    splitter: &impl Splitter,
    monitor: &Monitor,
) -> Result<Vec<u32>> {
    in_width!(microdata.quasi.len(), split_wide(microdata, lists, heights, secret, splitter, monitor))
}

/// Bytes of a row on its way through the splits.
pub(super) fn item_bytes(quasi: usize) -> usize {
    (2 + width(quasi)) * size_of::<u32>()
}

/// Bytes of the room to put lists in order, where the longest lists of the buckets that are split at a time have so many rows together: that
/// of a list and, as rows may change sides, of a copy; and what other threads take for the halves that they split.
fn spare_bytes<const W: usize>(rows: usize) -> usize {
    let halves = 2 + rayon::current_num_threads().ilog2() as usize;
    halves * rows.saturating_mul(size_of::<Item<W>>() + size_of::<u32>())
}

fn split_wide<const W: usize>(
    microdata: &Microdata,
    lists: &Lists,
    heights: &[usize],
    secret: Secret,
    splitter: &impl Splitter,
    monitor: &Monitor,
) -> Result<Vec<u32>> {
    for (number, &height) in heights.iter().enumerate() {
        if lists.of(number).any(|list| list.len() > height) {
            return Err(Error::internal("a bucket with more rows in a list than groups"));
        }
    }
    let sizes = || heights.iter().enumerate().map(|(number, height)| lists.of(number).len() * height);
    let total: usize = sizes().sum();
    if total >= u32::MAX as usize {
        return Err(Error::refused("a release of more than four billion rows and counterfeits is not supported"));
    }
    let mut longest: Vec<usize> =
        (0..heights.len()).map(|number| lists.of(number).map(<[u32]>::len).max().unwrap_or(0)).collect();
    longest.sort_unstable_by_key(|&rows| std::cmp::Reverse(rows));
    monitor.charge(spare_bytes::<W>(longest.iter().take(rayon::current_num_threads()).sum()))?;
    let mut members = vec![0; total];
    let mut work = Vec::with_capacity(heights.len());
    let mut left = members.as_mut_slice();
    for (number, size) in sizes().enumerate() {
        let (members, after) = left.split_at_mut(size);
        if size > 0 {
            work.push((number, members));
        }
        left = after;
    }
    work.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    work.into_par_iter().for_each(|(number, members)| {
        let mut items: Vec<Vec<Item<W>>> =
            lists.of(number).map(|rows| rows.iter().map(|&row| Item::new(microdata, row)).collect()).collect();
        let lists = items.iter_mut().map(Vec::as_mut_slice).collect();
        let node = Node { lists, height: heights[number], secret: secret.of_bucket(number) };
        splitter.split(microdata, number, node, members, &mut Spare::default(), monitor);
    });
    monitor.check()?;
    Ok(members)
}

/// A row and where it lies: its position in each quasi-identifier's domain, 0 to 1. Positions beyond the number of
/// quasi-identifiers are 0 for all rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<const W: usize> {
    pub row: u32,
    /// Code of its sensitive value: here, for to look it up by the row would miss the cache at every level of the splits.
    pub sensitive: u32,
    pub at: [f32; W],
}

impl<const W: usize> Item<W> {
    /// Sorts rows by an attribute, and those that lie together by their place in a list, as whole numbers: without a branch. Positions are not
    /// negative, so that their bits are in their order.
    #[inline]
    pub(in crate::methods) fn key(&self, attribute: usize, place: u64) -> u64 {
        u64::from(self.at[attribute].to_bits()) << 32 | place
    }

    fn new(microdata: &Microdata, row: u32) -> Self {
        let mut at = [0.0; W];
        for ((at, attribute), &code) in at.iter_mut().zip(&microdata.quasi).zip(microdata.quasi_of(row)) {
            *at = attribute.domain.position(code);
        }
        Self { row, sensitive: microdata.sensitive_codes[row as usize], at }
    }
}

/// The rows of all buckets, one list per bucket and value, side by side.
pub(super) struct Lists {
    rows: Vec<u32>,
    /// Start of each list in `rows`.
    starts: Vec<u32>,
    /// First list of each bucket, and the number of all lists.
    buckets: Vec<usize>,
}

impl Lists {
    /// `buckets` has the first list of each bucket, and at the end the number of all lists. `each` calls what it is given with
    /// every row and its list, twice in the same order.
    pub(super) fn new(buckets: Vec<usize>, each: impl Fn(&mut dyn FnMut(u32, usize))) -> Result<Self> {
        let Some(&all) = buckets.last() else { return Err(Error::internal("lists without an end")) };
        let mut starts = vec![0_u32; all + 1];
        each(&mut |_, list| starts[list + 1] += 1);
        for list in 1..starts.len() {
            starts[list] += starts[list - 1];
        }
        let mut rows = vec![0; starts[all] as usize];
        let mut ends = starts.clone();
        each(&mut |row, list| {
            rows[ends[list] as usize] = row;
            ends[list] += 1;
        });
        Ok(Self { rows, starts, buckets })
    }

    /// The lists of a bucket.
    pub(super) fn of(&self, bucket: usize) -> impl ExactSizeIterator<Item = &[u32]> {
        let lists = self.buckets[bucket]..self.buckets[bucket + 1];
        lists.map(|list| &self.rows[self.starts[list] as usize..self.starts[list + 1] as usize])
    }
}

/// How many rows are among the first `k` of `h` places when `rows` rows and `h - rows` counterfeits alternate evenly.
/// `offset` below `h` says where the pattern starts.
#[inline]
pub(super) fn rows_among(k: usize, h: usize, rows: usize, offset: usize) -> usize {
    k - (k * (h - rows) + offset) / h
}

#[cfg(test)]
mod tests {
    use super::rows_among;

    #[test]
    fn counterfeits_alternate_evenly_and_completely() {
        for h in 1..12 {
            for rows in 0..=h {
                for offset in 0..h {
                    assert_eq!(rows_among(h, h, rows, offset), rows);
                    let steps = (0..h).map(|k| rows_among(k + 1, h, rows, offset) - rows_among(k, h, rows, offset));
                    assert!(steps.clone().all(|step| step <= 1));
                    assert_eq!(rows_among(0, h, rows, offset), 0);
                }
            }
        }
    }
}
