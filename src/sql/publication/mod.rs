//! SQL of publications: `STORED AS PUBLICATION`, `release(..)`, `releases(..)`, `audit(..)` and `check_snapshots(..)`.

mod audit;
mod evidence;
mod factory;
mod flat_rows;
mod inserts;
mod left_out;
mod newest;
mod options;
mod positions;
mod release;
mod release_table;
mod releases;
mod snapshots;
mod survey;
mod table;

use std::sync::Arc;

pub(super) use factory::{FILE_TYPE, PublicationFactory};
pub(super) use flat_rows::FlatRows;
pub(super) use inserts::CheckInserts;
pub(super) use options::AnyOption;
pub(super) use table::PublicationTable;

pub(super) use evidence::evidence_of;

use super::function::RelationFunction;

/// Lists the functions that need only what is public.
pub(super) fn public_functions() -> [Arc<dyn RelationFunction>; 2] {
    [Arc::new(release::ReleaseByNumber), Arc::new(releases::Releases)]
}

/// Returns the relation functions on publications.
pub(super) fn functions() -> [Arc<dyn RelationFunction>; 4] {
    [
        Arc::new(release::ReleaseByNumber),
        Arc::new(releases::Releases),
        Arc::new(audit::AuditFunction),
        Arc::new(snapshots::CheckSnapshots),
    ]
}
