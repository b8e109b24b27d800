//! An INSERT into a publication, step by step. Each step is a type that only the step before it makes: nothing is
//! written before all that can be refused was looked at, and nothing is public before it was decided.
//!
//! | step | what is known | next |
//! |---|---|---|
//! | [`Reading`] | the publication, and the period of the snapshot, whose rows are looked at as they pass | [`check`](Reading::check) |
//! | [`Checked`] | the release may be made, and its files are staged as they are made | [`staged`](Checked::staged) |
//! | [`Staged`](decided::Staged) | all rows were read, and all files are staged | [`merge`](decided::Staged::merge) |
//! | [`Merged`](decided::Merged) | what the ledger is to be | [`publish`](decided::Merged::publish) decides the release and makes it public |
//!
//! A step that fails after [`Checked`] removes what was staged.

mod checked;
mod decided;
mod reading;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;

pub(crate) use self::checked::{Checked, Snapshot};
pub(crate) use self::reading::Reading;
use super::failure::while_doing;
use super::files::MadeFile;
use super::publish::Announced;
use super::record::{Beliefs, Figures, HeldBack};

/// Reason why an INSERT makes no release.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The snapshot was published before.
    Repeated(Published),
    /// The INSERT failed.
    Failed(DataFusionError),
}

impl From<DataFusionError> for Ended {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}

/// The release that has the rows of a snapshot.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) release: u64,
    /// Rows that this INSERT has published: 0 if another one has made the release public.
    pub(crate) rows: u64,
    /// Ordinary facts of it: who has come and left.
    pub(crate) facts: Vec<String>,
    pub(crate) notices: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) figures: Figures,
    pub(crate) withheld: u64,
    pub(crate) information_loss: f64,
    /// People who were in an earlier release.
    pub(crate) returning: usize,
    /// People who were in the newest release, where that is known.
    pub(crate) stayed: Option<usize>,
    /// People of earlier releases, where that is known.
    pub(crate) known: Option<usize>,
    /// Number of people who are published with the first value in this period again.
    pub(crate) held: usize,
    /// Files of the ledger that are not staged.
    pub(crate) entries: Vec<MadeFile>,
    pub(crate) schema: SchemaRef,
    /// Beliefs of a reader who knows how probable changes are, if they are known.
    pub(crate) believed: Option<Believed>,
}

/// Beliefs of a reader about people's values.
#[derive(Debug)]
pub(crate) struct Believed {
    pub(crate) record: Beliefs,
    pub(crate) file: MadeFile,
}

/// Rows of a stream that are held back.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) record: HeldBack,
    /// The rows, if there are any.
    pub(crate) file: Option<MadeFile>,
}

/// The release that an INSERT has completed before its own. Errors about its own must say so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completed(Option<u64>);

impl Completed {
    fn of(completed: Option<Announced>) -> Self {
        Self(completed.map(|announced| announced.number))
    }

    /// Returns the same error, after the completed release if there is one.
    pub(crate) fn before(self, error: DataFusionError) -> DataFusionError {
        match self.0 {
            Some(number) => while_doing(
                format!(
                    "release {number}, which was decided earlier, is public now; what follows is about the next one"
                ),
                error,
            ),
            None => error,
        }
    }
}
