//! Bounds the length of values that an expression makes of texts, before anything runs.
//!
//! The engine makes values for a batch of thousands of rows at a time, and nobody counts what it makes of texts before it is there. So the
//! length is estimated in terms of the literals and columns that a value is made of. Parameters are literals by now.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};

use super::errors::Failure;
use super::expansion::{Below, Weights};

/// Bytes of a value. A batch of such values has 128 MiB.
const LONGEST: usize = 16 << 10;
/// Sets the assumed length of a text in a table, and of other non-lists.
const TEXT: f64 = 64.0;
const OTHER: f64 = 16.0;

/// Functions whose value is longer than their arguments together, and how many times at most.
const LONGER: [(&str, f64); 4] = [("encode", 2.0), ("quote_ident", 2.0), ("replace", 2.0), ("to_char", 8.0)];
/// Aggregates whose values grow with the rows.
const GROWING: [&str; 2] = ["array_agg", "string_agg"];

#[derive(Debug, Default)]
struct Found {
    longest: f64,
    grows: Option<&'static str>,
}

/// Refuses expressions whose values are too long, and windows whose values grow with each row.
/// Fails when there is one.
pub(super) fn refuse_lengths(plan: &LogicalPlan) -> Result<(), Failure> {
    let mut found = Found::default();
    let mut weigh = |expr: &Expr, below: &Below<'_>| Ok(length(expr, below, &mut found));
    let weighed = Weights { of_table: TEXT, largest: 0.0, weigh: &mut weigh }.of(plan);
    weighed.map_err(|_| Failure::internal())?;
    if let Some(function) = found.grows {
        return Err(Failure::new("54001", format!("{function}(..) OVER (..) makes a value of all rows for each row"))
            .hint(format!("Group instead: SELECT a, {function}(..) FROM .. GROUP BY a")));
    }
    if found.longest > LONGEST as f64 {
        let message = format!("an expression makes values of up to {} bytes for each row", found.longest);
        return Err(Failure::new("54001", message)
            .hint(format!("A value has at most {LONGEST} bytes; put fewer or shorter texts together")));
    }
    Ok(())
}

/// Returns the length of an expression's value, and notes the longest value on the way.
fn length(expr: &Expr, below: &Below<'_>, found: &mut Found) -> f64 {
    let (mut sum, mut most) = (0.0, OTHER);
    // The closure has no errors.
    let _ = expr.apply_children(|child| {
        let of_child = length(child, below, found);
        sum += of_child;
        most = most.max(of_child);
        Ok(TreeNodeRecursion::Continue)
    });
    let length = match expr {
        // Alone it is one value for all rows.
        Expr::Literal(value, _) => return of_literal(value),
        Expr::Column(column) => below.of(column).unwrap_or(TEXT),
        Expr::ScalarSubquery(_) => below.subquery,
        Expr::BinaryExpr(binary) if binary.op == Operator::StringConcat => sum,
        Expr::Cast(cast) if is_short(cast.field.data_type()) => OTHER,
        Expr::ScalarFunction(function) => {
            let is_short =
                below.schemas.iter().find_map(|schema| expr.get_type(*schema).ok()).is_some_and(|of| is_short(&of));
            let times = LONGER.iter().find(|(name, _)| *name == function.name()).map_or(1.0, |(_, times)| *times);
            if is_short { OTHER } else { f64::max(sum * times, OTHER) }
        }
        Expr::WindowFunction(window) => {
            let name = window.fun.name().to_ascii_lowercase();
            found.grows = found.grows.or_else(|| GROWING.into_iter().find(|growing| *growing == name));
            most
        }
        Expr::Alias(_)
        | Expr::AggregateFunction(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Unnest(_) => most.max(TEXT),
        // Truths and numbers.
        _ => OTHER,
    };
    found.longest = found.longest.max(length);
    length
}

fn of_literal(value: &ScalarValue) -> f64 {
    match value.try_as_str() {
        Some(text) => text.map_or(0, str::len) as f64,
        None if is_short(&value.data_type()) => OTHER,
        None => value.size() as f64,
    }
}

fn is_short(of: &DataType) -> bool {
    of.primitive_width().is_some() || matches!(of, DataType::Boolean | DataType::Null)
}

#[cfg(test)]
mod tests {
    use datafusion::common::ParamValues;
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn of(sql: &str, parameter: Option<String>) -> Result<(), Failure> {
        let context = SessionContext::new();
        let plan = context.state().create_logical_plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let values = ParamValues::from(vec![ScalarValue::Utf8(parameter)]);
        refuse_lengths(&plan.replace_params_with_values(&values).expect("parameters"))
    }

    #[tokio::test]
    async fn long_values_are_refused_before_they_are_made() {
        let table = "(VALUES ('a', 1), ('b', 2)) AS t (a, b)";
        let long = format!("'{}'", "x".repeat(4000));
        let texts = [long.as_str(); 5].join(", ");
        for much in [
            format!("SELECT max(length(concat({texts}, a))) FROM {table}"),
            format!("SELECT concat({texts}) FROM {table}"),
            format!("SELECT {} || a FROM {table}", [long.as_str(); 5].join(" || ")),
            format!("SELECT 1 FROM {table} WHERE concat_ws('-', {texts}) > a"),
            format!("SELECT 1 FROM {table} ORDER BY concat({texts}, a)"),
            format!("SELECT l.a FROM {table} JOIN (VALUES ('a')) AS l (a) ON concat({texts}, l.a) = t.a"),
            format!("SELECT count(*) FROM {table} WHERE b IN (SELECT length(concat({texts}, b)) FROM {table})"),
            format!("SELECT length(x || x || x || x || x) FROM (SELECT {long} AS x, a FROM {table})"),
            format!("SELECT array_length(make_array({texts})) FROM {table}"),
            format!("SELECT encode(concat({long}, {long}, {long}), 'hex') FROM {table}"),
            format!("SELECT replace(concat({long}, {long}, {long}), 'x', 'yy') FROM {table}"),
            format!("SELECT string_agg(a, ',') OVER (ORDER BY b) FROM {table}"),
            format!("SELECT length(x) FROM (SELECT array_to_string(array_agg(a) OVER (), ',') AS x FROM {table})"),
            format!("SELECT length(concat($1, $1, $1, $1, $1, a)) FROM {table}"),
        ] {
            let shown: String = much.chars().take(70).collect();
            assert_eq!(of(&much, Some("y".repeat(4000))).await.expect_err(&shown).code(), "54001", "{shown}");
        }
        for little in [
            format!("SELECT a FROM {table} WHERE a = {long} OR a = {long} OR a IN ({texts})"),
            format!("SELECT a || '-' || b || '-' || a FROM {table} ORDER BY concat(a, b)"),
            format!(
                "SELECT CASE a WHEN 'a' THEN {long} WHEN 'b' THEN {long} WHEN 'c' THEN {long} ELSE {long} END FROM {table}"
            ),
            format!("SELECT string_agg(a, ',') FROM {table}"),
            format!("SELECT sum(b) OVER (ORDER BY a) FROM {table}"),
            format!("SELECT length(concat($1, a)) FROM {table}"),
        ] {
            let shown: String = little.chars().take(70).collect();
            assert_eq!(of(&little, Some("y".repeat(4000))).await, Ok(()), "{shown}");
        }
    }
}
