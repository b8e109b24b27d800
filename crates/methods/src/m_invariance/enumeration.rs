//! Enumeration of all draws for every way to give out the values, with exact weights. The reader knows this code, everybody's
//! quasi-identifiers, who is present when, which group holds whom, and how often each value occurs among the people who came with each release.
//!
//! The draws are those of the method itself ([`MInvariance::draw`]), asked for one by one. A reader who takes the values of those
//! who came for independent of each other is a mixture of such readers, and so are readers who see less.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::AsArray;
use rand::{Rng, SeedableRng};

use super::tests::{Earlier, Known, Row, encode_beside};
use super::*;
use crate::choices::{Every, Share, alone, orders};
use crate::error::Error;
use crate::release::COUNTERFEIT;

/// Releases of a few people.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) method: MInvariance,
    /// Values of those who come with each release. People are numbered as they come.
    pub(super) cohorts: Vec<Vec<u8>>,
    /// People who are present, release by release.
    pub(super) present: Vec<Vec<usize>>,
    /// Quasi-identifiers of everybody, release by release.
    pub(super) places: Vec<Vec<Vec<i32>>>,
    /// The part in which everybody is, release by release, if releases are made within parts.
    pub(super) parts: Option<Vec<Vec<i32>>>,
    /// The secret that decides where counterfeits stand, if the reader knows it.
    pub(super) secret: Option<u64>,
    /// Law of the values of later people, as numbers; empty if their counts are known. Then it only counts how many
    /// come.
    pub(super) law: Vec<(u8, u128)>,
    /// Values that are declared.
    pub(super) domain: Vec<u8>,
    /// True if only batches that are not eligible draw their signatures.
    pub(super) fallback: bool,
}

/// All choices, but for a secret that is known.
struct Asked(Every, Option<u64>);

impl Lots for Asked {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    fn secret(&mut self) -> Secret {
        self.1.map_or_else(|| self.0.secret(), Secret::mixed)
    }
}

/// Sensitive values of all people.
type World = Vec<u8>;
/// A group: who is in it, and its signature; where it has more values than people, there are counterfeits.
type Group = (Vec<usize>, Vec<u8>);
/// The groups of a release.
type Seen = Vec<Group>;

/// Inferences of a reader.
pub(super) struct Inferred {
    /// Histories that were published, over all worlds.
    pub(super) outcomes: usize,
    /// Groups with a counterfeit.
    pub(super) counterfeits: usize,
    /// Greatest ratio of a value's probability to 1 of the signature's values.
    pub(super) most: Share,
    /// True if nothing at all is likelier or less likely than that.
    pub(super) exact: bool,
    /// The probability of somebody's value who was present and is in no group, at most.
    left_out: Share,
}

impl History {
    /// Begins with these people, of whom nothing is said yet.
    pub(super) fn of(method: MInvariance, cohorts: Vec<Vec<u8>>) -> Self {
        Self {
            method,
            cohorts,
            present: Vec::new(),
            places: Vec::new(),
            parts: None,
            secret: None,
            law: Vec::new(),
            domain: Vec::new(),
            fallback: false,
        }
    }

    /// Publishes a release in this world, given the earlier ones; `None` if it is refused.
    fn release(&self, world: &World, number: usize, known: &BTreeMap<usize, Vec<u8>>) -> BTreeMap<Option<Seen>, Share> {
        let present = &self.present[number];
        let name = |value: u8| char::from(value).to_string();
        let row = |&person: &usize| -> Row {
            let quasi = self.places[number][person].iter().copied().map(Some).collect();
            (person as i64, quasi, name(world[person]))
        };
        let rows: Vec<Row> = present.iter().map(row).collect();
        let signature = |values: &Vec<u8>| values.iter().copied().map(name).collect::<BTreeSet<_>>();
        let known: Known = known.iter().map(|(&person, values)| (person as i64, signature(values))).collect();
        let parts = self.parts.as_ref().map(|parts| present.iter().map(|&person| parts[number][person]).collect());
        let release = |person: i64| if (person as usize) < self.cohorts[0].len() { 1 } else { 2 };
        let domain: Vec<String> = self.domain.iter().copied().map(name).collect();
        let earlier = Earlier {
            known: &known,
            release: Some(&release),
            ring: None,
            regions: false,
            each: false,
            domain: &domain,
        };
        let (microdata, state) = encode_beside(&rows, parts, &earlier, 9).unwrap();
        let before: usize = self.cohorts[..number].iter().map(Vec::len).sum();
        let assignment = match self.fallback && is_eligible(&world[before..], self.method.m) {
            true => Assignment::Eligible,
            false => self.method.assignment,
        };
        let method = self.method.clone().with_assignment(assignment);
        let of_person: Vec<usize> =
            microdata.people.as_ref().unwrap().arrival.iter().map(|&arrival| present[arrival as usize]).collect();
        let values = microdata.sensitive.as_ref().unwrap().domain.values();
        let value = |code: &u32| values.as_string_view().value(*code as usize).as_bytes()[0];
        // As `strata` does it.
        let strata = microdata.strata();
        let rows: Vec<Vec<u32>> = match &self.parts {
            None => vec![(0..microdata.rows as u32).collect()],
            Some(_) => (0..strata.codes.len()).map(|part| strata.rows(part).to_vec()).collect(),
        };
        let parts: Vec<(Microdata, State, Vec<u32>)> =
            rows.into_iter().map(|rows| (microdata.part(&rows), state.part(&rows), rows)).collect();
        let monitor = Monitor::default();
        Every::new(0).law(|every| {
            let mut asked = Asked(every, self.secret);
            let mut seen = Seen::new();
            for (microdata, state, rows) in &parts {
                let drawn = method.draw(microdata, state.signatures().unwrap(), &monitor, &mut asked);
                let groups = match drawn {
                    Ok(drawn) => drawn.groups,
                    Err(Error::Refused(_)) => return None,
                    Err(error) => panic!("{error}"),
                };
                for group in 0..groups.len() {
                    let members = groups.members[groups.range(group)].iter().filter(|&&row| row != COUNTERFEIT);
                    let mut people: Vec<usize> = members.map(|&row| of_person[rows[row as usize] as usize]).collect();
                    people.sort_unstable();
                    seen.push((people, groups.sensitive[groups.range(group)].iter().map(value).collect()));
                }
            }
            seen.sort_unstable();
            Some(seen)
        })
    }

    /// Returns the values of a release's new people that are possible to the reader.
    fn values(&self, number: usize) -> Vec<(Vec<u8>, Share)> {
        let cohort = &self.cohorts[number];
        if self.law.is_empty() || number == 0 {
            return orders(cohort).into_iter().map(|order| (order, Share::new(1, 1))).collect();
        }
        let all = self.law.iter().map(|(_, people)| people).sum();
        let mut values = vec![(Vec::new(), Share::new(1, 1))];
        for _ in cohort {
            let longer = |(values, share): &(Vec<u8>, Share), (value, people): &(u8, u128)| {
                ([values.as_slice(), &[*value]].concat(), share.times(Share::new(*people, all)))
            };
            values = values.iter().flat_map(|before| self.law.iter().map(move |next| longer(before, next))).collect();
        }
        values
    }

    /// Weighs all worlds by how likely they lead to what is published.
    pub(super) fn infer(&self) -> Inferred {
        let mut histories: BTreeMap<Vec<Seen>, Vec<(World, Share)>> =
            BTreeMap::from([(Vec::new(), vec![(World::new(), Share::new(1, 1))])]);
        for number in 0..self.present.len() {
            let orders = self.values(number);
            let mut longer: BTreeMap<Vec<Seen>, Vec<(World, Share)>> = BTreeMap::new();
            for (history, worlds) in histories {
                let known: BTreeMap<usize, Vec<u8>> = signatures(&history);
                for (world, share) in worlds {
                    for (order, prior) in &orders {
                        let world = [world.as_slice(), order].concat();
                        for (seen, likely) in self.release(&world, number, &known) {
                            let Some(seen) = seen else { continue };
                            let history = [history.as_slice(), &[seen]].concat();
                            let share = share.times(*prior).times(likely);
                            longer.entry(history).or_default().push((world.clone(), share));
                        }
                    }
                }
            }
            histories = longer;
        }
        let mut inferred = Inferred {
            outcomes: histories.len(),
            counterfeits: 0,
            most: Share::NONE,
            exact: true,
            left_out: Share::NONE,
        };
        for (history, worlds) in histories {
            let fake = |(people, signature): &Group| people.len() < signature.len();
            inferred.counterfeits += usize::from(history.iter().flatten().any(fake));
            let sum = |worlds: &mut dyn Iterator<Item = &(World, Share)>| {
                worlds.fold(Share::NONE, |sum, (_, share)| sum.plus(*share))
            };
            let total = sum(&mut worlds.iter());
            let published = signatures(&history);
            for person in (0..worlds[0].0.len()).filter(|person| !published.contains_key(person)) {
                for value in worlds[0].0.iter().copied() {
                    let with = sum(&mut worlds.iter().filter(|(world, _)| world[person] == value)).of(total);
                    if with.is_more_than(inferred.left_out) {
                        inferred.left_out = with;
                    }
                }
            }
            for (person, signature) in published {
                for &value in &signature {
                    let with = sum(&mut worlds.iter().filter(|(world, _)| world[person] == value)).of(total);
                    let times = with.times(Share::new(signature.len() as u128, 1));
                    inferred.exact &= times == Share::new(1, 1);
                    if times.is_more_than(inferred.most) {
                        inferred.most = times;
                    }
                }
            }
        }
        inferred
    }
}

/// Returns everybody's signature.
fn signatures(history: &[Seen]) -> BTreeMap<usize, Vec<u8>> {
    let groups = history.iter().flatten();
    groups.flat_map(|(people, signature)| people.iter().map(|&person| (person, signature.clone()))).collect()
}

pub(super) fn is_eligible(values: &[u8], m: usize) -> bool {
    values.iter().all(|value| values.iter().filter(|other| *other == value).count() * m <= values.len())
}

/// Draws any history: people leave, return, move, and get older.
fn any(balance: Balance, releases: usize, within: bool, rng: &mut ChaCha20Rng) -> History {
    loop {
        let m = if rng.random_bool(0.7) { 2 } else { 3 };
        let letters = m as u8 + rng.random_range(0..2);
        let mut cohorts: Vec<Vec<u8>> = Vec::new();
        let mut present: Vec<Vec<usize>> = Vec::new();
        let mut all = 0;
        for number in 0..releases {
            let size = match number {
                0 => rng.random_range(m..=if within || releases > 2 { 4 } else { 5 }),
                _ => rng.random_range(0..=if releases > 2 { 2 } else { m + 1 }),
            };
            cohorts.push((0..size).map(|_| b'a' + rng.random_range(0..letters)).collect());
            let here = (0..all).filter(|_| rng.random_bool(0.6)).chain(all..all + size);
            present.push(here.collect());
            all += size;
        }
        let worlds: usize = cohorts.iter().map(|cohort| orders(cohort).len()).product();
        let nobody = present.iter().any(Vec::is_empty);
        if !(2..=150).contains(&worlds) || nobody || cohorts.iter().any(|cohort| !is_eligible(cohort, m)) {
            continue;
        }
        let d = rng.random_range(1..3);
        let mut place = || (0..d).map(|_| rng.random_range(0..6)).collect::<Vec<i32>>();
        let places = (0..releases).map(|_| (0..all).map(|_| place()).collect()).collect();
        let parts = within.then(|| (0..releases).map(|_| (0..all).map(|_| rng.random_range(0..2)).collect()).collect());
        let method = MInvariance::of_cohort(m).with_balance(balance);
        return History { present, places, parts, ..History::of(method, cohorts) };
    }
}

/// Draws so many histories, and infers from each that is published at all.
fn histories(balance: Balance, releases: usize, within: bool, wanted: usize) -> Vec<(History, Inferred)> {
    let mut rng = ChaCha20Rng::seed_from_u64(releases as u64);
    let mut found = Vec::new();
    while found.len() < wanted {
        let history = any(balance, releases, within, &mut rng);
        let inferred = alone(|| history.infer());
        if inferred.outcomes > 0 {
            found.push((history, inferred));
        }
    }
    found
}

/// Checks that all values of a signature are equally likely for everybody. There are counterfeits in so many of the histories.
pub(super) fn assert_exact(found: &[(History, Inferred)]) -> usize {
    for (history, inferred) in found {
        assert!(inferred.exact, "{:?} times likelier: {history:?}", inferred.most);
    }
    let (outcomes, fake) = found
        .iter()
        .fold((0, 0), |(outcomes, fake), (_, inferred)| (outcomes + inferred.outcomes, fake + inferred.counterfeits));
    println!("{} histories, {outcomes} outcomes, {fake} of them with counterfeits", found.len());
    fake
}

#[test]
fn one_release_is_exact() {
    assert_eq!(assert_exact(&histories(Balance::Blind, 1, false, 60)), 0);
}

#[test]
fn blind_releases_are_exact_together() {
    assert!(assert_exact(&histories(Balance::Blind, 2, false, 80)) > 150);
}

/// People who were away come back.
#[test]
fn three_blind_releases_are_exact_together() {
    assert!(assert_exact(&histories(Balance::Blind, 3, false, 30)) > 100);
}

/// People who move between parts keep their signature.
#[test]
fn blind_releases_within_parts_are_exact_together() {
    assert!(assert_exact(&histories(Balance::Blind, 2, true, 60)) > 40);
}

/// A known secret tells: lists stand in the order of the values. Where counterfeits stand is decided list by list. So it must be
/// decided by lot: to a reader who has the secret number, groups with counterfeits tell of values, also under blind balancing.
#[test]
fn a_known_secret_tells() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let told = (0..60).map(|_| any(Balance::Blind, 2, false, &mut rng)).find(|history| {
        let known = History { secret: Some(1), ..history.clone() };
        alone(|| !known.infer().exact && history.infer().exact)
    });
    assert!(told.is_some());
}

/// Returns two people; one leaves, and three come, none of them with the value a.
fn a_gap(balance: Balance) -> History {
    let places = (0..2).map(|_| (0..5).map(|person| vec![person]).collect()).collect();
    let method = MInvariance::of_cohort(2).with_balance(balance);
    let cohorts = vec![b"ab".to_vec(), b"bcd".to_vec()];
    History { present: vec![vec![0, 1], vec![0, 2, 3, 4]], places, ..History::of(method, cohorts) }
}

/// A counterfeit beside a gap that somebody could have filled makes certain. Somebody came who could have filled it if it were b: so it is a, and theirs is b.
#[test]
fn minimal_balancing_makes_certain() {
    let leaks = alone(|| a_gap(Balance::Minimal).infer());
    assert_eq!(leaks.most, Share::new(2, 1));
    assert!(alone(|| a_gap(Balance::Blind).infer()).exact);
    let found = histories(Balance::Minimal, 2, false, 40);
    let leaking = found.iter().filter(|(_, inferred)| !inferred.exact).count();
    println!("{leaking} of {} histories leak under minimal", found.len());
    assert!(leaking > 2, "{leaking}");
}

/// Two of three people have a: under 2-invariance one of them has padding beside them, or is left out.
#[test]
fn padding_and_withholding_make_certain() {
    let inferred = |on_ineligible| {
        let method = MInvariance::of_cohort(2).with_balance(Balance::Blind).with_on_ineligible(on_ineligible);
        let places = vec![(0..3).map(|person| vec![person]).collect()];
        let (cohorts, present) = (vec![b"aab".to_vec()], vec![vec![0, 1, 2]]);
        let history = History { present, places, ..History::of(method, cohorts) };
        alone(|| history.infer())
    };
    assert_eq!(inferred(OnIneligible::Counterfeit).most, Share::new(2, 1));
    assert_eq!(inferred(OnIneligible::Withhold).left_out, Share::new(1, 1));
}
