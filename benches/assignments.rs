//! Costs of the modes of m-invariance: `cargo bench --bench assignments`, or `-- 5000` for so many people instead
//! of 20,000, `-- 20000 chicago` for one of the tables only.
//!
//! First, people who come and go: 20 releases of 20,000, of whom a twentieth leaves each time and as many come; a tenth of who comes
//! has been there before. Working adults of the American Community Survey by occupation (529) and by group of occupations (25), ADULT,
//! and made-up census. `minimal` and `blind` are `balance` with `groups => 'cohort'`, `drawn` is `assignment => 'drawn'` with all values declared. Printed for
//! each, at releases 2, 5, 10 and 20: counterfeits in percent of the people; at the last one: mean share of a domain that a range covers; median
//! relative error of counts by value (each row of a group counts as much as the group has people), and of random counts with a range of
//! every quasi-identifier and of the value. `guess` is a reader who knows the shares of all people that there are: of everybody beside a counterfeit
//! it guesses the value of their group whose share has most to gain on that of the first release, and is right so often; in brackets, how
//! often whoever knows nothing would be.
//!
//! Then incidents of Chicago, day by day: a first release of January 2014, then each of the next 56 days by itself with `drawn`, in the city
//! and within districts. Printed: days that `blind` refuses, counterfeits for each record, the mean relative error of the counts of the ten
//! most frequent kinds in windows of so many days, and the same guess by the shares of these 56 days.

use std::collections::HashMap;
use std::sync::Arc;

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

const RELEASES: usize = 20;
const SHOWN: [usize; 4] = [2, 5, 10, 20];
const MODES: [(&str, &str); 3] = [
    ("minimal", "balance => 'minimal'"),
    ("blind", "groups => 'cohort'"),
    ("drawn", "assignment => 'drawn', domain => (SELECT DISTINCT value FROM people)"),
];

/// A table of people.
struct Table {
    name: &'static str,
    /// Identifier, quasi-identifiers, sensitive value, as a query of a file or a function.
    query: String,
    quasi: &'static str,
    bounds: &'static [usize],
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let people = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20_000);
    let wanted = |name: &str| {
        let named: Vec<&String> = arguments
            .iter()
            .filter(|argument| argument.parse::<usize>().is_err() && !argument.starts_with('-'))
            .collect();
        named.is_empty() || named.iter().any(|argument| name.starts_with(argument.as_str()))
    };
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        println!(
            "| people | m | mode | counterfeits at 2 | 5 | 10 | 20 | range | error by value | error of counts | guess |"
        );
        println!("|:---|---:|:---|---:|---:|---:|---:|---:|---:|---:|---:|");
        for table in tables(&directory, people) {
            if wanted(table.name) {
                compare(&table, people).await;
            }
        }
        let file = format!("{directory}/chicago_crime.parquet");
        if wanted("chicago") && std::path::Path::new(&file).exists() {
            incidents(&file).await;
        }
    });
}

fn tables(directory: &str, people: usize) -> Vec<Table> {
    let survey = format!("{directory}/acs_income.parquet");
    let adult = format!("{directory}/adult.parquet");
    let of_survey = |value: &str| {
        format!(
            "SELECT person_id::BIGINT AS id, age, sex, education, birthplace, dense_rank() OVER (ORDER BY {value})::BIGINT AS value FROM '{survey}'"
        )
    };
    let quasi = "age, sex, education, birthplace";
    let mut tables = Vec::new();
    if std::path::Path::new(&survey).exists() {
        tables.push(Table { name: "ACS, 25 values", query: of_survey("occupation_group"), quasi, bounds: &[2, 5] });
        tables.push(Table { name: "ACS, 529 values", query: of_survey("occupation"), quasi, bounds: &[2, 5, 10] });
    }
    if std::path::Path::new(&adult).exists() {
        let query = format!(
            "SELECT record_id::BIGINT AS id, age, sex, education_num, native_country, dense_rank() OVER (ORDER BY occupation)::BIGINT AS value \
             FROM '{adult}' WHERE is_complete"
        );
        tables.push(Table { name: "ADULT", query, quasi: "age, sex, education_num, native_country", bounds: &[2, 4] });
    }
    let query = format!(
        "SELECT person_id::BIGINT AS id, age, gender, education, birthplace, occupation AS value FROM census({}, 1)",
        2 * people
    );
    tables.push(Table { name: "census", query, quasi: "age, gender, education, birthplace", bounds: &[2, 5, 10] });
    tables
}

fn session() -> SessionContext {
    let context = SessionContext::new().enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
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

/// People of each release.
struct Series {
    present: Vec<i64>,
    gone: Vec<i64>,
    next: i64,
    people: i64,
    rng: ChaCha8Rng,
}

impl Series {
    /// Lets a twentieth leave, and as many come, a tenth of them again. There must be as many left.
    fn advance(&mut self) {
        let change = self.present.len() / 20;
        self.present.shuffle(&mut self.rng);
        let left = self.present.split_off(self.present.len() - change);
        for _ in 0..change {
            let returns = !self.gone.is_empty() && self.rng.random_bool(0.1);
            if returns {
                let place = self.rng.random_range(0..self.gone.len());
                self.present.push(self.gone.swap_remove(place));
            } else if self.next < self.people {
                self.present.push(self.next);
                self.next += 1;
            }
        }
        self.gone.extend(left);
    }
}

async fn compare(table: &Table, people: usize) {
    let context = session();
    // In random order, but the same for all modes.
    let order = "row_number() OVER (ORDER BY md5(id::VARCHAR)) - 1";
    run(&context, &format!("CREATE TABLE people AS SELECT {order} AS place, * FROM ({})", table.query)).await;
    let all = number(&context, "SELECT count(*) FROM people").await as i64;
    for &m in table.bounds {
        for (mode, arguments) in MODES {
            let mut series = Series {
                present: (0..people as i64).collect(),
                gone: Vec::new(),
                next: people as i64,
                people: all,
                rng: ChaCha8Rng::seed_from_u64(1),
            };
            print!("| {} | {m} | {mode} |", table.name);
            for release in 1..=RELEASES {
                if release > 1 {
                    series.advance();
                }
                publish(&context, &series.present, table.quasi, m, arguments, release).await;
                if release == 1 {
                    let gains = gains("people", "snapshot", "value");
                    run(&context, &format!("CREATE OR REPLACE TABLE gains AS {gains}")).await;
                }
                if SHOWN.contains(&release) {
                    let fake = number(&context, "SELECT count(*) FILTER (WHERE counterfeit) FROM published").await;
                    print!(" {:.2} |", 100.0 * fake / series.present.len() as f64);
                }
            }
            let loss = "SELECT iloss FROM information_loss(snapshot, published) WHERE attribute = '*'";
            let queries =
                "SELECT median(relative_error) FROM query_accuracy(snapshot, published, queries => 1000, seed => 1)";
            let (loss, queries) = (number(&context, loss).await, number(&context, queries).await);
            let values = number(&context, BY_VALUE).await;
            let guess = Guess::of(&context, "value").await;
            println!(" {loss:.3} | {:.1} % | {:.1} % | {guess} |", 100.0 * values, 100.0 * queries);
        }
    }
}

/// The median relative error of counts by value.
const BY_VALUE: &str = "WITH rows AS (
    SELECT value, 1.0 - counterfeits::DOUBLE / count(*) OVER (PARTITION BY group_id) AS share FROM published
), estimates AS (SELECT value, sum(share) AS people FROM rows GROUP BY value),
truth AS (SELECT value, count(*) AS people FROM snapshot GROUP BY value)
SELECT median(abs(coalesce(estimates.people, 0.0) - truth.people) / truth.people) FROM truth LEFT JOIN estimates ON truth.value = estimates.value";

/// Measures the growth of each value's share from the first release to all rows. A value that is not there counts as if it were once.
fn gains(all: &str, first: &str, column: &str) -> String {
    format!(
        "SELECT a.value AS value, a.n::DOUBLE / coalesce(b.n, 1) AS gain
         FROM (SELECT {column} AS value, count(*) AS n FROM {all} GROUP BY {column}) a
         LEFT JOIN (SELECT {column} AS value, count(*) AS n FROM {first} GROUP BY {column}) b ON a.value = b.value"
    )
}

/// People beside counterfeits: how many there are, of how many the guess is right, and of how many it would be by chance.
#[derive(Default)]
struct Guess {
    people: f64,
    right: f64,
    even: f64,
}

impl Guess {
    async fn of(context: &SessionContext, column: &str) -> Self {
        let sql = format!(
            "WITH ranked AS (
                 SELECT counterfeit, row_number() OVER (PARTITION BY group_id ORDER BY gain DESC, gains.value) AS place,
                        count(*) OVER (PARTITION BY group_id) AS size
                 FROM published JOIN gains ON published.{column} = gains.value WHERE counterfeits > 0)
             SELECT count(*)::DOUBLE, count(*) FILTER (WHERE place = 1)::DOUBLE, coalesce(sum(1.0 / size), 0.0)::DOUBLE FROM ranked
             WHERE NOT counterfeit"
        );
        let rows = run(context, &sql).await;
        let rows = rows.iter().find(|batch| batch.num_rows() > 0).unwrap();
        let [people, right, even] = [0, 1, 2].map(|place| rows.column(place).as_primitive::<Float64Type>().value(0));
        Self { people, right, even }
    }

    fn add(&mut self, other: &Self) {
        self.people += other.people;
        self.right += other.right;
        self.even += other.even;
    }
}

impl std::fmt::Display for Guess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.people > 0.0 {
            true => write!(f, "{:.3} ({:.3})", self.right / self.people, self.even / self.people),
            false => f.write_str("-"),
        }
    }
}

/// Publishes those who are there: the tables `snapshot`, `published` (its private view) and `known_` with the number of the release.
async fn publish(context: &SessionContext, present: &[i64], quasi: &str, m: usize, arguments: &str, release: usize) {
    let places = RecordBatch::try_from_iter([("place", Arc::new(Int64Array::from(present.to_vec())) as _)]).unwrap();
    context.deregister_table("present").unwrap();
    let places = MemTable::try_new(places.schema(), vec![vec![places]]).unwrap();
    context.register_table("present", Arc::new(places)).unwrap();
    let snapshot = "SELECT people.* FROM people JOIN present ON people.place = present.place";
    run(context, &format!("CREATE OR REPLACE TABLE snapshot AS {snapshot}")).await;
    let before = (1..release).map(|release| format!("SELECT id, signature, value, release FROM known_{release}"));
    let before = before.collect::<Vec<_>>().join(" UNION ALL ");
    let previous = if release > 1 { format!(", previous => ({before})") } else { String::new() };
    let call = format!(
        "m_invariant(snapshot, {m}, id => id, quasi => ({quasi}), sensitive => value, private => true, seed => 'seed {release}', {arguments}{previous})"
    );
    run(context, &format!("CREATE OR REPLACE TABLE published AS SELECT * FROM {call}")).await;
    let known =
        format!("SELECT id, signature, value, {release}::BIGINT AS release FROM published WHERE id IS NOT NULL");
    run(context, &format!("CREATE OR REPLACE TABLE known_{release} AS {known}")).await;
}

/// Days after the first month.
const DAYS: i64 = 56;
const WINDOWS: [i64; 3] = [1, 7, 28];
const FREQUENT: usize = 10;

async fn incidents(file: &str) {
    let context = session();
    let select = "incident_id::BIGINT AS id, date_part('epoch', date_trunc('day', occurred_at))::BIGINT / 86400 - 16071 AS day, beat, \
                  location_description, arrest, district, primary_type AS kind";
    run(&context, &format!("CREATE TABLE incidents AS SELECT {select} FROM '{file}' WHERE district IS NOT NULL")).await;
    let roles = "id => id, quasi => (beat, location_description, arrest), sensitive => kind, private => true";
    let domain = "assignment => 'drawn', domain => (SELECT DISTINCT kind FROM incidents)";
    println!(
        "\n| incidents | m | days | refused by blind | counterfeits per record | error, 1 day | 7 days | 28 days | guess |"
    );
    println!("|:---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let (first, later) = (
        "(SELECT * FROM incidents WHERE day < 31)",
        format!("(SELECT * FROM incidents WHERE day BETWEEN 31 AND {})", 30 + DAYS),
    );
    run(&context, &format!("CREATE TABLE gains AS {}", gains(&later, first, "kind"))).await;
    for m in [2, 4] {
        let first = format!(
            "SELECT * FROM m_invariant((SELECT * FROM incidents WHERE day < 31), {m}, {roles}, {domain}, seed => 'first')"
        );
        run(
            &context,
            &format!("CREATE OR REPLACE TABLE known AS SELECT id, signature, kind, 1 AS release FROM ({first})"),
        )
        .await;
        for (name, within) in [("city", ""), ("districts", ", within => district")] {
            let (mut refused, mut fake, mut records) = (0.0, 0.0, 0.0);
            let (mut counts, mut guess) = (HashMap::<(i64, String), [f64; 2]>::new(), Guess::default());
            for day in 31..31 + DAYS {
                let snapshot = format!("SELECT * FROM incidents WHERE day = {day}");
                let call = format!(
                    "m_invariant(({snapshot}), {m}, {roles}, {domain}{within}, previous => known, seed => 'day {day}')"
                );
                run(&context, &format!("CREATE OR REPLACE TABLE published AS SELECT * FROM {call}")).await;
                fake += number(&context, "SELECT count(*) FILTER (WHERE counterfeit) FROM published").await;
                records += number(&context, &format!("SELECT count(*) FROM ({snapshot})")).await;
                let part = if within.is_empty() { "1" } else { "district" };
                let skewed = format!(
                    "SELECT count(*) > 0 FROM (SELECT max(n) * {m} > sum(n) AS skewed FROM (SELECT {part} AS part, kind, count(*) AS n
                     FROM ({snapshot}) GROUP BY {part}, kind) GROUP BY part) WHERE skewed"
                );
                refused += number(&context, &skewed).await;
                guess.add(&Guess::of(&context, "kind").await);
                let estimates = "SELECT kind, sum(share) FROM (SELECT kind, 1.0 - counterfeits::DOUBLE / count(*) OVER (PARTITION BY group_id)
                                 AS share FROM published) GROUP BY kind";
                let truth = format!("SELECT kind, count(*)::DOUBLE FROM ({snapshot}) GROUP BY kind");
                for (place, sql) in [estimates, &truth].into_iter().enumerate() {
                    for (kind, count) in by_kind(&run(&context, sql).await) {
                        counts.entry((day, kind)).or_default()[place] += count;
                    }
                }
            }
            print!("| {name} | {m} | {DAYS} | {refused:.0} | {:.2} |", fake / records);
            for days in WINDOWS {
                print!(" {:.1} % |", 100.0 * error(&counts, days));
            }
            println!(" {guess} |");
        }
    }
}

fn by_kind(rows: &[RecordBatch]) -> Vec<(String, f64)> {
    let of_batch = |batch: &RecordBatch| -> Vec<(String, f64)> {
        let kinds = cast(batch.column(0), &DataType::Utf8).unwrap();
        let counts = batch.column(1).as_primitive::<Float64Type>().clone();
        (0..batch.num_rows()).map(|i| (kinds.as_string::<i32>().value(i).to_owned(), counts.value(i))).collect()
    };
    rows.iter().flat_map(of_batch).collect()
}

/// Computes the mean relative error of counts of frequent kinds, in windows of days.
fn error(counts: &HashMap<(i64, String), [f64; 2]>, days: i64) -> f64 {
    let mut totals: HashMap<&str, f64> = HashMap::new();
    counts.iter().for_each(|((_, kind), [_, truth])| *totals.entry(kind).or_default() += truth);
    let mut kinds: Vec<(&str, f64)> = totals.into_iter().collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut errors = Vec::new();
    for (kind, _) in kinds.into_iter().take(FREQUENT) {
        for window in 0..DAYS / days {
            let mut sums = [0.0; 2];
            for day in 31 + window * days..31 + (window + 1) * days {
                if let Some(found) = counts.get(&(day, kind.to_owned())) {
                    sums[0] += found[0];
                    sums[1] += found[1];
                }
            }
            if sums[1] > 0.0 {
                errors.push((sums[0] - sums[1]).abs() / sums[1]);
            }
        }
    }
    errors.iter().sum::<f64>() / errors.len() as f64
}
