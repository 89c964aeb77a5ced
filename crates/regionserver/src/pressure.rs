//! Memory pressure: what the memstores may hold together, and what a write must endure near the limit.
//!
//! Smooth by design, and one law with what a region's own debt does ([`region::backpressure`]): below the low mark nothing; between the
//! marks, and earlier where a running flush will not be done before they are full, writes come at the rate at which flushes were measured to
//! give memory back; above the limit RegionTooBusyException, which clients retry. A small write pays for itself alone. Writes of many
//! megabytes leave what is next to the limit to the others ([`MemoryMarks::for_large_writes`]). Follows: `MemStoreFlusher`.

use region::MemoryMeter;
use region::backpressure::{Debt, Pace};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The two marks, in bytes of all memstores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryMarks {
    /// Above it the largest regions are flushed.
    pub low_bytes: u64,
    /// At it writes are refused.
    pub limit_bytes: u64,
}

/// What a write must endure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Nothing.
    Free,
    /// A short wait first.
    Delay(Duration),
    /// It is refused for now.
    TooBusy,
}

impl MemoryMarks {
    /// The marks where memstores may have `limit_bytes`, and flushes begin at `lower_fraction` of it.
    pub fn new(limit_bytes: u64, lower_fraction: f64) -> MemoryMarks {
        let low_bytes = (limit_bytes as f64 * lower_fraction) as u64;
        MemoryMarks { low_bytes: low_bytes.min(limit_bytes), limit_bytes: limit_bytes.max(1) }
    }

    /// Up to where large writes may fill the memstores: half of what is between the marks is left to small ones.
    pub fn for_large_writes(&self) -> u64 {
        self.low_bytes + (self.limit_bytes - self.low_bytes) / 2
    }
}

/// Has writes come as fast as memory is given back.
#[derive(Debug, Default)]
pub(crate) struct MemoryPace {
    /// Seen by the chores: what comes is more than there is room for until the running flushes are done.
    is_pressed: AtomicBool,
    pace: Pace,
}

/// Part of the low mark from which on the chores look whether what comes has room until the flushes are done.
const LOOK_FROM: f64 = 0.5;

impl MemoryPace {
    /// Looks whether writes are to be paced before the low mark. To be called some times a second.
    pub fn look(&self, memory: &MemoryMeter, marks: MemoryMarks) {
        let held_bytes = memory.memstore_bytes();
        let is_much = held_bytes as f64 > marks.low_bytes as f64 * LOOK_FROM;
        let is_pressed = is_much && debt_of(memory, marks).part().is_some_and(|part| part < 2.0);
        self.is_pressed.store(is_pressed, Relaxed);
    }

    /// What a write of `bytes` must endure while all memstores hold `held_bytes`, those of flushed ones that are read included; `now_us` is asked for
    /// near the limit alone.
    pub fn admit(
        &self,
        memory: &MemoryMeter,
        marks: MemoryMarks,
        held_bytes: u64,
        bytes: u64,
        now_us: impl FnOnce() -> u64,
    ) -> Admission {
        if held_bytes >= marks.limit_bytes {
            return Admission::TooBusy;
        }
        if held_bytes < marks.low_bytes && !self.is_pressed.load(Relaxed) {
            return Admission::Free;
        }
        let now_us = now_us();
        let rate = || {
            let part = debt_of(memory, marks).part()?;
            // Nothing was flushed yet: what is between the marks is to last for a second.
            let measured = memory.flush_drain.per_second(now_us);
            Some(part * measured.unwrap_or((marks.limit_bytes - marks.low_bytes) as f64))
        };
        match self.pace.wait_us(bytes, now_us, rate) {
            0 => Admission::Free,
            wait_us => Admission::Delay(Duration::from_micros(wait_us)),
        }
    }
}

fn debt_of(memory: &MemoryMeter, marks: MemoryMarks) -> Debt {
    memory.debt(marks.low_bytes, marks.limit_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_wait_between_the_marks_and_are_refused_at_the_limit() {
        let (marks, memory) = (MemoryMarks { low_bytes: 900, limit_bytes: 1000 }, MemoryMeter::new());
        let at = |held_bytes, bytes| MemoryPace::default().admit(&memory, marks, held_bytes, bytes, || 1_000_000);
        assert_eq!(MemoryPace::default().admit(&memory, marks, 899, 1 << 20, || panic!("no clock")), Admission::Free);
        assert_eq!(at(1000, 1), Admission::TooBusy);
        assert_eq!(at(950, 1 << 20), Admission::Free, "nothing is owed: other readers hold it");
    }
}
