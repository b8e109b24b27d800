//! Measurement in a process of its own: this program again, with a query to run.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;

/// The first argument of such a process; next come the queries that it runs.
pub(crate) const TASK: &str = "measure";

/// Measurement that a process tells of the last of its queries.
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// Peak bytes of the process.
    pub(crate) memory: f64,
    /// Times of the release's phases.
    pub(crate) phases: String,
}

impl Measured {
    /// Returns the time and phases of the fastest one, and the middle peak. Now and then freed memory is not given back in time.
    pub(crate) fn of(mut all: Vec<Self>) -> Self {
        all.sort_by(|one, other| one.memory.total_cmp(&other.memory));
        let memory = all[all.len() / 2].memory;
        Self { memory, ..all.into_iter().min_by(|one, other| one.seconds.total_cmp(&other.seconds)).unwrap() }
    }
}

/// Runs queries in another process with the allocator of the shell, which keeps memory.
pub(crate) fn in_child(queries: &[String]) -> Measured {
    run_child("50", queries)
}

/// Runs a query in another process, whose allocator gives back at once what is freed.
pub(crate) fn giving_back(query: String) -> Measured {
    run_child("0", &[query])
}

fn run_child(delay: &str, queries: &[String]) -> Measured {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env("MIMALLOC_PURGE_DELAY", delay);
    let output = child.arg(TASK).args(queries).output().unwrap();
    assert!(output.status.success(), "{}: {queries:?}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut parts = text.trim().splitn(3, ' ');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    Measured { seconds: next().parse().unwrap(), memory: next().parse().unwrap(), phases: next() }
}

/// Measures in that process: prints the seconds of the last query, peak bytes of the process, phases.
pub(crate) async fn measure(queries: &[String]) {
    let mut last = (0.0, String::new());
    for sql in queries {
        let start = Instant::now();
        let phases = run(&session(), sql).await;
        last = (start.elapsed().as_secs_f64(), phases);
    }
    println!("{} {} {}", last.0, peak_memory(), last.1);
}

pub(crate) fn session() -> SessionContext {
    let context = SessionContext::new().enable_url_table();
    datafusion_anonymize::register_all(&context).unwrap();
    context
}

/// Runs a query, drops its rows, and returns the phases of the release in it.
pub(crate) async fn run(context: &SessionContext, sql: &str) -> String {
    let frame = context.sql(sql).await.unwrap();
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.unwrap();
    let mut rows = execute_stream(Arc::clone(&plan), task).unwrap();
    while let Some(batch) = rows.next().await {
        batch.unwrap();
    }
    phases(&plan)
}

fn phases(plan: &Arc<dyn ExecutionPlan>) -> String {
    let milliseconds = |nanos: usize| format!("{:.0}", nanos as f64 / 1e6);
    match plan.name() {
        "AnonymizeExec" => {
            let metrics = plan.metrics().unwrap();
            let phase = |metric: &MetricValue| match metric {
                MetricValue::Time { name, time } => {
                    Some(format!("{} {}", name.strip_suffix("_time")?, milliseconds(time.value())))
                }
                _ => None,
            };
            metrics.iter().filter_map(|metric| phase(metric.value())).collect::<Vec<_>>().join(", ")
        }
        "RepositionExec" => {
            let computing = plan.metrics().and_then(|metrics| metrics.elapsed_compute());
            format!("repositioning {}", milliseconds(computing.unwrap_or(0)))
        }
        _ => plan.children().into_iter().map(phases).collect(),
    }
}

/// Returns the peak resident memory of this process in bytes; 0 where /proc is missing.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
