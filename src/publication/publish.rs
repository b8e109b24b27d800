//! Publishing a decided release: its number is claimed, its files are copied, and the public table commits them.

use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::object_store::path::Path;
use datafusion::object_store::{Error, ObjectStoreExt, PutMode, PutOptions};
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use deltalake_core::DeltaTable;
use deltalake_core::kernel::{Action, MetadataExt};
use deltalake_core::logstore::commit_uri_from_version;
use deltalake_core::protocol::SaveMode;

use super::delta;
use super::failure::{breach, input_error, while_doing};
use super::files::intact;
use super::format;
use super::ledger_metadata::LedgerMetadata;
use super::open::OpenPublication;
use super::paths::{claim, staged};
use super::record::{Announcement, Record, ReleaseFile};
use super::tables::PublicFiles;
use super::vacuum::vacuum;
use crate::error::refusal;

/// Remainder of versions with a checkpoint, by five: no INSERT writes one of both tables.
const PUBLIC_PHASE: u64 = 2;
const LEDGER_PHASE: u64 = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Announced {
    pub(super) number: u64,
    /// True if this INSERT committed it, and not another one at the same time. Of all of them one did.
    pub(super) here: bool,
}

/// Makes the newest decided release public, if it is not, and clears up then. Returns it if there was something to do.
/// Fails when a store fails, when what was staged is damaged, and when somebody else publishes at the same place with another
/// ledger. The release stays decided, and the next call goes on.
pub(super) async fn publish(open: &mut OpenPublication) -> Result<Option<Announced>> {
    let Some(record) = open.newest().cloned().filter(|record| record.number == open.published() + 1) else {
        return Ok(None);
    };
    let number = record.number;
    let here = publish_record(open, &record).await.map_err(|error| {
        let doing =
            format!("release {number} is decided but not public yet; an INSERT completes it once this is mended");
        while_doing(doing, error)
    })?;
    vacuum(open, number).await;
    delta::sum_up(open.public.log_store(), number, PUBLIC_PHASE).await;
    delta::sum_up(open.private.log_store(), number, LEDGER_PHASE).await;
    Ok(Some(Announced { number, here }))
}

/// Returns true if the commit that makes it public was made here.
async fn publish_record(open: &mut OpenPublication, record: &Record) -> Result<bool> {
    // What readers will see, the ledger must never forget: whoever decided may have died before the disk had it.
    open.private.settle(&commit_uri_from_version(Some(record.number))).await?;
    let Some(first) = record.files.first() else { return Err(breach("a release without files")) };
    let contents = staged_or_public(open, record, first).await?;
    let schema = schema_of(&contents)?;
    claim_number(open, record, &schema).await?;
    copy(open, first, contents).await?;
    for file in &record.files[1..] {
        copy(open, file, staged_or_public(open, record, file).await?).await?;
    }
    let Some(table) = &open.published else { return Err(breach("there is no public table")) };
    if delta::version(table) + 1 != record.number {
        // Somebody else has completed the same release.
        return Ok(false);
    }
    let Err(error) = commit(open, table, record, &schema).await else { return Ok(true) };
    // Somebody else may have completed the same release, or the store may have failed when all was done.
    if !is_public(open, record).await? {
        return Err(open.public.unwritable(error));
    }
    let first = matches!(&error, DataFusionError::ObjectStore(store) if matches!(**store, Error::AlreadyExists { .. }));
    Ok(!first)
}

/// Claims the number before the first file is copied: the place is this publication's, and the number this
/// release's. A ledger that was copied decides numbers, too.
async fn claim_number(open: &mut OpenPublication, record: &Record, schema: &SchemaRef) -> Result<()> {
    if open.published.is_none() {
        let name = [(LedgerMetadata::PUBLICATION, open.metadata.publication.clone()), format::setting()];
        let created = delta::create(&open.public.log_store(), schema, &name).await;
        open.published = delta::newest(open.public.log_store()).await?;
        if open.published.is_none() {
            created.map_err(|error| open.public.unwritable(error))?;
        }
    }
    // Only who has begun the place may claim a number there; of copies of one ledger, the first.
    check_ours(open)?;
    put_claim(open, record).await?;
    if let Some(ledger) = &open.ledger {
        let listed = PublicFiles::list(&open.public).await?;
        if listed.has_unknown(&open.public, open.newest.as_ref(), &open.state, ledger).await? {
            return Err(open.unknown_files());
        }
    }
    // After the claim: whoever published this number before had one, too.
    if let Some(table) = &open.published
        && !delta::is_newest(table).await.map_err(|error| open.public.unreadable(error))?
    {
        open.published = delta::newest(open.public.log_store()).await?;
    }
    let table = check_ours(open)?;
    if delta::version(table) + 1 == record.number || is_public(open, record).await? {
        return Ok(());
    }
    Err(refusal!("publication", "the public table at {} is not the one that was opened", open.publication.public))
}

/// Claims the number for the release, unless that was done before.
async fn put_claim(open: &OpenPublication, record: &Record) -> Result<()> {
    let (claim, store) = (claim(record.number), open.public.store());
    loop {
        let once = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match store.put_opts(&claim, record.release_id.clone().into(), once).await {
            Ok(_) => return Ok(()),
            Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(open.public.unwritable(error)),
        }
        let found = match store.get(&claim).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        match found {
            Ok(found) if found.as_ref() == record.release_id.as_bytes() => return Ok(()),
            Ok(_) => return Err(open.claimed_by_another(record.number)),
            // Somebody has completed the release, and cleared up.
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(open.public.unreadable(error)),
        }
    }
}

/// Fails when the public table was begun by another publication.
fn check_ours(open: &OpenPublication) -> Result<&DeltaTable> {
    let Some(table) = &open.published else { return Err(breach("there is no public table")) };
    if delta::setting(table, LedgerMetadata::PUBLICATION) == Some(&open.metadata.publication) {
        return Ok(table);
    }
    Err(refusal!(
        "publication",
        "somebody with another ledger has begun a publication at {}; this one has published nothing",
        open.publication.public
    ))
}

/// Returns true if the version of this number is this release.
async fn is_public(open: &OpenPublication, record: &Record) -> Result<bool> {
    let Some(table) = &open.published else { return Ok(false) };
    match format::announcement(table, record.number).await? {
        Some((announcement, _)) if announcement.release_id == record.release_id => Ok(true),
        Some(_) => Err(refusal!(
            "publication",
            "somebody with another ledger has published release {} at {}; this one has published nothing",
            record.number,
            open.publication.public
        )),
        None => Ok(false),
    }
}

async fn commit(open: &OpenPublication, table: &DeltaTable, record: &Record, schema: &SchemaRef) -> Result<()> {
    let state = table.snapshot().map_err(delta::failed)?;
    let kernel = delta::kernel_schema(schema)?;
    let metadata = state.metadata().clone().with_schema(&kernel).map_err(input_error)?;
    let mut actions = vec![Action::Metadata(metadata)];
    actions.extend(record.files.iter().map(|file| delta::add(&file.name, file.size, file.rows)));
    // The files stay: earlier releases can still be read by their numbers.
    actions.extend(delta::files(table).await?.into_iter().map(|(path, size)| delta::remove(path, size)));
    let spec = &open.metadata.spec;
    let announcement = Announcement {
        number: record.number,
        release_id: record.release_id.clone(),
        method: spec.method.name().to_owned(),
        parameters: spec.parameters_text().map_err(|error| error.in_function(spec.method.name()))?,
        lawful: spec.method.as_method().changes().are_lawful().then(|| spec.counts_periods()),
        period: record.period_of(record.number),
        unit: record.unit,
        apart: spec.keeps_apart(),
        figures: record.figures.clone(),
    };
    delta::commit(table, actions, SaveMode::Overwrite, [(delta::COMMIT_KEY, delta::text(&announcement)?)]).await
}

async fn copy(open: &OpenPublication, file: &ReleaseFile, contents: Bytes) -> Result<()> {
    let put = open.public.store().put(&Path::from(file.name.as_str()), contents.into()).await;
    put.map(|_| ()).map_err(|error| open.public.unwritable(error))
}

async fn staged_or_public(open: &OpenPublication, record: &Record, file: &ReleaseFile) -> Result<Bytes> {
    let here = intact(open.private.store().as_ref(), &staged(&record.attempt, file), file).await;
    if let Some(contents) = here.map_err(|error| open.private.unreadable(error))? {
        return Ok(contents);
    }
    let there = intact(open.public.store().as_ref(), &Path::from(file.name.as_str()), file).await;
    there.map_err(|error| open.public.unreadable(error))?.ok_or_else(|| {
        refusal!(
            "publication",
            "a staged file of release {} is missing or damaged. If the public table was lost or restored from a backup, restore a \
             newer one; else restore the directory of the ledger",
            record.number
        )
    })
}

fn schema_of(contents: &Bytes) -> Result<SchemaRef> {
    let metadata = ArrowReaderMetadata::load(contents, ArrowReaderOptions::default())?;
    Ok(SchemaRef::clone(metadata.schema()))
}
