//! Footers of Parquet files, whose contents DataFusion drops when it reads a table.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};
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
use crate::microdata::Role;
use crate::release::{LO, OWN, PEOPLE};

/// Footers read at a time.
const AT_ONCE: usize = 16;

#[derive(Debug)]
pub(super) struct Footer {
    /// Its schema, with all metadata.
    pub schema: Schema,
    /// Columns whose intervals have no NULL.
    pub complete: BTreeSet<String>,
    /// True if it is of a private view, and has fewer people than that.
    pub lacks_people: bool,
}

/// Reads the footers of a table's Parquet files.
/// Fails when they cannot be read.
pub(super) fn footers_of(table: &dyn TableProvider, session: &SessionState) -> Result<Vec<Footer>> {
    block_on_io(|| async {
        let plan = table.scan(session, None, &[], None).await?;
        footers(plan.as_ref(), session).await
    })
}

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
            let lacks_people = lacks_people(&metadata, &schema);
            Ok(Footer { schema, complete, lacks_people })
        }
    });
    let footers: Vec<_> = footers.collect();
    futures::stream::iter(footers).buffered(AT_ONCE).try_collect().await
}

/// Returns the columns whose intervals have no NULL, according to the statistics.
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

/// Returns true if a private view has fewer people than it says, by its statistics. A program has left out rows then, and kept what it says.
fn lacks_people(metadata: &ParquetMetaData, schema: &Schema) -> bool {
    let is_id = |field: &&FieldRef| field.metadata().get(Role::KEY).map(String::as_str) == Some(Role::Id.name());
    let Some(id) = schema.fields().iter().find(is_id) else { return false };
    let file = metadata.file_metadata();
    let said = file.key_value_metadata().into_iter().flatten().find(|said| said.key == PEOPLE);
    let said = said.and_then(|said| said.value.as_deref()?.split_once(' '));
    let Some((_, people)) = said.filter(|(release, _)| id.metadata().contains_key(&format!("{OWN}{release}"))) else {
        return false;
    };
    let Ok(people) = people.parse::<u64>() else { return false };
    let mut nulls = Some(0);
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        if let [name] = column.column_path().parts()
            && name == id.name()
        {
            let more = column.statistics().and_then(|statistics| statistics.null_count_opt());
            nulls = nulls.zip(more).map(|(nulls, more)| nulls + more);
        }
    }
    // Without statistics, rows of nobody are counted as well.
    (file.num_rows().max(0) as u64).saturating_sub(nulls.unwrap_or(0)) < people
}

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
