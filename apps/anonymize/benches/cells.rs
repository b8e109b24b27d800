//! Releases in cells against releases in one piece, by the shell, as a Markdown table. Run `cargo bench --bench
//! cells`, or with sizes of your own: `-- 100000000`. Words are a memory limit (`4g` unless there is one), which
//! one cell does not get, numbers of cells (`cells=1,16,64`), and `first` for a first release of m-invariance only.
//!
//! m-invariance with m = 10, four quasi-identifiers and 50 occupations, from Parquet to Parquet: the publisher's own view of a release, and of a
//! second one, which reads the first one's ledger and has 5% other people; and Mondrian with k = 10. Each line is a process of its own: its
//! time and its peak memory, as the operating system counts it (Linux). What is spilled is in the directory for temporary files.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROLES: &str =
    "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation, private => true";
const COLUMNS: &str = "person_id, age, gender, education, birthplace, occupation";

fn main() {
    let (mut sizes, mut limit, mut cells, mut only_first) = (Vec::new(), "4g".to_owned(), vec![1, 16, 64], false);
    for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        if let Some(counts) = argument.strip_prefix("cells=") {
            cells = counts.split(',').map(|count| count.parse().expect("cells=1,16,64")).collect();
        } else if let Ok(rows) = argument.replace('_', "").parse::<u64>() {
            sizes.push(rows);
        } else if argument == "first" {
            only_first = true;
        } else {
            limit = argument;
        }
    }
    println!("| rows | release | cells | limit | time | peak |");
    println!("|---:|:---|---:|---:|---:|---:|");
    for rows in if sizes.is_empty() { vec![10_000_000] } else { sizes } {
        compare(rows, &limit, &cells, only_first);
    }
}

fn compare(rows: u64, limit: &str, cells: &[u32], only_first: bool) {
    let here = tempfile::tempdir().unwrap();
    let changed = rows / 20;
    let first = format!("COPY (SELECT {COLUMNS} FROM census({rows})) TO '1.parquet'");
    let second =
        format!("COPY (SELECT {COLUMNS} FROM census({}) WHERE person_id > {changed}) TO '2.parquet'", rows + changed);
    for sql in [first, second].iter().take(if only_first { 1 } else { 2 }) {
        shell(here.path(), None, sql);
    }
    for &count in cells {
        let limit = (count > 1).then_some(limit);
        let release = |table: &str, previous: &str| {
            format!(
                "COPY (SELECT * FROM m_invariant('{table}', 10, {ROLES}, cells => {count}{previous})) TO 'r{table}'"
            )
        };
        let previous = ", previous => (SELECT person_id, signature, occupation FROM 'r1.parquet')";
        let mondrian = format!(
            "COPY (SELECT * FROM mondrian('1.parquet', 10, quasi => (age, gender, education, birthplace), cells => {count})) TO 'm.parquet'"
        );
        let releases = [
            ("m_invariant, first", release("1.parquet", "")),
            ("m_invariant, second", release("2.parquet", previous)),
            ("mondrian", mondrian),
        ];
        for (name, sql) in releases.iter().take(if only_first { 1 } else { 3 }) {
            let (time, peak) = shell(here.path(), limit, sql);
            let limit = limit.unwrap_or("none");
            println!(
                "| {rows} | {name} | {count} | {limit} | {time:.1} s | {:.2} GiB |",
                peak as f64 / f64::from(1 << 20)
            );
        }
    }
}

/// Runs the shell; returns seconds, and the peak of the process in KiB.
fn shell(here: &Path, limit: Option<&str>, sql: &str) -> (f64, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    // Without a limit in words: more than there can be.
    command.current_dir(here).args(["-q", "-m", limit.unwrap_or("1t"), "-c", sql]).stdout(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().expect("the shell starts");
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        peak = peak.max(high_water(child.id()));
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{sql}");
    (start.elapsed().as_secs_f64(), peak)
}

/// Returns the most memory that a process has had so far, in KiB.
fn high_water(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}
