//! Several servers in one deterministic world: region servers and masters as processes that share a model of HDFS, a model of a ZooKeeper
//! ensemble and a network in memory, and clients that remember what they were promised.
//!
//! Always true:
//!  1. One seed gives one run, call by call. Each process has a thread and a runtime of its own, but one at most runs at a time, for a slice of the
//!     world's time, in an order that the seed draws.
//!  2. The crates of the servers run unchanged, over the doors of [`gate`]: there each can die or stand still in the middle of whatever it does.
//!  3. Clocks of processes differ, by less than HBase lets them; no process sees the world's.
//!  4. Whatever happens, no acknowledged write is lost, no read shows less than what was acknowledged or seen before it was asked, a region answers
//!     on one server at most, and hbase:meta tiles each table; when faults end everything serves again.
//!
//! Not in it: Java's servers, disks of DataNodes, security, more than one root directory.

pub mod catalog;
pub mod client;
pub mod ensemble;
pub mod gate;
pub mod hdfs;
pub mod network;
pub mod process;
pub mod replicas;
pub mod run;
pub mod servers;
pub mod work;
pub mod world;
