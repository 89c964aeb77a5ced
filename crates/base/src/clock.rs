//! The one source of time: a wall clock in milliseconds (cells are stamped with it) and a monotonic clock in
//! microseconds (deadlines, leases and measurements use it).

use crate::TimestampMs;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch. May step backwards.
    fn now_ms(&self) -> TimestampMs;
    /// Microseconds since an arbitrary start. Never steps backwards.
    fn monotonic_us(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl SystemClock {
    /// Starts the monotonic clock at zero.
    #[allow(clippy::disallowed_methods, reason = "this is the one source of time")]
    pub fn new() -> Self {
        SystemClock { start: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the one source of time")]
    fn now_ms(&self) -> TimestampMs {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        TimestampMs(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A clock that moves only when told to: for tests and simulation.
#[derive(Debug)]
pub struct ManualClock {
    wall_ms: AtomicI64,
    monotonic_us: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `wall_ms` until it is moved.
    pub fn new(wall_ms: i64) -> Self {
        ManualClock { wall_ms: AtomicI64::new(wall_ms), monotonic_us: AtomicU64::new(0) }
    }

    /// Both clocks move on by `ms`.
    pub fn advance_ms(&self, ms: u64) {
        self.wall_ms.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::SeqCst);
        self.monotonic_us.fetch_add(ms.saturating_mul(1000), Ordering::SeqCst);
    }

    /// The wall clock steps to `wall_ms`, perhaps backwards; the monotonic clock does not notice.
    pub fn set_wall_ms(&self, wall_ms: i64) {
        self.wall_ms.store(wall_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> TimestampMs {
        TimestampMs(self.wall_ms.load(Ordering::SeqCst))
    }

    fn monotonic_us(&self) -> u64 {
        self.monotonic_us.load(Ordering::SeqCst)
    }
}
