//! What a reader can infer from releases. Works from released tables alone and shares no code with the methods.

mod intersection;
mod principles;

pub use intersection::{Cover, PublicRelease, candidates};
pub use principles::Principles;
