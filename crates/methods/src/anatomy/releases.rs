//! Several releases of close groups: exact posteriors of readers who see published rows only, and chains of releases against the definition.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::*;
use crate::choices::{Every, Share, alone, orders};
use crate::close::histories::{Entry, History, Publisher, Row, numbers, people, posterior, published, snapshot};

/// A published group: quasi-identifiers of its rows, its list of values, and its number of counterfeits.
type Group = (Vec<Vec<i32>>, Vec<i32>, i32);

/// Returns the groups that rows show.
fn groups(rows: &RecordBatch) -> Vec<Group> {
    let quasi: Vec<Vec<i32>> =
        (0..).map_while(|j| rows.column_by_name(&format!("q{j}")).map(|_| numbers(rows, &format!("q{j}")))).collect();
    let ids = rows.column_by_name("group_id").unwrap().as_primitive::<Int64Type>();
    let (sizes, counterfeits) = (numbers(rows, "group_size"), numbers(rows, "counterfeits"));
    let lists = rows.column_by_name("s").unwrap().as_list::<i32>();
    let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
    for row in 0..rows.num_rows() {
        let list = lists.value(row);
        let part = |column: usize| list.as_struct().column(column).as_primitive::<Int32Type>().values().to_vec();
        assert!(part(1).iter().all(|&count| count == 1) && part(0).len() == sizes[row] as usize);
        let group = groups.entry(ids.value(row)).or_insert_with(|| (Vec::new(), part(0), counterfeits[row]));
        assert_eq!((&group.1, group.2), (&part(0), counterfeits[row]));
        group.0.push(quasi.iter().map(|column| column[row]).collect());
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.0.sort_unstable());
    groups.sort_unstable();
    // Rows are of people only.
    assert!(groups.iter().all(|(rows, values, absent)| rows.len() + *absent as usize == values.len()));
    groups
}

fn close(l: usize, reader: Reader) -> Anatomy {
    Anatomy::new(l).with_groups(Grouping::Close).with_reader(reader)
}

/// Returns the outcomes of a history for a reader of the rows.
fn outcomes(history: &History, method: &Anatomy) -> BTreeMap<Vec<[Vec<Group>; 2]>, Vec<(Vec<i32>, Share)>> {
    let release = |microdata: Microdata, state: &State, every: Every| {
        let known = state.signatures().unwrap();
        let groups = method.draw_close(&microdata, known, &Monitor::default(), (&every, 1000)).unwrap();
        Release { microdata, groups, body: Body::Histogram, withheld: 0 }
    };
    let publisher = Publisher { form: Form::Anatomy, release: &release, told: &|_| Vec::new(), shown: &groups };
    history.outcomes(&publisher)
}

/// Counts of the cases that the checks of some histories saw.
#[derive(Debug, Default)]
struct Found {
    outcomes: usize,
    counterfeits: usize,
    several: usize,
    checked: usize,
}

impl Found {
    fn see(&mut self, seen: &[[Vec<Group>; 2]]) {
        self.outcomes += 1;
        self.counterfeits += usize::from(seen.iter().flat_map(|[_, groups]| groups).any(|group| group.2 > 0));
        self.several += usize::from(seen[0][1].len() > 1);
    }
}

/// Returns the values of a person's group, found by quasi-identifiers. People differ in these.
fn values_of<'a>(history: &History, seen: &'a [[Vec<Group>; 2]], person: i64) -> Option<&'a Vec<i32>> {
    history.present.iter().zip(seen).find_map(|(present, [_, groups])| {
        let (_, quasi) = present.iter().find(|(id, _)| *id == person)?;
        groups.iter().find(|(rows, ..)| rows.contains(quasi)).map(|(_, values, _)| values)
    })
}

/// Checks that a stranger gives each value at most `1/l`. In a group of `l` it is exactly that.
fn strangers(history: &History, l: usize, found: &mut Found) {
    let all: i64 = history.cohorts.iter().map(Vec::len).sum::<usize>() as i64;
    for (seen, worlds) in outcomes(history, &close(l, Reader::Stranger)) {
        found.see(&seen);
        for person in 0..all {
            let values = values_of(history, &seen, person).unwrap();
            for &value in values {
                let of = posterior(&worlds.iter(), person, value);
                let bound = Share::new(1, l as u128);
                assert!(!of.is_more_than(bound) && (values.len() > l || of == bound), "{history:?} {seen:?}: {person}");
                found.checked += 1;
            }
        }
    }
}

/// Checks that participants give the values that are left in a group the same probability. They know any two people.
fn participants(history: &History, l: usize, found: &mut Found) {
    let all: i64 = history.cohorts.iter().map(Vec::len).sum::<usize>() as i64;
    for (seen, worlds) in outcomes(history, &close(l, Reader::Participant)) {
        found.see(&seen);
        // Groups of one outcome can have the same values; who is in which is seen by quasi-identifiers.
        let together = |one: i64, other: i64| {
            history.present.iter().zip(&seen).any(|(present, [_, groups])| {
                let quasi = |person: i64| present.iter().find(|(id, _)| *id == person).map(|(_, quasi)| quasi);
                let (Some(one), Some(other)) = (quasi(one), quasi(other)) else { return false };
                groups.iter().any(|(rows, ..)| rows.contains(one) && rows.contains(other))
            })
        };
        for (one, other) in (0..all).flat_map(|one| (one..all).map(move |other| (one, other))) {
            let known: BTreeSet<[i32; 2]> =
                worlds.iter().map(|(world, _)| [world[one as usize], world[other as usize]]).collect();
            for values in known {
                let of = worlds.iter().filter(|(world, _)| [world[one as usize], world[other as usize]] == values);
                for person in (0..all).filter(|person| ![one, other].contains(person)) {
                    let signature = values_of(history, &seen, person).unwrap();
                    let taken: BTreeSet<i32> = [one, other]
                        .into_iter()
                        .zip(values)
                        .filter(|(known, _)| together(*known, person))
                        .map(|(_, value)| value)
                        .collect();
                    let left = Share::new(1, (signature.len() - taken.len()) as u128);
                    for &value in signature.iter().filter(|value| !taken.contains(value)) {
                        let likely = posterior(&of, person, value);
                        assert_eq!(likely, left, "{history:?} {seen:?}: {person}, of whom {one} and {other} are known");
                        found.checked += 1;
                    }
                }
            }
        }
    }
}

/// Draws a history of a few people who leave, return and move. All of them are in the first release after they come.
fn some_history(l: usize, releases: usize, rng: &mut ChaCha20Rng) -> History {
    loop {
        let (mut cohorts, mut present, mut all) = (Vec::new(), Vec::new(), 0_i64);
        for number in 0..releases {
            let size = if number == 0 { rng.random_range(l..=4) } else { rng.random_range(0..=2) };
            cohorts.push((0..size).map(|_| rng.random_range(0..2 * l as i32)).collect::<Vec<i32>>());
            let there = (0..all).filter(|_| rng.random_bool(0.6)).chain(all..all + size as i64);
            let there: Vec<i64> = there.collect();
            all += size as i64;
            let mut places: Vec<i32> = (0..9).collect();
            places.shuffle(rng);
            present.push(there.into_iter().zip(places).map(|(id, place)| (id, vec![place])).collect::<Vec<_>>());
        }
        let worlds: usize = cohorts.iter().map(|cohort| orders(cohort).len()).product();
        let eligible = |cohort: &Vec<i32>| {
            cohort.iter().all(|value| cohort.iter().filter(|other| *other == value).count() * l <= cohort.len())
        };
        if (2..=40).contains(&worlds) && present.iter().all(|there| !there.is_empty()) && cohorts.iter().all(eligible) {
            return History { cohorts, present };
        }
    }
}

fn look(seed: u64, counts: [usize; 2], check: fn(&History, usize, &mut Found)) -> Found {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut found = Found::default();
    for (releases, count) in [2, 3].into_iter().zip(counts) {
        for _ in 0..count {
            let l = *[2, 2, 3].choose(&mut rng).unwrap();
            let history = some_history(l, releases, &mut rng);
            alone(|| check(&history, l, &mut found));
        }
    }
    found
}

/// A stranger gains nothing when people leave and return, and others come.
#[test]
fn a_stranger_knows_nothing_of_several_releases() {
    let found = look(1, [20, 6], strangers);
    assert!(found.counterfeits > 30 && found.several > 0 && found.checked > 300, "{found:?}");
}

#[test]
fn a_participant_knows_nothing_of_several_releases() {
    let found = look(2, [20, 6], participants);
    assert!(found.counterfeits > 30 && found.several > 0 && found.checked > 300, "{found:?}");
}

/// Groups of the whole table, made anew of those present, tell: of two releases of three people, one of whom leaves.
#[test]
fn groups_of_the_whole_table_tell_over_two_releases() {
    let present = vec![people(&[(0, &[1]), (1, &[2]), (2, &[3])]), people(&[(0, &[1]), (1, &[2])])];
    let history = History { cohorts: vec![vec![0, 1, 2], vec![]], present };
    let release = |microdata: Microdata, _: &State, mut every: Every| {
        let mut rows: Vec<u32> = (0..microdata.rows as u32).collect();
        let mut rows = of_width!(&microdata.sensitive_codes, codes => assignment::by_value(&mut rows, codes));
        let mut groups = Anatomy::new(2).group(&microdata, &mut rows, &mut every).unwrap();
        groups.rings = (0..groups.len() as i64).collect();
        Release { microdata, groups, body: Body::Histogram, withheld: 0 }
    };
    let publisher = Publisher { form: Form::Anatomy, release: &release, told: &|_| Vec::new(), shown: &groups };
    let outcomes = alone(|| history.outcomes(&publisher));
    let certain =
        |worlds: &Vec<(Vec<i32>, Share)>| (0..3).any(|value| posterior(&worlds.iter(), 2, value) == Share::new(1, 1));
    assert!(outcomes.values().any(certain), "{outcomes:?}");
}

/// A publication, and what it was made of.
struct Series {
    method: Anatomy,
    known: Vec<Entry>,
}

impl Series {
    fn publish(&mut self, rows: &[Row], seed: u64) -> Result<RecordBatch> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (microdata, state, layout) = snapshot(rows, &self.known, [seed, 5])?;
        let release = self.method.anonymize(microdata, &state, &Monitor::default(), &mut rng)?;
        let (batch, new) = published(release, &state, &layout, Form::Anatomy, seed);
        self.known.extend(new);
        Ok(batch)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Rings stay in chains of releases. Each person present has one row, exact, beside all values of the ring. The order of arrival decides nothing.
    #[test]
    fn chains_of_releases(l in 2_usize..5, participant in any::<bool>(), turnover in 0.0..0.6, seed in any::<u64>()) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let reader = if participant { Reader::Participant } else { Reader::Stranger };
        let mut series = Series { method: close(l, reader), known: Vec::new() };
        let mut everybody: Vec<Row> = Vec::new();
        let mut values: BTreeMap<i64, Vec<i32>> = BTreeMap::new();
        for number in 0..4_u64 {
            let first = everybody.len();
            // As many of each value, so that those who come are eligible.
            let different = rng.random_range(l..l + 4) as i32;
            let come = if number == 0 { 4 } else { rng.random_range(0..3) } * different;
            everybody.extend((0..come).map(|i| (i64::from(first as i32 + i), vec![0, 0], i % different)));
            for row in &mut everybody {
                row.1 = vec![row.0 as i32, rng.random_range(0..40)];
            }
            let there: Vec<Row> =
                everybody.iter().filter(|row| row.0 >= first as i64 || !rng.random_bool(turnover)).cloned().collect();
            if there.is_empty() {
                continue;
            }
            let mut arrived = there.clone();
            arrived.shuffle(&mut rng);
            let mut again = Series { method: series.method.clone(), known: series.known.clone() };
            let batch = series.publish(&there, seed ^ number).unwrap();
            prop_assert_eq!(&alone(|| again.publish(&arrived, seed ^ number).unwrap()), &batch);
            prop_assert_eq!(batch.num_rows(), there.len());
            let mut released: Vec<Vec<i32>> = Vec::new();
            for (rows, list, counterfeits) in groups(&batch) {
                prop_assert!(list.len() >= l && list.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert_eq!(counterfeits as usize, list.len() - rows.len());
                for row in rows {
                    let person = i64::from(row[0]);
                    let known = values.entry(person).or_insert_with(|| list.clone());
                    prop_assert_eq!(&*known, &list);
                    prop_assert!(list.contains(&everybody[person as usize].2));
                    released.push(row);
                }
            }
            released.sort_unstable();
            let mut present: Vec<Vec<i32>> = there.iter().map(|row| row.1.clone()).collect();
            present.sort_unstable();
            prop_assert_eq!(released, present);
            prop_assert_eq!(series.known.len(), everybody.len());
        }
    }
}

/// People with changed values are refused. So are new people with too frequent a value, and a greater `l` than before.
#[test]
fn what_cannot_go_on_is_refused() {
    let rows = |values: &[i32]| -> Vec<Row> { (0..).zip(values).map(|(id, &value)| (id, vec![7], value)).collect() };
    let mut series = Series { method: close(2, Reader::Stranger), known: Vec::new() };
    series.publish(&rows(&[0, 1, 2, 0]), 1).unwrap();
    let refused = series.publish(&rows(&[0, 1, 2, 1]), 2).unwrap_err().to_string();
    assert!(
        refused.contains("1 people have another sensitive value than the one that they were published with"),
        "{refused}"
    );
    let refused = series.publish(&rows(&[0, 1, 2, 0, 5, 5, 6]), 2).unwrap_err().to_string();
    assert!(refused.contains("the 3 new rows are not 2-eligible"), "{refused}");
    series.method.l = 3;
    let refused = series.publish(&rows(&[0, 1, 2, 0]), 3).unwrap_err().to_string();
    assert!(refused.contains("l = 3 is more than the earlier releases were made with"), "{refused}");
}
