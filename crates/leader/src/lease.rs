//! Until when this process may act as the master: one that stood still, or was cut off from the ensemble, does not know that another is.

use base::Clock;
use bytes::Bytes;
use coordination::Coordinator;
use master::Latch;
use membership::lease_term;
use regionserver::ServeLease;
use std::sync::Arc;
use std::time::Duration;

/// So many looks at the own node fit in a session's timeout.
const LOOKS: u32 = 6;

/// The lease on the node `master`.
pub(crate) struct Lease {
    until: ServeLease,
    /// Whether it has ever held.
    began: Latch,
}

impl Lease {
    /// One that has run out.
    pub fn new(clock: Arc<dyn Clock>) -> Lease {
        Lease { until: ServeLease::new(clock), began: Latch::default() }
    }

    /// Waits until it holds for the first time.
    pub async fn held(&self) {
        self.began.wait().await;
    }

    /// # Errors
    /// It has run out: another may be master.
    pub fn check(&self) -> Result<(), String> {
        if self.until.holds() {
            Ok(())
        } else {
            Err("ZooKeeper has not shown this master its own node of late: another may be active".to_owned())
        }
    }

    /// Extends it for as long as the node at `path` has the value `own`. Ends, with a sentence, when it does not.
    pub async fn keep(&self, nodes: &dyn Coordinator, path: &str, own: &Bytes, session_timeout: Duration) -> String {
        let term_us = u64::try_from(lease_term(session_timeout).as_micros()).unwrap_or(u64::MAX);
        loop {
            let asked_us = self.until.clock().monotonic_us();
            match nodes.value(path).await {
                Ok(Some(value)) if value == *own => {
                    self.until.extend(asked_us.saturating_add(term_us));
                    self.began.set();
                }
                Ok(_) => return format!("the node {path} is not this master's any more"),
                Err(over) => return over.to_string(),
            }
            tokio::time::sleep(session_timeout / LOOKS).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    #[test]
    fn a_master_that_stood_still_may_do_nothing() {
        let clock = Arc::new(ManualClock::new(0));
        let lease = Lease::new(clock.clone());
        assert!(lease.check().is_err());
        lease.until.extend(5_000);
        assert!(lease.check().is_ok());
        clock.advance_ms(6);
        assert!(lease.check().expect_err("run out").contains("another may be active"));
    }
}
