//! What a load generator measures: latencies, throughput over time, stalls, and what a server used meanwhile.
//!
//! Always true:
//!  1. Latencies keep three significant digits up to the slowest operation, so p99.99 is a measured value.
//!  2. At a fixed rate an operation's latency counts from when it should have begun: a stalled server cannot hide by
//!     making its clients wait ("coordinated omission").
//!  3. What a server used is read from the kernel: its own CPU time, memory and bytes, whatever it says of itself.
//!
//! Must not know: clients, tables, workloads.

mod date;
mod latency;
mod meter;
mod process;
mod summary;
mod timer;

pub use date::civil_date;
pub use latency::{Latencies, LatencySummary};
pub use meter::{Meter, Progress};
pub use process::{Machine, Usage, busy_ns, own_cpu_ns};
pub use summary::Spread;
pub use timer::PreciseTimer;
