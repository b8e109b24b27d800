//! Rows in the order of a hash of 64 bits. What is put in order is half of the hash beside the row's number: eight bytes, which are compared at
//! once; the other half is looked at where that is not enough.

use rayon::prelude::*;

use super::thrown::{Thrown, made_of, room};
use crate::error::{Error, Result};

/// Rows whose hashes are asked for at a time: few enough to stay in the cache, and enough to share what it takes to begin.
const CHUNK: usize = 8192;
/// Rows of a part. Some chunks.
const PART: usize = 1 << 17;
/// Fewer rows of a bucket are compared.
const FEW: usize = 1 << 10;

/// The upper half of a hash, and the row that it is of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hashed(u64);

impl Hashed {
    /// Keeps the upper half of a hash beside the row.
    pub(super) fn new(hash: u64, row: u32) -> Self {
        Self(hash >> 32 << 32 | u64::from(row))
    }

    /// Returns the upper half of the hash. Rows in order have it in order.
    #[inline]
    pub(super) fn beginning(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the row.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 as u32
    }
}

/// An order of rows.
pub(super) struct HashOrder<T> {
    /// By their hashes.
    pub rows: Vec<T>,
    /// True if there are rows of one hash.
    pub has_alike: bool,
}

/// Way to tell which rows have one hash, of rows whose hashes begin alike.
#[derive(Clone, Copy)]
pub(super) enum Alike<'a> {
    /// By the other halves, which are kept of all rows: many rows are alike, and it takes long to hash them.
    Ends,
    /// By a look at two rows, which tells whether they have one hash. They have if they are equal. Those that are not
    /// are hashed again, which hardly ever happens.
    Equal(&'a (dyn Fn(u32, u32) -> bool + Sync)),
}

impl<T: Default + Send> HashOrder<T> {
    /// Puts so many rows in order. `hash` fills in the hashes of rows from the first one on, all of them 0 before; `alike` is given rows of one
    /// hash, in the order that they came in, and may put them in another one. `keep` is what is kept of a row.
    ///
    /// # Errors
    /// When there are more rows than have a number, and those of `hash`.
    pub(super) fn try_new(
        rows: usize,
        hash: impl Fn(usize, &mut [u64]) -> Result<()> + Sync,
        found: Alike<'_>,
        alike: impl Fn(&mut [Hashed]) + Sync,
        keep: impl Fn(Hashed) -> T + Sync,
    ) -> Result<Self> {
        if rows > u32::MAX as usize {
            return Err(Error::internal("more rows than can be put in order"));
        }
        let mut ends: Vec<u32> = if matches!(found, Alike::Ends) { room(rows) } else { Vec::new() };
        let mut places: Vec<&mut [u32]> = ends.chunks_mut(PART).collect();
        places.resize_with(rows.div_ceil(PART), Default::default);
        let parts = places.into_par_iter().enumerate().map(|(number, ends)| {
            let first = number * PART;
            let mut hashes = vec![0; PART.min(rows - first)];
            for (number, hashes) in hashes.chunks_mut(CHUNK).enumerate() {
                hash(first + number * CHUNK, hashes)?;
            }
            let buckets: Vec<u8> = hashes.iter().map(|hash| (hash >> 56) as u8).collect();
            ends.iter_mut().zip(&hashes).for_each(|(end, &hash)| *end = hash as u32);
            let hashed = hashes.into_iter().zip(first as u32..).map(|(hash, row)| Hashed::new(hash, row));
            Ok(Thrown::new(&hashed.collect::<Vec<_>>(), &buckets))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let mut rows: Vec<T> = room(rows);
        let end_of = |row: u32| match ends.get(row as usize) {
            Some(&end) => Ok(end),
            None => {
                let mut hashes = [0];
                hash(row as usize, &mut hashes).map(|()| hashes[0] as u32)
            }
        };
        let in_order = |bucket: &mut [Hashed]| {
            by_beginning(bucket);
            match found {
                Alike::Ends => in_order_of_ends(bucket, |a, b| ends[a as usize] == ends[b as usize], end_of, &alike),
                Alike::Equal(equal) => in_order_of_ends(bucket, equal, end_of, &alike),
            }
        };
        let have_alike = made_of(&parts, &mut rows, in_order, keep).into_iter().collect::<Result<Vec<bool>>>()?;
        Ok(Self { rows, has_alike: have_alike.contains(&true) })
    }
}

/// Orders rows of one bucket by the beginnings of their hashes. They come in the order of their numbers. They share
/// the first byte, and the other three are counted, twice half of them: nothing is compared.
fn by_beginning(rows: &mut [Hashed]) {
    const BITS: u32 = 12;
    if rows.len() < FEW {
        return rows.sort_unstable();
    }
    // Of a table in which all rows are alike one bucket has all of them, and needs no room beside them.
    if rows.is_sorted() {
        return;
    }
    let mut room = vec![Hashed::default(); rows.len()];
    let half = |from: &[Hashed], to: &mut [Hashed], shift: u32| {
        let digit = |hashed: Hashed| (hashed.beginning() >> shift) as usize & ((1 << BITS) - 1);
        let mut next = [0_u32; 1 << BITS];
        from.iter().for_each(|&hashed| next[digit(hashed)] += 1);
        let mut before = 0;
        next.iter_mut().for_each(|next| before += std::mem::replace(next, before));
        for &hashed in from {
            let next = &mut next[digit(hashed)];
            to[*next as usize] = hashed;
            *next += 1;
        }
    };
    half(rows, &mut room, 0);
    half(&room, rows, BITS);
}

/// Orders rows whose hashes begin alike by their ends. It gives those that also end alike to `alike`. Of two rows
/// for which `equal` is true it need not be known how they end. Returns whether any are alike.
fn in_order_of_ends(
    rows: &mut [Hashed],
    equal: impl Fn(u32, u32) -> bool,
    end_of: impl Fn(u32) -> Result<u32>,
    alike: impl Fn(&mut [Hashed]),
) -> Result<bool> {
    let mut has_alike = false;
    for run in rows.chunk_by_mut(|a, b| a.beginning() == b.beginning()).filter(|run| run.len() > 1) {
        // Of a table in which rows are alike, most runs are of one hash: these are in order.
        if run.windows(2).all(|pair| equal(pair[0].row(), pair[1].row())) {
            has_alike = true;
            alike(run);
            continue;
        }
        let mut by_end =
            run.iter().map(|&hashed| Ok((end_of(hashed.row())?, hashed))).collect::<Result<Vec<(u32, Hashed)>>>()?;
        by_end.sort_unstable();
        run.iter_mut().zip(&by_end).for_each(|(place, &(_, hashed))| *place = hashed);
        let mut left = run;
        for same in by_end.chunk_by(|a, b| a.0 == b.0) {
            let (same, after) = left.split_at_mut(same.len());
            left = after;
            if same.len() > 1 {
                has_alike = true;
                alike(same);
            }
        }
    }
    Ok(has_alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a sort of whole hashes: of few and of many rows, hashes that begin or end alike, and rows that have one hash.
    #[test]
    fn in_the_order_of_whole_hashes() {
        let mixed = |row: usize| (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ways: [&(dyn Fn(usize) -> u64 + Sync); 6] = [
            &mixed,
            // All in one bucket, and different there.
            &|row| mixed(row) >> 8,
            &|row| mixed(row) & !0xffff_ff00_0000,
            &|row| mixed(row) >> 40,
            &|row| mixed(row % 1000),
            &|_| u64::MAX,
        ];
        for rows in [0, 1, 2, FEW - 1, FEW, CHUNK, PART + CHUNK + 5] {
            for hash in ways {
                let hashes = |first: usize, hashes: &mut [u64]| {
                    hashes.iter_mut().zip(first..).for_each(|(place, row)| *place = hash(row));
                    Ok(())
                };
                let order = HashOrder::try_new(rows, hashes, Alike::Ends, |_| {}, Hashed::row).unwrap();
                let mut expected: Vec<(u64, u32)> = (0..rows).map(|row| (hash(row), row as u32)).collect();
                expected.sort_unstable();
                assert!(order.rows.iter().eq(expected.iter().map(|(_, row)| row)));
                assert_eq!(order.has_alike, expected.windows(2).any(|pair| pair[0].0 == pair[1].0), "{rows}");
                // Without their ends; some rows that have one hash are not equal.
                let equal = |a: u32, b: u32| hash(a as usize) == hash(b as usize) && !(a ^ b).is_multiple_of(3);
                let by_equality = HashOrder::try_new(rows, hashes, Alike::Equal(&equal), |_| {}, Hashed::row).unwrap();
                assert!(by_equality.rows == order.rows && by_equality.has_alike == order.has_alike);
                // Rows of one hash the other way round.
                let order =
                    HashOrder::try_new(rows, hashes, Alike::Ends, <[Hashed]>::reverse, |hashed| hashed).unwrap();
                expected.sort_unstable_by_key(|&(hash, row)| (hash, std::cmp::Reverse(row)));
                assert!(order.rows.iter().map(|hashed| hashed.row()).eq(expected.iter().map(|&(_, row)| row)));
            }
        }
    }

    #[test]
    fn what_fails_to_be_hashed_is_told() {
        let failing = |first: usize, _: &mut [u64]| if first > PART { Err(Error::internal("no")) } else { Ok(()) };
        assert!(HashOrder::try_new(PART, failing, Alike::Ends, |_| {}, Hashed::row).is_ok());
        assert!(HashOrder::try_new(3 * PART, failing, Alike::Ends, |_| {}, Hashed::row).is_err());
    }
}
