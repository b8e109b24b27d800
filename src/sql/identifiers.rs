//! Who is in a table twice, counted by the engine: people who may be in several cells are not met in any of them.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};

/// One row: rows of the relation, those whose first column is NULL, and those that repeat a value of it.
pub(super) fn counted(relation: &LogicalPlan) -> Result<LogicalPlan> {
    let (qualifier, field) = relation.schema().qualified_field(0);
    let id = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let rows = || Expr::Column(Column::new_unqualified("rows"));
    let who = || Expr::Column(Column::new_unqualified("who"));
    let zero = || lit(0_i64);
    let nulls = when(who().is_null(), rows()).otherwise(zero())?;
    let repeated = when(who().is_null(), zero()).otherwise(rows() - lit(1_i64))?;
    let sums = [sum(rows()).alias("all_rows"), sum(nulls).alias("nulls"), sum(repeated).alias("repeated")];
    // Of a table without rows, there is no sum.
    let or_none = |name: &str| {
        let sum = Expr::Column(Column::new_unqualified(name));
        Ok(cast(when(sum.clone().is_null(), zero()).otherwise(sum)?, DataType::Int64).alias(name))
    };
    let columns = ["all_rows", "nulls", "repeated"].into_iter().map(or_none).collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(relation.clone())
        .project([id.alias("who")])?
        .aggregate([who()], [count(lit(1_i64)).alias("rows")])?
        .aggregate(Vec::<Expr>::new(), sums)?
        .project(columns)?
        .build()
}
