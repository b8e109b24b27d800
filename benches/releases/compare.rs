//! The table: one line per size and method.

use std::collections::HashMap;
use std::path::Path;

use tempfile::TempDir;

use crate::measure::{Measured, giving_back, in_child};
use crate::methods::{FILES, Method, order, spelled_out};

/// Rows of the small table, which are as different as those of large ones.
const FEW: u64 = 10_000;

/// Prints the table.
pub(crate) fn compare(sizes: &[u64], methods: &[&Method]) {
    println!(
        "| rows | method | sort + write | release | rows/s | release + write | ratio | copy | growth | of sort | memory | given back | phases in ms |"
    );
    println!("|---:|:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|:---|");
    let idle = in_child(&[]).memory;
    let few = Files::new(FEW);
    let mut before: HashMap<&str, (u64, [f64; 2])> = HashMap::new();
    for &rows in sizes {
        let files = Files::new(rows);
        for method in methods.iter().filter(|method| rows <= method.most_rows) {
            let table = method.table();
            let by = order(table);
            let query = method.release();
            let release = files.measured(&few, &query);
            // Side by side, for each method anew: a machine that others use as well is not as fast in one minute as in the next.
            let sort =
                files.measured(&few, &format!("COPY (SELECT * FROM '{table}' ORDER BY {by}) TO 'output'")).seconds;
            let write = files.measured(&few, &format!("COPY ({query}) TO 'output'"));
            // The last run has left the rows.
            let copy = files.measured(&few, "COPY (SELECT * FROM 'output') TO 'copy'").seconds;
            let given_back = giving_back(files.spelled_out(&query)).memory;
            let times_the_table = |peak: f64| (peak - idle) / (rows as f64 * method.bytes);
            let seconds = [release.seconds, sort];
            let growth = match before.insert(method.name, (rows, seconds)) {
                None => " | ".to_owned(),
                Some((rows_before, seconds_before)) => {
                    let more = rows as f64 / rows_before as f64;
                    let of = |which: usize| seconds[which] / seconds_before[which] / more;
                    format!("{:.2} | {:.2}", of(0), of(1))
                }
            };
            println!(
                "| {rows} | {} | {sort:.2} s | {:.3} s | {:.2} M | {:.2} s | {:.2} | {:.2} | {growth} | {:.1}x | {:.1}x | {} |",
                method.name,
                release.seconds,
                rows as f64 / release.seconds / 1e6,
                write.seconds,
                write.seconds / sort,
                copy / sort,
                times_the_table(release.memory),
                times_the_table(given_back),
                release.phases
            );
        }
    }
}

/// Paths of files of one size, as far as they are needed.
struct Files {
    rows: u64,
    directory: TempDir,
}

impl Files {
    fn new(rows: u64) -> Self {
        Self { rows, directory: tempfile::tempdir().unwrap() }
    }

    /// Measures a query on existing files, after a run on `few` rows.
    fn measured(&self, few: &Self, query: &str) -> Measured {
        let queries = [few, self].map(|files| {
            files.prepare(query);
            files.spelled_out(query)
        });
        Measured::of((0..3).map(|_| in_child(&queries)).collect())
    }

    /// Writes the files of a query, and their sources, each in its own process.
    fn prepare(&self, query: &str) {
        let named = FILES.iter().filter(|(name, _)| query.contains(&format!("'{name}'")));
        for (name, rows) in named.filter(|(name, _)| !Path::new(&self.path(name)).exists()) {
            self.prepare(rows);
            in_child(&[self.spelled_out(&format!("COPY ({rows}) TO '{name}'"))]);
        }
    }

    fn spelled_out(&self, query: &str) -> String {
        let spelled_out = spelled_out(query, self.rows, |name| self.path(name));
        ["output", "copy"]
            .iter()
            .fold(spelled_out, |query, name| query.replace(&format!("'{name}'"), &format!("'{}'", self.path(name))))
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(format!("{name}.parquet")).display().to_string()
    }
}
