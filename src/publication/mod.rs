//! Publications: releases that are made again and again, kept in two Delta Lake tables.
//!
//! The *public* table has a version per release, readable by anything that reads Delta Lake. The *ledger* is private: what the
//! next release must know of all earlier ones. Files of `publication`:
//!
//! | file | |
//! |---|---|
//! | `terms` | what a publication promises, and what its first release fixes |
//! | `place`, `store` | where the tables are; local files that are on the disk when a write returns |
//! | `known` | what was read of a log is not asked for again |
//! | `delta` | the little that is asked of Delta Lake |
//! | `charter`, `record`, `standing` | what is written down in the tables' metadata |
//! | `found`, `desk` | opening both tables, and refusing those that do not fit together |
//! | `protocol`, `announce` | stage and decide; announce |
//! | `leftovers` | what killed attempts leave behind, removed |
//! | `entries` | the ledger's entries, read as they were written or not at all |
//! | `types` | which types the tables can keep |
//! | `files`, `fingerprint`, `names` | Parquet without statistics; snapshots recognized; random names |
//! | `reader` | releases as readers see them |
//! | `rehearsal` | snapshots of the past, and what of them would be refused |
//! | `audit` | whether all of it keeps its promises |
//!
//! Rows of a stream that is repositioned are held back in a file beside the ledger's own ones. The record of the newest release names
//! it; the files of earlier ones are removed, for their rows are published, suppressed, or in the new one.

mod announce;
mod audit;
mod charter;
mod delta;
mod desk;
mod entries;
mod files;
mod fingerprint;
mod found;
mod known;
mod leftovers;
mod names;
mod place;
mod protocol;
mod reader;
mod record;
mod rehearsal;
mod standing;
mod store;
mod terms;
mod types;

pub(crate) use audit::Audit;
pub(crate) use desk::Desk;
pub(crate) use entries::{Merged, OVERTAKEN};
pub(crate) use files::{MadeFile, make};
pub(crate) use fingerprint::{Fingerprint, RelationFingerprint};
pub(crate) use names::random_name;
pub(crate) use place::{check_apart, locate, private_beside};
pub(crate) use protocol::{Attempt, Remembered, numbered};
pub(crate) use reader::{Reader, ReleaseRow, introduce, newest_version, provider};
pub(crate) use record::{Figures, HeldBack, Record};
pub(crate) use rehearsal::{Change, Changes, Found, Rehearsal};
pub use terms::{Publication, Repositioned, Terms};
pub(crate) use types::{check_schema, stored_type, type_names};
