//! Tables by name, wherever a session keeps them.
//!
//! DataFusion looks up the tables of a statement before it plans it, and an argument of a function is no table to it. So the planner of calls
//! needs the session. DataFusion gives it to table functions alone: [`SessionFunction`] hands it on. docs/decisions/planning.md says more.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, TableReference, exec_datafusion_err, internal_err, plan_datafusion_err, plan_err};
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::planner::ContextProvider;
use futures::FutureExt;
use futures::future::ready;

use super::block_on_io::block_on_lookup;
use super::missing_tables::missing;
use super::opaque::{OpaqueTable, Relation, Wanted};
use crate::error::unreadable;
use crate::exec::PlanFuture;

/// Marks sessions of readers from elsewhere: whether there is a file of some name is nothing that they are told.
#[derive(Debug)]
pub(super) struct OnlyReaders;

/// The table function that carries the session to the planner of calls.
#[derive(Debug)]
pub(super) struct SessionFunction;

impl SessionFunction {
    /// Name in a session, for nobody to call.
    pub(super) const NAME: &str = "anonymize_session";
}

impl TableFunctionImpl for SessionFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        Ok(Arc::new(OpaqueTable(SessionTable(session_state(args.session())?.clone()))))
    }
}

/// A table without rows that knows the session.
struct SessionTable(SessionState);

impl Relation for SessionTable {
    fn function(&self) -> &str {
        SessionFunction::NAME
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::empty())
    }

    fn plan<'a>(&'a self, _session: &'a dyn Session, _wanted: Wanted<'a>) -> PlanFuture<'a> {
        ready(plan_err!("{} has no rows", SessionFunction::NAME)).boxed()
    }
}

/// Returns the session by way of the planner's context.
/// Fails when the session is not one of DataFusion's own kind.
pub(super) fn session(context: &dyn ContextProvider) -> Result<SessionState> {
    let table = source_as_provider(&context.get_table_function_source(SessionFunction::NAME, Vec::new())?)?;
    match OpaqueTable::<SessionTable>::relation(table.as_ref()) {
        Some(SessionTable(session)) => Ok(session.clone()),
        None => internal_err!("{} is another function", SessionFunction::NAME),
    }
}

/// Returns DataFusion's own kind of session.
pub(super) fn session_state(session: &dyn Session) -> Result<&SessionState> {
    session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
        exec_datafusion_err!(
            "this engine's session cannot look up tables by name; pass the relation as a query in parentheses"
        )
    })
}

pub(super) fn table(session: &dyn Session, reference: &TableReference) -> Result<Arc<dyn TableProvider>> {
    let state = session_state(session)?;
    let schema = state.schema_for_ref(reference.clone())?;
    let name = reference.table().to_owned();
    let found = {
        let schema = Arc::clone(&schema);
        block_on_lookup(move || {
            let (schema, name) = (Arc::clone(&schema), name.clone());
            async move { schema.table(&name).await }
        })
    };
    let found = found.map_err(|error| unreadable(error, reference.table()))?;
    found.ok_or_else(|| match state.config().get_extension::<OnlyReaders>() {
        Some(_) => plan_datafusion_err!("table '{}' not found", reference.table()),
        None => missing(schema.as_ref(), reference),
    })
}
