//! Connection: messages in, answers out, until one of both ends it.

use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures::future::poll_fn;
use futures::{SinkExt, StreamExt};
use pgwire::api::{ClientInfo, NoopHandler, PgWireConnectionState, RandomPidSecretKeyGenerator};
use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{MaybeTls, negotiate_tls, process_error, process_message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::bounds;
use super::engine::Engine;
use super::errors::Failure;
use super::log;
use super::places::Places;
use super::prepared::Prepared;
use super::scram::Exchange;
use super::session::{Session, Sessions};
use super::users::Users;
use super::waiting::Turn;

/// From the connection to the first byte.
const TO_SPEAK: Duration = Duration::from_secs(5);
/// From the first byte to the password.
const TO_BEGIN: Duration = Duration::from_secs(15);
/// For the rest of a message that is too large, and for last words.
const TO_END: Duration = Duration::from_secs(15);
/// Bytes of a message that is read: a statement of the longest, and what stands around it.
const LARGEST: usize = bounds::LONGEST + (64 << 10);
/// Bytes of a message of somebody who has not entered.
const LARGEST_PASSWORD: usize = 10_000;
/// Larger ones are not even waited for.
const ENORMOUS: usize = 64 << 20;

pub(super) struct Server {
    pub engine: Engine,
    pub users: Option<Users>,
    pub tls: Option<TlsAcceptor>,
    pub sessions: Sessions,
    pub places: Places,
    pub keys: RandomPidSecretKeyGenerator,
    pub statement_time: Duration,
    pub idle_time: Duration,
}

pub(super) struct Connection {
    pub server: Arc<Server>,
    pub session: OnceLock<Arc<Session>>,
    /// While a password is asked for.
    pub login: Mutex<Option<Exchange>>,
    /// The fingerprint of the statement that runs.
    pub statement: parking_lot::Mutex<String>,
    /// Until the session begins.
    turn: parking_lot::Mutex<Option<Turn>>,
    itself: Weak<Self>,
}

impl Connection {
    fn new(server: Arc<Server>, turn: Turn) -> Arc<Self> {
        Arc::new_cyclic(|itself| Self {
            server,
            turn: parking_lot::Mutex::new(Some(turn)),
            session: OnceLock::new(),
            login: Mutex::default(),
            statement: parking_lot::Mutex::default(),
            itself: Weak::clone(itself),
        })
    }

    /// Returns a handle for work that outlives a call.
    pub(super) fn itself(&self) -> Option<Arc<Self>> {
        self.itself.upgrade()
    }

    /// Ends the turn of waiting: the session has begun.
    pub(super) fn has_begun(&self) {
        drop(self.turn.lock().take());
    }

    /// Fails when nobody has entered.
    pub(super) fn session(&self) -> Result<&Arc<Session>, Failure> {
        self.session.get().ok_or_else(|| Failure::new("08P01", "no session has begun").fatal())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(session) = self.session.get() {
            self.server.sessions.remove(session);
            log::line(&format!("session {} ends", session.number));
        }
    }
}

enum Next {
    Message(PgWireFrontendMessage),
    /// A message of this kind and length, of which nothing was taken.
    TooLarge(u8, usize),
    Malformed,
    Idle,
    Stop,
    End,
}

pub(super) async fn serve(tcp: TcpStream, server: Arc<Server>, mut stop: watch::Receiver<bool>, turn: Turn) {
    // Nothing is taken: it is the first byte of a message.
    if !matches!(timeout(TO_SPEAK, tcp.peek(&mut [0])).await, Ok(Ok(1))) {
        return;
    }
    turn.speaks();
    let begun = Instant::now() + TO_BEGIN;
    let Ok(Ok(Some(mut socket))) = timeout_at(begun, negotiate_tls::<Prepared>(tcp, server.tls.clone())).await else {
        return;
    };
    if socket.is_secure() && !socket.read_buffer().is_empty() {
        // What somebody in between sent before it was encrypted must not count as sent by the reader.
        return;
    }
    let idle_time = server.idle_time;
    let connection = Connection::new(server, turn);
    let nothing = Arc::new(NoopHandler);
    loop {
        let entered = connection.session.get().is_some();
        let until = if entered { Instant::now() + idle_time } else { begun };
        let message = poll_fn(|context| match socket.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(message))) => Poll::Ready(Next::Message(message)),
            Poll::Ready(Some(Err(_))) => Poll::Ready(Next::Malformed),
            Poll::Ready(None) => Poll::Ready(Next::End),
            Poll::Pending => {
                // The first message has no kind, and is never large.
                let most = match socket.state() {
                    PgWireConnectionState::AwaitingSslRequest | PgWireConnectionState::AwaitingStartup => usize::MAX,
                    _ if entered => LARGEST,
                    _ => LARGEST_PASSWORD,
                };
                match too_large(socket.read_buffer(), most) {
                    Some(_) if !entered => Poll::Ready(Next::Malformed),
                    Some((kind, length)) => Poll::Ready(Next::TooLarge(kind, length)),
                    None => Poll::Pending,
                }
            }
        });
        let next = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => Next::Stop,
            next = timeout_at(until, message) => next.unwrap_or(Next::Idle),
        };
        let (failure, extended) = match next {
            Next::End | Next::Message(PgWireFrontendMessage::Terminate(_)) => break,
            Next::Message(message) => {
                let extended = message.is_extended_query();
                let handler = || Arc::clone(&connection);
                let done = process_message(
                    message,
                    &mut socket,
                    handler(),
                    handler(),
                    handler(),
                    Arc::clone(&nothing),
                    handler(),
                );
                match done.await {
                    Ok(()) => continue,
                    Err(error) => (error, extended),
                }
            }
            Next::TooLarge(kind, length) if length <= ENORMOUS => {
                let rest = discard(socket.read_buffer_mut(), length);
                if !rest.finish(socket.get_mut()).await {
                    break;
                }
                let failure =
                    Failure::new("54000", format!("a message has at most {LARGEST} bytes, and this one {length}"));
                (failure.into(), kind != b'Q')
            }
            Next::TooLarge(..) => (Failure::new("54000", "a message is far too large").fatal().into(), false),
            Next::Malformed => (Failure::new("08P01", "a message is malformed").fatal().into(), false),
            Next::Idle if !entered => break,
            Next::Idle => (Failure::new("57P05", "the session asked nothing for too long").fatal().into(), false),
            Next::Stop => (Failure::shutdown().into(), false),
        };
        let mut info = ErrorInfo::from(failure);
        if connection.session.get().is_none() {
            // Who has not entered does not get another chance by an error.
            "FATAL".clone_into(&mut info.severity);
        }
        if info.is_fatal() {
            // The last word: nothing follows it.
            let _ = timeout(TO_END, socket.send(PgWireBackendMessage::ErrorResponse(info.into()))).await;
            break;
        }
        let told = process_error(&mut socket, PgWireError::UserError(Box::new(info)), extended);
        if !matches!(timeout(TO_END, told).await, Ok(Ok(()))) {
            break;
        }
    }
    let _ = timeout(TO_END, socket.get_mut().shutdown()).await;
}

/// Returns the kind and length of a message that is too large, if one begins.
fn too_large(buffer: &BytesMut, most: usize) -> Option<(u8, usize)> {
    let (&kind, rest) = buffer.split_first()?;
    let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
    (length > most).then_some((kind, length))
}

/// Bytes still to come of a message that is thrown away.
struct Discarded(u64);

/// Throws away what is here of a message, its first byte included.
fn discard(buffer: &mut BytesMut, length: usize) -> Discarded {
    let here = buffer.len().min(length + 1);
    buffer.advance(here);
    Discarded((length + 1 - here) as u64)
}

impl Discarded {
    /// Returns true if all of it came.
    async fn finish(self, io: &mut MaybeTls) -> bool {
        let copied = timeout(TO_END, tokio::io::copy(&mut io.take(self.0), &mut tokio::io::sink())).await;
        matches!(copied, Ok(Ok(copied)) if copied == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_are_seen_at_once() {
        let mut buffer = BytesMut::from(&b"Q\0\0\0"[..]);
        assert_eq!(too_large(&buffer, LARGEST), None);
        buffer.extend_from_slice(b"\x05\0\0");
        assert_eq!(too_large(&buffer, LARGEST), None);
        let mut large = BytesMut::from(&b"Q\x01\0\0\0abc"[..]);
        assert_eq!(too_large(&large, LARGEST), Some((b'Q', 1 << 24)));
        assert_eq!(discard(&mut large, 1 << 24).0, (1 << 24) + 1 - 8);
        assert!(large.is_empty());
    }
}
