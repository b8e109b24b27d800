//! The `anonymize` shell: datafusion-cli's library with our functions registered; the server for readers; and the experiments of the papers.

#![deny(clippy::unwrap_used, clippy::expect_used)]

mod advice;
mod experiments;
#[cfg(feature = "serve")]
mod serve;
mod shell;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Bytes of a thread's stack. Statements of readers become trees, which are walked and dropped wherever they are.
const STACK: usize = 16 << 20;

fn main() -> ExitCode {
    shell::allocator::keep_less();
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(run()),
        Err(error) => {
            eprintln!("Error: no threads to work with: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> ExitCode {
    let mut args = shell::Args::parse();
    let end = match args.task.take() {
        Some(shell::Task::Experiment(args)) => experiments::run(*args).await,
        Some(shell::Task::Advise(args)) => advice::run(*args).await,
        #[cfg(feature = "serve")]
        Some(shell::Task::Serve(args)) => serve::run(*args).await,
        #[cfg(feature = "distributed")]
        Some(shell::Task::Worker(args)) => shell::worker::run(args).await,
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
