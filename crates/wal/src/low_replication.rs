//! When a log on a file system that keeps copies goes on in a new file because the current one gets fewer copies than it should: the new file is
//! written to other machines. Follows: `FSHLog#doCheckLogLowReplication`.

use crate::settings;
use base::Config;
use fs::Copies;

/// How few copies are too few, and how often that has another file begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowReplicationOptions {
    /// So many copies are enough; 0: as many as the file is to have.
    pub tolerable: u32,
    /// So many files in a row may be begun for want of copies; more would not help.
    pub roll_limit: u64,
}

impl LowReplicationOptions {
    /// As the operator set them.
    pub fn from_config(config: &Config) -> LowReplicationOptions {
        LowReplicationOptions {
            tolerable: config.get(&settings::TOLERABLE_LOW_REPLICATION),
            roll_limit: config.get(&settings::LOW_REPLICATION_ROLL_LIMIT),
        }
    }
}

/// How the files of a log are copied.
#[derive(Debug, Default)]
pub(crate) struct LowReplication {
    /// Files in a row that were begun for want of copies.
    rolls: u64,
    /// There were too many: machines are missing, and another file would be no better.
    is_off: bool,
    is_roll_wanted: bool,
    /// Writes of this file so far.
    writes: u64,
    /// What there is to tell the operator.
    told: Option<String>,
}

impl LowReplication {
    /// The file was written to, and gets so many copies.
    pub fn note(&mut self, options: &LowReplicationOptions, copies: Copies) {
        self.writes += 1;
        let enough = if options.tolerable == 0 { copies.wanted } else { options.tolerable };
        if copies.now >= enough {
            // What a new file says of itself says nothing yet.
            if self.writes > 1 {
                (self.rolls, self.is_off) = (0, false);
            }
            return;
        }
        if copies.now == 0 || self.is_off || self.is_roll_wanted {
            return;
        }
        let found = format!("the log is written to {} DataNodes, and {enough} are expected", copies.now);
        if self.rolls < options.roll_limit {
            self.rolls += 1;
            self.is_roll_wanted = true;
            self.told = Some(format!("{found}: it goes on in a new file"));
            return;
        }
        (self.rolls, self.is_off) = (0, true);
        let limit = options.roll_limit;
        self.told = Some(format!(
            "{found}: {limit} new files in a row were no better, it stays in this one until there are enough"
        ));
    }

    /// What there is to tell the operator, once.
    pub fn take_told(&mut self) -> Option<String> {
        self.told.take()
    }

    pub fn is_roll_wanted(&self) -> bool {
        self.is_roll_wanted
    }

    /// A new file was begun: whether that was why.
    pub fn rolled(&mut self) -> bool {
        self.writes = 0;
        std::mem::take(&mut self.is_roll_wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: LowReplicationOptions = LowReplicationOptions { tolerable: 0, roll_limit: 2 };

    fn copies(now: u32) -> Copies {
        Copies { now, wanted: 3 }
    }

    fn noted(low: &mut LowReplication, options: &LowReplicationOptions, now: u32) -> Option<String> {
        low.note(options, copies(now));
        low.take_told()
    }

    #[test]
    fn too_few_copies_want_another_file_but_not_for_ever() {
        let mut low = LowReplication::default();
        assert_eq!(noted(&mut low, &OPTIONS, 3), None);
        for _ in 0..2 {
            assert!(noted(&mut low, &OPTIONS, 2).is_some_and(|told| told.contains("2 DataNodes, and 3")));
            assert!(low.is_roll_wanted());
            assert_eq!(noted(&mut low, &OPTIONS, 1), None, "said once");
            assert!(low.rolled() && !low.is_roll_wanted());
        }
        assert!(noted(&mut low, &OPTIONS, 2).is_some_and(|told| told.contains("2 new files in a row")));
        assert_eq!(noted(&mut low, &OPTIONS, 1), None);
        assert!(!low.is_roll_wanted() && !low.rolled(), "another file would not help");
        // A file that was just begun claims to have all of its copies.
        assert_eq!(noted(&mut low, &OPTIONS, 3), None);
        assert_eq!(noted(&mut low, &OPTIONS, 2), None);
        assert_eq!(noted(&mut low, &OPTIONS, 3), None);
        assert!(noted(&mut low, &OPTIONS, 2).is_some(), "there were enough again");
    }

    #[test]
    fn the_operator_may_want_fewer_and_no_copies_at_all_are_not_counted() {
        let mut low = LowReplication::default();
        let tolerant = LowReplicationOptions { tolerable: 2, ..OPTIONS };
        assert_eq!(noted(&mut low, &tolerant, 2), None);
        assert_eq!(noted(&mut low, &tolerant, 0), None);
        assert!(noted(&mut low, &tolerant, 1).is_some());
    }
}
