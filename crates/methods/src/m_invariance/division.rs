//! Phase 1: old rows into one bucket per signature, new rows by sensitive value. With regions, a bucket is of one region.

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::assignment::wanted_by_value;
use crate::balance::Moves;
use crate::close::refuse_changed;
use crate::error::Result;
use crate::lots::Lots;
use crate::microdata::{Microdata, of_width};
use crate::split::Lists;
use crate::state::Signatures;

/// Not (yet) in a bucket.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Rows that share a signature, and a region.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Number of the region; 0 where the whole table is one.
    pub region: u32,
    /// Codes of the sensitive values, ascending.
    pub signature: Box<[u32]>,
    /// Number of groups the bucket will be split into: rows and counterfeits of each value.
    pub height: usize,
}

/// Rows that are looked at on one core, at least.
const PART: usize = 1 << 14;
/// Numbers of a table in place of a search.
const TABLED: usize = 1 << 20;

/// Returns the number of rows of a part, if each has numbers for some things. They are many more than the things.
fn rows_of_a_part(rows: usize, things: usize) -> usize {
    rows.div_ceil(4 * rayon::current_num_threads()).max(8 * things).max(PART)
}

/// The lists of some signatures, one for each value of each, laid side by side.
struct SideBySide<'a> {
    signatures: Vec<&'a [u32]>,
    /// First list of each signature, and the number of all lists.
    starts: Vec<usize>,
    /// The list of each signature and value, or [`NOWHERE`]; empty where these are many.
    table: Vec<u32>,
    values: usize,
}

impl<'a> SideBySide<'a> {
    fn new(signatures: impl Iterator<Item = &'a [u32]>, values: usize) -> Self {
        let signatures: Vec<&[u32]> = signatures.collect();
        let mut starts = vec![0];
        starts.extend(signatures.iter().scan(0, |end, signature| {
            *end += signature.len();
            Some(*end)
        }));
        let size = signatures.len().saturating_mul(values);
        let mut table = vec![NOWHERE; if size <= TABLED { size } else { 0 }];
        if !table.is_empty() {
            for ((of_signature, signature), &start) in table.chunks_exact_mut(values).zip(&signatures).zip(&starts) {
                signature.iter().zip(start as u32..).for_each(|(&value, list)| of_signature[value as usize] = list);
            }
        }
        Self { signatures, starts, table, values }
    }

    /// Returns the list of a signature and a value, if it has that.
    #[inline]
    fn of(&self, signature: u32, value: u32) -> Option<usize> {
        if self.table.is_empty() {
            let place = self.signatures[signature as usize].binary_search(&value).ok()?;
            return Some(self.starts[signature as usize] + place);
        }
        let list = self.table[signature as usize * self.values + value as usize];
        (list != NOWHERE).then_some(list as usize)
    }

    /// Returns the same of a row's bucket and value.
    #[inline]
    fn of_row(&self, bucket: u32, value: u32) -> usize {
        self.of(bucket, value).unwrap_or_else(|| unreachable!("rows are in buckets of their value"))
    }
}

/// Division of rows into buckets, with the new rows.
#[derive(Debug)]
pub(super) struct Division {
    pub buckets: Vec<Bucket>,
    /// Bucket of each row, or [`NOWHERE`].
    pub bucket_of: Vec<u32>,
    /// New rows that are not in a bucket, by sensitive value.
    pub new: Vec<Vec<u32>>,
    /// `(bucket, rows)` that each value lacks in old buckets.
    lacking: Vec<Vec<(u32, usize)>>,
    /// The sum of all that is lacking, before balancing.
    need: usize,
    numbers: FxHashMap<(u32, Box<[u32]>), u32>,
    /// Lasting numbers of the regions with people present; empty where the whole table is one region.
    pub regions: Vec<i64>,
    /// Buckets of each region.
    of_region: Vec<Vec<u32>>,
    /// Region of new rows.
    region: u32,
}

impl Division {
    /// Divides the rows by what is known of them.
    pub(super) fn new(microdata: &Microdata, known: &Signatures) -> Result<Self> {
        let values = microdata.sensitive()?.domain.len();
        let is_new = |row: usize| known.number_of(row).is_none();
        let mut division = Self {
            buckets: Vec::new(),
            bucket_of: vec![NOWHERE; microdata.rows],
            new: of_width!(&microdata.sensitive_codes, codes => wanted_by_value(codes, values, is_new)),
            lacking: vec![Vec::new(); values],
            need: 0,
            numbers: FxHashMap::default(),
            regions: Vec::new(),
            of_region: vec![Vec::new()],
            region: 0,
        };
        let signatures = known.all();
        if signatures.is_empty() {
            return Ok(division);
        }
        let lists = SideBySide::new(signatures.iter().map(|signature| &**signature), values);
        // Of each part: the first row of each signature, and how many rows have another value than they were published with.
        let part = rows_of_a_part(microdata.rows, signatures.len());
        let of_part = |number: usize| {
            let (mut firsts, mut updated) = (vec![NOWHERE; signatures.len()], 0);
            let rows = number * part..microdata.rows.min((number + 1) * part);
            for (row, value) in rows.clone().zip(microdata.sensitive_codes.part(rows)) {
                let Some(signature) = known.number_of(row) else { continue };
                match lists.of(signature, value).filter(|_| !known.is_changed(row)) {
                    Some(_) => firsts[signature as usize] = firsts[signature as usize].min(row as u32),
                    None => updated += 1,
                }
            }
            (firsts, updated)
        };
        let parts: Vec<_> = (0..microdata.rows.div_ceil(part)).into_par_iter().map(of_part).collect();
        let updated: usize = parts.iter().map(|(_, updated)| updated).sum();
        if updated > 0 {
            return Err(refuse_changed(updated));
        }
        // Buckets in the order of their first rows.
        let first = |signature: usize| parts.iter().map(|(firsts, _)| firsts[signature]).min().unwrap_or(NOWHERE);
        let mut there: Vec<_> = (0..signatures.len()).map(|signature| (first(signature), signature)).collect();
        there.retain(|&(first, _)| first != NOWHERE);
        there.sort_unstable();
        let mut bucket_of_signature = vec![NOWHERE; signatures.len()];
        let mut numbers: FxHashMap<i64, u32> = FxHashMap::default();
        for (_, signature) in there {
            if let Some(&region) = known.rings().get(signature) {
                let number = *numbers.entry(region).or_insert(division.regions.len() as u32);
                if number as usize == division.regions.len() {
                    division.regions.push(region);
                }
                division.enter(number);
            }
            bucket_of_signature[signature] = division.bucket(&signatures[signature]);
        }
        division.bucket_of.par_iter_mut().with_min_len(PART).enumerate().for_each(|(row, bucket)| {
            *bucket = known.number_of(row).map_or(NOWHERE, |signature| bucket_of_signature[signature as usize]);
        });
        division.measure(microdata)?;
        Ok(division)
    }

    /// Returns the bucket of a signature in the region, made if it is not there.
    pub(super) fn bucket(&mut self, signature: &[u32]) -> u32 {
        let (region, number) = (self.region, self.buckets.len() as u32);
        let found = *self.numbers.entry((region, signature.into())).or_insert(number);
        if found == number {
            self.buckets.push(Bucket { region, signature: signature.into(), height: 0 });
            self.of_region[region as usize].push(number);
        }
        found
    }

    /// Enters a region, to which new rows belong from now on.
    pub(super) fn enter(&mut self, region: u32) {
        self.region = region;
        let regions = self.of_region.len().max(region as usize + 1);
        self.of_region.resize_with(regions, Vec::new);
    }

    /// Signatures of the region's buckets, those with most groups first, equal ones in random order.
    pub(super) fn signatures(&self, lots: &mut impl Lots) -> Vec<&[u32]> {
        let of_region = self.of_region[self.region as usize].iter();
        let mut buckets: Vec<&Bucket> = of_region.map(|&bucket| &self.buckets[bucket as usize]).collect();
        lots.shuffle(&mut buckets);
        buckets.sort_by_key(|bucket| Reverse(bucket.height));
        buckets.into_iter().map(|bucket| &*bucket.signature).collect()
    }

    /// Closes old buckets: from now on, buckets are made anew for their signatures.
    pub(super) fn close_old_buckets(&mut self) {
        self.numbers.clear();
    }

    /// Returns the lists of buckets, one per value of the signature.
    fn side_by_side(&self, microdata: &Microdata) -> Result<SideBySide<'_>> {
        let signatures = self.buckets.iter().map(|bucket| &*bucket.signature);
        Ok(SideBySide::new(signatures, microdata.sensitive()?.domain.len()))
    }

    /// Returns the rows of all buckets, one list per bucket and value.
    pub(super) fn lists(&self, microdata: &Microdata) -> Result<Lists> {
        let lists = self.side_by_side(microdata)?;
        let list_of = |row: u32| match self.bucket_of[row as usize] {
            NOWHERE => None,
            bucket => Some(lists.of_row(bucket, microdata.sensitive_codes.at(row))),
        };
        Lists::new(lists.starts.clone(), microdata.rows, list_of)
    }

    /// Makes buckets as high as their rows need them, and finds what these lack.
    pub(super) fn measure(&mut self, microdata: &Microdata) -> Result<()> {
        self.lacking.iter_mut().for_each(Vec::clear);
        self.need = 0;
        if self.buckets.is_empty() {
            return Ok(());
        }
        let lists = self.side_by_side(microdata)?;
        let all = lists.starts[self.buckets.len()];
        let part = rows_of_a_part(microdata.rows, all);
        let of_part = |(number, buckets): (usize, &[u32])| {
            let mut counts = vec![0; all];
            let values = microdata.sensitive_codes.part(number * part..number * part + buckets.len());
            for (&bucket, value) in buckets.iter().zip(values).filter(|(bucket, _)| **bucket != NOWHERE) {
                counts[lists.of_row(bucket, value)] += 1;
            }
            counts
        };
        let parts = self.bucket_of.par_chunks(part).enumerate().map(of_part);
        let added = |mut counts: Vec<usize>, more: Vec<usize>| {
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
            counts
        };
        let counts = parts.reduce_with(added).unwrap_or_else(|| vec![0; all]);
        let starts = lists.starts;
        for (number, bucket) in self.buckets.iter_mut().enumerate() {
            let counts = &counts[starts[number]..starts[number + 1]];
            bucket.height = counts.iter().copied().max().unwrap_or(0);
            for (&value, &count) in bucket.signature.iter().zip(counts) {
                if count < bucket.height {
                    self.lacking[value as usize].push((number as u32, bucket.height - count));
                    self.need += bucket.height - count;
                }
            }
        }
        Ok(())
    }

    /// Counts the rows of each value that all old buckets together lack.
    pub(super) fn needs(&self) -> Vec<usize> {
        self.lacking.iter().map(|lacking| lacking.iter().map(|&(_, rows)| rows).sum()).collect()
    }

    /// Counts the places in buckets without a row.
    pub(super) fn need(&self) -> usize {
        self.need
    }

    /// Counts the places in old buckets that stay without a row.
    pub(super) fn needs_left(&self, moves: &Moves) -> usize {
        self.need - moves.moved.iter().sum::<usize>()
    }

    /// Counts the new rows of each value.
    pub(super) fn new_values(&self) -> Vec<usize> {
        self.new.iter().map(Vec::len).collect()
    }

    /// Moves new rows into old buckets that lack their value, and takes withheld ones out. Which rows and which places is
    /// random: rows stand in the order of a keyed hash, and the places are drawn.
    pub(super) fn balance(&mut self, moves: &Moves, lots: &mut impl Lots) {
        for (value, rows) in self.new.iter_mut().enumerate() {
            rows.truncate(rows.len() - moves.withheld[value]);
            let moved = rows.split_off(rows.len() - moves.moved[value]);
            let lacking = std::mem::take(&mut self.lacking[value]);
            let mut places: Vec<u32> =
                lacking.into_iter().flat_map(|(bucket, rows)| std::iter::repeat_n(bucket, rows)).collect();
            let drawn = lots.choose(&mut places, moved.len());
            for (row, bucket) in moved.into_iter().zip(drawn) {
                self.bucket_of[row as usize] = *bucket;
            }
        }
    }

    /// Returns the rows of each value that remain to be assigned, padding included. Call after [`balance`](Self::balance).
    pub(super) fn new_counts(&self, moves: &Moves) -> Vec<usize> {
        self.new.iter().zip(&moves.padding).map(|(rows, padding)| rows.len() + padding).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tests::{Known, Row, encode};
    use super::*;

    /// Several parts of rows on any number of cores: buckets come in the order of their first rows, and are as high as their most frequent value.
    #[test]
    fn parts_are_divided_as_if_they_were_one() {
        let mixed = |id: i64, n: i64| (id.wrapping_mul(0x9e37_79b9) >> 7).rem_euclid(n);
        let rows: Vec<Row> =
            (0..60_000).map(|id| (id, vec![Some(mixed(id, 97) as i32)], format!("v{}", mixed(id, 7)))).collect();
        let signature = |id: i64| -> BTreeSet<String> {
            // Frequent ones, and rare ones.
            let step = if id > 59_000 { 5 } else { 1 + mixed(id / 9, 4) * i64::from(id > 20_000) };
            [0, step, step + 1].map(|more| format!("v{}", (mixed(id, 7) + more) % 7)).into()
        };
        let known: Known = rows.iter().filter(|row| row.0 % 3 != 0).map(|row| (row.0, signature(row.0))).collect();
        let (microdata, state) = encode(&rows, &known, 5).unwrap();
        let known = state.signatures().unwrap();
        let (mut signatures, mut bucket_of) = (Vec::new(), vec![NOWHERE; microdata.rows]);
        for (row, place) in bucket_of.iter_mut().enumerate() {
            let Some(signature) = known.of(row) else { continue };
            let bucket = signatures.iter().position(|known| *known == signature).unwrap_or_else(|| {
                signatures.push(signature);
                signatures.len() - 1
            });
            *place = bucket as u32;
        }
        assert!(signatures.len() > 10);
        for threads in [1, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let division = pool.install(|| Division::new(&microdata, known)).unwrap();
            assert!(division.buckets.iter().map(|bucket| &*bucket.signature).eq(signatures.iter().copied()));
            assert_eq!(division.bucket_of, bucket_of);
            for (number, bucket) in (0..).zip(&division.buckets) {
                let rows = |value: u32| {
                    let both = division.bucket_of.iter().zip(microdata.sensitive_codes.iter());
                    both.filter(|&(&bucket, code)| (bucket, code) == (number, value)).count()
                };
                assert_eq!(bucket.height, bucket.signature.iter().map(|&value| rows(value)).max().unwrap());
            }
        }
    }

    /// By a table, and where it would be too large by a search.
    #[test]
    fn lists_are_found_by_signature_and_value() {
        let signatures: [&[u32]; 4] = [&[0, 3, 4], &[], &[1], &[0, 2, 3, 5]];
        for values in [6, TABLED] {
            let lists = SideBySide::new(signatures.into_iter(), values);
            assert_eq!(lists.table.is_empty(), values == TABLED);
            assert_eq!(lists.starts, [0, 3, 3, 4, 8]);
            let mut next = 0;
            for (number, signature) in (0..).zip(signatures) {
                for value in 0..6 {
                    let expected = signature.contains(&value).then(|| {
                        next += 1;
                        next - 1
                    });
                    assert_eq!(lists.of(number, value), expected, "{number} {value}");
                }
            }
        }
    }
}
