//! How the memory budget is divided, and how the division follows the load. See docs/decisions/0020.
//!
//! Knows what each holder may have ([`Division`]) and who could use more ([`MemoryWatch`]); moving the room is the ledger's business.

use crate::settings;
use base::{Config, Demand, Holder, Ledger, Setting, Share};
use hfile::CacheStats;
use std::sync::Arc;

/// A share of the budget that calls have for what comes and goes with them: one part in so many is theirs always, and one may be at most,
/// but never less than so many bytes.
struct Passing {
    holder: Holder,
    floor_part: u64,
    cap_part: u64,
    least_bytes: u64,
}

const fn passing(holder: Holder, floor_part: u64, cap_part: u64, least_bytes: u64) -> Passing {
    Passing { holder, floor_part, cap_part, least_bytes }
}

/// Their floors come to three sixteenths, their caps to a half.
const PASSING: [Passing; 4] = [
    passing(Holder::Requests, 16, 4, 16 << 20),
    passing(Holder::Replies, 16, 8, 16 << 20),
    passing(Holder::Scanners, 32, 16, 4 << 20),
    passing(Holder::Nonces, 32, 16, 4 << 20),
];

/// Users' measurements may have one part in so many of the budget.
const USERS_PART: u64 = 64;
/// The logs that are being split may have one part in so many of it.
const WAL_SPLITTING_PART: u64 = 8;

/// Memstores and cache move by one part in so many of the budget, at most once a second: from one end of their range to the other in some
/// minutes, while blocks leave the cache a few at a time.
const STEP_PART: u64 = 256;
/// Rounds of the chores between two such steps.
const ROUNDS_PER_STEP: u64 = 4;
/// A cache is too small when one lookup in so many is for a block that left it shortly before.
const RETURNED_PART: u64 = 128;
/// Fewer say nothing.
const LEAST_RETURNED: u64 = 8;

/// What each holder may have of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    passing: [(Holder, Share); 4],
    memstores: Share,
    block_cache: Share,
}

/// The range in which a fraction moves. As in HBase one that is set and has no range stays where it is, and a range that leaves it out
/// ends at it.
fn range(config: &Config, size: &Setting<f64>, min: &Setting<f64>, max: &Setting<f64>) -> (f64, f64, f64) {
    let start = config.get(size);
    let end = |end: &Setting<f64>| {
        if config.is_set(size.key) && !config.is_set(end.key) { start } else { config.get(end) }
    };
    (end(min).min(start), start, end(max).max(start))
}

impl Division {
    /// Of `budget_bytes`; requests have at most `max_queued_bytes`.
    pub fn new(config: &Config, budget_bytes: u64, max_queued_bytes: u64) -> Division {
        let passing = PASSING.map(|one| {
            let limit = if one.holder == Holder::Requests { max_queued_bytes } else { u64::MAX };
            let cap_bytes = (budget_bytes / one.cap_part).max(one.least_bytes).min(limit);
            let floor_bytes = (budget_bytes / one.floor_part).max(one.least_bytes / 2).min(cap_bytes);
            (one.holder, Share { floor_bytes, start_bytes: floor_bytes, cap_bytes })
        });
        let memstores = range(
            config,
            &settings::GLOBAL_MEMSTORE_FRACTION,
            &settings::GLOBAL_MEMSTORE_MIN_FRACTION,
            &settings::GLOBAL_MEMSTORE_MAX_FRACTION,
        );
        let block_cache = range(
            config,
            &settings::BLOCK_CACHE_FRACTION,
            &settings::BLOCK_CACHE_MIN_FRACTION,
            &settings::BLOCK_CACHE_MAX_FRACTION,
        );
        let block_cache = match config.text(settings::BLOCK_CACHE_BYTES.key).and_then(settings::bytes_of) {
            Some(bytes) => {
                let fraction = (bytes as f64 / budget_bytes.max(1) as f64).min(1.0);
                (fraction, fraction, fraction)
            }
            None => block_cache,
        };
        // What is left of it is for memstores and cache. A budget of less than some 40 MiB is exceeded rather than not used.
        let floors: u64 = passing.iter().map(|(_, share)| share.floor_bytes).sum();
        let left_bytes = budget_bytes.saturating_sub(floors).max(budget_bytes / 2) as f64;
        let of_both = (memstores.1 + block_cache.0) * budget_bytes as f64;
        let unit = budget_bytes as f64 * (left_bytes / of_both.max(1.0)).min(1.0);
        let bytes = |fraction: f64| (fraction * unit) as u64;
        Division {
            passing,
            memstores: Share {
                floor_bytes: bytes(memstores.0),
                start_bytes: bytes(memstores.1).max(1),
                cap_bytes: bytes(memstores.2).max(1),
            },
            // At first it has what nobody else does.
            block_cache: Share {
                floor_bytes: bytes(block_cache.0),
                start_bytes: bytes(block_cache.2),
                cap_bytes: bytes(block_cache.2),
            },
        }
    }

    /// What memstores may have at a start.
    pub fn memstores_start_bytes(&self) -> u64 {
        self.memstores.start_bytes
    }
}

/// A ledger for `budget_bytes`, divided as the settings say; requests have at most `max_queued_bytes`.
pub fn ledger(config: &Config, budget_bytes: u64, max_queued_bytes: u64) -> Arc<Ledger> {
    let division = Division::new(config, budget_bytes, max_queued_bytes);
    let ledger = Ledger::new(budget_bytes);
    division.passing.iter().for_each(|(holder, share)| ledger.set_share(*holder, *share));
    ledger.set_share(Holder::Memstores, division.memstores);
    // Taken from the cache where users are measured at all.
    let users_bytes = (budget_bytes / USERS_PART).max(1 << 20);
    ledger.set_share(Holder::Users, Share { floor_bytes: 0, start_bytes: 0, cap_bytes: users_bytes });
    let splitting = Share { floor_bytes: 0, start_bytes: 0, cap_bytes: budget_bytes / WAL_SPLITTING_PART };
    ledger.set_share(Holder::WalSplitting, splitting);
    ledger.set_share(Holder::BlockCache, division.block_cache);
    ledger
}

/// Sees who could make good use of more memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    round: u64,
    seen: CacheStats,
    memstores_are_short: bool,
}

impl MemoryWatch {
    /// One round of the chores: `memstores_are_short` says that they are flushed for want of memory now.
    pub fn look(&mut self, ledger: &Ledger, cache: CacheStats, memstores_are_short: bool) {
        self.round += 1;
        self.memstores_are_short |= memstores_are_short;
        let mut demand = Demand::default();
        if self.round.is_multiple_of(ROUNDS_PER_STEP) {
            let returned = cache.returned.saturating_sub(self.seen.returned);
            let lookups = (cache.hits + cache.misses).saturating_sub(self.seen.hits + self.seen.misses);
            demand = Demand {
                memstores: std::mem::take(&mut self.memstores_are_short),
                block_cache: returned >= LEAST_RETURNED && returned >= lookups / RETURNED_PART,
            };
            self.seen = cache;
        }
        ledger.rebalance(demand, ledger.budget_bytes() / STEP_PART);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shares(settings: &[(&str, &str)], budget_bytes: u64) -> Arc<Ledger> {
        let mut config = Config::default();
        settings.iter().for_each(|(key, value)| config.set(*key, *value));
        ledger(&config, budget_bytes, u64::MAX)
    }

    fn granted_mib(ledger: &Ledger) -> (u64, u64) {
        (ledger.granted_bytes(Holder::Memstores) / MIB, ledger.granted_bytes(Holder::BlockCache) / MIB)
    }

    #[test]
    fn what_is_granted_at_a_start_is_within_the_budget_and_as_hbase_says() {
        let memstores = "hbase.regionserver.global.memstore.size";
        let cache = "hfile.block.cache.size";
        for mib in [64, 128, 256, 1024, 10_240] {
            for fixed in [&[][..], &[(memstores, "0.4"), (cache, "0.4")], &[(memstores, "0.2"), (cache, "0.5")]] {
                let ledger = shares(fixed, mib * MIB);
                let all: u64 = ledger.entries().iter().map(|entry| entry.granted_bytes).sum();
                assert!(all <= mib * MIB && all > mib * MIB * 8 / 10, "{mib}: {ledger:?}");
            }
        }
        assert_eq!(granted_mib(&shares(&[], 1024 * MIB)), (409, 422), "the cache has what is left");
        let in_bytes = [(memstores, "0.3"), (cache, "0.4"), ("hfile.block.cache.memory.size", "100m")];
        assert_eq!(granted_mib(&shares(&in_bytes, 1024 * MIB)), (307, 100), "bytes go before a share");
        let fixed = shares(&[(memstores, "0.3"), (cache, "0.4")], 1024 * MIB);
        (0..1000).for_each(|_| fixed.rebalance(Demand { memstores: true, block_cache: false }, 100 * MIB));
        assert_eq!(granted_mib(&fixed), (307, 409), "a size without a range does not move");
        let ranges = [(memstores, "0.3"), ("hbase.regionserver.global.memstore.size.max.range", "0.5")];
        let moving = shares(&ranges, 1024 * MIB);
        (0..1000).for_each(|_| moving.rebalance(Demand { memstores: true, block_cache: false }, MIB));
        assert_eq!(granted_mib(&moving).0, 512);
        (0..1000).for_each(|_| moving.rebalance(Demand { memstores: false, block_cache: true }, MIB));
        assert_eq!(granted_mib(&moving).0, 307);
    }

    #[test]
    fn a_watch_moves_room_to_who_is_short_of_it() {
        let ledger = shares(&[], 1024 * MIB);
        let mut watch = MemoryWatch::default();
        let mut cache = CacheStats::default();
        let start = granted_mib(&ledger);
        (0..400).for_each(|round| watch.look(&ledger, cache, round % 7 == 0));
        let written = granted_mib(&ledger);
        assert!(written.0 > 600 && written.1 < start.1 - 150, "{written:?}");
        for _ in 0..400 {
            cache.hits += 900;
            cache.misses += 100;
            watch.look(&ledger, cache, false);
        }
        assert_eq!(granted_mib(&ledger), written, "misses of what was never there say nothing");
        for _ in 0..2000 {
            cache.hits += 900;
            cache.misses += 100;
            cache.returned += 50;
            watch.look(&ledger, cache, false);
        }
        let read = granted_mib(&ledger);
        assert!(read.0 < 110 && read.1 > 700, "{read:?}");
    }
}
