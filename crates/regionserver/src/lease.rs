//! Until when a member of a cluster may answer its clients: a server that was cut off from the ensemble, or stood still, does not know that
//! others have its regions by now.

use base::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs out unless it is extended. Cost of a look: a load, and the clock.
pub struct ServeLease {
    clock: Arc<dyn Clock>,
    until_us: AtomicU64,
}

impl ServeLease {
    /// One that has run out.
    pub fn new(clock: Arc<dyn Clock>) -> ServeLease {
        ServeLease { clock, until_us: AtomicU64::new(0) }
    }

    /// It holds until then, if it did not hold for longer.
    pub fn extend(&self, until_us: u64) {
        self.until_us.fetch_max(until_us, Ordering::AcqRel);
    }

    /// Whether calls may be answered now.
    pub fn holds(&self) -> bool {
        self.clock.monotonic_us() < self.until_us.load(Ordering::Acquire)
    }

    /// The clock by which it runs.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    #[test]
    fn a_lease_runs_out_unless_it_is_extended() {
        let clock = Arc::new(ManualClock::new(0));
        let lease = ServeLease::new(clock.clone());
        assert!(!lease.holds());
        lease.extend(5_000);
        assert!(lease.holds());
        lease.extend(1_000);
        clock.advance_ms(4);
        assert!(lease.holds(), "an older answer takes nothing away");
        clock.advance_ms(1);
        assert!(!lease.holds());
    }
}
