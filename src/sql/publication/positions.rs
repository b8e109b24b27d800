//! Checks of the positions of columns. INSERT goes by position and casts, so values could be published under a wrong name, or for other people, for ever.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::expr::{Alias, Cast};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::error::refusal;

/// Looks at the projection that an INSERT puts on top of its query.
/// Fails when a column of the query has the name of another column than the one that it goes into, and when numbers would become texts in the
/// column of identifiers: `7` and `007` are one number and two texts, so that people who were published would be taken for new ones.
pub(super) fn check_positions(input: &LogicalPlan, identifiers: &[String]) -> Result<()> {
    let LogicalPlan::Projection(projection) = input else { return Ok(()) };
    let into: Vec<&str> = projection.schema.fields().iter().map(|field| field.name().as_str()).collect();
    let from: Vec<Option<&str>> = projection.expr.iter().map(source).collect();
    for (place, name) in from.iter().enumerate().filter_map(|(place, name)| name.map(|name| (place, name))) {
        let Some(own) = into.iter().position(|target| *target == name) else { continue };
        // If it goes into its own column as well, that is meant.
        if own != place && from[own] != Some(name) {
            let target = into[place];
            return Err(refusal!(
                "publication",
                "column {} of the query is {name}, and goes into {target}: INSERT goes by position, and what is published cannot be taken \
                 back; select the columns in the order of the table ({}), or, if it is meant, rename it: {name} AS {target}",
                place + 1,
                into.join(", ")
            ));
        }
    }
    for (expr, name) in projection.expr.iter().zip(&into) {
        let Some(given) = number_as_text(expr, &projection.input)? else { continue };
        if identifiers.iter().any(|identifier| identifier == name) {
            return Err(refusal!(
                "publication",
                "the identifier {name} is text in the publication and {given} in the rows of the INSERT, where leading zeros are lost: \
                 whoever was published as 007 would be taken for somebody new; declare the file's {name} as VARCHAR, or, if it never has \
                 such zeros, cast it: CAST({name} AS VARCHAR)"
            ));
        }
    }
    Ok(())
}

/// Returns the column that is passed on under a name, cast or not.
fn source(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Alias(Alias { expr, .. }) | Expr::Cast(Cast { expr, .. }) => source(expr),
        Expr::Column(column) => Some(&column.name),
        _ => None,
    }
}

/// Returns the type of numbers that the INSERT itself casts to text.
fn number_as_text(expr: &Expr, input: &LogicalPlan) -> Result<Option<DataType>> {
    match expr {
        Expr::Alias(Alias { expr, .. }) => number_as_text(expr, input),
        Expr::Cast(cast) => {
            let given = cast.expr.get_type(input.schema())?;
            let text = matches!(cast.field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            Ok((text && given.is_numeric()).then_some(given))
        }
        _ => Ok(None),
    }
}
