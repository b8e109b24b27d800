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
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::beliefs::BeliefsStep;
use super::cells::{
    ByCell, CellCount, Refusals, Tried, by_cell, expected_rows, in_a_cell, in_cells, people_again, tags,
};
use super::inputs::{InputKinds, Inputs, Streams, facts};
use super::notices::Notices;
use super::progress::Reporting;
use super::release_writer::{Finished, ReleaseWriter, Written};
use super::window::{Before, WindowStep};
use super::work::Work;
use super::{AnonymizeJob, Job, Progress, Seed, Step, WholeInputExec};
use crate::error::{Asked, Error, thousands};
use crate::methods::state::ledger_schema;
use crate::methods::{LeftOut, StateKind};
use crate::microdata::{Layout, Trees};
use crate::publication::{Held, Merged, Outcome, Publication, Repositioned, Transaction, Unchanged};
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
    /// An operator over these inputs, which get their cells here if the release is made in several. `decided` is the version of the ledger
    /// that `inputs.previous` reads, 0 if there is none.
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
        self.publication.spec.method.name()
    }

    fn argument(&self, place: usize) -> &'static str {
        self.inputs.argument(place)
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
            // Its future is large.
            let rows = Box::pin(publishing.run(work, streams, &context)).await?;
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
        let transaction = Transaction::begin(&self.publication, self.decided, &context.runtime_env()).await?;
        let completed = transaction.completed();
        let published = self.publish(transaction, work, streams, &progress.0, context).await;
        published.map_err(|error| completed.before(error))
    }

    async fn publish(
        &self,
        mut transaction: Transaction,
        work: Arc<Work>,
        mut streams: Streams,
        progress: &Progress,
        context: &TaskContext,
    ) -> Result<u64> {
        let periods = transaction.periods()?;
        streams.microdata = transaction.look_at(streams.microdata, &self.layout, &self.left_out)?;
        let domain = self.publication.spec.has_domain();
        let observer = transaction.observer();
        streams.updates = streams.updates.map(|updates| observer.update_relation(updates, domain));
        if self.cells > 1 {
            return Box::pin(self.publish_in_cells(transaction, periods, work, streams, progress, context)).await;
        }
        let people = streams.identifiers.take();
        // Charged until what is held back is in the ledger.
        let window = MemoryConsumer::new("PublishExec: window").register(context.memory_pool());
        let mut held = None;
        if let Some(repositioned) = &self.publication.spec.repositioned {
            let mut arriving = collect(&mut streams.microdata, &window).await?;
            if let Some(unchanged) = transaction.unchanged().await? {
                return Ok(tell(&unchanged, context));
            }
            if transaction.is_known() {
                // Its rows are in the window, which is to be published.
                arriving.clear();
            }
            let step = WindowStep {
                repositioned: repositioned.clone(),
                layout: self.layout.clone(),
                late: self.publication.late,
                finish: self.publication.finish,
                batch_size: self.batch_size,
                number: transaction.number(),
                once: self.publication.spec.keeps_apart(),
            };
            let record = transaction.held_record().cloned();
            let before = Before { held: transaction.held_rows().await?, record };
            let windowed = step.take(before, arriving, &window, &self.metrics, &Notices::of(context)).await?;
            streams.microdata = windowed.published;
            held = Some(windowed.held);
        }
        let mut snapshot = work.collect(streams).await?;
        snapshot.set_number(transaction.number());
        snapshot.set_periods(periods);
        snapshot.remember(&self.remembered());
        let trees = snapshot.microdata.trees().map_err(|error| error.in_function(work.method.name()))?;
        transaction.check_updates().await?;
        if held.is_none()
            && let Some(unchanged) = transaction.unchanged().await?
        {
            return Ok(tell(&unchanged, context));
        }
        transaction.check_independence()?;
        transaction.check_period()?;
        // Rows that are held back were looked at when they came.
        if !transaction.is_known() {
            transaction.check_new_people(people_again(people, &self.layout, &work, &window).await?)?;
        }

        let (files, made) = channel(1);
        let mut writer = self.writer(transaction.number(), transaction.release_id(), &trees, files)?;
        let beliefs = MemoryConsumer::new("PublishExec: beliefs").register(context.memory_pool());
        writer.beliefs = self.beliefs(&transaction, &beliefs).await?;
        let seed = Seed::from_entropy()?;
        let (outcome, staged) = futures::join!(
            work.off_thread(move |work, monitor| writer.add(work, snapshot, seed.rng(), None, monitor)?.finish()),
            stage(&mut transaction, made, progress)
        );
        // Charged until the files are in the ledger.
        let ledger = MemoryConsumer::new("PublishExec: ledger").register(context.memory_pool());
        let merged = async {
            // If staging failed, the writer ended for lack of takers.
            let outcome = staged.and(outcome)?;
            Ok((outcome, transaction.merge(&ledger).await?))
        };
        let (outcome, merged) = match merged.await {
            Ok(made) => made,
            Err(error) => {
                transaction.discard().await;
                return Err(error);
            }
        };
        progress.tell(Step::Announcing);
        Box::pin(self.announce(transaction, outcome, merged, held, context)).await
    }

    /// Decides the release and makes it public, unless too many people are missing. Says who has returned, come and left: of an identifier that is
    /// written in another way than before, nobody is known, and no promise holds about anybody.
    async fn announce(
        &self,
        transaction: Transaction,
        outcome: Outcome,
        merged: Merged,
        held: Option<Held>,
        context: &TaskContext,
    ) -> Result<u64> {
        let mut notices = match transaction.check_people(&outcome) {
            Ok(notices) => notices,
            Err(error) => {
                transaction.discard().await;
                return Err(error);
            }
        };
        notices.extend(transaction.before_this());
        notices.extend(transaction.clock_notice().await);
        if outcome.held > 0 {
            notices.push(format!(
                "publication: {} people have another value than in an earlier release of this period, and are published with that one: values change from \
                 one period to the next (or say a later one with SET anonymize.period, if the snapshot is of that)",
                thousands(outcome.held)
            ));
        }
        let release = transaction.number();
        let rows = transaction.publish(outcome, merged, held).await?;
        Progress::of(context).tell(Step::Published { release });
        notices.iter().for_each(|notice| Notices::of(context).tell(notice));
        Ok(rows)
    }

    /// The same cell by cell. Whether the snapshot was published before is known when all of it was read, and then what was staged goes.
    async fn publish_in_cells(
        &self,
        mut transaction: Transaction,
        periods: Option<(Vec<u64>, u64)>,
        work: Arc<Work>,
        streams: Streams,
        progress: &Progress,
        context: &TaskContext,
    ) -> Result<u64> {
        let mut cells = ByCell::try_new(streams, self.cells, &work, context).await?;
        transaction.check_updates().await?;
        let allowed = transaction.check_independence().and_then(|()| transaction.check_period());
        if let Err(error) = allowed.and_then(|()| transaction.check_new_people(cells.again())) {
            // It may be the same snapshot again.
            cells.pass_over().await?;
            let unchanged = transaction.unchanged().await?;
            return unchanged.map_or(Err(error), |unchanged| Ok(tell(&unchanged, context)));
        }
        if cells.is_empty().await?
            && let Some(unchanged) = transaction.unchanged().await?
        {
            return Ok(tell(&unchanged, context));
        }
        let (files, made) = channel(1);
        let (number, release_id) = (transaction.number(), transaction.release_id().to_owned());
        let (outcome, staged) = futures::join!(
            self.write_cells(work, cells, periods, (number, &release_id), files),
            stage(&mut transaction, made, progress)
        );
        let ledger = MemoryConsumer::new("PublishExec: ledger").register(context.memory_pool());
        let merged = async {
            let outcome = staged.and(outcome)?;
            if let Some(unchanged) = transaction.unchanged().await? {
                return Ok(Err(unchanged));
            }
            Ok(Ok((outcome, transaction.merge(&ledger).await?)))
        };
        match merged.await {
            Ok(Ok((outcome, merged))) => {
                progress.tell(Step::Announcing);
                Box::pin(self.announce(transaction, outcome, merged, None, context)).await
            }
            Ok(Err(unchanged)) => {
                transaction.discard().await;
                Ok(tell(&unchanged, context))
            }
            Err(error) => {
                transaction.discard().await;
                Err(error)
            }
        }
    }

    async fn write_cells(
        &self,
        work: Arc<Work>,
        mut cells: ByCell,
        periods: Option<(Vec<u64>, u64)>,
        (number, release_id): (u64, &str),
        files: Sender<Finished>,
    ) -> Result<Outcome> {
        let seed = Seed::from_entropy()?;
        let tags = tags(&seed, self.cells);
        let (name, count) = (self.publication.spec.method.name(), self.cells);
        let mut writer = None;
        let mut refusals = Refusals::of(count);
        while let Some((cell, mut snapshot)) = cells.next(&work).await.map_err(|error| in_a_cell(error, name, count))? {
            snapshot.set_number(number);
            snapshot.set_periods(periods.clone());
            snapshot.remember(&self.remembered());
            let begun = match writer.take() {
                Some(begun) => Some(begun),
                None if refusals.any() => None,
                None => {
                    let trees = snapshot.microdata.trees().map_err(|error| error.in_function(name))?;
                    Some(self.writer(number, release_id, &trees, files.clone())?)
                }
            };
            let rows = snapshot.microdata.rows();
            let (rng, tag) = (seed.rng_of_cell(cell), tags.get(cell as usize).copied());
            let made = Arc::clone(&work).off_thread(move |work, monitor| {
                Tried::of(match begun {
                    Some(begun) => begun.add(work, snapshot, rng, tag, monitor).map(Some),
                    None => work.make(snapshot, rng, monitor).map(|_| None),
                })
            });
            let made = made.await.map_err(|error| in_a_cell(error, name, count))?;
            writer = refusals.take(made, rows).flatten();
        }
        refusals.check(name, if number == 1 { Asked::First } else { Asked::Later })?;
        match writer {
            Some(writer) => work.off_thread(move |_, _| writer.finish()).await,
            None => Err(Error::internal("a release without cells").in_function(name)),
        }
    }

    /// What readers believe before the release; `None` where that is not looked at, or is not known.
    async fn beliefs(&self, transaction: &Transaction, memory: &MemoryReservation) -> Result<Option<BeliefsStep>> {
        let spec = &self.publication.spec;
        // Steps of the law are counted by release there.
        if !BeliefsStep::is_of(&spec.method) || self.publication.period.is_some() || !transaction.knows_beliefs() {
            return Ok(None);
        }
        let before = transaction.beliefs(memory).await?;
        Ok(Some(BeliefsStep::new(before, transaction.number())))
    }

    /// The columns that the INSERT does not name, where people have in them what they had.
    fn remembered(&self) -> Vec<String> {
        match self.publication.spec.method.as_method().leaves_out() {
            LeftOut::Remembered => self.left_out.clone(),
            _ => Vec::new(),
        }
    }

    /// Which columns the release may lack: none where others may have them, in other cells or in other snapshots.
    fn leave_out(&self) -> LeftOut {
        let spec = &self.publication.spec;
        match self.cells > 1 || spec.repositioned.is_some() {
            true => LeftOut::Nothing,
            false => spec.method.as_method().leaves_out(),
        }
    }

    fn writer(&self, number: u64, release_id: &str, trees: &Trees, files: Sender<Finished>) -> Result<ReleaseWriter> {
        let spec = &self.publication.spec;
        let named = |error: Error| error.in_function(spec.method.name());
        let state = spec.remembers();
        let description = Description {
            method: spec.method.name().to_owned(),
            parameters: spec.parameters_text().map_err(named)?,
            release_id: release_id.to_owned(),
            number: Some(number),
        };
        let (view, form, nodes) = (View::Public, spec.method.form(), spec.hierarchies);
        let counted = state.is_some_and(StateKind::is_counted);
        let shape = Shape { view, form, signatures: false, labels: false, nodes, counted };
        Ok(ReleaseWriter {
            public: Arc::new(schema(&self.layout.clone().with_trees(trees), shape, &description)),
            private: ledger_schema(state, &self.layout).map_err(named)?,
            state,
            leave_out: self.leave_out(),
            left_out: self.left_out.clone(),
            remembered: self.remembered(),
            number,
            batch_size: self.batch_size,
            beliefs: None,
            files,
            written: Written::default(),
        })
    }
}

/// All rows, charged to the memory pool.
async fn collect(rows: &mut SendableRecordBatchStream, memory: &MemoryReservation) -> Result<Vec<RecordBatch>> {
    let mut all = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        memory.try_grow(get_record_batch_memory_size(&batch))?;
        all.push(batch);
    }
    Ok(all)
}

/// Stages files as they are made.
async fn stage(transaction: &mut Transaction, mut made: Receiver<Finished>, progress: &Progress) -> Result<()> {
    let mut rows = 0;
    while let Some(finished) = made.recv().await {
        match finished {
            Finished::Rows(file, of) => {
                rows += file.file.rows as usize;
                transaction.stage(file).await?;
                progress.tell(Step::Written { rows, of });
            }
            Finished::Entries(file) => transaction.stage_entries(file).await?,
        }
    }
    Ok(())
}

/// Says that a snapshot was published before. Returns the number of its rows that were published now.
fn tell(unchanged: &Unchanged, context: &TaskContext) -> u64 {
    if let Some(notice) = &unchanged.notice {
        Notices::of(context).tell(notice);
    }
    Progress::of(context).tell(Step::Published { release: unchanged.release });
    unchanged.rows
}
