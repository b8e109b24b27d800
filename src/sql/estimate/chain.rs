//! The nodes between an aggregate and the table it is of: columns are renamed and computed there, and rows filtered.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::logical_plan::TableScan;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use super::Source;
use super::sources::{Sources, is_estimate};
use crate::error::refusal;
use crate::estimate::ESTIMATE;

/// A chain of nodes down to a table of which only estimates are known. It is in terms of that table's columns, without qualifiers.
#[derive(Debug)]
pub(super) struct Chain {
    pub source: Arc<Source>,
    /// The original table.
    pub schema: DFSchema,
    /// Conditions that all rows fulfil.
    pub conditions: Vec<Expr>,
    /// The columns of the topmost node.
    columns: Vec<Expr>,
    /// Its schema.
    above: DFSchema,
}

impl Chain {
    /// Collects the nodes below; `None` if they do not form such a chain.
    pub(super) fn below(plan: &LogicalPlan, sources: &mut Sources) -> Result<Option<Self>> {
        Ok(match plan {
            LogicalPlan::TableScan(scan) => Self::of_table(scan, sources)?,
            LogicalPlan::SubqueryAlias(alias) => {
                let chain = Self::below(&alias.input, sources)?;
                chain.map(|chain| Self { above: alias.schema.as_ref().clone(), ..chain })
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => Self::below(&sort.input, sources)?,
            LogicalPlan::Filter(filter) => match Self::below(&filter.input, sources)? {
                Some(mut chain) => {
                    let condition = chain.resolve(filter.predicate.clone())?;
                    chain.conditions.extend(split_conjunction_owned(condition));
                    Some(chain)
                }
                None => None,
            },
            LogicalPlan::Projection(projection) => match Self::below(&projection.input, sources)? {
                Some(chain) => {
                    let columns = projection.expr.iter().map(|expr| chain.resolve(expr.clone().unalias()));
                    let columns = columns.collect::<Result<_>>()?;
                    Some(Self { columns, above: projection.schema.as_ref().clone(), ..chain })
                }
                None => None,
            },
            _ => None,
        })
    }

    fn of_table(scan: &TableScan, sources: &mut Sources) -> Result<Option<Self>> {
        let provider = source_as_provider(&scan.source)?;
        let Some(source) = sources.of(&provider)? else { return Ok(None) };
        let schema = DFSchema::try_from(provider.schema())?;
        let columns = scan.projected_schema.fields().iter();
        let columns = columns.map(|field| Expr::Column(Column::new_unqualified(field.name()))).collect();
        let mut chain =
            Self { source, schema, conditions: Vec::new(), columns, above: scan.projected_schema.as_ref().clone() };
        for filter in &scan.filters {
            let filter = chain.resolve(filter.clone())?;
            chain.conditions.push(filter);
        }
        Ok(Some(chain))
    }

    /// Returns an expression over the topmost node as one over the table.
    pub(super) fn resolve(&self, expr: Expr) -> Result<Expr> {
        refuse_correlated(&expr)?;
        let resolved = expr.transform_up(|expr| match &expr {
            Expr::Column(column) => {
                let place = self.above.index_of_column(column)?;
                Ok(Transformed::yes(self.columns[place].clone()))
            }
            _ => Ok(Transformed::no(expr)),
        });
        Ok(resolved?.data)
    }

    /// Returns the same conditions, for expressions that are over the table already.
    pub(super) fn at_table(self) -> Self {
        let columns = self.schema.columns().into_iter().map(Expr::Column).collect();
        Self { columns, above: self.schema.clone(), ..self }
    }

    /// Returns the columns of the topmost node.
    pub(super) fn columns(&self) -> &[Expr] {
        &self.columns
    }
}

/// Refuses a subquery that looks at single rows of the table.
fn refuse_correlated(expr: &Expr) -> Result<()> {
    let mut correlated = false;
    expr.apply(|expr| {
        let subquery = match expr {
            Expr::ScalarSubquery(subquery) => Some(subquery),
            Expr::InSubquery(inside) => Some(&inside.subquery),
            Expr::Exists(exists) => Some(&exists.subquery),
            _ => None,
        };
        correlated |= subquery.is_some_and(|subquery| !subquery.outer_ref_columns.is_empty());
        Ok(TreeNodeRecursion::Continue)
    })?;
    if correlated {
        return Err(refusal!(
            ESTIMATE,
            "a subquery refers to the rows of the table, which are not there; aggregate the table first, in a subquery \
             or CTE, and refer to the result; for conditions on published columns, write IN (SELECT ..) instead of EXISTS"
        ));
    }
    Ok(())
}

/// Returns true if a node reads a table of which only estimates are known.
pub(super) fn is_estimated(plan: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = plan else { return false };
    source_as_provider(&scan.source).is_ok_and(|provider| is_estimate(provider.as_ref()))
}

/// Returns the groups of equal rows.
pub(super) fn distinct_input(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => Some(input),
        _ => None,
    }
}
