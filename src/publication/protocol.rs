//! How a release comes into being, so that whatever happens in between, no two draws of a release are ever public.
//!
//! 1. *Stage*: the finished files are written beside the ledger.
//! 2. *Decide*: one commit to the ledger, at the version that was read, with what is to be remembered and what the release is.
//!    Of several attempts one gets through.
//! 3. *Announce* (`announce.rs`): the release claims its number in the public place, its staged files are copied there, and are
//!    committed. For readers the release exists from this commit on.
//!
//! Before step 2 nothing has happened; after it whoever comes next does step 3 again, with the same files.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, internal_err};
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path;
use deltalake_core::protocol::SaveMode;

use super::charter::Charter;
use super::delta;
use super::desk::Desk;
use super::files::MadeFile;
use super::names::random_name;
use super::record::{Record, ReleaseFile};

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

impl Desk {
    /// Stages a file of an attempt.
    ///
    /// # Errors
    /// When the private store fails.
    pub(crate) async fn stage(&self, attempt: &mut Attempt, made: MadeFile) -> Result<()> {
        self.private.store().put(&staged(&attempt.name, &made.file), made.contents.into()).await?;
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

    /// Decides a release: commits it and what is to be remembered (`entries`, rows of `memory`) to the ledger. `held` is the file of what
    /// is held back; it lies beside, and only the record refers to it. `false` if another attempt has decided in the meantime.
    ///
    /// # Errors
    /// When the private store fails. Then nothing was decided, unless the store failed after it had done its work; the next
    /// attempt will find out.
    pub(crate) async fn decide(
        &mut self,
        record: Record,
        entries: &[MadeFile],
        held: Option<&MadeFile>,
        memory: &Schema,
    ) -> Result<bool> {
        let attempt = Attempt { name: record.attempt.clone(), files: record.files.clone() };
        match self.prepare(entries, held, memory).await {
            Ok(true) => {}
            // Nothing refers to what was staged.
            undecided => {
                self.discard(&attempt).await;
                self.forget(entries, held).await;
                return undecided;
            }
        }
        let Some(ledger) = &self.ledger else { return internal_err!("publication: there is no ledger") };
        if delta::version(ledger) + 1 != record.number {
            return internal_err!("publication: the release that is decided is not the next one");
        }
        let actions = entries.iter().map(|made| delta::add(&made.file.name, made.file.size, made.file.rows)).collect();
        if let Err(error) = delta::commit(ledger, actions, SaveMode::Append, &record).await {
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
                    self.forget(entries, held).await;
                    return Ok(false);
                }
                // The commit may still arrive, so what was staged stays.
                None => return Err(error.context(NOT_WRITTEN)),
            }
        }
        self.records.push(record);
        Ok(true)
    }

    /// All that comes before the commit; `false` if somebody else has begun the publication.
    async fn prepare(&mut self, entries: &[MadeFile], held: Option<&MadeFile>, memory: &Schema) -> Result<bool> {
        if self.ledger.is_none() && !self.begin(memory).await? {
            return Ok(false);
        }
        for made in entries.iter().chain(held) {
            let put =
                self.private.store().put(&Path::from(made.file.name.as_str()), made.contents.clone().into()).await;
            put.map_err(|error| DataFusionError::from(error).context(NOT_WRITTEN))?;
        }
        Ok(true)
    }

    /// Removes entries that were not committed, as far as that is possible.
    async fn forget(&self, entries: &[MadeFile], held: Option<&MadeFile>) {
        for made in entries.iter().chain(held) {
            let _ = self.private.store().delete(&Path::from(made.file.name.as_str())).await;
        }
    }

    /// Creates the ledger; `false` if somebody else did.
    async fn begin(&mut self, memory: &Schema) -> Result<bool> {
        let created = delta::create(&self.private, memory, &self.charter.settings()?).await;
        self.ledger = delta::newest(&self.private).await?;
        let Some(ledger) = &self.ledger else {
            let error = created.err().unwrap_or_else(|| exec_datafusion_err!("it is gone"));
            return Err(error.context(NOT_WRITTEN));
        };
        let charter = Charter::of(ledger, &self.publication.private)?;
        Ok(charter.publication == self.charter.publication && delta::version(ledger) == 0)
    }
}

pub(super) fn staged(attempt: &str, file: &ReleaseFile) -> Path {
    Path::from_iter([STAGED, attempt, &file.name])
}
