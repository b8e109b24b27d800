//! The readers' side of a session: releases, and estimates from them. What makes releases, reads files by their names or opens a
//! ledger is not there, so nothing has to be forbidden.

use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "publication")]
use datafusion::arrow::array::RecordBatch;
#[cfg(feature = "publication")]
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::context::SessionContext;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::parquet::errors::ParquetError;

use super::estimate::estimated;
use super::flat::{self, flat};
use super::function::RelationFunction;
use super::lake::refuse_loose;
#[cfg(feature = "publication")]
use super::opaque::OpaqueTable;
use super::options::AnonymizeOptions;
#[cfg(feature = "publication")]
use super::publication::{FlatRows, PublicationTable};
use super::release_description::{Described, describe};
use super::session_tables::OnlyReaders;
use super::{distinct_calls, estimate, planner, refuse_ranges, scalar_functions, table_functions};
use crate::error::refusal;
use crate::microdata::Role;
use crate::release::{COMMITMENTS, COUNTERFEIT_MARK, Description, GROUP_ROLES, LABEL, PARTNERS, RING, SIGNATURE};
#[cfg(feature = "publication")]
use crate::risk::Check;

/// Returns the functions that readers call.
fn functions() -> Vec<RelationFunction> {
    let mut functions = vec![
        RelationFunction { signature: &estimated::SIGNATURE, table: estimated::table },
        RelationFunction { signature: &flat::SIGNATURE, table: flat::table },
    ];
    #[cfg(feature = "publication")]
    functions.extend(super::publication::public_functions());
    functions
}

/// Adds to a session what readers of releases need, and nothing else: `estimated(..)`, `flat(..)`, `release(..)`, `releases(..)` and the
/// functions for standard errors and intervals. Tables are those that are registered; names of files lead nowhere, if the session has
/// not enabled them. For tables see [`released_table`], [`flat_table`] and `publication_for_readers`.
///
/// Turns `datafusion.execution.skip_physical_aggregate_schema_check` on, as [`register_all`](crate::register_all) does, beside which it is
/// not to be used.
///
/// # Errors
/// When the session does not take a planner.
pub fn register_readers(context: &SessionContext) -> Result<()> {
    let state = context.state_ref();
    {
        let mut state = state.write();
        let config = state.config_mut();
        config.options_mut().execution.skip_physical_aggregate_schema_check = true;
        config.options_mut().extensions.insert(AnonymizeOptions::default());
        config.set_extension(Arc::new(OnlyReaders));
    }
    for function in table_functions(functions()) {
        context.register_udtf(function.name(), Arc::clone(function.function()));
    }
    for function in scalar_functions() {
        context.register_udf(function.as_ref().clone());
    }
    for function in estimate::deviations() {
        context.register_udaf(function.as_ref().clone());
    }
    state.write().register_expr_planner(Arc::new(estimate::DeviationPlanner))?;
    refuse_ranges(&mut *state.write())?;
    context.add_analyzer_rule(Arc::new(estimate::EstimateRule));
    context.add_analyzer_rule(distinct_calls(&functions()));
    context.register_relation_planner(planner(functions()))
}

/// Returns the public side of the publication at a location, as a table: aggregates over it are estimates from the newest release, and
/// `release(..)` and `releases(..)` take its name. No ledger is looked for.
///
/// # Errors
/// When nothing was published there, or the store fails.
#[cfg(feature = "publication")]
pub async fn publication_for_readers(context: &SessionContext, location: &str) -> Result<Arc<dyn TableProvider>> {
    let public = crate::publication::locate(location)?;
    Ok(Arc::new(PublicationTable::for_reading(public, context.runtime_env()).await?))
}

/// Returns a released table from Parquet: a file, or a folder of files of one release.
///
/// # Errors
/// When it is no release for the world, or cannot be read: a column that says nothing of its making can be anything, and the publisher's
/// view of a release has the people in it.
pub async fn released_table(context: &SessionContext, location: &str) -> Result<Arc<dyn TableProvider>> {
    let state = context.state();
    let location = ListingTableUrl::parse(location)?;
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_file_extension(if location.is_collection() { ".parquet" } else { "" });
    let inferred = options.infer_schema(&state, &location).await;
    let schema = inferred.map_err(|error| match error.find_root() {
        DataFusionError::ParquetError(inner) if !matches!(**inner, ParquetError::External(_)) => refusal!(
            "release",
            "this is no Parquet file, or a damaged one; only Parquet says what its columns are of a release: write it with COPY (SELECT * FROM \
             m_invariant(..)) TO 'release.parquet'"
        ),
        _ => error,
    })?;
    let config = ListingTableConfig::new(location).with_listing_options(options).with_schema(schema);
    let table: Arc<dyn TableProvider> = Arc::new(ListingTable::try_new(config)?);
    let said = as_described(&table, &state)?;
    if !is_public_release(&said) {
        return Err(refusal!(
            "release",
            "this is no release for the world: all of its columns must be as a release has them, without the identifier, {COUNTERFEIT_MARK}, \
             {SIGNATURE}, {LABEL} and {RING}; write one with COPY (SELECT * FROM m_invariant(..)) TO '..', or leave these columns out with \
             SELECT * EXCLUDE (..)"
        ));
    }
    Ok(table)
}

/// Rows of a released table that [`irregularities`] reads.
#[cfg(feature = "publication")]
const LOOKED_AT: usize = 1_000_000;

/// Describes irregularities of a [released table](released_table), as far as the table shows them. These are rows that were
/// left out or added after the release was made, and an order of rows that is not random. Reads a million rows at most, and of
/// a larger table looks at the order only. An order by something that has nothing to do with the released columns looks random.
///
/// # Errors
/// When the table cannot be read.
#[cfg(feature = "publication")]
pub async fn irregularities(context: &SessionContext, table: &Arc<dyn TableProvider>) -> Result<Vec<String>> {
    let mut state = context.state();
    let schema = Arc::new(as_described(table, &state)?);
    // The order of rows is a thing to look at.
    let options = state.config_mut().options_mut();
    options.execution.target_partitions = 1;
    options.optimizer.repartition_file_scans = false;
    let rows = SessionContext::new_with_state(state).read_table(Arc::clone(table))?.limit(0, Some(LOOKED_AT + 1))?;
    let batches = rows.collect().await?;
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let rows = concat_batches(&first.schema(), &batches)?;
    drop(batches);
    let rows = RecordBatch::try_new(schema, rows.columns().to_vec())?;
    let is_whole = rows.num_rows() <= LOOKED_AT;
    // What lacks columns of groups says nothing that could be wrong.
    let Ok(failed) = crate::publication::failed_checks(&rows) else { return Ok(Vec::new()) };
    let is_of_order = |check: &Check| check.name.starts_with(crate::risk::RANDOM_ORDER);
    let (of_order, of_rows): (Vec<Check>, Vec<Check>) = failed.into_iter().partition(is_of_order);
    let told = |checks: Vec<Check>| {
        checks.into_iter().map(|check| format!("{}: {}", check.name, check.figures)).collect::<Vec<_>>().join("; ")
    };
    let mut found = Vec::new();
    if is_whole && !of_rows.is_empty() {
        found.push(format!(
            "rows were left out of it or added to it ({}). Which rows are missing can tell who is a counterfeit, and bounds do not hold; \
             write all rows of the release: COPY (SELECT * FROM ..) TO '..', without WHERE",
            told(of_rows)
        ));
    }
    if !of_order.is_empty() {
        found.push(format!(
            "its rows are not in random order ({}). An order by an identifier or by time tells who is who; write the rows as the release \
             has them: COPY (SELECT * FROM ..) TO '..', without ORDER BY",
            told(of_order)
        ));
    }
    Ok(found)
}

/// Returns the columns with what the files say of them.
fn as_described(table: &Arc<dyn TableProvider>, state: &SessionState) -> Result<Schema> {
    let scan = LogicalPlanBuilder::scan("release", provider_as_source(Arc::clone(table)), None)?.build()?;
    refuse_loose("release", "release", &scan, || Ok(state.clone()))?;
    let Described { fields, .. } = describe("release", &scan, state)?;
    Ok(Schema::new(fields))
}

/// Returns true if a table of these columns is a release that is for everybody: every column says that it is of one release, and none is of the
/// publisher's own view. Metadata of columns must be what was written: DataFusion drops it when it reads Parquet.
pub fn is_public_release(schema: &Schema) -> bool {
    const PRIVATE: [&str; 6] = [COUNTERFEIT_MARK, SIGNATURE, LABEL, RING, PARTNERS, COMMITMENTS];
    // A column says what it is, whatever its name has become.
    let roles = [Role::Quasi, Role::Sensitive, Role::Within, Role::Other, Role::Insensitive].map(Role::name);
    let is_public = |role: &String| roles.contains(&role.as_str()) || GROUP_ROLES.contains(&role.as_str());
    let release = |metadata: &HashMap<String, String>| Description::from_metadata(metadata).map(|of| of.release_id);
    let first = schema.fields().first().and_then(|field| release(field.metadata()));
    first.is_some()
        && schema.fields().iter().all(|field| {
            release(field.metadata()) == first
                && field.metadata().get(Role::KEY).is_some_and(is_public)
                && !PRIVATE.contains(&field.name().as_str())
        })
}

/// Returns the rows of a released table with ranges as columns (`age_lo`, `age_hi`). It takes the newest release of
/// a publication. Programs can show them that know no structs. `None` for a table whose columns are plain already.
///
/// # Errors
/// When a column would be there twice.
pub fn flat_table(table: &Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
    #[cfg(feature = "publication")]
    if let Some(publication) = table.downcast_ref::<PublicationTable>() {
        return Ok(Some(Arc::new(OpaqueTable(FlatRows::of(publication)?))));
    }
    let plan = LogicalPlanBuilder::scan(TableReference::bare("release"), provider_as_source(Arc::clone(table)), None)?;
    let Some(columns) = flat("flat", plan.schema())? else { return Ok(None) };
    Ok(Some(Arc::new(ViewTable::new(plan.project(columns)?.build()?, None))))
}
