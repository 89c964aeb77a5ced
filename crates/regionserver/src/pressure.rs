//! Memory pressure: what the memstores may hold together, and what a write must endure near the limit.
//!
//! Smooth by design: below the low mark nothing; between the marks a delay that grows from nothing to
//! [`MAX_DELAY_MS`]; above the limit RegionTooBusyException, which clients retry. Follows: `MemStoreFlusher`.

use std::time::Duration;

/// Longest delay of one write near the limit.
const MAX_DELAY_MS: u64 = 50;

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

    /// What a write must endure while all memstores hold `held_bytes`.
    pub fn admit(&self, held_bytes: u64) -> Admission {
        if held_bytes < self.low_bytes {
            Admission::Free
        } else if held_bytes < self.limit_bytes {
            let over = (held_bytes - self.low_bytes) as f64 / (self.limit_bytes - self.low_bytes).max(1) as f64;
            let delay_us = (over * over * (MAX_DELAY_MS * 1000) as f64) as u64;
            if delay_us < 1000 { Admission::Free } else { Admission::Delay(Duration::from_micros(delay_us)) }
        } else {
            Admission::TooBusy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_before_writes_are_refused() {
        let marks = MemoryMarks { low_bytes: 900, limit_bytes: 1000 };
        assert_eq!(marks.admit(899), Admission::Free);
        let (Admission::Delay(early), Admission::Delay(late)) = (marks.admit(930), marks.admit(990)) else {
            panic!("both are between the marks");
        };
        assert!(early < late && late <= Duration::from_millis(MAX_DELAY_MS));
        assert_eq!(marks.admit(1000), Admission::TooBusy);
    }
}
