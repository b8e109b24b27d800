//! Publications: releases that are made again and again, kept in two Delta Lake tables.
//!
//! The *public* table has a version per release, readable by anything that reads Delta Lake. The *ledger* is private: what the
//! next release must know of all earlier ones. Files of `publication`, from top to bottom; each uses only those below it:
//!
//! | file | |
//! |---|---|
//! | `transaction` | one INSERT: whether its snapshot is published at all, and the steps until the release is public, each a type |
//! | `publish` | making a decided release public |
//! | `vacuum` | removing what killed attempts leave behind |
//! | `protocol` | stage and decide; what makes a publication safe is the order of these writes |
//! | `observer` | fingerprints of what an INSERT reads, made while it is read |
//! | `audit` | whether all of a publication keeps its promises |
//! | `turnover` | how many people have returned, come and left |
//! | `periods` | whether a release may be of its period |
//! | `reader` | releases as readers see them |
//! | `open` | an open publication: both tables, which are refused if they do not fit together |
//! | `tables` | both tables as they were at one time |
//! | `entries` | the ledger's entries, read as they were written or not at all |
//! | `buffer_bytes`, `text_views` | batches that share buffers; texts that are read as views |
//! | `ledger_metadata`, `ledger_state` | what is written down of the whole of it in the tables' metadata |
//! | `format` | versions of this program that know what the tables say |
//! | `types` | which types the tables can keep |
//! | `delta` | the little that is asked of Delta Lake |
//! | `place` | where the tables are |
//! | `local_store`, `log_cache` | files that are on the disk when a write returns; what was read of a log is not asked for again |
//! | `paths` | where things lie at the two places, and what they are called |
//! | `files` | Parquet files without statistics |
//! | `record` | what is written down about a release |
//! | `spec` | what a publication promises, and what its first release fixes |
//! | `period` | the day, week, month or quarter that a snapshot is of |
//! | `fingerprint` | snapshots and update relations recognized |
//! | `dry_run` | snapshots of the past, and what of them would be refused |
//! | `clock` | the machine's clock, by which releases are dated |
//! | `failure`, `blocking` | errors, in one sentence; work on threads that may block |
//!
//! Rows of a stream that is repositioned are held back in a file beside the ledger's own ones. The record of the newest release names
//! it; the files of earlier ones are removed, for their rows are published, suppressed, or in the new one. In another such file is what readers
//! can believe of everybody's value who know how probable changes are, of m-distinct.

mod audit;
mod blocking;
mod buffer_bytes;
mod clock;
mod delta;
mod dry_run;
mod entries;
mod failure;
mod files;
mod fingerprint;
mod format;
mod ledger_metadata;
mod ledger_state;
mod local_store;
mod log_cache;
mod observer;
mod open;
mod paths;
mod period;
mod periods;
mod place;
mod protocol;
mod publish;
mod reader;
mod record;
mod spec;
mod tables;
mod text_views;
mod transaction;
mod turnover;
mod types;
mod vacuum;

pub(crate) use audit::{Audit, failed_checks};
pub(crate) use dry_run::{Change, Changes, DryRun, Findings};
pub(crate) use files::{MadeFile, make};
pub(crate) use open::{BEGIN, OpenPublication};
pub(crate) use paths::{numbered, random_name};
pub(crate) use period::{PERIOD, parse as parse_period};
pub use period::{Period, PeriodUnit};
pub(crate) use periods::of_releases as periods_of_releases;
pub(crate) use place::{check_apart, locate, private_beside};
pub(crate) use reader::{Reader, ReleaseRow, introduce, newest_version, provider};
pub(crate) use record::{Beliefs, Figures, HeldBack};
pub use spec::{Publication, PublicationSpec, Repositioned};
pub(crate) use text_views::with_view;
pub(crate) use transaction::{Believed, Checked, Ended, Held, Outcome, Published, Reading, Snapshot};
pub(crate) use turnover::MAX_MISSING;
pub(crate) use types::{check_schema, stored_type, type_names};
