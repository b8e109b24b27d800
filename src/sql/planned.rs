//! Plans of the relations that functions read: made by the session, and without the data that they would show.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use crate::error::planning_without_values;
use crate::exec::{Origin, hide};

/// Plans what `function` reads as `argument`, such as "the input".
///
/// # Errors
/// Those of planning, without values of the data.
pub(super) async fn planned(
    session: &dyn Session,
    plan: &LogicalPlan,
    function: &str,
    argument: &str,
) -> Result<Arc<dyn ExecutionPlan>> {
    let physical = session.create_physical_plan(plan).await;
    let physical = physical.map_err(|error| planning_without_values(error, function, argument))?;
    let origin = Origin { function: function.to_owned(), argument: argument.to_owned(), names: names(plan)? };
    hide(&physical, &Arc::new(origin))
}

/// Plans an optional relation.
pub(super) async fn planned_if_given(
    session: &dyn Session,
    plan: Option<&LogicalPlan>,
    function: &str,
    argument: &str,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    match plan {
        Some(plan) => planned(session, plan, function, argument).await.map(Some),
        None => Ok(None),
    }
}

/// What a query calls its tables and files.
fn names(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut names = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            names.push(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}
