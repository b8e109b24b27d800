//! Releases as readers see them: the public table alone.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::ObjectStore;
use deltalake_core::DeltaTable;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Map, Value};
use url::Url;

use super::delta;
use super::format;
use super::ledger_metadata::LedgerMetadata;
use super::place::{Access, Place};
use super::record::{Announcement, Record};
use super::spec::WINDOW;
use crate::error::refusal;
use crate::methods::{Against, AnyMethod, OfParticipants};
use crate::microdata::Role;

/// Commits read at a time.
const AT_ONCE: usize = 8;

/// The public table of a publication.
#[derive(Debug)]
pub(crate) struct Reader {
    place: Place,
    table: DeltaTable,
}

#[derive(Debug, Clone)]
pub(crate) struct ReleaseRow {
    /// Announcement of the release about itself.
    pub(crate) announcement: Announcement,
    /// Time when it became public, in milliseconds since 1970.
    pub(crate) time: Option<i64>,
    /// Record that only the publisher knows.
    pub(crate) record: Option<Record>,
    /// Against whom its bound holds, beside all releases before it; `None` if nobody here knows its method.
    pub(crate) against: Option<Against>,
    /// True if its method has no memory, and nobody keeps releases' people apart.
    pub(crate) alone: bool,
    /// True if its method has no memory, and rows have no identifiers. Several rows can be one person's then.
    pub(crate) nameless: bool,
    /// True if it has columns that are kept as they are.
    pub(crate) kept: bool,
    /// Says what people of the table can infer of others, beside all releases before it; `None` as above.
    pub(crate) of_participants: Option<OfParticipants>,
    /// True if values can change, and a release so far says no period. That nothing was published told of values then.
    pub(crate) silent: bool,
    /// True if it says a period before that of an earlier release.
    pub(crate) before_earlier: bool,
}

impl ReleaseRow {
    /// Returns the reader of the bound and the inferences of participants, by the release.
    fn against(announcement: &Announcement) -> Option<(Against, OfParticipants)> {
        let description = announcement.description();
        let repositioned = serde_json::from_str::<Map<String, Value>>(&description.parameters).ok()?;
        let method = AnyMethod::described(&description)?;
        // Which records were moved depends on how frequent their values are.
        let moved = repositioned.contains_key(WINDOW);
        let against = if moved { Against::Paper } else { method.as_method().against() };
        let of_participants = method.as_method().of_participants().at(announcement.number);
        Some((against, if moved { OfParticipants::NONE } else { of_participants }))
    }

    /// Returns the reader against whom its bound holds, in words.
    pub(crate) fn reader(&self) -> Option<String> {
        self.against.map(|against| against.but(self.alone, !self.nameless, self.kept))
    }

    /// Returns true if nobody knows whose its rows are: they can be of people of earlier releases, and several of one person.
    fn is_nameless(announcement: &Announcement) -> bool {
        let method = AnyMethod::described(&announcement.description());
        !announcement.apart && method.is_some_and(|method| method.state().is_none())
    }

    /// Returns true if values can change, so that silence tells something of them.
    fn changes(&self) -> bool {
        let Some(method) = AnyMethod::described(&self.announcement.description()) else { return false };
        let changes = method.as_method().changes();
        if changes.are_lawful() {
            return self.announcement.lawful != Some(false);
        }
        changes.are_lawless()
    }

    /// Returns true if the ledger has another period or kind of change than the release.
    pub(crate) fn announced_another_period(&self) -> bool {
        let (Some(record), Announcement { lawful, period, unit, .. }) = (&self.record, &self.announcement) else {
            return false;
        };
        lawful.is_some_and(|lawful| lawful != record.updates.is_some())
            || *period != record.period_of(record.number)
            || *unit != record.unit
    }

    /// Returns true if the ledger says that this release and all before it are balanced; `None` where it says nothing.
    pub(crate) fn balanced(&self) -> Option<bool> {
        self.record.as_ref()?.balanced
    }
}

impl Reader {
    /// Opens the public table at its newest version; `None` if nothing was published yet.
    /// Fails when the store fails.
    pub(crate) async fn open(public: &Url, runtime: &RuntimeEnv) -> Result<Option<Self>> {
        let place = Place::open(public, Access::Public, runtime)?;
        let table = delta::newest(place.log_store()).await.map_err(|error| place.unreadable(error))?;
        if let Some(table) = &table
            && delta::setting(table, LedgerMetadata::PUBLICATION).is_none()
        {
            return Err(refusal!("publication", "the table at {public} is not a publication"));
        }
        if let Some(table) = &table {
            LedgerMetadata::check_public_format(table, public)?;
        }
        Ok(table.filter(|table| delta::version(table) > 0).map(|table| Self { place, table }))
    }

    pub(super) fn store(&self) -> &Arc<dyn ObjectStore> {
        self.place.store()
    }

    /// Returns the number of the newest release.
    pub(crate) fn newest(&self) -> u64 {
        delta::version(&self.table)
    }

    /// Returns a release by its number, or the newest.
    /// Fails when there is no release of this number, or the store fails.
    pub(crate) async fn release(&self, number: Option<u64>) -> Result<DeltaTable> {
        let newest = self.newest();
        let number = number.unwrap_or(newest);
        if number == 0 || number > newest {
            return Err(refusal!("publication", "there is no release {number}; there are releases 1 to {newest}"));
        }
        let info = format::announcement(&self.table, number).await;
        let info = info.map_err(|error| self.place.unreadable(error))?;
        if info.is_none_or(|(announcement, _)| announcement.number != number) {
            return Err(not_a_release(number));
        }
        if number == newest {
            return Ok(self.table.clone());
        }
        delta::at_version(self.place.log_store(), number).await.map_err(|error| self.place.unreadable(error))
    }

    /// Returns all releases, oldest first; with a ledger, what only the publisher knows.
    /// Fails when a version is not a release, or the public store fails. A ledger that cannot be read is left out.
    pub(crate) async fn releases(&self, private: Option<&Url>, runtime: &RuntimeEnv) -> Result<Vec<ReleaseRow>> {
        let versions = (1..).zip(self.versions(private, runtime).await?);
        versions.map(|(number, row)| row.ok_or_else(|| not_a_release(number))).collect()
    }

    /// Returns the same of all versions; `None` where one is not a release.
    /// Fails when the public store fails. A ledger that cannot be read is left out.
    pub(super) async fn versions(
        &self,
        private: Option<&Url>,
        runtime: &RuntimeEnv,
    ) -> Result<Vec<Option<ReleaseRow>>> {
        let ledger = match private.map(|url| Place::open(url, Access::Private, runtime)) {
            Some(Ok(place)) => {
                let ledger = delta::newest(place.log_store()).await.ok().flatten();
                ledger.filter(|ledger| LedgerMetadata::check_format(ledger, place.url()).is_ok())
            }
            _ => None,
        };
        let ledger = ledger.as_ref();
        // Which columns are kept was agreed before the first release.
        let is_kept =
            |field: &FieldRef| field.metadata().get(Role::KEY).is_some_and(|role| role == Role::Insensitive.name());
        let kept = delta::columns(&self.table).is_ok_and(|columns| columns.fields().iter().any(is_kept));
        let row = |number| async move {
            let read = format::announcement(&self.table, number).await?;
            let Some((announcement, time)) = read.filter(|(announcement, _)| announcement.number == number) else {
                return Ok::<_, DataFusionError>(None);
            };
            let noted = match ledger {
                Some(ledger) => delta::read_commit_info::<Record>(ledger, number).await.ok().flatten(),
                None => None,
            };
            let same = noted.filter(|(record, _)| record.release_id == announcement.release_id);
            let (against, of_participants) = ReleaseRow::against(&announcement).unzip();
            let nameless = ReleaseRow::is_nameless(&announcement);
            // Whoever knows kept values of others, or has several rows, knows more than one value.
            let of_participants =
                if kept || nameless { of_participants.map(|_| OfParticipants::NONE) } else { of_participants };
            Ok(Some(ReleaseRow {
                alone: nameless && number > 1,
                nameless,
                announcement,
                kept,
                time,
                record: same.map(|(record, _)| record),
                against,
                of_participants,
                silent: false,
                before_earlier: false,
            }))
        };
        let rows = futures::stream::iter(1..=self.newest()).map(row).buffered(AT_ONCE);
        let mut rows: Vec<Option<ReleaseRow>> = rows.try_collect().await?;
        // What an earlier release gave away, no later one takes back.
        let (mut before, mut said, mut last) = (Some(Against::Participant), true, 0);
        for row in rows.iter_mut().flatten() {
            // Silence is between releases.
            said &= row.announcement.period.is_some() || !row.changes();
            row.silent = !said && row.announcement.number > 1 && row.changes();
            let period = row.announcement.period.unwrap_or(last);
            row.before_earlier = period < last;
            last = period;
            if row.balanced() == Some(false) || row.silent || row.before_earlier {
                before = before.map(|_| Against::Paper);
            }
            // Nor can anybody tell what a release gave away of which nobody knows how it was made.
            row.against = row.against.zip(before).map(|(against, before)| against.min(before));
            before = row.against;
        }
        Ok(rows)
    }
}

fn not_a_release(version: u64) -> DataFusionError {
    refusal!("publication", "version {version} of the public table is not a release: somebody else wrote to it")
}

/// Returns the newest version of a Delta table of whomsoever; `None` if there is none.
/// Fails when the store fails, or the table needs what we cannot read.
pub(crate) async fn newest_version(location: &Url, runtime: &RuntimeEnv) -> Result<Option<DeltaTable>> {
    delta::newest(Place::open(location, Access::Public, runtime)?.log_store()).await
}

/// Returns a version of a table for the engine; the session learns where it is.
/// Fails when the version cannot be read.
pub(crate) async fn provider(table: &DeltaTable) -> Result<Arc<dyn TableProvider>> {
    table.table_provider().await
}

/// Tells a session where a table is, without which it cannot scan it.
/// Fails when the session does not take it.
pub(crate) fn introduce(table: &DeltaTable, session: &dyn Session) -> Result<()> {
    table.update_datafusion_session(session).map_err(delta::failed)
}
