//! The two tables of a publication at one time, and other objects at their places.

use std::collections::HashSet;

use datafusion::common::{DataFusionError, Result};
use datafusion::object_store::path::Path;
use deltalake_core::DeltaTable;
use futures::{StreamExt, TryStreamExt};

use super::delta;
use super::failure::{is_denied, while_doing};
use super::format::is_unknown;
use super::ledger_metadata::LedgerMetadata;
use super::ledger_state::{self, LedgerState, hash_of_names};
use super::paths::{CLAIMS, LOG, STAGED, is_probe, is_unnamed, number_of};
use super::place::Place;
use super::record::Record;

/// See the module.
pub(super) struct Tables {
    pub(super) ledger: Option<DeltaTable>,
    pub(super) published: Option<DeltaTable>,
    /// The newest release that was decided.
    pub(super) newest: Option<Record>,
    pub(super) state: LedgerState,
    /// Names of the public Parquet files.
    pub(super) names: Vec<String>,
    /// True if there are public files that no release has.
    pub(super) unknown: bool,
    /// True if there is no ledger, but something else where it is to be.
    pub(super) crowded: bool,
    /// The number that somebody has claimed without the ledger having decided it.
    pub(super) claimed: Option<u64>,
}

impl Tables {
    /// Reads all of it as it was at one time: others may be publishing.
    /// Fails when a store fails, or a log is not as it was written.
    pub(super) async fn at_one_time(public: &Place, private: &Place) -> Result<Self> {
        let damaged = |what: &str, place: &Place, error: DataFusionError| {
            let cure = match (is_denied(&error), is_unknown(&error)) {
                (true, _) => {
                    "; this account may not read it: it is another one's, who has made it (root, say). Let that account publish, or give the files to this one \
                     (chown -R); a new ledger would break what was published"
                }
                // The error says what to do.
                (_, true) => "",
                _ => "; if it is damaged, restore it from a backup",
            };
            while_doing(format!("the {what} at {} cannot be read{cure}", place.url()), error)
        };
        let no_ledger = |error| damaged("ledger", private, error);
        loop {
            let ledger = delta::newest(private.log_store()).await.map_err(no_ledger)?;
            let published = delta::newest(public.log_store()).await;
            let published = published.map_err(|error| damaged("public table", public, error))?;
            if let Some(ledger) = &ledger {
                LedgerMetadata::check_format(ledger, private.url())?;
            }
            if let Some(published) = &published {
                LedgerMetadata::check_public_format(published, public.url())?;
            }
            let noted = match &ledger {
                Some(ledger) => ledger_state::newest(ledger).await,
                None => Ok((None, LedgerState::default())),
            };
            let listed = PublicFiles::list(public).await?;
            let unknown = match (&noted, &ledger) {
                (Ok((newest, state)), Some(ledger)) => {
                    listed.has_unknown(public, newest.as_ref(), state, ledger).await.map_err(no_ledger)?
                }
                (Ok(_), None) => listed.has_any(public).await?,
                (Err(_), _) => false,
            };
            let crowded = ledger.is_none() && !only_leftovers(private).await?;
            let claimed = match &ledger {
                Some(ledger) => public.is_claimed(delta::version(ledger) + 1).await?,
                None => None,
            };
            let still = match &ledger {
                Some(ledger) => delta::is_newest(ledger).await,
                None => delta::newest(private.log_store()).await.map(|ledger| ledger.is_none()),
            };
            if still.map_err(|error| private.unreadable(error))? {
                let (newest, state) = noted.map_err(no_ledger)?;
                let names = listed.parquet;
                return Ok(Self { ledger, published, newest, state, names, unknown, crowded, claimed });
            }
        }
    }
}

/// Files at the public place beside the log.
pub(super) struct PublicFiles {
    parquet: Vec<String>,
    /// True if there is anything else than the log and claims.
    others: bool,
    /// True if there are claims, or what attempts leave beside them.
    claims: bool,
}

impl PublicFiles {
    /// Fails when the store fails.
    pub(super) async fn list(public: &Place) -> Result<Self> {
        let listed = public.store().list_with_delimiter(None).await.map_err(|error| public.unreadable(error))?;
        // What is hidden has not got its name yet: somebody is writing it, or was killed.
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        let names = names.filter(|name| !is_unnamed(name));
        let (parquet, other): (Vec<&str>, Vec<&str>) = names.partition(|name| name.ends_with(".parquet"));
        let mut prefixes = listed.common_prefixes.iter().map(Path::as_ref);
        Ok(Self {
            parquet: parquet.into_iter().map(str::to_owned).collect(),
            others: !other.is_empty() || prefixes.clone().any(|prefix| ![LOG, CLAIMS].contains(&prefix)),
            claims: prefixes.any(|prefix| prefix == CLAIMS),
        })
    }

    /// Returns true if there is anything that a killed attempt would not leave behind.
    async fn has_any(&self, public: &Place) -> Result<bool> {
        if self.others || !self.parquet.is_empty() || !self.claims {
            return Ok(self.others || !self.parquet.is_empty());
        }
        let mut claims = public.store().list(Some(&Path::from(CLAIMS)));
        while let Some(object) = claims.try_next().await.map_err(|error| public.unreadable(error))? {
            // Somebody else may be about to write a probe.
            let name = object.location.filename().unwrap_or_default();
            if !is_probe(name) && !is_unnamed(name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if there is a Parquet file that is of no release: of one that was decided by a newer ledger, say. Before the first
    /// release, whether there is any file.
    /// Fails when older releases have to be asked for, and cannot be read.
    pub(super) async fn has_unknown(
        &self,
        public: &Place,
        newest: Option<&Record>,
        state: &LedgerState,
        ledger: &DeltaTable,
    ) -> Result<bool> {
        let Some(newest) = newest else { return self.has_any(public).await };
        let of_newest = newest.files.iter().map(|file| file.name.as_str());
        let parquet = self.parquet.iter().map(String::as_str);
        // A release may still have to be announced.
        if hash_of_names(parquet.clone().chain(of_newest)) == state.names {
            return Ok(false);
        }
        // Something is there that should not be, or something is gone that may be.
        let records = ledger_state::records(ledger).await?;
        let all = records.iter().chain([newest]).flat_map(|record| &record.files);
        let known: HashSet<&str> = all.map(|file| file.name.as_str()).collect();
        let unknown = parquet.filter(|name| !known.contains(name)).count();
        Ok(unknown > 0)
    }
}

/// Returns true if a private place has only leftovers of attempts at the first release.
async fn only_leftovers(private: &Place) -> Result<bool> {
    let mut objects = private.store().list(None);
    while let Some(object) = objects.next().await {
        let object = object.map_err(|error| private.unreadable(error))?;
        let mut parts = object.location.parts();
        let first = parts.next();
        let first = first.as_ref().map_or("", |part| part.as_ref());
        let name = object.location.filename().unwrap_or_default();
        let ours = match first {
            STAGED => parts.next().is_some_and(|attempt| number_of(attempt.as_ref()).is_some()),
            LOG => is_unnamed(name),
            _ => name == first && (is_unnamed(name) || name.strip_suffix(".parquet").and_then(number_of).is_some()),
        };
        if !ours {
            return Ok(false);
        }
    }
    Ok(true)
}
