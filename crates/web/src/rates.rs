//! Requests per second, from counters looked at twice.

use crate::status::Requests;
use std::collections::VecDeque;

/// Samples kept: with one every [`SAMPLE_EVERY_MS`], a rate covers the last one to two periods.
const KEPT: usize = 2;
/// How often the counters are looked at. HBase's period (`hbase.regionserver.metrics.period`) is the same.
pub const SAMPLE_EVERY_MS: u64 = 5000;

/// Per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestRates {
    /// Calls.
    pub total: f64,
    /// Rows read.
    pub reads: f64,
    /// Rows written.
    pub writes: f64,
}

/// The last few looks at the counters.
#[derive(Debug, Default)]
pub struct Samples(VecDeque<(u64, Requests)>);

impl Samples {
    /// Remembers the counters at a moment of the monotonic clock.
    pub fn record(&mut self, now_us: u64, requests: Requests) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((now_us, requests));
    }

    /// Rates from the oldest look kept until now; zero when no time has passed.
    pub fn rates(&self, now_us: u64, now: Requests) -> RequestRates {
        let Some((then_us, then)) = self.0.front().copied() else { return RequestRates::default() };
        let elapsed_us = now_us.saturating_sub(then_us);
        if elapsed_us == 0 {
            return RequestRates::default();
        }
        // a counter that went back belongs to another life: no rate
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 * 1e6 / elapsed_us as f64;
        RequestRates {
            total: rate(now.total, then.total),
            reads: rate(now.reads, then.reads),
            writes: rate(now.writes, then.writes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(total: u64) -> Requests {
        Requests { total, reads: total / 2, writes: total / 4, filtered_reads: 0 }
    }

    #[test]
    fn a_rate_is_of_the_last_periods_only() {
        let mut samples = Samples::default();
        assert_eq!(samples.rates(5, counts(7)), RequestRates::default());
        samples.record(0, counts(0));
        assert_eq!(samples.rates(0, counts(7)), RequestRates::default());
        assert_eq!(samples.rates(2_000_000, counts(100)), RequestRates { total: 50.0, reads: 25.0, writes: 12.5 });
        samples.record(5_000_000, counts(1000));
        samples.record(10_000_000, counts(1000));
        assert_eq!(samples.rates(10_000_000, counts(1000)).total, 0.0);
        assert_eq!(samples.rates(15_000_000, counts(2000)).total, 100.0);
        assert_eq!(samples.rates(16_000_000, counts(1)).total, 0.0);
    }
}
