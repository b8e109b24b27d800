//! The physical operators: collect the input as codes, run a method off the async threads, stream the release or publish it.

mod anonymize;
mod loss;
#[cfg(feature = "publication")]
mod making;
mod progress;
#[cfg(feature = "publication")]
mod publish;
mod run;
mod seed;
mod work;

pub use anonymize::{AnonymizeExec, Inputs, Job};
pub use loss::InformationLossExec;
pub use progress::{Progress, Step};
#[cfg(feature = "publication")]
pub use publish::PublishExec;
pub use seed::Seed;
