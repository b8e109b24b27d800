//! Metadata of a ledger: what it says about its publication, in the settings of its table.

use datafusion::common::Result;
use deltalake_core::DeltaTable;
use url::Url;

use super::delta;
use super::failure::input_error;
use super::format::{self, FORMAT};
use super::paths::random_name;
use super::spec::PublicationSpec;
use crate::error::refusal;

/// Fixed when the first release is decided.
#[derive(Debug, Clone)]
pub(super) struct LedgerMetadata {
    /// Random name of the publication; its public table has it, too.
    pub publication: String,
    /// Key of the snapshots' fingerprints.
    pub key: [u64; 2],
    /// Terms that every release keeps to.
    pub spec: PublicationSpec,
    /// Planned location of the public table when the publication was begun. Both tables may move later.
    pub public: String,
}

impl LedgerMetadata {
    /// Setting of both tables: the publication's name.
    pub(super) const PUBLICATION: &str = "anonymize.publication";
    const KEY: &str = "anonymize.fingerprint-key";
    const SPEC: &str = "anonymize.terms";
    const PUBLIC: &str = "anonymize.public";
    /// All of a ledger, beside the format.
    const ALL: [&str; 4] = [Self::PUBLICATION, Self::KEY, Self::SPEC, Self::PUBLIC];

    /// Makes the metadata of a publication that begins.
    pub(super) fn draw(spec: PublicationSpec, public: &Url) -> Result<Self> {
        let key = u128::from_str_radix(&random_name()?, 16).map_err(input_error)?;
        Ok(Self {
            publication: random_name()?,
            key: [(key >> 64) as u64, key as u64],
            spec,
            public: public.to_string(),
        })
    }

    /// Checks that this version of the program knows the format of a ledger. What is no ledger is left to [`of`](Self::of).
    ///
    /// # Errors
    /// See [`format::check`].
    pub(super) fn check_format(ledger: &DeltaTable, place: &Url) -> Result<()> {
        match delta::setting(ledger, Self::PUBLICATION) {
            Some(_) => format::check(ledger, "ledger", place, &Self::ALL),
            None => Ok(()),
        }
    }

    /// Checks the format of a public table. What is a ledger is left to [`of`](Self::of), too.
    /// Fails as for a ledger.
    pub(super) fn check_public_format(table: &DeltaTable, place: &Url) -> Result<()> {
        match delta::setting(table, Self::PUBLICATION) {
            Some(_) if delta::setting(table, Self::KEY).is_none() => {
                format::check(table, "public table", place, &[Self::PUBLICATION])
            }
            _ => Ok(()),
        }
    }

    /// Reads the metadata of a ledger.
    /// Fails when it is none, or one of a format that this version does not know.
    pub(super) fn of(ledger: &DeltaTable, place: &Url) -> Result<Self> {
        Self::check_format(ledger, place)?;
        let spec = match delta::setting(ledger, Self::SPEC) {
            Some(text) => Some(format::read(text, &format!("what the ledger at {place} agrees on"))?),
            None => None,
        };
        let read = || {
            let setting = |key| delta::setting(ledger, key);
            let key = u128::from_str_radix(setting(Self::KEY)?, 16).ok()?;
            Some(Self {
                publication: setting(Self::PUBLICATION)?.clone(),
                key: [(key >> 64) as u64, key as u64],
                spec: spec?,
                public: setting(Self::PUBLIC)?.clone(),
            })
        };
        read().ok_or_else(|| {
            refusal!("publication", "the table at {place} is not a ledger of this version of the program")
        })
    }

    /// Returns the hash of a ledger's metadata about its publication, as they stand there. Delta tables have checksums of
    /// neither commits nor checkpoints, and by a key with another bit no snapshot would be known for one that was published.
    pub(super) fn hash(ledger: &DeltaTable) -> String {
        let mut hasher = blake3::Hasher::new();
        for key in Self::ALL.into_iter().chain([FORMAT]) {
            let said = delta::setting(ledger, key).map(String::as_str).unwrap_or_default();
            hasher.update(&(said.len() as u64).to_le_bytes()).update(said.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    pub(super) fn settings(&self) -> Result<[(&'static str, String); 5]> {
        let spec = serde_json::to_string(&self.spec).map_err(input_error)?;
        let key = u128::from(self.key[0]) << 64 | u128::from(self.key[1]);
        Ok([
            (Self::PUBLICATION, self.publication.clone()),
            (Self::KEY, format!("{key:032x}")),
            (Self::SPEC, spec),
            (Self::PUBLIC, self.public.clone()),
            format::setting(),
        ])
    }
}
