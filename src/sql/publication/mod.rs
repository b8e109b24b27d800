//! SQL of publications: `STORED AS PUBLICATION`, `release(..)`, `releases(..)`, `audit(..)` and `check_snapshots(..)`.

mod audit;
mod factory;
mod inserts;
mod newest;
mod options;
mod release;
mod release_table;
mod releases;
mod snapshots;
mod table;

use std::sync::Arc;

pub(super) use factory::{FILE_TYPE, PublicationFactory};
pub(super) use inserts::CheckInserts;
pub(super) use options::AnyOption;
pub(super) use table::PublicationTable;

pub(super) use release::releases_of;

use super::function::RelationFunction;

/// The relation functions on publications.
pub(super) fn functions() -> [Arc<dyn RelationFunction>; 4] {
    [
        Arc::new(release::ReleaseByNumber),
        Arc::new(releases::Releases),
        Arc::new(audit::AuditFunction),
        Arc::new(snapshots::CheckSnapshots),
    ]
}
