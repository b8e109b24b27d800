//! `disclosure(publication, ..)` takes from the publication what it knows: identifier, updates, periods, and who was in which release.

use datafusion::prelude::SessionContext;

use super::support::{error, number, run, session, table};

const PEOPLE: &str =
    "CREATE TABLE people AS SELECT person_id AS id, age, education, (person_id % 8)::INT AS job FROM census(160, 3)";

async fn begin(context: &SessionContext, name: &str, options: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let location = directory.path().join(name).display().to_string();
    let sql = format!(
        "CREATE EXTERNAL TABLE {name} (id BIGINT, age INT, education INT, job INT) STORED AS PUBLICATION LOCATION '{location}'
         OPTIONS ({options}, 'm' '2', 'id' 'id', 'quasi' 'age, education', 'sensitive' 'job')"
    );
    run(context, &sql).await.unwrap();
    directory
}

/// Returns everything that an inference says, in order.
async fn found(context: &SessionContext, call: &str) -> String {
    let columns = "id, release, array_to_string(remaining, ' ') AS remaining, round(risk, 9) AS risk, vulnerable";
    table(context, &format!("SELECT {columns} FROM disclosure({call}) ORDER BY id, release")).await
}

/// A table of people alone infers the same as everything said, and finds nobody. Values change, people come and
/// leave, two releases are of one day and three days have none. What is said wins.
#[tokio::test(flavor = "multi_thread")]
async fn of_changing_values_the_law_the_days_and_the_people_are_those_of_the_publication() {
    let context = session();
    run(&context, PEOPLE).await.unwrap();
    run(
        &context,
        "CREATE TABLE law AS SELECT value::INT AS from_value, (value + 1 - 2 * (value % 2))::INT AS to_value, 0.3 AS probability FROM generate_series(0, 7)",
    )
    .await
    .unwrap();
    for (name, method) in [("moving", "'dynamic'"), ("exactly", "'m_distinct', 'exact' 'true'")] {
        let _directory = begin(&context, name, &format!("'method' {method}, 'updates' 'law'")).await;
        let flipped =
            |share: u32| format!("CASE WHEN id % {share} = 0 THEN job + 1 - 2 * (job % 2) ELSE job END AS job");
        let snapshots = [
            (1, "SELECT id, age, education, job FROM people WHERE id <= 120".to_owned()),
            (2, format!("SELECT id, age, education, {} FROM people WHERE id > 20 AND id <= 140", flipped(3))),
            (2, format!("SELECT id, age, education, {} FROM people WHERE id > 20 AND id <= 130", flipped(3))),
            (6, format!("SELECT id, age, education, {} FROM people WHERE id > 20 AND id <= 150", flipped(5))),
        ];
        for (period, snapshot) in &snapshots {
            run(&context, &format!("SET anonymize.period = '{period}'")).await.unwrap();
            run(&context, &format!("INSERT INTO {name} {snapshot}")).await.unwrap();
        }
        run(&context, "SET anonymize.period = ''").await.unwrap();
        assert_eq!(number(&context, &format!("SELECT count(*) FROM releases({name})")).await, 4);
        let truth: Vec<String> = (1..)
            .zip(&snapshots)
            .map(|(release, (_, rows))| format!("SELECT *, {release} AS release FROM ({rows})"))
            .collect();
        let truth = truth.join(" UNION ALL ");
        let plain = found(&context, &format!("{name}, original => people")).await;
        let said = format!(
            "{name}, original => ({truth}), id => id, quasi => (age, education), sensitive => job, updates => law"
        );
        assert_eq!(plain, found(&context, &said).await);
        let alarms = "count(*) FILTER (WHERE vulnerable OR remaining_count = 0)";
        let alarms = async |call: &str| number(&context, &format!("SELECT {alarms} FROM disclosure({call})")).await;
        assert_eq!(alarms(&format!("{name}, original => people")).await, 0);
        assert_eq!(
            number(&context, &format!("SELECT count(*) FROM disclosure({name}, original => people)")).await,
            480
        );
        // Values that stay: those of whoever has changed cannot be explained.
        let frozen = "updates => (SELECT 0::INT AS from_value, 0::INT AS to_value)";
        assert!(alarms(&format!("{name}, original => people, {frozen}")).await > 0);
        // As if every release were a step: other risks.
        let releases: Vec<String> = (1..5).map(|release| format!("release({name}, {release})")).collect();
        let steps = said.replacen(name, &format!("({})", releases.join(", ")), 1);
        assert_ne!(plain, found(&context, &steps).await);
    }
}

/// A ledger of m-invariance knows when people came, and not when they left: then whoever asks must say who was in which release.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_is_known_or_asked_for() {
    let context = session();
    run(&context, PEOPLE).await.unwrap();
    let _directory = begin(&context, "staying", "'method' 'm_invariant'").await;
    run(&context, "INSERT INTO staying SELECT * FROM people WHERE id <= 100").await.unwrap();
    let one = found(&context, "staying, original => (SELECT * FROM people WHERE id <= 100)").await;
    assert!(!one.contains("true"), "{one}");
    run(&context, "INSERT INTO staying SELECT * FROM people WHERE id <= 140").await.unwrap();
    let plain = found(&context, "staying, original => people").await;
    let truth = "SELECT *, 1 AS release FROM people WHERE id <= 100 UNION ALL SELECT *, 2 FROM people WHERE id <= 140";
    for strength in ["cover", "joint_cover"] {
        let plain = found(&context, &format!("staying, original => people, strength => '{strength}'")).await;
        let said = format!("staying, original => ({truth}), id => id, sensitive => job, strength => '{strength}'");
        assert_eq!(plain, found(&context, &said).await);
    }
    assert!(!plain.contains("true"), "{plain}");
    run(&context, "INSERT INTO staying SELECT * FROM people WHERE id > 30 AND id <= 150").await.unwrap();
    let text = error(&context, "SELECT * FROM disclosure(staying, original => people)").await;
    assert!(
        text.contains("disclosure: release 3 was made of 120 people, and 150 may have been in it: some have left")
            && text.contains("original => (SELECT *, 1 AS release FROM first UNION ALL SELECT *, 2 FROM second)"),
        "{text}"
    );
    // Of those who never left it is known.
    let some = found(&context, "staying, original => (SELECT * FROM people WHERE id > 30 AND id <= 140)").await;
    assert!(!some.contains("true"), "{some}");
    let truth = format!("{truth} UNION ALL SELECT *, 3 FROM people WHERE id > 30 AND id <= 150");
    let left = found(&context, &format!("staying, original => ({truth})")).await;
    assert!(!left.contains("true"), "{left}");
    assert_eq!(left.lines().count(), 100 + 140 + 120 + 4);
}
