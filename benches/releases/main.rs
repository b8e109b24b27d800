//! Releases of every method from Parquet to Parquet, against DataFusion's sort and write. The output is a table in
//! Markdown: `cargo bench --bench releases`.
//!
//! From 100,000 to 10,000,000 rows; sequential releases to 1,000,000, as they take longest. Numbers are sizes in place of these, and any other
//! words choose methods whose names contain one of them: `-- 1000000 muco second`. [`methods`] lists them. `non_sequential`, the
//! baseline of sequential releases, is measured by the benchmark `sequential`.
//!
//! Every measurement runs in a process of its own, as a nightly release does: its peak memory is its own, and the system has to give it all of that, where
//! a second release in the process would have found much of it, and of a small table all. Before, the process runs the same query on a small
//! table, so that what happens once, such as to start threads, is not measured. Whatever a release needs, its table, an earlier release's ledger,
//! worlds, is a Parquet file that another process has written before. Times are the best of three such processes. Columns:
//!
//! - sort + write: DataFusion sorting the table, by its quasi-identifiers or a stream by its time, and writing it, measured next to the release;
//! - release, rows/s: the release alone, its rows dropped as they come;
//! - release + write: the release and writing it, with files and ledgers read as in the column before;
//! - ratio: of release + write to sort + write;
//! - copy: what that would be if the rows were read from where they have been written, and nothing was computed;
//! - growth: how much the time of the release grew over how much the table grew, since the size before;
//! - of sort: the same of sort + write;
//! - memory: the middle one of the peaks of three processes that make the release, less that of an idle one, as a multiple of the encoded table: four bytes a
//!   code, eight an identifier; of a stream, the bytes of its columns. What a ledger or worlds take is in the peak only;
//! - given back: the same of another run, in which the allocator gives back at once what is freed (`MIMALLOC_PURGE_DELAY=0`), and not after 50 ms, as in
//!   the shell;
//! - phases in ms: of the release, where its method tells them; of a stream, all its computing.
//!
//! Growth is bounded by the cache: a table of a million rows, and what is made of it, fits into that of many machines, and one of ten million does not.
//! A second table tells what a look at a row costs at each size. After it come lines of ADULT, which everybody measures with, unless words
//! choose other methods.

mod adult;
mod compare;
mod looks;
mod measure;
mod methods;

use mimalloc::MiMalloc;

/// The allocator of the shell.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let [task, queries @ ..] = arguments.as_slice()
        && task == measure::TASK
    {
        return runtime.block_on(measure::measure(queries));
    }
    let (mut sizes, mut words) = (Vec::new(), Vec::new());
    for argument in arguments {
        match argument.replace('_', "").parse::<u64>() {
            Ok(rows) => sizes.push(rows),
            Err(_) => words.push(argument.to_lowercase()),
        }
    }
    if sizes.is_empty() {
        sizes = vec![100_000, 1_000_000, 10_000_000];
    }
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let methods: Vec<&methods::Method> = methods::METHODS.iter().filter(|method| chosen(method.name)).collect();
    if !methods.is_empty() {
        compare::compare(&sizes, &methods);
        looks::looks(&sizes);
    }
    if chosen("adult") {
        runtime.block_on(adult::adult());
    } else if methods.is_empty() {
        let names: Vec<&str> = methods::METHODS.iter().map(|method| method.name).collect();
        panic!("no method is called like that; there are: {}; adult", names.join("; "));
    }
}
