//! Texts that a query names: values of a column, also where they are no end of a range.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{AggregateFunction, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::chain::Chain;

/// The texts that each column is compared with for equality.
#[derive(Debug, Default)]
pub(super) struct NamedTexts(BTreeMap<String, BTreeSet<String>>);

impl NamedTexts {
    /// Collects the values of a whole query: a column has the same ones everywhere. `groups` are in terms of the table, `aggregates` are not.
    /// Fails when an aggregate is of something that the table does not have.
    pub(super) fn of(chain: &Chain, groups: &[Expr], aggregates: &[Expr]) -> Result<Self> {
        let mut named = Self::default();
        chain.conditions.iter().chain(groups).try_for_each(|expr| named.look(expr))?;
        for aggregate in aggregates {
            if let Expr::AggregateFunction(AggregateFunction { params, .. }) = aggregate.clone().unalias() {
                let filter = params.filter.as_deref();
                for expr in params.args.iter().chain(filter) {
                    named.look(&chain.resolve(expr.clone())?)?;
                }
            }
        }
        Ok(named)
    }

    /// Returns the values of a column.
    pub(super) fn of_column(&self, column: &str) -> impl Iterator<Item = &String> {
        self.0.get(column).into_iter().flatten()
    }

    fn look(&mut self, expr: &Expr) -> Result<()> {
        expr.apply(|expr| {
            match expr {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq | Operator::NotEq, right }) => {
                    self.add(left, [right.as_ref()]);
                    self.add(right, [left.as_ref()]);
                }
                Expr::InList(InList { expr, list, .. }) => self.add(expr, list),
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    fn add<'a>(&mut self, column: &Expr, values: impl IntoIterator<Item = &'a Expr>) {
        if let Expr::Column(column) = without_cast(column) {
            let text = |value: &Expr| match without_cast(value) {
                Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
                _ => None,
            };
            self.0.entry(column.name.clone()).or_default().extend(values.into_iter().filter_map(text));
        }
    }
}

/// Removes casts between kinds of text.
fn without_cast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => &cast.expr,
        expr => expr,
    }
}
