//! The kernel of our operators: a node of a physical plan that reads whole inputs, and hands them to a job.
//!
//! What is the same for all of them is here: inputs are [hidden](hide) and finite, each has one partition, nothing is pushed through the
//! node, and there is one output partition. What an operator does is its [`Job`].

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, EvaluationType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions, SortOrderPushdownResult,
};
use futures::StreamExt;

use super::{Origin, hide};
use crate::error::{Error, refusal};
use crate::methods::Monitor;

/// Job of an operator. Plain parameters, so that a distributed engine can ship them.
pub trait Job: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the operator, as EXPLAIN shows it.
    fn operator(&self) -> &'static str;

    /// Returns the name of the SQL function, for errors.
    fn function(&self) -> &str;

    /// Returns the name of an input in errors, by its place.
    fn argument(&self, place: usize) -> &'static str;

    /// Returns the facts for EXPLAIN, as `name=value`.
    ///
    /// # Errors
    /// When parameters cannot be shown, which is a bug.
    fn facts(&self) -> Result<Vec<String>, fmt::Error>;

    /// Returns the columns of the rows that come out.
    fn schema(&self) -> SchemaRef;

    /// Returns the order in which the rows of an input must come, by its place.
    fn input_order(&self, _place: usize, _input: &Schema) -> Option<PhysicalSortExpr> {
        None
    }

    /// Returns the order of rows that come out while inputs are read; `None` if they come out afterwards.
    fn streams(&self) -> Option<Vec<PhysicalSortExpr>> {
        None
    }

    /// Returns the order of rows that come out after all inputs, if they have one.
    fn output_order(&self) -> Option<PhysicalSortExpr> {
        None
    }

    /// Returns the job with rows in this order, if there is one: then they need not be sorted.
    fn ordered(&self, _order: &[PhysicalSortExpr]) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns true if several tasks of a cluster may do it, with disjoint rows. The job sees to it that they do.
    fn is_spread(&self) -> bool {
        false
    }

    /// Starts an execution. Dropping the stream cancels it.
    ///
    /// # Errors
    /// When it cannot start.
    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;
}

/// A node that does a job with whole inputs.
#[derive(Debug)]
pub struct WholeInputExec<J: Job> {
    job: Arc<J>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
    /// True if a planner is at work that must see inputs as they are. They are hidden already.
    open: bool,
}

impl<J: Job> Clone for WholeInputExec<J> {
    fn clone(&self) -> Self {
        Self {
            job: Arc::clone(&self.job),
            inputs: self.inputs.clone(),
            metrics: self.metrics.clone(),
            properties: Arc::clone(&self.properties),
            open: self.open,
        }
    }
}

impl<J: Job> WholeInputExec<J> {
    /// Returns a node over inputs in the order that the job expects, which are hidden.
    /// Fails when an input never ends, although the job needs the whole of it.
    pub(super) fn over(job: Arc<J>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let hidden = inputs.into_iter().enumerate().map(|(place, plan)| {
            let (function, argument) = (job.function().to_owned(), job.argument(place).to_owned());
            hide(&plan, &Arc::new(Origin { function, argument, names: Vec::new() }))
        });
        let hidden = hidden.collect::<Result<Vec<_>>>()?;
        Self::over_hidden(job, hidden, false)
    }

    fn over_hidden(job: Arc<J>, inputs: Vec<Arc<dyn ExecutionPlan>>, open: bool) -> Result<Self> {
        let unbounded = inputs.iter().map(|plan| plan.boundedness()).find(Boundedness::is_unbounded);
        let schema = job.schema();
        let properties = match (job.streams(), unbounded) {
            (None, Some(_)) => {
                return Err(refusal!(job.function(), "the input never ends; a finite table is needed"));
            }
            (None, None) => PlanProperties::new(
                match job.output_order() {
                    None => EquivalenceProperties::new(schema),
                    Some(order) => EquivalenceProperties::new_with_orderings(schema, [[order]]),
                },
                Partitioning::UnknownPartitioning(1),
                EmissionType::Final,
                Boundedness::Bounded,
            )
            .with_evaluation_type(EvaluationType::Eager),
            (Some(order), unbounded) => PlanProperties::new(
                match order.is_empty() {
                    true => EquivalenceProperties::new(schema),
                    false => EquivalenceProperties::new_with_orderings(schema, [order]),
                },
                Partitioning::UnknownPartitioning(1),
                EmissionType::Incremental,
                unbounded.unwrap_or(Boundedness::Bounded),
            ),
        };
        Ok(Self { job, inputs, metrics: ExecutionPlanMetricsSet::new(), properties: Arc::new(properties), open })
    }

    pub(super) fn the_job(&self) -> &J {
        &self.job
    }

    /// Returns the same over these inputs, as they are. They are hidden, but for nodes that a planner puts between them.
    #[cfg(feature = "distributed")]
    pub(super) fn opened(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::over_hidden(Arc::clone(&self.job), inputs, true)?))
    }
}

impl<J: Job> DisplayAs for WholeInputExec<J> {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.job.facts()?;
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "{}: {}", self.job.operator(), facts.join(", "))
            }
            DisplayFormatType::TreeRender => facts.iter().try_for_each(|fact| writeln!(f, "{fact}")),
        }
    }
}

impl<J: Job> ExecutionPlan for WholeInputExec<J> {
    fn name(&self) -> &str {
        self.job.operator()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.inputs.len()])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = |(place, plan): (usize, &Arc<dyn ExecutionPlan>)| {
            let order = LexOrdering::new([self.job.input_order(place, &plan.schema())?]);
            order.map(OrderingRequirements::from)
        };
        self.inputs.iter().enumerate().map(order).collect()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.inputs.len() {
            return internal_err!("{} cannot gain or lose an input", self.job.operator());
        }
        let job = Arc::clone(&self.job);
        Ok(Arc::new(if self.open { Self::over_hidden(job, children, true)? } else { Self::over(job, children)? }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        let Some(job) = self.job.ordered(order) else { return Ok(SortOrderPushdownResult::Unsupported) };
        // What is below stays as it is.
        let inner = Arc::new(Self::over_hidden(Arc::new(job), self.inputs.clone(), self.open)?);
        Ok(SortOrderPushdownResult::Exact { inner })
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("{} has one partition, not {partition}", self.job.operator());
        }
        // An engine that scales what it reads by its size would give each task a part of the table, and of the ledger.
        let tasks = tasks(&context);
        if tasks > 1 && !self.job.is_spread() {
            return Err(refusal!(
                self.job.function(),
                "this is one of {tasks} tasks, over a part of its input each, and nothing is released; a session that plans for a cluster is \
                 made by datafusion_anonymize::distributed::coordinator"
            ));
        }
        let read = |plan: &Arc<dyn ExecutionPlan>| match plan.output_partitioning().partition_count() {
            1 => plan.execute(0, Arc::clone(&context)),
            // A table, or a ledger, that is read in part would be a breach.
            count => internal_err!("{}: an input with {count} partitions instead of one", self.job.operator()),
        };
        let inputs = self.inputs.iter().map(read).collect::<Result<Vec<_>>>()?;
        self.job.start(inputs, &self.metrics, &context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Returns the number of tasks of a cluster that run this plan.
pub(super) fn tasks(context: &TaskContext) -> usize {
    #[cfg(feature = "distributed")]
    return context
        .session_config()
        .get_extension::<datafusion_distributed::DistributedTaskContext>()
        .map_or(1, |task| task.task_count);
    #[cfg(not(feature = "distributed"))]
    return {
        let _ = context;
        1
    };
}

pub(super) fn counted(
    schema: SchemaRef,
    rows: impl futures::Stream<Item = Result<RecordBatch>> + Send + 'static,
    metrics: BaselineMetrics,
) -> SendableRecordBatchStream {
    let rows = rows.inspect(move |batch| {
        if let Ok(batch) = batch {
            metrics.record_output(batch.num_rows());
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Runs what computes on a thread that may block. Dropping the future stops it at its next look at the monitor.
/// Fails with the errors of the work, named after the function.
pub(crate) async fn spawn_compute<T: Send + 'static>(
    function: String,
    monitor: Monitor,
    work: impl FnOnce(&Monitor) -> crate::error::Result<T> + Send + 'static,
) -> Result<T> {
    let monitor = Arc::new(monitor);
    let _guard = CancelOnDrop(Arc::clone(&monitor));
    let task = SpawnedTask::spawn_blocking(move || work(&monitor));
    let done = task.join_unwind().await.unwrap_or(Err(Error::Cancelled));
    done.map_err(|error| error.in_function(&function))
}

/// Stops what nobody waits for any more.
struct CancelOnDrop(Arc<Monitor>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
