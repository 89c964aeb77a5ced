//! HBase's tools as native programs. Load generators: PerformanceEvaluation ([`pe`]), LoadTestTool ([`ltt`]), YCSB ([`ycsb`]). Over files,
//! without a server: HFiles ([`hfile_tool`]), logs ([`wal_tool`]), snapshots ([`snapshot_tool`]),
//! root directories ([`hbck`]), the disks of one ([`volumes`]). Over both: backups ([`backup`]). Over a server: jobs ([`jobs`]) and what administrators look with ([`cluster`]).
//!
//! Always true: a tool writes what HBase's tool of that name writes, byte for byte where the other one reads it, and
//! takes the same words on its command line. A tool that only looks changes nothing. Must not know: how a server is made, what a region
//! does while it is open. Tools over a server work against anything that speaks HBase's protocol.
#![allow(clippy::disallowed_methods, reason = "measures a real machine: its clocks, its disk, its processes")]

pub mod arguments;
pub mod backup;
pub mod cluster;
pub mod compression_test;
mod dictionaries;
pub mod files;
pub mod hbck;
pub mod hfile_tool;
pub mod jobs;
pub mod log;
pub mod ltt;
pub mod pe;
pub mod places;
pub mod print;
pub mod snapshot_tool;
pub mod stats;
pub mod volumes;
pub mod wal_tool;
pub mod ycsb;
