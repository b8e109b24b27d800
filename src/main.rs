//! The `anonymize` shell: datafusion-cli's library with our functions registered; and the experiments of the papers.

#![deny(clippy::unwrap_used, clippy::expect_used)]

mod advice;
mod experiments;
mod shell;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = shell::Args::parse();
    let end = match args.task.take() {
        Some(shell::Task::Experiment(args)) => experiments::run(*args).await,
        Some(shell::Task::Advise(args)) => advice::run(*args).await,
        Some(shell::Task::Completions { shell }) => shell::manual::completions(shell),
        Some(shell::Task::Man) => shell::manual::page(),
        None => shell::run(args).await,
    };
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {}", shell::failure(&error));
            ExitCode::FAILURE
        }
    }
}
