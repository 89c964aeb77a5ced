//! Settings of the process: where its data is, which ports it opens, how much memory it may use.

use base::{Setting, SettingRow, TextSetting};

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

/// Where the data is.
pub const ROOT_DIRECTORY: TextSetting = TextSetting::any(
    "hbase.rootdir",
    "./basalt-data",
    "Where the data is: a directory, a file: URL of one, or hdfs://host:port/directory in a build with the feature hdfs.",
);

/// The address that everything listens on.
pub const BIND: TextSetting = TextSetting::any(
    "basalt.bind",
    "localhost",
    "Address that everything listens on: by default clients on this machine alone are let in. 0.0.0.0 opens it to all, without \
     authentication.",
);

/// The address of the master's port.
pub const MASTER_ADDRESS: TextSetting =
    TextSetting::any("hbase.master.ipc.address", "basalt.bind", "Address that the master listens on.");

/// The address of the region server's port.
pub const REGION_SERVER_ADDRESS: TextSetting =
    TextSetting::any("hbase.regionserver.ipc.address", "basalt.bind", "Address that the region server listens on.");

/// The address of the ZooKeeper endpoint.
pub const ZOOKEEPER_ADDRESS: TextSetting = TextSetting::any(
    "hbase.zookeeper.property.clientPortAddress",
    "basalt.bind",
    "Address that the ZooKeeper endpoint listens on.",
);

/// The master's name.
pub const MASTER_HOSTNAME: TextSetting =
    TextSetting::any("hbase.master.hostname", "by basalt.bind", "Host name of the master that clients are told.");

/// The region server's name.
pub const REGION_SERVER_HOSTNAME: TextSetting = TextSetting::any(
    "hbase.unsafe.regionserver.hostname",
    "by basalt.bind",
    "Host name of the region server that clients are told.",
);

/// Whether HBase would be a cluster.
pub const DISTRIBUTED: TextSetting = TextSetting::any(
    "hbase.cluster.distributed",
    "false",
    "true, with hbase.zookeeper.quorum and in a build with the feature zookeeper: nodes go to that ensemble in place of the embedded \
     endpoint. All of the cluster is one process either way.",
);

/// Where clients look for ZooKeeper.
pub const QUORUM: TextSetting = TextSetting::any(
    "hbase.zookeeper.quorum",
    "localhost",
    "Where the ZooKeeper ensemble is: hosts, each with or without a port. Read by clients, and by the server when hbase.cluster.distributed \
     is true; else the server is its own quorum.",
);

/// Every row of the process, with those of the crates that it is made of.
pub fn rows() -> Vec<&'static dyn SettingRow> {
    let own: &[&'static dyn SettingRow] = &[
        &MASTER_PORT,
        &REGION_SERVER_PORT,
        &MEMORY_SIZE,
        &ROOT_DIRECTORY,
        &BIND,
        &MASTER_ADDRESS,
        &REGION_SERVER_ADDRESS,
        &ZOOKEEPER_ADDRESS,
        &MASTER_HOSTNAME,
        &REGION_SERVER_HOSTNAME,
        &DISTRIBUTED,
        &QUORUM,
    ];
    let mut rows: Vec<&'static dyn SettingRow> = own.to_vec();
    let parts = [
        coordination::settings::ALL,
        membership::settings::ALL,
        leader::settings::ALL,
        rpc::settings::ALL,
        master::settings::ALL,
        regionserver::settings::ALL,
        quota::settings::ALL,
        scheduler::settings::ALL,
        region::settings::ALL,
        hfile::settings::ALL,
        wal::settings::ALL,
        web::settings::ALL,
        rest::settings::ALL,
        thrift::settings::ALL,
    ];
    for part in parts {
        rows.extend_from_slice(part);
    }
    rows.sort_by_key(|row| row.key());
    rows
}
