//! A histogram for hot paths: buckets that are a sixteenth of a power of two wide, counted by each thread in memory of its own
//! ([`own_stripe`]), which costs less than half of what an addition costs that other threads may make, too.
//!
//! A value is off by at most one part in sixteen. What is shown is the last one to two minutes: recording only ever adds, and the reader
//! subtracts what it saw at the beginning of that time. Follows: `FastLongHistogram` in what it is for, HdrHistogram in its buckets.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::own_stripe::{self, OWNERS, SHARED};

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds; shown in milliseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
}

/// Values below this have a bucket each; from there on a power of two has this many.
const STEPS: u64 = 16;
/// The bit that `STEPS` is.
const STEP_BITS: u32 = 4;
/// Values of this many bits and more share the last bucket: 2^40 us are twelve days.
const MAX_BITS: u32 = 40;
/// How many buckets that makes.
const BUCKETS: usize = ((MAX_BITS - STEP_BITS + 1) as usize) * STEPS as usize;
/// What is shown goes back at least this far (when the histogram is read at all), and less than twice as far.
const WINDOW_MS: i64 = 60_000;

/// The counts of one thread, or of all that have no number of their own.
#[derive(Debug)]
struct Counts {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Counts {
    fn new() -> Box<Counts> {
        Box::new(Counts { buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0) })
    }
}

/// The spread of values that many threads record. 4.7 KiB for each thread that has recorded, at most sixteen times.
#[derive(Debug)]
pub struct Histogram {
    unit: Unit,
    /// Whether all threads count together.
    is_shared: bool,
    stripes: [OnceLock<Box<Counts>>; OWNERS + 1],
    /// What had been recorded when the current and the previous window began.
    windows: Mutex<Windows>,
}

#[derive(Debug, Default)]
struct Windows {
    began_ms: Option<i64>,
    current: Spread,
    previous: Spread,
}

/// Counts by bucket, at one moment or over a time.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// Empty: nothing was counted.
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
}

fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let bits = u64::BITS - value.leading_zeros();
    if bits > MAX_BITS {
        return BUCKETS - 1;
    }
    let exponent = bits - STEP_BITS - 1;
    (u64::from(exponent) * STEPS + (value >> exponent)) as usize
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let exponent = bucket / STEPS - 1;
    (((bucket % STEPS) + STEPS + 1) << exponent) - 1
}

/// The smallest value of a bucket.
fn lower(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { upper(bucket - 1) + 1 }
}

impl Histogram {
    /// Nothing recorded yet.
    pub fn new(unit: Unit) -> Histogram {
        Histogram {
            unit,
            is_shared: false,
            stripes: std::array::from_fn(|_| OnceLock::new()),
            windows: Mutex::default(),
        }
    }

    /// One of many of its kind: all threads count in the same memory, [`Histogram::SHARED_BYTES`] at most.
    pub fn shared(unit: Unit) -> Histogram {
        Histogram { is_shared: true, ..Histogram::new(unit) }
    }

    /// Bytes of a [`Histogram::shared`] that has recorded and was read over time: its counts, and those of two windows.
    pub const SHARED_BYTES: u64 = (size_of::<Histogram>() + 3 * size_of::<Counts>()) as u64;

    /// What the values are.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Counts a value.
    #[inline]
    pub fn record(&self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts `times` values that are the same. Cost: two additions in memory that mostly no other thread writes.
    #[inline]
    pub fn record_many(&self, value: u64, times: u64) {
        let number = if self.is_shared { SHARED } else { own_stripe::number() };
        let counts = self.stripes[number].get_or_init(Counts::new);
        let (counter, sum) = (&counts.buckets[bucket(value)], value.wrapping_mul(times));
        if number == SHARED {
            counter.fetch_add(times, Relaxed);
            counts.sum.fetch_add(sum, Relaxed);
        } else {
            counter.store(counter.load(Relaxed) + times, Relaxed);
            counts.sum.store(counts.sum.load(Relaxed).wrapping_add(sum), Relaxed);
        }
    }

    /// How many values were recorded since the beginning.
    pub fn count(&self) -> u64 {
        self.all().count
    }

    /// Everything since the beginning.
    pub fn all(&self) -> Spread {
        let mut all = Spread::default();
        for counts in self.stripes.iter().filter_map(OnceLock::get) {
            all.buckets.resize(BUCKETS, 0);
            for (sum, counted) in all.buckets.iter_mut().zip(&counts.buckets) {
                let counted = counted.load(Relaxed);
                *sum += counted;
                all.count += counted;
            }
            all.sum = all.sum.wrapping_add(counts.sum.load(Relaxed));
        }
        all
    }

    /// The last one to two minutes before `now_ms` (the wall clock), or as long as the histogram has been read. A clock that goes back begins
    /// a new window.
    pub fn spread(&self, now_ms: i64) -> Spread {
        let all = self.all();
        let mut windows = self.windows.lock();
        match windows.began_ms {
            None => windows.began_ms = Some(now_ms),
            Some(began_ms) if (began_ms..began_ms + WINDOW_MS).contains(&now_ms) => {}
            Some(_) => {
                windows.began_ms = Some(now_ms);
                windows.previous = std::mem::replace(&mut windows.current, all.clone());
            }
        }
        all.since(&windows.previous)
    }
}

impl Spread {
    /// So many values that are 0.
    pub fn zeros(count: u64) -> Spread {
        let mut buckets = vec![0; BUCKETS];
        buckets[0] = count;
        Spread { buckets, count, sum: 0 }
    }

    /// The values of both.
    #[must_use]
    pub fn and(mut self, other: &Spread) -> Spread {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (counted, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *counted += more;
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self
    }

    /// What came after `before`, an earlier spread of the same histogram.
    fn since(mut self, before: &Spread) -> Spread {
        for (counted, earlier) in self.buckets.iter_mut().zip(&before.buckets) {
            *counted = counted.saturating_sub(*earlier);
        }
        self.count = self.buckets.iter().sum();
        self.sum = self.sum.wrapping_sub(before.sum);
        self
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many values are `limit` at most, to a sixteenth of it.
    pub fn count_up_to(&self, limit: u64) -> u64 {
        self.buckets.iter().take(bucket(limit) + 1).sum()
    }

    /// All together.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest, to a sixteenth; 0 without values.
    pub fn min(&self) -> u64 {
        self.buckets.iter().position(|counted| *counted > 0).map_or(0, lower)
    }

    /// The largest, to a sixteenth; 0 without values.
    pub fn max(&self) -> u64 {
        self.buckets.iter().rposition(|counted| *counted > 0).map_or(0, upper)
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The least value, to a sixteenth, that `quantile` (0 to 1) of all values do not exceed; 0 without values.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((self.count as f64 * quantile).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, counted) in self.buckets.iter().enumerate() {
            seen += counted;
            if seen >= rank {
                return upper(bucket);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_one_counts_for_all_threads_in_one_place() {
        let histogram = Histogram::shared(Unit::Count);
        let record = || (0..1000).for_each(|value| histogram.record(value));
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(record))));
        assert_eq!((histogram.count(), histogram.all().sum()), (4000, 4 * 499_500));
        assert_eq!(histogram.stripes.iter().filter(|stripe| stripe.get().is_some()).count(), 1);
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for at in 1..BUCKETS {
            assert_eq!(bucket(lower(at)), at);
            assert_eq!(bucket(upper(at)), at, "{at}: {} to {}", lower(at), upper(at));
            assert!(upper(at) - lower(at) <= lower(at) / STEPS, "{at}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_values_to_a_sixteenth() {
        let histogram = Histogram::new(Unit::Micros);
        (1..=10_000).for_each(|value| histogram.record(value));
        let spread = histogram.spread(0);
        assert_eq!((spread.count(), spread.min(), histogram.count()), (10_000, 1, 10_000));
        assert!((spread.mean() - 5000.5).abs() < 1e-9);
        for (quantile, value) in [(0.25, 2500), (0.5, 5000), (0.99, 9900), (0.999, 9990)] {
            let seen = spread.quantile(quantile);
            assert!((value..value + value / 16 + 1).contains(&seen), "{quantile}: {seen}");
        }
        assert!((10_000..10_700).contains(&spread.max()));
    }

    #[test]
    fn values_up_to_a_limit_are_counted() {
        let histogram = Histogram::new(Unit::Micros);
        [0, 5, 999, 1000, 5000].into_iter().for_each(|value| histogram.record(value));
        let all = histogram.all();
        assert_eq!([0, 4, 5, 1000, 4000, u64::MAX].map(|limit| all.count_up_to(limit)), [1, 1, 2, 4, 4, 5]);
        assert_eq!(Spread::default().count_up_to(3), 0);
    }

    #[test]
    fn values_leave_after_two_windows_and_are_counted_for_ever() {
        let histogram = Histogram::new(Unit::Count);
        histogram.record(5);
        assert_eq!(histogram.spread(0).count(), 1);
        histogram.record(7);
        assert_eq!(histogram.spread(WINDOW_MS).count(), 2, "the window before is shown too");
        assert_eq!(histogram.spread(2 * WINDOW_MS).count(), 0);
        histogram.record(9);
        let last = histogram.spread(2 * WINDOW_MS + 1);
        assert_eq!((last.count(), last.min(), histogram.count()), (1, 9, 3));
        assert_eq!(histogram.spread(-5).count(), 1, "a clock that went back begins a window");
    }

    #[test]
    fn nothing_that_more_threads_record_than_have_numbers_is_lost() {
        let histogram = Histogram::new(Unit::Count);
        for _ in 0..2 {
            std::thread::scope(|scope| {
                for thread in 0..OWNERS as u64 + 9 {
                    let histogram = &histogram;
                    scope.spawn(move || (0..1000).for_each(|_| histogram.record_many(thread, 2)));
                }
            });
        }
        let threads = OWNERS as u64 + 9;
        assert_eq!(histogram.count(), threads * 4000);
        assert!((histogram.all().mean() - (threads - 1) as f64 / 2.0).abs() < 1e-9);
    }

    #[test]
    fn two_spreads_together_have_the_values_of_both() {
        let histogram = Histogram::new(Unit::Micros);
        [3, 9].into_iter().for_each(|value| histogram.record(value));
        let both = Spread::zeros(2).and(&histogram.all()).and(&Spread::default());
        assert_eq!((both.count(), both.min(), both.max(), both.quantile(0.75)), (4, 0, 9, 3));
        assert!((both.mean() - 3.0).abs() < 1e-9);
        assert_eq!(Spread::default().and(&both).count(), 4);
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let spread = Histogram::new(Unit::Bytes).spread(3);
        assert_eq!((spread.count(), spread.min(), spread.max(), spread.quantile(0.99)), (0, 0, 0, 0));
        assert!(spread.mean().abs() < f64::EPSILON);
    }
}
