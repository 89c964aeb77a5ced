//! A master and a region server in one process: how the one calls the other, and how logs are recovered before both start. The
//! binary and the model world share it, so that what is tested is what runs.
//!
//! Must not know: threads, runtimes, sockets. Who runs the region server's work is handed in ([`Runner`]).

mod host;
mod recovery;

pub use host::{LocalHost, Runner};
pub use recovery::{ForEach, Recovered, Recovery, recover_logs};
