//! Settings of the master, under HBase's keys.

use base::{Setting, SettingRow};

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

/// How long finished procedures are kept.
pub const PROCEDURE_TTL_MS: Setting<u64> = Setting {
    key: "hbase.procedure.cleaner.evict.ttl",
    default: 900_000,
    min: 1000,
    max: 86_400_000,
    unit: "ms",
    doc: "How long the outcome of a procedure can be asked for, and a repeated request is recognised by its nonce.",
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

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[&OPEN_THREADS, &JANITOR_INTERVAL_MS, &PROCEDURE_TTL_MS, &RETRY_FAILED_OPEN_MS];
