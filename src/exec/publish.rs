//! The operator that publishes the next release.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::beliefs::BeliefsStep;
use super::cells::{ByCell, CellCount, Refusals, by_cell, expected_rows, in_a_cell, in_cells, tags};
use super::inputs::{InputKinds, Inputs, Streams, facts, read_all};
use super::notices::Notices;
use super::progress::Reporting;
use super::release_writer::{Finished, ReleaseWriter, Written};
use super::snapshot::{People, Rows, Snapshot};
use super::window::{Before, WindowStep};
use super::work::Work;
use super::{AnonymizeJob, Job, Progress, Seed, Step, WholeInputExec};
use crate::error::{Asked, Error};
use crate::methods::LeftOut;
use crate::methods::state::ledger_schema;
use crate::microdata::{Layout, Trees};
use crate::publication::{Checked, Ended, Held, Outcome, Publication, Published, Reading, Repositioned};
use crate::release::{Description, Shape, View, schema};

/// Publishes its input as the next release of a publication.
///
/// ```text
/// PublishExec: publication=.., release=3, method=m_invariant, m=10, ..
///   <microdata: identifier, quasi-identifiers.., sensitive attribute, within; as far as there are any>
///   <the ledger: identifier, signature[, release]>               (optional)
///   <hierarchies: attribute, leaf, level1, level2, ..>           (optional)
///   <updates: from_value, to_value[, probability]>               (optional)
///   <counts of identifiers, and values of the whole table: see CellsExec> (optional)
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
    count: CellCount,
    /// Columns that the INSERT does not name.
    left_out: Vec<String>,
}

impl PublishExec {
    /// Returns an operator over these inputs. They get their cells here if the release is made in several. `decided` is
    /// the version of the ledger that `inputs.previous` reads, 0 if there is none.
    ///
    /// # Errors
    /// When an input never ends, the columns of the microdata are not those of the publication's roles, or the number of cells is not decided.
    pub fn try_new(inputs: Inputs, publication: Publication, decided: u64) -> Result<Self> {
        let spec = &publication.spec;
        let layout = Layout::try_new(&inputs.microdata.schema(), &spec.roles)
            .map_err(|error| error.in_function(spec.method.name()))?;
        let count = CellCount::new(spec.cells, expected_rows(&inputs.microdata));
        let left_out = inputs.left_out.clone();
        let inputs = match spec.cells {
            0 => return Err(Error::internal("cells that nobody has counted").in_function(spec.method.name())),
            1 => inputs,
            cells => {
                // Of the job, only places need the seed. That of the release is drawn when it is made.
                let (method, roles) = (spec.method.clone(), spec.roles.clone());
                let job = AnonymizeJob::new(method, roles, View::Private, Seed::from_entropy()?);
                in_cells(inputs, &job, &layout, true, cells)?
            }
        };
        let (inputs, plans) = inputs.into_plans();
        Self::over(Arc::new(PublishJob { publication, decided, left_out, inputs, layout, count }), plans)
    }

    /// Returns the publication.
    pub fn publication(&self) -> &Publication {
        &self.the_job().publication
    }
}

impl Job for PublishJob {
    fn operator(&self) -> &'static str {
        "PublishExec"
    }

    fn function(&self) -> &str {
        self.publication.spec.method.name()
    }

    fn argument(&self, place: usize) -> &'static str {
        self.inputs.argument(place, &self.publication.spec.method)
    }

    fn facts(&self) -> Result<Vec<String>, fmt::Error> {
        let mut own = vec![format!("publication={}", self.publication.public), format!("release={}", self.decided + 1)];
        if let Some(Repositioned { params, .. }) = &self.publication.spec.repositioned {
            own.push(format!("reposition=[l={}, window={}]", params.l, params.window));
        }
        own.extend(facts(&self.publication.spec.method, &self.layout)?);
        if self.count.cells > 1 {
            own.push(format!("cells={}", self.count.cells));
        }
        if let Some(period) = self.publication.period {
            own.push(format!("period={period}"));
        }
        Ok(own)
    }

    fn input_order(&self, place: usize, input: &Schema) -> Option<PhysicalSortExpr> {
        if self.count.cells > 1 && self.inputs.has_cells(place) { by_cell(input) } else { None }
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
        let method = self.publication.spec.method.clone();
        let asked = if self.decided == 0 { Asked::First } else { Asked::Later };
        let mut work = Work::new("PublishExec", method, &self.layout, metrics, context).asked(asked);
        if self.count.cells > 1 {
            let method = &self.publication.spec.method;
            let floor = self.count.reserved(method, &self.layout, context.memory_pool().as_ref());
            work.set_floor(floor).map_err(|error| in_a_cell(error, method.name(), self.count.cells))?;
        }
        let work = Arc::new(work);
        let publishing = Publishing {
            publication: self.publication.clone(),
            decided: self.decided,
            left_out: self.left_out.clone(),
            layout: self.layout.clone(),
            batch_size: context.session_config().batch_size(),
            metrics: metrics.clone(),
            cells: self.count.cells,
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

struct Publishing {
    publication: Publication,
    decided: u64,
    left_out: Vec<String>,
    layout: Layout,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
    cells: u32,
}

impl Publishing {
    /// Returns the number of rows that were published.
    async fn run(self, work: Arc<Work>, streams: Streams, context: &TaskContext) -> Result<u64> {
        let progress = Reporting(Progress::of(context));
        let reading = Reading::begin(&self.publication, self.decided, &context.runtime_env()).await?;
        let completed = reading.completed();
        // Its future is large.
        let published = match Box::pin(self.publish(reading, work, streams, &progress.0, context)).await {
            Ok(published) | Err(Ended::Repeated(published)) => published,
            Err(Ended::Failed(error)) => return Err(completed.before(error)),
        };
        progress.0.tell(Step::Published { release: published.release });
        let listeners = Notices::of(context);
        published.facts.iter().for_each(|fact| listeners.tell_fact(fact));
        published.notices.iter().for_each(|notice| listeners.tell(notice));
        Ok(published.rows)
    }

    async fn publish(
        &self,
        mut reading: Reading,
        work: Arc<Work>,
        streams: Streams,
        progress: &Progress,
        context: &TaskContext,
    ) -> Result<Published, Ended> {
        // Charged until what is held back is in the ledger.
        let window = MemoryConsumer::new("PublishExec: window").register(context.memory_pool());
        let (mut snapshot, held) = self.read(&mut reading, &work, streams, &window, context).await?;
        let mut checked = reading.check(&mut snapshot).await?;
        let (files, made) = channel(1);
        let beliefs = MemoryConsumer::new("PublishExec: beliefs").register(context.memory_pool());
        let writing = Writing {
            number: checked.number(),
            release_id: checked.release_id().to_owned(),
            beliefs: self.beliefs(&checked, &beliefs).await?,
            files,
        };
        let (outcome, staged) =
            futures::join!(self.write(work, snapshot, writing), stage(&mut checked, made, progress));
        // If staging failed, the writer ended for lack of takers.
        let staged = checked.staged(staged.and(outcome)).await?;
        // Charged until the files are in the ledger.
        let ledger = MemoryConsumer::new("PublishExec: ledger").register(context.memory_pool());
        let merged = staged.merge(&ledger).await?;
        progress.tell(Step::Announcing);
        Ok(Box::pin(merged.publish(held)).await?)
    }

    /// Reads the snapshot, but for cells, which are read one by one; and what a stream holds back.
    async fn read(
        &self,
        reading: &mut Reading,
        work: &Arc<Work>,
        mut streams: Streams,
        window: &MemoryReservation,
        context: &TaskContext,
    ) -> Result<(Snapshot, Option<Held>), Ended> {
        streams.microdata = reading.snapshot(streams.microdata, &self.layout, &self.left_out);
        streams.updates = streams.updates.map(|updates| reading.update_relation(updates));
        if self.cells > 1 {
            let cells = ByCell::try_new(streams, self.cells, work, context).await?;
            return Ok((Snapshot::new(reading, self.remembered(), Rows::InCells(Box::new(cells))), None));
        }
        let held = match &self.publication.spec.repositioned {
            Some(stream) => Some(self.take_in(stream, reading, &mut streams, window, context).await?),
            None => None,
        };
        let counts = streams.identifiers.take();
        let mut whole = work.collect(streams).await?;
        // Malformed hierarchies are refused before all else.
        whole.microdata.trees().map_err(|error| error.in_function(work.method.name()))?;
        let people = People { counts, layout: self.layout.clone(), work: Arc::clone(work), memory: window.new_empty() };
        let rows = Rows::Whole(Some(Box::new(whole)), Box::new(people));
        Ok((Snapshot::new(reading, self.remembered(), rows), held))
    }

    /// Takes the rows of a stream into its window. Those that leave it are the snapshot. Returns the others.
    async fn take_in(
        &self,
        stream: &Repositioned,
        reading: &Reading,
        streams: &mut Streams,
        window: &MemoryReservation,
        context: &TaskContext,
    ) -> Result<Held, Ended> {
        let mut arriving = read_all(&mut streams.microdata, window).await?;
        reading.recognize().await?;
        if reading.is_known() {
            // Its rows are in the window, which is to be published.
            arriving.clear();
        }
        let step = WindowStep {
            repositioned: stream.clone(),
            layout: self.layout.clone(),
            late: self.publication.late,
            finish: self.publication.finish,
            batch_size: self.batch_size,
            number: reading.number(),
            once: self.publication.spec.keeps_apart(),
        };
        let before = Before { held: reading.held_rows().await?, record: reading.held_record().cloned() };
        let windowed = step.take(before, arriving, window, &self.metrics, &Notices::of(context)).await?;
        streams.microdata = windowed.published;
        Ok(windowed.held)
    }

    /// Makes the release, and hands over its files as they are finished.
    async fn write(&self, work: Arc<Work>, mut snapshot: Snapshot, mut writing: Writing) -> Result<Outcome> {
        let seed = Seed::from_entropy()?;
        let (name, count) = (self.publication.spec.method.name(), self.cells);
        let tags = if count > 1 { tags(&seed, count) } else { Vec::new() };
        let mut writer = None;
        let mut refusals = Refusals::of(count);
        while let Some((cell, mut rows)) = snapshot.next(&work).await.map_err(|error| in_a_cell(error, name, count))? {
            let begun = match writer.take() {
                Some(begun) => begun,
                None => {
                    let trees = rows.microdata.trees().map_err(|error| error.in_function(name))?;
                    self.writer(&mut writing, &trees)?
                }
            };
            let (rng, tag) = (seed.rng_of_cell(cell), tags.get(cell as usize).copied());
            let made = refusals
                .make(&work, rows, rng, move |work, rows, rng, monitor| begun.add(work, rows, rng, tag, monitor));
            writer = made.await?;
        }
        refusals.check(name, if writing.number == 1 { Asked::First } else { Asked::Later })?;
        match writer {
            Some(writer) => work.off_thread(move |_, _| writer.finish()).await,
            None => Err(Error::internal("a release without cells").in_function(name)),
        }
    }

    /// Reads the beliefs of readers before the release; `None` if they are not looked at, or not known.
    async fn beliefs(&self, checked: &Checked, memory: &MemoryReservation) -> Result<Option<BeliefsStep>> {
        let spec = &self.publication.spec;
        // Steps of the law are counted by release there.
        let counted = self.cells == 1 && self.publication.period.is_none();
        if !counted || !BeliefsStep::is_of(&spec.method) || !checked.knows_beliefs() {
            return Ok(None);
        }
        let before = checked.beliefs(memory).await?;
        Ok(Some(BeliefsStep::new(before, checked.number())))
    }

    /// Returns the columns that the INSERT does not name, and in which people keep values.
    fn remembered(&self) -> Vec<String> {
        match self.publication.spec.method.as_method().leaves_out() {
            LeftOut::Remembered => self.left_out.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the columns that the release may lack: none where others may have them.
    fn leave_out(&self) -> LeftOut {
        let spec = &self.publication.spec;
        match self.cells > 1 || spec.repositioned.is_some() {
            true => LeftOut::Nothing,
            false => spec.method.as_method().leaves_out(),
        }
    }

    fn writer(&self, writing: &mut Writing, trees: &Trees) -> Result<ReleaseWriter> {
        let spec = &self.publication.spec;
        let named = |error: Error| error.in_function(spec.method.name());
        let state = spec.remembers();
        let parameters = spec.parameters_text().map_err(named)?;
        let description =
            Description::new(spec.method.name(), parameters, writing.release_id.clone(), Some(writing.number));
        let (view, form, nodes) = (View::Public, spec.method.form(), spec.hierarchies);
        let counted = state.is_some_and(|kind| kind.facts().counted);
        let shape = Shape { view, form, signatures: false, labels: false, rings: false, nodes, counted };
        Ok(ReleaseWriter {
            public: Arc::new(schema(&self.layout.clone().with_trees(trees), shape, &description)),
            private: ledger_schema(state, &self.layout).map_err(named)?,
            state,
            leave_out: self.leave_out(),
            left_out: self.left_out.clone(),
            remembered: self.remembered(),
            number: writing.number,
            batch_size: self.batch_size,
            beliefs: writing.beliefs.take(),
            files: writing.files.clone(),
            written: Written::default(),
        })
    }
}

/// Shared means of writing all cells of a release.
struct Writing {
    number: u64,
    release_id: String,
    /// Beliefs of readers before it, if they are looked at.
    beliefs: Option<BeliefsStep>,
    files: Sender<Finished>,
}

async fn stage(checked: &mut Checked, mut made: Receiver<Finished>, progress: &Progress) -> Result<()> {
    let mut rows = 0;
    while let Some(finished) = made.recv().await {
        match finished {
            Finished::Rows(file, of) => {
                rows += file.file.rows as usize;
                checked.stage(file).await?;
                progress.tell(Step::Written { rows, of });
            }
            Finished::Entries(file) => checked.stage_entries(file).await?,
        }
    }
    Ok(())
}
