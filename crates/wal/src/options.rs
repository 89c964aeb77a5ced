//! What a log can be told.

use crate::low_replication::LowReplicationOptions;
use crate::settings;
use crate::slow_syncs::SlowSyncOptions;
use base::Config;
use fs::{FileKind, FilePath, Placement, Volume};

/// When an entry counts as done by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SyncMode {
    /// When it is on the disk.
    #[default]
    Synced,
    /// Unsynced mode. When the operating system has it: survives the process, not the machine. Single tickets can ask for more.
    Written,
}

/// Options of a [`crate::Log`].
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// When an entry counts as done by default.
    pub sync_mode: SyncMode,
    /// Size at which [`crate::Log::wants_roll`] says so.
    pub roll_size_bytes: u64,
    /// How many closed files may wait for flushes before [`crate::Log::regions_to_flush`] names regions.
    pub max_logs: usize,
    /// Bytes appended and not synced beyond which appends are refused.
    pub max_waiting_bytes: u64,
    /// How long the log's thread waits for writers before a sync, at most, in percent of what the last one took.
    pub commit_delay_percent: u32,
    /// Whether entries carry checksums.
    pub checksums: bool,
    /// When slow syncs have it go on in a new file, on a volume of other machines.
    pub slow_syncs: SlowSyncOptions,
    /// When too few copies have it go on in a new file, on a volume that keeps copies.
    pub low_replication: LowReplicationOptions,
    /// Where files are to lie, on a volume that has a choice.
    pub placement: Placement,
    /// Follows the server's name in file names: "" or ".meta" (`server.meta.<ms>.meta`).
    pub kind: &'static str,
    /// Where files go when all their edits are flushed.
    pub archive_dir: FilePath,
    /// Appended to the names of archived files: "" or "$masterlocalwal$".
    pub archive_suffix: &'static str,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions::from_config(&Config::default())
    }
}

impl LogOptions {
    /// As the operator set them, and where he did not say whether logs are synced, as the volume has it: where written entries survive the machine
    /// that wrote them, that is enough, as in HBase.
    pub fn on(volume: &dyn Volume, config: &Config) -> LogOptions {
        let options = LogOptions::from_config(config);
        if volume.capabilities().flushed_survives_appender && !config.is_set(settings::HSYNC.key) {
            return LogOptions { sync_mode: SyncMode::Written, ..options };
        }
        options
    }

    /// Those of the log of hbase:meta: always synced, and with the names of files. What the master does rests on it: a procedure is forgotten, files are archived, when
    /// hbase:meta says so, and none of that comes back with a lost log.
    pub fn of_meta(config: &Config) -> LogOptions {
        let options = LogOptions::from_config(config);
        let placement = Placement { block_bytes: options.placement.block_bytes, ..Placement::default() };
        LogOptions { kind: ".meta", sync_mode: SyncMode::Synced, placement, ..options }
    }

    /// The options as the operator set them.
    pub fn from_config(config: &Config) -> LogOptions {
        let block_size_bytes = config.get(&settings::BLOCK_SIZE);
        LogOptions {
            sync_mode: if config.get(&settings::HSYNC) { SyncMode::Synced } else { SyncMode::Written },
            roll_size_bytes: (block_size_bytes as f64 * config.get(&settings::ROLL_MULTIPLIER)) as u64,
            max_logs: config.get(&settings::MAX_LOGS) as usize,
            max_waiting_bytes: config.get(&settings::MAX_WAITING_BYTES),
            commit_delay_percent: config.get(&settings::COMMIT_DELAY_PERCENT),
            checksums: config.get(&settings::CHECKSUMS),
            slow_syncs: SlowSyncOptions::from_config(config),
            low_replication: LowReplicationOptions::from_config(config),
            placement: Placement {
                block_bytes: Some(block_size_bytes),
                ..Placement::of(FileKind::Log).with_policy(config.text(settings::STORAGE_POLICY.key))
            },
            kind: "",
            archive_dir: FilePath::new("oldWALs"),
            archive_suffix: "",
        }
    }
}
