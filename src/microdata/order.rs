//! The order of rows without an identifier: random, and the same for any order of arrival.

use std::hash::Hasher;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use siphasher::sip::SipHasher13;

use super::{Encoded, HashKey, shuffle};

/// Rows hashed at a time.
const CHUNK: usize = 8192;

/// Places of arrival in the order of a keyed hash of the rows' codes. Rows that are alike in all columns are
/// interchangeable; where there are some, all rows are shuffled once more, so that they do not stand together.
///
/// Two rows that differ have one hash with probability 2^-64; their order would be that of arrival.
pub(super) fn by_codes(columns: &[&Encoded], rows: usize, key: HashKey) -> Vec<u32> {
    let hash = |row: u32| {
        let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
        columns.iter().for_each(|column| hasher.write_u32(column.codes.at(row)));
        (hasher.finish(), row)
    };
    let mut order: Vec<(u64, u32)> = (0..rows as u32).into_par_iter().with_min_len(CHUNK).map(hash).collect();
    // Rows that are alike may stand in any order.
    order.par_sort_unstable_by_key(|&(hash, _)| hash);
    let repeated = order.par_windows(2).any(|pair| pair[0].0 == pair[1].0);
    // Not in place: they take a quarter of the room.
    let mut order: Vec<u32> = order.par_iter().map(|&(_, row)| row).collect();
    if repeated {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&key[0].to_le_bytes());
        seed[8..16].copy_from_slice(&key[1].to_le_bytes());
        shuffle(&mut order, &mut ChaCha20Rng::from_seed(seed));
    }
    order
}
