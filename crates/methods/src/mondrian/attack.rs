//! The minimality attack (Wong et al., VLDB 2007): a reader who knows everybody's quasi-identifiers, which values there are, and
//! that cuts are made wherever both sides keep the principle, reasons from a cut that was not made.
//!
//! Every *world* (every way to give out the values) is anonymized; those that lead to what was published are equally likely.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::*;
use crate::AnyMethod;
use crate::sample::Table;

/// View of the world: least and greatest place, and values of the groups.
type Seen = BTreeSet<(u32, u32, Vec<u32>)>;

/// Returns all different orders of some values.
fn worlds(values: &[i32]) -> BTreeSet<Vec<i32>> {
    match values {
        [] => BTreeSet::from([vec![]]),
        _ => (0..values.len())
            .flat_map(|first| {
                let mut rest = values.to_vec();
                let value = rest.remove(first);
                worlds(&rest).into_iter().map(move |order| [vec![value], order].concat())
            })
            .collect(),
    }
}

fn publish(places: &[i32], world: &[i32], params: &Mondrian, seed: u64) -> Seen {
    let quasi = places.iter().copied().map(Some).collect();
    let table = Table { quasi: vec![quasi], sensitive: Some(world.to_vec()), categories: true, ..Table::default() };
    let (release, _) = table.anonymize(&AnyMethod::Mondrian(params.clone()), seed).unwrap();
    let groups = &release.groups;
    let group = |group: usize| {
        let mut values = groups.sensitive[groups.range(group)].to_vec();
        values.sort_unstable();
        let [lo, hi] = release.body.intervals().unwrap().of(group as u32).next().unwrap();
        (lo, hi, values)
    };
    (0..groups.len()).map(group).collect()
}

/// Returns a reader's greatest certainty of somebody's value, and that from the group alone.
fn certainty(places: &[i32], values: &[i32], params: &Mondrian) -> (f64, f64) {
    let mut of: BTreeMap<Seen, Vec<Vec<i32>>> = BTreeMap::new();
    for world in worlds(values) {
        of.entry(publish(places, &world, params, 1)).or_default().push(world);
    }
    let (mut certain, mut by_group): (f64, f64) = (0.0, 0.0);
    for (seen, worlds) in &of {
        for person in 0..places.len() {
            let mut counts: BTreeMap<i32, f64> = BTreeMap::new();
            worlds.iter().for_each(|world| *counts.entry(world[person]).or_default() += 1.0);
            certain = counts.values().fold(certain, |most, count| most.max(count / worlds.len() as f64));
        }
        for (.., values) in seen {
            let most = values.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0);
            by_group = by_group.max(most as f64 / values.len() as f64);
        }
    }
    (certain, by_group)
}

/// Two people in one place and four in another, with two equal values. There are six values. If the places are not
/// told apart, then because both equal values are in the place of two.
const PLACES: [i32; 6] = [0, 0, 1, 1, 1, 1];
const VALUES: [i32; 6] = [1, 1, 2, 3, 4, 5];

#[test]
fn diversity_tells_more_than_the_group_does() {
    for cuts in [Cuts::Tight, Cuts::Median] {
        let params = Mondrian { l: Some(2), cuts, ..Mondrian::new(1) };
        let (certain, by_group) = certainty(&PLACES, &VALUES, &params);
        assert_eq!(by_group, 0.5, "the release is 2-diverse");
        assert_eq!(
            certain, 1.0,
            "{cuts:?}: the limit that the documentation tells of is gone; change the documentation"
        );
    }
}

#[test]
fn cuts_that_look_at_no_value_tell_nothing() {
    for cuts in [Cuts::Tight, Cuts::Median] {
        for places in [PLACES, [0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 4]] {
            let (certain, by_group) = certainty(&places, &VALUES, &Mondrian { cuts, ..Mondrian::new(2) });
            assert!((certain - by_group).abs() < 1e-12, "{cuts:?}, {places:?}: {certain} instead of {by_group}");
        }
    }
}

/// The same reader before fair cuts, who knows the program but not its draws: of each world many releases.
#[test]
fn fair_cuts_tell_nothing() {
    const RELEASES: u64 = 400;
    const SELDOM: u32 = 400;
    let params = Mondrian { l: Some(2), fair: true, ..Mondrian::new(1) };
    let of_world = |world: Vec<i32>| {
        let seen: Vec<Seen> = (0..RELEASES).map(|seed| publish(&PLACES, &world, &params, seed)).collect();
        (world, seen)
    };
    let mut of: BTreeMap<Seen, BTreeMap<Vec<i32>, u32>> = BTreeMap::new();
    for (world, all) in worlds(&VALUES).into_par_iter().map(of_world).collect::<Vec<_>>() {
        for seen in all {
            *of.entry(seen).or_default().entry(world.clone()).or_default() += 1;
        }
    }
    let mut outcomes = 0;
    for (seen, worlds) in &of {
        let all: u32 = worlds.values().sum();
        // What is seen seldom says little of how likely it is.
        if all < SELDOM {
            continue;
        }
        outcomes += 1;
        for person in 0..PLACES.len() {
            let mut counts: BTreeMap<i32, u32> = BTreeMap::new();
            worlds.iter().for_each(|(world, times)| *counts.entry(world[person]).or_default() += times);
            let most = counts.values().max().copied().unwrap_or(0);
            // Within five standard deviations, at most.
            let noise = 2.5 / f64::from(all).sqrt();
            assert!(f64::from(most) / f64::from(all) <= 0.5 + noise, "{seen:?}, {person}: {counts:?}");
        }
    }
    assert!(outcomes > 3, "{outcomes} outcomes that are not seldom");
}
