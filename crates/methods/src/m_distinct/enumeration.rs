//! Enumeration of all draws of exact releases with exact weights, for all possible values. The reader knows this
//! code and the law of changes, everybody's quasi-identifiers, who is present when, which group holds whom, and how
//! often each value occurs among the people who came with each release.
//!
//! The draws are those of the method itself ([`MDistinct::draw_exact`]), asked for one by one. What breaks if a condition of the theorem is dropped is
//! found by telling the method what is not true: of a law by which all values of a component are alike, kinds are
//! candidate sets, and counterfeits are drawn uniformly; and that everybody was in the last release.

use std::collections::BTreeMap;

use datafusion::arrow::array::AsArray;
use rand::{Rng, SeedableRng};

use super::tests::{Dated, Known, Pairs, Row, encode_dated};
use super::*;
use crate::choices::{Every, Share, alone, orders};
use crate::release::COUNTERFEIT;

/// Of each value what it can become, in sixteenths.
type Steps = BTreeMap<u8, Vec<(u8, u128)>>;

/// Releases of a few people.
#[derive(Debug, Clone)]
struct History {
    m: usize,
    /// Law of changes, beside the one that the method is told.
    law: Steps,
    told: Steps,
    /// True if the method is told that everybody was in the last release.
    forgets: bool,
    /// Values of those who come with each release. People are numbered as they come.
    cohorts: Vec<Vec<u8>>,
    /// People who are present, release by release.
    present: Vec<Vec<usize>>,
    places: Vec<Vec<i32>>,
    /// Number of quasi-identifiers of each release, which has others than the one before.
    columns: Vec<usize>,
}

/// Of everybody, releases and values.
type World = Vec<Vec<(usize, u8)>>;
/// A group: who is in it, and its values, by component.
type Group = (Vec<usize>, Vec<u8>);
/// The groups of a release.
type Seen = Vec<Group>;

/// Inferences of a reader.
struct Inferred {
    /// Histories that were published, over all worlds.
    outcomes: usize,
    /// Groups with a counterfeit.
    counterfeits: usize,
    /// Greatest ratio of the probability of a value to 1 of the group's.
    most: Share,
    /// True if nothing at all is likelier or less likely than that.
    exact: bool,
}

/// Returns the distribution of a value after so many releases.
fn after(law: &Steps, value: u8, releases: usize) -> BTreeMap<u8, Share> {
    let mut shares = BTreeMap::from([(value, Share::new(1, 1))]);
    for _ in 0..releases {
        let mut next: BTreeMap<u8, Share> = BTreeMap::new();
        for (value, share) in shares {
            for &(to, sixteenths) in &law[&value] {
                let sum = next.entry(to).or_insert(Share::NONE);
                *sum = sum.plus(share.times(Share::new(sixteenths, 16)));
            }
        }
        shares = next;
    }
    shares
}

/// Returns the component of a value. Small letters up to `f` are pairs, a and b, c and d, e and f, of which both are one component if one can become the other.
fn component(law: &Steps, value: u8) -> u8 {
    let other = b'a' + ((value - b'a') ^ 1);
    let linked = [(value, other), (other, value)].iter().any(|(from, to)| law[from].iter().any(|step| step.0 == *to));
    if linked { value.min(other) } else { value }
}

/// Returns the most recent group of everybody, and its release.
fn latest(history: &[Seen]) -> BTreeMap<usize, (usize, Vec<u8>)> {
    let mut latest = BTreeMap::new();
    for (release, seen) in history.iter().enumerate() {
        for (people, values) in seen {
            latest.extend(people.iter().map(|&person| (person, (release, values.clone()))));
        }
    }
    latest
}

impl History {
    /// Publishes a release of people with these values, given what earlier ones made known; `None` if it is refused.
    fn release(
        &self,
        values: &BTreeMap<usize, u8>,
        latest: &BTreeMap<usize, (usize, Vec<u8>)>,
        number: usize,
    ) -> BTreeMap<Option<Seen>, Share> {
        let name = |value: u8| char::from(value).to_string();
        let row = |(&person, &value): (&usize, &u8)| -> Row {
            let place = self.places[number][person];
            let quasi = [place, (place + person as i32 + number as i32) % 3];
            (person as i64, quasi[..self.columns[number]].to_vec(), name(value))
        };
        let rows: Vec<Row> = values.iter().map(row).collect();
        // The place of somebody is that of their component, whatever their value was.
        let of_person = |(&person, &value): (&usize, &u8)| {
            let (release, group) = latest.get(&person)?;
            let place =
                group.iter().position(|&other| component(&self.law, other) == component(&self.law, value)).unwrap();
            Some((person as i64, *release, (group.iter().copied().map(name).collect::<Vec<_>>(), place)))
        };
        let found: Vec<_> = values.iter().filter_map(of_person).collect();
        let known: Known = found.iter().map(|(id, _, known)| (*id, known.clone())).collect();
        let told =
            self.told.iter().flat_map(|(&from, row)| row.iter().map(move |&(to, sixteenths)| (from, to, sixteenths)));
        let told: Vec<_> = told.collect();
        let pairs: Pairs = told.iter().map(|&(from, to, _)| (name(from), name(to))).collect();
        let dated = Dated {
            releases: found
                .iter()
                .map(|(id, release, _)| (*id, (if self.forgets { number } else { release + 1 }) as u64))
                .collect(),
            number: number as u64 + 1,
            probabilities: told.iter().map(|&(.., sixteenths)| sixteenths as f64 / 16.0).collect(),
        };
        let (microdata, state) = encode_dated(&rows, &known, &pairs, 9, &dated).unwrap();
        let people: Vec<usize> = microdata
            .people
            .as_ref()
            .unwrap()
            .arrival
            .iter()
            .map(|&arrival| rows[arrival as usize].0 as usize)
            .collect();
        let domain = microdata.sensitive.as_ref().unwrap().domain.values();
        let value = |code: &u32| domain.as_string_view().value(*code as usize).as_bytes()[0];
        let (method, monitor) = (MDistinct::new(self.m).with_exact(true), Monitor::default());
        Every::new(0).law(|mut every| {
            let drawn = match method.draw_exact(&microdata, state.signatures().unwrap(), &monitor, &mut every) {
                Ok(drawn) => drawn,
                Err(Error::Refused(_)) => return None,
                Err(error) => panic!("{error}"),
            };
            let promise = ExactPromise { microdata: &microdata, known: state.signatures().unwrap(), m: self.m };
            promise.check(&drawn).unwrap();
            let groups = drawn.groups;
            let group = |group: usize| {
                let members = groups.members[groups.range(group)].iter().filter(|&&row| row != COUNTERFEIT);
                let mut people: Vec<usize> = members.map(|&row| people[row as usize]).collect();
                people.sort_unstable();
                (people, groups.sensitive[groups.range(group)].iter().map(value).collect())
            };
            let mut seen: Seen = (0..groups.len()).map(group).collect();
            seen.sort_unstable();
            Some(seen)
        })
    }

    /// Returns all values that the people of a release can have, with weights. Their values before are given.
    fn values(&self, world: &World, number: usize, cohort: &[u8]) -> Vec<(BTreeMap<usize, u8>, Share)> {
        let mut all = vec![(BTreeMap::new(), Share::new(1, 1))];
        for &person in &self.present[number] {
            let next = match world.get(person).and_then(|versions| versions.last()) {
                Some(&(release, value)) => after(&self.law, value, number - release),
                None => BTreeMap::from([(cohort[person - world.len()], Share::new(1, 1))]),
            };
            let longer = |(values, share): (BTreeMap<usize, u8>, Share)| {
                let with = |(&value, &likely): (&u8, &Share)| {
                    let mut values = values.clone();
                    values.insert(person, value);
                    (values, share.times(likely))
                };
                next.iter().map(with).collect::<Vec<_>>()
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        all
    }

    /// Weighs all worlds by how likely they lead to what is published.
    fn infer(&self) -> Inferred {
        let mut histories: BTreeMap<Vec<Seen>, Vec<(World, Share)>> =
            BTreeMap::from([(Vec::new(), vec![(World::new(), Share::new(1, 1))])]);
        for number in 0..self.present.len() {
            let orders = orders(&self.cohorts[number]);
            let mut longer: BTreeMap<Vec<Seen>, Vec<(World, Share)>> = BTreeMap::new();
            for (history, worlds) in histories {
                let latest = latest(&history);
                // Worlds that agree in what the people have now differ only in their weights.
                let mut laws = BTreeMap::new();
                for (world, share) in worlds {
                    for order in &orders {
                        for (values, likely) in self.values(&world, number, order) {
                            let mut next = world.clone();
                            next.resize(world.len() + order.len(), Vec::new());
                            values.iter().for_each(|(&person, &value)| next[person].push((number, value)));
                            let law =
                                laws.entry(values).or_insert_with_key(|values| self.release(values, &latest, number));
                            for (seen, drawn) in law.iter() {
                                let Some(seen) = seen else { continue };
                                let history = [history.as_slice(), std::slice::from_ref(seen)].concat();
                                let share = share.times(likely).times(*drawn);
                                longer.entry(history).or_default().push((next.clone(), share));
                            }
                        }
                    }
                }
            }
            histories = longer;
        }
        let mut inferred = Inferred { outcomes: histories.len(), counterfeits: 0, most: Share::NONE, exact: true };
        for (history, worlds) in histories {
            let fake = |(people, values): &Group| people.len() < values.len();
            inferred.counterfeits += usize::from(history.iter().flatten().any(fake));
            let total = worlds.iter().fold(Share::NONE, |sum, (_, share)| sum.plus(*share));
            for (release, seen) in history.iter().enumerate() {
                for (people, values) in seen {
                    for (&person, &value) in
                        people.iter().flat_map(|person| values.iter().map(move |value| (person, value)))
                    {
                        let has = worlds.iter().filter(|(world, _)| world[person].contains(&(release, value)));
                        let with = has.fold(Share::NONE, |sum, (_, share)| sum.plus(*share)).of(total);
                        let times = with.times(Share::new(values.len() as u128, 1));
                        inferred.exact &= times == Share::new(1, 1);
                        if times.is_more_than(inferred.most) {
                            inferred.most = times;
                        }
                    }
                }
            }
        }
        inferred
    }

    fn alone(&self) -> Inferred {
        alone(|| self.infer())
    }
}

/// Returns a law by which so many components of two values change: each value becomes the other one with so many sixteenths.
fn law(sixteenths: &[u128]) -> Steps {
    let of = |(value, &goes): (u8, &u128)| {
        let other = b'a' + ((value - b'a') ^ 1);
        let row = [(value, 16 - goes), (other, goes)].into_iter().filter(|(_, sixteenths)| *sixteenths > 0);
        (value, row.collect())
    };
    (b'a'..).zip(sixteenths).map(of).collect()
}

/// Draws any history: people leave and return, by any law that has some of these pairs of steps.
fn any(releases: usize, steps: &[[u128; 2]], rng: &mut ChaCha20Rng) -> History {
    loop {
        let m = if releases == 2 && rng.random_bool(0.2) { 3 } else { 2 };
        let components = rng.random_range(m..=3);
        let letters = 2 * components as u8;
        let (mut cohorts, mut present): (Vec<Vec<u8>>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let mut all = 0;
        for number in 0..releases {
            let size = match number {
                0 => rng.random_range(m..=if m == 2 && releases == 2 { 4 } else { 3 }),
                _ => rng.random_range(0..=if releases > 2 { m } else { m + 1 }),
            };
            let size = if releases > 2 && size == 1 { 0 } else { size };
            cohorts.push((0..size).map(|_| b'a' + rng.random_range(0..letters)).collect());
            present.push((0..all).filter(|_| rng.random_bool(0.6)).chain(all..all + size).collect());
            all += size;
        }
        let goes = (0..components).flat_map(|_| steps[rng.random_range(0..steps.len())]);
        let law = law(&goes.collect::<Vec<_>>());
        let eligible = |cohort: &Vec<u8>| {
            let parts = || cohort.iter().map(|value| component(&law, *value));
            parts().all(|part| parts().filter(|other| *other == part).count() * m <= cohort.len())
        };
        let worlds: usize = cohorts.iter().map(|cohort| orders(cohort).len()).product();
        let most = if releases > 2 { 4 } else { 5 };
        if worlds > 24 || all > most || present.iter().any(Vec::is_empty) || !cohorts.iter().all(eligible) {
            continue;
        }
        let places = (0..releases).map(|_| (0..all).map(|_| rng.random_range(0..6)).collect()).collect();
        let columns = (0..releases).map(|_| rng.random_range(1..=2)).collect();
        return History { m, told: law.clone(), law, forgets: false, cohorts, present, places, columns };
    }
}

/// Checks so many histories with more than one outcome: in none is a value likelier or less likely than another of
/// the group. Returns how many outcomes there were, and how many of them with counterfeits.
fn assert_exact(releases: usize, steps: &[[u128; 2]], wanted: usize) -> [usize; 2] {
    let mut rng = ChaCha20Rng::seed_from_u64(releases as u64);
    let (mut found, mut outcomes, mut fake) = (0, 0, 0);
    while found < wanted {
        let history = any(releases, steps, &mut rng);
        let inferred = history.alone();
        assert!(inferred.exact || inferred.outcomes == 0, "{:?} times likelier: {history:?}", inferred.most);
        found += usize::from(inferred.outcomes > 1);
        outcomes += inferred.outcomes;
        fake += inferred.counterfeits;
    }
    println!("{found} histories of {releases} releases, {outcomes} outcomes, {fake} of them with counterfeits");
    [outcomes, fake]
}

/// Of two values at least one can change.
const CHANGING: [[u128; 2]; 6] = [[0, 4], [4, 8], [8, 0], [4, 4], [8, 4], [12, 8]];
/// Nothing changes, as without `updates`.
const FROZEN: [[u128; 2]; 1] = [[0, 0]];
/// Some values change, and others do not.
const SOME: [[u128; 2]; 4] = [[0, 0], [0, 0], [4, 8], [12, 4]];

#[test]
fn two_releases_are_exact_together() {
    let [outcomes, fake] = assert_exact(2, &CHANGING, 40);
    assert!(outcomes > 300 && fake > 100, "{outcomes}, {fake}");
}

/// People who missed a release come back, and another law tells what they became.
#[test]
fn three_releases_are_exact_together() {
    let [outcomes, fake] = assert_exact(3, &CHANGING, 12);
    assert!(outcomes > 150 && fake > 100, "{outcomes}, {fake}");
}

/// Frozen values are exact together: all values or some stay, while people come, leave and return, and releases
/// have other columns. This is what `dynamic` adds to `m_distinct`.
#[test]
fn frozen_values_are_exact_together() {
    for (releases, steps, wanted) in [(2, &FROZEN[..], 60), (3, &FROZEN, 15), (2, &SOME, 40), (3, &SOME, 12)] {
        let [outcomes, fake] = assert_exact(releases, steps, wanted);
        assert!(outcomes > 2 * wanted && fake > wanted, "{outcomes}, {fake}");
    }
}

/// Returns the values that mostly stay: so many sixteenths change. Who is near to whom at first is not so later.
fn mostly_stay(sixteenths: u128, cohort: &[u8], present: Vec<Vec<usize>>) -> History {
    let law = law(&[sixteenths; 4]);
    let places = (0..present.len()).map(|number| [[0, 1, 2, 3], [0, 5, 3, 1]][number.min(1)][..cohort.len()].to_vec());
    let places = places.collect();
    let mut cohorts = vec![cohort.to_vec()];
    cohorts.resize(present.len(), Vec::new());
    let columns = vec![1; present.len()];
    History { m: 2, told: law.clone(), law, forgets: false, cohorts, present, places, columns }
}

/// Returns the same, made as if all values of a component were alike: as m-Distinct* does it that knows what is possible.
fn told_what_is_possible(history: &History) -> History {
    History { told: law(&[8, 8, 8, 8]), ..history.clone() }
}

/// People who meet others of another kind are told by them, without counterfeits. Their last groups had other values.
#[test]
fn kinds_by_candidate_sets_tell() {
    let history = mostly_stay(1, b"acbd", vec![vec![0, 1, 2, 3]; 2]);
    assert!(history.alone().exact);
    let told = told_what_is_possible(&history).alone();
    assert_eq!(told.counterfeits, 0);
    // Either both of a group stayed, or both have changed.
    assert!(told.most.is_more_than(Share::new(19, 10)), "{:?}", told.most);
}

/// Counterfeits drawn uniformly tell: they have changed more often than people do. One person leaves a group, and a counterfeit takes the place.
#[test]
fn counterfeits_drawn_uniformly_tell() {
    let history = mostly_stay(1, b"ac", vec![vec![0, 1], vec![0]]);
    assert!(history.alone().exact);
    let told = told_what_is_possible(&history).alone();
    assert_eq!(told.counterfeits, told.outcomes);
    assert!(told.most.is_more_than(Share::new(17, 10)), "{:?}", told.most);
}

/// Two groups with the same values. One was away at the second release, and has more often changed than the other. There are no counterfeits.
#[test]
fn people_who_missed_a_release_are_another_kind() {
    let history = mostly_stay(4, b"acac", vec![vec![0, 1, 2, 3], vec![0, 1], vec![0, 1, 2, 3]]);
    let inferred = history.alone();
    assert!(inferred.exact, "{:?}", inferred.most);
    assert!(!History { forgets: true, ..history.clone() }.alone().exact);
}
