//! Opening a publication: its two tables, and whether they fit together.
//!
//! The ledger decides and the public table follows, so the ledger is at the public table's version or one ahead. Anything
//! else means that one of them was lost, exchanged or restored from a backup, and then nothing may be published: a release
//! that does not know of an earlier one breaks it.

use datafusion::common::{Result, exec_err, plan_err};
use datafusion::execution::runtime_env::RuntimeEnv;
use deltalake_core::DeltaTable;
use futures::StreamExt;

use super::charter::Charter;
use super::delta;
use super::place::{Access, Place};
use super::record::{Announcement, Record};
use super::terms::{Publication, Terms};

/// An open publication.
#[derive(Debug)]
pub struct Desk {
    pub(super) publication: Publication,
    pub(super) public: Place,
    pub(super) private: Place,
    /// What was begun, or what will be if this is the first release.
    pub(super) charter: Charter,
    pub(super) ledger: Option<DeltaTable>,
    pub(super) published: Option<DeltaTable>,
    /// The newest release that was decided.
    pub(super) newest: Option<Record>,
}

impl Desk {
    /// Opens both tables at their newest versions. Changes nothing.
    ///
    /// # Errors
    /// When the terms are not those of the publication, when its tables do not fit together, and when a store fails.
    pub async fn open(publication: Publication, runtime: &RuntimeEnv) -> Result<Self> {
        let public = Place::open(&publication.public, Access::Public, runtime)?;
        let private = Place::open(&publication.private, Access::Private, runtime)?;
        let (ledger, published) = both(&public, &private).await?;
        let charter = match (&ledger, &published) {
            (None, Some(_)) => {
                return exec_err!(
                    "publication: the ledger of the publication at {} is not at {}: without it, a new release would break the earlier \
                     ones. Say where it is (OPTIONS 'private'), or restore it from a backup of the time after the last release",
                    publication.public,
                    publication.private
                );
            }
            (None, None) => Charter::draw(publication.terms.clone())?,
            (Some(ledger), _) => Charter::of(ledger, &publication.private)?,
        };
        check_terms(&publication.terms, &charter.terms)?;
        let mut desk = Self { publication, public, private, charter, ledger, published, newest: None };
        desk.check().await?;
        Ok(desk)
    }

    /// Number of the newest release that is public.
    pub fn published(&self) -> u64 {
        self.published.as_ref().map_or(0, delta::version)
    }

    /// Number of the newest release that was decided, `None` if the publication was never begun.
    pub fn decided(&self) -> Option<u64> {
        self.ledger.as_ref().map(delta::version)
    }

    /// The newest release that was decided.
    pub fn newest(&self) -> Option<&Record> {
        self.newest.as_ref()
    }

    /// The ledger, if there is one.
    pub fn ledger(&self) -> Option<&DeltaTable> {
        self.ledger.as_ref()
    }

    /// Key of the snapshots' fingerprints.
    pub fn fingerprint_key(&self) -> [u64; 2] {
        self.charter.key
    }

    async fn check(&mut self) -> Result<()> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let (decided, published) = (delta::version(ledger), self.published());
        let (public, private) = (&self.publication.public, &self.publication.private);
        if let Some(table) = &self.published
            && delta::setting(table, Charter::PUBLICATION) != Some(&self.charter.publication)
        {
            return exec_err!(
                "publication: the ledger at {private} is of another publication than the table at {public}; say where the right one is \
                 (OPTIONS 'private')"
            );
        }
        if published > decided {
            return exec_err!(
                "publication: the public table at {public} has version {published}, but the ledger at {private} knows releases up to \
                 {decided} only: it is older, or somebody else wrote to the public table. Restore the ledger from a backup of \
                 the time after the last release; with this one, a new release would break the earlier ones"
            );
        }
        if decided > published + 1 {
            return exec_err!(
                "publication: the ledger at {private} knows releases up to {decided}, but the public table at {public} has only those up \
                 to {published}: it was lost or is older. Restore it from a backup; readers may have the missing releases"
            );
        }
        if decided > 0 {
            let record: Option<(Record, _)> = delta::said(ledger, decided).await?;
            let Some((record, _)) = record.filter(|(record, _)| record.number == decided) else {
                return exec_err!(
                    "publication: version {decided} of the ledger at {private} is not of a release: somebody else wrote to it"
                );
            };
            self.newest = Some(record);
        }
        if let Some(table) = self.published.as_ref().filter(|_| published > 0) {
            let announced: Option<(Announcement, _)> = delta::said(table, published).await?;
            let noted = match &self.newest {
                Some(record) if record.number == published => Some(record.release_id.clone()),
                _ => delta::said(ledger, published).await?.map(|(record, _): (Record, _)| record.release_id),
            };
            if announced.map(|(announcement, _)| announcement.release_id) != noted {
                return exec_err!(
                    "publication: release {published} in the public table at {public} is not the one that the ledger at {private} knows: \
                     one of the two was restored from another backup, or somebody else wrote to it"
                );
            }
        }
        Ok(())
    }
}

/// The newest versions of the ledger and of the public table, at one time: others may be publishing.
async fn both(public: &Place, private: &Place) -> Result<(Option<DeltaTable>, Option<DeltaTable>)> {
    loop {
        let ledger = delta::newest(private).await?;
        let published = delta::newest(public).await?;
        // A release among files of somebody else could not be told from them.
        let others = ledger.is_none() && published.is_none() && public.store().list(None).next().await.is_some();
        let later = delta::newest(private).await?;
        if later.as_ref().map(delta::version) != ledger.as_ref().map(delta::version) {
            continue;
        }
        if others {
            return plan_err!(
                "publication: there are files at the publication's LOCATION, but no publication; choose an empty location"
            );
        }
        return Ok((ledger, published));
    }
}

/// # Errors
/// When the terms differ from those that the publication was begun with.
fn check_terms(terms: &Terms, begun: &Terms) -> Result<()> {
    let differences = terms.differences(begun);
    if differences.is_empty() {
        return Ok(());
    }
    plan_err!(
        "publication: this is not how the publication was begun, and what was begun cannot change, because later releases would break \
         earlier ones: {}",
        differences.join("; ")
    )
}
