//! Duration of inferences, by the number of people and of releases: `cargo bench --bench disclosure`.
//!
//! People are of the synthetic census; releases are m-invariant ones with m = 10, made before the clock starts, each with the same
//! 200,000 people. Times are the best of three, of the whole query: reading tables from memory, the inference, and the sums over
//! its rows. `ACS` in the last lines is real people (200,000 of acs_income.parquet), if the file is there.

use std::time::Instant;

use datafusion::prelude::SessionContext;
use mimalloc::MiMalloc;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(compare());
}

async fn compare() {
    println!("| people | releases | groups of each | strength | time | of it, per release | greatest risk |");
    println!("|---:|---:|---:|:---|---:|---:|---:|");
    let context = session();
    let roles = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation";
    run(&context, "CREATE TABLE people AS SELECT * FROM census(200000)").await;
    measure(&context, "", roles, &[1, 2, 5, 10, 20], 200_000).await;
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    let file = format!("{directory}/acs_income.parquet");
    if !std::path::Path::new(&file).exists() {
        return println!("acs_income.parquet is not in {directory}");
    }
    let context = session();
    let roles = "id => person_id, quasi => (age, sex, education, birthplace), sensitive => occupation";
    run(
        &context,
        &format!("CREATE TABLE people AS SELECT * FROM '{file}' ORDER BY person_id * 7919 % 1000003 LIMIT 200000"),
    )
    .await;
    measure(&context, "ACS ", roles, &[1, 20], 200_000).await;
}

async fn measure(context: &SessionContext, whose: &str, roles: &str, releases: &[usize], people: usize) {
    let most = releases.iter().copied().max().unwrap_or(1);
    for n in 0..most {
        let previous = if n == 0 { "" } else { ", previous => private0" };
        let call = format!("m_invariant(people, 10, {roles}, seed => {n}, private => true{previous})");
        run(context, &format!("CREATE TABLE private{n} AS SELECT * FROM {call}")).await;
        run(context, &format!("CREATE TABLE public{n} AS SELECT * EXCLUDE (person_id) FROM private{n}")).await;
    }
    for strength in ["cover", "group"] {
        for &number in releases {
            let kind = if strength == "cover" { "public" } else { "private" };
            let names = (0..number).map(|n| format!("{kind}{n}")).collect::<Vec<_>>().join(", ");
            let list = if number == 1 { names } else { format!("({names})") };
            let sql = format!(
                "SELECT max(risk), max(remaining_count) FROM disclosure({list}, original => people, strength => '{strength}', {roles})"
            );
            let mut best = f64::INFINITY;
            let mut found = String::new();
            for _ in 0..3 {
                let start = Instant::now();
                found = run(context, &sql).await;
                best = best.min(start.elapsed().as_secs_f64());
            }
            let groups = people / 10;
            println!(
                "| {whose}{people} | {number} | about {groups} | {strength} | {best:.2} s | {:.2} s | {found} |",
                best / number as f64
            );
        }
    }
}

fn session() -> SessionContext {
    let context = SessionContext::new().enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
}

/// Runs a query and returns its first value.
async fn run(context: &SessionContext, sql: &str) -> String {
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    let first = batches.iter().find(|batch| batch.num_rows() > 0 && batch.num_columns() > 0);
    first.map_or_else(String::new, |batch| {
        datafusion::arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap()
    })
}
