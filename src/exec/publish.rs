//! The operator that publishes the next release.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use tokio::sync::mpsc::{Receiver, channel};

use super::inputs::{InputKinds, Inputs, Streams, facts};
use super::making::Making;
use super::notices::Notices;
use super::progress::Reporting;
use super::reposition::{REPOSITION, tell_if_most_is_suppressed};
use super::whole_input::spawn_compute;
use super::window::{self, Stepped};
use super::work::{Read, Work};
use super::{Job, Progress, Seed, Step, WholeInputExec};
use crate::error::thousands;
use crate::methods::state::ledger_schema;
use crate::methods::{Monitor, StateKind};
use crate::microdata::{Layout, Trees};
use crate::publication::{
    Attempt, Desk, Fingerprint, HeldBack, MadeFile, Merged, OVERTAKEN, Publication, Record, RelationFingerprint,
    Remembered, Repositioned, make, numbered, random_name,
};
use crate::release::{Description, Shape, View, schema};

/// Publishes its input as the next release of a publication.
///
/// ```text
/// PublishExec: publication=.., release=3, method=m_invariant, m=10, ..
///   <microdata: identifier, quasi-identifiers.., sensitive attribute, within; as far as there are any>
///   <the ledger: identifier, signature[, release]>               (optional)
///   <hierarchies: attribute, leaf, level1, level2, ..>           (optional)
///   <updates: from_value, to_value[, probability]>               (optional)
/// ```
///
/// One partition, one row: the number of rows of the snapshot, or 0 if it is published already. Planning reads the ledger's
/// version; if another release is decided between then and the commit, this one fails without a trace.
pub type PublishExec = WholeInputExec<PublishJob>;

/// A publication, what is published, and what was read of its ledger.
#[derive(Debug)]
pub struct PublishJob {
    publication: Publication,
    /// The newest release that was decided when this was planned.
    decided: u64,
    inputs: InputKinds,
    layout: Layout,
}

impl PublishExec {
    /// An operator over these inputs. `decided` is the version of the ledger that `inputs.previous` reads, 0 if there is none.
    ///
    /// # Errors
    /// When an input never ends, or the columns of the microdata are not those of the publication's roles.
    pub fn try_new(inputs: Inputs, publication: Publication, decided: u64) -> Result<Self> {
        let terms = &publication.terms;
        let layout = Layout::try_new(&inputs.microdata.schema(), &terms.roles)
            .map_err(|error| error.in_function(terms.method.name()))?;
        let (inputs, plans) = inputs.into_plans();
        Self::over(Arc::new(PublishJob { publication, decided, inputs, layout }), plans)
    }

    /// The publication.
    pub fn publication(&self) -> &Publication {
        &self.the_job().publication
    }
}

impl Job for PublishJob {
    fn operator(&self) -> &'static str {
        "PublishExec"
    }

    fn function(&self) -> &str {
        self.publication.terms.method.name()
    }

    fn argument(&self, place: usize) -> &'static str {
        self.inputs.argument(place)
    }

    fn facts(&self) -> Result<Vec<String>, fmt::Error> {
        let mut own = vec![format!("publication={}", self.publication.public), format!("release={}", self.decided + 1)];
        if let Some(Repositioned { params, .. }) = &self.publication.terms.repositioned {
            own.push(format!("reposition=[l={}, window={}]", params.l, params.window));
        }
        own.extend(facts(&self.publication.terms.method, &self.layout)?);
        Ok(own)
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]))
    }

    fn start(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        metrics: &ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let streams = self.inputs.streams(inputs, self.layout.clone())?;
        let method = self.publication.terms.method.clone();
        let work = Work::new("PublishExec", method, &self.layout, metrics, context);
        let publishing = Publishing {
            publication: self.publication.clone(),
            decided: self.decided,
            layout: self.layout.clone(),
            batch_size: context.session_config().batch_size(),
            metrics: metrics.clone(),
        };
        let (schema, context) = (self.schema(), Arc::clone(context));
        let row = SchemaRef::clone(&schema);
        let result = futures::stream::once(async move {
            let rows = publishing.run(work, streams, &context).await?;
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
            Ok(RecordBatch::try_new(row, vec![count])?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, result)))
    }
}

/// One execution.
struct Publishing {
    publication: Publication,
    decided: u64,
    layout: Layout,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
}

/// Rows that have gone through the window.
struct Windowed {
    /// Those that are published now.
    published: SendableRecordBatchStream,
    record: HeldBack,
    /// Those that are held back.
    file: Option<MadeFile>,
}

impl Publishing {
    /// Returns the number of rows that were published.
    async fn run(self, work: Work, streams: Streams, context: &Arc<TaskContext>) -> Result<u64> {
        let progress = Reporting(Progress::of(context));
        let mut desk = self.open(context).await?;
        desk.verify_ledger().await?;
        let Some(completed) = desk.announce().await? else {
            return self.publish(desk, work, streams, &progress.0, false, context).await;
        };
        let next = async {
            let desk = self.open(context).await?;
            self.publish(desk, work, streams, &progress.0, true, context).await
        };
        next.await.map_err(|error| {
            error.context(format!(
                "publication: release {}, which was decided earlier, is public now; what follows is about the next one",
                completed.number
            ))
        })
    }

    /// The publication as it was when this was planned: what was read of the ledger is all there is.
    async fn open(&self, context: &TaskContext) -> Result<Desk> {
        let desk = Desk::open(self.publication.clone(), &context.runtime_env()).await?;
        if desk.decided().unwrap_or(0) == self.decided {
            return Ok(desk);
        }
        exec_err!("{OVERTAKEN}")
    }

    /// Publishes the snapshot, unless it is published already; `completed` says that this was just done.
    async fn publish(
        &self,
        mut desk: Desk,
        work: Work,
        mut streams: Streams,
        progress: &Progress,
        completed: bool,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let mut fingerprint = Fingerprint::new(desk.fingerprint_key());
        let mut updates = streams.updates.is_some().then(|| RelationFingerprint::new(desk.fingerprint_key()));
        let mut rows = 0;
        let mut windowed = None;
        // Charged until what is held back is in the ledger.
        let reservation = MemoryConsumer::new("PublishExec: window").register(context.memory_pool());
        if let Some(repositioned) = &self.publication.terms.repositioned {
            let mut arriving = Vec::new();
            while let Some(batch) = streams.microdata.next().await {
                let batch = batch?;
                fingerprint.add(&batch)?;
                rows += batch.num_rows() as u64;
                reservation.try_grow(get_record_batch_memory_size(&batch))?;
                arriving.push(batch);
            }
            let found = fingerprint.finish();
            let newest = desk.newest();
            let before = self.published_before(&desk, &found, rows);
            let same = before.is_some();
            let held = newest.and_then(|newest| newest.held_back.as_ref());
            if let Some(number) = before
                && (!self.publication.finish || held.is_none_or(|held| held.finished))
            {
                return Ok(self.repeated(&desk, number, rows, completed, context).await);
            }
            if same {
                // Its rows are in the window, which is to be published.
                arriving.clear();
            }
            if rows == 0 && !(self.publication.finish && held.is_some_and(|held| held.rows > 0)) {
                return exec_err!(
                    "publication: there are no rows; nothing was published. To publish what is held back, declare the publication with \
                     'finish' 'true'"
                );
            }
            fingerprint = Fingerprint::new(desk.fingerprint_key());
            let before = held.cloned();
            let held = desk.held_back().await?;
            let notices = Notices::of(context);
            let through = self.through_window(repositioned.clone(), held, before, arriving, &reservation, &notices);
            let through = through.await?;
            streams.microdata = through.published;
            windowed = Some((through.record, through.file, found));
        }
        let seen = |read: Read<'_>| match (read, &mut updates) {
            (Read::Microdata(batch), _) => fingerprint.add(batch),
            (Read::Updates(batch), Some(updates)) => updates.add(batch),
            (Read::Updates(_), None) => Ok(()),
        };
        let mut microdata = work.collect(streams, seen).await?;
        let trees = microdata.microdata.trees().map_err(|error| error.in_function(work.method.name()))?;
        let (held_back, held, fingerprint) = match windowed {
            Some((record, file, found)) => (Some(record), file, found),
            None => {
                rows = microdata.microdata.rows() as u64;
                (None, None, fingerprint.finish())
            }
        };
        let updates = updates.map(RelationFingerprint::finish);
        if desk.newest().is_some_and(|newest| newest.updates != updates) {
            return exec_err!(
                "publication: the update relation is not the one that the first release was made with, and it cannot change: what \
                 was thought possible then is what earlier releases are safe by. Nothing was published; restore the relation, or \
                 begin another publication, with updates that check_snapshots(..) has found to be enough"
            );
        }
        if rows == 0 && held_back.is_none() {
            return exec_err!(
                "publication: the snapshot has no rows; nothing was published, because a release of nobody is hardly meant and \
                 could not be taken back"
            );
        }
        if held_back.is_none()
            && let Some(number) = self.published_before(&desk, &fingerprint, rows)
        {
            return Ok(self.repeated(&desk, number, rows, completed, context).await);
        }
        let state = work.method.state();
        self.refuse_independent(state)?;

        let number = self.decided + 1;
        let release_id = random_name()?;
        let (files, made) = channel(1);
        let making = Making {
            public: self.public_schema(number, &release_id, &trees)?,
            private: ledger_schema(state, &self.layout).map_err(|error| error.in_function(work.method.name()))?,
            state,
            number,
            batch_size: self.batch_size,
            files,
        };
        let schema = SchemaRef::clone(&making.private);
        let seed = Seed::from_entropy()?;
        let mut attempt = Attempt::new(number)?;
        let (outcome, staged) = futures::join!(
            work.off_thread(move |work, monitor| making.run(work, microdata, &seed, monitor)),
            stage(&desk, &mut attempt, made, progress)
        );
        // Charged until the files are in the ledger.
        let merging = MemoryConsumer::new("PublishExec: ledger").register(context.memory_pool());
        let merged = async {
            // If staging failed, making ended for lack of takers.
            let outcome = staged.and(outcome)?;
            let entries = desk.entries();
            let merged = match &entries {
                Some(entries) => entries.merge(number, &merging).await?,
                None => Merged::default(),
            };
            Ok::<_, DataFusionError>((outcome, merged))
        };
        let (outcome, merged) = match merged.await {
            Ok(made) => made,
            Err(error) => {
                desk.discard(&attempt).await;
                return Err(error);
            }
        };
        progress.tell(Step::Announcing);
        let record = Record {
            number,
            attempt: attempt.name.clone(),
            release_id,
            fingerprint,
            earlier: desk.newest().map(Record::fingerprints).unwrap_or_default(),
            updates,
            snapshot_rows: rows,
            files: attempt.files.clone(),
            entries: outcome.entries.iter().map(|made| made.file.clone()).collect(),
            figures: outcome.figures,
            withheld: outcome.withheld,
            information_loss: outcome.information_loss,
            held_back,
        };
        let remembered = Remembered { entries: &outcome.entries, merged, held: held.as_ref() };
        if !desk.decide(record, &remembered, &schema).await? {
            return exec_err!(
                "publication: another INSERT decided release {number} of this publication while this one was at work; this one \
                 has published nothing: run it again"
            );
        }
        desk.announce().await?;
        Ok(rows)
    }

    /// The release that was made of this snapshot, if there is one: a job that was killed runs again, somebody is in doubt, or a
    /// whole script runs again. Where snapshots may be repeated, only the newest release counts, as to the first two.
    fn published_before(&self, desk: &Desk, fingerprint: &str, rows: u64) -> Option<u64> {
        let found = desk.made_of(fingerprint, rows)?;
        (!self.publication.repeated || desk.decided() == Some(found)).then_some(found)
    }

    /// Says so instead of publishing it again. `completed`: this statement has made its release public.
    /// What killed attempts have left goes.
    async fn repeated(&self, desk: &Desk, number: u64, rows: u64, completed: bool, context: &TaskContext) -> u64 {
        desk.sweep(desk.published()).await;
        if completed && desk.decided() == Some(number) {
            return rows;
        }
        let newer = match desk.decided() {
            Some(newest) if newest > number => format!(
                "; readers see release {newest}, which is newer: if the table has really come back to what it was then, declare                  the publication with 'allow_repeated_snapshots' 'true'"
            ),
            _ => String::new(),
        };
        Notices::of(context).tell(&format!(
            "publication: this snapshot of {} rows is that of release {number}; nothing was published{newer}",
            thousands(rows as usize)
        ));
        0
    }

    /// Takes rows into the window, and out of it what is published.
    async fn through_window(
        &self,
        repositioned: Repositioned,
        held: Vec<RecordBatch>,
        before: Option<HeldBack>,
        arriving: Vec<RecordBatch>,
        reservation: &MemoryReservation,
        notices: &Notices,
    ) -> Result<Windowed> {
        let bytes: usize = held.iter().map(get_record_batch_memory_size).sum();
        // Tags, records and counts of each row, and the rows that leave.
        let rows: usize = held.iter().chain(&arriving).map(RecordBatch::num_rows).sum();
        reservation.try_grow(2 * bytes + reservation.size() + 128 * rows)?;
        let (layout, late, finish) = (self.layout.clone(), self.publication.late, self.publication.finish);
        let (batch_size, number) = (self.batch_size, self.decided + 1);
        let seed = Seed::from_entropy()?;
        let l = repositioned.params.l;
        let stepped = spawn_compute(REPOSITION.to_owned(), Monitor::default(), move |monitor| {
            let step = window::Step { repositioned: &repositioned, layout: &layout, late, finish, batch_size };
            let Stepped { published, held, mut record, left, unproven } =
                step.run(&held, before.as_ref(), arriving, &seed, monitor)?;
            let mut file = None;
            if held.num_rows() > 0 {
                let made = make(numbered(number)? + ".parquet", &window::held_schema(&layout), [Ok(held)])?;
                record.file = Some(made.file.clone());
                file = Some(made);
            }
            Ok((published, record, file, left, unproven))
        });
        let (published, record, file, (left, suppressed), unproven) = stepped.await?;
        let count = |name: &'static str, count: u64| {
            MetricBuilder::new(&self.metrics).counter(name, 0).add(count as usize);
        };
        count("held_back_rows", record.rows);
        count("suppressed_rows", suppressed as u64);
        count("unproven_windows", unproven as u64);
        tell_if_most_is_suppressed(notices, left - suppressed, suppressed, l);
        let schema = Arc::new(Schema::new(self.layout.fields().cloned().collect::<Vec<_>>()));
        let published = futures::stream::iter(published.into_iter().map(Ok));
        Ok(Windowed { published: Box::pin(RecordBatchStreamAdapter::new(schema, published)), record, file })
    }

    fn public_schema(&self, number: u64, release_id: &str, trees: &Trees) -> Result<SchemaRef> {
        let method = &self.publication.terms.method;
        let description = Description {
            method: method.name().to_owned(),
            parameters: self.publication.terms.parameters_text().map_err(|error| error.in_function(method.name()))?,
            release_id: release_id.to_owned(),
            number: Some(number),
        };
        let nodes = self.publication.terms.hierarchies;
        let shape = Shape { view: View::Public, form: method.form(), signatures: false, labels: false, nodes };
        Ok(Arc::new(schema(&self.layout.clone().with_trees(trees), shape, &description)))
    }

    fn refuse_independent(&self, state: Option<StateKind>) -> Result<()> {
        if state.is_none() && self.decided > 0 && !self.publication.independent {
            return exec_err!(
                "{}: a second release would be made without knowledge of the first, and together they can give away what each \
                 of them hides; use 'method' 'm_invariant', or, if no person is in two releases, set \
                 'allow_independent_releases' 'true'",
                self.publication.terms.method.name()
            );
        }
        Ok(())
    }
}

/// Stages files as they are made.
async fn stage(
    desk: &Desk,
    attempt: &mut Attempt,
    mut made: Receiver<(MadeFile, usize)>,
    progress: &Progress,
) -> Result<()> {
    let mut rows = 0;
    while let Some((file, of)) = made.recv().await {
        rows += file.file.rows as usize;
        desk.stage(attempt, file).await.map_err(|error| {
            error.context("publication: the release could not be staged beside the ledger; nothing was published")
        })?;
        progress.tell(Step::Written { rows, of });
    }
    Ok(())
}
