//! When a log on a file system of other machines, or on several disks, goes on in a new file because its syncs are slow: the new file is written by
//! other DataNodes, or lies on another disk of the tier.
//! Follows: `AbstractFSWAL#doCheckSlowSync`, `#postSync`.

use crate::settings;
use base::Config;

/// What counts as slow, and how much of it is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowSyncOptions {
    /// A sync that takes longer is slow.
    pub slow_us: u64,
    /// So many slow syncs in an interval are too many.
    pub threshold: u64,
    /// The interval.
    pub interval_us: u64,
    /// A single sync that takes longer is too much.
    pub roll_us: u64,
}

impl SlowSyncOptions {
    /// As the operator set them.
    pub fn from_config(config: &Config) -> SlowSyncOptions {
        SlowSyncOptions {
            slow_us: config.get(&settings::SLOW_SYNC_MS) * 1000,
            threshold: config.get(&settings::SLOW_SYNC_ROLL_THRESHOLD),
            interval_us: config.get(&settings::SLOW_SYNC_ROLL_INTERVAL_MS) * 1000,
            roll_us: config.get(&settings::ROLL_ON_SYNC_MS) * 1000,
        }
    }
}

/// The slow syncs of the current interval.
#[derive(Debug, Default)]
pub(crate) struct SlowSyncs {
    since_us: Option<u64>,
    count: u64,
    /// Whether the file's volume was slow already when the file was begun: there is no better one then.
    began_slow: Option<bool>,
    is_roll_wanted: bool,
}

impl SlowSyncs {
    /// A sync took so long, and is over now.
    pub fn note(&mut self, options: &SlowSyncOptions, took_us: u64, now_us: u64) {
        if took_us > options.roll_us {
            self.is_roll_wanted = true;
        } else if took_us > options.slow_us {
            self.count += 1;
        }
        let passed_us = now_us.saturating_sub(*self.since_us.get_or_insert(now_us));
        if passed_us >= options.interval_us {
            // Many that lie longer ago, and one that came after a pause, say nothing of now.
            let are_of_now = passed_us < options.interval_us.saturating_mul(2);
            self.is_roll_wanted |= are_of_now && self.count >= options.threshold.max(1);
            (self.since_us, self.count) = (Some(now_us), 0);
        }
    }

    /// Whether the file's volume is slow now, as its owner finds. One that has become so is left at once.
    pub fn note_volume(&mut self, is_slow: bool) {
        let began_slow = *self.began_slow.get_or_insert(is_slow);
        self.is_roll_wanted |= is_slow && !began_slow;
    }

    pub fn is_roll_wanted(&self) -> bool {
        self.is_roll_wanted
    }

    /// A new file was begun: whether they were why.
    pub fn rolled(&mut self) -> bool {
        std::mem::take(self).is_roll_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: SlowSyncOptions = SlowSyncOptions { slow_us: 100, threshold: 3, interval_us: 1000, roll_us: 10_000 };

    #[test]
    fn a_volume_that_grows_slow_is_left_once() {
        let after = |looks: &[bool]| {
            let mut slow = SlowSyncs::default();
            looks.iter().for_each(|is_slow| slow.note_volume(*is_slow));
            (slow.is_roll_wanted(), slow.rolled(), slow.is_roll_wanted())
        };
        assert_eq!(after(&[false, false]), (false, false, false));
        assert_eq!(after(&[false, true]), (true, true, false));
        assert_eq!(after(&[true, true]), (false, false, false), "there was no better one when the file was begun");
    }

    fn after(syncs: &[(u64, u64)]) -> bool {
        let mut slow = SlowSyncs::default();
        syncs.iter().for_each(|(took_us, now_us)| slow.note(&OPTIONS, *took_us, *now_us));
        slow.is_roll_wanted()
    }

    #[test]
    fn many_slow_syncs_in_an_interval_want_another_file() {
        assert!(!after(&[(101, 0), (101, 500), (101, 900)]), "the interval is not over");
        assert!(after(&[(101, 0), (101, 500), (101, 900), (1, 1000)]));
        assert!(!after(&[(101, 0), (101, 500), (100, 900), (1, 1000)]), "two are not many");
        assert!(!after(&[(101, 0), (101, 500), (101, 900), (101, 2000)]), "after a pause they are forgotten");
        assert!(!after(&[(101, 0), (101, 500), (1, 1000), (101, 1500), (1, 2000)]), "each interval counts for itself");
    }

    #[test]
    fn one_very_slow_sync_wants_another_file_at_once() {
        assert!(!after(&[(10_000, 0)]));
        assert!(after(&[(10_001, 0)]));
    }

    #[test]
    fn a_new_file_begins_with_none() {
        let mut slow = SlowSyncs::default();
        slow.note(&OPTIONS, 20_000, 0);
        assert!(slow.rolled());
        assert!(!slow.is_roll_wanted() && !slow.rolled());
    }
}
