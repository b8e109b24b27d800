//! Attack like m-invariance's `attack`, but values change. The reader knows everybody's quasi-identifiers, who is
//! present when, how often each value occurs at first, which updates are possible, and this code.
//!
//! The releases of a tiny table are made over and over for every *world* the reader thinks possible (every way to give out
//! the values, and everything that can become of them), and worlds are weighed by how often they lead to what was published.
//! With classes of one size, m-Distinct\* and blind balancing, nobody's value at any time may come out likelier than 1/m,
//! here 1/2, but by chance: 4.5 standard deviations.

use std::collections::{BTreeMap, BTreeSet};

use super::tests::{History, Pairs, Row, groups, publish};
use super::{Balance, MDistinct, OnIneligible, Possible};
use crate::choices::alone;

/// Values of all people, release after release.
type World = Vec<Vec<&'static str>>;
/// View of a release by the world: people who can be in the groups (by their places), values and counterfeits; in no order.
type Seen = Vec<(i32, i32, BTreeSet<String>, usize)>;

const METHOD: MDistinct = MDistinct {
    m: 2,
    disjoint: true,
    close_updates: false,
    updates: Possible::Listed,
    balance: Balance::Blind,
    on_ineligible: OnIneligible::Refuse,
    exact: false,
};

fn pairs() -> Pairs {
    let of = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    [("a", "A"), ("b", "B")].into_iter().flat_map(|(x, y)| [of(x, y), of(y, x), of(x, x), of(y, y)]).collect()
}

/// Lists the values that people with `before` can have become, in all ways.
fn changes(before: &[&'static str]) -> Vec<Vec<&'static str>> {
    let becomes = |value: &str| match value {
        "a" | "A" => ["a", "A"],
        _ => ["b", "B"],
    };
    before.iter().fold(vec![vec![]], |worlds, value| {
        let more = |world: &Vec<&'static str>| becomes(value).map(|next| [world.as_slice(), &[next]].concat());
        worlds.iter().flat_map(more).collect()
    })
}

fn release(world: &[&'static str], present: &[usize], history: &mut History, seed: u64) -> Seen {
    // Places on a line, with gaps that differ.
    let person = |&i: &usize| -> Row { (i as i64, vec![(i * i) as i32], world[i].to_owned()) };
    let rows: Vec<Row> = present.iter().map(person).collect();
    let release = publish(&rows, &history.known, &pairs(), &METHOD, seed).unwrap();
    history.add(&release, &rows, &METHOD);
    let mut seen: Seen = groups(&release)
        .into_iter()
        .map(|group| {
            let places = || group.iter().filter_map(|(id, _)| id.map(|id| (id * id) as i32));
            let counterfeits = group.iter().filter(|(id, _)| id.is_none()).count();
            let values = group.iter().map(|(_, value)| value.clone()).collect();
            (places().min().unwrap(), places().max().unwrap(), values, counterfeits)
        })
        .collect();
    seen.sort();
    seen
}

/// Four people; the first leaves and comes back, values change, somebody new comes with somebody else.
#[test]
fn three_releases_tell_nobody() {
    let firsts: BTreeSet<Vec<&'static str>> = [["a", "a", "b", "b"], ["a", "b", "a", "b"], ["a", "b", "b", "a"]]
        .into_iter()
        .flat_map(|half| [half.to_vec(), half.iter().map(|value| if *value == "a" { "b" } else { "a" }).collect()])
        .collect();
    let worlds: Vec<World> = firsts
        .into_iter()
        .flat_map(|first| changes(&first).into_iter().map(move |second| vec![first.clone(), second]))
        .collect();
    const DRAWS: u64 = 600;
    let mut likelihood: BTreeMap<Vec<Seen>, BTreeMap<&World, f64>> = BTreeMap::new();
    alone(|| {
        for world in &worlds {
            for seed in 0..DRAWS {
                let mut history = History::new(&pairs());
                let seen = vec![
                    release(&world[0], &[0, 1, 2, 3], &mut history, seed),
                    release(&world[1], &[1, 2, 3], &mut history, seed + (1 << 40)),
                ];
                *likelihood.entry(seen).or_default().entry(world).or_default() += 1.0;
            }
        }
    });
    let mut looked_at = 0;
    for by_world in likelihood.values() {
        let total: f64 = by_world.values().sum();
        if total < 500.0 {
            continue; // Too rare to tell chance from knowledge.
        }
        looked_at += 1;
        for (time, person) in
            (0..2).flat_map(|time| (0..4).map(move |person| (time, person))).filter(|at| *at != (1, 0))
        {
            for value in ["a", "A", "b", "B"] {
                let has = by_world.iter().filter(|(world, _)| world[time][person] == value);
                let share = has.map(|(_, count)| count).sum::<f64>() / total;
                let deviations = (share - 0.5) / (0.25 / total).sqrt();
                assert!(
                    deviations < 4.5,
                    "person {person} has {value} at {time} with probability {share:.3}, {deviations:.1} deviations above 1/2"
                );
            }
        }
    }
    assert!(looked_at > 3, "only {looked_at} outcomes were frequent enough");
}
