//! Making a decided release public.

use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::object_store::path::Path;
use datafusion::object_store::{Error, ObjectStoreExt, PutMode, PutOptions};
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use deltalake_core::DeltaTable;
use deltalake_core::kernel::{Action, MetadataExt};
use deltalake_core::logstore::commit_uri_from_version;
use deltalake_core::protocol::SaveMode;

use super::charter::Charter;
use super::delta;
use super::desk::Desk;
use super::files::intact;
use super::found::Listed;
use super::names::random_name;
use super::protocol::staged;
use super::record::{Announcement, Record, ReleaseFile};

/// In the public place; names with an underscore are not part of a Delta table.
pub(super) const CLAIMS: &str = "_claims";
/// What the names of probes begin with.
const PROBE: &str = "probe-";
/// Which of every five versions has a checkpoint: one of the public table is not written by the same INSERT as one of the ledger.
const PUBLIC_PHASE: u64 = 2;
const LEDGER_PHASE: u64 = 4;

impl Desk {
    /// Makes the newest decided release public, if it is not, and clears up then. Returns it if there was something to do.
    ///
    /// # Errors
    /// When a store fails, when what was staged is damaged, and when somebody else publishes at the same place with another
    /// ledger. The release stays decided, and the next call goes on.
    pub(crate) async fn announce(&mut self) -> Result<Option<Record>> {
        let Some(record) = self.newest().cloned().filter(|record| record.number == self.published() + 1) else {
            return Ok(None);
        };
        let number = record.number;
        let done = self.publish(&record).await;
        done.map_err(|error| {
            error.context(format!(
                "publication: release {number} is decided but not public yet; an INSERT completes it once this is mended"
            ))
        })?;
        self.sweep(number).await;
        delta::sum_up(&self.public, number, PUBLIC_PHASE).await;
        delta::sum_up(&self.private, number, LEDGER_PHASE).await;
        Ok(Some(record))
    }

    async fn publish(&mut self, record: &Record) -> Result<()> {
        // What readers will see, the ledger must never forget: whoever decided may have died before the disk had it.
        self.private.settle(&commit_uri_from_version(Some(record.number))).await?;
        let Some(first) = record.files.first() else { return exec_err!("publication: a release without files") };
        let contents = self.staged_or_public(record, first).await?;
        let schema = schema_of(&contents)?;
        self.claim(record, &schema).await?;
        self.copy(first, contents).await?;
        for file in &record.files[1..] {
            self.copy(file, self.staged_or_public(record, file).await?).await?;
        }
        let Some(table) = &self.published else { return exec_err!("publication: there is no public table") };
        if delta::version(table) + 1 != record.number {
            // Somebody else has completed the same release.
            return Ok(());
        }
        let Err(error) = self.commit(table, record, &schema).await else { return Ok(()) };
        // Somebody else may have completed the same release, or the store may have failed when all was done.
        if self.is_public(record).await? { Ok(()) } else { Err(error.context(self.public.described())) }
    }

    /// Before the first file is copied: the place is this publication's, and the number this release's. A ledger that was copied
    /// decides numbers, too.
    async fn claim(&mut self, record: &Record, schema: &SchemaRef) -> Result<()> {
        if self.published.is_none() {
            let name = [(Charter::PUBLICATION, self.charter.publication.clone())];
            let created = delta::create(&self.public, schema, &name).await;
            self.published = delta::newest(&self.public).await?;
            if self.published.is_none() {
                created.map_err(|error| error.context(self.public.described()))?;
            }
        }
        // Only who has begun the place may claim a number there; of copies of one ledger, the first.
        self.check_ours()?;
        let (claim, store) = (claim(record.number), self.public.store());
        loop {
            let once = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match store.put_opts(&claim, record.release_id.clone().into(), once).await {
                Ok(_) => break,
                Err(Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(self.public.failed(error)),
            }
            let found = match store.get(&claim).await {
                Ok(found) => found.bytes().await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => match found.as_ref() == record.release_id.as_bytes() {
                    true => break,
                    false => return Err(self.claimed_by_another(record.number)),
                },
                // Somebody has completed the release, and cleared up.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.public.failed(error)),
            }
        }
        if let Some(ledger) = &self.ledger {
            let listed = Listed::of(&self.public).await?;
            if listed.has_unknown(&self.public, self.newest.as_ref(), &self.standing, ledger).await? {
                return Err(self.unknown_files());
            }
        }
        // After the claim: whoever published this number before had one, too.
        if let Some(table) = &self.published
            && !delta::is_newest(table).await.map_err(|error| error.context(self.public.described()))?
        {
            self.published = delta::newest(&self.public).await?;
        }
        let table = self.check_ours()?;
        if delta::version(table) + 1 == record.number || self.is_public(record).await? {
            return Ok(());
        }
        exec_err!("publication: the public table at {} is not the one that was opened", self.publication.public)
    }

    /// # Errors
    /// When the public table was begun by another publication.
    fn check_ours(&self) -> Result<&DeltaTable> {
        let Some(table) = &self.published else { return exec_err!("publication: there is no public table") };
        if delta::setting(table, Charter::PUBLICATION) == Some(&self.charter.publication) {
            return Ok(table);
        }
        exec_err!(
            "publication: somebody with another ledger has begun a publication at {}; this one has published nothing",
            self.publication.public
        )
    }

    /// Whether the version of this number is this release.
    async fn is_public(&self, record: &Record) -> Result<bool> {
        let Some(table) = &self.published else { return Ok(false) };
        let said: Option<(Announcement, _)> = delta::said(table, record.number).await?;
        match said {
            Some((announcement, _)) if announcement.release_id == record.release_id => Ok(true),
            Some(_) => exec_err!(
                "publication: somebody with another ledger has published release {} at {}; this one has published nothing",
                record.number,
                self.publication.public
            ),
            None => Ok(false),
        }
    }

    async fn commit(&self, table: &DeltaTable, record: &Record, schema: &SchemaRef) -> Result<()> {
        let state = table.snapshot().map_err(delta::failed)?;
        let kernel = delta::kernel_schema(schema)?;
        let metadata = state.metadata().clone().with_schema(&kernel).map_err(delta::no_schema)?;
        let mut actions = vec![Action::Metadata(metadata)];
        actions.extend(record.files.iter().map(|file| delta::add(&file.name, file.size, file.rows)));
        // The files stay: earlier releases can still be read by their numbers.
        actions.extend(delta::files(table).await?.into_iter().map(|(path, size)| delta::remove(path, size)));
        let method = &self.charter.terms.method;
        let announcement = Announcement {
            number: record.number,
            release_id: record.release_id.clone(),
            method: method.name().to_owned(),
            parameters: self.charter.terms.parameters_text().map_err(|error| error.in_function(method.name()))?,
            figures: record.figures.clone(),
        };
        delta::commit(table, actions, SaveMode::Overwrite, [(delta::COMMIT_KEY, delta::text(&announcement)?)]).await
    }

    /// Makes the public copy of a staged file.
    async fn copy(&self, file: &ReleaseFile, contents: Bytes) -> Result<()> {
        let put = self.public.store().put(&Path::from(file.name.as_str()), contents.into()).await;
        put.map(|_| ()).map_err(|error| self.public.failed(error))
    }

    async fn staged_or_public(&self, record: &Record, file: &ReleaseFile) -> Result<Bytes> {
        let source = staged(&record.attempt, file);
        let here = intact(self.private.store().as_ref(), &source, file).await;
        if let Some(contents) = here.map_err(|error| error.context(self.private.described()))? {
            return Ok(contents);
        }
        let there = intact(self.public.store().as_ref(), &Path::from(file.name.as_str()), file).await;
        match there.map_err(|error| error.context(self.public.described()))? {
            Some(contents) => Ok(contents),
            None => exec_err!(
                "publication: a staged file of release {} is missing or damaged. If the public table was lost or restored from a \
                 backup, restore a newer one; else restore the directory of the ledger",
                record.number
            ),
        }
    }
}

/// Where a release of this number is claimed.
pub(super) fn claim(number: u64) -> Path {
    Path::from_iter([CLAIMS, &number.to_string()])
}

/// A name for a probe of the public place.
pub(super) fn probe() -> Result<Path> {
    Ok(Path::from_iter([CLAIMS, &format!("{PROBE}{}", random_name()?)]))
}

/// Whether a file among the claims is a probe.
pub(super) fn is_probe(name: &str) -> bool {
    name.starts_with(PROBE)
}

fn schema_of(contents: &Bytes) -> Result<SchemaRef> {
    let metadata = ArrowReaderMetadata::load(contents, ArrowReaderOptions::default())
        .map_err(|error| DataFusionError::ParquetError(Box::new(error)))?;
    Ok(SchemaRef::clone(metadata.schema()))
}
