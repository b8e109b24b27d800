//! A release for a seed is what it was: digests of the rows of every method, as first and as later releases.
//!
//! `tests/digests.txt` holds them. A change that is to change nothing must not change a digest; one that changes what is drawn says so in
//! the changelog and stores new ones: `ANONYMIZE_BLESS=1 cargo test --release --test integration digests`.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use siphasher::sip128::{Hasher128, SipHasher13};

use super::support::{path, run, session};

/// Tables that the calls below read. People come, go, return, and change their occupations within pairs.
const TABLES: [&str; 6] = [
    "CREATE TABLE all_people AS SELECT * FROM census(3000, seed => 7)",
    "CREATE TABLE people AS SELECT * FROM all_people WHERE person_id % 5 <> 0",
    "CREATE TABLE later AS SELECT * FROM all_people WHERE person_id % 5 <> 1",
    "CREATE TABLE changed AS SELECT * REPLACE (CASE WHEN person_id % 7 = 0 AND occupation % 2 = 0 THEN occupation + 1 ELSE occupation END AS occupation)
     FROM later",
    "CREATE TABLE updates AS SELECT DISTINCT a.occupation AS from_value, b.occupation AS to_value FROM all_people a JOIN all_people b
     ON a.occupation - a.occupation % 2 = b.occupation - b.occupation % 2",
    "CREATE TABLE tree AS SELECT DISTINCT 'education' AS attribute, education AS leaf, concat('level ', education / 4) AS level1 FROM all_people",
];

const PEOPLE: &str = "id => person_id, quasi => (age, gender, education), sensitive => occupation";
const QUASI: &str = "quasi => (age, gender, education), sensitive => occupation";

/// Returns the name and call of each release. Those that are read again later are made into tables of their names.
fn releases() -> Vec<(&'static str, String)> {
    vec![
        ("m_invariant_close", format!("m_invariant(people, 4, {PEOPLE}, seed => 'a', private => true)")),
        ("m_invariant_close_2", format!("m_invariant(later, 4, {PEOPLE}, seed => 'b', private => true, previous => m_invariant_close)")),
        ("m_invariant_participant", format!("m_invariant(people, 2, {PEOPLE}, seed => 'a', reader => 'participant')")),
        ("m_invariant", format!("m_invariant(people, 4, {PEOPLE}, seed => 'a', private => true, groups => 'cohort')")),
        ("m_invariant_2", format!("m_invariant(later, 4, {PEOPLE}, seed => 'b', private => true, previous => m_invariant, groups => 'cohort')")),
        ("m_invariant_minimal", format!("m_invariant(people, 4, {PEOPLE}, seed => 'a', private => true, balance => 'minimal')")),
        (
            "m_invariant_minimal_2",
            format!("m_invariant(later, 4, {PEOPLE}, seed => 'b', private => true, balance => 'minimal', previous => m_invariant_minimal)"),
        ),
        ("m_invariant_within", "m_invariant(people, 3, id => person_id, quasi => (age, education), sensitive => occupation, seed => 'a', within => gender, groups => 'cohort')".to_owned()),
        ("m_distinct", format!("m_distinct(people, 3, {PEOPLE}, updates => updates, seed => 'a', private => true)")),
        (
            "m_distinct_2",
            format!("m_distinct(changed, 3, {PEOPLE}, updates => updates, seed => 'b', private => true, previous => m_distinct)"),
        ),
        ("sequential_worlds", format!("sequential_worlds(people, 3, {PEOPLE}, seed => 'a')")),
        (
            "sequential_release",
            "sequential_release(people, sequential_worlds, id => person_id, quasi => (age, gender), sensitive => occupation, seed => 'a')"
                .to_owned(),
        ),
        (
            "sequential_release_2",
            "sequential_release(people, sequential_worlds, id => person_id, quasi => (education), seed => 'b')".to_owned(),
        ),
        ("non_sequential", format!("non_sequential(people, 3, {QUASI}, seed => 'a')")),
        ("mondrian", format!("mondrian(people, 5, {QUASI}, seed => 'a')")),
        ("mondrian_l", format!("mondrian(people, 5, 3, {QUASI}, diversity => 'entropy', seed => 'a')")),
        ("mondrian_tree", format!("mondrian(people, 5, {QUASI}, hierarchies => tree, seed => 'a')")),
        ("anatomy", format!("anatomy(people, 4, {QUASI}, seed => 'a')")),
        ("muco", format!("muco(people, 0.3, 4, {PEOPLE}, seed => 'a', private => true)")),
        (
            "reposition",
            "reposition((SELECT person_id % 40 AS day, age, occupation FROM people), 3, day, 5, occupation, seed => 'a', finish => true)"
                .to_owned(),
        ),
    ]
}

/// Hashes the rows in their order with names and types, without varying metadata.
fn digest(batches: &[RecordBatch]) -> String {
    let mut hasher = SipHasher13::new();
    let mut rows = 0;
    for batch in batches {
        rows += batch.num_rows();
        for row in 0..batch.num_rows() {
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                field.name().hash(&mut hasher);
                array_value_to_string(column, row).unwrap().hash(&mut hasher);
            }
        }
    }
    hasher.write_usize(rows);
    format!("{rows} rows {:032x}", u128::from(hasher.finish128()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_gives_what_it_gave() {
    let context = session();
    for table in TABLES {
        run(&context, table).await.unwrap();
    }
    let mut found = String::new();
    for (name, call) in releases() {
        let batches =
            run(&context, &format!("SELECT * FROM {call}")).await.unwrap_or_else(|error| panic!("{call}: {error}"));
        writeln!(found, "{name}: {}", digest(&batches)).unwrap();
        if !batches.is_empty() {
            context
                .register_batch(
                    name,
                    datafusion::arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap(),
                )
                .unwrap();
        }
    }
    let file = path("tests/digests.txt");
    if std::env::var_os("ANONYMIZE_BLESS").is_some() {
        std::fs::write(&file, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&file).unwrap(), "see the first lines of tests/integration/digests.rs");
}
