//! State of the ledger after a release: which files it consists of, and sums of what was before, in the commit of that release.
//!
//! An INSERT must know all of the ledger, but should not read the commits of all releases for it. So every commit says which files the ledger consists of
//! now, with their checksums, and sums up what else counts of the past: the names of all public files, the commit before, and what the table says of its
//! publication. Whoever has read the newest commit and found those files as it says has all that was ever entered, whatever became of older commits; those
//! an audit compares, one with the next.

use std::collections::{BTreeSet, HashSet};

use datafusion::common::Result;
use deltalake_core::DeltaTable;
use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use super::delta::{self, COMMIT_KEY, Commit};
use super::format;
use super::ledger_metadata::LedgerMetadata;
use super::record::{Record, ReleaseFile};
use crate::error::refusal;

/// Metadata key of the state in a commit.
const STATE_KEY: &str = "anonymizeLedger";
/// Metadata key of the hash of what a commit says: a bit that was lost must not change it.
const HASH_KEY: &str = "anonymizeHash";
/// Commits read at a time.
const AT_ONCE: usize = 16;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerState {
    pub(super) entries: Vec<LedgerFile>,
    /// Hash of the names of all public files, those of this release among them.
    pub(super) names: String,
    /// Hash of the commit before.
    pub(super) before: String,
    /// Hash of the [metadata](LedgerMetadata::hash).
    pub(super) metadata: String,
}

impl LedgerState {
    pub(super) fn rows(&self) -> u64 {
        self.entries.iter().map(|kept| kept.file.rows).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerFile {
    /// The newest release that it has entries of.
    pub(super) release: u64,
    pub(super) file: ReleaseFile,
}

impl LedgerFile {
    pub(super) fn of(record: &Record) -> impl Iterator<Item = Self> {
        record.entries.iter().map(|file| Self { release: record.number, file: file.clone() })
    }
}

/// Returns the hash of the names of files, in any order.
pub(super) fn hash_of_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: BTreeSet<&str> = names.collect();
    let mut hasher = blake3::Hasher::new();
    for name in names {
        hasher.update(name.as_bytes()).update(b"\n");
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns the content of a release's commit: its record and the state after it.
pub(super) fn commit_info(record: &Record, state: &LedgerState) -> Result<[(&'static str, String); 3]> {
    let (record, state) = (delta::text(record)?, delta::text(state)?);
    let hash = hash_of(&record, &state);
    Ok([(COMMIT_KEY, record), (STATE_KEY, state), (HASH_KEY, hash)])
}

fn hash_of(record: &str, state: &str) -> String {
    blake3::hash(format!("{record}\n{state}").as_bytes()).to_hex().to_string()
}

/// A version of a ledger as its commit has it.
struct Read {
    record: Record,
    state: LedgerState,
    commit: Commit,
}

async fn read(ledger: &DeltaTable, number: u64) -> Result<Read> {
    let not_ours = || Err(refusal!("publication", "version {number} of it is not a release that was decided"));
    let this = format!("version {number} of it");
    let Some(commit) = delta::committed(ledger, number).await? else { return not_ours() };
    let Some(text) = commit.says(COMMIT_KEY) else { return not_ours() };
    if !commit.says_only(&[COMMIT_KEY, STATE_KEY, HASH_KEY]) {
        return Err(format::unknown(format!("{this} says something")));
    }
    let state = match (commit.says(STATE_KEY), commit.says(HASH_KEY)) {
        (Some(state), Some(hash)) if hash_of(text, state) == hash => format::read::<LedgerState>(state, &this)?,
        _ => return Err(refusal!("publication", "version {number} of it is not as it was written")),
    };
    let record: Record = format::read(text, &this)?;
    if record.number == number { Ok(Read { record, state, commit }) } else { not_ours() }
}

/// Returns the newest release of a ledger, if any, and the state after it. What it forgot, the next release would
/// break: the files that it names must be those of the table, and the commit before the one that it followed.
/// Fails when the log is not what was written, or the store fails.
pub(super) async fn newest(ledger: &DeltaTable) -> Result<(Option<Record>, LedgerState)> {
    let number = delta::version(ledger);
    let (record, state) = match number {
        0 => (None, LedgerState::default()),
        number => {
            let Read { record, state, .. } = read(ledger, number).await?;
            let before = delta::committed(ledger, number - 1).await?;
            if before.map(|commit| commit.hash).as_ref() != Some(&state.before) {
                let last = number - 1;
                return Err(refusal!(
                    "publication",
                    "version {last} of it is not the one that the next was made after"
                ));
            }
            if state.metadata != LedgerMetadata::hash(ledger) {
                return Err(refusal!("publication", "what it says of its publication is not what was written"));
            }
            (Some(record), state)
        }
    };
    let there: HashSet<(String, u64)> = delta::files(ledger).await?.into_iter().collect();
    let written = state.entries.iter().map(|kept| (kept.file.name.clone(), kept.file.size));
    if written.collect::<HashSet<_>>() != there {
        return Err(refusal!("publication", "its files are not those that were written"));
    }
    Ok((record, state))
}

/// Reads the record of a release that was decided.
/// Fails when its commit is not what was written, or the store fails.
pub(super) async fn record(ledger: &DeltaTable, number: u64) -> Result<Record> {
    Ok(read(ledger, number).await?.record)
}

/// Returns all releases that were decided, oldest first.
/// Fails as [`record`] does.
pub(super) async fn records(ledger: &DeltaTable) -> Result<Vec<Record>> {
    let versions = futures::stream::iter(1..=delta::version(ledger));
    versions.map(|number| record(ledger, number)).buffered(AT_ONCE).try_collect().await
}

/// Counts the damaged commits of a ledger, and all commits. Damaged are those that are not as the next one says, are missing or cannot be read.
pub(super) async fn damaged_commits(ledger: &DeltaTable) -> (usize, usize) {
    let hashes = |number| async move {
        match number {
            0 => delta::committed(ledger, 0).await.ok().flatten().map(|commit| (commit.hash, None)),
            number => read(ledger, number).await.ok().map(|read| (read.commit.hash, Some(read.state))),
        }
    };
    let versions = futures::stream::iter(0..=delta::version(ledger));
    let commits: Vec<Option<(String, Option<LedgerState>)>> = versions.map(hashes).buffered(AT_ONCE).collect().await;
    let damaged = |place: &usize| match (&commits[*place], commits.get(place + 1)) {
        (None, _) => true,
        (Some((hash, _)), Some(Some((_, Some(next))))) => next.before != *hash,
        _ => false,
    };
    ((0..commits.len()).filter(damaged).count(), commits.len())
}
