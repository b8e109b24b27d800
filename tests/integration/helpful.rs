//! The shell helps: advice as a page, places of errors, descriptions of functions, and complete results on a terminal.

use std::process::Command;

use tempfile::tempdir;

use super::program::program;
use super::support::{err, out, shell};

/// The SQL that is printed runs, and the page says the same.
#[test]
fn advice_is_a_page_and_statements_that_run() {
    let here = tempdir().unwrap();
    let make = "COPY (SELECT person_id, age, gender, occupation FROM census(1500, 5)) TO 'people.csv'";
    assert!(shell(here.path(), &["-q", "-c", make]).status.success());
    let roles = ["--id", "person_id", "--quasi", "age,gender", "--sensitive", "occupation"];
    let arguments = [&["advise", "people.csv"][..], &roles, &["--queries", "100", "--seed", "3"]].concat();
    let output = shell(here.path(), &arguments);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("m_invariant with m = ") && text.trim_end().ends_with("advice.html"), "{text}");
    let page = std::fs::read_to_string(here.path().join("advice.html")).unwrap();
    for part in
        ["Advice for people.csv", "all of its 1,500 rows", "m_invariant, m", "mondrian, k", "Errors of counts", "<svg"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        !page.contains("<script") && !page.contains("http://") || page.contains("www.w3.org"),
        "one file of its own"
    );
    let statements: Vec<&str> =
        text.split("\n\n").filter(|part| part.starts_with("CREATE") || part.starts_with("COPY")).collect();
    assert_eq!(statements.len(), 2, "{text}");
    for statement in statements {
        let output = shell(here.path(), &["-q", "-c", statement]);
        assert!(output.status.success(), "{statement}\n{}", err(&output));
    }
    assert!(here.path().join("release.parquet").exists() && here.path().join("publication").exists());
    let output = shell(here.path(), &["advise", "missing.csv"]);
    assert!(!output.status.success() && err(&output).contains("missing.csv"), "{}", err(&output));
}

#[test]
fn errors_underline_their_place() {
    let here = tempdir().unwrap();
    let place = |sql: &str| err(&shell(here.path(), &["-q", "-c", sql]));
    let text = place("SELECT 1;\nSELECT age,\n  agee FROM census(10)");
    assert!(text.contains("command 1: statement 2 (line 2)\n    agee FROM census(**)\n    ^^^^\n"), "{text}");
    let text = place("SELECT agee FROM mondrian(census(10), 2, quasi => age, seed => 'hush hush')");
    assert!(text.contains("seed => '*********'") && !text.contains("hush"), "{text}");
    let text = place("SELECT * FROM nowhere");
    assert!(text.contains("  SELECT * FROM nowhere\n                ^^^^^^^\n"), "{text}");
    let text = place("SELECT FROM WHERE");
    assert!(text.contains("  SELECT FROM WHERE\n  ") && text.contains('^'), "{text}");
}

#[test]
fn our_functions_are_described() {
    let here = tempdir().unwrap();
    let output = shell(here.path(), &["-q", "--format", "csv", "-c", "SHOW FUNCTIONS LIKE 'm_inv%'"]);
    let text = out(&output);
    assert!(
        output.status.success() && text.contains("m-invariance") && text.contains("m_invariant(patients"),
        "{text}"
    );
    // DataFusion's own keep what is said of them.
    let text = out(&shell(here.path(), &["-q", "--format", "csv", "-c", "SHOW FUNCTIONS LIKE 'ascii'"]));
    assert!(text.contains("ascii(str)"), "{text}");
}

/// Rows are counted by what each has once: between 50,000 rows there are 49,999 separators.
#[test]
fn results_for_programs_are_complete_on_a_terminal() {
    let here = tempdir().unwrap();
    let command = format!("{} -q --format json -c 'SELECT value AS n FROM generate_series(1, 50000)'", program());
    let Ok(output) = Command::new("script").current_dir(here.path()).args(["-qec", &command, "/dev/null"]).output()
    else {
        println!("there is no script(1); results on a terminal are not looked at");
        return;
    };
    let rows: Vec<serde_json::Value> = serde_json::from_str(out(&output).trim()).unwrap();
    assert_eq!(rows.len(), 50_000);
    assert_eq!(rows[49_999]["n"], 50_000);
}
