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
use super::function::RelationFunction;
use super::options::AnonymizeOptions;
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
use crate::release::{HI, LO};

/// What errors name.
const COPY: &str = "COPY";

/// A release whose ranges are columns.
#[derive(Debug)]
pub(super) struct FlatFunction;

static SIGNATURE: FunctionSignature = FunctionSignature {
    name: "flat",
    parameters: &[Parameter::required("release", Kind::Release, "'release.parquet'")],
};

impl RelationFunction for FlatFunction {
    fn signature(&self) -> &'static FunctionSignature<'static> {
        &SIGNATURE
    }

    fn table(&self, mut arguments: Arguments, _options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
        let release = arguments.relation("release")?;
        let columns = flat(SIGNATURE.name, release.schema())?;
        let plan = match columns {
            Some(columns) => LogicalPlanBuilder::from(release).project(columns)?.build()?,
            None => release,
        };
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
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
            let Some(columns) = flat(COPY, copy.input.schema())? else {
                refuse_nested(copy.input.schema())?;
                return Ok(Transformed::no(LogicalPlan::Copy(copy)));
            };
            let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(copy.input)).project(columns)?.build()?;
            refuse_nested(input.schema())?;
            let copy = CopyTo::new(Arc::new(input), copy.output_url, copy.partition_by, copy.file_type, copy.options);
            Ok(Transformed::yes(LogicalPlan::Copy(copy)))
        });
        Ok(flattened?.data)
    }
}

/// # Errors
/// When there is a column that is no text and cannot be made one that could be read again: the signatures of the publisher's own view, and the values of
/// a group in releases of `anatomy`.
fn refuse_nested(schema: &DFSchema) -> Result<()> {
    let Some(nested) = schema.fields().iter().find(|field| field.data_type().is_nested()) else { return Ok(()) };
    let name = nested.name();
    Err(refusal!(
        COPY,
        "column {name} is a list or a struct, which text files cannot hold; write a Parquet file (TO '..parquet'), or leave it out: \
         SELECT * EXCLUDE ({name})"
    ))
}

/// The columns of a release with every range as one column for each of its parts (`age_lo`, `age_hi`); `None` if it has no ranges.
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

/// Names of the parts of a range.
fn parts(field: &Field) -> Option<Vec<String>> {
    let DataType::Struct(fields) = field.data_type() else { return None };
    let range = fields.len() >= 2 && fields[0].name() == LO && fields[1].name() == HI;
    range.then(|| fields.iter().map(|part| part.name().clone()).collect())
}
