//! A reader's session: who asks, what they have set, and what ends their statements.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pgwire::messages::startup::SecretKey;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::places::Place;
use super::settings::Settings;

/// Prepared statements that a session may keep.
const MOST_STATEMENTS: usize = 1_000;
/// Portals, each of which can have rows of an answer that nobody takes.
const MOST_PORTALS: usize = 16;

/// Kind of thing that a reader has by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kept {
    Statement,
    Portal,
}

pub(super) struct Session {
    pub number: i32,
    pub user: String,
    /// Says who stands for what the session computes: the user, or the session where names are free.
    pub payer: String,
    pub(super) settings: Mutex<Settings>,
    /// Names that were prepared and not forgotten, with their times.
    names: Mutex<HashMap<(Kept, String), Instant>>,
    cancel: Notify,
    running: AtomicBool,
    _place: Place,
}

impl Session {
    pub(super) fn new(number: i32, user: String, payer: String, place: Place) -> Self {
        Self {
            number,
            user,
            payer,
            settings: Mutex::default(),
            names: Mutex::default(),
            cancel: Notify::new(),
            running: AtomicBool::new(false),
            _place: place,
        }
    }

    /// Returns the time that a statement may take.
    pub(super) fn allowed(&self, longest: Duration) -> Duration {
        let own = self.settings.lock().statement_timeout().map(Duration::from_millis);
        own.map_or(longest, |own| own.min(longest))
    }

    /// Returns true if there is place to keep something of a reader by this name.
    pub(super) fn has_place(&self, what: Kept, name: &str) -> bool {
        let (names, key) = (self.names.lock(), (what, name.to_owned()));
        let most = match what {
            Kept::Statement => MOST_STATEMENTS,
            Kept::Portal => MOST_PORTALS,
        };
        names.contains_key(&key) || names.keys().filter(|(kept, _)| *kept == what).count() < most
    }

    /// Notes that something is kept by this name from now on.
    pub(super) fn keep(&self, what: Kept, name: &str) {
        self.names.lock().insert((what, name.to_owned()), Instant::now());
    }

    /// Returns true if it was kept for longer than a statement may take.
    pub(super) fn is_old(&self, what: Kept, name: &str, longest: Duration) -> bool {
        self.names.lock().get(&(what, name.to_owned())).is_some_and(|since| since.elapsed() > longest)
    }

    pub(super) fn forgets(&self, what: Kept, name: &str) {
        self.names.lock().remove(&(what, name.to_owned()));
    }

    /// Forgets everything of a kind, and says what it was called.
    pub(super) fn forgets_all(&self, what: Kept) -> Vec<String> {
        let mut names = self.names.lock();
        let forgotten = names.keys().filter(|(kept, _)| *kept == what).map(|(_, name)| name.clone()).collect();
        names.retain(|(kept, _), _| *kept != what);
        forgotten
    }

    /// Begins a statement, which a cancellation from now on is about.
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.running.store(true, Ordering::SeqCst);
        Running(Arc::clone(self))
    }

    fn cancel(&self) {
        if self.running.load(Ordering::SeqCst) {
            self.cancel.notify_waiters();
        }
    }
}

pub(super) struct Running(Arc<Session>);

impl Running {
    /// Returns when the statement was cancelled.
    pub(super) async fn cancelled(&self) {
        self.0.cancel.notified().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::SeqCst);
    }
}

/// The running sessions, by the secrets with which a client cancels a statement.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<(i32, Vec<u8>), Arc<Session>>>);

impl Sessions {
    pub(super) fn add(&self, key: &SecretKey, session: &Arc<Session>) {
        self.0.lock().insert((session.number, key.to_bytes().to_vec()), Arc::clone(session));
    }

    pub(super) fn remove(&self, session: &Session) {
        self.0.lock().retain(|(number, _), _| *number != session.number);
    }

    pub(super) fn cancel(&self, number: i32, key: &SecretKey) {
        let session = self.0.lock().get(&(number, key.to_bytes().to_vec())).cloned();
        if let Some(session) = session {
            session.cancel();
        }
    }
}
