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

    #[cfg(test)]
    pub fn until(clock: Arc<dyn Clock>, until_us: u64) -> Lease {
        let lease = Lease::new(clock);
        lease.until.extend(until_us);
        lease
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
            // A member of the ensemble that is cut off from its leader still shows the node after the session is over.
            match nodes.latest_value(path).await {
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
    use coordination::{Answer, Awaited, Claim, SessionOver};

    /// An ensemble's member that is cut off from its leader: it shows what was, while another master has the node.
    struct CutOff;

    impl Coordinator for CutOff {
        fn value<'a>(&'a self, _: &'a str) -> Answer<'a, Option<Bytes>> {
            Box::pin(async { Ok(Some(Bytes::from_static(b"own"))) })
        }

        fn latest_value<'a>(&'a self, _: &'a str) -> Answer<'a, Option<Bytes>> {
            Box::pin(async { Ok(Some(Bytes::from_static(b"another"))) })
        }

        fn value_other_than<'a>(&'a self, _: &'a str, _: Option<Bytes>) -> Answer<'a, Option<Bytes>> {
            Box::pin(std::future::pending())
        }

        fn children<'a>(&'a self, _: &'a str) -> Answer<'a, Vec<String>> {
            Box::pin(async { Ok(Vec::new()) })
        }

        fn children_other_than<'a>(&'a self, _: &'a str, _: Vec<String>) -> Answer<'a, Vec<String>> {
            Box::pin(std::future::pending())
        }

        fn claim<'a>(&'a self, _: &'a str, _: &'a [u8]) -> Answer<'a, Claim> {
            Box::pin(async { Ok(Claim::Ours) })
        }

        fn remove<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
            Box::pin(async { Ok(()) })
        }

        fn over(&self) -> Awaited<'static, SessionOver> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn what_a_member_cut_off_from_its_leader_shows_extends_no_lease() {
        let lease = Lease::new(Arc::new(ManualClock::new(0)));
        let own = Bytes::from_static(b"own");
        let why = lease.keep(&CutOff, "/hbase/master", &own, Duration::from_secs(10)).await;
        assert!(why.contains("not this master's any more"), "{why}");
        assert!(lease.check().is_err());
    }

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
