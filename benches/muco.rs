//! MuCo against Mondrian and Anatomy on the census table of its paper (Section 5): `cargo bench --bench muco`.
//!
//! Prints time, information loss, disclosure and errors of 1,000 queries. 40,152 people, seven quasi-identifiers, their wage;
//! MuCo with l = 10 and delta = 1/5 to 1/10, Mondrian with l = 8 to 18, Anatomy. Then the time for 892,755 people.
//!
//! - Loss: of MuCo the mean distance between original and published values, of Mondrian the mean length of intervals less one
//!   value, both as shares of the attribute's range.
//! - Disclosure: chance of a reader who matches each quasi-identifier with probability P to hit the right row, and share of
//!   the right wage among the matches; exact over all subsets of quasi-identifiers, and over all people (Mondrian: every twentieth).
//! - Errors: `SUM(wage)` with conditions on four random quasi-identifiers, relative to the true sum, which is not zero: ranges
//!   between two random values; and those of the authors' script, equality for categories and a random comparison for numbers.

use std::time::Instant;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::risk::Perturbed;
use mimalloc::MiMalloc;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const QUASI: [&str; 7] = ["relate", "sex", "age", "marst", "race", "educ", "hours_per_week"];
/// Columns that the authors take for numbers.
const NUMBERS: [bool; 7] = [false, false, true, false, false, false, true];
const MATCHES: [f64; 4] = [0.3, 0.5, 0.7, 1.0];
const DRAWS: u64 = 3;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let directory = std::env::var("ANONYMIZE_MICRODATA")
            .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
        let context = session();
        let file = |name: &str| {
            let file = format!("{directory}/{name}.parquet");
            std::path::Path::new(&file).exists().then_some(file)
        };
        match file("census40k") {
            Some(file) => compare(&context, &file).await,
            None => println!("census40k.parquet is not in {directory}"),
        }
        match file("acs_income") {
            Some(file) => time_acs(&context, &file).await,
            None => println!("acs_income.parquet is not in {directory}"),
        }
    });
}

fn session() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new()).enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
}

async fn compare(context: &SessionContext, file: &str) {
    run(context, &format!("CREATE TABLE census AS SELECT * FROM '{file}'")).await;
    let people = People::read(context).await;
    let workloads = [ranges(&people), comparisons(&people)];
    print!("| release | seconds | loss |");
    MATCHES.iter().for_each(|p| print!(" identity, P = {p} | attribute, P = {p} |"));
    println!(" ranges: mean | variance | median | comparisons: mean | variance | median |");
    println!("|:---|---:|---:|{}", "---:|".repeat(2 * MATCHES.len() + 6));
    for (cuts, name) in [("tight", ""), ("median", ", the paper's cuts")] {
        for rows in [5, 6, 7, 8, 10] {
            let call = format!("muco(census, 1.0 / {rows}, 10, cuts => '{cuts}', {})", roles());
            people.muco(context, &format!("MuCo, l = 10, delta = 1/{rows}{name}"), &call, &workloads).await;
        }
    }
    for l in [5, 10] {
        let call = format!("muco(census, 'equal', {l}, {})", roles());
        people.muco(context, &format!("MuCo, l = {l}, equal shares"), &call, &workloads).await;
    }
    for l in [8, 10, 12, 15, 18] {
        for (cuts, name) in [("tight", ""), ("median", ", the paper's cuts")] {
            let call = format!("mondrian(census, l => {l}, cuts => '{cuts}', {})", roles());
            people.mondrian(context, &format!("Mondrian, l = {l}{name}"), &call, &workloads).await;
        }
    }
    for l in [8, 10, 12, 15, 18] {
        let call = format!("anatomy(census, {l}, {})", roles());
        people.anatomy(context, &format!("Anatomy, l = {l}"), &call, &workloads).await;
    }
}

fn roles() -> String {
    format!("id => record_id, quasi => ({}), sensitive => wage_income, seed => SEED", QUASI.join(", "))
}

async fn time_acs(context: &SessionContext, file: &str) {
    let quasi = "age, sex, race, marital_status, education, birthplace, state";
    run(context, &format!("CREATE TABLE acs AS SELECT * FROM '{file}'")).await;
    let call = format!("SELECT * FROM muco(acs, 1.0 / 6, 10, quasi => ({quasi}), sensitive => occupation)");
    println!("ACS, 892,755 rows, l = 10, delta = 1/6: {:.2} s", best_time(context, &call).await);
}

/// The table, in the order of its identifiers.
struct People {
    quasi: Vec<[i64; 7]>,
    wage: Vec<i64>,
    /// Values of each quasi-identifier, ascending.
    domains: [Vec<i64>; 7],
}

/// Conditions on some quasi-identifiers, as ranges or as all but one value; and the true sum.
struct Query {
    conditions: Vec<(usize, Condition)>,
    truth: f64,
}

#[derive(Clone, Copy)]
enum Condition {
    Within(i64, i64),
    Not(i64),
}

impl Condition {
    fn holds(self, value: i64) -> bool {
        match self {
            Self::Within(lo, hi) => (lo..=hi).contains(&value),
            Self::Not(other) => value != other,
        }
    }

    /// Returns the share of the values from `lo` to `hi` that it holds for.
    fn share(self, lo: i64, hi: i64) -> f64 {
        let all = (hi - lo + 1) as f64;
        match self {
            Self::Within(from, to) => (hi.min(to) - lo.max(from) + 1).max(0) as f64 / all,
            Self::Not(value) if (lo..=hi).contains(&value) => (all - 1.0) / all,
            Self::Not(_) => 1.0,
        }
    }
}

impl Query {
    fn holds(&self, row: &[i64; 7]) -> bool {
        self.conditions.iter().all(|&(j, condition)| condition.holds(row[j]))
    }
}

/// Returns a thousand queries that find somebody.
fn workload(people: &People, seed: u64, condition: impl Fn(usize, &mut ChaCha8Rng) -> Condition) -> Vec<Query> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut queries = Vec::new();
    while queries.len() < 1000 {
        let mut attributes: Vec<usize> = (0..QUASI.len()).collect();
        attributes.shuffle(&mut rng);
        let conditions = attributes[..4].iter().map(|&j| (j, condition(j, &mut rng))).collect();
        let mut query = Query { conditions, truth: 0.0 };
        let rows = people.quasi.iter().zip(&people.wage).filter(|(row, _)| query.holds(row));
        query.truth = rows.map(|(_, &wage)| wage as f64).sum();
        if query.truth > 0.0 {
            queries.push(query);
        }
    }
    queries
}

fn ranges(people: &People) -> Vec<Query> {
    workload(people, 1, |j, rng| {
        let mut value = || *people.domains[j].choose(rng).unwrap();
        let (a, b) = (value(), value());
        Condition::Within(a.min(b), a.max(b))
    })
}

fn comparisons(people: &People) -> Vec<Query> {
    workload(people, 2, |j, rng| {
        let operator = if NUMBERS[j] { rng.random_range(0..6) } else { 0 };
        let value = *people.domains[j].choose(rng).unwrap();
        match operator {
            0 => Condition::Within(value, value),
            1 => Condition::Not(value),
            2 => Condition::Within(value + 1, i64::MAX / 2),
            3 => Condition::Within(value, i64::MAX / 2),
            4 => Condition::Within(i64::MIN / 2, value - 1),
            _ => Condition::Within(i64::MIN / 2, value),
        }
    })
}

/// Returns the mean, variance and median of relative errors.
fn errors(workload: &[Query], estimate: impl Fn(&Query) -> f64) -> String {
    let mut errors: Vec<f64> =
        workload.iter().map(|query| (estimate(query) - query.truth).abs() / query.truth).collect();
    errors.sort_by(f64::total_cmp);
    let n = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / n;
    let variance = errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / n;
    format!(" {mean:.3} | {variance:.3} | {:.3} |", errors[errors.len() / 2])
}

impl People {
    async fn read(context: &SessionContext) -> Self {
        let columns = QUASI.map(|name| format!("CAST({name} AS BIGINT)")).join(", ");
        let sql = format!("SELECT {columns}, CAST(wage_income AS BIGINT) FROM census ORDER BY record_id");
        let table = Numbers(run(context, &sql).await);
        let quasi = table.rows(0);
        let domains = std::array::from_fn(|j| {
            let mut values: Vec<i64> = quasi.iter().map(|row| row[j]).collect();
            values.sort_unstable();
            values.dedup();
            values
        });
        Self { wage: table.column(7), quasi, domains }
    }

    fn range(&self, j: usize) -> f64 {
        (self.domains[j][self.domains[j].len() - 1] - self.domains[j][0] + 1) as f64
    }

    fn mean_loss(&self, loss: impl Fn(usize, usize) -> i64) -> f64 {
        let each = |row: usize| (0..7).map(|j| loss(row, j) as f64 / self.range(j)).sum::<f64>();
        (0..self.quasi.len()).map(each).sum::<f64>() / (7 * self.quasi.len()) as f64
    }

    async fn muco(&self, context: &SessionContext, name: &str, call: &str, workloads: &[Vec<Query>]) {
        let seconds = best_time(context, &format!("SELECT * FROM {call}").replace("SEED", "1")).await;
        let columns = QUASI.map(|name| format!("CAST({name} AS BIGINT)")).join(", ");
        let private = call.replace("seed =>", "private => true, seed =>");
        for draw in 1..=DRAWS {
            let sql = format!("SELECT {columns} FROM {private} ORDER BY record_id");
            let published = Numbers(run(context, &sql.replace("SEED", &draw.to_string())).await).rows(0);
            let loss = self.mean_loss(|row, j| (self.quasi[row][j] - published[row][j]).abs());
            print!("| {name}, draw {draw} | {seconds:.3} | {loss:.4} |");
            let code = |j: usize, value: i64| self.domains[j].partition_point(|&other| other < value) as u32;
            let codes = |rows: &[[i64; 7]]| -> Vec<u32> {
                rows.iter().flat_map(|row| (0..7).map(|j| code(j, row[j])).collect::<Vec<_>>()).collect()
            };
            let (original, released) = (codes(&self.quasi), codes(&published));
            let sensitive: Vec<u32> = self.wage.iter().map(|&wage| wage as u32).collect();
            let perturbed = Perturbed::try_new(7, &original, &released, &sensitive).unwrap();
            for disclosure in perturbed.disclosure(&MATCHES) {
                print!(" {:.4} | {:.4} |", disclosure.identity, disclosure.attribute);
            }
            for workload in workloads {
                print!(
                    "{}",
                    errors(workload, |query| {
                        let rows = published.iter().zip(&self.wage).filter(|(row, _)| query.holds(row));
                        rows.map(|(_, &wage)| wage as f64).sum()
                    })
                );
            }
            println!();
        }
    }

    async fn mondrian(&self, context: &SessionContext, name: &str, call: &str, workloads: &[Vec<Query>]) {
        let call = call.replace("SEED", "1");
        let seconds = best_time(context, &format!("SELECT * FROM {call}")).await;
        let end = |end: &str| QUASI.map(|name| format!("CAST({name}.{end} AS BIGINT)")).join(", ");
        let private = call.replace("seed =>", "private => true, seed =>");
        let sql = format!("SELECT {}, {}, group_id FROM {private} ORDER BY record_id", end("lo"), end("hi"));
        let table = Numbers(run(context, &sql).await);
        let (lo, hi, groups) = (table.rows(0), table.rows(7), table.column(14));
        let loss = self.mean_loss(|row, j| hi[row][j] - lo[row][j]);
        print!("| {name} | {seconds:.3} | {loss:.4} |");
        for (identity, attribute) in Boxes::new(&lo, &hi, &groups, &self.wage).disclosure(self) {
            print!(" {identity:.4} | {attribute:.4} |");
        }
        for workload in workloads {
            print!(
                "{}",
                errors(workload, |query| {
                    let weight = |row: usize| -> f64 {
                        query.conditions.iter().map(|&(j, condition)| condition.share(lo[row][j], hi[row][j])).product()
                    };
                    (0..lo.len()).map(|row| weight(row) * self.wage[row] as f64).sum()
                })
            );
        }
        println!();
    }

    async fn anatomy(&self, context: &SessionContext, name: &str, call: &str, workloads: &[Vec<Query>]) {
        let call = call.replace("SEED", "1");
        let seconds = best_time(context, &format!("SELECT * FROM {call}")).await;
        let private = call.replace("seed =>", "private => true, seed =>");
        let sql = format!("SELECT wage_income FROM {private} ORDER BY record_id");
        let table = run(context, &sql).await;
        let lists = table.column(0).as_list::<i32>();
        let mean = |row: usize| {
            let pairs = lists.value(row);
            let pairs = pairs.as_struct();
            let number =
                |column: usize| datafusion::arrow::compute::cast(pairs.column(column), &DataType::Int64).unwrap();
            let (values, counts) = (number(0), number(1));
            let (values, counts) = (values.as_primitive::<Int64Type>(), counts.as_primitive::<Int64Type>());
            let sum: i64 = values.values().iter().zip(counts.values()).map(|(value, count)| value * count).sum();
            sum as f64 / counts.values().iter().sum::<i64>() as f64
        };
        let means: Vec<f64> = (0..lists.len()).map(mean).collect();
        // Whoever matches all quasi-identifiers finds the row, whatever the wage.
        print!("| {name} | {seconds:.3} | 0.0000 |{}", " | |".repeat(MATCHES.len()));
        for workload in workloads {
            print!(
                "{}",
                errors(workload, |query| {
                    self.quasi.iter().zip(&means).filter(|(row, _)| query.holds(row)).map(|(_, mean)| mean).sum()
                })
            );
        }
        println!();
    }
}

/// The groups of a generalized release.
struct Boxes {
    sizes: Vec<f64>,
    /// Rows of each group with each wage.
    wages: Vec<std::collections::HashMap<i64, f64>>,
    /// Of each quasi-identifier and each of its values, the groups that hold it, as bits.
    holding: [std::collections::HashMap<i64, Vec<u64>>; 7],
}

impl Boxes {
    fn new(lo: &[[i64; 7]], hi: &[[i64; 7]], groups: &[i64], wage: &[i64]) -> Self {
        let count = *groups.iter().max().unwrap() as usize;
        let mut boxes =
            Self { sizes: vec![0.0; count], wages: vec![Default::default(); count], holding: Default::default() };
        let mut first = vec![None; count];
        for row in 0..groups.len() {
            let group = groups[row] as usize - 1;
            boxes.sizes[group] += 1.0;
            *boxes.wages[group].entry(wage[row]).or_insert(0.0) += 1.0;
            first[group].get_or_insert(row);
        }
        for (group, row) in first.into_iter().enumerate().filter_map(|(group, row)| row.map(|row| (group, row))) {
            for j in 0..7 {
                for value in lo[row][j]..=hi[row][j] {
                    let bits = boxes.holding[j].entry(value).or_insert_with(|| vec![0; count.div_ceil(64)]);
                    bits[group / 64] |= 1 << (group % 64);
                }
            }
        }
        boxes
    }

    /// Computes the disclosure for each probability of matching. It is over every twentieth person and all subsets of quasi-identifiers.
    fn disclosure(&self, people: &People) -> Vec<(f64, f64)> {
        let mut by_size = [[0.0; 2]; 8];
        let chosen: Vec<usize> = (0..people.quasi.len()).step_by(20).collect();
        for &row in &chosen {
            for subset in 1_u32..128 {
                let matched = (0..7).filter(|j| subset >> j & 1 == 1);
                let mut bits = vec![u64::MAX; self.sizes.len().div_ceil(64)];
                for j in matched {
                    let holding = &self.holding[j][&people.quasi[row][j]];
                    bits.iter_mut().zip(holding).for_each(|(bits, holding)| *bits &= holding);
                }
                let (mut rows, mut right) = (0.0, 0.0);
                for (word, bits) in bits.into_iter().enumerate() {
                    let mut bits = bits;
                    while bits != 0 {
                        let group = word * 64 + bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        if group < self.sizes.len() {
                            rows += self.sizes[group];
                            right += self.wages[group].get(&people.wage[row]).copied().unwrap_or(0.0);
                        }
                    }
                }
                // One's own row always matches.
                by_size[subset.count_ones() as usize][0] += 1.0 / rows;
                by_size[subset.count_ones() as usize][1] += right / rows;
            }
        }
        let of = |p: f64| {
            let weight =
                |size: usize| p.powi(size as i32) * (1.0 - p).powi(7 - size as i32) / (1.0 - (1.0 - p).powi(7));
            let mean = |which: usize| (1..8).map(|size| weight(size) * by_size[size][which]).sum::<f64>();
            (mean(0) / chosen.len() as f64, mean(1) / chosen.len() as f64)
        };
        MATCHES.iter().map(|&p| of(p)).collect()
    }
}

/// A table of whole numbers.
struct Numbers(RecordBatch);

impl Numbers {
    fn column(&self, column: usize) -> Vec<i64> {
        self.0.column(column).as_primitive::<Int64Type>().values().to_vec()
    }

    /// Returns seven columns from one on, row after row.
    fn rows(&self, first: usize) -> Vec<[i64; 7]> {
        let columns: [Vec<i64>; 7] = std::array::from_fn(|j| self.column(first + j));
        (0..self.0.num_rows()).map(|row| std::array::from_fn(|j| columns[j][row])).collect()
    }
}

async fn best_time(context: &SessionContext, sql: &str) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        run(context, sql).await;
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

async fn run(context: &SessionContext, sql: &str) -> RecordBatch {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let schema = std::sync::Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    concat_batches(&schema, &batches).unwrap()
}
