//! Several sensitive columns of real microdata: each by itself at `1/m`, or refused. The checks are plain SQL over released rows, and `disclosure`.

use datafusion::prelude::SessionContext;

use super::support::{error, microdata, number, run, session};

const ROLES: &str = "id => record_id, quasi => (age, sex, race)";

async fn adult() -> Option<SessionContext> {
    let adult = microdata("adult.parquet")?;
    let context = session();
    let rows = format!(
        "CREATE TABLE people AS SELECT record_id, age, sex, race, workclass, education, marital_status, occupation
         FROM '{adult}' WHERE is_complete AND split = 'train'"
    );
    run(&context, &rows).await.unwrap();
    Some(context)
}

/// Returns the greatest posterior of a column's values: their shares of groups.
async fn worst(context: &SessionContext, release: &str, column: &str) -> f64 {
    let shares = format!("SELECT count(*) * 1.0 / max(group_size) AS share FROM {release} GROUP BY group_id, {column}");
    number(context, &format!("SELECT max(share) * 1e6 FROM ({shares})")).await as f64 / 1e6
}

/// Returns the greatest risk that `disclosure` finds, of the worst column.
async fn risk(context: &SessionContext, release: &str, sensitive: &str) -> f64 {
    let inferred =
        format!("disclosure({release}, original => people, {ROLES}, sensitive => {sensitive}, strength => 'group')");
    number(context, &format!("SELECT max(risk) * 1e6 FROM {inferred}")).await as f64 / 1e6
}

/// A class of worker that most people have cannot be hidden among four. The combination could, and would tell it.
#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_is_too_frequent_is_refused() {
    let Some(context) = adult().await else { return };
    let call = |m: usize, sensitive: &str| {
        format!("SELECT * FROM m_invariant(people, {m}, {ROLES}, sensitive => {sensitive}, private => true, seed => 1)")
    };
    let refused = error(&context, &call(4, "(workclass, occupation)")).await;
    assert!(
        refused.contains("value of workclass") && refused.contains("composite(workclass, occupation)"),
        "{refused}"
    );
    let refused = error(&context, &call(3, "(marital_status, occupation)")).await;
    assert!(refused.contains("value of marital_status") && refused.contains("m => 2 would do"), "{refused}");
    run(&context, &format!("CREATE TABLE together AS {}", call(4, "composite(workclass, occupation)"))).await.unwrap();
    assert!(risk(&context, "together", "composite(workclass, occupation)").await <= 0.25);
    assert_eq!(worst(&context, "together", "workclass").await, 1.0);
    assert_eq!(risk(&context, "together", "(workclass, occupation)").await, 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_column_of_adult_is_at_its_bound() {
    let Some(context) = adult().await else { return };
    let releases = [
        ("m_invariant(people, 2, reader => 'stranger'", 2, ["marital_status", "occupation"]),
        ("m_invariant(people, 3, reader => 'participant'", 3, ["education", "occupation"]),
        ("mondrian(people, l => 3, cuts => 'fair'", 3, ["education", "occupation"]),
        ("mondrian(people, k => 9, l => 3, cuts => 'fair'", 3, ["education", "occupation"]),
    ];
    for (call, m, [a, b]) in releases {
        let sensitive = format!("({a}, {b})");
        let release = format!("{call}, {ROLES}, sensitive => {sensitive}, private => true, seed => 1)");
        run(&context, &format!("CREATE TABLE release AS SELECT * FROM {release}")).await.unwrap();
        assert_eq!(number(&context, "SELECT count(*) FROM release").await, 30_162, "{call}");
        // Pairs stay together.
        let pairs = format!("SELECT {a}, {b}, count(*) FROM people GROUP BY {a}, {b}");
        let published = pairs.replace("people", "release");
        assert_eq!(number(&context, &format!("SELECT count(*) FROM ({pairs} EXCEPT {published})")).await, 0);
        for column in [a, b] {
            let most = worst(&context, "release", column).await;
            assert!(most <= 1.0 / m as f64 + 1e-6, "{call} {column}: {most}");
        }
        let most = risk(&context, "release", &sensitive).await;
        assert!((1.0 / m as f64 - 0.05..=1.0 / m as f64 + 1e-6).contains(&most), "{call}: {most}");
        let groups = number(&context, "SELECT count(DISTINCT group_id) FROM release").await;
        let loss = "SELECT lm * 1e6 FROM information_loss(people, release) WHERE attribute = '*'";
        println!("{call} {sensitive}: {groups} groups, loss {}", number(&context, loss).await as f64 / 1e6);
        run(&context, "DROP TABLE release").await.unwrap();
    }
}

/// Six people in ten have one disease, and drugs have nothing to do with it: refused, and never silent.
#[tokio::test(flavor = "multi_thread")]
async fn a_disease_of_most_people_is_refused() {
    let context = session();
    let people = "CREATE TABLE people AS SELECT value AS record_id, value * 7 % 90 AS age, value % 2 AS sex, value % 3 AS race,
        CASE WHEN value % 10 < 6 THEN 'flu' ELSE concat('d', value % 10) END AS disease, concat('drug', value * 13 % 11) AS drug
        FROM generate_series(1, 1000)";
    run(&context, people).await.unwrap();
    for call in ["m_invariant(people, 3", "mondrian(people, l => 3, cuts => 'fair'"] {
        let refused = error(&context, &format!("SELECT * FROM {call}, {ROLES}, sensitive => (disease, drug))")).await;
        assert!(refused.contains("value of disease makes up 60.00%"), "{refused}");
    }
    for call in ["anatomy(people, 3", "muco(people, 'equal', 3", "mondrian(people, l => 3", "m_distinct(people, 3"] {
        let refused = error(&context, &format!("SELECT * FROM {call}, {ROLES}, sensitive => (disease, drug))")).await;
        assert!(refused.contains("composite(disease, drug)"), "{refused}");
    }
}
