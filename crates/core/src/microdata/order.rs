//! The order of rows without an identifier: random, and the same for any order of arrival.

use std::hash::Hasher;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use siphasher::sip::SipHasher13;

use super::hash_order::{Alike, HashOrder, Hashed};
use super::{Encoded, HashKey, shuffle};
use crate::error::Result;

/// Places of arrival in the order of a keyed hash of the rows' codes. Rows that are alike in all columns are
/// interchangeable; where there are some, all rows are shuffled once more, so that they do not stand together.
///
/// Two rows that differ have one hash with probability 2^-64; their order would be that of arrival.
///
/// # Errors
/// When there are more rows than can be put in order.
pub(super) fn by_codes(columns: &[&Encoded], rows: usize, key: HashKey) -> Result<Vec<u32>> {
    let hashes = |first: usize, hashes: &mut [u64]| {
        for (hash, row) in hashes.iter_mut().zip(first as u32..) {
            let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
            columns.iter().for_each(|column| hasher.write_u32(column.codes.at(row)));
            *hash = hasher.finish();
        }
        Ok(())
    };
    // Rows that are alike may stand in any order.
    let HashOrder { rows: mut order, has_alike } = HashOrder::try_new(rows, hashes, Alike::Ends, |_| {}, Hashed::row)?;
    if has_alike {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&key[0].to_le_bytes());
        seed[8..16].copy_from_slice(&key[1].to_le_bytes());
        shuffle(&mut order, &mut ChaCha20Rng::from_seed(seed));
    }
    Ok(order)
}
