//! Tests of the ZooKeeper endpoint over sockets.

mod common;
mod endpoint;
mod golden;
mod keeping;
