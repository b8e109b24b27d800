//! Phase 4: a balanced bucket of `h` rows per value becomes `h` groups of one row per value.
//!
//! Binary splits: with each value's rows sorted by one attribute, the first `k` of every value form one side. The paper
//! tries every attribute and every `k` at every split and takes the one with the least
//! `|B1| * sum_j len_j(B1) + |B2| * sum_j len_j(B2)`. That is done here once buckets are small enough to stay in cache
//! ([`fine`]); larger ones are halved at the medians of the attribute that shrinks most ([`coarse`]), which keeps the
//! depth logarithmic.
//!
//! Counterfeits have no quasi-identifiers. The paper sorts them first, which drags them to the low end of an attribute; here
//! they stand evenly between the rows, from a random place on, and extend nothing.

mod coarse;
mod fine;

use rayon::prelude::*;

use super::division::{Division, NOWHERE};
use super::groups_of;
use crate::error::{Error, Result};
use crate::methods::Monitor;
use crate::methods::extent::{in_width, width};
use crate::microdata::Microdata;
use crate::release::Groups;

/// Splits all buckets; the intervals of the groups are not computed yet.
pub(super) fn split(microdata: &Microdata, division: &Division, secret: u64, monitor: &Monitor) -> Result<Groups> {
    in_width!(microdata.quasi.len(), split_wide(microdata, division, secret, monitor))
}

/// Bytes of a row on its way through the splits.
pub(super) fn item_bytes(quasi: usize) -> usize {
    (1 + width(quasi)) * size_of::<u32>()
}

fn split_wide<const W: usize>(
    microdata: &Microdata,
    division: &Division,
    secret: u64,
    monitor: &Monitor,
) -> Result<Groups> {
    let lists = Lists::new(microdata, division)?;
    let sizes = || division.buckets.iter().map(|bucket| bucket.signature.len() * bucket.height);
    let total: usize = sizes().sum();
    if total >= u32::MAX as usize {
        return Err(Error::refused("a release of more than four billion rows and counterfeits is not supported"));
    }
    let mut members = vec![0; total];
    let mut sensitive = vec![0; total];
    let mut work = Vec::with_capacity(division.buckets.len());
    let (mut members_left, mut sensitive_left) = (members.as_mut_slice(), sensitive.as_mut_slice());
    for (number, size) in sizes().enumerate() {
        let (members, members_after) = members_left.split_at_mut(size);
        let (sensitive, sensitive_after) = sensitive_left.split_at_mut(size);
        work.push((number, members, sensitive));
        (members_left, sensitive_left) = (members_after, sensitive_after);
    }
    work.sort_by_key(|(_, members, _)| std::cmp::Reverse(members.len()));
    work.into_par_iter().for_each(|(number, members, sensitive)| {
        let bucket = &division.buckets[number];
        for group in sensitive.chunks_exact_mut(bucket.signature.len()) {
            group.copy_from_slice(&bucket.signature);
        }
        let mut lists: Vec<Vec<Item<W>>> =
            lists.of(number).map(|rows| rows.iter().map(|&row| Item::new(microdata, row)).collect()).collect();
        let lists = lists.iter_mut().map(Vec::as_mut_slice).collect();
        let node = coarse::Node { lists, height: bucket.height, secret: mix(secret, number as u64) };
        coarse::split(microdata.quasi.len(), node, members, monitor);
    });
    monitor.check()?;
    let mut starts = Vec::with_capacity(division.buckets.iter().map(|bucket| bucket.height).sum::<usize>() + 1);
    starts.push(0);
    for bucket in &division.buckets {
        for _ in 0..bucket.height {
            starts.push(starts[starts.len() - 1] + bucket.signature.len() as u32);
        }
    }
    Ok(groups_of(starts, members, sensitive))
}

/// A row and where it lies: its position in each quasi-identifier's domain, 0 to 1. Positions beyond the number of
/// quasi-identifiers are 0 for all rows.
#[derive(Debug, Clone, Copy)]
struct Item<const W: usize> {
    row: u32,
    at: [f32; W],
}

impl<const W: usize> Item<W> {
    fn new(microdata: &Microdata, row: u32) -> Self {
        let mut at = [0.0; W];
        for ((at, attribute), &code) in at.iter_mut().zip(&microdata.quasi).zip(microdata.quasi_of(row)) {
            *at = attribute.domain.position(code);
        }
        Self { row, at }
    }
}

/// The rows of all buckets, one list per bucket and value, side by side.
struct Lists {
    rows: Vec<u32>,
    /// Start of each list in `rows`.
    starts: Vec<u32>,
    /// First list of each bucket.
    buckets: Vec<usize>,
}

impl Lists {
    fn new(microdata: &Microdata, division: &Division) -> Result<Self> {
        let buckets = division.list_starts();
        let mut starts = vec![0_u32; buckets[buckets.len() - 1] + 1];
        let placed = || {
            division
                .bucket_of
                .iter()
                .zip(&microdata.sensitive_codes)
                .enumerate()
                .filter(|(_, (bucket, _))| **bucket != NOWHERE)
                .map(|(row, (&bucket, &value))| (row, division.list_of(&buckets, bucket, value)))
        };
        for (_, list) in placed() {
            starts[list + 1] += 1;
        }
        for list in 1..starts.len() {
            starts[list] += starts[list - 1];
        }
        let mut rows = vec![0; starts[starts.len() - 1] as usize];
        let mut ends = starts.clone();
        for (row, list) in placed() {
            rows[ends[list] as usize] = row as u32;
            ends[list] += 1;
        }
        let lists = Self { rows, starts, buckets };
        for (number, bucket) in division.buckets.iter().enumerate() {
            if lists.of(number).any(|list| list.len() > bucket.height) {
                return Err(Error::internal("a bucket with more rows of a value than groups"));
            }
        }
        Ok(lists)
    }

    fn of(&self, bucket: usize) -> impl ExactSizeIterator<Item = &[u32]> {
        let lists = self.buckets[bucket]..self.buckets[bucket + 1];
        lists.map(|list| &self.rows[self.starts[list] as usize..self.starts[list + 1] as usize])
    }
}

/// How many rows are among the first `k` of `h` places when `rows` rows and `h - rows` counterfeits alternate evenly.
/// `offset` below `h` says where the pattern starts.
#[inline]
fn rows_among(k: usize, h: usize, rows: usize, offset: usize) -> usize {
    k - (k * (h - rows) + offset) / h
}

/// A well-mixed number from a secret and a place (the finalizer of SplitMix64, twice).
fn mix(secret: u64, place: u64) -> u64 {
    let round = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    round(round(secret.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))).wrapping_add(secret))
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
