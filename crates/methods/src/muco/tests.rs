//! Tests of programs against an independent solver, and of tables, draws and releases. Tables and draws are compared with their definitions, releases with what
//! they promise.

use std::collections::HashMap;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::program::Program;
use super::starts::Starts;
use super::table::OutputTable;
use super::*;
use crate::AnyMethod;
use crate::release::View;
use crate::sample::{Table, bands};

/// Returns the least cost by an interior point method on the paper's program. `None` if it does not get near enough.
fn independent(program: &Program<'_>) -> Option<f64> {
    let d = program.weights.len();
    let variable = |row: usize, value: usize| row * d + value;
    let (mut at, mut of, mut factor) = (Vec::new(), Vec::new(), Vec::new());
    let mut entry = |constraint: usize, variable: usize, value: f64| {
        at.push(constraint);
        of.push(variable);
        factor.push(value);
    };
    for row in 0..d {
        (0..d).for_each(|value| entry(row, variable(row, value), 1.0));
        for value in 0..d {
            let constraint = d + variable(row, value);
            entry(constraint + d * d, variable(row, value), -1.0);
            for other in 0..d {
                let own = f64::from(u8::from(other == row)) * program.cover;
                entry(constraint, variable(other, value), own - f64::from(program.weights[other]));
            }
        }
    }
    let constraints = CscMatrix::new_from_triplets(d + 2 * d * d, d * d, at, of, factor);
    let cost: Vec<f64> = (0..d * d).map(|at| f64::from(program.weights[at / d]) * program.distances[at]).collect();
    let right: Vec<f64> = (0..d + 2 * d * d).map(|constraint| f64::from(u8::from(constraint < d))).collect();
    let cones = [ZeroConeT(d), NonnegativeConeT(2 * d * d)];
    let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
    let mut solver =
        DefaultSolver::new(&CscMatrix::zeros((d * d, d * d)), &cost, &constraints, &right, &cones, settings);
    solver.solve();
    matches!(solver.solution.status, SolverStatus::Solved).then_some(solver.solution.obj_val)
}

/// Programs in which a cover takes a hair of a row, or lacks one: what is nothing but for rounding must not be taken for a pivot, nor levels for equal
/// that differ after a large step.
#[test]
fn a_hair_of_a_row() {
    let on_a_line = |places: &[f64]| -> Vec<f64> {
        let d = places.len();
        (0..d * d).map(|at| (places[at / d] - places[at % d]).abs()).collect()
    };
    let places = [0.0, 0.0, 13.0, 14.0, 15.0, 16.0, 17.0, 19.0];
    let cases: [(&[u32], &[f64], f64); 3] = [
        (&[2, 3, 1, 2, 2, 1, 3, 1], &places, 4.9900274994117755),
        (&[1, 3, 1, 2, 1, 1], &[0.0, 11.0, 11.0, 12.0, 19.0, 28.0], 3.0002416485667207),
        (&[1, 2, 2, 3, 1, 3], &[10.0, 11.0, 18.0, 22.0, 24.0, 28.0], 5.999996251011087),
    ];
    for (weights, places, cover) in cases {
        let distances = on_a_line(places);
        let program = Program { weights, distances: &distances, line: true, cover };
        let table = program.solve(|| None);
        assert!(is_feasible(&program, &table), "{table:?}");
        if let Some(independent) = independent(&program) {
            assert!((program.cost(&table) - independent).abs() < 1e-4 * (1.0 + independent), "{cover} {independent}");
        }
    }
}

/// Returns the values on a line, or anyhow; rows of each; and how many must cover each other, as a share of what is possible.
fn programs() -> impl Strategy<Value = (Vec<u32>, Vec<f64>, bool, f64)> {
    let values = prop::collection::vec((1_u32..4, 0_u32..30), 2..9);
    (values, 0..3, 0.0..=1.0_f64, any::<bool>()).prop_map(|(values, kind, share, whole)| {
        let weights: Vec<u32> = values.iter().map(|(weight, _)| *weight).collect();
        let mut places: Vec<f64> = values.iter().map(|(_, place)| f64::from(*place)).collect();
        places.sort_by(f64::total_cmp);
        let d = places.len();
        let distance = |i: usize, j: usize| match kind {
            0 => (places[i] - places[j]).abs(),
            1 => f64::from(u8::from(i != j)),
            // A tree of three levels.
            _ => f64::from(u8::from(i != j) + u8::from(i / 2 != j / 2) + u8::from(i / 4 != j / 4)),
        };
        let rows: u32 = weights.iter().sum();
        let cover = 1.0 + share * f64::from(rows - 1);
        let distances = (0..d * d).map(|at| distance(at / d, at % d)).collect();
        (weights, distances, kind == 0, if whole { cover.round() } else { cover })
    })
}

/// Returns true if it is a table that keeps delta, but for rounding.
fn is_feasible(program: &Program<'_>, table: &[f64]) -> bool {
    let d = program.weights.len();
    let rows =
        table.chunks_exact(d).all(|row| row.iter().all(|p| *p >= 0.0) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let columns = (0..d).all(|value| {
        let column = (0..d).map(|row| table[row * d + value]);
        let sum: f64 = column.clone().zip(program.weights).map(|(p, &rows)| p * f64::from(rows)).sum();
        column.fold(0.0, f64::max) * program.cover <= sum + 1e-9
    });
    rows && columns
}

proptest! {
    #[test]
    fn the_optimum_is_that_of_an_independent_solver((weights, distances, line, cover) in programs()) {
        let program = Program { weights: &weights, distances: &distances, line, cover };
        let table = program.solve(|| None);
        prop_assert!(is_feasible(&program, &table), "{table:?}");
        let (own, independent) = (program.cost(&table), independent(&program));
        // An interior point method that does not get near says nothing.
        let Some(independent) = independent else { return Ok(()) };
        prop_assert!((own - independent).abs() < 1e-5 * (1.0 + independent), "{own} {independent}");
        // So is it from the optimum of other distances.
        let from = program.solve(|| Starts::new(cover).of(&weights));
        prop_assert!(is_feasible(&program, &from), "{from:?}");
        prop_assert!((program.cost(&from) - independent).abs() < 1e-5 * (1.0 + independent), "{from:?} {independent}");
        // What is published is as good, and exact.
        let delta = 1.0 / cover;
        if delta >= 1.0 / f64::from(weights.iter().sum::<u32>()) {
            let table = OutputTable::new(&table, &weights, delta);
            prop_assert!(table.keeps(&weights, delta));
            let d = weights.len();
            let published: Vec<f64> = (0..d * d).map(|at| table.probability(at / d, at % d)).collect();
            let widest = distances.iter().copied().fold(1.0, f64::max);
            let near = 1e-3 * (widest + own);
            prop_assert!((program.cost(&published) - own).abs() < near, "{}", program.cost(&published));
        }
    }
}

/// Makes ages and zips of groups of different sizes, with few columns all different.
fn table(rows: usize, quasi: usize, values: i32, seed: u64) -> Table {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let column = |j: usize, rng: &mut ChaCha20Rng| {
        let value = |rng: &mut ChaCha20Rng| rng.random_range(0..[3, 12, 40][j % 3]);
        (0..rows).map(|_| (rng.random_range(0..9) > 0).then(|| value(rng))).collect()
    };
    Table {
        quasi: (0..quasi).map(|j| column(j, &mut rng)).collect(),
        sensitive: Some((0..rows).map(|_| rng.random_range(0..values)).collect()),
        ids: true,
        ..Table::default()
    }
}

fn method(delta: f64, l: usize) -> AnyMethod {
    AnyMethod::Muco(Muco::try_new(delta, Some(l), Cuts::Tight).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every row once, beside its own sensitive value, with values of its columns; refused exactly if the values are too uneven. In
    /// a table of a single group, where two columns differ, nobody stays as they are.
    #[test]
    fn rows_look_like_rows(
        rows in 0_usize..90, quasi in 1_usize..5, values in 2..30_i32, l in 2_usize..6, share in 0.0..0.99, fair in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let table = table(rows, quasi, values, seed);
        let delta = 1.0 / l as f64 * (1.0 - share) + share;
        let sensitive = table.sensitive.clone().unwrap();
        let eligible = sensitive.iter().all(|value| sensitive.iter().filter(|other| *other == value).count() * l <= rows);
        let method = Muco::try_new(delta, Some(l), Cuts::Tight).unwrap().with_fair(fair);
        let batch = match table.publish(&AnyMethod::Muco(method), View::Private, seed) {
            Ok(batch) => batch,
            Err(error) => {
                prop_assert!(matches!(error, Error::Refused(_)) && !eligible, "{error}");
                return Ok(());
            }
        };
        prop_assert!(eligible);
        prop_assert_eq!(batch.num_columns(), quasi + 2);
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let mut sorted: Vec<i64> = ids.to_vec();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..rows as i64).collect::<Vec<_>>());
        let published = batch.column(quasi + 1).as_primitive::<Int32Type>();
        prop_assert!(ids.iter().zip(published.values()).all(|(&id, value)| sensitive[id as usize] == *value));
        for j in 0..quasi {
            let column = batch.column(j + 1).as_primitive::<Int32Type>();
            prop_assert!(column.iter().all(|value| table.quasi[j].contains(&value)));
        }
        let differs = |j: &usize| table.quasi[*j].iter().any(|value| *value != table.quasi[*j][0]);
        if rows < 2 * l && (0..quasi).filter(differs).count() > 1 {
            for (place, &id) in ids.iter().enumerate() {
                let published = |j: usize| batch.column(j + 1).as_primitive::<Int32Type>().iter().nth(place).flatten();
                prop_assert!((0..quasi).any(|j| published(j) != table.quasi[j][id as usize]));
            }
        }
    }

    /// Neither threads nor the order of arrival decide anything.
    #[test]
    fn the_same_on_any_number_of_threads(fair in any::<bool>(), seed in any::<u64>()) {
        let with_ids = table(300, 3, 40, seed);
        let method = AnyMethod::Muco(Muco::try_new(0.3, Some(4), Cuts::Tight).unwrap().with_fair(fair));
        let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let publish = || with_ids.publish(&method, View::Private, seed).unwrap();
        prop_assert_eq!(pool(1).install(publish), pool(4).install(publish));
        let table = Table { ids: false, ..with_ids };
        let mut order: Vec<usize> = (0..table.rows()).collect();
        order.shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
        let publish = |table: &Table| table.publish(&method, View::Public, seed).unwrap();
        prop_assert_eq!(publish(&table), publish(&table.permuted(&order)));
    }
}

/// Computes the probability of each published value, of each row and attribute. By the tables, not by drawing.
fn probabilities(source: &Source<'_>, rows: &[u32]) -> Vec<Vec<Vec<(u32, f64)>>> {
    let tables = source.tables(rows).unwrap();
    let of = |(place, &row): (usize, &u32)| {
        let of_attribute = |j: usize| match tables.tables.iter().find(|table| table.attribute == j) {
            None => vec![(source.microdata.quasi_at(row, j), 1.0)],
            Some(table) => {
                let parts = table.row(table.own[place]).iter().map(|&part| part as f64 / tables.whole as f64);
                table.columns.iter().copied().zip(parts).collect()
            }
        };
        (0..source.distances.len()).map(of_attribute).collect()
    };
    rows.iter().enumerate().map(of).collect()
}

/// Frequencies of many draws are those of the tables: chi-square, for every row and attribute.
#[test]
fn draws_have_the_probabilities_of_the_tables() {
    const DRAWS: usize = 4000;
    let (microdata, _) = table(60, 3, 30, 5).encode([1, 2]).unwrap();
    let monitor = Monitor::default();
    let params = Muco::try_new(0.25, Some(5), Cuts::Tight).unwrap();
    let groups = grouping::group(&microdata, params.l, params.cuts, [7; 32], &monitor).unwrap();
    assert!(groups.len() > 5);
    let distances: Vec<Distance> = microdata.quasi.iter().map(|attribute| Distance::of(attribute).unwrap()).collect();
    let memo = Memo::new(params.delta.get());
    let widest: Vec<f64> = microdata
        .quasi
        .iter()
        .zip(&distances)
        .map(|(attribute, distance)| distance.widest(&[0, attribute.domain.len() as u32 - 1]))
        .collect();
    let source = Source { microdata: &microdata, distances: &distances, memo: &memo, widest: &widest };
    let d = distances.len();
    let mut counts: Vec<HashMap<u32, f64>> = vec![HashMap::new(); groups.members.len() * d];
    let mut mixed = 0;
    for draw in 0..DRAWS {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&(draw as u64).to_le_bytes());
        let drawn = source.draw(&groups, secret, &params, &monitor).unwrap();
        counts.iter_mut().zip(drawn.codes.iter()).for_each(|(counts, code)| *counts.entry(code).or_default() += 1.0);
        mixed += drawn.mixed;
        assert_eq!((drawn.unchanged, drawn.unchangeable), (0, 0));
    }
    assert!(mixed > 0);
    for group in 0..groups.len() {
        let range = groups.range(group);
        for (place, probabilities) in range.clone().zip(probabilities(&source, &groups.members[range])) {
            for (j, probabilities) in probabilities.into_iter().enumerate() {
                let total: f64 = probabilities.iter().map(|(_, p)| p).sum();
                assert!((total - 1.0).abs() < 1e-9);
                let counts = &counts[place * d + j];
                let (mut chi_square, mut cells, mut seen) = (0.0, 0.0, 0.0);
                for (code, p) in probabilities {
                    let (expected, found) = (p * DRAWS as f64, counts.get(&code).copied().unwrap_or(0.0));
                    seen += found;
                    if expected < 5.0 {
                        assert!(found < expected + 20.0, "{found} of {expected}");
                        continue;
                    }
                    chi_square += (found - expected).powi(2) / expected;
                    cells += 1.0;
                }
                assert_eq!(seen, DRAWS as f64);
                let freedom = f64::max(cells - 1.0, 1.0);
                assert!(chi_square < freedom + 6.0 * (2.0 * freedom).sqrt() + 8.0, "{chi_square} {freedom}");
            }
        }
    }
}

/// Tables that rows are drawn from keep delta, mixed or not, and every row changes. This holds down to the least delta that is possible.
#[test]
fn tables_that_are_drawn_from_keep_delta() {
    let mut mixed = 0;
    for (seed, quasi, l, delta) in [
        (9, 4, 10, 1.0 / 6.0),
        (10, 2, 10, 0.2),
        (11, 2, 5, 0.2),
        (12, 3, 7, 1.0 / 7.0),
        (13, 3, 4, 0.9),
        (14, 6, 10, 0.15),
    ] {
        let mut table = table(400, quasi, 200, seed);
        // Groups in which most rows are alike.
        table
            .quasi
            .iter_mut()
            .flatten()
            .filter(|value| value.is_some_and(|value| value > 2 && value < 30))
            .for_each(|value| *value = Some(7));
        let (microdata, _) = table.encode([3, 4]).unwrap();
        let params = Muco::try_new(delta, Some(l), Cuts::Tight).unwrap();
        let groups = grouping::group(&microdata, params.l, params.cuts, [1; 32], &Monitor::default()).unwrap();
        let distances: Vec<Distance> =
            microdata.quasi.iter().map(|attribute| Distance::of(attribute).unwrap()).collect();
        let memo = Memo::new(params.delta.get());
        let source = Source { microdata: &microdata, distances: &distances, memo: &memo, widest: &vec![1.0; quasi] };
        for group in 0..groups.len() {
            let members = &groups.members[groups.range(group)];
            mixed += usize::from(source.tables(members).unwrap().mixed);
            let rows = probabilities(&source, members);
            let differ = |j: &usize| {
                members.iter().any(|row| microdata.quasi_at(*row, *j) != microdata.quasi_at(members[0], *j))
            };
            let must_change = (0..quasi).filter(differ).count() > 1;
            for (row, probabilities) in members.iter().zip(&rows) {
                let stays = |j: usize| probabilities[j].iter().find(|(code, _)| *code == microdata.quasi_at(*row, j));
                let changes: f64 = (0..quasi).map(|j| 1.0 - stays(j).map_or(0.0, |(_, p)| *p)).sum();
                assert!(!must_change || changes > 1.0 - 1e-12, "{changes}");
            }
            for j in 0..quasi {
                let mut columns: HashMap<u32, (f64, f64)> = HashMap::new();
                for (code, p) in rows.iter().flat_map(|row| &row[j]) {
                    let column = columns.entry(*code).or_default();
                    *column = (column.0.max(*p), column.1 + p);
                }
                assert!(columns.values().all(|(most, sum)| *most <= delta * sum * (1.0 + 1e-12)));
            }
        }
    }
    assert!(mixed > 50, "{mixed}");
}

/// Returns the greatest excess of a row over delta in many releases, in standard errors. Nothing of the method is
/// used: it counts whose row had which value, in releases of one group.
fn greatest_excess(delta: f64, releases: impl Iterator<Item = RecordBatch>) -> f64 {
    let mut counts: HashMap<(usize, Option<i32>), HashMap<i64, f64>> = HashMap::new();
    for batch in releases {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        for j in 1..batch.num_columns() - 1 {
            for (&id, value) in ids.values().iter().zip(batch.column(j).as_primitive::<Int32Type>()) {
                *counts.entry((j, value)).or_default().entry(id).or_default() += 1.0;
            }
        }
    }
    let excess = |rows: &HashMap<i64, f64>| {
        let all: f64 = rows.values().sum();
        let most = rows.values().copied().fold(0.0, f64::max);
        (most - delta * all) / (delta * (1.0 - delta) * all).sqrt()
    };
    counts.values().filter(|rows| rows.values().sum::<f64>() >= 100.0).map(excess).fold(0.0, f64::max)
}

const EXCESS: f64 = 5.5;

/// Draws one group of rows with these columns, over and over.
fn excess_of(columns: &[Vec<Option<i32>>], l: usize, delta: f64, categories: bool) -> f64 {
    const DRAWS: u64 = 1500;
    let rows = columns[0].len() as i32;
    assert!(columns[0].len() < 2 * l, "one group");
    let leaves = |j: usize| columns[j].iter().flatten().max().unwrap() + 1;
    let hierarchies = if categories { bands("q0", leaves(0), 3) } else { Vec::new() };
    let sensitive = Some((0..rows).collect());
    let table = Table { quasi: columns.to_vec(), sensitive, ids: true, hierarchies, ..Table::default() };
    let release = |seed| table.publish(&method(delta, l), View::Private, seed).unwrap();
    greatest_excess(delta, (0..DRAWS).map(release))
}

/// Nine of twenty and one of sixty years, all else alike: who is of sixty is not the only one to publish 20.
#[test]
fn nobody_publishes_a_value_alone() {
    let ages = |older: usize| (0..10).map(|row| Some(if row < older { 60 } else { 20 })).collect::<Vec<_>>();
    for older in 1..=5 {
        let excess = excess_of(&[ages(older), vec![Some(1); 10]], 10, 0.2, false);
        assert!(excess < EXCESS, "{older}: {excess}");
    }
}

/// Counting over many releases finds no row more often than delta. It holds whatever the rows have in common, with
/// one quasi-identifier or more, of numbers, NULL, or leaves of a tree.
#[test]
fn shares_of_many_draws_keep_delta() {
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    for case in 0..24 {
        let (l, quasi) = ([4, 6, 10][case % 3], [2, 1, 3, 2][case % 4]);
        let rows = rng.random_range(l..2 * l);
        // From rows that are nearly all alike to rows that are nearly all different.
        let other = [0.1, 0.3, 0.7][case / 8];
        let mut value = || match rng.random::<f64>() {
            drawn if drawn < other * 0.1 => None,
            drawn if drawn < other => Some(rng.random_range(0..20)),
            _ => Some(9),
        };
        let mut columns: Vec<Vec<Option<i32>>> = (0..quasi).map(|_| (0..rows).map(|_| value()).collect()).collect();
        columns.iter_mut().for_each(|column| column[0] = Some(19));
        let least = 1.0 / l as f64;
        let delta = [least, 1.5 * least, 0.4][case % 3].max(least);
        let excess = excess_of(&columns, l, delta, case % 5 == 0);
        assert!(excess < EXCESS, "{case}: {excess} {delta} {columns:?}");
    }
}

#[test]
fn parameters_that_cannot_work_are_refused() {
    let refusal = |delta: f64, l: Option<usize>| Muco::try_new(delta, l, Cuts::Tight).unwrap_err().to_string();
    assert!(refusal(0.05, Some(10)).contains("delta can be from 0.1 up to 1; raise it, or give l => 20 or more"));
    assert!(refusal(1.0, None).contains("delta must be between 0 and 1"));
    assert!(refusal(0.0, None).contains("delta must be between 0 and 1"));
    assert!(refusal(0.9, Some(1)).contains("l must be at least 2"));
    assert_eq!([0.3, 1.0 / 49.0, 0.2].map(|delta| Muco::try_new(delta, None, Cuts::Tight).unwrap().l), [4, 49, 5]);
}

/// Groups whose rows agree on everything cannot change; they are counted, and nothing else is unchanged.
#[test]
fn rows_without_a_choice_stay_and_are_counted() {
    let table = Table {
        quasi: vec![vec![Some(1); 12], vec![Some(2); 12]],
        sensitive: Some((0..12).collect()),
        ..Table::default()
    };
    let (release, _) = table.anonymize(&method(0.5, 3), 1).unwrap();
    let perturbed = release.body.perturbed().unwrap();
    assert_eq!((perturbed.unchangeable, perturbed.unchanged), (release.groups.len(), 12));
    assert_eq!(release.mean_extent(), 0.0);
}
