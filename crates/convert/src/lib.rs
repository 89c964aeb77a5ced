//! The one place between protobuf messages and the values of `model`, `filter` and `cell`: requests, descriptors, names, regions,
//! results, whether they come over the wire, from a file, from a row of hbase:meta or from a znode.
//!
//! Always true:
//!  1. What [`from_proto`] yields is legal by HBase's rules, or it is a [`ConvertError`] that says what is wrong and in which field.
//!  2. [`to_proto`] cannot fail, and what it writes [`from_proto`] reads back as the same value.
//!
//! Must not know: the network, files, exceptions. Callers turn a [`ConvertError`] into what they speak: `rpc` and `master` into
//! HBase's exceptions, readers of files into an error with the path. Follows `ProtobufUtil`, `RequestConverter`,
//! `ResponseConverter`.

mod error;
pub mod from_proto;
pub mod to_proto;

pub use error::{ConvertError, ConvertErrorKind};
