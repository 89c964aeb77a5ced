//! For log messages that would be written again and again: once per interval is enough.

use crate::Clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lets a message that stays true be logged once per interval. May be shared between threads.
#[derive(Debug)]
pub struct LogThrottle {
    interval_us: u64,
    /// When the next is allowed.
    next_us: AtomicU64,
}

impl LogThrottle {
    /// A throttle that allows one message every `interval_us` microseconds.
    pub const fn every_us(interval_us: u64) -> LogThrottle {
        LogThrottle { interval_us, next_us: AtomicU64::new(0) }
    }

    /// Whether the message may be logged now; then it counts as logged.
    pub fn allow(&self, clock: &dyn Clock) -> bool {
        let now_us = clock.monotonic_us();
        let next_us = self.next_us.load(Ordering::Relaxed);
        let later_us = now_us.saturating_add(self.interval_us);
        now_us >= next_us
            && self.next_us.compare_exchange(next_us, later_us, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    #[test]
    fn one_message_is_allowed_per_interval() {
        let (clock, throttle) = (ManualClock::new(0), LogThrottle::every_us(10_000));
        assert!(throttle.allow(&clock), "the first");
        assert!(!throttle.allow(&clock), "at the same instant");
        clock.advance_ms(9);
        assert!(!throttle.allow(&clock), "too early");
        clock.advance_ms(1);
        assert!(throttle.allow(&clock), "after the interval");
        assert!(!throttle.allow(&clock), "once only");
    }
}
