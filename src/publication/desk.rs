//! Opening a publication: its two tables, and whether they fit together.
//!
//! The ledger decides and the public table follows, so the ledger is at the public table's version or one ahead. Anything
//! else means that one of them was lost, exchanged or restored from a backup, and then nothing may be published: a release
//! that does not know of an earlier one breaks it.

use std::collections::HashSet;
use std::iter::repeat;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use deltalake_core::DeltaTable;
use futures::{StreamExt, TryStreamExt};

use super::announce::CLAIMS;
use super::charter::Charter;
use super::delta;
use super::files::intact;
use super::leftovers::only_leftovers;
use super::place::{Access, Place};
use super::record::{Announcement, Record, ReleaseFile};
use super::terms::Publication;

/// Commits read at a time.
const AT_ONCE: usize = 16;
/// Files read at a time; each is in memory as a whole.
const FILES_AT_ONCE: usize = 4;

/// An open publication.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(super) publication: Publication,
    pub(super) public: Place,
    pub(super) private: Place,
    /// What was begun, or what will be if this is the first release.
    pub(super) charter: Charter,
    pub(super) ledger: Option<DeltaTable>,
    pub(super) published: Option<DeltaTable>,
    /// The releases that were decided, oldest first.
    pub(super) records: Vec<Record>,
}

impl Desk {
    /// Opens both tables at their newest versions. Changes nothing.
    ///
    /// # Errors
    /// When the terms are not those of the publication, when its tables do not fit together, and when a store fails.
    pub(crate) async fn open(publication: Publication, runtime: &RuntimeEnv) -> Result<Self> {
        let public = Place::open(&publication.public, Access::Public, runtime)?;
        let private = Place::open(&publication.private, Access::Private, runtime)?;
        let found = Found::at_one_time(&public, &private).await?;
        let Found { ledger, published, records, unknown, crowded, claimed } = found;
        if let Some(table) = &published
            && delta::setting(table, Charter::PUBLICATION).is_none()
        {
            return plan_err!(
                "publication: the table at {} is not a publication; choose an empty location",
                publication.public
            );
        }
        let charter = match (&ledger, &published) {
            (None, Some(_)) => {
                return exec_err!(
                    "publication: the ledger of the publication at {} is not at {}: without it, a new release would break the \
                     earlier ones. Say where it is with the option private, or restore it from a backup of the time after the \
                     last release",
                    publication.public,
                    publication.private
                );
            }
            (None, None) if unknown => {
                return plan_err!(
                    "publication: there are files at {}, but no publication; choose an empty location",
                    publication.public
                );
            }
            (None, None) => {
                for place in [&public, &private] {
                    place.refuse_inside_a_table().await?;
                }
                if crowded {
                    return plan_err!(
                        "publication: there are files at {}, where the private ledger is to be; choose an empty location",
                        publication.private
                    );
                }
                Charter::draw(publication.terms.clone(), &publication.public)?
            }
            (Some(ledger), _) => Charter::of(ledger, &publication.private)?,
        };
        let desk = Self { publication, public, private, charter, ledger, published, records };
        desk.check_terms()?;
        desk.check_fit().await?;
        if let Some(number) = claimed {
            return Err(desk.claimed_by_another(number));
        }
        match desk.decided() {
            Some(0) if unknown && desk.published.is_none() => exec_err!(
                "publication: there are files at {}, but nothing was published yet; remove them, or choose an empty location",
                desk.publication.public
            ),
            _ if unknown => Err(desk.unknown_files()),
            _ => Ok(desk),
        }
    }

    /// Number of the newest release that is public.
    pub(crate) fn published(&self) -> u64 {
        self.published.as_ref().map_or(0, delta::version)
    }

    /// Number of the newest release that was decided, `None` if the publication was never begun.
    pub(crate) fn decided(&self) -> Option<u64> {
        self.ledger.as_ref().map(delta::version)
    }

    /// The newest release that was decided.
    pub(crate) fn newest(&self) -> Option<&Record> {
        self.records.last()
    }

    /// The ledger, if there is one.
    pub(crate) fn ledger(&self) -> Option<&DeltaTable> {
        self.ledger.as_ref()
    }

    /// Key of the snapshots' fingerprints.
    pub(crate) fn fingerprint_key(&self) -> [u64; 2] {
        self.charter.key
    }

    /// Reads all files of the ledger and compares them with what was written.
    ///
    /// # Errors
    /// When one is missing or damaged, or the store fails.
    pub(crate) async fn verify_ledger(&self) -> Result<()> {
        let files = self.records.iter().flat_map(|record| record.entries.iter().cloned().zip(repeat(record.number)));
        let files = files.chain(self.held_file().cloned().zip(self.newest().map(|newest| newest.number)));
        let files: Vec<(ReleaseFile, u64)> = files.collect();
        let store = self.private.store();
        let checks = files.into_iter().map(|(file, number)| {
            let store = Arc::clone(store);
            async move {
                let path = Path::from(file.name.as_str());
                Ok::<_, DataFusionError>(intact(store.as_ref(), &path, &file).await?.is_none().then_some(number))
            }
        });
        let checks: Vec<_> = checks.collect();
        let damaged: Vec<Option<u64>> =
            futures::stream::iter(checks).buffer_unordered(FILES_AT_ONCE).try_collect().await?;
        match damaged.into_iter().flatten().min() {
            Some(number) => exec_err!(
                "publication: the ledger at {} is damaged: its entries of release {number} are not those that were written; \
                 restore it from a backup of the time after the last release",
                self.publication.private
            ),
            None => Ok(()),
        }
    }

    /// Where the rows are that are held back, if there are any.
    pub(super) fn held_file(&self) -> Option<&ReleaseFile> {
        self.newest()?.held_back.as_ref()?.file.as_ref()
    }

    /// The rows that are held back.
    ///
    /// # Errors
    /// When their file is missing or damaged, or the store fails.
    pub(crate) async fn held_back(&self) -> Result<Vec<RecordBatch>> {
        let Some(file) = self.held_file() else { return Ok(Vec::new()) };
        let path = Path::from(file.name.as_str());
        let Some(contents) = intact(self.private.store().as_ref(), &path, file).await? else {
            return exec_err!(
                "publication: the rows that are held back are not in the ledger at {} as they were written; restore it from a \
                 backup of the time after the last release",
                self.publication.private
            );
        };
        let failed = |error| DataFusionError::ParquetError(Box::new(error));
        let reader = ParquetRecordBatchReaderBuilder::try_new(contents).map_err(failed)?.build().map_err(failed)?;
        reader.map(|batch| batch.map_err(DataFusionError::from)).collect()
    }

    /// Files at the public place that the ledger does not know of.
    pub(super) fn unknown_files(&self) -> DataFusionError {
        exec_datafusion_err!(
            "publication: there are Parquet files at {} that are of none of the releases that the ledger at {} knows: the ledger is \
             older than they are, or somebody else put them there. Restore the ledger from a backup of the time after the last \
             release, for with this one a new release would break what may have been read; or remove the files, if they are \
             surely of no release",
            self.publication.public,
            self.publication.private
        )
    }

    /// A release that was begun at the public place, but is not the one of the ledger.
    pub(super) fn claimed_by_another(&self, number: u64) -> DataFusionError {
        let public = &self.publication.public;
        exec_datafusion_err!(
            "publication: somebody with another ledger has begun release {number} at {public}: a publication has one ledger, so \
             use that one. If it is lost, and none of the files of its release {number} was ever at {public}, delete \
             {public}{CLAIMS}/{number}"
        )
    }

    fn check_terms(&self) -> Result<()> {
        let differences = self.publication.terms.differences(&self.charter.terms);
        if differences.is_empty() {
            return Ok(());
        }
        let differences = differences.join("; ");
        if self.decided() == Some(0) {
            return plan_err!(
                "publication: it was begun otherwise: {differences}. Nothing was published yet, so the ledger at {} can be \
                 deleted to begin anew",
                self.publication.private
            );
        }
        plan_err!(
            "publication: this is not how the publication was begun, and what was begun cannot change, because later releases \
             would break earlier ones: {differences}"
        )
    }

    /// Ledger and public table are of two publications.
    fn another_publication(&self, decided: u64) -> DataFusionError {
        let (public, private) = (&self.publication.public, &self.publication.private);
        let begun = &self.charter.public;
        if begun == public.as_str() {
            return exec_datafusion_err!(
                "publication: there is another publication at {public} than the one of the ledger at {private}; say where its \
                 ledger is with the option private, or choose another location"
            );
        }
        match (decided, &self.published) {
            (0, _) => exec_datafusion_err!(
                "publication: the ledger at {private} was begun for a publication at {begun}, not at {public}. Nothing was \
                 published yet, so it can be deleted to begin anew"
            ),
            (_, None) => exec_datafusion_err!(
                "publication: the ledger at {private} is of another publication than the one at {public}: it was begun for \
                 {begun}. If that was moved, its public table must be here, or back there to be completed"
            ),
            (_, Some(_)) => exec_datafusion_err!(
                "publication: the ledger at {private} is of another publication than the one at {public} (it was begun for \
                 {begun}); say where the right one is with the option private"
            ),
        }
    }

    async fn check_fit(&self) -> Result<()> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let (decided, published) = (delta::version(ledger), self.published());
        let (public, private) = (&self.publication.public, &self.publication.private);
        let same = match &self.published {
            Some(table) => delta::setting(table, Charter::PUBLICATION) == Some(&self.charter.publication),
            None => self.charter.public == public.as_str(),
        };
        if !same {
            return Err(self.another_publication(decided));
        }
        if published > decided {
            return exec_err!(
                "publication: the public table at {public} has version {published}, but the ledger at {private} knows releases \
                 up to {decided} only: it is older, or somebody else wrote to the public table. Restore the ledger from a \
                 backup of the time after the last release; with this one, a new release would break the earlier ones"
            );
        }
        if decided > published + 1 {
            return exec_err!(
                "publication: the ledger at {private} knows releases up to {decided}, but the public table at {public} has only \
                 those up to {published}: it was lost or is older. Restore it from a backup; readers may have the missing \
                 releases"
            );
        }
        let Some(table) = self.published.as_ref().filter(|_| published > 0) else { return Ok(()) };
        let announced: Option<(Announcement, _)> = delta::said(table, published).await?;
        let noted = self.records.get(published as usize - 1).map(|record| &record.release_id);
        if announced.as_ref().map(|(announcement, _)| &announcement.release_id) != noted {
            return exec_err!(
                "publication: release {published} in the public table at {public} is not the one that the ledger at {private} \
                 knows: one of the two was restored from another backup, or somebody else wrote to it"
            );
        }
        Ok(())
    }
}

/// What is on disk.
struct Found {
    ledger: Option<DeltaTable>,
    published: Option<DeltaTable>,
    records: Vec<Record>,
    /// Whether there are public files that no release has.
    unknown: bool,
    /// Whether there is no ledger, but something else where it is to be.
    crowded: bool,
    /// The number that somebody has claimed without the ledger having decided it.
    claimed: Option<u64>,
}

impl Found {
    /// All of it as it was at one time: others may be publishing.
    async fn at_one_time(public: &Place, private: &Place) -> Result<Self> {
        loop {
            let damaged = |what: &str, place: &Place| {
                format!(
                    "publication: the {what} at {} cannot be read; if it is damaged, restore it from a backup",
                    place.url()
                )
            };
            let ledger = delta::newest(private).await.map_err(|error| error.context(damaged("ledger", private)))?;
            let published =
                delta::newest(public).await.map_err(|error| error.context(damaged("public table", public)))?;
            let records = match &ledger {
                Some(ledger) => records(ledger).await,
                None => Ok(Vec::new()),
            };
            let unknown = match &records {
                Ok(records) => has_unknown(public, records).await?,
                Err(_) => false,
            };
            let crowded = ledger.is_none() && !only_leftovers(private).await?;
            let claimed = match &ledger {
                Some(ledger) => public.is_claimed(delta::version(ledger) + 1).await?,
                None => None,
            };
            let still = match &ledger {
                Some(ledger) => delta::is_newest(ledger).await?,
                None => delta::newest(private).await?.is_none(),
            };
            if still {
                let records = records.map_err(|error| error.context(damaged("ledger", private)))?;
                return Ok(Self { ledger, published, records, unknown, crowded, claimed });
            }
        }
    }
}

/// The releases that a ledger has decided. Its log and its files must be complete: what it forgot, the next release would break.
async fn records(ledger: &DeltaTable) -> Result<Vec<Record>> {
    let record = |number| async move {
        let said: Option<(Record, _)> = delta::said(ledger, number).await?;
        match said {
            Some((record, _)) if record.number == number => Ok(record),
            _ => exec_err!("version {number} of it is not a release that was decided"),
        }
    };
    let versions = futures::stream::iter(1..=delta::version(ledger));
    let records: Vec<Record> = versions.map(record).buffered(AT_ONCE).try_collect().await?;
    let there: HashSet<(String, u64)> = delta::files(ledger).await?.into_iter().collect();
    let written = records.iter().flat_map(|record| &record.entries).map(|file| (file.name.clone(), file.size));
    if written.collect::<HashSet<_>>() != there {
        return exec_err!("its files are not those that were written");
    }
    Ok(records)
}

/// Whether there is a public Parquet file that is of no release: of one that was decided by a newer ledger, say. Before the
/// first release, whether there is any file.
pub(super) async fn has_unknown(public: &Place, records: &[Record]) -> Result<bool> {
    let known: HashSet<&str> = records.iter().flat_map(|record| &record.files).map(|file| file.name.as_str()).collect();
    let listed = public.store().list_with_delimiter(None).await?;
    if records.is_empty() {
        let log = Path::from("_delta_log");
        let other = listed.common_prefixes.iter().any(|prefix| *prefix != log);
        return Ok(other || !listed.objects.is_empty());
    }
    let mut names = listed.objects.iter().filter_map(|object| object.location.filename());
    Ok(names.any(|name| name.ends_with(".parquet") && !known.contains(name)))
}
