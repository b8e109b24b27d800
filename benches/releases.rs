//! Releases from Parquet to Parquet, against DataFusion sorting and writing the same table, from 100,000 to 10,000,000 rows:
//! `cargo bench --bench releases`, or `-- 1000000` for sizes of your own.
//!
//! For each method: m-invariance with m = 2 and 10, Mondrian with k = 10, Anatomy with l = 10.
//!
//! Every measurement runs in a process of its own, so that its peak memory is its own. Times are the best of three. Columns:
//! the sort and write of the table; the release alone, and its phases; the release with writing; the ratio of that to the
//! sort; how much time grew over how much the table grew since the size before; peak memory of the process less that of an
//! idle one, as a multiple of the encoded input (four bytes a code, eight an identifier).

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use mimalloc::MiMalloc;

/// As in the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const QUASI: &str = "age, gender, education, birthplace";
const PHASES: [&str; 8] = ["encoding", "division", "balancing", "assignment", "split", "cuts", "check", "shuffle"];

/// What is measured: a name, the call on a file, and bytes of a row's codes and identifier.
const METHODS: [(&str, &str, f64); 4] = [
    ("m_invariant, m = 2", "m_invariant(FILE, 2, id => person_id, quasi => (QUASI), sensitive => occupation)", 28.0),
    ("m_invariant, m = 10", "m_invariant(FILE, 10, id => person_id, quasi => (QUASI), sensitive => occupation)", 28.0),
    ("mondrian, k = 10", "mondrian(FILE, 10, quasi => (QUASI))", 16.0),
    ("anatomy, l = 10", "anatomy(FILE, 10, quasi => (QUASI), sensitive => occupation)", 20.0),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.as_slice() {
        [task, input, method] if std::path::Path::new(input).exists() => runtime.block_on(measure(task, input, method)),
        sizes => {
            let sizes: Vec<u64> = sizes.iter().map(|size| size.parse().expect("a number of rows")).collect();
            runtime.block_on(compare(if sizes.is_empty() { &[100_000, 1_000_000, 10_000_000] } else { &sizes }));
            runtime.block_on(adult());
        }
    }
}

/// Prints one line per size and method.
async fn compare(sizes: &[u64]) {
    let directory = tempfile::tempdir().unwrap();
    println!(
        "| rows | method | sort + write | release | rows/s | release + write | ratio | growth | memory | phases in ms |"
    );
    println!("|---:|:---|---:|---:|---:|---:|---:|---:|---:|:---|");
    let idle = child("idle", "Cargo.toml", 0).memory;
    let mut before = [None; METHODS.len()];
    for &rows in sizes {
        let input = directory.path().join(format!("{rows}.parquet")).display().to_string();
        run(&session(), &format!("COPY (SELECT * FROM census({rows})) TO '{input}'")).await;
        let sort = child("sort", &input, 0);
        for (method, before) in (0..METHODS.len()).zip(&mut before) {
            let release = child("release", &input, method);
            let write = child("write", &input, method);
            let growth = before.map_or_else(String::new, |(rows_before, seconds): (u64, f64)| {
                format!("{:.2}", release.seconds / seconds / (rows as f64 / rows_before as f64))
            });
            *before = Some((rows, release.seconds));
            let (name, _, bytes) = METHODS[method];
            let encoded = rows as f64 * bytes;
            println!(
                "| {rows} | {name} | {:.2} s | {:.3} s | {:.2} M | {:.2} s | {:.2} | {growth} | {:.1}x | {} |",
                sort.seconds,
                release.seconds,
                rows as f64 / release.seconds / 1e6,
                write.seconds,
                write.seconds / sort.seconds,
                (release.memory - idle) / encoded,
                release.phases
            );
        }
    }
}

/// The table that everybody measures with, from memory: eight quasi-identifiers, k = 5, three distinct occupations.
async fn adult() {
    let directory = std::env::var("ANONYMIZE_MICRODATA")
        .unwrap_or_else(|_| format!("{}/../shared/data", env!("CARGO_MANIFEST_DIR")));
    let (file, hierarchies) = (format!("{directory}/adult.parquet"), format!("{directory}/adult_hierarchies.csv"));
    if !std::path::Path::new(&file).exists() {
        return println!("adult.parquet is not in {directory}");
    }
    let context = session();
    let rows = format!("CREATE TABLE adult AS SELECT * FROM '{file}' WHERE is_complete AND split = 'train'");
    run(&context, &rows).await;
    run(&context, &format!("CREATE TABLE hierarchies AS SELECT * FROM '{hierarchies}'")).await;
    for (name, more) in [("without", ""), ("with", ", hierarchies => hierarchies")] {
        let sql = format!(
            "SELECT * FROM mondrian(adult, 5, 3, sensitive => occupation, diversity => 'distinct', quasi => (age, workclass,
             education, marital_status, race, sex, native_country, income){more})"
        );
        let mut best = f64::INFINITY;
        for _ in 0..10 {
            let start = Instant::now();
            run(&context, &sql).await;
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("ADULT, 30,162 rows, {name} hierarchies: {:.1} ms", best * 1e3);
    }
}

struct Measured {
    seconds: f64,
    memory: f64,
    phases: String,
}

fn child(task: &str, input: &str, method: usize) -> Measured {
    let output =
        Command::new(std::env::current_exe().unwrap()).args([task, input, &method.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut parts = text.trim().splitn(3, ' ');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    Measured { seconds: next().parse().unwrap(), memory: next().parse().unwrap(), phases: next() }
}

/// In the child: prints seconds, peak bytes of the process, phases.
async fn measure(task: &str, input: &str, method: &str) {
    let output = tempfile::tempdir().unwrap();
    let output = output.path().join("output.parquet").display().to_string();
    let (_, call, _) = METHODS[method.parse::<usize>().unwrap()];
    let call = call.replace("FILE", &format!("'{input}'")).replace("QUASI", QUASI);
    let release = format!("SELECT * FROM {call}");
    let sql = match task {
        "sort" => format!("COPY (SELECT * FROM '{input}' ORDER BY {QUASI}) TO '{output}'"),
        "release" => release,
        "write" => format!("COPY ({release}) TO '{output}'"),
        _ => return println!("0 {}", peak_memory()),
    };
    let mut best = (f64::INFINITY, String::new());
    let mut memory = 0.0;
    for n in 0..3 {
        let start = Instant::now();
        let phases = run(&session(), &sql).await;
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

fn session() -> SessionContext {
    let context = SessionContext::new().enable_url_table();
    datafusion_anonymize::register_all(&context);
    context
}

/// Runs a query, drops its rows, and returns the phases of the release in it.
async fn run(context: &SessionContext, sql: &str) -> String {
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
    if plan.name() == "AnonymizeExec" {
        let metrics = plan.metrics().unwrap();
        let phase = |name: &&str| {
            let nanos = metrics.sum_by_name(&format!("{name}_time"))?.as_usize();
            Some(format!("{name} {:.0}", nanos as f64 / 1e6))
        };
        return PHASES.iter().filter_map(phase).collect::<Vec<_>>().join(", ");
    }
    plan.children().into_iter().map(phases).collect()
}

/// Peak resident memory of this process in bytes; 0 where /proc is missing.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
