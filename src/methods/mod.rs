//! The methods: plain functions from microdata to a release. No async, no SQL, no I/O.
//!
//! Each is deterministic for a random generator's seed on any number of threads and for any order of arrival, and each
//! ends by checking its own guarantee on its result.
//!
//! | module | |
//! |---|---|
//! | [`m_invariance`] | re-publication when rows come and go |
//! | [`m_distinct`] | re-publication when values change, too |
//! | [`mondrian`] | one release, generalized: k-anonymity, l-diversity, t-closeness |
//! | [`anatomy`] | one release, exact quasi-identifiers: l-diversity |
//! | [`muco`] | one release of rows that still look like rows: delta-probability |
//! | [`reposition`] | not a release, but what makes small skewed snapshots ready for one of these |
//! | [`sequential`] | releases of the same people with other columns, and of more people |

mod assignment;
mod balance;
mod deal;
mod extent;
mod monitor;
mod rings;
mod share;
mod split;
mod within;

#[cfg(test)]
mod known_others;
#[cfg(test)]
mod sample;

pub mod anatomy;
pub mod m_distinct;
pub mod m_invariance;
pub mod mondrian;
pub mod muco;
pub mod reposition;
pub mod sequential;

pub use monitor::Monitor;
use rand::Rng;
use serde::{Deserialize, Serialize};
pub use share::Share;

use crate::error::{Error, Result};
use crate::microdata::{Ledger, Microdata};
use crate::release::{Form, Release};
use anatomy::Anatomy;
use m_distinct::MDistinct;
use m_invariance::MInvariance;
use mondrian::Mondrian;
use muco::Muco;
use sequential::{NonSequential, Sequential, SequentialRelease, Worlds};

/// A method with its parameters: what a plan carries, in a form that can be shipped to another process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// Re-publication when rows come and go.
    MInvariance(MInvariance),
    /// Re-publication when values change, too.
    MDistinct(MDistinct),
    /// One release, generalized.
    Mondrian(Mondrian),
    /// One release with exact quasi-identifiers.
    Anatomy(Anatomy),
    /// One release of rows that still look like rows.
    Muco(Muco),
    /// Worlds of people, for the publisher.
    SequentialWorlds(Worlds),
    /// A release of people whose worlds are known.
    SequentialRelease(SequentialRelease),
    /// Worlds for new people, and a release.
    Sequential(Sequential),
    /// One release of all columns, to be projected: the baseline.
    NonSequential(NonSequential),
}

impl Method {
    /// Name of the SQL function.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MInvariance(_) => "m_invariant",
            Self::MDistinct(_) => "m_distinct",
            Self::Mondrian(_) => "mondrian",
            Self::Anatomy(_) => "anatomy",
            Self::Muco(_) => "muco",
            Self::SequentialWorlds(_) => "sequential_worlds",
            Self::SequentialRelease(_) => "sequential_release",
            Self::Sequential(_) => "sequential",
            Self::NonSequential(_) => "non_sequential",
        }
    }

    /// How it publishes.
    pub fn form(&self) -> Form {
        match self {
            Self::MInvariance(_) | Self::MDistinct(_) | Self::Mondrian(_) => Form::Intervals,
            Self::Anatomy(_) => Form::Anatomy,
            Self::Muco(_) => Form::Perturbed,
            Self::SequentialWorlds(_) => Form::Worlds,
            Self::SequentialRelease(_) | Self::Sequential(_) | Self::NonSequential(_) => Form::Rows,
        }
    }

    /// Whether later releases need to know the sensitive values of everybody's group.
    pub fn has_signatures(&self) -> bool {
        matches!(self, Self::MInvariance(_) | Self::MDistinct(_))
    }

    /// Whether these values change from release to release, so that the most recent ones count, and everybody's place among
    /// them, which does not.
    pub fn changes_signatures(&self) -> bool {
        matches!(self, Self::MDistinct(_))
    }

    /// The parameters as a JSON object, for the release's description and for EXPLAIN.
    ///
    /// # Errors
    /// When the parameters cannot be serialized, which is a bug.
    pub fn parameters(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        let value = match self {
            Self::MInvariance(params) => serde_json::to_value(params),
            Self::MDistinct(params) => serde_json::to_value(params),
            Self::Mondrian(params) => serde_json::to_value(params),
            Self::Anatomy(params) => serde_json::to_value(params),
            Self::Muco(params) => serde_json::to_value(params),
            Self::SequentialWorlds(params) => serde_json::to_value(params),
            Self::SequentialRelease(params) => serde_json::to_value(params),
            Self::Sequential(params) => serde_json::to_value(params),
            Self::NonSequential(params) => serde_json::to_value(params),
        };
        match value {
            Ok(serde_json::Value::Object(map)) => Ok(map),
            _ => Err(Error::internal("parameters that are not an object")),
        }
    }

    /// The same as a text.
    ///
    /// # Errors
    /// When the parameters cannot be serialized, which is a bug.
    pub fn parameters_text(&self) -> Result<String> {
        Ok(serde_json::Value::Object(self.parameters()?).to_string())
    }

    /// Bytes needed beside the microdata.
    pub fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        match self {
            Self::MInvariance(params) => params.working_bytes(rows, quasi),
            Self::MDistinct(params) => params.working_bytes(rows, quasi),
            Self::Mondrian(params) => params.working_bytes(rows, quasi),
            Self::Anatomy(params) => params.working_bytes(rows, quasi),
            Self::Muco(params) => params.working_bytes(rows, quasi),
            Self::SequentialWorlds(params) => params.working_bytes(rows, quasi),
            // The rest is asked for when it is known how many worlds there are.
            Self::SequentialRelease(params) => params.working_bytes(rows, quasi, 0),
            Self::Sequential(params) => params.working_bytes(rows, quasi),
            Self::NonSequential(params) => params.working_bytes(rows, quasi),
        }
    }

    /// Runs the method: on the whole, or on each part by the column `within`.
    ///
    /// # Errors
    /// The method's refusals.
    pub fn anonymize(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        match microdata.within {
            Some(_) if matches!(self.form(), Form::Rows | Form::Worlds) => {
                Err(Error::internal("worlds of parts of a table"))
            }
            Some(_) => within::anonymize(self, microdata, ledger, monitor, rng),
            None => self.anonymize_whole(microdata, ledger, monitor, rng),
        }
    }

    fn anonymize_whole(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        match self {
            Self::MInvariance(params) => params.anonymize(microdata, ledger, monitor, rng),
            Self::MDistinct(params) => params.anonymize(microdata, ledger, monitor, rng),
            Self::Mondrian(params) => params.anonymize(microdata, monitor),
            Self::Anatomy(params) => params.anonymize(microdata, monitor, rng),
            Self::Muco(params) => params.anonymize(microdata, ledger, monitor, rng),
            Self::SequentialWorlds(params) => params.anonymize(microdata, ledger, monitor, rng),
            Self::SequentialRelease(params) => params.anonymize(microdata, ledger, monitor, rng),
            Self::Sequential(params) => params.anonymize(microdata, ledger, monitor, rng),
            Self::NonSequential(params) => params.anonymize(microdata, monitor, rng),
        }
    }
}
