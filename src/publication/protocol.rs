//! How a release comes into being, so that whatever happens in between, no two draws of a release are ever public.
//!
//! 1. *Stage*: the finished files are written beside the ledger.
//! 2. *Probe*: the public place can be written to, and creates a file only if there is none, which the next steps rely on. What is
//!    decided and cannot be announced would be in the way of all later releases.
//! 3. *Decide*: one commit to the ledger, at the version that was read, with what is to be remembered and what the release is.
//!    Of several attempts one gets through.
//! 4. *Announce* (`announce.rs`): the release claims its number in the public place, its staged files are copied there, and are
//!    committed. For readers the release exists from this commit on.
//!
//! Before step 3 nothing has happened; after it whoever comes next does step 4 again, with the same files.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path;
use deltalake_core::DeltaTable;
use deltalake_core::protocol::SaveMode;

use super::announce::probe;
use super::charter::Charter;
use super::delta;
use super::desk::Desk;
use super::entries::Merged;
use super::files::MadeFile;
use super::names::random_name;
use super::record::{Record, ReleaseFile};
use super::standing::{self, Kept, Standing, hash_of_names};

/// Beside the ledger's own files; names with an underscore are not part of a Delta table.
pub(super) const STAGED: &str = "_staged";

const NOT_WRITTEN: &str = "publication: the ledger could not be written; nothing was published";

/// Files of an attempt that nobody has decided on yet.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The number of the release and a random name.
    pub(crate) name: String,
    /// The files staged so far.
    pub(crate) files: Vec<ReleaseFile>,
}

impl Attempt {
    /// An attempt at the release of this number, without files.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub(crate) fn new(number: u64) -> Result<Self> {
        Ok(Self { name: numbered(number)?, files: Vec::new() })
    }
}

/// A random name that says for which release it is, so that what is left over can be told from what is being made.
///
/// # Errors
/// When the operating system has no randomness.
pub(crate) fn numbered(number: u64) -> Result<String> {
    Ok(format!("{number}-{}", random_name()?))
}

/// What a release leaves to the next one, in files beside the ledger's own ones.
#[derive(Debug)]
pub(crate) struct Remembered<'a> {
    /// Entries of people.
    pub(crate) entries: &'a [MadeFile],
    /// Earlier entries in fewer files.
    pub(crate) merged: Merged,
    /// What is held back; only the record refers to it.
    pub(crate) held: Option<&'a MadeFile>,
}

impl Remembered<'_> {
    fn files(&self) -> impl Iterator<Item = &MadeFile> {
        self.entries.iter().chain(&self.merged.made).chain(self.held)
    }
}

impl Desk {
    /// Stages a file of an attempt.
    ///
    /// # Errors
    /// When the private store fails.
    pub(crate) async fn stage(&self, attempt: &mut Attempt, made: MadeFile) -> Result<()> {
        let put = self.private.store().put(&staged(&attempt.name, &made.file), made.contents.into()).await;
        put.map_err(|error| self.private.failed(error))?;
        attempt.files.push(made.file);
        Ok(())
    }

    /// Removes what an attempt has staged, as far as that is possible.
    pub(crate) async fn discard(&self, attempt: &Attempt) {
        for file in &attempt.files {
            let _ = self.private.store().delete(&staged(&attempt.name, file)).await;
        }
        self.private.remove_empty(&Path::from_iter([STAGED, &attempt.name])).await;
    }

    /// Decides a release: commits it and what is to be remembered to the ledger. `false` if another attempt has decided in the
    /// meantime.
    ///
    /// # Errors
    /// When the public place is not fit for it, or the private store fails. Then nothing was decided, unless the store failed after it
    /// had done its work; the next attempt will find out.
    pub(crate) async fn decide(
        &mut self,
        record: Record,
        remembered: &Remembered<'_>,
        memory: &Schema,
    ) -> Result<bool> {
        let attempt = Attempt { name: record.attempt.clone(), files: record.files.clone() };
        match self.prepare(&attempt, remembered, memory).await {
            Ok(true) => {}
            // Nothing refers to what was staged.
            undecided => {
                self.discard(&attempt).await;
                self.forget(remembered).await;
                return undecided;
            }
        }
        let Some(ledger) = &self.ledger else { return internal_err!("publication: there is no ledger") };
        if delta::version(ledger) + 1 != record.number {
            return internal_err!("publication: the release that is decided is not the next one");
        }
        let standing = self.next_standing(ledger, &record, &remembered.merged).await;
        let standing = standing.map_err(|error| error.context(self.private.described()).context(NOT_WRITTEN))?;
        let made = remembered.entries.iter().chain(&remembered.merged.made);
        let mut actions: Vec<_> =
            made.map(|made| delta::add(&made.file.name, made.file.size, made.file.rows)).collect();
        actions.extend(remembered.merged.gone.iter().map(|kept| delta::remove(kept.file.name.clone(), kept.file.size)));
        if let Err(error) = delta::commit(ledger, actions, SaveMode::Append, standing::said(&record, &standing)?).await
        {
            let error = error.context(self.private.described());
            let number = record.number;
            let decided: Option<(Record, _)> = delta::said(ledger, number).await.map_err(|error| {
                error.context(format!(
                    "publication: whether release {number} is decided is not known; nothing was published. Run the INSERT again"
                ))
            })?;
            match decided {
                // The store failed when all was done.
                Some((decided, _)) if decided.attempt == record.attempt => {}
                Some(_) => {
                    self.discard(&attempt).await;
                    self.forget(remembered).await;
                    return Ok(false);
                }
                // The commit may still arrive, so what was staged stays.
                None => return Err(error.context(NOT_WRITTEN)),
            }
        }
        self.newest = Some(record);
        self.standing = standing;
        Ok(true)
    }

    /// The ledger as it is when a release is decided.
    async fn next_standing(&self, ledger: &DeltaTable, record: &Record, merged: &Merged) -> Result<Standing> {
        let before = delta::committed(ledger, record.number - 1).await?.map(|commit| commit.hash).unwrap_or_default();
        let newest = |gone: &[Kept]| gone.iter().map(|kept| kept.release).max().unwrap_or_default();
        let rest = self.standing.entries.iter().filter(|kept| !merged.gone.contains(kept)).cloned();
        let made = merged.made.iter().map(|made| Kept { release: newest(&merged.gone), file: made.file.clone() });
        let of_release = record.files.iter().map(|file| file.name.as_str());
        Ok(Standing {
            entries: rest.chain(made).chain(Kept::of(record)).collect(),
            names: hash_of_names(self.names.iter().map(String::as_str).chain(of_release)),
            before,
        })
    }

    /// All that comes before the commit; `false` if somebody else has begun the publication.
    async fn prepare(&mut self, attempt: &Attempt, remembered: &Remembered<'_>, memory: &Schema) -> Result<bool> {
        self.public.probe(&probe()?).await?;
        if self.ledger.is_none() {
            // The ledger's own store is asked once.
            self.private.probe(&Path::from_iter([STAGED, &attempt.name, "probe"])).await?;
            if !self.begin(memory).await? {
                return Ok(false);
            }
        }
        for made in remembered.files() {
            let put =
                self.private.store().put(&Path::from(made.file.name.as_str()), made.contents.clone().into()).await;
            put.map_err(|error| self.private.failed(error).context(NOT_WRITTEN))?;
        }
        Ok(true)
    }

    /// Removes entries that were not committed, as far as that is possible.
    async fn forget(&self, remembered: &Remembered<'_>) {
        for made in remembered.files() {
            let _ = self.private.store().delete(&Path::from(made.file.name.as_str())).await;
        }
    }

    /// Creates the ledger; `false` if somebody else did.
    async fn begin(&mut self, memory: &Schema) -> Result<bool> {
        let created = delta::create(&self.private, memory, &self.charter.settings()?).await;
        self.ledger = delta::newest(&self.private).await?;
        let Some(ledger) = &self.ledger else {
            let error = created.err().unwrap_or_else(|| exec_datafusion_err!("it is gone"));
            return Err(error.context(self.private.described()).context(NOT_WRITTEN));
        };
        let charter = Charter::of(ledger, &self.publication.private)?;
        Ok(charter.publication == self.charter.publication && delta::version(ledger) == 0)
    }
}

pub(super) fn staged(attempt: &str, file: &ReleaseFile) -> Path {
    Path::from_iter([STAGED, attempt, &file.name])
}
