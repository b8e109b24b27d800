//! The little that we ask of Delta Lake: open a table at a version, create one, commit the next version or fail.

use std::collections::HashMap;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Add, StructType};
use deltalake_core::logstore::get_actions;
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableError};
use futures::TryStreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::place::Place;

/// Metadata key of what we say in a commit.
const COMMIT_KEY: &str = "anonymize";

/// Versions stay readable for good: releases are asked for by number.
const KEEP: [(&str, &str); 3] = [
    ("delta.enableExpiredLogCleanup", "false"),
    ("delta.logRetentionDuration", "interval 36500 days"),
    ("delta.deletedFileRetentionDuration", "interval 36500 days"),
];

/// The newest version, if there is a table.
pub(super) async fn newest(place: &Place) -> Result<Option<DeltaTable>> {
    let mut table = DeltaTable::new(place.log_store());
    if !table.verify_deltatable_existence().await.map_err(failed)? {
        return Ok(None);
    }
    table.load().await.map_err(failed)?;
    Ok(Some(table))
}

/// One version.
pub(super) async fn at_version(place: &Place, version: u64) -> Result<DeltaTable> {
    let mut table = DeltaTable::new(place.log_store());
    table.load_version(version).await.map_err(failed)?;
    Ok(table)
}

/// The version of a table that is loaded.
pub(super) fn version(table: &DeltaTable) -> u64 {
    table.version().unwrap_or_default()
}

/// Whether this is still the newest version.
pub(super) async fn is_newest(table: &DeltaTable) -> Result<bool> {
    Ok(table.log_store().get_latest_version(version(table)).await.map_err(failed)? == version(table))
}

/// Names and sizes of the files that a version consists of.
pub(super) async fn files(table: &DeltaTable) -> Result<Vec<(String, u64)>> {
    let log_store = table.log_store();
    let state = table.snapshot().map_err(failed)?;
    let views = state.snapshot().file_views(log_store.as_ref(), None);
    views.map_ok(|file| (file.path().into_owned(), file.size() as u64)).try_collect().await.map_err(failed)
}

/// Creates a table, as version 0. Of several at once one succeeds.
pub(super) async fn create(place: &Place, schema: &Schema, configuration: &[(&str, String)]) -> Result<()> {
    let kernel = kernel_schema(schema)?;
    let keep = KEEP.iter().map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())));
    let own = configuration.iter().map(|(key, value)| ((*key).to_owned(), Some(value.clone())));
    // The first commit of a table names its location, and with it whoever made it. So the table is created in memory, and what
    // that commits is committed here.
    let memory = DeltaTable::new_in_memory();
    let location = memory.table_url().clone();
    let created = CreateBuilder::new()
        .with_log_store(memory.log_store())
        .with_columns(kernel.fields().cloned())
        .with_raise_if_key_not_exists(false)
        .with_configuration(keep.chain(own))
        .await
        .map_err(failed)?;
    let state = created.snapshot().map_err(failed)?;
    let (protocol, metadata) = (state.protocol().clone(), state.metadata().clone());
    let actions = vec![Action::Protocol(protocol.clone()), Action::Metadata(metadata.clone())];
    let operation = DeltaOperation::Create { mode: SaveMode::ErrorIfExists, location, protocol, metadata };
    CommitBuilder::from(CommitProperties::default().with_max_retries(0))
        .with_actions(actions)
        .build(None, place.log_store(), operation)
        .await
        .map(|_| ())
        .map_err(failed)
}

/// Commits the version after the one that is loaded, or fails if there is one already. An error does not say that nothing
/// was committed.
pub(super) async fn commit(
    table: &DeltaTable,
    actions: Vec<Action>,
    mode: SaveMode,
    says: &impl Serialize,
) -> Result<()> {
    let state = table.snapshot().map_err(failed)?;
    let says = serde_json::to_string(says).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let properties = CommitProperties::default()
        .with_max_retries(0)
        .with_metadata([(COMMIT_KEY.to_owned(), serde_json::Value::String(says))]);
    let operation = DeltaOperation::Write { mode, partition_by: None, predicate: None };
    CommitBuilder::from(properties)
        .with_actions(actions)
        .build(Some(state), table.log_store(), operation)
        .await
        .map(|_| ())
        .map_err(failed)
}

/// What we said in the commit of a version, and when that was (milliseconds since 1970), if there is such a commit and it is
/// ours.
pub(super) async fn said<T: DeserializeOwned>(table: &DeltaTable, version: u64) -> Result<Option<(T, Option<i64>)>> {
    let Some(bytes) = table.log_store().read_commit_entry(version).await.map_err(failed)? else { return Ok(None) };
    let actions = get_actions(version, &bytes).map_err(failed)?;
    let mut infos = actions.into_iter().filter_map(|action| match action {
        Action::CommitInfo(info) => Some(info),
        _ => None,
    });
    let Some(info) = infos.next() else { return Ok(None) };
    let said = info.info.get(COMMIT_KEY).and_then(|value| value.as_str());
    Ok(said.and_then(|text| serde_json::from_str(text).ok()).map(|said| (said, info.timestamp)))
}

/// A setting of the table.
pub(super) fn setting<'a>(table: &'a DeltaTable, key: &str) -> Option<&'a String> {
    table.snapshot().ok()?.metadata().configuration().get(key)
}

/// Adds a file. Of its contents only the number of rows is told.
pub(super) fn add(name: &str, size: u64, rows: u64) -> Action {
    Action::Add(Add {
        path: name.to_owned(),
        partition_values: HashMap::new(),
        size: size as i64,
        modification_time: chrono::Utc::now().timestamp_millis(),
        data_change: true,
        stats: Some(format!("{{\"numRecords\":{rows}}}")),
        ..Add::default()
    })
}

/// The schema as Delta Lake has it.
pub(super) fn kernel_schema(schema: &Schema) -> Result<StructType> {
    schema.try_into_kernel().map_err(|error| DataFusionError::ArrowError(Box::new(error), None))
}

/// As an error of the engine.
pub(super) fn failed(error: DeltaTableError) -> DataFusionError {
    match error {
        DeltaTableError::ObjectStore { source } => DataFusionError::ObjectStore(Box::new(source)),
        error => exec_datafusion_err!("{error}"),
    }
}

/// A schema that Delta Lake does not take.
pub(super) fn no_schema(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
