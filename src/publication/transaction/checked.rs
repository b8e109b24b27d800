//! The checks of an INSERT, and the files of a release that may be made.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::spill::get_record_batch_memory_size;

use super::{Ended, Reading};
use crate::error::{refusal, thousands};
use crate::publication::files::MadeFile;
use crate::publication::paths::random_name;
use crate::publication::periods;
use crate::publication::protocol::{self, Attempt};

/// The rows of a snapshot, as far as they were read.
pub(crate) trait Snapshot {
    fn is_read(&self) -> bool;

    /// Reads all rows and leaves them.
    /// Fails with the errors of the input.
    fn pass_over(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Returns true if there are no rows that were not read.
    /// Fails with the errors of the input.
    fn is_empty(&mut self) -> impl Future<Output = Result<bool>> + Send;

    /// Counts people who were in an earlier release, where nobody may be in two; 0 elsewhere.
    /// Fails with the errors of the input; when identifiers are NULL or repeated.
    fn people_again(&mut self) -> impl Future<Output = Result<usize>> + Send;
}

/// An INSERT that may make a release, as far as its snapshot was read.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(super) reading: Reading,
    /// Fingerprint of the update relation, if there is one.
    pub(super) updates: Option<String>,
    pub(super) release_id: String,
    pub(super) attempt: Attempt,
}

impl Reading {
    /// Looks at all that can be refused before a release is made. `snapshot` was read, or its first rows will be.
    /// Fails when the snapshot was published before, and when no release may be made of it.
    pub(crate) async fn check(self, snapshot: &mut impl Snapshot) -> Result<Checked, Ended> {
        let updates = self.check_updates().await?;
        if snapshot.is_read() {
            self.recognize().await?;
        }
        if let Err(error) = self.check_release(snapshot).await {
            // It may be the same snapshot again.
            snapshot.pass_over().await?;
            self.recognize().await?;
            return Err(error.into());
        }
        if snapshot.is_empty().await? {
            self.recognize().await?;
        }
        Ok(Checked::try_new(self, updates)?)
    }

    /// Fails when the next release may not be made now, or not of these people.
    async fn check_release(&self, snapshot: &mut impl Snapshot) -> Result<()> {
        self.check_independence()?;
        periods::check_order(&self.open, self.publication())?;
        // Rows that are held back were looked at when they came.
        if snapshot.is_read() && self.is_known() {
            return Ok(());
        }
        self.check_new_people(snapshot.people_again().await?)
    }

    /// Returns the fingerprint of the update relation, which was read, if there is one.
    /// Fails when it is not the one that the first release was made with.
    async fn check_updates(&self) -> Result<Option<String>> {
        let updates = self.observer.updates().await?;
        if self.open.newest().is_none_or(|newest| newest.updates == updates) {
            return Ok(updates);
        }
        if self.publication().spec.has_domain() {
            return Err(refusal!(
                "publication",
                argument "domain",
                "the domain has other values than the one that the first release was made with, and it cannot change: that a value was \
                 added when somebody came who has it would tell whose it is. Nothing was published; restore the domain and declare the \
                 publication again, or begin another one for people who are not in this one"
            ));
        }
        Err(refusal!(
            "publication",
            argument "updates",
            "the update relation is not the one that the first release was made with, and it cannot change: what was thought \
             possible then is what earlier releases are safe by. Nothing was published; restore the relation and declare the \
             publication again, or begin another one, with updates that check_snapshots(..) has found to be enough"
        ))
    }

    /// # Errors
    /// When a method that does not know of earlier releases would make a second one, and nobody has said that its people are others; and when the publication
    /// was to begin with this release, but has begun before.
    fn check_independence(&self) -> Result<()> {
        self.open.check_begin()?;
        let spec = &self.publication().spec;
        let method = &spec.method;
        if self.number() == 1 || self.publication().independent || method.state().is_some() {
            return Ok(());
        }
        Err(refusal!(
            method.name(),
            argument "allow_independent_releases",
            "a second release would be made without knowledge of the first, and together they can give away what each of them \
             hides. If nobody of this snapshot is in an earlier release, declare the publication with 'allow_independent_releases' 'true'{}; \
             for people who return, a publication begins with 'method' 'm_invariant'",
            match spec.keeps_apart() {
                true => ", which looks for everybody by their identifier",
                false => "",
            }
        ))
    }

    /// # Errors
    /// When people of the snapshot were in an earlier release, of a method that does not know of it.
    fn check_new_people(&self, again: usize) -> Result<()> {
        if again == 0 {
            return Ok(());
        }
        let spec = &self.publication().spec;
        let (name, id) = (spec.method.name(), spec.roles.id.as_deref().unwrap_or_default());
        Err(refusal!(
            name,
            argument "allow_independent_releases",
            "{} people of this snapshot are in an earlier release, of which {name} knows nothing: together, two releases can give away what each of \
             them hides. Nothing was published; INSERT people who are in none yet: .. WHERE {id} NOT IN (SELECT {id} FROM what was inserted before)",
            thousands(again)
        ))
    }
}

impl Checked {
    fn try_new(reading: Reading, updates: Option<String>) -> Result<Self> {
        let attempt = Attempt::new(reading.number())?;
        Ok(Self { reading, updates, release_id: random_name()?, attempt })
    }

    pub(crate) fn number(&self) -> u64 {
        self.reading.number()
    }

    /// Returns its random name.
    pub(crate) fn release_id(&self) -> &str {
        &self.release_id
    }

    /// Returns true if it is known what readers believed before this release: of nobody before the first, and after it if all releases say so.
    pub(crate) fn knows_beliefs(&self) -> bool {
        self.reading.open.newest().is_none_or(|newest| newest.beliefs.is_some())
    }

    /// Reads the beliefs of readers before the release. Charges to `memory` what is read.
    /// Fails when the file is missing or damaged, the store fails, or there is not enough memory.
    pub(crate) async fn beliefs(&self, memory: &MemoryReservation) -> Result<Vec<RecordBatch>> {
        let Some(before) = self.reading.open.newest().and_then(|newest| newest.beliefs.as_ref()) else {
            return Ok(Vec::new());
        };
        let read = before.file.size as usize;
        memory.try_grow(read)?;
        let rows = self.reading.open.beliefs().await?;
        memory.try_grow(rows.iter().map(get_record_batch_memory_size).sum())?;
        memory.shrink(read);
        Ok(rows)
    }

    /// Stages a file of the release.
    /// Fails when the private store fails.
    pub(crate) async fn stage(&mut self, made: MadeFile) -> Result<()> {
        protocol::stage(&self.reading.open, &mut self.attempt, made).await
    }

    /// Stages a file of entries. It becomes one of the ledger when the release is decided.
    /// Fails when the private store fails.
    pub(crate) async fn stage_entries(&mut self, made: MadeFile) -> Result<()> {
        protocol::stage_entries(&self.reading.open, &mut self.attempt, made).await
    }

    /// Removes what was staged, as far as that is possible.
    pub(super) async fn discard(&self) {
        protocol::discard(&self.reading.open, &self.attempt).await;
    }
}
