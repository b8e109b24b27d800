//! All that a reader can think of, for tiny releases: every way to give the released rows to people and counterfeits.
//!
//! X. Xiao and Y. Tao 2007, Definitions 10 to 14: the *reasonable surjections*. In every release that had a person, exactly one
//! row is the person's; it covers the quasi-identifiers; all of a person's rows carry one sensitive value; and of each group as
//! many rows are left over as it has counterfeits. All such ways are equally likely, and the *disclosure risk* of a person is the
//! share of them that gives the person the true value. With columns left out of a release (intervals that hold everything)
//! these are also the possible worlds of sequential releases (Shmueli and Tassa 2015, Definition 3.1), each weighted by the
//! ways to get it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use proptest::prelude::*;

use super::{AdversaryModel, BackgroundColumns, Disclosure, EvidenceBuilder, ReleaseColumns};

type Range = [i64; 2];

/// A row: intervals of the quasi-identifiers, sensitive value, group.
type Row = (Vec<Range>, &'static str, i64);

#[derive(Debug, Clone)]
struct World {
    /// Quasi-identifiers, and the releases that have the person, from 0.
    people: Vec<(Vec<i64>, Vec<usize>)>,
    /// Rows, and counterfeits by group.
    releases: Vec<(Vec<Row>, BTreeMap<i64, usize>)>,
}

struct Search<'a> {
    world: &'a World,
    value: Vec<Option<&'static str>>,
    used: Vec<Vec<bool>>,
    counts: Vec<BTreeMap<&'static str, u64>>,
}

impl World {
    /// Counts for each person the ways in which the person has each value.
    fn ways(&self) -> Vec<BTreeMap<&'static str, u64>> {
        let mut search = Search {
            world: self,
            value: vec![None; self.people.len()],
            used: self.releases.iter().map(|(rows, _)| vec![false; rows.len()]).collect(),
            counts: vec![BTreeMap::new(); self.people.len()],
        };
        search.place(0, 0);
        search.counts
    }

    /// Returns the disclosure risk: the share of ways that give a person this value.
    fn risk(&self, person: usize, value: &str) -> f64 {
        let ways = &self.ways()[person];
        ways.get(value).copied().unwrap_or(0) as f64 / ways.values().sum::<u64>() as f64
    }

    /// Returns the candidates of everybody that `Disclosure` leaves.
    fn remaining(&self) -> Vec<BTreeSet<String>> {
        let d = self.people[0].0.len();
        let field = |name: &str, data_type: DataType| FieldRef::new(Field::new(name, data_type, true));
        let quasi: Vec<FieldRef> = (0..d).map(|j| field(&format!("q{j}"), DataType::Int64)).collect();
        let mut builder =
            EvidenceBuilder::try_new(field("id", DataType::Int64), quasi, field("s", DataType::Utf8)).unwrap();
        let integers = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let known: Vec<(usize, &Vec<i64>, usize)> = (self.people.iter().enumerate())
            .flat_map(|(person, (quasi, present))| present.iter().map(move |&release| (person, quasi, release)))
            .collect();
        let mut columns = vec![integers(known.iter().map(|row| row.0 as i64).collect())];
        columns.extend((0..d).map(|j| integers(known.iter().map(|row| row.1[j]).collect())));
        columns.push(integers(known.iter().map(|row| row.2 as i64 + 1).collect()));
        let batch = |columns: Vec<ArrayRef>| {
            RecordBatch::try_from_iter(columns.into_iter().enumerate().map(|(i, column)| (i.to_string(), column)))
                .unwrap()
        };
        builder.append_known(&batch(columns), BackgroundColumns { sensitive: false, release: true }).unwrap();
        for (rows, _) in &self.releases {
            builder.begin_release(ReleaseColumns { group: true, id: false });
            let mut columns = Vec::new();
            for j in 0..d {
                columns.extend((0..2).map(|end| integers(rows.iter().map(|row| row.0[j][end]).collect())));
            }
            columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1))));
            columns.push(integers(rows.iter().map(|row| row.2).collect()));
            builder.append_release(&batch(columns)).unwrap();
        }
        let disclosure = Disclosure::try_new(builder.finish().unwrap(), AdversaryModel::Cover).unwrap();
        let values: Vec<String> = {
            let values = datafusion::arrow::compute::cast(disclosure.evidence().values(), &DataType::Utf8).unwrap();
            values
                .as_any()
                .downcast_ref::<StringArray>()
                .unwrap()
                .iter()
                .map(|value| value.unwrap().to_owned())
                .collect()
        };
        let mut remaining = vec![BTreeSet::new(); self.people.len()];
        for findings in disclosure.all() {
            for (place, &person) in findings.people.iter().enumerate() {
                remaining[person as usize] =
                    findings.remaining.get(place).iter().map(|&value| values[value as usize].clone()).collect();
            }
        }
        remaining
    }
}

impl Search<'_> {
    fn place(&mut self, release: usize, person: usize) {
        let world = self.world;
        let Some((rows, counterfeits)) = world.releases.get(release) else {
            for (value, counts) in self.value.iter().zip(&mut self.counts) {
                value.iter().for_each(|value| *counts.entry(value).or_default() += 1);
            }
            return;
        };
        let Some((quasi, present)) = world.people.get(person) else {
            let mut left: BTreeMap<i64, usize> = BTreeMap::new();
            let unused = rows.iter().zip(&self.used[release]).filter(|(_, used)| !**used);
            unused.for_each(|(row, _)| *left.entry(row.2).or_default() += 1);
            if left.iter().all(|(group, count)| counterfeits.get(group) == Some(count))
                && left.len() == counterfeits.len()
            {
                self.place(release + 1, 0);
            }
            return;
        };
        if !present.contains(&release) {
            return self.place(release, person + 1);
        }
        for (number, (ranges, value, _)) in rows.iter().enumerate() {
            let covers = ranges.iter().zip(quasi).all(|([lo, hi], q)| lo <= q && q <= hi);
            if self.used[release][number] || !covers || self.value[person].is_some_and(|known| known != *value) {
                continue;
            }
            let before = self.value[person].replace(value);
            self.used[release][number] = true;
            self.place(release, person + 1);
            self.used[release][number] = false;
            self.value[person] = before;
        }
    }
}

const D: &str = "dyspepsia";
const B: &str = "bronchitis";
const F: &str = "flu";
const G: &str = "gastritis";

/// Returns a group of the paper's tables, in thousands of its zip codes.
fn group(number: i64, age: Range, zip: Range, values: &[&'static str]) -> Vec<Row> {
    values.iter().map(|value| (vec![age, zip], *value, number)).collect()
}

/// Makes the hospital of Bob, Alice, Andy, .. and of the people of a second release.
fn hospital(second: &[Vec<Row>], counterfeits: &[(i64, usize)]) -> World {
    let quasi = [
        (21, 12),
        (22, 14),
        (24, 18),
        (23, 25),
        (41, 20),
        (36, 27),
        (37, 33),
        (40, 35),
        (43, 26),
        (52, 33),
        (56, 34),
        (25, 21),
        (46, 30),
        (54, 31),
        (60, 44),
        (65, 36),
    ];
    let present = |person: usize| match person {
        0 | 3 | 4 | 6 | 8 | 10 => vec![0, 1],
        11.. => vec![1],
        _ => vec![0],
    };
    let first = [
        group(1, [21, 22], [12, 14], &[D, B]),
        group(2, [23, 24], [18, 25], &[F, G]),
        group(3, [36, 41], [20, 27], &[F, G]),
        group(4, [37, 43], [26, 35], &[D, F, G]),
        group(5, [52, 56], [33, 34], &[D, G]),
    ];
    World {
        people: quasi.iter().enumerate().map(|(i, &(age, zip))| (vec![age, zip], present(i))).collect(),
        releases: vec![(first.concat(), BTreeMap::new()), (second.concat(), counterfeits.iter().copied().collect())],
    }
}

const TRUTH: [&str; 11] = [D, B, F, G, F, G, D, F, G, D, G];

/// The paper's Table 2b, without memory: Bob has dyspepsia in every way to explain both releases.
#[test]
fn table_2b_discloses_bob_in_every_world() {
    let world = hospital(
        &[
            group(1, [21, 23], [12, 25], &[D, G]),
            group(2, [25, 43], [21, 33], &[F, D, G]),
            group(3, [41, 46], [20, 30], &[F, G]),
            group(4, [54, 56], [31, 34], &[D, G]),
            group(5, [60, 65], [36, 44], &[G, F]),
        ],
        &[],
    );
    assert_eq!(world.risk(0, D), 1.0);
    assert_eq!(world.remaining()[0], BTreeSet::from([D.to_owned()]));
}

/// Its Table 3, with two counterfeits: nobody's risk is above 1/2.
#[test]
fn table_3_keeps_everybody_at_a_half() {
    let world = hospital(
        &[
            group(1, [21, 22], [12, 14], &[D, B]),
            group(2, [23, 25], [21, 25], &[G, F]),
            group(3, [37, 43], [26, 33], &[D, F, G]),
            group(4, [41, 46], [20, 30], &[F, G]),
            group(5, [54, 56], [31, 34], &[D, G]),
            group(6, [60, 65], [36, 44], &[G, F]),
        ],
        &[(1, 1), (3, 1)],
    );
    let ways = world.ways();
    assert!(ways.iter().all(|ways| ways.values().sum::<u64>() > 0), "the truth is one of them");
    for (person, value) in TRUTH.iter().enumerate() {
        assert!(world.risk(person, value) <= 0.5 + 1e-12, "person {person}");
    }
    for (ways, remaining) in ways.iter().zip(world.remaining()) {
        assert!(ways.keys().all(|value| remaining.contains(*value)), "what is possible is never ruled out");
    }
}

/// Sequential releases (Example 1.1): two columns each, both 2-diverse; together they disclose everybody.
#[test]
fn sequential_releases_disclose_everybody() {
    // Alice, Bob, Carol, David: age, and 0 for female.
    let people = [(20, 0), (20, 1), (30, 0), (30, 1)].map(|(age, sex)| (vec![age, sex], vec![0, 1])).to_vec();
    let any = [0, 99];
    let row = |age: Range, sex: Range, value, number| (vec![age, sex], value, number);
    let by_age = vec![
        row([20, 20], any, "measles", 1),
        row([20, 20], any, "hepatitis", 2),
        row([30, 30], any, "flu", 3),
        row([30, 30], any, "angina", 4),
    ];
    let by_sex = vec![
        row(any, [0, 0], "measles", 1),
        row(any, [1, 1], "hepatitis", 2),
        row(any, [0, 0], "flu", 3),
        row(any, [1, 1], "angina", 4),
    ];
    let alone = World { people: people.clone(), releases: vec![(by_age.clone(), BTreeMap::new())] };
    assert!(alone.people.iter().enumerate().all(|(person, _)| alone.ways()[person].len() == 2));
    let both = World { people, releases: vec![(by_age, BTreeMap::new()), (by_sex, BTreeMap::new())] };
    assert!(both.ways().iter().all(|ways| ways.len() == 1));
    assert!(both.remaining().iter().all(|values| values.len() == 1), "covers find it, too");
}

/// Example 4.2: releases generalized to agree with a second world leave everybody two values.
#[test]
fn releases_that_agree_with_two_worlds_leave_two_values() {
    // r = 0, s = 1, t = 2; x = 0, y = 1, z = 2.
    let people = [(0, 0), (0, 1), (1, 1), (1, 0), (2, 2)].map(|(a1, a2)| (vec![a1, a2], vec![0, 1])).to_vec();
    let any = [0, 9];
    let rows = |column: usize, released: [(Range, &'static str); 5]| -> (Vec<Row>, BTreeMap<i64, usize>) {
        let ranges = |range: Range| if column == 0 { vec![range, any] } else { vec![any, range] };
        let rows = released.into_iter().zip(0..).map(|((range, value), number)| (ranges(range), value, number));
        (rows.collect(), BTreeMap::new())
    };
    // Sets of two values that are no neighbours are ranges that hold the value between: a reader of ranges knows less.
    let first = rows(0, [([0, 2], "1"), ([0, 0], "2"), ([1, 1], "3"), ([1, 1], "2"), ([0, 2], "3")]);
    let second = rows(1, [([0, 2], "1"), ([1, 1], "2"), ([1, 1], "3"), ([0, 0], "2"), ([0, 2], "3")]);
    let world = World { people, releases: vec![first, second] };
    let ways = world.ways();
    let truth = ["1", "2", "3", "2", "3"];
    let other = ["2", "3", "2", "3", "1"];
    for person in 0..5 {
        assert!(ways[person].contains_key(truth[person]) && ways[person].contains_key(other[person]), "{ways:?}");
    }
}

/// Returns the groups of m values that keep their members and their values; who leaves is replaced by a counterfeit. Places are near each
/// other, so that boxes overlap.
fn invariant(m: usize) -> impl Strategy<Value = World> {
    let values = [D, B, F, G];
    let member = (0..6_i64, prop::collection::vec(any::<bool>(), 2));
    let groups = prop::collection::vec(prop::collection::vec(member, m), 1..4);
    let worlds = (groups, prop::sample::subsequence(values.to_vec(), m)).prop_map(move |(groups, signature)| {
        let mut world = World { people: Vec::new(), releases: vec![(Vec::new(), BTreeMap::new()); 2] };
        for (number, members) in (0..).zip(groups) {
            for release in 0..2 {
                let there: Vec<i64> =
                    members.iter().filter(|(_, present)| present[release]).map(|(place, _)| *place).collect();
                let (Some(&lo), Some(&hi)) = (there.iter().min(), there.iter().max()) else { continue };
                let (rows, counterfeits) = &mut world.releases[release];
                rows.extend(signature.iter().map(|value| (vec![[lo, hi]], *value, number)));
                if there.len() < m {
                    counterfeits.insert(number, m - there.len());
                }
            }
            world.people.extend(
                members
                    .into_iter()
                    // People without a release have no code; the others are numbered as here.
                    .filter(|(_, present)| present.contains(&true))
                    .map(|(place, present)| (vec![place], (0..2).filter(|&release| present[release]).collect())),
            );
        }
        world
    });
    worlds.prop_filter("nobody is in any release", |world| !world.people.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Lemma 3 in full: of m-invariant releases, no value of anybody has more than 1/m of the ways. And what is possible at all is
    /// never ruled out by the candidate sets.
    #[test]
    fn m_invariant_releases_keep_everybody_below_one_in_m(world in (2..4_usize).prop_flat_map(|m| (Just(m), invariant(m)))) {
        let (m, world) = world;
        let remaining = world.remaining();
        for (person, ways) in world.ways().iter().enumerate().filter(|(_, ways)| !ways.is_empty()) {
            let total: u64 = ways.values().sum();
            for (value, &count) in ways {
                prop_assert!(count as f64 <= total as f64 / m as f64 + 1e-9, "person {person}: {ways:?}");
                prop_assert!(remaining[person].contains(*value));
            }
        }
    }
}
