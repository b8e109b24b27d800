//! Beginning of a session: TLS where it is needed, a user, a password, and a place.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use futures::{Sink, SinkExt};
use pgwire::api::auth::{
    ServerParameterProvider, StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::{ClientInfo, METADATA_USER, PgWireConnectionState, PidSecretKeyGenerator};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::startup::{Authentication, PasswordMessageFamily, Startup};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use super::connection::Connection;
use super::errors::Failure;
use super::log;
use super::scram::{Exchange, Refused};
use super::session::Session;
use super::settings::{Settings, VERSION};

/// Mechanism by which passwords are asked for.
const MECHANISM: &str = "SCRAM-SHA-256";
/// Bytes of a user's name: it is in the log.
const LONGEST_USER: usize = 128;
/// Delay after a wrong password, so that guessing takes long.
const WRONG_PASSWORD: Duration = Duration::from_millis(500);

/// Parameters that drivers are told when a session begins.
struct Parameters;

impl ServerParameterProvider for Parameters {
    fn server_parameters<C: ClientInfo>(&self, client: &C) -> Option<HashMap<String, String>> {
        let of_client = |key: &str| client.metadata().get(key).cloned().unwrap_or_default();
        let parameters = [
            ("server_version", VERSION.to_owned()),
            ("server_encoding", "UTF8".to_owned()),
            ("client_encoding", "UTF8".to_owned()),
            ("DateStyle", "ISO, MDY".to_owned()),
            ("IntervalStyle", "postgres".to_owned()),
            ("TimeZone", "UTC".to_owned()),
            ("integer_datetimes", "on".to_owned()),
            ("standard_conforming_strings", "on".to_owned()),
            ("is_superuser", "off".to_owned()),
            ("in_hot_standby", "off".to_owned()),
            ("default_transaction_read_only", "on".to_owned()),
            ("application_name", of_client("application_name")),
            ("session_authorization", of_client(METADATA_USER)),
        ];
        Some(parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

#[async_trait]
impl StartupHandler for Connection {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match message {
            PgWireFrontendMessage::Startup(startup) => self.begin(client, &startup).await,
            PgWireFrontendMessage::PasswordMessageFamily(message) => self.password(client, message).await,
            _ => Err(Failure::new("08P01", "this message does not begin a session").fatal().into()),
        }
    }
}

impl Connection {
    async fn begin<C>(&self, client: &mut C, startup: &Startup) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if self.server.tls.is_some() && !client.is_secure() {
            let failure = Failure::new("28000", "connections to this server are encrypted").hint("Use sslmode=require");
            return Err(failure.fatal().into());
        }
        if !matches!(client.state(), PgWireConnectionState::AwaitingStartup) {
            return Err(Failure::new("08P01", "a session begins once").fatal().into());
        }
        protocol_negotiation(client, startup).await?;
        save_startup_parameters_to_metadata(client, startup);
        if startup.parameters.contains_key("replication") {
            return Err(Failure::new("0A000", "there is no replication here").fatal().into());
        }
        if client.metadata().get(METADATA_USER).is_none_or(|user| user.is_empty() || user.len() > LONGEST_USER) {
            return Err(Failure::new("28000", "a session needs the name of a user, and not a long one").fatal().into());
        }
        if self.server.users.is_none() {
            return self.enter(client).await;
        }
        client.set_state(PgWireConnectionState::AuthenticationInProgress);
        client.send(PgWireBackendMessage::Authentication(Authentication::SASL(vec![MECHANISM.to_owned()]))).await?;
        Ok(())
    }

    async fn password<C>(&self, client: &mut C, message: PasswordMessageFamily) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let user = client.metadata().get(METADATA_USER).cloned().unwrap_or_default();
        let in_progress = matches!(client.state(), PgWireConnectionState::AuthenticationInProgress);
        let Some(users) = self.server.users.as_ref().filter(|_| in_progress) else {
            return Err(Failure::new("08P01", "no password was asked for").fatal().into());
        };
        let exchange = self.login.lock().await.take();
        let answer = match exchange {
            None => {
                let first = message.into_sasl_initial_response()?;
                if first.auth_method != MECHANISM {
                    return Err(Failure::new("28000", format!("passwords are asked for by {MECHANISM}"))
                        .fatal()
                        .into());
                }
                let own = STANDARD.encode(rand::random::<[u8; 18]>());
                let data = first.data.unwrap_or_default();
                match Exchange::begin(&data, users.verifier(&user), &own) {
                    Ok((exchange, answer)) => {
                        *self.login.lock().await = Some(exchange);
                        Ok(Authentication::SASLContinue(answer.into()))
                    }
                    Err(refused) => Err(refused),
                }
            }
            Some(exchange) => {
                let last = message.into_sasl_response()?;
                exchange.finish(&last.data).map(|answer| Authentication::SASLFinal(answer.into()))
            }
        };
        match answer {
            Ok(answer @ Authentication::SASLFinal(_)) => {
                client.send(PgWireBackendMessage::Authentication(answer)).await?;
                self.enter(client).await
            }
            Ok(answer) => {
                client.send(PgWireBackendMessage::Authentication(answer)).await?;
                Ok(())
            }
            Err(Refused::Malformed) => Err(Failure::new("08P01", "the password's message is malformed").fatal().into()),
            Err(Refused::Wrong) => {
                tokio::time::sleep(WRONG_PASSWORD).await;
                log::line(&format!("refused user {user:?} from {}: wrong name or password", client.socket_addr()));
                Err(Failure::new("28P01", "name and password do not fit").fatal().into())
            }
        }
    }

    /// Gives a place to somebody who may have one.
    async fn enter<C>(&self, client: &mut C) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let user = client.metadata().get(METADATA_USER).cloned().unwrap_or_default();
        let place = self.server.places.take(&user)?;
        let (number, key) = self.server.keys.generate(client);
        client.set_pid_and_secret_key(number, key.clone());
        let payer = match &self.server.users {
            Some(_) => user.clone(),
            // Names are free: a number is no user's name.
            None => format!("session {number}"),
        };
        let session = Arc::new(Session::new(number, user, payer, place));
        of_startup(&mut session.settings.lock(), client.metadata());
        self.server.sessions.add(&key, &session);
        log::line(&format!("session {number} user {:?} begins from {}", session.user, client.socket_addr()));
        let _ = self.session.set(session);
        self.has_begun();
        finish_authentication(client, &Parameters).await
    }
}

/// Applies settings that came with the first message. Those that readers do not have are no reason to send somebody away.
fn of_startup(settings: &mut Settings, metadata: &HashMap<String, String>) {
    for (name, value) in metadata {
        let name = name.to_ascii_lowercase();
        if !["user", "database", "options"].contains(&name.as_str()) {
            let _ = settings.set(&name, value);
        }
    }
}
