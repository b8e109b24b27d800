//! Against every assignment of small histories, one by one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::Update;
use super::super::evidence::NONE;
use super::*;
use crate::joint::model::{Slot, Version};

/// People with their groups and values, rows of nobody, and the slots of each group.
#[derive(Debug, Clone)]
struct History {
    updates: Vec<(u32, u32)>,
    values: u32,
    /// Release, group's values, members.
    groups: Vec<(u64, Vec<u32>, Vec<u32>)>,
}

impl History {
    fn relation(&self) -> Updates {
        let rows: Vec<Update> = self.updates.iter().map(|&(from, to)| Update::possible(from, to)).collect();
        Updates::try_new(self.values as usize, &rows).unwrap()
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        for (release, values, members) in &self.groups {
            let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
            values.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
            let pool = model.add_pool(counts.into_iter().map(|(value, capacity)| Slot { value, capacity }));
            for &person in members {
                let slots = model.pools[pool as usize].slots.clone().collect();
                // Hints may be right or wrong.
                let hint = values.get(person as usize).filter(|_| person % 2 == 1).copied().unwrap_or(NONE);
                model.versions.push(Version { person, release: *release, time: *release, pool, slots, hint });
            }
        }
        model.finish();
        model
    }

    fn infer(&self) -> Joint {
        let limits = Limits { budget: BUDGET, check: &|_| Ok(()) };
        Joint::infer(self.model(), &self.relation(), limits).unwrap()
    }
}

/// Finds the possible values of each version by trying everything.
fn by_enumeration(model: &Model, updates: &Updates) -> Vec<BTreeSet<u32>> {
    struct Search<'a> {
        model: &'a Model,
        reach: Reach<'a>,
        left: Vec<u32>,
        taken: Vec<u32>,
        possible: Vec<BTreeSet<u32>>,
    }
    impl Search<'_> {
        fn place(&mut self, version: usize) {
            let Some(own) = self.model.versions.get(version) else {
                for (possible, &slot) in self.possible.iter_mut().zip(&self.taken) {
                    possible.insert(self.model.slots[slot as usize].value);
                }
                return;
            };
            for &slot in &own.slots {
                let value = self.model.slots[slot as usize].value;
                if self.left[slot as usize] == 0 {
                    continue;
                }
                if let Some(before) = version.checked_sub(1).map(|before| &self.model.versions[before])
                    && before.person == own.person
                {
                    let steps = own.release - before.release;
                    let from = self.model.slots[self.taken[version - 1] as usize].value;
                    self.reach.prepare(from, steps);
                    if !self.reach.of(&from, steps).contains(&value) {
                        continue;
                    }
                }
                self.left[slot as usize] -= 1;
                self.taken.push(slot);
                self.place(version + 1);
                self.taken.pop();
                self.left[slot as usize] += 1;
            }
        }
    }
    let mut search = Search {
        model,
        reach: Reach::new(updates),
        left: model.slots.iter().map(|slot| slot.capacity).collect(),
        taken: Vec::new(),
        possible: vec![BTreeSet::new(); model.versions.len()],
    };
    search.place(0);
    search.possible
}

/// Generates up to six people with successive values, in random groups, with counterfeits.
fn histories() -> impl Strategy<Value = History> {
    let pairs = prop_oneof![
        2 => Just(Vec::new()),
        3 => prop::collection::vec((0..4_u32, 0..4_u32), 1..7),
    ];
    let choices = prop::collection::vec((any::<u32>(), any::<u32>(), 0..5_u32), 6 * 4);
    (pairs, 1..5_u64, 2..7_u32, 1..4_u32, choices, any::<u64>()).prop_map(
        |(updates, releases, people, groups, choices, mut lot)| {
            let mut history = History { updates, values: 4, groups: Vec::new() };
            let relation = history.relation();
            let mut value: Vec<u32> = (0..people).map(|person| choices[person as usize].0 % 4).collect();
            for release in 1..=releases {
                let mut made: BTreeMap<u32, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
                for person in 0..people {
                    let (a, b, absent) = choices[(release as usize - 1) * 6 + person as usize];
                    if release > 1 {
                        let next: Vec<u32> = relation.cus(value[person as usize]).map(|(to, _)| to).collect();
                        value[person as usize] = next[a as usize % next.len()];
                    }
                    if absent > 0 {
                        let (values, members) = made.entry(b % groups).or_default();
                        values.push(value[person as usize]);
                        members.push(person);
                    }
                }
                for (values, members) in made.into_values() {
                    let mut values = values;
                    lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if (lot >> 33) % 3 == 0 {
                        values.push((lot >> 40) as u32 % 4);
                    }
                    history.groups.push((release, values, members));
                }
            }
            history
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn exactly_what_some_assignment_has(history in histories()) {
        let joint = history.infer();
        let model = history.model();
        let expected = by_enumeration(&model, &history.relation());
        for (version, expected) in model.versions.iter().zip(expected) {
            let [possible, undecided] = joint.of(version.person, version.release).unwrap();
            prop_assert!(undecided.is_empty());
            prop_assert_eq!(possible.iter().copied().collect::<BTreeSet<u32>>(), expected, "{:?}", version);
        }
    }

    /// A row is taken away from a group: either there is another explanation, or nothing in the component is possible.
    #[test]
    fn contradictions_leave_nothing(history in histories(), which in any::<prop::sample::Index>()) {
        let mut history = history;
        prop_assume!(!history.groups.is_empty());
        let place = which.index(history.groups.len());
        history.groups[place].1.pop();
        let (joint, model) = (history.infer(), history.model());
        for (component, places) in model.clone().components() {
            let expected = by_enumeration(&component, &history.relation());
            for (place, expected) in places.into_iter().zip(expected) {
                let version = &model.versions[place as usize];
                let [possible, _] = joint.of(version.person, version.release).unwrap();
                prop_assert_eq!(possible.iter().copied().collect::<BTreeSet<u32>>(), expected, "{:?}", version);
            }
        }
    }
}

/// With any change possible releases say nothing of each other.
#[test]
fn any_update_leaves_releases_alone() {
    let groups = vec![(1, vec![0, 1], vec![0, 1]), (2, vec![1, 2], vec![0, 1]), (3, vec![3], vec![0])];
    let history = History { updates: Vec::new(), values: 4, groups };
    let limits = Limits { budget: 0, check: &|_| Ok(()) };
    let joint = Joint::infer(history.model(), &Updates::any(4), limits).unwrap();
    assert_eq!(joint.of(1, 1).unwrap(), [&[0, 1][..], &[]]);
    assert_eq!(joint.of(0, 2).unwrap(), [&[1, 2][..], &[]]);
    assert_eq!(joint.of(0, 3).unwrap(), [&[3][..], &[]]);
    // Two people and one row: nothing explains that.
    let groups = vec![(1, vec![0, 1], vec![0, 1]), (2, vec![1], vec![0, 1])];
    let history = History { updates: Vec::new(), values: 4, groups };
    let joint = Joint::infer(history.model(), &Updates::any(4), limits).unwrap();
    assert_eq!(joint.of(0, 1).unwrap(), [&[][..] as &[u32], &[]]);
}

/// People who meet in groups of two again and again: chains of exchanges, and the solver without them.
#[test]
fn the_solver_is_asked_and_says_when_it_gives_up() {
    // Values 0 to 3 can all become each other, but 0 and 1 not 2 and 3; the groups of six people change.
    let updates =
        (0..2).flat_map(|a| (0..2).map(move |b| (a, b))).chain((2..4).flat_map(|a| (2..4).map(move |b| (a, b))));
    let groups =
        |release: u64, pairs: [[u32; 2]; 3]| pairs.map(|pair| (release, vec![(release % 2) as u32, 2], pair.to_vec()));
    let history = History {
        updates: updates.collect(),
        values: 4,
        groups: [
            groups(1, [[0, 1], [2, 3], [4, 5]]),
            groups(2, [[1, 2], [3, 4], [5, 0]]),
            groups(3, [[0, 3], [1, 4], [2, 5]]),
        ]
        .concat(),
    };
    let joint = history.infer();
    let tally = joint.tally();
    assert_eq!((tally.components, tally.proven, tally.undecided), (1, [1, 18], 0));
    assert!(tally.questions > 0 && tally.decisions > 0, "{tally:?}");
    for person in 0..6 {
        for release in 1..4 {
            assert_eq!(joint.of(person, release).unwrap()[0].len(), 2);
        }
    }
    assert_eq!(joint.of(0, 4), None);
    // Without a budget nothing is claimed, neither way.
    let limits = Limits { budget: 0, check: &|_| Ok(()) };
    let joint = Joint::infer(history.model(), &history.relation(), limits).unwrap();
    assert_eq!(joint.tally().undecided, 1);
    for person in 0..6 {
        let [possible, undecided] = joint.of(person, 1).unwrap();
        assert_eq!((possible, undecided), (&[][..], &[1, 2][..]));
    }
    // A query that was cancelled.
    let limits = Limits { budget: BUDGET, check: &|_| Err(crate::error::Error::Cancelled) };
    assert!(Joint::infer(history.model(), &history.relation(), limits).is_err());
}

/// A release alone needs matchings only, however large the groups.
#[test]
fn one_release_needs_no_solver() {
    // A group of 300 people with 100 values, three rows each: whoever is told is out, and nothing else follows.
    let values: Vec<u32> = (0..300).map(|row| row % 100).collect();
    let history = History { updates: Vec::new(), values: 100, groups: vec![(1, values, (0..300).collect())] };
    let mut model = history.model();
    for person in 0..3 {
        model.versions[person].slots.retain(|&slot| slot == 7);
    }
    let limits = Limits { budget: 0, check: &|_| Ok(()) };
    let joint = Joint::infer(model, &history.relation(), limits).unwrap();
    assert_eq!(joint.tally().proven, [0, 0]);
    assert_eq!(joint.of(2, 1).unwrap(), [&[7][..], &[]]);
    for person in 3..300 {
        let [possible, undecided] = joint.of(person, 1).unwrap();
        assert!(possible.len() == 99 && !possible.contains(&7) && undecided.is_empty());
    }
}

/// Hall's condition over two releases: three people with two values among them take both from everybody else.
#[test]
fn people_together_tell_what_nobody_tells_alone() {
    // Release 1: {a, b} and {b, a} for 0 and 1. Release 2: 0, 1, 2 with a, b, c: 2 can only have c.
    let history = History {
        updates: Vec::new(),
        values: 4,
        groups: vec![(1, vec![0, 1], vec![0, 1]), (1, vec![0, 2, 3], vec![2, 3]), (2, vec![0, 1, 2], vec![0, 1, 2])],
    };
    let joint = history.infer();
    assert_eq!(joint.of(2, 1).unwrap()[0], [2]);
    assert_eq!(joint.of(2, 2).unwrap()[0], [2]);
    assert_eq!(joint.of(3, 1).unwrap()[0], [0, 3]);
    assert_eq!(joint.of(0, 2).unwrap()[0], [0, 1]);
}
