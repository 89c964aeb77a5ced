//! The master's way to files: work that blocks, away from the workers of the network.

use crate::{MasterError, Result};
use fs::Volume;
use std::sync::Arc;

/// The volume, for work that is waited for.
#[derive(Clone)]
pub(crate) struct Files {
    volume: Arc<dyn Volume>,
}

impl Files {
    /// Over `volume`.
    pub fn new(volume: Arc<dyn Volume>) -> Files {
        Files { volume }
    }

    /// [`fs::Capabilities::names_hosts`].
    pub fn names_hosts(&self) -> bool {
        self.volume.capabilities().names_hosts
    }

    /// Runs `work` on the blocking pool, from now on; the future waits for it.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Volume) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'static {
        let volume = Arc::clone(&self.volume);
        let running = off_worker(move || work(&*volume));
        async move {
            running.await.unwrap_or_else(|panic| Err(MasterError::do_not_retry(format!("internal error: {panic}"))))
        }
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

/// Runs `work` on the blocking pool, from now on; the future waits for it. On a runtime of one thread (the simulator)
/// it has run when this returns, so that one seed gives one run.
///
/// # Errors
/// `work` panicked.
pub fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = std::result::Result<T, tokio::task::JoinError>> + Send + 'static {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let (done, running) = if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        (Some(work()), None)
    } else {
        (None, Some(tokio::task::spawn_blocking(work)))
    };
    async move {
        match (done, running) {
            (Some(done), _) => Ok(done),
            (None, Some(running)) => running.await,
            (None, None) => unreachable!("it was begun one way or the other"),
        }
    }
}
