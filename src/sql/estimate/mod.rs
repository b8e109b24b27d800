//! Aggregates over releases: `estimated(..)`, the rule that rewrites what is asked of it, and `query_accuracy(..)`, which measures the answers.

mod aggregate;
mod chain;
mod deviations;
mod estimated;
mod intact;
mod interval;
mod named;
mod query_accuracy;
mod rule;
mod source;
mod sources;

pub(super) use deviations::{DeviationPlanner, deviations};
pub(super) use estimated::EstimatedFunction;
use estimated::EstimatedTable;
pub(super) use intact::ROWS_OF_GROUPS;
pub(super) use query_accuracy::QueryAccuracyFunction;
pub(super) use rule::EstimateRule;
use source::Source;
