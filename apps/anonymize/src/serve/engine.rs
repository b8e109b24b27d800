//! The server's side of statements: they are read here, on threads with deep stacks, and run in processes of their own.

use std::future::Future;
use std::sync::Arc;

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use pgwire::api::Type;
use pgwire::api::portal::Format;
use pgwire::api::results::{FieldInfo, QueryResponse};
use pgwire::error::PgWireError;
use pgwire::messages::data::DataRow;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::allowed::{Allowed, allowed};
use super::errors::Failure;
use super::frames::{Described, Given, Question, Shown};
use super::session::Session;
use super::statement::{Reply, Runner};
use super::{bounds, log};

/// Bytes of a thread's stack: trees are as deep as the statements that the bounds allow.
const STACK: usize = 64 << 20;
const MOST_STATEMENTS: usize = 50;

/// Reads statements, and has them run.
pub(super) struct Engine {
    parser: Arc<PostgresCompatibilityParser>,
    threads: Handle,
    /// Permits of those who read.
    turns: Arc<Semaphore>,
    runner: Arc<Runner>,
}

#[derive(Debug)]
pub(super) struct Read {
    pub fingerprint: String,
    pub statements: Result<Vec<Allowed>, Failure>,
}

struct Stop(AbortHandle);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts threads for statements.
/// Fails when the operating system has none.
pub(super) fn threads() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().thread_name("statements").thread_stack_size(STACK).enable_all().build()
}

/// Returns the statements of a text, if they are SQL and for readers.
/// Fails with the error of the first statement that is not.
pub(super) fn statements(parser: &PostgresCompatibilityParser, sql: &str) -> Result<Vec<Allowed>, Failure> {
    let statements = match asks_catalog(sql) {
        true => parser.parse(sql),
        false => Parser::parse_sql(&PostgreSqlDialect {}, sql),
    };
    let statements = statements.map_err(|error| {
        let text = error.to_string();
        Failure::new("42601", text.strip_prefix("sql parser error: ").unwrap_or(&text))
    })?;
    if statements.len() > MOST_STATEMENTS {
        let message = format!("a message has at most {MOST_STATEMENTS} statements, and this one {}", statements.len());
        return Err(Failure::new("54001", message));
    }
    statements.into_iter().map(allowed).collect()
}

/// Returns true if a text may ask PostgreSQL's catalog, or has no subquery. Other statements with subqueries
/// are read as they are: the rewriting for programs puts NULL in the place of a subquery of a SELECT list that names a column of another table.
fn asks_catalog(sql: &str) -> bool {
    const CATALOG: [&str; 5] = ["pg_", "information_schema", "regclass", "regtype", "regproc"];
    let sql = sql.to_lowercase();
    sql.matches("select").count() < 2 || CATALOG.iter().any(|word| sql.contains(word))
}

impl Engine {
    pub(super) fn new(threads: Handle, runner: Runner) -> Self {
        let turns = Arc::new(Semaphore::new(threads.metrics().num_workers() * 2));
        Self { parser: Arc::new(PostgresCompatibilityParser::new()), threads, turns, runner: Arc::new(runner) }
    }

    /// Returns the statements of a text, if they are SQL and for readers.
    /// Fails when it is too large to be looked at.
    pub(super) fn read(&self, sql: &str) -> BoxFuture<'_, Result<Read, Failure>> {
        let (sql, parser) = (sql.to_owned(), Arc::clone(&self.parser));
        Box::pin(self.work(async move {
            let fingerprint = log::fingerprint(&bounds::tokens(&sql)?);
            Ok(Read { fingerprint, statements: statements(&parser, &sql) })
        }))
    }

    /// Describes the question at a place of a text.
    /// Fails when it cannot be planned.
    pub(super) async fn describe(&self, session: &Session, sql: &str, place: usize) -> Result<Described, Failure> {
        let question = Question { user: session.user.clone(), sql: sql.to_owned(), place, given: None };
        match self.runner.start(session.payer.clone(), question).recv().await {
            Some(Reply::Described(described)) => Ok(described),
            Some(Reply::Failed(failure)) => Err(failure),
            _ => Err(Failure::internal()),
        }
    }

    /// Answers the question at a place of a text, with rows as they come.
    /// Fails when it cannot be planned, or fails before its first row.
    pub(super) async fn answer(
        &self,
        session: &Session,
        sql: &str,
        place: usize,
        given: Given,
    ) -> Result<(QueryResponse, Vec<Shown>), Failure> {
        let format = format(&given.columns);
        let question = Question { user: session.user.clone(), sql: sql.to_owned(), place, given: Some(given) };
        let mut replies = self.runner.start(session.payer.clone(), question);
        let columns = match replies.recv().await {
            Some(Reply::Columns(columns)) => columns,
            Some(Reply::Failed(failure)) => return Err(failure),
            _ => return Err(Failure::internal()),
        };
        let fields = Arc::new(fields(&columns, &format));
        let replies = stream::poll_fn(move |context| replies.poll_recv(context));
        let rows = replies.flat_map(|reply| {
            let rows: Vec<Result<DataRow, PgWireError>> = match reply {
                Reply::Rows(rows) => rows.into_iter().map(Ok).collect(),
                Reply::Failed(failure) => vec![Err(failure.into())],
                Reply::Columns(_) | Reply::Described(_) => vec![Err(Failure::internal().into())],
            };
            stream::iter(rows)
        });
        Ok((QueryResponse::new(fields, rows), columns))
    }

    /// Runs something that computes, when it is its turn. It stops when this future is dropped, as soon as it waits for something.
    async fn work<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Failure::shutdown())?;
        let task = self.threads.spawn(async move {
            let _turn = turn;
            work.await
        });
        let _stop = Stop(task.abort_handle());
        match task.await {
            Ok(done) => done,
            Err(error) if error.is_cancelled() => Err(Failure::cancelled()),
            Err(_) => Err(Failure::internal()),
        }
    }
}

/// Returns the form of columns that codes of a message ask for.
pub(super) fn format(codes: &[i16]) -> Format {
    match codes {
        [] => Format::UnifiedText,
        [one] => Format::from(*one),
        several => Format::Individual(several.to_vec()),
    }
}

/// Returns columns as messages describe them. Types by name are of no interest there.
pub(super) fn fields(columns: &[Shown], format: &Format) -> Vec<FieldInfo> {
    let field = |(place, Shown(name, oid)): (usize, &Shown)| {
        let of = Type::from_oid(*oid).unwrap_or(Type::UNKNOWN);
        FieldInfo::new(name.clone(), None, None, of, format.format_for(place))
    };
    columns.iter().enumerate().map(field).collect()
}
