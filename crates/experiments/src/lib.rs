//! `anonymize experiment`: the experiments of the papers, on open data, with charts.
//!
//! ```text
//! args.rs          the command line
//! input.rs         the microdata: the synthetic census or a file, roles, rows in random order
//! harness.rs       a session in which one run takes place; SQL in, numbers out
//! series.rs        snapshots of people who come and leave; invariant.rs publishes them
//! changes.rs       snapshots of people whose values change
//! covered.rs       what a reader finds in a generalized release by some of somebody's quasi-identifiers
//! experiment.rs    what an experiment is: runs, figures, findings
//! results.rs       points and what is read off them
//! store.rs         a directory with the results of each run, so that an experiment can be resumed
//! chart.rs         a figure as SVG
//! page.rs          one HTML page of all experiments in a directory
//! ```
//!
//! The others are an experiment each. A run is what is computed and stored as a whole; it sees nothing of other runs, and all that is
//! random in it follows from the seed.

#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used)]

mod args;
mod changes;
mod chart;
mod cost;
mod counterfeits;
mod covered;
mod dynamic;
mod experiment;
mod harness;
mod input;
mod internal_updates;
mod invariant;
mod muco;
mod page;
mod query_error;
mod reposition;
mod results;
mod sequential;
mod series;
mod store;
mod vulnerable;

use std::sync::Arc;
use std::time::Instant;

use datafusion::common::exec_err;
use datafusion::error::{DataFusionError, Result};
use indicatif::{ProgressBar, ProgressStyle};

pub use args::Args;
pub use chart::draw;
use experiment::Experiment;
pub use experiment::Figure;
use harness::Harness;
use input::Input;
pub use page::PAGE_CSS;
use results::Results;
pub use results::number;
use store::Store;
pub use store::write;

/// All experiments, in the order of the page.
const EXPERIMENTS: [Experiment; 9] = [
    vulnerable::EXPERIMENT,
    counterfeits::EXPERIMENT,
    query_error::EXPERIMENT,
    cost::EXPERIMENT,
    internal_updates::EXPERIMENT,
    sequential::EXPERIMENT,
    reposition::EXPERIMENT,
    muco::EXPERIMENT,
    dynamic::EXPERIMENT,
];

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Runs experiments, and writes their results and the page.
///
/// # Errors
/// When microdata do not fit, results of other settings are in the directory, a run or a write fails; with `--check` also when a finding of
/// a paper is not found again.
pub async fn run(args: Args) -> Result<()> {
    let mut failed = 0;
    for experiment in EXPERIMENTS.iter().filter(|experiment| args.chosen(experiment.name)) {
        let input = Input::read(&args.input, experiment.census(), args.quick, args.seed).await?;
        let store = Store::open(&args, experiment, &input)?;
        let begin = Instant::now();
        let results = runs(experiment, Arc::new(input), &store, args.seed).await?;
        let findings = (experiment.findings)(&results);
        for finding in findings.iter().filter(|finding| finding.holds == Some(false)) {
            eprintln!("{}: not found again: {} Here: {}", experiment.name, finding.claim, finding.here);
            failed += 1;
        }
        store.finish(experiment, &results, &findings).await?;
        eprintln!("{}: {:.0} s", experiment.name, begin.elapsed().as_secs_f64());
    }
    println!("{}", page::write(&args.out)?.display());
    match failed {
        failed if failed > 0 && args.check => {
            exec_err!("experiment: {failed} findings of the papers were not found again")
        }
        _ => Ok(()),
    }
}

/// Returns the results of all runs; those that are stored are not repeated.
async fn runs(experiment: &Experiment, input: Arc<Input>, store: &Store, seed: u64) -> Result<Results> {
    let runs = (experiment.runs)(&input);
    let bar = ProgressBar::new(runs.iter().map(|run| run.steps).sum());
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {eta} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(experiment.name);
    let mut results = Results::default();
    let mut done = 0;
    for run in runs {
        let (key, steps) = (run.key.clone(), run.steps);
        bar.set_message(key.clone());
        let points = match store.stored(&key)? {
            Some(points) => points,
            None => {
                let harness = Arc::new(Harness::new(Arc::clone(&input), format!("{seed} {key}"), bar.clone())?);
                let begin = Instant::now();
                let points = run.execute(harness).await?;
                store.keep(&key, begin.elapsed(), &points)?;
                points
            }
        };
        done += steps;
        bar.set_position(done);
        results.extend(points);
    }
    bar.finish_and_clear();
    Ok(results)
}
