//! Inferences of a reader from releases. Works from released tables alone and shares no code with the methods.
//!
//! | file | |
//! |---|---|
//! | `evidence`, `background` | releases and what is known of people, as codes; intervals as boxes |
//! | `cover` | which boxes cover which people |
//! | `lifespan` | a person's candidates in all releases put together |
//! | `updates`, `update_graph` | which values can follow which, and what that leaves possible |
//! | `legal` | legal update instances |
//! | `joint` | what is possible when everybody is looked at together |
//! | `belief`, `forward` | what is probable to a reader who knows how probable changes are, release after release |
//! | `intersection` | the attack on releases whose values never change |
//! | `profile` | what a table gives away as it is |
//! | `perturbed` | who finds whom in a release whose values were replaced at random |
//! | `worlds` | whether what a reader thinks possible is consistent with rows that are generalized one by one |
//! | `released`, `audit`, `randomness` | checks of what releases promise, and of the order of their rows |
//! | `entries`, `memory`, `people`, `partners`, `rings` | checks of a ledger: of signatures, of who was published, of worlds |

#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used)]

mod audit;
mod background;
mod belief;
mod cover;
mod entries;
mod evidence;
mod forward;
mod intersection;
mod joint;
mod legal;
mod lifespan;
mod memory;
mod partners;
mod people;
mod perturbed;
mod profile;
mod randomness;
mod released;
mod rings;
#[cfg(test)]
mod small_world;
mod update_graph;
mod updates;
mod worlds;

pub use intersection::{Cover, PublicRelease, candidates};
pub use perturbed::{Perturbed, PerturbedDisclosure};
pub use rings::people_outside_rings;
pub use update_graph::{Layer, UpdateGraph, Version};
pub use updates::{Update, Updates};
pub use worlds::{ReleasedRows, World};

use datafusion_anonymize_core::{error, microdata, release};

pub use audit::{Check, RANDOM_ORDER, ReleaseFindings, part_of};
pub use background::{AdversaryModel, Fact};
pub use belief::Changes;
pub use evidence::{BackgroundColumns, Evidence, EvidenceBuilder, ReleaseColumns};
pub use forward::{Before, believed_after};
pub use joint::{BUDGET, Joint};
pub use lifespan::{Disclosure, Findings, Sets, Wanted};
pub use memory::Histories;
pub use partners::Partnerships;
pub use people::Appearances;
pub use profile::{Coded, Division, SMALL, division, singling_out};
pub use released::{ReleasedTable, TableColumns};
