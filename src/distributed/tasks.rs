//! Number of tasks of a stage that has an operator of ours.

use datafusion::common::Result;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion_distributed::{DesiredTaskCountEvent, DesiredTaskCountEventResponse};

use crate::exec::{CellsExec, as_operator};

/// Returns one task, unless it makes cells that rows are brought to. The engine would otherwise go by the bytes of what is read.
///
/// One as well for what is scanned in one partition: DataFusion puts nothing that collects rows between such a scan and an aggregate, a window or
/// a join, so that each task would do these with a part of the table, whatever the engine cuts above.
pub(super) fn desired_task_count(event: DesiredTaskCountEvent) -> Option<Result<DesiredTaskCountEventResponse>> {
    if reads_alone(event.plan.as_ref()) {
        return Some(Ok(DesiredTaskCountEventResponse::maximum(1)));
    }
    let operator = as_operator(event.plan.as_ref())?;
    let cells = event.plan.downcast_ref::<CellsExec>().filter(|_| operator.is_spread());
    Some(Ok(match cells {
        // No more than there are workers, which the engine sees to.
        Some(cells) => DesiredTaskCountEventResponse::desired(cells.cells().cells as usize),
        None => DesiredTaskCountEventResponse::maximum(1),
    }))
}

/// Returns true if several tasks with a part each would differ from one task.
fn reads_alone(plan: &dyn ExecutionPlan) -> bool {
    // The subquery has its value in one of the tasks, and none in the others.
    if plan.is::<ScalarSubqueryExec>() {
        return true;
    }
    let scan =
        plan.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    // What is in order cannot be divided evenly, and the engine wants as many partitions in each task.
    let ordered = scan.is_some_and(|scan| !scan.output_ordering.is_empty());
    ordered || plan.children().is_empty() && plan.properties().output_partitioning().partition_count() == 1
}
