//! Interface to Delta Lake: opens a table at a version, creates one, commits the next version or fails.
//!
//! A commit is one request: it creates the file of the next version, which fails if there is one. Nobody's commits are merged with
//! ours, so nothing is read before or after it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::object_store::{ObjectStore, PutMode, PutOptions};
use deltalake_core::checkpoints::create_checkpoint;
use deltalake_core::kernel::engine::arrow_conversion::{TryIntoArrow, TryIntoKernel};
use deltalake_core::kernel::transaction::CommitData;
use deltalake_core::kernel::{Action, Add, Remove, StructType};
use deltalake_core::logstore::{LogStoreRef, commit_uri_from_version, get_actions};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableError};
use futures::TryStreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::input_error;

/// Beginning of the names of our settings, and of what we say in commits.
const OURS: &str = "anonymize";
/// Metadata key of what we say in a commit.
pub(super) const COMMIT_KEY: &str = "anonymize";
/// Versions from one checkpoint to the next: whoever opens a table reads at most so many commits.
const CHECKPOINT_EVERY: u64 = 5;

/// Versions stay readable for good: releases are asked for by number.
const KEEP: [(&str, &str); 3] = [
    ("delta.enableExpiredLogCleanup", "false"),
    ("delta.logRetentionDuration", "interval 36500 days"),
    ("delta.deletedFileRetentionDuration", "interval 36500 days"),
];

/// Returns true if a name is one of those that only this program gives.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

/// Returns the newest version, if there is a table.
pub(super) async fn newest(log: LogStoreRef) -> Result<Option<DeltaTable>> {
    let is_local = log.root_url().scheme() == "file";
    let mut table = DeltaTable::new(log);
    // To Delta Lake a directory of a disk that is not there is an error; there, looking costs nothing.
    if is_local && !table.verify_deltatable_existence().await.map_err(failed)? {
        return Ok(None);
    }
    match table.load().await {
        Ok(()) => Ok(Some(table)),
        Err(DeltaTableError::NotATable(_)) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

pub(super) async fn at_version(log: LogStoreRef, version: u64) -> Result<DeltaTable> {
    let mut table = DeltaTable::new(log);
    table.load_version(version).await.map_err(failed)?;
    Ok(table)
}

pub(super) fn version(table: &DeltaTable) -> u64 {
    table.version().unwrap_or_default()
}

pub(super) async fn is_newest(table: &DeltaTable) -> Result<bool> {
    Ok(table.log_store().get_latest_version(version(table)).await.map_err(failed)? == version(table))
}

/// Returns the names and sizes of the files of a version.
pub(super) async fn files(table: &DeltaTable) -> Result<Vec<(String, u64)>> {
    let log_store = table.log_store();
    let state = table.snapshot().map_err(failed)?;
    let views = state.snapshot().file_views(log_store.as_ref(), None);
    views.map_ok(|file| (file.path().into_owned(), file.size() as u64)).try_collect().await.map_err(failed)
}

/// A file of a version, as the log describes it.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: String,
    stats: Option<serde_json::Value>,
    /// True if rows of it are struck out.
    lacks_rows: bool,
}

impl Listed {
    /// Returns true if the log says how many rows it has, and nothing more.
    pub(super) fn tells_rows_only(&self, rows: u64) -> bool {
        let stats = self.stats.as_ref().and_then(|stats| stats.as_object());
        let nothing =
            |value: &serde_json::Value| value.is_null() || value.as_object().is_some_and(|inner| inner.is_empty());
        let only = |(name, value): (&String, &serde_json::Value)| match name.as_str() {
            "numRecords" => value.as_u64() == Some(rows),
            _ => nothing(value),
        };
        !self.lacks_rows && stats.is_some_and(|stats| stats.contains_key("numRecords") && stats.iter().all(only))
    }
}

pub(super) async fn listed(table: &DeltaTable) -> Result<Vec<Listed>> {
    let log_store = table.log_store();
    let state = table.snapshot().map_err(failed)?;
    let views = state.snapshot().file_views(log_store.as_ref(), None);
    let listed = views.map_ok(|file| Listed {
        name: file.path().into_owned(),
        stats: file.stats().and_then(|stats| serde_json::from_str(&stats).ok()),
        lacks_rows: file.deletion_vector_descriptor().is_some(),
    });
    listed.try_collect().await.map_err(failed)
}

/// Returns true if a version has these columns, with all that is said of them.
pub(super) fn has_columns(table: &DeltaTable, schema: &Schema) -> Result<bool> {
    Ok(*table.snapshot().map_err(failed)?.schema() == kernel_schema(schema)?)
}

/// Creates a table, as version 0. Of several at once one succeeds.
pub(super) async fn create(log: &LogStoreRef, schema: &Schema, configuration: &[(&str, String)]) -> Result<()> {
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
    write(log.object_store(None).as_ref(), 0, actions, operation, HashMap::new()).await
}

/// Commits the version after the loaded one, or fails if it exists already. An error does not say that nothing was
/// committed. What the commit `says` are texts by their keys.
pub(super) async fn commit<const N: usize>(
    table: &DeltaTable,
    actions: Vec<Action>,
    mode: SaveMode,
    says: [(&str, String); N],
) -> Result<()> {
    let says = says.into_iter().map(|(key, text)| (key.to_owned(), serde_json::Value::String(text))).collect();
    let operation = DeltaOperation::Write { mode, partition_by: None, predicate: None };
    write(table.log_store().object_store(None).as_ref(), version(table) + 1, actions, operation, says).await
}

pub(super) fn text(says: &impl Serialize) -> Result<String> {
    serde_json::to_string(says).map_err(input_error)
}

async fn write(
    store: &dyn ObjectStore,
    version: u64,
    actions: Vec<Action>,
    operation: DeltaOperation,
    says: HashMap<String, serde_json::Value>,
) -> Result<()> {
    let data = CommitData::new(actions, operation, says, Vec::new());
    let bytes = data.get_bytes().map_err(input_error)?;
    let once = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(&commit_uri_from_version(Some(version)), bytes.into(), once).await?;
    Ok(())
}

/// Sums up a table's log, so that whoever opens it reads few commits. Every fifth version has a checkpoint, of the `phase`
/// (a number below five) that the table has; one that fails is left to the next.
pub(super) async fn sum_up(log: LogStoreRef, version: u64, phase: u64) {
    if version % CHECKPOINT_EVERY != phase {
        return;
    }
    if let Ok(table) = at_version(log, version).await {
        let _ = create_checkpoint(&table, None).await;
    }
}

#[derive(Debug)]
pub(super) struct Commit {
    /// BLAKE3 hash of its bytes, in hexadecimal digits.
    pub(super) hash: String,
    /// Time of the commit, in milliseconds since 1970.
    pub(super) time: Option<i64>,
    says: HashMap<String, serde_json::Value>,
    /// Number of its files of which more is said than places and `stats`.
    labelled: usize,
}

impl Commit {
    /// Returns true if only `stats` are said of files, and only this under a key.
    pub(super) fn says_no_more(&self, key: &str, text: &str) -> bool {
        let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        self.labelled == 0 && self.says(key).and_then(parsed) == parsed(text)
    }

    /// Returns true if it says under none of our names but these.
    pub(super) fn says_only(&self, keys: &[&str]) -> bool {
        self.says.keys().all(|key| !is_ours(key) || keys.contains(&key.as_str()))
    }

    pub(super) fn says(&self, key: &str) -> Option<&str> {
        self.says.get(key)?.as_str()
    }
}

pub(super) async fn committed(table: &DeltaTable, version: u64) -> Result<Option<Commit>> {
    let Some(bytes) = table.log_store().read_commit_entry(version).await.map_err(failed)? else { return Ok(None) };
    let actions = get_actions(version, &bytes).map_err(failed)?;
    let labelled = |action: &&Action| match action {
        Action::Add(file) => {
            !file.partition_values.is_empty() || file.tags.as_ref().is_some_and(|tags| !tags.is_empty())
        }
        _ => false,
    };
    let labelled = actions.iter().filter(labelled).count();
    let mut infos = actions.into_iter().filter_map(|action| match action {
        Action::CommitInfo(info) => Some(info),
        _ => None,
    });
    let info = infos.next().unwrap_or_default();
    Ok(Some(Commit {
        hash: blake3::hash(&bytes).to_hex().to_string(),
        time: info.timestamp,
        says: info.info,
        labelled,
    }))
}

/// Reads our text in the commit of a version, and the time, if ours. The time is in milliseconds since
/// 1970.
pub(super) async fn read_commit_info<T: DeserializeOwned>(
    table: &DeltaTable,
    version: u64,
) -> Result<Option<(T, Option<i64>)>> {
    let Some(commit) = committed(table, version).await? else { return Ok(None) };
    let info = commit.says(COMMIT_KEY).and_then(|text| serde_json::from_str(text).ok());
    Ok(info.map(|info| (info, commit.time)))
}

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

/// Removes a file, which stays where it is: earlier versions can still be read.
pub(super) fn remove(path: String, size: u64) -> Action {
    Action::Remove(Remove {
        path,
        data_change: true,
        deletion_timestamp: Some(chrono::Utc::now().timestamp_millis()),
        size: Some(size as i64),
        ..Remove::default()
    })
}

/// Converts the schema into Delta Lake's.
pub(super) fn kernel_schema(schema: &Schema) -> Result<StructType> {
    schema.try_into_kernel().map_err(input_error)
}

pub(super) fn columns(table: &DeltaTable) -> Result<SchemaRef> {
    let schema = table.snapshot().map_err(failed)?.schema();
    let columns: Schema = schema.as_ref().try_into_arrow().map_err(input_error)?;
    Ok(Arc::new(columns))
}

pub(super) fn failed(error: DeltaTableError) -> DataFusionError {
    match error {
        DeltaTableError::ObjectStore { source } => DataFusionError::ObjectStore(Box::new(source)),
        error => input_error(error),
    }
}
