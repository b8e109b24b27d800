//! Statements at work: planned and run on threads of their own, with deep stacks, a few at a time, and stopped when nobody waits for
//! them any more.

use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, ParamValues};
use datafusion::execution::context::SQLOptions;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use futures::StreamExt;
use futures::future::BoxFuture;
use pgwire::api::portal::Format;
use pgwire::api::results::{FieldInfo, QueryResponse};
use pgwire::error::PgWireError;
use pgwire::messages::data::DataRow;
use pgwire::types::format::FormatOptions;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use super::allowed::{Allowed, allowed};
use super::closed::Closed;
use super::errors::{Failure, Places};
use super::expansion::refuse_expansion;
use super::limits::SessionPool;
use super::rewrite::rewritten;
use super::served::Served;
use super::{bounds, functions, log};

/// Bytes of a thread's stack: plans are as deep as the statements that the bounds allow.
const STACK: usize = 64 << 20;
/// Statements of one message.
const MOST_STATEMENTS: usize = 50;
/// Pieces of batches that are ready before the reader takes them, and bytes of such a piece.
const READY: usize = 2;
const PIECE: usize = 1 << 20;

/// What plans and runs.
pub(super) struct Engine {
    state: Closed<SessionState>,
    pool: Arc<dyn MemoryPool>,
    places: Places,
    parser: Arc<PostgresCompatibilityParser>,
    workers: Handle,
    /// Who has one computes. Nobody has one who waits for a reader.
    turns: Arc<Semaphore>,
    session_memory: usize,
    most_rows: usize,
}

/// What a message says.
#[derive(Debug)]
pub(super) struct Read {
    pub fingerprint: String,
    pub statements: Result<Vec<Allowed>, Failure>,
}

/// Stops a task that nobody waits for.
struct Stop(AbortHandle);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The threads of statements.
///
/// # Errors
/// When the operating system has none.
pub(super) fn workers() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().thread_name("statements").thread_stack_size(STACK).enable_all().build()
}

impl Engine {
    pub(super) fn new(served: Served, workers: Handle, session_memory: usize, most_rows: usize) -> Self {
        let Served { state, pool, places, .. } = served;
        let turns = Arc::new(Semaphore::new(workers.metrics().num_workers() * 2));
        let parser = Arc::new(PostgresCompatibilityParser::new());
        let state = Closed::new(state);
        Self { state, pool, places, parser, workers, turns, session_memory, most_rows }
    }

    /// The engine's session of a reader: with memory of its own, and its user's name.
    pub(super) fn context(&self, user: &str) -> Result<SessionContext, Failure> {
        let pool = SessionPool::new(Arc::clone(&self.pool), self.session_memory);
        let runtime = RuntimeEnvBuilder::from_runtime_env(self.state.runtime_env())
            .with_memory_pool(Arc::new(pool))
            .build_arc()
            .map_err(|error| self.places.failure(error))?;
        let state =
            SessionStateBuilder::new_from_existing(SessionState::clone(&self.state)).with_runtime_env(runtime).build();
        let context = SessionContext::new_with_state(state);
        functions::of_user(&context, user);
        Ok(context)
    }

    /// The statements of a text, if they are SQL and for readers.
    ///
    /// # Errors
    /// When it is too large to be looked at.
    pub(super) fn read(&self, sql: &str) -> BoxFuture<'_, Result<Read, Failure>> {
        let (sql, parser) = (sql.to_owned(), Arc::clone(&self.parser));
        Box::pin(self.work(async move {
            let fingerprint = log::fingerprint(&bounds::tokens(&sql)?);
            Ok(Read { fingerprint, statements: statements(&parser, &sql) })
        }))
    }

    /// The logical plan of a question.
    pub(super) fn plan<'a>(
        &'a self,
        context: &'a SessionContext,
        statement: &'a Statement,
    ) -> BoxFuture<'a, Result<Closed<LogicalPlan>, Failure>> {
        Box::pin(async move {
            let (state, statement) = (context.state(), Statement::clone(statement));
            let planned = self.work(async move {
                let statement = EngineStatement::Statement(Box::new(rewritten(statement)));
                let plan = async { state.statement_to_plan(statement).await };
                let plan = match plan.await {
                    Ok(plan) => plan,
                    Err(error) => return Ok(Err(error)),
                };
                // Before anything goes through all of it.
                refuse_expansion(&plan)?;
                // The list of statements is what counts; this is for what it may have overlooked.
                let only_questions =
                    SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
                Ok(only_questions.verify_plan(&plan).map(|()| plan))
            });
            planned.await?.map(Closed::new).map_err(|error| self.failure(error))
        })
    }

    /// The answer to a question, as it comes.
    pub(super) fn answer<'a>(
        &'a self,
        context: &'a SessionContext,
        plan: &'a LogicalPlan,
        parameters: Option<ParamValues>,
        format: &'a Format,
    ) -> BoxFuture<'a, Result<QueryResponse, Failure>> {
        Box::pin(async move {
            let (context, plan) = (context.clone(), LogicalPlan::clone(plan));
            let started = self.work(async move {
                let start = async {
                    let plan = match parameters {
                        Some(values) => plan.replace_params_with_values(&values)?,
                        None => plan,
                    };
                    let rows = context.execute_logical_plan(plan).await?;
                    let columns = rows.schema().as_arrow().clone();
                    Ok::<_, DataFusionError>((columns, rows.execute_stream().await?))
                };
                Ok(start.await)
            });
            let (columns, stream) = started.await?.map_err(|error| self.failure(error))?;
            let options = Some(Arc::new(FormatOptions::default()));
            let fields = arrow_pg::datatypes::arrow_schema_to_pg_fields(&columns, format, options).map_err(|_| {
                Failure::new("0A000", "a column is of a type that PostgreSQL does not have").hint("Cast it to text")
            })?;
            let fields = Arc::new(fields);
            let (ready, mut rows) = mpsc::channel(READY);
            let batches = Batches {
                stream,
                fields: Arc::clone(&fields),
                turns: Arc::clone(&self.turns),
                left: self.most_rows,
                most: self.most_rows,
                rest: None,
            };
            let task = self.workers.spawn(batches.send(ready));
            let stop = Stop(task.abort_handle());
            let rows = futures::stream::poll_fn(move |context| {
                // It ends with the rows.
                let _ = &stop;
                rows.poll_recv(context)
            });
            let places = self.places.clone();
            let rows = rows.flat_map(move |batch| {
                let rows: Vec<Result<DataRow, PgWireError>> = match batch {
                    Ok(rows) => rows.into_iter().map(Ok).collect(),
                    Err(Stopped::Engine(error)) => vec![Err(places.failure(*error).into())],
                    Err(Stopped::Told(failure)) => vec![Err(failure.into())],
                };
                futures::stream::iter(rows)
            });
            Ok(QueryResponse::new(fields, rows))
        })
    }

    pub(super) fn failure(&self, error: DataFusionError) -> Failure {
        log_detail(&error);
        self.places.failure(error)
    }

    /// Runs something that computes, when it is its turn. It stops when this future is dropped, as soon as it waits for something.
    async fn work<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Failure::shutdown())?;
        let task = self.workers.spawn(async move {
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

fn statements(parser: &PostgresCompatibilityParser, sql: &str) -> Result<Vec<Allowed>, Failure> {
    let statements = parser.parse(sql).map_err(|error| {
        let text = error.to_string();
        Failure::new("42601", text.strip_prefix("sql parser error: ").unwrap_or(&text))
    })?;
    if statements.len() > MOST_STATEMENTS {
        let message = format!("a message has at most {MOST_STATEMENTS} statements, and this one {}", statements.len());
        return Err(Failure::new("54001", message));
    }
    statements.into_iter().map(allowed).collect()
}

/// What an error is, for whoever runs the server. Only what stores and the operating system say: all else can have values in it.
fn log_detail(error: &DataFusionError) {
    if let DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) = error.find_root() {
        log::line(&format!("storage: {}", error.find_root().strip_backtrace()));
    }
}

/// Why there are no more rows.
enum Stopped {
    Engine(Box<DataFusionError>),
    Told(Failure),
}

/// The rows of an answer on their way to the reader.
struct Batches {
    stream: SendableRecordBatchStream,
    fields: Arc<Vec<FieldInfo>>,
    turns: Arc<Semaphore>,
    left: usize,
    most: usize,
    /// What is left of the batch that was computed last.
    rest: Option<RecordBatch>,
}

impl Batches {
    async fn send(mut self, ready: mpsc::Sender<Result<Vec<DataRow>, Stopped>>) {
        loop {
            let next = self.next().await;
            let ControlFlow::Continue(rows) = next else { return };
            let last = rows.is_err();
            if ready.send(rows).await.is_err() || last {
                return;
            }
        }
    }

    /// The next batch, computed and encoded; waiting for the reader comes after it.
    async fn next(&mut self) -> ControlFlow<(), Result<Vec<DataRow>, Stopped>> {
        let turns = Arc::clone(&self.turns);
        let Ok(_turn) = turns.acquire().await else { return ControlFlow::Break(()) };
        if let Some(rest) = self.rest.take() {
            return ControlFlow::Continue(self.piece(rest));
        }
        let batch = match self.stream.next().await {
            Some(Ok(batch)) => batch,
            Some(Err(error)) => {
                log_detail(&error);
                return ControlFlow::Continue(Err(Stopped::Engine(Box::new(error))));
            }
            None => return ControlFlow::Break(()),
        };
        if batch.num_rows() > self.left {
            let failure = Failure::new("54000", format!("the answer has more than {} rows", self.most))
                .hint("Add LIMIT, or group; --max-rows of the server allows more");
            return ControlFlow::Continue(Err(Stopped::Told(failure)));
        }
        self.left -= batch.num_rows();
        ControlFlow::Continue(self.piece(batch))
    }

    /// The first rows of a batch, encoded; the others wait as they are, which takes less.
    fn piece(&mut self, batch: RecordBatch) -> Result<Vec<DataRow>, Stopped> {
        let rows = batch.num_rows();
        let bytes = batch.get_array_memory_size().max(1);
        let first = (rows as u128 * PIECE as u128 / bytes as u128).clamp(1, rows.max(1) as u128) as usize;
        let piece = if first < rows {
            self.rest = Some(batch.slice(first, rows - first));
            batch.slice(0, first)
        } else {
            batch
        };
        let encoded = arrow_pg::encode_recordbatch(Arc::clone(&self.fields), piece).collect::<Result<Vec<_>, _>>();
        encoded.map_err(|_| {
            Stopped::Told(
                Failure::new("0A000", "a value cannot be sent in the form that was asked for").hint("Cast it to text"),
            )
        })
    }
}
