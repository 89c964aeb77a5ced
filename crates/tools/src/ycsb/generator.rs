//! YCSB's number generators, with its constants and its quirks: which keys are hot is part of a workload.
//!
//! Follows `site.ycsb.generator`. One copy per client, so that drawing needs no lock.

use base::Rng;

/// Skew of YCSB's zipfian distributions.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;
/// Items that the scrambled zipfian distribution draws from before it scrambles.
pub const SCRAMBLED_ITEM_COUNT: i64 = 10_000_000_000;
/// The zeta of [`SCRAMBLED_ITEM_COUNT`] items, as YCSB has it.
pub const SCRAMBLED_ZETAN: f64 = 26.469_028_201_783_02;

const FNV_OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 1_099_511_628_211;

/// The hash that scatters record numbers over keys: FNV-1a of the eight bytes, lowest first, without its sign.
pub fn fnv_hash(value: i64) -> i64 {
    let hash = value.to_le_bytes().iter().fold(FNV_OFFSET_BASIS, |h, b| (h ^ u64::from(*b)).wrapping_mul(FNV_PRIME));
    (hash as i64).wrapping_abs()
}

/// A number in `[0, 1)`.
pub fn unit(rng: &Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Draws record numbers, lengths, fields.
#[derive(Clone, Debug)]
pub enum Generator {
    /// Always the same.
    Constant(i64),
    /// Each from the first to the second with equal chance, both included.
    Uniform(i64, i64),
    /// Few often, many seldom; the first is the most frequent.
    Zipfian(Zipfian),
    /// As zipfian, the frequent ones scattered over all.
    Scrambled {
        /// Least.
        min: i64,
        /// How many.
        count: i64,
        /// What is scattered.
        zipfian: Zipfian,
    },
    /// As zipfian, counted back from the newest; see [`Generator::next`].
    Latest(Zipfian),
    /// A hot set that gets a share of the draws of its own.
    Hotspot {
        /// Least.
        min: i64,
        /// Size of the hot set, which comes first.
        hot: i64,
        /// Size of the rest.
        cold: i64,
        /// Share of draws from the hot set.
        hot_share: f64,
    },
    /// Distance back from the newest, exponentially distributed.
    Exponential {
        /// One divided by the mean.
        gamma: f64,
    },
    /// One after the other, round and round.
    Sequential {
        /// Least.
        min: i64,
        /// How many.
        count: i64,
        /// Draws so far, shared by all clients.
        drawn: std::sync::Arc<std::sync::atomic::AtomicI64>,
    },
    /// From a histogram of lengths.
    Histogram {
        /// Width of a bucket.
        block_size: i64,
        /// Weight of each bucket.
        buckets: Vec<i64>,
    },
}

impl Generator {
    /// `min..=max`, the frequent ones scattered.
    pub fn scrambled(min: i64, max: i64) -> Self {
        let zipfian = Zipfian::with_zetan(0, SCRAMBLED_ITEM_COUNT, ZIPFIAN_CONSTANT, SCRAMBLED_ZETAN);
        Self::Scrambled { min, count: max - min + 1, zipfian }
    }

    /// Back from the newest of at first `items`.
    pub fn latest(items: i64) -> Self {
        Self::Latest(Zipfian::new(0, items - 1))
    }

    /// `set_fraction` of `min..=max` gets `share` of the draws. Fractions outside of 0 to 1 count as 0.
    pub fn hotspot(min: i64, max: i64, set_fraction: f64, share: f64) -> Self {
        let (min, max) = (min.min(max), min.max(max));
        let fraction = |f: f64| if (0.0..=1.0).contains(&f) { f } else { 0.0 };
        let all = max - min + 1;
        let hot = (all as f64 * fraction(set_fraction)) as i64;
        Self::Hotspot { min, hot, cold: all - hot, hot_share: fraction(share) }
    }

    /// `percentile` percent of the draws lie within `range` of the newest.
    pub fn exponential(percentile: f64, range: f64) -> Self {
        Self::Exponential { gamma: -(1.0 - percentile / 100.0).ln() / range }
    }

    /// Round and round `min..=max`.
    pub fn sequential(min: i64, max: i64) -> Self {
        Self::Sequential { min, count: max - min + 1, drawn: std::sync::Arc::default() }
    }

    /// From the text of a histogram file: `BlockSize<TAB>n`, then `bucket<TAB>weight` lines.
    pub fn histogram(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let block_size = lines.next()?.strip_prefix("BlockSize\t")?.trim().parse().ok()?;
        let buckets: Option<Vec<i64>> = lines.map(|line| line.split('\t').nth(1)?.trim().parse().ok()).collect();
        let buckets = buckets.filter(|b| b.iter().sum::<i64>() > 0)?;
        Some(Self::Histogram { block_size, buckets })
    }

    /// The next number. `newest`: the newest record, for the distributions that follow it.
    pub fn next(&mut self, rng: &Rng, newest: i64) -> i64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(min, max) => *min + below(rng, *max - *min + 1),
            Self::Zipfian(zipfian) => zipfian.next(rng),
            Self::Scrambled { min, count, zipfian } => *min + fnv_hash(zipfian.next(rng)) % (*count).max(1),
            Self::Latest(zipfian) => newest - zipfian.next_of(rng, newest),
            Self::Hotspot { min, hot, cold, hot_share } => {
                if unit(rng) < *hot_share {
                    *min + below(rng, *hot)
                } else {
                    *min + *hot + below(rng, *cold)
                }
            }
            Self::Exponential { gamma } => newest - (-(1.0 - unit(rng)).ln() / *gamma) as i64,
            Self::Sequential { min, count, drawn } => {
                *min + drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % (*count).max(1)
            }
            Self::Histogram { block_size, buckets } => {
                let mut number = below(rng, buckets.iter().sum());
                for (bucket, weight) in buckets.iter().enumerate().take(buckets.len() - 1) {
                    number -= *weight;
                    if number <= 0 {
                        return (bucket as i64 + 1) * *block_size;
                    }
                }
                (buckets.len() as i64 - 1) * *block_size
            }
        }
    }
}

fn below(rng: &Rng, bound: i64) -> i64 {
    rng.below(u64::try_from(bound).unwrap_or_default()) as i64
}

/// Gray's quick zipfian generator, as YCSB writes it down.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: i64,
    base: i64,
    theta: f64,
    alpha: f64,
    zetan: f64,
    zeta2: f64,
    eta: f64,
    counted: i64,
}

impl Zipfian {
    /// `min..=max`. Takes a moment per million items.
    pub fn new(min: i64, max: i64) -> Self {
        let zetan = zeta(0, max - min + 1, ZIPFIAN_CONSTANT, 0.0);
        Self::with_zetan(min, max, ZIPFIAN_CONSTANT, zetan)
    }

    fn with_zetan(min: i64, max: i64, theta: f64, zetan: f64) -> Self {
        let items = max - min + 1;
        let zeta2 = zeta(0, 2, theta, 0.0);
        let alpha = 1.0 / (1.0 - theta);
        let mut zipfian = Self { items, base: min, theta, alpha, zetan, zeta2, eta: 0.0, counted: items };
        zipfian.eta = zipfian.eta_now();
        zipfian
    }

    /// As YCSB has it: the number of items in it stays that of the beginning, when there are more by now.
    fn eta_now(&self) -> f64 {
        (1.0 - (2.0 / self.items as f64).powf(1.0 - self.theta)) / (1.0 - self.zeta2 / self.zetan)
    }

    /// The next number.
    pub fn next(&mut self, rng: &Rng) -> i64 {
        self.next_of(rng, self.items)
    }

    /// The next number when there are `items`; a growing number is cheap, a falling one is not looked at.
    pub fn next_of(&mut self, rng: &Rng, items: i64) -> i64 {
        if items > self.counted {
            self.zetan = zeta(self.counted, items, self.theta, self.zetan);
            self.counted = items;
            self.eta = self.eta_now();
        }
        let u = unit(rng);
        let uz = u * self.zetan;
        if uz < 1.0 {
            return self.base;
        }
        if uz < 1.0 + 0.5_f64.powf(self.theta) {
            return self.base + 1;
        }
        self.base + (items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as i64
    }
}

/// Adds the terms of items `from..to` to `sum`.
fn zeta(from: i64, to: i64, theta: f64, sum: f64) -> f64 {
    (from..to).fold(sum, |sum, i| sum + 1.0 / ((i + 1) as f64).powf(theta))
}

/// Hands out record numbers to insert, and says which is the newest that all readers may ask for: inserts end out of
/// order, and a record counts only when all before it are there.
#[derive(Debug)]
pub struct AcknowledgedCounter {
    next: std::sync::atomic::AtomicI64,
    limit: std::sync::atomic::AtomicI64,
    done: parking_lot::Mutex<std::collections::BTreeSet<i64>>,
}

impl AcknowledgedCounter {
    /// Begins with `start`; all before it are there.
    pub fn new(start: i64) -> Self {
        Self { next: start.into(), limit: (start - 1).into(), done: parking_lot::Mutex::default() }
    }

    /// The next number to insert.
    pub fn next(&self) -> i64 {
        self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// The newest number up to which all are there.
    pub fn last(&self) -> i64 {
        self.limit.load(std::sync::atomic::Ordering::Acquire)
    }

    /// `number` has been inserted.
    pub fn acknowledge(&self, number: i64) {
        let mut done = self.done.lock();
        let mut limit = self.last();
        if number > limit {
            done.insert(number);
        }
        while done.remove(&(limit + 1)) {
            limit += 1;
        }
        self.limit.store(limit, std::sync::atomic::Ordering::Release);
    }
}

#[cfg(test)]
#[path = "generator_tests.rs"]
mod tests;
