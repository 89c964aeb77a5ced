//! HBase's own integration tests and tools for clusters of several servers, unmodified, from HBase's jars, against clusters of ours:
//! `cargo xtask cluster integration`. They take minutes.
#![cfg(all(feature = "hdfs", feature = "zookeeper"))]
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real processes")]

mod administration;
mod hosts;
mod meta_replicas;
mod monkeys;
mod placement;
mod program;
mod recovery;
