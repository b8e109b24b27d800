//! What somebody should know about a statement that has not failed.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::prelude::SessionConfig;

type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// Told what is worth knowing about statements that succeed: that a snapshot was published before, say. Put one into a session's
/// configuration (`SessionConfig::with_extension`). Notices have counts, numbers of releases and names of columns, never values.
#[derive(Clone, Default)]
pub struct Notices(Option<Listener>);

impl Notices {
    /// Calls `listener` with each notice, from any thread.
    pub fn new(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Those of a query's session; of one that has none nobody is told.
    pub(crate) fn of(context: &TaskContext) -> Self {
        Self::of_config(context.session_config())
    }

    /// Returns the notices of a session with this configuration.
    pub(crate) fn of_config(config: &SessionConfig) -> Self {
        config.get_extension::<Self>().map_or_else(Self::default, |found| found.as_ref().clone())
    }

    /// Returns true if somebody is told.
    pub(crate) fn are_heard(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn tell(&self, notice: &str) {
        if let Some(listener) = &self.0 {
            listener(notice);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices(..)")
    }
}
