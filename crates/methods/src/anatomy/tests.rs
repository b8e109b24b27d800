//! The guarantee, and that nothing but sensitive values decides who is together.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::AnyMethod;
use crate::release::View;
use crate::sample::Table;

fn table(rows: usize, values: i32, seed: u64) -> Table {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    Table {
        quasi: vec![(0..rows).map(|_| (rng.random_range(0..6) > 0).then(|| rng.random_range(0..5))).collect()],
        sensitive: Some((0..rows).map(|_| rng.random_range(0..values).min(rng.random_range(0..values))).collect()),
        ..Table::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn groups_are_diverse_and_complete(rows in 0_usize..80, values in 1..9_i32, l in 2_usize..6, seed in any::<u64>()) {
        let table = table(rows, values, seed);
        let sensitive = table.sensitive.clone().unwrap();
        let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
        sensitive.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
        let eligible = counts.values().all(|count| count * l <= rows);
        let batch = match table.publish(&AnyMethod::Anatomy(Anatomy::new(l)), View::Public, seed) {
            Ok(batch) => batch,
            Err(error) => {
                prop_assert!(!eligible, "{error}");
                return Ok(());
            }
        };
        prop_assert!(eligible);
        // The quasi-identifiers are all there as they were.
        let column = batch.column_by_name("q0").unwrap().as_primitive::<Int32Type>();
        let mut released: Vec<Option<i32>> = column.iter().collect();
        let mut original = table.quasi[0].clone();
        released.sort_unstable();
        original.sort_unstable();
        prop_assert_eq!(released, original);
        let numbers = batch.column_by_name("group_id").unwrap().as_primitive::<Int64Type>();
        let lists = batch.column_by_name("s").unwrap().as_list::<i32>();
        let mut groups: BTreeMap<i64, (usize, Vec<(i32, i32)>)> = BTreeMap::new();
        for row in 0..batch.num_rows() {
            let pairs = lists.value(row);
            let pairs = pairs.as_struct();
            let part = |name: &str| pairs.column_by_name(name).unwrap().as_primitive::<Int32Type>().clone();
            let (values, counts) = (part("value"), part("count"));
            let histogram = (0..pairs.len()).map(|i| (values.value(i), counts.value(i))).collect();
            let group = groups.entry(numbers.value(row)).or_insert((0, histogram));
            group.0 += 1;
        }
        let mut released: BTreeMap<i32, usize> = BTreeMap::new();
        for (size, histogram) in groups.values() {
            prop_assert_eq!(*size as i32, histogram.iter().map(|(_, count)| count).sum::<i32>());
            prop_assert!(*size >= l && *size < 3 * l, "{size}");
            for &(value, count) in histogram {
                prop_assert!(count as usize * l <= *size);
                *released.entry(value).or_default() += count as usize;
            }
        }
        prop_assert_eq!(released, counts);
    }

    #[test]
    fn the_order_of_arrival_does_not_matter(rows in 0_usize..60, l in 2_usize..4, seed in any::<u64>()) {
        let table = table(rows, 7, seed);
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut ChaCha20Rng::seed_from_u64(seed ^ 1));
        let method = AnyMethod::Anatomy(Anatomy::new(l));
        match (table.publish(&method, View::Public, 5), table.permuted(&order).publish(&method, View::Public, 5)) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert_eq!(a.unwrap_err().to_string(), b.unwrap_err().to_string()),
        }
    }
}

/// A reader who knows the code and all quasi-identifiers learns nothing from who is together: with two values of ten rows
/// each, every pair of rows of different values is in one group equally often.
#[test]
fn groups_are_drawn_uniformly() {
    const DRAWS: u64 = 6000;
    let table = Table {
        quasi: vec![(0..20).map(Some).collect()],
        sensitive: Some((0..20).map(|row| row % 2).collect()),
        ..Table::default()
    };
    let mut together = vec![0_f64; 400];
    for seed in 0..DRAWS {
        let (release, _) = table.anonymize(&AnyMethod::Anatomy(Anatomy::new(2)), seed).unwrap();
        for pair in release.groups.members.chunks_exact(2) {
            let who = |row: u32| release.microdata.quasi_at(row, 0) as usize;
            together[who(pair[0]) * 20 + who(pair[1])] += 1.0;
        }
    }
    let expected = DRAWS as f64 / 10.0;
    let deviation = (expected * 0.9).sqrt();
    for (a, b) in (0..20).flat_map(|a| (0..20).map(move |b| (a, b))).filter(|(a, b)| a % 2 == 0 && b % 2 == 1) {
        let times = together[a * 20 + b];
        assert!((times - expected).abs() < 5.0 * deviation, "{a} and {b}: {times} of {expected}");
    }
}

/// Every promise broken on purpose is found.
#[test]
fn broken_releases_are_caught() {
    let sample =
        Table { quasi: vec![(0..6).map(Some).collect()], sensitive: Some(vec![1, 2, 3, 1, 2, 3]), ..Table::default() };
    let anatomy = Anatomy::new(3);
    let (release, _) = sample.anonymize(&AnyMethod::Anatomy(anatomy.clone()), 1).unwrap();
    let judged = |anatomy: &Anatomy, change: &dyn Fn(&mut Groups)| {
        let Groups { starts, members, sensitive, .. } = &release.groups;
        let (starts, members, sensitive) = (starts.clone(), members.clone(), sensitive.clone());
        let mut groups = Groups { starts, members, sensitive, ..Groups::default() };
        change(&mut groups);
        anatomy.check(&release.microdata, &groups).map_or_else(|error| error.to_string(), |()| "fine".into())
    };
    assert_eq!(judged(&anatomy, &|_| {}), "fine");
    assert!(judged(&Anatomy::new(4), &|_| {}).contains("not l-diverse"));
    assert!(judged(&anatomy, &|groups| groups.sensitive.swap(0, 1)).contains("another's sensitive value"));
    assert!(judged(&anatomy, &|groups| groups.members[0] = groups.members[1]).contains("a row in two places"));
    let last = |groups: &mut Groups| {
        groups.starts = vec![0, 3];
        groups.members.truncate(3);
        groups.sensitive.truncate(3);
    };
    assert!(judged(&anatomy, &last).contains("a row missing"));
    assert!(judged(&anatomy, &|groups| groups.starts[0] = 3).contains("members without a group"));
    assert!(judged(&anatomy, &|groups| groups.starts = vec![0, 3]).contains("members without a group"));
}
