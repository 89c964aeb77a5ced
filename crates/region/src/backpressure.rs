//! Back-pressure: how fast a region's writes may come while flushes and compactions, on whichever volume, have work of it to do.
//!
//! A write pays for its bytes at a rate, and waits for its turn; who lets it wait parks it. The rate follows from what is owed (memory that
//! is in no file yet, and files that are to be compacted) and from what flushes and compactions were measured to get done: far above that
//! while little is owed, equal to it half way, nothing at the end. So writes end up as fast as the slow side works, with half of the room
//! left for what comes in bursts; where nothing is owed beyond one memstore there is no rate at all. Each number is a function of others, the
//! clock's among them: the same history gives the same waits.
//!
//! HBase has nothing like it: there writes go on at full speed until `MemStoreFlusher` blocks them.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Longest wait of one write.
pub const MOST_WAIT_US: u64 = 800_000;
/// A shorter wait is owed, and paid with the next one.
const LEAST_WAIT_US: u64 = 1_000;
/// What is written within so long of an idle time is not paced.
const BURST_US: u64 = 10_000;
/// How long a rate holds.
const RATE_HOLDS_US: u64 = 5_000;
/// Measurements lose their weight by this much time of work: more than the pauses between the steps of one flush, less than an operator waits.
const REMEMBERED_US: f64 = 4_000_000.0;
/// What was measured for less time says nothing.
const LEAST_MEASURED_US: f64 = 50_000.0;
/// Part of the measured rate that stays where files wait to be compacted: flushes can go on, and what was acknowledged needs them.
const LEAST_PART: f64 = 1.0 / 16.0;

/// How much gets done in a second of work, by all who are at it together: bytes flushed, or files compacted away.
#[derive(Debug, Default)]
pub struct DrainMeter(Mutex<Measured>);

#[derive(Debug, Default)]
struct Measured {
    /// Who are at it.
    working: u32,
    /// Up to when the sums are.
    at_us: u64,
    done: f64,
    time_us: f64,
}

impl Measured {
    fn advance(&mut self, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.at_us) as f64;
        self.at_us = self.at_us.max(now_us);
        // Nobody works: nothing is learned, nothing forgotten.
        if self.working > 0 && passed_us > 0.0 {
            let kept = (-passed_us / REMEMBERED_US).exp();
            self.done *= kept;
            self.time_us = self.time_us * kept + REMEMBERED_US * (1.0 - kept);
        }
    }
}

impl DrainMeter {
    /// A piece of work begins.
    pub fn begin(&self, now_us: u64) {
        let mut measured = self.0.lock();
        measured.advance(now_us);
        measured.working += 1;
    }

    /// So much of it is done.
    pub fn did(&self, amount: f64, now_us: u64) {
        let mut measured = self.0.lock();
        measured.advance(now_us);
        measured.done += amount;
    }

    /// A piece of work has ended.
    pub fn end(&self, now_us: u64) {
        let mut measured = self.0.lock();
        measured.advance(now_us);
        measured.working = measured.working.saturating_sub(1);
    }

    /// Whether anybody is at it.
    pub fn is_working(&self) -> bool {
        self.0.lock().working > 0
    }

    /// What gets done in a second, work that stands still counted as it is now; `None` before anything was measured.
    pub fn per_second(&self, now_us: u64) -> Option<f64> {
        let mut measured = self.0.lock();
        measured.advance(now_us);
        (measured.time_us >= LEAST_MEASURED_US).then(|| measured.done * 1e6 / measured.time_us)
    }
}

/// What is owed in memory: by a region, or by all of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Debt {
    /// Bytes in memory that no file has yet: those that a running flush has written do not count.
    pub owed_bytes: u64,
    /// Up to here it is nobody's business.
    pub start_bytes: u64,
    /// Here nothing more may come.
    pub end_bytes: u64,
    /// Bytes that may still come before writes are refused.
    pub free_bytes: u64,
    /// Bytes that are to be written before memory is given back: the rest of the running flush, else those that the next one has.
    pub left_bytes: u64,
}

impl Debt {
    /// Which part of what is flushed may come in meanwhile: without a bound at the start, as much half way, nothing at the end; and never more
    /// than there is room for until memory is given back, which happens at the end of a flush. `None`: as much as there is.
    pub fn part(&self) -> Option<f64> {
        let ahead = if self.owed_bytes <= self.start_bytes {
            f64::INFINITY
        } else {
            let over = (self.owed_bytes - self.start_bytes) as f64;
            let room = self.end_bytes.saturating_sub(self.start_bytes).max(1) as f64;
            ((room - over) / over).max(0.0)
        };
        let fits = self.free_bytes as f64 / self.left_bytes.max(1) as f64;
        let part = ahead.min(fits);
        // Nobody writes so much faster than is flushed for long.
        (part < 16.0).then_some(part)
    }
}

/// The same for files of a store that are to be compacted, where `blocking` are too many: from two thirds of that on.
pub fn part_of_files(files: usize, blocking: usize) -> Option<f64> {
    let (start, end) = (blocking as f64 * 2.0 / 3.0, blocking as f64);
    let over = files as f64 - start;
    (over > 0.0).then(|| ((end - start - over) / over).max(LEAST_PART))
}

/// Where the debt of a region begins and ends whose memstore is flushed at `flush_bytes` and refuses writes at `limit_bytes`: half way the
/// memory that comes while all that is owed is flushed has room, too.
pub fn marks(flush_bytes: u64, limit_bytes: u64) -> (u64, u64) {
    let half_way = (limit_bytes as f64 * 0.44).max(flush_bytes as f64 * 1.1);
    (flush_bytes, flush_bytes + 2 * (half_way as u64 - flush_bytes).max(1))
}

/// Has writes wait so that they come at a rate, one after the other. Without a rate it costs the look at one number.
#[derive(Debug, Default)]
pub struct Pace {
    rate_at_us: AtomicU64,
    /// `f64`'s bits.
    rate: AtomicU64,
    /// When what was let in is paid.
    paid_us: AtomicU64,
}

impl Pace {
    /// How long a write of `bytes` waits from `now_us` on, and notes it as coming: microseconds, [`MOST_WAIT_US`] at most. `rate` tells how
    /// many bytes may come in a second, without one as many as do; it is asked at most once in some milliseconds.
    pub fn wait_us(&self, bytes: u64, now_us: u64, rate: impl FnOnce() -> Option<f64>) -> u64 {
        let at_us = self.rate_at_us.load(Relaxed);
        let rate = if at_us == 0 || now_us.saturating_sub(at_us) >= RATE_HOLDS_US {
            let rate = rate().unwrap_or(f64::INFINITY);
            self.rate.store(rate.to_bits(), Relaxed);
            self.rate_at_us.store(now_us.max(1), Relaxed);
            rate
        } else {
            f64::from_bits(self.rate.load(Relaxed))
        };
        if rate == f64::INFINITY {
            return 0;
        }
        let cost_us = (bytes as f64 * 1e6 / rate.max(1.0)).min(MOST_WAIT_US as f64) as u64;
        let next = |paid_us: u64| {
            let from_us = paid_us.max(now_us.saturating_sub(BURST_US));
            Some((from_us + cost_us).min(now_us + MOST_WAIT_US))
        };
        let before_us = self.paid_us.fetch_update(Relaxed, Relaxed, next).unwrap_or_else(|paid_us| paid_us);
        let wait_us = next(before_us).unwrap_or(now_us).saturating_sub(now_us);
        if wait_us < LEAST_WAIT_US { 0 } else { wait_us }
    }
}

/// What a region's flushes and compactions have still to do, and the pace of its writes.
#[derive(Debug)]
pub(crate) struct RegionDebt {
    pub start_bytes: u64,
    pub end_bytes: u64,
    pub limit_bytes: u64,
    /// Some store has more files than it should.
    pub has_many_files: AtomicBool,
    /// Bytes of memory that the running flush takes, and has written.
    flushing_bytes: AtomicU64,
    written_bytes: AtomicU64,
    /// Bytes of memory that one file stands for, lately.
    file_bytes: AtomicU64,
    /// What the server's meter has been told that this region owes.
    told_bytes: AtomicU64,
    pub pace: Pace,
}

impl RegionDebt {
    pub(crate) fn new(flush_bytes: u64, limit_bytes: u64) -> RegionDebt {
        let (start_bytes, end_bytes) = marks(flush_bytes, limit_bytes);
        RegionDebt {
            start_bytes,
            end_bytes,
            limit_bytes,
            has_many_files: AtomicBool::new(false),
            flushing_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            file_bytes: AtomicU64::new(flush_bytes),
            told_bytes: AtomicU64::new(0),
            pace: Pace::default(),
        }
    }

    /// What is owed while `held_bytes` are in memory.
    pub(crate) fn debt(&self, held_bytes: u64) -> Debt {
        let (flushing, written) = (self.flushing_bytes.load(Relaxed), self.written_bytes.load(Relaxed));
        let owed_bytes = held_bytes.saturating_sub(written);
        Debt {
            owed_bytes,
            start_bytes: self.start_bytes,
            end_bytes: self.end_bytes,
            free_bytes: self.limit_bytes.saturating_sub(held_bytes),
            left_bytes: if flushing > 0 { flushing.saturating_sub(written) } else { owed_bytes },
        }
    }

    /// More than half of what may be owed: a flush waits for nothing.
    pub(crate) fn owes_much(&self, held_bytes: u64) -> bool {
        self.debt(held_bytes).owed_bytes > self.start_bytes + (self.end_bytes - self.start_bytes) / 2
    }

    /// A flush takes so much memory.
    pub(crate) fn begin_flush(&self, bytes: u64) {
        self.written_bytes.store(0, Relaxed);
        self.flushing_bytes.store(bytes, Relaxed);
    }

    /// It has come so far; how much further that is than before.
    pub(crate) fn flushed(&self, part: f64) -> u64 {
        let to = (self.flushing_bytes.load(Relaxed) as f64 * part.min(1.0)) as u64;
        to.saturating_sub(self.written_bytes.fetch_max(to, Relaxed))
    }

    /// The flush has ended; with `file_bytes` it has made a file of so much memory. How much of it counted as written.
    pub(crate) fn end_flush(&self, file_bytes: Option<u64>) -> u64 {
        self.flushing_bytes.store(0, Relaxed);
        if let Some(bytes) = file_bytes {
            self.file_bytes.store(bytes.max(1), Relaxed);
        }
        self.written_bytes.swap(0, Relaxed)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Relaxed)
    }

    /// Tells `sum`, which all regions share, what this one owes beyond its start; returns the sum.
    pub(crate) fn tell(&self, owed_bytes: u64, sum: &AtomicU64) -> u64 {
        let owed_bytes = if owed_bytes > self.start_bytes { owed_bytes } else { 0 };
        let before = self.told_bytes.swap(owed_bytes, Relaxed);
        // Wraps around on the way, and comes out right.
        sum.fetch_add(owed_bytes.wrapping_sub(before), Relaxed).wrapping_add(owed_bytes.wrapping_sub(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_comes_in_ends_up_at_what_is_flushed() {
        let debt = |owed: u64| Debt {
            owed_bytes: owed * MIB,
            start_bytes: 100 * MIB,
            end_bytes: 200 * MIB,
            free_bytes: 1000 * MIB,
            left_bytes: 10 * MIB,
        };
        assert_eq!([0, 100, 102].map(|owed| debt(owed).part()), [None; 3], "gently: at first not at all");
        assert_eq!(debt(110).part(), Some(9.0));
        assert_eq!(debt(150).part(), Some(1.0), "half way as much as is flushed");
        assert_eq!((debt(200).part(), debt(999).part()), (Some(0.0), Some(0.0)));
        let cramped = Debt { free_bytes: 5 * MIB, ..debt(0) };
        assert_eq!(cramped.part(), Some(0.5), "until memory is given back there is room for half as much");
    }

    #[test]
    fn files_that_wait_for_a_compaction_slow_writes_down_and_never_stop_them() {
        let parts: Vec<_> = (9..=17).map(|files| part_of_files(files, 16)).collect();
        assert_eq!(parts[..2], [None, None]);
        assert!(parts[2..].windows(2).all(|two| two[1] <= two[0]), "{parts:?}");
        assert!(parts[3] > Some(2.0) && parts[5] < Some(1.0), "{parts:?}");
        assert_eq!(parts[8], Some(LEAST_PART));
    }

    #[test]
    fn a_meter_tells_what_is_done_in_a_second_of_work_and_forgets() {
        let meter = DrainMeter::default();
        assert_eq!(meter.per_second(5), None);
        let mut now_us = 1_000_000;
        let mut work = |seconds: u64, each: f64| {
            meter.begin(now_us);
            for _ in 0..seconds * 10 {
                now_us += 100_000;
                meter.did(each, now_us);
            }
            meter.end(now_us);
            now_us += 60_000_000;
            meter.per_second(now_us).expect("measured")
        };
        let first = work(1, 10.0);
        assert!((first - 100.0).abs() < 3.0, "{first}: idle minutes do not count");
        let slower = work(20, 1.0);
        assert!((slower - 10.0).abs() < 2.0, "{slower}");
    }

    #[test]
    fn work_that_stands_still_counts_as_slow_before_it_ends() {
        let meter = DrainMeter::default();
        meter.begin(0);
        meter.did(100.0, 1_000_000);
        let (soon, late) = (meter.per_second(1_000_000), meter.per_second(11_000_000));
        assert!(soon > Some(90.0) && late < Some(9.0), "{soon:?} {late:?}");
    }

    /// A closed loop: a flusher of 20 MiB a second, writers who want twice that or just that.
    fn run(wanted: f64) -> (u64, u64, f64) {
        let (flush, limit) = (32 * MIB, 128 * MIB);
        let region = RegionDebt::new(flush, limit);
        let (meter, rate_of_disk) = (DrainMeter::default(), 20.0 * MIB as f64);
        let (mut held, mut flushing, mut written) = (0.0f64, 0.0f64, 0.0f64);
        let (mut most_held, mut most_wait_us, mut let_in) = (0.0f64, 0, 0.0);
        // One writer's clock: what is let in comes when it may.
        let mut arrives: std::collections::VecDeque<u64> = Default::default();
        let write = 16u64 << 10;
        let mut due = 0.0;
        for ms in 0..60_000u64 {
            let now_us = ms * 1000 + 1;
            due += wanted / 1000.0;
            // Thirty-two clients, each with one write on its way.
            while due >= write as f64 && arrives.len() < 32 {
                due -= write as f64;
                let rate = || {
                    let part = region.debt(held as u64).part()?;
                    Some(part * meter.per_second(now_us)?)
                };
                let wait_us =
                    if held as u64 > region.start_bytes { region.pace.wait_us(write, now_us, rate) } else { 0 };
                most_wait_us = most_wait_us.max(wait_us);
                arrives.push_back(now_us + wait_us);
            }
            due = due.min(wanted / 10.0);
            arrives.retain(|at| {
                let comes = *at <= now_us;
                held += if comes { write as f64 } else { 0.0 };
                let_in += if comes && ms >= 20_000 { write as f64 } else { 0.0 };
                !comes
            });
            most_held = most_held.max(held);
            if flushing == 0.0 && held > flush as f64 {
                (flushing, written) = (held, 0.0);
                region.begin_flush(flushing as u64);
                meter.begin(now_us);
            }
            if flushing > 0.0 {
                written += rate_of_disk / 1000.0;
                let more = region.flushed(written / flushing);
                meter.did(more as f64, now_us);
                if written >= flushing {
                    held -= flushing;
                    region.end_flush(Some(flushing as u64));
                    meter.end(now_us);
                    flushing = 0.0;
                }
            }
        }
        (most_held as u64, most_wait_us, let_in / 40.0 / rate_of_disk)
    }

    #[test]
    fn writes_that_the_slow_volume_absorbs_hardly_wait() {
        let (most_held, most_wait_us, part) = run(19.0 * MIB as f64);
        assert!(most_held < 128 * MIB, "{most_held}: no write is refused");
        assert!(most_wait_us < 50_000, "{most_wait_us}");
        assert!(part > 0.93, "{part}");
    }

    #[test]
    fn twice_as_many_are_slowed_to_what_it_absorbs_and_none_is_refused() {
        let (most_held, most_wait_us, part) = run(40.0 * MIB as f64);
        assert!(most_held < 128 * MIB, "{most_held}: no write is refused");
        assert!(most_wait_us < 200_000, "{most_wait_us}");
        assert!(part > 0.9 && part < 1.1, "{part}");
    }

    #[test]
    fn regions_share_what_is_flushed_by_what_they_owe() {
        let sum = AtomicU64::new(0);
        let [one, other] = [1, 2].map(|_| RegionDebt::new(10, 40));
        assert_eq!(
            (one.tell(30, &sum), other.tell(11, &sum), one.tell(12, &sum), other.tell(3, &sum)),
            (30, 41, 23, 12)
        );
        assert_eq!(one.tell(0, &sum), 0);
    }

    #[test]
    fn no_wait_is_longer_than_its_bound_nor_does_one_write_hold_the_next_ones_up_longer() {
        let pace = Pace::default();
        let huge = pace.wait_us(1 << 40, 1_000_000, || Some(1.0));
        let next = pace.wait_us(1, 1_000_000, || None);
        assert_eq!((huge, next), (MOST_WAIT_US - BURST_US, MOST_WAIT_US - BURST_US + 1_000_000.min(BURST_US)));
        assert_eq!(pace.wait_us(1, 9_000_000, || None), 0, "the rate is looked at anew");
    }
}
