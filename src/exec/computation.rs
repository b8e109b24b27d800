//! The operator of functions that look at whole inputs and return a table.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::StreamExt;
use tokio::sync::mpsc::Sender;

use super::progress::Reporting;
use super::whole_input::{counted, spawn_compute};
use super::{Job, Progress, Step, WholeInputExec};
use crate::methods::Monitor;
use crate::microdata::Hierarchies;

#[async_trait]
pub(crate) trait Computation: fmt::Debug + Send + Sync + 'static {
    /// Returns the names of the operator and of the SQL function.
    fn names(&self) -> [&'static str; 2];

    /// Returns the name of an input in errors.
    fn argument(&self, _place: usize) -> &'static str {
        "an input"
    }

    /// Returns the parameters, as EXPLAIN shows them.
    fn parameters(&self) -> String;

    fn schema(&self) -> SchemaRef;

    /// Returns the same with only these of its columns, if that is less work.
    fn project(&self, _columns: &[usize]) -> Option<Arc<dyn Computation>> {
        None
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()>;
}

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
    /// Fails when they are not to be had.
    pub(crate) fn hold(&self, bytes: usize) -> Result<()> {
        self.reservation.try_resize(bytes)?;
        self.peak_memory.set_max(self.reservation.size());
        Ok(())
    }

    /// Reads an input. Hands each batch to `take`, which returns the bytes that are held then, and names its errors after the function.
    /// Fails with the errors of the input and of `take`, and when there is not enough memory.
    pub(crate) async fn read(
        &self,
        mut input: SendableRecordBatchStream,
        mut take: impl FnMut(&RecordBatch) -> crate::error::Result<usize> + Send,
    ) -> Result<()> {
        while let Some(batch) = input.next().await {
            let batch = batch?;
            let _timer = self.metrics.elapsed_compute().timer();
            self.hold(take(&batch).map_err(|error| error.in_function(self.function))?)?;
        }
        Ok(())
    }

    /// Reads hierarchies of these attributes, if they are an input. So many bytes are `held` beside them.
    /// Fails as [`read`](Self::read) does.
    pub(crate) async fn hierarchies<'a>(
        &self,
        input: Option<SendableRecordBatchStream>,
        attributes: impl Iterator<Item = &'a String>,
        held: usize,
    ) -> Result<Option<Hierarchies>> {
        let Some(input) = input else { return Ok(None) };
        let mut hierarchies = Hierarchies::new(attributes);
        self.read(input, |batch| hierarchies.append(batch).map(|()| held + hierarchies.size())).await?;
        Ok(Some(hierarchies))
    }

    /// Opens another account at the memory pool, for work that is done off the thread.
    pub(crate) fn account(&self) -> MemoryReservation {
        self.reservation.new_empty()
    }

    pub(crate) async fn send(&self, batch: RecordBatch) {
        // Whether anybody still wants them does not matter.
        let _ = self.output.send(Ok(batch)).await;
    }

    /// Returns a sender of rows for a thread that may block.
    pub(crate) fn output(&self) -> Sender<Result<RecordBatch>> {
        self.output.clone()
    }

    /// Runs `work` on a thread that may block. Dropping the future stops it at the next look at the monitor.
    /// Fails with the errors of the work, named after the function.
    pub(crate) async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Monitor) -> crate::error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let elapsed = self.metrics.elapsed_compute().clone();
        let timed = move |monitor: &Monitor| {
            let _timer = elapsed.timer();
            work(monitor)
        };
        spawn_compute(self.function.to_owned(), Monitor::default(), timed).await
    }
}

/// Tells the number of rows read of all inputs, and the end of the last.
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
pub(crate) type ComputationExec = WholeInputExec<Computing>;

#[derive(Debug)]
pub(crate) struct Computing(Arc<dyn Computation>);

impl ComputationExec {
    /// Fails when an input never ends.
    pub(crate) fn try_new(computation: Arc<dyn Computation>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        Self::over(Arc::new(Computing(computation)), inputs)
    }
}

impl Job for Computing {
    fn operator(&self) -> &'static str {
        self.0.names()[0]
    }

    fn function(&self) -> &str {
        self.0.names()[1]
    }

    fn argument(&self, place: usize) -> &'static str {
        self.0.argument(place)
    }

    fn facts(&self) -> Result<Vec<String>, fmt::Error> {
        Ok(vec![self.0.parameters()])
    }

    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let computation = Arc::clone(&self.0);
        let [operator, function] = computation.names();
        let watch = Watch::new(Progress::of(context), function, inputs.len());
        let inputs = inputs.into_iter().map(|input| watch.over(input)).collect();
        let baseline = BaselineMetrics::new(metrics, 0);
        let mut builder = RecordBatchReceiverStream::builder(computation.schema(), 2);
        let resources = Resources {
            function,
            reservation: MemoryConsumer::new(operator).register(context.memory_pool()),
            context: Arc::clone(context),
            metrics: baseline.clone(),
            peak_memory: MetricBuilder::new(metrics).gauge("peak_mem_used", 0),
            output: builder.tx(),
        };
        builder.spawn(async move {
            let _done = Reporting(watch.progress.clone());
            computation.compute(inputs, &resources).await
        });
        Ok(counted(self.0.schema(), builder.build(), baseline))
    }
}
