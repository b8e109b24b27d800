//! Session that readers see: theirs are made of it, with its tables.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, exec_err};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{
    KeepNan, flat_table, irregularities, publication_for_readers, register_readers, released_table,
};
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::setup_pg_catalog;

use super::args::{Args, Named};
use super::catalog::Database;
use super::{functions, information};

/// The database that readers connect to, whatever they call it.
pub(super) const DATABASE: &str = "publications";
const SCHEMA: &str = "public";
/// Suffix of the name of a table's flat form.
const FLAT: &str = "_flat";

/// Everything there is.
pub(super) struct Served {
    /// State that sessions are made of.
    pub state: SessionState,
    /// Kinds and names, for the line at the start.
    pub tables: Vec<String>,
    /// Says what is irregular about released tables.
    pub notices: Vec<String>,
}

impl Served {
    /// Opens what is to be served.
    /// Fails when a publication or a release is not there, or a name is taken.
    pub(super) async fn open(args: &Args) -> Result<Self> {
        let disk = args.disk_limit / args.room().all();
        let context = context(args.statement_memory, disk)?;
        let mut served = Self { state: context.state(), tables: Vec::new(), notices: Vec::new() };
        for named in &args.publication {
            let table = opened(&context, named, "publication").await?;
            served.add(&context, named, table, "publication")?;
        }
        for named in &args.release {
            let table = opened(&context, named, "release").await?;
            // The server looks, and its processes need not.
            if args.worker.is_none() {
                let found = irregularities(&context, &table).await?;
                served.notices.extend(found.into_iter().map(|what| format!("release {}: {what}", named.name)));
            }
            served.add(&context, named, table, "release")?;
        }
        information::register(&context, DATABASE)?;
        setup_pg_catalog(&context, DATABASE, EmptyContextProvider).map_err(|error| *error)?;
        functions::register(&context);
        served.state = context.state();
        Ok(served)
    }

    /// Adds a table, and its flat form if it has one.
    fn add(
        &mut self,
        context: &SessionContext,
        named: &Named,
        table: Arc<dyn TableProvider>,
        kind: &str,
    ) -> Result<()> {
        let name = &named.name;
        let flat = flat_table(&table).map_err(|error| error.context(name.clone()))?;
        register(context, name, table)?;
        if let Some(flat) = flat {
            register(context, &format!("{name}{FLAT}"), flat)?;
        }
        self.tables.push(format!("{kind} {name}"));
        Ok(())
    }
}

async fn opened(context: &SessionContext, named: &Named, kind: &str) -> Result<Arc<dyn TableProvider>> {
    let Named { name, location } = named;
    let open = async {
        anonymize_stores::register(context, location).await?;
        match kind {
            "publication" => publication_for_readers(context, location).await,
            _ => released_table(context, location).await,
        }
    };
    open.await.map_err(|error: DataFusionError| error.context(format!("serve: {kind} {name}")))
}

fn register(context: &SessionContext, name: &str, table: Arc<dyn TableProvider>) -> Result<()> {
    if context.table_exist(name)? {
        return exec_err!("serve: there would be two tables {name}; give one of them another name");
    }
    context.register_table(name, table)?;
    Ok(())
}

/// Returns a session with readers' functions and no tables, for one statement at a time.
fn context(memory: usize, disk: usize) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        // There is one that readers may see.
        .with_information_schema(false)
        .with_default_catalog_and_schema(DATABASE, SCHEMA)
        .with_create_default_catalog_and_schema(false);
    let options = config.options_mut();
    // Physical plans have names of files.
    options.explain.logical_plan_only = true;
    // As in the shell, and for its reason.
    options.optimizer.enable_leaf_expression_pushdown = false;
    // What grows from step to step has no bound.
    options.execution.enable_recursive_ctes = false;
    options.execution.time_zone = Some("UTC".to_owned());
    let disk = DiskManagerBuilder::default().with_max_temp_directory_size(disk as u64);
    let pool = Arc::new(GreedyMemoryPool::new(memory));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(disk).build_arc()?;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rule(Arc::new(KeepNan));
    let mut state = state.build();
    // Nothing is created here; what could be would be of files.
    state.table_factories_mut().clear();
    let context = SessionContext::new_with_state(state);
    context.register_catalog(DATABASE, Arc::new(Database::new(SCHEMA)?));
    functions::only_harmless(&context);
    register_readers(&context)?;
    Ok(context)
}
