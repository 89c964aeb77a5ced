//! How many threads flush or compact: as many as the volumes bear, found by measuring.
//!
//! Where jobs wait, one thread more is tried for some seconds. If clearly more got done with it, it stays and the next one is tried; else it goes, and
//! nobody tries again for a while. Where nothing waits for long, those beyond what is set go again. A function of what it is told, the time
//! among that: the same history gives the same numbers.

/// Jobs must wait for so long before one more thread is tried.
const WAITS_US: u64 = 3_000_000;
/// A trial: twice what the measurement remembers.
const TRIAL_US: u64 = 8_000_000;
/// Nobody tries again for so long after one that was in vain.
const REST_US: u64 = 60_000_000;
/// With nothing waiting for so long one goes.
const IDLE_US: u64 = 30_000_000;
/// So much more must get done.
const WORTH: f64 = 1.1;
/// Times as many threads as are set, and threads in all, at the most: each holds a writer's buffers.
const MOST_TIMES: usize = 4;
const MOST: usize = 16;

/// The threads of one kind of work.
#[derive(Debug, Default)]
pub(crate) struct Staffing {
    /// As set.
    base: usize,
    now: usize,
    /// What got done in a second before the trial that runs, and since when it runs.
    trial: Option<(f64, u64)>,
    rests_until_us: u64,
    waits_since_us: Option<u64>,
    idle_since_us: Option<u64>,
}

impl Staffing {
    /// So many are set, and so many there are.
    pub(crate) fn set(&mut self, base: usize) {
        *self = Staffing { base, now: base, ..Staffing::default() };
    }

    /// One look, about once a second: whether jobs wait, and how much gets done in a second if that is known. How many threads there are to be,
    /// where that is a change.
    pub(crate) fn look(&mut self, waits: bool, done_per_second: Option<f64>, now_us: u64) -> Option<usize> {
        let since = |since_us: &mut Option<u64>, holds: bool| -> u64 {
            if !holds {
                *since_us = None;
                return 0;
            }
            now_us.saturating_sub(*since_us.get_or_insert(now_us))
        };
        let waits_us = since(&mut self.waits_since_us, waits);
        let idle_us = since(&mut self.idle_since_us, !waits);
        let before = self.now;
        match (self.trial, done_per_second) {
            (Some((before_per_second, begun_us)), done) if now_us.saturating_sub(begun_us) >= TRIAL_US => {
                self.trial = None;
                self.waits_since_us = None;
                // With nothing left to do it says nothing; the thread goes when it is idle.
                if waits && done.unwrap_or(0.0) < before_per_second * WORTH {
                    self.now -= 1;
                    self.rests_until_us = now_us + REST_US;
                }
            }
            (None, Some(done))
                if waits_us >= WAITS_US
                    && now_us >= self.rests_until_us
                    && self.now < (self.base * MOST_TIMES).min(MOST) =>
            {
                self.now += 1;
                self.trial = Some((done, now_us));
            }
            (None, _) if idle_us >= IDLE_US && self.now > self.base => {
                self.now -= 1;
                self.idle_since_us = None;
            }
            _ => {}
        }
        (self.now != before).then_some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds with jobs waiting, on a volume that gets `done` done with so many threads; the numbers at their ends.
    fn busy(staffing: &mut Staffing, from: u64, seconds: u64, done: impl Fn(usize) -> f64) -> Vec<usize> {
        (from..from + seconds)
            .map(|second| {
                let per_second = done(staffing.now);
                staffing.look(true, Some(per_second), second * 1_000_000);
                staffing.now
            })
            .collect()
    }

    #[test]
    fn there_are_as_many_as_the_volume_bears() {
        let mut staffing = Staffing::default();
        staffing.set(2);
        // Calls that wait for a slow disk overlap, up to five of them.
        let numbers = busy(&mut staffing, 1, 90, |threads| threads.min(5) as f64 * 10.0);
        assert!(numbers[..3].iter().all(|number| *number == 2), "not at once: {numbers:?}");
        assert_eq!(
            (numbers.iter().max(), numbers.last()),
            (Some(&6), Some(&5)),
            "a sixth was tried in vain: {numbers:?}"
        );
        let one = busy(&mut Staffing { base: 2, now: 2, ..Staffing::default() }, 1, 60, |_| 10.0);
        assert_eq!((one.iter().max(), one.last()), (Some(&3), Some(&2)), "{one:?}");
    }

    #[test]
    fn no_more_than_four_times_as_many_as_are_set_and_those_go_when_nothing_waits() {
        let mut staffing = Staffing::default();
        staffing.set(1);
        assert_eq!(busy(&mut staffing, 1, 300, |threads| threads as f64).last(), Some(&4));
        let idle: Vec<usize> = (301..500).filter_map(|at| staffing.look(false, Some(1.0), at * 1_000_000)).collect();
        assert_eq!(idle, [3, 2, 1]);
        assert_eq!(staffing.look(false, None, 900_000_000), None, "those that are set stay");
    }

    #[test]
    fn where_nothing_was_measured_nobody_is_added() {
        let mut staffing = Staffing::default();
        staffing.set(2);
        assert!((1..100).all(|at| staffing.look(true, None, at * 1_000_000).is_none()));
    }
}
