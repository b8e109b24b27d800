//! The operator of functions that look at whole inputs and return a table.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, EvaluationType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, Gauge, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use tokio::sync::mpsc::Sender;

use super::progress::Reporting;
use super::work::CancelOnDrop;
use super::{Origin, Progress, Step, hide};
use crate::error::Error;
use crate::methods::Monitor;

/// What is computed: plain parameters.
#[async_trait]
pub(crate) trait Computation: fmt::Debug + Send + Sync + 'static {
    /// Name of the operator.
    fn name(&self) -> &'static str;

    /// Name of the SQL function, for errors.
    fn function(&self) -> &'static str;

    /// What an input is called in errors.
    fn argument(&self, _place: usize) -> &'static str {
        "an input"
    }

    /// The parameters, as EXPLAIN shows them.
    fn parameters(&self) -> String;

    /// Columns of the result.
    fn schema(&self) -> SchemaRef;

    /// The same with only these of its columns, if that is less work.
    fn project(&self, _columns: &[usize]) -> Option<Arc<dyn Computation>> {
        None
    }

    /// Computes the result from all inputs and sends it.
    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()>;
}

/// What a computation may use.
pub(crate) struct Resources {
    function: &'static str,
    reservation: MemoryReservation,
    /// The query's.
    pub context: Arc<TaskContext>,
    pub metrics: BaselineMetrics,
    peak_memory: Gauge,
    output: Sender<Result<RecordBatch>>,
}

impl Resources {
    /// Charges so many bytes in all to the memory pool.
    ///
    /// # Errors
    /// When they are not to be had.
    pub(crate) fn hold(&self, bytes: usize) -> Result<()> {
        self.reservation.try_resize(bytes)?;
        self.peak_memory.set_max(self.reservation.size());
        Ok(())
    }

    /// Another account at the memory pool, for work that is done off the thread.
    pub(crate) fn account(&self) -> MemoryReservation {
        self.reservation.new_empty()
    }

    /// Sends rows of the result.
    pub(crate) async fn send(&self, batch: RecordBatch) {
        // Whether anybody still wants them does not matter.
        let _ = self.output.send(Ok(batch)).await;
    }

    /// To send rows from a thread that may block.
    pub(crate) fn output(&self) -> Sender<Result<RecordBatch>> {
        self.output.clone()
    }

    /// Runs `work` on a thread that may block. Dropping the future stops it at the next look at the monitor.
    ///
    /// # Errors
    /// Those of the work, named after the function.
    pub(crate) async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Monitor) -> crate::error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (function, elapsed) = (self.function, self.metrics.elapsed_compute().clone());
        let monitor = Arc::new(Monitor::default());
        let _guard = CancelOnDrop(Arc::clone(&monitor));
        let work = move || {
            let _timer = elapsed.timer();
            work(&monitor).map_err(|error| error.in_function(function))
        };
        SpawnedTask::spawn_blocking(work)
            .join_unwind()
            .await
            .unwrap_or_else(|_| Err(Error::Cancelled.in_function(function)))
    }
}

/// Tells how many rows were read of all inputs, and when the last of them ends.
#[derive(Clone)]
struct Watch {
    progress: Progress,
    function: &'static str,
    rows: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Watch {
    fn new(progress: Progress, function: &'static str, inputs: usize) -> Self {
        Self { progress, function, rows: Arc::default(), open: Arc::new(AtomicUsize::new(inputs)) }
    }

    fn over(&self, input: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let (watch, schema) = (self.clone(), input.schema());
        let read = input.inspect(move |batch| {
            if let Ok(batch) = batch {
                let rows = watch.rows.fetch_add(batch.num_rows(), Ordering::Relaxed) + batch.num_rows();
                watch.progress.tell(Step::Read { rows });
            }
        });
        let watch = self.clone();
        let end = futures::stream::poll_fn(move |_| {
            if watch.open.fetch_sub(1, Ordering::Relaxed) == 1 {
                watch.progress.tell(Step::Computing(watch.function));
            }
            Poll::Ready(None)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, read.chain(end)))
    }
}

/// Computes a table from whole inputs.
///
/// ```text
/// <name>: <parameters>
///   <inputs, in the order that the computation expects>
/// ```
#[derive(Debug, Clone)]
pub(crate) struct ComputationExec {
    computation: Arc<dyn Computation>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ComputationExec {
    /// # Errors
    /// When an input never ends.
    pub(crate) fn try_new(computation: Arc<dyn Computation>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let hidden = inputs.into_iter().enumerate().map(|(place, plan)| {
            let (function, argument) = (computation.function().to_owned(), computation.argument(place).to_owned());
            hide(&plan, &Arc::new(Origin { function, argument, names: Vec::new() }))
        });
        let inputs = hidden.collect::<Result<Vec<_>>>()?;
        if inputs.iter().any(|plan| plan.boundedness().is_unbounded()) {
            return plan_err!("{}: the input never ends", computation.function());
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(computation.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        )
        .with_evaluation_type(EvaluationType::Eager);
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { computation, inputs, metrics, properties: Arc::new(properties) })
    }
}

impl DisplayAs for ComputationExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.computation.parameters();
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "{}: {parameters}", self.computation.name())
            }
            DisplayFormatType::TreeRender => writeln!(f, "{parameters}"),
        }
    }
}

impl ExecutionPlan for ComputationExec {
    fn name(&self) -> &str {
        self.computation.name()
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
            return internal_err!("{} cannot gain or lose an input", self.computation.name());
        }
        Ok(Arc::new(Self::try_new(Arc::clone(&self.computation), children)?))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("{} has one partition, not {partition}", self.computation.name());
        }
        let computation = Arc::clone(&self.computation);
        let watch = Watch::new(Progress::of(&context), computation.function(), self.inputs.len());
        let inputs = self.inputs.iter().map(|plan| Ok(watch.over(plan.execute(0, Arc::clone(&context))?)));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), 2);
        let resources = Resources {
            function: computation.function(),
            reservation: MemoryConsumer::new(computation.name()).register(context.memory_pool()),
            context,
            metrics: metrics.clone(),
            peak_memory: MetricBuilder::new(&self.metrics).gauge("peak_mem_used", 0),
            output: builder.tx(),
        };
        builder.spawn(async move {
            let _done = Reporting(watch.progress.clone());
            computation.compute(inputs, &resources).await
        });
        let rows = builder.build().inspect(move |batch| {
            if let Ok(batch) = batch {
                metrics.record_output(batch.num_rows());
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
