//! The command line of `anonymize experiment`.

use std::path::PathBuf;

use super::EXPERIMENTS;
use super::input::InputArgs;

/// Repeat the experiments of the papers
///
/// Writes the points of every figure (CSV and Parquet), a chart of each (SVG), and one page, index.html, with the papers' findings beside
/// ours. An experiment that was interrupted goes on where it was.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Experiments to run, or all
    #[arg(required = true, value_name = "NAME", value_parser = names())]
    pub(super) names: Vec<String>,

    /// Small tables: minutes instead of the papers' sizes
    #[arg(long)]
    pub(super) quick: bool,

    /// Fail if a finding of the papers is not found again
    #[arg(long)]
    pub(super) check: bool,

    /// Directory of the results
    #[arg(short, long, value_name = "DIRECTORY", default_value = "experiments")]
    pub(super) out: PathBuf,

    /// All that is random follows from it
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,

    /// Discard results of other settings that are in the directory
    #[arg(long)]
    pub(super) fresh: bool,

    #[command(flatten)]
    pub(super) input: InputArgs,
}

fn names() -> clap::builder::PossibleValuesParser {
    let names =
        EXPERIMENTS.iter().map(|experiment| clap::builder::PossibleValue::new(experiment.name).help(experiment.title));
    names.chain([clap::builder::PossibleValue::new("all")]).collect::<Vec<_>>().into()
}

impl Args {
    pub(super) fn chosen(&self, name: &str) -> bool {
        self.names.iter().any(|chosen| chosen == name || chosen == "all")
    }
}
