//! Aggregates over releases: `estimated(..)`, the rule that rewrites what is asked of it, and `query_accuracy(..)`, which measures the answers.

mod aggregate;
mod chain;
mod deviations;
mod estimated;
mod interval;
mod named_values;
mod query_accuracy;
mod release_integrity;
mod rule;
mod source;
mod sources;

pub(super) use deviations::{DeviationPlanner, deviations};
pub(super) use estimated::EstimatedFunction;
use estimated::EstimatedTable;
pub(super) use query_accuracy::QueryAccuracyFunction;
pub(super) use release_integrity::ROWS_OF_GROUPS;
pub(super) use rule::EstimateRule;
use source::Source;
