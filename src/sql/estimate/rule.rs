//! The analyzer rule that turns aggregates over estimated tables into aggregates over releases.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Distinct, DmlStatement, LogicalPlan, WriteOp};
use datafusion::optimizer::AnalyzerRule;

use super::aggregate::{AggregateQuery, distinct};
use super::chain::{Chain, distinct_input, is_estimated};
use super::estimated::ROWS;
use super::sources::Sources;
use crate::error::refusal;
use crate::estimate::ESTIMATE;

/// Runs after type coercion: what the types of aggregates are is settled then.
#[derive(Debug)]
pub(in crate::sql) struct EstimateRule;

impl AnalyzerRule for EstimateRule {
    fn name(&self) -> &'static str {
        "anonymize_estimate"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let changes_rows = |plan: &LogicalPlan| match plan {
            LogicalPlan::Dml(DmlStatement { op, .. }) => !matches!(op, WriteOp::Insert(_) | WriteOp::Ctas),
            _ => false,
        };
        // The table itself refuses that, and says what to do instead.
        if changes_rows(&plan) || !mentions_estimates(&plan)? {
            return Ok(plan);
        }
        let mut sources = Sources::default();
        let plan = plan.transform_up_with_subqueries(|node| Ok(Transformed::yes(answered(node, &mut sources)?)))?.data;
        refuse_rows(&plan, None)?;
        Ok(plan)
    }
}

fn mentions_estimates(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= is_estimated(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Returns the node, rewritten if it is an aggregate of such a table. What is below it was looked at before.
fn answered(node: LogicalPlan, sources: &mut Sources) -> Result<LogicalPlan> {
    if let LogicalPlan::Aggregate(aggregate) = &node
        && let Some(chain) = Chain::below(&aggregate.input, sources)?
    {
        let (groups, aggregates) = (&aggregate.group_expr, &aggregate.aggr_expr);
        return AggregateQuery { chain, groups, aggregates, schema: &aggregate.schema }.answer();
    }
    if let Some(input) = distinct_input(&node)
        && let Some(chain) = Chain::below(input, sources)?
    {
        return distinct(chain, input.schema());
    }
    node.recompute_schema()
}

/// Refuses a plan that still reads the rows of such a table. `above` is the nearest node that matters.
fn refuse_rows(plan: &LogicalPlan, above: Option<&LogicalPlan>) -> Result<()> {
    if is_estimated(plan) {
        return Err(refusal!(ESTIMATE, "{}", reason(above)));
    }
    let passes = match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        _ => false,
    };
    let above = if passes { above } else { Some(plan) };
    for input in plan.inputs() {
        refuse_rows(input, above)?;
    }
    let mut result = Ok(());
    plan.apply_subqueries(|subquery| {
        result = refuse_rows(subquery, Some(subquery));
        Ok(if result.is_err() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    result
}

fn reason(above: Option<&LogicalPlan>) -> &'static str {
    match above {
        Some(LogicalPlan::Window(_)) => {
            "window functions need the rows of the table, which are not in a release; aggregate first, in a subquery or \
             CTE, and use window functions over the result"
        }
        Some(LogicalPlan::Join(_)) => {
            "a join needs the rows of the table, which are not in a release; aggregate first, in a subquery or CTE, and \
             join the result on published columns"
        }
        Some(LogicalPlan::Union(_)) => {
            "UNION needs the rows of the table, which are not in a release; aggregate each part, and combine the results"
        }
        Some(LogicalPlan::Limit(_)) => {
            "LIMIT needs the rows of the table, which are not in a release; aggregate first, and limit the result"
        }
        Some(LogicalPlan::Distinct(Distinct::On(_))) => {
            "DISTINCT ON needs the rows of the table, which are not in a release; use SELECT DISTINCT or GROUP BY"
        }
        _ => ROWS,
    }
}
