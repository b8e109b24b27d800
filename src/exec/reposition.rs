//! The operator that repositions a stream, in a physical plan.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use super::reposition_job::{REPOSITION, RepositionJob, repositioned_schema};
use super::{Job, WholeInputExec, repositioning};
use crate::methods::reposition::Clock;
use crate::release::View;

/// Repositions its input: every snapshot that comes out is l-eligible.
///
/// ```text
/// RepositionExec: l=4, window=7, .., time=day, sensitive=disease, finish=true, view=public
///   <microdata, in the order of time>
///   <costs: sensitive value, cost of suppressing a record of it> (optional)
/// ```
///
/// One pass, with memory for the window: rows come out while others are read, snapshot by snapshot, those of a snapshot in random order.
/// The planner sorts an input by time that is not declared to be in that order. The rows drawn for a seed depend neither on the order of rows of one time nor
/// on batches.
pub type RepositionExec = WholeInputExec<Repositioning>;

/// A job with the columns that it reads and makes.
#[derive(Debug)]
pub struct Repositioning {
    pub(super) job: RepositionJob,
    pub(super) schema: SchemaRef,
}

impl RepositionExec {
    /// Makes an operator over an input and the costs of suppression.
    ///
    /// # Errors
    /// When the input has no column of time.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        costs: Option<Arc<dyn ExecutionPlan>>,
        job: RepositionJob,
    ) -> Result<Self> {
        let schema = repositioned_schema(&input.schema(), &job.time, job.view);
        by_time(&input.schema(), &job.time)?;
        Self::over(Arc::new(Repositioning { job, schema }), [input].into_iter().chain(costs).collect())
    }

    /// Returns the job of the operator.
    pub fn job(&self) -> &RepositionJob {
        &self.the_job().job
    }
}

fn by_time(schema: &Schema, time: &str) -> Result<PhysicalSortExpr> {
    let column = Column::new_with_schema(time, schema)?;
    // As ORDER BY without further words.
    Ok(PhysicalSortExpr::new(Arc::new(column), SortOptions { descending: false, nulls_first: false }))
}

impl Job for Repositioning {
    fn operator(&self) -> &'static str {
        "RepositionExec"
    }

    fn function(&self) -> &str {
        REPOSITION
    }

    fn argument(&self, place: usize) -> &'static str {
        if place == 0 { "the input" } else { "suppress_cost" }
    }

    fn facts(&self) -> Result<Vec<String>, fmt::Error> {
        let RepositionJob { params, time, clock, sensitive, late, finish, view, .. } = &self.job;
        let mut facts = vec![("l", params.l.to_string()), ("window", params.window.to_string())];
        facts.push(("time", time.clone()));
        match clock {
            Clock::Units(units) => facts.push(("units", units.to_string())),
            Clock::Months { months, .. } => facts.push(("months", months.to_string())),
        }
        facts.push(("sensitive", sensitive.clone()));
        facts.push(("move_cost", format!("{:?}", params.move_cost).to_lowercase()));
        facts.push(("move_factor", params.move_factor.get().to_string()));
        facts.extend(params.suppress_cost.map(|cost| ("suppress_cost", cost.get().to_string())));
        facts.push(("late", format!("{late:?}").to_lowercase()));
        facts.push(("finish", finish.to_string()));
        facts.push(("view", format!("{view:?}").to_lowercase()));
        Ok(facts.iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn input_order(&self, place: usize, input: &Schema) -> Option<PhysicalSortExpr> {
        if place == 0 { by_time(input, &self.job.time).ok() } else { None }
    }

    fn streams(&self) -> Option<Vec<PhysicalSortExpr>> {
        Some(match self.job.view {
            View::Public => by_time(&self.schema, &self.job.time).into_iter().collect(),
            // Suppressed rows have no published time.
            View::Private => Vec::new(),
        })
    }

    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut inputs = inputs.into_iter();
        let Some(input) = inputs.next() else { return internal_err!("RepositionExec without an input") };
        repositioning::run(input, inputs.next(), self.job.clone(), Arc::clone(&self.schema), metrics, context)
    }
}
