//! Settings of the embedded endpoint, under HBase's keys.

use base::{Config, Setting, SettingRow, TextSetting};

/// Port of the endpoint.
pub const CLIENT_PORT: Setting<u16> = Setting {
    key: "hbase.zookeeper.property.clientPort",
    default: 2181,
    min: 0,
    max: u16::MAX,
    unit: "",
    doc: "Port on which clients find the coordination endpoint. 0 takes any free port.",
};

/// Length of a tick.
pub const TICK_TIME_MS: Setting<u32> = Setting {
    key: "hbase.zookeeper.property.tickTime",
    default: 2000,
    min: 10,
    max: 600_000,
    unit: "ms",
    doc: "A session's timeout is held between 2 and 20 ticks. Longer ticks forgive longer silences of a client and \
          keep its ephemeral nodes longer after its death.",
};

/// Connections from one address.
pub const MAX_CLIENT_CONNECTIONS: Setting<u32> = Setting {
    key: "hbase.zookeeper.property.maxClientCnxns",
    default: 300,
    min: 0,
    max: 1_000_000,
    unit: "count",
    doc: "Connections that one network address may hold to the coordination endpoint; a further one is closed at \
          once. 0 means no limit.",
};

/// Where users' nodes are kept.
pub const DATA_DIRECTORY: TextSetting = TextSetting::any(
    "hbase.zookeeper.property.dataDir",
    "in hbase.rootdir",
    "Directory of the local disk in which the embedded endpoint keeps the nodes that its users make (in the file basalt-znodes). What was kept in \
     hbase.rootdir until then moves there at the next start. It does not move back by itself: without the setting, move the file to \
     MasterData/basalt/znodes. A ZooKeeper ensemble has a setting of its own.",
);

/// Silence after which an ensemble takes this process for dead.
pub const SESSION_TIMEOUT_MS: Setting<u32> = Setting {
    key: "zookeeper.session.timeout",
    default: 90_000,
    min: 1_000,
    max: 3_600_000,
    unit: "ms",
    doc: "Session timeout asked of a ZooKeeper ensemble, in builds with the feature zookeeper; ZooKeeper grants 20 of its ticks (40 s) unless \
          its maxSessionTimeout says more. The process ends when its session does.",
};

/// The name that an ensemble knows the process by.
pub const SASL_USERNAME: TextSetting = TextSetting::any(
    "basalt.zookeeper.sasl.username",
    "none",
    "Name by which the process proves itself to a ZooKeeper ensemble (SASL, DIGEST-MD5), in builds with the feature zookeeper. Its nodes can be \
     changed by processes of that name alone and read by all, as HBase's are where ZooKeeper is secured: all servers of a cluster have the same. \
     Without it everybody may change them.",
);

/// The file with its password.
pub const SASL_PASSWORD_FILE: TextSetting = TextSetting::any(
    "basalt.zookeeper.sasl.password.file",
    "none",
    "File whose first line is the password for basalt.zookeeper.sasl.username.",
);

/// Whether sessions are over TLS.
pub const CLIENT_SECURE: Setting<bool> = Setting {
    key: "zookeeper.client.secure",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether sessions with a ZooKeeper ensemble are over TLS, in builds with the feature zookeeper-tls. A property of ZooKeeper's own client.",
};

/// Authorities that are trusted.
pub const TRUST_STORE: TextSetting = TextSetting::any(
    "zookeeper.ssl.trustStore.location",
    "none",
    "PEM file of the authorities whose certificates of ZooKeeper servers are trusted. A property of ZooKeeper's own client; other formats than PEM \
     are not read.",
);

/// What this process shows.
pub const KEY_STORE: TextSetting = TextSetting::any(
    "zookeeper.ssl.keyStore.location",
    "none",
    "PEM file with the certificate of this process and its key, for ensembles that ask for one. A property of ZooKeeper's own client; other \
     formats than PEM are not read.",
);

/// Path of the base node.
pub const ZNODE_PARENT: TextSetting =
    TextSetting::any("zookeeper.znode.parent", "/hbase", "Root of HBase's nodes in the ZooKeeper endpoint.");

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &CLIENT_PORT,
    &TICK_TIME_MS,
    &MAX_CLIENT_CONNECTIONS,
    &DATA_DIRECTORY,
    &SESSION_TIMEOUT_MS,
    &SASL_USERNAME,
    &SASL_PASSWORD_FILE,
    &CLIENT_SECURE,
    &TRUST_STORE,
    &KEY_STORE,
    &ZNODE_PARENT,
];

/// The base node: `zookeeper.znode.parent`, or `/hbase`.
pub fn znode_parent(config: &Config) -> &str {
    config.text(ZNODE_PARENT.key).map_or(ZNODE_PARENT.default, str::trim)
}
