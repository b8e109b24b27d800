//! Checks that a release is there once: no group has more rows than it says, and the rows of a group agree. Where rows are in no groups, the
//! release is one.
//!
//! Tables that releases were copied into, several or one of them twice, describe themselves as the first; files in a folder likewise. Counts
//! over them are wrong without a sign of it, but the numbers of groups begin anew in every release, so groups get too large there.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};
use datafusion::common::{Column, Result, ScalarValue, Spans};
use datafusion::datasource::source_as_provider;
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::logical_plan::TableScan;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Subquery, Volatility, cast, lit,
};

use crate::error::{refusal, thousands};
use crate::methods::AnyMethod;
use crate::release::{COUNTERFEITS, Description, Form, GROUP_ID, GROUP_SIZE, HI, LO};
use crate::scalars;
use crate::sql::anonymized_table::AnonymizedTable;
use crate::sql::opaque::OpaqueTable;

/// Name of the table in the query that looks at it.
pub(in crate::sql) const ROWS_OF_GROUPS: &str = "rows_of_groups";

/// Returns a condition on a query's table, for its selection: true, or it fails. `None` if there is nothing to
/// compare, or a method makes the rows as they are read, which checks its groups itself.
pub(super) fn intact(function: &'static str, release: &LogicalPlan) -> Result<Option<Expr>> {
    const NAME: &str = ROWS_OF_GROUPS;
    let Some(table) = table_of(release) else { return Ok(None) };
    let provider = source_as_provider(&table.source)?;
    let schema = provider.schema();
    let is_number = |name: &&str| schema.field_with_name(name).is_ok_and(|field| field.data_type().is_integer());
    if provider.is::<OpaqueTable<AnonymizedTable>>() || ![GROUP_SIZE, COUNTERFEITS].iter().all(is_number) {
        return Ok(None);
    }
    let grouped = is_number(&GROUP_ID);
    if !grouped && !is_alone(schema.field_with_name(GROUP_SIZE)?) {
        return Ok(None);
    }
    let rows = LogicalPlanBuilder::scan(NAME, Arc::clone(&table.source), None)?.build()?;
    let column = |name: &str| Expr::Column(Column::new(Some(NAME), name));
    let own = |name: &str| Expr::Column(Column::from_name(name));
    let mut same = vec![column(GROUP_SIZE), column(COUNTERFEITS)];
    // Where there are no groups, ranges are of one row each.
    for field in schema.fields().iter().filter(|_| grouped) {
        let DataType::Struct(ends) = field.data_type() else { continue };
        let ends = ends.iter().filter(|end| [LO, HI].contains(&end.name().as_str()));
        let ends = ends.filter(|end| end.data_type().is_primitive());
        same.extend(ends.map(|end| column(field.name()).field(end.name())));
    }
    // One number for all that rows of a group have in common: least and greatest of each column would take several times as long.
    let same = SameInGroup::function().call(same);
    let aggregates = vec![
        count(lit(1_i64)).alias("rows"),
        max(own(GROUP_SIZE)).alias("size"),
        min(own("same")).alias("least"),
        max(own("same")).alias("greatest"),
    ];
    let wrong = own("rows").gt(cast(own("size"), DataType::Int64)).or(own("least").not_eq(own("greatest")));
    let group = grouped.then(|| column(GROUP_ID));
    let groups = LogicalPlanBuilder::from(rows)
        .project(group.into_iter().chain([column(GROUP_SIZE), same.alias("same")]))?
        .aggregate(grouped.then(|| own(GROUP_ID)), aggregates)?
        .filter(wrong)?
        .aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias("wrong")])?
        .build()?;
    let wrong = Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(groups),
        outer_ref_columns: Vec::new(),
        spans: Spans::new(),
    });
    Ok(Some(Intact::function(function).call(vec![wrong])))
}

/// Returns true if rows are in no groups, and say how many there are.
fn is_alone(field: &Field) -> bool {
    let method =
        Description::from_metadata(field.metadata()).and_then(|description| AnyMethod::described(&description));
    method.is_some_and(|method| method.form() == Form::Rows)
}

/// Returns the table below a query that selects columns and filters rows.
fn table_of(plan: &LogicalPlan) -> Option<&TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => table_of(&alias.input),
        LogicalPlan::Filter(filter) => table_of(&filter.input),
        LogicalPlan::Sort(sort) => table_of(&sort.input),
        LogicalPlan::Projection(projection) => table_of(&projection.input),
        _ => None,
    }
}

/// `same_in_group(columns..)`: rows with the same values have the same number, and others, but for chances of one in 2^64, another one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SameInGroup {
    signature: Signature,
}

impl SameInGroup {
    fn function() -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { signature: Signature::variadic_any(Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for SameInGroup {
    scalars::declared!(self: "same_in_group" => DataType::UInt64);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = scalars::columns(&args.args, args.number_rows)?;
        let mut hashes = vec![0; args.number_rows];
        create_hashes(&columns, &QualityRandomState::with_seed(0), &mut hashes)?;
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from(hashes))))
    }
}

/// `is_intact(wrong)`: true if no group is wrong, else an error.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Intact {
    function: &'static str,
    signature: Signature,
}

impl Intact {
    fn function(function: &'static str) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { function, signature: Signature::any(1, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for Intact {
    scalars::declared!(self: "is_intact" => DataType::Boolean);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut wrong = 0;
        for argument in &args.args {
            let numbers = argument.to_array(args.number_rows)?;
            wrong = numbers.as_primitive::<Int64Type>().iter().flatten().fold(wrong, i64::max);
        }
        if wrong > 0 {
            let message = format!(
                "{} groups of the table have more rows than they say, or rows that disagree: it holds rows of several releases, \
                 or some of them twice, and whatever is counted there is wrong; name one release as it was written",
                thousands(wrong as usize)
            );
            return Err(refusal!(self.function, "{message}"));
        }
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::check::constants_are_columns;

    #[test]
    fn constants_are_taken_as_columns() {
        let values = [ScalarValue::from(5_i64), ScalarValue::from(0_i32), ScalarValue::Date32(None)];
        constants_are_columns(&SameInGroup::function(), &values, &[]);
        constants_are_columns(&Intact::function("estimated"), &[ScalarValue::from(0_i64)], &[]);
    }
}
