//! Streams: real incidents, a small memory, and publications that hold rows back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use tempfile::tempdir;

use super::publications::{count, files, parquet_files};
use super::support::{err, error, microdata, number, out, run, session, shell, table};

/// Returns the columns of whole numbers; NULL is -1.
async fn numbers(context: &SessionContext, sql: &str) -> Vec<Vec<i64>> {
    let batches = run(context, sql).await.unwrap();
    let Some(first) = batches.first() else { return Vec::new() };
    let batch = concat_batches(&first.schema(), &batches).unwrap();
    let column = |at: usize| {
        let column = batch.column(at).as_primitive::<Int64Type>().clone();
        (0..column.len()).map(|row| if column.is_null(row) { -1 } else { column.value(row) }).collect()
    };
    (0..batch.num_columns()).map(column).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn incidents_are_eligible_day_by_day() {
    let Some(file) = microdata("chicago_crime.parquet") else { return };
    let context = session();
    let select = format!("SELECT incident_id, occurred_at, primary_type, arrest FROM '{file}' WHERE district = 7");
    run(&context, &format!("CREATE TABLE incidents AS {select}")).await.unwrap();
    let call = |window: usize| {
        format!(
            "reposition(incidents, 4, time => occurred_at, every => INTERVAL '1 day', window => {window}, sensitive => primary_type, \
             finish => true, private => true, seed => 1)"
        )
    };
    let suppressed = async |window| {
        number(&context, &format!("SELECT count(*) FROM {} WHERE status = 'suppressed'", call(window))).await
    };
    // Several times as many without moves.
    let (plain, week) = (suppressed(1).await, suppressed(7).await);
    assert!(week * 3 < plain, "{week} and {plain}");
    run(&context, &format!("CREATE TABLE repositioned AS SELECT * FROM {}", call(7))).await.unwrap();
    let eligible = "SELECT count(*) FROM (SELECT occurred_at, max(n) * 4 > sum(n) AS skewed FROM
        (SELECT occurred_at, primary_type, count(*) AS n FROM repositioned WHERE occurred_at IS NOT NULL
         GROUP BY occurred_at, primary_type) GROUP BY occurred_at) WHERE skewed";
    assert_eq!(number(&context, eligible).await, 0);
    let wrong = "SELECT count(*) FROM repositioned WHERE occurred_at < date_trunc('day', original_time)
        OR occurred_at > date_trunc('day', original_time) + INTERVAL '6 days' OR (occurred_at IS NULL) <> (status = 'suppressed')";
    assert_eq!(number(&context, wrong).await, 0);
    let same = "SELECT count(*) FROM repositioned r JOIN incidents i ON r.incident_id = i.incident_id
        AND r.primary_type = i.primary_type AND r.arrest = i.arrest AND r.original_time = i.occurred_at";
    let all = number(&context, "SELECT count(*) FROM incidents").await;
    assert_eq!(number(&context, same).await, all);
    assert_eq!(number(&context, "SELECT count(*) FROM repositioned").await, all);
    // And every day can be anonymized by itself.
    let anatomy = "SELECT count(*) FROM anatomy((SELECT * FROM repositioned WHERE status = 'published'), 4,
        quasi => (arrest), sensitive => primary_type, within => occurred_at)";
    assert_eq!(number(&context, anatomy).await, all - week);
}

/// A million rows in the order of time pass through little memory; in no order the plan sorts them, which may spill.
#[tokio::test(flavor = "multi_thread")]
async fn memory_is_for_the_window() {
    let here = tempdir().unwrap();
    let file = here.path().join("stream.parquet").display().to_string();
    let select =
        "SELECT value AS id, value / 500 AS tick, (value * 7919) % 1009 % 7 AS v FROM generate_series(0, 999999)";
    run(&session(), &format!("COPY ({select}) TO '{file}' STORED AS PARQUET")).await.unwrap();
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(12 << 20, 1.0).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(2), runtime);
    datafusion_anonymize::register_all(&context).unwrap();
    run(
        &context,
        &format!(
            "CREATE EXTERNAL TABLE stream (id BIGINT, tick BIGINT, v BIGINT) STORED AS PARQUET WITH ORDER (tick) LOCATION '{file}'"
        ),
    )
    .await
    .unwrap();
    let call = "reposition(stream, 4, time => tick, window => 5, sensitive => v, finish => true, private => true)";
    let found = numbers(&context, &format!("SELECT count(*), count(DISTINCT tick) FROM {call}")).await;
    assert_eq!((found[0][0], found[1][0]), (1_000_000, 2_000));
    let plan = table(&context, &format!("EXPLAIN FORMAT INDENT SELECT * FROM {call}")).await;
    assert!(plan.contains("RepositionExec") && !plan.contains("SortExec"), "{plan}");
    // Not declared, it is sorted.
    let undeclared = format!("CREATE EXTERNAL TABLE undeclared STORED AS PARQUET LOCATION '{file}'");
    run(&context, &undeclared).await.unwrap();
    let call = call.replace("stream", "undeclared");
    let plan = table(&context, &format!("EXPLAIN FORMAT INDENT SELECT * FROM {call}")).await;
    assert!(plan.contains("SortExec"), "{plan}");
    // The whole table is more than that.
    let refused = error(&context, "SELECT count(*) FROM anatomy(stream, 4, quasi => id, sensitive => v)").await;
    assert!(refused.contains("Resources exhausted"), "{refused}");
}

/// Rows of one time in any order and any batches: one result for a seed.
#[tokio::test(flavor = "multi_thread")]
async fn a_seed_decides_whatever_order_rows_arrive_in() {
    let rows = "SELECT value AS id, value % 40 AS tick, (value * value) % 7 % 5 AS v FROM generate_series(1, 20000)";
    let mut results = Vec::new();
    for (order, size, partitions) in [("id", 65_536, 1), ("id DESC", 100, 4), ("v, id % 13", 17, 3)] {
        let config = SessionConfig::new().with_batch_size(size).with_target_partitions(partitions);
        let context = SessionContext::new_with_config(config);
        datafusion_anonymize::register_all(&context).unwrap();
        run(&context, &format!("CREATE TABLE t AS SELECT * FROM ({rows}) ORDER BY {order}")).await.unwrap();
        let call = "reposition(t, 4, time => tick, window => 4, sensitive => v, seed => 'same', private => true)";
        results.push(table(&context, &format!("SELECT * FROM {call} ORDER BY original_time, id")).await);
    }
    assert!(results.iter().all(|result| *result == results[0]));
    // And what was published of a shorter stream stays.
    let context = session();
    run(&context, &format!("CREATE TABLE t AS {rows}")).await.unwrap();
    let published = |condition: &str| {
        format!(
            "SELECT * FROM reposition((SELECT * FROM t {condition}), 4, time => tick, window => 4, sensitive => v, seed => 1)
             ORDER BY tick, id"
        )
    };
    let short = numbers(&context, &published("WHERE tick < 30")).await;
    let long = numbers(&context, &published("")).await;
    assert!(short[0].len() > 1000 && long[0].len() > short[0].len());
    for (short, long) in short.iter().zip(&long) {
        assert_eq!(short[..], long[..short.len()]);
    }
}

/// Any order of any rows, alike or not, of columns of many types: the same release for a seed.
#[test]
fn any_permutation_gives_the_same_release() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let rows = prop::collection::vec((0..9_i64, 0..4_i64, 0..3_i64, 0..5_i64), 1..120);
    let config = ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (rows, any::<u64>(), 2..4_i64, 1..5_i64, any::<u64>());
    TestRunner::new(config)
        .run(&strategy, |(rows, seed, l, window, shuffle)| {
            let release = |rows: &[(i64, i64, i64, i64)]| {
                let values: Vec<String> = rows.iter().map(|(day, v, a, b)| format!("({day}, {v}, {a}, {b})")).collect();
                // Timestamps within the day, texts, floats and NULLs; few values, so that there are twins.
                let sql = format!(
                    "SELECT * FROM reposition((SELECT to_timestamp(day * 86400 + a * 3600) AS moment, concat('kind ', v) AS kind,
                         CASE WHEN a = 0 THEN NULL ELSE arrow_cast(concat('note ', a), 'Dictionary(Int32, Utf8)') END AS note,
                         CASE WHEN b = 0 THEN NULL ELSE b / 3.0 END AS x, [a, b] AS list
                         FROM (VALUES {}) AS t(day, v, a, b)), {l}, time => moment, every => INTERVAL '1 day', window => {window},
                         sensitive => kind, finish => true, private => true, seed => '{seed}')",
                    values.join(", ")
                );
                let context = session();
                let batches = runtime.block_on(run(&context, &sql)).unwrap();
                // Not only the set of rows: their order, too, is the seed's.
                pretty_format_batches(&batches).unwrap().to_string()
            };
            let mut other = rows.clone();
            other.shuffle(&mut ChaCha20Rng::seed_from_u64(shuffle));
            prop_assert_eq!(release(&rows), release(&other));
            Ok(())
        })
        .unwrap();
}

/// Of real incidents: what is published of a day does not depend on days to come, and neither on how many INSERTs they came in.
#[tokio::test(flavor = "multi_thread")]
async fn days_to_come_change_no_day() {
    let Some(file) = microdata("chicago_crime.parquet") else { return };
    let context = session();
    let select = format!(
        "SELECT incident_id AS visit, date_part('doy', occurred_at)::BIGINT AS day, beat::BIGINT AS age, (dense_rank() OVER (ORDER BY primary_type))::BIGINT AS v
         FROM '{file}' WHERE district = 7 AND occurred_at < TIMESTAMP '2014-02-15'"
    );
    run(&context, &format!("CREATE TABLE incidents AS {select}")).await.unwrap();
    let days = numbers(&context, "SELECT DISTINCT day FROM incidents ORDER BY day").await.remove(0);
    assert!(days.len() > 40, "{} days", days.len());
    let of_days = async |relation: &str| {
        numbers(&context, &format!("SELECT day, v, count(*) FROM {relation} GROUP BY day, v ORDER BY day, v")).await
    };
    let stream = |last: i64| {
        format!(
            "reposition((SELECT * FROM incidents WHERE day <= {last}), 4, time => day, window => 7, sensitive => v, finish => true, seed => 1)"
        )
    };
    let whole = of_days(&stream(days[days.len() - 1])).await;
    for &last in days.iter().step_by(5) {
        let prefix = of_days(&stream(last)).await;
        let until = whole[0].iter().take_while(|day| **day <= last).count();
        for (prefix, whole) in prefix.iter().zip(&whole) {
            assert_eq!(prefix[..], whole[..until], "up to day {last}");
        }
    }
    // A publication draws lots of its own at each INSERT; how many records a day has does not depend on when later ones come.
    let counts = async |parts: usize| {
        let here = tempdir().unwrap();
        let public = here.path().join("clinic");
        let declaration =
            |more: &str| declare(&public, more).replace("'l' '3'", "'l' '4'").replace("'window' '4'", "'window' '7'");
        run(&context, "DROP TABLE IF EXISTS clinic").await.unwrap();
        run(&context, &declaration("")).await.unwrap();
        let mut published = BTreeMap::new();
        for (number, days) in days.chunks(days.len().div_ceil(parts)).enumerate() {
            let insert = format!(
                "INSERT INTO clinic SELECT * FROM incidents WHERE day >= {} AND day <= {}",
                days[0],
                days[days.len() - 1]
            );
            run(&context, &insert).await.unwrap();
            let rows =
                numbers(&context, &format!("SELECT day, count(*) FROM release(clinic, {}) GROUP BY day", number + 1))
                    .await;
            published
                .extend(rows.first().into_iter().flatten().copied().zip(rows.get(1).into_iter().flatten().copied()));
        }
        published
    };
    let (daily, at_once) = (counts(days.len()).await, counts(1).await);
    assert!(daily.len() > 35 && daily == at_once, "{daily:?} and {at_once:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_watched_limited_stopped_and_called_anyhow() {
    let context = session();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(3000)").await.unwrap();
    let call = "reposition(people, 3, age, 4, occupation, finish => true, private => true)";
    let plan = table(&context, &format!("EXPLAIN ANALYZE SELECT * FROM {call}")).await;
    let metrics = [
        "input_rows=3.00 K",
        "published_rows=",
        "moved_rows=",
        "distance=",
        "suppressed_rows=",
        "pending_rows=0",
        "late_rows=0",
    ];
    for metric in metrics.into_iter().chain(["peak_mem_used=", "output_rows=3.00 K"]) {
        assert!(plan.contains(metric), "{metric} is missing in {plan}");
    }
    // A filter of the query is above.
    let published = number(&context, &format!("SELECT count(*) FROM {call} WHERE status = 'published'")).await;
    let filtered = format!("SELECT count(*) FROM {call} WHERE random() < 2 AND status = 'published' AND age < 1000");
    assert_eq!(number(&context, &filtered).await, published);

    // All rows of one time are one snapshot.
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(2 << 20, 1.0).build_arc().unwrap();
    let small = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    datafusion_anonymize::register_all(&small).unwrap();
    let one = "SELECT count(*) FROM reposition((SELECT 0 AS t, * FROM census(200000)), 2, t, 2, occupation)";
    let message = error(&small, one).await;
    assert!(message.contains("Resources exhausted") && message.contains("RepositionExec"), "{message}");

    let frame = context.sql("SELECT count(*) FROM reposition(census(5000000), 3, age, 4, occupation)").await.unwrap();
    let task = SpawnedTask::spawn(frame.collect());
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    drop(task);
    let pool = Arc::clone(&context.runtime_env().memory_pool);
    for tries in 0.. {
        if pool.reserved() == 0 {
            break;
        }
        assert!(tries < 200, "{} bytes are still reserved", pool.reserved());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    // Engines without relation planners.
    let functions = context.state().table_functions().clone();
    let state = SessionStateBuilder::new().with_default_features().with_table_functions(functions).build();
    let plain = SessionContext::new_with_state(state);
    run(&plain, "CREATE TABLE people AS SELECT * FROM census(1000)").await.unwrap();
    let rows =
        number(&plain, "SELECT count(*) FROM reposition('people', 3, 'age', 4, 'occupation', 2, 'quadratic', 1.5, 7)")
            .await;
    assert!(rows > 500, "{rows}");
}

/// Rows of 400 bytes, all in order but the last ones: a sort has to spill.
#[test]
fn what_is_late_is_sorted_in_little_memory() {
    let here = tempdir().unwrap();
    let shell = |arguments: &[&str]| {
        let output = shell(here.path(), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", err(&output));
        out(&output)
    };
    let late = "COPY (SELECT value AS id, CASE WHEN value = 95000 THEN 0 ELSE value / 500 END AS day, value % 13 AS d,
                repeat('abcdefghij', 40) || value AS pad FROM generate_series(1, 100000)) TO 'late.parquet'";
    shell(&["-q", "-c", late]);
    let query = "SELECT count(*) AS n, sum(id) AS ids, max(pad) AS pad
                 FROM reposition('late.parquet', 4, time => day, window => 2, sensitive => d, seed => 5, finish => true)";
    let expected = shell(&["-q", "--format", "csv", "-c", query]);
    assert!(expected.lines().count() == 2, "{expected}");
    for (limit, parts) in [("120m", 2), ("80m", 2), ("400m", 8)] {
        let set = format!("SET datafusion.execution.target_partitions = {parts}");
        let found = shell(&["-q", "--format", "csv", "-m", limit, "-c", &set, "-c", query]);
        assert!(found.ends_with(&expected), "{limit} {parts}: {found}");
    }
    let set = "SET datafusion.execution.target_partitions = 2";
    let analyzed = shell(&["-q", "--format", "csv", "-m", "80m", "-c", set, "-c", &format!("EXPLAIN ANALYZE {query}")]);
    let metrics = analyzed.lines().find(|line| line.contains("SortExec")).unwrap_or(&analyzed);
    assert!(metrics.contains("spilled_rows=") && !metrics.contains("spilled_rows=0"), "{analyzed}");
}

fn declare(location: &Path, more: &str) -> String {
    format!(
        "CREATE EXTERNAL TABLE clinic (visit BIGINT, day BIGINT, age BIGINT, v BIGINT) STORED AS PUBLICATION LOCATION '{}'
         OPTIONS ('method' 'reposition', 'inner' 'anatomy', 'l' '3', 'time' 'day', 'window' '4', 'quasi' 'visit, age',
                  'sensitive' 'v', 'allow_independent_releases' 'true'{more})",
        location.display()
    )
}

async fn declared(context: &SessionContext, location: &Path, more: &str) {
    run(context, "DROP TABLE IF EXISTS clinic").await.unwrap();
    run(context, &declare(location, more)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_publishes_what_leaves_the_window() {
    let here = tempdir().unwrap();
    let (public, private) = (here.path().join("clinic"), here.path().join("clinic.private"));
    let context = session();
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut visits: Vec<[i64; 4]> = Vec::new();
    for day in (0..24).filter(|day| ![5, 6, 13].contains(day)) {
        for _ in 0..rng.random_range(0..14) {
            let v = if rng.random_bool(0.15) { 0 } else { rng.random_range(0..6) };
            visits.push([visits.len() as i64, day, rng.random_range(20..90), v]);
        }
    }
    let values: Vec<String> =
        visits.iter().map(|[visit, day, age, v]| format!("({visit}, {day}, {age}, {v})")).collect();
    let sql =
        format!("CREATE TABLE visits (visit BIGINT, day BIGINT, age BIGINT, v BIGINT) AS VALUES {}", values.join(", "));
    run(&context, &sql).await.unwrap();
    let mut inserts = 0;
    let mut next = 0;
    while next < 24 {
        // Every job declares the publication again; some bring several days.
        declared(&context, &public, "").await;
        let days = next..(next + 1 + inserts % 3).min(24);
        next = days.end;
        let rows = visits.iter().filter(|visit| days.contains(&visit[1])).count();
        let insert =
            format!("INSERT INTO clinic SELECT * FROM visits WHERE day >= {} AND day < {}", days.start, days.end);
        if rows == 0 {
            assert!(error(&context, &insert).await.contains("there are no rows"));
            continue;
        }
        assert_eq!(count(&context, &insert).await, rows as u64);
        assert_eq!(count(&context, &insert).await, 0, "the same again");
        inserts += 1;
        // The ledger's entries have no rows, so what is held back is the only file of the ledger.
        let held = parquet_files(&private).len();
        assert!(held <= 1, "{held} files of what is held back");
    }
    let late = error(&context, "INSERT INTO clinic SELECT visit + 1000, day, age, v FROM visits WHERE day = 3").await;
    assert!(late.contains("are of snapshots that an earlier INSERT has closed"), "{late}");
    declared(&context, &public, ", 'finish' 'true'").await;
    assert_eq!(count(&context, "INSERT INTO clinic SELECT * FROM visits WHERE false").await, 0);
    inserts += 1;
    assert_eq!(count(&context, "INSERT INTO clinic SELECT * FROM visits WHERE false").await, 0, "the same again");
    assert!(parquet_files(&private).is_empty());
    declared(&context, &public, ", 'late' 'suppress'").await;
    assert_eq!(
        count(&context, "INSERT INTO clinic SELECT visit + 1000, day, age, v FROM visits WHERE day = 3").await as usize,
        { visits.iter().filter(|visit| visit[1] == 3).count() }
    );
    inserts += 1;

    assert_eq!(number(&context, "SELECT count(*) FROM releases(clinic)").await, inserts);
    let mut published: BTreeMap<i64, i64> = BTreeMap::new();
    let mut sizes: BTreeMap<i64, (i64, BTreeMap<i64, i64>)> = BTreeMap::new();
    let mut before = -1;
    for release in 1..=inserts {
        let rows = numbers(&context, &format!("SELECT visit, day FROM release(clinic, {release})")).await;
        let Some(visits_there) = rows.first() else { continue };
        for (&visit, &day) in visits_there.iter().zip(&rows[1]) {
            assert!(day > before, "days are published in order");
            assert!(published.insert(visit, day).is_none(), "published twice");
            let [_, home, _, v] = visits[visit as usize];
            assert!((home..home + 4).contains(&day));
            let (size, of_value) = sizes.entry(day).or_default();
            *size += 1;
            *of_value.entry(v).or_default() += 1;
        }
        before = rows[1].iter().copied().max().unwrap_or(before);
    }
    assert!(sizes.values().all(|(size, of_value)| of_value.values().all(|count| count * 3 <= *size)));
    assert!(published.len() * 10 > visits.len() * 7, "{} of {}", published.len(), visits.len());
    let failed = "SELECT count(*) FROM audit(clinic) WHERE NOT passed";
    assert_eq!(number(&context, failed).await, 0, "{}", table(&context, "SELECT * FROM audit(clinic)").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_back_must_be_there() {
    let here = tempdir().unwrap();
    let (public, private) = (here.path().join("clinic"), here.path().join("clinic.private"));
    let context = session();
    declared(&context, &public, "").await;
    let day = |day: i64| {
        format!("INSERT INTO clinic SELECT value + {day} * 10, {day}, 30 + value, value % 4 FROM generate_series(0, 7)")
    };
    assert_eq!(count(&context, &day(1)).await, 8);
    // No day is public yet; that somebody has begun is.
    assert_eq!(number(&context, "SELECT count(*) FROM release(clinic)").await, 0);
    let held = parquet_files(&private).into_iter().next().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&held).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let contents = std::fs::read(&held).unwrap();
    std::fs::write(&held, b"something else").unwrap();
    let before = files(here.path());
    assert!(error(&context, &day(2)).await.contains("as they were written"));
    std::fs::remove_file(&held).unwrap();
    assert!(error(&context, &day(2)).await.contains("as they were written"));
    std::fs::write(&held, contents).unwrap();
    assert_eq!(before.len(), files(here.path()).len(), "a refused INSERT changes nothing");
    assert_eq!(count(&context, &day(2)).await, 8);
    assert_ne!(parquet_files(&private).into_iter().next().unwrap(), held, "the older file is gone");
    // Nothing of what is held back lies in the public place, and nothing of it is in the log.
    for (path, contents) in files(&private) {
        let text = String::from_utf8_lossy(&contents);
        assert!(
            path.extension().is_some_and(|kind| kind == "parquet") || !text.contains("place"),
            "{}",
            path.display()
        );
    }
    // Parameters of the stream are fixed as those of the method are.
    run(&context, "DROP TABLE clinic").await.unwrap();
    let other = declare(&public, "").replace("'window' '4'", "'window' '5'");
    let refused = error(&context, &other).await;
    assert!(refused.contains("window 4") && refused.contains("window 5"), "{refused}");
}
