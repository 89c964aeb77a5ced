//! Settings of a master that leads region servers of other processes, under HBase's keys.

use base::{Setting, SettingRow, TextSetting};

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
    doc: "When no further region server has come for so long, `basalt master` waits for no more of them. One that takes over from another does not wait so.",
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

/// Racks by a program.
pub const SCRIPT_MAPPING: &str = "org.apache.hadoop.net.ScriptBasedMapping";
/// Racks by a file.
pub const TABLE_MAPPING: &str = "org.apache.hadoop.net.TableMapping";

/// How racks are found out.
pub const RACK_DETERMINER: TextSetting = TextSetting::any(
    "hbase.util.ip.to.rack.determiner",
    SCRIPT_MAPPING,
    "How `basalt master` learns in which racks the machines of region servers stand, by Hadoop's class: \
     org.apache.hadoop.net.ScriptBasedMapping (net.topology.script.file.name) or org.apache.hadoop.net.TableMapping \
     (net.topology.table.file.name). The balancer goes by it.",
);

/// The program.
pub const RACK_SCRIPT: TextSetting = TextSetting::any(
    "net.topology.script.file.name",
    "none",
    "A program that is called with the addresses of machines and prints a rack for each, as Hadoop has it; once for each machine. Without \
     it all are in /default-rack.",
);

/// Addresses for one call.
pub const RACK_SCRIPT_ARGS: Setting<u32> = Setting {
    key: "net.topology.script.number.args",
    default: 100,
    min: 1,
    max: 100_000,
    unit: "count",
    doc: "Addresses that one call of net.topology.script.file.name gets at most.",
};

/// The file.
pub const RACK_TABLE: TextSetting = TextSetting::any(
    "net.topology.table.file.name",
    "none",
    "A file with the address of a machine and its rack in each line, as Hadoop has it, where hbase.util.ip.to.rack.determiner says so. What is \
     not in it is in /default-rack.",
);

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &BACKUP,
    &MIN_TO_START,
    &WAIT_INTERVAL_MS,
    &WAIT_TIMEOUT_MS,
    &MAX_CLOCK_SKEW_MS,
    &SERVER_RPC_TIMEOUT_MS,
    &MAX_SPLITTERS,
    &RACK_DETERMINER,
    &RACK_SCRIPT,
    &RACK_SCRIPT_ARGS,
    &RACK_TABLE,
];
