//! Random tables, releases and batches of people against what is promised.

mod attack;
mod cuts;
mod examples;
mod ghosts;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringViewArray, StructArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Field, Int32Type, Int64Type, Schema};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::AnyMethod;
use crate::microdata::{Layout, MicrodataBuilder, Roles};
use crate::release::{Description, Published, RowOrder, Shape, View, schema};
use crate::risk::{ReleasedRows, World, people_outside_rings};
use crate::state::{SnapshotBuilder, resealed};

/// People with identifiers from `first` on.
#[derive(Debug, Clone, Default)]
pub(super) struct People {
    pub(super) first: i64,
    /// Column after column.
    pub(super) quasi: Vec<Vec<Option<i32>>>,
    pub(super) sensitive: Vec<i32>,
    pub(super) other: Vec<Vec<i32>>,
}

/// Columns of a release: which quasi-identifiers, whether the sensitive one, and which others.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    quasi: Vec<usize>,
    sensitive: bool,
    other: Vec<usize>,
}

impl People {
    fn len(&self) -> usize {
        self.sensitive.len()
    }

    pub(super) fn all(&self) -> Columns {
        Columns { quasi: (0..self.quasi.len()).collect(), sensitive: true, other: (0..self.other.len()).collect() }
    }

    fn ids(&self) -> Vec<i64> {
        (self.first..).take(self.len()).collect()
    }

    fn batch(&self, columns: &Columns) -> (RecordBatch, Roles) {
        let mut arrays: Vec<(String, ArrayRef)> = vec![("id".to_owned(), Arc::new(Int64Array::from(self.ids())))];
        for &j in &columns.quasi {
            arrays.push((format!("q{j}"), Arc::new(Int32Array::from(self.quasi[j].clone()))));
        }
        if columns.sensitive {
            arrays.push(("s".to_owned(), Arc::new(Int32Array::from(self.sensitive.clone()))));
        }
        for &j in &columns.other {
            arrays.push((format!("o{j}"), Arc::new(Int32Array::from(self.other[j].clone()))));
        }
        let fields: Vec<Field> =
            arrays.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true)).collect();
        let arrays = arrays.into_iter().map(|(_, array)| array).collect();
        let mut roles = Roles::default();
        roles.id = Some("id".to_owned());
        roles.quasi = columns.quasi.iter().map(|j| format!("q{j}")).collect();
        roles.sensitive = columns.sensitive.then(|| "s".to_owned());
        roles.other = columns.other.iter().map(|j| format!("o{j}")).collect();
        (RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap(), roles)
    }

    /// Joins these people with those that come after.
    fn and(&self, more: &Self) -> Self {
        assert_eq!(self.first + self.len() as i64, more.first);
        let joined = |a: &Vec<Option<i32>>, b: &Vec<Option<i32>>| a.iter().chain(b).copied().collect();
        Self {
            first: self.first,
            quasi: self.quasi.iter().zip(&more.quasi).map(|(a, b)| joined(a, b)).collect(),
            sensitive: self.sensitive.iter().chain(&more.sensitive).copied().collect(),
            other: self.other.iter().zip(&more.other).map(|(a, b)| a.iter().chain(b).copied().collect()).collect(),
        }
    }

    /// Returns the first of them.
    fn truncated(&self, rows: usize) -> Self {
        Self {
            first: self.first,
            quasi: self.quasi.iter().map(|column| column[..rows].to_vec()).collect(),
            sensitive: self.sensitive[..rows].to_vec(),
            other: self.other.iter().map(|column| column[..rows].to_vec()).collect(),
        }
    }
}

/// Returns a release as the publisher sees it; with hierarchies in which every value has but the root above it if `flat`.
fn run(
    method: &AnyMethod,
    people: &People,
    columns: &Columns,
    worlds: Option<&RecordBatch>,
    flat: bool,
    seed: u64,
) -> Result<RecordBatch> {
    let (layout, builder) = builder(people, columns, worlds, flat)?;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (microdata, state) = builder.finish(rng.random())?;
    let release = method.release(microdata, &state, &Monitor::default(), &mut rng)?;
    let description = Description::new("test", "{}".into(), "x".into(), None);
    let shape = Shape {
        view: View::Private,
        form: method.form(),
        signatures: false,
        labels: false,
        rings: false,
        nodes: flat,
        counted: false,
    };
    let published = Published::new(release, Arc::new(schema(&layout, shape, &description)), RowOrder::Random, &mut rng);
    published.batch(0, published.len())
}

pub(super) fn encoded(people: &People, flat: bool) -> Microdata {
    builder(people, &people.all(), None, flat).unwrap().1.finish([1, 2]).unwrap().0
}

/// Appends hierarchies of quasi-identifiers with these values: all below but a root.
pub(super) fn append_flat(
    builder: &mut SnapshotBuilder,
    leaves: impl Iterator<Item = (usize, BTreeSet<i32>)>,
) -> Result<()> {
    let of = |(j, values): (usize, BTreeSet<i32>)| {
        values.into_iter().map(move |value| [format!("q{j}"), value.to_string(), "*".to_owned()])
    };
    let rows: Vec<[String; 3]> = leaves.flat_map(of).collect();
    let column = |c: usize| Arc::new(rows.iter().map(|row| Some(&row[c])).collect::<StringViewArray>()) as ArrayRef;
    let names = ["attribute", "leaf", "level1"].into_iter().enumerate();
    builder.microdata.append_hierarchies(&RecordBatch::try_from_iter(names.map(|(c, name)| (name, column(c)))).unwrap())
}

/// Makes a builder, with hierarchies of but a root above every value if `flat`.
pub(super) fn builder(
    people: &People,
    columns: &Columns,
    worlds: Option<&RecordBatch>,
    flat: bool,
) -> Result<(Layout, SnapshotBuilder)> {
    let (batch, roles) = people.batch(columns);
    let layout = Layout::try_new(&batch.schema(), &roles)?;
    let mut builder = SnapshotBuilder::try_new(layout.clone(), Some(StateKind::Worlds))?;
    builder.microdata.append(&batch)?;
    if let Some(worlds) = worlds {
        builder.append_previous(worlds)?;
    }
    if flat {
        let of = |&j: &usize| (j, people.quasi[j].iter().flatten().copied().collect());
        append_flat(&mut builder, columns.quasi.iter().map(of))?;
    }
    Ok((layout, builder))
}

fn worlds_of(l: usize) -> AnyMethod {
    AnyMethod::SequentialWorlds(Worlds { l, cuts: Cuts::Tight })
}

fn release_of(p: usize, loss: Loss) -> AnyMethod {
    AnyMethod::SequentialRelease(SequentialRelease { p, loss })
}

/// Returns the person to partners.
fn partners(worlds: &RecordBatch) -> BTreeMap<i64, Vec<i64>> {
    let ids = worlds.column(0).as_primitive::<Int64Type>();
    let lists = worlds.column_by_name("partners").unwrap().as_list::<i32>();
    let list = |i: usize| lists.value(i).as_primitive::<Int64Type>().values().to_vec();
    (0..worlds.num_rows()).map(|i| (ids.value(i), list(i))).collect()
}

/// Returns the people who are not in a ring of different values with their partners. The checker shares no code with the method.
fn outside_rings(people: &People, partners: &BTreeMap<i64, Vec<i64>>) -> usize {
    let partners: Vec<Vec<usize>> = partners.values().map(|ids| ids.iter().map(|&id| id as usize).collect()).collect();
    let values: Vec<u64> = people.sensitive.iter().map(|&value| value as u64).collect();
    people_outside_rings(&partners, &values)
}

/// Returns the ends of intervals; NULL lies below all values.
fn ends(of: &StructArray, name: &str) -> Vec<i64> {
    let end = of.column_by_name(name).unwrap().as_primitive::<Int32Type>();
    end.iter().map(|value| value.map_or(i64::MIN, i64::from)).collect()
}

/// Returns the values that travel, as a number.
fn number(sensitive: Option<i32>, other: &[i32]) -> u64 {
    let value = |sum: u64, value: i32| sum * 1000 + value as u64 + 1;
    other.iter().fold(sensitive.map_or(0, |value| value as u64 + 1), |sum, &next| value(sum, next))
}

fn released(release: &RecordBatch, columns: &Columns) -> ReleasedRows {
    let column = |name: String| release.column_by_name(&name).unwrap().clone();
    let quasi: Vec<(Vec<i64>, Vec<i64>)> = columns
        .quasi
        .iter()
        .map(|j| {
            let intervals = column(format!("q{j}"));
            (ends(intervals.as_struct(), "lo"), ends(intervals.as_struct(), "hi"))
        })
        .collect();
    let rows = 0..release.num_rows();
    let int = |name: String, i: usize| column(name).as_primitive::<Int32Type>().value(i);
    let value = |i: usize| {
        let other: Vec<i32> = columns.other.iter().map(|j| int(format!("o{j}"), i)).collect();
        number(columns.sensitive.then(|| int("s".to_owned(), i)), &other)
    };
    ReleasedRows {
        boxes: rows.clone().flat_map(|i| quasi.iter().map(move |(lo, hi)| [lo[i], hi[i]])).collect(),
        values: rows.map(value).collect(),
    }
}

/// Returns a world: everybody carries what `carried` has.
fn world(people: &People, columns: &Columns, carried: impl Fn(i64) -> i64) -> World {
    let mut world = World::default();
    for (i, id) in people.ids().into_iter().enumerate() {
        world.quasi.extend(columns.quasi.iter().map(|&j| people.quasi[j][i].map_or(i64::MIN, i64::from)));
        let donor = (carried(id) - people.first) as usize;
        let other: Vec<i32> = columns.other.iter().map(|&j| people.other[j][donor]).collect();
        world.values.push(number(columns.sensitive.then(|| people.sensitive[donor]), &other));
    }
    world
}

/// Counts the released values that are no single values.
fn generalized(release: &ReleasedRows) -> usize {
    release.boxes.iter().filter(|[lo, hi]| lo != hi).count()
}

fn people(rows: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = People> {
    let value = prop_oneof![1 => Just(None), 9 => (0..8).prop_map(Some)];
    // Skewed: half of the rows have few values.
    let sensitive = prop_oneof![0..12, 0..3];
    let row = (prop::collection::vec(value, 3), sensitive, prop::collection::vec(0..3, 2));
    prop::collection::vec(row, rows).prop_map(|rows| People {
        first: 0,
        quasi: (0..3).map(|j| rows.iter().map(|row| row.0[j]).collect()).collect(),
        sensitive: rows.iter().map(|row| row.1).collect(),
        other: (0..2).map(|j| rows.iter().map(|row| row.2[j]).collect()).collect(),
    })
}

fn columns() -> impl Strategy<Value = Columns> {
    let some = prop::sample::subsequence(vec![0, 1, 2], 1..=3);
    (some, any::<bool>(), prop::sample::subsequence(vec![0, 1], 0..=2)).prop_map(|(quasi, sensitive, other)| Columns {
        quasi,
        sensitive,
        other,
    })
}

fn diversity(people: &People) -> usize {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    people.sensitive.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
    people.len() / counts.values().max().copied().unwrap_or(1)
}

/// Counts the fewest generalized rows. Of each class, as many rows can stay as they are as all worlds have people with the same quasi-identifiers in it.
fn least_generalized(worlds: &[World], quasi: usize) -> usize {
    let counts = |world: &World| {
        let mut counts: BTreeMap<(u64, Vec<i64>), usize> = BTreeMap::new();
        for (i, &value) in world.values.iter().enumerate() {
            *counts.entry((value, world.quasi[i * quasi..][..quasi].to_vec())).or_default() += 1;
        }
        counts
    };
    let all: Vec<_> = worlds.iter().map(counts).collect();
    let kept: usize = all[0]
        .keys()
        .map(|key| all.iter().map(|counts| counts.get(key).copied().unwrap_or(0)).min().unwrap_or(0))
        .sum();
    worlds[0].values.len() - kept
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Two batches of people and releases of any columns: everybody has l values, and every world is consistent with every release.
    #[test]
    fn every_world_is_consistent_with_every_release(
        first in people(2..60), more in people(2..30), chosen in prop::collection::vec(columns(), 1..4),
        l in 2_usize..7, p in 1_usize..40, em in any::<bool>(), median in any::<bool>(), seed in any::<u64>(),
    ) {
        let more = People { first: first.len() as i64, ..more };
        let loss = if em { Loss::Em } else { Loss::Lm };
        let cuts = if median { Cuts::Median } else { Cuts::Tight };
        let method = AnyMethod::SequentialWorlds(Worlds { l, cuts });
        let made = run(&method, &first, &first.all(), None, false, seed);
        if diversity(&first) < l {
            let text = made.unwrap_err().to_string();
            prop_assert!(text.contains("eligible"), "{}", text);
            return Ok(());
        }
        let mut worlds = made.unwrap();
        let mut everybody = first.clone();
        let both = first.and(&more);
        match run(&method, &both, &both.all(), Some(&worlds), false, seed) {
            Ok(batch) => {
                prop_assert_eq!(batch.num_rows(), more.len());
                worlds = concat_batches(&worlds.schema(), [&worlds, &batch]).unwrap();
                everybody = both;
            }
            Err(error) => {
                prop_assert!(diversity(&more) < l && error.to_string().contains("eligible"), "{}", error);
                let refused = run(&release_of(p, loss), &both, &both.all(), Some(&worlds), false, seed).unwrap_err();
                prop_assert!(refused.to_string().contains("without worlds"), "{}", refused);
            }
        }
        let partners = partners(&worlds);
        prop_assert_eq!(partners.len(), everybody.len());
        for (&id, of_person) in &partners {
            let values: BTreeSet<i32> = of_person.iter().chain([&id]).map(|&id| everybody.sensitive[id as usize]).collect();
            prop_assert_eq!(values.len(), l);
            // Batches keep to themselves.
            prop_assert!(of_person.iter().all(|&other| (other < more.first) == (id < more.first)));
        }
        prop_assert_eq!(outside_rings(&everybody, &partners), 0);
        for columns in &chosen {
            let release = run(&release_of(p, loss), &everybody, columns, Some(&worlds), false, seed).unwrap();
            let rows = released(&release, columns);
            let possible: Vec<World> = (0..l)
                .map(|i| world(&everybody, columns, |id| if i == 0 { id } else { partners[&id][i - 1] }))
                .collect();
            for world in &possible {
                prop_assert!(world.is_consistent(&rows, columns.quasi.len()));
            }
            prop_assert!(rows.boxes.chunks(columns.quasi.len()).filter(|row| row.iter().any(|[lo, hi]| lo != hi)).count()
                >= least_generalized(&possible, columns.quasi.len()));
            if !columns.sensitive && columns.other.is_empty() {
                prop_assert_eq!(generalized(&rows), 0);
            }
            // The publisher's view: rows of the people themselves.
            let ids = release.column(0).as_primitive::<Int64Type>();
            for (i, &id) in ids.values().iter().enumerate() {
                let value = world(&everybody, columns, |id| id).values[id as usize];
                prop_assert_eq!(rows.values[i], value);
            }
        }
    }

    /// Rows, groups of a release: of its own input and seed, whatever came before, on any number of threads, in any order of arrival.
    #[test]
    fn a_release_depends_on_nothing_else(people in people(20..60), columns in columns(), seed in any::<u64>()) {
        prop_assume!(diversity(&people) >= 3);
        let worlds = run(&worlds_of(3), &people, &people.all(), None, false, seed).unwrap();
        let one = || run(&release_of(7, Loss::Lm), &people, &columns, Some(&worlds), false, seed).unwrap();
        let before = one();
        run(&release_of(7, Loss::Lm), &people, &people.all(), Some(&worlds), false, seed ^ 1).unwrap();
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        prop_assert_eq!(&before, &alone.install(one));
        let turned = datafusion::arrow::compute::take_record_batch(
            &worlds, &Int64Array::from_iter_values((0..worlds.num_rows() as i64).rev())).unwrap();
        prop_assert_eq!(&before, &run(&release_of(7, Loss::Lm), &people, &columns, Some(&turned), false, seed).unwrap());
    }

    /// Everybody who leaves is missed.
    #[test]
    fn people_who_leave(people in people(20..60), columns in columns(), left in 1_usize..10, seed in any::<u64>()) {
        prop_assume!(diversity(&people) >= 3);
        let worlds = run(&worlds_of(3), &people, &people.all(), None, false, seed).unwrap();
        let stayed = people.truncated(people.len() - left);
        let refused = run(&release_of(7, Loss::Lm), &stayed, &columns, Some(&worlds), false, seed).unwrap_err();
        prop_assert!(refused.to_string().contains(&format!("{left} people who have worlds are missing")), "{}", refused);
    }

    /// Every row of the baseline covers l people of different values, among them its own.
    #[test]
    fn the_baseline_is_diverse(people in people(2..60), l in 2_usize..6, seed in any::<u64>()) {
        let method = AnyMethod::NonSequential(NonSequential { l, cuts: Cuts::Tight });
        let made = run(&method, &people, &people.all(), None, false, seed);
        if diversity(&people) < l {
            prop_assert!(made.unwrap_err().to_string().contains("eligible"));
            return Ok(());
        }
        let columns = people.all();
        let release = made.unwrap();
        let rows = released(&release, &columns);
        prop_assert!(world(&people, &columns, |id| id).is_consistent(&rows, 3));
        let sensitive = release.column_by_name("s").unwrap().as_primitive::<Int32Type>();
        for i in 0..people.len() {
            let covers = |row: usize| {
                let code = |j: usize| people.quasi[j][i].map_or(i64::MIN, i64::from);
                rows.boxes[row * 3..][..3].iter().enumerate().all(|(j, [lo, hi])| (lo..=hi).contains(&&code(j)))
            };
            let values: BTreeSet<i32> =
                (0..people.len()).filter(|&row| covers(row)).map(|row| sensitive.value(row)).collect();
            prop_assert!(values.len() >= l);
        }
    }
}

/// Rows that are all alike, but for the sensitive value; and one row.
#[test]
fn rows_that_are_alike() {
    let rows = 3000;
    let people = People {
        first: 0,
        quasi: vec![vec![Some(7); rows], vec![None; rows]],
        sensitive: (0..rows as i32).map(|row| row % 10).collect(),
        other: vec![vec![1; rows]],
    };
    let worlds = run(&worlds_of(10), &people, &people.all(), None, false, 1).unwrap();
    let release = run(&release_of(100, Loss::Em), &people, &people.all(), Some(&worlds), false, 1).unwrap();
    assert_eq!(generalized(&released(&release, &people.all())), 0);
    let one = people.truncated(1);
    assert!(run(&worlds_of(2), &one, &one.all(), None, false, 1).is_err());
}

/// Large classes, which are cut on several cores.
#[test]
fn the_same_on_any_number_of_threads() {
    let rows = 40_000_usize;
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut column = |values: i32| (0..rows).map(|_| Some(rng.random_range(0..values))).collect::<Vec<_>>();
    let people = People {
        first: 0,
        quasi: vec![column(1000), column(50)],
        sensitive: (0..rows as i32).map(|row| row % 2).collect(),
        other: Vec::new(),
    };
    let worlds = run(&worlds_of(2), &people, &people.all(), None, false, 1).unwrap();
    let released = |threads: usize, columns: &Columns| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&release_of(100, Loss::Lm), &people, columns, Some(&worlds), false, 5).unwrap())
    };
    for quasi in [vec![0, 1], vec![1]] {
        let columns = Columns { quasi, sensitive: true, other: Vec::new() };
        assert_eq!(released(1, &columns), released(5, &columns));
    }
}

#[test]
fn more_quasi_identifiers_than_are_supported() {
    let rows = 10;
    let people = People {
        first: 0,
        quasi: (0..65).map(|j| (0..rows).map(|row| Some(row * j % 7)).collect()).collect(),
        sensitive: (0..rows).map(|row| row % 5).collect(),
        other: Vec::new(),
    };
    let few = Columns { quasi: vec![0], sensitive: true, other: Vec::new() };
    let worlds = run(&worlds_of(2), &people, &few, None, false, 1).unwrap();
    let columns = |quasi: usize| Columns { quasi: (0..quasi).collect(), sensitive: true, other: Vec::new() };
    let release = |quasi: usize| run(&release_of(100, Loss::Lm), &people, &columns(quasi), Some(&worlds), false, 1);
    assert!(release(64).is_ok());
    let error = release(65).unwrap_err().to_string();
    assert!(error.contains("65 quasi-identifiers are too many"), "{error}");
}
