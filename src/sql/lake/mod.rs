//! Delta tables among the folders that a session can read.
//!
//! The folder of a Delta table holds the Parquet files of all its versions, and those of versions that were never committed;
//! its log says which of them count, and which of their rows. Read as a folder of Parquet files it has people who were
//! deleted or replaced. So a folder with a log is read as a Delta table where this crate decides how, and refused where
//! somebody else has decided otherwise.

mod factories;
mod folder;
mod formats;
#[cfg(feature = "publication")]
mod table;

use std::sync::Arc;

use datafusion::catalog::DynamicFileCatalog;
use datafusion::execution::context::SessionContext;

#[cfg(feature = "publication")]
pub(super) use factories::DeltaFactory;
pub(super) use factories::DeltaFolders;
pub(super) use factories::NotLoose;
pub(super) use folder::refuse_loose;
#[cfg(feature = "publication")]
pub(super) use folder::refuse_loose_files;

/// Name by which DataFusion looks up the factory of Delta tables.
#[cfg(feature = "publication")]
pub(super) const DELTA_TABLE: &str = "DELTATABLE";
/// Name by which it looks up that of Parquet files.
pub(super) const PARQUET: &str = "PARQUET";

/// Enables [`SessionContext::enable_url_table`] with Delta tables: `FROM 'lake/people/'` reads the newest version of a
/// Delta table where there is one, and files as ever elsewhere. Without the feature `publication` Delta tables are refused.
#[must_use]
pub fn enable_url_table(context: SessionContext) -> SessionContext {
    let id = context.session_id();
    let folders = Arc::new(DeltaFolders::default());
    let below = Arc::clone(context.state().catalog_list());
    let catalogs = DynamicFileCatalog::new(below, Arc::clone(&folders) as _);
    let builder = context.into_state_builder().with_session_id(id).with_catalog_list(Arc::new(catalogs));
    let context: SessionContext = builder.build().into();
    folders.files().session_store().with_state(context.state_weak_ref());
    context
}
