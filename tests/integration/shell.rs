//! The shell as a user runs it: the real binary.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::tempdir;

use super::support::path;

fn shell(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anonymize"))
        .current_dir(directory)
        .env_remove("RUST_BACKTRACE")
        .env_remove("RUST_LIB_BACKTRACE")
        .args(arguments)
        .output()
        .expect("the shell starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn commands_and_formats() {
    let here = tempdir().unwrap();
    let output =
        shell(here.path(), &["-q", "--format", "csv", "-c", "SELECT 1 AS a; SELECT 'x;y' AS b", "SELECT 3 AS c"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(out(&output), "a\n1\nb\nx;y\nc\n3\n");
    let output = shell(here.path(), &["-q", "--format", "json", "-c", "SELECT count(*) AS n FROM census(10)"]);
    assert_eq!(out(&output).trim(), r#"[{"n":10}]"#);
}

#[test]
fn a_script_stops_at_the_first_failure_and_says_where() {
    let here = tempdir().unwrap();
    let script =
        "-- A script; with a comment\nSELECT 1;\n\nSELECT *\nFROM nowhere;\nCOPY (SELECT 2 AS x) TO 'after.parquet';\n";
    std::fs::write(here.path().join("script.sql"), script).unwrap();
    let output = shell(here.path(), &["-q", "-f", "script.sql"]);
    assert!(!output.status.success());
    assert!(err(&output).contains("script.sql: statement 2 (line 4)"), "{}", err(&output));
    assert!(err(&output).contains("table 'datafusion.public.nowhere' not found"), "{}", err(&output));
    assert!(!here.path().join("after.parquet").exists(), "went on after the failure");
    let output = shell(here.path(), &["-f", "missing.sql"]);
    assert!(!output.status.success() && err(&output).contains("cannot read missing.sql"), "{}", err(&output));
}

/// DataFusion's COPY creates its file before it asks for rows, so a refusal can leave an empty one, but never a row.
#[test]
fn a_refused_release_publishes_no_row() {
    let here = tempdir().unwrap();
    let copy = "COPY (SELECT * FROM m_invariant(census(100), 60, id => person_id, quasi => age, sensitive => income)) TO 'release.parquet'";
    let output = shell(here.path(), &["-q", "-c", copy]);
    assert!(!output.status.success());
    assert!(err(&output).contains("m = 60"), "{}", err(&output));
    if let Ok(file) = File::open(here.path().join("release.parquet")) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}

#[test]
fn memory_limits_hold() {
    let here = tempdir().unwrap();
    let sql = "SELECT count(*) FROM m_invariant(census(300000), 5, id => person_id, quasi => age, sensitive => income)";
    let output = shell(here.path(), &["-q", "-m", "4m", "-c", sql]);
    assert!(!output.status.success());
    assert!(err(&output).contains("Resources exhausted"), "{}", err(&output));
    let output = shell(here.path(), &["-q", "-m", "1g", "-c", sql]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn a_pipe_is_a_script() {
    use std::io::Write;
    use std::process::Stdio;

    let here = tempdir().unwrap();
    let run = |sql: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
        command.current_dir(here.path()).args(["-q", "--format", "csv"]).env_remove("RUST_BACKTRACE");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let fine = run("\u{feff}-- a comment; with a semicolon\nSELECT count(*) AS n FROM census(12); SELECT 2 AS two");
    assert!(fine.status.success(), "{}", err(&fine));
    assert_eq!(out(&fine), "n\n12\ntwo\n2\n");
    let failing = run("SELECT bad;\nSELECT 2;\n");
    assert!(!failing.status.success() && out(&failing).is_empty());
    assert!(err(&failing).contains("standard input: statement 1 (line 1)"), "{}", err(&failing));
}

/// The README's first command, from the root of the repository.
#[test]
fn the_quickstart_runs() {
    let output = shell(Path::new(&path("")), &["-q", "-f", "sql/quickstart.sql"]);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("| age              | zip                    | disease"), "{text}");
}

/// Nobody's identifier, nor the seed, is in a released file: not in the data, not in the metadata, not in statistics.
#[test]
fn public_files_hold_nothing_but_the_release() {
    let here = tempdir().unwrap();
    let copy = "COPY (SELECT * FROM m_invariant((SELECT 'person-' || person_id AS who, age, 'job-' || income AS income, 'note-' || person_id AS note FROM census(2000)), 5,
        id => who, quasi => age, sensitive => income, seed => 5820974613)) TO 'release.parquet' OPTIONS ('format.compression' 'uncompressed')";
    let output = shell(here.path(), &["-q", "-c", copy]);
    assert!(output.status.success(), "{}", err(&output));
    let bytes = std::fs::read(here.path().join("release.parquet")).unwrap();
    let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    assert!(holds(b"job-"), "sensitive values can be found");
    for needle in [&b"person-"[..], b"note-", b"5820974613", &5820974613_u64.to_le_bytes(), b"who"] {
        assert!(!holds(needle), "{}", String::from_utf8_lossy(needle));
    }
    // The Arrow schema is encoded in the file, so it is read to be searched.
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(here.path().join("release.parquet")).unwrap()).unwrap();
    let schema = format!("{:?}", reader.schema());
    assert!(schema.contains("anonymize.release") && schema.contains("m_invariant"), "{schema}");
    for needle in ["person", "note", "5820974613", "who", "seed"] {
        assert!(!schema.contains(needle), "{needle} in {schema}");
    }
}
