//! Programs against an independent solver, tables and draws against their definitions, releases against what they promise.

use std::collections::HashMap;
use std::sync::Arc;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::draw::Choice;
use super::program::Program;
use super::reduced::Values;
use super::table::OutputTable;
use super::*;
use crate::methods::Method;
use crate::methods::sample::Table;
use crate::microdata::{Layout, MicrodataBuilder, Roles};
use crate::release::View;

/// The least cost, by an interior point method on the program as the paper writes it.
fn independent(program: &Program<'_>) -> f64 {
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
    assert!(matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved));
    solver.solution.obj_val
}

/// Values on a line, or anyhow; rows of each; and how many must cover each other, as a share of what is possible.
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

/// Whether it is a table that keeps delta, but for rounding.
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
        let table = program.solve();
        prop_assert!(is_feasible(&program, &table), "{table:?}");
        let (own, independent) = (program.cost(&table), independent(&program));
        prop_assert!((own - independent).abs() < 1e-5 * (1.0 + independent), "{own} {independent}");
        // What is published is as good, and exact.
        let delta = 1.0 / cover;
        if delta >= 1.0 / f64::from(weights.iter().sum::<u32>()) {
            let table = OutputTable::new(&table, &weights, delta);
            prop_assert!(table.keeps(&weights, delta));
            let d = weights.len();
            let published: Vec<f64> = (0..d * d).map(|at| table.probability(at / d, at % d)).collect();
            prop_assert!((program.cost(&published) - own).abs() < 1e-3 * (1.0 + own), "{}", program.cost(&published));
        }
    }
}

/// Ages and zips of some groups of different sizes, all values different in a few columns only.
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

fn method(delta: f64, l: usize) -> Method {
    Method::Muco(Muco::try_new(delta, Some(l), Cuts::Tight).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every row once, beside its own sensitive value, with values of its columns; refused exactly if the values are too uneven.
    #[test]
    fn rows_look_like_rows(
        rows in 0_usize..90, quasi in 2_usize..5, values in 2..30_i32, l in 2_usize..6, share in 0.0..0.99, seed in any::<u64>(),
    ) {
        let table = table(rows, quasi, values, seed);
        let delta = 1.0 / l as f64 * (1.0 - share) + share;
        let sensitive = table.sensitive.clone().unwrap();
        let eligible = sensitive.iter().all(|value| sensitive.iter().filter(|other| *other == value).count() * l <= rows);
        let batch = match table.publish(&method(delta, l), View::Private, seed) {
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
    }

    /// Neither threads nor the order of arrival decide anything.
    #[test]
    fn the_same_on_any_number_of_threads(seed in any::<u64>()) {
        let with_ids = table(300, 3, 40, seed);
        let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let publish = || with_ids.publish(&method(0.3, 4), View::Private, seed).unwrap();
        prop_assert_eq!(pool(1).install(publish), pool(4).install(publish));
        let table = Table { ids: false, ..with_ids };
        let mut order: Vec<usize> = (0..table.rows()).collect();
        order.shuffle(&mut ChaCha20Rng::seed_from_u64(seed));
        let publish = |table: &Table| table.publish(&method(0.3, 4), View::Public, seed).unwrap();
        prop_assert_eq!(publish(&table), publish(&table.permuted(&order)));
    }
}

/// Of each row, attribute and value of its group: the probability that it is published, with the last step for unchanged rows. By
/// the tables, not by drawing.
fn probabilities(source: &Source<'_>, rows: &[u32]) -> Vec<Vec<Vec<(u32, f64)>>> {
    let d = source.distances.len();
    let code = |row: u32, j: usize| source.microdata.quasi_of(row)[j];
    let values: Vec<Values> = (0..d)
        .map(|j| {
            let mut values = Values::default();
            values.collect(rows.iter().map(|&row| code(row, j)));
            values
        })
        .collect();
    let tables: Vec<_> = (0..d).map(|j| source.memo.table(j, &source.distances[j], &values[j])).collect();
    let choices: Vec<Choice<'_>> = (0..d)
        .filter(|&j| values[j].codes.len() > 1)
        .map(|j| {
            let range = source.distances[j].widest(&values[j].codes) / source.widest[j];
            Choice { attribute: j, values: &values[j], table: &tables[j], range }
        })
        .collect();
    rows.iter()
        .map(|&row| {
            let own = |j: usize| values[j].place(code(row, j));
            let unchanged: f64 = (0..d).map(|j| tables[j].probability(own(j), own(j))).product();
            let shares = |choice: &Choice<'_>| choice.shares(own(choice.attribute));
            let none = choices.iter().all(|choice| shares(choice).is_empty());
            let possible = |choice: &&Choice<'_>| none || !shares(choice).is_empty();
            let ranges: f64 = choices.iter().filter(possible).map(|choice| choice.range).sum();
            let of = |j: usize, place: usize| {
                let drawn = tables[j].probability(own(j), place);
                let Some(choice) = choices.iter().filter(possible).find(|choice| choice.attribute == j) else {
                    return drawn;
                };
                let mut shares = shares(choice);
                if none {
                    shares = vec![1.0; values[j].codes.len()];
                    shares[own(j)] = 0.0;
                }
                let replaced = unchanged * choice.range / ranges;
                match place == own(j) {
                    true => drawn - replaced,
                    false => drawn + replaced * shares[place] / shares.iter().sum::<f64>(),
                }
            };
            let places = |j: usize| values[j].codes.iter().enumerate().map(move |(place, &code)| (code, of(j, place)));
            (0..d).map(|j| places(j).collect()).collect()
        })
        .collect()
}

/// Frequencies of many draws are those of the tables and of the last step: chi-square, for every row and attribute.
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
    let mut randomized = 0;
    for draw in 0..DRAWS {
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&(draw as u64).to_le_bytes());
        let drawn = source.draw(&groups, secret, &monitor).unwrap();
        counts.iter_mut().zip(&drawn.codes).for_each(|(counts, &code)| *counts.entry(code).or_default() += 1.0);
        randomized += drawn.randomized;
        assert_eq!((drawn.unchanged, drawn.unchangeable), (0, 0));
    }
    assert!(randomized > 0);
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

/// The last step comes after the tables, yet in groups of ten with four quasi-identifiers the worst columns are still no worse on average than
/// delta allows.
#[test]
fn the_last_step_hardly_weakens_delta() {
    let table = table(600, 4, 200, 9);
    let (microdata, _) = table.encode([3, 4]).unwrap();
    // Worst column of each group and attribute.
    let params = Muco::try_new(1.0 / 6.0, Some(10), Cuts::Tight).unwrap();
    let groups = grouping::group(&microdata, params.l, params.cuts, [1; 32], &Monitor::default()).unwrap();
    let distances: Vec<Distance> = microdata.quasi.iter().map(|attribute| Distance::of(attribute).unwrap()).collect();
    let memo = Memo::new(params.delta.get());
    let source = Source { microdata: &microdata, distances: &distances, memo: &memo, widest: &[1.0; 4] };
    let mut worst = Vec::new();
    for group in 0..groups.len() {
        let rows = probabilities(&source, &groups.members[groups.range(group)]);
        for j in 0..4 {
            let mut columns: HashMap<u32, (f64, f64)> = HashMap::new();
            for (code, p) in rows.iter().flat_map(|row| &row[j]) {
                let column = columns.entry(*code).or_default();
                *column = (column.0.max(*p), column.1 + p);
            }
            let published = columns.values().filter(|(_, sum)| *sum > 1e-6);
            worst.push(published.map(|(most, sum)| most / sum).fold(0.0, f64::max));
        }
    }
    let mean = worst.iter().sum::<f64>() / worst.len() as f64;
    assert!(mean > 0.1 && mean < 1.0 / 6.0, "{mean}");
}

#[test]
fn parameters_that_cannot_work_are_refused() {
    let refusal = |delta: f64, l: Option<usize>| Muco::try_new(delta, l, Cuts::Tight).unwrap_err().to_string();
    assert!(refusal(0.05, Some(10)).contains("delta can be from 0.1 up to 1; raise it, or give l => 20 or more"));
    assert!(refusal(1.0, None).contains("delta must be between 0 and 1"));
    assert!(refusal(0.0, None).contains("delta must be between 0 and 1"));
    assert!(refusal(0.9, Some(1)).contains("l must be at least 2"));
    assert_eq!([0.3, 1.0 / 49.0, 0.2].map(|delta| Muco::try_new(delta, None, Cuts::Tight).unwrap().l), [4, 49, 5]);
    let one = table(40, 1, 40, 1).publish(&method(0.5, 2), View::Public, 1).unwrap_err().to_string();
    assert!(one.contains("one quasi-identifier is too few"), "{one}");
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
    let perturbed = &release.groups.perturbed;
    assert_eq!((perturbed.unchangeable, perturbed.unchanged), (release.groups.len(), 12));
    assert_eq!(release.mean_extent(), 0.0);
}

/// What the ledger says was published for the same quasi-identifiers is published again; the others are drawn.
#[test]
fn unchanged_rows_are_repeated() {
    let rows = 40_i64;
    let ids: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let q = |shift: i32| -> ArrayRef { Arc::new((0..rows as i32).map(|id| id / 4 + shift).collect::<Int32Array>()) };
    let batch = |columns: Vec<(&str, ArrayRef)>| RecordBatch::try_from_iter(columns).unwrap();
    let sensitive: ArrayRef = Arc::new((0..rows as i32).collect::<Int32Array>());
    let table = batch(vec![("id", Arc::clone(&ids)), ("q0", q(0)), ("q1", q(100)), ("s", sensitive)]);
    let roles = Roles {
        id: Some("id".to_owned()),
        quasi: vec!["q0".to_owned(), "q1".to_owned()],
        sensitive: Some("s".to_owned()),
        ..Roles::default()
    };
    // Of 0 to 19 the newest entry counts; of 20 to 29 there is one for other values; the rest were never published.
    let entries = |from: i64, to: i64, release: i64, original: i32, published: i32| {
        let column =
            |shift: i32| -> ArrayRef { Arc::new((from..to).map(|id| id as i32 / 4 + shift).collect::<Int32Array>()) };
        let constant = |value: i32| -> ArrayRef { Arc::new(Int32Array::from(vec![value; (to - from) as usize])) };
        let release: ArrayRef = Arc::new(Int64Array::from(vec![release; (to - from) as usize]));
        let ids: ArrayRef = Arc::new((from..to).collect::<Int64Array>());
        let (o0, o1, p0, p1) = (column(original), column(original + 100), constant(published), constant(published + 1));
        batch(vec![("i", ids), ("r", release), ("a", o0), ("b", o1), ("c", p0), ("d", p1)])
    };
    let mut builder = MicrodataBuilder::try_new(Layout::try_new(&table.schema(), &roles).unwrap()).unwrap();
    builder.append(&table).unwrap();
    for entries in
        [entries(0, 20, 1, 0, 500), entries(0, 20, 3, 7, 600), entries(0, 20, 2, 0, 700), entries(20, 30, 1, 1, 800)]
    {
        builder.append_previous(&entries).unwrap();
    }
    let (microdata, ledger) = builder.finish([5, 6]).unwrap();
    let Method::Muco(muco) = method(0.5, 2) else { unreachable!() };
    let release = muco.anonymize(microdata, &ledger, &Monitor::default(), &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
    assert_eq!(release.groups.perturbed.repeated, 20);
    let arrival = &release.microdata.people.as_ref().unwrap().arrival;
    let value = |j: usize, code: u32| {
        release.microdata.quasi[j].domain.values().as_primitive::<Int32Type>().value(code as usize)
    };
    for (codes, &row) in release.groups.perturbed.codes.chunks_exact(2).zip(&release.groups.members) {
        let published = [value(0, codes[0]), value(1, codes[1])];
        match arrival[row as usize] {
            0..20 => assert_eq!(published, [700, 701]),
            _ => assert!((5..10).contains(&published[0]) && (105..110).contains(&published[1])),
        }
    }
}
