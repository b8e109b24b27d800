//! Costs of estimates: `cargo bench --bench estimates`, or `-- 1000000` for another number of rows.
//!
//! Over the census generator's table and its m-invariant release (m = 10), both in Parquet: a COUNT with conditions on two
//! quasi-identifiers, on the original and estimated from the release, and their ratio; then 10,000 random queries on 200,000
//! rows. Times are the best of five.
//!
//! `cargo bench --bench estimates -- coverage` prints how often intervals for 0.95 hold the truth, and how wide they are. `-- coverage 20000 200 adult` takes
//! 20,000 people, 200 queries of each kind, and tables named `adult..` only. COUNT has `count_interval`. SUM and AVG are of the first quasi-identifier, with
//! 1.96 standard errors to each side. A query has a range of each quasi-identifier and of the value. Every other query has two quasi-identifiers only.

use std::time::Instant;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::prelude::SessionContext;
use mimalloc::MiMalloc;
use rand::seq::index::sample;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const CALL: &str = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut numbers = arguments.iter().filter_map(|argument| argument.parse::<u64>().ok());
    let rows = numbers.next();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Some(place) = arguments.iter().position(|argument| argument == "coverage") {
        let named: Vec<&String> = arguments[place + 1..].iter().filter(|name| name.parse::<u64>().is_err()).collect();
        let (people, queries) = (rows.unwrap_or(10_000), numbers.next().unwrap_or(100) as usize);
        return runtime.block_on(coverage(people, queries, &named));
    }
    let rows = rows.unwrap_or(10_000_000);
    runtime.block_on(async {
        count(rows).await;
        queries(200_000).await;
    });
}

async fn tables(rows: u64) -> (SessionContext, tempfile::TempDir) {
    let context = SessionContext::new();
    datafusion_anonymize::register_all(&context).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(format!("{name}.parquet")).display().to_string();
    let (original, release) = (file("original"), file("release"));
    run(&context, &format!("COPY (SELECT * FROM census({rows})) TO '{original}'")).await;
    run(&context, &format!("CREATE EXTERNAL TABLE original STORED AS PARQUET LOCATION '{original}'")).await;
    run(&context, &format!("COPY (SELECT * FROM m_invariant(original, 10, {CALL})) TO '{release}'")).await;
    run(&context, &format!("CREATE EXTERNAL TABLE release STORED AS PARQUET LOCATION '{release}'")).await;
    (context, directory)
}

async fn count(rows: u64) {
    let (context, _directory) = tables(rows).await;
    let conditions = "age BETWEEN 30 AND 40 AND education < 8";
    let plain = best(&context, &format!("SELECT count(*) FROM original WHERE {conditions}")).await;
    let estimated = best(&context, &format!("SELECT count(*) FROM estimated(release) WHERE {conditions}")).await;
    println!(
        "COUNT with two conditions on {rows} rows: {plain:.3} s on the original, {estimated:.3} s estimated, {:.2} times",
        estimated / plain
    );
}

async fn queries(rows: u64) {
    let (context, _directory) = tables(rows).await;
    let sql = "SELECT median(relative_error) FROM query_accuracy(original, release, queries => 10000)";
    println!("10,000 random COUNT queries on {rows} rows: {:.3} s", best(&context, sql).await);
}

async fn best(context: &SessionContext, sql: &str) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        run(context, sql).await;
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().collect().await.unwrap()
}

/// Tables with four quasi-identifiers, as queries, and the settings to publish them with.
fn people_of(directory: &str) -> Vec<(&'static str, String, &'static [(&'static str, usize)])> {
    let of = |file: &str, columns: &str, filter: &str| {
        format!("SELECT {columns} FROM '{directory}/{file}.parquet' {filter}")
    };
    let survey = |value: &str| {
        let columns = "person_id::BIGINT AS id, age AS a, sex AS b, education AS c, birthplace AS d";
        of("acs_income", &format!("{columns}, {value}::VARCHAR AS value"), "")
    };
    let adult =
        "record_id::BIGINT AS id, age AS a, sex AS b, education_num AS c, native_country AS d, occupation AS value";
    let chicago = "incident_id::BIGINT AS id, beat AS a, location_description AS b, arrest AS c, \
                   date_part('epoch', date_trunc('day', occurred_at))::BIGINT / 86400 AS d, primary_type AS value";
    let census = "record_id::BIGINT AS id, age AS a, sex AS b, educ AS c, marst AS d, occupation::VARCHAR AS value";
    vec![
        ("ACS, 529 values", survey("occupation"), &[("close", 5), ("close", 10), ("cohort", 10)]),
        ("ACS, 25 values", survey("occupation_group"), &[("close", 3)]),
        ("ADULT", of("adult", adult, "WHERE is_complete"), &[("close", 2), ("close", 3), ("cohort", 7)]),
        ("Chicago", of("chicago_crime", chicago, "WHERE district IS NOT NULL"), &[("close", 2)]),
        ("census40k", of("census40k", census, ""), &[("close", 5), ("close", 10)]),
    ]
}

/// Prints how often intervals hold the truth, and their median width in percent of it.
async fn coverage(people: u64, queries: usize, named: &[&String]) {
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    println!("| people | groups | m | selectivity | COUNT, width | SUM, width | AVG, width |");
    println!("|:---|:---|---:|---:|---:|---:|---:|");
    let wanted =
        |name: &str| named.is_empty() || named.iter().any(|part| name.to_lowercase().starts_with(&part.to_lowercase()));
    for (name, query, settings) in people_of(&directory).into_iter().filter(|(name, ..)| wanted(name)) {
        let context = SessionContext::new().enable_url_table();
        datafusion_anonymize::register_all(&context).unwrap();
        let order = "ORDER BY md5(id::VARCHAR)";
        run(&context, &format!("CREATE TABLE people AS SELECT * FROM ({query}) {order} LIMIT {people}")).await;
        let domains = domains(&context).await;
        for (groups, m) in settings {
            run(&context, &format!(
                "CREATE OR REPLACE TABLE released AS SELECT * FROM m_invariant(people, {m}, groups => '{groups}', id => id, quasi => (a, b, c, d),
                 sensitive => value, seed => 1)"
            )).await;
            for selectivity in [0.02, 0.05, 0.1] {
                let kinds = covered(&context, &domains, selectivity, queries).await;
                let kinds = kinds.map(|(share, width)| format!("{:.1} %, {:.0} %", 100.0 * share, 100.0 * width));
                println!("| {name} | {groups} | {m} | {:.0} % | {} |", 100.0 * selectivity, kinds.join(" | "));
            }
        }
    }
}

/// Returns the values of each column, in their order, as they are written in SQL.
async fn domains(context: &SessionContext) -> Vec<(&'static str, Vec<String>)> {
    let mut domains = Vec::new();
    for name in ["a", "b", "c", "d", "value"] {
        let mut values = Vec::new();
        let sql = format!("SELECT DISTINCT {name} FROM people WHERE {name} IS NOT NULL ORDER BY {name}");
        for batch in run(context, &sql).await {
            let column = batch.column(0);
            let plain = column.data_type().is_numeric() || *column.data_type() == DataType::Boolean;
            let quote = if plain { "" } else { "'" };
            let texts = cast(column, &DataType::Utf8).unwrap();
            let texts = texts.as_string::<i32>().iter().flatten();
            values.extend(texts.map(|text| format!("{quote}{}{quote}", text.replace('\'', "''"))));
        }
        domains.push((name, values));
    }
    domains
}

/// Returns how often intervals of COUNT, SUM and AVG are right, and their widths.
async fn covered(
    context: &SessionContext,
    domains: &[(&'static str, Vec<String>)],
    selectivity: f64,
    queries: usize,
) -> [(f64, f64); 3] {
    const TOGETHER: usize = 10;
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut found: [Vec<(bool, f64)>; 3] = Default::default();
    while found[0].len() < queries {
        let conditions: Vec<String> = (0..TOGETHER)
            .map(|number| {
                let quasi = domains.len() - 1;
                let used = sample(&mut rng, quasi, if number % 2 == 0 { quasi } else { 2 }).into_iter();
                let used: Vec<_> = used.chain([quasi]).map(|place| &domains[place]).collect();
                let share = selectivity.powf(1.0 / used.len() as f64);
                let ranges = used.into_iter().map(|(name, values)| {
                    let length = ((values.len() as f64 * share).round() as usize).clamp(1, values.len());
                    let first = rng.random_range(0..=values.len() - length);
                    format!("{name} BETWEEN {} AND {}", values[first], values[first + length - 1])
                });
                ranges.collect::<Vec<_>>().join(" AND ")
            })
            .collect();
        let select = |aggregates: &[&str]| {
            let all = conditions.iter().enumerate().flat_map(|(query, condition)| {
                let of_query = aggregates.iter().enumerate();
                of_query
                    .map(move |(place, what)| format!("{what} FILTER (WHERE {condition}) AS c{query}_{place}"))
                    .collect::<Vec<_>>()
            });
            all.collect::<Vec<_>>().join(", ")
        };
        let truth = select(&["count(*)", "sum(a)", "avg(a)"]);
        let truth = numbers(context, &format!("SELECT {truth} FROM people")).await;
        let parts = select(&["count_interval(*, 0.95)", "sum(a)", "sum_stddev(a)", "avg(a)", "avg_stddev(a)"]);
        let ends = (0..TOGETHER).map(|query| {
            let ends = |mean: &str, error: &str| format!("{mean} - 1.96 * {error}, {mean} + 1.96 * {error}");
            let column = |place: usize| format!("c{query}_{place}");
            let (sum, mean) = (ends(&column(1), &column(2)), ends(&column(3), &column(4)));
            format!("c{query}_0['lo'], c{query}_0['hi'], {sum}, {mean}")
        });
        let ends = ends.collect::<Vec<_>>().join(", ");
        let ends = numbers(context, &format!("SELECT {ends} FROM (SELECT {parts} FROM estimated(released))")).await;
        for (truth, ends) in truth.chunks(3).zip(ends.chunks(6)).filter(|(truth, _)| truth[0] > 0.0) {
            for ((found, &truth), ends) in found.iter_mut().zip(truth).zip(ends.chunks(2)) {
                found.push((ends[0] <= truth && truth <= ends[1], (ends[1] - ends[0]) / truth.abs().max(1e-9)));
            }
        }
    }
    found.map(|found| {
        let inside = found.iter().filter(|(inside, _)| *inside).count();
        let mut widths: Vec<f64> = found.iter().map(|(_, width)| *width).collect();
        widths.sort_unstable_by(f64::total_cmp);
        (inside as f64 / found.len() as f64, widths[widths.len() / 2])
    })
}

/// Returns the only row of a query; what is NULL is not a number.
async fn numbers(context: &SessionContext, sql: &str) -> Vec<f64> {
    let rows = run(context, sql).await;
    let rows = rows.iter().find(|batch| batch.num_rows() > 0).unwrap();
    let number = |column: &ArrayRef| {
        let column = cast(column, &DataType::Float64).unwrap();
        if column.is_valid(0) { column.as_primitive::<Float64Type>().value(0) } else { f64::NAN }
    };
    rows.columns().iter().map(number).collect()
}
