//! Completions for shells and the manual page, for installers.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;
use datafusion::error::{DataFusionError, Result};

use crate::command_line::CommandLine;

const NAME: &str = "anonymize";

/// Prints a script that completes our arguments in this shell.
/// Fails when nobody reads on.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    // Not straight to the output: the generator panics if that fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), NAME, &mut script);
    print(&script)
}

/// Prints the manual page, in roff.
/// Fails when nobody reads on.
pub(crate) fn page() -> Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(CommandLine::command()).render(&mut page).map_err(DataFusionError::IoError)?;
    print(&page)
}

fn print(text: &[u8]) -> Result<()> {
    std::io::stdout().write_all(text).map_err(DataFusionError::IoError)
}
