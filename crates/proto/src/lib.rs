//! The protobuf messages of HBase 2.6 as Rust types.
//!
//! The `.proto` files in `proto/` are written here; the code in `src/gen/` is made from them by `cargo xtask proto` and
//! checked in, so no compiler of protobuf is needed to build. Byte fields are [`bytes::Bytes`]: decoding from a `Bytes`
//! takes slices and copies nothing. A `required` field that is missing decodes to its default, as prost does: whoever
//! needs it there must look.
//!
//! [`pb`] holds everything but the bodies of the REST gateway, which are in [`rest`]. [`net`], [`disk`] and [`znode`] name what travels, what lies in files and what lies in
//! coordination nodes. [`grouped`], [`histogram`], [`top_rows`] and [`volumes`] are services of Basalt's own. [`methods`] lists every method of every service, so that an unknown method can be told from one
//! that is merely not served. [`magic`] handles the four bytes `PBUF` before messages at rest.
//!
//! This crate does not know how the messages are used.
//! Follows the modules hbase-protocol-shaded and hbase-protocol.

mod any;
pub mod grouped;
pub mod histogram;
pub mod magic;
pub mod methods;

pub use any::Any;
pub use prost::{DecodeError, Message};

/// Every message and enum, under HBase's names; nested ones are in a module named after their parent.
#[allow(missing_docs, clippy::all, clippy::pedantic, rustdoc::all)]
pub mod pb {
    include!("gen/hbase.pb.rs");
}

/// Messages of the REST gateway.
#[allow(missing_docs, clippy::all, clippy::pedantic, rustdoc::all)]
pub mod rest {
    include!("gen/hbase.rest.rs");
}

pub mod disk;
pub mod net;
pub mod top_rows;
pub mod volumes;
pub mod znode;
