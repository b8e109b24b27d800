//! Connections that are not sessions yet: few at a time, and of too many the oldest gives way.
//!
//! Somebody who opens connections and says nothing must not keep others out. Who is about to begin a session needs milliseconds for it, so
//! the one that has waited longest is the one to close.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// Connections that may wait.
const MOST: usize = 64;

#[derive(Debug, Default)]
struct All {
    next: u64,
    /// Oldest first.
    waiting: VecDeque<(u64, AbortHandle)>,
}

/// All connections that are not sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<All>>);

impl Waiting {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a connection, which waits for as long as it has its turn.
    pub(super) fn start(&self, connection: impl FnOnce(Turn) -> AbortHandle) {
        // Held until it is on the list: turns end by the list.
        let mut all = self.all();
        let number = all.next;
        all.next += 1;
        if all.waiting.len() >= MOST
            && let Some((_, oldest)) = all.waiting.pop_front()
        {
            oldest.abort();
        }
        let task = connection(Turn { waiting: self.clone(), number });
        all.waiting.push_back((number, task));
    }
}

/// That of one connection. It ends with this, or when a session begins.
#[derive(Debug)]
pub(super) struct Turn {
    waiting: Waiting,
    number: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.waiting.all().waiting.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn the_oldest_gives_way() {
        let (waiting, mut tasks) = (Waiting::default(), JoinSet::new());
        let mut begun = Vec::new();
        for i in 0..MOST + 10 {
            waiting.start(|turn| {
                // The first one becomes a session, and waits no longer.
                let turn = if i == 0 {
                    begun.push(turn);
                    None
                } else {
                    Some(turn)
                };
                tasks.spawn(async move {
                    std::future::pending::<()>().await;
                    drop(turn);
                })
            });
            begun.clear();
        }
        assert_eq!(waiting.all().waiting.len(), MOST);
        assert!(waiting.all().waiting.iter().all(|(number, _)| *number >= 10));
        // Nine were closed, of which the session is none.
        for _ in 0..9 {
            assert!(tasks.join_next().await.is_some_and(|ended| ended.is_err_and(|error| error.is_cancelled())));
        }
        assert_eq!(tasks.len(), MOST + 1);
    }
}
