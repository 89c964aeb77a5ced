//! YCSB's core workloads.

use std::process::ExitCode;

/// Runs the command with the arguments behind its name.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(_config: &base::Config, _arguments: &[String]) -> anyhow::Result<ExitCode> {
    anyhow::bail!("ycsb is not there yet")
}
