//! Files that `COPY` and `INSERT` write are there as a whole or not at all.
//!
//! DataFusion closes the file that it is writing when its input fails, as if the rows so far were all: a release that is
//! refused, or fails half-way, leaves an empty or cut file in the place of the one that was there. Here, a local file gets
//! its name when all of it is written; elsewhere, writing is given up before it can come to an end.

use std::fmt;
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

/// Makes `COPY .. TO` and `INSERT INTO` of files leave what was there as it was when they fail. For a session that is being
/// built ([`SessionStateBuilder::with_physical_optimizer_rule`](datafusion::execution::SessionStateBuilder)).
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
}

/// A file that is written under another name first.
#[derive(Debug)]
struct Aside {
    sink: Arc<dyn DataSink>,
    store: ObjectStoreUrl,
    unnamed: Path,
    named: Path,
}

impl WholeSink {
    /// `None` of what writes no files that we know of.
    fn around(original: &DataSinkExec) -> Result<Option<Self>> {
        let sink = original.sink();
        if sink.is::<Self>() {
            return Ok(None);
        }
        let aside = if let Some(sink) = sink.downcast_ref::<ParquetSink>() {
            // Only the original knows how its rows are sorted, and writes that down.
            match original.sort_order() {
                None => Aside::of(sink.config(), |config| ParquetSink::new(config, sink.parquet_options().clone()))?,
                Some(_) => None,
            }
        } else if let Some(sink) = sink.downcast_ref::<CsvSink>() {
            Aside::of(sink.config(), |config| CsvSink::new(config, sink.writer_options().clone()))?
        } else if let Some(sink) = sink.downcast_ref::<JsonSink>() {
            Aside::of(sink.config(), |config| JsonSink::new(config, sink.writer_options().clone()))?
        } else {
            None
        };
        Ok(Some(Self { original: original.clone(), aside }))
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
        let mut cleaning = Cleaning { store: Some(Arc::clone(&store)), path: aside.unnamed.clone() };
        let written = match aside.sink.write_all(data, context).await {
            Ok(rows) => store.rename(&aside.unnamed, &aside.named).await.map(|()| rows).map_err(DataFusionError::from),
            Err(error) => Err(error),
        };
        if written.is_err() {
            // There may be none.
            let _ = store.delete(&aside.unnamed).await;
        }
        cleaning.store = None;
        written
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
    fn of<S: DataSink>(config: &FileSinkConfig, sink: impl FnOnce(FileSinkConfig) -> S) -> Result<Option<Self>> {
        let [location] = config.table_paths.as_slice() else { return Ok(None) };
        let single = config.file_output_mode.single_file_output(location) && config.table_partition_cols.is_empty();
        let (Some(name), "file", true) = (location.prefix().filename(), location.scheme(), single) else {
            return Ok(None);
        };
        // Nobody who lists the directory takes it for a table's file.
        let unnamed = format!(".{name}.{}.tmp", Seed::from_entropy()?.release_id());
        let mut url = location.get_url().clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop().push(&unnamed);
        }
        let other = ListingTableUrl::try_new(url, None)?;
        let (unnamed, named) = (other.prefix().clone(), location.prefix().clone());
        let file_output_mode = FileOutputMode::SingleFile;
        let config = FileSinkConfig { table_paths: vec![other], file_output_mode, ..config.clone() };
        let store = config.object_store_url.clone();
        Ok(Some(Self { sink: Arc::new(sink(config)), store, unnamed, named }))
    }
}

/// Removes a file that nobody will finish.
struct Cleaning {
    store: Option<Arc<dyn ObjectStore>>,
    path: Path,
}

impl Drop for Cleaning {
    fn drop(&mut self) {
        if let (Some(store), Ok(runtime)) = (self.store.take(), tokio::runtime::Handle::try_current()) {
            let path = self.path.clone();
            runtime.spawn(async move {
                let _ = store.delete(&path).await;
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
        match &self.aside {
            Some(aside) => Self::write_aside(aside, data, context).await,
            None => self.write_or_drop(data, context).await,
        }
    }
}
