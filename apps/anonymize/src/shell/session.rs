//! The session: DataFusion with our functions, and what datafusion-cli adds to it.

use std::env;
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::ExplainFormat;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{FailedAudits, KeepNan, Notices, ReleaseFiles, WholeFiles};
use datafusion_anonymize::{NamedFiles, enable_url_table, register_all};
use datafusion_cli::catalog::DynamicObjectStoreCatalog;
use datafusion_cli::functions::ParquetMetadataFunc;
use datafusion_cli::object_storage::instrumented::InstrumentedObjectStoreRegistry;
use datafusion_cli::print_options::PrintOptions;

use super::args::Args;
use super::signals;

pub(crate) async fn start(args: &Args) -> Result<(SessionContext, PrintOptions)> {
    if let Some(path) = &args.data_path {
        env::set_current_dir(path)?;
    }
    let runtime = args.limits.runtime()?;
    let instrumented_registry = Arc::new(InstrumentedObjectStoreRegistry::new());
    let runtime = runtime.with_object_store_registry(Arc::clone(&instrumented_registry) as _).build_arc()?;
    signals::remove_at_end(&runtime.disk_manager);

    let state = SessionStateBuilder::new()
        .with_config(config(args)?)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rule(Arc::new(WholeFiles))
        .with_physical_optimizer_rule(Arc::new(KeepNan));
    #[cfg(feature = "distributed")]
    let state = match args.workers.is_empty() {
        true => state,
        false => super::worker::coordinator(state, &args.workers)?,
    };
    let context = enable_url_table(SessionContext::new_with_state(state.build()));
    context.refresh_catalogs().await?;
    // Files and directories as tables, S3, GCS and HTTP locations.
    let catalogs = DynamicObjectStoreCatalog::new(Arc::clone(context.state().catalog_list()), context.state_weak_ref());
    context.register_catalog_list(Arc::new(NamedFiles::new(Arc::new(catalogs))));
    context.register_udtf("parquet_metadata", Arc::new(ParquetMetadataFunc {}));
    register_all(&context)?;
    context.state_ref().write().register_file_format(Arc::new(ReleaseFiles::default()), true)?;
    anonymize_stores::register_options(&context);

    let print = PrintOptions {
        format: args.format,
        quiet: args.quiet,
        maxrows: args.maxrows,
        color: args.color,
        instrumented_registry,
    };
    Ok((context, print))
}

fn config(args: &Args) -> Result<SessionConfig> {
    let mut options = ConfigOptions::from_env()?;
    if let Some(rows) = args.batch_size {
        options.set("datafusion.execution.batch_size", &rows.to_string())?;
    }
    // What does not fit the memory limit is written to disk.
    if env::var_os("DATAFUSION_EXECUTION_SPILL_COMPRESSION").is_none() {
        options.set("datafusion.execution.spill_compression", "lz4_frame")?;
    }
    // Errors say where they are.
    options.sql_parser.collect_spans = true;
    if env::var_os("DATAFUSION_EXPLAIN_FORMAT").is_none() && !args.on_workers() {
        options.explain.format = ExplainFormat::Tree;
    }
    // Reads a computed column as the table's of the same name where a field of a struct is read beside it, as ends of ranges are:
    // https://github.com/apache/datafusion/issues/25414.
    options.optimizer.enable_leaf_expression_pushdown = false;
    if env::var_os("DATAFUSION_FORMAT_NULL").is_none() {
        options.set("datafusion.format.null", "NULL")?;
    }
    let config = SessionConfig::from(options).with_information_schema(true);
    let config = config.with_extension(Arc::new(FailedAudits::default()));
    // What a script should tell whoever runs it, quiet or not: standard output is for results.
    let config = config.with_extension(Arc::new(Notices::new(|notice| eprintln!("{notice}"))));
    let config = config.with_extension(Arc::new(anonymize_stores::Containers::default()));
    let config = config.with_extension(Arc::new(super::progress::on_stderr()));
    Ok(config)
}
