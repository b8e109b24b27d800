//! Plans of the relations that functions read: made by the session, and without the data that they would show.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use crate::error::planning_without_values;
use crate::exec::{Origin, hide, plan_input};

/// Plans what `function` reads as `argument`, such as "the input".
/// Fails with the errors of planning, without values of the data.
pub(super) async fn planned(
    session: &dyn Session,
    plan: &LogicalPlan,
    function: &str,
    argument: &str,
) -> Result<Arc<dyn ExecutionPlan>> {
    let physical = match without_leaf_pushdown(session) {
        Some(session) => plan_input(&session, plan).await,
        None => plan_input(session, plan).await,
    };
    let physical = physical.map_err(|error| planning_without_values(error, function, argument))?;
    let origin = Origin { function: function.to_owned(), argument: argument.to_owned(), names: names(plan)? };
    hide(&physical, &Arc::new(origin))
}

/// Returns the session without a rule by which DataFusion 55 reads wrong columns. Of `SELECT s['b'], -a AS a FROM t WHERE
/// ..` it takes `a` for the table's (<https://github.com/apache/datafusion/issues/25414>). `None` if the rule is off.
fn without_leaf_pushdown(session: &dyn Session) -> Option<SessionState> {
    let state = session.as_any().downcast_ref::<SessionState>()?;
    state.config_options().optimizer.enable_leaf_expression_pushdown.then(|| {
        let mut state = state.clone();
        state.config_mut().options_mut().optimizer.enable_leaf_expression_pushdown = false;
        state
    })
}

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

/// Lists the names that a query has for its tables and files.
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
