//! The gateways over real sockets, before a node in this process.

// The name under which the crate's own tests know it: they start a node in the one way that there is.
extern crate assembly as basalt_assembly;

mod bad_input;
mod coalescing;
#[path = "../../assembly/tests/common/mod.rs"]
#[allow(dead_code, reason = "not every test uses every helper")]
mod common;
mod golden;
mod http;
mod protocols;
mod socket;
mod thrift1;
mod thrift2;
