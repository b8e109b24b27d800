//! Failed checks of audits, counted for whoever runs a script.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "publication")]
use datafusion::execution::TaskContext;

/// Counts the failed checks of all audits of a session. Put one into the session's configuration
/// (`SessionConfig::with_extension`) and look at it when the queries have run.
#[derive(Debug, Clone, Default)]
pub struct FailedAudits(Arc<AtomicUsize>);

impl FailedAudits {
    /// Failed checks so far. A query that asks for some of the checks runs all.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Notes failed checks of a query.
    #[cfg(feature = "publication")]
    pub(crate) fn note(context: &TaskContext, failed: usize) {
        if let Some(audits) = context.session_config().get_extension::<Self>() {
            audits.0.fetch_add(failed, Ordering::SeqCst);
        }
    }
}
