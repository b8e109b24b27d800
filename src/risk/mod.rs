//! What a reader can infer from releases. Works from released tables alone and shares no code with the methods.

mod intersection;

pub use intersection::{Cover, PublicRelease, candidates};
