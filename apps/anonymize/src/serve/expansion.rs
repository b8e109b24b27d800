//! Bound on the size that a plan can reach when it is optimized.
//!
//! The engine puts an expression wherever its column is used. So
//! `a1 AS (SELECT x + x AS x FROM a0), a2 AS (SELECT x + x AS x FROM a1), ..` is twice as large with each line, long after it was parsed, and
//! nothing can stop an optimizer in the middle of it. It is counted before.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::errors::Failure;

/// Nodes of a plan, with what is named twice counted twice.
const NODES: usize = 10_000;
/// Nodes of an expression in terms of the tables that are read.
const EXPRESSION: f64 = 200_000.0;

/// Fails when it can become too large.
pub(super) fn refuse_expansion(plan: &LogicalPlan) -> Result<(), Failure> {
    let mut nodes = 0;
    let counted = plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(if nodes > NODES { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    if counted.is_err() || nodes > NODES {
        return Err(too_large("the statement is too large once everything it names is in its place"));
    }
    let mut weigh = |expr: &Expr, below: &Below<'_>| weight(expr, below);
    let mut weights = Weights { of_table: 1.0, largest: 0.0, weigh: &mut weigh };
    if weights.of(plan).is_err() || weights.largest > EXPRESSION {
        return Err(too_large("an expression is too large once the columns in it are what they stand for"));
    }
    Ok(())
}

fn too_large(message: &str) -> Failure {
    Failure::new("54001", message).hint("Use what is computed fewer times in what is computed of it")
}

/// Holds what is known of the inputs of a node.
pub(super) struct Below<'a> {
    pub schemas: Vec<&'a DFSchema>,
    columns: Vec<Vec<f64>>,
    /// Most that the value of a subquery weighs.
    pub subquery: f64,
}

impl Below<'_> {
    pub(super) fn of(&self, column: &Column) -> Option<f64> {
        self.schemas.iter().zip(&self.columns).find_map(|(schema, weights)| {
            let place = schema.maybe_index_of_column(column)?;
            weights.get(place).copied()
        })
    }
}

/// Weighs the columns of plans in terms of the tables below.
pub(super) struct Weights<'a> {
    /// The weight of a table's column.
    pub of_table: f64,
    /// The largest weight of an expression so far.
    pub largest: f64,
    pub weigh: &'a mut dyn FnMut(&Expr, &Below<'_>) -> Result<f64>,
}

impl Weights<'_> {
    /// Returns the weights of a plan's columns.
    /// Fails with the errors of weighing an expression.
    pub(super) fn of(&mut self, plan: &LogicalPlan) -> Result<Vec<f64>> {
        let mut below = Below { schemas: Vec::new(), columns: Vec::new(), subquery: 0.0 };
        for input in plan.inputs() {
            below.columns.push(self.of(input)?);
            below.schemas.push(input.schema().as_ref());
        }
        let mut subqueries = Ok(());
        plan.apply_subqueries(|subquery| {
            subqueries = self.of(subquery).map(|_| ());
            Ok(if subqueries.is_err() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        subqueries?;
        // What a subquery gives is at most what was seen so far.
        below.subquery = self.largest.max(self.of_table);
        let expressions = plan.expressions();
        let all = expressions.iter().map(|expr| (self.weigh)(expr, &below)).collect::<Result<Vec<_>>>()?;
        self.largest = all.iter().copied().fold(self.largest, f64::max);
        let columns = plan.schema().fields().len();
        let below = below.columns;
        Ok(match plan {
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) if all.len() == columns => all,
            LogicalPlan::Union(_) => (0..columns)
                .map(|place| below.iter().filter_map(|input| input.get(place)).copied().fold(self.of_table, f64::max))
                .collect(),
            _ => {
                // Columns of the inputs one after the other, and then what is new.
                let mut known = below.concat();
                let most = known.iter().chain(&all).copied().fold(self.of_table, f64::max);
                known.resize(columns, most);
                known
            }
        })
    }
}

fn weight(expr: &Expr, below: &Below<'_>) -> Result<f64> {
    let mut sum = 0.0;
    expr.apply(|expr| {
        sum += match expr {
            Expr::Column(column) => below.of(column).unwrap_or(1.0),
            Expr::ScalarSubquery(_) => below.subquery,
            _ => 1.0,
        };
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn of(sql: &str) -> Result<(), Failure> {
        let context = SessionContext::new();
        let plan = context.state().create_logical_plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        refuse_expansion(&plan)
    }

    fn chain(levels: usize, step: impl Fn(usize) -> String) -> String {
        let steps: Vec<String> = (0..levels).map(|level| format!("a{} AS ({})", level + 1, step(level))).collect();
        format!("WITH a0 AS (VALUES (1), (2)), {}", steps.join(", "))
    }

    #[tokio::test]
    async fn what_doubles_is_seen() {
        let sums = |levels| {
            let steps = chain(levels, |level| format!("SELECT column1 + column1 AS column1 FROM a{level}"));
            format!("{steps} SELECT * FROM a{levels} WHERE column1 > 3")
        };
        let hidden = format!("SELECT 1 WHERE EXISTS ({})", sums(30));
        for much in [sums(30), hidden] {
            assert_eq!(of(&much).await.expect_err("large").code(), "54001");
        }
        for little in [sums(8), "SELECT 1".to_owned()] {
            assert_eq!(of(&little).await, Ok(()));
        }
        let flat = chain(40, |level| format!("SELECT column1 + 1 AS column1 FROM a{level}"));
        assert_eq!(of(&format!("{flat} SELECT sum(column1) FROM a40 WHERE column1 > 3")).await, Ok(()));
    }
}
