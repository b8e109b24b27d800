//! Costs of estimates: `cargo bench --bench estimates`, or `-- 1000000` for another number of rows.
//!
//! Over the census generator's table and its m-invariant release (m = 10), both in Parquet: a COUNT with conditions on two
//! quasi-identifiers, on the original and estimated from the release, and their ratio; then 10,000 random queries on 200,000
//! rows. Times are the best of five.

use std::time::Instant;

use datafusion::prelude::SessionContext;
use mimalloc::MiMalloc;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const CALL: &str = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation";

fn main() {
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10_000_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
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

async fn run(context: &SessionContext, sql: &str) {
    context.sql(sql).await.unwrap().collect().await.unwrap();
}
