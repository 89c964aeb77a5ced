//! HBase's load generators as native programs: PerformanceEvaluation ([`pe`]), LoadTestTool ([`ltt`]), YCSB ([`ycsb`]).
//!
//! Always true: a tool writes what HBase's tool of that name writes, byte for byte where the other one reads it, and
//! takes the same words on its command line. Must not know: how a server is made. Each works against anything that
//! speaks HBase's protocol.
#![allow(clippy::disallowed_methods, reason = "measures a real machine: its clocks, its disk, its processes")]

pub mod log;
pub mod ltt;
pub mod pe;
pub mod stats;
pub mod ycsb;
