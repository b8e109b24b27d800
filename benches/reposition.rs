//! Eligible snapshots of incidents reported to a police department: `cargo bench --bench reposition`.
//!
//! 539,129 incidents of 730 days, of 33 kinds, the sensitive value. Once the stream of the city, day by day; once each of its
//! districts as a stream of its own, with days of some thirty incidents. `window` is how many days are held back; 1 is plain suppression,
//! as nothing can move. Printed for each:
//!
//! - skewed: days that are not l-eligible as they are;
//! - moved, suppressed: shares of all records; least: the share that would be suppressed if the whole stream were one snapshot; distance:
//!   days that a moved record is late, in the mean;
//! - frequent: of the records that moved or were suppressed, how many have the most frequent value of their day. A reader who knows the
//!   day of a record that is not there has that chance to be right;
//! - error: of 1,000 random queries `COUNT(*) WHERE Q AND day BETWEEN a AND b`, relative to the count in the original, which is not
//!   zero, in the mean, by the length of the range. Q is the kind of incident, the district, or both, or whether there was an arrest,
//!   of a random incident.
//!
//! Then, for the first four weeks of each district and a window of seven days, what the costs of the moves and suppressions are, beside what they
//! would be for a publisher who knows the whole four weeks beforehand: an integer program over all of them, with a bound on its own
//! optimum where it is not solved in time.
//!
//! Then the time for up to 10 million made-up records of a stream, the best of three: of a file that says that it is in the order of time, and
//! of one that does not, so that the plan sorts it.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::{SessionConfig, SessionContext};
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions, Variable};
use mimalloc::MiMalloc;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const WINDOWS: [usize; 6] = [1, 2, 3, 5, 7, 14];
const RANGES: [i64; 5] = [1, 3, 7, 14, 30];
const QUERIES: usize = 1_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let directory = std::env::var("ANONYMIZE_MICRODATA")
            .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
        let file = format!("{directory}/chicago_crime.parquet");
        let context = session();
        match std::path::Path::new(&file).exists() {
            true => {
                incidents(&context, &file).await;
                foresight(&context).await;
            }
            false => println!("chicago_crime.parquet is not in {directory}"),
        }
        speed(&context).await;
    });
}

fn session() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new()).enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().collect().await.unwrap()
}

async fn incidents(context: &SessionContext, file: &str) {
    let select = "date_part('epoch', date_trunc('day', occurred_at))::BIGINT / 86400 AS day, primary_type, district, arrest, \
                  dense_rank() OVER (ORDER BY primary_type)::BIGINT AS kind";
    run(context, &format!("CREATE TABLE incidents AS SELECT {select} FROM '{file}' WHERE district IS NOT NULL")).await;
    let found = numbers(&run(context, "SELECT DISTINCT district::BIGINT FROM incidents ORDER BY 1").await);
    let districts: Vec<String> = found[0].iter().map(|district| format!("WHERE district = {district}")).collect();
    print!("| stream | l | window | cost | skewed | moved | suppressed | least | distance | frequent |");
    RANGES.iter().for_each(|days| print!(" error, {days} d |"));
    println!(" seconds |");
    println!("|:---|---:|---:|:---|---:|---:|---:|---:|---:|---:|{}---:|", "---:|".repeat(RANGES.len()));
    for (name, streams) in [("city", vec![String::new()]), ("districts", districts)] {
        for l in [4, 5] {
            for window in WINDOWS {
                let costs: &[&str] = if window == 7 { &["linear", "quadratic"] } else { &["linear"] };
                for cost in costs {
                    compare(context, name, &streams, l, window, cost).await;
                }
            }
        }
    }
}

/// A record: its day, and the day it is published, if it is; kind, district, arrest.
type Record = (i64, Option<i64>, [i64; 3]);

async fn compare(context: &SessionContext, name: &str, streams: &[String], l: usize, window: usize, cost: &str) {
    let (mut records, mut skewed, mut days, mut frequent, mut touched, mut least) = (Vec::new(), 0, 0, 0, 0, 0);
    let mut seconds = 0.0;
    for stream in streams {
        let call = format!(
            "reposition((SELECT * FROM incidents {stream}), {l}, time => day, window => {window}, sensitive => primary_type, \
             move_cost => '{cost}', finish => true, private => true, seed => 7)"
        );
        let start = Instant::now();
        let columns = "original_time, coalesce(day, -1), kind, district::BIGINT, arrest::BIGINT";
        let rows = numbers(&run(context, &format!("SELECT {columns} FROM {call}")).await);
        seconds += start.elapsed().as_secs_f64();
        let record = |at: usize| -> Record {
            (rows[0][at], Some(rows[1][at]).filter(|&day| day >= 0), [rows[2][at], rows[3][at], rows[4][at]])
        };
        let records_here: Vec<Record> = (0..rows[0].len()).map(record).collect();
        let mut counts: HashMap<i64, HashMap<i64, usize>> = HashMap::new();
        for (day, _, [kind, ..]) in &records_here {
            *counts.entry(*day).or_default().entry(*kind).or_default() += 1;
        }
        days += counts.len();
        least += excess(&counts, l);
        let most = |day: &i64| counts[day].values().copied().max().unwrap();
        skewed += counts.iter().filter(|(day, kinds)| most(day) * l > kinds.values().sum::<usize>()).count();
        for (day, _, [kind, ..]) in records_here.iter().filter(|(day, published, _)| *published != Some(*day)) {
            touched += 1;
            frequent += usize::from(counts[day][kind] == most(day));
        }
        records.extend(records_here);
    }
    let all = records.len() as f64;
    let late: Vec<i64> =
        records.iter().filter_map(|(day, published, _)| published.map(|at| at - day).filter(|&d| d > 0)).collect();
    let suppressed = records.iter().filter(|record| record.1.is_none()).count();
    let share = |part: usize, of: usize| format!("{:.2} %", 100.0 * part as f64 / (of.max(1)) as f64);
    let distance = late.iter().sum::<i64>() as f64 / late.len().max(1) as f64;
    print!(
        "| {name} | {l} | {window} | {cost} | {} | {} | {} | {} | {distance:.2} | {} |",
        share(skewed, days),
        share(late.len(), all as usize),
        share(suppressed, all as usize),
        share(least, all as usize),
        share(frequent, touched)
    );
    errors(&records).iter().for_each(|error| print!(" {:.2} % |", 100.0 * error));
    println!(" {seconds:.2} |");
}

/// Counts the records of all days together that are too many of their kind.
fn excess(days: &HashMap<i64, HashMap<i64, usize>>, l: usize) -> usize {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    days.values().flatten().for_each(|(kind, count)| *counts.entry(*kind).or_default() += count);
    let kept = |level: usize| counts.values().map(|&count| count.min(level)).sum::<usize>();
    let highest = counts.values().copied().max().unwrap_or(0);
    let level = (0..=highest).rev().find(|&level| kept(level) >= level * l).unwrap_or(0);
    counts.values().sum::<usize>() - kept(level)
}

/// Returns the mean relative errors of random queries, by length of the range.
fn errors(records: &[Record]) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    // Counts up to each day, by predicate: kind, district, kind and district, arrest.
    let last = records.iter().map(|record| record.0.max(record.1.unwrap_or(0))).max().unwrap();
    let first = records.iter().map(|record| record.0).min().unwrap();
    let keys =
        |[kind, district, arrest]: [i64; 3]| [(0, kind, 0), (1, district, 0), (2, kind, district), (3, arrest, 0)];
    let mut counts: HashMap<(i32, i64, i64), [HashMap<i64, i64>; 2]> = HashMap::new();
    for &(day, published, values) in records {
        for key in keys(values) {
            let [before, after] = counts.entry(key).or_default();
            *before.entry(day).or_default() += 1;
            if let Some(published) = published {
                *after.entry(published).or_default() += 1;
            }
        }
    }
    let error = |days: &i64| {
        let mut sum = 0.0;
        for _ in 0..QUERIES {
            let (day, _, values) = records[rng.random_range(0..records.len())];
            let [before, after] = &counts[&keys(values)[rng.random_range(0..4)]];
            // A range that the record is in, so that the count is not zero.
            let begin = rng.random_range((day - days + 1).max(first)..=day.min(last));
            let count = |counts: &HashMap<i64, i64>| -> i64 {
                (begin..begin + days).map(|day| counts.get(&day).copied().unwrap_or(0)).sum()
            };
            let (before, after) = (count(before), count(after));
            sum += (after - before).abs() as f64 / before as f64;
        }
        sum / QUERIES as f64
    };
    RANGES.iter().map(error).collect()
}

/// Days and waiting snapshots in a district for the comparison with a foreseeing publisher.
const FORESEEN: i64 = 28;
const HELD_BACK: i64 = 7;
/// Nodes of the search.
const NODES: u64 = 300;

async fn foresight(context: &SessionContext) {
    println!();
    println!("| l | districts | cost | known beforehand | at least | more, least | more, median | more, most |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let found = numbers(&run(context, "SELECT DISTINCT district::BIGINT FROM incidents ORDER BY 1").await);
    let first = numbers(&run(context, "SELECT min(day) FROM incidents").await)[0][0];
    for l in [4, 5] {
        let (mut cost, mut known, mut least, mut more) = (0.0, 0.0, 0.0, Vec::new());
        for district in &found[0] {
            let stream = format!("SELECT * FROM incidents WHERE district = {district} AND day < {}", first + FORESEEN);
            let call = format!(
                "reposition(({stream}), {l}, time => day, window => {HELD_BACK}, sensitive => primary_type, finish => true, private => true, \
                 seed => 7)"
            );
            // Moving by a day costs 1, suppressing as much as moving by the window.
            let sql =
                format!("SELECT coalesce(sum(coalesce(day - original_time, {HELD_BACK})), 0)::BIGINT FROM {call}");
            let here = numbers(&run(context, &sql).await)[0][0] as f64;
            let sql = format!("SELECT day, kind, count(*) FROM ({stream}) GROUP BY day, kind ORDER BY day, kind");
            let records = run(context, &sql).await;
            if records.iter().all(|batch| batch.num_rows() == 0) {
                continue; // A district that began to report later.
            }
            let (best, bound) = foreseen(&numbers(&records), l);
            cost += here;
            known += best;
            least += bound;
            more.push(here / best - 1.0);
        }
        more.sort_by(f64::total_cmp);
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        println!(
            "| {l} | {} | {cost:.0} | {known:.0} | {least:.0} | {} | {} | {} |",
            more.len(),
            percent(more[0]),
            percent(more[more.len() / 2]),
            percent(more[more.len() - 1])
        );
    }
}

/// Returns the least cost of a known stream as far as found, and its bound. A stream has days, kinds and numbers of
/// records. Written without a look at the method: a variable for each kind, day and day of publication.
fn foreseen(counts: &[Vec<i64>], l: usize) -> (f64, f64) {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let mut places: BTreeMap<(i64, i64), Vec<Variable>> = BTreeMap::new();
    let (first, last) = (counts[0][0], counts[0][counts[0].len() - 1]);
    for ((&day, &kind), &count) in counts[0].iter().zip(&counts[1]).zip(&counts[2]) {
        let suppressed = problem.add_var(HELD_BACK as f64, (0.0, f64::INFINITY));
        let mut all = vec![(suppressed, 1.0)];
        for place in day..(day + HELD_BACK).min(last + 1) {
            let published = problem.add_var((place - day) as f64, (0.0, f64::INFINITY));
            places.entry((place, kind)).or_default().push(published);
            all.push((published, 1.0));
        }
        problem.add_constraint(all, ComparisonOp::Eq, count as f64);
    }
    for day in first..=last {
        let level = problem.add_integer_var(0.0, (0, 100_000));
        let mut total = vec![(level, -(l as f64))];
        for (_, published) in places.range((day, i64::MIN)..=(day, i64::MAX)) {
            let mut of_kind: Vec<(Variable, f64)> = published.iter().map(|&variable| (variable, 1.0)).collect();
            total.extend_from_slice(&of_kind);
            of_kind.push((level, -1.0));
            problem.add_constraint(of_kind, ComparisonOp::Le, 0.0);
        }
        problem.add_constraint(total, ComparisonOp::Ge, 0.0);
    }
    let mut options = SolveOptions::default();
    options.node_limit = Some(NODES);
    let outcome = problem.solve_with(options).unwrap();
    let best = outcome.solution().map_or(f64::INFINITY, |solution| solution.objective());
    (best, outcome.stats().best_bound.unwrap_or(0.0))
}

async fn speed(context: &SessionContext) {
    println!();
    println!("| records | snapshots | seconds | records a second | moved | suppressed |");
    println!("|---:|---:|---:|---:|---:|---:|");
    let directory = tempfile::tempdir().unwrap();
    for (size, rows) in [(700, 1_000_000), (700, 2_500_000), (700, 5_000_000), (700, 10_000_000), (20, 5_000_000)] {
        // Of 40 values some are more frequent, and one of these much more so on some days.
        let select = format!(
            "SELECT value AS id, value / {size} AS tick, (value * 7919) % 1000 AS age, \
             CASE WHEN (value * 48271) % 2147483647 % 100 < (value / {size}) % 20 THEN 0 ELSE \
             power((value * 69621) % 2147483647 % 1000 / 1000.0, 2)::DOUBLE * 40 END::INT AS v FROM generate_series(0, {rows} - 1)"
        );
        let file = directory.path().join(format!("{size}_{rows}.parquet"));
        let file = file.display();
        run(context, &format!("COPY ({select}) TO '{file}' STORED AS PARQUET")).await;
        let columns = "(id BIGINT, tick BIGINT, age BIGINT, v INT)";
        run(context, "DROP TABLE IF EXISTS stream").await;
        let sql =
            format!("CREATE EXTERNAL TABLE stream {columns} STORED AS PARQUET WITH ORDER (tick) LOCATION '{file}'");
        run(context, &sql).await;
        let call = "reposition(stream, 4, time => tick, window => 7, sensitive => v, finish => true, private => true)";
        let counts = format!(
            "SELECT count(*), count(*) FILTER (WHERE tick > original_time), count(*) FILTER (WHERE status = 'suppressed') \
             FROM {call}"
        );
        let (mut seconds, mut found) = (f64::INFINITY, Vec::new());
        for _ in 0..3 {
            let start = Instant::now();
            found = numbers(&run(context, &counts).await);
            seconds = start.elapsed().as_secs_f64().min(seconds);
        }
        let counts = found;
        let share = |part: i64| format!("{:.2} %", 100.0 * part as f64 / counts[0][0] as f64);
        println!(
            "| {} | {} | {seconds:.2} | {:.2} M | {} | {} |",
            counts[0][0],
            rows / size,
            rows as f64 / seconds / 1e6,
            share(counts[1][0]),
            share(counts[2][0])
        );
    }
}

/// Returns the columns of whole numbers.
fn numbers(batches: &[RecordBatch]) -> Vec<Vec<i64>> {
    let batch = concat_batches(&batches[0].schema(), batches).unwrap();
    let column = |at: usize| {
        let column = batch.column(at).as_primitive::<Int64Type>();
        assert_eq!(column.null_count(), 0);
        column.values().to_vec()
    };
    (0..batch.num_columns()).map(column).collect()
}
