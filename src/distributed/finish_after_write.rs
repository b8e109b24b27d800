//! Ends the stream once rows are written. So a late error of a worker cannot undo the write. The engine waits for what workers have left to
//! say after the last row, and if one is lost by then, the query would fail: a statement that has published would say that it has not.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
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
use futures::{FutureExt, Stream, StreamExt};
use tokio::task::unconstrained;

/// A distributed plan that ends with the row that says how many were written.
#[derive(Debug)]
struct FinishAfterWriteExec(Arc<dyn ExecutionPlan>);

/// Returns the plan, which ends with its first row if it writes.
pub(super) fn finish_after_write(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.is::<DistributedExec>() && writes(&plan) {
        true => Arc::new(FinishAfterWriteExec(plan)),
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

impl DisplayAs for FinishAfterWriteExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(t, f)
    }
}

impl ExecutionPlan for FinishAfterWriteExec {
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
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, until_written(rows))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }
}

/// Items that are looked at beside an error.
const BESIDE: usize = 4;

/// Returns the batches until there is a row; it is not asked for more then. An error and the row can come side by
/// side, in any order: with the row the statement is done.
fn until_written(rows: SendableRecordBatchStream) -> impl Stream<Item = Result<RecordBatch>> + Send {
    futures::stream::unfold(Some(rows), |rows| async {
        let mut rows = rows?;
        let is_row = |batch: &Result<RecordBatch>| batch.as_ref().is_ok_and(|batch| batch.num_rows() > 0);
        let next = rows.next().await?;
        if next.is_ok() {
            let written = is_row(&next);
            return Some((next, (!written).then_some(rows)));
        }
        // What there is by now: an error in the middle has no row beside it.
        for _ in 0..BESIDE {
            match unconstrained(rows.next()).now_or_never().flatten() {
                Some(beside) if is_row(&beside) => return Some((beside, None)),
                Some(_) => {}
                None => break,
            }
        }
        Some((next, None))
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, UInt64Array};
    use datafusion::arrow::datatypes::SchemaRef;
    use datafusion::common::exec_err;
    use futures::TryStreamExt;
    use futures::stream::{iter, pending};

    use super::*;

    fn count(rows: u64) -> Result<RecordBatch> {
        let values = if rows == 0 { vec![] } else { vec![rows] };
        let column: ArrayRef = Arc::new(UInt64Array::from(values));
        Ok(RecordBatch::try_from_iter([("count", column)])?)
    }

    /// Returns the result of these items, after which nothing more ever comes.
    async fn of(items: Vec<Result<RecordBatch>>) -> Result<Vec<u64>> {
        let schema: SchemaRef = count(0)?.schema();
        let rows = Box::pin(RecordBatchStreamAdapter::new(schema, iter(items).chain(pending())));
        let batches: Vec<RecordBatch> = until_written(rows).try_collect().await?;
        Ok(batches.iter().map(|batch| batch.num_rows() as u64).collect())
    }

    #[tokio::test]
    async fn a_row_is_the_end_whatever_comes_beside_it() {
        let lost = || exec_err!("worker lost");
        assert_eq!(of(vec![count(7), lost()]).await.unwrap(), [1]);
        assert_eq!(of(vec![lost(), count(7)]).await.unwrap(), [1]);
        assert_eq!(of(vec![count(0), lost(), lost(), count(7)]).await.unwrap(), [0, 1]);
        assert_eq!(of(vec![lost(), count(0), count(7)]).await.unwrap(), [1]);
        assert!(of(vec![lost(), count(0)]).await.is_err());
        assert!(of((0..100).map(|_| lost()).collect()).await.is_err());
        assert!(of(vec![lost()]).await.unwrap_err().to_string().contains("worker lost"));
        assert!(of(vec![count(0), lost()]).await.is_err());
    }
}
