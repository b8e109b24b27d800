//! The methods: plain functions from microdata to a release. No async, no SQL, no I/O.
//!
//! Each is deterministic for a random generator's seed on any number of threads and for any order of arrival, and each
//! ends by checking its own guarantee on its result.

mod monitor;

pub mod m_invariance;

pub use monitor::Monitor;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::microdata::{Ledger, Microdata};
use crate::release::Release;
use m_invariance::MInvariance;

/// A method with its parameters: what a plan carries, in a form that can be shipped to another process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// Re-publication when rows come and go.
    MInvariance(MInvariance),
}

impl Method {
    /// Name of the SQL function.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MInvariance(_) => "m_invariant",
        }
    }

    /// The parameters as a JSON object, for the release's description and for EXPLAIN.
    ///
    /// # Errors
    /// When the parameters cannot be serialized, which is a bug.
    pub fn parameters(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        let value = match self {
            Self::MInvariance(params) => serde_json::to_value(params),
        };
        match value {
            Ok(serde_json::Value::Object(map)) => Ok(map),
            _ => Err(Error::internal("parameters that are not an object")),
        }
    }

    /// Bytes needed beside the microdata.
    pub fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        match self {
            Self::MInvariance(params) => params.working_bytes(rows, quasi),
        }
    }

    /// Runs the method.
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
        match self {
            Self::MInvariance(params) => params.anonymize(microdata, ledger, monitor, rng),
        }
    }
}
