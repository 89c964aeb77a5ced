//! A server under strain: `cargo xtask overload`, twice what it can do and then nothing; `cargo xtask stall`, the longest wait of a
//! mixed load while it flushes and compacts, beside that of a bare probe; `cargo xtask slow-volume`, writes while one of three volumes is slow; `cargo xtask
//! warm-cache`, a restart with a full second level of the block cache.
//!
//! Always true:
//!  1. Each run meets a fresh server.
//!  2. A wait counts from when its operation was due.
//!  3. A target that is missed is shown as missed.
//!
//! Must not know: how a server is made, but for what [`crate::server`] knows of starting one.

mod overload;
mod slow_volume;
mod stall;
mod warm_cache;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use client::{Connection, Put};
use model::{FamilyDescriptor, TableDescriptor, TableName};

use crate::server::{self, Contender, Origin, Site};

/// What all of them are told.
#[derive(clap::Args, Debug)]
struct Common {
    /// Memory budget of the server in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory: u64,
    /// Basalt's program [default: BASALT_BINARY, or that beside this program]
    #[arg(long, value_name = "FILE")]
    basalt: Option<PathBuf>,
    /// Where the server keeps its data meanwhile
    #[arg(long, value_name = "DIR", default_value = "basalt-strain")]
    out: PathBuf,
    /// End with an error when the target is missed
    #[arg(long)]
    check: bool,
}

/// Measure how soon a server answers as before when an overload is over
#[derive(clap::Args, Debug)]
pub struct OverloadArguments {
    #[command(flatten)]
    common: Common,
    /// Minutes at twice the capacity
    #[arg(long, value_name = "MINUTES", default_value_t = 5.0)]
    minutes: f64,
}

/// Measure the longest wait of a mixed load beside that of a probe which sleeps and syncs
#[derive(clap::Args, Debug)]
pub struct StallArguments {
    #[command(flatten)]
    common: Common,
    /// Seconds of a run
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    seconds: u64,
    /// Runs, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
}

/// Measure what is left of writes while one of three volumes takes longer for each call
#[derive(clap::Args, Debug)]
pub struct SlowVolumeArguments {
    #[command(flatten)]
    common: Common,
    /// Milliseconds that each call to one of the volumes takes longer
    #[arg(long, value_name = "MS", default_value_t = 50)]
    delay: u64,
    /// Seconds before it is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    settle: u64,
    /// Measured seconds of a run
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    seconds: u64,
    /// Runs with and without a slow volume, in turns
    #[arg(long, value_name = "N", default_value_t = 2)]
    runs: usize,
}

/// Measure how soon a second level of the block cache is as good as before after a restart
#[derive(clap::Args, Debug)]
pub struct WarmCacheArguments {
    #[command(flatten)]
    common: Common,
    /// Size of the second level in MiB; the table has as many bytes
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    size: u64,
}

/// Measures writes beside a slow volume.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn slow_volume(arguments: &SlowVolumeArguments) -> anyhow::Result<ExitCode> {
    Ok(exit(slow_volume::run(arguments)?, arguments.common.check))
}

/// Measures a restart with a full second level.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn warm_cache(arguments: &WarmCacheArguments) -> anyhow::Result<ExitCode> {
    Ok(exit(warm_cache::run(arguments)?, arguments.common.check))
}

/// Measures an overload and what follows.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn overload(arguments: &OverloadArguments) -> anyhow::Result<ExitCode> {
    Ok(exit(overload::run(arguments)?, arguments.common.check))
}

/// Measures the longest stall.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn stall(arguments: &StallArguments) -> anyhow::Result<ExitCode> {
    Ok(exit(stall::run(arguments)?, arguments.common.check))
}

fn exit(is_met: bool, check: bool) -> ExitCode {
    if is_met || !check { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A fresh server that serves.
async fn start(common: &Common, more: &[(&str, String)]) -> anyhow::Result<Site> {
    let binary = match &common.basalt {
        Some(file) => file.canonicalize().with_context(|| format!("no program {}", file.display()))?,
        None => server::default_binary()?,
    };
    let contender = Contender {
        name: "basalt".to_owned(),
        origin: Origin::Basalt { binary },
        settings: more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<BTreeMap<_, _>>(),
        memory_bytes: common.memory << 20,
        only_writes: false,
    };
    let mut site = Site::new(contender, common.out.clone(), 2)?;
    site.spawn()?;
    site.ready().await?;
    Ok(site)
}

const FAMILY: &str = "f";

fn key(number: u64) -> String {
    format!("{number:012}")
}

/// Makes a table of one region with so many rows of `value_bytes` each.
async fn fill(connection: &Connection, table: &str, rows: u64, value_bytes: usize) -> anyhow::Result<()> {
    let name = TableName::parse(table)?;
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new(FAMILY)]);
    connection.admin().create_table(&descriptor, &[]).await?;
    let table = connection.table(&name);
    for first in (0..rows).step_by(500) {
        let put = |n| Put::new(key(n)).add(FAMILY, "q", vec![b'a'; value_bytes]).build();
        table.mutate_all(&(first..(first + 500).min(rows)).map(put).collect::<Vec<_>>()).await?;
    }
    Ok(())
}

fn ms(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1000.0)
}
