//! Footers of Parquet files, which say what DataFusion drops when it reads them as a table.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::session_state::SessionState;
use datafusion::object_store::ObjectMeta;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanVisitor, visit_execution_plan};
use futures::{StreamExt, TryStreamExt};

use super::block_on_io::block_on_io;
use crate::release::LO;

/// Footers read at a time.
const AT_ONCE: usize = 16;

/// The schemas of a table's Parquet files, with all that they say.
///
/// # Errors
/// When they cannot be read.
pub(super) fn schemas_of_files(table: &dyn TableProvider, session: &SessionState) -> Result<Vec<Schema>> {
    Ok(footers_of(table, session)?.into_iter().map(|(schema, _)| schema).collect())
}

/// The footers of a table's Parquet files.
///
/// # Errors
/// When they cannot be read.
pub(super) fn footers_of(table: &dyn TableProvider, session: &SessionState) -> Result<Vec<Footer>> {
    block_on_io(|| async {
        let plan = table.scan(session, None, &[], None).await?;
        footers(plan.as_ref(), session).await
    })
}

/// A file's schema and the columns whose intervals have no NULL.
pub(super) type Footer = (Schema, BTreeSet<String>);

async fn footers(plan: &dyn ExecutionPlan, session: &SessionState) -> Result<Vec<Footer>> {
    let mut files = Files::default();
    visit_execution_plan(plan, &mut files)?;
    let cache = session.runtime_env().cache_manager.get_file_metadata_cache();
    let footers = files.0.into_iter().map(|(url, file)| {
        let cache = Arc::clone(&cache);
        async move {
            let store = session.runtime_env().object_store(&url)?;
            let reader = DFParquetMetadata::new(store.as_ref(), &file).with_file_metadata_cache(Some(cache));
            let metadata = reader.fetch_metadata().await?;
            let parquet = metadata.file_metadata();
            let schema = parquet_to_arrow_schema(parquet.schema_descr(), parquet.key_value_metadata())?;
            let complete = complete(&metadata);
            Ok((schema, complete))
        }
    });
    let footers: Vec<_> = footers.collect();
    futures::stream::iter(footers).buffered(AT_ONCE).try_collect().await
}

/// Columns whose intervals have no NULL, according to the statistics.
fn complete(metadata: &ParquetMetaData) -> BTreeSet<String> {
    let mut nulls: HashMap<&str, Option<u64>> = HashMap::new();
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        if let [name, end] = column.column_path().parts()
            && end == LO
        {
            let more = column.statistics().and_then(|statistics| statistics.null_count_opt());
            let all = nulls.entry(name).or_insert(Some(0));
            *all = all.zip(more).map(|(all, more)| all + more);
        }
    }
    nulls.into_iter().filter(|(_, nulls)| *nulls == Some(0)).map(|(name, _)| name.to_owned()).collect()
}

/// The Parquet files that a plan reads.
#[derive(Default)]
struct Files(Vec<(ObjectStoreUrl, ObjectMeta)>);

impl ExecutionPlanVisitor for Files {
    type Error = datafusion::common::DataFusionError;

    fn pre_visit(&mut self, plan: &dyn ExecutionPlan) -> Result<bool> {
        let scan: Option<&DataSourceExec> = plan.downcast_ref();
        if let Some((config, _)) = scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>()) {
            let FileScanConfig { object_store_url, file_groups, .. } = config;
            let files = file_groups.iter().flat_map(|group| group.iter());
            self.0.extend(files.map(|file| (object_store_url.clone(), file.object_meta.clone())));
        }
        Ok(true)
    }
}
