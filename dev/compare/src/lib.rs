//! Comparisons of servers under the same load, and one server under strain: `cargo xtask compare, gateways, neighbours, overload, scale,
//! slow-volume, stall, tiers, warm-cache`.
//!
//! Always true:
//!  1. It starts programs (Basalt's binary, Apache HBase from its jars) and speaks HBase's protocol to them.
//!  2. Whether Basalt serves is read from the file that it writes for that, never from its log.
//!
//! Must not know: how a server is made. Never shipped.
#![allow(clippy::disallowed_methods, reason = "measures a real machine: its clocks, its disk, its processes")]

pub mod compare;
pub mod gateways;
mod jars;
pub mod neighbours;
pub mod scale;
pub mod server;
pub mod strain;
pub mod tiers;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser, Debug)]
#[command(name = "compare", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Play the same load against several servers in turn and report throughput, latency and what the servers used
    #[command(after_help = "\
Examples:
  cargo xtask compare --with-hbase --quick          Apache HBase 2.6.4 from Maven beside this build
  cargo xtask compare --basalt old=FILE --basalt new=FILE --no-safe --only put,batch-put --quick
  cargo xtask compare --server a=host:2181,pid=4711 --no-basalt")]
    Compare(Box<compare::Arguments>),
    /// Measure what one polite client waits for beside noisy neighbours
    #[command(after_help = "Example: cargo xtask neighbours --seconds 10 --only scans,unread,counters")]
    Neighbours(neighbours::Arguments),
    /// Measure what a get costs through each gateway: Thrift 1, Thrift 2 and REST beside the native protocol
    #[command(after_help = "Example: cargo xtask gateways --with-hbase")]
    Gateways(gateways::Arguments),
    /// Measure how soon a server answers as before when an overload is over
    Overload(strain::OverloadArguments),
    /// Measure what administration of a table of a thousand regions takes, and the state of a cluster of ten thousand
    #[command(after_help = "Example: cargo xtask scale --with-hbase --cluster 0")]
    Scale(scale::Arguments),
    /// Measure what is left of writes while one of three volumes takes longer for each call
    SlowVolume(strain::SlowVolumeArguments),
    /// Measure the longest wait of a mixed load beside that of a probe which sleeps and syncs
    Stall(strain::StallArguments),
    /// Measure what it buys to have logs, flushed and compacted files on memory, flash or a slow disk
    #[command(after_help = "Example: cargo xtask tiers --quick")]
    Tiers(tiers::Arguments),
    /// Measure how soon a second level of the block cache is as good as before after a restart
    WarmCache(strain::WarmCacheArguments),
}

/// Runs the command of these words, the first of which is the program's name.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(words: impl IntoIterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            error.print()?;
            return Ok(if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    };
    match &cli.command {
        Command::Compare(arguments) => compare::run(arguments),
        Command::Neighbours(arguments) => neighbours::run(arguments),
        Command::Gateways(arguments) => gateways::run(arguments),
        Command::Overload(arguments) => strain::overload(arguments),
        Command::Scale(arguments) => scale::run(arguments),
        Command::SlowVolume(arguments) => strain::slow_volume(arguments),
        Command::WarmCache(arguments) => strain::warm_cache(arguments),
        Command::Stall(arguments) => strain::stall(arguments),
        Command::Tiers(arguments) => tiers::run(arguments),
    }
}
