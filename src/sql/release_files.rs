//! Parquet files of releases, read with what they say of themselves.
//!
//! DataFusion drops the metadata of files, so that a copy of a release (`COPY`, `CREATE TABLE AS`) would no longer say what it is. Files of
//! one release keep what is ours of it here; others are read as ever, and so are files of several releases, which could not be one table
//! otherwise.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Result, Statistics};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::{ParquetFormat, ParquetFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;

use crate::release::Description;

/// Prefix of our metadata.
const OURS: &str = "anonymize.";

/// Parquet files that are read with the release's description in the columns' metadata. So a copy of it still says so. DataFusion
/// drops such metadata, and with `skip_metadata = false` it would keep that of all files, releases or not. Registered in place of
/// DataFusion's own with [`register_file_format`](datafusion::execution::SessionState::register_file_format), as the shell does.
#[derive(Default)]
pub struct ReleaseFiles(ParquetFormatFactory);

impl fmt::Debug for ReleaseFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl GetExt for ReleaseFiles {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

impl FileFormatFactory for ReleaseFiles {
    fn create(&self, state: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(Releases(self.0.create(state, options)?)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(Releases(FileFormatFactory::default(&self.0)))
    }
}

/// DataFusion's format, which reads columns otherwise.
#[derive(Debug)]
struct Releases(Arc<dyn FileFormat>);

#[async_trait]
impl FileFormat for Releases {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let schema = self.0.infer_schema(state, store, objects).await?;
        let Some(parquet) = self.0.downcast_ref::<ParquetFormat>().filter(|parquet| parquet.skip_metadata()) else {
            return Ok(schema);
        };
        let keeping = ParquetFormat::new().with_options(parquet.options().clone()).with_skip_metadata(false);
        // Files whose metadata differ cannot be merged with it: they are of several releases, or no releases.
        match keeping.infer_schema(state, store, objects).await {
            Ok(described) => Ok(with_description(&schema, &described)),
            Err(_) => Ok(schema),
        }
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.0.infer_stats(state, store, table_schema, object).await
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        self.0.infer_ordering(state, store, table_schema, object).await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        self.0.infer_stats_and_ordering(state, store, table_schema, object).await
    }

    async fn create_physical_plan(&self, state: &dyn Session, conf: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(state, conf).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_writer_physical_plan(input, state, conf, order).await
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(table_schema)
    }
}

/// Returns the schema, with what its columns say of a release; nothing else that files say.
fn with_description(schema: &SchemaRef, described: &Schema) -> SchemaRef {
    let field = |field: &FieldRef| -> FieldRef {
        let Ok(found) = described.field_with_name(field.name()) else { return Arc::clone(field) };
        if Description::from_metadata(found.metadata()).is_none() {
            return Arc::clone(field);
        }
        let ours = found.metadata().iter().filter(|(key, _)| key.starts_with(OURS));
        let ours: HashMap<String, String> = ours.map(|(key, value)| (key.clone(), value.clone())).collect();
        Arc::new(field.as_ref().clone().with_metadata(ours))
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}
