//! Which hierarchies a release was made with, written into it and read from it when a call is planned.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::described::describe;
use super::resolve::wait_long_for;
use crate::error::Error;
use crate::exec::read_hierarchies;
use crate::microdata::{Hierarchies, trees_of};

/// The hierarchies of these attributes.
///
/// # Errors
/// When they are malformed, or cannot be read.
pub(super) fn read(
    function: &'static str,
    relation: &LogicalPlan,
    attributes: &[String],
    session: &SessionState,
) -> Result<Hierarchies> {
    wait_long_for(|| read_hierarchies(function, relation, attributes, session))
}

/// Compares hierarchies with those that releases were made with, as far as these say so.
///
/// # Errors
/// When they are others, are malformed, or cannot be read.
pub(super) fn check<'a>(
    function: &'static str,
    relation: &LogicalPlan,
    releases: impl IntoIterator<Item = &'a LogicalPlan>,
    attributes: &[String],
    session: &SessionState,
) -> Result<()> {
    let mut read_once = None;
    for release in releases {
        let fields: Vec<FieldRef> = match describe(function, release, session) {
            Ok(described) => described.fields,
            // Something that was computed from a release; whether that makes sense is not for here to say.
            Err(_) => release.schema().fields().iter().cloned().collect(),
        };
        let Some(made_with) = trees_of(&fields) else { continue };
        let hierarchies = match &read_once {
            Some(read) => read,
            None => read_once.insert(read(function, relation, attributes, session)?),
        };
        let there = |name: &&String| fields.iter().any(|field| field.name() == *name);
        let attributes = attributes.iter().filter(there);
        hierarchies.check_made_with(&made_with, attributes).map_err(|error: Error| error.in_function(function))?;
    }
    Ok(())
}
