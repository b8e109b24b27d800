//! Files that list values, read as they are written.
//!
//! The types of a CSV file are guessed from its rows: `018` becomes 18, and `1.50` becomes 1.5. Of a table that is anonymized the guess is the
//! user's to see and to declare. A hierarchy, an update relation, a domain, a prior or facts list values of *that* table, so here a column is a
//! text, and is compared by what is written.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::{ExprSchema, Result};
use datafusion::datasource::listing::{ListingTable, ListingTableConfig};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::logical_plan::{TableScan, Union};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::block_on_io::block_on_io;
use super::signature::Parameter;

/// Metadata of a column that was read as text, whatever its values look like.
const KEY: &str = "anonymize.as_written";

/// Arguments that list values, and their columns that are numbers all the same.
const LISTS: [(&str, &[&str]); 5] = [
    ("hierarchies", &[]),
    (Parameter::UPDATES.name, &["probability"]),
    (Parameter::DOMAIN.name, &[]),
    ("prior", &["share"]),
    ("facts", &["release"]),
];

/// Returns true if a column was read as text because nobody has declared its type.
pub(super) fn is_as_written(field: &Field) -> bool {
    field.metadata().contains_key(KEY)
}

/// Reads the files of an argument as text where their types were guessed. Other arguments, and queries that compute with a guessed type, stay
/// as they are.
/// Fails when the table cannot be made.
pub(super) fn as_written(
    argument: &str,
    plan: LogicalPlan,
    mut session: impl FnMut() -> Result<SessionState>,
) -> Result<LogicalPlan> {
    match LISTS.iter().find(|(name, _)| *name == argument) {
        Some((_, numbers)) => Ok(texts(&plan, numbers, &mut session)?.unwrap_or(plan)),
        None => Ok(plan),
    }
}

/// Returns the same plan over texts; `None` if it reads no such file, or does more than select columns of it, filter by others and append.
fn texts(
    plan: &LogicalPlan,
    numbers: &[&str],
    session: &mut impl FnMut() -> Result<SessionState>,
) -> Result<Option<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) => of_file(scan, numbers, session)?,
        LogicalPlan::SubqueryAlias(alias) => match texts(&alias.input, numbers, session)? {
            Some(below) => Some(LogicalPlanBuilder::from(below).alias(alias.alias.clone())?.build()?),
            None => None,
        },
        LogicalPlan::Projection(projection) => match texts(&projection.input, numbers, session)? {
            Some(below) if projection.expr.iter().all(|expr| is_plain(expr) || is_unchanged(expr, plan, &below)) => {
                Some(LogicalPlanBuilder::from(below).project(projection.expr.clone())?.build()?)
            }
            _ => None,
        },
        LogicalPlan::Filter(filter) => match texts(&filter.input, numbers, session)? {
            Some(below) if is_unchanged(&filter.predicate, plan, &below) => {
                Some(LogicalPlanBuilder::from(below).filter(filter.predicate.clone())?.build()?)
            }
            _ => None,
        },
        LogicalPlan::Union(union) => {
            let inputs = union.inputs.iter().map(|input| texts(input, numbers, session)).collect::<Result<Vec<_>>>()?;
            if inputs.iter().all(Option::is_none) {
                return Ok(None);
            }
            let inputs = inputs.into_iter().zip(&union.inputs);
            let inputs = inputs.map(|(text, input)| text.map_or_else(|| Arc::clone(input), Arc::new)).collect();
            Some(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
        }
        _ => None,
    })
}

fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_plain(&alias.expr),
        expr => matches!(expr, Expr::Column(_)),
    }
}

/// Returns true if no column of an expression over `plan`'s input has another type below.
fn is_unchanged(expr: &Expr, plan: &LogicalPlan, below: &LogicalPlan) -> bool {
    let before = plan.inputs();
    expr.column_refs().into_iter().all(|column| {
        let was = before.first().and_then(|input| input.schema().field_from_column(column).ok());
        let is = below.schema().field_from_column(column).ok();
        was.zip(is).is_some_and(|(was, is)| was.data_type() == is.data_type())
    })
}

/// Scans a CSV file as texts, but for these columns.
fn of_file(
    scan: &TableScan,
    numbers: &[&str],
    session: &mut impl FnMut() -> Result<SessionState>,
) -> Result<Option<LogicalPlan>> {
    let provider = source_as_provider(&scan.source)?;
    if let Some(view) = provider.get_logical_plan() {
        return match texts(&view, numbers, session)? {
            Some(below) if scan.projection.is_none() && scan.filters.is_empty() => {
                Some(LogicalPlanBuilder::from(below).alias(scan.table_name.clone())?.build()).transpose()
            }
            _ => Ok(None),
        };
    }
    let Some(table) = provider.downcast_ref::<ListingTable>() else { return Ok(None) };
    if table.options().format.get_ext() != "csv" || declares_types(table, session) {
        return Ok(None);
    }
    let partitions = &table.options().table_partition_cols;
    let schema = table.schema();
    let in_files = schema.fields().iter().filter(|field| !partitions.iter().any(|(name, _)| name == field.name()));
    let fields = in_files.map(|field| match numbers.contains(&field.name().as_str()) {
        true => Arc::clone(field),
        false => {
            let mark = [(KEY.to_owned(), "true".to_owned())].into();
            Arc::new(Field::new(field.name(), DataType::Utf8, true).with_metadata(mark))
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let config = ListingTableConfig::new_with_multi_paths(table.table_paths().clone());
    let config = config.with_listing_options(table.options().clone()).with_schema(schema);
    let source = provider_as_source(Arc::new(ListingTable::try_new(config)?));
    let (name, projection) = (scan.table_name.clone(), scan.projection.clone());
    let plan = LogicalPlanBuilder::scan_with_filters_fetch(name, source, projection, scan.filters.clone(), scan.fetch)?;
    plan.build().map(Some)
}

/// Returns true if the types of a table come from a statement with columns: `CREATE EXTERNAL TABLE t (zip INT, ..) ..`. A table does not say
/// where it has them from, so types are guessed once more, and compared.
fn declares_types(table: &ListingTable, session: &mut impl FnMut() -> Result<SessionState>) -> bool {
    if table.get_table_definition().is_none() {
        return false;
    }
    let (Ok(session), Some(path)) = (session(), table.table_paths().first()) else { return true };
    let Ok(guessed) = block_on_io(|| table.options().infer_schema(&session, path)) else { return true };
    let schema = table.schema();
    guessed.fields().iter().any(|guess| match schema.field_with_name(guess.name()) {
        Ok(field) => field.data_type() != guess.data_type(),
        Err(_) => true,
    })
}
