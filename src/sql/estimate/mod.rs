//! Aggregates over releases: `estimated(..)`, and the rule that rewrites what is asked of it.

mod aggregate;
mod chain;
mod deviations;
mod estimated;
mod footers;
mod intact;
mod interval;
mod rule;
mod source;

pub(super) use deviations::{DeviationPlanner, deviations};
pub(super) use estimated::{EstimatedFunction, EstimatedTable};
pub(super) use footers::{Described, describe};
pub(super) use intact::{ROWS_OF_GROUPS, intact};
pub(super) use rule::EstimateRule;
pub(super) use source::Source;
