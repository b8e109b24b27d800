//! Nothing the optimizer does may change what is anonymized. Each query is planned with everything DataFusion has, and the
//! metrics of the operator tell how many rows it read.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::runtime::SpawnedTask;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use super::support::{error, number, run, session, table};

const RELEASE: &str = "m_invariant(people, 5, person_id, (age, gender), occupation)";

async fn people() -> SessionContext {
    let context = session();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(3000)").await.unwrap();
    context
}

/// Returns the rows that each anonymizing operator in a plan has read.
fn rows_read(plan: &Arc<dyn ExecutionPlan>) -> Vec<usize> {
    let mut rows: Vec<usize> = plan.children().into_iter().flat_map(rows_read).collect();
    if plan.name() == "AnonymizeExec" {
        let metrics = plan.metrics().expect("metrics");
        rows.push(metrics.sum_by_name("input_rows").expect("input_rows").as_usize());
    }
    rows
}

#[tokio::test]
async fn the_whole_input_is_anonymized_whatever_stands_above() {
    let context = people().await;
    for query in [
        "SELECT * FROM {R} WHERE occupation = 7",
        "SELECT * FROM {R} WHERE random() < 0.5",
        "SELECT * FROM {R} WHERE (SELECT count(*) FROM people) > 10",
        "SELECT * FROM {R} WHERE age.lo < 30 AND random() < 0.9 LIMIT 3",
        "SELECT * FROM {R} WHERE occupation IN (SELECT occupation FROM people WHERE age < 20)",
        "SELECT occupation FROM {R} WHERE group_size > 0 LIMIT 1",
        "SELECT occupation FROM {R} LIMIT 1 OFFSET 10",
        "SELECT occupation FROM {R} ORDER BY occupation DESC LIMIT 5",
        "SELECT occupation, group_id FROM {R} ORDER BY group_id",
        "SELECT count(*) FROM {R}",
        "SELECT 1 FROM {R}",
        "SELECT max(occupation) FROM {R}",
        "SELECT DISTINCT occupation FROM {R}",
        "SELECT occupation, count(*) FROM {R} GROUP BY occupation HAVING count(*) > 1000",
        "SELECT r.occupation FROM {R} r JOIN people p ON r.occupation = p.occupation AND p.age = 20 WHERE p.person_id < 100",
        "SELECT occupation FROM {R} UNION ALL SELECT 1",
        "SELECT * FROM (SELECT * FROM {R}) WHERE occupation = 3 LIMIT 2",
        "WITH r AS (SELECT * FROM {R}) SELECT a.occupation FROM r a JOIN r b ON a.group_id = b.group_id WHERE a.occupation < 3",
        "SELECT * FROM people WHERE occupation IN (SELECT occupation FROM {R} WHERE age.hi < 25)",
        "SELECT occupation, row_number() OVER (ORDER BY group_id) FROM {R} LIMIT 1",
    ] {
        let query = query.replace("{R}", RELEASE);
        let frame = context.sql(&query).await.unwrap();
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.unwrap();
        collect(Arc::clone(&plan), task).await.unwrap();
        let read = rows_read(&plan);
        assert!(!read.is_empty(), "{query}: no operator");
        assert!(read.iter().all(|&rows| rows == 3000 || rows == 0), "{query}: {read:?}");
        assert!(read.contains(&3000), "{query}: {read:?}");
    }
}

/// Ordered by the group's number, a seed's release is the same, and nothing is sorted. It holds for few rows, and for many.
#[tokio::test]
async fn by_group_it_is_the_same_release() {
    let context = session();
    for people in [3000, 70_000] {
        run(&context, &format!("CREATE OR REPLACE TABLE people AS SELECT * FROM census({people})")).await.unwrap();
        for call in [
            "m_invariant(people, 5, person_id, (age, gender), occupation, seed => 's', private => true)",
            "mondrian(people, 5, quasi => (age, gender), seed => 's')",
            "anatomy(people, 5, quasi => (age, gender), sensitive => occupation, seed => 's')",
        ] {
            let by_group = format!("SELECT * FROM {call} ORDER BY group_id");
            let plan = table(&context, &format!("EXPLAIN {by_group}")).await;
            assert!(!plan.contains("SortExec") && plan.contains("order=[group_id]"), "{plan}");
            let mut rows = Vec::new();
            for query in [by_group, format!("SELECT * FROM {call}")] {
                let mut lines: Vec<String> = table(&context, &query).await.lines().map(str::to_owned).collect();
                lines.sort_unstable();
                rows.push(lines);
            }
            assert!(rows[0] == rows[1], "{call}");
            let batches = run(&context, &format!("SELECT group_id FROM {call} ORDER BY group_id")).await.unwrap();
            let numbers = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values());
            assert!(numbers.is_sorted(), "{call}");
        }
    }
}

#[tokio::test]
async fn only_columns_with_roles_are_read() {
    let context = people().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("people.parquet").display().to_string();
    run(&context, &format!("COPY people TO '{file}'")).await.unwrap();
    let plan =
        table(&context, &format!("EXPLAIN SELECT * FROM m_invariant('{file}', 5, person_id, age, occupation)")).await;
    let scan = plan.lines().find(|line| line.contains("DataSourceExec")).expect("a scan");
    assert!(scan.contains("projection=[person_id, age, occupation]"), "{scan}");
}

/// A CTE is planned once per use. Both uses see the same release, or a join of it with itself would tell more than one.
#[tokio::test]
async fn one_query_sees_one_release() {
    let context = people().await;
    let twice =
        format!("WITH r AS (SELECT * FROM {RELEASE}) SELECT count(*) FROM (SELECT * FROM r EXCEPT SELECT * FROM r)");
    assert_eq!(number(&context, &twice).await, 0);
    let calls = format!("SELECT count(*) FROM (SELECT * FROM {RELEASE} EXCEPT SELECT * FROM {RELEASE})");
    assert_ne!(number(&context, &calls).await, 0, "two calls are two releases");
}

#[tokio::test]
async fn views_and_prepared_statements_draw_anew() {
    let context = people().await;
    run(&context, &format!("CREATE VIEW release AS SELECT * FROM {RELEASE}")).await.unwrap();
    let first = table(&context, "SELECT * FROM release").await;
    assert_ne!(first, table(&context, "SELECT * FROM release").await);
    run(&context, &format!("PREPARE p AS SELECT * FROM {RELEASE}")).await.unwrap();
    assert_ne!(table(&context, "EXECUTE p").await, table(&context, "EXECUTE p").await);
    let seeded = RELEASE.replace("occupation)", "occupation, seed => 1)");
    run(&context, &format!("CREATE VIEW fixed AS SELECT * FROM {seeded}")).await.unwrap();
    assert_eq!(table(&context, "SELECT * FROM fixed").await, table(&context, "SELECT * FROM fixed").await);
    // The view follows its table.
    run(&context, "INSERT INTO people SELECT person_id + 3000, age, gender, education, birthplace, occupation, income FROM people")
        .await
        .unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM release").await, 6000);
}

/// The id of a release is in its metadata: one per COPY, also where a view or a prepared statement is run again, and
/// through whatever stands above it.
#[tokio::test]
async fn every_written_release_has_an_id_of_its_own() {
    let context = people().await;
    let directory = tempfile::tempdir().unwrap();
    run(&context, &format!("CREATE VIEW release AS SELECT * FROM {RELEASE}")).await.unwrap();
    run(&context, "SET datafusion.execution.parquet.skip_metadata = false").await.unwrap();
    let mut ids = std::collections::HashSet::new();
    for (n, query) in [
        "SELECT * FROM release",
        "SELECT * FROM release",
        "SELECT age FROM release WHERE occupation = 1 ORDER BY group_id LIMIT 2",
        "SELECT a.age FROM release a JOIN release b ON a.group_id = b.group_id",
        "SELECT age, count(*) FROM release GROUP BY age HAVING count(*) > 0",
        "SELECT age FROM release UNION ALL SELECT age FROM release",
        "SELECT age FROM release WHERE occupation IN (SELECT occupation FROM release)",
    ]
    .into_iter()
    .enumerate()
    {
        let file = directory.path().join(format!("{n}.parquet")).display().to_string();
        run(&context, &format!("COPY ({query}) TO '{file}'")).await.unwrap();
        let batches = run(&context, &format!("SELECT * FROM '{file}'")).await.unwrap();
        let schema = batches[0].schema();
        let id = schema.field_with_name("age").unwrap().metadata().get("anonymize.release").expect(query).clone();
        assert!(ids.insert(id), "{query}: an id again");
    }
}

/// Orders of rows and numbers of groups are independent of the input's order. Correlation with the place of arrival
/// stays within 4.5 standard deviations of none.
#[tokio::test]
async fn rows_and_groups_are_in_random_order() {
    let context = people().await;
    let sql = "SELECT person_id, group_id FROM m_invariant((SELECT * FROM people), 5, person_id, (age, gender), occupation, private => true) WHERE person_id IS NOT NULL";
    let batches = run(&context, sql).await.unwrap();
    let column = |i: usize| -> Vec<f64> {
        batches
            .iter()
            .flat_map(|batch| batch.column(i).as_primitive::<Int64Type>().values().to_vec())
            .map(|x| x as f64)
            .collect()
    };
    let (ids, groups) = (column(0), column(1));
    let places: Vec<f64> = (0..ids.len()).map(|i| i as f64).collect();
    for (what, a, b) in
        [("order", &ids, &places), ("groups by input", &ids, &groups), ("groups by place", &groups, &places)]
    {
        let r = correlation(a, b) * (a.len() as f64).sqrt();
        assert!(r.abs() < 4.5, "{what}: {r} standard deviations");
    }
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let cov: f64 = a.iter().zip(b).map(|(x, y)| (x - ma) * (y - mb)).sum();
    let var = |x: &[f64], m: f64| x.iter().map(|x| (x - m).powi(2)).sum::<f64>();
    cov / (var(a, ma) * var(b, mb)).sqrt()
}

#[tokio::test]
async fn too_little_memory_is_a_resource_error() {
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::SessionConfig;

    let runtime = RuntimeEnvBuilder::new().with_memory_limit(2 << 20, 1.0).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    datafusion_anonymize::register_all(&context).unwrap();
    for (call, consumer) in [
        ("m_invariant(census(200000), 5, person_id, (age, gender), occupation)", "AnonymizeExec"),
        ("mondrian(census(200000), 5, quasi => (age, gender))", "AnonymizeExec"),
        ("mondrian(census(200000), 5, quasi => (age, income), within => gender)", "AnonymizeExec"),
        ("anatomy(census(200000), 5, quasi => (age, gender), sensitive => occupation)", "AnonymizeExec"),
        ("information_loss(census(200000), census(200000), quasi => person_id)", "InformationLossExec"),
    ] {
        let message = error(&context, &format!("SELECT count(*) FROM {call}")).await;
        assert!(message.contains("Resources exhausted") && message.contains(consumer), "{call}: {message}");
    }
}

/// A query that is dropped stops soon: the release of ten million rows takes many seconds, this test does not.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_queries_stop() {
    for call in [
        "m_invariant(census(3000000), 10, person_id, (age, gender, education, birthplace), occupation)",
        "mondrian(census(5000000), 5, 3, (age, gender, education, birthplace), occupation)",
        "mondrian(census(5000000), 2, quasi => (age, education, birthplace, income), within => gender)",
    ] {
        let context = session();
        let frame = context.sql(&format!("SELECT count(*) FROM {call}")).await.unwrap();
        let task = SpawnedTask::spawn(frame.collect());
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        drop(task);
        // The memory it had reserved is given back once the work has stopped.
        let pool = Arc::clone(&context.runtime_env().memory_pool);
        let mut tries = 0;
        while pool.reserved() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            tries += 1;
            assert!(tries < 200, "{call}: {} bytes are still reserved", pool.reserved());
        }
    }
}

/// Engines without relation planners.
#[tokio::test]
async fn plain_table_functions_work_too() {
    use datafusion::execution::SessionStateBuilder;

    let full = people().await;
    let functions = full.state().table_functions().clone();
    let state = SessionStateBuilder::new().with_default_features().with_table_functions(functions).build();
    let context = SessionContext::new_with_state(state);
    run(&context, "CREATE TABLE people AS SELECT * FROM census(1000)").await.unwrap();
    for call in [
        "m_invariant('people', 5, 'person_id', 'age, gender', 'occupation')",
        "m_invariant(people, 5, person_id, ['age', 'gender'], occupation)",
        "m_invariant('public.people', 5, 'person_id', make_array('age', 'gender'), 'occupation')",
    ] {
        let rows =
            number(&context, &format!("SELECT sum(group_size / group_size) FROM {call} WHERE counterfeits >= 0")).await;
        assert!(rows >= 1000, "{call}");
    }
    let message = error(&context, "SELECT * FROM m_invariant('people', 1, 'person_id', 'age', 'occupation')").await;
    assert!(message.contains("argument m must be at least 2"), "{message}");
}

#[tokio::test]
async fn a_builder_gets_everything_too() {
    use datafusion::execution::SessionStateBuilder;

    let builder = SessionStateBuilder::new().with_default_features();
    let context = SessionContext::new_with_state(datafusion_anonymize::register_all_with(builder).build());
    assert_eq!(
        number(
            &context,
            "SELECT count(*) FROM m_invariant(census(500), 2, id => person_id, quasi => age, sensitive => income)"
        )
        .await,
        500
    );
    run(&context, "SET anonymize.id = 'person_id'").await.unwrap();
}

/// A catalog that answers later: a table whose look-up is not ready at once, on both kinds of runtime.
mod slow {
    use std::sync::Arc;

    use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
    use datafusion::error::Result;

    #[derive(Debug, Default)]
    pub(super) struct Slow(pub MemorySchemaProvider);

    #[async_trait::async_trait]
    impl SchemaProvider for Slow {
        fn table_names(&self) -> Vec<String> {
            self.0.table_names()
        }

        async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            self.0.table(name).await
        }

        fn table_exist(&self, name: &str) -> bool {
            self.0.table_exist(name)
        }
    }
}

async fn finds_slow_tables() {
    use datafusion::catalog::SchemaProvider;

    let context = people().await;
    let slow = slow::Slow::default();
    slow.0.register_table("people".to_owned(), context.table_provider("people").await.unwrap()).unwrap();
    context.catalog("datafusion").unwrap().register_schema("slow", Arc::new(slow)).unwrap();
    let release = "m_invariant(slow.people, 5, person_id, age, occupation)";
    assert_eq!(number(&context, &format!("SELECT count(*) FROM {release}")).await, 3000);
}

#[tokio::test]
async fn slow_catalogs_on_one_thread() {
    finds_slow_tables().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_catalogs_on_many_threads() {
    finds_slow_tables().await;
}

#[tokio::test]
async fn explain_analyze_shows_what_was_done() {
    let context = people().await;
    let of_all =
        ["input_rows=3.00 K", "previous_rows=0", "groups=", "counterfeits=0", "withheld_rows=0", "peak_mem_used="];
    let times = ["encoding_time=", "check_time=", "shuffle_time="];
    let of_cohort = ["division_time=", "balancing_time=", "assignment_time=", "split_time="];
    for (more, own) in [("", &["grouping_time="][..]), (", groups => 'cohort'", &of_cohort)] {
        let release = format!("{}{more})", RELEASE.trim_end_matches(')'));
        let plan = table(&context, &format!("EXPLAIN ANALYZE SELECT * FROM {release}")).await;
        for metric in of_all.iter().chain(&times).chain(own) {
            assert!(plan.contains(metric), "{metric} is missing in {plan}");
        }
    }
}

/// A seed gives the same release for any order of input and number of threads. The size is one at which buckets are
/// halved and work is divided; there is an earlier release.
#[tokio::test(flavor = "multi_thread")]
async fn a_seed_determines_a_large_release() {
    let context = session();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(60000)").await.unwrap();
    let roles =
        "id => person_id, quasi => (age, gender, education), sensitive => occupation, private => true, seed => 11";
    let first = format!(
        "CREATE TABLE first AS SELECT * FROM m_invariant((SELECT * FROM people WHERE person_id < 50000), 3, {roles})"
    );
    run(&context, &first).await.unwrap();
    let rayon = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut releases = Vec::new();
    for (order, threads) in
        [("", 1), ("", 4), (" ORDER BY person_id DESC LIMIT 1000000", 4), (" ORDER BY age, person_id LIMIT 1000000", 2)]
    {
        let release = format!(
            "SELECT * FROM m_invariant((SELECT * FROM people WHERE person_id > 9000{order}), 3, previous => first, {roles})"
        );
        // Threads of the engine differ as well.
        run(&context, &format!("SET datafusion.execution.target_partitions = {threads}")).await.unwrap();
        let pool = rayon(threads);
        let handle = tokio::runtime::Handle::current();
        let context = &context;
        let text = tokio::task::block_in_place(|| pool.install(|| handle.block_on(table(context, &release))));
        releases.push(text);
    }
    for other in &releases[1..] {
        assert!(*other == releases[0], "another order of input or number of threads gave another release");
    }
}

/// Arrow IPC writes the buffers of arrays as they are: they must not be those of the whole input.
#[tokio::test]
async fn arrow_files_hold_nothing_but_the_release() {
    let context = session();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("release.arrow").display().to_string();
    let long = "'a street with quite a long name, number '";
    run(&context, &format!(
        "COPY (SELECT * FROM m_invariant((SELECT person_id, {long} || person_id AS address, 'an occupation with number ' || occupation AS job FROM census(2000)),
         5, id => person_id, quasi => address, sensitive => job) LIMIT 20) TO '{file}' STORED AS ARROW"
    )).await.unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let found = bytes.windows(27).filter(|window| *window == b"a street with quite a long ").count();
    assert!((1..=40).contains(&found), "{found} addresses in the file of 20 rows");
}
