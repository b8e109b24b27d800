//! `anonymize experiment` as a user runs it: its files, what is not done twice, what is refused, and the page in a browser.

mod browser;
mod png;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::SystemTime;

use serde_json::Value;
use tempfile::tempdir;

use super::program::program;
use super::support::{err, number, out, session, table};

/// Experiments that are run once, for all tests.
const EXPERIMENTS: &[&str] = &[
    "vulnerable",
    "counterfeits",
    "query-error",
    "cost",
    "internal-updates",
    "sequential",
    "reposition",
    "muco",
    "dynamic",
];
/// Options that fail unless the papers' findings are found again.
const OPTIONS: &[&str] = &["--quick", "--check"];

/// The directory of that run. Others only read it.
static SHARED: LazyLock<PathBuf> = LazyLock::new(|| {
    // Checkouts may share a target directory.
    let checkout = env!("CARGO_MANIFEST_DIR").replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("experiments{checkout}"));
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    let output = experiment(&directory, &[EXPERIMENTS, OPTIONS].concat());
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(out(&output).trim(), directory.join("index.html").to_string_lossy());
    directory
});

/// Enough people for a run that takes no time.
const FEW: &[&str] = &["vulnerable", "--quick", "--rows", "600"];

fn experiment(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(program())
        .env_remove("RUST_BACKTRACE")
        .env_remove("RUST_LIB_BACKTRACE")
        .arg("experiment")
        .args(arguments)
        .arg("--out")
        .arg(directory)
        .output()
        .expect("the shell starts")
}

fn json(place: &Path) -> Value {
    serde_json::from_slice(&fs::read(place).unwrap()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Names, times and contents of all files.
fn state(directory: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let place = entry.unwrap().path();
        if place.is_dir() {
            files.extend(state(&place));
        } else {
            files.insert(place.clone(), (place.metadata().unwrap().modified().unwrap(), fs::read(&place).unwrap()));
        }
    }
    files
}

#[tokio::test]
async fn csv_and_parquet_have_the_points_of_all_runs() {
    let context = session();
    for name in EXPERIMENTS {
        let directory = SHARED.join(name);
        let points = |file: &str| {
            format!(
                "SELECT figure::VARCHAR AS figure, series::VARCHAR AS series, x::DOUBLE AS x, y::DOUBLE AS y FROM '{}'",
                directory.join(file).display()
            )
        };
        let (csv, parquet) = (points("points.csv"), points("points.parquet"));
        for (one, other) in [(&csv, &parquet), (&parquet, &csv)] {
            let missing = format!("SELECT count(*) FROM (({one}) EXCEPT ALL ({other}))");
            assert_eq!(number(&context, &missing).await, 0, "{name}");
        }
        let runs = state(&directory.join("runs"));
        let stored: usize = runs.keys().map(|run| list(&json(run)["points"]).len()).sum();
        assert!(stored > 0, "{name} has no points");
        assert_eq!(number(&context, &format!("SELECT count(*) FROM ({parquet})")).await, stored as i64, "{name}");
        let report = json(&directory.join("report.json"));
        for figure in list(&report["figures"]) {
            for series in list(&figure["series"]) {
                let (series, charted) = (text(&series[0]), list(&series[1]));
                let means = format!(
                    "SELECT x, avg(y) AS y FROM ({parquet}) WHERE figure = '{}' AND series = '{}' GROUP BY x",
                    text(&figure["id"]).replace('\'', "''"),
                    series.replace('\'', "''")
                );
                assert_eq!(number(&context, &format!("SELECT count(*) FROM ({means})")).await, charted.len() as i64);
                for point in charted {
                    let same = format!(
                        "SELECT count(*) FROM ({means}) WHERE x = {x}::DOUBLE AND abs(y - {y}::DOUBLE) <= 1e-9 * greatest(1, abs(y))",
                        x = point[0],
                        y = point[1]
                    );
                    assert_eq!(
                        number(&context, &same).await,
                        1,
                        "{name}, {series}: {point}\n{}",
                        table(&context, &means).await
                    );
                }
            }
        }
    }
}

#[test]
fn the_page_has_all_charts_and_findings_and_needs_nothing_else() {
    let page = fs::read_to_string(SHARED.join("index.html")).unwrap();
    for foreign in ["<script", "<link", " src=", "url(", "@import"] {
        assert!(!page.contains(foreign), "the page has {foreign}");
    }
    for name in EXPERIMENTS {
        assert!(page.contains(&format!("<section id=\"{name}\">")), "{name} is not on the page");
        let report = json(&SHARED.join(name).join("report.json"));
        assert!(!list(&report["findings"]).is_empty(), "{name} found nothing");
        let mut files = BTreeSet::new();
        for figure in list(&report["figures"]) {
            let file = text(&figure["file"]);
            files.insert(file.to_owned());
            let chart = fs::read_to_string(SHARED.join(name).join(file)).unwrap();
            assert!(page.contains(chart.trim()), "{name}: {file} is not on the page");
            assert!(page.contains(&format!("<figure id=\"{name}-{}\">", text(&figure["id"]))));
        }
        let all = state(&SHARED.join(name)).into_keys().filter(|file| file.extension().is_some_and(|e| e == "svg"));
        let all: BTreeSet<String> = all.map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(all, files, "{name}: charts without a figure");
        assert!(!files.is_empty(), "{name} has no charts");
    }
    for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        match link.strip_prefix('#') {
            Some(anchor) => assert!(page.contains(&format!("id=\"{anchor}\"")), "{link} leads nowhere"),
            None => assert!(SHARED.join(link).is_file(), "{link} leads nowhere"),
        }
    }
}

#[test]
fn runs_are_not_repeated_and_are_the_same_if_they_are() {
    let here = tempdir().unwrap();
    let runs = here.path().join("vulnerable/runs");
    assert!(experiment(here.path(), FEW).status.success());
    let (first, points) = (state(&runs), fs::read(here.path().join("vulnerable/points.csv")).unwrap());
    assert!(first.len() > 1, "{} runs", first.len());

    assert!(experiment(here.path(), FEW).status.success());
    assert_eq!(state(&runs), first);

    let (lost, (_, before)) = first.iter().next().unwrap();
    fs::remove_file(lost).unwrap();
    // What a run leaves that was killed while it wrote.
    let (torn, (_, whole)) = first.iter().next_back().unwrap();
    fs::write(torn, &whole[..whole.len() / 2]).unwrap();
    assert!(experiment(here.path(), FEW).status.success());
    let mut again = state(&runs);
    assert_eq!(json(lost)["points"], serde_json::from_slice::<Value>(before).unwrap()["points"]);
    assert_eq!(json(torn)["points"], serde_json::from_slice::<Value>(whole).unwrap()["points"]);
    for repeated in [lost, torn] {
        assert_ne!(again.remove(repeated).unwrap().0, first[repeated].0);
    }
    assert!(again.iter().all(|(run, state)| first[run] == *state), "other runs were repeated");
    assert_eq!(fs::read(here.path().join("vulnerable/points.csv")).unwrap(), points);
}

#[test]
fn results_of_other_settings_are_not_mixed() {
    let here = tempdir().unwrap();
    assert!(experiment(here.path(), FEW).status.success());
    let before = state(here.path());
    for other in [&["--seed", "2"][..], &["--rows", "700"]] {
        // The last of two --rows would be refused by clap.
        let arguments: Vec<&str> = if other[0] == "--rows" { FEW[..2].to_vec() } else { FEW.to_vec() };
        let output = experiment(here.path(), &[&arguments[..], other].concat());
        assert!(!output.status.success(), "{other:?} was accepted");
        assert!(err(&output).contains("results of other microdata, mode, seed or version"), "{}", err(&output));
        assert!(err(&output).contains("--fresh"), "{}", err(&output));
        assert_eq!(state(here.path()), before, "{other:?} changed something");
    }
    let output = experiment(here.path(), &[FEW, &["--seed", "2", "--fresh"]].concat());
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(json(&here.path().join("vulnerable/settings.json"))["seed"], 2);
    let points = here.path().join("vulnerable/points.csv");
    assert_ne!(fs::read(&points).unwrap(), before[&points].1, "the seed does not matter");
}

#[test]
fn bad_arguments_are_refused() {
    let here = tempdir().unwrap();
    let place = here.path().join("results");
    let output = experiment(&place, &["nothing"]);
    assert!(!output.status.success());
    let names = EXPERIMENTS.iter().chain(&["all"]);
    for part in ["invalid value 'nothing'", "possible values"].iter().chain(names) {
        assert!(err(&output).contains(part), "{part}: {}", err(&output));
    }
    for arguments in [&["--data", "x.csv", "--sensitive", "b"][..], &["--data", "x.csv", "--quasi", "a"]] {
        let output = experiment(&place, &[&["vulnerable"][..], arguments].concat());
        let missing = if arguments.contains(&"--quasi") { "--sensitive <COLUMN>" } else { "--quasi <COLUMNS>" };
        assert!(!output.status.success(), "{arguments:?} was accepted");
        assert!(err(&output).contains("were not provided") && err(&output).contains(missing), "{}", err(&output));
    }
    let output = experiment(&place, &["vulnerable", "--quasi", "a"]);
    assert!(!output.status.success() && err(&output).contains("--data <FILE>"), "{}", err(&output));
    assert!(!place.exists(), "a refused command wrote something");
}
