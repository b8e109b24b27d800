//! The `anonymize` shell: datafusion-cli's library with our functions registered; the server for readers; and the experiments of the papers.

#![deny(clippy::unwrap_used, clippy::expect_used)]

mod advice;
mod command_line;
mod manual;
#[cfg(feature = "serve")]
mod serve;
mod shell;

use std::io::IsTerminal;
use std::process::ExitCode;

use command_line::{CommandLine, Task};
use datafusion::error::{DataFusionError, Result};
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
    let CommandLine { task, shell: args } = CommandLine::read();
    let end = match task {
        Some(Task::Experiment(args)) => unless_told(anonymize_experiments::run(*args)).await,
        Some(Task::Advise(args)) => unless_told(advice::run(*args)).await,
        #[cfg(feature = "serve")]
        Some(Task::Serve(args)) => serve::run(*args).await.map_err(End::Failed),
        #[cfg(feature = "distributed")]
        Some(Task::Worker(args)) => shell::worker::run(args).await.map_err(End::Failed),
        Some(Task::Completions { shell }) => manual::completions(shell).map_err(End::Failed),
        Some(Task::Man) => manual::page().map_err(End::Failed),
        None if args.is_interactive() && std::io::stdin().is_terminal() => shell::run(args).await.map_err(End::Failed),
        None => Box::pin(unless_told(shell::run(args))).await,
    };
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(End::Told(status)) => {
            shell::signals::say_so();
            ExitCode::from(status)
        }
        Err(End::Failed(error)) => {
            eprintln!("Error: {}", shell::failure(&error));
            ExitCode::FAILURE
        }
    }
}

/// Reason why a task has not come to its end.
enum End {
    Failed(DataFusionError),
    /// By a signal, which makes this exit status.
    Told(u8),
}

/// Runs a job until it ends or is told to end; the files that did not fit into its memory go with it.
async fn unless_told(job: impl Future<Output = Result<()>>) -> Result<(), End> {
    tokio::select! {
        // Until it waits for the first time, which it does when standard input has been read, signals end the process by themselves.
        biased;
        end = job => end.map_err(End::Failed),
        status = shell::signals::told_to_end(shell::signals::GRACE) => Err(End::Told(status)),
    }
}
