//! Questions as plain texts: what psql sends.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures::Sink;
use pgwire::api::cancel::CancelHandler;
use pgwire::api::portal::Format;
use pgwire::api::query::SimpleQueryHandler;
use pgwire::api::results::{DataRowEncoder, FieldInfo, QueryResponse, Response, Tag};
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, Type};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::simplequery::Query;
use tokio::time::{Instant, sleep_until};

use super::allowed::Allowed;
use super::connection::Connection;
use super::errors::Failure;
use super::frames::Given;
use super::log::Line;
use super::session::{Kept, Session};

#[async_trait]
impl CancelHandler for Connection {
    async fn on_cancel_request(&self, request: CancelRequest) {
        self.server.sessions.cancel(request.pid, &request.secret_key);
    }
}

#[async_trait]
impl SimpleQueryHandler for Connection {
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = Arc::clone(self.session()?);
        self.fingerprint("");
        let answer = async {
            if client.transaction_status() == TransactionStatus::Error
                && let Ok(statements) = self.server.engine.read(&query.query).await?.statements
                && matches!(statements.first(), Some(Allowed::RollbackTo))
            {
                // It cannot fail, and what follows it is told how the transaction stands.
                client.set_transaction_status(TransactionStatus::Transaction);
            }
            self._on_query(client, query).await
        };
        self.timed(&session, answer).await
    }

    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let session = self.session()?;
        let read = self.server.engine.read(query).await?;
        self.fingerprint(&read.fingerprint);
        let statements = read.statements?;
        if statements.is_empty() {
            return Ok(vec![Response::EmptyQuery]);
        }
        let mut status = client.transaction_status();
        let mut responses = Vec::new();
        for (place, statement) in statements.into_iter().enumerate() {
            forget(client, session, &statement);
            let response = match statement {
                Allowed::Query(_) => {
                    refuse_after_error(status)?;
                    let (rows, _) = self.server.engine.answer(session, query, place, Given::default()).await?;
                    Response::Query(rows)
                }
                other => command(session, &other, status, &Format::UnifiedText)?,
            };
            status = match &response {
                Response::TransactionStart(_) => status.to_in_transaction_state(),
                Response::TransactionEnd(_) => {
                    client.portal_store().clear_portals();
                    session.forgets_all(Kept::Portal);
                    status.to_idle_state()
                }
                _ => status,
            };
            responses.push(response);
        }
        Ok(responses)
    }
}

impl Connection {
    pub(super) fn fingerprint(&self, fingerprint: &str) {
        fingerprint.clone_into(&mut self.statement.lock());
    }

    /// Runs a statement until it has ended, was cancelled, or has taken too long.
    pub(super) async fn timed<T>(
        &self,
        session: &Arc<Session>,
        statement: impl Future<Output = PgWireResult<T>> + Send,
    ) -> PgWireResult<T> {
        let running = session.begin();
        let (begun, longest) = (Instant::now(), self.server.statement_time);
        let allowed = session.allowed(longest);
        let done = tokio::select! {
            done = statement => done,
            () = running.cancelled() => Err(Failure::cancelled().into()),
            () = sleep_until(begun + allowed) => Err(Failure::timeout(allowed, allowed < longest).into()),
        };
        let failed = match &done {
            Ok(_) => None,
            Err(PgWireError::UserError(info)) => Some(info.code.clone()),
            Err(PgWireError::IoError(_)) => Some("gone".to_owned()),
            Err(_) => Some("08P01".to_owned()),
        };
        let fingerprint = self.statement.lock().clone();
        let (session, user, fingerprint) = (session.number, session.user.as_str(), fingerprint.as_str());
        let milliseconds = begun.elapsed().as_millis();
        Line { session, user, fingerprint, milliseconds, failed: failed.as_deref() }.write();
        done
    }
}

/// Fails when a statement of this transaction has failed.
pub(super) fn refuse_after_error(status: TransactionStatus) -> Result<(), Failure> {
    match status {
        TransactionStatus::Error => {
            Err(Failure::new("25P02", "a statement of this transaction has failed").hint("ROLLBACK ends it"))
        }
        _ => Ok(()),
    }
}

/// Forgets prepared statements, if a statement says so. All that a store forgets at once are the portals.
pub(super) fn forget<C>(client: &C, session: &Session, allowed: &Allowed)
where
    C: ClientPortalStore,
    C::PortalStore: PortalStore,
{
    let names = match allowed {
        Allowed::Deallocate(Some(name)) => {
            session.forgets(Kept::Statement, name);
            vec![name.clone()]
        }
        Allowed::Deallocate(None) => session.forgets_all(Kept::Statement),
        Allowed::Discard => {
            client.portal_store().clear_portals();
            session.forgets_all(Kept::Portal);
            session.forgets_all(Kept::Statement)
        }
        _ => return,
    };
    for name in names {
        client.portal_store().rm_statement(&name);
    }
}

/// Returns the answer to what is no question.
pub(super) fn command(
    session: &Session,
    allowed: &Allowed,
    status: TransactionStatus,
    format: &Format,
) -> PgWireResult<Response> {
    let done = |tag: &str| Response::Execution(Tag::new(tag));
    let mut settings = session.settings.lock();
    Ok(match allowed {
        Allowed::Begin => Response::TransactionStart(Tag::new("BEGIN")),
        Allowed::Commit if status == TransactionStatus::Error => Response::TransactionEnd(Tag::new("ROLLBACK")),
        Allowed::Commit => Response::TransactionEnd(Tag::new("COMMIT")),
        Allowed::Rollback => Response::TransactionEnd(Tag::new("ROLLBACK")),
        Allowed::RollbackTo => done("ROLLBACK"),
        Allowed::Set(name, value) => {
            settings.set(name, value)?;
            done("SET")
        }
        Allowed::Reset(name) => {
            settings.reset(name.as_deref())?;
            done("RESET")
        }
        Allowed::Show(name) => {
            let value = match name.as_str() {
                "session_authorization" => session.user.clone(),
                name => settings.get(name)?.to_owned(),
            };
            Response::Query(row(name, &value, format)?)
        }
        Allowed::Discard => {
            settings.reset(None)?;
            done("DISCARD ALL")
        }
        Allowed::Deallocate(None) => done("DEALLOCATE ALL"),
        Allowed::Deallocate(Some(_)) => done("DEALLOCATE"),
        Allowed::Nothing(tag) => done(tag),
        Allowed::Query(_) => return Err(Failure::internal().into()),
    })
}

/// Returns the column of a setting that is shown.
pub(super) fn shown(name: &str, format: &Format) -> FieldInfo {
    FieldInfo::new(name.to_owned(), None, None, Type::VARCHAR, format.format_for(0))
}

fn row(name: &str, value: &str, format: &Format) -> PgWireResult<QueryResponse> {
    let fields = Arc::new(vec![shown(name, format)]);
    let mut row = DataRowEncoder::new(Arc::clone(&fields));
    row.encode_field(&Some(value))?;
    let row = row.take_row();
    let mut response = QueryResponse::new(fields, futures::stream::once(async move { Ok(row) }));
    response.set_command_tag("SHOW");
    Ok(response)
}
