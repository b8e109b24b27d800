//! Which of many values each identifier is equal to: the entries of a ledger, of which most people have one.
//!
//! To put the values in order would take memory, and more time than all the rest. They are thrown into buckets by their hashes, and a bucket's identifiers stand
//! together, in the cache.

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

/// Where identifiers are among some values.
#[derive(Debug)]
pub(crate) struct Among {
    /// For each identifier, in hash order, the first value that is equal to it.
    pub first: Found,
    /// Places in hash order with the values that are equal to them, too; in order.
    pub again: Vec<(u32, u32)>,
    /// The values that no identifier is equal to, in order.
    pub elsewhere: Vec<u32>,
}

/// Some of a chunk's values.
struct Piece {
    chunk: usize,
    /// The first of them, in the chunk and among all values.
    from: usize,
    first: u32,
    rows: usize,
}

/// A chunk of values beside the identifiers.
struct Chunk {
    /// Its first value among all of them, and the first of the next chunk.
    first: u32,
    end: u32,
    equality: Equality,
}

impl Identifiers {
    /// Where these are among some values. Identifiers must have been hashed under this key, and be of the same type.
    ///
    /// # Errors
    /// When Arrow cannot compare values of the type, and when there are more values than have a number.
    pub(crate) fn among(&self, values: &Chunks, key: HashKey) -> Result<Among> {
        if values.rows >= u32::MAX as usize {
            return Err(Error::internal("more values than can be looked for"));
        }
        let (mut parts, mut part, mut rows) = (Vec::new(), Vec::new(), 0);
        let (mut chunks, mut first) = (Vec::with_capacity(values.all.len()), 0);
        for (chunk, of_chunk) in values.all.iter().enumerate() {
            for from in (0..of_chunk.len()).step_by(CHUNK) {
                let piece = Piece { chunk, from, first: first + from as u32, rows: CHUNK.min(of_chunk.len() - from) };
                rows += piece.rows;
                part.push(piece);
                if rows >= PART {
                    parts.push(std::mem::take(&mut part));
                    rows = 0;
                }
            }
            let end = first + of_chunk.len() as u32;
            chunks.push(Chunk { first, end, equality: Equality::between(of_chunk, &self.values)? });
            first = end;
        }
        parts.push(part);
        let throw = |part: Vec<Piece>| {
            let rows = part.iter().map(|piece| piece.rows).sum();
            let (mut hashed, mut buckets) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
            let mut hashes = vec![0; CHUNK];
            for piece in part {
                let hashes = &mut hashes[..piece.rows];
                hash(&values.all[piece.chunk], piece.from, key, hashes)?;
                buckets.extend(hashes.iter().map(|hash| (hash >> 56) as u8));
                hashed.extend(hashes.iter().zip(piece.first..).map(|(&hash, row)| Hashed::new(hash, row)));
            }
            Ok(Thrown::new(&hashed, &buckets))
        };
        let parts = parts.into_par_iter().map(throw).collect::<Result<Vec<_>>>()?;
        let mut all = Found::none(self.order.len());
        let mut buckets = Vec::with_capacity(BUCKETS);
        let (mut left, mut places, mut start) = (self.order.as_slice(), all.places(), 0);
        for number in 0..BUCKETS {
            let end = left.partition_point(|hashed| hashed.beginning() >> 24 <= number as u32);
            let (own, after) = left.split_at(end);
            let (first, places_after) = places.split_at_mut(end);
            buckets.push(Bucket { number, own, start, first });
            (left, places, start) = (after, places_after, start + end as u32);
        }
        let look_up = |bucket: Bucket<'_>| bucket.look_up(&parts, &chunks);
        let found: Vec<(Vec<(u32, u32)>, Vec<u32>)> = buckets.into_par_iter().map(look_up).collect();
        let (again, elsewhere): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let (mut again, mut elsewhere) = (again.concat(), elsewhere.concat());
        again.par_sort_unstable();
        elsewhere.par_sort_unstable();
        Ok(Among { first: all, again, elsewhere })
    }
}

/// The identifiers whose hashes begin with one byte.
struct Bucket<'a> {
    number: usize,
    own: &'a [Hashed],
    /// Place in hash order of the first of them.
    start: u32,
    /// Where the first value that is equal to each of them goes.
    first: &'a mut [u32],
}

impl Bucket<'_> {
    /// Looks for the values of the bucket, which come in their order.
    fn look_up(self, parts: &[Thrown<Hashed>], chunks: &[Chunk]) -> (Vec<(u32, u32)>, Vec<u32>) {
        let Self { number, own, start, first } = self;
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
        let (mut again, mut elsewhere, mut chunk) = (Vec::new(), Vec::new(), 0);
        let (mut places, mut holds) = (Vec::with_capacity(TOGETHER), Vec::with_capacity(TOGETHER));
        for values in parts.iter().flat_map(|part| part.of(number).chunks(TOGETHER)) {
            places.clear();
            places.extend(values.iter().map(|&value| alike(value).last().unwrap_or(Found::NONE)));
            let mut is_equal = |value: Hashed, place: u32| {
                while chunks[chunk].end <= value.row() {
                    chunk += 1;
                }
                let Chunk { first, equality, .. } = &chunks[chunk];
                equality.holds(value.row() - first, own[place as usize].row())
            };
            // Values are all over the memory: looked at together, none waits for the one before.
            holds.clear();
            let pairs = values.iter().zip(&places);
            holds.extend(pairs.map(|(&value, &place)| place == Found::NONE || is_equal(value, place)));
            for ((&value, place), holds) in values.iter().zip(&mut places).zip(&holds) {
                if !holds {
                    // Hardly ever does a hash begin like another.
                    let of_value = chunks.partition_point(|chunk| chunk.end <= value.row());
                    let Chunk { first, equality, .. } = &chunks[of_value];
                    let is_equal = |place: &u32| equality.holds(value.row() - first, own[*place as usize].row());
                    *place = alike(value).find(is_equal).unwrap_or(Found::NONE);
                }
                match first.get_mut(*place as usize) {
                    None => elsewhere.push(value.row()),
                    Some(first) if *first == Found::NONE => *first = value.row(),
                    Some(_) => again.push((start + *place, value.row())),
                }
            }
        }
        (again, elsewhere)
    }
}
