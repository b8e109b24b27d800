//! Enumeration of publications of close groups, in any form: exact posteriors of readers who know the program.
//!
//! People come, leave, return and move over a few releases. All draws of the method are enumerated, for every way to give out the values, and each release is
//! made beside the ledger that the ones before have left.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, Int32Builder, Int64Array, ListBuilder, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::choices::{Every, Share, orders, probability};
use crate::error::Result;
use crate::microdata::{Layout, Microdata, Roles};
use crate::release::{Description, Form, Published, Release, RowOrder, Shape, View, schema};
use crate::state::{SnapshotBuilder, State, StateKind, ledger_schema};

/// A row of a snapshot: identifier, quasi-identifiers, sensitive value.
pub(crate) type Row = (i64, Vec<i32>, i32);
/// Values of all people, who are numbered as they come.
pub(crate) type World = Vec<i32>;

/// An entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entry {
    pub id: i64,
    pub ring: i64,
    signature: Vec<i32>,
    seal: i64,
}

/// Returns rows as a table, and its layout.
fn table(rows: &[Row]) -> (RecordBatch, Layout) {
    let d = rows.first().map_or(1, |row| row.1.len());
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
    let numbers = |of: fn(&Entry) -> i64| -> ArrayRef { Arc::new(entries.iter().map(of).collect::<Int64Array>()) };
    let mut signatures = ListBuilder::new(Int32Builder::new());
    entries.iter().for_each(|entry| signatures.append_value(entry.signature.iter().copied().map(Some)));
    let columns: Vec<ArrayRef> = vec![
        numbers(|entry| entry.id),
        Arc::new(signatures.finish()),
        numbers(|entry| entry.seal),
        numbers(|entry| entry.ring),
        numbers(|_| 1),
    ];
    RecordBatch::try_new(ledger_schema(Some(StateKind::Rings), layout).unwrap(), columns).unwrap()
}

fn entries(batch: &RecordBatch) -> Vec<Entry> {
    let long = |j: usize| batch.column(j).as_primitive::<Int64Type>();
    let signatures = batch.column(1).as_list::<i32>();
    let entry = |row: usize| Entry {
        id: long(0).value(row),
        ring: long(3).value(row),
        signature: signatures.value(row).as_primitive::<Int32Type>().values().to_vec(),
        seal: long(2).value(row),
    };
    (0..batch.num_rows()).map(entry).collect()
}

/// Returns a snapshot, the state of the ledger about it, and its layout.
pub(crate) fn snapshot(rows: &[Row], known: &[Entry], key: [u64; 2]) -> Result<(Microdata, State, Layout)> {
    let (batch, layout) = table(rows);
    let mut builder = SnapshotBuilder::try_new(layout.clone(), Some(StateKind::Rings))?;
    if !known.is_empty() {
        builder.append_previous(&ledger(known, &layout))?;
    }
    builder.microdata.append(&batch)?;
    let (microdata, state) = builder.finish(key)?;
    Ok((microdata, state, layout))
}

/// Returns the public rows of a release, and its entries of the ledger.
pub(crate) fn published(
    release: Release,
    state: &State,
    layout: &Layout,
    form: Form,
    seed: u64,
) -> (RecordBatch, Vec<Entry>) {
    let description = Description::new("test", "{}".into(), "x".into(), None);
    let counted = !form.has_groups();
    let shape =
        Shape { view: View::Public, form, signatures: false, labels: false, rings: false, nodes: false, counted };
    let public = Arc::new(schema(layout, shape, &description));
    let published = Published::new(release, public, RowOrder::Random, &mut ChaCha20Rng::seed_from_u64(seed));
    let kind = StateKind::Rings;
    let members = kind.members(&published, state).unwrap();
    let columns = ledger_schema(Some(kind), layout).unwrap();
    let new = kind.entries(&published, &members, 1, &columns).unwrap();
    (published.batch(0, published.len()).unwrap(), entries(&new))
}

/// Returns a column of whole numbers.
pub(crate) fn numbers(rows: &RecordBatch, name: &str) -> Vec<i32> {
    rows.column_by_name(name).unwrap().as_primitive::<Int32Type>().values().to_vec()
}

/// A way to publish, and a reader.
pub(crate) struct Publisher<'a, T> {
    pub form: Form,
    /// Makes a release.
    pub release: &'a (dyn Fn(Microdata, &State, Every) -> Release + Sync),
    /// Returns what the reader knows of a release beside its rows.
    pub told: &'a (dyn Fn(&Release) -> T + Sync),
    /// Returns what the reader sees in the rows.
    pub shown: &'a (dyn Fn(&RecordBatch) -> T + Sync),
}

/// Releases of a few people.
#[derive(Debug, Clone)]
pub(crate) struct History {
    /// Values of the new people of each release. People are numbered as they come.
    pub cohorts: Vec<Vec<i32>>,
    /// People present at each release, with their quasi-identifiers.
    pub present: Vec<Vec<(i64, Vec<i32>)>>,
}

impl History {
    /// Returns all that a reader can see, release by release. Each has the worlds behind it and their weights.
    pub(crate) fn outcomes<T: Ord + Clone>(
        &self,
        publisher: &Publisher<'_, T>,
    ) -> BTreeMap<Vec<[T; 2]>, Vec<(World, Share)>> {
        type Secret<T> = (Vec<[T; 2]>, World, Vec<Entry>);
        type Law<T> = BTreeMap<([T; 2], Vec<Entry>), Share>;
        let mut histories: BTreeMap<Secret<T>, Share> =
            BTreeMap::from([((Vec::new(), World::new(), Vec::new()), Share::new(1, 1))]);
        for (number, cohort) in self.cohorts.iter().enumerate() {
            let mut laws: HashMap<(World, Vec<Entry>), Law<T>> = HashMap::new();
            let mut longer: BTreeMap<Secret<T>, Share> = BTreeMap::new();
            for ((history, world, known), share) in histories {
                for order in orders(cohort) {
                    let world = [world.as_slice(), &order].concat();
                    let key = (world.clone(), known.clone());
                    let law = laws.entry(key).or_insert_with(|| self.law(number, &world, &known, publisher));
                    for ((seen, new), likely) in law.iter() {
                        let history = [history.as_slice(), std::slice::from_ref(seen)].concat();
                        let known = [known.as_slice(), new].concat();
                        let sum = longer.entry((history, world.clone(), known)).or_insert(Share::NONE);
                        *sum = sum.plus(share.times(*likely));
                    }
                }
            }
            histories = longer;
        }
        let mut outcomes: BTreeMap<Vec<[T; 2]>, Vec<(World, Share)>> = BTreeMap::new();
        for ((history, world, _), share) in histories {
            outcomes.entry(history).or_default().push((world, share));
        }
        outcomes
    }

    /// Computes the law of a release in this world, after the earlier ones.
    fn law<T: Ord + Clone>(
        &self,
        number: usize,
        world: &[i32],
        known: &[Entry],
        publisher: &Publisher<'_, T>,
    ) -> BTreeMap<([T; 2], Vec<Entry>), Share> {
        let rows: Vec<Row> =
            self.present[number].iter().map(|(id, quasi)| (*id, quasi.clone(), world[*id as usize])).collect();
        Every::new(0).law(|every| {
            let (microdata, state, layout) = snapshot(&rows, known, [3, 4]).unwrap();
            let release = (publisher.release)(microdata, &state, every);
            let told = (publisher.told)(&release);
            let (batch, mut new) = published(release, &state, &layout, publisher.form, number as u64);
            // The number of a ring makes no difference, so it is that of its least person.
            let mut least: BTreeMap<i64, i64> = BTreeMap::new();
            new.iter().for_each(|entry| {
                let least = least.entry(entry.ring).or_insert(entry.id);
                *least = entry.id.min(*least);
            });
            new.iter_mut().for_each(|entry| entry.ring = least[&entry.ring]);
            new.sort_unstable();
            ([told, (publisher.shown)(&batch)], new)
        })
    }
}

/// Returns the probability of a person's value among weighted worlds.
pub(crate) fn posterior<'a>(
    worlds: &(impl Iterator<Item = &'a (World, Share)> + Clone),
    person: i64,
    value: i32,
) -> Share {
    probability(worlds, |world| world[person as usize] == value)
}

/// Returns people with one quasi-identifier, or several.
pub(crate) fn people(quasi: &[(i64, &[i32])]) -> Vec<(i64, Vec<i32>)> {
    quasi.iter().map(|(id, quasi)| (*id, quasi.to_vec())).collect()
}
