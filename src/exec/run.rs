//! One execution of the operator.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::StreamExt;
use rand::Rng;
use rayon::prelude::*;
use tokio::sync::mpsc::Sender;

use super::Job;
use crate::error::Error;
use crate::methods::Monitor;
use crate::microdata::{Layout, MicrodataBuilder};
use crate::release::Published;

/// What is read.
pub(super) struct Streams {
    pub layout: Layout,
    pub microdata: SendableRecordBatchStream,
    pub previous: Option<SendableRecordBatchStream>,
    pub hierarchies: Option<SendableRecordBatchStream>,
}

/// Starts an execution; its rows arrive on the stream. Dropping the stream cancels it.
pub(super) fn run(
    inputs: Streams,
    job: Job,
    schema: SchemaRef,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), 2);
    let output = builder.tx();
    let batch_size = context.session_config().batch_size();
    let reservation = Arc::new(MemoryConsumer::new("AnonymizeExec").register(context.memory_pool()));
    let metrics = Metrics::new(metrics);
    let baseline = metrics.baseline.clone();
    let quasi = inputs.layout.quasi.len();
    let execution = Execution { quasi, job, schema: Arc::clone(&schema), batch_size, reservation, metrics };
    builder.spawn(async move { execution.run(inputs, output).await });
    let rows = builder.build().inspect(move |batch| {
        if let Ok(batch) = batch {
            baseline.record_output(batch.num_rows());
        }
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

struct Execution {
    job: Job,
    schema: SchemaRef,
    quasi: usize,
    batch_size: usize,
    reservation: Arc<MemoryReservation>,
    metrics: Metrics,
}

impl Execution {
    async fn run(self, inputs: Streams, output: Sender<Result<RecordBatch>>) -> Result<()> {
        let name = self.job.method.name();
        let builder = self.collect(inputs).await?;
        // The method looks at the flag from time to time; dropping the guard, with this future, raises it.
        let reservation = Arc::clone(&self.reservation);
        let budget = move |bytes| Ok(reservation.try_grow(bytes)?);
        let monitor = Arc::new(Monitor::with_budget(budget));
        let _guard = CancelOnDrop(Arc::clone(&monitor));
        let work = move || self.publish(builder, &monitor, &output).map_err(|error| error.in_function(name));
        SpawnedTask::spawn_blocking(work)
            .join_unwind()
            .await
            .unwrap_or_else(|_| Err(Error::Cancelled.in_function(name)))
    }

    /// Encodes all inputs as they arrive.
    async fn collect(&self, mut inputs: Streams) -> Result<MicrodataBuilder> {
        let named = |error: Error| error.in_function(self.job.method.name());
        let mut builder = MicrodataBuilder::try_new(inputs.layout).map_err(named)?;
        while let Some(batch) = inputs.microdata.next().await {
            let batch = batch?;
            let _timer = self.metrics.baseline.elapsed_compute().timer();
            builder.append(&batch).map_err(named)?;
            self.metrics.input_rows.add(batch.num_rows());
            self.reserve(builder.size())?;
        }
        if let Some(mut previous) = inputs.previous.take() {
            while let Some(batch) = previous.next().await {
                let batch = batch?;
                let _timer = self.metrics.baseline.elapsed_compute().timer();
                builder.append_previous(&batch).map_err(named)?;
                self.metrics.previous_rows.add(batch.num_rows());
                self.reserve(builder.size())?;
            }
        }
        if let Some(mut hierarchies) = inputs.hierarchies.take() {
            builder.expect_hierarchies();
            while let Some(batch) = hierarchies.next().await {
                builder.append_hierarchies(&batch?).map_err(named)?;
                self.reserve(builder.size())?;
            }
        }
        Ok(builder)
    }

    /// Everything that computes, on a thread that may block.
    fn publish(
        &self,
        builder: MicrodataBuilder,
        monitor: &Monitor,
        output: &Sender<Result<RecordBatch>>,
    ) -> crate::error::Result<()> {
        let timer = self.metrics.baseline.elapsed_compute().timer();
        let mut rng = self.job.seed.rng();
        let collected = builder.size();
        let mut working = self.job.method.working_bytes(builder.rows(), self.quasi);
        if self.job.roles.within.is_some() {
            // The parts are copies.
            working += builder.rows() * (self.quasi + 3) * size_of::<u32>();
        }
        // Before the method starts, codes exist twice: by column, and row after row.
        self.reserve(collected + working.max(collected))?;
        let (microdata, ledger) = monitor.phase("encoding", || builder.finish(rng.random()))?;
        self.reserve(collected + working)?;
        let release = self.job.method.anonymize(microdata, &ledger, monitor, &mut rng)?;
        drop(ledger);
        self.metrics.peak_memory.set_max(self.reservation.size());
        let published = monitor.phase("shuffle", || {
            self.metrics.groups.add(release.groups.len());
            self.metrics.counterfeits.add(release.counterfeits());
            self.metrics.withheld.add(release.withheld);
            Ok(Published::new(release, Arc::clone(&self.schema), &mut rng))
        })?;
        for (phase, time) in monitor.phases() {
            MetricBuilder::new(&self.metrics.set).subset_time(format!("{phase}_time"), 0).add_duration(time);
        }
        drop(timer);
        self.send(&published, monitor, output)
    }

    fn send(
        &self,
        published: &Published,
        monitor: &Monitor,
        output: &Sender<Result<RecordBatch>>,
    ) -> crate::error::Result<()> {
        // A few batches at a time, gathered in parallel.
        let batch_size = published.batch_rows(self.batch_size);
        let round = batch_size * rayon::current_num_threads();
        for first in (0..published.len()).step_by(round) {
            monitor.check()?;
            let last = published.len().min(first + round);
            let starts: Vec<usize> = (first..last).step_by(batch_size).collect();
            let batches: Vec<_> = starts
                .into_par_iter()
                .map(|start| published.batch(start, batch_size.min(last - start)))
                .collect::<crate::error::Result<_>>()?;
            for batch in batches {
                if output.blocking_send(Ok(batch)).is_err() {
                    return Ok(()); // Nobody wants the rest: a LIMIT above, say.
                }
            }
        }
        Ok(())
    }

    fn reserve(&self, bytes: usize) -> Result<()> {
        self.reservation.try_resize(bytes)?;
        self.metrics.peak_memory.set_max(self.reservation.size());
        Ok(())
    }
}

struct CancelOnDrop(Arc<Monitor>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What EXPLAIN ANALYZE shows.
struct Metrics {
    set: ExecutionPlanMetricsSet,
    baseline: BaselineMetrics,
    input_rows: Count,
    previous_rows: Count,
    groups: Count,
    counterfeits: Count,
    withheld: Count,
    peak_memory: Gauge,
}

impl Metrics {
    fn new(set: &ExecutionPlanMetricsSet) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, 0);
        Self {
            baseline: BaselineMetrics::new(set, 0),
            input_rows: counter("input_rows"),
            previous_rows: counter("previous_rows"),
            groups: counter("groups"),
            counterfeits: counter("counterfeits"),
            withheld: counter("withheld_rows"),
            peak_memory: MetricBuilder::new(set).gauge("peak_mem_used", 0),
            set: set.clone(),
        }
    }
}
