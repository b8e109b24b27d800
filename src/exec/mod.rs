//! The physical operators: collect the input as codes, run a method off the async threads, stream the release or publish it.

mod accuracy;
mod anonymize;
mod audits;
mod computation;
mod disclosure;
mod held;
mod loss;
#[cfg(feature = "publication")]
mod making;
mod perturbed;
mod progress;
#[cfg(feature = "publication")]
mod publish;
mod reposition;
mod repositioning;
mod run;
mod seed;
#[cfg(feature = "publication")]
mod window;
mod work;

pub(crate) use accuracy::QueryAccuracy;
pub use anonymize::{AnonymizeExec, Inputs, Job};
pub use audits::FailedAudits;
#[cfg(feature = "publication")]
pub(crate) use audits::PublicationAudit;
pub(crate) use computation::{Computation, ComputationExec};
pub(crate) use disclosure::DisclosureQuestion;
pub(crate) use loss::InformationLoss;
pub(crate) use perturbed::PerturbedQuestion;
pub use progress::{Progress, Step};
#[cfg(feature = "publication")]
pub use publish::PublishExec;
pub(crate) use reposition::{ORIGINAL_TIME, REPOSITION, STATUS, repositioned_schema};
pub use reposition::{RepositionExec, RepositionJob};
pub use seed::Seed;
