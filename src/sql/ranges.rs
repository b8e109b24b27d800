//! Ranges in queries: an operator that needs one value is refused with one sentence, which names the column and what to write.
//!
//! Calls of functions fail while the SQL is planned, where nobody is asked; [`about_range`](crate::error::about_range) says of these errors
//! what is said here.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, InSubquery};
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, WindowFunctionDefinition};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::error::range_refused;
use crate::release::{HI, LO};

/// Aggregates that have a type for ranges: two compare structs by their first parts, and so would say something else than they seem to, and one
/// fails when types are coerced.
const REFUSED: [&str; 3] = ["min", "max", "string_agg"];

/// Returns true if values of a type are ranges: structs that begin with `lo` and `hi`.
pub(super) fn is_range(data_type: &DataType) -> bool {
    let DataType::Struct(parts) = data_type else { return false };
    parts.len() >= 2 && parts[0].name() == LO && parts[1].name() == HI
}

/// Refuses operators over columns that are ranges. As a planner it sees operators that have no type, and so would fail earlier; as a rewrite all
/// others, before types are coerced.
#[derive(Debug)]
pub(super) struct RefuseRanges;

impl ExprPlanner for RefuseRanges {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let equality = matches!(expr.op, BinaryOperator::Eq | BinaryOperator::NotEq);
        refuse(&expr.op.to_string(), [&expr.left, &expr.right], equality, schema)?;
        Ok(PlannerResult::Original(expr))
    }
}

impl FunctionRewrite for RefuseRanges {
    fn name(&self) -> &'static str {
        "anonymize_refuse_ranges"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _config: &ConfigOptions) -> Result<Transformed<Expr>> {
        check(&expr, schema)?;
        Ok(Transformed::no(expr))
    }
}

fn check(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::BinaryExpr(binary) => {
            let equality = matches!(
                binary.op,
                Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
            );
            refuse(&binary.op.to_string(), [binary.left.as_ref(), binary.right.as_ref()], equality, schema)
        }
        Expr::Between(between) => {
            let operands = [between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()];
            refuse("BETWEEN", operands, false, schema)
        }
        Expr::Like(like) => refuse("LIKE", [like.expr.as_ref(), like.pattern.as_ref()], false, schema),
        Expr::SimilarTo(like) => refuse("SIMILAR TO", [like.expr.as_ref(), like.pattern.as_ref()], false, schema),
        Expr::InList(list) => refuse("IN", std::iter::once(list.expr.as_ref()).chain(&list.list), true, schema),
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let others_are = subquery.subquery.schema().fields().iter().any(|field| is_range(field.data_type()));
            if others_are { Ok(()) } else { refuse("IN", [expr.as_ref()], false, schema) }
        }
        Expr::Negative(value) => refuse("-", [value.as_ref()], false, schema),
        Expr::Not(value) => refuse("NOT", [value.as_ref()], false, schema),
        Expr::Cast(cast) if !casts_parts(expr, schema) => refuse("CAST", [cast.expr.as_ref()], false, schema),
        Expr::TryCast(cast) if !casts_parts(expr, schema) => refuse("CAST", [cast.expr.as_ref()], false, schema),
        Expr::AggregateFunction(AggregateFunction { func, params }) if REFUSED.contains(&func.name()) => {
            refuse(func.name(), &params.args, false, schema)
        }
        Expr::WindowFunction(window) => match &window.fun {
            WindowFunctionDefinition::AggregateUDF(func) if REFUSED.contains(&func.name()) => {
                refuse(func.name(), &window.params.args, false, schema)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns true if a cast changes the types of a struct's parts.
fn casts_parts(cast: &Expr, schema: &DFSchema) -> bool {
    matches!(cast.get_type(schema), Ok(DataType::Struct(_)))
}

/// Fails when an operand is a column of ranges; where ranges can be told equal, unless all are.
fn refuse<'a>(
    operator: &str,
    operands: impl IntoIterator<Item = &'a Expr>,
    equality: bool,
    schema: &DFSchema,
) -> Result<()> {
    let mut column = None;
    let mut all = true;
    for operand in operands {
        let range = name_of_range(operand, schema);
        all &= range.is_some() || matches!(operand.get_type(schema), Ok(DataType::Struct(_) | DataType::Null));
        column = column.or(range);
    }
    match column {
        Some(column) if !(equality && all) => Err(range_refused(operator, Some(column)).into()),
        _ => Ok(()),
    }
}

/// Returns the name of a column that is a range.
fn name_of_range<'a>(expr: &'a Expr, schema: &DFSchema) -> Option<&'a str> {
    match expr {
        Expr::Column(column) => {
            let field = schema.field_from_column(column).ok()?;
            is_range(field.data_type()).then_some(column.name.as_str())
        }
        Expr::OuterReferenceColumn(field, column) => is_range(field.data_type()).then_some(column.name.as_str()),
        _ => None,
    }
}
