//! The methods alone, without engine and files: `cargo bench --bench methods`.

use datafusion_anonymize::methods::Monitor;
use datafusion_anonymize::methods::anatomy::Anatomy;
use datafusion_anonymize::methods::m_invariance::MInvariance;
use datafusion_anonymize::methods::mondrian::Mondrian;
use datafusion_anonymize::microdata::census::{BLOCK, Census, schema};
use datafusion_anonymize::microdata::{Layout, Microdata, MicrodataBuilder};
use divan::Bencher;
use divan::counter::ItemsCount;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

fn main() {
    divan::main();
}

/// Four quasi-identifiers and occupation.
fn census(rows: u64) -> Microdata {
    let field = |i: usize| schema().fields()[i].clone();
    let quasi = (1..5).map(field).collect();
    let layout =
        Layout { identifier: Some(field(0)), quasi, sensitive: Some(field(5)), within: None, other: Vec::new() };
    let mut builder = MicrodataBuilder::try_new(layout).unwrap();
    for block in 0..rows.div_ceil(BLOCK as u64) {
        let batch = Census::new(rows, 0).block(block).unwrap();
        builder.append(&batch.project(&[0, 1, 2, 3, 4, 5]).unwrap()).unwrap();
    }
    builder.finish([1, 2]).unwrap()
}

#[divan::bench(args = [100_000, 200_000, 1_000_000], consts = [2, 10], sample_count = 5, sample_size = 1)]
fn m_invariance<const M: usize>(bencher: Bencher<'_, '_>, rows: u64) {
    bencher.counter(ItemsCount::new(rows)).with_inputs(|| census(rows)).bench_values(|(microdata, ledger)| {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        MInvariance::new(M).anonymize(microdata, &ledger, &Monitor::default(), &mut rng).unwrap()
    });
}

#[divan::bench(args = [100_000, 1_000_000], consts = [10], sample_count = 5, sample_size = 1)]
fn mondrian<const K: usize>(bencher: Bencher<'_, '_>, rows: u64) {
    bencher
        .counter(ItemsCount::new(rows))
        .with_inputs(|| census(rows).0)
        .bench_values(|microdata| Mondrian::new(K).anonymize(microdata, &Monitor::default()).unwrap());
}

#[divan::bench(args = [100_000, 1_000_000], consts = [10], sample_count = 5, sample_size = 1)]
fn anatomy<const L: usize>(bencher: Bencher<'_, '_>, rows: u64) {
    bencher.counter(ItemsCount::new(rows)).with_inputs(|| census(rows).0).bench_values(|microdata| {
        Anatomy { l: L }.anonymize(microdata, &Monitor::default(), &mut ChaCha20Rng::seed_from_u64(1)).unwrap()
    });
}
