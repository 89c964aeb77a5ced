//! Tests of the server's end of a connection.

mod common;
mod hostile;
mod server;
mod sessions;
mod tracing;
