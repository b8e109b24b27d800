//! Releases in cells: what they promise, to readers who know the code; publications; what is refused.

use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::process::Command;
use std::sync::Arc;
use tempfile::tempdir;

use super::program::program;
use super::support::{err, error, number, out, run, session, shell, table};

const ROLES: &str = "id => person_id, quasi => (age, gender, education), sensitive => occupation";

/// Makes people who come, go, return and change: five snapshots of `everybody`, and their update relation.
async fn snapshots(context: &SessionContext, people: usize) {
    run(context, &format!("CREATE TABLE everybody AS SELECT * FROM census({people}, seed => 11)")).await.unwrap();
    for release in 1..=5 {
        // Everybody is away in one release of five, and returns; a tenth comes with the third release.
        run(
            context,
            &format!(
                "CREATE TABLE snapshot{release} AS SELECT * REPLACE (
                     (age + CASE WHEN person_id % 4 = 0 THEN {release} ELSE 0 END) AS age)
                 FROM everybody WHERE person_id % 5 <> {release} % 5 AND (person_id % 10 <> 3 OR {release} >= 3)"
            ),
        )
        .await
        .unwrap();
        run(
            context,
            &format!(
                "CREATE TABLE changed{release} AS SELECT * REPLACE (
                     CASE WHEN (person_id + {release}) % 7 = 0 AND occupation % 2 = 0 THEN occupation + 1 ELSE occupation END AS occupation)
                 FROM snapshot{release}"
            ),
        )
        .await
        .unwrap();
    }
    run(
        context,
        "CREATE TABLE updates AS SELECT a.value::INT AS from_value, b.value::INT AS to_value
         FROM generate_series(0, 99) a JOIN generate_series(0, 99) b ON a.value / 2 = b.value / 2",
    )
    .await
    .unwrap();
}

async fn keep(context: &SessionContext, name: &str, sql: &str) {
    let rows = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    context.register_table(name, Arc::new(MemTable::try_new(rows[0].schema(), vec![rows.clone()]).unwrap())).unwrap();
}

/// A reader who knows everybody, their groups and all releases keeps m values each. The checker shares no code with
/// the methods. Without memory the same cells disclose.
#[tokio::test(flavor = "multi_thread")]
async fn five_releases_with_people_who_return_disclose_nobody() {
    let context = session();
    snapshots(&context, 6_000).await;
    for (method, memory) in [("m_invariant", true), ("m_invariant", false), ("m_distinct", true)] {
        let distinct = method == "m_distinct";
        let (snapshot, updates) = if distinct { ("changed", ", updates => updates") } else { ("snapshot", "") };
        let entry =
            if distinct { "person_id, signature, signature_label" } else { "person_id, signature, ring, occupation" };
        let name = |release: i32| format!("{method}_{memory}_{release}");
        for release in 1..=5 {
            let earlier: Vec<String> = (1..release)
                .map(|earlier| {
                    let number = if distinct { format!(", {earlier} AS release") } else { String::new() };
                    format!("SELECT {entry}{number} FROM {} WHERE person_id IS NOT NULL", name(earlier))
                })
                .collect();
            let previous = match earlier.is_empty() || !memory {
                true => String::new(),
                false => format!(", previous => ({})", earlier.join(" UNION ALL ")),
            };
            let call = format!(
                "SELECT * FROM {method}({snapshot}{release}, 4, {ROLES}, private => true, cells => 5, seed => 's{release}'{previous}{updates})"
            );
            keep(&context, &name(release), &call).await;
        }
        let everything: Vec<String> = (1..=5).map(|n| format!("SELECT {n} AS release, * FROM {snapshot}{n}")).collect();
        let releases: Vec<String> = (1..=5).map(name).collect();
        let found = format!(
            "FROM disclosure(({}), original => ({}), strength => 'group', {ROLES}{updates})",
            releases.join(", "),
            everything.join(" UNION ALL ")
        );
        if distinct {
            // Values that change are candidates as long as four of them stay possible: nobody is certain.
            let certain = number(&context, &format!("SELECT count(*) FILTER (WHERE risk > 0.99) {found}")).await;
            assert_eq!(certain, 0);
            for release in 1..=5 {
                let people = format!("SELECT count(*) FROM {snapshot}{release}");
                let real = format!("SELECT count(*) FROM {} WHERE NOT counterfeit", name(release));
                assert_eq!(number(&context, &people).await, number(&context, &real).await);
            }
            continue;
        }
        let vulnerable = number(&context, &format!("SELECT count(*) FILTER (WHERE vulnerable) {found}")).await;
        let most = number(&context, &format!("SELECT round(1000 * max(risk)) {found}")).await;
        match memory {
            true => assert!(vulnerable == 0 && most <= 250, "{vulnerable} {most}"),
            false => assert!(vulnerable > 100, "{vulnerable}"),
        }
    }
    // Nobody is left out, and nobody is there twice.
    for release in 1..=5 {
        let people = format!("SELECT count(*) FROM snapshot{release}");
        let released = format!("SELECT count(DISTINCT person_id) FROM m_invariant_true_{release}");
        assert_eq!(number(&context, &people).await, number(&context, &released).await);
        let real = format!("SELECT count(*) FROM m_invariant_true_{release} WHERE NOT counterfeit");
        assert_eq!(number(&context, &people).await, number(&context, &real).await);
    }
}

/// Publications in cells of all methods that have them: five releases, as their auditor sees them.
#[tokio::test(flavor = "multi_thread")]
async fn publications_in_cells_pass_their_audit() {
    let context = session();
    snapshots(&context, 4_000).await;
    let here = tempdir().unwrap();
    for (method, options, snapshot, releases) in [
        ("m_invariant", "'m' '4'", "snapshot", 5),
        ("m_distinct", "'m' '3', 'updates' 'updates'", "changed", 5),
        ("anatomy", "'l' '4'", "snapshot", 1),
        ("muco", "'delta' '0.3', 'l' '4'", "snapshot", 1),
    ] {
        let location = here.path().join(method).display().to_string();
        let declaration = |cells: &str| {
            format!(
                "CREATE EXTERNAL TABLE {method}_published (person_id BIGINT, age INT, gender INT, education INT, occupation INT)
                 STORED AS PUBLICATION LOCATION '{location}' OPTIONS ('method' '{method}', {options}, 'id' 'person_id',
                 'quasi' 'age, gender, education', 'sensitive' 'occupation'{cells})"
            )
        };
        run(&context, &declaration(", 'cells' '3'")).await.unwrap();
        for release in 1..=releases {
            let insert = format!(
                "INSERT INTO {method}_published SELECT person_id, age, gender, education, occupation FROM {snapshot}{release}"
            );
            let rows = number(&context, &insert).await;
            assert_eq!(rows, number(&context, &format!("SELECT count(*) FROM {snapshot}{release}")).await, "{method}");
            // The same snapshot again is none.
            assert_eq!(number(&context, &insert).await, 0, "{method}");
        }
        let of = |what: &str| format!("SELECT {what} FROM releases({method}_published)");
        assert_eq!(number(&context, &of("count(*)")).await, releases, "{method}");
        let failed = format!("SELECT * FROM audit({method}_published) WHERE NOT passed");
        assert!(
            run(&context, &failed).await.unwrap().iter().all(|batch| batch.num_rows() == 0),
            "{}",
            table(&context, &failed).await
        );
        assert!(number(&context, &format!("SELECT count(*) FROM audit({method}_published)")).await > 3);
        if method != "muco" {
            let groups = format!("SELECT count(DISTINCT group_id >> 32) FROM release({method}_published)");
            assert_eq!(number(&context, &groups).await, 3, "{method}");
        }
        // Nothing is left beside the ledger.
        let staged = here.path().join(format!("{method}.private/_staged"));
        let left = std::fs::read_dir(staged).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{method}");
        // The number of cells is fixed, and known without being said again.
        run(&context, &format!("DROP TABLE {method}_published")).await.unwrap();
        let other = error(&context, &declaration(", 'cells' '4'")).await;
        assert!(other.contains("cells is 3 in the publication but 4 here"), "{other}");
        run(&context, &declaration("")).await.unwrap();
        let next = format!(
            "EXPLAIN INSERT INTO {method}_published SELECT person_id, age, gender, education, occupation FROM {snapshot}1"
        );
        let plan = table(&context, &next).await;
        assert!(plan.contains("cells=3"), "{plan}");
    }
}

/// The number of cells follows from rows and memory. It is 1 while a table is expected to fit the memory limit, else as many as it takes, of a million rows at
/// least.
#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_cells_follows_from_rows_and_memory() {
    for (limit, found) in [(40 << 20, "cells=3 (about "), (8 << 30, "AnonymizeExec")] {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(limit, 1.0).build_arc().unwrap();
        let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
        datafusion_anonymize::register_all(&context).unwrap();
        let create =
            "CREATE TABLE t AS SELECT value AS id, value % 90 AS age, value % 7 AS s FROM generate_series(1, 3000000)";
        run(&context, create).await.unwrap();
        let call = "m_invariant(t, 3, id => id, quasi => (age), sensitive => s)";
        let plan = table(&context, &format!("EXPLAIN SELECT * FROM {call}")).await;
        assert!(plan.contains(found), "{plan}");
        let here = tempdir().unwrap();
        let location = here.path().join("p").display().to_string();
        run(
            &context,
            &format!(
                "CREATE EXTERNAL TABLE p (id BIGINT, age BIGINT, s BIGINT) STORED AS PUBLICATION LOCATION '{location}'
                 OPTIONS ('method' 'm_invariant', 'm' '3', 'id' 'id', 'quasi' 'age', 'sensitive' 's')"
            ),
        )
        .await
        .unwrap();
        let plan = table(&context, "EXPLAIN INSERT INTO p SELECT id, age, s FROM t").await;
        assert_eq!(plan.contains("cells=3"), limit < 1 << 30, "{plan}");
    }
}

/// A snapshot of which one cell cannot be released leaves no trace.
#[tokio::test(flavor = "multi_thread")]
async fn a_cell_that_is_refused_publishes_nothing() {
    let context = session();
    let here = tempdir().unwrap();
    let location = here.path().join("p").display().to_string();
    run(
        &context,
        &format!(
            "CREATE EXTERNAL TABLE p (person_id BIGINT, age INT, occupation INT) STORED AS PUBLICATION LOCATION '{location}'
             OPTIONS ('method' 'm_invariant', 'm' '4', 'id' 'person_id', 'quasi' 'age', 'sensitive' 'occupation', 'cells' '4')"
        ),
    )
    .await
    .unwrap();
    let left = |of: &str| std::fs::read_dir(here.path().join(of)).map_or(0, Iterator::count);
    // In one cell, or in two between others, all have one value.
    for (cells, refused) in [("2", 1), ("1, 2", 2), ("0, 3", 2), ("0, 1, 2, 3", 4)] {
        let spoilt = format!(
            "SELECT person_id, age, CASE WHEN anonymize_cell(person_id, 4) IN ({cells}) THEN 1 ELSE occupation END AS occupation FROM census(2000)"
        );
        let expected = format!("{refused} of the 4 cells cannot be released; the first of them, of ");
        let text = error(&context, &format!("INSERT INTO p {spoilt}")).await;
        assert!(text.contains(&expected), "{text}");
        assert_eq!((left("p"), left("p.private/_staged")), (0, 0));
        let select = format!(
            "SELECT * FROM m_invariant(({spoilt}), 4, id => person_id, quasi => (age), sensitive => occupation, cells => 4)"
        );
        let text = error(&context, &select).await;
        assert!(text.contains(&expected), "{text}");
    }
    assert_eq!(number(&context, "INSERT INTO p SELECT person_id, age, occupation FROM census(2000)").await, 2000);
    let empty =
        error(&context, "INSERT INTO p SELECT person_id, age, occupation FROM census(2000) WHERE age < 0").await;
    assert!(empty.contains("the snapshot has no rows"), "{empty}");
    let missing = error(&context, "INSERT INTO p SELECT person_id, NULL, occupation FROM census(2000)").await;
    assert!(missing.contains("column age is NULL in all rows"), "{missing}");
    assert_eq!(number(&context, "SELECT count(*) FROM releases(p)").await, 1);
}

/// A ledger that does not fit a limit is audited in parts.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_larger_than_memory_is_audited_in_parts() {
    let here = tempdir().unwrap();
    let path = |name: &str| here.path().join(name).display().to_string();
    let people = 200_000;
    let context = session();
    let columns = "person_id, age, gender, education, occupation";
    run(&context, &format!("COPY (SELECT {columns} FROM census({people}, seed => 3)) TO '{}'", path("p.parquet")))
        .await
        .unwrap();
    let declaration = format!(
        "CREATE EXTERNAL TABLE published (person_id BIGINT, age INT, gender INT, education INT, occupation INT)
         STORED AS PUBLICATION LOCATION '{}' OPTIONS ('method' 'm_invariant', 'm' '4', 'id' 'person_id',
         'quasi' 'age, gender, education', 'sensitive' 'occupation', 'cells' '4')",
        path("published")
    );
    run(&context, &declaration).await.unwrap();
    for people in ["<= 180000", "> 20000"] {
        let insert = format!("INSERT INTO published SELECT * FROM '{}' WHERE person_id {people}", path("p.parquet"));
        run(&context, &insert).await.unwrap();
    }

    let limited = |limit: usize| {
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(limit))).build_arc().unwrap();
        let config = SessionConfig::new().with_target_partitions(2).with_sort_spill_reservation_bytes(500_000);
        let context = SessionContext::new_with_config_rt(config, runtime).enable_url_table();
        datafusion_anonymize::register_all(&context).unwrap();
        context
    };
    // A ledger of which a quarter of the limit does not hold the entries is read several times, with the same findings.
    let declaration = &declaration;
    let checks = |context: SessionContext| async move {
        run(&context, declaration).await.unwrap();
        table(&context, "SELECT release, check, passed, figures FROM audit(published) ORDER BY release, check").await
    };
    let whole = checks(session()).await;
    assert!(!whole.contains("| false"), "{whole}");
    let small = limited(48 << 20);
    assert_eq!(checks(small.clone()).await, whole);
    assert_eq!(small.runtime_env().memory_pool.reserved(), 0);
}

/// A job too large for memory ends with an error, and holds nothing afterwards. The error says what would fit.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_an_error() {
    let here = tempdir().unwrap();
    let path = |name: &str| here.path().join(name).display().to_string();
    let (original, release) = (path("p.parquet"), path("r.parquet"));
    let shape = "quasi => (age, gender, education)";
    let roles = format!("id => person_id, {shape}, sensitive => occupation");
    let context = session();
    run(&context, &format!("COPY (SELECT * FROM census(200000, seed => 3)) TO '{original}'")).await.unwrap();
    run(&context, &format!("COPY (SELECT * FROM m_invariant('{original}', 4, {roles})) TO '{release}'")).await.unwrap();
    for (call, hint) in [
        (format!("information_loss('{original}', '{release}', {shape})"), None),
        (format!("query_accuracy('{original}', '{release}')"), None),
        (format!("disclosure('{release}', original => '{original}', {roles})"), None),
        (format!("mondrian('{original}', 5, {shape}, cells => 2)"), Some("(cells => 4)")),
        (format!("m_invariant('{original}', 4, {roles}, cells => 2)"), Some("(cells => 4)")),
    ] {
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(3 << 20)));
        let config = SessionConfig::new().with_target_partitions(2).with_sort_spill_reservation_bytes(500_000);
        let limited = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap()).enable_url_table();
        datafusion_anonymize::register_all(&limited).unwrap();
        let text = error(&limited, &format!("SELECT * FROM {call}")).await;
        assert!(text.contains("Resources exhausted"), "{call}: {text}");
        assert!(hint.is_none_or(|hint| text.contains(hint)), "{call}: {text}");
    }
}

/// A table beyond the limit is spilled, and a full disk publishes nothing. The shell needs nothing but a limit.
#[cfg(unix)]
#[test]
fn a_full_disk_while_spilling_publishes_nothing() {
    let here = tempdir().unwrap();
    // Few parts, and little that each of them needs for itself.
    let few = |table: &str, people: usize| format!("COPY (SELECT * FROM census({people})) TO '{table}.parquet'");
    let output = shell(here.path(), &["-q", "-c", &few("people", 500_000), "-c", &few("more", 520_000)]);
    assert!(output.status.success(), "{}", err(&output));
    let sql = "CREATE EXTERNAL TABLE published (person_id BIGINT, age INT, education INT, occupation INT)
         STORED AS PUBLICATION LOCATION 'published'
         OPTIONS ('begin' 'true', 'method' 'm_invariant', 'm' '4', 'id' 'person_id', 'quasi' 'age, education', 'sensitive' 'occupation', 'cells' '16');
         INSERT INTO published SELECT person_id, age, education, occupation FROM 'people.parquet';";
    std::fs::write(here.path().join("job.sql"), sql).unwrap();
    let limited = "trap '' XFSZ; ulimit -f 40; exec \"$0\" -q -m 24m -f job.sql";
    let small = |command: &mut Command| {
        command.env("DATAFUSION_EXECUTION_SORT_SPILL_RESERVATION_BYTES", "1000000");
        command.env_remove("RUST_BACKTRACE").current_dir(here.path()).output().unwrap()
    };
    let bin = program();
    let output = small(Command::new("sh").args(["-c", limited, bin]));
    assert!(!output.status.success() && err(&output).contains("File too large"), "{}", err(&output));
    let left = |of: &str| std::fs::read_dir(here.path().join(of)).map_or(0, Iterator::count);
    assert_eq!((left("published"), left("published.private/_staged")), (0, 0), "{}", err(&output));
    let output = small(Command::new(bin).args(["-q", "-m", "24m", "-f", "job.sql"]));
    assert!(output.status.success(), "{}", err(&output));
    let analyzed = sql.replace("people.parquet", "more.parquet").replace("INSERT", "EXPLAIN ANALYZE INSERT");
    let analyzed = analyzed.replace("'begin' 'true', ", "");
    let output = small(Command::new(bin).args(["-q", "-m", "24m", "--format", "csv", "-c", &analyzed]));
    let spilled = out(&output).lines().any(|line| {
        line.split("spill_count=")
            .skip(1)
            .any(|rest| rest.chars().next().is_some_and(|digit| ('1'..='9').contains(&digit)))
    });
    assert!(output.status.success() && spilled, "{}{}", out(&output), err(&output));
}
