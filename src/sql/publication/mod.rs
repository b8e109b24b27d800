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

pub(super) use factory::{FILE_TYPE, PublicationFactory};
pub(super) use flat_rows::FlatRows;
pub(super) use inserts::CheckInserts;
pub(super) use options::{AnyOption, OWN, takers};
pub(super) use table::PublicationTable;

pub(super) use evidence::evidence_of;

use super::function::RelationFunction;

/// Lists the functions that need only what is public.
pub(super) fn public_functions() -> [RelationFunction; 2] {
    [
        RelationFunction { signature: &release::SIGNATURE, table: release::table },
        RelationFunction { signature: &releases::SIGNATURE, table: releases::table },
    ]
}

pub(super) fn functions() -> impl Iterator<Item = RelationFunction> {
    public_functions().into_iter().chain([
        RelationFunction { signature: &audit::SIGNATURE, table: audit::table },
        RelationFunction { signature: &snapshots::SIGNATURE, table: snapshots::table },
    ])
}
