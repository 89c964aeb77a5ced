//! HBase's REST gateway: tables over HTTP in protobuf, JSON, XML and plain bytes, for everybody who has no client but a web request.
//!
//! Always true:
//!  1. A request's head, its body and what its body inflates to are bounded before they are read; bodies and replies under way share one
//!     bound of bytes ([`settings::MAX_IN_FLIGHT_BYTES`]), beyond which requests are refused with 503.
//!  2. Bytes from outside never panic: paths, base64, JSON, XML (without document type declarations, so without entities) and protobuf are
//!     refused with 400.
//!  3. A stateless scan is sent as it is read: one batch of rows is in memory at a time, and a client that reads no more stops the scan.
//!  4. Nobody waits under a lock: a stateful scanner is taken out of its register while a request uses it.
//!
//! Must not know: how a server is made, regions, files. It stands on `client` alone, over TCP or in the server's process. Follows
//! `org.apache.hadoop.hbase.rest` of HBase 2.6: `RESTServer`, the resources, the models.

mod body;
mod budget;
mod gateway;
mod media;
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

pub use gateway::Gateway;
pub use server::Server;
