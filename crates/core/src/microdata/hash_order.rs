//! Puts rows in the order of a hash of 64 bits.
//!
//! The sort sees half of the hash beside the row's number, eight bytes. It looks at the other half where halves are equal.

use rayon::prelude::*;

use crate::error::{Error, Result};

/// Rows that are hashed at a time: few enough to stay in the cache.
pub(super) const CHUNK: usize = 8192;

/// From so many rows on, all cores sort. Rayon's sort takes three times the instructions of the standard library's.
const MANY: usize = 1 << 16;

/// The upper half of a hash, and the row that it is of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hashed(u64);

impl Hashed {
    /// Keeps the upper half of a hash beside its row.
    fn new(hash: u64, row: u32) -> Self {
        Self(hash >> 32 << 32 | u64::from(row))
    }

    /// Returns the upper half of the hash. Rows in order have it in order.
    #[inline]
    pub(super) fn beginning(self) -> u32 {
        beginning(self.0)
    }

    /// Returns the row.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 as u32
    }
}

/// Returns the upper half of a hash.
pub(super) fn beginning(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Returns rows in the order of their hashes, and true if some hashes are equal.
///
/// `hash` fills in the hashes of rows, from a first row on. `equal` returns true for two equal rows: they have one hash, and the function does not hash
/// them again. `alike` receives the rows of one hash in the order of arrival, and may reorder them.
/// Fails when there are more rows than have a number, and those of `hash`.
pub(super) fn in_hash_order(
    rows: usize,
    hash: impl Fn(usize, &mut [u64]) -> Result<()> + Sync,
    equal: impl Fn(u32, u32) -> bool,
    alike: impl Fn(&mut [Hashed]),
) -> Result<(Vec<Hashed>, bool)> {
    if rows > u32::MAX as usize {
        return Err(Error::internal("more rows than can be put in order"));
    }
    let mut order = vec![Hashed::default(); rows];
    order.par_chunks_mut(CHUNK).enumerate().try_for_each(|(number, chunk)| {
        let first = number * CHUNK;
        let mut hashes = vec![0; chunk.len()];
        hash(first, &mut hashes)?;
        let hashed = hashes.into_iter().zip(first as u32..).map(|(hash, row)| Hashed::new(hash, row));
        chunk.iter_mut().zip(hashed).for_each(|(place, hashed)| *place = hashed);
        Ok::<_, Error>(())
    })?;
    match rows < MANY {
        true => order.sort_unstable(),
        false => order.par_sort_unstable(),
    }
    let end_of = |hashed: &Hashed| {
        let mut hashes = [0];
        hash(hashed.row() as usize, &mut hashes).map(|()| hashes[0] as u32)
    };
    let mut has_alike = false;
    for run in order.chunk_by_mut(|a, b| a.beginning() == b.beginning()).filter(|run| run.len() > 1) {
        // Of a table in which rows are equal, most runs are of one hash.
        if run.windows(2).all(|pair| equal(pair[0].row(), pair[1].row())) {
            has_alike = true;
            alike(run);
            continue;
        }
        let mut by_end = run.iter().map(|hashed| Ok((end_of(hashed)?, *hashed))).collect::<Result<Vec<_>>>()?;
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
    Ok((order, has_alike))
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
            &|row| mixed(row) >> 8,
            &|row| mixed(row) & !0xffff_ff00_0000,
            &|row| mixed(row) >> 40,
            &|row| mixed(row % 1000),
            &|_| u64::MAX,
        ];
        for rows in [0, 1, 2, CHUNK, 3 * CHUNK + 5] {
            for hash in ways {
                let hashes = |first: usize, hashes: &mut [u64]| {
                    hashes.iter_mut().zip(first..).for_each(|(place, row)| *place = hash(row));
                    Ok(())
                };
                let mut expected: Vec<(u64, u32)> = (0..rows).map(|row| (hash(row), row as u32)).collect();
                expected.sort_unstable();
                let expected_alike = expected.windows(2).any(|pair| pair[0].0 == pair[1].0);
                // Some rows that have one hash are not equal.
                let equal = |a: u32, b: u32| hash(a as usize) == hash(b as usize) && !(a ^ b).is_multiple_of(3);
                let (order, has_alike) = in_hash_order(rows, hashes, equal, |_| {}).unwrap();
                assert!(order.iter().map(|hashed| hashed.row()).eq(expected.iter().map(|&(_, row)| row)));
                assert_eq!(has_alike, expected_alike, "{rows}");
                // Rows of one hash the other way round.
                let (order, _) = in_hash_order(rows, hashes, equal, <[Hashed]>::reverse).unwrap();
                expected.sort_unstable_by_key(|&(hash, row)| (hash, std::cmp::Reverse(row)));
                assert!(order.iter().map(|hashed| hashed.row()).eq(expected.iter().map(|&(_, row)| row)));
            }
        }
    }

    #[test]
    fn errors_of_the_hash_are_returned() {
        let failing = |first: usize, _: &mut [u64]| if first > CHUNK { Err(Error::internal("no")) } else { Ok(()) };
        assert!(in_hash_order(CHUNK, failing, |_, _| false, |_| {}).is_ok());
        assert!(in_hash_order(3 * CHUNK, failing, |_, _| false, |_| {}).is_err());
    }
}
