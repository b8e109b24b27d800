//! Ranges as ordinary columns, for files and programs that know no structs: `flat(release)`, and every `COPY` to CSV.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::catalog::TableProvider;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::datasource::ViewTable;
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use super::arguments::Arguments;
use super::options::AnonymizeOptions;
use super::ranges::is_range;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;

/// Sets what errors of a file name, and what they suggest.
const COPY: (&str, &str) = ("COPY", "write a Parquet file (TO '..parquet')");
/// Suggests the same of results that are printed.
const PRINTED: &str = "print JSON (--format json)";

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "flat",
    about: "a release with the ends of ranges as columns, for programs that know no structs",
    refused: &[],
    parameters: &[
        Parameter::required("release", Kind::Release, "'release.parquet'").says("a release: a call, a table, or files")
    ],
};

pub(super) fn table(mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let release = arguments.relation("release")?;
    let columns = flat(SIGNATURE.name, release.schema())?;
    let plan = match columns {
        Some(columns) => LogicalPlanBuilder::from(release).project(columns)?.build()?,
        None => release,
    };
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Text files get flat columns without being asked: they cannot have any others.
#[derive(Debug)]
pub(super) struct FlattenCsv;

impl AnalyzerRule for FlattenCsv {
    fn name(&self) -> &'static str {
        "anonymize_flatten_csv"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let flattened = plan.transform_down(|node| {
            let LogicalPlan::Copy(copy) = node else { return Ok(Transformed::no(node)) };
            if copy.file_type.get_ext() != "csv" {
                return Ok(Transformed::no(LogicalPlan::Copy(copy)));
            }
            let CopyTo { input, output_url, partition_by, file_type, options, .. } = copy;
            let rows = as_text(COPY, Arc::unwrap_or_clone(input))?;
            Ok(rows.update_data(|rows| {
                LogicalPlan::Copy(CopyTo::new(Arc::new(rows), output_url, partition_by, file_type, options))
            }))
        });
        Ok(flattened?.data)
    }
}

/// Converts the rows of a query into rows of a text file: ranges become columns. Errors are of the `format`, such as `csv`.
/// Fails when a column is a list or another struct, and when two columns would have one name.
pub(crate) fn flat_rows(format: &str, plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(as_text((format, PRINTED), plan)?.data)
}

fn as_text(whose: (&str, &str), rows: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let rows = match flat(whose.0, rows.schema())? {
        Some(columns) => Transformed::yes(LogicalPlanBuilder::from(rows).project(columns)?.build()?),
        None => Transformed::no(rows),
    };
    refuse_nested(whose, rows.data.schema())?;
    Ok(rows)
}

/// # Errors
/// When there is a column that is no text and cannot be made one that could be read again: the signatures of the publisher's own view, and the values of
/// a group in releases of `anatomy`.
fn refuse_nested((function, instead): (&str, &str), schema: &DFSchema) -> Result<()> {
    let Some(nested) = schema.fields().iter().find(|field| field.data_type().is_nested()) else { return Ok(()) };
    let name = nested.name();
    Err(refusal!(
        function,
        "column {name} is a list or a struct, which text files cannot hold; {instead}, or leave it out: SELECT * EXCLUDE ({name})"
    ))
}

/// Returns the columns of a release with ranges split into parts (`age_lo`, `age_hi`). `None` if it has no ranges.
pub(super) fn flat(function: &str, schema: &DFSchema) -> Result<Option<Vec<Expr>>> {
    let mut columns: Vec<(String, Expr)> = Vec::new();
    let mut changed = false;
    for (qualifier, field) in schema.iter() {
        let column = Expr::Column(Column::from((qualifier, field)));
        if let Some(parts) = parts(field) {
            changed = true;
            let part = |part: &String| (format!("{}_{part}", field.name()), column.clone().field(part.as_str()));
            columns.extend(parts.iter().map(part));
        } else {
            columns.push((field.name().clone(), column));
        }
    }
    if !changed {
        return Ok(None);
    }
    let mut names: Vec<_> = columns.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let name = twice[0];
        return Err(refusal!(
            function,
            "with ranges as columns, {name} is there twice; rename the other one: SELECT {name} AS .., .."
        ));
    }
    Ok(Some(columns.into_iter().map(|(name, expr)| expr.alias(name)).collect()))
}

/// Returns the names of the parts of a range; `None` for other columns.
fn parts(field: &Field) -> Option<Vec<String>> {
    let DataType::Struct(fields) = field.data_type() else { return None };
    is_range(field.data_type()).then(|| fields.iter().map(|part| part.name().clone()).collect())
}
