//! How a release comes into being, so that whatever happens in between, no release is ever drawn twice.
//!
//! 1. *Stage*: the finished files are written beside the ledger.
//! 2. *Decide*: one commit to the ledger, at the version that was read, with what is to be remembered and what the release is.
//!    Of several attempts one gets through.
//! 3. *Announce*: the staged files are copied to the public place and committed there. For readers the release exists from
//!    this commit on.
//!
//! Before step 2 nothing has happened; after it whoever comes next does step 3 again, with the same files.

use std::collections::HashSet;

use bytes::Bytes;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::object_store::ObjectStoreExt;
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use deltalake_core::DeltaTable;
use deltalake_core::kernel::{Action, MetadataExt, Remove};
use deltalake_core::logstore::commit_uri_from_version;
use deltalake_core::protocol::SaveMode;
use futures::StreamExt;

use super::charter::Charter;
use super::delta;
use super::desk::Desk;
use super::files::{MadeFile, intact};
use super::names::random_name;
use super::record::{Announcement, Record, ReleaseFile};

/// Beside the ledger's own files; names with an underscore are not part of a Delta table.
const STAGED: &str = "_staged";

const NOT_WRITTEN: &str = "publication: the ledger could not be written; nothing was published";

/// Files of an attempt that nobody has decided on yet.
#[derive(Debug)]
pub struct Attempt {
    /// Random name.
    pub name: String,
    /// The files staged so far.
    pub files: Vec<ReleaseFile>,
}

impl Attempt {
    /// An attempt at the release of this number, without files.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub fn new(number: u64) -> Result<Self> {
        Ok(Self { name: numbered(number)?, files: Vec::new() })
    }
}

/// A random name that says for which release it is, so that what is left over can be told from what is being made.
///
/// # Errors
/// When the operating system has no randomness.
pub fn numbered(number: u64) -> Result<String> {
    Ok(format!("{number}-{}", random_name()?))
}

impl Desk {
    /// Stages a file of an attempt.
    ///
    /// # Errors
    /// When the private store fails.
    pub async fn stage(&self, attempt: &mut Attempt, made: MadeFile) -> Result<()> {
        self.private.store().put(&staged(&attempt.name, &made.file), made.contents.into()).await?;
        attempt.files.push(made.file);
        Ok(())
    }

    /// Removes what an attempt has staged, as far as that is possible.
    pub async fn discard(&self, attempt: &Attempt) {
        for file in &attempt.files {
            let _ = self.private.store().delete(&staged(&attempt.name, file)).await;
        }
    }

    /// Decides a release: commits it and what is to be remembered (`entries`, rows of `memory`) to the ledger. `false` if
    /// another attempt has decided in the meantime.
    ///
    /// # Errors
    /// When the private store fails. Then nothing was decided, unless the store failed after it had done its work; the next
    /// attempt will find out.
    pub async fn decide(&mut self, record: Record, entries: &[MadeFile], memory: &Schema) -> Result<bool> {
        let attempt = Attempt { name: record.attempt.clone(), files: record.files.clone() };
        match self.prepare(entries, memory).await {
            Ok(true) => {}
            // Nothing refers to what was staged.
            undecided => {
                self.discard(&attempt).await;
                self.forget(entries).await;
                return undecided;
            }
        }
        let Some(ledger) = &self.ledger else { return exec_err!("publication: there is no ledger") };
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
                    self.forget(entries).await;
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
    async fn prepare(&mut self, entries: &[MadeFile], memory: &Schema) -> Result<bool> {
        if self.ledger.is_none() && !self.begin(memory).await? {
            return Ok(false);
        }
        for made in entries {
            let put =
                self.private.store().put(&Path::from(made.file.name.as_str()), made.contents.clone().into()).await;
            put.map_err(|error| DataFusionError::from(error).context(NOT_WRITTEN))?;
        }
        Ok(true)
    }

    /// Removes entries that were not committed, as far as that is possible.
    async fn forget(&self, entries: &[MadeFile]) {
        for made in entries {
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

    /// Makes the newest decided release public, if it is not, and clears up. Returns it if there was something to do.
    ///
    /// # Errors
    /// When a store fails, or what was staged is damaged. The release stays decided, and the next call goes on.
    pub async fn announce(&mut self) -> Result<Option<Record>> {
        let Some(record) = self.newest().cloned().filter(|record| record.number == self.published() + 1) else {
            self.sweep(self.published()).await;
            return Ok(None);
        };
        let number = record.number;
        let done = self.publish(&record).await;
        done.map_err(|error| {
            error.context(format!(
                "publication: release {number} is decided but not public yet; the next INSERT completes it"
            ))
        })?;
        self.sweep(number).await;
        Ok(Some(record))
    }

    /// Removes what attempts at releases up to this one have left behind, as far as that is possible: who was killed cannot. Other
    /// draws of a published snapshot must not lie about.
    async fn sweep(&self, number: u64) {
        let store = self.private.store();
        let of = |name: &str| name.split_once('-').and_then(|(number, _)| number.parse::<u64>().ok());
        let known: HashSet<&str> =
            self.records.iter().flat_map(|record| &record.entries).map(|file| file.name.as_str()).collect();
        let mut left = Vec::new();
        let mut staged = store.list(Some(&Path::from(STAGED)));
        while let Some(Ok(object)) = staged.next().await {
            let attempt = object.location.parts().nth(1);
            if attempt.and_then(|name| of(name.as_ref())).is_some_and(|of| of <= number) {
                left.push(object.location);
            }
        }
        if let Ok(listed) = store.list_with_delimiter(None).await {
            left.extend(listed.objects.into_iter().map(|object| object.location).filter(|location| {
                let name = location.filename().unwrap_or_default();
                name.ends_with(".parquet") && of(name).is_some_and(|of| of <= number) && !known.contains(name)
            }));
        }
        for location in left {
            let _ = store.delete(&location).await;
        }
    }

    async fn publish(&mut self, record: &Record) -> Result<()> {
        // What readers will see, the ledger must never forget: whoever decided may have died before the disk had it.
        self.private.settle(&commit_uri_from_version(Some(record.number))).await?;
        let mut schema = None;
        for file in &record.files {
            let contents = self.copy(record, file).await?;
            if schema.is_none() {
                schema = Some(schema_of(&contents)?);
            }
        }
        let Some(schema) = schema else { return exec_err!("a release without files") };
        if self.published.is_none() {
            let name = [(Charter::PUBLICATION, self.charter.publication.clone())];
            let created = delta::create(&self.public, &schema, &name).await;
            self.published = delta::newest(&self.public).await?;
            if self.published.is_none() {
                created?;
            }
        }
        let Some(table) = &self.published else { return exec_err!("there is no public table") };
        let committed = match delta::version(table) {
            version if version + 1 == record.number => self.commit(table, record, &schema).await,
            _ => Ok(()),
        };
        // Somebody else may have completed the same release, or the store may have failed when all was done.
        self.published = delta::newest(&self.public).await?;
        let Some(table) = &self.published else { return exec_err!("there is no public table") };
        let announced: Option<(Announcement, _)> = delta::said(table, record.number).await?;
        match announced {
            Some((announcement, _)) if announcement.release_id == record.release_id => Ok(()),
            Some(_) => exec_err!("publication: somebody else wrote to the public table"),
            None => committed.and_then(|()| exec_err!("publication: the public table did not take the commit")),
        }
    }

    async fn commit(&self, table: &DeltaTable, record: &Record, schema: &SchemaRef) -> Result<()> {
        let state = table.snapshot().map_err(delta::failed)?;
        let kernel = delta::kernel_schema(schema)?;
        let metadata = state.metadata().clone().with_schema(&kernel).map_err(delta::no_schema)?;
        let mut actions = vec![Action::Metadata(metadata)];
        actions.extend(record.files.iter().map(|file| delta::add(&file.name, file.size, file.rows)));
        let now = chrono::Utc::now().timestamp_millis();
        // The files stay: earlier releases can still be read by their numbers.
        actions.extend(delta::files(table).await?.into_iter().map(|(path, size)| {
            Action::Remove(Remove {
                path,
                data_change: true,
                deletion_timestamp: Some(now),
                size: Some(size as i64),
                ..Remove::default()
            })
        }));
        let method = &self.charter.terms.method;
        let parameters = method.parameters().map_err(|error| error.in_function(method.name()))?;
        let announcement = Announcement {
            number: record.number,
            release_id: record.release_id.clone(),
            method: method.name().to_owned(),
            parameters: serde_json::Value::Object(parameters).to_string(),
            figures: record.figures.clone(),
        };
        delta::commit(table, actions, SaveMode::Overwrite, &announcement).await
    }

    /// Makes the public copy of a staged file, if there is none yet.
    async fn copy(&self, record: &Record, file: &ReleaseFile) -> Result<Bytes> {
        let source = staged(&record.attempt, file);
        let target = Path::from(file.name.as_str());
        if let Some(contents) = intact(self.private.store().as_ref(), &source, file).await? {
            self.public.store().put(&target, contents.clone().into()).await?;
            return Ok(contents);
        }
        match intact(self.public.store().as_ref(), &target, file).await? {
            Some(contents) => Ok(contents),
            None => exec_err!(
                "publication: a staged file of release {} is missing or damaged. If the public table was lost or restored from a \
                 backup, restore a newer one; else restore the directory of the ledger",
                record.number
            ),
        }
    }
}

fn staged(attempt: &str, file: &ReleaseFile) -> Path {
    Path::from_iter([STAGED, attempt, &file.name])
}

fn schema_of(contents: &Bytes) -> Result<SchemaRef> {
    let metadata = ArrowReaderMetadata::load(contents, ArrowReaderOptions::default())
        .map_err(|error| DataFusionError::ParquetError(Box::new(error)))?;
    Ok(SchemaRef::clone(metadata.schema()))
}
