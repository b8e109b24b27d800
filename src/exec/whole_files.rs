//! Files that `COPY` and `INSERT` write are there as a whole or not at all.
//!
//! DataFusion closes the file that it is writing when its input fails, as if the rows so far were all: a release that is
//! refused, or fails half-way, leaves an empty or cut file in the place of the one that was there. Here, a local file gets
//! its name when all of it is written; elsewhere, writing is given up before it can come to an end. Local files of private views are the
//! owner's alone.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
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
use futures::{StreamExt, TryStreamExt};
use tokio::sync::oneshot;

use super::Seed;
use super::private_columns::has_private;
use super::private_files::{
    keep_to_owner, local_path, make_closed_directory, move_files, note_people, remove_directory, remove_files,
};
use crate::microdata::Role;
use crate::release::{OWN, PART};

/// Keeps files when a failing `COPY .. TO` or `INSERT INTO` would change them. It gives local files of private views mode 0600. For a
/// session that is being built ([`SessionStateBuilder::with_physical_optimizer_rule`](datafusion::execution::SessionStateBuilder)).
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
    original: DataSinkExec,
    /// Replacement for a local file.
    aside: Option<Aside>,
    /// The same of a local directory of private files.
    folder: Option<Folder>,
    /// Says where a private view goes that is not written aside, on a local disk.
    private: Option<Place>,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Directory(PathBuf),
}

impl Place {
    /// Makes the file; `None` if it is elsewhere.
    fn of(config: &FileSinkConfig) -> Option<Self> {
        let location = config.table_paths.first()?;
        let path = local_path(location)?;
        let single = config.file_output_mode.single_file_output(location) && config.table_partition_cols.is_empty();
        Some(if single { Self::File(path) } else { Self::Directory(path) })
    }
}

/// A directory of private files that is written in a closed one first.
#[derive(Debug)]
struct Folder {
    sink: Arc<dyn DataSink>,
    /// Nobody else can enter it. It stands in the other one.
    closed: PathBuf,
    named: PathBuf,
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
    /// Facts that a Parquet file is to say of the people in it.
    people: Option<People>,
}

/// The people of a release that is written whole.
#[derive(Debug)]
struct People {
    /// Its id.
    release: String,
    identifier: usize,
}

impl People {
    /// Finds the people; `None` if rows are of no private view, of several, or of a part of one.
    fn of(schema: &Schema) -> Option<Self> {
        let is_id = |field: &FieldRef| field.metadata().get(Role::KEY).map(String::as_str) == Some(Role::Id.name());
        let identifier = schema.fields().iter().position(is_id)?;
        let says = |begin: &str| -> Vec<String> {
            let keys = schema.field(identifier).metadata().keys();
            keys.filter_map(|key| key.strip_prefix(begin)).map(str::to_owned).collect()
        };
        let [release] = <[String; 1]>::try_from(says(OWN)).ok()?;
        says(PART).is_empty().then_some(Self { release, identifier })
    }
}

impl WholeSink {
    /// Wraps a sink; `None` if it writes no files that we know of.
    fn around(original: &DataSinkExec) -> Result<Option<Self>> {
        let sink = original.sink();
        if sink.is::<Self>() {
            return Ok(None);
        }
        let private = has_private(original.input());
        let mut config = None;
        let mut folder = None;
        let aside = if let Some(sink) = sink.downcast_ref::<ParquetSink>() {
            config = Some(sink.config());
            // Only the original knows how its rows are sorted, and writes that down.
            match original.sort_order() {
                None => {
                    let made = |config| ParquetSink::new(config, sink.parquet_options().clone());
                    folder = Folder::of(sink.config(), private, made)?;
                    let people = People::of(original.input().schema().as_ref());
                    Aside::of(sink.config(), private, made)?.map(|aside| Aside { people, ..aside })
                }
                Some(_) => None,
            }
        } else if let Some(sink) = sink.downcast_ref::<CsvSink>() {
            config = Some(sink.config());
            let made = |config| CsvSink::new(config, sink.writer_options().clone());
            folder = Folder::of(sink.config(), private, made)?;
            Aside::of(sink.config(), private, made)?
        } else if let Some(sink) = sink.downcast_ref::<JsonSink>() {
            config = Some(sink.config());
            let made = |config| JsonSink::new(config, sink.writer_options().clone());
            folder = Folder::of(sink.config(), private, made)?;
            Aside::of(sink.config(), private, made)?
        } else {
            None
        };
        let private = config.filter(|_| private && aside.is_none() && folder.is_none()).and_then(Place::of);
        Ok(Some(Self { original: original.clone(), aside, folder, private }))
    }

    fn sink(&self) -> &dyn DataSink {
        match (&self.aside, &self.folder) {
            (Some(aside), _) => aside.sink.as_ref(),
            (None, Some(folder)) => folder.sink.as_ref(),
            (None, None) => self.original.sink(),
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
        let people = Arc::new(AtomicU64::new(0));
        let data = match &aside.people {
            Some(People { identifier, .. }) => {
                let (schema, identifier, people) = (data.schema(), *identifier, Arc::clone(&people));
                let counted = data.inspect_ok(move |batch| {
                    let column = batch.column(identifier);
                    people.fetch_add((column.len() - column.logical_null_count()) as u64, Ordering::Relaxed);
                });
                Box::pin(RecordBatchStreamAdapter::new(schema, counted)) as SendableRecordBatchStream
            }
            None => data,
        };
        let written = match aside.sink.write_all(data, context).await {
            Ok(rows) => aside.name(store.as_ref(), people.load(Ordering::Relaxed)).await.map(|()| rows),
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

    /// Writes private files in a closed directory, and moves them, with their mode. A directory that is new is closed, too.
    async fn write_folder(
        &self,
        folder: &Folder,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        make_closed_directory(folder.named.clone()).await?;
        make_closed_directory(folder.closed.clone()).await?;
        let mut leaving = Leaving(Some(folder.closed.clone()));
        let written = match self.write_or_drop(folder.sink.as_ref(), data, context).await {
            Ok(rows) => move_files(folder.closed.clone(), folder.named.clone()).await.map(|()| rows),
            Err(error) => Err(error),
        };
        remove_files(folder.closed.clone()).await;
        leaving.0 = None;
        written
    }

    /// Writes a private view whose rows are sorted, which cannot be renamed: files get their mode when they are written.
    async fn write_private(
        &self,
        place: &Place,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        if let Place::Directory(directory) = place {
            make_closed_directory(directory.clone()).await?;
        }
        let sink = self.original.sink();
        let rows = self.write_or_drop(sink, data, context).await?;
        match (place, sink.downcast_ref::<ParquetSink>()) {
            (Place::File(file), _) => keep_to_owner(file.clone()).await?,
            (Place::Directory(_), Some(sink)) => {
                for file in sink.written().into_keys() {
                    keep_to_owner(PathBuf::from(format!("/{file}"))).await?;
                }
            }
            (Place::Directory(_), None) => {}
        }
        Ok(rows)
    }

    /// Writes what cannot be renamed: when the input fails, the writer waits for more until it is dropped, and what was not
    /// completed never was.
    async fn write_or_drop(
        &self,
        sink: &dyn DataSink,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
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
        let written = sink.write_all(rows, context);
        match futures::future::select(std::pin::pin!(failed), written).await {
            futures::future::Either::Left((Ok(error), _)) => Err(error),
            // All rows are in.
            futures::future::Either::Left((Err(_), written)) => written.await,
            futures::future::Either::Right((written, _)) => written,
        }
    }
}

impl Folder {
    /// Makes the folder; `None` if it is not a local directory of private files.
    fn of<S: DataSink>(
        config: &FileSinkConfig,
        private: bool,
        sink: impl FnOnce(FileSinkConfig) -> S,
    ) -> Result<Option<Self>> {
        let ([location], Some(Place::Directory(named)), true) =
            (config.table_paths.as_slice(), Place::of(config), private)
        else {
            return Ok(None);
        };
        // Nobody who lists the directory takes it for a table's file.
        let name = format!(".{}.tmp", Seed::from_entropy()?.release_id());
        let closed = named.join(&name);
        let mut url = location.get_url().clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().push(&name).push("");
        }
        let config = FileSinkConfig { table_paths: vec![ListingTableUrl::try_new(url, None)?], ..config.clone() };
        Ok(Some(Self { sink: Arc::new(sink(config)), closed, named }))
    }
}

/// Removes a directory of files that nobody will finish.
struct Leaving(Option<PathBuf>);

impl Drop for Leaving {
    fn drop(&mut self) {
        if let (Some(directory), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(remove_files(directory));
        }
    }
}

impl Aside {
    /// Makes the file; `None` if it is not a single local file.
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
        Ok(Some(Self { sink: Arc::new(sink(config)), store, unnamed, named, closed, people: None }))
    }

    /// Gives the file its name, and if it is private its mode and `people`.
    async fn name(&self, store: &dyn ObjectStore, people: u64) -> Result<()> {
        if let Some([_, file]) = &self.closed {
            keep_to_owner(file.clone()).await?;
            if let Some(of) = &self.people {
                note_people(file.clone(), of.release.clone(), people).await?;
            }
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
        match (&self.aside, &self.folder, &self.private) {
            (Some(aside), ..) => Self::write_aside(aside, data, context).await,
            (None, Some(folder), _) => self.write_folder(folder, data, context).await,
            (None, None, Some(place)) => self.write_private(place, data, context).await,
            (None, None, None) => self.write_or_drop(self.original.sink(), data, context).await,
        }
    }
}
