//! A session: DataFusion with our functions, as the shell sets it up.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anonymize_stores::Named;
use datafusion::catalog::MemTable;
use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{GreedyMemoryPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{CreateExternalTable, DdlStatement, LogicalPlan};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;
use datafusion_anonymize::{KeepNan, NamedFiles, ReleaseFiles, WholeFiles, enable_url_table, register_all};
use datafusion_cli::catalog::DynamicObjectStoreCatalog;
use futures::TryStreamExt;
use pyo3::prelude::*;

use crate::capsule;
use crate::errors::raised;
use crate::table::Table;
use crate::wait::{Watch, runtime, wait};

/// Consumers named in the error when memory runs out.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// A session. Statements run when they are given, to the end.
#[pyclass(frozen, module = "datafusion_anonymize._native")]
pub(crate) struct Session {
    context: SessionContext,
    watch: Arc<Watch>,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (memory_limit = None))]
    fn new(memory_limit: Option<usize>) -> PyResult<Self> {
        runtime()?;
        let watch = Arc::new(Watch::default());
        let context = start(&watch, memory_limit).map_err(raised)?;
        Ok(Self { context, watch })
    }

    /// Gives a table a name.
    fn register(&self, name: &str, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let table = capsule::read(data)?;
        let provider = MemTable::try_new(Arc::clone(&table.schema), vec![table.batches]).map_err(raised)?;
        let name = TableReference::bare(name);
        self.context.deregister_table(name.clone()).map_err(raised)?;
        self.context.register_table(name, Arc::new(provider)).map_err(raised)?;
        Ok(())
    }

    /// Takes the name of a table back.
    fn deregister(&self, name: &str) -> PyResult<()> {
        self.context.deregister_table(TableReference::bare(name)).map_err(raised)?;
        Ok(())
    }

    /// Runs a statement. Its rows are what it returns.
    #[pyo3(signature = (query, progress = None))]
    fn sql(&self, py: Python<'_>, query: String, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Table> {
        let context = self.context.clone();
        wait(py, &self.watch, progress, async move {
            let plan = plan(&context, &query).await?;
            run(&context, plan).await
        })
    }

    /// Runs an INSERT into a publication. Returns what it returns, the number of the release that has its rows, and ordinary facts of it. The period
    /// is of this statement alone, and so is what is returned, for others can run beside it.
    #[pyo3(signature = (query, progress = None, period = None))]
    fn insert(
        &self,
        py: Python<'_>,
        query: String,
        progress: Option<&Bound<'_, PyAny>>,
        period: Option<&str>,
    ) -> PyResult<(Table, Option<u64>, Vec<String>)> {
        let mut state = self.context.state();
        if let Some(period) = period {
            state.config_mut().options_mut().set("anonymize.period", period).map_err(raised)?;
        }
        let published = Arc::new(AtomicU64::new(0));
        state.config_mut().set_extension(Arc::new(self.watch.progress(&published)));
        let facts = Arc::new(Mutex::new(Vec::new()));
        state.config_mut().set_extension(Arc::new(self.watch.notices_beside(&facts)));
        let context = SessionContext::new_with_state(state);
        let rows = wait(py, &self.watch, progress, async move {
            let plan = plan(&context, &query).await?;
            run(&context, plan).await
        })?;
        // Releases are numbered from 1.
        let release = published.load(Ordering::Relaxed);
        let facts = std::mem::take(&mut *facts.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((rows, (release > 0).then_some(release), facts))
    }

    /// Names of the columns that a query would return. Reads no rows.
    fn columns(&self, py: Python<'_>, query: String) -> PyResult<Vec<String>> {
        let context = self.context.clone();
        wait(py, &self.watch, None, async move {
            let plan = plan(&context, &query).await?;
            Ok(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
        })
    }

    /// Declares a publication: of a table with the columns of `schema`, or, without it, only for reading.
    #[pyo3(signature = (name, location, options, schema = None))]
    fn publication(
        &self,
        py: Python<'_>,
        name: String,
        location: String,
        options: HashMap<String, String>,
        schema: Option<&Bound<'_, Table>>,
    ) -> PyResult<()> {
        let context = self.context.clone();
        let schema = schema.map(|table| Arc::clone(&table.get().schema));
        wait(py, &self.watch, None, async move {
            let text = |value: &str| format!("'{}'", value.replace('\'', "''"));
            let given = options.iter().map(|(key, value)| format!(", {} {}", text(key), text(value)));
            let statement = format!("LOCATION {}{}", text(&location), given.collect::<String>());
            stores_of(&context, &statement).await?;
            let schema = match schema {
                Some(schema) => DFSchema::try_from(schema)?,
                None => DFSchema::empty(),
            };
            let name = TableReference::bare(name);
            let table = CreateExternalTable::builder(name, location, "PUBLICATION", Arc::new(schema))
                .with_or_replace(true)
                .with_options(options.into_iter().map(|(key, value)| (prefixed(key), value)).collect())
                .build();
            let plan = LogicalPlan::Ddl(DdlStatement::CreateExternalTable(Box::new(table)));
            context.execute_logical_plan(plan).await.map(|_| ())
        })
    }

    /// Returns the notices about statements since the last time.
    fn notices(&self) -> Vec<String> {
        self.watch.notices()
    }
}

/// Adds the prefix to a key, unless it is of stores, which have theirs.
fn prefixed(key: String) -> String {
    if key.contains('.') { key } else { format!("anonymize.{key}") }
}

fn start(watch: &Arc<Watch>, memory_limit: Option<usize>) -> Result<SessionContext> {
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(limit) = memory_limit {
        let pool = TrackConsumersPool::new(GreedyMemoryPool::new(limit), NAMED_CONSUMERS);
        runtime = runtime.with_memory_pool(Arc::new(pool));
    }
    let mut options = ConfigOptions::from_env()?;
    // https://github.com/apache/datafusion/issues/25414, as in the shell.
    options.optimizer.enable_leaf_expression_pushdown = false;
    let (progress, notices) = watch.listeners();
    let config = SessionConfig::from(options)
        .with_information_schema(true)
        .with_extension(Arc::new(progress))
        .with_extension(Arc::new(notices))
        .with_extension(Arc::new(anonymize_stores::Containers::default()));
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime.build_arc()?)
        .with_default_features()
        .with_physical_optimizer_rule(Arc::new(WholeFiles))
        .with_physical_optimizer_rule(Arc::new(KeepNan));
    let context = enable_url_table(SessionContext::new_with_state(state.build()));
    let catalogs = DynamicObjectStoreCatalog::new(Arc::clone(context.state().catalog_list()), context.state_weak_ref());
    context.register_catalog_list(Arc::new(NamedFiles::new(Arc::new(catalogs))));
    register_all(&context)?;
    context.state_ref().write().register_file_format(Arc::new(ReleaseFiles::default()), true)?;
    anonymize_stores::register_options(&context);
    Ok(context)
}

/// Registers object stores for the locations that a statement names.
async fn stores_of(context: &SessionContext, statement: &str) -> Result<()> {
    // What is not even tokens fails when it is planned, with the reason.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, statement).tokenize_with_location() else { return Ok(()) };
    Named::in_statement(&tokens).register(context).await
}

async fn plan(context: &SessionContext, query: &str) -> Result<LogicalPlan> {
    stores_of(context, query).await?;
    context.state().create_logical_plan(query).await
}

async fn run(context: &SessionContext, plan: LogicalPlan) -> Result<Table> {
    let frame = Box::pin(context.execute_logical_plan(plan)).await?;
    let task = Arc::new(frame.task_ctx());
    let plan = Box::pin(frame.create_physical_plan()).await?;
    let stream = execute_stream(plan, task)?;
    let schema = stream.schema();
    let batches = stream.try_collect().await?;
    Table::computed(&schema, batches)
}
