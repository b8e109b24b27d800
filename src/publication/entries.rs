//! The entries of the ledger: read as they were written or not at all, and merged so that their files are few.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use deltalake_core::DeltaTable;
use futures::{Stream, StreamExt, TryStreamExt};

use super::blocking::blocking;
use super::delta;
use super::failure::overtaken;
use super::files::{MadeFile, intact, make};
use super::ledger_state::LedgerFile;
use super::paths::numbered;
use super::place::Place;
use super::text_views::{Views, written_out};
use crate::error::{Error, refusal};

/// Files read at a time; each is in memory as a whole.
const FILES_AT_ONCE: usize = 4;
/// Bytes of rows that are read at once, several files side by side; those of larger files are read as they are asked for.
const AT_ONCE: usize = 64 << 20;
/// Rows of a batch of what is no entries.
const BATCH: usize = 8192;
/// Files with fewer rows are merged.
const SMALL: u64 = 1 << 18;
/// So many small ones may be there.
const FEW: usize = 4;

/// The entries of a ledger at one time.
#[derive(Debug, Clone)]
pub(crate) struct Entries {
    pub(super) place: Place,
    pub(super) ledger: DeltaTable,
    pub(super) files: Vec<LedgerFile>,
}

/// Files that become others with the same rows.
#[derive(Debug, Default)]
pub(crate) struct Compaction {
    pub(super) gone: Vec<LedgerFile>,
    pub(super) made: Vec<MadeFile>,
}

impl Entries {
    /// Reads all files and compares them with what was written.
    /// Fails when one is missing or damaged, or the store fails.
    pub(crate) async fn verify(&self) -> Result<()> {
        let reads = self.files.iter().map(|kept| async move { self.read(kept).await.map(|_| ()) });
        futures::stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(FILES_AT_ONCE).try_collect().await
    }

    /// Returns a file's contents, if they are those that were written.
    async fn read(&self, kept: &LedgerFile) -> Result<Bytes> {
        let path = Path::from(kept.file.name.as_str());
        let read = intact(self.place.store().as_ref(), &path, &kept.file).await;
        if let Some(contents) = read.map_err(|error| self.place.unreadable(error))? {
            return Ok(contents);
        }
        // Who has decided in the meantime may have merged it.
        if !delta::is_newest(&self.ledger).await.unwrap_or(true) {
            return Err(overtaken());
        }
        Err(refusal!(
            "publication",
            "the ledger at {} is damaged: its entries of release {} are not those that were written; restore it from \
             a backup of the time after the last release",
            self.place.url(),
            kept.release
        ))
    }

    /// Returns the contents of the files, one after the other. Errors are those of [`verify`](Self::verify).
    pub(super) fn contents(&self) -> impl Stream<Item = Result<Bytes>> {
        futures::stream::iter(&self.files).then(|kept| self.read(kept))
    }

    /// Returns a plan that reads columns of them.
    /// Fails when DataFusion does not take it.
    pub(crate) fn plan(self, columns: SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
        let partition: Arc<dyn PartitionStream> =
            Arc::new(EntriesStream { entries: self, columns: SchemaRef::clone(&columns) });
        Ok(Arc::new(StreamingTableExec::try_new(columns, vec![partition], None, None, false, None)?))
    }

    /// Merges the small files, if there are many. `number` is that of the release that they are merged for.
    /// Fails as [`verify`](Self::verify) does, and when there is not enough memory.
    pub(crate) async fn merge(&self, number: u64, memory: &MemoryReservation) -> Result<Compaction> {
        let small: Vec<LedgerFile> = self.files.iter().filter(|kept| kept.file.rows < SMALL).cloned().collect();
        if small.len() < FEW {
            return Ok(Compaction::default());
        }
        // What is read, what is made of it, and a batch.
        let bytes: u64 = small.iter().map(|kept| kept.file.size).sum();
        memory.try_grow(3 * bytes as usize)?;
        let reads = small.iter().map(|kept| self.read(kept));
        let contents: Vec<Bytes> =
            futures::stream::iter(reads.collect::<Vec<_>>()).buffered(FILES_AT_ONCE).try_collect().await?;
        let made = blocking(move || merge(contents, number)).await?;
        Ok(if made.is_empty() { Compaction::default() } else { Compaction { gone: small, made } })
    }
}

/// Writes the rows of files into as few as possible; no files if their columns differ.
fn merge(contents: Vec<Bytes>, number: u64) -> Result<Vec<MadeFile>> {
    let files = contents.into_iter().map(Views::of).collect::<Result<Vec<_>>>()?;
    let Some(schema) = files.first().map(|file| SchemaRef::clone(file.written())) else { return Ok(Vec::new()) };
    if files.iter().any(|file| *file.written() != schema) {
        return Ok(Vec::new());
    }
    let readers = files.into_iter().map(Views::read).collect::<Result<Vec<_>>>()?;
    let pieces = readers.into_iter().flatten().flat_map(|batch| -> Box<dyn Iterator<Item = Result<RecordBatch>>> {
        match batch {
            Ok(batch) => Box::new(written_out(&batch, &schema)),
            Err(error) => Box::new(std::iter::once(Err(error.into()))),
        }
    });
    let mut batches = pieces.peekable();
    let mut made = Vec::new();
    while batches.peek().is_some() {
        let mut rows = 0;
        let some = std::iter::from_fn(|| {
            let batch = if rows < SMALL { batches.next()? } else { return None };
            rows += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
            Some(batch.map_err(|error| Error::Engine(Box::new(error))))
        });
        let file = make(numbered(number)? + ".parquet", &schema, some);
        made.push(file.map_err(|error| error.in_function("publication"))?);
    }
    Ok(made)
}

/// Returns the entries of a file in memory, some at a time; texts are views.
/// Fails when it is no Parquet file.
pub(super) fn reader(contents: Bytes) -> Result<ParquetRecordBatchReader> {
    Views::of(contents)?.read()
}

pub(super) async fn decode(contents: Bytes) -> Result<Vec<RecordBatch>> {
    let decode = move || {
        let file = ParquetRecordBatchReaderBuilder::try_new(contents)?;
        let reader = file.with_batch_size(BATCH).build()?;
        reader.map(|batch| batch.map_err(DataFusionError::from)).collect()
    };
    blocking(decode).await
}

/// Returns the entries of a file in memory: read already where they are few, so that several files are read side by side.
async fn entries(contents: Bytes) -> Result<impl Stream<Item = Result<RecordBatch>>> {
    let read = move || {
        let file = Views::of(contents)?;
        let few = file.bytes() <= AT_ONCE;
        let mut reader = file.read()?;
        let first = if few { reader.by_ref().collect() } else { Vec::new() };
        Ok((first, reader))
    };
    let (first, reader) = blocking(read).await?;
    let rest = futures::stream::try_unfold(reader, |mut reader| async move {
        let next = move || {
            let batch = reader.next().transpose()?;
            Ok(batch.map(|batch| (batch, reader)))
        };
        blocking(next).await
    });
    Ok(futures::stream::iter(first).map_err(DataFusionError::from).chain(rest))
}

#[derive(Debug)]
struct EntriesStream {
    entries: Entries,
    columns: SchemaRef,
}

impl PartitionStream for EntriesStream {
    fn schema(&self) -> &SchemaRef {
        &self.columns
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (entries, columns) = (Arc::new(self.entries.clone()), SchemaRef::clone(&self.columns));
        let reads = (0..entries.files.len()).map(move |place| {
            let (entries, columns) = (Arc::clone(&entries), SchemaRef::clone(&columns));
            async move {
                let batches = self::entries(entries.read(&entries.files[place]).await?).await?;
                Ok::<_, DataFusionError>(batches.map(move |batch| choose(&batch?, &columns)))
            }
        });
        let rows = futures::stream::iter(reads).buffered(FILES_AT_ONCE).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(SchemaRef::clone(&self.columns), rows.boxed()))
    }
}

/// Returns the columns of a batch, with the types that they are to have.
fn choose(batch: &RecordBatch, columns: &SchemaRef) -> Result<RecordBatch> {
    let column = |field: &FieldRef| -> Result<ArrayRef> {
        match batch.column_by_name(field.name()) {
            Some(column) => Ok(cast(column, field.data_type())?),
            None => Err(refusal!(
                "publication",
                "the ledger has no column {}: it is of another version of this program",
                field.name()
            )),
        }
    };
    let chosen = columns.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(SchemaRef::clone(columns), chosen)?)
}
