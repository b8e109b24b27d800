//! Costs of publishing beside the release itself: `cargo bench --bench publications`, or `-- 100000` for sizes of your own.
//!
//! An INSERT into a publication (m-invariance, m = 10, four quasi-identifiers, local disk) against the bare release plus writing
//! the released rows to Parquet twice with DataFusion's COPY: a publication stages its files, then copies them. The first INSERT
//! creates both tables; the second one has 5% other people and reads the ledger, as does the release that it is compared with.
//! Best of three.

use std::time::Instant;

use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use mimalloc::MiMalloc;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const ROLES: &str = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation";
const COLUMNS: &str = "person_id, age, gender, education, birthplace, occupation";
const ROUNDS: usize = 3;

fn main() {
    let sizes: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("| rows | release | bare | write | INSERT | ratio |");
    println!("|---:|:---|---:|---:|---:|---:|");
    for &rows in if sizes.is_empty() { &[100_000, 1_000_000][..] } else { &sizes } {
        runtime.block_on(compare(rows));
    }
}

#[derive(Debug, Clone, Copy)]
struct Times {
    bare: f64,
    write: f64,
    insert: f64,
}

async fn compare(rows: u64) {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let context = SessionContext::new().enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    let changed = rows / 20;
    run(&context, &format!("COPY (SELECT {COLUMNS} FROM census({rows})) TO '{}'", file("1.parquet"))).await;
    let later = format!(
        "COPY (SELECT {COLUMNS} FROM census({}) WHERE person_id > {changed}) TO '{}'",
        rows + changed,
        file("2.parquet")
    );
    run(&context, &later).await;
    run(
        &context,
        &format!(
            "CREATE TABLE private AS SELECT * FROM m_invariant('{}', 10, {ROLES}, private => true)",
            file("1.parquet")
        ),
    )
    .await;
    let previous = "SELECT person_id, signature, ring, occupation FROM private WHERE person_id IS NOT NULL";
    run(&context, &format!("COPY ({previous}) TO '{}'", file("ledger.parquet"))).await;
    let calls = [
        format!("m_invariant('{}', 10, {ROLES})", file("1.parquet")),
        format!("m_invariant('{}', 10, {ROLES}, previous => '{}')", file("2.parquet"), file("ledger.parquet")),
    ];
    let mut best = [Times { bare: f64::INFINITY, write: f64::INFINITY, insert: f64::INFINITY }; 2];
    for round in 0..ROUNDS {
        run(&context, "DROP TABLE IF EXISTS published").await;
        run(&context, &format!(
            "CREATE EXTERNAL TABLE published (person_id BIGINT, age INT, gender INT, education INT, birthplace INT, occupation INT)
             STORED AS PUBLICATION LOCATION '{}' OPTIONS ('begin' 'true', 'method' 'm_invariant', 'm' '10', 'id' 'person_id',
             'quasi' 'age, gender, education, birthplace', 'sensitive' 'occupation')", file(&format!("published {round}"))
        )).await;
        for (release, (call, best)) in calls.iter().zip(&mut best).enumerate() {
            best.bare = best.bare.min(time(&context, &format!("SELECT * FROM {call}")).await);
            run(&context, &format!("CREATE OR REPLACE TABLE released AS SELECT * FROM {call}")).await;
            let copy = format!("COPY released TO '{}'", file("released.parquet"));
            best.write = best.write.min(time(&context, &copy).await);
            let insert = format!("INSERT INTO published SELECT * FROM '{}'", file(&format!("{}.parquet", release + 1)));
            best.insert = best.insert.min(time(&context, &insert).await);
        }
    }
    for (release, times) in best.iter().enumerate() {
        println!(
            "| {rows} | {} | {:.2} s | {:.2} s | {:.2} s | {:.2} |",
            release + 1,
            times.bare,
            times.write,
            times.insert,
            times.insert / (times.bare + 2.0 * times.write)
        );
    }
}

/// Runs a query to its last row, whatever the rows.
async fn run(context: &SessionContext, sql: &str) {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let mut rows = execute_stream(plan, context.task_ctx()).unwrap();
    while let Some(batch) = rows.next().await {
        batch.unwrap();
    }
}

async fn time(context: &SessionContext, sql: &str) -> f64 {
    let start = Instant::now();
    run(context, sql).await;
    start.elapsed().as_secs_f64()
}
