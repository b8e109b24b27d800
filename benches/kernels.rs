//! Releases of small tables in memory, on one thread, whose instructions `.ci/kernels` counts.
//!
//! `cargo bench --bench kernels` lists them; with a name and a number, one is made that many times. Nothing is timed here. Of runs of one and of
//! three times the difference is what two releases take, without what comes before.

use std::time::Instant;

use datafusion::prelude::{SessionConfig, SessionContext};
use mimalloc::MiMalloc;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Name, number of rows, statements that come before, and the release.
struct Kernel(&'static str, u32, &'static [&'static str], &'static str);

/// Columns of people.
const PEOPLE: &str = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation";
/// A tenth are others, and of a quarter the occupation is another of its class.
const LATER: &str = "CREATE TABLE later AS SELECT person_id, age, gender, education, birthplace,
     CASE person_id % 4 WHEN 0 THEN (occupation - 1) / 10 * 10 + 1 + person_id / 4 % 10 ELSE occupation END::INT AS occupation
     FROM census(ROWS * 11 / 10) WHERE person_id > ROWS / 10";
/// Occupations in classes of ten.
const UPDATES: &str = "CREATE TABLE updates AS SELECT a.value::INT AS from_value, b.value::INT AS to_value
     FROM generate_series(1, 50) a JOIN generate_series(1, 50) b ON (a.value - 1) / 10 = (b.value - 1) / 10";
const CANDIDATES: &str = "CREATE TABLE candidates AS SELECT person_id, signature, signature_label
     FROM m_distinct('people', 6, PEOPLE, updates => 'updates', private => true, seed => 1) WHERE person_id IS NOT NULL";
const WORLDS: &str = "CREATE TABLE worlds AS SELECT * FROM sequential_worlds('people', 5, PEOPLE, seed => 1)";

const KERNELS: [Kernel; 8] = [
    Kernel("m_invariant", 20_000, &[], "m_invariant('people', 10, PEOPLE, seed => 1, groups => 'cohort')"),
    Kernel("m_invariant_close", 20_000, &[], "m_invariant('people', 10, PEOPLE, seed => 1)"),
    Kernel(
        "m_distinct",
        20_000,
        &[LATER, UPDATES, CANDIDATES],
        "m_distinct('later', 6, PEOPLE, updates => 'updates', previous => 'candidates', seed => 1)",
    ),
    Kernel("sequential", 2_000, &[WORLDS], "sequential_release('people', 'worlds', PEOPLE, seed => 1)"),
    Kernel("mondrian", 20_000, &[], "mondrian('people', 10, quasi => (age, gender, education, birthplace), seed => 1)"),
    Kernel(
        "muco",
        20_000,
        &[],
        "muco('people', 1.0 / 6, 10, quasi => (age, gender, education, birthplace), sensitive => occupation, seed => 1)",
    ),
    Kernel(
        "anatomy",
        20_000,
        &[],
        "anatomy('people', 10, quasi => (age, gender, education, birthplace), sensitive => occupation, seed => 1)",
    ),
    Kernel(
        "disclosure",
        500,
        &[
            "CREATE TABLE release AS SELECT * FROM m_invariant('people', 10, PEOPLE, private => true, seed => 1, groups => 'cohort')",
        ],
        "disclosure('release', original => 'people', PEOPLE)",
    ),
];

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [name, times] = arguments.as_slice() else {
        KERNELS.iter().for_each(|Kernel(name, ..)| println!("{name}"));
        return;
    };
    let Kernel(_, rows, before, release) = KERNELS.iter().find(|kernel| kernel.0 == name).unwrap();
    let spelled_out = |sql: &str| sql.replace("PEOPLE", PEOPLE).replace("ROWS", &rows.to_string());
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    datafusion_anonymize::register_all(&context).unwrap();
    let people = "CREATE TABLE people AS SELECT * FROM census(ROWS)";
    for sql in std::iter::once(&people).chain(*before) {
        context.sql(&spelled_out(sql)).await.unwrap().collect().await.unwrap();
    }
    for _ in 0..times.parse::<u32>().unwrap() {
        let start = Instant::now();
        let rows =
            context.sql(&spelled_out(&format!("SELECT * FROM {release}"))).await.unwrap().collect().await.unwrap();
        let rows: usize = rows.iter().map(|batch| batch.num_rows()).sum();
        eprintln!("{name}: {rows} rows, {:.3} s", start.elapsed().as_secs_f64());
    }
}
