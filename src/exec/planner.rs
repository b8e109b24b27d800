//! Planner of the plans that operators read.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{Result, plan_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

/// Plans inputs in a session whose own planner makes plans for a cluster: a part of such a plan must not be one itself.
#[derive(Debug, Clone)]
pub(crate) struct InputPlanner(pub Arc<dyn QueryPlanner + Send + Sync>);

/// Prefix of the options of an engine that distributes plans.
const CLUSTER: &str = "distributed";

/// Plans a relation as a part of another plan.
/// Fails with the errors of planning; and when the session plans for a cluster that does not know our operators.
pub(crate) async fn plan_input(session: &dyn Session, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(planner) = session.config().get_extension::<InputPlanner>() {
        let plan = session.optimize(plan)?;
        return planner.0.create_physical_plan(&plan, session).await;
    }
    if session.config_options().extensions.iter().any(|(prefix, _)| prefix == CLUSTER) {
        // A worker would not know what to do, or would do it to a part of the table.
        return plan_err!(
            "this session plans for a cluster whose workers do not know the operators of datafusion-anonymize; make the session with \
             datafusion_anonymize::distributed::coordinator (cargo feature distributed), and the workers with distributed::worker"
        );
    }
    session.create_physical_plan(plan).await
}
