//! Execution of the operator that repositions: batches come in and are tagged where they are read; snapshots go
//! out, on a thread of its own.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Float64Type, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder, Time};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::StreamExt;
use rand::Rng;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::buffered_rows::{BufferedRows, begins_of, numbers_of};
use super::notices::Notices;
use super::progress::Reporting;
use super::reposition_job::{REPOSITION, RepositionJob, STATUSES, tell_if_most_is_suppressed};
use super::whole_input::{counted, spawn_compute};
use super::{Progress, Step};
use crate::error::{Asked, Error, thousands};
use crate::methods::Monitor;
use crate::methods::reposition::{Departed, Late, Record, Stream};
use crate::microdata::RowHashes;
use crate::release::View;

/// Messages to the thread that computes. Silence without an end means that nobody waits any more.
enum Message {
    /// Costs and random numbers of values, and the bytes that are held for them.
    Costs(Vec<f64>, Vec<u64>, usize),
    Batch(Tagged),
    End,
}

/// Rows with what decides about them.
struct Tagged {
    batch: RecordBatch,
    /// Of each row: the number of its time, that of its value, and a secret random number.
    times: Int64Array,
    values: Vec<usize>,
    priorities: Vec<u64>,
    /// Secret random numbers of values that were not seen before.
    ties: Vec<u64>,
    /// Bytes that are held for the numbers of values.
    held: usize,
}

/// Rows that are tagged at a time, which takes about a millisecond; more where there are dictionaries of more values, all of which are read
/// for every piece.
const PIECE: usize = 8192;

/// Batches that leave as one: who takes them has about as much to do for few rows as for many.
const TOGETHER: usize = 2;

struct Tagger {
    /// Column of times, by its name and where it is in the input.
    time: (String, usize),
    sensitive: usize,
    /// Numbers of values, and secret random numbers of values and rows.
    tags: RowHashes,
    elapsed: Time,
}

impl Tagger {
    /// Costs of suppression of some values, and the values' random numbers.
    fn costs(&mut self, batch: &RecordBatch) -> crate::error::Result<Message> {
        let costs = batch.column(1).as_primitive::<Float64Type>();
        let mut values = Vec::new();
        let ties = self.tags.values(batch.column(0), &mut values)?;
        let wrong = |what: &str| Err(Error::refused(format!("suppress_cost {what}")));
        if costs.iter().any(|cost| cost.is_none_or(|cost| cost < 0.0 || !cost.is_finite())) {
            return wrong("has a cost that is not a number from 0");
        }
        if ties.len() < values.len() {
            return wrong("has a value twice; give each value one cost");
        }
        Ok(Message::Costs(costs.values().to_vec(), ties, self.tags.size()))
    }

    /// Takes a batch in pieces: it may be a whole table, and others wait for this thread.
    async fn batch(&mut self, batch: RecordBatch) -> crate::error::Result<Message> {
        let timer = self.elapsed.timer();
        let times = numbers_of(&self.time.0, batch.column(self.time.1))?;
        drop(timer);
        let dictionaries = batch.columns().iter().filter_map(|column| column.as_any_dictionary_opt());
        let rows = dictionaries.map(|dictionary| dictionary.values().len()).fold(PIECE, usize::max);
        let (mut values, mut ties) = (Vec::with_capacity(batch.num_rows()), Vec::new());
        let mut priorities = Vec::with_capacity(batch.num_rows());
        for start in (0..batch.num_rows()).step_by(rows) {
            if start > 0 {
                tokio::task::yield_now().await;
            }
            let _timer = self.elapsed.timer();
            let piece = batch.slice(start, rows.min(batch.num_rows() - start));
            ties.extend(self.tags.values(piece.column(self.sensitive), &mut values)?);
            priorities.extend(self.tags.rows(piece.columns())?);
        }
        Ok(Message::Batch(Tagged { batch, times, values, priorities, ties, held: self.tags.size() }))
    }
}

/// Starts an execution; its rows arrive on the stream. Dropping the stream cancels it.
pub(super) fn run(
    mut input: SendableRecordBatchStream,
    costs: Option<SendableRecordBatchStream>,
    job: RepositionJob,
    schema: SchemaRef,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), 2);
    let baseline = BaselineMetrics::new(metrics, 0);
    let progress = Reporting(Progress::of(context));
    let mut tagger = tagger(&job, &input.schema(), &baseline).map_err(|error| error.in_function(REPOSITION))?;
    let worker = Worker::try_new(job, Arc::clone(&schema), builder.tx(), metrics, context)?;
    builder.spawn(async move {
        let (sender, receiver) = channel(2);
        let work = spawn_compute(REPOSITION.to_owned(), Monitor::default(), move |_| worker.run(receiver));
        let read = async {
            if let Some(mut costs) = costs {
                while let Some(batch) = costs.next().await {
                    let costs = tagger.costs(&batch?).map_err(|error| error.in_function(REPOSITION))?;
                    let _ = sender.send(costs).await;
                }
            }
            let mut rows = 0;
            while let Some(batch) = input.next().await {
                let batch = batch?;
                rows += batch.num_rows();
                progress.0.tell(Step::Read { rows });
                if batch.num_rows() == 0 {
                    continue;
                }
                let tagged = tagger.batch(batch).await.map_err(|error| error.in_function(REPOSITION))?;
                // Whoever does not listen has failed, or has nobody to talk to.
                if sender.send(tagged).await.is_err() {
                    break;
                }
            }
            let _ = sender.send(Message::End).await;
            drop(sender);
            Ok::<_, datafusion::error::DataFusionError>(())
        };
        let (read, worked) = futures::join!(read, work);
        // What went wrong with earlier rows comes first.
        worked.and(read)
    });
    Ok(counted(schema, builder.build(), baseline))
}

fn tagger(job: &RepositionJob, input: &SchemaRef, metrics: &BaselineMetrics) -> crate::error::Result<Tagger> {
    let (time, sensitive) = (input.index_of(&job.time)?, input.index_of(&job.sensitive)?);
    let key = job.seed.rng().random();
    Ok(Tagger {
        time: (job.time.clone(), time),
        sensitive,
        tags: RowHashes::try_new(input, sensitive, key)?,
        elapsed: metrics.elapsed_compute().clone(),
    })
}

/// Metrics that EXPLAIN ANALYZE shows.
struct Metrics {
    baseline: BaselineMetrics,
    input_rows: Count,
    published: Count,
    moved: Count,
    distance: Count,
    suppressed: Count,
    pending: Count,
    late: Count,
    peak_memory: Gauge,
}

/// Everything that computes.
struct Worker {
    job: RepositionJob,
    schema: SchemaRef,
    stream: Stream,
    /// Bytes that the tagger holds.
    tagger: usize,
    /// The snapshot that is being read.
    open: Option<i64>,
    records: Vec<Record>,
    held: BufferedRows,
    output: Output,
    metrics: Metrics,
    notices: Notices,
    reservation: MemoryReservation,
}

struct Output {
    sender: Sender<Result<RecordBatch>>,
    batch_size: usize,
    /// True if only published rows are shown.
    public: bool,
    rows: Vec<u64>,
    /// States that they came to, in the same order.
    runs: Vec<Outgoing>,
    /// Rows that nobody is shown.
    hidden: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Outgoing {
    rows: usize,
    /// Number of the snapshot that they are published in.
    published: Option<i64>,
    /// Place in [`STATUSES`].
    status: u8,
}

const PUBLISHED: u8 = 0;
const SUPPRESSED: u8 = 1;
const PENDING: u8 = 2;

impl Worker {
    fn try_new(
        job: RepositionJob,
        schema: SchemaRef,
        sender: Sender<Result<RecordBatch>>,
        metrics: &ExecutionPlanMetricsSet,
        context: &TaskContext,
    ) -> Result<Self> {
        let counter = |name: &'static str| MetricBuilder::new(metrics).counter(name, 0);
        Ok(Self {
            stream: Stream::try_new(&job.params).map_err(|error| error.in_function(REPOSITION))?,
            tagger: 0,
            schema,
            open: None,
            records: Vec::new(),
            held: BufferedRows::default(),
            output: Output {
                sender,
                batch_size: context.session_config().batch_size(),
                public: job.view == View::Public,
                rows: Vec::new(),
                runs: Vec::new(),
                hidden: Vec::new(),
            },
            metrics: Metrics {
                baseline: BaselineMetrics::new(metrics, 0),
                input_rows: counter("input_rows"),
                published: counter("published_rows"),
                moved: counter("moved_rows"),
                distance: counter("distance"),
                suppressed: counter("suppressed_rows"),
                pending: counter("pending_rows"),
                late: counter("late_rows"),
                peak_memory: MetricBuilder::new(metrics).gauge("peak_mem_used", 0),
            },
            notices: Notices::of(context),
            reservation: MemoryConsumer::new("RepositionExec").register(context.memory_pool()),
            job,
        })
    }

    fn run(mut self, mut messages: Receiver<Message>) -> crate::error::Result<()> {
        let mut next = messages.blocking_recv();
        while let Some(message) = next {
            let elapsed = self.metrics.baseline.elapsed_compute().clone();
            let timer = elapsed.timer();
            match message {
                Message::Costs(costs, ties, held) => {
                    self.tagger = held;
                    costs.into_iter().zip(ties).for_each(|(cost, tie)| self.stream.add_value(Some(cost), tie));
                }
                Message::Batch(tagged) => self.batch(tagged)?,
                Message::End => self.end()?,
            }
            drop(timer);
            self.account()?;
            // Rows wait for others while some are there to be read, and for no longer.
            next = messages.try_recv().ok();
            if next.is_some() && self.output.rows.len() < TOGETHER * self.output.batch_size {
                continue;
            }
            if !self.output.send(&mut self.held, &self.job, &self.schema, &elapsed)? {
                return Ok(()); // Nobody wants the rest: a LIMIT above, say.
            }
            if next.is_none() {
                next = messages.blocking_recv();
            }
        }
        Ok(())
    }

    fn batch(&mut self, tagged: Tagged) -> crate::error::Result<()> {
        let Tagged { batch, times, values, priorities, ties, held } = tagged;
        self.metrics.input_rows.add(batch.num_rows());
        self.tagger = held;
        ties.into_iter().for_each(|tie| self.stream.add_value(None, tie));
        let first = self.held.keep(batch);
        let mut late = 0;
        let times = times.values();
        let mut end = 0;
        // Rows of one time come one after the other.
        while let Some(&time) = times.get(end) {
            let start = end;
            end += times[start..].iter().take_while(|&&other| other == time).count();
            let snapshot = self.job.clock.snapshot(time);
            let rows = (start..end).map(|at| first | at as u64);
            if self.open.is_some_and(|open| snapshot < open) {
                late += end - start;
                self.output.add(rows, None, SUPPRESSED);
                continue;
            }
            if self.open != Some(snapshot) {
                self.close()?;
                self.open = Some(snapshot);
            }
            let tags = values[start..end].iter().zip(&priorities[start..end]);
            let record = |(row, (&value, &priority))| Record { value: value as u32, priority, row };
            self.records.extend(rows.zip(tags).map(record));
        }
        if late > 0 {
            if self.job.late == Late::Refuse {
                return Err(Error::refused(format!(
                    "{} rows are of snapshots that were closed before: the input is declared to be in the order of {}, but it is \
                     not; declare it rightly, or leave such rows out with late => 'suppress'",
                    thousands(late),
                    self.job.time
                )));
            }
            self.metrics.late.add(late);
            self.metrics.suppressed.add(late);
        }
        Ok(())
    }

    /// Hands the snapshot that was read to the window.
    fn close(&mut self) -> crate::error::Result<()> {
        let Some(snapshot) = self.open else { return Ok(()) };
        // The next one may be as large, if it is not the last one.
        let next = Vec::with_capacity(self.records.len().min(PIECE));
        let records = std::mem::replace(&mut self.records, next);
        let output = &mut self.output;
        self.stream.arrive(snapshot, records, &mut |departed| {
            output.leave(&departed);
            Ok(())
        })
    }

    fn end(&mut self) -> crate::error::Result<()> {
        self.close()?;
        let output = &mut self.output;
        if self.job.finish {
            self.stream.finish(&mut |departed| {
                output.leave(&departed);
                Ok(())
            })?;
        } else {
            let mut pending = self.stream.pending()?;
            self.metrics.pending.add(pending.len());
            pending.sort_by_key(|pending| (pending.placed.home, pending.placed.record.priority));
            output.add(pending.iter().map(|pending| pending.placed.record.row), None, PENDING);
        }
        let totals = self.stream.totals();
        self.metrics.published.add(totals.published);
        self.metrics.moved.add(totals.moved);
        self.metrics.distance.add(totals.distance);
        self.metrics.suppressed.add(totals.suppressed);
        tell_if_most_is_suppressed(
            &self.notices,
            totals.published,
            self.metrics.suppressed.value(),
            self.job.params.l,
            Asked::Call,
        );
        Ok(())
    }

    fn account(&self) -> crate::error::Result<()> {
        let open = self.records.capacity() * size_of::<Record>();
        let bytes = self.held.size() + open + self.output.size() + self.stream.size() + self.tagger;
        self.reservation.try_resize(bytes)?;
        self.metrics.peak_memory.set_max(bytes);
        Ok(())
    }
}

impl Output {
    fn add(&mut self, rows: impl ExactSizeIterator<Item = u64>, published: Option<i64>, status: u8) {
        if self.public && status != PUBLISHED {
            self.hidden.extend(rows);
        } else {
            self.runs.push(Outgoing { rows: rows.len(), published, status });
            self.rows.extend(rows);
        }
    }

    fn leave(&mut self, departed: &Departed) {
        self.add(departed.published.iter().map(|placed| placed.record.row), Some(departed.time), PUBLISHED);
        self.add(departed.suppressed.iter().map(|placed| placed.record.row), None, SUPPRESSED);
    }

    fn size(&self) -> usize {
        let rows = self.rows.capacity() + self.hidden.capacity();
        rows * size_of::<u64>() + self.runs.capacity() * size_of::<Outgoing>()
    }

    /// Sends all rows that have left, batch by batch; `false` if nobody wants them.
    fn send(
        &mut self,
        held: &mut BufferedRows,
        job: &RepositionJob,
        schema: &SchemaRef,
        elapsed: &Time,
    ) -> crate::error::Result<bool> {
        let mut left = self.runs.drain(..).filter(|run| run.rows > 0).peekable();
        let mut runs = Vec::new();
        for rows in self.rows.chunks(TOGETHER * self.batch_size) {
            let timer = elapsed.timer();
            runs.clear();
            let mut missing = rows.len();
            while let Some(run) = left.peek_mut().filter(|_| missing > 0) {
                let rows = run.rows.min(missing);
                runs.push(Outgoing { rows, ..*run });
                missing -= rows;
                run.rows -= rows;
                if run.rows == 0 {
                    left.next();
                }
            }
            let batch = gather(rows, &runs, held, job, schema)?;
            drop(timer);
            if self.sender.blocking_send(Ok(batch)).is_err() {
                return Ok(false);
            }
        }
        drop(left);
        held.release(self.rows.drain(..));
        held.release(self.hidden.drain(..));
        Ok(true)
    }
}

/// Returns a batch of rows, with their published times.
fn gather(
    rows: &[u64],
    runs: &[Outgoing],
    held: &BufferedRows,
    job: &RepositionJob,
    schema: &SchemaRef,
) -> crate::error::Result<RecordBatch> {
    let gathered = held.take(rows.iter().copied())?;
    let time = gathered.schema().index_of(&job.time)?;
    let mut columns = gathered.columns().to_vec();
    let published = begins_of(runs.iter().map(|run| (run.published, run.rows)), job.clock, columns[time].data_type())?;
    let original = std::mem::replace(&mut columns[time], published);
    if job.view == View::Private {
        columns.push(original);
        let of_run = |run: &Outgoing| std::iter::repeat_n(STATUSES[usize::from(run.status)], run.rows);
        let status: Vec<&str> = runs.iter().flat_map(of_run).collect();
        columns.push(Arc::new(StringArray::from_iter_values(status)));
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
