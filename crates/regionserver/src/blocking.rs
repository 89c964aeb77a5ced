//! Where work goes that reads or writes files: away from Tokio's workers.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinError;

/// Runs `work` on the blocking pool. On a runtime of one thread (the model world) it runs at once and on that thread, so
/// that one seed gives one run.
///
/// # Errors
/// `work` panicked.
pub(crate) async fn off_worker<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await
}
