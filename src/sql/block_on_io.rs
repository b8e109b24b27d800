//! Waits for reads from code that DataFusion does not let be async. docs/decisions/planning.md says which, and why.

use std::future::Future;

use datafusion::common::{Result, internal_err};
use futures::FutureExt;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Waits for a look-up that is nearly always ready, from code that is not async.
pub(super) fn block_on_lookup<T, F>(start: impl Fn() -> F + Sync) -> Result<T>
where
    T: Send,
    F: Future<Output = Result<T>> + Send,
{
    if let Some(ready) = start().now_or_never() {
        return ready;
    }
    // A remote catalog.
    block_on_io(start)
}

/// Waits for a reader of files, from code that is not async. Never blocks a thread that drives other tasks.
pub(super) fn block_on_io<T, F>(start: impl Fn() -> F + Sync) -> Result<T>
where
    T: Send,
    F: Future<Output = Result<T>> + Send,
{
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| handle.block_on(start()))
        }
        _ => std::thread::scope(|scope| {
            let helper = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(start())
            });
            helper.join().unwrap_or_else(|_| internal_err!("the look-up of a table panicked"))
        }),
    }
}
