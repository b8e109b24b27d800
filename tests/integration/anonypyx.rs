//! Candidate sets against the intersection attack of [AnonyPyx](https://pypi.org/project/anonypyx/).

use std::process::Command;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::prelude::SessionContext;

use super::python::environment;
use super::support::{path, run, session};

const QUASI: [&str; 4] = ["age", "gender", "education", "birthplace"];

/// Writes the rows of a query as CSV.
async fn write(context: &SessionContext, directory: &std::path::Path, name: &str, query: &str) -> String {
    let target = directory.join(name).display().to_string();
    let copy = format!("COPY ({query}) TO '{target}' STORED AS CSV OPTIONS ('format.has_header' 'true')");
    run(context, &copy).await.unwrap();
    target
}

/// Returns the values that `disclosure` leaves everybody, in the order of identifiers; values ascending.
async fn left(context: &SessionContext, releases: &str) -> Vec<Vec<i64>> {
    let rows = run(context, &format!(
        "SELECT person_id, remaining FROM disclosure({releases}, background => sample, id => person_id, quasi => ({}), sensitive => income)
         WHERE release = 1 ORDER BY person_id", QUASI.join(", ")
    )).await.unwrap();
    let set = |list: datafusion::arrow::array::ArrayRef| {
        cast(&list, &DataType::Int64).unwrap().as_primitive::<Int64Type>().values().to_vec()
    };
    rows.iter()
        .flat_map(|batch| {
            let lists = batch.column(1).as_list::<i32>();
            (0..lists.len()).map(|row| set(lists.value(row))).collect::<Vec<_>>()
        })
        .collect()
}

/// Releases that know of each other, and releases that do not: the same candidates as AnonyPyx finds.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_candidates() {
    let Some(python) = environment("anonypyx", &["anonypyx==0.2.11"], "anonypyx") else { return };
    let context = session();
    let directory = tempfile::tempdir().unwrap();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(3000)").await.unwrap();
    run(
        &context,
        "CREATE TABLE sample AS SELECT * FROM people WHERE person_id % 50 = 0 AND person_id BETWEEN 500 AND 2500",
    )
    .await
    .unwrap();
    let arguments = format!("4, id => person_id, quasi => ({}), sensitive => income", QUASI.join(", "));
    for (name, rows, more) in [
        ("a1", "person_id <= 2600", "seed => 1, private => true"),
        ("a2", "person_id > 400", "seed => 2, private => true, previous => a1"),
        ("b2", "person_id > 400", "seed => 3, private => true"),
    ] {
        let call = format!("m_invariant((SELECT * FROM people WHERE {rows}), {arguments}, {more})");
        run(&context, &format!("CREATE TABLE {name} AS SELECT * FROM {call}")).await.unwrap();
    }
    let ends = |of: fn(&str, &str) -> String| {
        QUASI.iter().flat_map(|q| [(q, "min"), (q, "max")]).map(|(q, end)| of(q, end)).collect::<Vec<_>>().join(", ")
    };
    let known = ends(|q, end| format!("{q} AS {q}_{end}"));
    let known = format!("SELECT row_number() OVER (ORDER BY person_id) - 1 AS \"ID\", {known} FROM sample ORDER BY 1");
    let known = write(&context, directory.path(), "people.csv", &known).await;
    let shown = ends(|q, end| format!("{q}.{} AS {q}_{end}", if end == "min" { "lo" } else { "hi" }));
    let mut disclosed = Vec::new();
    for releases in [["a1", "a2"], ["a1", "b2"]] {
        let mut command = Command::new(&python);
        command.arg(path("tests/anonypyx/intersect.py")).args([known.as_str(), "income", &QUASI.join(",")]);
        for release in releases {
            let rows = format!("SELECT {shown}, income FROM {release}");
            command.arg(write(&context, directory.path(), &format!("{release}.csv"), &rows).await);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs: Vec<Vec<i64>> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().map(|value| value.parse().unwrap()).collect())
            .collect();
        // A reader of public tables has no identifiers.
        let public = releases.map(|release| format!("(SELECT * EXCLUDE (person_id) FROM {release})")).join(", ");
        let ours = left(&context, &format!("({public})")).await;
        assert!(ours.len() > 30 && ours == theirs, "{ours:?}\n{theirs:?}");
        disclosed.push(ours.iter().map(Vec::len).sum::<usize>());
    }
    println!("{} candidates of the sample with memory, {} without", disclosed[0], disclosed[1]);
    assert!(disclosed[1] < disclosed[0], "releases that do not know of each other leave less");
}
