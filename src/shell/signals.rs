//! Signals that ask the process to end.

use std::time::Duration;

use datafusion::common::runtime::SpawnedTask;

/// How long a job may take to give up what it has begun.
const GRACE: Duration = Duration::from_secs(10);

/// Waits for SIGINT or SIGTERM, and returns the exit status that tells of it, as shells number them.
pub(crate) async fn told_to_end() -> u8 {
    const INTERRUPTED: u8 = 128 + 2;
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        const TERMINATED: u8 = 128 + 15;
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = terminated.recv() => TERMINATED,
                () = interrupted() => INTERRUPTED,
            };
        }
    }
    interrupted().await;
    INTERRUPTED
}

async fn interrupted() {
    // Without a handler there is nothing to wait for; and what a shell runs in the background is not to hear of it.
    if is_deaf() || tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Whether whoever started the process lets it ignore SIGINT. Known on Linux.
fn is_deaf() -> bool {
    const INTERRUPT: u64 = 1 << (2 - 1);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & INTERRUPT != 0)
}

/// The same for who has something to give up: after a while the process ends, whatever it does then.
pub(crate) async fn told_to_end_soon() -> u8 {
    // In a task of its own, for whoever waits here may be busy.
    let told = SpawnedTask::spawn(async {
        let status = told_to_end().await;
        std::thread::spawn(move || {
            std::thread::sleep(GRACE);
            std::process::exit(i32::from(status))
        });
        // Who is told again is in a hurry. Threads of the runtime end with it, so this is one of its own.
        let runtime = tokio::runtime::Handle::current();
        std::thread::spawn(move || std::process::exit(i32::from(runtime.block_on(told_to_end()))));
        status
    });
    match told.join().await {
        Ok(status) => status,
        Err(_) => std::future::pending().await,
    }
}
