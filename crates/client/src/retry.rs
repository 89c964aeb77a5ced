//! Pauses between tries, as HBase makes them: which failure is tried again, after how long, and when it is enough. Follows:
//! `AsyncRpcRetryingCaller`, `HBaseServerExceptionPauseManager`, `ConnectionUtils#getPauseTime`, `HConstants.RETRY_BACKOFF`.

use std::time::Duration;

use base::Rng;
use tokio::time::Instant;

use crate::metrics::Counters;
use crate::{Error, Result};

/// Multiples of the pause.
const BACKOFF: [u32; 13] = [1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200];
/// How much longer than its multiple a pause may be, by chance: as in HBase,
const SPREAD: f64 = 0.01;
/// and after an overload. Callers who were refused together must not come back together, least of all those who share a process with the server.
const SPREAD_OVERLOADED: f64 = 1.0;
/// A pause ends so long before the operation's time is over, so that there is some left for the try.
const LEFT_FOR_TRY: Duration = Duration::from_millis(1);

/// How patient an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryPolicy {
    /// Unit of the pauses between tries.
    pub(crate) pause: Duration,
    /// The same after a server said that it has too much to do.
    pub(crate) pause_overloaded: Duration,
    /// Tries after the first.
    pub(crate) retries: u32,
    /// For all tries together.
    pub(crate) operation_timeout: Duration,
    /// For one call.
    pub(crate) rpc_timeout: Duration,
    /// Failures before they are logged.
    pub(crate) quiet_failures: u32,
}

/// What to do about a failure.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is the operation's.
    Final,
    /// It was the last one that there is a try or time for.
    Exhausted,
    /// Try again after this.
    Again(Duration),
}

impl RetryPolicy {
    /// How long the first call of an operation may take.
    pub(crate) fn first_call_timeout(&self) -> Duration {
        self.rpc_timeout.min(self.operation_timeout)
    }

    /// What to do about the `tries`-th failure, with so much of the operation's time left. `jitter` is in 0..1.
    fn judge(&self, error: &Error, tries: u32, remaining: Duration, jitter: f64) -> Verdict {
        if !error.may_pass() {
            return Verdict::Final;
        }
        let Some(remaining) = remaining.checked_sub(LEFT_FOR_TRY).filter(|left| !left.is_zero()) else {
            return Verdict::Exhausted;
        };
        if tries > self.retries {
            return Verdict::Exhausted;
        }
        if error.retries_at_once() {
            return Verdict::Again(Duration::ZERO);
        }
        if let Some(wait) = error.throttled_for() {
            // The server says for how long; sooner is of no use, so that later than allowed is never.
            return if wait > remaining { Verdict::Exhausted } else { Verdict::Again(wait) };
        }
        let (unit, spread) = match error.is_overload() {
            true => (self.pause_overloaded, SPREAD_OVERLOADED),
            false => (self.pause, SPREAD),
        };
        let normal = unit * BACKOFF[(tries as usize - 1).min(BACKOFF.len() - 1)];
        Verdict::Again((normal + normal.mul_f64(jitter * spread)).min(remaining))
    }
}

/// The tries of one operation.
pub(crate) struct Retry<'a> {
    policy: RetryPolicy,
    rng: &'a Rng,
    counters: &'a Counters,
    tries: u32,
    since: Instant,
}

impl<'a> Retry<'a> {
    pub(crate) fn new(policy: RetryPolicy, rng: &'a Rng, counters: &'a Counters) -> Self {
        Retry { policy, rng, counters, tries: 0, since: Instant::now() }
    }

    /// How long the next call may take.
    pub(crate) fn call_timeout(&self) -> Duration {
        // Of the first try nearly all is left.
        if self.tries == 0 {
            return self.policy.first_call_timeout();
        }
        let left = self.policy.operation_timeout.saturating_sub(self.since.elapsed()).max(LEFT_FOR_TRY);
        self.policy.rpc_timeout.min(left)
    }

    /// Waits before the next try. Dropped meanwhile, there is none.
    ///
    /// # Errors
    /// `error` itself when trying again is of no use, or wrapped when time or tries are over.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<()> {
        self.tries += 1;
        let remaining = self.policy.operation_timeout.saturating_sub(self.since.elapsed());
        let jitter = self.rng.below(1000) as f64 / 1000.0;
        match self.policy.judge(&error, self.tries, remaining, jitter) {
            Verdict::Final => Err(error),
            Verdict::Exhausted => Err(Error::RetriesExhausted { tries: self.tries, last: Box::new(error) }),
            Verdict::Again(pause) => {
                self.counters.retries.add(1);
                if error.is_overload() {
                    self.counters.overload_pauses_ms.add(pause.as_millis() as u64);
                }
                if self.tries > self.policy.quiet_failures {
                    tracing::warn!(%error, tries = self.tries, retries = self.policy.retries, "trying again");
                } else {
                    tracing::debug!(%error, tries = self.tries, "trying again");
                }
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RemoteException;
    use proto::pb;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn policy() -> RetryPolicy {
        RetryPolicy {
            pause: MS(100),
            pause_overloaded: MS(500),
            retries: 15,
            operation_timeout: MS(1_200_000),
            rpc_timeout: MS(60_000),
            quiet_failures: 5,
        }
    }

    fn of(class: &str, message: &str) -> Error {
        let pair = pb::NameBytesPair {
            name: format!("org.apache.hadoop.hbase.{class}"),
            value: Some(bytes::Bytes::copy_from_slice(message.as_bytes())),
        };
        Error::Remote(Box::new(RemoteException::from_pair(pair)))
    }

    #[test]
    fn each_class_is_paused_for_or_final_as_in_hbase() {
        use Verdict::{Again, Exhausted, Final};
        let long = MS(1_000_000);
        let io =
            Error::Io { server: "s".into(), error: std::sync::Arc::new(std::io::ErrorKind::ConnectionRefused.into()) };
        let throttled = of("quotas.RpcThrottlingException", "number of requests exceeded - wait 1min, 2sec, 30ms");
        let short = of("quotas.RpcThrottlingException", "read size limit exceeded - wait 700ms");
        for (error, first, last_try) in [
            (of("NotServingRegionException", ""), Again(MS(100)), Exhausted),
            (of("exceptions.RegionMovedException", ""), Again(MS(100)), Exhausted),
            (of("exceptions.RegionOpeningException", ""), Again(MS(100)), Exhausted),
            (of("RegionTooBusyException", ""), Again(MS(100)), Exhausted),
            (of("CallQueueTooBigException", ""), Again(MS(500)), Exhausted),
            (of("CallDroppedException", ""), Again(MS(500)), Exhausted),
            (of("RetryImmediatelyException", ""), Again(MS(0)), Exhausted),
            (of("MultiActionResultTooLarge", ""), Again(MS(0)), Exhausted),
            (throttled, Again(MS(62_030)), Exhausted),
            (short, Again(MS(700)), Exhausted),
            (io, Again(MS(100)), Exhausted),
            (Error::ConnectionClosed { server: "s".into() }, Again(MS(100)), Exhausted),
            (Error::Timeout { server: "s".into(), method: "Get", timeout_ms: 1 }, Again(MS(100)), Exhausted),
            (of("regionserver.NoSuchColumnFamilyException", ""), Final, Final),
            (of("DoNotRetryIOException", ""), Final, Final),
            (of("TableNotFoundException", ""), Final, Final),
            (of("UnknownScannerException", ""), Final, Final),
            (of("exceptions.RequestTooBigException", ""), Final, Final),
            (of("security.AccessDeniedException", ""), Final, Final),
            (of("quotas.SpaceLimitingException", ""), Final, Final),
            (Error::Malformed(String::new()), Final, Final),
            (Error::Request(String::new()), Final, Final),
        ] {
            assert_eq!(policy().judge(&error, 1, long, 0.0), first, "{error:?}");
            assert_eq!(policy().judge(&error, 16, long, 0.0), last_try, "{error:?}");
        }
    }

    #[test]
    fn pauses_grow_and_end_with_the_time_that_is_left() {
        let busy = of("RegionTooBusyException", "");
        let pause = |tries, remaining, jitter| policy().judge(&busy, tries, remaining, jitter);
        let long = MS(1_000_000);
        let grow: Vec<_> = (1..=15).map(|tries| pause(tries, long, 0.0)).collect();
        let steps = [1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200, 200, 200];
        assert_eq!(grow, steps.map(|step| Verdict::Again(MS(100 * step))));
        assert_eq!(pause(1, long, 0.5), Verdict::Again(Duration::from_micros(100_500)));
        assert_eq!(pause(5, MS(301), 0.0), Verdict::Again(MS(300)));
        assert_eq!(pause(5, MS(1), 0.0), Verdict::Exhausted);
        let throttled = of("quotas.RpcThrottlingException", "write size limit exceeded - wait 2sec, 0ms");
        assert_eq!(policy().judge(&throttled, 1, MS(1500), 0.0), Verdict::Exhausted, "sooner is of no use");
        let refused = of("CallQueueTooBigException", "");
        let spread = [0.0, 0.5].map(|jitter| policy().judge(&refused, 1, long, jitter));
        assert_eq!(spread, [500, 750].map(|ms| Verdict::Again(MS(ms))), "refused together, they come back apart");
        let once = RetryPolicy { retries: 0, ..policy() };
        assert_eq!(once.judge(&busy, 1, long, 0.0), Verdict::Exhausted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_gets_what_is_left_of_the_operations_time() {
        let (rng, counters) = (Rng::seeded(1), Counters::default());
        let policy = RetryPolicy { operation_timeout: MS(1000), rpc_timeout: MS(600), ..policy() };
        let mut retry = Retry::new(policy, &rng, &counters);
        assert_eq!(retry.call_timeout(), MS(600));
        tokio::time::sleep(MS(600)).await;
        retry.pause(of("RegionTooBusyException", "")).await.expect("again");
        let left = retry.call_timeout();
        assert!(left <= MS(300) && left >= MS(295), "{left:?}");
        tokio::time::sleep(left).await;
        let over = retry.pause(of("RegionTooBusyException", "")).await.expect_err("time is over");
        assert!(matches!(over, Error::RetriesExhausted { tries: 2, .. }), "{over}");
        assert_eq!(counters.retries.sum(), 1);
    }
}
