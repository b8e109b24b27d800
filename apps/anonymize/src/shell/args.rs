//! Arguments of the shell.

use clap::{ArgMatches, Parser};
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::MaxRows;

use super::limits::Limits;

/// Arguments of the shell.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Execute these SQL statements, then exit; with --file, in the order in which they are given
    #[arg(short = 'c', long, num_args = 1.., value_name = "SQL")]
    command: Vec<String>,

    /// Execute the statements of these files, then exit; stops at the first failing statement
    #[arg(short = 'f', long, num_args = 1.., value_name = "FILE")]
    file: Vec<String>,

    /// Both, in their order.
    #[arg(skip)]
    pub(crate) steps: Vec<Step>,

    /// Fail if a check of an audit(..) that the statements run has failed
    #[arg(long)]
    pub(crate) fail_on_audit: bool,

    /// Directory that relative paths start from
    #[arg(short = 'p', long, value_name = "DIRECTORY")]
    pub(crate) data_path: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = PrintFormat::Automatic)]
    pub(crate) format: PrintFormat,

    /// Print results only
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// Rows shown of a table on a terminal, or inf; other formats and what goes to files and pipes are complete
    #[arg(long, default_value = "40")]
    pub(crate) maxrows: MaxRows,

    /// Highlight syntax
    #[arg(long)]
    pub(crate) color: bool,

    #[command(flatten)]
    pub(crate) limits: Limits,

    /// Rows of a batch
    #[arg(short = 'b', long, value_name = "ROWS")]
    pub(crate) batch_size: Option<usize>,

    /// Workers that statements run on, such as http://localhost:9001,http://localhost:9002; each is started with `anonymize worker`
    #[cfg(feature = "distributed")]
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    pub(crate) workers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Statements, or a command of a session.
    Command(String),
    /// Statements of a file.
    File(String),
}

impl Args {
    /// Returns the arguments with their commands and files in the order of the command line.
    pub(crate) fn in_order(self, matches: &ArgMatches) -> Self {
        let places = |name| matches.indices_of(name).into_iter().flatten();
        let commands = places("command").zip(self.command.iter().cloned().map(Step::Command));
        let files = places("file").zip(self.file.iter().cloned().map(Step::File));
        let mut all: Vec<(usize, Step)> = commands.chain(files).collect();
        all.sort_by_key(|(place, _)| *place);
        Self { steps: all.into_iter().map(|(_, step)| step).collect(), ..self }
    }

    /// Returns true if statements run on the workers of a cluster.
    pub(crate) fn on_workers(&self) -> bool {
        #[cfg(feature = "distributed")]
        return !self.workers.is_empty();
        #[cfg(not(feature = "distributed"))]
        return false;
    }

    /// Returns true if statements come from a person or a pipe, not the command line.
    pub(crate) fn is_interactive(&self) -> bool {
        self.steps.is_empty()
    }
}
