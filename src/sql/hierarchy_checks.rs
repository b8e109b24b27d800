//! Hierarchies that a release was made with: written into it, and compared with those of a call.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::block_on_io::block_on_io;
use super::release_description::describe;
use super::session_tables::session_state;
use crate::error::Error;
use crate::exec::read_hierarchies;
use crate::microdata::{Hierarchies, Trees, trees_of};

/// Returns the hierarchies of these attributes.
/// Fails when they are malformed, or cannot be read.
pub(super) fn read(
    function: &'static str,
    relation: &LogicalPlan,
    attributes: &[String],
    session: &SessionState,
) -> Result<Hierarchies> {
    block_on_io(|| read_hierarchies(function, relation, attributes, session))
}

/// Hierarchies that must be those that releases were made with. They are read when the table of the call is scanned.
#[derive(Debug)]
pub(super) struct MadeWith {
    function: &'static str,
    relation: LogicalPlan,
    attributes: Vec<String>,
    /// The hierarchies of each release that says them, and the attributes among its columns.
    releases: Vec<(Trees, Vec<String>)>,
}

impl MadeWith {
    /// Reads what releases say of their hierarchies; `None` if none says anything.
    pub(super) fn of<'a>(
        function: &'static str,
        relation: &LogicalPlan,
        releases: impl IntoIterator<Item = &'a LogicalPlan>,
        attributes: &[String],
        session: &SessionState,
    ) -> Option<Self> {
        let said = |release: &LogicalPlan| {
            let fields: Vec<FieldRef> = match describe(function, release, session) {
                Ok(described) => described.fields,
                // Something that was computed from a release; whether that makes sense is not for here to say.
                Err(_) => release.schema().fields().iter().cloned().collect(),
            };
            let there = |name: &&String| fields.iter().any(|field| field.name() == *name);
            Some((trees_of(&fields)?, attributes.iter().filter(there).cloned().collect()))
        };
        let releases: Vec<(Trees, Vec<String>)> = releases.into_iter().filter_map(said).collect();
        let (relation, attributes) = (relation.clone(), attributes.to_vec());
        (!releases.is_empty()).then_some(Self { function, relation, attributes, releases })
    }

    /// Fails when the hierarchies are others, are malformed, or cannot be read.
    pub(super) async fn check(&self, session: &dyn Session) -> Result<()> {
        let session = session_state(session)?;
        let hierarchies = read_hierarchies(self.function, &self.relation, &self.attributes, session).await?;
        for (made_with, attributes) in &self.releases {
            let checked = hierarchies.check_made_with(made_with, attributes);
            checked.map_err(|error: Error| error.in_function(self.function))?;
        }
        Ok(())
    }
}
