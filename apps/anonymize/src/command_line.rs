//! Arguments of the program: those of the shell, or one of its tasks and those of this.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

#[cfg(feature = "serve")]
use crate::serve;
use crate::{advice, shell};

/// Anonymized publication of Parquet data, in SQL.
#[derive(Debug, Parser)]
#[command(name = "anonymize", version, about, args_conflicts_with_subcommands = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) task: Option<Task>,

    #[command(flatten)]
    pub(crate) shell: shell::Args,
}

/// Something else than SQL.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Advise(Box<advice::Args>),

    Experiment(Box<anonymize_experiments::Args>),

    #[cfg(feature = "serve")]
    Serve(Box<serve::Args>),

    #[cfg(feature = "distributed")]
    Worker(shell::worker::Args),

    /// Print a script that completes the arguments of this program
    Completions {
        /// The shell that is to complete them
        shell: Shell,
    },

    /// Print the manual page
    Man,
}

impl CommandLine {
    /// Reads that of the process. Ends it where it is wrong, or help is asked for.
    pub(crate) fn read() -> Self {
        Self::try_read(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    fn try_read(words: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let Self { task, shell } = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        Ok(Self { task, shell: shell.in_order(&matches) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::Step;

    #[test]
    fn arguments_are_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn steps_are_in_their_order() {
        let steps = |words: &str| CommandLine::try_read(words.split(' ')).unwrap().shell.steps;
        let (command, file) = (|sql: &str| Step::Command(sql.to_owned()), |path: &str| Step::File(path.to_owned()));
        assert_eq!(
            steps("anonymize -c a -f b c -q --command=d --file e"),
            [command("a"), file("b"), file("c"), command("d"), file("e")]
        );
        assert_eq!(steps("anonymize -q"), []);
        assert!(CommandLine::try_read(["anonymize", "-c"]).is_err());
    }
}
