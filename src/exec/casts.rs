//! The casts that a node of a plan makes, by the names of their columns: what a cast failed on is data, and which column it was in is not.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::utils::quote_identifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::ExecutionPlan;

use crate::microdata::sql_type;

/// Casts of columns that can fail, with the types in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Casts(Arc<[(String, Option<String>)]>);

impl Casts {
    /// Returns the casts of a node's expressions that can fail, if there are any.
    pub(super) fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        let mut found = Vec::new();
        let mut look = |expr: &Arc<dyn PhysicalExpr>| {
            expr.apply(|expr| {
                let cast = expr.downcast_ref::<CastExpr>();
                let source = cast.and_then(|cast| plan_type(cast.expr(), plan));
                if let (Some(cast), Some(source)) = (cast, source)
                    && !cast.is_bigger_cast(&source)
                    && !cast.cast_type().is_string()
                    && !cast.cast_options().safe
                    && let Some(column) = column_of(cast.expr())
                {
                    let of = (column, sql_type(cast.cast_type()));
                    if !found.contains(&of) {
                        found.push(of);
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        };
        // What cannot be looked at has no names.
        plan.apply_expressions(&mut look).ok()?;
        (!found.is_empty()).then(|| Self(found.into()))
    }
}

/// Returns the type of an expression over the columns that a node reads.
fn plan_type(expr: &Arc<dyn PhysicalExpr>, plan: &dyn ExecutionPlan) -> Option<DataType> {
    match plan.children().first() {
        Some(child) => expr.data_type(child.schema().as_ref()).ok(),
        None => Some(DataType::Utf8),
    }
}

/// Returns the column in an expression, if it is of one.
fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
    let mut names = Vec::new();
    let _ = expr.apply(|expr| {
        if let Some(column) = expr.downcast_ref::<Column>()
            && !names.contains(&column.name().to_owned())
        {
            names.push(column.name().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    names.pop().filter(|_| names.is_empty())
}

impl Casts {
    /// Returns the columns, for "a cast .. failed".
    pub(super) fn columns(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|(name, _)| quote_identifier(name)).collect();
        match (names.as_slice(), self.0.first()) {
            ([name], Some((_, Some(to)))) => format!("of column {name} to {to}"),
            ([name], _) => format!("of column {name}"),
            (names, _) => format!("of one of the columns {}", names.join(", ")),
        }
    }

    /// Returns the SQL that makes unreadable values NULL, and the query that counts them.
    pub(super) fn cure(&self) -> Option<String> {
        let (name, to) = self.0.iter().find_map(|(name, to)| Some((quote_identifier(name), to.as_ref()?)))?;
        let tried = format!("TRY_CAST({name} AS {to})");
        Some(format!(
            "write {tried}, which makes NULL of what cannot be read, and count such rows with SELECT count(*) FROM t WHERE {name} IS NOT NULL \
             AND {tried} IS NULL"
        ))
    }
}
