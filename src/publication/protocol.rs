//! The protocol of a release: the order of writes by which no two draws of it are ever public, whatever happens in between.
//!
//! 1. *Stage*: the finished files are written beside the ledger; of a release that is made in cells those of its entries, too.
//! 2. *Probe*: the public place can be written to, and creates a file only if there is none, which the next steps rely on. What is
//!    decided and cannot be published would be in the way of all later releases.
//! 3. *Decide*: one commit to the ledger, at the version that was read, with what is to be remembered and what the release is.
//!    Of several attempts one gets through.
//! 4. *Publish* (`publish.rs`): the release claims its number in the public place, its staged files are copied there, and are
//!    committed. For readers the release exists from this commit on.
//!
//! Before step 3 nothing has happened; after it whoever comes next does step 4 again, with the same files.

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path;
use deltalake_core::DeltaTable;
use deltalake_core::protocol::SaveMode;

use super::delta;
use super::entries::Compaction;
use super::failure::{breach, conflict, while_doing};
use super::files::{MadeFile, intact};
use super::ledger_metadata::LedgerMetadata;
use super::ledger_state::{self, LedgerFile, LedgerState, hash_of_names};
use super::open::OpenPublication;
use super::paths::{attempt, numbered, private_probe, probe, staged};
use super::record::{Record, ReleaseFile};
use crate::error::refusal;

/// Bytes that are asked for beside those of a release's files.
const ROOM_FOR_COMMITS: u64 = 1 << 18;

/// Files of an attempt that nobody has decided on yet.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The number of the release and a random name.
    pub(super) name: String,
    /// The files staged so far.
    pub(super) files: Vec<ReleaseFile>,
    /// Files of entries that are staged beside them.
    pub(super) entries: Vec<ReleaseFile>,
}

impl Attempt {
    /// Returns an attempt at the release of this number, without files.
    /// Fails when the operating system has no randomness.
    pub(super) fn new(number: u64) -> Result<Self> {
        Ok(Self { name: numbered(number)?, files: Vec::new(), entries: Vec::new() })
    }
}

/// Files that a release leaves to the next one, beside the ledger's own ones.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) schema: SchemaRef,
    /// Entries of people.
    pub(super) entries: Vec<MadeFile>,
    /// Files of entries that are staged with the release: too many for memory.
    pub(super) staged: Vec<ReleaseFile>,
    /// Earlier entries in fewer files.
    pub(super) merged: Compaction,
    /// File of the rows that are held back; only the record refers to it.
    pub(super) held: Option<MadeFile>,
    /// File of a reader's beliefs; only the record refers to it.
    pub(super) believed: Option<MadeFile>,
}

impl Remembered {
    fn files(&self) -> impl Iterator<Item = &MadeFile> {
        self.entries.iter().chain(&self.merged.made).chain(&self.held).chain(&self.believed)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.files().map(|made| made.file.name.as_str()).chain(self.staged.iter().map(|file| file.name.as_str()))
    }
}

/// Stages a file of an attempt.
/// Fails when the private store fails.
pub(super) async fn stage(open: &OpenPublication, attempt: &mut Attempt, made: MadeFile) -> Result<()> {
    put_staged(open, &attempt.name, &made.file, made.contents).await?;
    attempt.files.push(made.file);
    Ok(())
}

/// Stages a file of entries.
/// Fails when the private store fails.
pub(super) async fn stage_entries(open: &OpenPublication, attempt: &mut Attempt, made: MadeFile) -> Result<()> {
    put_staged(open, &attempt.name, &made.file, made.contents).await?;
    attempt.entries.push(made.file);
    Ok(())
}

async fn put_staged(open: &OpenPublication, attempt: &str, file: &ReleaseFile, contents: Vec<u8>) -> Result<()> {
    let put = open.private.store().put(&staged(attempt, file), contents.into()).await;
    put.map_err(|error| {
        let place = open.private.url();
        while_doing(
            format!("the release could not be staged beside the ledger at {place}; nothing was published"),
            error,
        )
    })?;
    Ok(())
}

/// Removes what an attempt has staged, as far as that is possible.
pub(super) async fn discard(open: &OpenPublication, undone: &Attempt) {
    for file in undone.files.iter().chain(&undone.entries) {
        let _ = open.private.store().delete(&staged(&undone.name, file)).await;
    }
    open.private.remove_empty(&attempt(&undone.name)).await;
}

/// Decides a release: commits it and what is to be remembered to the ledger.
/// Fails with a conflict if another attempt has decided in the meantime. Others when the public place is not fit for it, or the private store fails.
/// Then nothing was decided, unless the store failed after it had done its work; the next attempt will find out.
pub(super) async fn decide(open: &mut OpenPublication, record: Record, remembered: &Remembered) -> Result<()> {
    let (files, entries) = (record.files.clone(), remembered.staged.clone());
    let attempt = Attempt { name: record.attempt.clone(), files, entries };
    if let Err(error) = prepare(open, &attempt, &record, remembered).await {
        // Nothing refers to what was staged.
        discard(open, &attempt).await;
        forget(open, remembered).await;
        return Err(error);
    }
    let Some(ledger) = &open.ledger else { return Err(breach("there is no ledger")) };
    if delta::version(ledger) + 1 != record.number {
        return Err(breach("the release that is decided is not the next one"));
    }
    let state = next_state(open, ledger, &record, &remembered.merged).await;
    let state = state.map_err(|error| not_written(open, error))?;
    let made = remembered.entries.iter().chain(&remembered.merged.made).map(|made| &made.file);
    let made = made.chain(&remembered.staged);
    let mut actions: Vec<_> = made.map(|file| delta::add(&file.name, file.size, file.rows)).collect();
    actions.extend(remembered.merged.gone.iter().map(|kept| delta::remove(kept.file.name.clone(), kept.file.size)));
    let info = ledger_state::commit_info(&record, &state)?;
    if let Err(error) = delta::commit(ledger, actions, SaveMode::Append, info).await {
        let number = record.number;
        let decided = delta::read_commit_info::<Record>(ledger, number).await.map_err(|error| {
            let doing = format!(
                "whether release {number} is decided is not known; nothing was published. Run the INSERT again"
            );
            while_doing(doing, error)
        })?;
        match decided {
            // The store failed when all was done.
            Some((decided, _)) if decided.attempt == record.attempt => {}
            Some(_) => {
                discard(open, &attempt).await;
                forget(open, remembered).await;
                return Err(decided_by_another(number));
            }
            // The commit may still arrive, so what was staged stays.
            None => return Err(not_written(open, error)),
        }
    }
    open.newest = Some(record);
    open.state = state;
    Ok(())
}

fn decided_by_another(number: u64) -> DataFusionError {
    conflict(format!(
        "another INSERT decided release {number} of this publication while this one was at work; this one has published nothing: run \
         it again"
    ))
}

fn not_written(open: &OpenPublication, error: impl Into<DataFusionError>) -> DataFusionError {
    let place = open.private.url();
    while_doing(format!("the ledger at {place} could not be written; nothing was published"), error)
}

/// Returns the state of the ledger when a release is decided.
async fn next_state(
    open: &OpenPublication,
    ledger: &DeltaTable,
    record: &Record,
    merged: &Compaction,
) -> Result<LedgerState> {
    let before = delta::committed(ledger, record.number - 1).await?.map(|commit| commit.hash).unwrap_or_default();
    let newest = |gone: &[LedgerFile]| gone.iter().map(|kept| kept.release).max().unwrap_or_default();
    let rest = open.state.entries.iter().filter(|kept| !merged.gone.contains(kept)).cloned();
    let made = merged.made.iter().map(|made| LedgerFile { release: newest(&merged.gone), file: made.file.clone() });
    let of_release = record.files.iter().map(|file| file.name.as_str());
    Ok(LedgerState {
        entries: rest.chain(made).chain(LedgerFile::of(record)).collect(),
        names: hash_of_names(open.names.iter().map(String::as_str).chain(of_release)),
        before,
        metadata: LedgerMetadata::hash(ledger),
    })
}

/// Prepares the release up to the commit.
async fn prepare(
    open: &mut OpenPublication,
    attempt: &Attempt,
    record: &Record,
    remembered: &Remembered,
) -> Result<()> {
    open.public.probe(&probe()?).await?;
    // Its files, and what commits add.
    let bytes: u64 = record.files.iter().map(|file| file.size).sum();
    open.public.check_room(bytes + ROOM_FOR_COMMITS).await?;
    if open.ledger.is_none() {
        // The ledger's own store is asked once.
        open.private.probe(&private_probe(&attempt.name)).await?;
        if !begin(open, &remembered.schema).await? {
            return Err(decided_by_another(record.number));
        }
    }
    for made in remembered.files() {
        let put = open.private.store().put(&Path::from(made.file.name.as_str()), made.contents.clone().into()).await;
        put.map_err(|error| not_written(open, error))?;
    }
    for file in &remembered.staged {
        let (store, from) = (open.private.store(), staged(&attempt.name, file));
        let contents = intact(store.as_ref(), &from, file).await.map_err(|error| not_written(open, error))?;
        let Some(contents) = contents else {
            return Err(not_written(open, refusal!("publication", "a staged file of entries is missing or damaged")));
        };
        let put = store.put(&Path::from(file.name.as_str()), contents.into()).await;
        put.map_err(|error| not_written(open, error))?;
    }
    Ok(())
}

/// Removes entries that were not committed, as far as that is possible.
async fn forget(open: &OpenPublication, remembered: &Remembered) {
    for name in remembered.names() {
        let _ = open.private.store().delete(&Path::from(name)).await;
    }
}

/// Creates the ledger; `false` if somebody else did.
async fn begin(open: &mut OpenPublication, columns: &Schema) -> Result<bool> {
    let created = delta::create(&open.private.log_store(), columns, &open.metadata.settings()?).await;
    let ledger = delta::newest(open.private.log_store()).await;
    open.ledger = ledger.map_err(|error| not_written(open, error))?;
    let Some(ledger) = &open.ledger else {
        let error = created.err().unwrap_or_else(|| refusal!("publication", "it is gone"));
        return Err(not_written(open, error));
    };
    let metadata = LedgerMetadata::of(ledger, &open.publication.private)?;
    Ok(metadata.publication == open.metadata.publication && delta::version(ledger) == 0)
}
