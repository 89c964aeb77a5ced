//! How long the master lives: everything that waits, waits here, and ends when the master stops.

use crate::latch::Latch;
use crate::{ErrorKind, MasterError, Result};
use std::time::Duration;

/// The master's lifetime. Waiting is by the runtime's timers: the simulator steps them.
#[derive(Debug, Default)]
pub(crate) struct Lifetime {
    stopping: Latch,
}

impl Lifetime {
    fn stopped_error() -> MasterError {
        MasterError::new(ErrorKind::Stopped, "the master is stopping")
    }

    /// # Errors
    /// The master is stopping.
    pub fn check_running(&self) -> Result<()> {
        if self.is_stopping() { Err(Lifetime::stopped_error()) } else { Ok(()) }
    }

    /// Waits for `event`.
    ///
    /// # Errors
    /// The master stops first.
    pub async fn unless_stopped<T>(&self, event: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.stopping.wait() => Err(Lifetime::stopped_error()),
            done = event => Ok(done),
        }
    }

    /// Waits for so long.
    ///
    /// # Errors
    /// The master stops first.
    pub async fn pause(&self, time: Duration) -> Result<()> {
        self.unless_stopped(tokio::time::sleep(time)).await
    }

    /// Stops everything that waits here.
    pub fn stop(&self) {
        self.stopping.set();
    }

    /// Whether the master is stopping.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_set()
    }
}
