//! Rows in the order of their time: as they come, where they do, and else sorted.
//!
//! What is written as it happens is in order, and few tables say so. Batches may overtake each other where a table is read in several partitions, so
//! whole batches are put in order. To see that takes a look at each time; a sort would compare rows many times, and copy all of them twice.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, SpillMetrics};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use futures::{Stream, StreamExt, TryStreamExt};

use super::buffered_rows::{bytes_of, numbers_of};
use super::whole_input::spawn_compute;
use crate::methods::Monitor;

/// Rows that are looked at before others may go on.
const PIECE: usize = 1 << 16;
/// A sort gets all of the memory but one part of so many.
const LEFT: usize = 16;
/// So many times what a sort keeps for to merge is memory for one of several that run side by side.
const OF_ONE: usize = 16;

/// The rows of an input in the order of its column `place` of times; within a time, in any order. Nothing leaves before all is read, and what is held is
/// charged to the memory pool. `time` is the same order, for a sort.
pub(super) fn in_order(
    mut input: SendableRecordBatchStream,
    time: PhysicalSortExpr,
    place: usize,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let schema = input.schema();
    let (context, metrics) = (Arc::clone(context), metrics.clone());
    let columns = Arc::clone(&schema);
    let rows = async move {
        let mut held = Held::new(place, &context);
        while let Some(batch) = input.next().await {
            if let Some(batch) = held.take(batch?).await {
                let (spilled, rest) = (SpillMetrics::new(&metrics, 0), futures::stream::once(async { Ok(batch) }));
                let before = held.for_a_sort(&columns, spilled.clone(), &context).await?;
                return sorted(before.chain(rest).chain(input), columns, time, (&metrics, spilled), &context);
            }
        }
        match held.put_in_order() {
            true => Ok(adapted(columns, held.rows())),
            false => {
                let spilled = SpillMetrics::new(&metrics, 0);
                let rows = held.for_a_sort(&columns, spilled.clone(), &context).await?;
                sorted(rows, columns, time, (&metrics, spilled), &context)
            }
        }
    };
    adapted(schema, futures::stream::once(rows).try_flatten())
}

fn adapted(
    schema: SchemaRef,
    rows: impl Stream<Item = Result<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// A batch in order, from its first time to its last.
struct InOrder {
    batch: RecordBatch,
    ends: (i64, i64),
    bytes: usize,
}

/// Batches each of which is in order.
struct Held {
    /// Column of times.
    place: usize,
    batches: VecDeque<InOrder>,
    reservation: MemoryReservation,
    /// What sorts ask for before they take any rows.
    room: usize,
}

impl Held {
    fn new(place: usize, context: &TaskContext) -> Self {
        let config = context.session_config();
        let of_sort = config.options().execution.sort_spill_reservation_bytes;
        Self {
            place,
            batches: VecDeque::new(),
            reservation: MemoryConsumer::new("RepositionExec").register(context.memory_pool()),
            room: of_sort.saturating_mul(2 * sorts(context)),
        }
    }

    /// Takes a batch, or gives it back, if it is not in order or there is no room for it.
    async fn take(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        if batch.num_rows() == 0 {
            return None;
        }
        let bytes = bytes_of(&batch);
        let ends = match self.reservation.try_grow(bytes.saturating_add(self.room)) {
            Ok(()) => {
                self.reservation.shrink(self.room);
                ends(&batch, self.place).await
            }
            Err(_) => return Some(batch),
        };
        let Some(ends) = ends else {
            self.reservation.shrink(bytes);
            return Some(batch);
        };
        self.batches.push_back(InOrder { batch, ends, bytes });
        None
    }

    /// Whether all are in order once batches are.
    fn put_in_order(&mut self) -> bool {
        let batches = self.batches.make_contiguous();
        batches.sort_by_key(|batch| batch.ends);
        batches.windows(2).all(|pair| pair[0].ends.1 <= pair[1].ends.0)
    }

    /// The rows, which leave the memory to a sort: through a file, where they would take more than a little of what there is.
    async fn for_a_sort(
        self,
        schema: &SchemaRef,
        spilled: SpillMetrics,
        context: &TaskContext,
    ) -> Result<SendableRecordBatchStream> {
        let little = match context.memory_pool().memory_limit() {
            MemoryLimit::Infinite => usize::MAX,
            MemoryLimit::Finite(limit) => limit / LEFT,
            MemoryLimit::Unknown => 0,
        };
        let runtime = context.runtime_env();
        if self.reservation.size() <= little || !runtime.disk_manager.tmp_files_enabled() {
            return Ok(adapted(Arc::clone(schema), self.rows()));
        }
        let spill = SpillManager::new(runtime, spilled, Arc::clone(schema))
            .with_compression_type(context.session_config().spill_compression());
        let mut file = spill.create_in_progress_file("RepositionExec")?;
        let Self { batches, reservation, .. } = self;
        let written = spawn_compute("reposition".to_owned(), Monitor::default(), move |monitor| {
            for InOrder { batch, bytes, .. } in batches {
                monitor.check()?;
                file.append_batch(&batch)?;
                reservation.shrink(bytes);
            }
            Ok(file.finish()?)
        });
        match written.await? {
            Some(file) => spill.read_spill_as_stream(file, None),
            None => Ok(adapted(Arc::clone(schema), futures::stream::empty())),
        }
    }

    fn rows(self) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
        let Self { batches, reservation, .. } = self;
        futures::stream::iter(batches).map(move |InOrder { batch, bytes, .. }| {
            reservation.shrink(bytes);
            Ok(batch)
        })
    }
}

/// The first and last time of a batch that is in order. Of NULL there is none.
pub(super) async fn ends(batch: &RecordBatch, place: usize) -> Option<(i64, i64)> {
    let mut last = None;
    let mut first = None;
    for start in (0..batch.num_rows()).step_by(PIECE) {
        if start > 0 {
            tokio::task::yield_now().await;
        }
        let piece = batch.column(place).slice(start, PIECE.min(batch.num_rows() - start));
        let times: Int64Array = numbers_of("", &piece).ok()?;
        if times.null_count() > 0 {
            return None;
        }
        let times = times.values();
        if !times.is_sorted() || last > times.first().copied() {
            return None;
        }
        first = first.or_else(|| times.first().copied());
        last = times.last().copied();
    }
    first.zip(last)
}

/// How many sorts there is memory for side by side: each keeps some of it to itself, whatever it is given to sort.
fn sorts(context: &TaskContext) -> usize {
    let config = context.session_config();
    let one = config.options().execution.sort_spill_reservation_bytes.saturating_mul(OF_ONE).max(1);
    match context.memory_pool().memory_limit() {
        MemoryLimit::Finite(limit) => config.target_partitions().min(limit / one).max(1),
        MemoryLimit::Infinite | MemoryLimit::Unknown => config.target_partitions(),
    }
}

/// The same rows sorted, on all cores if there is memory for it, which may spill. What is written is added to `spilled`.
fn sorted(
    rows: impl Stream<Item = Result<RecordBatch>> + Send + 'static,
    schema: SchemaRef,
    time: PhysicalSortExpr,
    (metrics, spilled): (&ExecutionPlanMetricsSet, SpillMetrics),
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    MetricBuilder::new(metrics).counter("sorted_inputs", 0).add(1);
    let order = LexOrdering::new([time]).ok_or_else(|| internal_datafusion_err!("no order"))?;
    let rows = Once { schema: Arc::clone(&schema), rows: Mutex::new(Some(adapted(Arc::clone(&schema), rows))) };
    let mut plan: Arc<dyn ExecutionPlan> =
        Arc::new(StreamingTableExec::try_new(Arc::clone(&schema), vec![Arc::new(rows)], None, [], false, None)?);
    let partitions = sorts(context);
    let mut spilling = Vec::new();
    if partitions > 1 {
        plan = Arc::new(RepartitionExec::try_new(plan, Partitioning::RoundRobinBatch(partitions))?);
        spilling.push(Arc::clone(&plan));
    }
    let sort: Arc<dyn ExecutionPlan> = Arc::new(SortExec::new(order.clone(), plan).with_preserve_partitioning(true));
    spilling.push(Arc::clone(&sort));
    let merged = SortPreservingMergeExec::new(order, sort);
    let rows = merged.execute(0, Arc::clone(context))?;
    let at_end = futures::stream::poll_fn(move |_| {
        for metrics in spilling.drain(..).filter_map(|plan| plan.metrics()) {
            spilled.spill_file_count.add(metrics.spill_count().unwrap_or(0));
            spilled.spilled_bytes.add(metrics.spilled_bytes().unwrap_or(0));
            spilled.spilled_rows.add(metrics.spilled_rows().unwrap_or(0));
        }
        std::task::Poll::Ready(None)
    });
    Ok(adapted(schema, rows.chain(at_end)))
}

/// Rows that can be read once.
struct Once {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        rows.unwrap_or_else(|| {
            let gone = async { Err(internal_datafusion_err!("rows that were read before")) };
            adapted(Arc::clone(&self.schema), futures::stream::once(gone))
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::compute::SortOptions;
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::physical_expr::expressions::Column;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    /// The times of batches as they come out, and whether they were sorted.
    async fn arranged(batches: &[Vec<Option<i64>>], limit: usize) -> (Vec<Option<i64>>, bool) {
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Int64, true)]));
        let batches: Vec<_> = batches
            .iter()
            .map(|times| {
                let times = times.iter().copied().collect::<Int64Array>();
                RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(times)]).map_err(Into::into)
            })
            .collect();
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(limit, 1.0).build_arc().unwrap();
        let mut config = SessionConfig::new().with_target_partitions(2).with_batch_size(1000);
        config.options_mut().execution.sort_spill_reservation_bytes = 1 << 16;
        let context = SessionContext::new_with_config_rt(config, Arc::clone(&runtime)).task_ctx();
        let time =
            PhysicalSortExpr::new(Arc::new(Column::new("t", 0)), SortOptions { descending: false, nulls_first: false });
        let metrics = ExecutionPlanMetricsSet::new();
        let input = adapted(Arc::clone(&schema), futures::stream::iter(batches));
        let rows = in_order(input, time, 0, &metrics, &context);
        let rows: Vec<RecordBatch> = rows.try_collect().await.unwrap();
        let times = rows.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().iter()).collect();
        assert_eq!(runtime.memory_pool.reserved(), 0);
        (times, metrics.clone_inner().sum_by_name("sorted_inputs").is_some())
    }

    fn times(range: std::ops::Range<i64>) -> Vec<Option<i64>> {
        range.map(|time| Some(time / 3)).collect()
    }

    #[tokio::test]
    async fn what_is_in_order_is_not_sorted() {
        const LIMIT: usize = 64 << 20;
        for batches in [
            vec![],
            vec![vec![]],
            vec![times(0..10)],
            vec![times(0..10), times(9..200_000), vec![], times(200_000..200_001)],
            // Batches that overtook others, and end within one time.
            vec![times(50..61), times(61..70), times(0..10), times(10..50)],
            vec![vec![Some(7); 5], vec![Some(7)], vec![Some(5), Some(7)]],
        ] {
            let mut expected = batches.concat();
            expected.sort_unstable();
            assert_eq!(arranged(&batches, LIMIT).await, (expected, false));
        }
    }

    /// Within a batch, between batches, from one piece of a batch to the next; NULL comes last, as in ORDER BY.
    #[tokio::test]
    async fn what_is_not_is_sorted() {
        const LIMIT: usize = 64 << 20;
        let mut late = times(0..200_000);
        late[PIECE] = Some(-5);
        for batches in [
            vec![vec![Some(2), Some(1)]],
            vec![times(0..10), times(5..30), vec![Some(4), None, Some(3)]],
            vec![times(0..30), times(20..40)],
            vec![times(0..5), late],
        ] {
            let mut expected = batches.concat();
            expected.sort_unstable_by_key(|time| time.unwrap_or(i64::MAX));
            assert_eq!(arranged(&batches, LIMIT).await, (expected, true));
        }
    }

    /// Where memory is short, whatever order rows come in, they are sorted, which spills.
    #[tokio::test]
    async fn what_does_not_fit_is_sorted_outside_of_memory() {
        let batches: Vec<_> = (0..500).map(|batch| times(batch * 1000..(batch + 1) * 1000)).collect();
        let expected = (batches.concat(), true);
        // Of less, one of two sorts may be left without anything on a busy machine.
        assert_eq!(arranged(&batches, 3 << 20).await, expected);
        assert_eq!(arranged(&batches, 64 << 20).await, (expected.0, false));
    }
}
