//! Tables that are computed anew by every query.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::opaque::{OpaqueTable, Relation};
use super::planned::planned;
use crate::exec::{Computation, ComputationExec};

/// The table that a computation's result is.
pub(super) fn computed(computation: Arc<dyn Computation>, inputs: Vec<LogicalPlan>) -> Arc<dyn TableProvider> {
    Arc::new(OpaqueTable(Computed { computation, inputs }))
}

#[derive(Debug)]
struct Computed {
    computation: Arc<dyn Computation>,
    inputs: Vec<LogicalPlan>,
}

#[async_trait]
impl Relation for Computed {
    fn function(&self) -> &str {
        self.computation.function()
    }

    fn schema(&self) -> SchemaRef {
        self.computation.schema()
    }

    async fn plan(&self, session: &dyn Session, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut inputs = Vec::new();
        for (place, input) in self.inputs.iter().enumerate() {
            inputs.push(planned(session, input, self.function(), self.computation.argument(place)).await?);
        }
        if let Some(less) = projection.and_then(|columns| self.computation.project(columns)) {
            return Ok(Arc::new(ComputationExec::try_new(less, inputs)?));
        }
        let plan: Arc<dyn ExecutionPlan> = Arc::new(ComputationExec::try_new(Arc::clone(&self.computation), inputs)?);
        project(plan, projection)
    }
}

/// The wanted columns of a plan.
pub(super) fn project(plan: Arc<dyn ExecutionPlan>, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(columns) = projection else { return Ok(plan) };
    let schema = plan.schema();
    let columns = columns.iter().map(|&column| {
        let name = schema.field(column).name().clone();
        (Arc::new(Column::new(&name, column)) as Arc<dyn PhysicalExpr>, name)
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
}
