//! Scenarios of a cluster in one deterministic world.

mod seeds;
mod slice;
