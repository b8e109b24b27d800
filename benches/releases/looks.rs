//! Bound of growth: the time to look at the rows of a table in random order, once it does not fit into the cache.

use std::hint::black_box;
use std::time::Instant;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;

/// Prints what a look takes at tables of each size.
pub(crate) fn looks(sizes: &[u64]) {
    println!("\n| rows | look at four bytes of a row, in random order, on one core |\n|---:|---:|");
    for &rows in sizes {
        println!("| {rows} | {:.1} ns |", look(rows) * 1e9);
    }
}

/// Returns the best of five, in seconds for a row.
fn look(rows: u64) -> f64 {
    let table: Vec<u32> = (0..rows as u32).collect();
    let mut order = table.clone();
    order.shuffle(&mut ChaCha20Rng::seed_from_u64(1));
    let mut seen = vec![0; order.len()];
    let mut once = || {
        let start = Instant::now();
        order.iter().zip(&mut seen).for_each(|(&row, seen)| *seen = table[row as usize]);
        black_box(&seen);
        start.elapsed().as_secs_f64()
    };
    let best = (0..5).map(|_| once()).fold(f64::INFINITY, f64::min);
    best / rows as f64
}
