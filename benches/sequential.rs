//! Sequential releases against one projected release (Shmueli and Tassa 2015, Section 6): `cargo bench --bench
//! sequential`.
//!
//! Prints the loss (LM) of ten releases over the paper's subsets of columns, made one by one with `sequential_release` and projected from
//! `non_sequential`, and the time of each; loss and time over `l`, `p` and the number of rows; ten releases of people who become
//! more. On 100,000 people of the American Community Survey and on ADULT, where they are there, with
//! hierarchies; and on synthetic census microdata without.
//!
//! With `--check`, the census only, and an error when worlds and ten releases take more than ten seconds or a release loses more than its
//! projection.

use std::time::Instant;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::prelude::{SessionConfig, SessionContext};
use mimalloc::MiMalloc;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Columns of the paper's ten releases, by their number; the sensitive one is in all of them.
const SUBSETS: [&[usize]; 10] =
    [&[2, 6, 7], &[4, 5, 6, 7], &[3, 5], &[1], &[1, 2, 6, 7], &[1, 2, 3, 4], &[2, 3, 5], &[2, 5, 6], &[4], &[2, 3]];

/// A table, and what is released of it.
struct Experiment {
    name: &'static str,
    table: &'static str,
    id: &'static str,
    quasi: &'static [&'static str],
    sensitive: &'static str,
    hierarchies: Option<&'static str>,
    releases: Vec<Vec<&'static str>>,
}

fn main() {
    let check = std::env::args().any(|argument| argument == "--check");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = SessionContext::new_with_config(SessionConfig::new()).enable_url_table();
        datafusion_anonymize::register_all(&context).unwrap();
        run(&context, "CREATE TABLE census AS SELECT * FROM census(100000)").await;
        let census = census();
        let (seconds, lost) = census.ten_releases(&context, 5, 100).await;
        if check {
            assert!(seconds < 10.0, "worlds and ten releases took {seconds:.1} s");
            assert!(lost.iter().all(|[sequential, projected]| sequential < projected), "{lost:?}");
            return;
        }
        let directory = std::env::var("ANONYMIZE_MICRODATA")
            .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
        for experiment in real(&context, &directory).await {
            experiment.ten_releases(&context, 5, 100).await;
            experiment.sweeps(&context).await;
        }
        leaving(&context, &directory).await;
        census.growing(&context).await;
    });
}

fn census() -> Experiment {
    let quasi = &["age", "gender", "education", "birthplace"];
    // The paper's subsets as far as the columns are there.
    let place = [0, 1, 2, usize::MAX, usize::MAX, 3, 3];
    let subset = |numbers: &&[usize]| {
        let mut places: Vec<usize> = numbers.iter().map(|number| place[number - 1]).filter(|&j| j < 4).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|j| quasi[j]).collect()
    };
    let mut releases: Vec<Vec<&str>> =
        SUBSETS.iter().map(subset).filter(|names: &Vec<&str>| !names.is_empty()).collect();
    for more in [vec!["education", "birthplace"], vec!["age", "education", "birthplace"]] {
        if releases.len() < 10 {
            releases.push(more);
        }
    }
    Experiment {
        name: "Synthetic census, 100,000 rows",
        table: "census",
        id: "person_id",
        quasi,
        sensitive: "occupation",
        hierarchies: None,
        releases,
    }
}

async fn real(context: &SessionContext, directory: &str) -> Vec<Experiment> {
    let mut found = Vec::new();
    let there = |name: &str| {
        let there = std::path::Path::new(&format!("{directory}/{name}.parquet")).exists();
        if !there {
            println!("{name}.parquet is not in {directory}");
        }
        there
    };
    if there("acs_income") {
        let sql = format!(
            "CREATE TABLE acs AS SELECT * FROM '{directory}/acs_income.parquet'
             ORDER BY person_id * 7919 % 1000003 LIMIT 100000"
        );
        run(context, &sql).await;
        // Those of education and of hours_per_week, which is not asked for, have a level that does not nest.
        let sql = format!(
            "CREATE TABLE acs_hierarchies AS SELECT * FROM '{directory}/acs_hierarchies.csv' WHERE attribute <> 'education'"
        );
        run(context, &sql).await;
        let quasi: &[&str] = &["age", "sex", "education", "marital_status", "race", "class_of_worker", "birthplace"];
        found.push(Experiment {
            name: "ACS, 100,000 rows",
            table: "acs",
            id: "person_id",
            quasi,
            sensitive: "occupation_group",
            hierarchies: Some("acs_hierarchies"),
            releases: SUBSETS.iter().map(|numbers| numbers.iter().map(|number| quasi[number - 1]).collect()).collect(),
        });
    }
    if there("adult") {
        let sql = format!(
            "CREATE TABLE adult AS SELECT * FROM '{directory}/adult.parquet' WHERE split = 'train' AND is_complete"
        );
        run(context, &sql).await;
        let sql = format!("CREATE TABLE adult_hierarchies AS SELECT * FROM '{directory}/adult_hierarchies.csv'");
        run(context, &sql).await;
        found.push(Experiment {
            name: "ADULT",
            table: "adult",
            id: "record_id",
            quasi: &["age", "sex", "education", "marital_status", "race", "workclass", "native_country"],
            sensitive: "occupation",
            hierarchies: Some("adult_hierarchies"),
            // Those of the paper, which releases the second of them twice.
            releases: vec![
                vec!["age", "sex", "education", "marital_status", "race"],
                vec!["education", "marital_status", "workclass", "native_country"],
                vec!["age", "sex", "marital_status", "race"],
                vec!["age", "race", "native_country"],
                vec!["education", "marital_status", "workclass", "native_country"],
                vec!["marital_status", "race", "native_country"],
                vec!["age", "sex", "marital_status", "race", "native_country"],
                vec!["age", "native_country"],
                vec!["marital_status"],
                vec!["education", "race", "workclass"],
            ],
        });
    }
    found
}

impl Experiment {
    /// Returns the arguments of a call on these columns.
    fn arguments(&self, columns: &[&str], seed: usize) -> String {
        let hierarchies =
            self.hierarchies.as_ref().map_or_else(String::new, |table| format!(", hierarchies => {table}"));
        let (id, quasi, sensitive) = (self.id, columns.join(", "), self.sensitive);
        format!("id => {id}, quasi => ({quasi}), sensitive => {sensitive}, seed => {seed}{hierarchies}")
    }

    /// Makes worlds; seconds.
    async fn worlds(&self, context: &SessionContext, table: &str, l: usize, more: &str) -> f64 {
        let arguments = self.arguments(self.quasi, 1);
        let sql = format!("CREATE TABLE worlds AS SELECT * FROM sequential_worlds({table}, {l}, {arguments}{more})");
        run(context, "DROP TABLE IF EXISTS worlds").await;
        timed(context, &sql).await
    }

    /// Makes a release; seconds and loss.
    async fn release(&self, context: &SessionContext, columns: &[&str], more: &str) -> (f64, f64) {
        let arguments = self.arguments(columns, 2);
        let table = self.table;
        let sql =
            format!("CREATE TABLE release AS SELECT * FROM sequential_release({table}, worlds, {arguments}{more})");
        let seconds = timed(context, &sql).await;
        let loss = self.loss(context, "release", columns).await;
        run(context, "DROP TABLE release").await;
        (seconds, loss)
    }

    /// Measures the loss of a release of m-invariance in a series that nobody leaves.
    async fn invariant(&self, context: &SessionContext, columns: &[&str], m: usize) -> f64 {
        let arguments = self.arguments(columns, 2);
        let sql = format!("CREATE TABLE release AS SELECT * FROM m_invariant({}, {m}, {arguments})", self.table);
        timed(context, &sql).await;
        let loss = self.loss(context, "release", columns).await;
        run(context, "DROP TABLE release").await;
        loss
    }

    async fn loss(&self, context: &SessionContext, release: &str, columns: &[&str]) -> f64 {
        let hierarchies =
            self.hierarchies.as_ref().map_or_else(String::new, |table| format!(", hierarchies => {table}"));
        let (table, quasi) = (self.table, columns.join(", "));
        let sql = format!(
            "SELECT lm FROM information_loss({table}, {release}, quasi => ({quasi}){hierarchies}) WHERE attribute = '*'"
        );
        let batches = run(context, &sql).await;
        batches.iter().find(|batch| batch.num_rows() > 0).unwrap().column(0).as_primitive::<Float64Type>().value(0)
    }

    /// Returns the table of ten releases: seconds for worlds and all of them, and the losses of each, sequential and projected.
    async fn ten_releases(&self, context: &SessionContext, l: usize, p: usize) -> (f64, Vec<[f64; 2]>) {
        let mut all = self.worlds(context, self.table, l, "").await;
        let arguments = self.arguments(self.quasi, 1);
        let sql = format!("CREATE TABLE projected AS SELECT * FROM non_sequential({}, {l}, {arguments})", self.table);
        let projected_seconds = timed(context, &sql).await;
        println!(
            "\n{}, l = {l}, p = {p}: worlds {all:.2} s; one release to be projected {projected_seconds:.2} s\n",
            self.name
        );
        println!(
            "| release | columns | loss, sequential | loss, projected | loss, m_invariant | seconds |\n|---:|:---|---:|---:|---:|---:|"
        );
        let mut losses = Vec::new();
        for (number, columns) in self.releases.iter().enumerate() {
            let (seconds, loss) = self.release(context, columns, &format!(", p => {p}")).await;
            let projected = self.loss(context, "projected", columns).await;
            let invariant = self.invariant(context, columns, l).await;
            let (number, columns) = (number + 1, columns.join(", "));
            println!("| {number} | {columns} | {loss:.4} | {projected:.4} | {invariant:.4} | {seconds:.2} |");
            all += seconds;
            losses.push([loss, projected]);
        }
        println!("\nWorlds and {} releases: {all:.2} s", self.releases.len());
        run(context, "DROP TABLE projected").await;
        (all, losses)
    }

    /// Measures loss and time over l and p, of all releases together.
    async fn sweeps(&self, context: &SessionContext) {
        println!("\n| {} | worlds, seconds | ten releases, seconds | mean loss |\n|:---|---:|---:|---:|", self.name);
        let cases = [3, 4, 6, 7].map(|l| (l, 100)).into_iter().chain([25, 50, 200, 400].map(|p| (5, p)));
        for (l, p) in cases.chain([(5, 100)]) {
            let worlds = self.worlds(context, self.table, l, "").await;
            let (mut seconds, mut loss) = (0.0, 0.0);
            for columns in &self.releases {
                let one = self.release(context, columns, &format!(", p => {p}")).await;
                seconds += one.0;
                loss += one.1 / self.releases.len() as f64;
            }
            println!("| l = {l}, p = {p} | {worlds:.2} | {seconds:.2} | {loss:.4} |");
        }
    }

    /// Measures the same release of people who become more: 100,000, and then 50,000, 30,000 and 20,000 new ones.
    async fn growing(&self, context: &SessionContext) {
        println!(
            "\n| people | worlds for new ones, seconds | a release of all, seconds | loss |\n|---:|---:|---:|---:|"
        );
        run(context, "CREATE TABLE many AS SELECT * FROM census(200000)").await;
        let mut before = 0;
        for now in [100_000, 150_000, 180_000, 200_000] {
            run(context, "DROP TABLE IF EXISTS census").await;
            run(context, &format!("CREATE TABLE census AS SELECT * FROM many WHERE person_id <= {now}")).await;
            let known = if before > 0 { ", worlds => known" } else { "" };
            let seconds = self.worlds(context, self.table, 5, known).await;
            // Worlds of several calls differ in what their columns say of them, and a table made of both is refused.
            run(context, "DROP TABLE IF EXISTS fresh").await;
            run(context, "CREATE TABLE fresh AS SELECT * FROM worlds").await;
            if before > 0 {
                run(context, "INSERT INTO worlds SELECT * FROM known").await;
                run(context, "INSERT INTO known SELECT * FROM fresh").await;
            } else {
                run(context, "CREATE TABLE known AS SELECT * FROM worlds").await;
            }
            let (release, loss) = self.release(context, &["age", "gender", "education"], "").await;
            println!("| {now} | {seconds:.2} | {release:.2} | {loss:.4} |");
            before = now;
        }
    }
}

/// Measures twenty releases of 100,000 people of the ACS, with people who leave. A twentieth leaves before each further one, and as many
/// come: publications of `sequential` with l = 5 and of `m_invariant` with m = 5. Counterfeits in percent of the people who are there.
async fn leaving(context: &SessionContext, directory: &str) {
    if !std::path::Path::new(&format!("{directory}/acs_income.parquet")).exists() {
        return;
    }
    let numbered = format!(
        "SELECT *, row_number() OVER (ORDER BY person_id * 7919 % 1000003, person_id) AS number FROM '{directory}/acs_income.parquet'"
    );
    let came = "CASE WHEN number <= 100000 THEN 1 ELSE 2 + CAST(floor((number - 100001) / 5000) AS BIGINT) END";
    let stays = "CAST(floor(ln((1 + person_id * 104729 % 1000003) / 1000004.0) / ln(0.95)) AS BIGINT)";
    run(
        context,
        &format!(
            "CREATE TABLE moving AS SELECT *, {came} AS came, {stays} AS stays FROM ({numbered}) WHERE number <= 195000"
        ),
    )
    .await;
    let lake = tempfile::tempdir().unwrap();
    println!("\n| method | release | people | counterfeits, % | loss (LM) |\n|:---|---:|---:|---:|---:|");
    for (method, bound) in [("sequential", "l"), ("m_invariant", "m")] {
        let sql = format!(
            "CREATE EXTERNAL TABLE {method}_of_moving (person_id INT, age SMALLINT, sex SMALLINT, education SMALLINT, occupation_group VARCHAR)
             STORED AS PUBLICATION LOCATION '{}/{method}/' OPTIONS ('begin' 'true', 'method' '{method}', '{bound}' '5', 'id' 'person_id',
             'quasi' 'age, sex, education', 'sensitive' 'occupation_group')",
            lake.path().display()
        );
        run(context, &sql).await;
        for release in 1..=20 {
            let present = format!("SELECT * FROM moving WHERE came <= {release} AND came + stays >= {release}");
            let insert = format!("SELECT person_id, age, sex, education, occupation_group FROM ({present})");
            run(context, &format!("INSERT INTO {method}_of_moving {insert}")).await;
            if ![1, 2, 5, 10, 20].contains(&release) {
                continue;
            }
            let sql = format!(
                "SELECT CAST(rows - counterfeits AS DOUBLE), 100.0 * counterfeits / (rows - counterfeits), lm FROM releases({method}_of_moving)
                 CROSS JOIN information_loss(({present}), release({method}_of_moving), quasi => (age, sex, education))
                 WHERE release = {release} AND attribute = '*'"
            );
            let batches = run(context, &sql).await;
            let row = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
            let [people, share, loss] =
                [0, 1, 2].map(|column| row.column(column).as_primitive::<Float64Type>().value(0));
            println!("| {method} | {release} | {people} | {share:.2} | {loss:.4} |");
        }
    }
}

async fn timed(context: &SessionContext, sql: &str) -> f64 {
    let start = Instant::now();
    run(context, sql).await;
    start.elapsed().as_secs_f64()
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}
