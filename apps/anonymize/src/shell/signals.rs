//! Signals that ask the process to end.
//!
//! A thread of its own waits for them, with a runtime of its own: statements can keep all threads of the main one busy, an accidental cross join
//! among them, and then no task of that runtime runs.

#[cfg(unix)]
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak, mpsc};
#[cfg(unix)]
use std::task::Poll;
use std::time::Duration;

use datafusion::execution::disk_manager::DiskManager;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, oneshot};

/// Time that a job has to give up what it has begun.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// Time to remove spilled files before the process ends all the same.
const CLEANING: Duration = Duration::from_secs(5);

/// Says where sessions of this process spill.
static SPILLED: Mutex<Vec<Weak<DiskManager>>> = Mutex::new(Vec::new());

/// Makes the end of the process remove the files that a session spills. This counts if the session has not ended.
pub(super) fn remove_at_end(disk: &Arc<DiskManager>) {
    let mut spilled = SPILLED.lock();
    spilled.retain(|disk| disk.strong_count() > 0);
    spilled.push(Arc::downgrade(disk));
}

/// Waits for SIGINT, SIGTERM or SIGHUP, and returns the exit status of shells for it. The process ends with it
/// after `grace`, or at the next signal, whatever its threads do then.
pub(crate) async fn told_to_end(grace: Duration) -> u8 {
    let (tell, told) = oneshot::channel();
    let watch = async move {
        let mut signals = Signals::listen();
        let status = signals.next().await;
        // Nobody waits any more where the job has just come to its end.
        let _ = tell.send(status);
        tokio::time::timeout(grace, signals.next()).await.unwrap_or(status)
    };
    // Without a thread for it, signals end the process by themselves.
    let _ = on_a_thread(move |runtime| end(runtime.block_on(watch)));
    match told.await {
        Ok(status) => status,
        Err(_) => std::future::pending().await,
    }
}

/// Does nothing at signals from now on: the process that has started this one is told as well, and ends it.
pub(crate) fn leave_to_parent() {
    let _ = on_a_thread(|runtime| {
        runtime.block_on(async {
            let mut signals = Signals::listen();
            loop {
                signals.next().await;
            }
        });
    });
}

#[derive(Debug, Default)]
pub(super) struct Interrupts {
    /// An interrupt that no statement has heard of yet.
    pending: AtomicBool,
    told: Notify,
}

impl Interrupts {
    /// Listens from now on. An interrupt that comes while the one before was not heard ends the process: the statement keeps its thread busy. So do
    /// the other signals.
    pub(super) fn start() -> Arc<Self> {
        const INTERRUPTED: u8 = 128 + 2;
        let interrupts = Arc::new(Self::default());
        let here = Arc::clone(&interrupts);
        let _ = on_a_thread(move |runtime| {
            let status = runtime.block_on(async {
                let mut signals = Signals::listen();
                loop {
                    let status = signals.next().await;
                    if status != INTERRUPTED || here.pending.swap(true, Ordering::Relaxed) {
                        return status;
                    }
                    here.told.notify_one();
                }
            });
            end(status);
        });
        interrupts
    }

    /// Forgets what came before the statement that now begins.
    pub(super) fn forget(&self) {
        self.pending.store(false, Ordering::Relaxed);
    }

    pub(super) async fn next(&self) {
        while !self.pending.load(Ordering::Relaxed) {
            self.told.notified().await;
        }
        self.forget();
    }
}

/// Runs `work` on a new thread, with a runtime for it.
fn on_a_thread(work: impl FnOnce(&Runtime) + Send + 'static) -> std::io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || work(&runtime))?;
    Ok(())
}

fn end(status: u8) {
    let (tell, told) = mpsc::channel();
    // A disk that does not answer keeps nobody here.
    std::thread::spawn(move || {
        remove_spilled();
        say_so();
        let _ = tell.send(());
    });
    let _ = told.recv_timeout(CLEANING);
    std::process::exit(i32::from(status));
}

/// Says once that the job did not come to its end.
pub(crate) fn say_so() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        eprintln!("Error: told to end; what was under way is completed, or begun anew, when the job runs again");
    }
}

fn remove_spilled() {
    let spilled = SPILLED.lock();
    let folders: Vec<PathBuf> =
        spilled.iter().filter_map(Weak::upgrade).flat_map(|disk| disk.temp_dir_paths()).collect();
    drop(spilled);
    for folder in folders {
        // Threads that still spill may add a file meanwhile.
        for _ in 0..3 {
            if std::fs::remove_dir_all(&folder).is_ok() {
                break;
            }
        }
    }
}

/// The signals that whoever started the process lets it hear.
struct Signals {
    #[cfg(unix)]
    streams: Vec<(u8, Signal)>,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> Self {
        let ignored = ignored();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let heard = kinds.into_iter().map(|kind| (kind.as_raw_value(), kind));
        let heard = heard.filter(|(number, _)| ignored >> (number - 1) & 1 == 0);
        Self { streams: heard.filter_map(|(number, kind)| Some((number as u8, signal(kind).ok()?))).collect() }
    }

    #[cfg(not(unix))]
    fn listen() -> Self {
        Self {}
    }

    /// Waits for the next one, and returns the exit status that tells of it.
    async fn next(&mut self) -> u8 {
        #[cfg(unix)]
        return poll_fn(|context| {
            let told =
                |(number, stream): &mut (u8, Signal)| stream.poll_recv(context).is_ready().then_some(128 + *number);
            self.streams.iter_mut().find_map(told).map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        #[cfg(not(unix))]
        {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            128 + 2
        }
    }
}

/// Returns the signals that the process ignores from its start: a bit each. Jobs that a shell runs in the
/// background or with `nohup` ignore some. The first signal's bit is first. Known on Linux.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
