//! What a reader can infer from releases. Works from released tables alone and shares no code with the methods.

mod intersection;
mod principles;
mod update_graph;
mod updates;

pub use intersection::{Cover, PublicRelease, candidates};
pub use principles::Principles;
pub use update_graph::{Layer, UpdateGraph, Version};
pub use updates::{Update, Updates};
