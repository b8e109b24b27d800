//! One measurement, in a process of its own: this program again, with a query to run.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;

/// The first argument of such a process; next come how many times, and the query.
pub(crate) const TASK: &str = "measure";

/// What a process tells.
pub(crate) struct Measured {
    /// The best time.
    pub(crate) seconds: f64,
    /// Peak bytes of the process.
    pub(crate) memory: f64,
    /// Times of the release's phases.
    pub(crate) phases: String,
}

/// Runs a query so many times in another process, whose allocator keeps what is freed as long as the shell's does.
pub(crate) fn in_child(times: usize, sql: &str) -> Measured {
    run_child("50", times, sql)
}

/// Runs a query once in another process, whose allocator gives back at once what is freed.
pub(crate) fn giving_back(sql: &str) -> Measured {
    run_child("0", 1, sql)
}

fn run_child(delay: &str, times: usize, sql: &str) -> Measured {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env("MIMALLOC_PURGE_DELAY", delay);
    let output = child.args([TASK, &times.to_string(), sql]).output().unwrap();
    assert!(output.status.success(), "{}: {sql}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut parts = text.trim().splitn(3, ' ');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    Measured { seconds: next().parse().unwrap(), memory: next().parse().unwrap(), phases: next() }
}

/// In that process: prints the best time in seconds, peak bytes of the process, phases.
pub(crate) async fn measure(times: usize, sql: &str) {
    let mut best = (f64::INFINITY, String::new());
    let mut memory = peak_memory();
    for n in 0..times {
        let start = Instant::now();
        let phases = run(&session(), sql).await;
        let seconds = start.elapsed().as_secs_f64();
        if n == 0 {
            // Later runs only add what the allocator keeps.
            memory = peak_memory();
        }
        if seconds < best.0 {
            best = (seconds, phases);
        }
    }
    println!("{} {memory} {}", best.0, best.1);
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

/// Peak resident memory of this process in bytes; 0 where /proc is missing.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
