//! What is done is done: the engine waits for what workers have left to say after the last row, and if one is lost by then, that is an error
//! of the query. Of a statement that publishes, it would be said that nothing was published.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use datafusion_distributed::{DistributedExec, NetworkBoundaryExt};
use futures::StreamExt;

/// A distributed plan that ends with the row that says how many were written.
#[derive(Debug)]
struct SettledExec(Arc<dyn ExecutionPlan>);

/// The plan, which ends with its first row if it writes.
pub(super) fn settled(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.is::<DistributedExec>() && writes(&plan) {
        true => Arc::new(SettledExec(plan)),
        false => plan,
    }
}

fn writes(plan: &Arc<dyn ExecutionPlan>) -> bool {
    #[cfg(feature = "publication")]
    if plan.is::<crate::exec::PublishExec>() {
        return true;
    }
    plan.is::<DataSinkExec>() || (!plan.is_network_boundary() && plan.children().into_iter().any(writes))
}

impl DisplayAs for SettledExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(t, f)
    }
}

impl ExecutionPlan for SettledExec {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.0.as_ref())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self(Arc::clone(&self.0).replace_children(children, options)?)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a distributed plan has one partition, not {partition}");
        }
        let rows = self.0.execute(partition, context)?;
        let schema = rows.schema();
        // Not asked for more once there is a row.
        let first = futures::stream::unfold(Some(rows), |rows| async {
            let mut rows = rows?;
            let batch = rows.next().await?;
            let written = batch.as_ref().is_ok_and(|batch| batch.num_rows() > 0);
            Some((batch, (!written).then_some(rows)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, first)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }
}
