//! SQL: relation functions, their arguments, and the opaque tables they stand for.

mod advise;
mod anonymized_table;
mod arguments;
mod block_on_io;
mod categories;
mod cells;
mod census;
mod choice;
mod composite;
mod computed;
mod csv_separators;
mod disclosure;
mod distinct_calls;
mod earlier_releases;
mod encodings;
mod estimate;
mod flat;
mod followed;
mod footers;
mod function;
mod help;
mod hierarchy_checks;
mod identifiers;
mod information_loss;
mod input;
mod input_plans;
mod lake;
mod method;
mod missing_tables;
mod numbers;
mod opaque;
mod options;
mod parts;
mod perturbed;
mod prepare;
mod profile;
#[cfg(feature = "publication")]
mod publication;
mod publication_terms;
mod query_start;
mod ranges;
mod readers;
mod release_description;
mod release_files;
mod release_ids;
mod repeatable;
mod reposition;
mod roles;
mod session_tables;
mod signature;
mod syntax;
mod verbatim_columns;
mod weight;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableProviderFactory};
use datafusion::common::Result;
#[cfg(feature = "publication")]
use datafusion::common::config::TableOptions;
use datafusion::execution::context::SessionContext;
use datafusion::execution::{FunctionRegistry, SessionStateBuilder};
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::RelationPlanner;

pub(crate) use flat::flat_rows;
pub(crate) use help::signatures;
pub use help::{function_arguments, function_example, function_help, function_overview, function_parameters};
pub use lake::enable_url_table;
pub use missing_tables::NamedFiles;
pub use options::AnonymizeOptions;
pub use readers::{flat_table, is_public_release, register_readers, released_table};
#[cfg(feature = "publication")]
pub use readers::{irregularities, publication_for_readers};
pub use release_files::ReleaseFiles;

use crate::exec::{KeepNan, WholeFiles, cell_function};
use crate::methods::{METHODS, Offered};
use estimate::{estimated, query_accuracy};
use function::{FunctionPlanner, PlainFunction, RelationFunction};
use session_tables::SessionFunction;

fn functions() -> Vec<RelationFunction> {
    let releases = METHODS.iter().filter(|method| method.offered != Offered::Publication);
    let releases = releases.map(|method| RelationFunction { signature: method.signature, table: method::table });
    let own = [
        RelationFunction { signature: &information_loss::SIGNATURE, table: information_loss::table },
        RelationFunction { signature: &estimated::SIGNATURE, table: estimated::table },
        RelationFunction { signature: &flat::SIGNATURE, table: flat::table },
        RelationFunction { signature: &profile::SIGNATURE, table: profile::table },
        RelationFunction { signature: &advise::SIGNATURE, table: advise::table },
        RelationFunction { signature: &query_accuracy::SIGNATURE, table: query_accuracy::table },
        RelationFunction { signature: &census::SIGNATURE, table: census::table },
        RelationFunction { signature: &disclosure::SIGNATURE, table: disclosure::table },
        RelationFunction { signature: &reposition::SIGNATURE, table: reposition::table },
    ];
    let functions = releases.chain(own);
    #[cfg(feature = "publication")]
    let functions = functions.chain(publication::functions());
    functions.collect()
}

/// Returns the functions that plans of ours call by their names, wherever they run.
#[cfg(feature = "distributed")]
pub(crate) fn shipped_functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    scalar_functions()
}

/// Returns the scalar functions that queries and plans of ours call, for publishers and readers.
fn scalar_functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    composite::functions().into_iter().chain([weight::function()])
}

fn planner(functions: Vec<RelationFunction>) -> Arc<dyn RelationPlanner> {
    Arc::new(FunctionPlanner { functions })
}

/// Returns the rule that keeps calls of one function and compared tables apart.
fn distinct_calls(functions: &[RelationFunction]) -> Arc<distinct_calls::DistinctCalls> {
    let mut names: Vec<&'static str> = functions.iter().map(|function| function.signature.name).collect();
    names.push(estimate::ROWS_OF_GROUPS);
    Arc::new(distinct_calls::DistinctCalls { names })
}

fn table_functions(functions: Vec<RelationFunction>) -> Vec<Arc<TableFunction>> {
    let plain = functions.into_iter().map(|function| {
        let name = function.signature.name.to_owned();
        Arc::new(TableFunction::new(name, Arc::new(PlainFunction(function))))
    });
    let session = Arc::new(TableFunction::new(SessionFunction::NAME.to_owned(), Arc::new(SessionFunction)));
    plain.chain([session]).collect()
}

/// Adds what says of a range in a query that it is no value.
fn refuse_ranges(registry: &mut dyn FunctionRegistry) -> Result<()> {
    registry.register_expr_planner(Arc::new(ranges::RefuseRanges))?;
    registry.register_function_rewrite(Arc::new(ranges::RefuseRanges))
}

/// Adds the factories of the formats of `STORED AS`. Whoever has Delta tables already keeps theirs.
fn add_factories(factories: &mut HashMap<String, Arc<dyn TableProviderFactory>>) {
    if let Some(parquet) = factories.get(lake::PARQUET) {
        let careful = lake::NotLoose(Arc::clone(parquet));
        factories.insert(lake::PARQUET.to_owned(), Arc::new(careful));
    }
    #[cfg(feature = "publication")]
    {
        factories.insert(publication::FILE_TYPE.to_owned(), Arc::new(publication::PublicationFactory));
        factories.entry(lake::DELTA_TABLE.to_owned()).or_insert_with(|| Arc::new(lake::DeltaFactory));
    }
}

/// Adds all relation functions and the `anonymize.*` settings to a session. With the feature `publication` it adds
/// `STORED AS PUBLICATION` and `STORED AS DELTATABLE`. `STORED AS PARQUET` no longer takes the folder of a Delta table.
///
/// Turns `datafusion.execution.skip_physical_aggregate_schema_check` on: columns of different releases differ in their metadata, unions
/// keep that of the first by a rule that DataFusion's logical and physical plans do not share, and that check then takes an aggregate
/// over them for a bug.
///
/// # Errors
/// When the session does not take a planner.
pub fn register_all(context: &SessionContext) -> Result<()> {
    let state = context.state_ref();
    {
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.execution.skip_physical_aggregate_schema_check = true;
        let extensions = &mut options.extensions;
        if extensions.get::<AnonymizeOptions>().is_none() {
            extensions.insert(AnonymizeOptions::default());
        }
        #[cfg(feature = "publication")]
        state.register_table_options_extension(publication::AnyOption);
        add_factories(state.table_factories_mut());
    }
    for function in table_functions(functions()) {
        context.register_udtf(function.name(), Arc::clone(function.function()));
    }
    for function in scalar_functions() {
        context.register_udf(function.as_ref().clone());
    }
    context.register_udf(cell_function().as_ref().clone());
    for function in estimate::deviations() {
        context.register_udaf(function.as_ref().clone());
    }
    state.write().register_expr_planner(Arc::new(estimate::DeviationPlanner))?;
    refuse_ranges(&mut *state.write())?;
    context.add_analyzer_rule(Arc::new(estimate::EstimateRule));
    #[cfg(feature = "publication")]
    context.add_analyzer_rule(Arc::new(publication::CheckInserts));
    context.add_analyzer_rule(Arc::new(parts::MarkParts));
    context.add_analyzer_rule(Arc::new(flat::FlattenCsv));
    context.add_analyzer_rule(Arc::new(encodings::EncodeReleases));
    context.add_analyzer_rule(distinct_calls(&functions()));
    context.add_optimizer_rule(Arc::new(release_ids::ReleaseIds));
    // Registered last, so asked first.
    context.register_relation_planner(planner(functions()))
}

/// Returns the same for a session that is still being built. Keeps relation planners and table functions that are there. `COPY` and
/// `INSERT` of files that fail leave what was there ([`WholeFiles`]), which cannot be added to a session that exists.
#[must_use]
pub fn register_all_with(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_default();
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    if config.options().extensions.get::<AnonymizeOptions>().is_none() {
        config.options_mut().extensions.insert(AnonymizeOptions::default());
    }
    let plain = builder.table_functions().get_or_insert_default();
    for function in table_functions(functions()) {
        plain.insert(function.name().to_owned(), function);
    }
    builder.scalar_functions().get_or_insert_default().extend(scalar_functions().chain([cell_function()]));
    builder.aggregate_functions().get_or_insert_default().extend(estimate::deviations());
    let planners = builder.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(estimate::DeviationPlanner));
    planners.insert(0, Arc::new(ranges::RefuseRanges));
    builder.analyzer().get_or_insert_default().add_function_rewrite(Arc::new(ranges::RefuseRanges));
    builder.relation_planners().get_or_insert_default().insert(0, planner(functions()));
    add_factories(builder.table_factories().get_or_insert_default());
    #[cfg(feature = "publication")]
    {
        let config = builder.config().get_or_insert_default().options().as_ref().clone();
        let options = builder.table_options().get_or_insert_with(|| TableOptions::default_from_session_config(&config));
        options.extensions.insert(publication::AnyOption);
    }
    let builder = builder.with_analyzer_rule(Arc::new(estimate::EstimateRule));
    #[cfg(feature = "publication")]
    let builder = builder.with_analyzer_rule(Arc::new(publication::CheckInserts));
    builder
        .with_analyzer_rule(Arc::new(parts::MarkParts))
        .with_analyzer_rule(Arc::new(flat::FlattenCsv))
        .with_analyzer_rule(Arc::new(encodings::EncodeReleases))
        .with_analyzer_rule(distinct_calls(&functions()))
        .with_optimizer_rule(Arc::new(release_ids::ReleaseIds))
        .with_physical_optimizer_rule(Arc::new(WholeFiles))
        .with_physical_optimizer_rule(Arc::new(KeepNan))
}
