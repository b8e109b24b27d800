//! Questions that are prepared, bound and run: what drivers send. They pass through the same list as texts do.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{Sink, SinkExt, StreamExt};
use pgwire::api::portal::{Format, Portal, PortalExecutionState};
use pgwire::api::query::{ExtendedQueryHandler, send_execution_response};
use pgwire::api::results::{FieldInfo, Response, Tag};
use pgwire::api::stmt::{QueryParser, StoredStatement};
use pgwire::api::store::{Entry, PortalStore};
use pgwire::api::{ClientInfo, ClientPortalStore, DEFAULT_NAME, PgWireConnectionState, Type};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Execute, Parse, ParseComplete, PortalSuspended, Sync as EndOfTransaction,
    TARGET_TYPE_BYTE_PORTAL,
};
use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, TransactionStatus};

use super::allowed::Allowed;
use super::connection::Connection;
use super::engine::fields;
use super::errors::Failure;
use super::frames::Given;
use super::prepared::{Inner, Prepared, given, refuse_long};
use super::session::Kept;
use super::simple::{command, forget, refuse_after_error, shown};

/// Prepares statements for a connection.
pub(super) struct Preparing(Option<Arc<Connection>>);

#[async_trait]
impl QueryParser for Preparing {
    type Statement = Prepared;

    async fn parse_sql<C>(&self, _client: &C, sql: &str, _types: &[Option<Type>]) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let Some(connection) = &self.0 else { return Err(Failure::shutdown().into()) };
        let (engine, session) = (&connection.server.engine, connection.session()?);
        let read = engine.read(sql).await?;
        connection.fingerprint(&read.fingerprint);
        let mut statements = read.statements?;
        if statements.len() > 1 {
            return Err(Failure::new("42601", "statements are prepared one by one").into());
        }
        let Some(allowed) = statements.pop() else { return Ok(None) };
        let described = match &allowed {
            Allowed::Query(_) => Some(engine.describe(session, sql, 0).await?),
            _ => None,
        };
        Ok(Some(Prepared(Arc::new(Inner { fingerprint: read.fingerprint, allowed, sql: sql.to_owned(), described }))))
    }

    fn get_parameter_types(&self, statement: &Prepared) -> PgWireResult<Vec<Type>> {
        let types = statement.0.described.iter().flat_map(|described| &described.parameters);
        Ok(types.map(|oid| Type::from_oid(*oid).unwrap_or(Type::UNKNOWN)).collect())
    }

    fn get_result_schema(&self, statement: &Prepared, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        let format = format.unwrap_or(&Format::UnifiedText);
        match (&statement.0.described, &statement.0.allowed) {
            (Some(described), _) => {
                refuse_formats(format, described.columns.len(), "columns")?;
                Ok(fields(&described.columns, format))
            }
            (None, Allowed::Show(name)) => {
                refuse_formats(format, 1, "columns")?;
                Ok(vec![shown(name, format)])
            }
            (None, _) => Ok(Vec::new()),
        }
    }
}

/// Fails when there is not one format for each: `pgwire` counts on it.
fn refuse_formats(format: &Format, there: usize, of: &str) -> Result<(), Failure> {
    match format {
        Format::Individual(formats) if formats.len() != there => {
            Err(Failure::new("08P01", format!("there are {} formats for {there} {of}", formats.len())))
        }
        _ => Ok(()),
    }
}

#[async_trait]
impl ExtendedQueryHandler for Connection {
    type Statement = Prepared;
    type QueryParser = Preparing;

    fn query_parser(&self) -> Arc<Preparing> {
        Arc::new(Preparing(self.itself()))
    }

    async fn on_parse<C>(&self, client: &mut C, message: Parse) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = Arc::clone(self.session()?);
        self.fingerprint("");
        let name = message.name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned());
        if !session.has_place(Kept::Statement, &name) {
            return Err(Failure::new("53000", "too much is prepared in this session").hint("DEALLOCATE ALL").into());
        }
        let parsed = self.timed(&session, StoredStatement::parse(&*client, &message, self.query_parser())).await?;
        match parsed {
            Some(statement) => client.portal_store().put_statement(Arc::new(statement)),
            None => client.portal_store().put_empty_statement(&name),
        }
        session.keep(Kept::Statement, &name);
        client.feed(PgWireBackendMessage::ParseComplete(ParseComplete::new())).await?;
        Ok(())
    }

    async fn on_bind<C>(&self, client: &mut C, message: Bind) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = self.session()?;
        let name = message.statement_name.as_deref().unwrap_or(DEFAULT_NAME);
        let portal = message.portal_name.as_deref().unwrap_or(DEFAULT_NAME);
        if !session.has_place(Kept::Portal, portal) {
            let failure = Failure::new("53000", "too many portals are open in this session");
            return Err(failure.hint("Close them, or end the transaction").into());
        }
        let (given, formats) = (message.parameters.len(), message.parameter_format_codes.len());
        let wanted = match client.portal_store().get_statement(name) {
            Some(Entry::Value(statement)) => {
                let wanted = statement.statement.0.takes();
                let mut types = self.query_parser().get_parameter_types(&statement.statement)?;
                for (known, named) in types.iter_mut().zip(&statement.parameter_types) {
                    if let Some(named) = named {
                        known.clone_from(named);
                    }
                }
                refuse_long(&message, &types)?;
                let portal = Portal::try_new(&message, statement)?;
                // What it says of columns is looked at before it is asked for.
                self.query_parser()
                    .get_result_schema(&portal.statement.statement, Some(&portal.result_column_format))?;
                if given == wanted && (formats <= 1 || formats == given) {
                    client.portal_store().put_portal(Arc::new(portal));
                }
                wanted
            }
            Some(Entry::Empty) => {
                client.portal_store().put_empty_portal(portal);
                0
            }
            None => return Err(Failure::new("26000", "there is no such prepared statement").into()),
        };
        if given != wanted || formats > 1 && formats != given {
            let message =
                format!("the statement takes {wanted} parameters; {given} were given, with {formats} formats");
            return Err(Failure::new("08P01", message).into());
        }
        session.keep(Kept::Portal, portal);
        client.feed(PgWireBackendMessage::BindComplete(BindComplete::new())).await?;
        Ok(())
    }

    async fn on_execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = Arc::clone(self.session()?);
        self.timed(&session, self.execute(client, message)).await
    }

    /// Ends portals with their transaction, also with one that nobody has begun in words.
    async fn on_sync<C>(&self, client: &mut C, _message: EndOfTransaction) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let status = client.transaction_status();
        if status == TransactionStatus::Idle {
            client.portal_store().clear_portals();
        } else {
            client.portal_store().rm_portal(DEFAULT_NAME);
        }
        if let Ok(session) = self.session() {
            match status {
                TransactionStatus::Idle => drop(session.forgets_all(Kept::Portal)),
                _ => session.forgets(Kept::Portal, DEFAULT_NAME),
            }
        }
        client.send(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status))).await?;
        Ok(())
    }

    async fn on_close<C>(&self, client: &mut C, message: Close) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        if message.target_type == TARGET_TYPE_BYTE_PORTAL {
            client.portal_store().rm_portal(name);
            self.session()?.forgets(Kept::Portal, name);
        } else {
            client.portal_store().rm_statement(name);
            self.session()?.forgets(Kept::Statement, name);
        }
        client.feed(PgWireBackendMessage::CloseComplete(CloseComplete::new())).await?;
        Ok(())
    }

    async fn do_query<C>(&self, client: &mut C, portal: &Portal<Prepared>, _max_rows: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = self.session()?;
        let statement = &portal.statement.statement.0;
        let format = &portal.result_column_format;
        match &statement.described {
            Some(described) => {
                refuse_after_error(client.transaction_status())?;
                let engine = &self.server.engine;
                let (rows, columns) = engine.answer(session, &statement.sql, 0, bound(portal)).await?;
                // There can be another release than when it was prepared.
                if columns != described.columns {
                    let failure = Failure::new("0A000", "the columns are others than when the statement was prepared");
                    return Err(failure.hint("Prepare it again").into());
                }
                Ok(Response::Query(rows))
            }
            None => {
                forget(client, session, &statement.allowed);
                command(session, &statement.allowed, client.transaction_status(), format)
            }
        }
    }
}

/// Returns what is bound in a portal, as its message had it.
fn bound(portal: &Portal<Prepared>) -> Given {
    let codes = |format: &Format| match format {
        Format::UnifiedText => Vec::new(),
        Format::UnifiedBinary => vec![1],
        Format::Individual(codes) => codes.clone(),
    };
    given(
        &portal.parameters,
        codes(&portal.parameter_format),
        codes(&portal.result_column_format),
        &portal.statement.parameter_types,
    )
}

impl Connection {
    /// Runs a portal, or goes on with it. Rows go out as they come: none are kept for later.
    async fn execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        let portal = match client.portal_store().get_portal(name) {
            Some(Entry::Value(portal)) => portal,
            Some(Entry::Empty) => {
                client.feed(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
                return Ok(());
            }
            None => return Err(Failure::new("34000", "there is no such portal").into()),
        };
        self.fingerprint(&portal.statement.statement.0.fingerprint);
        client.set_state(PgWireConnectionState::QueryInProgress);
        let longest = self.server.statement_time;
        if self.session()?.is_old(Kept::Portal, name, longest) {
            client.portal_store().rm_portal(name);
            self.session()?.forgets(Kept::Portal, name);
            return Err(Failure::timeout(longest, false).into());
        }
        let state = portal.state();
        let mut state = state.lock().await;
        let asks = portal.statement.statement.0.described.is_some();
        match *state {
            PortalExecutionState::Finished if asks => {
                let tag = Tag::new("SELECT").with_rows(0);
                client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
            }
            PortalExecutionState::Finished => {
                return Err(Failure::new("55000", "the portal has run, and runs once").into());
            }
            _ => {}
        }
        if matches!(*state, PortalExecutionState::Initial) {
            let status = client.transaction_status();
            match self.do_query(client, portal.as_ref(), 0).await? {
                Response::Query(rows) => *state = PortalExecutionState::Suspended(rows),
                Response::TransactionStart(tag) => {
                    send_execution_response(client, tag).await?;
                    client.set_transaction_status(status.to_in_transaction_state());
                    *state = PortalExecutionState::Finished;
                }
                Response::TransactionEnd(tag) => {
                    send_execution_response(client, tag).await?;
                    client.set_transaction_status(status.to_idle_state());
                    client.portal_store().clear_portals();
                    self.session()?.forgets_all(Kept::Portal);
                }
                Response::Execution(tag) => {
                    send_execution_response(client, tag).await?;
                    if matches!(portal.statement.statement.0.allowed, Allowed::RollbackTo)
                        && status == TransactionStatus::Error
                    {
                        client.set_transaction_status(TransactionStatus::Transaction);
                    }
                    *state = PortalExecutionState::Finished;
                }
                _ => return Err(Failure::internal().into()),
            }
        }
        let most = usize::try_from(message.max_rows).unwrap_or(0);
        if let PortalExecutionState::Suspended(rows) = &mut *state {
            let mut sent = 0;
            let all = loop {
                if most > 0 && sent == most {
                    break false;
                }
                match rows.data_rows().next().await {
                    Some(Ok(row)) => client.feed(PgWireBackendMessage::DataRow(row)).await?,
                    Some(Err(error)) => {
                        // Who asks again must not take what is left, nothing, for an answer.
                        client.portal_store().rm_portal(name);
                        self.session()?.forgets(Kept::Portal, name);
                        return Err(error);
                    }
                    None => break true,
                }
                sent += 1;
            };
            if all {
                let tag = Tag::new(rows.command_tag()).with_rows(sent);
                *state = PortalExecutionState::Finished;
                client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
            } else {
                client.feed(PgWireBackendMessage::PortalSuspended(PortalSuspended::new())).await?;
            }
        }
        client.set_state(PgWireConnectionState::ReadyForQuery);
        Ok(())
    }
}
