//! Settings of the master, under HBase's keys.

use base::{Setting, SettingRow, TextSetting};

/// Regions opened at once.
pub const OPEN_THREADS: Setting<u32> = Setting {
    key: "hbase.master.executor.openregion.threads",
    default: 16,
    min: 1,
    max: 1000,
    unit: "count",
    doc: "Regions that are being opened or closed at once. More hide the latency of the disk at start; each takes a \
          thread while it works.",
};

/// Pause of the catalog janitor.
pub const JANITOR_INTERVAL_MS: Setting<u64> = Setting {
    key: "hbase.catalogjanitor.interval",
    default: 300_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often split and merged regions whose files nobody refers to any more are archived and taken out of \
          hbase:meta.",
};

/// Pause of the hbck chore.
pub const HBCK_INTERVAL_MS: Setting<i64> = Setting {
    key: "hbase.master.hbck.chore.interval",
    default: 3_600_000,
    min: -1,
    max: 86_400_000,
    unit: "ms",
    doc: "How often hbase:meta, the region servers and the directories are compared for a report; 0 or -1: never.",
};

/// Pause of the self-healing.
pub const HEALING_INTERVAL_MS: Setting<i64> = Setting {
    key: "basalt.master.healing.chore.interval",
    default: 300_000,
    min: -1,
    max: 86_400_000,
    unit: "ms",
    doc: "How often what is wrong with hbase:meta, regions, their directories and procedures is looked for, and mended where it was there the \
          time before too and the evidence suffices; 0 or -1: never, and hbck2's commands are what mends.",
};

/// Regions merged at once where they overlap.
pub const FIX_MAX_MERGE_COUNT: Setting<u32> = Setting {
    key: "hbase.master.metafixer.max.merge.count",
    default: 64,
    min: 2,
    max: 1_000_000,
    unit: "count",
    doc: "Regions with rows in common that hbck's fixMeta and the self-healing merge at once.",
};

/// How long finished procedures are kept.
pub const PROCEDURE_TTL_MS: Setting<u64> = Setting {
    key: "hbase.procedure.cleaner.evict.ttl",
    default: 900_000,
    min: 1000,
    max: 86_400_000,
    unit: "ms",
    doc: "How long the outcome of a procedure can be asked for, and a repeated request is recognised by its nonce.",
};

/// Whether quotas go with their table.
pub const QUOTA_REMOVE_ON_TABLE_DELETE: Setting<bool> = Setting {
    key: "hbase.quota.remove.on.table.delete",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the quotas of a table or namespace are deleted when it is.",
};

/// How often a region that could not be opened is tried again.
pub const RETRY_FAILED_OPEN_MS: Setting<u64> = Setting {
    key: "basalt.master.failed.open.retry",
    default: 30_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often a region that could not be opened (FAILED_OPEN) is tried again.",
};

/// How long a client may be silent that holds a lock.
pub const CLIENT_LOCK_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.master.procedure.remote.locks.timeout.ms",
    default: 30_000,
    min: 100,
    max: 86_400_000,
    unit: "ms",
    doc: "How long a client that asked for a lock of a namespace, table or region may give no sign of life before it loses \
          the lock.",
};

/// Ten years.
const LONG_MS: u64 = 315_360_000_000;

/// Pause of the cleaners.
pub const CLEANER_INTERVAL_MS: Setting<u64> = Setting {
    key: "hbase.master.cleaner.interval",
    default: 600_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often store files in the archive and logs in oldWALs that nobody needs any more are deleted.",
};

/// Life of archived store files.
pub const HFILE_TTL_MS: Setting<u64> = Setting {
    key: "hbase.master.hfilecleaner.ttl",
    default: 300_000,
    min: 0,
    max: LONG_MS,
    unit: "ms",
    doc: "How long a store file stays in the archive at least after the last snapshot, link or reference that needs it is \
          gone. Files have no times of their own here: it counts from when this process first saw the file unneeded, so a \
          restart begins it anew.",
};

/// Life of archived logs.
pub const LOG_TTL_MS: Setting<u64> = Setting {
    key: "hbase.master.logcleaner.ttl",
    default: 600_000,
    min: 0,
    max: LONG_MS,
    unit: "ms",
    doc: "How long a log stays in oldWALs at least; it counts from when this process first saw it there.",
};

/// Life of archived logs of HBase's master.
pub const MASTER_STORE_LOG_TTL_MS: Setting<u64> = Setting {
    key: "hbase.master.local.store.walcleaner.ttl",
    default: 604_800_000,
    min: 0,
    max: LONG_MS,
    unit: "ms",
    doc: "The same for logs of the store of HBase's own master, which HBase left there. Basalt writes none.",
};

/// Life of archived files of the master's own store.
pub const MASTER_STORE_HFILE_TTL_MS: Setting<u64> = Setting {
    key: "hbase.master.local.store.hfilecleaner.ttl",
    default: 604_800_000,
    min: 0,
    max: LONG_MS,
    unit: "ms",
    doc: "The same for archived files of the master's own store. Each start archives two small ones.",
};

/// Pause of the normalizer.
pub const NORMALIZER_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.normalizer.period",
    default: 300_000,
    min: 1,
    max: i32::MAX as u64,
    unit: "ms",
    doc: "How often all tables are looked at whose regions are to be split and merged until they are about as large as each other.",
};

/// Whether the normalizer looks at tables that do not say.
pub const NORMALIZATION_ENABLED: Setting<bool> = Setting {
    key: "hbase.table.normalization.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the normalizer looks at tables whose NORMALIZATION_ENABLED says neither true nor false.",
};

/// Whether the normalizer splits.
pub const NORMALIZER_SPLIT: Setting<bool> = Setting {
    key: "hbase.normalizer.split.enabled",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the normalizer splits regions of more than twice the size that they should have. A table may say otherwise under the same key.",
};

/// Whether the normalizer merges.
pub const NORMALIZER_MERGE: Setting<bool> = Setting {
    key: "hbase.normalizer.merge.enabled",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the normalizer merges neighbours that are no larger together than a region should be. A table may say otherwise under the \
          same key.",
};

/// Regions that a table must have.
pub const NORMALIZER_MERGE_MIN_REGIONS: Setting<u64> = Setting {
    key: "hbase.normalizer.merge.min.region.count",
    default: 3,
    min: 1,
    max: i32::MAX as u64,
    unit: "count",
    doc: "The normalizer merges no regions of a table with fewer. A table may say otherwise under the same key.",
};

/// Days that a region must be old.
pub const NORMALIZER_MERGE_MIN_AGE_DAYS: Setting<u64> = Setting {
    key: "hbase.normalizer.merge.min_region_age.days",
    default: 3,
    min: 0,
    max: 36_500,
    unit: "days",
    doc: "The normalizer merges no region that was made later than so many days ago. A table may say otherwise under the same key.",
};

/// Mebibytes that a region must have.
pub const NORMALIZER_MERGE_MIN_SIZE_MB: Setting<u64> = Setting {
    key: "hbase.normalizer.merge.min_region_size.mb",
    default: 1,
    min: 0,
    max: i64::MAX as u64,
    unit: "MiB",
    doc: "The normalizer merges no smaller region: 0 lets it merge empty ones. A table may say otherwise under the same key.",
};

/// Regions that are merged at once.
pub const NORMALIZER_MERGE_MOST_REGIONS: Setting<u64> = Setting {
    key: "hbase.normalizer.merge.merge_request_max_number_of_regions",
    default: 100,
    min: 2,
    max: i64::MAX as u64,
    unit: "count",
    doc: "Regions that the normalizer merges into one at most.",
};

/// Bytes a second.
pub const NORMALIZER_BYTES_PER_SECOND: Setting<u64> = Setting {
    key: "hbase.normalizer.throughput.max_bytes_per_sec",
    default: 1_000_000_000_000,
    min: 1_000_000,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Regions of so many bytes together may be split and merged by the normalizer in a second.",
};

/// Mebibytes in one table.
pub const NORMALIZER_PLANS_SIZE_MB: Setting<u64> = Setting {
    key: "hbase.normalizer.plans_size_limit.mb",
    default: i64::MAX as u64,
    min: 0,
    max: i64::MAX as u64,
    unit: "MiB",
    doc: "Regions of so many mebibytes together may be split and merged by the normalizer when it looks at a table once.",
};

/// Whether snapshots can be taken and used.
pub const SNAPSHOTS_ENABLED: Setting<bool> = Setting {
    key: "hbase.snapshot.enabled",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Take, restore, clone and delete snapshots. Files that one names are kept in any case.",
};

/// How long clients wait for a snapshot.
pub const SNAPSHOT_TIMEOUT_MS: Setting<i64> = Setting {
    key: "hbase.snapshot.master.timeout.millis",
    default: 300_000,
    min: 1000,
    max: i64::MAX,
    unit: "ms",
    doc: "How long a client is told to wait for a snapshot at most.",
};

/// Life of snapshots that name none.
pub const SNAPSHOT_TTL_SECONDS: Setting<i64> = Setting {
    key: "hbase.master.snapshot.ttl",
    default: 0,
    min: 0,
    max: i64::MAX / 1000,
    unit: "s",
    doc: "How long a snapshot is kept that was taken without a TTL; 0 keeps it until it is deleted.",
};

/// Whether a snapshot is taken before data is deleted.
pub const RECOVERY_SNAPSHOTS: Setting<bool> = Setting {
    key: "hbase.snapshot.before.destructive.action.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether a snapshot `auto_<table>_<time>` is taken before a table is deleted or truncated or loses a column family, \
          while snapshots can be taken at all. The name of a table of a namespace stands in it with `-` in place of `:`, which \
          names of snapshots cannot have; HBase cannot take that snapshot.",
};

/// Life of snapshots that are taken before data is deleted.
pub const RECOVERY_SNAPSHOT_TTL_SECONDS: Setting<i64> = Setting {
    key: "hbase.snapshot.before.destructive.action.ttl",
    default: 86_400,
    min: 0,
    max: i64::MAX / 1000,
    unit: "s",
    doc: "How long such a snapshot is kept, unless the table's RECOVERY_SNAPSHOT_TTL says otherwise; 0 keeps it until it is \
          deleted.",
};

/// Pause of the cleaner of snapshots.
pub const SNAPSHOT_CLEANER_INTERVAL_MS: Setting<u64> = Setting {
    key: "hbase.master.cleaner.snapshot.interval",
    default: 1_800_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often snapshots whose TTL is over are deleted.",
};

/// Pause of the balancer.
pub const BALANCER_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.balancer.period",
    default: 300_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often the balancer looks whether regions are to be moved. Why it moves none it says where \
          hbase.master.balancer.rejection.buffer.enabled is set.",
};

/// How long a run moves regions.
pub const MAX_BALANCING_MS: Setting<u64> = Setting {
    key: "hbase.balancer.max.balancing",
    default: 300_000,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "How long the balancer moves regions before it makes another plan; they are spread over that time while others are on their way. As long \
          as hbase.balancer.period where it is not set; 0 moves all at once.",
};

/// Regions that may be on their way.
pub const MAX_TRANSITION_PART: Setting<f64> = Setting {
    key: "hbase.master.balancer.maxRitPercent",
    default: 1.0,
    min: 0.0,
    max: 1.0,
    unit: "fraction",
    doc: "The part of all regions that the balancer lets be in transition at once; one may be in any case. Less keeps more of them served, and \
          takes longer.",
};

/// Pause between two looks at loads.
pub const BALANCER_STATUS_PERIOD_MS: Setting<u64> = Setting {
    key: "hbase.balancer.statusPeriod",
    default: 60_000,
    min: 10,
    max: 86_400_000,
    unit: "ms",
    doc: "How often the balancer remembers what regions have to do, beside each of its runs.",
};

/// Whether it is kept what the balancer did.
pub const BALANCER_DECISION_BUFFER: Setting<bool> = Setting {
    key: "hbase.master.balancer.decision.buffer.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether it is kept, for clients that ask (get_balancer_decisions), which regions the balancer moved and what that gained.",
};

/// How many of these are kept.
pub const BALANCER_DECISIONS: Setting<u32> = Setting {
    key: "hbase.master.balancer.decision.queue.size",
    default: 250,
    min: 1,
    max: 1_000_000,
    unit: "count",
    doc: "How many decisions of the balancer are kept, the newest. Each takes some hundred bytes for a region that is moved.",
};

/// Whether the balancer looks at each table alone.
pub const BALANCE_BY_TABLE: Setting<bool> = Setting {
    key: "hbase.master.loadbalance.bytable",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the balancer looks at each table alone, or at all of them at once.",
};

/// Whether it is kept why the balancer did nothing.
pub const BALANCER_REJECTION_BUFFER: Setting<bool> = Setting {
    key: "hbase.master.balancer.rejection.buffer.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether it is kept, for clients that ask (get_balancer_rejections), why the balancer had nothing to do.",
};

/// How many of these are kept.
pub const BALANCER_REJECTIONS: Setting<u32> = Setting {
    key: "hbase.master.balancer.rejection.queue.size",
    default: 250,
    min: 1,
    max: 1_000_000,
    unit: "count",
    doc: "How many rejections of the balancer are kept, the newest.",
};

/// Whether descriptors are checked for values that hardly anybody wants.
pub const SANITY_CHECKS: Setting<bool> = Setting {
    key: "hbase.table.sanity.checks",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Refuse descriptors of tables with values that are legal and hardly ever wanted, such as tiny regions or memstores. A table's own \
          hbase.table.sanity.checks goes before it.",
};

/// Read replicas of hbase:meta.
pub const META_REPLICA_COUNT: Setting<u32> = Setting {
    key: "hbase.meta.replica.count",
    default: 1,
    min: 1,
    max: 65_536,
    unit: "count",
    doc: "Where it is set, a master that starts sets REGION_REPLICATION of hbase:meta to it: the region itself and its read replicas. Since HBase 2.4 \
          this is better done by alter 'hbase:meta', REGION_REPLICATION => 3.",
};

/// Whether the master is started for repairs.
pub const MAINTENANCE_MODE: Setting<bool> = Setting {
    key: "hbase.master.maintenance_mode",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Start the master for repairs: hbase:meta is opened and no other region, no procedure is resumed, no chore runs, and clients are \
          told to hold. The calls of hbck and reads and writes of hbase:meta work.",
};

/// Coprocessors of the master.
pub const MASTER_COPROCESSORS: TextSetting = TextSetting::any(
    "hbase.coprocessor.master.classes",
    "none",
    "Coprocessors of the master, by HBase's class names and separated by commas: org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint switches \
     groups of region servers on; a class that Basalt does not have is passed over.",
);

/// Where regions go when no server of their group is online.
pub const GROUP_FALLBACK: Setting<bool> = Setting {
    key: "hbase.rsgroup.fallback.enable",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Regions of a group of region servers none of which is online are opened on servers of the group default, and where none of these is, on any. \
          Off, they stay closed until one is back.",
};

/// The program that says to which group a new table belongs.
pub const GROUP_SCRIPT: TextSetting = TextSetting::any(
    "hbase.rsgroup.table.mapping.script",
    "none",
    "A program on the machine of `basalt master` that is called with the namespace and the name of a new table whose descriptor names no group, and prints \
     the group that it is to be in. It goes before the namespace's group; where it fails, says nothing or names no group that there is, that counts.",
);

/// How long it may take.
pub const GROUP_SCRIPT_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.rsgroup.table.mapping.script.timeout",
    default: 5_000,
    min: 1,
    max: 3_600_000,
    unit: "ms",
    doc: "How long hbase.rsgroup.table.mapping.script may take before it is ended, and the table made without its word.",
};

/// Smallest MAX_FILESIZE that the checks let pass.
pub const MAX_FILESIZE_LIMIT: Setting<i64> = Setting {
    key: "hbase.hregion.max.filesize.limit",
    default: 2 << 20,
    min: 0,
    max: i64::MAX,
    unit: "bytes",
    doc: "A table with a smaller MAX_FILESIZE is refused by hbase.table.sanity.checks.",
};

/// Smallest MEMSTORE_FLUSHSIZE that the checks let pass.
pub const FLUSH_SIZE_LIMIT: Setting<i64> = Setting {
    key: "hbase.hregion.memstore.flush.size.limit",
    default: 1 << 20,
    min: 0,
    max: i64::MAX,
    unit: "bytes",
    doc: "A table with a smaller MEMSTORE_FLUSHSIZE is refused by hbase.table.sanity.checks.",
};

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &OPEN_THREADS,
    &META_REPLICA_COUNT,
    &MAINTENANCE_MODE,
    &MASTER_COPROCESSORS,
    &GROUP_FALLBACK,
    &GROUP_SCRIPT,
    &GROUP_SCRIPT_TIMEOUT_MS,
    &JANITOR_INTERVAL_MS,
    &HBCK_INTERVAL_MS,
    &HEALING_INTERVAL_MS,
    &FIX_MAX_MERGE_COUNT,
    &PROCEDURE_TTL_MS,
    &CLIENT_LOCK_TIMEOUT_MS,
    &QUOTA_REMOVE_ON_TABLE_DELETE,
    &RETRY_FAILED_OPEN_MS,
    &NORMALIZER_PERIOD_MS,
    &NORMALIZATION_ENABLED,
    &NORMALIZER_SPLIT,
    &NORMALIZER_MERGE,
    &NORMALIZER_MERGE_MIN_REGIONS,
    &NORMALIZER_MERGE_MIN_AGE_DAYS,
    &NORMALIZER_MERGE_MIN_SIZE_MB,
    &NORMALIZER_MERGE_MOST_REGIONS,
    &NORMALIZER_BYTES_PER_SECOND,
    &NORMALIZER_PLANS_SIZE_MB,
    &CLEANER_INTERVAL_MS,
    &HFILE_TTL_MS,
    &LOG_TTL_MS,
    &MASTER_STORE_LOG_TTL_MS,
    &MASTER_STORE_HFILE_TTL_MS,
    &SNAPSHOTS_ENABLED,
    &SNAPSHOT_TIMEOUT_MS,
    &SNAPSHOT_TTL_SECONDS,
    &RECOVERY_SNAPSHOTS,
    &RECOVERY_SNAPSHOT_TTL_SECONDS,
    &SNAPSHOT_CLEANER_INTERVAL_MS,
    &BALANCER_PERIOD_MS,
    &MAX_BALANCING_MS,
    &MAX_TRANSITION_PART,
    &BALANCER_STATUS_PERIOD_MS,
    &BALANCER_DECISION_BUFFER,
    &BALANCER_DECISIONS,
    &BALANCE_BY_TABLE,
    &BALANCER_REJECTION_BUFFER,
    &BALANCER_REJECTIONS,
    &SANITY_CHECKS,
    &MAX_FILESIZE_LIMIT,
    &FLUSH_SIZE_LIMIT,
];
