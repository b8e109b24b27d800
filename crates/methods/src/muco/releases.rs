//! Several releases with equal shares: people who come, leave, return and get older. What a reader knows of them: all draws are enumerated, as in
//! [`enumeration`](super::enumeration); and chains of releases against their definition.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::*;
use crate::choices::{Every, Share as Probability, alone};
use crate::close::histories::{Entry, History, Publisher, Row, numbers, people, posterior, published, snapshot};
use crate::release::{COUNTERFEIT, COUNTERFEITS, GROUP_SIZE};

/// A row of a ring: quasi-identifiers, sensitive value, and whose it is, if that person is present.
type Shown = (Vec<i32>, i32, Option<i64>);

/// Returns the rings of a release.
fn rings(release: &Release) -> Vec<Vec<Shown>> {
    let (microdata, groups) = (&release.microdata, &release.groups);
    let perturbed = release.body.perturbed().unwrap();
    let people = microdata.people.as_ref().unwrap();
    let ids = people.identifiers.as_primitive::<Int64Type>();
    let id = |row: u32| (row != COUNTERFEIT).then(|| ids.value(people.arrival[row as usize] as usize));
    let value = |attribute: &crate::microdata::Attribute, code: u32| {
        attribute.domain.values().as_primitive::<Int32Type>().value(code as usize)
    };
    let row = |member: usize| -> Shown {
        let codes = perturbed.codes.of(member as u32);
        let shown = microdata.quasi.iter().zip(codes).map(|(attribute, code)| value(attribute, code)).collect();
        (shown, value(microdata.sensitive.as_ref().unwrap(), groups.sensitive[member]), id(groups.members[member]))
    };
    (0..groups.len()).map(|group| groups.range(group).map(row).collect()).collect()
}

/// View of a release by a reader: of each ring, its people who are present, and its rows.
type Seen = Vec<(BTreeSet<i64>, Vec<(Vec<i32>, i32)>)>;

/// Inferences about everybody's value. Only rings, quasi-identifiers, presence and rows are known.
#[derive(Debug)]
struct Inferred {
    /// The greatest probability of anybody's value.
    most: Probability,
    outcomes: usize,
    /// Outcomes with a row of an absent person.
    counterfeits: usize,
}

/// Infers from the releases of a history. Rings are dealt by numbers that depend on `seed`, which the reader knows. Without `counterfeits`, their rows are
/// taken out.
fn infer(history: &History, method: &Muco, seed: i64, counterfeits: bool) -> Inferred {
    let release = |microdata: Microdata, state: &State, every: Every| {
        let (known, monitor) = (state.signatures().unwrap(), Monitor::default());
        let mut groups = equal::groups(&microdata, known, method, (&every, 1 << 40), &monitor).unwrap();
        let who = microdata.people.as_ref().unwrap();
        let ids = who.identifiers.as_primitive::<Int64Type>();
        for group in 0..groups.len() {
            let members = groups.members[groups.range(group)].iter().filter(|&&row| row != COUNTERFEIT);
            let least = members.map(|&row| ids.value(who.arrival[row as usize] as usize)).min().unwrap();
            let before = known.rings().contains(&groups.rings[group]);
            let number = if before { groups.rings[group] } else { least };
            groups.rings[group] = number ^ (seed << 20);
        }
        let perturbed = equal::deal(&microdata, &groups, &monitor).unwrap();
        Release { microdata, groups, body: Body::Perturbed(perturbed), withheld: 0 }
    };
    let told = |release: &Release| -> Seen {
        let ring = |rows: Vec<Shown>| {
            let people = rows.iter().filter_map(|row| row.2).collect();
            let kept = rows.into_iter().filter(|row| counterfeits || row.2.is_some());
            let mut rows: Vec<_> = kept.map(|(quasi, value, _)| (quasi, value)).collect();
            rows.sort_unstable();
            (people, rows)
        };
        let mut seen: Seen = rings(release).into_iter().map(ring).collect();
        seen.sort_unstable();
        seen
    };
    let publisher = Publisher { form: Form::Perturbed, release: &release, told: &told, shown: &|_| Vec::new() };
    let outcomes = history.outcomes(&publisher);
    let mut inferred = Inferred { most: Probability::NONE, outcomes: outcomes.len(), counterfeits: 0 };
    for (seen, worlds) in outcomes {
        let hidden = |(people, rows): &(BTreeSet<i64>, Vec<_>)| people.len() < rows.len();
        inferred.counterfeits += usize::from(seen.iter().flat_map(|[told, _]| told).any(hidden));
        for person in 0..worlds[0].0.len() {
            let values: BTreeSet<i32> = worlds.iter().map(|(world, _)| world[person]).collect();
            for value in values {
                let of = posterior(&worlds.iter(), person as i64, value);
                inferred.most = if of.is_more_than(inferred.most) { of } else { inferred.most };
            }
        }
    }
    inferred
}

fn equal(l: usize, cuts: Cuts) -> Muco {
    Muco::equal(l, cuts).unwrap()
}

/// A ring tells nothing of its people after two and three releases. Three people get older, leave and return, also
/// one by one until one is left: everybody has each of its values with the same probability, exactly.
#[test]
fn a_ring_tells_nothing_of_its_people() {
    let first = people(&[(0, &[20]), (1, &[20]), (2, &[60])]);
    let second = people(&[(0, &[21]), (1, &[20])]);
    let thirds = [people(&[(0, &[21]), (2, &[61])]), people(&[(1, &[25])]), first.clone()];
    for (l, seed) in [(2, 0), (3, 0), (2, 1), (3, 2)] {
        for third in thirds.clone() {
            let present = vec![first.clone(), second.clone(), third];
            let history = History { cohorts: vec![vec![0, 1, 2], vec![], vec![]], present };
            let inferred = alone(|| infer(&history, &equal(l, Cuts::Tight), seed, true));
            assert_eq!(inferred.most, Probability::new(1, 3), "{inferred:?}");
            assert!(inferred.counterfeits == inferred.outcomes, "{inferred:?}");
        }
    }
}

/// The same with two quasi-identifiers.
#[test]
fn columns_together_tell_nothing_over_two_releases() {
    let present = vec![people(&[(0, &[0, 5]), (1, &[1, 5]), (2, &[1, 7])]), people(&[(0, &[0, 5]), (2, &[2, 5])])];
    let history = History { cohorts: vec![vec![0, 1, 2], vec![]], present };
    for seed in 0..4 {
        let inferred = alone(|| infer(&history, &equal(2, Cuts::Tight), seed, true));
        assert_eq!(inferred.most, Probability::new(1, 3), "{inferred:?}");
        assert!(inferred.counterfeits > 0);
    }
}

/// Over several releases nobody's value is likelier, for made and unmade cuts. People come later, and rings go and return.
#[test]
fn over_several_releases_nobodys_value_is_likelier_than_one_of_l() {
    let cases = [
        // Two leave, and two come.
        (
            vec![vec![0, 0, 1, 2], vec![0, 1]],
            vec![
                people(&[(0, &[0]), (1, &[1]), (2, &[2]), (3, &[3])]),
                people(&[(1, &[1]), (2, &[8]), (4, &[0]), (5, &[9])]),
            ],
        ),
        // All leave, and one returns; then somebody who came later leaves.
        (
            vec![vec![0, 1], vec![1, 2], vec![]],
            vec![people(&[(0, &[0]), (1, &[9])]), people(&[(2, &[4]), (3, &[4])]), people(&[(1, &[7]), (2, &[5])])],
        ),
        // Values that are the same in two rings.
        (
            vec![vec![0, 0, 1, 1], vec![], vec![]],
            vec![
                people(&[(0, &[0]), (1, &[0]), (2, &[1]), (3, &[9])]),
                people(&[(0, &[0]), (1, &[1]), (3, &[9])]),
                people(&[(0, &[2]), (2, &[2]), (3, &[9])]),
            ],
        ),
    ];
    for (cuts, seed) in [(Cuts::Tight, 0), (Cuts::Median, 1)] {
        for (cohorts, present) in cases.clone() {
            let history = History { cohorts, present };
            for reader in [Reader::Stranger, Reader::Participant] {
                let method = equal(2, cuts).with_reader(reader);
                let inferred = alone(|| infer(&history, &method, seed, true));
                assert!(!inferred.most.is_more_than(Probability::new(1, 2)), "{:?}: {inferred:?}", history.present);
                assert!(inferred.counterfeits > 0, "{inferred:?}");
            }
        }
    }
}

/// Without their rows, who leaves is known: what is gone was theirs. So the enumeration finds what there is to find.
#[test]
fn a_row_that_goes_tells_whose_it_was() {
    let present = vec![people(&[(0, &[20]), (1, &[30]), (2, &[60])]), people(&[(0, &[20]), (1, &[30])])];
    let history = History { cohorts: vec![vec![0, 1, 2], vec![]], present };
    let inferred = alone(|| infer(&history, &equal(2, Cuts::Tight), 0, false));
    assert_eq!(inferred.most, Probability::new(1, 1), "{inferred:?}");
}

/// A publication, and what it was made of.
struct Series {
    method: Muco,
    known: Vec<Entry>,
}

impl Series {
    /// Returns the rings of the next release, and its rows as they leave.
    fn publish(&mut self, rows: &[Row], seed: u64) -> Result<(Vec<Vec<Shown>>, RecordBatch)> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (microdata, state, layout) = snapshot(rows, &self.known, [seed, 5])?;
        let release = self.method.anonymize(microdata, &state, &Monitor::default(), &mut rng)?;
        let shown = rings(&release);
        let (batch, new) = published(release, &state, &layout, Form::Perturbed, seed);
        self.known.extend(new);
        Ok((shown, batch))
    }
}

/// Quasi-identifiers of a ring's people who were present, and the rows that it showed.
type Last = (BTreeMap<i64, Vec<i32>>, Vec<(Vec<i32>, i32)>);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Rings stay in chains of releases, and all rows are shown while somebody is there. People come, leave, return and
    /// change. Rows stay where nothing has changed; and neither the order of arrival nor threads decide anything.
    #[test]
    fn chains_of_releases(l in 2_usize..5, d in 1_usize..4, turnover in 0.0..0.6, seed in any::<u64>()) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut series = Series { method: equal(l, Cuts::Tight), known: Vec::new() };
        let mut everybody: Vec<Row> = Vec::new();
        let mut last: HashMap<i64, Last> = HashMap::new();
        for number in 0..5_u64 {
            let first = everybody.len();
            // As many of each value, so that those who come are eligible.
            let values = rng.random_range(l..l + 4) as i32;
            let come = if number == 0 { 4 } else { rng.random_range(0..3) } * values;
            for i in 0..come {
                everybody.push(((first as i32 + i).into(), vec![0; d], i % values));
            }
            for row in &mut everybody {
                if row.0 >= first as i64 || rng.random_bool(turnover / 2.0) {
                    row.1.iter_mut().for_each(|q| *q = rng.random_range(0..40));
                }
            }
            let there: Vec<Row> = everybody.iter()
                .filter(|row| row.0 >= first as i64 || !rng.random_bool(turnover)).cloned().collect();
            if there.is_empty() {
                continue;
            }
            let mut arrived = there.clone();
            arrived.shuffle(&mut rng);
            let known = series.known.clone();
            let (shown, batch) = series.publish(&there, seed ^ number).unwrap();
            let mut again = Series { known, method: series.method.clone() };
            prop_assert_eq!(&alone(|| again.publish(&arrived, seed ^ number).unwrap()).1, &batch);

            let ring_of: HashMap<i64, i64> = series.known.iter().map(|entry| (entry.id, entry.ring)).collect();
            let (mut rows, mut seen) = (0, BTreeSet::new());
            for ring in shown {
                let present: BTreeMap<i64, Vec<i32>> =
                    ring.iter().filter_map(|row| row.2).map(|id| (id, everybody[id as usize].1.clone())).collect();
                let numbers: BTreeSet<i64> = present.keys().map(|id| ring_of[id]).collect();
                prop_assert_eq!(numbers.len(), 1);
                seen.extend(present.keys().copied());
                let values: BTreeSet<i32> = ring.iter().map(|row| row.1).collect();
                prop_assert!(values.len() == ring.len() && ring.len() >= l);
                for row in &ring {
                    prop_assert!(row.2.is_none_or(|id| everybody[id as usize].2 == row.1));
                    for (j, shown) in row.0.iter().enumerate() {
                        prop_assert!(present.values().any(|own| own[j] == *shown));
                    }
                }
                rows += ring.len();
                let mut sorted: Vec<_> = ring.into_iter().map(|(quasi, value, _)| (quasi, value)).collect();
                sorted.sort_unstable();
                let number = numbers.into_iter().next().unwrap();
                if let Some((before, rows)) = last.get(&number) && *before == present {
                    prop_assert_eq!(rows, &sorted);
                }
                last.insert(number, (present, sorted));
            }
            prop_assert!(there.iter().map(|row| row.0).eq(seen));
            let counted = [GROUP_SIZE, COUNTERFEITS].map(|name| numbers(&batch, name));
            prop_assert_eq!(batch.num_rows(), rows);
            prop_assert!(counted[0].iter().all(|&size| size as usize == rows));
            prop_assert!(counted[1].iter().all(|&absent| absent as usize == rows - there.len()));
            // Everybody is remembered once.
            prop_assert_eq!(series.known.len(), everybody.len());
        }
    }
}

/// People with changed values are refused, and new people with too frequent a value.
#[test]
fn what_cannot_go_on_is_refused() {
    let rows = |values: &[i32]| -> Vec<Row> { (0..).zip(values).map(|(id, &value)| (id, vec![7], value)).collect() };
    let mut series = Series { method: equal(2, Cuts::Tight), known: Vec::new() };
    series.publish(&rows(&[0, 1, 2, 0]), 1).unwrap();
    let refused = series.publish(&rows(&[0, 1, 2, 1]), 2).unwrap_err().to_string();
    assert!(
        refused.contains("1 people have another sensitive value than the one that they were published with"),
        "{refused}"
    );
    let refused = series.publish(&rows(&[0, 1, 2, 0, 5, 5, 6]), 2).unwrap_err().to_string();
    assert!(refused.contains("the 3 new rows are not 2-eligible"), "{refused}");
    assert_eq!(series.publish(&rows(&[0, 1, 2, 0]), 3).unwrap().0.len(), 2);
}
