//! What is at the places of a publication, as it was at one time.

use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::object_store::path::Path;
use deltalake_core::DeltaTable;
use futures::TryStreamExt;

use super::announce::{CLAIMS, is_probe};
use super::delta;
use super::leftovers::{is_unnamed, only_leftovers};
use super::place::Place;
use super::record::Record;
use super::standing::{self, Standing, hash_of_names};

/// See the module.
pub(super) struct Found {
    pub(super) ledger: Option<DeltaTable>,
    pub(super) published: Option<DeltaTable>,
    /// The newest release that was decided.
    pub(super) newest: Option<Record>,
    /// What the ledger is after it.
    pub(super) standing: Standing,
    /// Names of the public Parquet files.
    pub(super) names: Vec<String>,
    /// Whether there are public files that no release has.
    pub(super) unknown: bool,
    /// Whether there is no ledger, but something else where it is to be.
    pub(super) crowded: bool,
    /// The number that somebody has claimed without the ledger having decided it.
    pub(super) claimed: Option<u64>,
}

impl Found {
    /// All of it as it was at one time: others may be publishing.
    pub(super) async fn at_one_time(public: &Place, private: &Place) -> Result<Self> {
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
            let noted = match &ledger {
                Some(ledger) => standing::newest(ledger).await,
                None => Ok((None, Standing::default())),
            };
            let listed = Listed::of(public).await?;
            let unknown = match (&noted, &ledger) {
                (Ok((newest, standing)), Some(ledger)) => {
                    let unknown = listed.has_unknown(public, newest.as_ref(), standing, ledger).await;
                    unknown.map_err(|error| error.context(damaged("ledger", private)))?
                }
                (Ok(_), None) => listed.has_any(public).await?,
                (Err(_), _) => false,
            };
            let crowded = ledger.is_none()
                && !only_leftovers(private).await.map_err(|error| error.context(private.described()))?;
            let claimed = match &ledger {
                Some(ledger) => public.is_claimed(delta::version(ledger) + 1).await?,
                None => None,
            };
            let still = match &ledger {
                Some(ledger) => delta::is_newest(ledger).await.map_err(|error| error.context(private.described()))?,
                None => delta::newest(private).await?.is_none(),
            };
            if still {
                let (newest, standing) = noted.map_err(|error| error.context(damaged("ledger", private)))?;
                let names = listed.parquet;
                return Ok(Self { ledger, published, newest, standing, names, unknown, crowded, claimed });
            }
        }
    }
}

/// What is at the public place beside the log.
pub(super) struct Listed {
    /// Names of Parquet files.
    parquet: Vec<String>,
    /// Whether there is anything else than the log and claims.
    others: bool,
    /// Whether there are claims, or what attempts leave beside them.
    claims: bool,
}

impl Listed {
    pub(super) async fn of(public: &Place) -> Result<Self> {
        let listed = public.store().list_with_delimiter(None).await.map_err(|error| public.failed(error))?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        let (parquet, other): (Vec<&str>, Vec<&str>) = names.partition(|name| name.ends_with(".parquet"));
        let mut prefixes = listed.common_prefixes.iter().map(Path::as_ref);
        Ok(Self {
            parquet: parquet.into_iter().map(str::to_owned).collect(),
            others: !other.is_empty() || prefixes.clone().any(|prefix| !["_delta_log", CLAIMS].contains(&prefix)),
            claims: prefixes.any(|prefix| prefix == CLAIMS),
        })
    }

    /// Whether there is anything that an attempt that was killed would not leave behind.
    async fn has_any(&self, public: &Place) -> Result<bool> {
        if self.others || !self.parquet.is_empty() || !self.claims {
            return Ok(self.others || !self.parquet.is_empty());
        }
        let mut claims = public.store().list(Some(&Path::from(CLAIMS)));
        while let Some(object) = claims.try_next().await.map_err(|error| public.failed(error))? {
            // Somebody else may be about to write a probe.
            let name = object.location.filename().unwrap_or_default();
            if !is_probe(name) && !is_unnamed(name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether there is a Parquet file that is of no release: of one that was decided by a newer ledger, say. Before the first
    /// release, whether there is any file.
    ///
    /// # Errors
    /// When older releases have to be asked for, and cannot be read.
    pub(super) async fn has_unknown(
        &self,
        public: &Place,
        newest: Option<&Record>,
        standing: &Standing,
        ledger: &DeltaTable,
    ) -> Result<bool> {
        let Some(newest) = newest else { return self.has_any(public).await };
        let of_newest = newest.files.iter().map(|file| file.name.as_str());
        let parquet = self.parquet.iter().map(String::as_str);
        // A release may still have to be announced.
        if hash_of_names(parquet.clone().chain(of_newest)) == standing.names {
            return Ok(false);
        }
        // Something is there that should not be, or something is gone that may be.
        let records = standing::records(ledger).await?;
        let all = records.iter().chain([newest]).flat_map(|record| &record.files);
        let known: HashSet<&str> = all.map(|file| file.name.as_str()).collect();
        let unknown = parquet.filter(|name| !known.contains(name)).count();
        Ok(unknown > 0)
    }
}
