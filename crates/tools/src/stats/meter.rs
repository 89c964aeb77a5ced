//! Operations over time: how many in each interval, and the longest time without any.

use std::time::{Duration, Instant};

use super::{Latencies, LatencySummary};

/// Records the completions of one run.
#[derive(Debug)]
pub struct Meter {
    start: Instant,
    interval: Duration,
    intervals: Vec<u64>,
    last: Instant,
    gap: Duration,
    latencies: Latencies,
    operations: u64,
    rows: u64,
    errors: u64,
}

/// What a [`Meter`] saw.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Operations that went well.
    pub operations: u64,
    /// Rows that they carried.
    pub rows: u64,
    /// Operations that did not go well; their latencies are not recorded.
    pub errors: u64,
    /// How long the run took.
    pub took: Duration,
    /// Operations in each interval.
    pub intervals: Vec<u64>,
    /// Longest time in which no operation ended.
    pub longest_gap: Duration,
    /// Percentiles.
    pub latency: LatencySummary,
    /// The whole distribution.
    pub latencies: Latencies,
}

impl Meter {
    /// Begins a run now.
    pub fn start(interval: Duration) -> Self {
        let start = Instant::now();
        Self {
            start,
            interval,
            intervals: Vec::new(),
            last: start,
            gap: Duration::ZERO,
            latencies: Latencies::new(),
            operations: 0,
            rows: 0,
            errors: 0,
        }
    }

    /// When the run began.
    pub fn began(&self) -> Instant {
        self.start
    }

    /// One operation of `rows` rows, begun (or due) at `since`, ended at `now`.
    pub fn done(&mut self, since: Instant, now: Instant, rows: u64) {
        self.latencies.record(now.saturating_duration_since(since));
        self.operations += 1;
        self.rows += rows;
        self.gap = self.gap.max(now.saturating_duration_since(self.last));
        self.last = self.last.max(now);
        let slot = (now.saturating_duration_since(self.start).as_nanos() / self.interval.as_nanos().max(1)) as usize;
        if self.intervals.len() <= slot {
            self.intervals.resize(slot + 1, 0);
        }
        self.intervals[slot] += 1;
    }

    /// One operation that failed.
    pub fn failed(&mut self) {
        self.errors += 1;
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Ends the run now. The last interval is seldom whole; it is left out of the list.
    pub fn finish(mut self) -> Progress {
        let now = Instant::now();
        self.gap = self.gap.max(now.saturating_duration_since(self.last));
        let whole = (now.saturating_duration_since(self.start).as_nanos() / self.interval.as_nanos().max(1)) as usize;
        self.intervals.resize(whole, 0);
        Progress {
            operations: self.operations,
            rows: self.rows,
            errors: self.errors,
            took: now.saturating_duration_since(self.start),
            intervals: self.intervals,
            longest_gap: self.gap,
            latency: self.latencies.summary(),
            latencies: self.latencies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_seen() {
        let mut meter = Meter::start(Duration::from_millis(100));
        let start = meter.began();
        for ms in [10, 20, 30, 130, 140] {
            let now = start + Duration::from_millis(ms);
            meter.done(now - Duration::from_millis(10), now, 2);
        }
        meter.failed();
        assert_eq!(meter.gap, Duration::from_millis(100));
        assert_eq!(meter.intervals, [3, 2]);
        let progress = meter.finish();
        assert_eq!((progress.operations, progress.rows, progress.errors), (5, 10, 1));
        assert_eq!(progress.latency.count, 5);
    }
}
