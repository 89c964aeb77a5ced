//! Scenarios of a cluster in one deterministic world.

mod slice;
