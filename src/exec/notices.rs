//! Notices about a statement that has not failed.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::prelude::SessionConfig;

type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// Told what is worth knowing about statements that succeed: that a snapshot was published before, say. Put one into a session's
/// configuration (`SessionConfig::with_extension`). Notices have counts, numbers of releases and names of columns, never values.
///
/// Ordinary facts, such as how many people of a snapshot were in an earlier release, are notices too, unless a listener of their own hears them
/// ([`with_facts`](Self::with_facts)).
#[derive(Clone, Default)]
pub struct Notices {
    listener: Option<Listener>,
    of_facts: Option<Listener>,
}

impl Notices {
    /// Calls `listener` with each notice, from any thread.
    pub fn new(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Arc::new(listener)), of_facts: None }
    }

    /// Calls another `listener` with what is ordinary.
    #[must_use]
    pub fn with_facts(self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { of_facts: Some(Arc::new(listener)), ..self }
    }

    /// Returns the notices of a query's session; without one, nobody is told.
    pub(crate) fn of(context: &TaskContext) -> Self {
        Self::of_config(context.session_config())
    }

    pub(crate) fn of_config(config: &SessionConfig) -> Self {
        config.get_extension::<Self>().map_or_else(Self::default, |found| found.as_ref().clone())
    }

    pub(crate) fn are_heard(&self) -> bool {
        self.listener.is_some()
    }

    pub(crate) fn tell(&self, notice: &str) {
        if let Some(listener) = &self.listener {
            listener(notice);
        }
    }

    /// Tells what is no more than usual.
    #[cfg(feature = "publication")]
    pub(crate) fn tell_fact(&self, fact: &str) {
        if let Some(listener) = self.of_facts.as_ref().or(self.listener.as_ref()) {
            listener(fact);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices(..)")
    }
}
