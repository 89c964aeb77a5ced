//! Memory pressure: what the memstores may hold together, and what a write must endure near the limit.
//!
//! Smooth by design: below the low mark nothing; between the marks a delay for each byte of the write, which grows from nothing without
//! a bound, so that a small write pays for itself alone; above the limit RegionTooBusyException, which clients retry. Writes of many
//! megabytes leave what is next to the limit to the others ([`MemoryMarks::for_large_writes`]). Follows: `MemStoreFlusher`.

use std::time::Duration;

/// Longest delay of one write near the limit.
const MAX_DELAY_MS: u64 = 200;
/// What one call may write in a second half way between the marks.
const BYTES_PER_SECOND: f64 = (8 << 20) as f64;

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

    /// What a write of `bytes` must endure while all memstores hold `held_bytes`.
    pub fn admit(&self, held_bytes: u64, bytes: u64) -> Admission {
        if held_bytes < self.low_bytes {
            Admission::Free
        } else if held_bytes < self.limit_bytes {
            let over = (held_bytes - self.low_bytes) as f64 / (self.limit_bytes - self.low_bytes).max(1) as f64;
            let left = (1.0 - over).max(f64::EPSILON);
            // One half way up.
            let steepness = over * over / (left * left);
            let delay_us = (bytes as f64 / BYTES_PER_SECOND * steepness * 1e6).min((MAX_DELAY_MS * 1000) as f64) as u64;
            if delay_us < 1000 { Admission::Free } else { Admission::Delay(Duration::from_micros(delay_us)) }
        } else {
            Admission::TooBusy
        }
    }

    /// Up to where large writes may fill the memstores: half of what is between the marks is left to small ones.
    pub fn for_large_writes(&self) -> u64 {
        self.low_bytes + (self.limit_bytes - self.low_bytes) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_before_writes_are_refused() {
        let marks = MemoryMarks { low_bytes: 900, limit_bytes: 1000 };
        assert_eq!(marks.admit(899, 1 << 20), Admission::Free);
        let (Admission::Delay(early), Admission::Delay(late)) =
            (marks.admit(930, 100 << 10), marks.admit(990, 100 << 10))
        else {
            panic!("both are between the marks");
        };
        assert!(early < late && late <= Duration::from_millis(MAX_DELAY_MS));
        assert_eq!(marks.admit(1000, 1), Admission::TooBusy);
    }

    #[test]
    fn a_small_write_pays_for_its_own_bytes() {
        let marks = MemoryMarks { low_bytes: 900, limit_bytes: 1000 };
        assert_eq!(marks.admit(marks.for_large_writes(), 1000), Admission::Free, "large writes end here");
        let (Admission::Delay(small), Admission::Delay(large)) = (marks.admit(970, 4_000), marks.admit(970, 40_000))
        else {
            panic!("both are delayed");
        };
        assert!(large >= small * 9 && large <= small * 11, "{small:?} {large:?}");
    }
}
