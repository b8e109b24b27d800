//! Columns of a publication that an INSERT does not name.

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::logical_expr::expr::{Alias, Cast};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Name in errors of the rows of an INSERT.
pub(super) const SNAPSHOT: &str = "the rows of the INSERT";

/// Metadata key of a column of the rows that the INSERT does not name. That it has no values is no sign of it: who has a value may have left.
const LEFT_OUT: &str = "anonymize.left_out";

/// Returns the column, marked as one that the INSERT does not name.
pub(super) fn marked(field: &FieldRef) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.insert(LEFT_OUT.to_owned(), String::new());
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// Returns the columns of the rows that the INSERT does not name.
pub(super) fn marked_columns(rows: &Schema) -> Vec<String> {
    let marked = rows.fields().iter().filter(|field| field.metadata().contains_key(LEFT_OUT));
    marked.map(|field| field.name().clone()).collect()
}

/// Returns the columns that are NULL by the words of the INSERT.
pub(super) fn left_out(rows: &LogicalPlan) -> Vec<String> {
    let names = rows.schema().fields().iter().map(|field| field.name().clone());
    names.enumerate().filter(|(place, _)| is_null(rows, *place)).map(|(_, name)| name).collect()
}

/// Returns true if a column of a relation is NULL by its words.
fn is_null(rows: &LogicalPlan, place: usize) -> bool {
    match rows {
        LogicalPlan::Projection(projection) => match value(&projection.expr[place]) {
            Expr::Literal(value, _) => value.is_null(),
            Expr::Column(column) => {
                let place = projection.input.schema().maybe_index_of_column(column);
                place.is_some_and(|place| is_null(&projection.input, place))
            }
            _ => false,
        },
        LogicalPlan::SubqueryAlias(alias) => is_null(&alias.input, place),
        LogicalPlan::Filter(filter) => is_null(&filter.input, place),
        LogicalPlan::Sort(sort) => is_null(&sort.input, place),
        _ => false,
    }
}

fn value(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(Alias { expr, .. }) | Expr::Cast(Cast { expr, .. }) => value(expr),
        other => other,
    }
}
