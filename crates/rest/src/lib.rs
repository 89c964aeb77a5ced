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
