//! Settings of a master that leads region servers of other processes, under HBase's keys.

use base::{Setting, SettingRow};

/// Servers to wait for at the start.
pub const MIN_TO_START: Setting<u32> = Setting {
    key: "hbase.master.wait.on.regionservers.mintostart",
    default: 1,
    min: 1,
    max: 100_000,
    unit: "count",
    doc: "Region servers that `basalt master` waits for before it opens regions.",
};

/// Quiet time at the start.
pub const WAIT_INTERVAL_MS: Setting<u32> = Setting {
    key: "hbase.master.wait.on.regionservers.interval",
    default: 1_500,
    min: 0,
    max: 600_000,
    unit: "ms",
    doc: "When no further region server has come for so long, `basalt master` waits for no more of them.",
};

/// Longest wait at the start.
pub const WAIT_TIMEOUT_MS: Setting<u32> = Setting {
    key: "hbase.master.wait.on.regionservers.timeout",
    default: 4_500,
    min: 0,
    max: 600_000,
    unit: "ms",
    doc: "How long `basalt master` waits at most for further region servers, when as many as it needs are there.",
};

/// Whether it waits for another first.
pub const BACKUP: Setting<bool> = Setting {
    key: "hbase.master.backup",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "`basalt master` waits at its start until some master is active, and only then stands by to be the next. `--backup` sets it.",
};

/// Clocks apart.
pub const MAX_CLOCK_SKEW_MS: Setting<u64> = Setting {
    key: "hbase.master.maxclockskew",
    default: 30_000,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "A region server whose clock differs by more from the master's is not let in.",
};

/// For one call of a region server.
pub const SERVER_RPC_TIMEOUT_MS: Setting<u32> = Setting {
    key: "basalt.master.rpc.timeout",
    default: 10_000,
    min: 100,
    max: 600_000,
    unit: "ms",
    doc: "How long `basalt master` waits for a region server's answer to one call before it makes another connection and asks again.",
};

/// Logs that one server splits at a time.
pub const MAX_SPLITTERS: Setting<u32> = Setting {
    key: "hbase.regionserver.wal.max.splitters",
    default: 2,
    min: 1,
    max: 100,
    unit: "count",
    doc: "WAL files of dead servers that `basalt master` has one region server split at the same time.",
};

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &BACKUP,
    &MIN_TO_START,
    &WAIT_INTERVAL_MS,
    &WAIT_TIMEOUT_MS,
    &MAX_CLOCK_SKEW_MS,
    &SERVER_RPC_TIMEOUT_MS,
    &MAX_SPLITTERS,
];
