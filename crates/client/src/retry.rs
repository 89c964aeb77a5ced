//! Pauses between tries, as HBase makes them. Follows: `ConnectionUtils#getPauseTime`, `HConstants.RETRY_BACKOFF`.

use std::time::Duration;

use base::Rng;
use tokio::time::Instant;

use crate::options::Options;
use crate::{Error, Result};

/// Multiples of the pause.
const BACKOFF: [u32; 13] = [1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200];

/// The tries of one operation.
pub(crate) struct Retry<'a> {
    options: &'a Options,
    rng: &'a Rng,
    tries: u32,
    /// When the first try had failed: an operation that succeeds at once asks no clock.
    since: Option<Instant>,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(options: &'a Options, rng: &'a Rng) -> Self {
        Retry { options, rng, tries: 0, since: None }
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// `error` itself when trying again is of no use, or wrapped when time or tries are over.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        if !error.may_pass() {
            return Err(error);
        }
        self.tries += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        let pause = self.pause_time();
        if self.tries > self.options.retries || since.elapsed() + pause > self.options.operation_timeout {
            return Err(Error::RetriesExhausted { tries: self.tries, last: Box::new(error) });
        }
        tracing::debug!(%error, tries = self.tries, "trying again");
        if error.retries_at_once() {
            return Ok(());
        }
        // A server that says it is overloaded gets more rest.
        tokio::time::sleep(if error.is_overload() { pause * 2 } else { pause }).await;
        Ok(())
    }

    fn pause_time(&self) -> Duration {
        let step = BACKOFF[(self.tries as usize - 1).min(BACKOFF.len() - 1)];
        let normal = self.options.pause * step;
        normal + normal.mul_f64(self.rng.below(1000) as f64 / 100_000.0)
    }
}
