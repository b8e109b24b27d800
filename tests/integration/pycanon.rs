//! Released tables measured by [pyCANON](https://pypi.org/project/pycanon/).

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use datafusion::prelude::SessionContext;

use super::python::environment;
use super::support::{microdata, number, path, run, session};

/// Returns the environment's Python; the first test to ask makes the environment.
fn python() -> Option<&'static PathBuf> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(|| environment("pycanon", &["pycanon==1.3.6"], "pycanon.anonymity")).as_ref()
}

struct Measured {
    k: i64,
    l: i64,
    entropy_l: i64,
    t: f64,
}

/// Measures the rows of a query on a release by pycanon and by plain SQL.
async fn measure(
    context: &SessionContext,
    python: &PathBuf,
    release: &str,
    quasi: &[&str],
    sensitive: &str,
) -> Measured {
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    let columns: Vec<String> = quasi.iter().map(|q| format!("concat({q}.lo, '..', {q}.hi) AS {q}")).collect();
    let columns = columns.join(", ");
    run(context, "DROP TABLE IF EXISTS release").await.unwrap();
    run(context, &format!("CREATE TABLE release AS SELECT {columns}, {sensitive} FROM {release}")).await.unwrap();
    let target = file.path().display();
    run(context, &format!("COPY release TO '{target}' STORED AS CSV OPTIONS ('format.has_header' 'true')"))
        .await
        .unwrap();
    let script = path("tests/pycanon/measure.py");
    let output = Command::new(python).arg(script).arg(file.path()).arg(sensitive).args(quasi).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [k, l, entropy_l, t] = numbers[..] else { panic!("{text}") };
    let groups =
        format!("SELECT count(*) AS k, count(DISTINCT {sensitive}) AS l FROM release GROUP BY {}", quasi.join(", "));
    assert_eq!(number(context, &format!("SELECT min(k) FROM ({groups})")).await, k as i64);
    assert_eq!(number(context, &format!("SELECT min(l) FROM ({groups})")).await, l as i64);
    Measured { k: k as i64, l: l as i64, entropy_l: entropy_l as i64, t }
}

#[tokio::test(flavor = "multi_thread")]
async fn census() {
    let Some(python) = python() else { return };
    let context = session();
    run(&context, "CREATE TABLE people AS SELECT * FROM census(4000)").await.unwrap();
    let quasi = ["age", "gender", "education"];
    let call = |arguments: &str| {
        format!("mondrian(people, quasi => (age, gender, education), sensitive => income, {arguments})")
    };
    let found = measure(&context, python, &call("k => 20, l => 6, diversity => 'distinct'"), &quasi, "income").await;
    assert!(found.k >= 20 && found.l >= 6, "{} {}", found.k, found.l);
    let found = measure(&context, python, &call("l => 5, diversity => 'entropy'"), &quasi, "income").await;
    assert!(found.entropy_l >= 5, "{}", found.entropy_l);
    // Income is a number here: distances by rank.
    let found = measure(&context, python, &call("k => 20, t => 0.12"), &quasi, "income").await;
    assert!(found.t <= 0.12 + 1e-9, "{}", found.t);
    // And without t it would not have been kept.
    assert!(measure(&context, python, &call("k => 20"), &quasi, "income").await.t > 0.12);
}

#[tokio::test(flavor = "multi_thread")]
async fn adult() {
    let (Some(adult), Some(python)) = (microdata("adult.parquet"), python()) else { return };
    let context = session();
    run(&context, &format!("CREATE TABLE adult AS SELECT * FROM '{adult}' WHERE is_complete AND split = 'train'"))
        .await
        .unwrap();
    let quasi = ["age", "education_num", "marital_status", "race", "sex"];
    let call = |arguments: &str| {
        format!("mondrian(adult, quasi => ({}), sensitive => occupation, {arguments})", quasi.join(", "))
    };
    let found =
        measure(&context, python, &call("k => 50, l => 5, diversity => 'distinct'"), &quasi, "occupation").await;
    assert!(found.k >= 50 && found.l >= 5, "{} {}", found.k, found.l);
    let found = measure(&context, python, &call("k => 50, l => 4, diversity => 'entropy'"), &quasi, "occupation").await;
    assert!(found.entropy_l >= 4, "{}", found.entropy_l);
    // Occupations are categories: all equally far apart.
    let found = measure(&context, python, &call("k => 50, t => 0.3"), &quasi, "occupation").await;
    println!("ADULT by pycanon: k = {}, l = {}, t = {}", found.k, found.l, found.t);
    assert!(found.k >= 50 && found.t <= 0.3 + 1e-9, "{}", found.t);
}
