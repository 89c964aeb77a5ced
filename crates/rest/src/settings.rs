//! Settings of the REST gateway.

use base::{Setting, SettingRow, TextSetting};

/// Port of the gateway as a process.
pub const PORT: Setting<u16> = Setting {
    key: "hbase.rest.port",
    default: 8080,
    min: 0,
    max: u16::MAX,
    unit: "",
    doc: "Port of `basalt rest`. 0 takes any free port.",
};

/// Port of the gateway in the server's process.
pub const SERVER_PORT: Setting<i32> = Setting {
    key: "basalt.rest.port",
    default: -1,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "Port of a REST gateway in the server's own process, which reaches regions without sockets. -1 opens none, 0 takes any free port.",
};

/// Address of the gateway.
pub const HOST: TextSetting = TextSetting::any(
    "hbase.rest.host",
    "basalt.bind, else 0.0.0.0 for basalt rest",
    "Address that the REST gateway listens on.",
);

/// Whether it only reads.
pub const READ_ONLY: Setting<bool> = Setting {
    key: "hbase.rest.readonly",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the REST gateway refuses every request that would change something, with 403.",
};

/// Whether browsers must send a header.
pub const CSRF: Setting<bool> = Setting {
    key: "hbase.rest.csrf.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether the REST gateway refuses, with 400, what a browser sends to change something without the header X-XSRF-HEADER, which no page of \
          another site can have it send.",
};

/// Who is a browser.
pub const CSRF_BROWSERS: TextSetting = TextSetting {
    key: "hbase.rest-csrf.browser-useragents-regex",
    default: "^Mozilla.*,^Opera.*",
    legal: Some("regular expressions, separated by commas"),
    is_legal: |text| text.split(',').all(|pattern| crate::csrf::whole(pattern).is_ok()),
    doc: "User agents that hbase.rest.csrf.enabled takes for browsers: those that one of these regular expressions matches as a whole.",
};

/// What requests pass through.
pub const FILTER_CLASSES: TextSetting = TextSetting {
    key: "hbase.rest.filter.classes",
    default: GZIP_FILTER,
    legal: Some("org.apache.hadoop.hbase.rest.filter.GzipFilter, or nothing: no other class of Java's can be loaded"),
    is_legal: |text| filters(text).all(|name| name == GZIP_FILTER),
    doc: "Filters of the REST gateway. Without GzipFilter in it nothing is compressed for clients that take gzip; bodies that clients compressed are \
          read all the same.",
};

/// The class that compresses.
const GZIP_FILTER: &str = "org.apache.hadoop.hbase.rest.filter.GzipFilter";

fn filters(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Whether replies are compressed for who takes them so.
pub(crate) fn compresses(config: &base::Config) -> bool {
    config.text(FILTER_CLASSES.key).is_none_or(|text| filters(text).any(|name| name == GZIP_FILTER))
}

/// Port of the pages.
pub const INFO_PORT: Setting<i32> = Setting {
    key: "hbase.rest.info.port",
    default: 8085,
    min: -1,
    max: 65_535,
    unit: "",
    doc: "Port of the status pages and metrics of `basalt rest`. -1 turns them off, 0 takes any free port. Where nothing is said and the port is \
          taken, there are none. (A gateway in the server's process is shown on the server's pages.)",
};

/// Address of the pages.
pub const INFO_BIND_ADDRESS: TextSetting = TextSetting::any(
    "hbase.rest.info.bindAddress",
    "basalt.bind, else 0.0.0.0",
    "Address that hbase.rest.info.port is opened at.",
);

/// Stateful scanners at a time.
pub const SCANNER_CACHE_SIZE: Setting<u32> = Setting {
    key: "hbase.rest.scannercache.size",
    default: 10_000,
    min: 1,
    max: 1 << 20,
    unit: "count",
    doc: "Scanners that the REST gateway holds for its clients; one more closes the one that was not used for longest.",
};

/// How long a scanner is kept unused.
pub const SCANNER_EXPIRE_MS: Setting<u64> = Setting {
    key: "hbase.rest.scannercache.expire.time",
    default: 3_600_000,
    min: 1,
    max: 1 << 40,
    unit: "ms",
    doc: "How long the REST gateway keeps a scanner that nobody asks for cells.",
};

/// Rows of one reply of a server to a stateless scan.
pub const SCAN_FETCH_SIZE: Setting<u32> = Setting {
    key: "hbase.rest.scan.fetchsize",
    default: 10,
    min: 1,
    max: 1 << 20,
    unit: "count",
    doc: "Rows that a stateless scan asks a server for at a time, and that one protobuf message of its answer holds.",
};

/// Bytes of one request's body.
pub const MAX_REQUEST_BYTES: Setting<u64> = Setting {
    key: "basalt.rest.max.request.bytes",
    default: 64 << 20,
    min: 1 << 10,
    max: 1 << 31,
    unit: "bytes",
    doc: "Longest body of a REST request, compressed or not; a longer one is refused with 413.",
};

/// Bytes of one reply that is not a stream.
pub const MAX_REPLY_BYTES: Setting<u64> = Setting {
    key: "basalt.rest.max.reply.bytes",
    default: 64 << 20,
    min: 1 << 10,
    max: 1 << 31,
    unit: "bytes",
    doc: "Most cells, in bytes, of a REST reply that is not a stream. A scanner's reply ends there and the next goes on; a read of rows by \
          glob or range that has more is refused.",
};

/// Bytes that a process of its own may hold.
pub const MEMORY_SIZE: Setting<u64> = Setting {
    key: "basalt.rest.memory.size",
    default: 512 << 20,
    min: 1 << 20,
    max: 1 << 40,
    unit: "bytes",
    doc: "What `basalt rest` may hold of requests, scanned rows and replies, over all connections. Beyond it requests are refused with 503. \
          A gateway in the server's process counts on the server's memory instead.",
};

/// Connections at a time.
pub const MAX_CONNECTIONS: Setting<u32> = Setting {
    key: "basalt.rest.max.connections",
    default: 4096,
    min: 1,
    max: 1 << 20,
    unit: "count",
    doc: "Connections to the REST gateway at a time; one more is closed at once.",
};

/// Every row.
pub const ALL: &[&dyn SettingRow] = &[
    &PORT,
    &SERVER_PORT,
    &HOST,
    &READ_ONLY,
    &SCANNER_CACHE_SIZE,
    &SCANNER_EXPIRE_MS,
    &SCAN_FETCH_SIZE,
    &MAX_REQUEST_BYTES,
    &MAX_REPLY_BYTES,
    &MEMORY_SIZE,
    &MAX_CONNECTIONS,
    &CSRF,
    &CSRF_BROWSERS,
    &FILTER_CLASSES,
    &INFO_PORT,
    &INFO_BIND_ADDRESS,
];
