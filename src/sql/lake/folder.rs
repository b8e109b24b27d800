//! Detection of files that belong to a Delta table.

use std::collections::BTreeSet;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::datasource::source_as_provider;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::path::Path;
use futures::StreamExt;

use crate::error::refusal;
use crate::sql::resolve::wait_long_for;

/// The folder that makes a folder a Delta table.
const LOG: &str = "_delta_log";

/// How a location stands to a Delta table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Its folder.
    Table,
    /// Something in the folder, or files of it by a pattern; or a folder with Delta tables in it that would be read as well.
    Parts,
    /// A single file of it.
    File,
}

/// How a location stands to Delta tables; `None` if it has nothing to do with one. Where nobody may look there is none.
pub(super) async fn find(location: &ListingTableUrl, runtime: &RuntimeEnv, config: &ConfigOptions) -> Option<Found> {
    let store = runtime.object_store(location.object_store()).ok()?;
    let whole = location.get_glob().is_none();
    if whole && is_table(store.as_ref(), location.prefix()).await {
        return Some(Found::Table);
    }
    let mut above = if whole { parent(location.prefix()) } else { Some(location.prefix().clone()) };
    while let Some(folder) = above {
        if is_table(store.as_ref(), &folder).await {
            return Some(if location.is_collection() { Found::Parts } else { Found::File });
        }
        above = parent(&folder);
    }
    if !location.is_collection() {
        return None;
    }
    // Folders named by values of columns are read with the one that they are in, and a pattern may reach into others.
    let ignoring = config.execution.listing_table_ignore_subdirectory;
    let (mut tables, mut read) = (BTreeSet::new(), BTreeSet::new());
    let mut listed = store.list(Some(location.prefix()));
    while let Some(Ok(object)) = listed.next().await {
        let parts: Vec<_> = object.location.parts().collect();
        match parts.iter().position(|part| part.as_ref() == LOG) {
            Some(log) => tables.insert(parts[..log].iter().cloned().collect::<Path>()),
            None if location.contains(&object.location, ignoring) => {
                // From below: what is above one that is known is known, too.
                let mut folders = (1..parts.len()).rev().map(|end| parts[..end].iter().cloned().collect::<Path>());
                folders.all(|folder| read.insert(folder))
            }
            None => false,
        };
    }
    (!tables.is_disjoint(&read)).then_some(Found::Parts)
}

async fn is_table(store: &dyn ObjectStore, folder: &Path) -> bool {
    let log = folder.clone().join(LOG);
    matches!(store.list(Some(&log)).next().await, Some(Ok(_)))
}

fn parent(path: &Path) -> Option<Path> {
    let mut parts: Vec<_> = path.parts().collect();
    parts.pop()?;
    Some(parts.into_iter().collect())
}

/// # Errors
/// When a relation of a call reads a folder with files of a Delta table as if they were loose. A single file is what it is.
pub(in crate::sql) fn refuse_loose(
    function: &str,
    argument: &str,
    plan: &LogicalPlan,
    session: impl FnOnce() -> Result<SessionState>,
) -> Result<()> {
    let mut folders = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(table) = source_as_provider(&scan.source)
            && let Some(files) = table.downcast_ref::<ListingTable>()
        {
            folders.extend(files.table_paths().iter().filter(|location| location.is_collection()).cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if folders.is_empty() {
        return Ok(());
    }
    let session = session()?;
    let (folders, session) = (&folders, &session);
    let loose = wait_long_for(|| async move {
        for folder in folders {
            if find(folder, session.runtime_env(), session.config_options()).await.is_some() {
                return Ok(Some(folder));
            }
        }
        Ok(None)
    })?;
    match loose {
        Some(folder) => {
            Err(refusal!(function, argument argument, "argument {argument}: {}", loose_text(folder.as_str())))
        }
        None => Ok(()),
    }
}

/// What is wrong with reading a folder file by file.
pub(super) fn loose_text(location: &str) -> String {
    format!(
        "the files at {location} belong to a Delta table, which says in {LOG} which of them count: read one by one, rows that \
         were deleted or replaced would be there, too. Name the table instead, as 'folder/' where the session reads Delta tables \
         by their paths (the shell does), or by CREATE EXTERNAL TABLE t STORED AS DELTATABLE LOCATION 'folder/'"
    )
}

/// # Errors
/// When one of these files lies in the folder of a Delta table.
#[cfg(feature = "publication")]
pub(in crate::sql) async fn refuse_loose_files(
    function: &str,
    files: &[(datafusion::execution::object_store::ObjectStoreUrl, Path)],
    runtime: &RuntimeEnv,
) -> Result<()> {
    let mut seen = BTreeSet::new();
    for (url, file) in files {
        let store = runtime.object_store(url)?;
        let mut above = parent(file);
        while let Some(folder) = above.take_if(|folder| seen.insert((url.as_str(), folder.clone()))) {
            if is_table(store.as_ref(), &folder).await {
                return Err(refusal!(function, "{}", loose_text(&format!("{}{folder}/", url.as_str()))));
            }
            above = parent(&folder);
        }
    }
    Ok(())
}
