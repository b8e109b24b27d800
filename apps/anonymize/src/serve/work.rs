//! Statements at work, in a process for them: planned, bounded, run and encoded.

use std::ops::ControlFlow;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::BytesMut;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DataFusionError, ParamValues};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as EngineStatement;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use futures::StreamExt;
use parking_lot::Mutex;
use pgwire::api::Type;
use pgwire::api::portal::{Format, Portal};
use pgwire::api::results::FieldInfo;
use pgwire::api::stmt::StoredStatement;
use pgwire::messages::extendedquery::Bind;
use pgwire::types::format::FormatOptions;
use tokio::sync::mpsc;

use super::allowed::Allowed;
use super::engine::{format, statements};
use super::errors::{self, Failure};
use super::expansion::refuse_expansion;
use super::frames::{Described, Frame, Given, LARGEST, Question, Shown, pack};
use super::lengths::refuse_lengths;
use super::pairs::refuse_pairs;
use super::parameters::{Parameter, parameters, values};
use super::rewrite::rewritten;
use super::{functions, log};

/// Bytes of a batch that are encoded and sent at a time.
const PIECE: usize = 1 << 20;

/// Holds what plans and runs, one statement at a time.
pub(super) struct Work {
    state: SessionState,
    parser: PostgresCompatibilityParser,
    most_rows: usize,
    /// The session of the reader who has asked last.
    last: Mutex<Option<(String, SessionContext)>>,
}

impl Work {
    pub(super) fn new(state: SessionState, most_rows: usize) -> Self {
        Self { state, parser: PostgresCompatibilityParser::new(), most_rows, last: Mutex::default() }
    }

    /// Returns the engine's session of a reader, with their name.
    fn context(&self, user: &str) -> SessionContext {
        let mut last = self.last.lock();
        match &*last {
            Some((of, context)) if of == user => context.clone(),
            _ => {
                let context = SessionContext::new_with_state(self.state.clone());
                functions::of_user(&context, user);
                *last = Some((user.to_owned(), context.clone()));
                context
            }
        }
    }

    /// Runs a statement, and sends what comes of it but for the last frame.
    /// Fails with a message for the reader.
    pub(super) async fn run(&self, question: Question, out: &mpsc::Sender<Frame>) -> Result<(), Failure> {
        let Question { user, sql, place, given } = question;
        let context = self.context(&user);
        let Some(Allowed::Query(statement)) = statements(&self.parser, &sql)?.into_iter().nth(place) else {
            return Err(Failure::internal());
        };
        let plan = plan(&context, Statement::clone(&statement)).await?;
        let Some(given) = given else {
            let parameters = parameters(&plan).map_err(errors::failure)?;
            let parameters = parameters.iter().map(|parameter| parameter.wire.oid()).collect();
            let columns = shown(&fields(plan.schema().as_arrow(), &Format::UnifiedText)?);
            let described = Frame::Described(Described { parameters, columns });
            return out.send(described).await.map_err(|_| Failure::cancelled());
        };
        let format = format(&given.columns);
        let plan = with_values(plan, given)?;
        refuse_lengths(&plan)?;
        let (columns, stream) = start(&context, plan, out).await?;
        let fields = Arc::new(fields(&columns, &format)?);
        let sent = out.send(Frame::Columns(shown(&fields))).await;
        sent.map_err(|_| Failure::cancelled())?;
        let mut rows = Rows { stream, fields, left: self.most_rows, most: self.most_rows };
        while let ControlFlow::Continue(batch) = rows.next().await? {
            rows.send(&batch, out).await?;
        }
        Ok(())
    }
}

async fn plan(context: &SessionContext, statement: Statement) -> Result<LogicalPlan, Failure> {
    let state = context.state();
    let statement = EngineStatement::Statement(Box::new(rewritten(statement)));
    let plan = Box::pin(state.statement_to_plan(statement)).await.map_err(told)?;
    // Before anything goes through all of it.
    refuse_expansion(&plan)?;
    // The list of statements is what counts; this is for what it may have overlooked.
    let only_questions = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    only_questions.verify_plan(&plan).map_err(told)?;
    Ok(plan)
}

fn with_values(plan: LogicalPlan, given: Given) -> Result<LogicalPlan, Failure> {
    let known = parameters(&plan).map_err(told)?;
    if known.is_empty() {
        return Ok(plan);
    }
    let values = values_of(&known, given)
        .ok_or_else(|| Failure::new("22P02", "a parameter is not of the type it was said to be"))?;
    plan.replace_params_with_values(&values).map_err(told)
}

fn values_of(known: &[Parameter], given: Given) -> Option<ParamValues> {
    let types = given.types.into_iter().map(|oid| oid.and_then(Type::from_oid)).collect();
    let bytes = |value: Option<String>| match value {
        Some(text) => BASE64_STANDARD.decode(text).ok().map(|bytes| Some(bytes.into())),
        None => Some(None),
    };
    let parameters = given.values.into_iter().map(bytes).collect::<Option<Vec<_>>>()?;
    if parameters.len() != known.len() {
        return None;
    }
    let statement = Arc::new(StoredStatement::new(String::new(), (), types));
    let bind = Bind::new(None, None, given.formats, parameters, given.columns);
    values(&Portal::try_new(&bind, statement).ok()?, known).ok()
}

/// Starts a statement that has no parameters any more.
async fn start(
    context: &SessionContext,
    plan: LogicalPlan,
    out: &mpsc::Sender<Frame>,
) -> Result<(Schema, SendableRecordBatchStream), Failure> {
    let started = async {
        let rows = context.execute_logical_plan(plan).await?;
        let columns = rows.schema().as_arrow().clone();
        let task = Arc::new(rows.task_ctx());
        let plan = rows.create_physical_plan().await?;
        Ok::<_, DataFusionError>((columns, task, plan))
    };
    let (columns, task, plan) = Box::pin(started).await.map_err(told)?;
    if refuse_pairs(&plan)? {
        out.send(Frame::Heavy).await.map_err(|_| Failure::cancelled())?;
    }
    Ok((columns, execute_stream(plan, task).map_err(told)?))
}

/// Returns what a reader is told of an error. Whoever runs the server finds in the log what stores and the operating system say: all else
/// can have values in it.
fn told(error: DataFusionError) -> Failure {
    if let DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) = error.find_root() {
        log::line(&format!("storage: {}", error.find_root().strip_backtrace()));
    }
    errors::failure(error)
}

fn fields(columns: &Schema, format: &Format) -> Result<Vec<FieldInfo>, Failure> {
    if let Format::Individual(formats) = format
        && formats.len() != columns.fields().len()
    {
        return Err(Failure::new("08P01", "there is not one format for each column"));
    }
    let options = Some(Arc::new(FormatOptions::default()));
    arrow_pg::datatypes::arrow_schema_to_pg_fields(columns, format, options).map_err(|_| {
        Failure::new("0A000", "a column is of a type that PostgreSQL does not have").hint("Cast it to text")
    })
}

fn shown(fields: &[FieldInfo]) -> Vec<Shown> {
    fields.iter().map(|field| Shown(field.name().to_owned(), field.datatype().oid())).collect()
}

/// The rows of an answer on their way to the server.
struct Rows {
    stream: SendableRecordBatchStream,
    fields: Arc<Vec<FieldInfo>>,
    left: usize,
    most: usize,
}

impl Rows {
    async fn next(&mut self) -> Result<ControlFlow<(), RecordBatch>, Failure> {
        let Some(batch) = self.stream.next().await else { return Ok(ControlFlow::Break(())) };
        let batch = batch.map_err(told)?;
        if batch.num_rows() > self.left {
            return Err(Failure::new("54000", format!("the answer has more than {} rows", self.most))
                .hint("Add LIMIT, or group; --max-rows of the server allows more"));
        }
        self.left -= batch.num_rows();
        Ok(ControlFlow::Continue(batch))
    }

    /// Sends a batch in pieces: encoded, it takes more.
    async fn send(&mut self, batch: &RecordBatch, out: &mpsc::Sender<Frame>) -> Result<(), Failure> {
        let rows = batch.num_rows();
        let bytes = batch.get_array_memory_size().max(1);
        let each = (rows as u128 * PIECE as u128 / bytes as u128).clamp(1, rows.max(1) as u128) as usize;
        let mut first = 0;
        while first < rows {
            let piece = batch.slice(first, each.min(rows - first));
            first += piece.num_rows();
            let mut packed = BytesMut::new();
            for row in arrow_pg::encode_recordbatch(Arc::clone(&self.fields), piece) {
                let row = row.map_err(|_| {
                    Failure::new("0A000", "a value cannot be sent in the form that was asked for")
                        .hint("Cast it to text")
                })?;
                pack(&mut packed, &row);
                if packed.len() > LARGEST {
                    return Err(Failure::new("54000", format!("a row is too large: {LARGEST} bytes are the most"))
                        .hint("Ask for fewer columns, or for shorter texts"));
                }
            }
            out.send(Frame::Rows(packed)).await.map_err(|_| Failure::cancelled())?;
        }
        Ok(())
    }
}
