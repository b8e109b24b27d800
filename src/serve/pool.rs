//! Processes that wait for statements.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::log;
use super::process::{Process, Recipe};

/// Pause after a process could not be started.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes that a process may have more than at first to be used again.
const GROWN: usize = 96 << 20;

#[derive(Debug, Default)]
struct State {
    idle: Vec<Process>,
    starting: usize,
}

/// Processes that have opened everything. There are always some, or some are being started.
#[derive(Debug)]
pub(super) struct Pool {
    recipe: Recipe,
    /// Processes that are started before they are needed, and those that are kept.
    spare: usize,
    most: usize,
    state: Mutex<State>,
    ready: Notify,
}

impl Pool {
    /// Starts the first process and, while the server begins, some others.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) async fn start(recipe: Recipe, most: usize) -> std::io::Result<Arc<Self>> {
        let first = Process::start(&recipe).await?;
        let state = Mutex::new(State { idle: vec![first], starting: 0 });
        let pool = Arc::new(Self { recipe, spare: most.div_ceil(2), most, state, ready: Notify::new() });
        pool.fill();
        Ok(pool)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts as many processes as are missing.
    fn fill(self: &Arc<Self>) {
        let mut state = self.state();
        while state.idle.len() + state.starting < self.spare {
            state.starting += 1;
            let pool = Arc::clone(self);
            tokio::spawn(async move { pool.add().await });
        }
    }

    async fn add(&self) {
        loop {
            match Process::start(&self.recipe).await {
                Ok(process) => {
                    let mut state = self.state();
                    state.starting -= 1;
                    state.idle.push(process);
                    break;
                }
                Err(error) => {
                    log::line(&format!("no process for statements: {error}"));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        self.ready.notify_one();
    }

    /// Waits for a process.
    pub(super) async fn take(self: &Arc<Self>) -> Process {
        loop {
            let ready = self.ready.notified();
            let found = self.state().idle.pop();
            self.fill();
            if let Some(process) = found {
                return process;
            }
            ready.await;
        }
    }

    /// Takes a process back whose statement has ended. It ends when there are enough others, or when it has kept much memory.
    pub(super) fn give_back(&self, process: Process) {
        let is_small = process.grown() < GROWN;
        let mut state = self.state();
        if is_small && state.idle.len() < self.most {
            state.idle.push(process);
            drop(state);
            self.ready.notify_one();
        }
    }
}
