//! Several releases with equal shares: people who come, leave, return and get older. What a reader knows of them: all draws are enumerated, as in
//! [`enumeration`](super::enumeration); and chains of releases against their definition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, Int32Builder, Int64Array, ListBuilder, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::choices::{Every, Share as Probability, alone, orders};
use crate::microdata::{Layout, Roles};
use crate::release::{COUNTERFEITS, Description, GROUP_SIZE, Published, RowOrder, Shape, View, schema};
use crate::state::{SnapshotBuilder, ledger_schema};

/// A row of a snapshot: identifier, quasi-identifiers, sensitive value.
type Row = (i64, Vec<i32>, i32);

/// An entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry {
    release: i64,
    ring: i64,
    place: i32,
    id: i64,
    value: i32,
    shown: Vec<i32>,
}

fn table(rows: &[Row], d: usize) -> (RecordBatch, Layout) {
    let mut columns: Vec<(String, ArrayRef)> =
        vec![("id".to_owned(), Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()))];
    let quasi = |j: usize| -> ArrayRef { Arc::new(rows.iter().map(|row| row.1[j]).collect::<Int32Array>()) };
    columns.extend((0..d).map(|j| (format!("q{j}"), quasi(j))));
    columns.push(("s".to_owned(), Arc::new(rows.iter().map(|row| row.2).collect::<Int32Array>())));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut roles = Roles::default();
    roles.id = Some("id".to_owned());
    roles.quasi = (0..d).map(|j| format!("q{j}")).collect();
    roles.sensitive = Some("s".to_owned());
    let layout = Layout::try_new(&batch.schema(), &roles).unwrap();
    (batch, layout)
}

fn ledger(entries: &[Entry], layout: &Layout) -> RecordBatch {
    let schema = ledger_schema(Some(StateKind::Dealt), layout).unwrap();
    let numbers = |of: fn(&Entry) -> i64| -> ArrayRef { Arc::new(entries.iter().map(of).collect::<Int64Array>()) };
    let small = |of: fn(&Entry) -> i32| -> ArrayRef { Arc::new(entries.iter().map(of).collect::<Int32Array>()) };
    let mut shown = ListBuilder::new(Int32Builder::new());
    entries.iter().for_each(|entry| shown.append_value(entry.shown.iter().copied().map(Some)));
    let columns: Vec<ArrayRef> = vec![
        numbers(|entry| entry.id),
        small(|entry| entry.value),
        numbers(|entry| entry.ring),
        small(|entry| entry.place),
        Arc::new(shown.finish()),
        numbers(|entry| entry.release),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

fn entries(batch: &RecordBatch) -> Vec<Entry> {
    let long = |j: usize| batch.column(j).as_primitive::<Int64Type>();
    let short = |j: usize| batch.column(j).as_primitive::<Int32Type>();
    let shown = batch.column(4).as_list::<i32>();
    let entry = |row: usize| Entry {
        release: long(5).value(row),
        ring: long(2).value(row),
        place: short(3).value(row),
        id: long(0).value(row),
        value: short(1).value(row),
        shown: shown.value(row).as_primitive::<Int32Type>().values().to_vec(),
    };
    (0..batch.num_rows()).map(entry).collect()
}

/// Returns a snapshot, and what the ledger says of it.
fn snapshot(rows: &[Row], d: usize, known: &[Entry], key: [u64; 2]) -> Result<(Microdata, State, Layout)> {
    let (batch, layout) = table(rows, d);
    let mut builder = SnapshotBuilder::try_new(layout.clone(), Some(StateKind::Dealt))?;
    if !known.is_empty() {
        builder.append_previous(&ledger(known, &layout))?;
    }
    builder.microdata.append(&batch)?;
    let (microdata, state) = builder.finish(key)?;
    Ok((microdata, state, layout))
}

/// A ring in a release: who is in it, and the rows that are shown: quasi-identifiers, sensitive value, and whose row it is.
type Shown = (BTreeSet<i64>, Vec<(Vec<i32>, i32, i64)>);

/// Returns the rings of a release.
fn rings(release: &Release) -> Vec<Shown> {
    let (microdata, groups) = (&release.microdata, &release.groups);
    let perturbed = release.body.perturbed().unwrap();
    let people = microdata.people.as_ref().unwrap();
    let ids = people.identifiers.as_primitive::<Int64Type>();
    let id = |row: u32| ids.value(people.arrival[row as usize] as usize);
    let value = |attribute: &crate::microdata::Attribute, code: u32| {
        attribute.domain.values().as_primitive::<Int32Type>().value(code as usize)
    };
    let ring = |group: usize| -> Shown {
        let rows = groups.range(group).map(|member| {
            let codes = perturbed.codes.of(member as u32);
            let shown = microdata.quasi.iter().zip(codes).map(|(attribute, code)| value(attribute, code)).collect();
            let sensitive = value(microdata.sensitive.as_ref().unwrap(), groups.sensitive[member]);
            (shown, sensitive, id(groups.members[member]))
        });
        let rows: Vec<_> = rows.collect();
        (rows.iter().map(|row| row.2).collect(), rows)
    };
    (0..groups.len()).map(ring).collect()
}

/// Returns the state that a release leaves to later ones.
fn remembered(release: Release, state: &State, layout: &Layout, number: i64) -> (Published, Vec<Entry>) {
    let description = Description::new("test", "{}".into(), "x".into(), None);
    let (view, form) = (View::Public, Form::Perturbed);
    let shape = Shape { view, form, signatures: false, labels: false, rings: false, nodes: false, counted: true };
    let public = Arc::new(schema(layout, shape, &description));
    let published = Published::new(release, public, RowOrder::Random, &mut ChaCha20Rng::seed_from_u64(number as u64));
    let kind = StateKind::Dealt;
    let members = kind.members(&published, state).unwrap();
    let columns = ledger_schema(Some(kind), layout).unwrap();
    let batch = kind.entries(&published, &members, number as u64, &columns).unwrap();
    (published, entries(&batch))
}

/// Releases of a few people.
struct History {
    l: usize,
    cuts: Cuts,
    /// Values of those who come with each release. People are numbered as they come.
    cohorts: Vec<Vec<i32>>,
    /// Quasi-identifiers of everybody who is there, release by release.
    present: Vec<Vec<(i64, Vec<i32>)>>,
}

/// View of a release by a reader: of each ring, its people and its rows.
type Seen = Vec<(BTreeSet<i64>, Vec<(Vec<i32>, i32)>)>;

/// Inferences about everybody's value. Only rings, quasi-identifiers, presence and rows are known.
#[derive(Debug)]
struct Inferred {
    /// The greatest probability of anybody's value.
    most: Probability,
    /// Ratio of the probability to one of the size of the ring.
    times: Probability,
    outcomes: usize,
    /// Outcomes with a row of somebody who is not there.
    ghosts: usize,
}

impl History {
    /// Weighs all worlds by how likely they lead to what is published. Without `ghosts`, rows of people who are not there are taken out.
    fn infer(&self, ghosts: bool) -> Inferred {
        type Secret = (Vec<Seen>, Vec<i32>, Vec<Entry>);
        let one = Probability::new(1, 1);
        let mut histories: BTreeMap<Secret, Probability> = BTreeMap::from([(Secret::default(), one)]);
        for (number, cohort) in self.cohorts.iter().enumerate() {
            let mut laws: HashMap<(Vec<i32>, Vec<Entry>), BTreeMap<(Seen, Vec<Entry>), Probability>> = HashMap::new();
            let mut longer: BTreeMap<Secret, Probability> = BTreeMap::new();
            for ((history, world, known), share) in histories {
                for order in orders(cohort) {
                    let world = [world.as_slice(), &order].concat();
                    let law = laws
                        .entry((world.clone(), known.clone()))
                        .or_insert_with(|| self.law(number, &world, &known, ghosts));
                    for ((seen, new), likely) in law {
                        let history = [history.as_slice(), std::slice::from_ref(seen)].concat();
                        let known = [known.as_slice(), new].concat();
                        let sum = longer.entry((history, world.clone(), known)).or_insert(Probability::NONE);
                        *sum = sum.plus(share.times(*likely));
                    }
                }
            }
            histories = longer;
        }
        let mut by_history: BTreeMap<Vec<Seen>, Vec<(Vec<i32>, Probability)>> = BTreeMap::new();
        for ((history, world, _), share) in histories {
            by_history.entry(history).or_default().push((world, share));
        }
        let (mut most, mut times) = (Probability::NONE, Probability::NONE);
        let outcomes = by_history.len();
        let mut with_ghosts = 0;
        for (history, worlds) in by_history {
            let is_there = |number: usize, id: &i64| self.present[number].iter().any(|person| person.0 == *id);
            let absent =
                |(number, seen): (usize, &Seen)| seen.iter().any(|ring| ring.0.iter().any(|id| !is_there(number, id)));
            with_ghosts += usize::from(history.iter().enumerate().any(absent));
            let total = worlds.iter().fold(Probability::NONE, |sum, (_, share)| sum.plus(*share));
            let sizes: BTreeMap<i64, usize> =
                history.iter().flatten().flat_map(|ring| ring.0.iter().map(|&id| (id, ring.0.len()))).collect();
            for (id, size) in sizes {
                let mut of_value: BTreeMap<i32, Probability> = BTreeMap::new();
                for (world, share) in &worlds {
                    let sum = of_value.entry(world[id as usize]).or_insert(Probability::NONE);
                    *sum = sum.plus(*share);
                }
                for share in of_value.into_values() {
                    let with = share.of(total);
                    let of_ring = with.times(Probability::new(size as u128, 1));
                    most = if with.is_more_than(most) { with } else { most };
                    times = if of_ring.is_more_than(times) { of_ring } else { times };
                }
            }
        }
        Inferred { most, times, outcomes, ghosts: with_ghosts }
    }

    /// Computes the law of a release in this world, after the earlier ones.
    fn law(
        &self,
        number: usize,
        world: &[i32],
        known: &[Entry],
        ghosts: bool,
    ) -> BTreeMap<(Seen, Vec<Entry>), Probability> {
        let present = &self.present[number];
        let rows: Vec<Row> = present.iter().map(|(id, quasi)| (*id, quasi.clone(), world[*id as usize])).collect();
        let d = present[0].1.len();
        let monitor = Monitor::default();
        Every::new(0).law(|every| {
            let (microdata, state, layout) = snapshot(&rows, d, known, [3, 4]).unwrap();
            let dealt = state.dealt().unwrap();
            let (groups, perturbed) =
                equal::release(&microdata, dealt, self.l, self.cuts, [&every, &every], &monitor).unwrap();
            let release = Release { microdata, groups, body: Body::Perturbed(perturbed), withheld: 0 };
            let is_there = |id: &i64| present.iter().any(|person| person.0 == *id);
            let shown = rings(&release).into_iter().map(|(people, rows)| {
                let kept = rows.into_iter().filter(|row| ghosts || is_there(&row.2));
                let mut rows: Vec<_> = kept.map(|(quasi, value, _)| (quasi, value)).collect();
                rows.sort_unstable();
                (people, rows)
            });
            let mut seen: Seen = shown.collect();
            seen.sort_unstable();
            let (_, mut new) = remembered(release, &state, &layout, number as i64 + 1);
            // Which number a ring has makes no difference.
            let mut least: BTreeMap<i64, i64> = BTreeMap::new();
            new.iter().for_each(|entry| {
                let least = least.entry(entry.ring).or_insert(entry.id);
                *least = entry.id.min(*least);
            });
            new.iter_mut().for_each(|entry| entry.ring = least[&entry.ring]);
            new.sort_unstable();
            (seen, new)
        })
    }
}

fn people(quasi: &[(i64, &[i32])]) -> Vec<(i64, Vec<i32>)> {
    quasi.iter().map(|(id, quasi)| (*id, quasi.to_vec())).collect()
}

/// A ring tells nothing of its people after two and three releases. Three people get older, leave and return, also
/// one by one until one is left: everybody has each of its values with the same probability, exactly.
#[test]
fn a_ring_tells_nothing_of_its_people() {
    let first = people(&[(0, &[20]), (1, &[20]), (2, &[60])]);
    let second = people(&[(0, &[21]), (1, &[20])]);
    let thirds = [people(&[(0, &[21]), (2, &[61])]), people(&[(1, &[25])]), first.clone()];
    for l in [2, 3] {
        for third in thirds.clone() {
            let present = vec![first.clone(), second.clone(), third];
            let history = History { l, cuts: Cuts::Tight, cohorts: vec![vec![0, 1, 2], vec![], vec![]], present };
            let inferred = alone(|| history.infer(true));
            assert_eq!((inferred.most, inferred.times), (Probability::new(1, 3), Probability::new(1, 1)));
            assert!(inferred.outcomes > 3 && inferred.ghosts == inferred.outcomes, "{inferred:?}");
        }
    }
}

/// The same with two quasi-identifiers.
#[test]
fn columns_together_tell_nothing_over_two_releases() {
    let present = vec![people(&[(0, &[0, 5]), (1, &[1, 5]), (2, &[1, 7])]), people(&[(0, &[0, 5]), (2, &[2, 5])])];
    let history = History { l: 2, cuts: Cuts::Tight, cohorts: vec![vec![0, 1, 2], vec![]], present };
    let inferred = alone(|| history.infer(true));
    assert_eq!((inferred.most, inferred.times), (Probability::new(1, 3), Probability::new(1, 1)));
    assert!(inferred.ghosts > 0);
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
    for cuts in [Cuts::Tight, Cuts::Median] {
        for (cohorts, present) in cases.clone() {
            let history = History { l: 2, cuts, cohorts, present };
            let inferred = alone(|| history.infer(true));
            assert!(!inferred.most.is_more_than(Probability::new(1, 2)), "{:?}: {inferred:?}", history.present);
            assert!(inferred.ghosts > 0 && inferred.outcomes > 1, "{inferred:?}");
        }
    }
}

/// Without their rows, who leaves is known: what is gone was theirs. So the enumeration finds what there is to find.
#[test]
fn a_row_that_goes_tells_whose_it_was() {
    let present = vec![people(&[(0, &[20]), (1, &[30]), (2, &[60])]), people(&[(0, &[20]), (1, &[30])])];
    let history = History { l: 2, cuts: Cuts::Tight, cohorts: vec![vec![0, 1, 2], vec![]], present };
    let inferred = alone(|| history.infer(false));
    assert_eq!(inferred.most, Probability::new(1, 1), "{inferred:?}");
}

/// A publication, and what it was made of.
struct Series {
    method: Muco,
    d: usize,
    known: Vec<Entry>,
    releases: i64,
}

impl Series {
    fn new(l: usize, d: usize) -> Self {
        Self { method: Muco::equal(l, Cuts::Tight).unwrap(), d, known: Vec::new(), releases: 0 }
    }

    /// Returns the rings of the next release, and its rows as they leave.
    fn publish(&mut self, rows: &[Row], seed: u64) -> Result<(Vec<Shown>, RecordBatch)> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (microdata, state, layout) = snapshot(rows, self.d, &self.known, [seed, 5])?;
        let release = self.method.anonymize(microdata, &state, &Monitor::default(), &mut rng)?;
        let shown = rings(&release);
        self.releases += 1;
        let (published, new) = remembered(release, &state, &layout, self.releases);
        self.known.extend(new);
        Ok((shown, published.batch(0, published.len()).unwrap()))
    }

    /// Returns the rows that a ring is to show of these people, by the definition.
    fn expected(&self, people: &BTreeSet<i64>, present: &HashMap<i64, Vec<i32>>) -> Vec<(Vec<i32>, i32, i64)> {
        let mut ring: Vec<&Entry> = self.known.iter().filter(|entry| people.contains(&entry.id)).collect();
        ring.sort_unstable_by_key(|entry| entry.place);
        let n = ring.len();
        let stand_in = |place: usize| (place..place + n).find_map(|place| present.get(&ring[place % n].id)).unwrap();
        let shows = |entry: &&Entry| {
            let quasi = entry.shown.iter().enumerate().map(|(j, &place)| stand_in(place as usize)[j]).collect();
            (quasi, entry.value, entry.id)
        };
        ring.iter().map(shows).collect()
    }
}

/// Present people of a ring with quasi-identifiers, and the rows that it shows.
type Last = (Vec<Option<Vec<i32>>>, Vec<(Vec<i32>, i32, i64)>);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Rings stay in chains of releases, and all rows are shown while somebody is there. People come, leave, return and
    /// change; rows show what they were dealt; and neither the order of arrival nor threads decide anything.
    #[test]
    fn chains_of_releases(l in 2_usize..5, d in 1_usize..4, turnover in 0.0..0.6, seed in any::<u64>()) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut series = Series::new(l, d);
        let mut everybody: Vec<Row> = Vec::new();
        let mut last: HashMap<BTreeSet<i64>, Last> = HashMap::new();
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
            let present: HashMap<i64, Vec<i32>> = there.iter().map(|row| (row.0, row.1.clone())).collect();
            let mut arrived = there.clone();
            arrived.shuffle(&mut rng);
            let known = series.known.clone();
            let (shown, batch) = series.publish(&there, seed ^ number).unwrap();
            let mut again = Series { known, d, method: series.method.clone(), releases: series.releases - 1 };
            prop_assert_eq!(&alone(|| again.publish(&arrived, seed ^ number).unwrap()).1, &batch);

            let new: BTreeSet<i64> = (first as i64..everybody.len() as i64).collect();
            let mut rows = 0;
            for (people, shown) in &shown {
                prop_assert!(people.iter().any(|id| present.contains_key(id)));
                prop_assert!(people.is_subset(&new) || people.is_disjoint(&new));
                let values: BTreeSet<i32> = shown.iter().map(|row| row.1).collect();
                prop_assert!(values.len() == people.len() && people.len() >= l);
                for row in shown {
                    prop_assert_eq!(row.1, everybody[row.2 as usize].2);
                }
                let mut sorted = shown.clone();
                let mut expected = series.expected(people, &present);
                sorted.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(&sorted, &expected);
                let now: Vec<_> = people.iter().map(|id| present.get(id).cloned()).collect();
                if let Some((before, rows)) = last.get(people) && *before == now {
                    prop_assert_eq!(rows, &sorted);
                }
                last.insert(people.clone(), (now, sorted));
                rows += people.len();
            }
            // A ring of which somebody is there is there; one of which nobody is is not.
            let of_rings: BTreeSet<i64> = shown.iter().flat_map(|ring| ring.0.clone()).collect();
            prop_assert!(present.keys().all(|id| of_rings.contains(id)));
            let counted = [GROUP_SIZE, COUNTERFEITS].map(|name| {
                batch.column_by_name(name).unwrap().as_primitive::<Int32Type>().values().to_vec()
            });
            prop_assert_eq!(batch.num_rows(), rows);
            prop_assert!(counted[0].iter().all(|&size| size as usize == rows));
            prop_assert!(counted[1].iter().all(|&ghosts| ghosts as usize == rows - there.len()));
            // Everybody is remembered once.
            prop_assert_eq!(series.known.len(), everybody.len());
        }
    }
}

/// People with changed values are refused, and new people with too frequent a value.
#[test]
fn what_cannot_go_on_is_refused() {
    let rows = |values: &[i32]| -> Vec<Row> { (0..).zip(values).map(|(id, &value)| (id, vec![7], value)).collect() };
    let mut series = Series::new(2, 1);
    series.publish(&rows(&[0, 1, 2, 0]), 1).unwrap();
    let refused = series.publish(&rows(&[0, 1, 2, 1]), 2).unwrap_err().to_string();
    assert!(refused.contains("1 people have another value of column s than they were published with"), "{refused}");
    let refused = series.publish(&rows(&[0, 1, 2, 0, 5, 5, 6]), 2).unwrap_err().to_string();
    assert!(refused.contains("the 3 rows of people who are new are not 2-eligible"), "{refused}");
    assert_eq!(series.publish(&rows(&[0, 1, 2, 0]), 3).unwrap().0.len(), 2);
}

/// A ledger that is not as it was written is not gone on with.
#[test]
fn a_ledger_with_torn_rings_is_not_read() {
    let rows: Vec<Row> = (0..6).map(|id| (id, vec![id as i32], id as i32 % 3)).collect();
    let mut series = Series::new(3, 1);
    series.publish(&rows, 1).unwrap();
    let right = series.known.clone();
    assert!(snapshot(&rows, 1, &right, [1, 2]).is_ok());
    let wrong = |change: fn(&mut Vec<Entry>)| {
        let mut known = right.clone();
        change(&mut known);
        let error = snapshot(&rows, 1, &known, [1, 2]).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("not those that were written"), "{error}");
    };
    wrong(|known| {
        let first = known.iter().position(|entry| entry.place == 0).unwrap();
        known.remove(first);
    });
    wrong(|known| known[0].place = 3);
    wrong(|known| known[0].shown = vec![7]);
    wrong(|known| known[0].shown = vec![]);
    wrong(|known| known[0].id = known[1].id);
    wrong(|known| known[0].ring = 9);
}
