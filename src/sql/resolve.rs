//! Tables by name, wherever a session keeps them.
//!
//! DataFusion looks up the tables of a statement before it plans it, and an argument of a function is no table to it. So the plain
//! form of one of our functions, reached through the planner's context, asks the session's catalogs if it is called in a way that
//! nobody would.

use std::future::Future;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableFunctionArgs, TableProvider};
use datafusion::common::{Result, ScalarValue, TableReference, exec_datafusion_err, internal_err, plan_datafusion_err};
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, TableSource, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::planner::ContextProvider;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::missing::missing;
use super::opaque::{OpaqueTable, Relation};
use crate::error::unreadable;

/// Marks sessions of readers from elsewhere: whether there is a file of some name is nothing that they are told.
#[derive(Debug)]
pub(super) struct OnlyReaders;

/// The function that is called: one that is always there.
const CARRIER: &str = "estimated";

/// Its first argument, which is of a type that no parameter has.
const BY_NAME: &[u8] = b"anonymize: a table by name";

/// What is asked for by [`source`] or [`session`], if that is what a function is called for: a table, given the parts of its name, of
/// which some may be missing; without any a table that knows the session, and has no rows.
pub(super) fn asked(args: &TableFunctionArgs) -> Option<Result<Arc<dyn TableProvider>>> {
    let [Expr::Literal(ScalarValue::Binary(Some(mark)), _), parts @ ..] = args.exprs() else { return None };
    (mark == BY_NAME).then(|| {
        let part = |expr: &Expr| match expr {
            Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
            _ => None,
        };
        let reference = match parts.iter().map(part).collect::<Option<Vec<_>>>().as_deref() {
            Some([]) => return Ok(Arc::new(OpaqueTable(SessionTable(session_state(args.session())?.clone()))) as _),
            Some([table]) => TableReference::bare(table.as_str()),
            Some([schema, table]) => TableReference::partial(schema.as_str(), table.as_str()),
            Some([catalog, schema, table]) => TableReference::full(catalog.as_str(), schema.as_str(), table.as_str()),
            _ => return internal_err!("a table's name has one to three parts"),
        };
        table(args.session(), &reference)
    })
}

fn ask(context: &dyn ContextProvider, parts: Vec<String>) -> Result<Arc<dyn TableSource>> {
    let mark = Expr::Literal(ScalarValue::Binary(Some(BY_NAME.to_vec())), None);
    let args = std::iter::once(mark).chain(parts.into_iter().map(lit)).collect();
    context.get_table_function_source(CARRIER, args)
}

/// The table's source by way of the planner's context.
pub(super) fn source(context: &dyn ContextProvider, reference: &TableReference) -> Result<Arc<dyn TableSource>> {
    ask(context, reference.to_vec())
}

/// Carries a session from the function that is called to [`session`].
#[derive(Debug)]
struct SessionTable(SessionState);

impl Relation for SessionTable {
    fn function(&self) -> &str {
        CARRIER
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::empty())
    }

    fn plan<'a>(
        &'a self,
        _session: &'a dyn Session,
        _projection: Option<&'a Vec<usize>>,
    ) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
        ready(internal_err!("a session has no rows")).boxed()
    }
}

/// The session by way of the planner's context.
pub(super) fn session(context: &dyn ContextProvider) -> Result<SessionState> {
    let table = source_as_provider(&ask(context, Vec::new())?)?;
    match OpaqueTable::<SessionTable>::relation(table.as_ref()) {
        Some(SessionTable(session)) => Ok(session.clone()),
        None => internal_err!("{CARRIER} is another function"),
    }
}

/// DataFusion's own kind of session.
pub(super) fn session_state(session: &dyn Session) -> Result<&SessionState> {
    session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
        exec_datafusion_err!(
            "this engine's session cannot look up tables by name; pass the relation as a query in parentheses"
        )
    })
}

/// The table of this name in a session.
pub(super) fn table(session: &dyn Session, reference: &TableReference) -> Result<Arc<dyn TableProvider>> {
    let state = session_state(session)?;
    let schema = state.schema_for_ref(reference.clone())?;
    let name = reference.table().to_owned();
    let found = {
        let schema = Arc::clone(&schema);
        wait_for(move || {
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

/// The result of a look-up that is nearly always ready at once, from code that is not async.
fn wait_for<T, F>(start: impl Fn() -> F + Sync) -> Result<T>
where
    T: Send,
    F: Future<Output = Result<T>> + Send,
{
    if let Some(ready) = start().now_or_never() {
        return ready;
    }
    // A remote catalog.
    wait_long_for(start)
}

/// The result of something that reads files, from code that is not async. Never blocks a thread that drives other tasks.
pub(super) fn wait_long_for<T, F>(start: impl Fn() -> F + Sync) -> Result<T>
where
    T: Send,
    F: Future<Output = Result<T>> + Send,
{
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| handle.block_on(start()))
        }
        _ => std::thread::scope(|scope| {
            let helper = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(start())
            });
            helper.join().unwrap_or_else(|_| internal_err!("the look-up of a table panicked"))
        }),
    }
}
