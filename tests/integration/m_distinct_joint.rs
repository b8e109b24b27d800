//! `m_distinct` to a reader who combines people: m values stay possible for everybody, at every release.

use super::support::{number, run, session};

const ROLES: &str = "id => person_id, quasi => (age, gender, education, birthplace), sensitive => job";

/// Ten classes of five jobs, any of a class can become any other; one in twenty leaves at a time and comes back, a quarter change.
#[tokio::test(flavor = "multi_thread")]
async fn m_distinct_keeps_m_values_for_everybody_together() {
    let context = session();
    let execute = async |sql: String| {
        run(&context, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    };
    let m = 4;
    execute(
        "CREATE TABLE updates AS SELECT c.value * 5 + a.value AS from_value, c.value * 5 + b.value AS to_value
         FROM generate_series(0, 9) c CROSS JOIN generate_series(0, 4) a CROSS JOIN generate_series(0, 4) b"
            .to_owned(),
    )
    .await;
    for n in 0..6 {
        let changes: Vec<String> =
            (1..=n).map(|at| format!("CASE WHEN (person_id * 31 + {at} * 7) % 4 = 0 THEN {at} ELSE 0 END")).collect();
        let changes = if changes.is_empty() { "0".to_owned() } else { changes.join(" + ") };
        execute(format!(
            "CREATE TABLE p{n} AS SELECT person_id, age, gender, education, birthplace,
                 CAST(occupation % 10 * 5 + (person_id + {changes}) % 5 AS BIGINT) AS job
             FROM census(300, 7) WHERE (person_id * 7919 + {n} * 3) % 20 > 0"
        ))
        .await;
        let previous = if n == 0 { "" } else { ", previous => ledger" };
        execute(format!(
            "CREATE TABLE d{n} AS SELECT * FROM m_distinct(p{n}, {m}, updates => updates, {ROLES}, on_ineligible => 'counterfeit',
                 private => true, seed => {n}{previous})"
        ))
        .await;
        let keep = if n == 0 { "CREATE TABLE ledger AS" } else { "INSERT INTO ledger" };
        execute(format!("{keep} SELECT CAST({n} + 1 AS BIGINT) AS release, * FROM d{n} WHERE person_id IS NOT NULL"))
            .await;
    }
    let truth: Vec<String> =
        (0..6).map(|n| format!("SELECT CAST({n} + 1 AS BIGINT) AS release, * FROM p{n}")).collect();
    execute(format!("CREATE TABLE truth AS {}", truth.join(" UNION ALL "))).await;
    let mut fewer = Vec::new();
    for strength in ["group", "joint"] {
        execute(format!(
            "CREATE OR REPLACE TABLE found AS SELECT * FROM disclosure((d0, d1, d2, d3, d4, d5), original => truth, strength => '{strength}',
                 updates => updates, {ROLES})"
        ))
        .await;
        let versions = number(&context, "SELECT count(*) FROM found").await;
        let below = number(&context, &format!("SELECT count(*) FROM found WHERE remaining_count < {m}")).await;
        let known = number(&context, "SELECT count(*) FROM found WHERE vulnerable").await;
        println!(
            "m_distinct, m = {m}, six releases, '{strength}': {below} of {versions} versions have fewer than m values left, {known} are known"
        );
        fewer.push(below);
    }
    assert_eq!(number(&context, "SELECT count(*) FROM found WHERE cardinality(undecided) > 0").await, 0);
    assert_eq!(fewer, [0, 0]);
}
