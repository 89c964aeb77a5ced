//! Settings of the region server under HBase's keys.

use base::size::MIB;
use base::{Setting, SettingRow, TextSetting};
use hfile::CachePolicy;
pub use region::settings::{META_REPLICA_REPLICATION, NONCE_TIMEOUT_MS, REPLICA_REPLICATION};

/// Whether keys are picked for the Key Visualizer.
pub const KEY_STATISTICS: Setting<bool> = Setting {
    key: "basalt.key.statistics.enabled",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Pick some of the rows that are read and written, for the page /keys (the Key Visualizer): which keys of a table have the load, for five \
          weeks, also over restarts. Takes up to 20 MiB beside the memory budget, and as much below MasterData/basalt/keys.",
};

/// Whom no policy keeps from asking for compactions.
pub const SUPERUSERS: TextSetting = TextSetting::any(
    "hbase.superuser",
    "none",
    "Users, with commas between them, who may have tables compacted whose quota of space forbids that to others. The user of the \
     server's process, as USER in its environment names it, is always one of them.",
);

/// Lease of a scanner between two calls.
pub const SCANNER_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.client.scanner.timeout.period",
    default: 60_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long a scanner waits for its client's next call. Longer forgives slow clients and pins old files longer.",
};

/// Most bytes of one scan reply.
pub const SCANNER_MAX_RESULT_SIZE: Setting<u64> = Setting {
    key: "hbase.server.scanner.max.result.size",
    default: 100 * MIB,
    min: 1,
    max: 1 << 31,
    unit: "bytes",
    doc: "Upper bound of the cells in one scan or multi reply, whatever the client asks for. With little memory it is a sixteenth of the budget, 2 MiB at least.",
};

/// Share of the memory budget that memstores may take.
pub const GLOBAL_MEMSTORE_FRACTION: Setting<f64> = Setting {
    key: "hbase.regionserver.global.memstore.size",
    default: 0.4,
    min: 0.01,
    max: 0.8,
    unit: "fraction",
    doc: "Share of the memory budget for all memstores together. Above it writes are delayed, then refused. Where it is not set, or has a \
          range, it moves with the load within that range.",
};

/// Least share that the load may leave to memstores.
pub const GLOBAL_MEMSTORE_MIN_FRACTION: Setting<f64> = Setting {
    key: "hbase.regionserver.global.memstore.size.min.range",
    default: 0.1,
    min: 0.01,
    max: 0.8,
    unit: "fraction",
    doc: "Memstores give room to a block cache that could use more down to this share. Where hbase.regionserver.global.memstore.size is set and \
          this is not, they give none.",
};

/// Most that the load may give to memstores.
pub const GLOBAL_MEMSTORE_MAX_FRACTION: Setting<f64> = Setting {
    key: "hbase.regionserver.global.memstore.size.max.range",
    default: 0.6,
    min: 0.01,
    max: 0.8,
    unit: "fraction",
    doc: "Memstores that are flushed for want of memory are given room of the block cache up to this share. Where \
          hbase.regionserver.global.memstore.size is set and this is not, they are given none.",
};

/// Share of the budget for the block cache.
pub const BLOCK_CACHE_FRACTION: Setting<f64> = Setting {
    key: "hfile.block.cache.size",
    default: 0.4,
    min: 0.0,
    max: 0.8,
    unit: "fraction",
    doc: "Share of the memory budget for cached blocks. Where it is not set, or has a range, the cache has what memstores, requests, replies, \
          scanners and nonces do not need, within that range.",
};

/// Least share that the load may leave to the block cache.
pub const BLOCK_CACHE_MIN_FRACTION: Setting<f64> = Setting {
    key: "hfile.block.cache.size.min.range",
    default: 0.1,
    min: 0.0,
    max: 0.8,
    unit: "fraction",
    doc: "The block cache gives room to others down to this share. Where hfile.block.cache.size is set and this is not, it gives none.",
};

/// Most that the block cache may have.
pub const BLOCK_CACHE_MAX_FRACTION: Setting<f64> = Setting {
    key: "hfile.block.cache.size.max.range",
    default: 0.7,
    min: 0.0,
    max: 0.8,
    unit: "fraction",
    doc: "The block cache is given room that others do not need up to this share. Where hfile.block.cache.size is set and this is not, it is \
          given none.",
};

/// Which blocks stay in the block cache.
pub const BLOCK_CACHE_POLICY: TextSetting = TextSetting {
    key: "hfile.block.cache.policy",
    default: "LRU",
    legal: Some("LRU or TinyLFU"),
    is_legal: |text| CachePolicy::parse(text).is_some(),
    doc: "Which blocks stay in the block cache when it is full. LRU: those that were read again soon after they came in, or soon after they had \
          left (which a scan of a large table does not push out). TinyLFU: those that were read most often lately, whether they were in the \
          cache or not: better where more is read again and again than there is room for. It counts each lookup, in a 4096th of the cache's room.",
};

/// Whether checksums are compared.
pub const CHECKSUM_VERIFY: Setting<bool> = Setting {
    key: "hbase.regionserver.checksum.verify",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the checksum of a block of a store file is compared when it is read. Saves a few percent of the processor where blocks come from \
          the disk. Off, it is the file system that must notice a wrong bit: what it does not notice is read, and compactions write it into new \
          files under a good checksum. What a file's opening reads is always verified.",
};

/// Whether it is counted what users do.
pub const USER_METRICS: Setting<bool> = Setting {
    key: "hbase.regionserver.user.metrics.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether reads and writes are counted for each user and the hosts that he calls from: in what the server reports of itself (getUserMetrics \
          of Java's ServerMetrics) and in the bean Users. Hosts go by their addresses, for no names are looked up. The bean also says how long each \
          user's operations took, of as many users as a sixty-fourth of the memory budget has room for (some hundred KiB each). Costs a call some \
          ten nanoseconds, and a get one look at the clock.",
};

/// Longest time that a region's part of a snapshot may take.
pub const SNAPSHOT_REGION_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.snapshot.region.timeout",
    default: 300_000,
    min: 0,
    max: i64::MAX as u64,
    unit: "ms",
    doc: "A snapshot fails if a region of its table takes longer than this for its part: the flush, and naming its files. What is begun goes on to its \
          end; the snapshot is not waited for longer.",
};

/// Share of the memstores' share at which flushes begin.
pub const GLOBAL_MEMSTORE_LOWER_FRACTION: Setting<f64> = Setting {
    key: "hbase.regionserver.global.memstore.size.lower.limit",
    default: 0.95,
    min: 0.1,
    max: 1.0,
    unit: "fraction",
    doc: "Share of the memstores' limit above which the largest regions are flushed.",
};

/// How much of the memstores' memory recovery may use.
pub const RECOVERY_MEMORY_FRACTION: Setting<f64> = Setting {
    key: "basalt.recovery.memory.fraction",
    default: 1.0,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "Share of the memstores' memory (below the mark where flushes begin) up to which what the logs of a killed server hold is brought \
          back in memory at a start. With more in the logs it is split into files of recovered.edits first, which takes longer; 0 always \
          does so.",
};

/// Threads that flush.
pub const FLUSHER_COUNT: Setting<u32> = Setting {
    key: "hbase.hstore.flusher.count",
    default: 2,
    min: 1,
    max: 64,
    unit: "count",
    doc: "Regions flushed at the same time.",
};

/// Threads for small compactions.
pub const SMALL_COMPACTION_THREADS: Setting<u32> = Setting {
    key: "hbase.regionserver.thread.compaction.small",
    default: 1,
    min: 1,
    max: 64,
    unit: "count",
    doc: "Small compactions at the same time.",
};

/// Threads for large compactions.
pub const LARGE_COMPACTION_THREADS: Setting<u32> = Setting {
    key: "hbase.regionserver.thread.compaction.large",
    default: 1,
    min: 1,
    max: 64,
    unit: "count",
    doc: "Large compactions at the same time.",
};

/// Bytes per second of all compactions while there is no pressure.
pub const COMPACTION_BYTES_PER_SECOND: Setting<u64> = Setting {
    key: "hbase.hstore.compaction.throughput.lower.bound",
    default: 50 * MIB,
    min: MIB,
    max: 1 << 40,
    unit: "bytes",
    doc: "What compactions may write in a second while no store has too many files; under pressure the limit rises.",
};

/// Bytes per second of all compactions under full pressure.
pub const COMPACTION_BYTES_PER_SECOND_MAX: Setting<u64> = Setting {
    key: "hbase.hstore.compaction.throughput.higher.bound",
    default: 100 * MIB,
    min: MIB,
    max: 1 << 40,
    unit: "bytes",
    doc: "What compactions may write in a second when a store is about to block writes.",
};

/// How often the log is rolled at least.
pub const LOG_ROLL_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.regionserver.logroll.period",
    default: 3_600_000,
    min: 1_000,
    max: 7 * 86_400_000,
    unit: "ms",
    doc: "A log file is closed after this time even if it is small.",
};

/// Rows in one batch before it is refused.
pub const MAX_BATCH_ROWS: Setting<u64> = Setting {
    key: "hbase.rpc.rows.warning.threshold",
    default: 5_000,
    min: 1,
    max: 1 << 31,
    unit: "count",
    doc: "A batch with more actions is logged, or refused with hbase.rpc.rows.size.threshold.reject.",
};

/// Whether too large batches are refused.
pub const REJECT_LARGE_BATCHES: Setting<bool> = Setting {
    key: "hbase.rpc.rows.size.threshold.reject",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Refuse batches above hbase.rpc.rows.warning.threshold instead of logging them.",
};

/// Time between two rounds of archiving MOB files.
pub const MOB_CLEANER_PERIOD: Setting<u64> = Setting {
    key: "hbase.master.mob.cleaner.period",
    default: 86_400,
    min: 1,
    max: 31_536_000,
    unit: "s",
    doc: "How often MOB files that no store file refers to any more are looked for and moved to the archive.",
};

/// Age at which an unused MOB file may be archived.
pub const MOB_MIN_AGE_TO_ARCHIVE_MS: Setting<u64> = Setting {
    key: "hbase.mob.min.age.archive",
    default: 3_600_000,
    min: 0,
    max: 31_536_000_000,
    unit: "ms",
    doc: "A MOB file that nothing refers to is archived only when it is at least this old.",
};

/// Time for flushes at a stop.
pub const STOP_FLUSH_TIMEOUT_MS: Setting<u64> = Setting {
    key: "basalt.stop.flush.timeout",
    default: 5_000,
    min: 0,
    max: 3_600_000,
    unit: "ms",
    doc: "How long a stop may flush memstores to files. What is not flushed by then stays in the log, and the next start replays it.",
};

/// From when on a call is slow.
pub const WARN_RESPONSE_TIME_MS: Setting<i32> = Setting {
    key: "hbase.ipc.warn.response.time",
    default: 10_000,
    min: -1,
    max: i32::MAX,
    unit: "ms",
    doc: "A call that takes longer is told of in the log as (responseTooSlow), and kept in the slow log; -1 is never.",
};

/// From when on a reply is large.
pub const WARN_RESPONSE_BYTES: Setting<i32> = Setting {
    key: "hbase.ipc.warn.response.size",
    default: 100 * 1024 * 1024,
    min: -1,
    max: i32::MAX,
    unit: "bytes",
    doc: "A call that is answered with more is told of in the log as (responseTooLarge), and kept in the slow log; -1 is never.",
};

/// The same of scans.
pub const WARN_SCAN_RESPONSE_TIME_MS: Setting<i32> = Setting {
    key: "hbase.ipc.warn.response.time.scan",
    default: 10_000,
    min: -1,
    max: i32::MAX,
    unit: "ms",
    doc: "As hbase.ipc.warn.response.time, for scans; where it is not set, that one counts for them too.",
};

/// The same of scans.
pub const WARN_SCAN_RESPONSE_BYTES: Setting<i32> = Setting {
    key: "hbase.ipc.warn.response.size.scan",
    default: 100 * 1024 * 1024,
    min: -1,
    max: i32::MAX,
    unit: "bytes",
    doc: "As hbase.ipc.warn.response.size, for scans; where it is not set, that one counts for them too.",
};

/// Whether slow calls are kept.
pub const SLOW_LOG_BUFFER: Setting<bool> = Setting {
    key: "hbase.regionserver.slowlog.buffer.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether slow and large calls are kept for clients that ask for them.",
};

/// How many slow calls are kept.
pub const SLOW_LOG_RING_LEN: Setting<u32> = Setting {
    key: "hbase.regionserver.slowlog.ringbuffer.size",
    default: 256,
    min: 1,
    max: 1_000_000,
    unit: "count",
    doc: "How many slow and large calls are kept, the newest; each may take some ten KiB.",
};

/// Whether scans are kept whole.
pub const SLOW_LOG_SCAN_PAYLOAD: Setting<bool> = Setting {
    key: "hbase.slowlog.scan.payload.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the slow log keeps the whole scan of a slow call to one.",
};

/// How many slow calls wait for the table.
pub const SLOW_LOG_TABLE_QUEUE_LEN: Setting<u32> = Setting {
    key: "hbase.regionserver.slowlog.systable.queue.size",
    default: 1000,
    min: 1,
    max: 1_000_000,
    unit: "count",
    doc: "How many slow and large calls wait at most to be written to hbase:slowlog, the newest.",
};

/// How often they are written.
pub const SLOW_LOG_TABLE_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.slowlog.systable.chore.duration",
    default: 600_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often slow and large calls are written to hbase:slowlog. The older key; the shorter of the two counts.",
};

/// The newer key of the same.
pub const NAMED_QUEUE_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.regionserver.named.queue.chore.duration",
    default: 600_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often slow and large calls are written to hbase:slowlog. The newer key; the shorter of the two counts.",
};

/// Regions from which on none is split.
pub const REGION_SPLIT_LIMIT: Setting<u32> = Setting {
    key: "hbase.regionserver.regionSplitLimit",
    default: 1000,
    min: 0,
    max: i32::MAX as u32,
    unit: "count",
    doc: "A server with so many regions splits none by itself; somebody who asks for a split gets it.",
};

/// Coprocessors of every region.
pub const REGION_CLASSES: TextSetting = TextSetting::any(
    "hbase.coprocessor.region.classes",
    "none",
    "Endpoints that every region has, by HBase's class names and separated by commas; a class that Basalt does not have is passed over.",
);

/// Coprocessors of every region of the users' tables.
pub const USER_REGION_CLASSES: TextSetting = TextSetting::any(
    "hbase.coprocessor.user.region.classes",
    "none",
    "Endpoints that every region of a table outside the namespace hbase has, as hbase.coprocessor.region.classes.",
);

/// Where files to be loaded may be.
pub const BULK_LOAD_DIRS: TextSetting = TextSetting::any(
    "basalt.bulkload.allowed.dirs",
    "any",
    "Directories outside the root directory from which bulk loads may take files, separated by commas: a file elsewhere is refused. Names are \
     compared as they are given; symbolic links are not followed first.",
);

/// From when on an operation counts as slow.
pub const SLOW_METRIC_TIME_MS: Setting<u64> = Setting {
    key: "hbase.ipc.slow.metric.time",
    default: 1000,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "Gets, puts, deletes, increments and appends that take longer are counted as slow (slowGetCount and its like).",
};

/// How often read replicas look for store files.
pub const STOREFILE_REFRESH_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.regionserver.storefile.refresh.period",
    default: 0,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "How often a read replica looks which store files its primary has on another server; 0: never. Costs a listing of each family's directory. \
          Must be less than half of hbase.master.hfilecleaner.ttl.",
};

/// The same for hbase:meta.
pub const META_STOREFILE_REFRESH_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.regionserver.meta.storefile.refresh.period",
    default: 0,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "The same for replicas of hbase:meta alone, where hbase.regionserver.storefile.refresh.period is 0.",
};

/// Whether memory is given back by looking for store files.
pub const REPLICA_STOREFILE_REFRESH: Setting<bool> = Setting {
    key: "hbase.region.replica.storefile.refresh",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether a read replica that holds much of what memstores may have looks for store files of its primary, which take the place of what it \
          holds.",
};

/// Whether replicas wait for their primaries.
pub const REPLICA_WAITS_FOR_FLUSH: Setting<bool> = Setting {
    key: "hbase.region.replica.wait.for.primary.flush",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether a read replica that opens has its primary flushed, and answers no reads before, where it is told of what is written \
          (hbase.region.replica.replication.enabled): what was written before it opened would be missing.",
};

/// How much more a replica must hold than a region that could be flushed.
pub const REPLICA_STOREFILE_REFRESH_MULTIPLIER: Setting<f64> = Setting {
    key: "hbase.region.replica.storefile.refresh.memstore.multiplier",
    default: 4.0,
    min: 0.01,
    max: 1000.0,
    unit: "",
    doc: "So many times as much as the largest region that can be flushed a read replica must hold to come before it.",
};

/// How fast the second level of the block cache is written.
pub const SECOND_LEVEL_WRITE_RATE: Setting<u64> = Setting {
    key: "basalt.bucketcache.write.bytes.per.second",
    default: 64 << 20,
    min: 64 << 10,
    max: 64 << 30,
    unit: "bytes",
    doc: "The second level of the block cache (hbase.bucketcache.ioengine) is written no faster than this; blocks beyond it are passed over. Less \
          wears flash less and warms the cache more slowly.",
};

/// How often every region is looked at.
pub const WAKE_FREQUENCY_MS: Setting<u64> = Setting {
    key: "hbase.server.thread.wakefrequency",
    default: 10_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How often every region is looked at for edits that are old, compactions that are due, and compacted files to archive. Less than 250 \
          counts as 250.",
};

/// Whether compactions are made that nobody asks for.
pub const COMPACTIONS_ENABLED: Setting<bool> = Setting {
    key: "hbase.regionserver.compaction.enabled",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the server compacts by itself, until the shell's compaction_switch says otherwise.",
};

/// Size of the block cache.
pub const BLOCK_CACHE_BYTES: TextSetting = TextSetting {
    key: "hfile.block.cache.memory.size",
    default: "none",
    legal: Some("none, or a number of bytes with k, m, g or t behind it or not"),
    is_legal: |text| text.trim() == "none" || bytes_of(text).is_some(),
    doc: "Bytes that the block cache has at least, in place of the share that hfile.block.cache.size says; never more than the memory budget.",
};

/// `512m` in bytes; `None` where it is no size. Follows: `StorageSize#getStorageSize` with its letters alone.
pub(crate) fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix('b').unwrap_or(&text);
    let units = ['k', 'm', 'g', 't'];
    let unit = text.chars().next_back().and_then(|last| units.iter().position(|unit| *unit == last));
    let (digits, power) = match unit {
        Some(at) => (&text[..text.len() - 1], at as u32 + 1),
        None => (text, 0),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1024u64.pow(power)).filter(|bytes| *bytes > 0)
}

/// Every row of this crate.
pub const ALL: &[&dyn SettingRow] = &[
    &SCANNER_TIMEOUT_MS,
    &SCANNER_MAX_RESULT_SIZE,
    &GLOBAL_MEMSTORE_FRACTION,
    &GLOBAL_MEMSTORE_MIN_FRACTION,
    &GLOBAL_MEMSTORE_MAX_FRACTION,
    &BLOCK_CACHE_FRACTION,
    &BLOCK_CACHE_MIN_FRACTION,
    &BLOCK_CACHE_MAX_FRACTION,
    &BLOCK_CACHE_POLICY,
    &CHECKSUM_VERIFY,
    &SNAPSHOT_REGION_TIMEOUT_MS,
    &USER_METRICS,
    &GLOBAL_MEMSTORE_LOWER_FRACTION,
    &RECOVERY_MEMORY_FRACTION,
    &FLUSHER_COUNT,
    &SMALL_COMPACTION_THREADS,
    &LARGE_COMPACTION_THREADS,
    &COMPACTION_BYTES_PER_SECOND,
    &COMPACTION_BYTES_PER_SECOND_MAX,
    &LOG_ROLL_PERIOD_MS,
    &MAX_BATCH_ROWS,
    &REJECT_LARGE_BATCHES,
    &MOB_CLEANER_PERIOD,
    &MOB_MIN_AGE_TO_ARCHIVE_MS,
    &STOP_FLUSH_TIMEOUT_MS,
    &WARN_RESPONSE_TIME_MS,
    &WARN_RESPONSE_BYTES,
    &WARN_SCAN_RESPONSE_TIME_MS,
    &WARN_SCAN_RESPONSE_BYTES,
    &SLOW_LOG_BUFFER,
    &SLOW_LOG_RING_LEN,
    &SLOW_LOG_SCAN_PAYLOAD,
    &SLOW_LOG_TABLE_QUEUE_LEN,
    &SLOW_LOG_TABLE_PERIOD_MS,
    &NAMED_QUEUE_PERIOD_MS,
    &SLOW_METRIC_TIME_MS,
    &REGION_SPLIT_LIMIT,
    &BULK_LOAD_DIRS,
    &REGION_CLASSES,
    &USER_REGION_CLASSES,
    &KEY_STATISTICS,
    &SUPERUSERS,
    &SECOND_LEVEL_WRITE_RATE,
    &WAKE_FREQUENCY_MS,
    &COMPACTIONS_ENABLED,
    &BLOCK_CACHE_BYTES,
    &STOREFILE_REFRESH_PERIOD_MS,
    &META_STOREFILE_REFRESH_PERIOD_MS,
    &REPLICA_STOREFILE_REFRESH,
    &REPLICA_STOREFILE_REFRESH_MULTIPLIER,
    &REPLICA_WAITS_FOR_FLUSH,
];
