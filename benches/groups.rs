//! Cost of groups that stay safe while people come and go: `cargo bench --bench groups`.
//!
//! `cargo bench --bench groups -- 10000 5 adult` takes 10,000 people and tables named `adult..` only. At each release 5 % leave, and as many come.
//! `m=5` takes this bound only, and `mode=region` the modes named `region..` only.
//!
//! The benchmark makes publications of 20 releases of the same table. The methods are `m_invariant` (close groups for both readers, regions, and the
//! paper's `cohort`) and `muco` with `'equal'`. About a tenth of the people who come were there before, as long as any such people are left.
//!
//! Its figures of releases 1, 2, 5, 10 and 20 are the median relative error of 300 random counts, the loss, and counterfeits in percent of people.
//! The counts are those of `query_accuracy`, with a range in every quasi-identifier and the value, at 2, 5 and 10 % of the table. The last line is one
//! release of `mondrian` with `cuts => 'tight'`, which has no bound against a reader who knows the program.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use mimalloc::MiMalloc;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const RELEASES: usize = 20;
const SHOWN: [usize; 5] = [1, 2, 5, 10, 20];
const SELECTED: [f64; 3] = [0.02, 0.05, 0.1];

/// Names of modes, with the options of their publications.
const MODES: [(&str, &str); 8] = [
    ("close", "'method' 'm_invariant', 'm' '{}'"),
    ("close, participant", "'method' 'm_invariant', 'm' '{}', 'reader' 'participant'"),
    ("region 100", "'method' 'm_invariant', 'm' '{}', 'region' '100'"),
    ("region 300", "'method' 'm_invariant', 'm' '{}', 'region' '300'"),
    ("region 1000", "'method' 'm_invariant', 'm' '{}', 'region' '1000'"),
    ("region 5000", "'method' 'm_invariant', 'm' '{}', 'region' '5000'"),
    ("cohort", "'method' 'm_invariant', 'm' '{}', 'groups' 'cohort'"),
    ("muco, equal", "'method' 'muco', 'delta' 'equal', 'l' '{}'"),
];

/// A table of people: identifier, four quasi-identifiers and a value, as a query.
struct Table {
    name: &'static str,
    query: String,
    bounds: &'static [usize],
}

fn tables(directory: &str, people: usize) -> Vec<Table> {
    let of = |file: &str, columns: &str, filter: &str| {
        format!("SELECT {columns} FROM '{directory}/{file}.parquet' {filter}")
    };
    let survey = |value: &str| {
        let columns = format!(
            "person_id::BIGINT AS id, age AS a, sex AS b, education AS c, birthplace AS d, {value}::VARCHAR AS value"
        );
        of("acs_income", &columns, "")
    };
    let adult =
        "record_id::BIGINT AS id, age AS a, sex AS b, education_num AS c, native_country AS d, occupation AS value";
    let chicago = "incident_id::BIGINT AS id, beat AS a, location_description AS b, arrest AS c, \
                   date_part('epoch', date_trunc('day', occurred_at))::BIGINT / 86400 AS d, primary_type AS value";
    let census = "record_id::BIGINT AS id, age AS a, sex AS b, educ AS c, marst AS d, occupation::VARCHAR AS value";
    let made =
        "person_id::BIGINT AS id, age AS a, gender AS b, education AS c, birthplace AS d, occupation::VARCHAR AS value";
    vec![
        Table { name: "ACS, 529 values", query: survey("occupation"), bounds: &[3, 5, 10] },
        Table { name: "ACS, 25 values", query: survey("occupation_group"), bounds: &[2, 3, 5] },
        Table { name: "ADULT", query: of("adult", adult, "WHERE is_complete"), bounds: &[2, 3] },
        Table { name: "Chicago", query: of("chicago_crime", chicago, "WHERE district IS NOT NULL"), bounds: &[2, 3] },
        Table { name: "census40k", query: of("census40k", census, ""), bounds: &[5, 10] },
        Table {
            name: "made-up census",
            query: format!("SELECT {made} FROM census({}, 1)", 2 * people),
            bounds: &[5, 10],
        },
    ]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut numbers = arguments.iter().filter_map(|argument| argument.parse::<usize>().ok());
    let people = numbers.next().unwrap_or(20_000);
    let churns: Vec<usize> = numbers.collect();
    let churns = if churns.is_empty() { vec![1, 5, 20] } else { churns };
    let only = |key: &str| arguments.iter().find_map(|argument| argument.strip_prefix(key)).map(str::to_owned);
    let (bound, mode) = (only("m="), only("mode=").unwrap_or_default());
    let is_name = |argument: &&String| argument.parse::<usize>().is_err() && !argument.contains('=');
    let named: Vec<&String> = arguments.iter().filter(is_name).collect();
    let wanted =
        |name: &str| named.is_empty() || named.iter().any(|part| name.to_lowercase().starts_with(&part.to_lowercase()));
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("| people | m | churn | groups | release | 2 % | 5 % | 10 % | loss | counterfeits | seconds |");
    println!("|:---|---:|---:|:---|---:|---:|---:|---:|---:|---:|---:|");
    for table in tables(&directory, people).iter().filter(|table| wanted(table.name)) {
        let wanted = |m: &&usize| bound.as_ref().is_none_or(|bound| *bound == m.to_string());
        for &m in table.bounds.iter().filter(wanted) {
            for &churn in &churns {
                runtime.block_on(compare(table, people, (m, churn), &mode));
            }
        }
    }
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().collect().await.unwrap()
}

/// Returns the only number of a query.
async fn number(context: &SessionContext, sql: &str) -> f64 {
    let rows = run(context, sql).await;
    let rows = rows.iter().find(|batch| batch.num_rows() > 0).unwrap();
    cast(rows.column(0), &DataType::Float64).unwrap().as_primitive::<Float64Type>().value(0)
}

/// Draws the people of each release, by their places in the table.
fn series(people: usize, all: usize, churn: usize) -> Vec<Vec<i64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut present: Vec<i64> = (0..people.min(all) as i64).collect();
    let (mut gone, mut next, mut releases) = (Vec::new(), present.len() as i64, vec![present.clone()]);
    while releases.len() < RELEASES {
        let change = present.len() * churn / 100;
        present.shuffle(&mut rng);
        let left = present.split_off(present.len() - change);
        for _ in 0..change {
            if next == all as i64 || (!gone.is_empty() && rng.random_bool(0.1)) {
                let place = rng.random_range(0..gone.len().max(1));
                present.extend((!gone.is_empty()).then(|| gone.swap_remove(place)));
            } else {
                present.push(next);
                next += 1;
            }
        }
        gone.extend(left);
        releases.push(present.clone());
    }
    releases
}

async fn errors(context: &SessionContext, release: &str) -> String {
    let mut errors = Vec::new();
    for selected in SELECTED {
        let accuracy =
            format!("query_accuracy(snapshot, {release}, queries => 300, seed => 1, selectivity => {selected})");
        let error = number(context, &format!("SELECT median(relative_error) FROM {accuracy}")).await;
        errors.push(format!("{:.1} %", 100.0 * error));
    }
    errors.join(" | ")
}

async fn loss(context: &SessionContext, release: &str) -> String {
    let loss = format!("SELECT lm FROM information_loss(snapshot, {release}) WHERE attribute = '*'");
    format!("{:.3}", number(context, &loss).await)
}

/// Measures the modes whose names begin so.
async fn compare(table: &Table, people: usize, (m, churn): (usize, usize), wanted: &str) {
    let context = SessionContext::new().enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    for role in ["SET anonymize.id = 'id'", "SET anonymize.quasi = 'a, b, c, d'", "SET anonymize.sensitive = 'value'"] {
        run(&context, role).await;
    }
    let order = "row_number() OVER (ORDER BY md5(id::VARCHAR)) - 1";
    run(&context, &format!("CREATE TABLE people AS SELECT {order} AS place, * FROM ({})", table.query)).await;
    let all = number(&context, "SELECT count(*) FROM people").await as usize;
    let releases = series(people, all, churn);
    let fields = run(&context, "SELECT id, a, b, c, d, value FROM people LIMIT 1").await[0].schema();
    let fields: Vec<String> =
        fields.fields().iter().map(|field| format!("{} {}", field.name(), sql_type(field.data_type()))).collect();
    let line = |groups: &str, release: usize| format!("| {} | {m} | {churn} % | {groups} | {release} |", table.name);
    let modes = MODES.into_iter().filter(|(mode, _)| mode.starts_with(wanted));
    for (number_of_mode, (mode, options)) in modes.enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let name = format!("published_{number_of_mode}");
        let options = options.replace("{}", &m.to_string());
        run(&context, &format!(
            "CREATE EXTERNAL TABLE {name} ({}) STORED AS PUBLICATION LOCATION '{}/' OPTIONS ('begin' 'true', {options}, 'id' 'id', 'quasi' 'a, b, c, d',
             'sensitive' 'value')", fields.join(", "), directory.path().display()
        )).await;
        for (release, present) in (1..).zip(&releases) {
            snapshot(&context, present).await;
            let start = Instant::now();
            if let Err(error) = insert(&context, &name).await {
                println!("{} {} |", line(mode, release), error.lines().next().unwrap_or_default());
                break;
            }
            let seconds = start.elapsed().as_secs_f64();
            if SHOWN.contains(&release) {
                let published = format!("release({name}, {release})");
                let fake =
                    number(&context, &format!("SELECT counterfeits FROM releases({name}) WHERE release = {release}"))
                        .await;
                let loss = match mode.starts_with("muco") {
                    // Releases of `muco` have rows without ranges, whose loss only the publisher can measure.
                    true => "-".to_owned(),
                    false => loss(&context, &published).await,
                };
                println!(
                    "{} {} | {loss} | {:.1} % | {seconds:.1} |",
                    line(mode, release),
                    errors(&context, &published).await,
                    100.0 * fake / present.len() as f64
                );
            }
        }
    }
    snapshot(&context, &releases[0]).await;
    let tight = format!("mondrian(snapshot, l => {m}, id => id, quasi => (a, b, c, d), sensitive => value, seed => 1)");
    run(&context, &format!("CREATE TABLE tight AS SELECT * FROM {tight}")).await;
    let loss = loss(&context, "tight").await;
    println!("{} {} | {loss} | 0.0 % | |", line("mondrian, tight", 1), errors(&context, "tight").await);
}

fn sql_type(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 => "BIGINT",
        DataType::Int32 => "INT",
        DataType::Int16 => "SMALLINT",
        DataType::Boolean => "BOOLEAN",
        _ => "VARCHAR",
    }
}

async fn snapshot(context: &SessionContext, present: &[i64]) {
    let places = RecordBatch::try_from_iter([("place", Arc::new(Int64Array::from(present.to_vec())) as _)]).unwrap();
    context.deregister_table("present").unwrap();
    let places = MemTable::try_new(places.schema(), vec![vec![places]]).unwrap();
    context.register_table("present", Arc::new(places)).unwrap();
    let snapshot = "SELECT id, a, b, c, d, value FROM people JOIN present ON people.place = present.place";
    run(context, &format!("CREATE OR REPLACE TABLE snapshot AS {snapshot}")).await;
}

async fn insert(context: &SessionContext, name: &str) -> Result<(), String> {
    let insert = format!("INSERT INTO {name} SELECT id, a, b, c, d, value FROM snapshot");
    let plan = context.sql(&insert).await.map_err(|error| error.to_string())?;
    plan.collect().await.map(|_| ()).map_err(|error| error.to_string())
}
