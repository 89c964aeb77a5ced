//! Calls of the master to its region server, with a pause before and after each, in which clients go on: a step of a procedure
//! takes time.

use crate::trace::Trace;
use assembly::Runner;
use base::Rng;
use master::{BoxFuture, HostError};
use std::sync::Arc;
use std::time::Duration;

/// Runs the region server's work on the one thread that there is.
pub struct Paced {
    rng: Arc<Rng>,
    trace: Arc<Trace>,
}

impl Paced {
    /// Draws how long calls take.
    pub fn new(rng: Arc<Rng>, trace: Arc<Trace>) -> Paced {
        Paced { rng, trace }
    }

    async fn pause(&self) {
        if self.rng.one_in(4) {
            tokio::time::sleep(Duration::from_millis(self.rng.below(6))).await;
        }
    }
}

impl Runner for Paced {
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HostError>> {
        Box::pin(async move {
            self.pause().await;
            let result = work();
            if let Err(error) = &result {
                self.trace.note(&format!("the region server refuses: {error}"));
            }
            self.pause().await;
            result
        })
    }
}
