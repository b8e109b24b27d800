//! The command line of `anonymize experiment`.

use std::path::PathBuf;

use super::EXPERIMENTS;

/// Repeat the experiments of the papers
///
/// Writes the points of every figure (CSV and Parquet), a chart of each (SVG), and one page, index.html, with the papers' findings beside
/// ours. An experiment that was interrupted goes on where it was.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which experiments, or all
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

    /// Microdata in Parquet or CSV, instead of the synthetic census
    #[arg(long, value_name = "FILE", requires_all = ["quasi", "sensitive"])]
    pub(super) data: Option<String>,

    /// Quasi-identifiers of --data, with commas in between
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "data")]
    pub(super) quasi: Vec<String>,

    /// Sensitive attribute of --data
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub(super) sensitive: Option<String>,

    /// Identifier of --data; without it, every row is a person
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub(super) id: Option<String>,

    /// Time of --data, for reposition: a number, date or timestamp (of which the day is taken)
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub(super) time: Option<String>,

    /// Hierarchies of --data, for sequential and muco
    #[arg(long, value_name = "FILE", requires = "data")]
    pub(super) hierarchies: Option<String>,

    /// Most rows to take, at random; by default the papers' sizes
    #[arg(long, value_name = "NUMBER")]
    pub(super) rows: Option<usize>,
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
