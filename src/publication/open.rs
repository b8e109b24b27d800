//! An open publication: its two tables, and whether they fit together.
//!
//! The ledger decides and the public table follows, so the ledger is at the public table's version or one ahead. Anything
//! else means that one of them was lost, exchanged or restored from a backup, and then nothing may be published: a release
//! that does not know of an earlier one breaks it.

use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path;
use deltalake_core::DeltaTable;

use super::clock;
use super::delta;
use super::entries::{Entries, decode};
use super::failure::while_doing;
use super::files::intact;
use super::format;
use super::ledger_metadata::LedgerMetadata;
use super::ledger_state::{self, LedgerState};
use super::paths::CLAIMS;
use super::place::{Access, Place};
use super::record::{Record, ReleaseFile};
use super::spec::Publication;
use super::tables::Tables;
use crate::error::refusal;

/// Option of the declaration with which a publication begins.
pub(crate) const BEGIN: &str = "begin";

#[derive(Debug)]
pub(crate) struct OpenPublication {
    pub(super) publication: Publication,
    pub(super) public: Place,
    pub(super) private: Place,
    /// Metadata of the publication that was begun, or will be by a first release.
    pub(super) metadata: LedgerMetadata,
    pub(super) ledger: Option<DeltaTable>,
    pub(super) published: Option<DeltaTable>,
    /// The newest release that was decided.
    pub(super) newest: Option<Record>,
    pub(super) state: LedgerState,
    /// Names of the public Parquet files.
    pub(super) names: Vec<String>,
}

impl OpenPublication {
    /// Opens both tables at their newest versions. Changes nothing.
    /// Fails when the specification is not that of the publication, when its tables do not fit together, and when a store fails.
    pub(crate) async fn open(publication: Publication, runtime: &RuntimeEnv) -> Result<Self> {
        clock::check(clock::now())?;
        let public = Place::open(&publication.public, Access::Public, runtime)?;
        let private = Place::open(&publication.private, Access::Private, runtime)?;
        let tables = Tables::at_one_time(&public, &private).await?;
        let Tables { ledger, published, newest, state, names, unknown, crowded, claimed } = tables;
        if let Some(table) = &published
            && delta::setting(table, LedgerMetadata::PUBLICATION).is_none()
        {
            return Err(refusal!(
                "publication",
                "the table at {} is not a publication; choose an empty location",
                publication.public
            ));
        }
        let metadata = match (&ledger, &published) {
            (None, Some(_)) => {
                return Err(refusal!(
                    "publication",
                    "the ledger of the publication at {} is not at {}: without it, a new release would break the \
                     earlier ones. Say where it is with the option private, or restore it from a backup of the time after the \
                     last release",
                    publication.public,
                    publication.private
                ));
            }
            (None, None) if unknown => {
                return Err(refusal!(
                    "publication",
                    "there are files at {}, but no publication; choose an empty location",
                    publication.public
                ));
            }
            (None, None) => {
                for place in [&public, &private] {
                    place.refuse_inside_a_table().await?;
                }
                if crowded {
                    return Err(refusal!(
                        "publication",
                        "there are files at {}, where the private ledger is to be; choose an empty location",
                        publication.private
                    ));
                }
                if !publication.begin {
                    return Err(nothing_here(&publication));
                }
                LedgerMetadata::draw(publication.spec.clone(), &publication.public)?
            }
            (Some(ledger), _) => LedgerMetadata::of(ledger, &publication.private)?,
        };
        let open = Self { publication, public, private, metadata, ledger, published, newest, state, names };
        open.check_spec()?;
        open.check_fit().await?;
        if let Some(number) = claimed {
            return Err(open.claimed_by_another(number));
        }
        match open.decided() {
            Some(0) if unknown && open.published.is_none() => Err(refusal!(
                "publication",
                "there are files at {}, but nothing was published yet; remove them, or choose an empty location",
                open.publication.public
            )),
            _ if unknown => Err(open.unknown_files()),
            _ => Ok(open),
        }
    }

    /// Fails when the declaration begins the publication, and there are releases already: who leaves it so would begin another one where storage is away.
    pub(super) fn check_begin(&self) -> Result<()> {
        if !self.publication.begin || self.decided().unwrap_or(0) == 0 {
            return Ok(());
        }
        Err(refusal!(
            "publication",
            argument BEGIN,
            "this publication has begun: there are {} releases. Take '{BEGIN}' 'true' out of the declaration for good, and run the INSERT again: with it, a \
             job whose storage is not mounted would begin a second publication of the same people. Nothing was published",
            self.decided().unwrap_or(0)
        ))
    }

    /// Returns the publication, with what was left open as it was begun.
    pub(crate) fn publication(&self) -> &Publication {
        &self.publication
    }

    /// Says whether the publication was declared to begin although it has.
    pub(crate) fn set_begin(&mut self, begin: bool) {
        self.publication.begin = begin;
    }

    /// Returns the notice if the clock is behind the time of the newest release.
    pub(super) async fn clock_notice(&self) -> Option<String> {
        let ledger = self.ledger.as_ref()?;
        let number = delta::version(ledger);
        let then = delta::committed(ledger, number).await.ok()??.time?;
        clock::behind(number, then, clock::now()).filter(|_| number > 0)
    }

    /// Returns the number of cells of its releases, if it was begun.
    pub(crate) fn cells(&self) -> Option<u32> {
        self.ledger.as_ref().map(|_| self.metadata.spec.cells)
    }

    /// Returns the number of the newest release that is public.
    pub(crate) fn published(&self) -> u64 {
        self.published.as_ref().map_or(0, delta::version)
    }

    /// Returns the number of the newest decided release; `None` before the publication begins.
    pub(crate) fn decided(&self) -> Option<u64> {
        self.ledger.as_ref().map(delta::version)
    }

    pub(crate) fn newest(&self) -> Option<&Record> {
        self.newest.as_ref()
    }

    /// Returns the types of the ledger's columns, if there is one.
    /// Fails when its schema cannot be read.
    pub(crate) fn ledger_columns(&self) -> Result<Option<SchemaRef>> {
        self.ledger.as_ref().map(delta::columns).transpose()
    }

    /// Returns the entries of the ledger, if there is one.
    pub(crate) fn entries(&self) -> Option<Entries> {
        let ledger = self.ledger.clone()?;
        Some(Entries { place: self.private.clone(), ledger, files: self.state.entries.clone() })
    }

    pub(crate) fn fingerprint_key(&self) -> [u64; 2] {
        self.metadata.key
    }

    /// Returns true if all releases are balanced, including the next. It is what the ledger is to say of a method that balances.
    pub(super) fn balanced(&self) -> Option<bool> {
        let balanced = self.metadata.spec.method.as_method().balanced()?;
        let before = self.newest().and_then(|newest| newest.balanced).unwrap_or(true);
        Some(before && balanced)
    }

    /// Reads all files of the ledger and compares them with what was written.
    /// Fails when one is missing or damaged, or the store fails.
    pub(crate) async fn verify_ledger(&self) -> Result<()> {
        if let Some(entries) = self.entries() {
            entries.verify().await?;
        }
        self.held_contents().await?;
        self.beliefs_contents().await.map(|_| ())
    }

    /// Returns the file of the rows that are held back, if there are any.
    pub(super) fn held_file(&self) -> Option<&ReleaseFile> {
        self.newest()?.held_back.as_ref()?.file.as_ref()
    }

    /// Returns the rows that are held back.
    /// Fails when their file is missing or damaged, or the store fails.
    pub(crate) async fn held_back(&self) -> Result<Vec<RecordBatch>> {
        match self.held_contents().await? {
            Some(contents) => decode(contents).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns the file of readers' beliefs about everybody's values, if they are known.
    pub(super) fn beliefs_file(&self) -> Option<&ReleaseFile> {
        self.newest()?.beliefs.as_ref().map(|beliefs| &beliefs.file)
    }

    /// Reads the beliefs of readers about everybody's values.
    /// Fails as [`held_back`](Self::held_back) does.
    pub(crate) async fn beliefs(&self) -> Result<Vec<RecordBatch>> {
        match self.beliefs_contents().await? {
            Some(contents) => decode(contents).await,
            None => Ok(Vec::new()),
        }
    }

    async fn held_contents(&self) -> Result<Option<Bytes>> {
        self.contents(self.held_file(), "the rows that are held back").await
    }

    async fn beliefs_contents(&self) -> Result<Option<Bytes>> {
        self.contents(self.beliefs_file(), "the probabilities that readers can put on people's values").await
    }

    /// Reads a file beside the ledger's own ones, and its contents, if there is one.
    async fn contents(&self, file: Option<&ReleaseFile>, what: &str) -> Result<Option<Bytes>> {
        let Some(file) = file else { return Ok(None) };
        let read = intact(self.private.store().as_ref(), &Path::from(file.name.as_str()), file).await;
        match read.map_err(|error| self.private.unreadable(error))? {
            Some(contents) => Ok(Some(contents)),
            None => Err(refusal!(
                "publication",
                "{what} are not in the ledger at {} as they were written; restore it from a \
                 backup of the time after the last release",
                self.publication.private
            )),
        }
    }

    /// Returns the files at the public place that the ledger does not know of.
    pub(super) fn unknown_files(&self) -> DataFusionError {
        refusal!(
            "publication",
            "there are Parquet files at {} that are of none of the releases that the ledger at {} knows: the ledger is \
             older than they are, or somebody else put them there. Restore the ledger from a backup of the time after the last \
             release, for with this one a new release would break what may have been read; or remove the files, if they are \
             surely of no release",
            self.publication.public,
            self.publication.private
        )
    }

    /// Returns the error of a release that another ledger began at the public place.
    pub(super) fn claimed_by_another(&self, number: u64) -> DataFusionError {
        let public = &self.publication.public;
        refusal!(
            "publication",
            "somebody with another ledger has begun release {number} at {public}: a publication has one ledger, so \
             use that one. If it is lost, and none of the files of its release {number} was ever at {public}, delete \
             {public}{CLAIMS}/{number}"
        )
    }

    fn check_spec(&self) -> Result<()> {
        let differences = self.publication.spec.differences(&self.metadata.spec);
        if differences.is_empty() {
            return Ok(());
        }
        let differences = differences.join("; ");
        if self.decided() == Some(0) {
            return Err(refusal!(
                "publication",
                "it was begun otherwise: {differences}. Nothing was published yet, so the ledger at {} can be \
                 deleted to begin anew",
                self.publication.private
            ));
        }
        Err(refusal!(
            "publication",
            "this is not how the publication was begun, and what was begun cannot change, because later releases \
             would break earlier ones: {differences}"
        ))
    }

    /// Returns the error of a ledger and a public table of two publications.
    fn another_publication(&self, decided: u64) -> DataFusionError {
        let (public, private) = (&self.publication.public, &self.publication.private);
        let begun = &self.metadata.public;
        if begun == public.as_str() {
            return refusal!(
                "publication",
                "there is another publication at {public} than the one of the ledger at {private}; say where its \
                 ledger is with the option private, or choose another location"
            );
        }
        match (decided, &self.published) {
            (0, _) => refusal!(
                "publication",
                "the ledger at {private} was begun for a publication at {begun}, not at {public}. Nothing was \
                 published yet, so it can be deleted to begin anew"
            ),
            (1, None) => refusal!(
                "publication",
                "the ledger at {private} is of another publication than the one at {public}: it was begun for \
                 {begun}, and its first release is decided. If that was moved, its public table must be here, or back there to be \
                 completed; if nothing of it can be there any more, declare that it is to be announced here with the option \
                 'moved_from' '{begun}'"
            ),
            (_, None) => refusal!(
                "publication",
                "the ledger at {private} is of another publication than the one at {public}: it was begun for \
                 {begun}. If that was moved, its public table must be here, or back there to be completed"
            ),
            (_, Some(_)) => refusal!(
                "publication",
                "the ledger at {private} is of another publication than the one at {public} (it was begun for \
                 {begun}); say where the right one is with the option private"
            ),
        }
    }

    /// Returns true if the first release was decided for another place and is announced here. It must not be public
    /// there as far as this one knows.
    fn is_moved(&self, decided: u64) -> bool {
        let from = self.publication.moved_from.as_ref().map(url::Url::as_str);
        decided <= 1 && from == Some(self.metadata.public.as_str())
    }

    async fn check_fit(&self) -> Result<()> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let (decided, published) = (delta::version(ledger), self.published());
        let (public, private) = (&self.publication.public, &self.publication.private);
        let same = match &self.published {
            Some(table) => delta::setting(table, LedgerMetadata::PUBLICATION) == Some(&self.metadata.publication),
            None => self.metadata.public == public.as_str() || self.is_moved(decided),
        };
        if !same {
            return Err(self.another_publication(decided));
        }
        if published > decided {
            return Err(refusal!(
                "publication",
                "the public table at {public} has version {published}, but the ledger at {private} knows releases \
                 up to {decided} only: it is older, or somebody else wrote to the public table. Restore the ledger from a \
                 backup of the time after the last release; with this one, a new release would break the earlier ones"
            ));
        }
        if decided > published + 1 {
            return Err(refusal!(
                "publication",
                "the ledger at {private} knows releases up to {decided}, but the public table at {public} has only \
                 those up to {published}: it was lost or is older. Restore it from a backup; readers may have the missing \
                 releases"
            ));
        }
        let Some(table) = self.published.as_ref().filter(|_| published > 0) else { return Ok(()) };
        let announced = format::announcement(table, published).await?;
        let before;
        let noted = match &self.newest {
            Some(newest) if newest.number == published => Some(newest),
            _ => {
                before = ledger_state::record(ledger, published).await.map_err(|error| {
                    while_doing(format!("the ledger at {private} cannot be read; restore it from a backup"), error)
                })?;
                Some(&before)
            }
        };
        if announced.map(|(announcement, _)| announcement.release_id) != noted.map(|record| record.release_id.clone()) {
            return Err(refusal!(
                "publication",
                "release {published} in the public table at {public} is not the one that the ledger at {private} \
                 knows: one of the two was restored from another backup, or somebody else wrote to it"
            ));
        }
        Ok(())
    }
}

/// Returns the error of two tables that are not at the places given.
fn nothing_here(publication: &Publication) -> DataFusionError {
    let (public, private) = (&publication.public, &publication.private);
    refusal!(
        "publication",
        argument BEGIN,
        "there is no publication at {public}, and no ledger at {private}. If there was one, bring it back (is the storage mounted, are the paths right?): \
         another one of the same people would break it. To begin one here, say so once: OPTIONS ('{BEGIN}' 'true', 'method' '{}', ..)",
        publication.spec.method.name()
    )
}
