//! How fast volumes are, measured where files are used: the times of syncs and reads in a window, and which volume is to get no new files
//! while it is slow.
//!
//! Only of volumes beside the home: a root with one volume reads no clock for it.

use base::Clock;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What is remembered, by age and by number.
const WINDOW_US: u64 = 60_000_000;
const MOST_SAMPLES: usize = 256;
/// Fewer say nothing, unless one of them is long.
const LEAST_SAMPLES: usize = 4;
/// From so long on a sync may be called slow at all: what a busy disk takes now and then.
const SLOW_SYNC_US: u64 = 20_000;
/// A call that takes so long, ended or not, is slow alone.
pub(super) const STALLED_US: u64 = 1_000_000;
/// Slow is who takes so many times what the fastest volume of the tier does;
const SLOW_TIMES: u64 = 4;
/// fast again, who takes no more than so many times that,
const FAST_TIMES: u64 = 2;
/// for so long.
const FAST_FOR_US: u64 = 10_000_000;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timed {
    Sync,
    Read,
}

#[derive(Debug, Default)]
struct Times(VecDeque<(u64, u64)>);

impl Times {
    fn note(&mut self, now_us: u64, took_us: u64) {
        self.forget(now_us);
        if self.0.len() == MOST_SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back((now_us, took_us));
    }

    fn forget(&mut self, now_us: u64) {
        while self.0.front().is_some_and(|(at_us, _)| now_us.saturating_sub(*at_us) > WINDOW_US) {
            self.0.pop_front();
        }
    }

    fn quantile(&self, part: f64) -> Option<u64> {
        let mut times: Vec<u64> = self.0.iter().map(|(_, took_us)| *took_us).collect();
        if times.is_empty() {
            return None;
        }
        let at = ((times.len() - 1) as f64 * part).round() as usize;
        Some(*times.select_nth_unstable(at).1)
    }
}

#[derive(Debug, Default)]
struct State {
    syncs: Times,
    reads: Times,
    /// When calls began that have not returned, by number.
    running: BTreeMap<u64, u64>,
    next: u64,
    is_slow: bool,
    /// Since when it looks fast, while it is called slow.
    fast_since_us: Option<u64>,
}

/// What a volume's calls took lately, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeedStatus {
    /// Half of the syncs took no longer; `None` without any.
    pub sync_median_us: Option<u64>,
    /// Of a hundred, ninety-nine took no longer.
    pub sync_p99_us: Option<u64>,
    /// As for syncs.
    pub read_median_us: Option<u64>,
    /// As for syncs.
    pub read_p99_us: Option<u64>,
    /// How long the oldest call takes that has not returned.
    pub waits_us: u64,
    /// It gets no new files while others of its tier can take them.
    pub is_slow: bool,
}

/// The times of one volume.
pub(super) struct Speed {
    clock: Option<Arc<dyn Clock>>,
    state: Mutex<State>,
}

impl Speed {
    pub(super) fn new(clock: Option<Arc<dyn Clock>>) -> Speed {
        Speed { clock, state: Mutex::default() }
    }

    /// Times a call. One that fails says nothing of the speed.
    pub(super) fn time<T, E>(&self, timed: Timed, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let Some(clock) = &self.clock else { return call() };
        let begun_us = clock.monotonic_us();
        let number = {
            let mut state = self.state.lock();
            state.next += 1;
            let number = state.next;
            state.running.insert(number, begun_us);
            number
        };
        let result = call();
        let now_us = clock.monotonic_us();
        let mut state = self.state.lock();
        state.running.remove(&number);
        if result.is_ok() {
            let times = match timed {
                Timed::Sync => &mut state.syncs,
                Timed::Read => &mut state.reads,
            };
            times.note(now_us, now_us.saturating_sub(begun_us));
        }
        result
    }

    pub(super) fn now_us(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.monotonic_us())
    }

    pub(super) fn status(&self) -> SpeedStatus {
        let now_us = self.now_us().unwrap_or(0);
        let mut state = self.state.lock();
        state.syncs.forget(now_us);
        state.reads.forget(now_us);
        SpeedStatus {
            sync_median_us: state.syncs.quantile(0.5),
            sync_p99_us: state.syncs.quantile(0.99),
            read_median_us: state.reads.quantile(0.5),
            read_p99_us: state.reads.quantile(0.99),
            waits_us: waits_us(&state, now_us),
            is_slow: state.is_slow || waits_us(&state, now_us) >= STALLED_US,
        }
    }

    /// Whether it was found slow, or a call stands still now: that counts before anybody looks.
    pub(super) fn is_slow(&self) -> bool {
        let now_us = self.now_us().unwrap_or(0);
        let state = self.state.lock();
        state.is_slow || waits_us(&state, now_us) >= STALLED_US
    }

    /// Whether it was used enough of late.
    pub(super) fn is_known(&self) -> bool {
        let now_us = self.now_us();
        // Where nobody measures nothing is to be known.
        now_us.is_none_or(|now_us| {
            let mut state = self.state.lock();
            state.syncs.forget(now_us);
            state.syncs.0.len() >= LEAST_SAMPLES
        })
    }

    /// What syncs take half of the time, of which there were enough.
    fn usual_sync_us(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.syncs.0.len() >= LEAST_SAMPLES).then(|| state.syncs.quantile(0.5)).flatten()
    }
}

fn waits_us(state: &State, now_us: u64) -> u64 {
    state.running.values().map(|begun_us| now_us.saturating_sub(*begun_us)).max().unwrap_or(0)
}

/// What became of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has grown slow: what its syncs take, and what those of the fastest of its tier.
    Slow { takes_us: u64, best_us: u64 },
    /// It is as fast as others again.
    Fast,
}

/// Looks at the volumes of one tier: what has changed since the last look, by their order. A volume alone in its tier is never called slow: its
/// files have nowhere else to go.
pub(super) fn look(speeds: &[&Speed]) -> Vec<(usize, Change)> {
    let mut changes = Vec::new();
    if speeds.len() < 2 {
        return changes;
    }
    for (at, speed) in speeds.iter().enumerate() {
        let Some(now_us) = speed.now_us() else { continue };
        let others = speeds.iter().enumerate().filter(|(other, speed)| *other != at && !speed.is_slow());
        let best_us = others.clone().filter_map(|(_, speed)| speed.usual_sync_us()).min();
        // The last one that is not slow stays so.
        let is_last = others.count() == 0;
        let usual_us = speed.usual_sync_us();
        let mut state = speed.state.lock();
        let waits_us = waits_us(&state, now_us);
        let takes_us = usual_us.unwrap_or(0).max(if waits_us >= STALLED_US { waits_us } else { 0 });
        let limit_us = |times: u64| best_us.map_or(STALLED_US, |best| (best * times).max(SLOW_SYNC_US));
        if !state.is_slow {
            if !is_last && takes_us > limit_us(SLOW_TIMES) {
                (state.is_slow, state.fast_since_us) = (true, None);
                changes.push((at, Change::Slow { takes_us, best_us: best_us.unwrap_or(0) }));
            }
        } else if waits_us < STALLED_US && lately_us(&state, now_us).is_some_and(|us| us <= limit_us(FAST_TIMES)) {
            let since_us = *state.fast_since_us.get_or_insert(now_us);
            if now_us.saturating_sub(since_us) >= FAST_FOR_US {
                state.is_slow = false;
                // What it took while it was slow says nothing of it now.
                state.syncs.0.retain(|(at_us, _)| *at_us >= since_us);
                changes.push((at, Change::Fast));
            }
        } else {
            state.fast_since_us = None;
        }
    }
    changes
}

/// The longest of the syncs of the last moments: of one that is probed every second.
fn lately_us(state: &State, now_us: u64) -> Option<u64> {
    let of_late = |(at_us, _): &&(u64, u64)| now_us.saturating_sub(*at_us) <= FAST_FOR_US / 4;
    state.syncs.0.iter().filter(of_late).map(|(_, took_us)| *took_us).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ManualClock;

    fn speeds(count: usize) -> (Arc<ManualClock>, Vec<Speed>) {
        let clock = Arc::new(ManualClock::new(0));
        let speeds = (0..count).map(|_| Speed::new(Some(clock.clone() as Arc<dyn Clock>))).collect();
        (clock, speeds)
    }

    fn sync(clock: &ManualClock, speed: &Speed, takes_ms: u64) {
        let call = || {
            clock.advance_ms(takes_ms);
            Ok::<_, ()>(())
        };
        speed.time(Timed::Sync, call).expect("it goes well");
    }

    fn look_at(speeds: &[Speed]) -> Vec<(usize, Change)> {
        look(&speeds.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_volume_that_grows_slow_is_demoted_and_comes_back_only_when_it_stays_fast() {
        let (clock, speeds) = speeds(3);
        for _ in 0..8 {
            speeds.iter().for_each(|speed| sync(&clock, speed, 5));
        }
        assert_eq!(look_at(&speeds), []);
        (0..10).for_each(|_| sync(&clock, &speeds[1], 50));
        assert_eq!(look_at(&speeds), [(1, Change::Slow { takes_us: 50_000, best_us: 5_000 })]);
        assert_eq!(look_at(&speeds), [], "it is told once");
        // Fast for some seconds, then slow once: not fast.
        let probe = |takes_ms: u64| {
            clock.advance_ms(1000);
            sync(&clock, &speeds[1], takes_ms);
            look_at(&speeds)
        };
        (0..8).for_each(|_| assert_eq!(probe(6), []));
        assert_eq!(probe(60), []);
        (0..12).for_each(|_| assert_eq!(probe(6), []));
        assert!(speeds[1].is_slow());
        let back: Vec<_> = (0..3).flat_map(|_| probe(6)).collect();
        assert_eq!((back, speeds[1].is_slow()), (vec![(1, Change::Fast)], false));
    }

    #[test]
    fn a_call_that_does_not_return_makes_its_volume_slow_before_it_does() {
        let (clock, speeds) = speeds(2);
        let seen = speeds[0].time(Timed::Sync, || {
            clock.advance_ms(900);
            let early = look_at(&speeds);
            assert!(!speeds[0].status().is_slow);
            clock.advance_ms(200);
            assert!(speeds[0].status().is_slow && speeds[0].is_slow(), "before anybody looks");
            Ok::<_, ()>((early, look_at(&speeds)))
        });
        let (early, late) = seen.expect("it returns");
        assert_eq!((early, late), (vec![], vec![(0, Change::Slow { takes_us: 1_100_000, best_us: 0 })]));
    }

    #[test]
    fn the_last_volume_of_a_tier_takes_files_however_slow_it_is() {
        let (clock, speeds) = speeds(2);
        (0..10).for_each(|_| speeds.iter().for_each(|speed| sync(&clock, speed, 2000)));
        assert_eq!(look_at(&speeds), [], "both are as slow");
        (0..300).for_each(|_| sync(&clock, &speeds[0], 1));
        let alone = &speeds[1..];
        assert_eq!(look_at(alone), []);
        let changes = look_at(&speeds);
        assert_eq!(changes.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1]);
        (0..300).for_each(|_| sync(&clock, &speeds[0], 3000));
        assert_eq!(look_at(&speeds), [], "the other is left");
    }

    #[test]
    fn quantiles_are_of_the_window_alone() {
        let (clock, speeds) = speeds(1);
        (0..99).for_each(|_| sync(&clock, &speeds[0], 1));
        sync(&clock, &speeds[0], 400);
        let status = speeds[0].status();
        assert_eq!((status.sync_median_us, status.sync_p99_us, status.read_p99_us), (Some(1000), Some(1000), None));
        clock.advance_ms(60_001);
        assert_eq!(speeds[0].status().sync_p99_us, None);
        let failed = speeds[0].time(Timed::Read, || Err::<(), _>("no"));
        assert_eq!((failed, speeds[0].status().read_median_us), (Err("no"), None), "what fails is not fast");
    }
}
