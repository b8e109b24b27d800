//! Anonymized publication of Parquet data inside Apache DataFusion: SQL in, releases out.
//!
//! Data is published again and again, and the second release breaks the first. This crate adds relation functions to SQL
//! whose releases stay safe beside all earlier ones.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! use datafusion::prelude::*;
//!
//! let context = SessionContext::new();
//! datafusion_anonymize::register_all(&context)?;
//!
//! let patients = concat!(env!("CARGO_MANIFEST_DIR"), "/data/patients_q1.parquet");
//! context.register_parquet("patients", patients, ParquetReadOptions::default()).await?;
//! let release = context
//!     .sql("SELECT * FROM m_invariant(patients, 2, id => patient_id, quasi => (age, zip), sensitive => disease)")
//!     .await?;
//! assert_eq!(release.count().await?, 11);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantee
//! That of the method a release is made with: [`AnyMethod`] lists them, and the documentation has a page for each. Every method
//! checks its own guarantee on its result before a row leaves it. Two executions of the same call are two releases that do not know
//! of each other: publish a stored execution, not a view. What no method here protects against: membership (that somebody is in the
//! data at all), skewness (that a value is frequent in a group), and whoever has the publisher's private releases.
//!
//! # For hosts
//! [`register_all`] adds the functions to a session, [`register_all_with`] to one that is being built, and [`register_readers`] adds only what reads
//! releases, for a session that others ask from elsewhere. [`AnonymizeError`] is what they fail with; [`Progress`], [`Notices`] and [`FailedAudits`] are
//! put into a session's configuration to hear of what happens. [`AnonymizeExec`], [`RepositionExec`] and `PublishExec` are the operators, for engines that
//! ship plans. [`risk`] is what checks releases without the methods' code.
//!
//! # Map
//! Data flows downwards, and a module uses only those below it.
//!
//! | module | |
//! |---|---|
//! | `distributed` | the same on the workers of a cluster (cargo feature `distributed`) |
//! | `sql` | relation functions, their arguments, the opaque tables they stand for |
//! | `exec` | the physical operators: one kernel, and the jobs that it does with whole inputs |
//! | `publication` | the two Delta tables of a publication and the protocol between them (cargo feature `publication`) |
//! | `estimate` | what an aggregate over the original table would be: shares of intervals, sums of products |
//! | `scalars` | arguments of scalar functions as columns of one length |
//!
//! Below the library are crates of their own. The library exports what is public of them.
//!
//! | crate | |
//! |---|---|
//! | `crates/risk`, here [`risk`] | what a reader can infer, and what a released table keeps; has no dependency on the methods |
//! | `crates/methods`, here `methods` | one folder per method: plain functions on microdata; and what a release leaves to the next one |
//! | `crates/core`, here `release` | groups, what they publish, the public and the private view |
//! | `crates/core`, here `microdata` | Arrow columns to dense codes and back; identifiers, hierarchies; information loss |
//! | `crates/core`, here `error` | refusals, conflicts and broken invariants |
//!
//! `docs/architecture.md` walks through them with a batch, an INSERT and an estimated query.
//!
//! # Bibliography
//! - K. LeFevre, D. DeWitt, R. Ramakrishnan: *Mondrian Multidimensional K-Anonymity.* ICDE 2006. `methods::mondrian`.
//! - A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam: *l-Diversity: Privacy Beyond k-Anonymity.* ICDE 2006.
//!   `methods::mondrian::Diversity`.
//! - N. Li, T. Li, S. Venkatasubramanian: *t-Closeness: Privacy Beyond k-Anonymity and l-Diversity.* ICDE 2007.
//!   `methods::mondrian`.
//! - R. Wong, A. Fu, K. Wang, J. Pei: *Minimality Attack in Privacy Preserving Data Publishing.* VLDB 2007. A limit of
//!   `methods::mondrian`.
//! - X. Xiao, Y. Tao: *Anatomy: Simple and Effective Privacy Preservation.* VLDB 2006. `methods::anatomy`.
//! - F. Li, S. Zhou: *Challenging More Updates: Towards Anonymous Re-publication of Fully Dynamic Datasets.* 2008.
//!   [`risk::UpdateGraph`], `risk`.
//! - E. Shmueli, T. Tassa: *Privacy by Diversity in Sequential Releases of Databases.* Information Sciences 2015. All of
//!   `methods::sequential`; possible worlds in the tests of [`risk`].
//! - A. Goel, M. Kapralov, S. Khanna: *Perfect Matchings in O(n log n) Time in Regular Bipartite Graphs.* STOC 2010. Permutations in
//!   `methods::sequential`.
//! - X. Xiao, Y. Tao: *m-Invariance: Towards Privacy Preserving Re-publication of Dynamic Datasets.* SIGMOD 2007. All of
//!   `methods::m_invariance`.
//! - F. Li, S. Zhou: *Challenging More Updates: Towards Anonymous Re-publication of Fully Dynamic Datasets.* 2008. All of
//!   `methods::m_distinct`; its exact form, and `methods::dynamic`.
//! - Li et al.: *MuCo: Publishing Microdata with Privacy Preservation through Mutual Cover.* 2023. `methods::muco`,
//!   [`risk::Perturbed`].
//! - K. Wang, Y. Xu, R. Wong, A. Fu: *Anonymizing Temporal Data.* ICDM 2010. All of `methods::reposition`.

#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used)]

/// Allocator of the shell: tests that enumerate all draws allocate a third of their time.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "distributed")]
pub mod distributed;
mod estimate;
mod exec;
#[cfg(feature = "publication")]
mod publication;
pub mod risk;
mod scalars;
mod sql;

pub(crate) use datafusion_anonymize_core::{error, microdata, release};
pub(crate) use datafusion_anonymize_methods as methods;

#[doc(inline)]
pub use error::{AnonymizeError, Error, ErrorKind, Refusal, hide_values};
pub use exec::{
    Anonymization, AnonymizeExec, AnonymizeJob, CellCount, Cells, CellsExec, FailedAudits, HiddenExec, Inputs, Job,
    KeepNan, Notices, Progress, RepositionExec, RepositionJob, Repositioning, Seed, Step, Survey, WholeFiles,
    WholeInputExec,
};
#[cfg(feature = "publication")]
pub use exec::{PublishExec, PublishJob};
#[doc(inline)]
pub use methods::anatomy::Anatomy;
#[doc(inline)]
pub use methods::dynamic::Dynamic;
#[doc(inline)]
pub use methods::m_distinct::{MDistinct, Possible};
#[doc(inline)]
pub use methods::m_invariance::{Assignment, Balance, Grouping, MInvariance, OnIneligible, Reader};
#[doc(inline)]
pub use methods::mondrian::{Cuts, Diversity, Mondrian};
#[doc(inline)]
pub use methods::muco::Muco;
#[doc(inline)]
pub use methods::reposition::{Clock, Cost, Late, MoveCost, Reposition};
#[doc(inline)]
pub use methods::sequential::{Loss, NonSequential, Sequential, SequentialRelease, Worlds};
#[doc(inline)]
pub use methods::{AnyMethod, Share, StateKind};
#[doc(inline)]
pub use microdata::{Role, Roles};
#[cfg(feature = "publication")]
pub use publication::{Period, PeriodUnit, Publication, PublicationSpec, Repositioned};
#[doc(inline)]
pub use release::{Description, RowOrder, View};
pub use sql::{
    AnonymizeOptions, NamedFiles, ReleaseFiles, enable_url_table, flat_table, function_arguments, function_example,
    function_help, function_overview, function_parameters, is_public_release, register_all, register_all_with,
    register_readers, released_table,
};
#[cfg(feature = "publication")]
pub use sql::{irregularities, publication_for_readers};

/// Parts below SQL that benchmarks measure, and the Python package needs. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod internals {
    use rand_chacha::ChaCha20Rng;

    pub use crate::methods::{Method, Monitor, SnapshotBuilder, State};
    pub use crate::microdata::census::{BLOCK, Census, schema};
    pub use crate::microdata::{Layout, Microdata, MicrodataBuilder};
    pub use crate::release::{COUNTERFEIT, LABEL, Release};

    /// Returns all relation functions with their arguments, as JSON: the Python package's are made from it.
    pub fn signatures() -> String {
        crate::sql::signatures()
    }

    /// Returns the message for an error of the engine about a range.
    pub fn about_range(error: &datafusion::error::DataFusionError) -> Option<crate::AnonymizeError> {
        crate::error::about_range(error)
    }

    /// Adds the columns that a statement casts to the error of a cast.
    pub fn with_casts_of(
        statement: &str,
        error: datafusion::error::DataFusionError,
    ) -> datafusion::error::DataFusionError {
        crate::error::with_casts_of(statement, error)
    }

    /// Returns the rows of a query as text files have them: ranges are columns.
    ///
    /// # Errors
    /// When a column is a list or another struct, and when two columns would have one name.
    pub fn flat_rows(
        format: &str,
        plan: datafusion::logical_expr::LogicalPlan,
    ) -> datafusion::common::Result<datafusion::logical_expr::LogicalPlan> {
        crate::sql::flat_rows(format, plan)
    }

    /// Returns a release by any method.
    ///
    /// # Errors
    /// The method's refusals.
    pub fn release(
        method: &crate::AnyMethod,
        microdata: Microdata,
        state: &State,
        rng: &mut ChaCha20Rng,
    ) -> crate::error::Result<Release> {
        method.release(microdata, state, &Monitor::default(), rng)
    }
}

/// The examples of the page on embedding compile and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
