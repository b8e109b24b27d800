//! Tests of what kept columns tell, as black boxes asked by SQL. The reader knows everybody's quasi-identifiers and
//! this program, and takes all ways to give the values to the people for equally likely.

use std::collections::BTreeMap;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::prelude::SessionContext;

use super::support::{run, session};

/// Number of people, with two sensitive values, each twice, and kept values of their own.
const PEOPLE: usize = 4;
const AGES: [i64; PEOPLE] = [10, 20, 30, 40];
/// Ages at a second release, by which others are together.
const LATER: [i64; PEOPLE] = [10, 30, 20, 40];

/// Number of draws of a release.
const SEEDS: u64 = 150;
/// Least number of times that an outcome is seen, for its frequency to say something.
const SELDOM: u32 = 100;

/// Says who has which of two values, and who has which kept value.
#[derive(Clone, Copy)]
struct World {
    values: [usize; PEOPLE],
    kept: [usize; PEOPLE],
}

fn worlds() -> Vec<World> {
    let places = |code: usize| [code % PEOPLE, code / 4 % PEOPLE, code / 16 % PEOPLE, code / 64];
    let kept = (0..256).map(places).filter(|kept| (0..PEOPLE).all(|value| kept.contains(&value)));
    let values: Vec<[usize; PEOPLE]> = (0..16_usize)
        .filter(|bits| bits.count_ones() == 2)
        .map(|bits| [bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3 & 1])
        .collect();
    kept.flat_map(|kept| values.iter().map(move |&values| World { values, kept })).collect()
}

/// Returns what a release says of each world: its groups with their ranges, sensitive and kept values. Worlds are parts of one table.
async fn seen(context: &SessionContext, worlds: &[World], ages: [i64; PEOPLE], call: &str) -> Vec<Vec<[i64; 5]>> {
    let row = |(part, world): (usize, &World)| {
        let of_person = |person: usize| {
            format!(
                "({part}, {}, {}, {}, {})",
                person + PEOPLE * part,
                ages[person],
                world.values[person],
                world.kept[person]
            )
        };
        (0..PEOPLE).map(of_person).collect::<Vec<_>>().join(", ")
    };
    let rows = worlds.iter().enumerate().map(row).collect::<Vec<_>>().join(", ");
    run(context, "DROP TABLE IF EXISTS worlds").await.unwrap();
    run(context, &format!("CREATE TABLE worlds AS SELECT column1 AS part, column2 AS id, column3 AS age, column4 AS s, column5 AS k FROM (VALUES {rows})"))
        .await
        .unwrap();
    let released = format!(
        "SELECT part, dense_rank() OVER (PARTITION BY part ORDER BY age.lo, age.hi) AS place, age.lo AS lo, age.hi AS hi, s, k FROM {call} ORDER BY part, lo, hi, s, k"
    );
    let mut seen = vec![Vec::new(); worlds.len()];
    for batch in run(context, &released).await.unwrap() {
        let columns: Vec<_> = batch.columns().iter().map(|column| cast(column, &DataType::Int64).unwrap()).collect();
        let at = |column: usize, row: usize| columns[column].as_primitive::<Int64Type>().value(row);
        for row in 0..batch.num_rows() {
            seen[at(0, row) as usize].push([1, 2, 3, 4, 5].map(|column| at(column, row)));
        }
    }
    seen
}

/// Returns the highest probability of a value of somebody, over all that can be seen.
fn surest(worlds: &[World], seen: impl Iterator<Item = Vec<[i64; 5]>>) -> f64 {
    let mut of: BTreeMap<Vec<[i64; 5]>, Vec<&World>> = BTreeMap::new();
    worlds.iter().zip(seen).for_each(|(world, seen)| of.entry(seen).or_default().push(world));
    let shares = of.values().flat_map(|worlds| {
        (0..PEOPLE).map(|person| {
            let ones = worlds.iter().filter(|world| world.values[person] == 1).count();
            ones.max(worlds.len() - ones) as f64 / worlds.len() as f64
        })
    });
    shares.fold(0.0, f64::max)
}

const ROLES: &str = "id => id, quasi => age, sensitive => s, insensitive => k, within => part";

/// The bound is 1/2 in one release; in a second one of the same people, what is kept tells which rows are one person's, and with it the values.
#[tokio::test(flavor = "multi_thread")]
async fn kept_values_tell_nothing_in_one_release_and_all_in_two() {
    let context = session();
    let worlds = worlds();
    assert_eq!(worlds.len(), 144);
    let fair = format!("mondrian(worlds, 2, 2, {ROLES}, cuts => 'fair', seed => 1)");
    let mut releases: BTreeMap<Vec<[i64; 5]>, Vec<u32>> = BTreeMap::new();
    for seed in 0..SEEDS {
        let first = seen(&context, &worlds, AGES, &fair.replace("seed => 1", &format!("seed => {seed}"))).await;
        assert!(first.iter().all(|rows| rows.len() == PEOPLE));
        for (world, rows) in first.into_iter().enumerate() {
            releases.entry(rows).or_insert_with(|| vec![0; worlds.len()])[world] += 1;
        }
    }
    let (mut alone, mut looked_at) = (0.0_f64, 0);
    for times in releases.values() {
        let all: u32 = times.iter().sum();
        if all < SELDOM {
            continue;
        }
        looked_at += 1;
        for person in 0..PEOPLE {
            let ones: u32 =
                worlds.iter().zip(times).filter(|(world, _)| world.values[person] == 1).map(|(_, times)| times).sum();
            // Within five standard deviations of a half.
            let share = f64::from(ones.max(all - ones)) / f64::from(all) - 2.5 / f64::from(all).sqrt();
            alone = alone.max(share);
        }
    }
    assert!(looked_at > 10, "{looked_at} of {} outcomes", releases.len());
    // In groups of two, which k alone makes, a group can have one value: no bound. Of two, they tell who is who.
    let by_k = format!("mondrian(worlds, 2, {ROLES}, seed => 1)");
    let (first, second) = (seen(&context, &worlds, AGES, &by_k).await, seen(&context, &worlds, LATER, &by_k).await);
    let without = |rows: &Vec<[i64; 5]>| {
        let mut rows: Vec<[i64; 5]> = rows.iter().map(|row| [row[0], row[1], row[2], row[3], 0]).collect();
        rows.sort_unstable();
        rows
    };
    let both = || first.iter().zip(&second);
    let linked = surest(&worlds, both().map(|(first, second)| [first.as_slice(), second].concat()));
    let mixed = |rows: &Vec<[i64; 5]>| rows.iter().filter(|row| row[0] == 1).map(|row| row[3]).sum::<i64>() == 1;
    let open: Vec<usize> = (0..worlds.len()).filter(|&world| mixed(&first[world]) && mixed(&second[world])).collect();
    let of_open = |rows: &[Vec<[i64; 5]>]| open.iter().map(|&world| rows[world].clone()).collect::<Vec<_>>();
    let left: Vec<World> = open.iter().map(|&world| worlds[world]).collect();
    let pairs = || of_open(&first).into_iter().zip(of_open(&second));
    let unlinked = surest(&left, pairs().map(|(first, second)| [without(&first), without(&second)].concat()));
    let linked_open = surest(&left, pairs().map(|(first, second)| [first, second].concat()));
    println!(
        "the surest guess: one release {alone:.2} less the noise of {SEEDS} draws; two of the same people, of whose groups each has both values: {unlinked:.2} without the kept values, \
         {linked_open:.2} with them (all: {linked:.2})"
    );
    assert!(alone <= 0.5, "{alone}");
    assert!((unlinked - 0.5).abs() < 1e-9, "{unlinked}");
    assert!((linked_open - 1.0).abs() < 1e-9, "{linked_open}");
}
