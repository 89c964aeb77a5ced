//! Latency histograms.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Significant decimal digits that are kept.
const DIGITS: u8 = 3;

/// A histogram of durations, in nanoseconds; about 30 KiB per factor of a thousand between fastest and slowest.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        #[expect(clippy::expect_used, reason = "three digits are within the crate's bounds")]
        let histogram = Histogram::new(DIGITS).expect("three digits are allowed");
        Self { histogram }
    }

    /// Records one duration.
    pub fn record(&mut self, took: Duration) {
        self.record_ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Records one duration in nanoseconds (or in whatever unit the caller keeps to).
    pub fn record_ns(&mut self, ns: u64) {
        // Grows by itself; what even that cannot hold (centuries) is not worth an error.
        self.histogram.record(ns).ok();
    }

    /// Adds what `other` recorded.
    pub fn add(&mut self, other: &Latencies) {
        #[expect(clippy::expect_used, reason = "a histogram that resizes takes any value")]
        self.histogram.add(&other.histogram).expect("resizes");
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// How many durations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their mean; 0 when there are none.
    pub fn mean(&self) -> f64 {
        self.histogram.mean()
    }

    /// The shortest; 0 when there are none.
    pub fn least(&self) -> u64 {
        self.histogram.min()
    }

    /// The longest; 0 when there are none.
    pub fn greatest(&self) -> u64 {
        self.histogram.max()
    }

    /// The duration that `percent` of all do not exceed.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.histogram.value_at_percentile(percent)
    }

    /// `(percent, value)` at each step of a plot over orders of magnitude: 0, 50, 75, 87.5 ... up to the longest.
    pub fn curve(&self) -> Vec<(f64, u64)> {
        self.histogram.iter_quantiles(2).map(|v| (v.quantile_iterated_to() * 100.0, v.value_iterated_to())).collect()
    }

    /// Each value that was recorded and how often.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()))
    }

    /// The usual percentiles.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.count(),
            mean_ns: self.mean(),
            min_ns: self.least(),
            p50_ns: self.percentile(50.0),
            p90_ns: self.percentile(90.0),
            p95_ns: self.percentile(95.0),
            p99_ns: self.percentile(99.0),
            p999_ns: self.percentile(99.9),
            p9999_ns: self.percentile(99.99),
            max_ns: self.greatest(),
        }
    }
}

/// Percentiles of a histogram, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Durations recorded.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Shortest.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90 of 100 do not exceed it.
    pub p90_ns: u64,
    /// 95 of 100 do not exceed it.
    pub p95_ns: u64,
    /// 99 of 100 do not exceed it.
    pub p99_ns: u64,
    /// 999 of 1,000 do not exceed it.
    pub p999_ns: u64,
    /// 9,999 of 10,000 do not exceed it.
    pub p9999_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_keep_three_digits() {
        let mut latencies = Latencies::new();
        for n in 1..=100_000_u64 {
            latencies.record(Duration::from_micros(n));
        }
        let summary = latencies.summary();
        assert_eq!(summary.count, 100_000);
        for (value, want) in [
            (summary.p50_ns, 50_000_000),
            (summary.p99_ns, 99_000_000),
            (summary.p999_ns, 99_900_000),
            (summary.p9999_ns, 99_990_000),
            (summary.max_ns, 100_000_000_u64),
        ] {
            assert!(value.abs_diff(want) <= want / 1000, "{value} for {want}");
        }
        let curve = latencies.curve();
        assert!(curve.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
        let mut twice = latencies.clone();
        twice.add(&latencies);
        assert_eq!(twice.count(), 200_000);
    }
}
