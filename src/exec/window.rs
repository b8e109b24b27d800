//! The window of a publication: rows go in with every INSERT, and those whose snapshot leaves the window come out.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use rand::Rng;
use rustc_hash::FxHashSet;

use super::Seed;
use super::buffered_rows::{BufferedRows, begins_of, numbers_of};
use super::notices::Notices;
use super::reposition_job::{REPOSITION, tell_if_most_is_suppressed};
use super::whole_input::spawn_compute;
use crate::error::{Asked, Error, Result, thousands};
use crate::methods::Monitor;
use crate::methods::reposition::{Departed, Late, Pending, Placed, Record, Stream};
use crate::microdata::{Layout, RowHashes};
use crate::publication::{Held, HeldBack, Repositioned, make, numbered};

/// Column of what is held back: the snapshot that a row is to be published in as things are, NULL if in none.
const PLACE: &str = "place";

pub(super) struct WindowStep {
    pub repositioned: Repositioned,
    /// The columns of the rows.
    pub layout: Layout,
    pub late: Late,
    /// True if all of the window is published.
    pub finish: bool,
    pub batch_size: usize,
    /// Number of the release.
    pub number: u64,
    /// True if nobody may be in two releases.
    pub once: bool,
}

/// Rest of the step before.
pub(super) struct Before {
    /// Rows that are held back.
    pub held: Vec<RecordBatch>,
    /// Record of that step.
    pub record: Option<HeldBack>,
}

pub(super) struct Windowed {
    /// Rows that are published now.
    pub published: SendableRecordBatchStream,
    /// Rows that are held back.
    pub held: Held,
}

struct Stepped {
    /// Rows that are published, with their published time.
    published: Vec<RecordBatch>,
    /// Rows that are held back, and where they are.
    held: RecordBatch,
    /// Record of the step, to be written down.
    record: HeldBack,
    /// Rows that left the window in this step, and those of them never published.
    left: (usize, usize),
}

fn schema(layout: &Layout) -> SchemaRef {
    Arc::new(Schema::new(layout.fields().cloned().collect::<Vec<_>>()))
}

/// Returns the columns of what is held back: those of the rows, and their places.
fn held_schema(layout: &Layout) -> SchemaRef {
    let place: FieldRef = Arc::new(Field::new(PLACE, DataType::Int64, true));
    Arc::new(Schema::new(layout.fields().cloned().chain([place]).collect::<Vec<_>>()))
}

impl WindowStep {
    /// Takes in rows, on a thread that may block. `reservation` has those that arrive, and is charged with all else.
    /// Fails for rows of snapshots that were closed, NULLs, identifiers twice; internal ones when a snapshot fails its check.
    pub(super) async fn take(
        self,
        before: Before,
        arriving: Vec<RecordBatch>,
        reservation: &MemoryReservation,
        metrics: &ExecutionPlanMetricsSet,
        notices: &Notices,
    ) -> Result<Windowed, DataFusionError> {
        let bytes: usize = before.held.iter().map(get_record_batch_memory_size).sum();
        // Tags, records and counts of each row, and the rows that leave.
        let rows: usize = before.held.iter().chain(&arriving).map(RecordBatch::num_rows).sum();
        reservation.try_grow(2 * bytes + reservation.size() + 128 * rows)?;
        let seed = Seed::from_entropy()?;
        let (l, schema) = (self.repositioned.params.l, schema(&self.layout));
        let stepped = spawn_compute(REPOSITION.to_owned(), Monitor::default(), move |monitor| {
            let stepped = self.run(&before.held, before.record.as_ref(), arriving, &seed, monitor)?;
            let file = match stepped.held.num_rows() {
                0 => None,
                _ => {
                    let name = numbered(self.number)? + ".parquet";
                    Some(make(name, &held_schema(&self.layout), [Ok(stepped.held.clone())])?)
                }
            };
            Ok((stepped, file))
        });
        let (Stepped { published, mut record, left: (left, suppressed), .. }, file) = stepped.await?;
        record.file = file.as_ref().map(|made| made.file.clone());
        let count = |name: &'static str, count: u64| {
            MetricBuilder::new(metrics).counter(name, 0).add(count as usize);
        };
        count("held_back_rows", record.rows);
        count("suppressed_rows", suppressed as u64);
        tell_if_most_is_suppressed(notices, left - suppressed, suppressed, l, Asked::Later);
        let published = futures::stream::iter(published.into_iter().map(Ok));
        let published = Box::pin(RecordBatchStreamAdapter::new(schema, published));
        Ok(Windowed { published, held: Held { record, file } })
    }

    /// Computes. `held` is what the step before has held back, and `before` what it wrote down.
    fn run(
        &self,
        held: &[RecordBatch],
        before: Option<&HeldBack>,
        arriving: Vec<RecordBatch>,
        seed: &Seed,
        monitor: &Monitor,
    ) -> Result<Stepped> {
        let schema = schema(&self.layout);
        let (Some(sensitive), Some(within)) = (&self.layout.sensitive, &self.layout.within) else {
            return Err(Error::internal("a stream without time or sensitive attribute"));
        };
        let (sensitive, time) = (schema.index_of(sensitive.name())?, schema.index_of(within.name())?);
        let clock = self.repositioned.clock;
        let mut tags = RowHashes::try_new(&schema, sensitive, seed.rng().random())?;
        let mut stream = Stream::try_new(&self.repositioned.params)?;
        let people = Identities::new(&self.layout);
        let mut batches = BufferedRows::default();
        let mut restored = Vec::new();
        let mut snapshots: BTreeMap<i64, Vec<Record>> = BTreeMap::new();
        let mut late = 0;
        let newest = before.and_then(|before| before.newest);

        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let mut all: Vec<(RecordBatch, Option<&ArrayRef>)> = Vec::new();
        for batch in held {
            all.push((batch.project(&columns)?, Some(batch.column(columns.len()))));
        }
        all.extend(arriving.into_iter().map(|batch| (batch, None)));
        if self.once {
            people.refuse_two_releases(all.iter().map(|(batch, _)| batch))?;
        }
        for (batch, places) in all {
            monitor.check()?;
            if batch.num_rows() == 0 {
                continue;
            }
            let times = numbers_of(within.name(), batch.column(time))?;
            if batch.column(sensitive).null_count() > 0 {
                return Err(Error::refused(format!(
                    "column {} has NULL; leave such rows out, or give them a value of their own",
                    schema.field(sensitive).name()
                )));
            }
            let mut values = Vec::new();
            for tie in tags.values(batch.column(sensitive), &mut values)? {
                stream.add_value(None, tie);
            }
            let priorities = tags.rows(batch.columns())?;
            let places = places.map(|places| places.as_primitive::<Int64Type>());
            people.refuse_nulls(&batch)?;
            let first = batches.keep(batch.clone());
            for at in 0..batch.num_rows() {
                let home = clock.snapshot(times.value(at));
                let record = Record { value: values[at] as u32, priority: priorities[at], row: first | at as u64 };
                match places {
                    Some(places) => {
                        let place = (!places.is_null(at)).then(|| places.value(at));
                        restored.push(Pending { placed: Placed { record, home }, place });
                    }
                    None if newest.is_some_and(|newest| home <= newest) => {
                        late += 1;
                    }
                    None => snapshots.entry(home).or_default().push(record),
                }
            }
        }
        if late > 0 && self.late == Late::Refuse {
            return Err(Error::refused(format!(
                "{} rows are of snapshots that an earlier INSERT has closed, so they come too late; nothing was published. Leave them out, \
                 or have them suppressed: 'late' 'suppress'",
                thousands(late)
            )));
        }
        if let Some(newest) = newest {
            stream.restore(&restored, newest)?;
        }
        let mut out: Vec<(u64, i64)> = Vec::new();
        let mut leave = |departed: Departed| {
            out.extend(departed.published.iter().map(|placed| (placed.record.row, departed.time)));
            Ok(())
        };
        for (snapshot, records) in snapshots {
            monitor.check()?;
            stream.arrive(snapshot, records, &mut leave)?;
        }
        let pending = match self.finish {
            true => {
                stream.finish(&mut leave)?;
                Vec::new()
            }
            false => stream.pending()?,
        };
        let published = out.chunks(self.batch_size).map(|rows| {
            let batch = batches.take(rows.iter().map(|&(row, _)| row))?;
            let mut columns = batch.columns().to_vec();
            let runs = rows.chunk_by(|a, b| a.1 == b.1).map(|run| (Some(run[0].1), run.len()));
            columns[time] = begins_of(runs, clock, columns[time].data_type())?;
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        });
        let published = published.collect::<Result<Vec<_>>>()?;
        people.refuse_twice(&published)?;
        let held = self.held(&batches, &pending)?;
        people.refuse_twice(std::slice::from_ref(&held))?;
        let totals = stream.totals();
        let sum = |count: fn(&HeldBack) -> u64, now: usize| before.map_or(0, count) + now as u64;
        let record = HeldBack {
            newest: stream.newest().or(newest),
            rows: pending.len() as u64,
            finished: self.finish,
            published: sum(|before| before.published, totals.published),
            moved: sum(|before| before.moved, totals.moved),
            distance: sum(|before| before.distance, totals.distance),
            suppressed: sum(|before| before.suppressed, totals.suppressed + late),
            late: sum(|before| before.late, late),
            file: None,
        };
        let left = (totals.published + totals.suppressed + late, totals.suppressed + late);
        Ok(Stepped { published, held, record, left })
    }

    /// Returns the rows that are held back, in the order of a keyed hash.
    fn held(&self, batches: &BufferedRows, pending: &[Pending]) -> Result<RecordBatch> {
        let schema = held_schema(&self.layout);
        if pending.is_empty() {
            return Ok(RecordBatch::new_empty(schema));
        }
        let mut order: Vec<&Pending> = pending.iter().collect();
        order.sort_unstable_by_key(|pending| (pending.placed.record.priority, pending.placed.record.row));
        let batch = batches.take(order.iter().map(|pending| pending.placed.record.row))?;
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(order.iter().map(|pending| pending.place).collect::<Int64Array>()));
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

/// The column of identifiers, if there is one: the first. Rows of a person that are published at one time, or may be later, could meet in
/// one release, which no method publishes.
struct Identities {
    field: Option<FieldRef>,
}

impl Identities {
    fn new(layout: &Layout) -> Self {
        Self { field: layout.identifier.clone() }
    }

    fn refuse_nulls(&self, batch: &RecordBatch) -> Result<()> {
        match &self.field {
            Some(field) if batch.column(0).null_count() > 0 => {
                Err(Error::refused(format!("column {} has NULL, but every row must say who it is about", field.name())))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// When somebody has two rows, of which each can be published in a release of its own.
    fn refuse_two_releases<'a>(&self, rows: impl Iterator<Item = &'a RecordBatch>) -> Result<()> {
        match (&self.field, self.is_twice(rows)?) {
            (Some(field), true) => Err(Error::refused(format!(
                "column {} has a value twice among the rows that arrive or are held back, and nobody may be in two releases of a method that knows of \
                 none before. Nothing was published: leave one of the rows out, or give each record an identifier of its own",
                field.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Fails when somebody has two rows that could meet in one release.
    fn refuse_twice(&self, batches: &[RecordBatch]) -> Result<()> {
        match (&self.field, self.is_twice(batches.iter())?) {
            (Some(field), true) => Err(Error::refused(format!(
                "column {} has a value twice among the rows that would be published at one time, or be held back together; they could \
                 meet in one release, where a person is one row. Nothing was published: insert the snapshots one by one, or leave \
                 one of the rows out",
                field.name()
            ))),
            _ => Ok(()),
        }
    }

    fn is_twice<'a>(&self, rows: impl Iterator<Item = &'a RecordBatch>) -> Result<bool> {
        let Some(field) = &self.field else { return Ok(false) };
        let converter = RowConverter::new(vec![SortField::new(field.data_type().clone())])?;
        let mut seen: FxHashSet<Box<[u8]>> = FxHashSet::default();
        for batch in rows {
            let identifiers = converter.convert_columns(&[Arc::clone(batch.column(0))])?;
            if !identifiers.iter().all(|row| seen.insert(row.as_ref().into())) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
