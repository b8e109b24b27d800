//! Join of identifiers with many values, in both directions. The values are the entries of a ledger, of which most
//! people have one, and the partners of everybody.
//!
//! To put the values in order would take memory, and more time than all the rest. They are thrown into buckets by their hashes, and a bucket's
//! identifiers stand together, in the cache.

use std::sync::atomic::{AtomicU32, Ordering};

use datafusion::arrow::array::{Array, ArrayRef};
use rayon::iter::repeat_n;
use rayon::prelude::*;

use super::find::Found;
use super::values::{Equality, hash};
use super::{CHUNK, Chunks, HashKey, Identifiers};
use crate::error::{Error, Result};
use crate::microdata::hash_order::Hashed;
use crate::microdata::thrown::{BUCKETS, Thrown};

/// Values of a part, at least, if there are so many: it is thrown on one core.
const PART: usize = 1 << 17;
/// Values that are looked for together.
const TOGETHER: usize = 1 << 10;
/// Least number of values that are thrown at once, if their ranks are asked for.
const AT_ONCE: usize = if cfg!(test) { 1 << 10 } else { 1 << 22 };

/// Places of identifiers among some values.
#[derive(Debug)]
pub struct Among {
    /// For each identifier, in hash order, the first value that is equal to it.
    pub first: Found,
    /// Ranks with the values that are equal to their identifiers, too; in order.
    pub again: Vec<(u32, u32)>,
    /// The values that no identifier is equal to, in order.
    pub elsewhere: Vec<u32>,
}

impl Identifiers {
    /// Finds these identifiers among some values. None may be repeated; they must have been hashed under this key, and be of the same type.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type, and when there are more values than have a number; when identifiers are repeated, which is a bug.
    pub fn among(&self, values: &Chunks, key: HashKey) -> Result<Among> {
        if self.runs_of_several()?.next().is_some() {
            return Err(Error::internal("repeated identifiers among values"));
        }
        let values = self.throw(&values.all, 0, key)?;
        let mut all = Found::none(self.order.len());
        let mut left = all.0.as_mut_slice();
        let buckets = self.buckets().map(|bucket| {
            let (first, after) = std::mem::take(&mut left).split_at_mut(bucket.own.len());
            left = after;
            (bucket, first)
        });
        let buckets: Vec<(Bucket<'_>, &mut [u32])> = buckets.collect();
        let look_up = |(bucket, first): (Bucket<'_>, &mut [u32])| {
            let (mut again, mut elsewhere) = (Vec::new(), Vec::new());
            bucket.look_up(&values, |value, place| match first.get_mut(place as usize) {
                None => elsewhere.push(value),
                Some(first) if *first == Found::NONE => *first = value,
                Some(_) => again.push((bucket.start + place, value)),
            });
            (again, elsewhere)
        };
        let found: Vec<(Vec<(u32, u32)>, Vec<u32>)> = buckets.into_par_iter().map(look_up).collect();
        let (again, elsewhere): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let (mut again, mut elsewhere) = (again.concat(), elsewhere.concat());
        again.par_sort_unstable();
        elsewhere.par_sort_unstable();
        Ok(Among { first: all, again, elsewhere })
    }

    /// Returns for each value, in order, the rank of an equal identifier, if any. Identifiers must have been hashed
    /// under this key, and be of the same type. Values are given up as they are looked up.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type, and when there are more values than have a number.
    pub fn ranks_of(&self, values: Chunks, key: HashKey) -> Result<Found> {
        // Once for each time that values are thrown it is found out where identifiers begin, which should not be what takes the time.
        let at_once = self.order.len().max(AT_ONCE);
        let mut ranks: Vec<AtomicU32> = Vec::with_capacity(values.rows);
        let (mut chunks, mut rows) = (Vec::new(), 0);
        let mut left = values.all.into_iter().peekable();
        while let Some(chunk) = left.next() {
            rows += chunk.len();
            chunks.push(chunk);
            if rows < at_once && left.peek().is_some() {
                continue;
            }
            let first = ranks.len();
            ranks.par_extend(repeat_n(Found::NONE, rows).with_min_len(CHUNK).map(AtomicU32::new));
            let values = self.throw(&chunks, first, key)?;
            let buckets: Vec<Bucket<'_>> = self.buckets().collect();
            buckets.into_par_iter().for_each(|bucket| {
                bucket.look_up(&values, |value, place| {
                    if place != Found::NONE {
                        ranks[value as usize].store(bucket.start + place, Ordering::Relaxed);
                    }
                });
            });
            chunks.clear();
            rows = 0;
        }
        // In their place.
        Ok(Found(ranks.into_iter().map(AtomicU32::into_inner).collect()))
    }

    /// Throws the values into buckets, of which the first has this number.
    fn throw(&self, chunks: &[ArrayRef], first: usize, key: HashKey) -> Result<Values> {
        let rows = chunks.iter().map(|chunk| chunk.len()).sum::<usize>();
        if first + rows >= u32::MAX as usize {
            return Err(Error::internal("more values than can be looked for"));
        }
        let (mut parts, mut part, mut rows) = (Vec::new(), Vec::new(), 0);
        let (mut beside, mut first) = (Vec::with_capacity(chunks.len()), first as u32);
        for chunk in chunks {
            for from in (0..chunk.len()).step_by(CHUNK) {
                let piece = Piece { chunk, from, first: first + from as u32, rows: CHUNK.min(chunk.len() - from) };
                rows += piece.rows;
                part.push(piece);
                if rows >= PART {
                    parts.push(std::mem::take(&mut part));
                    rows = 0;
                }
            }
            let end = first + chunk.len() as u32;
            beside.push(Chunk { first, end, equality: Equality::between(chunk, &self.values)? });
            first = end;
        }
        parts.push(part);
        let throw = |part: Vec<Piece<'_>>| {
            let rows = part.iter().map(|piece| piece.rows).sum();
            let (mut hashed, mut buckets) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
            let mut hashes = vec![0; CHUNK];
            for piece in part {
                let hashes = &mut hashes[..piece.rows];
                hash(piece.chunk, piece.from, key, hashes)?;
                buckets.extend(hashes.iter().map(|hash| (hash >> 56) as u8));
                hashed.extend(hashes.iter().zip(piece.first..).map(|(&hash, row)| Hashed::new(hash, row)));
            }
            Ok(Thrown::new(&hashed, &buckets))
        };
        Ok(Values { chunks: beside, parts: parts.into_par_iter().map(throw).collect::<Result<_>>()? })
    }

    /// Returns the identifiers by the first byte of their hashes.
    fn buckets(&self) -> impl Iterator<Item = Bucket<'_>> {
        let (mut left, mut start) = (self.order.as_slice(), 0);
        (0..BUCKETS).map(move |number| {
            let end = left.partition_point(|hashed| hashed.beginning() >> 24 <= number as u32);
            let (own, after) = left.split_at(end);
            let bucket = Bucket { number, own, start };
            (left, start) = (after, start + end as u32);
            bucket
        })
    }
}

/// Some of a chunk's values.
struct Piece<'a> {
    chunk: &'a ArrayRef,
    /// The first of them, in the chunk and among all values.
    from: usize,
    first: u32,
    rows: usize,
}

/// Values in buckets.
struct Values {
    chunks: Vec<Chunk>,
    parts: Vec<Thrown<Hashed>>,
}

/// A chunk of values beside the identifiers.
struct Chunk {
    /// Its first value among all of them, and the first of the next chunk.
    first: u32,
    end: u32,
    equality: Equality,
}

/// The identifiers whose hashes begin with one byte.
struct Bucket<'a> {
    number: usize,
    own: &'a [Hashed],
    /// Rank of the first of them.
    start: u32,
}

impl Bucket<'_> {
    /// Looks up the values of the bucket in their order. It tells each and the place of an equal identifier, or `NONE`.
    fn look_up(&self, values: &Values, mut each: impl FnMut(u32, u32)) {
        let (Self { number, own, .. }, Values { chunks, parts }) = (self, values);
        // Hashes are spread evenly: of so many ranges, each has one or two.
        let bits = (usize::BITS - own.len().leading_zeros()).clamp(1, 24);
        let range = |hashed: Hashed| (hashed.beginning() << 8 >> (u32::BITS - bits)) as usize;
        let mut begins = vec![0_u32; (1 << bits) + 1];
        own.iter().for_each(|&hashed| begins[range(hashed) + 1] += 1);
        let mut before = 0;
        for begin in &mut begins {
            before += *begin;
            *begin = before;
        }
        let alike = |value: Hashed| {
            let [from, to] = [0, 1].map(|next| begins[range(value) + next]);
            let all = (from..).zip(&own[from as usize..to as usize]);
            all.filter(move |(_, hashed)| hashed.beginning() == value.beginning()).map(|(place, _)| place)
        };
        let mut chunk = 0;
        let (mut places, mut holds) = (Vec::with_capacity(TOGETHER), Vec::with_capacity(TOGETHER));
        for values in parts.iter().flat_map(|part| part.of(*number).chunks(TOGETHER)) {
            places.clear();
            places.extend(values.iter().map(|&value| alike(value).last().unwrap_or(Found::NONE)));
            holds.clear();
            // Values that have no place are compared with any identifier, so that nothing depends on it, and to no end.
            let mut left = if own.is_empty() { &[] } else { values };
            while let Some(next) = left.first() {
                while chunks[chunk].end <= next.row() {
                    chunk += 1;
                }
                let Chunk { first, end, equality } = &chunks[chunk];
                let (of_chunk, after) = left.split_at(left.partition_point(|value| value.row() < *end));
                left = after;
                let of_each = of_chunk.iter().zip(&places[holds.len()..]);
                let row = |place: u32| own.get(place as usize).unwrap_or(&own[0]).row();
                equality.append(of_each.map(|(value, &place)| (value.row() - first, row(place))), &mut holds);
            }
            holds.resize(values.len(), false);
            for ((&value, place), holds) in values.iter().zip(&mut places).zip(&holds) {
                if !holds && *place != Found::NONE {
                    // Hardly ever does a hash begin like another.
                    let of_value = chunks.partition_point(|chunk| chunk.end <= value.row());
                    let Chunk { first, equality, .. } = &chunks[of_value];
                    let is_equal = |place: &u32| equality.holds(value.row() - first, own[*place as usize].row());
                    *place = alike(value).find(is_equal).unwrap_or(Found::NONE);
                }
                each(value.row(), *place);
            }
        }
    }
}
