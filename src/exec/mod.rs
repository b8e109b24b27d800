//! The physical operators: collect the input as codes, run a method off the async threads, stream the release.

mod anonymize;
mod loss;
mod run;
mod seed;

pub use anonymize::{AnonymizeExec, Inputs, Job};
pub use loss::InformationLossExec;
pub use seed::Seed;
