//! The order of ordered categories that pandas has written into Parquet files.
//!
//! Of such a column the file says under the key `pandas` that it is ordered, and how many categories it has. What they are stands in the
//! dictionary of the column, in their order, and those that no row has as well. Files that were written by others can have dictionaries in
//! any order, and none of them has that key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::common::metadata::FieldMetadata;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::logical_plan::TableScan;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use serde_json::Value;

use super::block_on_io::block_on_io;
use super::footers::footers_of;
use crate::microdata::ORDER_KEY;

/// Metadata of a file that pandas has written.
const PANDAS: &str = "pandas";

/// Gives columns of a relation the order of their categories, where its files say so. Reads the footers of files, and of such columns the
/// dictionaries.
/// Fails when the projection cannot be made, which is a bug.
pub(super) fn with_orders(plan: LogicalPlan, session: impl FnOnce() -> Result<SessionState>) -> Result<LogicalPlan> {
    let may_be = |field: &Field| is_categorical(field) && !field.metadata().contains_key(ORDER_KEY);
    if !plan.schema().fields().iter().any(|field| may_be(field)) {
        return Ok(plan);
    }
    let Ok(session) = session() else { return Ok(plan) };
    let mut orders = HashMap::new();
    for (place, field) in plan.schema().fields().iter().enumerate().filter(|(_, field)| may_be(field)) {
        if let Some((scan, name)) = origin(&plan, place)
            && let Some(order) = order_of(scan, name, &session)
        {
            orders.insert(field.name().clone(), order);
        }
    }
    if orders.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(qualifier, field)| {
        let column = Expr::Column((qualifier, field).into());
        match orders.get(field.name()) {
            Some(order) => {
                let metadata: HashMap<String, String> = [(ORDER_KEY.to_owned(), order.clone())].into();
                let metadata = Some(FieldMetadata::from(metadata));
                column.alias_qualified_with_metadata(qualifier.cloned(), field.name(), metadata)
            }
            None => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

fn is_categorical(field: &Field) -> bool {
    matches!(field.data_type(), DataType::Dictionary(_, values) if values.is_string())
}

/// Returns the table of a column, and its name there. Only selections of rows are in between.
fn origin(plan: &LogicalPlan, place: usize) -> Option<(&TableScan, &str)> {
    match plan {
        LogicalPlan::TableScan(scan) => Some((scan, scan.projected_schema.field(place).name())),
        LogicalPlan::SubqueryAlias(alias) => origin(&alias.input, place),
        LogicalPlan::Filter(filter) => origin(&filter.input, place),
        LogicalPlan::Sort(sort) => origin(&sort.input, place),
        LogicalPlan::Limit(limit) => origin(&limit.input, place),
        LogicalPlan::Projection(projection) => match projection.expr[place].clone().unalias() {
            Expr::Column(column) => origin(&projection.input, projection.input.schema().index_of_column(&column).ok()?),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the categories of a column of files in their order, as JSON; `None` where not all files say it, and say the same.
fn order_of(scan: &TableScan, column: &str, session: &SessionState) -> Option<String> {
    let table = source_as_provider(&scan.source).ok()?;
    let partitions = &table.downcast_ref::<ListingTable>()?.options().table_partition_cols;
    // What folders are named by is a dictionary as well.
    if partitions.iter().any(|(name, _)| name == column) {
        return None;
    }
    let files = footers_of(table.as_ref(), session).ok()?;
    let numbers: HashSet<Option<usize>> = files.iter().map(|file| number_of_categories(&file.schema, column)).collect();
    let number = match numbers.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(number)] => *number,
        _ => return None,
    };
    let categories = block_on_io(|| categories(&table, column, session)).ok()??;
    (categories.len() == number).then(|| serde_json::to_string(&categories).ok()).flatten()
}

/// Returns how many categories a column has that pandas says are ordered.
fn number_of_categories(schema: &Schema, column: &str) -> Option<usize> {
    let said: Value = serde_json::from_str(schema.metadata().get(PANDAS)?).ok()?;
    let of_column = |said: &&Value| said["field_name"].as_str() == Some(column);
    let said = said["columns"].as_array()?.iter().find(of_column)?;
    let is_ordered = said["pandas_type"] == "categorical" && said["metadata"]["ordered"] == true;
    usize::try_from(said["metadata"]["num_categories"].as_u64().filter(|_| is_ordered)?).ok()
}

/// Returns the dictionary of a column; `None` if there are several, or none.
async fn categories(
    table: &Arc<dyn TableProvider>,
    column: &str,
    session: &SessionState,
) -> Result<Option<Vec<String>>> {
    let place = table.schema().index_of(column)?;
    let plan = table.scan(session, Some(&vec![place]), &[], None).await?;
    let mut batches = execute_stream(plan, session.task_ctx())?;
    let mut found: Option<Vec<String>> = None;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let Some(dictionary) = batch.column(0).as_any_dictionary_opt() else { return Ok(None) };
        let values = cast(dictionary.values(), &DataType::Utf8)?;
        let values: Vec<String> = values.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
        match &found {
            Some(first) if *first != values => return Ok(None),
            Some(_) => {}
            None => found = Some(values),
        }
    }
    Ok(found)
}
