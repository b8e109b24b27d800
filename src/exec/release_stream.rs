//! Execution of the operator.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use tokio::sync::mpsc::Sender;

use super::Seed;
use super::inputs::Streams;
use super::notices::Notices;
use super::whole_input::counted;
use super::work::{Made, Work};
use crate::error::{Error, thousands};
use crate::methods::{AnyMethod, Monitor, SnapshotBuilder};
use crate::microdata::{MicrodataBuilder, trees_of};
use crate::release::{COMMITMENTS, PARTNERS, Published, RowOrder};

/// Starts an execution; its rows arrive on the stream. Dropping the stream cancels it.
pub(super) fn run(
    inputs: Streams,
    method: AnyMethod,
    seed: Seed,
    schema: SchemaRef,
    order: RowOrder,
    metrics: &ExecutionPlanMetricsSet,
    context: &Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), 2);
    let output = builder.tx();
    let batch_size = context.session_config().batch_size();
    let work = Arc::new(Work::new("AnonymizeExec", method, &inputs.layout, metrics, context));
    let baseline = work.metrics.baseline.clone();
    let remembers = inputs.previous.as_ref().is_some_and(|(kind, _)| kind.facts().signatures);
    let teller = Some(Teller { notices: Notices::of(context), remembers });
    let sink = ReleaseSink { schema: Arc::clone(&schema), order, batch_size, output, teller };
    builder.spawn(async move {
        let mut microdata = work.collect(inputs).await?;
        check_trees(&mut microdata.microdata, &sink.schema).map_err(|error| error.in_function(work.method.name()))?;
        work.off_thread(move |work, monitor| sink.publish(work, microdata, seed.rng(), None, monitor)).await
    });
    counted(schema, builder.build(), baseline)
}

/// Fails when the hierarchies are not those that the schema names.
pub(super) fn check_trees(microdata: &mut MicrodataBuilder, schema: &SchemaRef) -> crate::error::Result<()> {
    let Some(planned) = trees_of(schema.fields()) else { return Ok(()) };
    let trees = microdata.trees()?;
    match planned.iter().all(|(attribute, tree)| trees.get(attribute) == Some(tree)) {
        true => Ok(()),
        false => Err(Error::refused(
            "`hierarchies` has changed since the query was planned; run it again, and if it is a view, create that again",
        )),
    }
}

/// Returns true if rows with these columns say who they, or others, are about.
fn names_people(schema: &Schema, identifier: Option<&FieldRef>) -> bool {
    let told = identifier.map(|field| field.name().as_str()).into_iter().chain([PARTNERS, COMMITMENTS]);
    told.into_iter().any(|name| schema.column_with_name(name).is_some())
}

/// Batches of a core that are gathered together, at most: enough that it matters little which core is done first.
const BATCHES: usize = 4;
/// And bytes, at most, unless one batch has more: what is written next is still in the cache, and long values do not fill the memory.
const GATHERED: usize = 3 << 19;

pub(super) struct ReleaseSink {
    pub schema: SchemaRef,
    pub order: RowOrder,
    pub batch_size: usize,
    pub output: Sender<Result<RecordBatch>>,
    /// Says who is told of a release that is made as a whole.
    pub teller: Option<Teller>,
}

/// Tells the publisher what is worth knowing of a release.
pub(super) struct Teller {
    notices: Notices,
    /// True if earlier releases were given.
    remembers: bool,
}

impl Teller {
    /// Says that there are no rows, or how many people the earlier releases know.
    fn tell(&self, function: &str, rows: usize, returned: impl FnOnce() -> usize) {
        if rows == 0 {
            self.notices.tell(&format!("{function}: the input has no rows, and so the release has none"));
        } else if self.remembers {
            let returned = returned();
            let [returned, came] = [returned, rows.saturating_sub(returned)].map(thousands);
            self.notices.tell(&format!(
                "{function}: {returned} people were in an earlier release, {came} are new; whose identifier is not written as it was counts as new, and \
                 what the releases promise does not hold of them"
            ));
        }
    }
}

impl ReleaseSink {
    /// Computes the release, on a thread that may block. `tag` is that of a cell, if it is one that is released.
    pub(super) fn publish(
        &self,
        work: &Work,
        mut microdata: SnapshotBuilder,
        rng: ChaCha20Rng,
        tag: Option<u32>,
        monitor: &Monitor,
    ) -> crate::error::Result<()> {
        if !names_people(&self.schema, microdata.microdata.identifier()) {
            microdata.microdata.forget_names();
        }
        let timer = work.metrics.baseline.elapsed_compute().timer();
        let rows = microdata.microdata.rows();
        let Made { release, state, mut rng } = work.make(microdata, rng, monitor)?;
        if let Some(teller) = &self.teller {
            teller.tell(work.method.name(), rows, || state.returning(release.microdata.rows));
        }
        drop(state);
        let schema = Arc::clone(&self.schema);
        let published = monitor.phase("shuffle", || Ok(Published::new(release, schema, self.order, &mut rng)))?;
        let published = match tag {
            Some(tag) => published.in_cell(tag),
            None => published,
        };
        work.note_phases(monitor);
        drop(timer);
        // From here on rows are to be seen instead.
        work.done();
        self.send(&published, monitor)
    }

    /// Sends a few batches at a time. They are gathered in parallel while those before them are handed over.
    fn send(&self, published: &Published, monitor: &Monitor) -> crate::error::Result<()> {
        let batch_size = published.batch_rows(self.batch_size);
        let threads = rayon::current_num_threads();
        let gather = |first: usize, last: usize| -> crate::error::Result<Vec<RecordBatch>> {
            let starts: Vec<usize> = (first..last).step_by(batch_size).collect();
            let batch = |start: usize| {
                monitor.check()?;
                published.batch(start, batch_size.min(last - start))
            };
            starts.into_par_iter().map(batch).collect()
        };
        let hand_over =
            |batches: Vec<RecordBatch>| batches.into_iter().all(|batch| self.output.blocking_send(Ok(batch)).is_ok());
        let (mut ready, mut first) = (Vec::new(), 0);
        // Of a core, at a time.
        let mut batches = 1;
        while first < published.len() {
            let last = published.len().min(first + batches * threads * batch_size);
            let mut next = Ok(Vec::new());
            // On this thread, which may block, and not on one that others compute on.
            let wanted = rayon::in_place_scope(|scope| {
                scope.spawn(|_| next = gather(first, last));
                hand_over(std::mem::take(&mut ready))
            });
            if !wanted {
                return Ok(()); // Nobody wants the rest: a LIMIT above, say.
            }
            ready = next?;
            first = last;
            let bytes = ready.iter().map(RecordBatch::get_array_memory_size).max().unwrap_or(0);
            batches = (GATHERED / bytes.max(1)).clamp(1, BATCHES);
        }
        hand_over(ready);
        Ok(())
    }
}
