//! Settings of the log.

use base::{Setting, SettingRow, TextSetting};

/// Roll size is this many bytes times the multiplier.
pub const BLOCK_SIZE: Setting<u64> = Setting {
    key: "hbase.regionserver.hlog.blocksize",
    default: 256 << 20,
    min: 4 << 10,
    max: 64 << 30,
    unit: "bytes",
    doc: "With hbase.regionserver.logroll.multiplier, the size at which a log file is ended and a new one begun. Larger files mean fewer \
          files and longer recovery of one; smaller ones are archived sooner. On HDFS it is the block size of log files: a file that is rolled \
          within its first block keeps nobody waiting for a second.",
};
/// Fraction of the block size at which a file is rolled.
pub const ROLL_MULTIPLIER: Setting<f64> = Setting {
    key: "hbase.regionserver.logroll.multiplier",
    default: 0.5,
    min: 0.01,
    max: 1.0,
    unit: "fraction",
    doc: "Fraction of hbase.regionserver.hlog.blocksize at which a log file is rolled.",
};
/// How many files may be waiting for flushes.
pub const MAX_LOGS: Setting<u32> = Setting {
    key: "hbase.regionserver.maxlogs",
    default: 32,
    min: 1,
    max: 100_000,
    unit: "count",
    doc: "When more log files than this wait for flushes, the regions that hold the oldest back are flushed. More files mean fewer forced \
          flushes and a longer recovery.",
};
/// Whether an acknowledged write is on the platter.
pub const HSYNC: Setting<bool> = Setting {
    key: "hbase.wal.hsync",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "true: an acknowledged write has been synced to the disk (fdatasync, shared by all writes that wait). false: it has been handed to \
          the operating system, as in HBase by default, and survives the process but not a power failure; FSYNC_WAL writes are \
          synced all the same. Unlike HBase the default is true, since a single local copy has no other machines to survive on; on HDFS, \
          where every DataNode of the block has the write before it is acknowledged (hflush), it is false as in HBase.",
};
/// How many unsynced bytes are kept.
pub const MAX_WAITING_BYTES: Setting<u64> = Setting {
    key: "basalt.wal.waiting.max.bytes",
    default: 64 << 20,
    min: 64 << 10,
    max: 4 << 30,
    unit: "bytes",
    doc: "How many bytes of log may wait to be synced. Beyond it writes are refused with a retryable error; more smooths longer stalls of the \
          disk and costs memory.",
};
/// How long a sync waits for those who will want the next.
pub const COMMIT_DELAY_PERCENT: Setting<u32> = Setting {
    key: "basalt.wal.group.commit.delay.percent",
    default: 100,
    min: 0,
    max: 1000,
    unit: "percent",
    doc: "Before a sync the log waits for as many writers as waited for the last one or came during it, so that all share one sync, for \
          at most so many percent of the last sync's time; where that was in vain, it waits less and less often. Fewer and larger \
          syncs cost less of the processor. 0: never.",
};
/// Whether entries are sealed.
pub const CHECKSUMS: Setting<bool> = Setting {
    key: "basalt.wal.checksums",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether each log entry carries a checksum, in an attribute that HBase skips. Costs 24 bytes per entry; without it damage to a \
          value goes unseen.",
};

/// How many copies of the log are enough.
pub const TOLERABLE_LOW_REPLICATION: Setting<u32> = Setting {
    key: "hbase.regionserver.hlog.tolerable.lowreplication",
    default: 0,
    min: 0,
    max: 512,
    unit: "count",
    doc: "On HDFS, the log goes on in a new file when fewer DataNodes than this write the current one. 0: fewer than the file is to have           (dfs.replication).",
};
/// How often a new file is tried.
pub const LOW_REPLICATION_ROLL_LIMIT: Setting<u64> = Setting {
    key: "hbase.regionserver.hlog.lowreplication.rolllimit",
    default: 5,
    min: 0,
    max: 1_000_000_000,
    unit: "count",
    doc: "So many files in a row may be begun because too few DataNodes write the log; after that the log stays in its file until there are enough.",
};
/// Slow syncs.
pub const SLOW_SYNC_MS: Setting<u64> = Setting {
    key: "hbase.regionserver.wal.slowsync.ms",
    default: 100,
    min: 0,
    max: 3_600_000,
    unit: "ms",
    doc: "On HDFS, a write of the log that takes longer to reach all its DataNodes counts as slow.",
};
/// Slow syncs that are too many.
pub const SLOW_SYNC_ROLL_THRESHOLD: Setting<u64> = Setting {
    key: "hbase.regionserver.wal.slowsync.roll.threshold",
    default: 100,
    min: 1,
    max: 1_000_000_000,
    unit: "count",
    doc: "So many slow writes of the log within hbase.regionserver.wal.slowsync.roll.interval.ms have it go on in a new file, which other DataNodes \
          write.",
};
/// In which time.
pub const SLOW_SYNC_ROLL_INTERVAL_MS: Setting<u64> = Setting {
    key: "hbase.regionserver.wal.slowsync.roll.interval.ms",
    default: 60_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "The time in which slow writes of the log are counted.",
};
/// A sync that is too slow by itself.
pub const ROLL_ON_SYNC_MS: Setting<u64> = Setting {
    key: "hbase.regionserver.wal.roll.on.sync.ms",
    default: 10_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "On HDFS, a single write of the log that takes longer has it go on in a new file at once.",
};

/// Bytes of entries held while a log is split.
pub const SPLIT_BUFFER_BYTES: Setting<u64> = Setting {
    key: "hbase.regionserver.hlog.splitlog.buffersize",
    default: 128 << 20,
    min: 1 << 20,
    max: 1 << 40,
    unit: "bytes",
    doc: "What is held of a dead server's log while it is split; with as much as the log has, each region gets one file of its edits. All logs that           are split at the same time have an eighth of the memory budget.",
};

/// Threads that write what is split.
pub const SPLIT_WRITERS: Setting<u32> = Setting {
    key: "hbase.regionserver.hlog.splitlog.writer.threads",
    default: 3,
    min: 1,
    max: 64,
    unit: "count",
    doc: "Files of recovered edits that are written at the same time for a log of a dead server.",
};

/// Where logs go.
pub const STORAGE_POLICY: TextSetting = TextSetting::any(
    "hbase.wal.storage.policy",
    "NONE",
    "Storage policy of logs: NONE (basalt.volumes.place.wal says where), a name of HDFS's or that of a tier, as for \
     hbase.hstore.block.storage.policy. A tier in memory is passed over unless basalt.volumes.ram.may.lose.acknowledged.writes is true.",
);

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &TOLERABLE_LOW_REPLICATION,
    &LOW_REPLICATION_ROLL_LIMIT,
    &BLOCK_SIZE,
    &ROLL_MULTIPLIER,
    &MAX_LOGS,
    &HSYNC,
    &MAX_WAITING_BYTES,
    &COMMIT_DELAY_PERCENT,
    &CHECKSUMS,
    &SLOW_SYNC_MS,
    &SLOW_SYNC_ROLL_THRESHOLD,
    &SLOW_SYNC_ROLL_INTERVAL_MS,
    &ROLL_ON_SYNC_MS,
    &SPLIT_BUFFER_BYTES,
    &SPLIT_WRITERS,
    &STORAGE_POLICY,
];
