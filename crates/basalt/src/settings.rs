//! Settings of the process: where its data is, which ports it opens, how much memory it may use.

use base::{Setting, SettingRow};

/// Port of the master.
pub const MASTER_PORT: Setting<u16> = Setting {
    key: "hbase.master.port",
    default: 16_000,
    min: 0,
    max: u16::MAX,
    unit: "",
    doc: "Port of the master's RPC. 0 takes any free port.",
};

/// Port of the region server.
pub const REGION_SERVER_PORT: Setting<u16> = Setting {
    key: "hbase.regionserver.port",
    default: 16_020,
    min: 0,
    max: u16::MAX,
    unit: "",
    doc: "Port of the region server's RPC. 0 takes any free port.",
};

/// Memory for memstores and caches.
pub const MEMORY_SIZE: Setting<u64> = Setting {
    key: "basalt.memory.size",
    default: 0,
    min: 0,
    max: 1 << 46,
    unit: "bytes",
    doc: "The one memory budget, shared by memstores, block cache, requests, replies, scanners and nonces. 0 takes 40 % of what the machine, or the \
          cgroup's limit where that is less, leaves beyond 64 MiB for the process itself.",
};

/// Key of the address that everything listens on.
pub const BIND_KEY: &str = "basalt.bind";

/// Keys with text values, which have no bounds to check.
pub const TEXT_KEYS: &[(&str, &str, &str)] = &[
    ("hbase.rootdir", "./basalt-data", "Where the data is: a directory, or a file: URL of one."),
    (
        BIND_KEY,
        "localhost",
        "Address that everything listens on: by default clients on this machine alone are let in. 0.0.0.0 opens it to all, without authentication.",
    ),
    ("hbase.master.ipc.address", "basalt.bind", "Address that the master listens on."),
    ("hbase.regionserver.ipc.address", "basalt.bind", "Address that the region server listens on."),
    ("hbase.zookeeper.property.clientPortAddress", "basalt.bind", "Address that the ZooKeeper endpoint listens on."),
    ("hbase.master.hostname", "by basalt.bind", "Host name of the master that clients are told."),
    ("hbase.unsafe.regionserver.hostname", "by basalt.bind", "Host name of the region server that clients are told."),
    ("hbase.master.info.bindAddress", "basalt.bind", "Address that the status pages listen on."),
    ("hbase.cluster.distributed", "false", "Only false is served by this version."),
    ("zookeeper.znode.parent", "/hbase", "Root of HBase's nodes in the ZooKeeper endpoint."),
    ("hbase.zookeeper.quorum", "localhost", "Read by clients; the standalone server is its own quorum."),
];

/// Every row of the process, with those of the crates that it is made of.
pub fn rows() -> Vec<&'static dyn SettingRow> {
    let own: [&'static dyn SettingRow; 3] = [&MASTER_PORT, &REGION_SERVER_PORT, &MEMORY_SIZE];
    let mut rows: Vec<&'static dyn SettingRow> = own.to_vec();
    let parts = [
        coordination::settings::ALL,
        rpc::settings::ALL,
        master::settings::ALL,
        regionserver::settings::ALL,
        scheduler::settings::ALL,
        region::settings::ALL,
        hfile::settings::ALL,
        wal::settings::ALL,
        web::settings::ALL,
    ];
    for part in parts {
        rows.extend_from_slice(part);
    }
    rows.sort_by_key(|row| row.key());
    rows
}
