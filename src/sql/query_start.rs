//! Start of a query, by which it is told from others: all of it sees one draw, and one release of a publication.

use datafusion::catalog::Session;
use datafusion::common::Result;

use crate::exec::Seed;

/// The nanosecond in which a query started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueryStart(i64);

impl QueryStart {
    /// Returns the start of the query that is being planned; `None` if the session does not say.
    pub(super) fn of(session: &dyn Session) -> Option<Self> {
        let start = session.execution_props().query_execution_start_time;
        start.and_then(|start| start.timestamp_nanos_opt()).map(Self::at)
    }

    /// Makes the start of a query in nanoseconds since 1970.
    pub(super) fn at(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// Returns the seed that a secret gives to the query.
    pub(super) fn seed(self, secret: &Seed) -> Seed {
        secret.on_occasion(self.0 as u64)
    }

    /// Returns the seed that a secret gives to a query, if it is known; else one that nothing else has.
    /// Fails when there is no entropy.
    pub(super) fn seed_of(query: Option<Self>, secret: &Seed) -> Result<Seed> {
        query.map_or_else(Seed::from_entropy, |start| Ok(start.seed(secret)))
    }
}
