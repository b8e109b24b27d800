//! Enumeration of regions: exact posteriors of a stranger who knows the program (theorem A of `docs/theory.md`).
//!
//! The stranger knows everybody's quasi-identifiers, the people of each release, and how often each value occurs in each cohort. The tests enumerate all draws
//! of the method, for every way to give out the values, with exact weights. One stranger is shown who is in which group and region. Another one sees
//! published rows alone: ranges, numbers of people, and signatures of groups.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::AsArray;
use rand::{Rng, SeedableRng};

use super::enumeration::is_eligible;
use super::tests::{Earlier, Known, Row, encode_beside};
use super::*;
use crate::choices::{Every, Share, Weighed, alone, orders, probability, series};
use crate::release::COUNTERFEIT;

/// Sensitive values of all people.
type World = Vec<u8>;

/// A group: its people who are present, its signature, region and ranges.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    people: Vec<usize>,
    signature: Vec<u8>,
    region: i64,
    ranges: Vec<[u32; 2]>,
}

/// The groups of each release.
type Seen = Vec<Vec<Group>>;
/// Published rows of each release: ranges, signature, and number of people of each group.
type Rows = Vec<Vec<(Vec<[u32; 2]>, Vec<u8>, usize)>>;

/// Releases of a few people, who are numbered in order of arrival.
#[derive(Debug, Clone)]
struct History {
    m: usize,
    region: usize,
    /// Values of the new people of each release.
    cohorts: Vec<Vec<u8>>,
    /// People of each release.
    present: Vec<Vec<usize>>,
    /// Quasi-identifiers of everybody, release by release.
    places: Vec<Vec<Vec<i32>>>,
}

/// Returns signature and region of each published person, which never change.
fn buckets(seen: &Seen) -> BTreeMap<usize, (Vec<u8>, i64)> {
    let mut buckets = BTreeMap::new();
    for group in seen.iter().flatten() {
        for &person in &group.people {
            let bucket = (group.signature.clone(), group.region);
            assert_eq!(*buckets.entry(person).or_insert_with(|| bucket.clone()), bucket);
        }
    }
    buckets
}

/// Returns the rows that are published.
fn rows(seen: &Seen) -> Rows {
    let of_release = |groups: &Vec<Group>| {
        let row = |group: &Group| (group.ranges.clone(), group.signature.clone(), group.people.len());
        let mut rows: Vec<_> = groups.iter().map(row).collect();
        rows.sort_unstable();
        rows
    };
    seen.iter().map(of_release).collect()
}

impl History {
    /// Returns the possible groups of a release in a world, after `before`, with their probabilities.
    fn release(&self, world: &World, number: usize, before: &Seen) -> BTreeMap<Vec<Group>, Share> {
        let name = |value: u8| char::from(value).to_string();
        let row = |&person: &usize| -> Row {
            let quasi = self.places[number][person].iter().copied().map(Some).collect();
            (person as i64, quasi, name(world[person]))
        };
        let present = &self.present[number];
        let rows: Vec<Row> = present.iter().map(row).collect();
        let buckets = buckets(before);
        let signature = |values: &Vec<u8>| values.iter().copied().map(name).collect::<BTreeSet<_>>();
        let known: Known = buckets.iter().map(|(&person, (values, _))| (person as i64, signature(values))).collect();
        let region = |person: i64| (buckets[&(person as usize)].1, name(world[person as usize]));
        let earlier =
            Earlier { known: &known, release: None, ring: Some(&region), regions: true, each: false, domain: &[] };
        let (microdata, state) = encode_beside(&rows, None, &earlier, 9).unwrap();
        let method = MInvariance::new(self.m).with_region(Some(self.region));
        let arrival = &microdata.people.as_ref().unwrap().arrival;
        let of_row: Vec<usize> = arrival.iter().map(|&arrival| present[arrival as usize]).collect();
        let values = microdata.sensitive.as_ref().unwrap().domain.values();
        let value = |code: &u32| values.as_string_view().value(*code as usize).as_bytes()[0];
        let (known, monitor) = (state.signatures().unwrap(), Monitor::default());
        Every::new(0).law(|every| {
            let Drawn { groups, intervals, .. } =
                method.draw_close(&microdata, known, &monitor, (&every, 1000)).unwrap();
            let (quasi, intervals) = (microdata.quasi.len(), intervals.to_vec());
            let of_group = |group: usize| -> Group {
                let members = groups.members[groups.range(group)].iter().filter(|&&row| row != COUNTERFEIT);
                let mut people: Vec<usize> = members.map(|&row| of_row[row as usize]).collect();
                people.sort_unstable();
                Group {
                    people,
                    signature: groups.sensitive[groups.range(group)].iter().map(value).collect(),
                    region: groups.rings[group],
                    ranges: intervals[group * quasi..][..quasi].to_vec(),
                }
            };
            let mut seen: Vec<Group> = (0..groups.len()).map(of_group).collect();
            seen.sort_unstable();
            seen
        })
    }

    /// Returns all possible publications, each with the worlds behind it and their weights.
    fn histories(&self) -> BTreeMap<Seen, Weighed<u8>> {
        series(&self.cohorts, |world, number, before| self.release(world, number, before))
    }
}

/// Returns the probability of a person's value among weighted worlds.
fn posterior(worlds: &[&(World, Share)], person: usize, value: u8) -> Share {
    probability(&worlds.iter().copied(), |world| world[person] == value)
}

/// Counts of the cases that the checks of some histories saw.
#[derive(Debug, Default)]
struct Found {
    outcomes: usize,
    /// Outcomes with counterfeits; with a signature of more than `m` values.
    counterfeits: usize,
    large: usize,
    /// Outcomes in which people who were in one group are in several later.
    parted: usize,
    /// Outcomes in which people of two cohorts are in one group.
    joined: usize,
    /// Histories of which some outcomes have several regions of the first cohort, and others one: a cut that was tried, and can fail.
    tried: usize,
    /// Posteriors that were checked.
    checked: usize,
}

impl Found {
    fn see(&mut self, history: &History, seen: &Seen) {
        self.outcomes += 1;
        let groups = || seen.iter().flatten();
        self.counterfeits += usize::from(groups().any(|group| group.people.len() < group.signature.len()));
        self.large += usize::from(groups().any(|group| group.signature.len() > history.m));
        let cohort = |person: usize| {
            let mut people = 0;
            history.cohorts.iter().take_while(move |cohort| {
                people += cohort.len();
                people <= person
            })
        };
        let cohorts =
            |group: &Group| group.people.iter().map(|&person| cohort(person).count()).collect::<BTreeSet<_>>();
        self.joined += usize::from(groups().any(|group| cohorts(group).len() > 1));
        let later = |people: &[usize]| {
            let of = |release: &Vec<Group>| {
                release.iter().filter(|group| people.iter().any(|person| group.people.contains(person))).count()
            };
            seen[1..].iter().any(|release| of(release) > 1)
        };
        self.parted += usize::from(seen[0].iter().any(|group| later(&group.people)));
    }
}

/// Checks that a stranger gives each value at most `1/m`.
///
/// Each value of a signature of `m` values must have exactly `1/m`. A second stranger sees rows only.
fn strangers(history: &History, found: &mut Found) {
    let bound = Share::new(1, history.m as u128);
    let mut of_rows: BTreeMap<Rows, Weighed<u8>> = BTreeMap::new();
    let mut regions = BTreeSet::new();
    for (seen, weighed) in history.histories() {
        found.see(history, &seen);
        regions.insert(seen[0].iter().map(|group| group.region).collect::<BTreeSet<_>>().len() > 1);
        let worlds: Vec<_> = weighed.iter().collect();
        for (person, (signature, _)) in buckets(&seen) {
            for &value in &signature {
                let of = posterior(&worlds, person, value);
                found.checked += 1;
                assert!(!of.is_more_than(bound), "{history:?} {seen:?}: {person} {of:?}");
                assert!(signature.len() > history.m || of == bound, "{history:?} {seen:?}: {person} {of:?}");
            }
        }
        of_rows.entry(rows(&seen)).or_default().extend(weighed);
    }
    found.tried += usize::from(regions.len() > 1);
    for (rows, weighed) in of_rows {
        let worlds: Vec<_> = weighed.iter().collect();
        let values: BTreeSet<u8> = history.cohorts.concat().into_iter().collect();
        for person in 0..history.cohorts.concat().len() {
            for &value in &values {
                found.checked += 1;
                let of = posterior(&worlds, person, value);
                assert!(!of.is_more_than(bound), "{history:?} {rows:?}: {person} {of:?}");
            }
        }
    }
}

/// Returns a history of one quasi-identifier, in which nobody moves. Releases have the people of `present`.
fn of(m: usize, region: usize, cohorts: &[&[u8]], present: &[&[usize]], places: &[i32]) -> History {
    History {
        m,
        region,
        cohorts: cohorts.iter().map(|cohort| cohort.to_vec()).collect(),
        present: present.iter().map(|people| people.to_vec()).collect(),
        places: present.iter().map(|_| places.iter().map(|&place| vec![place]).collect()).collect(),
    }
}

/// Draws a history of a few people who leave, return and move.
fn any(releases: usize, rng: &mut ChaCha20Rng) -> History {
    loop {
        let m = if rng.random_bool(0.8) { 2 } else { 3 };
        let region = rng.random_range(m..=m + 3);
        let letters = 2 * m as u8 - 1;
        let (mut cohorts, mut present, mut all) = (Vec::new(), Vec::new(), 0);
        for number in 0..releases {
            let size = if number == 0 { rng.random_range(m + 1..=5) } else { rng.random_range(0..=3) };
            cohorts.push((0..size).map(|_| b'a' + rng.random_range(0..letters)).collect::<Vec<u8>>());
            present.push((0..all).filter(|_| rng.random_bool(0.6)).chain(all..all + size).collect::<Vec<usize>>());
            all += size;
        }
        let worlds: usize = cohorts.iter().map(|cohort| orders(cohort).len()).product();
        let nobody = present.iter().any(Vec::is_empty);
        let many = if releases > 2 { 12 } else { 24 };
        if !(2..=many).contains(&worlds) || nobody || cohorts.iter().any(|cohort| !is_eligible(cohort, m)) {
            continue;
        }
        let places = (0..releases).map(|_| (0..all).map(|_| vec![rng.random_range(0..6)]).collect()).collect();
        return History { m, region, cohorts, present, places };
    }
}

fn look(histories: impl IntoIterator<Item = History> + Send) -> Found {
    let mut found = Found::default();
    alone(|| histories.into_iter().for_each(|history| strangers(&history, &mut found)));
    println!("{found:?}");
    found
}

/// Cuts that pass and that fail, and signatures of more than `m` values.
#[test]
fn a_stranger_knows_nothing_of_one_release() {
    let of = |m, region, values: &[u8], places: &[i32]| {
        let people: Vec<usize> = (0..values.len()).collect();
        of(m, region, &[values], &[&people], places)
    };
    let found = look([
        of(2, 2, b"abcd", &[0, 1, 8, 9]),
        of(2, 2, b"aabb", &[0, 1, 8, 9]),
        of(2, 2, b"aabc", &[0, 0, 1, 9]),
        of(3, 3, b"abcd", &[0, 1, 8, 9]),
        of(2, 2, b"aabbc", &[0, 1, 2, 8, 9]),
    ]);
    assert!(found.tried > 1 && found.large > 2 && found.checked > 100, "{found:?}");
}

/// Buckets of a failed leaf are grouped anew when people leave. New people join regions that were not tried.
#[test]
fn a_stranger_knows_nothing_of_people_who_join() {
    let found = look([
        of(2, 2, &[b"aabb", b""], &[&[0, 1, 2, 3], &[0, 2, 3]], &[0, 1, 8, 9]),
        of(2, 3, &[b"aabb", b"ab"], &[&[0, 1, 2, 3], &[0, 1, 2, 3, 4, 5]], &[0, 1, 8, 9, 0, 9]),
        of(2, 3, &[b"aabb", b"ab"], &[&[0, 1, 2, 3], &[1, 2, 4, 5]], &[0, 1, 8, 9, 1, 8]),
        of(2, 3, &[b"aabb", b"bc"], &[&[0, 1, 2, 3], &[0, 2, 4, 5]], &[0, 1, 8, 9, 8, 9]),
        of(2, 4, &[b"abc", b"ab"], &[&[0, 1, 2], &[0, 2, 3, 4]], &[0, 1, 8, 2, 3]),
    ]);
    assert!(found.joined > 0 && found.parted > 0 && found.counterfeits > 0, "{found:?}");
}

/// Two newcomers join a region of five people, of whom some leave.
#[test]
fn a_stranger_knows_nothing_of_a_larger_region() {
    let found = look([of(2, 3, &[b"aabbc", b"ab"], &[&[0, 1, 2, 3, 4], &[0, 1, 3, 4, 5, 6]], &[0, 1, 2, 8, 9, 0, 1])]);
    assert!(found.joined > 0, "{found:?}");
}

/// A stranger gains nothing when people leave, return and move, and others come.
#[test]
fn a_stranger_knows_nothing_of_several_releases() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut histories: Vec<History> = (0..24).map(|_| any(2, &mut rng)).collect();
    histories.extend((0..8).map(|_| any(3, &mut rng)));
    let found = look(histories);
    assert!(found.counterfeits > 30 && found.joined > 10 && found.parted > 0, "{found:?}");
}

/// Regions do not keep the bound against participants. Of four people aabb, a person with a can learn who else has a.
#[test]
fn regions_tell_participants() {
    let history = of(2, 2, &[b"aabb"], &[&[0, 1, 2, 3]], &[0, 1, 8, 9]);
    let certain = alone(|| {
        history.histories().into_iter().any(|(_, worlds)| {
            let known: Vec<_> = worlds.iter().filter(|(world, _)| world[0] == b'a').collect();
            (1..4).any(|other| posterior(&known, other, b'a') == Share::new(1, 1))
        })
    });
    assert!(certain);
}
