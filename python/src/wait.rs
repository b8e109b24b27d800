//! Waiting for the engine: other threads of Python go on, Ctrl-C is heard, and whoever watches is told how far it is.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use datafusion::common::Result;
use datafusion_anonymize::{Notices, Progress, Step};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::errors::{failed, raised};

/// Time between looks for signals.
const TICK: Duration = Duration::from_millis(20);
/// Time that interrupted work is waited for.
const GRACE: Duration = Duration::from_millis(150);
/// Time of quick work, which shows no progress.
const QUICK: Duration = Duration::from_millis(400);

/// The process that began to use the engine, and the engine's threads.
static RUNTIME: OnceLock<(u32, Runtime)> = OnceLock::new();

/// # Errors
/// In a process that was forked from one with threads, which it does not have: it would wait for them for ever.
pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    if RUNTIME.get().is_none() {
        let made = Builder::new_multi_thread().enable_all().thread_name("anonymize").build()?;
        // Of two threads that come here at once, the second one's is dropped.
        let _ = RUNTIME.set((std::process::id(), made));
    }
    match RUNTIME.get() {
        Some((process, runtime)) if *process == std::process::id() => Ok(runtime),
        _ => Err(failed(
            "this process was forked from one that had used datafusion_anonymize, and has none of its threads; start it \
             with multiprocessing.get_context('spawn') (or 'forkserver')",
        )),
    }
}

/// Messages of a session's queries.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    step: Mutex<Option<Step>>,
    notices: Mutex<Vec<String>>,
}

impl Watch {
    /// Returns the listeners for a session's configuration.
    pub(crate) fn listeners(self: &Arc<Self>) -> (Progress, Notices) {
        (self.progress(&Arc::default()), self.told())
    }

    fn told(self: &Arc<Self>) -> Notices {
        let notices = Arc::clone(self);
        Notices::new(move |notice| notices.note(notice.to_owned()))
    }

    /// Returns what hears the notices of one statement. Ordinary facts go into `facts`.
    pub(crate) fn notices_beside(self: &Arc<Self>, facts: &Arc<Mutex<Vec<String>>>) -> Notices {
        let facts = Arc::clone(facts);
        self.told().with_facts(move |fact| {
            facts.lock().unwrap_or_else(PoisonError::into_inner).push(fact.to_owned());
        })
    }

    /// Returns what is told of the progress of one statement. The number of the release that it publishes goes into `published`.
    pub(crate) fn progress(self: &Arc<Self>, published: &Arc<AtomicU64>) -> Progress {
        let (steps, published) = (Arc::clone(self), Arc::clone(published));
        Progress::new(move |step| {
            match step {
            Step::Published { release } => published.store(release, Ordering::Relaxed),
            Step::Withheld { rows, of } => steps.note(format!(
                "{rows} of {of} rows are withheld from this release, because the new rows were not eligible and on_ineligible is \
                 'withhold'; they stay new for the next one"
            )),
            Step::Done => *steps.step.lock().unwrap_or_else(PoisonError::into_inner) = None,
            step => *steps.step.lock().unwrap_or_else(PoisonError::into_inner) = Some(step),
        }
        })
    }

    fn note(&self, notice: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// Returns the notices since the last time.
    pub(crate) fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns how far it is: in words, and as a share if that is known.
    fn state(&self) -> (String, Option<f64>) {
        let share = |done: usize, of: usize| Some(done as f64 / of.max(1) as f64);
        match *self.step.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Step::Read { rows }) => (format!("{rows} rows read"), None),
            Some(Step::Phase(phase)) => (phase.to_owned(), None),
            Some(Step::Written { rows, of }) => (format!("{rows} of {of} rows written"), share(rows, of)),
            Some(Step::Measured { done, of }) => (format!("{done} of {of} settings measured"), share(done, of)),
            Some(Step::Computing(function)) => (format!("{function}: computing"), None),
            Some(Step::Announcing) => ("publishing".to_owned(), None),
            _ => (String::new(), None),
        }
    }
}

/// Runs `work` to its end on the engine's threads. `progress` is called as (words, share) now and then, and at last with None twice.
///
/// # Errors
/// That of the work. What Python raises meanwhile, such as KeyboardInterrupt: then the work is cancelled.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    watch: &Watch,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    let task = runtime()?.spawn(async move {
        let _ = sender.send(work.await);
    });
    let begin = Instant::now();
    let mut shown = false;
    let end = loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(TICK);
            (receiver, received)
        });
        match received {
            Ok(result) => break result.map_err(raised),
            Err(RecvTimeoutError::Disconnected) => {
                break Err(failed("the work has ended without a result: a bug of datafusion-anonymize"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let heard = py.check_signals().and_then(|()| match progress {
            Some(progress) if begin.elapsed() > QUICK => {
                shown = true;
                progress.call1(watch.state()).map(|_| ())
            }
            _ => Ok(()),
        });
        if let Err(interrupt) = heard {
            task.abort();
            // Its sender goes with it.
            py.detach(move || {
                let _ = receiver.recv_timeout(GRACE);
            });
            break Err(interrupt);
        }
    };
    if let Some(progress) = progress.filter(|_| shown) {
        progress.call1((py.None(), py.None()))?;
    }
    end
}

/// Waits for uncancellable work on a thread of its own, and leaves it behind.
pub(crate) fn wait_blocking<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    runtime()?;
    let (sender, mut receiver) = sync_channel(1);
    std::thread::Builder::new().name("anonymize-read".to_owned()).spawn(move || {
        let _ = sender.send(work());
    })?;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(TICK);
            (receiver, received)
        });
        match received {
            Ok(result) => return result.map_err(raised),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(
                    "reading has ended without a result: a bug of datafusion-anonymize, or of what was read",
                ));
            }
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
    }
}
