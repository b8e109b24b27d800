//! Monitor by which the caller sees a running method, and can stop it.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Grants memory beyond what was reserved when the method started, or refuses.
type Budget = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

/// Hears which phase begins.
type Listener = Box<dyn Fn(&'static str) + Send + Sync>;

/// Shared between a running method and whoever waits for it.
#[derive(Default)]
pub struct Monitor {
    cancelled: AtomicBool,
    budget: Option<Budget>,
    listener: Option<Listener>,
    phases: Mutex<Vec<(&'static str, Duration)>>,
    counts: Mutex<Vec<(&'static str, usize)>>,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("cancelled", &self.cancelled)
            .field("phases", &self.phases)
            .finish_non_exhaustive()
    }
}

impl Monitor {
    /// Makes a monitor that asks for memory beyond the method's working memory in advance.
    pub fn with_budget(budget: impl Fn(usize) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { budget: Some(Box::new(budget)), ..Self::default() }
    }

    /// Returns the monitor, telling somebody of each phase that begins.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Asks for more bytes.
    ///
    /// # Errors
    /// When they are not to be had.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        self.budget.as_ref().map_or(Ok(()), |budget| budget(bytes))
    }

    /// Asks the method to stop at the next opportunity.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns true if the method should stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Checks whether the method should stop; `Err` then.
    ///
    /// # Errors
    /// [`Error::Cancelled`] after [`cancel`](Self::cancel).
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Runs a phase of a method and notes how long it took; times of parts of a table add up.
    ///
    /// # Errors
    /// The phase's, or [`Error::Cancelled`] without running it.
    pub fn phase<T>(&self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check()?;
        if let Some(listener) = &self.listener {
            listener(name);
        }
        let start = Instant::now();
        let result = run();
        let elapsed = start.elapsed();
        let mut phases = self.phases.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match phases.iter_mut().find(|phase| phase.0 == name) {
            Some(phase) => phase.1 += elapsed,
            None => phases.push((name, elapsed)),
        }
        drop(phases);
        self.check()?;
        result
    }

    /// Notes how often something happened that the user may want to know of. Never anything about single rows.
    pub fn count(&self, name: &'static str, times: usize) {
        self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((name, times));
    }

    /// Returns the events that were counted, with their numbers.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Returns the phases so far, in order.
    pub fn phases(&self) -> Vec<(&'static str, Duration)> {
        self.phases.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
