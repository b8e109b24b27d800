//! Files that `COPY` and `INSERT` write are there as a whole or not at all.
//!
//! DataFusion closes the file that it is writing when its input fails, as if the rows so far were all: a release that is
//! refused, or fails half-way, leaves an empty or cut file in the place of the one that was there. Here, a local file gets
//! its name when all of it is written; elsewhere, writing is given up before it can come to an end. Local files of private views are the
//! owner's alone.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::parquet::ParquetSink;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileOutputMode, FileSink, FileSinkConfig};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectStore, ObjectStoreExt};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::StreamExt;
use tokio::sync::oneshot;

use super::Seed;
use super::private_files::{is_private, keep_to_owner, local_path, make_closed_directory, remove_directory};

/// Makes `COPY .. TO` and `INSERT INTO` of files leave what was there as it was when they fail, and gives local files of private views
/// mode 0600. For a session that is being built ([`SessionStateBuilder::with_physical_optimizer_rule`](datafusion::execution::SessionStateBuilder)).
#[derive(Debug, Default)]
pub struct WholeFiles;

impl PhysicalOptimizerRule for WholeFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let whole = |node: Arc<dyn ExecutionPlan>| -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
            let Some(exec) = node.downcast_ref::<DataSinkExec>() else { return Ok(Transformed::no(node)) };
            let Some(sink) = WholeSink::around(exec)? else { return Ok(Transformed::no(node)) };
            let exec = DataSinkExec::new(Arc::clone(exec.input()), Arc::new(sink), exec.sort_order().clone());
            Ok(Transformed::yes(Arc::new(exec) as Arc<dyn ExecutionPlan>))
        };
        plan.transform_up(whole).data()
    }

    fn name(&self) -> &'static str {
        "whole_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A sink of files that ends well or leaves no trace.
#[derive(Debug)]
struct WholeSink {
    /// What was to be done.
    original: DataSinkExec,
    /// What is done instead with a local file.
    aside: Option<Aside>,
    /// Says where a private view goes that is not written aside, on a local disk.
    private: Option<Place>,
}

/// A place on a local disk.
#[derive(Debug)]
enum Place {
    File(PathBuf),
    Directory(PathBuf),
}

impl Place {
    /// `None` if it is elsewhere.
    fn of(config: &FileSinkConfig) -> Option<Self> {
        let location = config.table_paths.first()?;
        let path = local_path(location)?;
        let single = config.file_output_mode.single_file_output(location) && config.table_partition_cols.is_empty();
        Some(if single { Self::File(path) } else { Self::Directory(path) })
    }
}

/// A file that is written under another name first.
#[derive(Debug)]
struct Aside {
    sink: Arc<dyn DataSink>,
    store: ObjectStoreUrl,
    unnamed: Path,
    named: Path,
    /// The directory that a private file is written in, and the file.
    closed: Option<[PathBuf; 2]>,
}

impl WholeSink {
    /// `None` of what writes no files that we know of.
    fn around(original: &DataSinkExec) -> Result<Option<Self>> {
        let sink = original.sink();
        if sink.is::<Self>() {
            return Ok(None);
        }
        let private = is_private(original.input().schema().as_ref());
        let mut config = None;
        let aside = if let Some(sink) = sink.downcast_ref::<ParquetSink>() {
            config = Some(sink.config());
            // Only the original knows how its rows are sorted, and writes that down.
            match original.sort_order() {
                None => Aside::of(sink.config(), private, |config| {
                    ParquetSink::new(config, sink.parquet_options().clone())
                })?,
                Some(_) => None,
            }
        } else if let Some(sink) = sink.downcast_ref::<CsvSink>() {
            config = Some(sink.config());
            Aside::of(sink.config(), private, |config| CsvSink::new(config, sink.writer_options().clone()))?
        } else if let Some(sink) = sink.downcast_ref::<JsonSink>() {
            config = Some(sink.config());
            Aside::of(sink.config(), private, |config| JsonSink::new(config, sink.writer_options().clone()))?
        } else {
            None
        };
        let private = config.filter(|_| private && aside.is_none()).and_then(Place::of);
        Ok(Some(Self { original: original.clone(), aside, private }))
    }

    fn sink(&self) -> &dyn DataSink {
        match &self.aside {
            Some(aside) => aside.sink.as_ref(),
            None => self.original.sink(),
        }
    }

    /// Writes a local file beside its place, then puts it there.
    async fn write_aside(aside: &Aside, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        let store = context.runtime_env().object_store(&aside.store)?;
        let directory = aside.closed.as_ref().map(|[directory, _]| directory.clone());
        if let Some(directory) = &directory {
            make_closed_directory(directory.clone()).await?;
        }
        let path = aside.unnamed.clone();
        let mut cleaning = Cleaning { store: Some(Arc::clone(&store)), path, directory: directory.clone() };
        let written = match aside.sink.write_all(data, context).await {
            Ok(rows) => aside.name(store.as_ref()).await.map(|()| rows),
            Err(error) => Err(error),
        };
        if written.is_err() {
            // There may be none.
            let _ = store.delete(&aside.unnamed).await;
        }
        if let Some(directory) = directory {
            remove_directory(directory).await;
        }
        cleaning.store = None;
        written
    }

    /// Writes a private view that cannot be renamed: files in a directory that nobody else can enter, if it is a new one; a file gets its mode
    /// when it is written.
    async fn write_private(
        &self,
        place: &Place,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        if let Place::Directory(directory) = place {
            make_closed_directory(directory.clone()).await?;
        }
        let rows = self.write_or_drop(data, context).await?;
        if let Place::File(file) = place {
            keep_to_owner(file.clone()).await?;
        }
        Ok(rows)
    }

    /// Writes what cannot be renamed: when the input fails, the writer waits for more until it is dropped, and what was not
    /// completed never was.
    async fn write_or_drop(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        let (fail, failed) = oneshot::channel::<DataFusionError>();
        let (schema, mut fail) = (data.schema(), Some(fail));
        let rows = data.then(move |batch| {
            let fail = if batch.is_err() { fail.take() } else { None };
            async move {
                match (batch, fail) {
                    (Err(error), Some(fail)) => {
                        let _ = fail.send(error);
                        futures::future::pending().await
                    }
                    (batch, _) => batch,
                }
            }
        });
        let rows = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
        let written = self.original.sink().write_all(rows, context);
        match futures::future::select(std::pin::pin!(failed), written).await {
            futures::future::Either::Left((Ok(error), _)) => Err(error),
            // All rows are in.
            futures::future::Either::Left((Err(_), written)) => written.await,
            futures::future::Either::Right((written, _)) => written,
        }
    }
}

impl Aside {
    /// `None` if it is not a single local file.
    fn of<S: DataSink>(
        config: &FileSinkConfig,
        private: bool,
        sink: impl FnOnce(FileSinkConfig) -> S,
    ) -> Result<Option<Self>> {
        let [location] = config.table_paths.as_slice() else { return Ok(None) };
        let single = config.file_output_mode.single_file_output(location) && config.table_partition_cols.is_empty();
        let (Some(name), "file", true) = (location.prefix().filename(), location.scheme(), single) else {
            return Ok(None);
        };
        // Nobody who lists the directory takes it for a table's file.
        let unnamed = format!(".{name}.{}.tmp", Seed::from_entropy()?.release_id());
        let mut url = location.get_url().clone();
        let directory = if private { local_path(location).map(|file| file.with_file_name(&unnamed)) } else { None };
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop().push(&unnamed);
            if directory.is_some() {
                parts.push(name);
            }
        }
        let closed = directory.map(|directory| [directory.clone(), directory.join(name)]);
        let other = ListingTableUrl::try_new(url, None)?;
        let (unnamed, named) = (other.prefix().clone(), location.prefix().clone());
        let file_output_mode = FileOutputMode::SingleFile;
        let config = FileSinkConfig { table_paths: vec![other], file_output_mode, ..config.clone() };
        let store = config.object_store_url.clone();
        Ok(Some(Self { sink: Arc::new(sink(config)), store, unnamed, named, closed }))
    }

    /// Gives the file its mode, if it is private, and its name.
    async fn name(&self, store: &dyn ObjectStore) -> Result<()> {
        if let Some([_, file]) = &self.closed {
            keep_to_owner(file.clone()).await?;
        }
        Ok(store.rename(&self.unnamed, &self.named).await?)
    }
}

/// Removes a file that nobody will finish.
struct Cleaning {
    store: Option<Arc<dyn ObjectStore>>,
    path: Path,
    directory: Option<PathBuf>,
}

impl Drop for Cleaning {
    fn drop(&mut self) {
        if let (Some(store), Ok(runtime)) = (self.store.take(), tokio::runtime::Handle::try_current()) {
            let (path, directory) = (self.path.clone(), self.directory.take());
            runtime.spawn(async move {
                let _ = store.delete(&path).await;
                if let Some(directory) = directory {
                    remove_directory(directory).await;
                }
            });
        }
    }
}

impl DisplayAs for WholeSink {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sink().fmt_as(t, f)
    }
}

#[async_trait]
impl DataSink for WholeSink {
    fn metrics(&self) -> Option<MetricsSet> {
        self.sink().metrics()
    }

    fn schema(&self) -> &SchemaRef {
        self.sink().schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        match (&self.aside, &self.private) {
            (Some(aside), _) => Self::write_aside(aside, data, context).await,
            (None, Some(place)) => self.write_private(place, data, context).await,
            (None, None) => self.write_or_drop(data, context).await,
        }
    }
}
