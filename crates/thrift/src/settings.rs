//! Settings of the gateways, under HBase's keys where HBase has them.

use base::{Config, Setting, SettingRow, TextSetting};

const fn flag(key: &'static str, doc: &'static str) -> Setting<bool> {
    Setting { key, default: false, min: false, max: true, unit: "", doc }
}

/// `basalt.thrift.port`.
pub const IN_PROCESS_PORT: Setting<i32> = Setting {
    key: "basalt.thrift.port",
    default: -1,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "Port of a Thrift 1 gateway in the server's own process; 0 for any that is free, -1 for none. It saves a process and a hop, and shares the server's \
          memory.",
};

/// `basalt.thrift2.port`.
pub const IN_PROCESS_PORT_2: Setting<i32> = Setting {
    key: "basalt.thrift2.port",
    default: -1,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "As basalt.thrift.port, for Thrift 2.",
};

/// `hbase.regionserver.thrift.port`.
pub const PORT: Setting<u16> = Setting {
    key: "hbase.regionserver.thrift.port",
    default: 9090,
    min: 0,
    max: u16::MAX,
    unit: "",
    doc: "Port of `basalt thrift` and `basalt thrift2`; 0 for any that is free.",
};

/// `hbase.regionserver.thrift.ipaddress`.
pub const BIND_ADDRESS: TextSetting = TextSetting::any(
    "hbase.regionserver.thrift.ipaddress",
    "basalt.bind",
    "Address that the Thrift gateways listen on; every address where it is a process of its own and nothing is said.",
);

/// `hbase.regionserver.thrift.framed`.
pub const FRAMED: Setting<bool> = flag(
    "hbase.regionserver.thrift.framed",
    "Whether each message comes in a frame that says its length first. Clients must be set to the same.",
);

/// `hbase.regionserver.thrift.compact`.
pub const COMPACT: Setting<bool> = flag(
    "hbase.regionserver.thrift.compact",
    "Whether clients speak the compact protocol, else the binary one. Clients must be set to the same.",
);

/// `hbase.regionserver.thrift.http`.
pub const HTTP: Setting<bool> = flag(
    "hbase.regionserver.thrift.http",
    "Whether messages come over HTTP, each as the body of a POST, in the binary protocol whatever hbase.regionserver.thrift.compact says.",
);

/// `hbase.regionserver.thrift.coalesceIncrement`.
pub const COALESCE_INCREMENT: Setting<bool> = flag(
    "hbase.regionserver.thrift.coalesceIncrement",
    "Whether increments of Thrift 1's increment and incrementRows are answered before they are written, and those of one counter written \
     as one. What waits is lost when the process is killed.",
);

/// `hbase.thrift.readonly`.
pub const READ_ONLY: Setting<bool> =
    flag("hbase.thrift.readonly", "Whether the Thrift 2 gateway refuses what writes to tables.");

/// `hbase.regionserver.thrift.framed.max_frame_size_in_mb`.
pub const MAX_FRAME_MIB: Setting<u32> = Setting {
    key: "hbase.regionserver.thrift.framed.max_frame_size_in_mb",
    default: 2,
    min: 1,
    max: 2047,
    unit: "MiB",
    doc: "Largest frame. The connection of a client that announces a larger one is closed before its bytes are read.",
};

/// `basalt.thrift.max.message.size`.
pub const MAX_MESSAGE_SIZE: Setting<u64> = Setting {
    key: "basalt.thrift.max.message.size",
    default: 64 * 1024 * 1024,
    min: 1024,
    max: i32::MAX as u64,
    unit: "bytes",
    doc: "Largest request that comes without a frame, and largest reply. Bigger admits bigger batches at the price of memory for each.",
};

/// `basalt.thrift.max.connections`.
pub const MAX_CONNECTIONS: Setting<u32> = Setting {
    key: "basalt.thrift.max.connections",
    default: 4096,
    min: 1,
    max: 1 << 20,
    unit: "count",
    doc: "Connections to a Thrift gateway at a time; one more is closed at once.",
};

/// `basalt.thrift.memory.size`.
pub const MEMORY_SIZE: Setting<u64> = Setting {
    key: "basalt.thrift.memory.size",
    default: 512 * 1024 * 1024,
    min: 1 << 20,
    max: 1 << 40,
    unit: "bytes",
    doc: "What `basalt thrift` and `basalt thrift2` may hold of requests, scanned rows and replies, over all connections. Beyond it \
          calls are refused. A gateway in the server's process counts on the server's memory instead.",
};

/// `hbase.thrift.server.socket.read.timeout`.
pub const SOCKET_TIMEOUT_MS: Setting<u64> = Setting {
    key: "hbase.thrift.server.socket.read.timeout",
    default: 60_000,
    min: 1,
    max: 86_400_000,
    unit: "ms",
    doc: "How long a connection may be silent, or take nothing of its reply, before it is closed.",
};

/// `hbase.regionserver.thrift.server.type`.
pub const SERVER_TYPE: TextSetting = TextSetting {
    key: "hbase.regionserver.thrift.server.type",
    default: "threadpool",
    legal: Some("threadpool, or one of hsha, nonblocking and threadedselector, whose clients send frames"),
    is_legal: |text| matches!(text, "threadpool" | "hsha" | "nonblocking" | "threadedselector"),
    doc: "Which of HBase's Thrift servers clients expect. There is one implementation for all; what remains of the choice is that all but \
          threadpool take messages in frames, whatever hbase.regionserver.thrift.framed says.",
};

/// Whether the kind of server that is asked for takes messages in frames alone. Follows: `ImplType#isAlwaysFramed`.
pub(crate) fn is_always_framed(config: &Config) -> bool {
    config.text(SERVER_TYPE.key).is_some_and(|kind| kind != SERVER_TYPE.default)
}

/// `hbase.thrift.slow.response.nano.second`.
pub const SLOW_RESPONSE_NS: Setting<u64> = Setting {
    key: "hbase.thrift.slow.response.nano.second",
    default: 10_000_000,
    min: 0,
    max: 1 << 60,
    unit: "ns",
    doc: "Calls of a Thrift gateway that take longer are counted by slowThriftCall, too.",
};

/// `hbase.thrift.support.proxyuser`.
pub const PROXY_USER: Setting<bool> = flag(
    "hbase.thrift.support.proxyuser",
    "Whether the header doAs of a call over HTTP names the user on whose behalf it is made. Who may be named from where say \
     hadoop.proxyuser.NAME.users, .groups and .hosts, NAME being the gateway's own user; nobody unless they say so.",
);

/// `hbase.thrift.connection.max-idletime`.
pub const CONNECTION_MAX_IDLE_MS: Setting<u64> = Setting {
    key: "hbase.thrift.connection.max-idletime",
    default: 600_000,
    min: 1,
    max: 1 << 40,
    unit: "ms",
    doc: "How long the connection of a user on whose behalf calls were made is kept unused.",
};

/// `hbase.thrift.info.port`.
pub const INFO_PORT: Setting<i32> = Setting {
    key: "hbase.thrift.info.port",
    default: 9095,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "Port of the status pages and metrics of `basalt thrift` and `basalt thrift2`. -1 turns them off, 0 takes any free port. Where nothing is \
          said and the port is taken, there are none. (A gateway in the server's process is shown on the server's pages.)",
};

/// `hbase.thrift.info.bindAddress`.
pub const INFO_BIND_ADDRESS: TextSetting = TextSetting::any(
    "hbase.thrift.info.bindAddress",
    "basalt.bind, else 0.0.0.0",
    "Address that hbase.thrift.info.port is opened at.",
);

/// `hbase.client.scanner.timeout.period`.
pub const SCANNER_TIMEOUT_KEY: &str = "hbase.client.scanner.timeout.period";

/// All of them.
pub const ALL: &[&dyn SettingRow] = &[
    &IN_PROCESS_PORT,
    &IN_PROCESS_PORT_2,
    &PORT,
    &FRAMED,
    &COMPACT,
    &HTTP,
    &COALESCE_INCREMENT,
    &READ_ONLY,
    &MAX_FRAME_MIB,
    &MAX_MESSAGE_SIZE,
    &MAX_CONNECTIONS,
    &MEMORY_SIZE,
    &SOCKET_TIMEOUT_MS,
    &BIND_ADDRESS,
    &SERVER_TYPE,
    &SLOW_RESPONSE_NS,
    &PROXY_USER,
    &CONNECTION_MAX_IDLE_MS,
    &INFO_PORT,
    &INFO_BIND_ADDRESS,
];
