//! Inferences of a reader with this program from one known value about *other* groups.
//!
//! The reader knows who is in which group, how often each value occurs, and the code. All ways to give out the values (*worlds*) are
//! released over and over, and weighed by how often they lead to the groups that were published.

use std::collections::BTreeMap;

use super::AnyMethod;
use super::anatomy::Anatomy;
use super::choices::alone;
use super::m_invariance::{MInvariance, Reader};
use super::sample::Table;

const PEOPLE: usize = 6;
const DRAWS: u64 = 3000;

/// Returns the worlds with as many of each of two values.
fn worlds() -> Vec<Vec<i32>> {
    let all = (0..1_u32 << PEOPLE).filter(|bits| bits.count_ones() as usize == PEOPLE / 2);
    all.map(|bits| (0..PEOPLE).map(|person| (bits >> person & 1) as i32).collect()).collect()
}

/// Returns the probability of the best guess by a value known in another group. The first is the mean, the second
/// that of the outcome and pair of people with the best guess.
fn best_guess(method: &AnyMethod) -> (f64, f64) {
    let worlds = worlds();
    let mut likelihood: BTreeMap<Vec<Vec<u32>>, BTreeMap<usize, f64>> = BTreeMap::new();
    for (number, world) in worlds.iter().enumerate() {
        // Places on a line, with gaps that differ.
        let quasi = vec![(0..PEOPLE as i32).map(|i| Some(i * i)).collect()];
        let table = Table { quasi, sensitive: Some(world.clone()), ids: true, ..Table::default() };
        for seed in 0..DRAWS {
            let (release, _) = table.anonymize(method, seed).unwrap();
            let arrival = &release.microdata.people.as_ref().unwrap().arrival;
            let group = |group: usize| {
                let members = &release.groups.members[release.groups.range(group)];
                let mut people: Vec<u32> = members.iter().map(|&row| arrival[row as usize]).collect();
                people.sort_unstable();
                people
            };
            let mut seen: Vec<Vec<u32>> = (0..release.groups.len()).map(group).collect();
            seen.sort_unstable();
            *likelihood.entry(seen).or_default().entry(number).or_default() += 1.0;
        }
    }
    let (mut sum, mut weight, mut most) = (0.0, 0.0, 0.0_f64);
    for (seen, by_world) in likelihood {
        let total: f64 = by_world.values().sum();
        if total < 1000.0 {
            continue; // Too rare to tell chance from knowledge.
        }
        let pairs = seen.iter().flat_map(|a| seen.iter().filter(move |b| *b != a).map(move |b| (a, b)));
        for (known, other) in pairs.flat_map(|(a, b)| a.iter().flat_map(move |&p| b.iter().map(move |&q| (p, q)))) {
            let mut joint = [[0.0_f64; 2]; 2];
            for (&world, count) in &by_world {
                let value = |person: u32| worlds[world][person as usize] as usize;
                joint[value(known)][value(other)] += count / total;
            }
            let right: f64 = joint.iter().map(|of| of[0].max(of[1])).sum();
            sum += right * total;
            weight += total;
            most = most.max(right);
        }
    }
    (sum / weight, most)
}

/// Lists of a bucket are matched by rank, which ties its groups together: `docs/threats.md`. Anatomy deals uniformly.
#[test]
fn one_known_value_tells_of_other_groups() {
    let invariant = alone(|| best_guess(&AnyMethod::MInvariance(MInvariance::of_cohort(2))));
    let anatomy = alone(|| best_guess(&AnyMethod::Anatomy(Anatomy::new(2))));
    let close = MInvariance::new(2).with_reader(Reader::Participant);
    let close = alone(|| best_guess(&AnyMethod::MInvariance(close)));
    for (name, (mean, most)) in
        [("m_invariant, m = 2, of the cohort", invariant), ("for participants", close), ("anatomy, l = 2", anatomy)]
    {
        println!("{name}: with one known value in another group the best guess is right {mean:.2}, at most {most:.2}");
    }
    // Noise of the draws: the greater of two shares of some thousands.
    assert!((0.5..0.53).contains(&anatomy.0), "{anatomy:?}");
    assert!((0.5..0.53).contains(&close.0), "{close:?}");
    assert!(invariant.0 > 0.53, "the documentation says that it tells something: {invariant:?}");
}
