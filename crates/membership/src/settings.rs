//! Settings of a region server that joins a cluster, under HBase's keys.

use base::{Setting, SettingRow, TextSetting};

/// Between two reports.
pub const REPORT_INTERVAL_MS: Setting<u32> = Setting {
    key: "hbase.regionserver.msginterval",
    default: 3_000,
    min: 100,
    max: 600_000,
    unit: "ms",
    doc: "How often `basalt regionserver` reports its load to the master.",
};

/// For one call to the master.
pub const MASTER_RPC_TIMEOUT_MS: Setting<u32> = Setting {
    key: "hbase.rpc.shortoperation.timeout",
    default: 10_000,
    min: 100,
    max: 600_000,
    unit: "ms",
    doc: "How long `basalt regionserver` waits for the master's answer to one call before it looks for the master again.",
};

/// The version to be in the cluster.
pub const VERSION: TextSetting = TextSetting::any(
    "basalt.cluster.version",
    "that of the others",
    "Version of HBase that `basalt regionserver` says it has. A cluster's system tables are placed on servers of its highest version alone; \
     without other servers it is 2.6.4.",
);

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[&REPORT_INTERVAL_MS, &MASTER_RPC_TIMEOUT_MS, &VERSION];
