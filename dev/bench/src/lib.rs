//! Micro-benchmarks with names that stay, so that two runs can be compared: `cargo xtask bench`.
//!
//! A [`Group`] shares its setting up and measures some names in a [`Session`]; [`groups::ALL`] is the list. Storage is
//! measured from inside, in this process; the server is measured from outside, as a process of its own behind its
//! socket. docs/internals/benchmarks.md says how to run it and what each name measures.
//!
//! Always true:
//!  1. Only the work is timed: what it needs is made before, what it leaves is dropped after.
//!  2. Each figure comes from several rounds and is shown as their median with least and greatest; beside it stands how
//!     much of the machine others used meanwhile.
//!  3. The work is checked: a read that finds nothing, or a write that is refused, ends the run.
//!
//! Must not know: how the server is wired. No other crate uses this one, and the default build does not compile it.
//! The names are Basalt's own; HBase's `PerformanceEvaluation` is where rows of 1000-byte values come from.
#![allow(clippy::disallowed_methods, reason = "measures a real machine: its clocks, its disk, its processes")]

pub mod data;
pub mod groups;
mod machine;
mod measure;
mod report;
pub mod scratch;
mod server;

pub use groups::Group;
pub use machine::Machine;
pub use measure::{Figures, Range, Scale, Session};
pub use report::{json, table_header, table_row};
