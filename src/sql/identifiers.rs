//! Counts people who are in a table twice or were in an earlier release. The engine does it. People who may be in
//! several cells are not met in any of them, and methods that know of no earlier release do not look for anybody.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};

/// Counts rows, NULLs and repeated values of the first column in one row.
///
/// With an `earlier` relation the row also counts the people whose value is in the first column of that.
pub(super) fn counted(relation: &LogicalPlan, earlier: Option<&LogicalPlan>) -> Result<LogicalPlan> {
    let rows = || column("rows");
    let who = || column("who");
    let zero = || lit(0_i64);
    let mut people = marked(relation, 1)?;
    if let Some(earlier) = earlier {
        people = LogicalPlanBuilder::from(people).union(marked(earlier, 0)?)?.build()?;
    }
    let of_person = [sum(column("here")).alias("rows"), count(lit(1_i64)).alias("entries")];
    let nulls = when(who().is_null(), rows()).otherwise(zero())?;
    let repeats = who().is_not_null().and(rows().gt(zero()));
    let repeated = when(repeats.clone(), rows() - lit(1_i64)).otherwise(zero())?;
    let again = when(repeats.and(column("entries").gt(rows())), lit(1_i64)).otherwise(zero())?;
    let mut sums = vec![
        sum(rows()).alias("all_rows"),
        sum(nulls).alias("nulls"),
        sum(repeated).alias("repeated"),
        sum(again).alias("again"),
    ];
    sums.truncate(if earlier.is_some() { 4 } else { 3 });
    // Of a table without rows, there is no sum.
    let or_none = |name: &&str| {
        let sum = column(name);
        Ok(cast(when(sum.clone().is_null(), zero()).otherwise(sum)?, DataType::Int64).alias(*name))
    };
    let names = ["all_rows", "nulls", "repeated", "again"];
    let columns = names[..sums.len()].iter().map(or_none).collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(people)
        .aggregate([who()], of_person)?
        .aggregate(Vec::<Expr>::new(), sums)?
        .project(columns)?
        .build()
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// Returns the first column, and whether its rows are `here`.
fn marked(relation: &LogicalPlan, here: i64) -> Result<LogicalPlan> {
    let (qualifier, field) = relation.schema().qualified_field(0);
    let id = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    LogicalPlanBuilder::from(relation.clone()).project([id.alias("who"), lit(here).alias("here")])?.build()
}
