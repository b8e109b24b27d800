//! Work on threads that may block.

use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;

use super::failure::cancelled;

/// Runs `work` on a thread that may block, and waits for it.
/// Fails with the errors of the work; and when the runtime ends.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = SpawnedTask::spawn_blocking(work).join_unwind().await;
    done.map_err(|_| cancelled())?
}
