//! Enumeration of close groups: exact posteriors of readers who know the program.
//!
//! The readers know everybody's quasi-identifiers, the people of each release, all groups, and how often each value occurs in each cohort. The tests
//! enumerate all draws, for every way to give out the values, with exact weights. A stranger knows nobody's value (theorem A of `docs/theory.md`). A
//! participant knows the values of some people (theorem B).

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::AsArray;
use rand::{Rng, SeedableRng};

use super::enumeration::is_eligible;
use super::tests::{Earlier, Known, Row, encode_beside};
use super::*;
use crate::choices::{Every, Share, Weighed, alone, orders, probability, series};
use crate::release::COUNTERFEIT;

/// Sensitive values of all people.
pub(super) type World = Vec<u8>;
/// A group: its people who are present, and its signature.
pub(super) type Group = (Vec<usize>, Vec<u8>);
/// The groups of each release.
pub(super) type Seen = Vec<Vec<Group>>;

/// Releases of a few people, who are numbered in order of arrival.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub m: usize,
    pub reader: Reader,
    /// True if the digits of a value are hidden each by itself.
    pub each: bool,
    /// Values of the new people of each release.
    pub cohorts: Vec<Vec<u8>>,
    /// People of each release.
    pub present: Vec<Vec<usize>>,
    /// Quasi-identifiers of everybody, release by release.
    pub places: Vec<Vec<Vec<i32>>>,
}

/// Returns the text of a value.
fn name(value: u8, each: bool) -> String {
    if each { format!("[\"{}\",\"{}\"]", value / 10, value % 10) } else { char::from(value).to_string() }
}

/// Returns the value of a text.
fn value_of(text: &str, each: bool) -> u8 {
    let digits = text.bytes().filter(u8::is_ascii_digit).fold(0, |value, digit| 10 * value + (digit - b'0'));
    if each { digits } else { text.as_bytes()[0] }
}

/// Returns the ring of each published person: the least person of its first group, and its signature.
pub(super) fn rings(seen: &Seen) -> BTreeMap<usize, (usize, Vec<u8>)> {
    let mut rings = BTreeMap::new();
    for (people, signature) in seen.iter().flatten() {
        for &person in people {
            rings.entry(person).or_insert_with(|| (people[0], signature.clone()));
        }
    }
    rings
}

impl History {
    /// Returns the possible groups of a release in a world, after `before`, with their probabilities.
    fn release(&self, world: &World, number: usize, before: &Seen) -> BTreeMap<Vec<Group>, Share> {
        let each = self.each;
        let name = |value: u8| name(value, each);
        let row = |&person: &usize| -> Row {
            let quasi = self.places[number][person].iter().copied().map(Some).collect();
            (person as i64, quasi, name(world[person]))
        };
        let present = &self.present[number];
        let rows: Vec<Row> = present.iter().map(row).collect();
        let rings = rings(before);
        let signature = |values: &Vec<u8>| values.iter().copied().map(name).collect::<BTreeSet<_>>();
        let known: Known = rings.iter().map(|(&person, (_, values))| (person as i64, signature(values))).collect();
        let ring = |person: i64| (rings[&(person as usize)].0 as i64, name(world[person as usize]));
        let earlier = Earlier { known: &known, release: None, ring: Some(&ring), regions: false, each, domain: &[] };
        let (microdata, state) = encode_beside(&rows, None, &earlier, 9).unwrap();
        let method = MInvariance::new(self.m).with_reader(self.reader);
        let arrival = &microdata.people.as_ref().unwrap().arrival;
        let of_row: Vec<usize> = arrival.iter().map(|&arrival| present[arrival as usize]).collect();
        let values = microdata.sensitive.as_ref().unwrap().domain.values();
        let value = |code: &u32| value_of(values.as_string_view().value(*code as usize), each);
        let (known, monitor) = (state.signatures().unwrap(), Monitor::default());
        Every::new(0).law(|every| {
            let groups = method.draw_close(&microdata, known, &monitor, (&every, 1000)).unwrap().groups;
            let of_group = |group: usize| -> Group {
                let members = groups.members[groups.range(group)].iter().filter(|&&row| row != COUNTERFEIT);
                let mut people: Vec<usize> = members.map(|&row| of_row[row as usize]).collect();
                people.sort_unstable();
                (people, groups.sensitive[groups.range(group)].iter().map(value).collect())
            };
            let mut seen: Vec<Group> = (0..groups.len()).map(of_group).collect();
            seen.sort_unstable();
            seen
        })
    }

    /// Returns all possible publications, each with the worlds behind it and their weights.
    pub(super) fn histories(&self) -> BTreeMap<Seen, Weighed<u8>> {
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
    /// Outcomes with counterfeits; with several rings of a cohort; with a ring of more than `m`.
    counterfeits: usize,
    several: usize,
    large: usize,
    /// Posteriors that were checked.
    checked: usize,
}

impl Found {
    fn see(&mut self, history: &Seen, m: usize) {
        self.outcomes += 1;
        let groups = || history.iter().flatten();
        self.counterfeits += usize::from(groups().any(|(people, signature)| people.len() < signature.len()));
        self.several += usize::from(history[0].len() > 1);
        self.large += usize::from(groups().any(|(_, signature)| signature.len() > m));
    }
}

/// Checks that a stranger gives each value at most `1/m`. In a ring of `m`, each value must have exactly `1/m`.
fn strangers(history: &History, found: &mut Found) {
    for (seen, worlds) in history.histories() {
        found.see(&seen, history.m);
        let worlds: Vec<_> = worlds.iter().collect();
        for (person, (_, signature)) in rings(&seen) {
            for &value in &signature {
                let of = posterior(&worlds, person, value);
                found.checked += 1;
                let bound = Share::new(1, history.m as u128);
                assert!(!of.is_more_than(bound), "{history:?} {seen:?}: {person} {of:?}");
                assert!(signature.len() > history.m || of == bound, "{history:?} {seen:?}: {person} {of:?}");
            }
        }
    }
}

/// Checks that participants give the values that are left in a ring the same probability.
///
/// A participant knows the values of any two people. The ring is that of a third person. The values of known people in it are not left.
fn participants(history: &History, found: &mut Found) {
    let people: usize = history.cohorts.iter().map(Vec::len).sum();
    for (seen, worlds) in history.histories() {
        found.see(&seen, history.m);
        let rings = rings(&seen);
        for (one, other) in (0..people).flat_map(|one| (one..people).map(move |other| (one, other))) {
            let mut known: BTreeMap<[u8; 2], Vec<&(World, Share)>> = BTreeMap::new();
            for world in &worlds {
                known.entry([world.0[one], world.0[other]]).or_default().push(world);
            }
            for (values, worlds) in known {
                for (&person, (ring, signature)) in rings.iter().filter(|(person, _)| ![one, other].contains(person)) {
                    let in_ring = |known: &usize| rings.get(known).is_some_and(|(of, _)| of == ring);
                    let taken: BTreeSet<u8> = [one, other]
                        .iter()
                        .zip(values)
                        .filter(|(known, _)| in_ring(known))
                        .map(|(_, value)| value)
                        .collect();
                    let left = Share::new(1, (signature.len() - taken.len()) as u128);
                    for value in signature.iter().filter(|value| !taken.contains(value)) {
                        found.checked += 1;
                        let of = posterior(&worlds, person, *value);
                        assert_eq!(of, left, "{history:?} {seen:?}: {person}, of whom {one} and {other} are known");
                    }
                }
            }
        }
    }
}

/// Returns a history of one release. `places` has a column for each quasi-identifier.
fn one(m: usize, reader: Reader, values: &[u8], places: &[&[i32]]) -> History {
    let of_person = |person: usize| places.iter().map(|column| column[person]).collect();
    History {
        m,
        reader,
        each: false,
        cohorts: vec![values.to_vec()],
        present: vec![(0..values.len()).collect()],
        places: vec![(0..values.len()).map(of_person).collect()],
    }
}

/// Draws a history of a few people who leave, return and move.
fn any(reader: Reader, releases: usize, rng: &mut ChaCha20Rng) -> History {
    loop {
        let m = if rng.random_bool(0.7) { 2 } else { 3 };
        let letters = 2 * m as u8;
        let (mut cohorts, mut present, mut all) = (Vec::new(), Vec::new(), 0);
        for number in 0..releases {
            let size = if number == 0 { rng.random_range(m..=4) } else { rng.random_range(0..=2) };
            cohorts.push((0..size).map(|_| b'a' + rng.random_range(0..letters)).collect::<Vec<u8>>());
            present.push((0..all).filter(|_| rng.random_bool(0.6)).chain(all..all + size).collect::<Vec<usize>>());
            all += size;
        }
        let worlds: usize = cohorts.iter().map(|cohort| orders(cohort).len()).product();
        let nobody = present.iter().any(Vec::is_empty);
        if !(2..=40).contains(&worlds) || nobody || cohorts.iter().any(|cohort| !is_eligible(cohort, m)) {
            continue;
        }
        let places = (0..releases).map(|_| (0..all).map(|_| vec![rng.random_range(0..6)]).collect()).collect();
        return History { m, reader, each: false, cohorts, present, places };
    }
}

/// Makes tables for made and failed cuts, large rings, and places that follow values.
fn tables(reader: Reader) -> Vec<History> {
    let of = |m, values: &[u8], places: &[&[i32]]| one(m, reader, values, places);
    vec![
        of(2, b"abcd", &[&[0, 1, 8, 9]]),
        of(2, b"aabb", &[&[0, 1, 8, 9]]),
        of(2, b"aabc", &[&[0, 0, 1, 9]]),
        of(3, b"abcd", &[&[0, 1, 8, 9]]),
        of(2, b"aabbc", &[&[0, 1, 0, 1, 9], &[3, 3, 0, 0, 0]]),
        of(2, b"aabbc", &[&[0, 1, 2, 8, 9]]),
        of(3, b"aabbcc", &[&[0, 1, 2, 7, 8, 9]]),
    ]
}

fn look(histories: impl IntoIterator<Item = History> + Send, check: fn(&History, &mut Found)) -> Found {
    let mut found = Found::default();
    alone(|| histories.into_iter().for_each(|history| check(&history, &mut found)));
    println!("{found:?}");
    found
}

#[test]
fn a_stranger_knows_nothing_of_one_release() {
    // Shifts multiply the draws. The enumeration of `mondrian` has the last table.
    let found = look(tables(Reader::Stranger).into_iter().take(6), strangers);
    assert!(found.several > 2 && found.large > 2 && found.checked > 100, "{found:?}");
}

#[test]
fn a_participant_knows_nothing_of_one_release() {
    let found = look(tables(Reader::Participant), participants);
    assert!(found.several > 2 && found.large > 2 && found.checked > 100, "{found:?}");
}

/// A stranger gains nothing when people leave and return, and others come.
#[test]
fn a_stranger_knows_nothing_of_several_releases() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut histories: Vec<History> = (0..20).map(|_| any(Reader::Stranger, 2, &mut rng)).collect();
    histories.extend((0..6).map(|_| any(Reader::Stranger, 3, &mut rng)));
    let found = look(histories, strangers);
    assert!(found.counterfeits > 30, "{found:?}");
}

#[test]
fn a_participant_knows_nothing_of_several_releases() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut histories: Vec<History> = (0..20).map(|_| any(Reader::Participant, 2, &mut rng)).collect();
    histories.extend((0..6).map(|_| any(Reader::Participant, 3, &mut rng)));
    let found = look(histories, participants);
    assert!(found.counterfeits > 30, "{found:?}");
}

/// Groups for strangers do not keep the bound against participants. Of four people aabb, a person with a can learn who else has a.
#[test]
fn groups_for_strangers_tell_participants() {
    let history = one(2, Reader::Stranger, b"aabb", &[&[0, 1, 8, 9]]);
    let certain = alone(|| {
        history.histories().into_iter().any(|(_, worlds)| {
            let known: Vec<_> = worlds.iter().filter(|(world, _)| world[0] == b'a').collect();
            (1..4).any(|other| posterior(&known, other, b'a') == Share::new(1, 1))
        })
    });
    assert!(certain);
}
