//! Detection of files that belong to a Delta table.

use std::collections::BTreeSet;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::quote_identifier;
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
use crate::sql::block_on_io::block_on_io;

/// The folder that makes a folder a Delta table.
const LOG: &str = "_delta_log";

/// Relation of a location to a Delta table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The folder of the table.
    Table,
    /// Files of the table in this folder: one of them, some by a pattern, or those of a folder in it.
    Parts(Path),
    /// A folder, or a pattern, that reads the files of this table's folder, too.
    Around(Path),
}

/// Returns how a location stands to Delta tables; `None` if it has nothing to do with one. Where nobody may look there is none.
pub(super) async fn find(location: &ListingTableUrl, runtime: &RuntimeEnv, config: &ConfigOptions) -> Option<Found> {
    let store = runtime.object_store(location.object_store()).ok()?;
    let whole = location.get_glob().is_none();
    if whole && is_table(store.as_ref(), location.prefix()).await {
        return Some(Found::Table);
    }
    if !location.is_collection() && !is_data(location.prefix()) {
        return None;
    }
    let mut above = if whole { parent(location.prefix()) } else { Some(location.prefix().clone()) };
    while let Some(folder) = above {
        if is_table(store.as_ref(), &folder).await {
            return Some(Found::Parts(folder));
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
    tables.intersection(&read).next().cloned().map(Found::Around)
}

/// Returns true of a file that can hold rows of a Delta table: those are Parquet, and the log is none of them.
fn is_data(file: &Path) -> bool {
    let parquet = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
    parquet && !file.parts().any(|part| part.as_ref() == LOG)
}

async fn is_table(store: &dyn ObjectStore, folder: &Path) -> bool {
    let log = folder.clone().join(LOG);
    let mut listed = store.list(Some(&log));
    while let Some(Ok(object)) = listed.next().await {
        // A commit that was never finished is hidden, and makes no table.
        if object.location.filename().is_some_and(|name| !name.starts_with('.')) {
            return true;
        }
    }
    false
}

fn parent(path: &Path) -> Option<Path> {
    let mut parts: Vec<_> = path.parts().collect();
    parts.pop()?;
    Some(parts.into_iter().collect())
}

/// # Errors
/// When a relation of a call reads files of a Delta table as if they were loose.
pub(in crate::sql) fn refuse_loose(
    function: &str,
    argument: &str,
    plan: &LogicalPlan,
    session: impl FnOnce() -> Result<SessionState>,
) -> Result<()> {
    let mut read = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(table) = source_as_provider(&scan.source)
            && let Some(files) = table.downcast_ref::<ListingTable>()
        {
            read.extend(files.table_paths().iter().cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if read.is_empty() {
        return Ok(());
    }
    let session = session()?;
    let (read, session) = (&read, &session);
    let loose = block_on_io(|| async move {
        for location in read {
            if let Some(found) = find(location, session.runtime_env(), session.config_options()).await {
                return Ok(Some(loose_text(location.as_str(), location, &found)));
            }
        }
        Ok(None)
    })?;
    match loose {
        Some(text) => Err(refusal!(function, argument argument, "argument {argument}: {text}")),
        None => Ok(()),
    }
}

/// Says why files of a Delta table are not read alone, and the table's name. `text` is the location as it was written.
pub(super) fn loose_text(text: &str, location: &ListingTableUrl, found: &Found) -> String {
    let folder = table_folder(text, location, found).replace('\'', "''");
    let condition = match found {
        Found::Parts(folder) => condition(location.prefix(), folder),
        Found::Table | Found::Around(_) => String::new(),
    };
    loose_in(text, &folder, &condition)
}

fn loose_in(text: &str, folder: &str, condition: &str) -> String {
    format!(
        "the files at {text} belong to a Delta table, whose log ({LOG}) says which rows count: read by themselves, they have people who were \
         deleted or replaced. Name the table: SELECT * FROM '{folder}'{condition} in the shell, elsewhere CREATE EXTERNAL TABLE t STORED AS \
         DELTATABLE LOCATION '{folder}'"
    )
}

/// Returns the folder of the table, as near to what was written as can be.
fn table_folder(text: &str, location: &ListingTableUrl, found: &Found) -> String {
    // Up to a pattern, if there is one.
    let base = match text.find(['*', '?', '[']).filter(|_| location.get_glob().is_some()) {
        Some(pattern) => text[..pattern].rsplit_once('/').map_or("", |(folder, _)| folder),
        None => text.trim_end_matches('/'),
    };
    let written = match found {
        Found::Table => Some(base.to_owned()),
        Found::Parts(folder) => {
            let below = location.prefix().parts().count().saturating_sub(folder.parts().count());
            let mut written = Some(base);
            for _ in 0..below {
                written = written.and_then(|path| path.rsplit_once('/')).map(|(above, _)| above);
            }
            written.filter(|path| !path.ends_with('.') && !path.ends_with('/')).map(str::to_owned)
        }
        Found::Around(folder) => {
            let below: Vec<_> = folder.parts().skip(location.prefix().parts().count()).collect();
            let below = below.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("/");
            (!base.is_empty()).then(|| format!("{base}/{below}"))
        }
    };
    match (written.filter(|path| !path.is_empty()), found) {
        (Some(path), _) => format!("{}/", path.trim_end_matches('/')),
        (None, Found::Parts(folder) | Found::Around(folder)) if location.get_url().scheme() == "file" => {
            format!("/{folder}/")
        }
        (None, Found::Parts(folder) | Found::Around(folder)) => {
            format!("{}{folder}/", location.object_store().as_str())
        }
        (None, Found::Table) => location.as_str().to_owned(),
    }
}

/// Returns the condition that selects a folder of one of the table's partitions.
fn condition(place: &Path, table: &Path) -> String {
    let below: Vec<_> = place.parts().skip(table.parts().count()).collect();
    let conditions = below
        .iter()
        .map_while(|part| part.as_ref().split_once('='))
        .map(|(column, value)| format!("{} = '{}'", quote_identifier(column), value.replace('\'', "''")));
    let conditions: Vec<String> = conditions.collect();
    let plain = conditions.iter().all(|condition| !condition.contains('%') && !condition.contains("__HIVE"));
    if conditions.is_empty() || !plain { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

/// Fails when one of these files lies in the folder of a Delta table.
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
                let folder = format!("{}{folder}/", url.as_str());
                return Err(refusal!(function, "{}", loose_in(&folder, &folder.replace('\'', "''"), "")));
            }
            above = parent(&folder);
        }
    }
    Ok(())
}
