//! Command line arguments.

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use datafusion_cli::pool_type::PoolType;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::MaxRows;

use crate::advice;

/// Anonymized publication of Parquet data, in SQL.
#[derive(Debug, Parser)]
#[command(name = "anonymize", version, about, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: Option<Task>,

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

/// Share of the machine that queries may use.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// Memory that queries may use, such as 500m or 8g; by default three quarters of what the process can have, where that is known: the machine's, or its
    /// control groups'. The process takes more: 64 MiB for itself, and up to a third of the limit for what is freed and not yet given back
    #[arg(short = 'm', long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<usize>,

    /// Division of the memory among queries: greedy or fair
    #[arg(long, default_value_t = PoolType::Fair)]
    pub(crate) mem_pool_type: PoolType,

    /// Disk that queries may use for spilling, such as 100g
    #[arg(short = 'd', long, value_name = "SIZE", value_parser = size)]
    pub(crate) disk_limit: Option<usize>,
}

/// Something else than SQL.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Advise(Box<advice::Args>),

    Experiment(Box<anonymize_experiments::Args>),

    #[cfg(feature = "serve")]
    Serve(Box<crate::serve::Args>),

    #[cfg(feature = "distributed")]
    Worker(super::worker::Args),

    /// Print a script that completes the arguments of this program
    Completions {
        /// The shell that is to complete them
        shell: Shell,
    },

    /// Print the manual page
    Man,
}

/// Command or file that is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Statements, or a command of a session.
    Command(String),
    /// Statements of a file.
    File(String),
}

impl Args {
    /// Reads the arguments of the process. Ends it where they are wrong, or help is asked for.
    pub(crate) fn read() -> Self {
        Self::try_read(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    fn try_read(words: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let mut args = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        args.steps = steps(&matches, &args);
        Ok(args)
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

/// Returns the commands and files in the order of the command line.
fn steps(matches: &ArgMatches, args: &Args) -> Vec<Step> {
    let places = |name| matches.indices_of(name).into_iter().flatten();
    let commands = places("command").zip(args.command.iter().cloned().map(Step::Command));
    let files = places("file").zip(args.file.iter().cloned().map(Step::File));
    let mut all: Vec<(usize, Step)> = commands.chain(files).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, step)| step).collect()
}

/// Reads bytes in powers of 1024: `512`, `500m`, `8g`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text[digits.len()..].trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(format!("'{text}' has an unknown unit; write 500m or 8g")),
    };
    let number: usize = digits.parse().map_err(|_| format!("'{text}' is not a size; write 500m or 8g"))?;
    let bytes = 1024_usize.pow(power).checked_mul(number).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| format!("'{text}' is not a possible size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn steps_are_in_their_order() {
        let steps = |words: &str| Args::try_read(words.split(' ')).unwrap().steps;
        let (command, file) = (|sql: &str| Step::Command(sql.to_owned()), |path: &str| Step::File(path.to_owned()));
        assert_eq!(
            steps("anonymize -c a -f b c -q --command=d --file e"),
            [command("a"), file("b"), file("c"), command("d"), file("e")]
        );
        assert_eq!(steps("anonymize -q"), []);
        assert!(Args::try_read(["anonymize", "-c"]).is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("2k"), Ok(2048));
        assert_eq!(size("3GB"), Ok(3 << 30));
        assert_eq!(size("1MiB"), Ok(1 << 20));
        for wrong in ["", "g", "1x", "-1m", "0", "999999999999t"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
