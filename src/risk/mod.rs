//! What a reader can infer from releases. Works from released tables alone and shares no code with the methods.
//!
//! | file | |
//! |---|---|
//! | `evidence`, `known` | releases and what is known of people, as codes; intervals as boxes |
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
//! | `entries`, `memory`, `people`, `dealt`, `partners`, `rings` | checks of a ledger: of signatures, of who was published, of what was dealt, of worlds |

mod audit;
mod background;
mod belief;
mod cover;
mod dealt;
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

pub(crate) use audit::{Check, RANDOM_ORDER, ReleaseFindings, part_of};
pub(crate) use belief::Changes;
pub(crate) use dealt::DealtRings;
pub(crate) use evidence::{BackgroundColumns, Evidence, EvidenceBuilder, ReleaseColumns};
pub(crate) use forward::{Before, believed_after};
pub(crate) use joint::{BUDGET, Fact, Joint};
pub(crate) use lifespan::{AdversaryModel, Disclosure, Findings, Sets, Wanted};
pub(crate) use memory::Histories;
pub(crate) use partners::Partnerships;
pub(crate) use people::Appearances;
pub(crate) use profile::{Coded, Division, SMALL, division, singling_out};
pub(crate) use released::{ReleasedTable, TableColumns};
