//! Settings of the RPC server, under HBase's keys where HBase has them.

use base::{Setting, SettingRow};

/// `hbase.ipc.max.request.size`.
pub const MAX_REQUEST_SIZE: Setting<u64> = Setting {
    key: "hbase.ipc.max.request.size",
    default: 256 * 1024 * 1024,
    min: 1024,
    max: i32::MAX as u64,
    unit: "bytes",
    doc: "Largest request frame. A longer one is refused with RequestTooBigException before its bytes are read, and the \
          connection is closed. Bigger admits bigger batches at the price of memory for each.",
};

/// `hbase.ipc.server.max.callqueue.size`.
pub const MAX_CALL_QUEUE_SIZE: Setting<u64> = Setting {
    key: "hbase.ipc.server.max.callqueue.size",
    default: 1024 * 1024 * 1024,
    min: 1024,
    max: 1 << 40,
    unit: "bytes",
    doc: "Bytes of requests that wait for an answer, over all connections. Beyond it new calls get \
          CallQueueTooBigException and the client holds back.",
};

/// `basalt.ipc.connection.max.calls`.
pub const MAX_CALLS_PER_CONNECTION: Setting<u32> = Setting {
    key: "basalt.ipc.connection.max.calls",
    default: 1024,
    min: 1,
    max: 1 << 20,
    unit: "count",
    doc: "Calls of one connection that may wait for an answer at once. At the limit the server stops reading from that \
          connection until answers have left.",
};

/// `basalt.ipc.connection.max.unsent`.
pub const MAX_UNSENT_PER_CONNECTION: Setting<u64> = Setting {
    key: "basalt.ipc.connection.max.unsent",
    default: 16 * 1024 * 1024,
    min: 1024,
    max: 1 << 40,
    unit: "bytes",
    doc: "Reply bytes of one connection that may wait to be sent before the server stops reading from it. A single \
          reply may be larger. Bigger lets slow clients hold more of the server's memory.",
};

/// `basalt.ipc.max.connections`.
pub const MAX_CONNECTIONS: Setting<u32> = Setting {
    key: "basalt.ipc.max.connections",
    default: 0,
    min: 0,
    max: 1 << 24,
    unit: "count",
    doc: "Connections that each RPC port holds at once; one more is closed as soon as it is made, and its client tries again \
          later. 0 takes three eighths of the descriptors that the process may have open for the region server's port, and one \
          eighth for the master's, so that files can always be opened.",
};

/// `basalt.ipc.connection.handshake.timeout`.
pub const HANDSHAKE_TIMEOUT: Setting<u64> = Setting {
    key: "basalt.ipc.connection.handshake.timeout",
    default: 30_000,
    min: 10,
    max: 3_600_000,
    unit: "ms",
    doc: "Time for a new connection to send its preamble and header.",
};

/// `basalt.ipc.connection.stall.timeout`.
pub const STALL_TIMEOUT: Setting<u64> = Setting {
    key: "basalt.ipc.connection.stall.timeout",
    default: 60_000,
    min: 10,
    max: 3_600_000,
    unit: "ms",
    doc: "A connection that neither finishes the request it has begun nor takes the replies it is owed is closed after \
          this time without a byte moved.",
};

/// `basalt.ipc.connection.idle.timeout`.
pub const IDLE_TIMEOUT: Setting<u64> = Setting {
    key: "basalt.ipc.connection.idle.timeout",
    default: 3_600_000,
    min: 10,
    max: 1 << 40,
    unit: "ms",
    doc: "A connection without calls is closed after this time. Clients close theirs after two minutes.",
};

/// `basalt.ipc.cellblock.max.decompressed.size`.
pub const MAX_DECOMPRESSED_SIZE: Setting<u64> = Setting {
    key: "basalt.ipc.cellblock.max.decompressed.size",
    default: 512 * 1024 * 1024,
    min: 1024,
    max: i32::MAX as u64,
    unit: "bytes",
    doc: "Largest cell block after decompression; a larger one fails its call.",
};

/// Whether slow calls go to a table. Both the master, which makes it, and region servers, which write it, look at it.
pub const SLOW_LOG_TABLE: Setting<bool> = Setting {
    key: "hbase.regionserver.slowlog.systable.enabled",
    default: false,
    min: false,
    max: true,
    unit: "",
    doc: "Whether there is a table hbase:slowlog to which slow and large calls are written now and then, if \
          hbase.regionserver.slowlog.buffer.enabled is on, too. The server that serves the table writes its own.",
};

/// Every row of this crate.
pub const ALL: &[&dyn SettingRow] = &[
    &MAX_REQUEST_SIZE,
    &MAX_CALL_QUEUE_SIZE,
    &MAX_CALLS_PER_CONNECTION,
    &MAX_UNSENT_PER_CONNECTION,
    &MAX_CONNECTIONS,
    &HANDSHAKE_TIMEOUT,
    &STALL_TIMEOUT,
    &IDLE_TIMEOUT,
    &MAX_DECOMPRESSED_SIZE,
    &SLOW_LOG_TABLE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_legal_and_every_key_is_there_once() {
        let mut keys = std::collections::BTreeSet::new();
        for row in ALL {
            let text = row.describe();
            assert_eq!(row.check(&text.default), Ok(()), "{}", text.key);
            assert!(!text.doc.is_empty() && keys.insert(text.key), "{}", text.key);
        }
    }
}
