//! The physical operators: collect the input as codes, run a method off the async threads, stream the release.

mod anonymize;
mod run;
mod seed;

pub use anonymize::{AnonymizeExec, Job};
pub use seed::Seed;
