//! How many of a region's writes are refused, over a moving window. Follows: `BusyRegionSplitPolicy`.

use super::policy::Sizes;

/// When a region is too busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusyLimits {
    /// Part of the writes that may be refused.
    pub max_blocked: f64,
    /// A region that is open for less is left alone.
    pub min_age_ms: i64,
    /// The window.
    pub window_ms: i64,
}

/// The window of one region.
#[derive(Debug)]
pub(crate) struct BusyWindow {
    limits: BusyLimits,
    opened_ms: i64,
    begun_ms: i64,
    writes: u64,
    blocked: u64,
    last_rate: f64,
}

impl BusyWindow {
    pub(super) fn new(limits: BusyLimits, now_ms: i64) -> BusyWindow {
        BusyWindow { limits, opened_ms: now_ms, begun_ms: now_ms, writes: 0, blocked: 0, last_rate: 0.0 }
    }

    pub(super) fn is_busy(&mut self, sizes: &Sizes) -> bool {
        let rate = self.move_to(sizes);
        sizes.now_ms >= self.opened_ms.saturating_add(self.limits.min_age_ms) && rate >= self.limits.max_blocked
    }

    fn move_to(&mut self, sizes: &Sizes) -> f64 {
        let blocked = sizes.blocked.saturating_sub(self.blocked) as f64;
        let rate = blocked / (sizes.writes.saturating_sub(self.writes) as f64 + 0.00001);
        let passed_ms = sizes.now_ms.saturating_sub(self.begun_ms);
        if passed_ms >= self.limits.window_ms {
            (self.last_rate, self.begun_ms) = (rate, sizes.now_ms);
            (self.writes, self.blocked) = (sizes.writes, sizes.blocked);
            rate
        } else if sizes.now_ms.saturating_sub(self.opened_ms) >= self.limits.window_ms {
            // The window before counts for as long as this one has still to go.
            let part = passed_ms as f64 / self.limits.window_ms as f64;
            (1.0 - part) * self.last_rate + part * rate
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_busy_when_too_many_writes_are_refused_for_a_while() {
        let limits = BusyLimits { max_blocked: 0.2, min_age_ms: 1000, window_ms: 500 };
        let at = |window: &mut BusyWindow, now_ms, writes, blocked| {
            window.is_busy(&Sizes { stores: Vec::new(), regions_of_table_here: 1, writes, blocked, now_ms })
        };
        let mut window = BusyWindow::new(limits, 0);
        assert!(!at(&mut window, 400, 100, 90), "no window has passed");
        assert!(!at(&mut window, 600, 100, 90), "it is too young");
        assert!(at(&mut window, 1000, 110, 95), "the window before counts while this one is short");
        assert!(!at(&mut window, 1100, 200, 95), "a window with few");
        assert!(at(&mut window, 1700, 300, 125), "and one with many");
    }
}
