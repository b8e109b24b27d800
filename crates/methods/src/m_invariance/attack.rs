//! Attack by a reader with everybody's quasi-identifiers, presence, counts of values, and this code.
//!
//! The releases of a tiny table are made over and over for every *world* the reader thinks possible (every way to give out
//! the values), and worlds are weighed by how often they lead to what was published. Nobody's value may come out likelier
//! than 1/m, here 1/2, but by chance: 4.5 standard deviations.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int32Type;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::tests::{Known, Row, encode};
use super::{Balance, MInvariance};
use crate::choices::{alone, orders};
use crate::release::{COUNTERFEIT, Release};
use crate::{Method, Monitor};

/// Sensitive values of all people.
type World = Vec<&'static str>;
/// View of a release by the world: ends, values and counterfeits of groups, in no order.
type Seen = Vec<(i32, i32, BTreeSet<String>, usize)>;

fn publish(world: &World, present: &[usize], known: &mut Known, params: &MInvariance, seed: u64) -> Seen {
    // Places on a line, with gaps that differ.
    let person = |i: usize| -> Row { (i as i64, vec![Some((i * i) as i32)], world[i].to_owned()) };
    let rows: Vec<Row> = present.iter().map(|&i| person(i)).collect();
    let (microdata, state) = encode(&rows, known, seed).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let release = params.anonymize(microdata, &state, &Monitor::default(), &mut rng).unwrap();
    let mut seen: Seen = (0..release.groups.len()).map(|group| look_at(&release, group)).collect();
    for group in 0..release.groups.len() {
        let signature = look_at(&release, group).2;
        for &row in release.groups.members[release.groups.range(group)].iter().filter(|&&row| row != COUNTERFEIT) {
            let place = release.microdata.people.as_ref().unwrap().arrival[row as usize] as usize;
            known.insert(rows[place].0, signature.clone());
        }
    }
    seen.sort();
    seen
}

fn look_at(release: &Release, group: usize) -> (i32, i32, BTreeSet<String>, usize) {
    let microdata = &release.microdata;
    let range = release.groups.range(group);
    let [lo, hi] = release.body.intervals().unwrap().of(group as u32).next().unwrap();
    let end = |code: u32| microdata.quasi[0].domain.values().as_primitive::<Int32Type>().value(code as usize);
    let value = |&code: &u32| {
        microdata.sensitive.as_ref().unwrap().domain.values().as_string_view().value(code as usize).to_owned()
    };
    let counterfeits = release.groups.members[range.clone()].iter().filter(|&&row| row == COUNTERFEIT).count();
    (end(lo), end(hi), release.groups.sensitive[range].iter().map(value).collect(), counterfeits)
}

/// Fails if somebody's value can be told. `make` gives what is published for a world and a seed.
fn assert_nothing_is_told(worlds: &BTreeSet<World>, draws: u64, make: impl Fn(&World, u64) -> Vec<Seen> + Sync) {
    let mut likelihood: BTreeMap<Vec<Seen>, BTreeMap<&World, f64>> = BTreeMap::new();
    alone(|| {
        for world in worlds {
            for seed in 0..draws {
                *likelihood.entry(make(world, seed)).or_default().entry(world).or_default() += 1.0;
            }
        }
    });
    let mut looked_at = 0;
    for by_world in likelihood.values() {
        let total: f64 = by_world.values().sum();
        if total < 1000.0 {
            continue; // Too rare to tell chance from knowledge.
        }
        looked_at += 1;
        let people = worlds.iter().next().map_or(0, Vec::len);
        for person in 0..people {
            for value in ["a", "b", "c"] {
                let with: f64 = by_world.iter().filter(|(world, _)| world[person] == value).map(|(_, n)| n).sum();
                let (share, deviations) = (with / total, (with / total - 0.5) / (0.25 / total).sqrt());
                assert!(
                    deviations < 4.5,
                    "person {person} has {value} with probability {share:.3}, {deviations:.1} deviations above 1/2"
                );
            }
        }
    }
    assert!(looked_at > 3, "only {looked_at} outcomes were frequent enough");
}

/// Three of one value, two and one of others: two buckets, so rows of the first value are chosen between them.
#[test]
fn a_first_release_tells_nobody() {
    let params = MInvariance::of_cohort(2);
    assert_nothing_is_told(&orders(&["a", "a", "a", "b", "b", "c"]), 3000, |world, seed| {
        vec![publish(world, &[0, 1, 2, 3, 4, 5], &mut Known::new(), &params, seed)]
    });
}

/// Two releases under blind balancing: somebody leaves, so that a counterfeit is needed, and two people come.
#[test]
fn blind_balancing_tells_nobody() {
    let params = MInvariance { balance: Balance::Blind, ..MInvariance::of_cohort(2) };
    let worlds: BTreeSet<World> = orders(&["a", "a", "b", "b"])
        .into_iter()
        .flat_map(|old| orders(&["a", "b"]).into_iter().map(move |new| [old.clone(), new].concat()))
        .collect();
    assert_nothing_is_told(&worlds, 8000, |world, seed| {
        let mut known = Known::new();
        let first = publish(world, &[0, 1, 2, 3], &mut known, &params, seed);
        let second = publish(world, &[1, 2, 3, 4, 5], &mut known, &params, seed + (1 << 40));
        vec![first, second]
    });
}
