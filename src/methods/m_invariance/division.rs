//! Phase 1: old rows into one bucket per signature, new rows by sensitive value.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result, thousands};
use crate::methods::assignment::wanted_by_value;
use crate::methods::balance::Moves;
use crate::methods::lots::Lots;
use crate::methods::split::Lists;
use crate::methods::state::Signatures;
use crate::microdata::Microdata;

/// Not (yet) in a bucket.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Rows that share a signature.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Codes of the sensitive values, ascending.
    pub signature: Box<[u32]>,
    /// Number of groups the bucket will be split into: rows and counterfeits of each value.
    pub height: usize,
}

/// Which bucket each row is in, and which rows are new.
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
    numbers: FxHashMap<Box<[u32]>, u32>,
}

impl Division {
    /// Divides the rows by what is known of them.
    pub(super) fn new(microdata: &Microdata, known: &Signatures) -> Result<Self> {
        let values = microdata.sensitive()?.domain.len();
        let mut division = Self {
            buckets: Vec::new(),
            bucket_of: vec![NOWHERE; microdata.rows],
            new: wanted_by_value(&microdata.sensitive_codes, values, |row| known.number_of(row).is_none()),
            lacking: vec![Vec::new(); values],
            need: 0,
            numbers: FxHashMap::default(),
        };
        let signatures = known.all();
        if signatures.is_empty() {
            return Ok(division);
        }
        let mut bucket_of_signature = vec![NOWHERE; signatures.len()];
        let mut updated = 0;
        for (row, &value) in microdata.sensitive_codes.iter().enumerate() {
            let Some(number) = known.number_of(row) else { continue };
            let signature = &signatures[number as usize];
            if signature.binary_search(&value).is_err() {
                updated += 1;
                continue;
            }
            let bucket = &mut bucket_of_signature[number as usize];
            if *bucket == NOWHERE {
                *bucket = division.bucket(signature);
            }
            division.bucket_of[row] = *bucket;
        }
        if updated > 0 {
            return Err(Error::refused(format!(
                "the sensitive value of {} returning rows is not one of the values they were published with; m-invariance \
                 cannot express changed values; m-Distinct (m_distinct) is the method for data whose values change",
                thousands(updated)
            )));
        }
        division.measure(microdata);
        Ok(division)
    }

    /// The bucket of a signature, made if it is not there.
    pub(super) fn bucket(&mut self, signature: &[u32]) -> u32 {
        if let Some(&number) = self.numbers.get(signature) {
            return number;
        }
        let number = self.buckets.len() as u32;
        self.numbers.insert(signature.into(), number);
        self.buckets.push(Bucket { signature: signature.into(), height: 0 });
        number
    }

    /// Signatures of the buckets, those with most groups first, equal ones in random order.
    pub(super) fn signatures(&self, lots: &mut impl Lots) -> Vec<&[u32]> {
        let mut buckets: Vec<&Bucket> = self.buckets.iter().collect();
        lots.shuffle(&mut buckets);
        buckets.sort_by_key(|bucket| Reverse(bucket.height));
        buckets.into_iter().map(|bucket| &*bucket.signature).collect()
    }

    /// From now on, buckets are made anew even if there is one of the signature.
    pub(super) fn close_old_buckets(&mut self) {
        self.numbers.clear();
    }

    /// Place of the lists of each bucket when all lists are laid side by side, one list per value of the signature.
    fn list_starts(&self) -> Vec<usize> {
        let mut starts = vec![0];
        for bucket in &self.buckets {
            starts.push(starts[starts.len() - 1] + bucket.signature.len());
        }
        starts
    }

    /// The list that a row in a bucket belongs to.
    fn list_of(&self, starts: &[usize], bucket: u32, value: u32) -> usize {
        let place = self.buckets[bucket as usize].signature.binary_search(&value);
        starts[bucket as usize] + place.unwrap_or_else(|_| unreachable!("rows are in buckets of their value"))
    }

    /// The rows of all buckets, one list per bucket and value.
    pub(super) fn lists(&self, microdata: &Microdata) -> Result<Lists> {
        let starts = self.list_starts();
        let list_of = |row: u32| match self.bucket_of[row as usize] {
            NOWHERE => None,
            bucket => Some(self.list_of(&starts, bucket, microdata.sensitive_codes[row as usize])),
        };
        Lists::new(starts.clone(), microdata.rows, list_of)
    }

    /// Makes buckets as high as their rows need them, and finds what these lack.
    pub(super) fn measure(&mut self, microdata: &Microdata) {
        self.lacking.iter_mut().for_each(Vec::clear);
        self.need = 0;
        if self.buckets.is_empty() {
            return;
        }
        let starts = self.list_starts();
        let mut counts = vec![0; starts[starts.len() - 1]];
        for (&bucket, &value) in self.bucket_of.iter().zip(&microdata.sensitive_codes) {
            if bucket != NOWHERE {
                counts[self.list_of(&starts, bucket, value)] += 1;
            }
        }
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
    }

    /// How many rows of each value all old buckets together lack.
    pub(super) fn needs(&self) -> Vec<usize> {
        self.lacking.iter().map(|lacking| lacking.iter().map(|&(_, rows)| rows).sum()).collect()
    }

    /// How many places in buckets are without a row.
    pub(super) fn need(&self) -> usize {
        self.need
    }

    /// How many places in old buckets stay without a row.
    pub(super) fn needs_left(&self, moves: &Moves) -> usize {
        self.need - moves.moved.iter().sum::<usize>()
    }

    /// How many new rows of each value there are.
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

    /// Rows of each value that remain to be assigned, padding included. Call after [`balance`](Self::balance).
    pub(super) fn new_counts(&self, moves: &Moves) -> Vec<usize> {
        self.new.iter().zip(&moves.padding).map(|(rows, padding)| rows.len() + padding).collect()
    }
}
