use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use proptest::prelude::*;

use super::super::super::{BackgroundColumns, Evidence, EvidenceBuilder, ReleaseColumns};
use super::*;

/// A row of a release: ends of both quasi-identifiers, sensitive value.
type Row = ([[i64; 2]; 2], i64);

/// People, releases with groups of rows, and sets of releases, which may be repeated. Each person has
/// quasi-identifiers in every release, a value, and a set of releases.
#[derive(Debug, Clone)]
struct History {
    people: Vec<(Vec<[i64; 2]>, i64, usize)>,
    releases: Vec<Vec<Vec<Row>>>,
    sets: Vec<Vec<bool>>,
    times: usize,
}

const PEOPLE: usize = 700;

fn history() -> impl Strategy<Value = History> {
    (1..4_usize, 2..7_i64, 1..6_i64, prop::sample::select(vec![1, 1, 2, 40]), any::<bool>()).prop_flat_map(
        |(releases, codes, values, times, moving)| {
            let range = prop::array::uniform2((0..codes, 0..codes).prop_map(|(a, b)| [a.min(b), a.max(b)]));
            let row = (range, 0..values);
            let group = prop::collection::vec(row, 1..6);
            let release = prop::collection::vec(group, 1..8);
            // People of few kinds, so that many are alike.
            let place = prop::collection::vec(prop::array::uniform2(0..codes), 3);
            let person = (place, 0..values, 0..2_usize);
            let people = prop::collection::vec(person, PEOPLE);
            let releases = prop::collection::vec(release, releases);
            let sets = prop::collection::vec(prop::collection::vec(any::<bool>(), 3), 2);
            (people, releases, sets).prop_map(move |(mut people, releases, sets)| {
                if !moving {
                    people.iter_mut().for_each(|(places, ..)| {
                        let first = places[0];
                        places.fill(first);
                    });
                }
                History { people, releases, sets, times }
            })
        },
    )
}

impl History {
    fn evidence(&self) -> Evidence {
        let field = |name: &str| FieldRef::new(Field::new(name, DataType::Int64, true));
        let mut builder = EvidenceBuilder::try_new(field("id"), vec![field("a"), field("b")], field("s")).unwrap();
        let batch = |columns: Vec<Vec<i64>>| {
            let columns = columns.into_iter().map(|column| Arc::new(Int64Array::from(column)) as ArrayRef);
            RecordBatch::try_from_iter((0..).zip(columns).map(|(i, column): (i32, _)| (i.to_string(), column))).unwrap()
        };
        let mut known = vec![Vec::new(); 5];
        for (person, (places, value, set)) in (0..).zip(&self.people) {
            for release in 0..self.releases.len() * self.times {
                let kind = release % self.releases.len();
                if self.sets[*set][kind] {
                    let row = [person, places[kind][0], places[kind][1], *value, release as i64 + 1];
                    known.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
                }
            }
        }
        builder.append_known(&batch(known), BackgroundColumns { sensitive: true, release: true }).unwrap();
        for _ in 0..self.times {
            for groups in &self.releases {
                builder.begin_release(ReleaseColumns { group: true, id: false });
                let mut columns = vec![Vec::new(); 6];
                for (number, rows) in (0..).zip(groups) {
                    for ([a, b], value) in rows {
                        let row = [a[0], a[1], b[0], b[1], *value, number];
                        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
                    }
                }
                builder.append_release(&batch(columns)).unwrap();
            }
        }
        builder.finish().unwrap()
    }

    /// Returns the sizes and risk of every person and release.
    fn found(&self, wanted: Wanted) -> BTreeMap<(u32, u64), (usize, usize, Option<f64>)> {
        let disclosure = Disclosure::within(self.evidence(), AdversaryModel::Cover, wanted, 0, &|_| Ok(())).unwrap();
        assert_eq!(disclosure.counts(wanted), wanted == Wanted::Sizes);
        let mut found = BTreeMap::new();
        for findings in disclosure.all() {
            for (place, key) in findings.people.iter().copied().zip(findings.releases.iter().copied()).enumerate() {
                let sizes = (findings.candidates.size(place), findings.remaining.size(place), findings.risk[place]);
                assert!(found.insert(key, sizes).is_none(), "a row for each person and release");
            }
        }
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn counts_are_the_sizes_of_the_lists(history in history()) {
        let (counted, listed) = (history.found(Wanted::Sizes), history.found(Wanted::Values));
        prop_assert!(counted.keys().eq(listed.keys()));
        for (key, (candidates, remaining, risk)) in &counted {
            let expected = &listed[key];
            prop_assert_eq!((candidates, remaining), (&expected.0, &expected.1), "{:?}", key);
            prop_assert_eq!(risk.is_some(), expected.2.is_some());
            prop_assert!((risk.unwrap_or(0.0) - expected.2.unwrap_or(0.0)).abs() < 1e-9, "{:?}: {:?} {:?}", key, risk, expected.2);
        }
    }
}
