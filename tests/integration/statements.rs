//! A statement resolves a publication to one release, the next to the newest again.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use tempfile::tempdir;

use super::publications::{count, declare, from_the_root, hospital};
use super::support::{error, number, run, session};

/// The same number twice, by plans that have nothing in common.
const TWICE: &str = "SELECT (SELECT count(*) FROM hospital) AS a,
                            (SELECT count(*) FILTER (WHERE disease = disease) FROM hospital) AS b";

/// Returns a snapshot of some people.
fn first(people: usize) -> String {
    format!(
        "INSERT INTO hospital SELECT person_id, age, birthplace, occupation FROM census(300) WHERE person_id <= {people}"
    )
}

/// Returns a session of somebody who reads what another one publishes.
async fn reader(location: &str) -> SessionContext {
    let context = session();
    run(&context, &format!("CREATE EXTERNAL TABLE hospital STORED AS PUBLICATION LOCATION '{location}'"))
        .await
        .unwrap();
    context
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn new_releases_are_seen_by_whoever_has_declared_the_table_before() {
    from_the_root();
    let here = tempdir().unwrap();
    let location = here.path().join("hospital").display().to_string();
    let publisher = session();
    declare(&publisher, &location).await;
    let all = "SELECT count(*) FROM hospital";
    assert!(error(&publisher, all).await.contains("nothing has been published yet"));
    let before = count(&publisher, &first(200)).await as i64;
    assert_eq!(number(&publisher, all).await, before);
    let reader = reader(&location).await;
    assert_eq!(number(&reader, all).await, before);
    run(&reader, "CREATE VIEW people AS SELECT count(*) AS n FROM hospital").await.unwrap();
    let after = count(&publisher, &first(300)).await as i64;
    assert_ne!(before, after);
    assert_eq!(number(&publisher, all).await, after);
    assert_eq!(number(&reader, all).await, after);
    assert_eq!(number(&reader, "SELECT n FROM people").await, after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_planned_reads_one_release_whatever_is_published_meanwhile() {
    from_the_root();
    let here = tempdir().unwrap();
    let location = here.path().join("hospital").display().to_string();
    let publisher = session();
    declare(&publisher, &location).await;
    let before = count(&publisher, &first(200)).await as i64;
    let reader = reader(&location).await;
    let functions = "SELECT count(*) FROM (SELECT * FROM flat((SELECT count(*) AS n FROM hospital)) INTERSECT
                     SELECT * FROM flat((SELECT count(*) FILTER (WHERE disease = disease) AS n FROM hospital)))";
    let mut plans = Vec::new();
    for sql in [TWICE, functions] {
        plans.push(reader.sql(sql).await.unwrap().create_physical_plan().await.unwrap());
    }
    assert_ne!(count(&publisher, &first(300)).await as i64, before);
    let column = |batch: &datafusion::arrow::array::RecordBatch, column: usize| {
        batch.column(column).as_primitive::<Int64Type>().value(0)
    };
    let planned = collect(plans.remove(0), reader.task_ctx()).await.unwrap();
    assert_eq!((column(&planned[0], 0), column(&planned[0], 1)), (before, before));
    assert_eq!(number(&reader, functions).await, 1);
    // Somebody publishes all the time, tables of one size and of another.
    let stop = std::sync::atomic::AtomicBool::new(false);
    let publishing = async {
        for _ in 0..4 {
            count(&publisher, &first(200)).await;
            count(&publisher, &first(300)).await;
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let reading = async {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let rows = run(&reader, TWICE).await.unwrap();
            assert_eq!(column(&rows[0], 0), column(&rows[0], 1));
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(publishing, reading);
}

#[tokio::test]
async fn the_analyzer_asks_nothing_of_the_store() {
    from_the_root();
    let here = tempdir().unwrap();
    let context = session();
    hospital(&context, here.path()).await;
    run(&context, &first(200)).await.unwrap();
    let frame = context.sql(TWICE).await.unwrap();
    std::fs::rename(here.path().join("hospital"), here.path().join("elsewhere")).unwrap();
    frame.clone().into_optimized_plan().unwrap();
    frame.collect().await.unwrap_err();
}
