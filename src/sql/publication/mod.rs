//! `STORED AS PUBLICATION`, `release(..)`, `releases(..)` and `audit(..)`.

mod audit;
mod factory;
mod options;
mod release;
mod releases;
mod table;

use std::sync::Arc;

pub(super) use factory::{FILE_TYPE, PublicationFactory};
pub(super) use options::AnyOption;
pub(super) use table::PublicationTable;

pub(super) use release::releases_of;

use super::function::RelationFunction;

/// The relation functions on publications.
pub(super) fn functions() -> [Arc<dyn RelationFunction>; 3] {
    [Arc::new(release::ReleaseByNumber), Arc::new(releases::Releases), Arc::new(audit::AuditFunction)]
}
