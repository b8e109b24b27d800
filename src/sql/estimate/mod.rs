//! Aggregates over releases: `estimated(..)`, and the rule that rewrites what is asked of it.

mod aggregate;
mod chain;
mod deviations;
mod estimated;
mod intact;
mod interval;
mod named;
mod rule;
mod source;
mod sources;

pub(super) use deviations::{DeviationPlanner, deviations};
pub(super) use estimated::EstimatedFunction;
use estimated::EstimatedTable;
pub(super) use estimated::prior;
pub(super) use intact::{ROWS_OF_GROUPS, intact};
pub(super) use rule::EstimateRule;
use source::Source;
pub(super) use sources::refuse_publication;
