//! Settings of the process: where its data is, which ports it opens, how much memory it may use.

use base::{Setting, SettingRow, TextSetting};
use std::path::PathBuf;

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

/// Where the logs are.
pub const WAL_DIRECTORY: TextSetting = TextSetting::any(
    "hbase.wal.dir",
    "as hbase.rootdir",
    "Where WAL files are, and what they are split into, when that is another directory than hbase.rootdir: a directory or file: URL, or hdfs://host:port/directory; \
     not below hbase.rootdir. A new one must be empty, unless HBase used it for this root directory.",
);

/// Where the data is when nobody says.
pub const TMP_DIRECTORY: TextSetting = TextSetting::any(
    "hbase.tmp.dir",
    "none",
    "Without hbase.rootdir the data is in the directory hbase below this one, unless ./basalt-data is there. Values of other keys may refer to it \
     as ${hbase.tmp.dir}.",
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

/// Disks beside that of the root directory.
pub const VOLUMES: TextSetting = TextSetting {
    key: "basalt.volumes",
    default: "none",
    legal: Some("name:ram|ssd|hdd:/directory[:limit][:drain], separated by commas"),
    is_legal: |text| text.trim() == "none" || fs::tiered::parse_volumes(text).is_ok(),
    doc: "Disks beside that of the root directory, for a root directory on the local disk: name:class:/directory[:limit][:drain], separated by \
          commas. The name is that of a tier; volumes of one name share its files. The class is ram, ssd or hdd. No more files go to a volume that \
          holds as much as its limit (a number with k, m, g or t), and none to one with :drain, \
          which `basalt admin drain-volume` empties. May be changed while the server runs; one that has files is not taken out. Which files go to which tier say basalt.volumes.place.* and storage \
          policies; `basalt volumes gather` makes one directory again. docs/operations/tiers.md.",
};

const fn place(key: &'static str, doc: &'static str) -> TextSetting {
    TextSetting::any(key, "the root directory's disk", doc)
}

/// Tier of logs.
pub const PLACE_WAL: TextSetting = place(
    "basalt.volumes.place.wal",
    "Tier of write-ahead logs, where hbase.wal.storage.policy names none. That of hbase:meta stays in the root.",
);
/// Tier of flushed files.
pub const PLACE_FLUSH: TextSetting = place(
    "basalt.volumes.place.flush",
    "Tier of files that memstores are flushed to, where no storage policy names one.",
);
/// Tier of what minor compactions write.
pub const PLACE_MINOR: TextSetting = place(
    "basalt.volumes.place.minor",
    "Tier of files that compactions of some of a store's files write, where no storage policy names one.",
);
/// Tier of what major compactions write.
pub const PLACE_MAJOR: TextSetting = place(
    "basalt.volumes.place.major",
    "Tier of files that compactions of all of a store's files write, where no storage policy names one.",
);
/// Tier of MOB files.
pub const PLACE_MOB: TextSetting =
    place("basalt.volumes.place.mob", "Tier of MOB files, where no storage policy names one.");

/// Whether memory may hold what was acknowledged.
pub const RAM_MAY_LOSE: Setting<bool> = Setting {
    key: "basalt.volumes.ram.may.lose.acknowledged.writes",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether logs and store files, the only copy of acknowledged writes, may lie on a tier of class ram, which a power failure empties. \
          Without it such a place is refused at start, and a storage policy that says so is passed over.",
};
/// Whether to start without a volume.
pub const VOLUMES_MAY_BE_MISSING: Setting<bool> = Setting {
    key: "basalt.volumes.may.be.missing",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether to start when a volume of basalt.volumes cannot be used. Regions with files on it do not open until it is back; without \
          the setting the server does not start.",
};

/// Delays of volumes, for tests.
pub const VOLUMES_DELAY_FOR_TESTS: TextSetting = TextSetting {
    key: "basalt.volumes.delay.for.tests",
    default: "none",
    legal: Some("tier=milliseconds or directory=milliseconds, separated by commas"),
    is_legal: |text| delays_of(text).is_some(),
    doc: "For tests and measurements: each call to a volume of the tier, or in the directory, takes so many milliseconds longer, as tier=milliseconds \
          or directory=milliseconds, separated by commas. Never for a server with data of somebody's.",
};

/// The tiers and directories of [`VOLUMES_DELAY_FOR_TESTS`] with their milliseconds; `None`: it cannot be read.
pub fn delays_of(text: &str) -> Option<Vec<(&str, u64)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "none");
    parts.map(|part| part.split_once('=').and_then(|(tier, ms)| Some((tier.trim(), ms.trim().parse().ok()?)))).collect()
}

/// The directory that `hbase.bucketcache.ioengine` names; `None` when it names none.
///
/// # Errors
/// What is wrong with it.
pub fn cache_directory(text: &str) -> Result<Option<PathBuf>, String> {
    let text = text.trim();
    if text.is_empty() || text == "none" {
        return Ok(None);
    }
    let place = match text.split_once(':') {
        Some(("file" | "files" | "mmap" | "pmem", place)) => place,
        _ => return Err(format!("hbase.bucketcache.ioengine = {text}: only file:/directory is there")),
    };
    let place = place.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(place);
    if !place.starts_with('/') || place.contains(',') {
        return Err(format!("hbase.bucketcache.ioengine = {text} must name one directory by its absolute path"));
    }
    Ok(Some(PathBuf::from(place)))
}

/// Where the second level of the block cache is.
pub const BUCKET_CACHE_ENGINE: TextSetting = TextSetting {
    key: "hbase.bucketcache.ioengine",
    default: "none",
    legal: Some("none, or file:/directory"),
    is_legal: |text| cache_directory(text).is_ok(),
    doc: "Second level of the block cache: file:/directory, a directory for this server alone, on a disk that is faster than the data's. (In HBase it is \
          a file; files:, mmap: and pmem: are taken for file:, where one place is named. offheap is refused: the block cache has all memory that \
          basalt.memory.size gives it.)",
};
/// Size of the second level of the block cache.
pub const BUCKET_CACHE_SIZE: Setting<f64> = Setting {
    key: "hbase.bucketcache.size",
    default: 0.0,
    min: 0.0,
    max: 1e9,
    unit: "MiB",
    doc: "Size of the second level of the block cache. Needed with hbase.bucketcache.ioengine; for each GiB it takes about 4 MiB of the block cache's \
          memory where blocks are of 32 KiB in their files.",
};
/// Whether the second level of the block cache lasts.
pub const BUCKET_CACHE_PERSISTENT: TextSetting = TextSetting::any(
    "hbase.bucketcache.persistent.path",
    "none",
    "A file that is made when the second level of the block cache begins; while it is there, what the cache holds is taken over at the next start, \
     also after a crash. Without the setting each start begins with an empty one. (In HBase the file holds the cache's index.)",
);

/// Every row of the process, with those of the crates that it is made of.
pub fn rows() -> Vec<&'static dyn SettingRow> {
    let own: &[&'static dyn SettingRow] = &[
        &MASTER_PORT,
        &REGION_SERVER_PORT,
        &MEMORY_SIZE,
        &ROOT_DIRECTORY,
        &WAL_DIRECTORY,
        &TMP_DIRECTORY,
        &BIND,
        &MASTER_ADDRESS,
        &REGION_SERVER_ADDRESS,
        &ZOOKEEPER_ADDRESS,
        &MASTER_HOSTNAME,
        &REGION_SERVER_HOSTNAME,
        &DISTRIBUTED,
        &QUORUM,
        &VOLUMES,
        &PLACE_WAL,
        &PLACE_FLUSH,
        &PLACE_MINOR,
        &PLACE_MAJOR,
        &PLACE_MOB,
        &RAM_MAY_LOSE,
        &VOLUMES_MAY_BE_MISSING,
        &VOLUMES_DELAY_FOR_TESTS,
        &BUCKET_CACHE_ENGINE,
        &BUCKET_CACHE_SIZE,
        &BUCKET_CACHE_PERSISTENT,
    ];
    let mut rows: Vec<&'static dyn SettingRow> = own.to_vec();
    let parts = [
        coordination::settings::ALL,
        membership::settings::ALL,
        leader::settings::ALL,
        rpc::settings::ALL,
        otlp::settings::ALL,
        master::settings::ALL,
        balancer::settings::ALL,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_a_directory() {
        let of = |text: &str| cache_directory(text).map(|place| place.map(|place| place.display().to_string()));
        assert_eq!(of(" "), Ok(None));
        for text in ["file:/ssd/cache", "file:///ssd/cache", "files:/ssd/cache", "mmap:/ssd/cache", "pmem:/ssd/cache"] {
            assert_eq!(of(text).expect("legal").as_deref(), Some("/ssd/cache"), "{text}");
        }
        for text in ["offheap", "file:cache", "files:/a,/b", "tape:/x"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
