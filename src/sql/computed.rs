//! Tables that are computed anew by every query.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::hierarchy_checks::MadeWith;
use super::input_plans::planned;
use super::opaque::{OpaqueTable, Relation, Wanted};
use crate::exec::{Computation, ComputationExec, PlanFuture};

pub(super) fn computed(computation: Arc<dyn Computation>, inputs: Vec<LogicalPlan>) -> Arc<dyn TableProvider> {
    Computed::new(computation, inputs).table()
}

pub(super) struct Computed {
    computation: Arc<dyn Computation>,
    inputs: Vec<LogicalPlan>,
    made_with: Option<MadeWith>,
}

impl Computed {
    pub(super) fn new(computation: Arc<dyn Computation>, inputs: Vec<LogicalPlan>) -> Self {
        Self { computation, inputs, made_with: None }
    }

    /// Returns the same about releases whose hierarchies are checked first.
    pub(super) fn made_with(self, made_with: Option<MadeWith>) -> Self {
        Self { made_with, ..self }
    }

    pub(super) fn table(self) -> Arc<dyn TableProvider> {
        Arc::new(OpaqueTable(self))
    }
}

impl Relation for Computed {
    fn function(&self) -> &str {
        self.computation.names()[1]
    }

    fn schema(&self) -> SchemaRef {
        self.computation.schema()
    }

    fn plan<'a>(&'a self, session: &'a dyn Session, wanted: Wanted<'a>) -> PlanFuture<'a> {
        Box::pin(async move {
            if let Some(made_with) = &self.made_with {
                made_with.check(session).await?;
            }
            let mut inputs = Vec::new();
            for (place, input) in self.inputs.iter().enumerate() {
                inputs.push(planned(session, input, self.function(), self.computation.argument(place)).await?);
            }
            if let Some(less) = wanted.projection.and_then(|columns| self.computation.project(columns)) {
                return computing(less, inputs);
            }
            project(computing(Arc::clone(&self.computation), inputs)?, wanted.projection)
        })
    }
}

fn computing(computation: Arc<dyn Computation>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(Arc::new(ComputationExec::try_new(computation, inputs)?))
}

pub(super) fn project(plan: Arc<dyn ExecutionPlan>, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(columns) = projection else { return Ok(plan) };
    let schema = plan.schema();
    let columns = columns.iter().map(|&column| {
        let name = schema.field(column).name().clone();
        (Arc::new(Column::new(&name, column)) as Arc<dyn PhysicalExpr>, name)
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
}
