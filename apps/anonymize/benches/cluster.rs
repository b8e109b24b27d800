//! A release by two workers of one core against one process of two cores. The shell makes both; the output is a table in Markdown: `cargo
//! bench --features distributed --bench cluster`, or with sizes of your own: `-- 100000000`. Words are numbers of cells (`cells=16,64`).
//!
//! m-invariance with m = 10, four quasi-identifiers and 50 occupations, from Parquet to Parquet, within 4 GiB: of the process, or 2 GiB of each worker.
//! Workers are pinned to a core each (Linux, `taskset`), and what is left to do on the coordinator is done on the same two. Bytes are those that
//! the engine counts on connections between processes, compressed as they are sent. Times are of one run, in the order of the columns.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const ROLES: &str =
    "id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation, private => true";
const COLUMNS: &str = "person_id, age, gender, education, birthplace, occupation";

fn main() {
    let (mut sizes, mut cells) = (Vec::new(), vec![16]);
    for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        match argument.strip_prefix("cells=") {
            Some(counts) => cells = counts.split(',').map(|count| count.parse().expect("cells=16,64")).collect(),
            None => sizes.push(argument.replace('_', "").parse::<u64>().expect("a number of rows, or cells=..")),
        }
    }
    println!("| rows | cells | one process, two cores | two workers, one core each | ratio | bytes a row, shipped |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for rows in if sizes.is_empty() { vec![10_000_000] } else { sizes } {
        let here = tempfile::tempdir().unwrap();
        let made = format!("COPY (SELECT {COLUMNS} FROM census({rows})) TO 'people.parquet'");
        shell(here.path(), &[], &made);
        for &count in &cells {
            let release = |to: &str| {
                format!(
                    "EXPLAIN ANALYZE COPY (SELECT * FROM m_invariant('people.parquet', 10, {ROLES}, cells => {count})) TO '{to}'"
                )
            };
            let (alone, _) = shell(here.path(), &["-m", "4g"], &release("alone.parquet"));
            let workers = [0, 1].map(|core| Worker::start(here.path(), core));
            let urls = workers.iter().map(|worker| worker.url.as_str()).collect::<Vec<_>>().join(",");
            let (shared, plan) = shell(here.path(), &["--workers", &urls], &release("shared.parquet"));
            let bytes = shipped(&plan) / rows as f64;
            println!("| {rows} | {count} | {alone:.1} s | {shared:.1} s | {:.2} | {bytes:.1} |", shared / alone);
        }
    }
}

/// A worker on one core, while it lives.
struct Worker {
    process: Child,
    url: String,
}

impl Worker {
    fn start(here: &Path, core: u32) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string(), env!("CARGO_BIN_EXE_anonymize"), "worker", "--port", "0", "-m", "2g"]);
        let mut process = command.current_dir(here).stdout(Stdio::piped()).spawn().expect("taskset");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { process, url }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the shell; returns seconds and its output.
fn shell(here: &Path, arguments: &[&str], sql: &str) -> (f64, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    command.current_dir(here).args(["-q", "--format", "csv"]).args(arguments).args(["-c", sql]);
    let start = Instant::now();
    let output = command.output().expect("the shell starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (start.elapsed().as_secs_f64(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the bytes that all connections have carried.
fn shipped(plan: &str) -> f64 {
    let counted = plan.split("bytes_transferred=").skip(1).map(|rest| {
        let text: String = rest.chars().take_while(|c| !matches!(c, ',' | ']' | '}')).collect();
        let (number, unit) = text.trim().split_once(' ').expect("a number and a unit");
        let unit = match unit {
            "B" => 1.0,
            "KB" => 1024.0,
            "MB" => 1024.0 * 1024.0,
            "GB" => 1024.0 * 1024.0 * 1024.0,
            other => panic!("{other}"),
        };
        number.parse::<f64>().expect("a number") * unit
    });
    counted.sum()
}
