//! Settings of clients, under HBase's keys.

use base::{Setting, SettingRow, TextSetting};

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

/// The same for servers with too much to do.
pub const PAUSE_OVERLOADED_MS: Setting<u64> = Setting {
    key: "hbase.client.pause.server.overloaded",
    default: 0,
    min: 0,
    max: 600_000,
    unit: "ms",
    doc: "The same after a server said that it has too much to do. Less than hbase.client.pause means as long as that.",
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

/// The same for reads.
pub const READ_RPC_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.rpc.read.timeout",
    default: 0,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "The same for gets and scans; 0 means hbase.rpc.timeout.",
};

/// The same for writes.
pub const WRITE_RPC_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.rpc.write.timeout",
    default: 0,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "The same for writes; 0 means hbase.rpc.timeout.",
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

/// The same for lookups in hbase:meta.
pub const META_OPERATION_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.client.meta.operation.timeout",
    default: 1_200_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long an operation of a client on hbase:meta may take with all its tries.",
};

/// Failures that are not logged.
pub const START_LOG_ERRORS: Setting<u32> = Setting {
    key: "hbase.client.start.log.errors.counter",
    default: 5,
    min: 0,
    max: 1_000_000,
    unit: "count",
    doc: "After so many failed tries of one operation a client logs each further one as a warning.",
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

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.ipc.client.socket.timeout.connect",
    default: 10_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long a client waits for a connection to a server.",
};

/// Results in one reply of a scan.
pub const SCANNER_CACHING: Setting<u32> = Setting {
    key: "hbase.client.scanner.caching",
    default: i32::MAX as u32,
    min: 1,
    max: i32::MAX as u32,
    unit: "count",
    doc: "Results in one reply to a scan at most; their bytes have a limit of their own.",
};

/// Bytes in one reply of a scan.
pub const SCANNER_MAX_RESULT_SIZE: Setting<u64> = Setting {
    key: "hbase.client.scanner.max.result.size",
    default: 2 << 20,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Bytes in one reply to a scan, about. More means fewer calls and more memory.",
};

/// Bytes that a buffered mutator gathers.
pub const WRITE_BUFFER_BYTES: Setting<u64> = Setting {
    key: "hbase.client.write.buffer",
    default: 2 << 20,
    min: 1,
    max: i64::MAX as u64,
    unit: "bytes",
    doc: "Bytes of mutations that a client's buffered mutator gathers before it sends them.",
};

/// How long a buffered mutator keeps what it has.
pub const WRITE_BUFFER_FLUSH_MS: Setting<u64> = Setting {
    key: "hbase.client.write.buffer.periodicflush.timeout.ms",
    default: 0,
    min: 0,
    max: 86_400_000,
    unit: "ms",
    doc: "How long a buffered mutator keeps mutations before it sends them though its buffer is not full; 0 means for as long as it takes.",
};

/// The largest cell that is sent.
pub const MAX_CELL_BYTES: Setting<u64> = Setting {
    key: "hbase.client.keyvalue.maxsize",
    default: 10 << 20,
    min: 0,
    max: i32::MAX as u64,
    unit: "bytes",
    doc: "A Put with a larger cell is refused by the client, before anything is sent; 0 means that none is.",
};

/// How long the first replica alone is waited for.
pub const PRIMARY_GET_TIMEOUT_US: Setting<u64> = Setting {
    key: "hbase.client.primaryCallTimeout.get",
    default: 10_000,
    min: 0,
    max: 86_400_000_000,
    unit: "us",
    doc: "How long a get with TIMELINE consistency waits for the primary region before it asks the replicas, too.",
};

/// The same for scans.
pub const PRIMARY_SCAN_TIMEOUT_US: Setting<u64> = Setting {
    key: "hbase.client.replicaCallTimeout.scan",
    default: 1_000_000,
    min: 0,
    max: 86_400_000_000,
    unit: "us",
    doc: "How long the first call of a scan with TIMELINE consistency waits for the primary region before it asks the replicas, too.",
};

/// Whether restoring a snapshot saves the table first.
pub const TAKE_FAIL_SAFE: Setting<bool> = Setting {
    key: "hbase.snapshot.restore.take.failsafe.snapshot",
    default: true,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the shell's restore_snapshot takes a snapshot of the table as it is first, and goes back to it when restoring fails. It is \
          deleted in the end.",
};

/// What that snapshot is called.
pub const FAIL_SAFE_NAME: TextSetting = TextSetting::any(
    "hbase.snapshot.restore.failsafe.name",
    "hbase-failsafe-{snapshot.name}-{restore.timestamp}",
    "Name of that snapshot; {snapshot.name}, {table.name} and {restore.timestamp} stand for what they say.",
);

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &RETRIES,
    &PAUSE_MS,
    &PAUSE_OVERLOADED_MS,
    &RPC_TIMEOUT_MS,
    &READ_RPC_TIMEOUT_MS,
    &WRITE_RPC_TIMEOUT_MS,
    &OPERATION_TIMEOUT_MS,
    &META_OPERATION_TIMEOUT_MS,
    &START_LOG_ERRORS,
    &CONNECTIONS_PER_SERVER,
    &CONNECT_TIMEOUT_MS,
    &SCANNER_CACHING,
    &SCANNER_MAX_RESULT_SIZE,
    &WRITE_BUFFER_BYTES,
    &WRITE_BUFFER_FLUSH_MS,
    &MAX_CELL_BYTES,
    &PRIMARY_GET_TIMEOUT_US,
    &PRIMARY_SCAN_TIMEOUT_US,
    &TAKE_FAIL_SAFE,
    &FAIL_SAFE_NAME,
];

/// How long a call of a scan may take with all its tries. Servers read the same key for the time that a scanner may rest.
pub const SCAN_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.client.scanner.timeout.period",
    default: 60_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long a call of a scan may take with all its tries.",
};

/// Key of the quorum's hosts.
pub const QUORUM_KEY: &str = "hbase.zookeeper.quorum";
/// Key of the registry's Java class.
pub const REGISTRY_KEY: &str = "hbase.client.registry.impl";
/// Key of the servers that an RPC registry asks.
pub const BOOTSTRAP_KEY: &str = "hbase.client.bootstrap.servers";
/// Key of the masters, which an RPC registry asks where no bootstrap servers are given.
pub const MASTERS_KEY: &str = "hbase.masters";
/// Key of the one master's host, where neither is given.
pub const MASTER_HOST_KEY: &str = "hbase.master.hostname";
/// Key of its port.
pub const MASTER_PORT_KEY: &str = "hbase.master.port";
/// Key of the codec's Java class.
pub const CODEC_KEY: &str = "hbase.client.rpc.codec";
/// The older name of [`PAUSE_OVERLOADED_MS`].
pub const PAUSE_CQTBE_KEY: &str = "hbase.client.pause.cqtbe";
