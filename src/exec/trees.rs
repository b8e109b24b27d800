//! Hierarchies, read ahead of the query that uses them: a release says in its schema which ones it was made with.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;

use super::{Origin, hide, plan_input};
use crate::error::{Error, planning_without_values};
use crate::microdata::Hierarchies;

/// Returns the hierarchies of these attributes, from a relation of attribute, leaf and levels.
/// Fails when they are malformed, or cannot be read.
pub(crate) async fn read_hierarchies(
    function: &'static str,
    relation: &LogicalPlan,
    attributes: &[String],
    session: &SessionState,
) -> Result<Hierarchies> {
    let named = |error: Error| error.in_function(function);
    let plan = plan_input(session, relation).await;
    let plan = plan.map_err(|error| planning_without_values(error, function, "hierarchies"))?;
    let origin = Origin { function: function.to_owned(), argument: "hierarchies".to_owned(), names: Vec::new() };
    let mut rows = execute_stream(hide(&plan, &Arc::new(origin))?, session.task_ctx())?;
    let mut read = Hierarchies::new(attributes.iter());
    while let Some(batch) = rows.next().await {
        read.append(&batch?).map_err(named)?;
    }
    read.finish().map_err(named)
}
