//! Long texts in little memory, through the real shell: what a process holds at most is bound, and not only what it says that it holds.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::tempdir;

use super::program::program;

/// Runs the shell with a memory limit of 512 MiB. Returns the most memory that it held, in MiB, and what it printed.
fn peak(here: &Path, sql: &[&str]) -> (usize, String) {
    let mut job = Command::new(program())
        .args(["-q", "-m", "512m", "--format", "csv", "-c"])
        .args(sql)
        .current_dir(here)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", job.id());
    let mut most = 0;
    while job.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let held = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(held.unwrap_or(0) / 1024);
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = job.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (most, String::from_utf8(output.stdout).unwrap())
}

/// Writes a file of people with a number of texts of so many bytes.
fn people(here: &Path, rows: usize, bytes: usize, texts: usize) {
    let sql = format!(
        "COPY (SELECT value AS id, value % 90 AS age, concat(repeat('long text ', {}), value % {texts}) AS disease
               FROM generate_series(1, {rows})) TO 'people.parquet'",
        bytes / 10
    );
    let output = super::support::shell(here, &["-q", "-b", "256", "-c", &sql]);
    assert!(output.status.success(), "{}", super::support::err(&output));
}

/// Of lists of long texts, a batch of 8,192 rows has half a gigabyte.
#[test]
fn a_private_view_of_long_texts_fits_the_memory() {
    let here = tempdir().unwrap();
    people(here.path(), 60_000, 10_000, 40);
    let view = "COPY (SELECT * FROM m_invariant('people.parquet', 5, id => id, quasi => age, sensitive => disease, private => true)) TO
                'private.parquet'";
    let (most, _) = peak(here.path(), &[view]);
    assert!(most < 768, "{most} MiB");
    let checked = "SELECT count(*), max(length(disease)), min(length(signature[1])) FROM 'private.parquet'";
    let (_, found) = peak(here.path(), &[checked]);
    assert!(found.contains("60000,100") && found.contains(",10001"), "{found}");
}

/// A ledger has the signatures of everybody: of long texts, many times what it takes on disk.
#[test]
fn a_publication_of_long_texts_fits_the_memory() {
    let here = tempdir().unwrap();
    people(here.path(), 2_000, 100_000, 20);
    let declare =
        "CREATE EXTERNAL TABLE p (id BIGINT, age BIGINT, disease VARCHAR) STORED AS PUBLICATION LOCATION 'p/' OPTIONS
                   ('method' 'm_invariant', 'm' '5', 'id' 'id', 'quasi' 'age', 'sensitive' 'disease')";
    let insert = |years: usize| format!("INSERT INTO p SELECT id, age + {years}, disease FROM 'people.parquet'");
    let begin = declare.replace("('method'", "('begin' 'true', 'method'");
    for (years, declare) in [(0, begin.as_str()), (1, declare)] {
        let (most, _) = peak(here.path(), &[declare, &insert(years)]);
        assert!(most < 768, "{years}: {most} MiB");
    }
    let (most, found) = peak(here.path(), &[declare, "SELECT count(*) FROM audit(p) WHERE NOT passed"]);
    assert!(found.ends_with("\n0\n"), "{found}");
    assert!(most < 768, "{most} MiB");
}
