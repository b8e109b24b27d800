//! Mondrian and Anatomy on real microdata, checked from the released tables by plain SQL.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::prelude::SessionContext;

use super::principles::principles;
use super::support::{error, microdata, number, run, session};

/// Returns overall losses: LM and NCP.
async fn loss(context: &SessionContext, original: &str, release: &str, hierarchies: &str) -> (f64, f64) {
    let sql = format!("SELECT lm, ncp FROM information_loss({original}, {release}{hierarchies}) WHERE attribute = '*'");
    let batches = run(context, &sql).await.unwrap();
    let column = |i: usize| batches[0].column(i).as_primitive::<Float64Type>().value(0);
    (column(0), column(1))
}

/// Checks that every row is there once, in its intervals, with its sensitive value.
async fn assert_complete(
    context: &SessionContext,
    release: &str,
    source: &str,
    id: &str,
    quasi: &[&str],
    sensitive: &str,
) {
    let covered: Vec<String> = quasi.iter().map(|q| format!("s.{q} BETWEEN r.{q}.lo AND r.{q}.hi")).collect();
    let joined = format!(
        "SELECT count(DISTINCT r.{id}) FROM {release} r JOIN {source} s ON r.{id} = s.{id} AND r.{sensitive} = s.{sensitive} AND {}",
        covered.join(" AND ")
    );
    let rows = number(context, &format!("SELECT count(*) FROM {source}")).await;
    assert_eq!(number(context, &joined).await, rows);
    assert_eq!(number(context, &format!("SELECT count(*) FROM {release}")).await, rows);
}

async fn classic_adult() -> Option<SessionContext> {
    let adult = microdata("adult.parquet")?;
    let hierarchies = microdata("adult_hierarchies.csv")?;
    let context = session();
    let rows = format!("CREATE TABLE adult AS SELECT * FROM '{adult}' WHERE is_complete AND split = 'train'");
    run(&context, &rows).await.unwrap();
    let csv = format!(
        "CREATE EXTERNAL TABLE hierarchies STORED AS CSV LOCATION '{hierarchies}' OPTIONS ('format.has_header' 'true')"
    );
    run(&context, &csv).await.unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM adult").await, 30_162);
    Some(context)
}

/// Nodes are the hierarchies', k and l hold for them, and little is lost. (Other programs measure loss otherwise,
/// so theirs is not compared.)
#[tokio::test(flavor = "multi_thread")]
async fn adult_with_hierarchies() {
    let Some(context) = classic_adult().await else { return };
    let quasi = ["age", "workclass", "education", "marital_status", "race", "sex", "native_country", "income"];
    let call = |more: &str| {
        format!(
            "mondrian(adult, 5, 3, quasi => ({}), sensitive => occupation, diversity => 'distinct', hierarchies => hierarchies{more})",
            quasi.join(", ")
        )
    };
    let release = format!("CREATE TABLE release AS SELECT * FROM {}", call(", id => record_id, private => true"));
    run(&context, &release).await.unwrap();
    let joined: Vec<String> = quasi.iter().map(|q| format!("{q}.node AS {q}")).collect();
    // Nodes as text are what a reader of the release sees: k and l must hold for them.
    let nodes = format!("SELECT {}, occupation FROM release", joined.join(", "));
    let groups =
        format!("SELECT count(*) AS k, count(DISTINCT occupation) AS l FROM ({nodes}) GROUP BY {}", quasi.join(", "));
    assert!(number(&context, &format!("SELECT min(k) FROM ({groups})")).await >= 5);
    assert!(number(&context, &format!("SELECT min(l) FROM ({groups})")).await >= 3);
    // Every node is one of the hierarchy's for the row's own value.
    for attribute in quasi {
        let wrong = format!(
            "SELECT count(*) FROM release r JOIN adult a ON r.record_id = a.record_id
             JOIN hierarchies h ON h.attribute = '{attribute}' AND h.leaf = CAST(a.{attribute} AS VARCHAR)
             WHERE r.{attribute}.node NOT IN (h.leaf, h.level1, coalesce(h.level2, ''), coalesce(h.level3, ''), coalesce(h.level4, ''))"
        );
        assert_eq!(number(&context, &wrong).await, 0, "{attribute}");
    }
    assert_eq!(number(&context, "SELECT count(DISTINCT record_id) FROM release").await, 30_162);
    let (lm, _) = loss(&context, "adult", "release", ", hierarchies => hierarchies").await;
    println!("ADULT, 8 quasi-identifiers, k = 5, 3 distinct values, with hierarchies: LM {lm:.4}");
    assert!(lm < 0.038, "{lm}");
}

/// Tight cuts lose less than the median's.
#[tokio::test(flavor = "multi_thread")]
async fn adult_in_order() {
    let Some(context) = classic_adult().await else { return };
    let quasi = ["age", "workclass", "education_num", "marital_status", "race", "sex", "native_country"];
    let call = |more: &str| {
        format!(
            "mondrian(adult, 5, 5, quasi => ({}), sensitive => occupation, diversity => 'distinct'{more})",
            quasi.join(", ")
        )
    };
    let mut lm = 0.0;
    for seed in 0..5 {
        lm += loss(&context, "adult", &call(&format!(", seed => {seed}")), "").await.0 / 5.0;
    }
    let median = loss(&context, "adult", &call(", cuts => 'median'"), "").await.0;
    println!("ADULT, 7 quasi-identifiers, k = 5, 5 distinct values: LM {lm:.4}; with median cuts {median:.4}");
    assert!(lm < 0.038 && lm < median, "{lm} {median}");
    let create = format!("CREATE TABLE release AS SELECT * FROM {}", call(", id => record_id, private => true"));
    run(&context, &create).await.unwrap();
    assert_complete(&context, "release", "adult", "record_id", &quasi, "occupation").await;
}

/// The independent checker on many calls: what is promised is what a reader can measure, and hardly more.
#[tokio::test(flavor = "multi_thread")]
async fn promises_measured_from_releases() {
    let context = session();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(20000)").await.unwrap();
    // Occupation as a category.
    run(&context, "CREATE TABLE texts AS SELECT * REPLACE (concat('job ', occupation) AS occupation) FROM people")
        .await
        .unwrap();
    for table in ["people", "texts"] {
        for cuts in ["tight", "median"] {
            let measure = async |arguments: &str| {
                let call = format!(
                    "SELECT * FROM mondrian({table}, quasi => (age, gender, education), sensitive => occupation, cuts => '{cuts}', {arguments})"
                );
                let batches = run(&context, &call).await.unwrap();
                principles(&batches, "occupation").unwrap()
            };
            let found = measure("k => 15").await;
            assert!((15..30).contains(&found.k), "{found:?}");
            let found = measure("l => 6").await;
            assert!(found.most_frequent <= 1.0 / 6.0 + 1e-9 && found.most_frequent > 1.0 / 9.0, "{found:?}");
            let found = measure("k => 2, l => 6, diversity => 'distinct'").await;
            assert!((6..9).contains(&found.distinct), "{found:?}");
            let found = measure("l => 6, diversity => 'entropy'").await;
            assert!(found.entropy.exp() >= 6.0 - 1e-6 && found.entropy.exp() < 9.0, "{found:?}");
            let found = measure("k => 5, t => 0.3").await;
            let distance = if table == "people" { found.ranked_distance.unwrap() } else { found.distance };
            assert!(found.k >= 5 && distance <= 0.3 + 1e-9 && distance > 0.2, "{found:?}");
        }
    }
}

/// All of ACS, state by state, with and without hierarchies.
#[tokio::test(flavor = "multi_thread")]
async fn acs_within_states() {
    let (Some(acs), Some(hierarchies)) = (microdata("acs_income.parquet"), microdata("acs_hierarchies.csv")) else {
        return;
    };
    let context = session();
    let quasi = ["age", "sex", "race", "marital_status", "education", "birthplace"];
    let call =
        |rel: &str| format!("SELECT * FROM mondrian('{acs}', 10, quasi => (age, education), hierarchies => {rel})");
    // The file has an associate degree that is a degree on one level and none on the other.
    let refusal = error(&context, &call(&format!("'{hierarchies}'"))).await;
    assert!(refusal.contains("the hierarchy of education does not nest: 1 values of level1"), "{refusal}");
    // So have its bands of hours.
    let hours = format!("SELECT * FROM mondrian('{acs}', 10, quasi => hours_per_week, hierarchies => '{hierarchies}')");
    let refusal = error(&context, &hours).await;
    assert!(refusal.contains("the hierarchy of hours_per_week does not nest: 2 values of level1"), "{refusal}");
    let nested = format!(
        "CREATE TABLE nested AS SELECT * REPLACE (CASE WHEN attribute = 'education' AND leaf = '20' THEN 'Associate' ELSE level1 END AS level1)
         FROM '{hierarchies}'"
    );
    run(&context, &nested).await.unwrap();
    for more in ["", ", hierarchies => nested"] {
        run(&context, "DROP TABLE IF EXISTS release").await.unwrap();
        let create = format!(
            "CREATE TABLE release AS SELECT * FROM mondrian('{acs}', 10, 5, quasi => ({}), sensitive => occupation_group, \
             within => state, id => person_id, private => true{more})",
            quasi.join(", ")
        );
        run(&context, &create).await.unwrap();
        let torn = "SELECT count(*) FROM (SELECT group_id FROM release GROUP BY group_id
                    HAVING count(DISTINCT state) > 1 OR count(*) < 10 OR count(*) <> min(group_size))";
        assert_eq!(number(&context, torn).await, 0);
        let frequent = "SELECT count(*) FROM (SELECT count(*) AS n, group_size FROM release
                        GROUP BY group_id, occupation_group, group_size) WHERE n * 5 > group_size";
        assert_eq!(number(&context, frequent).await, 0);
        let moved = format!(
            "SELECT count(*) FROM release r JOIN '{acs}' s ON r.person_id = s.person_id AND r.state <> s.state"
        );
        assert_eq!(number(&context, &moved).await, 0);
        let original = format!("'{acs}'");
        if more.is_empty() {
            assert_complete(&context, "release", &original, "person_id", &quasi, "occupation_group").await;
        }
        let (lm, _) = loss(&context, &original, "release", more).await;
        let median = format!(
            "mondrian('{acs}', 10, 5, quasi => ({}), sensitive => occupation_group, within => state, cuts => 'median'{more})",
            quasi.join(", ")
        );
        let (median, _) = loss(&context, &original, &median, more).await;
        println!(
            "ACS, 6 quasi-identifiers, k = 10, l = 5 within states{more}: LM {lm:.4}; with median cuts {median:.4}"
        );
        assert!(lm < median, "{lm} {median}");
    }
}

/// Exact quasi-identifiers, and nobody's occupation more certain than one in seven.
#[tokio::test(flavor = "multi_thread")]
async fn acs_by_anatomy() {
    let Some(acs) = microdata("acs_income.parquet") else { return };
    let context = session();
    let create = format!(
        "CREATE TABLE release AS SELECT * FROM anatomy('{acs}', 7, quasi => (age, sex, race, birthplace), sensitive => occupation_group)"
    );
    run(&context, &create).await.unwrap();
    let exact = format!(
        "SELECT count(*) FROM (SELECT age, sex, race, birthplace FROM '{acs}' EXCEPT ALL SELECT age, sex, race, birthplace FROM release)"
    );
    assert_eq!(number(&context, &exact).await, 0);
    run(
        &context,
        "CREATE TABLE listed AS SELECT group_id, group_size, v.value AS value, v.count AS n FROM (
         SELECT group_id, min(group_size) AS group_size, unnest(first_value(occupation_group)) AS v FROM release GROUP BY group_id)",
    )
    .await
    .unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM listed WHERE n * 7 > group_size").await, 0);
    let counts = format!(
        "SELECT count(*) FROM (SELECT value, sum(n) AS n FROM listed GROUP BY value
         EXCEPT SELECT occupation_group, count(*) FROM '{acs}' GROUP BY occupation_group)"
    );
    assert_eq!(number(&context, &counts).await, 0);
}
