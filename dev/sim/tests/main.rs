//! Tests of the simulator, and with it of the server. `huge_rows` is a binary of its own: it has an allocator that counts.

mod cluster;
mod enumeration;
mod scenarios;
mod seeds;
