//! Operators as they are sent to the workers of a cluster: what they do as plain data. What they do it to is sent beside that.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::BroadcastExec;
use serde::{Deserialize, Serialize};

use super::anonymize::Anonymization;
use super::cells::{CellsExec, Places, PlacesExec};
use super::computation::ComputationExec;
use super::inputs::InputKinds;
use super::reposition::Repositioning;
use super::{
    AnonymizeExec, AnonymizeJob, CellCount, Cells, HiddenExec, Job, RepositionExec, RepositionJob, WholeInputExec,
};
use crate::microdata::Layout;

/// An operator that a worker can have.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Shipped {
    /// [`AnonymizeExec`].
    Anonymize { job: AnonymizeJob, inputs: InputKinds },
    /// [`CellsExec`].
    Cells { job: AnonymizeJob, inputs: InputKinds, count: CellCount, spread: bool },
    /// The survey that finds cells by place.
    Places { job: AnonymizeJob, cells: u32, hierarchies: bool },
    /// [`RepositionExec`].
    Reposition { job: RepositionJob },
}

impl Shipped {
    /// Returns the operator with its columns, if the node is one that can be sent.
    pub(crate) fn of(plan: &dyn ExecutionPlan) -> Option<(Self, SchemaRef)> {
        let shipped = if let Some(node) = plan.downcast_ref::<AnonymizeExec>() {
            let Anonymization { job, inputs, .. } = node.the_job();
            Self::Anonymize { job: job.clone(), inputs: *inputs }
        } else if let Some(node) = plan.downcast_ref::<CellsExec>() {
            let Cells { job, inputs, count, spread, .. } = node.the_job();
            Self::Cells { job: job.clone(), inputs: *inputs, count: count.clone(), spread: *spread }
        } else if let Some(node) = plan.downcast_ref::<PlacesExec>() {
            let places = node.the_job();
            Self::Places { job: places.job.clone(), cells: places.cells, hierarchies: places.hierarchies }
        } else if let Some(node) = plan.downcast_ref::<RepositionExec>() {
            Self::Reposition { job: node.job().clone() }
        } else {
            return None;
        };
        Some((shipped, plan.schema()))
    }

    /// Returns the operator, over inputs that are hidden here.
    /// Fails when the inputs are not those of the operator.
    pub(crate) fn over(self, schema: SchemaRef, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(columns) = inputs.first().map(|input| input.schema()) else {
            return internal_err!("an operator without an input");
        };
        Ok(match self {
            Self::Anonymize { job, inputs: kinds } => {
                let layout = layout(&columns, &job)?;
                Arc::new(WholeInputExec::over(Arc::new(Anonymization { job, inputs: kinds, layout, schema }), inputs)?)
            }
            Self::Cells { job, inputs: kinds, count, spread } => {
                // The cell stands behind the columns.
                let own: Vec<usize> = (0..columns.fields().len().saturating_sub(1)).collect();
                let layout = layout(&columns.project(&own)?, &job)?;
                let cells = Cells { job, count, inputs: kinds, layout, schema, spread };
                Arc::new(WholeInputExec::over(Arc::new(cells), inputs)?)
            }
            Self::Places { job, cells, hierarchies } => {
                let layout = layout(&columns, &job)?;
                Arc::new(WholeInputExec::over(Arc::new(Places::new(job, layout, cells, hierarchies)), inputs)?)
            }
            Self::Reposition { job } => {
                Arc::new(WholeInputExec::over(Arc::new(Repositioning { job, schema }), inputs)?)
            }
        })
    }
}

fn layout(columns: &Schema, job: &AnonymizeJob) -> Result<Layout> {
    Layout::try_new(columns, &job.roles).map_err(|error| error.in_function(job.method.name()))
}

/// Facts about our operators for a planner that distributes plans.
pub(crate) trait Operator {
    fn function(&self) -> &str;

    /// Returns the name of an input in errors, by its place.
    fn argument(&self, place: usize) -> &'static str;

    /// Returns true if it may be in several tasks at once.
    fn is_spread(&self) -> bool;

    /// Returns the operator over these inputs, which stay as they are.
    /// Fails when an input never ends.
    fn opened(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>>;
}

impl<J: Job> Operator for WholeInputExec<J> {
    fn function(&self) -> &str {
        self.the_job().function()
    }

    fn argument(&self, place: usize) -> &'static str {
        self.the_job().argument(place)
    }

    fn is_spread(&self) -> bool {
        self.the_job().is_spread()
    }

    fn opened(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Self::opened(self, inputs)
    }
}

/// Returns the node as one of our operators, if it is one.
pub(crate) fn as_operator(plan: &dyn ExecutionPlan) -> Option<&dyn Operator> {
    fn of<T: ExecutionPlan + Operator>(plan: &dyn ExecutionPlan) -> Option<&dyn Operator> {
        plan.downcast_ref::<T>().map(|node| node as &dyn Operator)
    }
    let known = [
        of::<AnonymizeExec>,
        of::<CellsExec>,
        of::<PlacesExec>,
        of::<RepositionExec>,
        of::<ComputationExec>,
        #[cfg(feature = "publication")]
        of::<super::PublishExec>,
    ];
    known.into_iter().find_map(|of| of(plan))
}

/// Returns a release in cells that several tasks make at once, each its own cells. Rows get to the task of their cell by an exchange,
/// and stand there in the order of cells; what every cell needs is given to all tasks. `None` if the node is no release in cells.
/// Fails when a node cannot take its inputs.
pub(crate) fn spread(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(node) = plan.downcast_ref::<CellsExec>() else { return Ok(None) };
    let cells = node.the_job();
    if cells.spread {
        return Ok(None);
    }
    let inputs = node.children().into_iter().enumerate().map(|(place, input)| -> Result<Arc<dyn ExecutionPlan>> {
        let input = below_merge(input);
        match cells.inputs.has_cells(place) {
            true => to_the_task_of_its_cell(input),
            false => Ok(Arc::new(CoalescePartitionsExec::new(Arc::new(BroadcastExec::new(input, 1))))),
        }
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let job = Cells {
        job: cells.job.clone(),
        count: cells.count.clone(),
        inputs: cells.inputs,
        layout: cells.layout.clone(),
        schema: Arc::clone(&cells.schema),
        spread: true,
    };
    let node = WholeInputExec::over(Arc::new(job), Vec::new())?.opened(inputs)?;
    // What is above reads the rows of all tasks.
    Ok(Some(Arc::new(CoalescePartitionsExec::new(node))))
}

fn to_the_task_of_its_cell(input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let Some(place) = schema.fields().len().checked_sub(1) else { return internal_err!("an input without a cell") };
    let cell = Arc::new(Column::new(schema.field(place).name(), place));
    // One partition for each task: cells are made one after the other.
    let exchanged = RepartitionExec::try_new(input, Partitioning::Hash(vec![Arc::clone(&cell) as _], 1))?;
    let order = PhysicalSortExpr::new(cell, SortOptions { descending: false, nulls_first: false });
    let Some(order) = LexOrdering::new([order]) else { return internal_err!("no order") };
    Ok(Arc::new(SortExec::new(order, Arc::new(exchanged)).with_preserve_partitioning(true)))
}

/// Returns the plan below the nodes that bring rows of one process together in order.
fn below_merge(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if HiddenExec::of(plan).is_some() || plan.fetch().is_some() {
        return Arc::clone(plan);
    }
    if plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>() || plan.is::<CoalescePartitionsExec>() {
        let children = plan.children();
        if let [child] = children.as_slice()
            && child.output_partitioning().partition_count() >= plan.output_partitioning().partition_count()
        {
            return below_merge(child);
        }
    }
    Arc::clone(plan)
}
