//! Processes that wait for statements.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::log;
use super::process::{Process, Recipe};

/// Pause after a process could not be started.
const PAUSE: Duration = Duration::from_secs(1);
/// Time for a process to rest after its statement was stopped. It may compute little in as much time then.
const REST: Duration = Duration::from_millis(100);
const AT_REST: Duration = Duration::from_millis(20);
/// Bytes that a process may have more than at first to be used again.
const GROWN: usize = 96 << 20;

#[derive(Debug, Default)]
struct State {
    idle: Vec<Process>,
    starting: usize,
    /// Tasks that start processes, and that wait until one has come to rest.
    tasks: JoinSet<()>,
}

impl State {
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(task);
    }
}

/// Processes that have opened everything. There are always some, or some are being started.
#[derive(Debug)]
pub(super) struct Pool {
    recipe: Recipe,
    /// Processes that are started before they are needed, and those that are kept.
    spare: usize,
    most: usize,
    /// Processes that are left to readers who have computed next to nothing.
    kept: usize,
    state: Mutex<State>,
    ready: Notify,
}

impl Pool {
    /// Starts processes for as many statements at a time. It waits for the first of them.
    /// Fails when one of those does not start.
    pub(super) async fn start(recipe: Recipe, most: usize, kept: usize) -> std::io::Result<Arc<Self>> {
        let first = (0..=kept.min(1)).map(|_| Process::start(&recipe));
        let idle = try_join_all(first).await?;
        let (state, ready) = (Mutex::new(State { idle, ..State::default() }), Notify::new());
        let pool = Arc::new(Self { recipe, spare: most.div_ceil(2) + kept, most, kept: kept.min(1), state, ready });
        pool.fill();
        Ok(pool)
    }

    /// Starts as many processes as are missing.
    fn fill(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while state.idle.len() + state.starting < self.spare {
            state.starting += 1;
            let pool = Arc::clone(self);
            state.spawn(async move { pool.add().await });
        }
    }

    async fn add(&self) {
        loop {
            match Process::start(&self.recipe).await {
                Ok(process) => {
                    let mut state = self.state.lock();
                    state.starting -= 1;
                    state.idle.push(process);
                    break;
                }
                Err(error) => {
                    log::line(&format!("no process for statements: {error}"));
                    sleep(PAUSE).await;
                }
            }
        }
        self.ready.notify_waiters();
    }

    /// Waits for a process. The last one is for light readers only.
    pub(super) async fn take(self: &Arc<Self>, is_light: bool) -> Process {
        let kept = if is_light { 0 } else { self.kept };
        loop {
            let mut ready = pin!(self.ready.notified());
            // From now on it hears of processes, also of those that come before it waits.
            ready.as_mut().enable();
            let found = {
                let mut state = self.state.lock();
                if state.idle.len() > kept { state.idle.pop() } else { None }
            };
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
        let mut state = self.state.lock();
        if is_small && state.idle.len() < self.most {
            state.idle.push(process);
            drop(state);
            self.ready.notify_waiters();
        }
    }

    /// Takes a process back whose statement was stopped, when it has come to rest.
    pub(super) fn give_back_later(self: &Arc<Self>, process: Process) {
        let pool = Arc::clone(self);
        self.state.lock().spawn(async move {
            sleep(REST).await;
            let before = process.used().computed;
            sleep(REST).await;
            if process.used().computed.saturating_sub(before) < AT_REST {
                pool.give_back(process);
            }
        });
    }
}
