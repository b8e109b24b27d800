//! The `anonymize` shell: datafusion-cli's library with our functions registered.

#![deny(clippy::unwrap_used, clippy::expect_used)]

mod shell;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match shell::run(shell::Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {}", error.strip_backtrace());
            ExitCode::FAILURE
        }
    }
}
