//! Enumeration of close groups of two sensitive columns: exact posteriors of every secret, from the groups alone.
//!
//! The tests enumerate all draws for every way to give out the pairs, with exact weights. The reader knows how often each pair occurs, everybody's
//! quasi-identifiers and the program. A secret is a value of one column: the tens or the ones of a pair of digits.

use super::close_enumeration::{History, World, rings};
use super::*;
use crate::choices::{Share, alone, probability};

/// Counts of what the checks saw.
#[derive(Debug, Default)]
struct Found {
    outcomes: usize,
    /// Outcomes with several rings of a cohort, and with counterfeits.
    several: usize,
    counterfeits: usize,
    /// Secrets with exactly `1/m`.
    tight: usize,
    checked: usize,
}

/// Returns a history of one release of these pairs, along one quasi-identifier.
fn one(m: usize, reader: Reader, pairs: &[u8], places: &[i32]) -> History {
    let (cohorts, present) = (vec![pairs.to_vec()], vec![(0..pairs.len()).collect()]);
    let places = vec![places.iter().map(|&place| vec![place]).collect()];
    History { m, reader, each: true, cohorts, present, places }
}

fn secrets_of(pair: u8) -> [u8; 2] {
    [pair / 10, pair % 10]
}

/// Returns the probability that a person has a secret, among weighted worlds.
fn posterior(worlds: &[(World, Share)], person: usize, column: usize, secret: u8) -> Share {
    probability(&worlds.iter(), |world| secrets_of(world[person])[column] == secret)
}

/// Checks that no secret of anybody has more than `1/m`, in view of all releases.
fn look(history: &History, found: &mut Found) {
    let bound = Share::new(1, history.m as u128);
    for (seen, worlds) in history.histories() {
        found.outcomes += 1;
        found.several += usize::from(seen[0].len() > 1);
        found.counterfeits +=
            usize::from(seen.iter().flatten().any(|(people, signature)| people.len() < signature.len()));
        for (person, (_, signature)) in rings(&seen) {
            for (column, pair) in signature.iter().flat_map(|&pair| [(0, pair), (1, pair)]) {
                let of = posterior(&worlds, person, column, secrets_of(pair)[column]);
                assert!(!of.is_more_than(bound), "{history:?} {seen:?}: {person} {of:?}");
                found.checked += 1;
                found.tight += usize::from(of == bound);
            }
        }
    }
}

fn all(histories: &[History]) -> Found {
    let mut found = Found::default();
    alone(|| histories.iter().for_each(|history| look(history, &mut found)));
    println!("{found:?}");
    found
}

/// Pairs that share tens and ones crosswise: plans by combinations would put people of one secret into a ring.
const CROSSED: [(usize, &[u8], &[i32]); 5] = [
    (2, &[11, 12, 21, 22], &[0, 1, 8, 9]),
    (2, &[11, 12, 23, 24], &[0, 8, 1, 9]),
    (2, &[11, 22, 11, 22], &[0, 1, 8, 9]),
    (3, &[11, 22, 33], &[0, 1, 9]),
    (3, &[11, 22, 33, 44], &[0, 1, 8, 9]),
];

#[test]
fn no_secret_of_a_stranger_is_likelier_than_one_in_m() {
    let found =
        all(&CROSSED.iter().map(|(m, pairs, places)| one(*m, Reader::Stranger, pairs, places)).collect::<Vec<_>>());
    assert!(found.several > 0 && found.tight > 50, "{found:?}");
}

/// Five and six people, without shifts, which multiply the draws.
#[test]
fn no_secret_is_likelier_where_all_rearrangements_are_tested() {
    let more: [(usize, &[u8], &[i32]); 2] =
        [(2, &[11, 11, 22, 23, 32], &[0, 1, 7, 8, 9]), (3, &[11, 11, 22, 22, 33, 33], &[0, 1, 2, 7, 8, 9])];
    let tables = CROSSED.iter().chain(&more);
    let found = all(&tables.map(|(m, pairs, places)| one(*m, Reader::Participant, pairs, places)).collect::<Vec<_>>());
    assert!(found.several > 0 && found.tight > 50, "{found:?}");
}

/// People leave and return, and others come.
#[test]
fn no_secret_is_likelier_after_several_releases() {
    let history = |cohorts: [&[u8]; 2], second: &[usize]| {
        let all: usize = cohorts.iter().map(|cohort| cohort.len()).sum();
        let first: Vec<usize> = (0..cohorts[0].len()).collect();
        let places = (0..2).map(|release| (0..all).map(|person| vec![(person * 7 + release) as i32 % 5]).collect());
        History {
            m: 2,
            reader: Reader::Stranger,
            each: true,
            cohorts: cohorts.map(<[u8]>::to_vec).to_vec(),
            present: vec![first, second.to_vec()],
            places: places.collect(),
        }
    };
    let found = all(&[
        history([&[11, 12, 21, 22], &[31, 12]], &[0, 3, 4, 5]),
        history([&[11, 22], &[11, 12, 23, 21]], &[1, 2, 3, 4, 5]),
        history([&[11, 12, 23, 34], &[]], &[0, 1, 2]),
    ]);
    assert!(found.counterfeits > 0 && found.tight > 50, "{found:?}");
}

/// The bound of the combination is no bound of a column: the same people, with pairs as values.
#[test]
fn combinations_tell_a_column() {
    let mut history = one(2, Reader::Stranger, &[11, 12, 21, 22], &[0, 1, 8, 9]);
    history.each = false;
    // As bytes, 11 .. 22 are four different values.
    let certain = alone(|| {
        history.histories().into_iter().any(|(_, worlds)| {
            (0..4).any(|person| (1..3).any(|secret| posterior(&worlds, person, 0, secret) == Share::new(1, 1)))
        })
    });
    assert!(certain);
}
