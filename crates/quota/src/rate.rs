//! A rate limiter: so many units in a time unit, taken by calls and given back by time. Follows: `RateLimiter`,
//! `AverageIntervalRateLimiter`, `FixedIntervalRateLimiter`.

/// The time unit of a limiter that was never set.
const DEFAULT_UNIT_MS: i64 = 1000;
/// A limit that bounds nothing.
const NO_LIMIT: i64 = i64::MAX;

/// How units come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimiterKind {
    /// Little by little, in proportion to the time that passed.
    Average,
    /// All at once (or a share of them) at the end of each interval.
    Fixed {
        /// Length of an interval; never longer than the time unit of a limiter that was never set.
        interval_ms: i64,
    },
}

impl RateLimiterKind {
    /// The limiter that gives units back at the end of intervals of so many milliseconds.
    pub fn fixed(interval_ms: i64) -> RateLimiterKind {
        RateLimiterKind::Fixed { interval_ms: interval_ms.clamp(1, DEFAULT_UNIT_MS) }
    }
}

/// One limit of one kind of unit.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    kind: RateLimiterKind,
    unit_ms: i64,
    limit: i64,
    available: i64,
    /// `None` until it is first asked.
    refilled_ms: Option<i64>,
}

impl RateLimiter {
    /// One without a limit.
    pub fn unlimited(kind: RateLimiterKind) -> RateLimiter {
        RateLimiter { kind, unit_ms: DEFAULT_UNIT_MS, limit: NO_LIMIT, available: NO_LIMIT, refilled_ms: None }
    }

    /// Sets the limit; all of it is there.
    pub fn set(&mut self, limit: i64, unit_ms: i64) {
        (self.unit_ms, self.limit, self.available) = (unit_ms, limit, limit);
    }

    /// Takes over another's limit and keeps what was used: a higher limit is there at once, by the difference.
    pub fn update(&mut self, other: &RateLimiter) {
        self.unit_ms = other.unit_ms;
        if self.limit < other.limit {
            let more = other.limit.saturating_sub(self.limit);
            self.available = self.available.saturating_add(more).min(other.limit);
        }
        self.limit = other.limit;
    }

    /// Whether it bounds nothing.
    pub fn is_bypass(&self) -> bool {
        self.limit == NO_LIMIT
    }

    /// Units in a time unit.
    pub fn limit(&self) -> i64 {
        self.limit
    }

    /// Units that may be taken now, as far as is known since the last call.
    pub fn available(&self) -> i64 {
        self.available
    }

    /// How long to wait until `amount` units may be taken; 0 when they may be now.
    pub fn wait_ms(&mut self, amount: i64, now_ms: i64) -> i64 {
        if self.is_available(amount, now_ms) || amount <= self.available { 0 } else { self.wait_for(amount, now_ms) }
    }

    fn is_available(&mut self, amount: i64, now_ms: i64) -> bool {
        if self.is_bypass() {
            return true;
        }
        let refill = self.refill(now_ms);
        if refill == 0 && self.available < amount {
            return false;
        }
        self.available = self.available.saturating_add(refill).min(self.limit);
        self.available >= amount
    }

    /// Takes units, even such as are not there; gives back where `amount` is negative.
    pub fn consume(&mut self, amount: i64) {
        if self.is_bypass() {
            return;
        }
        self.available = self.available.saturating_sub(amount);
        if amount < 0 {
            self.available = self.available.min(self.limit);
        }
    }

    /// Units that time has given back since it was last asked.
    fn refill(&mut self, now_ms: i64) -> i64 {
        match self.kind {
            RateLimiterKind::Average => {
                let Some(refilled_ms) = self.refilled_ms else {
                    self.refilled_ms = Some(now_ms);
                    return self.limit;
                };
                let passed_ms = now_ms.saturating_sub(refilled_ms);
                let units = if passed_ms >= self.unit_ms {
                    self.limit
                } else if passed_ms > 0 {
                    (passed_ms as f64 / self.unit_ms as f64 * self.limit as f64) as i64
                } else {
                    0
                };
                if units > 0 {
                    self.refilled_ms = Some(now_ms);
                }
                units
            }
            RateLimiterKind::Fixed { interval_ms } => {
                let Some(next_ms) = self.refilled_ms else {
                    self.refilled_ms = Some(now_ms.saturating_add(interval_ms));
                    return self.limit;
                };
                if now_ms < next_ms {
                    return 0;
                }
                let refills = interval_ms.saturating_add(now_ms.saturating_sub(next_ms)) / interval_ms;
                self.refilled_ms = Some(now_ms.saturating_add(interval_ms));
                self.limit.min(refills.saturating_mul(self.limit_per_interval(interval_ms)))
            }
        }
    }

    fn wait_for(&self, amount: i64, now_ms: i64) -> i64 {
        let Some(refilled_ms) = self.refilled_ms else { return 0 };
        let missing = amount.saturating_sub(self.available);
        match self.kind {
            RateLimiterKind::Average => (missing as f64 * self.unit_ms as f64 / self.limit as f64) as i64,
            RateLimiterKind::Fixed { interval_ms } => {
                let per_interval = self.limit_per_interval(interval_ms);
                let until_next_ms = refilled_ms.saturating_sub(now_ms);
                if missing <= per_interval {
                    return until_next_ms;
                }
                let Some(mut more) = missing.checked_div(per_interval) else { return NO_LIMIT };
                if missing % per_interval == 0 {
                    more -= 1;
                }
                until_next_ms.saturating_add(more.saturating_mul(interval_ms))
            }
        }
    }

    fn limit_per_interval(&self, interval_ms: i64) -> i64 {
        (interval_ms as f64 / self.unit_ms as f64 * self.limit as f64).ceil() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(kind: RateLimiterKind, limit: i64, unit_ms: i64) -> RateLimiter {
        let mut limiter = RateLimiter::unlimited(kind);
        limiter.set(limit, unit_ms);
        limiter
    }

    #[test]
    fn an_average_limiter_gives_back_in_proportion_to_time() {
        let mut rate = limiter(RateLimiterKind::Average, 10, 1000);
        assert_eq!(rate.wait_ms(10, 5000), 0);
        rate.consume(10);
        assert_eq!(rate.wait_ms(1, 5000), 100, "a tenth of a second for a tenth of the limit");
        assert_eq!(rate.wait_ms(1, 5099), 100, "less than one unit has come back");
        assert_eq!(rate.wait_ms(1, 5100), 0);
        rate.consume(1);
        assert_eq!(rate.wait_ms(20, 9000), 1000, "never more than the limit comes back");
        assert_eq!(rate.available(), 10);
    }

    #[test]
    fn a_fixed_limiter_gives_back_at_the_end_of_its_interval() {
        let mut rate = limiter(RateLimiterKind::fixed(1000), 10, 1000);
        assert_eq!(rate.wait_ms(10, 5000), 0);
        rate.consume(10);
        assert_eq!(rate.wait_ms(1, 5999), 1);
        assert_eq!(rate.wait_ms(11, 5999), 1001, "two intervals for more than the limit");
        assert_eq!(rate.wait_ms(10, 6000), 0);
    }

    /// Follows: `TestFixedIntervalRateLimiter#testFixedLimiter`'s case of ten in a second by intervals of a tenth of it.
    #[test]
    fn a_fixed_limiter_of_short_intervals_gives_back_a_share_at_each() {
        let mut rate = limiter(RateLimiterKind::fixed(100), 10, 1000);
        assert_eq!(rate.wait_ms(10, 1000), 0);
        rate.consume(10);
        assert_eq!(rate.wait_ms(1, 1000), 100);
        assert_eq!(rate.wait_ms(2, 1000), 200);
        assert_eq!(rate.wait_ms(3, 1050), 250);
        assert_eq!(rate.wait_ms(1, 1100), 0);
        assert_eq!(rate.available(), 1);
    }

    #[test]
    fn what_was_used_stays_used_when_the_limit_changes() {
        let mut rate = limiter(RateLimiterKind::Average, 10, 1000);
        assert_eq!(rate.wait_ms(8, 0), 0);
        rate.consume(8);
        rate.update(&limiter(RateLimiterKind::Average, 15, 1000));
        assert_eq!((rate.limit(), rate.available()), (15, 7));
        rate.update(&limiter(RateLimiterKind::Average, 5, 1000));
        assert_eq!((rate.limit(), rate.available()), (5, 7));
        rate.consume(-100);
        assert_eq!(rate.available(), 5);
    }

    #[test]
    fn nothing_bounds_and_nothing_overflows_without_a_limit() {
        let mut rate = RateLimiter::unlimited(RateLimiterKind::Average);
        rate.consume(i64::MAX);
        assert_eq!(rate.wait_ms(i64::MAX, 0), 0);
        assert!(rate.is_bypass());
        let mut none = limiter(RateLimiterKind::fixed(1000), 0, 1000);
        assert_eq!(none.wait_ms(0, 0), 0);
        assert_eq!(none.wait_ms(1, 0), i64::MAX);
        let mut far = limiter(RateLimiterKind::Average, 1, 86_400_000);
        far.consume(i64::MAX);
        assert_eq!(far.wait_ms(1, i64::MAX), i64::MAX);
    }
}
