//! Inferences of a reader from releases. Works from released tables alone and shares no code with the methods.

#[doc(inline)]
pub use datafusion_anonymize_risk::{
    Cover, Layer, Perturbed, PerturbedDisclosure, PublicRelease, ReleasedRows, Update, UpdateGraph, Updates, Version,
    World, candidates, people_outside_rings,
};

/// Parts that the library itself uses.
pub(crate) use datafusion_anonymize_risk::*;
