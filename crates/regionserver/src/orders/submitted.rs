//! Which of the master's procedures were taken already: an order that comes again, because its answer was lost, is carried out once. Follows:
//! `HRegionServer#submitRegionProcedure`, `#finishRegionProcedure`.

use base::Clock;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A procedure that was done so long ago is not sent again. Follows: `HRegionServer.executedRegionProcedures`.
const REMEMBER_US: u64 = 600 * 1_000_000;

/// An order without a procedure: it is carried out whenever it comes.
pub(crate) const NO_PROCEDURE: i64 = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Running,
    DoneAtUs(u64),
}

/// The procedures of now and of the last minutes, by id.
pub(crate) struct Submitted {
    clock: Arc<dyn Clock>,
    procedures: Mutex<FxHashMap<i64, Progress>>,
}

impl Submitted {
    pub fn new(clock: Arc<dyn Clock>) -> Submitted {
        Submitted { clock, procedures: Mutex::default() }
    }

    /// Whether the procedure is new; it runs from now on.
    pub fn begin(&self, id: i64) -> bool {
        if id == NO_PROCEDURE {
            return true;
        }
        let mut procedures = self.procedures.lock();
        let is_new = !procedures.contains_key(&id);
        if is_new {
            procedures.insert(id, Progress::Running);
        }
        is_new
    }

    /// The procedure has ended, and the master knows.
    pub fn finish(&self, id: i64) {
        let now_us = self.clock.monotonic_us();
        let mut procedures = self.procedures.lock();
        procedures.retain(|_, progress| match progress {
            Progress::Running => true,
            Progress::DoneAtUs(done_us) => now_us.saturating_sub(*done_us) < REMEMBER_US,
        });
        if id != NO_PROCEDURE {
            procedures.insert(id, Progress::DoneAtUs(now_us));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    #[test]
    fn an_order_that_comes_again_is_carried_out_once() {
        let clock = Arc::new(ManualClock::new(0));
        let submitted = Submitted::new(clock.clone());
        assert!(submitted.begin(7) && !submitted.begin(7), "it runs");
        submitted.finish(7);
        assert!(!submitted.begin(7), "it was done just now");
        clock.advance_ms(REMEMBER_US / 1000);
        submitted.finish(8);
        assert!(submitted.begin(7), "that is long ago");
        assert!(submitted.begin(NO_PROCEDURE) && submitted.begin(NO_PROCEDURE));
    }
}
