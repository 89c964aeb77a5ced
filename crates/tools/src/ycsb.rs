//! YCSB's core workloads, native: `basalt ycsb load|run -P workloada -p name=value`.
//!
//! Always true: keys, distributions, proportions, properties and report are YCSB's, the table is that of its hbase2
//! binding; one may load and the other run. Follows `site.ycsb` 0.18 and its `HBaseClient2`.
//!
//! Clients ("threads") are tasks of one runtime over one connection, as the threads of YCSB's client share one.

pub mod core;
pub mod generator;
pub mod measurements;
pub mod presets;
pub mod properties;

use std::process::ExitCode;

/// Runs the command with the arguments behind its name.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(_config: &base::Config, _arguments: &[String]) -> anyhow::Result<ExitCode> {
    anyhow::bail!("ycsb is not there yet")
}
