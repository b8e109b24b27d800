//! Costs of letting everything change, beside the methods for one change: `cargo bench --bench dynamic`, or `--
//! 5000` for so many people instead of 20,000.
//!
//! Publications of ten releases. At each a twentieth of the people leaves and as many come, of whom a tenth has been there before. Working adults of the
//! American Community Survey with occupations (529) and classes of workers, if they are there, and a made-up hospital of the census generator with 24
//! diagnoses and three wards. Where values change, they are pairs, and of each person it becomes the other one with 5 % until the next release. Where
//! columns change, each release has two of the four quasi-identifiers. Printed: counterfeits in percent of the people at releases 2, 5 and 10; of the last
//! release, the mean share of an attribute's values that a range covers and the median relative error of 1,000 random counts; and seconds for all ten
//! INSERTs.

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

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const RELEASES: usize = 10;
const SHOWN: [usize; 3] = [2, 5, 10];

/// A table of people: `id`, four quasi-identifiers, `value` (a whole number from 0) and `class`, which goes with it.
struct Table {
    name: &'static str,
    query: String,
    quasi: [&'static str; 4],
    m: usize,
}

/// Changes between releases.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Changes {
    People,
    Values,
    Columns,
    Everything,
}

/// Returns the methods for it, with their options; what `m` is called.
fn methods(changes: Changes) -> Vec<(&'static str, &'static str, &'static str)> {
    let law = "'updates' 'law'";
    match changes {
        Changes::People => vec![("m_invariant", "m", "'groups' 'cohort'"), ("dynamic", "m", "")],
        Changes::Values => vec![("m_distinct", "m", "'updates' 'law', 'disjoint' 'true'"), ("dynamic", "m", law)],
        Changes::Columns => {
            vec![("sequential", "l", ""), ("m_invariant", "m", "'groups' 'cohort'"), ("dynamic", "m", "")]
        }
        Changes::Everything => vec![("dynamic", "m", law)],
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let people = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20_000);
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        println!("| people | m | what changes | method | counterfeits at 2 | 5 | 10 | range | error of counts | ten INSERTs |");
        println!("|:---|---:|:---|:---|---:|---:|---:|---:|---:|---:|");
        for table in tables(&directory, people) {
            for changes in [Changes::People, Changes::Values, Changes::Columns, Changes::Everything] {
                for method in methods(changes) {
                    compare(&table, changes, method, people).await;
                }
            }
        }
    });
}

fn tables(directory: &str, people: usize) -> Vec<Table> {
    let survey = format!("{directory}/acs_income.parquet");
    let mut tables = Vec::new();
    if std::path::Path::new(&survey).exists() {
        let query = format!(
            "SELECT person_id::BIGINT AS id, age::BIGINT AS age, sex::BIGINT AS sex, education::BIGINT AS education, birthplace::BIGINT AS birthplace,
             dense_rank() OVER (ORDER BY occupation)::BIGINT - 1 AS value, class_of_worker::VARCHAR AS class FROM '{survey}'"
        );
        tables.push(Table { name: "ACS", query, quasi: ["age", "sex", "education", "birthplace"], m: 4 });
    }
    // Diagnoses of those who are alike are alike, and wards follow from them, but for some.
    let query = format!(
        "SELECT person_id AS id, age::BIGINT AS age, gender::BIGINT AS sex, education::BIGINT AS education, birthplace::BIGINT AS birthplace,
         (occupation % 24)::BIGINT AS value, concat('ward ', CASE person_id % 7 WHEN 0 THEN 1 ELSE occupation % 3 END) AS class
         FROM census({}, 1)",
        2 * people
    );
    tables.push(Table { name: "hospital", query, quasi: ["age", "sex", "education", "birthplace"], m: 3 });
    tables
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Returns the only number of a query.
async fn number(context: &SessionContext, sql: &str) -> f64 {
    let rows = run(context, sql).await;
    let rows = rows.iter().find(|batch| batch.num_rows() > 0).unwrap();
    cast(rows.column(0), &DataType::Float64).unwrap().as_primitive::<Float64Type>().value(0)
}

/// People of each release, and those whose value has changed an odd number of times.
struct Series {
    present: Vec<i64>,
    gone: Vec<i64>,
    changed: Vec<bool>,
    next: i64,
    rng: ChaCha8Rng,
}

impl Series {
    fn new(people: usize, all: usize) -> Self {
        Self {
            present: (0..people as i64).collect(),
            gone: Vec::new(),
            changed: vec![false; all],
            next: people as i64,
            rng: ChaCha8Rng::seed_from_u64(1),
        }
    }

    fn advance(&mut self, values_change: bool) {
        let count = self.present.len() / 20;
        self.present.shuffle(&mut self.rng);
        let left = self.present.split_off(self.present.len() - count);
        for _ in 0..count {
            if !self.gone.is_empty() && self.rng.random_bool(0.1) {
                let place = self.rng.random_range(0..self.gone.len());
                self.present.push(self.gone.swap_remove(place));
            } else if (self.next as usize) < self.changed.len() {
                self.present.push(self.next);
                self.next += 1;
            }
        }
        self.gone.extend(left);
        if values_change {
            let rng = &mut self.rng;
            self.changed.iter_mut().for_each(|changed| *changed ^= rng.random_bool(0.05));
        }
    }
}

async fn compare(table: &Table, changes: Changes, (method, bound, options): (&str, &str, &str), people: usize) {
    let context = SessionContext::new().enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    let lake = tempfile::tempdir().unwrap();
    // In random order, but the same for all methods.
    let order = "row_number() OVER (ORDER BY md5(id::VARCHAR)) - 1";
    run(&context, &format!("CREATE TABLE people AS SELECT {order} AS place, * FROM ({})", table.query)).await;
    let all = number(&context, "SELECT count(*) FROM people").await as usize;
    let values = number(&context, "SELECT max(value) + 1 FROM people").await as i64;
    let travels = changes == Changes::Everything;
    let sensitive = if travels { "composite(value, class)" } else { "value" };
    let law = format!(
        "SELECT value AS from_value, value + 1 - 2 * (value % 2) AS to_value, 0.05 AS probability
         FROM generate_series(0, {}) AS t(value)",
        values / 2 * 2 - 1
    );
    let law = match travels {
        true => format!(
            "SELECT composite(from_value, class) AS from_value, composite(to_value, class) AS to_value, probability
             FROM ({law}) CROSS JOIN (SELECT DISTINCT class FROM people)"
        ),
        false => law,
    };
    run(&context, &format!("CREATE TABLE law AS {law}")).await;
    let columns: Vec<String> = table.quasi.iter().map(|name| format!("{name} BIGINT")).collect();
    let separator = if options.is_empty() { "" } else { ", " };
    run(
        &context,
        &format!(
            "CREATE EXTERNAL TABLE published (id BIGINT, {}, value BIGINT, class VARCHAR) STORED AS PUBLICATION LOCATION '{}/lake/'
             OPTIONS ('begin' 'true', 'method' '{method}', '{bound}' '{}', 'id' 'id', 'quasi' '{}', 'sensitive' '{sensitive}'{separator}{options})",
            columns.join(", "),
            lake.path().display(),
            table.m,
            table.quasi.join(", ")
        ),
    )
    .await;
    let values_change = matches!(changes, Changes::Values | Changes::Everything);
    let mut series = Series::new(people, all);
    let (mut seconds, mut fake) = (0.0, String::new());
    for release in 1..=RELEASES {
        if release > 1 {
            series.advance(values_change);
        }
        let present: Vec<i64> = series.present.clone();
        let changed: Vec<i64> = present.iter().map(|&place| i64::from(series.changed[place as usize])).collect();
        let columns = [("place", present.clone()), ("changed", changed)];
        let columns = columns.map(|(name, column)| (name, Arc::new(Int64Array::from(column)) as _));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        context.deregister_table("present").unwrap();
        context
            .register_table("present", Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()))
            .unwrap();
        let paired = values / 2 * 2;
        let value =
            format!("CASE WHEN changed = 1 AND value < {paired} THEN value + 1 - 2 * (value % 2) ELSE value END");
        let quasi = table.quasi.join(", ");
        let snapshot = format!(
            "SELECT id, {quasi}, {value} AS value, class FROM people JOIN present ON people.place = present.place"
        );
        run(&context, &format!("CREATE OR REPLACE TABLE whole AS {snapshot}")).await;
        let named: Vec<&str> = match changes {
            Changes::People | Changes::Values => table.quasi.to_vec(),
            Changes::Columns | Changes::Everything => vec![table.quasi[release % 4], table.quasi[(release + 1) % 4]],
        };
        let class = if travels { ", class" } else { "" };
        let named = format!("id, {}, value{class}", named.join(", "));
        run(&context, &format!("CREATE OR REPLACE TABLE snapshot AS SELECT {named} FROM whole")).await;
        run(&context, &format!("SET anonymize.period = {release}")).await;
        let start = Instant::now();
        run(&context, &format!("INSERT INTO published ({named}) SELECT {named} FROM snapshot")).await;
        seconds += start.elapsed().as_secs_f64();
        if SHOWN.contains(&release) {
            let count = format!("SELECT counterfeits FROM releases(published) WHERE release = {release}");
            fake += &format!(" {:.2} |", 100.0 * number(&context, &count).await / present.len() as f64);
        }
    }
    let released = format!("(SELECT * FROM release(published, {RELEASES}))");
    let loss = format!("SELECT iloss FROM information_loss(snapshot, {released}) WHERE attribute = '*'");
    let queries =
        format!("SELECT median(relative_error) FROM query_accuracy(snapshot, {released}, queries => 1000, seed => 1)");
    let (loss, queries) = (number(&context, &loss).await, number(&context, &queries).await);
    let what = match changes {
        Changes::People => "people",
        Changes::Values => "people, values",
        Changes::Columns => "people, columns",
        Changes::Everything => "people, values, columns; two sensitive ones",
    };
    println!(
        "| {} | {} | {what} | `{method}` |{fake} {loss:.3} | {:.1} % | {seconds:.1} s |",
        table.name,
        table.m,
        100.0 * queries
    );
}
