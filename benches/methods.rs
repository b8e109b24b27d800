//! The methods alone, without engine and files: `cargo bench --bench methods`.

use datafusion_anonymize::Anatomy;
use datafusion_anonymize::MInvariance;
use datafusion_anonymize::Mondrian;
use datafusion_anonymize::internals::{BLOCK, Census, schema};
use datafusion_anonymize::internals::{Layout, Microdata, MicrodataBuilder};
use datafusion_anonymize::internals::{Method, Monitor, State};
use divan::Bencher;
use divan::counter::ItemsCount;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

fn main() {
    divan::main();
}

/// Makes a census of four quasi-identifiers and occupation.
fn census(rows: u64) -> Microdata {
    let field = |i: usize| schema().fields()[i].clone();
    let quasi = (1..5).map(field).collect();
    let layout = Layout {
        identifier: Some(field(0)),
        quasi,
        sensitive: Some(field(5)),
        within: None,
        other: Vec::new(),
        insensitive: Vec::new(),
    };
    let mut builder = MicrodataBuilder::try_new(layout).unwrap();
    for block in 0..rows.div_ceil(BLOCK as u64) {
        let batch = Census::new(rows, 0).block(block).unwrap();
        builder.append(&batch.project(&[0, 1, 2, 3, 4, 5]).unwrap()).unwrap();
    }
    builder.finish([1, 2]).unwrap()
}

/// Measures first releases.
fn anonymize(bencher: Bencher<'_, '_>, rows: u64, method: &dyn Method) {
    let state = State::before_the_first(method.state());
    bencher.counter(ItemsCount::new(rows)).with_inputs(|| census(rows)).bench_values(|microdata| {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        method.anonymize(microdata, &state, &Monitor::default(), &mut rng).unwrap()
    });
}

#[divan::bench(args = [100_000, 200_000, 1_000_000], consts = [2, 10], sample_count = 5, sample_size = 1)]
fn m_invariance<const M: usize>(bencher: Bencher<'_, '_>, rows: u64) {
    anonymize(bencher, rows, &MInvariance::new(M));
}

#[divan::bench(args = [100_000, 1_000_000], consts = [10], sample_count = 5, sample_size = 1)]
fn mondrian<const K: usize>(bencher: Bencher<'_, '_>, rows: u64) {
    anonymize(bencher, rows, &Mondrian::new(K));
}

#[divan::bench(args = [100_000, 1_000_000], consts = [10], sample_count = 5, sample_size = 1)]
fn anatomy<const L: usize>(bencher: Bencher<'_, '_>, rows: u64) {
    anonymize(bencher, rows, &Anatomy::new(L));
}
