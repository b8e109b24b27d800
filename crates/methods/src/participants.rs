//! Describes what a *participant* learns: somebody of the table, who knows their own value beside all that a stranger knows.
//!
//! Bounds are for strangers, who know nobody's value. Everybody in a table is a participant of it. The reader knows everybody's
//! quasi-identifiers, which group holds whom, how often each value occurs, and the code. All ways to give out the values (*worlds*) are released
//! over and over, and weighed by how often they lead to what was published.

use std::collections::BTreeMap;

use super::AnyMethod;
use super::anatomy::Anatomy;
use super::choices::{alone, orders};
use super::dynamic::Dynamic;
use super::m_invariance::{Grouping, MInvariance, Reader};
use super::mondrian::{Cuts, Mondrian};
use super::muco::Muco;
use super::sample::Table;
use super::sequential::{NonSequential, Sequential};
use crate::release::{Body, COUNTERFEIT, Release};

/// Four people, and their values in every order.
const QUASI: [i32; 4] = [10, 20, 30, 40];
const VALUES: [i32; 4] = [0, 0, 1, 1];
const DRAWS: u64 = 500;
/// Outcomes that a participant sees more seldom say little of how likely they are.
const SELDOM: f64 = 60.0;

/// A group: who is in it, where that can be known, and its rows: range and value.
type Group = (Vec<u32>, Vec<([u32; 2], u32)>);

fn seen(release: &Release) -> Vec<Group> {
    let (microdata, groups) = (&release.microdata, &release.groups);
    let of_rows = matches!(release.body, Body::Rows { .. });
    let group = |group: usize| -> Group {
        let range = groups.range(group);
        let members = groups.members[range.clone()].iter().filter(|&&row| row != COUNTERFEIT && !of_rows);
        let mut people: Vec<u32> = members.map(|&row| microdata.quasi_at(row, 0)).collect();
        people.sort_unstable();
        let row = |place: usize| {
            let code = release.body.perturbed().and_then(|perturbed| perturbed.codes.of(place as u32).next());
            let range = release.body.intervals().and_then(|intervals| intervals.of(group as u32).next());
            (range.or_else(|| code.map(|code| [code, code])).unwrap_or_default(), groups.sensitive[place])
        };
        let mut rows: Vec<([u32; 2], u32)> = range.map(row).collect();
        rows.sort_unstable();
        (people, rows)
    };
    let mut seen: Vec<Group> = (0..groups.len()).map(group).collect();
    seen.sort_unstable();
    seen
}

/// Holds what is learned of somebody else, on average over draws, people and others.
#[derive(Debug, Clone, Copy)]
struct Learned {
    /// Says how probable the best guess of somebody's value is to a stranger, at most.
    stranger: f64,
    /// Of how many of the three others a participant is certain.
    certain: f64,
    /// Share of draws in which the values of all three are certain.
    everybody: f64,
    /// Says how probable a participant's best guess of another one's value is.
    guess: f64,
}

fn learned(method: &AnyMethod) -> Learned {
    let worlds: Vec<Vec<i32>> = orders(&VALUES).into_iter().collect();
    let mut likelihood: BTreeMap<Vec<Group>, Vec<f64>> = BTreeMap::new();
    for (number, world) in worlds.iter().enumerate() {
        let quasi = vec![QUASI.iter().copied().map(Some).collect()];
        let table = Table { quasi, sensitive: Some(world.clone()), ids: true, ..Table::default() };
        for draw in 0..DRAWS {
            let (release, _) = table.anonymize(method, DRAWS * number as u64 + draw).unwrap();
            likelihood.entry(seen(&release)).or_insert_with(|| vec![0.0; worlds.len()])[number] += 1.0;
        }
    }
    let best = |weights: &[f64], of: usize| {
        let ones: f64 = worlds.iter().zip(weights).filter(|(world, _)| world[of] == 1).map(|(_, weight)| weight).sum();
        let all: f64 = weights.iter().sum();
        ones.max(all - ones) / all
    };
    let (mut stranger, mut certain, mut everybody, mut guess, mut all) = (0.0_f64, 0.0, 0.0, 0.0, 0.0);
    for weights in likelihood.values() {
        if weights.iter().sum::<f64>() >= 4.0 * SELDOM {
            stranger = (0..QUASI.len()).map(|person| best(weights, person)).fold(stranger, f64::max);
        }
        for (own, value) in (0..QUASI.len()).flat_map(|own| [(own, 0), (own, 1)]) {
            let known: Vec<f64> = worlds
                .iter()
                .zip(weights)
                .map(|(world, weight)| if world[own] == value { *weight } else { 0.0 })
                .collect();
            let times: f64 = known.iter().sum();
            if times < SELDOM {
                continue;
            }
            all += times;
            let others = (0..QUASI.len()).filter(|other| *other != own);
            let best: Vec<f64> = others.map(|other| best(&known, other)).collect();
            let sure = best.iter().filter(|best| **best > 1.0 - 1e-9).count();
            guess += times * best.iter().sum::<f64>() / best.len() as f64;
            certain += times * sure as f64;
            everybody += if sure == best.len() { times } else { 0.0 };
        }
    }
    assert!(all > 3.0 * (DRAWS as usize * worlds.len()) as f64, "most outcomes are frequent");
    Learned { stranger, certain: certain / all, everybody: everybody / all, guess: guess / all }
}

/// The figures of `docs/threats.md`. In a group of two a participant knows the partner's value: of one of the others they are certain in any
/// case, and of the two others a list of two values leaves half. `anatomy` tells just that, because it deals values uniformly and no group
/// depends on another. In all other methods something ties groups together, and it tells.
#[test]
fn a_participant_learns_of_others() {
    let mondrian = Mondrian { l: Some(2), fair: true, ..Mondrian::new(1) };
    let methods = [
        AnyMethod::Anatomy(Anatomy::new(2)),
        AnyMethod::Anatomy(Anatomy::new(2).with_groups(Grouping::Close)),
        AnyMethod::Anatomy(Anatomy::new(2).with_groups(Grouping::Close).with_reader(Reader::Participant)),
        AnyMethod::MInvariance(MInvariance::of_cohort(2)),
        AnyMethod::MInvariance(MInvariance::new(2)),
        AnyMethod::MInvariance(MInvariance::new(2).with_reader(Reader::Participant)),
        AnyMethod::Dynamic(Dynamic::new(2)),
        AnyMethod::Mondrian(mondrian),
        AnyMethod::Muco(Muco::equal(2, Cuts::Tight).unwrap()),
        AnyMethod::Muco(Muco::equal(2, Cuts::Tight).unwrap().with_reader(Reader::Participant)),
        AnyMethod::Sequential(Sequential::new(2)),
        AnyMethod::NonSequential(NonSequential::new(2)),
    ];
    for method in methods {
        let name = format!("{} {}", method.name(), method.parameters_text().unwrap());
        let bounded = match &method {
            AnyMethod::MInvariance(method) => method.reader == Reader::Participant,
            AnyMethod::Anatomy(method) => method.groups == Grouping::Cohort || method.reader == Reader::Participant,
            AnyMethod::Muco(method) => method.reader == Reader::Participant,
            _ => false,
        };
        let Learned { stranger, certain, everybody, guess } = alone(|| learned(&method));
        println!(
            "{name}: a stranger's best guess is right {stranger:.2} at most; a participant is certain of {certain:.2} of three others, of all of \
             them {everybody:.2} of the time, and a guess of somebody's value is right {guess:.2}"
        );
        // Noise of some hundred draws, and more of the greatest of many.
        assert!(stranger < 0.62, "{name}: {stranger}");
        match bounded {
            true => {
                assert!((certain - 1.0).abs() < 0.01 && (0.66..0.70).contains(&guess), "{name}: {certain}, {guess}");
                assert!(everybody < 0.01, "{name}: {everybody}");
            }
            false => assert!(everybody > 0.2 && guess > 0.75, "{name}: change the documentation: {everybody}, {guess}"),
        }
    }
}
