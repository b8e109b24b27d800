//! Texts that are in another order than what they stand for: said once, with SQL that mends it; and the order of pandas' categories.

use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::Notices;

use super::support::{err, number, path, run, shell, table};

/// Returns a session and what it was told.
fn listening() -> (SessionContext, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let notices = Notices::new(move |notice| notes.lock().unwrap().push(notice.to_owned()));
    let config = SessionConfig::new().with_extension(Arc::new(notices));
    let context = SessionContext::new_with_config(config).enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    (context, told)
}

fn taken(told: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *told.lock().unwrap())
}

/// Columns of texts, their names in notices, and the right order of their values.
const COLUMNS: [(&str, &str, &[&str]); 8] = [
    ("bands", "bands of numbers as texts", &["0-4", "5-9", "10-14", "15-19", "100+"]),
    ("words", "bands of numbers as texts", &["under 5", "5 to 9", "10 to 14", "15 and over"]),
    ("brackets", "bands of numbers as texts", &["[0,500)", "[500,1000)", "[1000,2000)", "[20000,30000)"]),
    ("unknown", "bands of numbers as texts, and texts of no answer", &["n/a", "5-9", "10-14", "15-19"]),
    ("days", "dates as texts", &["05.03.2023", "28.12.2023", "01.02.2024", "31.01.2025"]),
    ("american", "dates as texts", &["3/5/2023", "12/28/2023", "2/1/2024", "1/31/2025"]),
    ("income", "numbers as texts", &["900", "1,200", "15,000", "100,000"]),
    ("Year of birth", "numbers as texts, and texts of no answer", &["NA", "950", "1200", "1990"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn it_is_said_once_and_the_cure_works() {
    let (context, told) = listening();
    for (name, what, order) in COLUMNS {
        let rows: Vec<String> = (0..3 * order.len())
            .map(|row| format!("('{}', {}, 'd{}')", order[row % order.len()], row % order.len(), row % 2))
            .collect();
        let rows = rows.join(", ");
        let name = format!("\"{name}\"");
        run(
            &context,
            &format!("CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES {rows}) AS t({name}, rank, disease)"),
        )
        .await
        .unwrap();
        let release =
            |input: &str| format!("SELECT * FROM mondrian({input}, 5, quasi => {name}, sensitive => disease)");
        run(&context, &release("t")).await.unwrap();
        let notices = taken(&told);
        let [notice] = notices.as_slice() else { panic!("{name}: {notices:?}") };
        assert!(notice.starts_with(&format!("mondrian: column {} has {what}", name.trim_matches('"'))), "{notice}");
        assert!(order.iter().all(|value| !notice.contains(value)), "{notice}");
        // The notice ends in a query over t.
        let (_, cured) = notice.split_once("write ").unwrap();
        run(&context, &release(cured)).await.unwrap_or_else(|error| panic!("{cured}: {error}"));
        assert_eq!(taken(&told), Vec::<String>::new(), "{cured}");
        // And its values are in the order of what they stand for; no answer is NULL.
        let wrong = format!(
            "SELECT count(*) FROM {cured} AS a, {cured} AS b WHERE a.rank < b.rank AND NOT coalesce(a.{name} < b.{name}, a.{name} IS NULL)"
        );
        assert_eq!(number(&context, &wrong).await, 0, "{wrong}");
        // A profile says it as well.
        run(&context, "SELECT * FROM profile(t)").await.unwrap();
        let notices = taken(&told);
        assert!(
            notices.len() == 1 && notices[0].contains(&format!("profile: column {}", name.trim_matches('"'))),
            "{notices:?}"
        );
        assert!(notices[0].ends_with(cured), "{notices:?}");
    }
}

/// A stray text makes a CSV file's column of numbers one of texts.
#[tokio::test(flavor = "multi_thread")]
async fn a_stray_text_among_numbers_is_said() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("people.csv");
    let rows: String = (0..60).map(|row| format!("{},d{}\n", 18 + row, row % 3)).collect();
    std::fs::write(&file, format!("age,disease\n{rows}4O,d1\n")).unwrap();
    let (context, told) = listening();
    run(&context, &format!("CREATE TABLE t AS SELECT * FROM '{}'", file.display())).await.unwrap();
    run(&context, "SELECT * FROM mondrian(t, 5, quasi => age, sensitive => disease)").await.unwrap();
    let notices = taken(&told);
    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
    assert!(notice.contains("column age has numbers as texts, and a few that are none"), "{notice}");
    let (_, cured) = notice.split_once("write ").unwrap();
    run(&context, &format!("SELECT * FROM mondrian({cured}, 5, quasi => age, sensitive => disease)")).await.unwrap();
    assert_eq!(taken(&told), Vec::<String>::new());
    assert_eq!(number(&context, &format!("SELECT max(age) - min(age) FROM {cured}")).await, 59);
    let remarks =
        table(&context, "SELECT remarks FROM profile(t) WHERE kind = 'column' AND remarks LIKE 'numbers, but%'").await;
    assert!(remarks.contains("TRY_CAST(age AS BIGINT)"), "{remarks}");
}

/// An order that nobody can guess is given by name.
#[tokio::test(flavor = "multi_thread")]
async fn where_no_padding_helps_an_order_is_given() {
    let (context, told) = listening();
    let rows =
        "CREATE TABLE t AS SELECT * FROM (VALUES ('1.5-2.5'), ('10.5-20'), ('2.5-10.5'), ('1.25-1.5')) AS t(age)";
    run(&context, rows).await.unwrap();
    run(&context, "SELECT * FROM mondrian(t, 2, quasi => age)").await.unwrap();
    let notices = taken(&told);
    if let [notice] = notices.as_slice()
        && let Some((_, cured)) = notice.split_once("write ")
        && cured.contains("with_metadata")
    {
        let order = r#"["1.25-1.5", "1.5-2.5", "2.5-10.5", "10.5-20"]"#;
        let cured = cured.replace(r#"["first value", "second value", "and so on"]"#, order);
        run(&context, &format!("SELECT * FROM mondrian({cured}, 2, quasi => age)")).await.unwrap();
        assert_eq!(taken(&told), Vec::<String>::new());
        return;
    }
    panic!("{notices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_where_the_order_is_right_or_does_not_matter() {
    let (context, told) = listening();
    run(
        &context,
        "CREATE TABLE t AS SELECT * FROM (VALUES ('5-9', '05-09', '2024-01-31', 'north', 'a'), ('10-14', '10-14', '2024-02-01', 'south', 'b'),
         ('5-9', '05-09', '2023-12-31', 'NA', 'a'), ('10-14', '10-14', '2024-02-01', 'south', 'b')) AS t(band, padded, day, place, disease)",
    )
    .await
    .unwrap();
    for call in [
        "mondrian(t, 2, quasi => (padded, day, place))",
        "anatomy(t, 2, quasi => (band, padded), sensitive => disease)",
        "mondrian(t, 2, quasi => padded, sensitive => band)",
        "mondrian(t, 2, quasi => band, hierarchies => (SELECT 'band' AS attribute, band AS leaf, '*' AS level1 FROM t GROUP BY band))",
    ] {
        run(&context, &format!("SELECT * FROM {call}")).await.unwrap();
        assert_eq!(taken(&told), Vec::<String>::new(), "{call}");
    }
}

/// The shell prints it beside the result.
#[test]
fn the_shell_says_it() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("t.csv"), "age,ill\n5-9,a\n10-14,b\n5-9,b\n10-14,a\n").unwrap();
    let output = shell(here.path(), &["-q", "-c", "SELECT count(*) FROM mondrian('t.csv', 2, quasi => age)"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(
        err(&output).matches("mondrian: column age has bands of numbers as texts").count(),
        1,
        "{}",
        err(&output)
    );
}

/// Ordered categories of pandas generalize in their order, including those that nobody has.
#[tokio::test(flavor = "multi_thread")]
async fn categories_of_pandas_keep_their_order() {
    let (context, told) = listening();
    let file = format!("'{}'", path("tests/pandas/ordered.parquet"));
    let order = r#"["under 5","5-9","10-14","15-19","20 and over"]"#;
    for input in [
        file.clone(),
        format!("(SELECT band, disease FROM {file} WHERE disease IS NOT NULL)"),
        format!("(SELECT p.band FROM {file} AS p ORDER BY id)"),
    ] {
        let release = format!(
            "SELECT DISTINCT arrow_metadata(band)['anonymize.order'] AS o FROM mondrian({input}, 6, quasi => band)"
        );
        let found = run(&context, &release).await.unwrap();
        let found = cast(found[0].column(0), &DataType::Utf8).unwrap();
        assert_eq!((found.as_string::<i32>().value(0), found.len()), (order, 1), "{input}");
    }
    assert_eq!(taken(&told), Vec::<String>::new());
    let release = format!(
        "SELECT band.lo, band.hi, count(*) AS n FROM mondrian({file}, 6, quasi => band) GROUP BY 1, 2 ORDER BY 1"
    );
    let found = table(&context, &release).await;
    let found: Vec<String> = found.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in ["| 10-14 | 20 and over | 6 |", "| under 5 | 5-9 | 6 |"] {
        assert!(found.iter().any(|line| line == row), "{found:?}");
    }
    // Estimates and losses know it.
    run(
        &context,
        &format!("CREATE TABLE r AS SELECT * FROM mondrian({file}, 6, quasi => (band, town), sensitive => disease)"),
    )
    .await
    .unwrap();
    assert_eq!(number(&context, "SELECT round(sum(1.0)) FROM estimated(r) WHERE band IN ('under 5', '5-9')").await, 6);
    let loss = format!(
        "SELECT count(*) FROM information_loss({file}, r) WHERE attribute = 'band' AND domain = 4 AND lm < 0.34"
    );
    assert_eq!(number(&context, &loss).await, 1);

    // What was written again, or computed, says nothing of an order that can be relied on.
    let here = tempfile::tempdir().unwrap();
    let copy = here.path().join("copy.parquet");
    run(&context, &format!("COPY (SELECT * FROM {file} ORDER BY id DESC) TO '{}'", copy.display())).await.unwrap();
    for input in [format!("'{}'", copy.display()), format!("(SELECT DISTINCT band, id FROM {file})")] {
        run(&context, &format!("SELECT * FROM mondrian({input}, 6, quasi => band)")).await.unwrap();
        let notices = taken(&told);
        assert!(notices.len() == 1 && notices[0].contains("column band has bands of numbers"), "{input}: {notices:?}");
    }
    // Categories without an order are texts.
    let town = format!("SELECT count(arrow_metadata(town)['anonymize.order']) FROM mondrian({file}, 6, quasi => town)");
    assert_eq!(number(&context, &town).await, 0);
}
