//! The physical operators: collect the input as codes, run a method off the async threads, stream the release or publish it.

mod accuracy;
mod anonymize;
mod audits;
mod computation;
mod disclosure;
mod loss;
#[cfg(feature = "publication")]
mod making;
mod progress;
#[cfg(feature = "publication")]
mod publish;
mod reposition;
mod repositioning;
mod run;
mod seed;
mod work;

pub(crate) use accuracy::QueryAccuracy;
pub use anonymize::{AnonymizeExec, Inputs, Job};
pub use audits::FailedAudits;
pub(crate) use computation::{Computation, ComputationExec};
pub use disclosure::{DisclosureExec, Question};
pub use loss::InformationLossExec;
pub use progress::{Progress, Step};
#[cfg(feature = "publication")]
pub use publish::PublishExec;
pub use reposition::{Late, RepositionExec, RepositionJob};
pub(crate) use reposition::{ORIGINAL_TIME, REPOSITION, STATUS, repositioned_schema};
pub use seed::Seed;
