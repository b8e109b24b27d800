//! Progress of a long query, for those who wait for it.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::TaskContext;

/// Step of a query. Counts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Rows of microdata read so far.
    Read {
        /// Number of rows.
        rows: usize,
    },
    /// The method's next phase began.
    Phase(&'static str),
    /// Rows of the release written so far.
    Written {
        /// Number of rows.
        rows: usize,
        /// Of so many.
        of: usize,
    },
    /// The method left rows out, because it was told to (`on_ineligible => 'withhold'`): worth a word whatever else is shown.
    Withheld {
        /// Number of rows.
        rows: usize,
        /// Of so many.
        of: usize,
    },
    /// Settings measured so far.
    Measured {
        /// Number of settings.
        done: usize,
        /// Of so many.
        of: usize,
    },
    /// A function has read what it is about, and computes.
    Computing(&'static str),
    /// The release is being made public.
    Announcing,
    /// The rows of an INSERT are those of this release: it has made it, or found that it was made before.
    Published {
        /// Its number.
        release: u64,
    },
    /// Nothing more will come.
    Done,
}

type Listener = Arc<dyn Fn(Step) + Send + Sync>;

/// Told about long queries. Put one into a session's configuration (`SessionConfig::with_extension`); it is called often and
/// from any thread.
#[derive(Clone, Default)]
pub struct Progress(Option<Listener>);

impl Progress {
    /// Calls `listener` with each step.
    pub fn new(listener: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Returns the progress of a query's session; one that tells nobody if there is none.
    pub(crate) fn of(context: &TaskContext) -> Self {
        context.session_config().get_extension::<Self>().map_or_else(Self::default, |found| found.as_ref().clone())
    }

    pub(crate) fn tell(&self, step: Step) {
        if let Some(listener) = &self.0 {
            listener(step);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress(..)")
    }
}

/// Guard that tells those who watch when a query ends, however it does.
pub(crate) struct Reporting(pub Progress);

impl Drop for Reporting {
    fn drop(&mut self) {
        self.0.tell(Step::Done);
    }
}
