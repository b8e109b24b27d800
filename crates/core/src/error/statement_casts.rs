//! Casts that a statement writes: which column one failed on is no data, and its error does not say it.

use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{CopyToSource, DFParser, Statement};
use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Ident, visit_expressions};

use super::values::hidden_conversion;
use super::{AnonymizeError, ErrorKind};

/// Adds the columns that a statement casts to the error of a cast. The error's value is hidden; the message says how to find the rows. Other errors stay as
/// they are.
pub fn with_casts_of(statement: &str, error: DataFusionError) -> DataFusionError {
    let Some(rest) = AnonymizeError::of(&error).and_then(hidden_conversion) else { return error };
    let casts = casts(statement);
    let Some((name, data_type)) = casts.first() else { return error };
    let names: Vec<&str> = casts.iter().map(|(name, _)| name.as_str()).collect();
    let of = match casts.len() {
        1 => format!("of column {name} to {data_type}"),
        _ => format!("of one of the columns {}", names.join(", ")),
    };
    let message = format!(
        "a cast {of} failed{rest}; write TRY_CAST({name} AS {data_type}), which makes NULL of what cannot be read, and find such rows with WHERE {name} \
         IS NOT NULL AND TRY_CAST({name} AS {data_type}) IS NULL"
    );
    AnonymizeError::new("query", ErrorKind::Input, message).into()
}

/// Returns the columns that a statement casts to other types than text, with these types.
fn casts(statement: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for statement in DFParser::parse_sql(statement).into_iter().flatten() {
        collect(&statement, &mut found);
    }
    found
}

fn collect(statement: &Statement, found: &mut Vec<(String, String)>) {
    let mut look = |expr: &Expr| {
        if let Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } = expr
            && !is_text(data_type)
            && let Some(column) = column_in(expr)
        {
            let cast = (column, data_type.to_string());
            if !found.contains(&cast) {
                found.push(cast);
            }
        }
        ControlFlow::<()>::Continue(())
    };
    match statement {
        Statement::Statement(statement) => drop(visit_expressions(statement.as_ref(), &mut look)),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &copy.source {
                let _ = visit_expressions(query.as_ref(), &mut look);
            }
        }
        Statement::Explain(explain) => collect(&explain.statement, found),
        _ => {}
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Varchar(_) | DataType::Text | DataType::String(_) | DataType::Char(_) | DataType::CharVarying(_)
    )
}

/// Returns the column in an expression, if it is of one.
fn column_in(expr: &Expr) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let _ = visit_expressions(expr, |expr| {
        let name: Option<&Ident> = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        if let Some(name) = name.map(ToString::to_string).filter(|name| !names.contains(name)) {
            names.push(name);
        }
        ControlFlow::<()>::Continue(())
    });
    names.pop().filter(|_| names.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_casts_are_found() {
        let of = |statement: &str| {
            casts(statement).into_iter().map(|(name, to)| format!("{name} {to}")).collect::<Vec<_>>().join(", ")
        };
        for (statement, expected) in [
            ("SELECT CAST(d AS INT) FROM t", "d INT"),
            ("CREATE TABLE x AS SELECT trim(\"Dose\")::DOUBLE AS d, CAST(d AS VARCHAR) FROM t", "\"Dose\" DOUBLE"),
            ("COPY (SELECT CAST(t.day AS DATE) FROM t) TO 'x.csv'", "day DATE"),
            (
                "INSERT INTO p SELECT id, CAST(age AS INT) FROM t WHERE CAST(score AS DOUBLE) > 3",
                "age INT, score DOUBLE",
            ),
            ("SELECT TRY_CAST(d AS INT), CAST(a || b AS INT), CAST('3' AS INT) FROM t", ""),
            ("no SQL", ""),
        ] {
            assert_eq!(of(statement), expected, "{statement}");
        }
    }
}
