//! Settings of clients, under HBase's keys.

use base::{Setting, SettingRow};

/// How often an operation is tried.
pub const RETRIES: Setting<u32> = Setting {
    key: "hbase.client.retries.number",
    default: 15,
    min: 0,
    max: 1_000_000,
    unit: "count",
    doc: "How often a client tries an operation again before it gives up. More tries outlast longer outages.",
};

/// The unit of pauses between tries.
pub const PAUSE_MS: Setting<u64> = Setting {
    key: "hbase.client.pause",
    default: 100,
    min: 0,
    max: 600_000,
    unit: "ms",
    doc: "Pause of a client before its second try; later pauses are multiples of it (1, 2, 3, 5, 10, 20, 40, 100, 200).",
};

/// How long one call may take.
pub const RPC_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.rpc.timeout",
    default: 60_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long a client waits for one reply before it takes the call for lost.",
};

/// How long an operation may take with all its tries.
pub const OPERATION_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.client.operation.timeout",
    default: 1_200_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long an operation of a client may take with all its tries.",
};

/// Connections to one server.
pub const CONNECTIONS_PER_SERVER: Setting<u32> = Setting {
    key: "hbase.client.ipc.pool.size",
    default: 1,
    min: 1,
    max: 1_000,
    unit: "count",
    doc: "Connections of one client to one server. One is best until a processor is full of reading its replies.",
};

/// Every row.
pub const ALL: &[&dyn SettingRow] =
    &[&RETRIES, &PAUSE_MS, &RPC_TIMEOUT_MS, &OPERATION_TIMEOUT_MS, &CONNECTIONS_PER_SERVER];

/// Key of the quorum's hosts.
pub const QUORUM_KEY: &str = "hbase.zookeeper.quorum";
/// Key of the registry's Java class.
pub const REGISTRY_KEY: &str = "hbase.client.registry.impl";
/// Key of the servers that an RPC registry asks.
pub const BOOTSTRAP_KEY: &str = "hbase.client.bootstrap.servers";
/// Key of the codec's Java class.
pub const CODEC_KEY: &str = "hbase.client.rpc.codec";
