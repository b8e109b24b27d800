//! Chains of releases by the method itself, and what a reader believes of them: as when everything is gone through one by one.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Int32Array, ListBuilder, StringArray, StringBuilder};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::methods::m_distinct::{MDistinct, Possible};
use crate::methods::{SnapshotBuilder, StateKind};
use crate::microdata::Layout;
use crate::release::LABEL;

/// Values, two and two of a class, and probabilities of one becoming the other.
const LAW: [(&str, &str, f64); 6] =
    [("a", "A", 0.05), ("A", "a", 0.3), ("b", "B", 0.5), ("B", "b", 0.1), ("c", "C", 0.25), ("C", "c", 0.7)];

fn step(from: &str, to: &str) -> f64 {
    let (_, other, probability) = LAW.iter().find(|change| change.0 == from).unwrap();
    if from == to {
        1.0 - probability
    } else if to == *other {
        *probability
    } else {
        0.0
    }
}

/// Computes the probability of a value after so many releases, over all ways.
fn reached(from: &str, to: &str, releases: u64) -> f64 {
    match releases {
        0 => f64::from(u8::from(from == to)),
        _ => LAW.iter().map(|(next, ..)| step(from, next) * reached(next, to, releases - 1)).sum(),
    }
}

/// Belief about a person after a release: its number, the group's values in order, and their probabilities.
type Known = (u64, Vec<String>, Vec<f64>);

/// A publication of people `0..`, by hand.
struct Chain {
    method: AnyMethod,
    rng: ChaCha20Rng,
    /// Everybody's value, whether they are in the release or not.
    values: Vec<String>,
    groups: BTreeMap<i64, (Vec<String>, usize)>,
    enumerated: BTreeMap<i64, Known>,
    file: Vec<RecordBatch>,
    number: u64,
}

impl Chain {
    fn new(people: usize, seed: u64) -> Self {
        let values = (0..people).map(|person| LAW[person % LAW.len()].0.to_owned()).collect();
        let (groups, enumerated) = (BTreeMap::new(), BTreeMap::new());
        let (method, rng) = (AnyMethod::MDistinct(MDistinct::new(2)), ChaCha20Rng::seed_from_u64(seed));
        Self { method, rng, values, groups, enumerated, file: Vec::new(), number: 0 }
    }

    fn change(&mut self) {
        for value in &mut self.values {
            let (_, other, probability) = LAW.iter().find(|change| change.0 == value).unwrap();
            if self.rng.random_bool(*probability) {
                *value = (*other).to_owned();
            }
        }
    }

    fn snapshot(&self, people: &[i64], weighted: bool) -> SnapshotBuilder {
        let layout = Layout {
            identifier: Some(Arc::new(Field::new("id", DataType::Int64, true))),
            quasi: vec![Arc::new(Field::new("age", DataType::Int32, true))],
            sensitive: Some(Arc::new(Field::new("value", DataType::Utf8, true))),
            within: None,
            other: Vec::new(),
            insensitive: Vec::new(),
        };
        let schema = Arc::new(Schema::new(layout.fields().cloned().collect::<Vec<_>>()));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(people.to_vec())),
            Arc::new(people.iter().map(|person| Some((person * 37 % 50) as i32)).collect::<Int32Array>()),
            Arc::new(people.iter().map(|person| Some(self.values[*person as usize].as_str())).collect::<StringArray>()),
        ];
        let mut builder = SnapshotBuilder::try_new(layout, Some(StateKind::LabelledSignatures)).unwrap();
        builder.microdata.append(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
        let mut signatures = ListBuilder::new(StringBuilder::new());
        self.groups.values().for_each(|(values, _)| signatures.append_value(values.iter().map(Some)));
        let columns: [(&str, ArrayRef); 3] = [
            ("id", Arc::new(self.groups.keys().copied().collect::<Int64Array>())),
            ("signature", Arc::new(signatures.finish())),
            (LABEL, Arc::new(self.groups.values().map(|(_, label)| Some(*label as i32 + 1)).collect::<Int32Array>())),
        ];
        builder.append_previous(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        let text = |of: fn(&(&'static str, &'static str, f64)) -> &'static str| -> ArrayRef {
            Arc::new(LAW.iter().map(|change| Some(of(change))).collect::<StringArray>())
        };
        let mut columns = vec![("from", text(|change| change.0)), ("to", text(|change| change.1))];
        if weighted {
            columns.push(("probability", Arc::new(LAW.iter().map(|change| Some(change.2)).collect::<Float64Array>())));
        }
        builder.microdata.append_updates(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        builder
    }

    fn made(&mut self, people: &[i64], weighted: bool) -> (Release, State) {
        let (microdata, state) = self.snapshot(people, weighted).finish([7, self.number]).unwrap();
        let release = self.method.release(microdata, &state, &Monitor::default(), &mut self.rng).unwrap();
        (release, state)
    }

    /// Returns the next release: what is found, and the highest share of all that are enumerated.
    fn publish(&mut self, people: &[i64]) -> (Believed, f64) {
        self.change();
        self.number += 1;
        let (release, state) = self.made(people, true);
        let before = BeliefsStep::new(self.file.clone(), self.number);
        let found = before.take(&release, &state, [1, 2], &Monitor::default()).unwrap().unwrap();
        self.file = decoded(&found);
        (found, self.enumerate(&release))
    }

    /// Goes through all ways to give out the values of each group.
    fn enumerate(&mut self, release: &Release) -> f64 {
        let ids = &release.microdata.people.as_ref().unwrap();
        let value = |code: u32| {
            release.microdata.sensitive().unwrap().domain.values().as_string_view().value(code as usize).to_owned()
        };
        let mut highest: f64 = 0.0;
        for group in 0..release.groups.len() {
            let range = release.groups.range(group);
            let values: Vec<String> = release.groups.sensitive[range.clone()].iter().map(|&code| value(code)).collect();
            let members = release.groups.members[range].iter().enumerate().filter(|(_, row)| **row != COUNTERFEIT);
            let members: Vec<(i64, usize)> = members
                .map(|(place, &row)| {
                    let arrival = ids.arrival[row as usize] as usize;
                    (ids.identifiers.as_primitive::<Int64Type>().value(arrival), place)
                })
                .collect();
            let mut shares = vec![vec![0.0; values.len()]; members.len()];
            for way in 0..values.len().pow(members.len() as u32) {
                let places: Vec<usize> =
                    (0..members.len()).map(|member| way / values.len().pow(member as u32) % values.len()).collect();
                if (1..places.len()).any(|member| places[..member].contains(&places[member])) {
                    continue;
                }
                let weight: f64 = members
                    .iter()
                    .zip(&places)
                    .map(|((person, _), &place)| {
                        self.enumerated.get(person).map_or(1.0, |(last, before, shares)| {
                            let from = before.iter().zip(shares);
                            from.map(|(from, share)| share * reached(from, &values[place], self.number - last)).sum()
                        })
                    })
                    .product();
                places.iter().zip(&mut shares).for_each(|(&place, shares)| shares[place] += weight);
            }
            for ((person, place), mut shares) in members.into_iter().zip(shares) {
                let total: f64 = shares.iter().sum();
                shares.iter_mut().for_each(|share| *share /= total);
                highest = shares.iter().copied().fold(highest, f64::max);
                self.enumerated.insert(person, (self.number, values.clone(), shares));
                self.groups.insert(person, (values.clone(), place));
            }
        }
        highest
    }
}

fn decoded(believed: &Believed) -> Vec<RecordBatch> {
    let contents = bytes::Bytes::from(believed.file.contents.clone());
    ParquetRecordBatchReaderBuilder::try_new(contents).unwrap().build().unwrap().map(Result::unwrap).collect()
}

/// Reads identifier, release and shares of everybody in a file.
fn entries(file: &[RecordBatch]) -> BTreeMap<i64, (u64, Vec<f64>)> {
    let mut entries = BTreeMap::new();
    for batch in file {
        let (ids, releases) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            let shares = batch.column(2).as_list::<i32>().value(row).as_primitive::<Float64Type>().values().to_vec();
            assert!(entries.insert(ids.value(row), (releases.value(row) as u64, shares)).is_none());
        }
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// People come, are absent for some releases, and return.
    #[test]
    fn it_is_what_enumeration_says(
        releases in prop::collection::vec(prop::collection::vec(any::<bool>(), 12), 2..5),
        seed in any::<u64>(),
    ) {
        let mut chain = Chain::new(12, seed);
        for (number, there) in releases.iter().enumerate() {
            // The first release has as many of each class, which newcomers must be.
            let people: Vec<i64> = (0..12).filter(|&person| match number {
                0 => person < 6,
                1 => person >= 6 || there[person as usize],
                _ => there[person as usize] || person < 2,
            }).collect();
            let (found, highest) = chain.publish(&people);
            prop_assert!((found.record.achieved.unwrap() - highest).abs() < 1e-9, "{:?} {highest}", found.record.achieved);
            let entries = entries(&chain.file);
            prop_assert_eq!(entries.len(), chain.enumerated.len());
            for (person, (last, _, shares)) in &chain.enumerated {
                let (release, found) = &entries[person];
                prop_assert_eq!(release, last);
                prop_assert!(shares.len() == found.len() && shares.iter().zip(found).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}

#[test]
fn the_number_of_threads_makes_no_difference() {
    let people: Vec<i64> = (0..1200).collect();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut chain = Chain::new(1200, 5);
            chain.publish(&people);
            let (found, _) = chain.publish(&people[..900]);
            (found.file.contents, found.record.achieved)
        })
    };
    assert!(with(1) == with(3));
}

#[test]
fn without_probabilities_nothing_is_known() {
    let mut chain = Chain::new(6, 1);
    let people: Vec<i64> = (0..6).collect();
    let (release, state) = chain.made(&people, false);
    let before = BeliefsStep::new(Vec::new(), 1);
    assert!(before.take(&release, &state, [1, 2], &Monitor::default()).unwrap().is_none());
    let found = BeliefsStep::is_of(&AnyMethod::MDistinct(MDistinct::new(2).with_exact(true)));
    assert!(!found && BeliefsStep::is_of(&chain.method));
    assert!(!BeliefsStep::is_of(&AnyMethod::MDistinct(MDistinct::new(2).with_updates(Possible::Any))));
}

#[test]
fn memory_is_asked_for() {
    let mut chain = Chain::new(6, 1);
    chain.number = 1;
    let (release, state) = chain.made(&(0..6).collect::<Vec<_>>(), true);
    let monitor = Monitor::with_budget(|_| Err(Error::Cancelled));
    assert!(BeliefsStep::new(Vec::new(), 1).take(&release, &state, [1, 2], &monitor).is_err());
}

/// A file of other people than the ledger's is not taken for one of strangers.
#[test]
fn other_people_are_not_taken_for_strangers() {
    let mut chain = Chain::new(6, 1);
    let people: Vec<i64> = (0..6).collect();
    chain.publish(&people);
    chain.number += 1;
    let (release, state) = chain.made(&people, true);
    let before = BeliefsStep::new(chain.file.iter().map(|batch| batch.slice(0, 2)).collect(), 2);
    assert!(before.take(&release, &state, [1, 2], &Monitor::default()).is_err());
}
