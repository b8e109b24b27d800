use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;

const PEOPLE: &str = "CREATE TABLE people AS SELECT * FROM (VALUES (1, 30, 'flu'), (2, 41, 'cold'), (3, 52, 'flu')) AS t(id, age, disease)";

async fn run(session: &SessionContext, sql: &str) -> String {
    let rows = async { session.sql(sql).await?.collect().await }.await;
    match rows {
        Ok(rows) => pretty_format_batches(&rows).unwrap().to_string(),
        Err(error) => error.strip_backtrace(),
    }
}

async fn session() -> SessionContext {
    let session = SessionContext::new();
    crate::register_all(&session).unwrap();
    run(&session, PEOPLE).await;
    session
}

#[tokio::test]
async fn it_has_a_function() {
    let session = session().await;
    let rows =
        run(&session, "SELECT DISTINCT age, group_size FROM toy(people, 3, quasi => age, sensitive => disease)").await;
    assert!(rows.contains("{lo: 30, hi: 52") && rows.contains("| 3 "), "{rows}");
    let refused = run(&session, "SELECT * FROM toy(people, 4, quasi => age)").await;
    assert!(refused.contains("toy: there are fewer than k = 4 rows"), "{refused}");
    let refused = run(&session, "SELECT * FROM toy(people, 1, quasi => age)").await;
    assert!(refused.contains("toy: argument k must be at least 2, got 1"), "{refused}");
    let refused = run(&session, "SELECT * FROM toy(people, 2, quasi => age, cells => 2)").await;
    assert!(refused.contains("cannot be made in cells: there is one group; leave cells out"), "{refused}");
}

#[test]
fn it_has_a_page_of_help() {
    let help = crate::function_help("toy").unwrap();
    assert!(
        help.starts_with("toy: one release, of one group") && help.contains("least number of rows [required]"),
        "{help}"
    );
    assert!(help.ends_with("SELECT * FROM toy(patients, k => 3);"), "{help}");
    assert!(crate::internals::signatures().contains("\"name\":\"toy\""));
}

#[cfg(feature = "publication")]
#[tokio::test(flavor = "multi_thread")]
async fn it_makes_publications_that_can_be_audited() {
    let folder = tempfile::tempdir().unwrap();
    let session = session().await;
    let place = folder.path().join("publication/");
    let options = "'begin' 'true', 'method' 'toy', 'k' '3', 'quasi' 'age', 'sensitive' 'disease'";
    let declared = format!(
        "CREATE EXTERNAL TABLE hospital (age INT, disease VARCHAR) STORED AS PUBLICATION LOCATION '{}' OPTIONS ({options})",
        place.display()
    );
    run(&session, &declared).await;
    let inserted = run(&session, "INSERT INTO hospital SELECT age, disease FROM people").await;
    assert!(inserted.contains('3'), "{inserted}");
    let audited = run(&session, "SELECT * FROM audit(hospital)").await;
    assert!(audited.contains("k-anonymous, k = 3"), "{audited}");
    let failed = run(&session, "SELECT count(*) AS failed FROM audit(hospital) WHERE NOT passed").await;
    assert!(failed.contains("| 0 "), "{failed}");
    let releases = run(&session, "SELECT method, reader FROM releases(hospital)").await;
    assert!(releases.contains("toy") && releases.contains("knows the program"), "{releases}");
}
