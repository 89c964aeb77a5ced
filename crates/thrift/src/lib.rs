//! HBase's Thrift gateways: `Hbase.thrift` (Thrift 1) and `hbase.thrift` (Thrift 2) for Python and whoever else speaks no HBase RPC.
//!
//! Always true:
//!  1. A length is compared with what may come before memory is taken for it; what all connections hold of requests, scanned rows and replies
//!     is on one ledger, and what does not fit is refused with the service's own error. Rows of gets count from when they are encoded. There
//!     are no more connections than [`settings::MAX_CONNECTIONS`].
//!  2. A client that does not read its reply holds that reply and no more, and is left when it takes nothing for the socket's time.
//!  3. What a method answers and throws is what HBase 2.6's servers do; an exception that the IDL does not declare for a method travels as a
//!     `TApplicationException`.
//!
//! Must not know: how a server is made, regions, files. It stands on [`client`], over TCP or in the process.
//! Follows: `ThriftServer`, `ThriftHBaseServiceHandler`, `ThriftUtilities` of `hbase-thrift` (both versions).

mod dispatch;
mod fault;
mod http;
mod impersonation;
mod metrics;
pub mod protocol;
mod scanners;
mod server;
pub mod settings;
mod transport;
pub mod v1;
pub mod v2;
pub mod wire;

pub use metrics::Metrics;
pub use server::{Server, ServerOptions, Version};

/// What the decoders make of made-up bytes: nothing but values or errors.
pub fn decode_anything(data: &[u8]) {
    use crate::wire::Wire;
    for protocol in [protocol::Protocol::Binary, protocol::Protocol::Compact] {
        let found = protocol::Boundary::new(protocol).find(data, 1 << 20);
        // Piece by piece it is the same.
        let mut pieces = protocol::Boundary::new(protocol);
        let mut last = Ok(None);
        for end in 0..=data.len() {
            last = pieces.find(&data[..end], 1 << 20);
            if !matches!(last, Ok(None)) {
                break;
            }
        }
        assert_eq!(found.is_ok(), last.is_ok(), "in pieces it reads otherwise");
        let bytes = bytes::Bytes::copy_from_slice(data);
        let mut reader = protocol::Reader::new(protocol, &bytes);
        if reader.message().is_ok() {
            let _ = reader.skip(protocol::Kind::Struct);
        }
        let read = v2::types::TScan::read(&mut protocol::Reader::new(protocol, &bytes));
        if let Ok(scan) = read {
            let mut writer = protocol::Writer::new(protocol);
            scan.write(&mut writer);
            let again = bytes::Bytes::from(writer.finish());
            assert_eq!(v2::types::TScan::read(&mut protocol::Reader::new(protocol, &again)), Ok(scan));
        }
        let _ = v1::types::BatchMutation::read(&mut protocol::Reader::new(protocol, &bytes));
        let _ = v2::types::TRowMutations::read(&mut protocol::Reader::new(protocol, &bytes));
    }
}
