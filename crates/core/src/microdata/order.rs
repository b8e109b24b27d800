//! The order of rows without an identifier: random, and the same for any order of arrival.

use std::hash::Hasher;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;
use siphasher::sip::SipHasher13;

use super::hash_order::in_hash_order;
use super::{Encoded, HashKey};
use crate::error::Result;

/// Returns places of arrival in the order of a keyed hash of the rows' codes.
///
/// Rows that are alike in all columns are interchangeable; where there are some, all rows are shuffled once more, so that they do not stand together.
/// Two rows that differ have one hash with probability 2^-64; their order would be that of arrival.
/// Fails when there are more rows than can be put in order.
pub(super) fn by_codes(columns: &[&Encoded], rows: usize, key: HashKey) -> Result<Vec<u32>> {
    let hashes = |first: usize, hashes: &mut [u64]| {
        for (hash, row) in hashes.iter_mut().zip(first as u32..) {
            let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
            columns.iter().for_each(|column| hasher.write_u32(column.codes.at(row)));
            *hash = hasher.finish();
        }
        Ok(())
    };
    let equal = |a: u32, b: u32| columns.iter().all(|column| column.codes.at(a) == column.codes.at(b));
    // Rows that are alike may stand in any order.
    let (order, has_alike) = in_hash_order(rows, hashes, equal, |_| {})?;
    let mut order: Vec<u32> = order.into_iter().map(|hashed| hashed.row()).collect();
    if has_alike {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&key[0].to_le_bytes());
        seed[8..16].copy_from_slice(&key[1].to_le_bytes());
        order.shuffle(&mut ChaCha20Rng::from_seed(seed));
    }
    Ok(order)
}
