//! Tests that a release stays the same if the values of a signature are exchanged. Only the values may be different.
//!
//! The theorem of `docs/theory.md` needs that everything commutes with renaming the values among all people of a signature. Enumerations
//! see small buckets only; here are large ones, whose lists must be treated alike by all of the split, and choices that are the same for all lists.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::tests::{Known, Row, encode, private, publish, verify};
use super::*;
use crate::release::COUNTERFEIT;
use crate::split::Choose;

/// The same choice for all lists of a part, and for all else.
#[derive(Debug)]
struct Same(u64);

impl Choose for Same {
    fn choose(&self, part: u64, _list: usize, n: usize) -> usize {
        ((part ^ self.0) % n as u64) as usize
    }
}

impl Lots for &'static Same {
    fn below(&mut self, n: usize) -> usize {
        (self.0 % n as u64) as usize
    }

    fn secret(&mut self) -> Secret {
        Secret::chosen(*self)
    }
}

/// Returns the members of groups, and their numbers of counterfeits.
fn groups(rows: &[Row], known: &Known, m: usize, same: &'static Same) -> BTreeSet<(Vec<i64>, usize)> {
    let (microdata, state) = encode(rows, known, 7).unwrap();
    let method = MInvariance::of_cohort(m).with_balance(Balance::Blind);
    let mut lots = same;
    let drawn = method.draw(&microdata, state.signatures().unwrap(), &Monitor::default(), &mut lots).unwrap();
    let arrival = &microdata.people.as_ref().unwrap().arrival;
    let of_group = |group: usize| {
        let members = &drawn.groups.members[drawn.groups.range(group)];
        let people = members.iter().filter(|&&row| row != COUNTERFEIT);
        let mut people: Vec<i64> = people.map(|&row| rows[arrival[row as usize] as usize].0).collect();
        people.sort_unstable();
        let counterfeits = members.len() - people.len();
        (people, counterfeits)
    };
    (0..drawn.groups.len()).map(of_group).collect()
}

/// Renames everybody's value by a permutation of their signature, the same for all its people.
fn renamed(rows: &[Row], known: &Known, rng: &mut ChaCha20Rng) -> Vec<Row> {
    let mut renaming: Vec<(Vec<&String>, Vec<&String>)> = Vec::new();
    for signature in known.values().collect::<BTreeSet<_>>() {
        let from: Vec<&String> = signature.iter().collect();
        let mut to = from.clone();
        to.shuffle(rng);
        renaming.push((from, to));
    }
    let rename = |(id, quasi, value): &Row| {
        let signature: Vec<&String> = known[id].iter().collect();
        let (from, to) = renaming.iter().find(|(from, _)| *from == signature).unwrap();
        let place = from.iter().position(|other| *other == value).unwrap();
        (*id, quasi.clone(), to[place].clone())
    };
    rows.iter().map(rename).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn values_of_a_signature_can_be_exchanged(
        people in prop_oneof![3 => 4_i64..80, 1 => 400_i64..1500],
        (m, values) in (2_usize..5).prop_flat_map(|m| (Just(m), m..m + 3)),
        quasi in 1_usize..4,
        seed in any::<u64>(),
    ) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut person = |id: i64| -> Row {
            let quasi = (0..quasi).map(|_| rng.random_bool(0.95).then(|| rng.random_range(0..50))).collect();
            (id, quasi, format!("v{}", id as usize % values))
        };
        let first: Vec<Row> = (0..people).map(&mut person).collect();
        let mut known = Known::new();
        let Ok(release) = publish(&first, &known, &MInvariance::of_cohort(m), seed) else { return Ok(()) };
        verify(&private(release, seed), &first, &mut known, m, 0);
        // Some leave, and everybody moves.
        let second: Vec<Row> = first.iter().map(|row| person(row.0)).filter(|row| row.0 % 5 != 1).collect();
        let mut rng = ChaCha20Rng::seed_from_u64(seed ^ 1);
        let same: &'static Same = Box::leak(Box::new(Same(rng.random())));
        let expected = groups(&second, &known, m, same);
        let others = renamed(&second, &known, &mut rng);
        prop_assert_eq!(expected, groups(&others, &known, m, same));
    }
}
