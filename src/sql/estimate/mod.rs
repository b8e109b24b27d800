//! Aggregates over releases: `estimated(..)`, the rule that rewrites what is asked of it, and `query_accuracy(..)`, which measures the answers.

mod aggregate;
mod chain;
mod deviations;
pub(super) mod estimated;
mod interval;
mod named_values;
pub(super) mod query_accuracy;
mod release_integrity;
mod rule;
mod source;
mod sources;

pub(super) use deviations::{DeviationPlanner, deviations};
use estimated::EstimatedTable;
pub(super) use release_integrity::ROWS_OF_GROUPS;
pub(super) use rule::EstimateRule;
use source::Source;
