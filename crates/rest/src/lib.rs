//! HBase's REST gateway: tables over HTTP in protobuf, JSON, XML and plain bytes, for everybody who has no client but a web request.
//!
//! Always true:
//!  1. A request's head, its body and what its body inflates to are bounded before they are read; bodies, rows that are gathered and replies
//!     count on the ledger of the process until the socket has them. Beyond it requests are refused with 503, those that need much first.
//!  2. Bytes from outside never panic: paths, base64, JSON, XML (without document type declarations, so without entities) and protobuf are
//!     refused with 400.
//!  3. A stateless scan is sent as it is read: a few batches of rows are in memory at a time, counted, and a client that takes nothing for a
//!     minute is left.
//!  4. Nobody waits under a lock: a stateful scanner is taken out of its register while a request uses it.
//!
//! Must not know: how a server is made, regions, files. It stands on `client` alone, over TCP or in the server's process. Follows
//! `org.apache.hadoop.hbase.rest` of HBase 2.6: `RESTServer`, the resources, the models.

mod body;
mod csrf;
mod gateway;
mod media;
mod metrics;
mod models;
mod reply;
mod request;
mod resources;
mod route;
mod row_spec;
mod scanners;
mod server;
pub mod settings;
mod text;
mod xml;

pub use body::ReplyBody;
pub use gateway::Gateway;
pub use metrics::Metrics;
pub use server::Server;

/// What the decoders make of made-up bytes, as a path, a header, a filter and a body in each encoding: nothing but values or errors. A body
/// that is understood says the same when it is written in every encoding and read again.
pub fn decode_anything(data: &[u8]) {
    use crate::media::Media;
    use crate::models::{CellSet, NamespaceProperties, ScannerModel, TableSchema, decode, encode};
    if let Ok(text) = std::str::from_utf8(data) {
        if let Ok(Some(route::Route::Table(_, route::TableRoute::Row(spec)))) = route::Route::of(text) {
            for encoding in [None, Some("b64url"), Some("b64basic"), Some("none")] {
                let _ = row_spec::RowSpec::parse(&spec, encoding);
            }
        }
        let _ = media::choose(Some(text), &[Media::Xml, Media::Json, Media::Binary]);
        let _ = resources::filter::parse(text);
    }
    let body = bytes::Bytes::copy_from_slice(data);
    const MODELS: [Media; 3] = [Media::Xml, Media::Json, Media::Protobuf];
    for media in MODELS {
        if let Ok(cells) = decode::<CellSet>(&body, media) {
            for other in [Media::Json, Media::Protobuf] {
                // Protobuf has no way to leave a key or a column to the path: it says an empty one.
                let expected = if other == Media::Protobuf { cells.clone().with_names() } else { cells.clone() };
                assert_eq!(decode::<CellSet>(&encode(&cells, other), other), Ok(expected), "{other:?}");
            }
        }
        if let Ok(schema) = decode::<TableSchema>(&body, media) {
            let _ = (encode(&schema, media), model::TableName::parse("t").map(|name| schema.descriptor(name)));
        }
        let _ = decode::<NamespaceProperties>(&body, media).map(|properties| encode(&properties, media));
        let _ = decode::<ScannerModel>(&body, media);
    }
}
