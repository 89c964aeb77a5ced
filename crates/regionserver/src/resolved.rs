//! The settings that calls and chores look at, as values: resolved once, and swapped as a whole when the configuration is updated.

use crate::{background, bulk_load, settings};
use base::{Config, TextSetting};
use fs::FilePath;
use std::time::Duration;
use wal::settings::{MAX_LOGS, SPLIT_BUFFER_BYTES, SPLIT_WRITERS};

/// What may change while the server runs. What is not here counts from the next start.
#[derive(Clone, Debug)]
pub(crate) struct RegionServerSettings {
    /// Bytes of cells in one reply at most.
    pub max_reply_bytes: u64,
    /// Rows of a batch above which it is logged or refused.
    pub max_batch_rows: u64,
    /// Regions from which on none is split unasked.
    pub region_split_limit: usize,
    /// Whether it is refused.
    pub reject_large_batches: bool,
    /// Share of what memstores may have at which flushes begin.
    pub memstore_lower_fraction: f64,
    /// What compactions may write in a second without pressure.
    pub compaction_bytes_per_second: u64,
    /// And under full pressure.
    pub compaction_bytes_per_second_max: u64,
    /// A log file is closed after so long.
    pub log_roll_period_us: u64,
    /// Log files that may wait for flushes.
    pub max_logs: usize,
    /// How often MOB files are looked for that nothing refers to.
    pub mob_cleaner_period: Duration,
    /// How old such a file must be.
    pub mob_min_age_ms: i64,
    /// Where files of bulk loads may be outside the root directory; `None`: anywhere.
    pub bulk_load_dirs: Option<Vec<FilePath>>,
    /// How long a region's part of a snapshot may take.
    pub snapshot_region_timeout_ms: u64,
    /// Every so many rounds of the chores every region is looked at.
    pub survey_every_chores: u64,
    /// How many times as much a read replica must hold as a region that can be flushed; `None`: it never looks for files to give memory back.
    pub replica_refresh_multiplier: Option<f64>,
    /// Whether a read replica that opens answers no reads before its primary was asked for a flush.
    pub replicas_wait: bool,
    /// What is held of a log that is split.
    pub split_buffer_bytes: u64,
    /// Threads that write what it is split to.
    pub split_writers: usize,
    /// Classes of coprocessors of every region.
    pub region_classes: Vec<String>,
    /// Classes of coprocessors of every region of the users' tables.
    pub user_region_classes: Vec<String>,
}

impl RegionServerSettings {
    pub fn from_config(config: &Config) -> RegionServerSettings {
        RegionServerSettings {
            max_reply_bytes: config.get(&settings::SCANNER_MAX_RESULT_SIZE),
            max_batch_rows: config.get(&settings::MAX_BATCH_ROWS),
            region_split_limit: config.get(&settings::REGION_SPLIT_LIMIT) as usize,
            reject_large_batches: config.get(&settings::REJECT_LARGE_BATCHES),
            memstore_lower_fraction: config.get(&settings::GLOBAL_MEMSTORE_LOWER_FRACTION),
            compaction_bytes_per_second: config.get(&settings::COMPACTION_BYTES_PER_SECOND),
            compaction_bytes_per_second_max: config.get(&settings::COMPACTION_BYTES_PER_SECOND_MAX),
            log_roll_period_us: config.get(&settings::LOG_ROLL_PERIOD_MS) * 1000,
            max_logs: usize::try_from(config.get(&MAX_LOGS)).unwrap_or(usize::MAX),
            mob_cleaner_period: Duration::from_secs(config.get(&settings::MOB_CLEANER_PERIOD)),
            mob_min_age_ms: i64::try_from(config.get(&settings::MOB_MIN_AGE_TO_ARCHIVE_MS)).unwrap_or(i64::MAX),
            bulk_load_dirs: config.text(settings::BULK_LOAD_DIRS.key).and_then(bulk_load::dirs),
            snapshot_region_timeout_ms: config.get(&settings::SNAPSHOT_REGION_TIMEOUT_MS),
            survey_every_chores: (config.get(&settings::WAKE_FREQUENCY_MS) / background::CHORE_PERIOD_MS).max(1),
            replica_refresh_multiplier: config
                .get(&settings::REPLICA_STOREFILE_REFRESH)
                .then(|| config.get(&settings::REPLICA_STOREFILE_REFRESH_MULTIPLIER)),
            replicas_wait: config.get(&settings::REPLICA_WAITS_FOR_FLUSH),
            split_buffer_bytes: config.get(&SPLIT_BUFFER_BYTES),
            split_writers: config.get(&SPLIT_WRITERS) as usize,
            region_classes: classes(config, &settings::REGION_CLASSES),
            user_region_classes: classes(config, &settings::USER_REGION_CLASSES),
        }
    }
}

/// `class`, or `class|priority`, separated by commas.
fn classes(config: &Config, setting: &TextSetting) -> Vec<String> {
    let text = config.text(setting.key).unwrap_or_default();
    let names = text.split(',').map(|class| class.split('|').next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_looked_at_as_often_as_threads_wake() {
        let every = |ms: &str| {
            let mut config = Config::default();
            config.set(settings::WAKE_FREQUENCY_MS.key, ms);
            RegionServerSettings::from_config(&config).survey_every_chores
        };
        assert_eq!(RegionServerSettings::from_config(&Config::default()).survey_every_chores, 40);
        assert_eq!((every("1000"), every("1"), every("60000")), (4, 1, 240));
    }

    #[test]
    fn classes_have_no_priorities_and_no_blanks() {
        let mut config = Config::default();
        config.set(settings::REGION_CLASSES.key, " a.B|100 ,, c.D");
        let resolved = RegionServerSettings::from_config(&config);
        assert_eq!(resolved.region_classes, ["a.B", "c.D"]);
        assert!(resolved.user_region_classes.is_empty());
    }
}
