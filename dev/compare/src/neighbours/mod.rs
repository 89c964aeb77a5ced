//! Noisy neighbours: what one polite client waits for beside others that ask for as much as they can get: `cargo xtask neighbours`.
//!
//! Always true:
//!  1. Each neighbour meets a fresh server with the same tables, and the polite client does the same operations at the same pace.
//!  2. A wait counts from when its operation was due.
//!  3. A target that is missed is shown as missed.
//!
//! Must not know: how a server is made, but for what [`crate::server`] knows of starting one.

mod noise;
mod polite;
mod sql;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use self::noise::{Neighbour, Target};
use self::polite::Waits;
use crate::jars;
use crate::server::{self, Contender, Origin, Site};
use tools::stats::{Latencies, Usage};

/// Measure what one polite client waits for beside noisy neighbours
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Seconds beside each neighbour
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Ten minutes beside each
    #[arg(long)]
    long: bool,
    /// Only these neighbours; --list names them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Memory of each server in MiB: Basalt's budget, HBase's heap
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory: u64,
    /// Measure Apache HBase 2.6.4, too (brought from Maven on first use)
    #[arg(long)]
    with_hbase: bool,
    /// Directory with HBase's jars, instead of those from Maven
    #[arg(long, value_name = "DIR")]
    hbase_jars: Option<PathBuf>,
    /// Basalt's program [default: BASALT_BINARY, or that beside this program]
    #[arg(long, value_name = "FILE")]
    basalt: Option<PathBuf>,
    /// End with an error when Basalt misses a target by more than this factor
    #[arg(long, value_name = "FACTOR")]
    check: Option<f64>,
    /// Where servers keep their data meanwhile
    #[arg(long, value_name = "DIR", default_value = "basalt-neighbours")]
    out: PathBuf,
    /// List the neighbours
    #[arg(long)]
    list: bool,
}

/// What a get may take: 99 of 100 of them, and the longest.
const GET_P99: Duration = Duration::from_millis(10);
const GET_LONGEST: Duration = Duration::from_millis(100);
/// A synced put may take as long as a get, or so many times a bare sync beside it.
const PUT_PER_PROBE: u64 = 3;
/// What administration and a status page may take.
const ADMINISTRATION: Duration = Duration::from_secs(1);
/// What the process may take to end.
const STOP: Duration = Duration::from_secs(10);
/// What the process may have of memory beyond its budget and a quarter of that.
const BASE_BYTES: u64 = 64 << 20;

/// One phase with one server.
struct Measured {
    server: String,
    neighbour: Neighbour,
    waits: Waits,
    peak_bytes: u64,
    stop: Duration,
}

/// Measures.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        Neighbour::ALL.iter().for_each(|neighbour| println!("{:<14} {}", neighbour.name(), neighbour.about()));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = arguments.only.iter().find(|name| Neighbour::ALL.iter().all(|n| n.name() != name.as_str())) {
        bail!("no neighbour is called {unknown}; --list names them");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut missed = Vec::new();
    println!("{}", heading());
    for contender in contenders(arguments)? {
        for neighbour in Neighbour::ALL {
            let is_named = arguments.only.iter().any(|name| name == neighbour.name());
            if !is_named && (!arguments.only.is_empty() || !neighbour.is_possible()) {
                continue;
            }
            let measured = runtime.block_on(measure(arguments, &contender, neighbour))?;
            println!("{}", line(&measured));
            if measured.waits.failures.0 > 0 {
                println!(
                    "    {} operations failed; the first: {}",
                    measured.waits.failures.0, measured.waits.failures.1
                );
            }
            if matches!(contender.origin, Origin::Basalt { .. }) {
                missed.extend(misses(&measured, contender.memory_bytes, arguments.check.unwrap_or(1.0)));
            }
        }
    }
    missed.iter().for_each(|missed| println!("missed: {missed}"));
    Ok(if missed.is_empty() || arguments.check.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn contenders(arguments: &Arguments) -> anyhow::Result<Vec<Contender>> {
    let settings = || -> anyhow::Result<BTreeMap<String, String>> {
        // The page that is asked for each second.
        let [port] = testkit::free_ports()?;
        Ok(BTreeMap::from([(INFO_PORT.to_owned(), port.to_string())]))
    };
    let memory_bytes = arguments.memory << 20;
    let binary = match &arguments.basalt {
        Some(file) => file.canonicalize().with_context(|| format!("no program {}", file.display()))?,
        None => server::default_binary()?,
    };
    let mut contenders = vec![Contender {
        name: "basalt".to_owned(),
        origin: Origin::Basalt { binary },
        settings: settings()?,
        memory_bytes,
        only_writes: false,
    }];
    if arguments.with_hbase || arguments.hbase_jars.is_some() {
        let jars = jars::hbase(arguments.hbase_jars.as_deref(), &|what| eprintln!("{what}"))?;
        contenders.push(Contender {
            name: "hbase".to_owned(),
            origin: Origin::HBase { jars, options: Vec::new() },
            settings: settings()?,
            memory_bytes,
            only_writes: false,
        });
    }
    Ok(contenders)
}

const INFO_PORT: &str = "hbase.master.info.port";

async fn measure(arguments: &Arguments, contender: &Contender, neighbour: Neighbour) -> anyhow::Result<Measured> {
    let dir = arguments.out.join(&contender.name);
    let mut site = Site::new(contender.clone(), dir.clone(), 2)?;
    site.spawn()?;
    site.ready().await?;
    let page_port = contender.settings.get(INFO_PORT).and_then(|port| port.parse().ok()).context("a port")?;
    let target = Target {
        connection: Arc::new(site.connect()),
        zookeeper: site.zookeeper(),
        memory_bytes: contender.memory_bytes,
    };
    polite::prepare(&target.connection).await?;
    target.prepare().await?;
    Usage::forget_peak(site.pid());
    let mut noise = target.start(neighbour).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let polite = site.connector();
    let (stop_polite, dir) = (stop.clone(), dir.canonicalize()?);
    let waits = std::thread::spawn(move || polite::run(polite, page_port, &dir, stop_polite));
    let seconds = if arguments.long { 600 } else { arguments.seconds };
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let waits = tokio::task::spawn_blocking(move || waits.join()).await?;
    let waits = waits.map_err(|_| anyhow::anyhow!("the polite client panicked"))??;
    let peak_bytes = Usage::of(site.pid())?.peak_bytes;
    let begun = Instant::now();
    site.terminate()?;
    let stop = begun.elapsed();
    noise.abort_all();
    site.clear();
    Ok(Measured { server: contender.name.clone(), neighbour, waits, peak_bytes, stop })
}

fn ms(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

fn heading() -> String {
    format!(
        "{:<8}{:<15}{:>30}{:>30}{:>16}{:>16}{:>8}{:>8}{:>9}{:>7}\n{:<23}{}",
        "server",
        "beside",
        "gets: p50 p99 p99.9 longest",
        "puts: p50 p99 p99.9 longest",
        "scans: p99 max",
        "sync: p99 max",
        "table",
        "page",
        "peak",
        "stop",
        "",
        "(ms; peak of resident memory in MiB; stop in s)"
    )
}

fn line(measured: &Measured) -> String {
    let four = |l: &Latencies| [50.0, 99.0, 99.9].map(|p| ms(l.percentile(p))).join(" ") + " " + &ms(l.greatest());
    let two = |l: &Latencies| format!("{} {}", ms(l.percentile(99.0)), ms(l.greatest()));
    let waits = &measured.waits;
    format!(
        "{:<8}{:<15}{:>30}{:>30}{:>16}{:>16}{:>8}{:>8}{:>9}{:>7.1}",
        measured.server,
        measured.neighbour.name(),
        four(&waits.gets),
        four(&waits.puts),
        two(&waits.scans),
        two(&waits.probe),
        ms(waits.tables.greatest()),
        ms(waits.pages.greatest()),
        measured.peak_bytes >> 20,
        measured.stop.as_secs_f64()
    )
}

/// The targets that a phase missed, each multiplied by `factor` but for that of memory.
fn misses(measured: &Measured, memory_bytes: u64, factor: f64) -> Vec<String> {
    let waits = &measured.waits;
    let ns = |target: Duration| target.as_nanos() as u64;
    let put = |target: Duration, probe: u64| ns(target).max(probe * PUT_PER_PROBE);
    let mut missed = Vec::new();
    let mut hold = |what: &str, seen: u64, target: u64| {
        if seen as f64 > target as f64 * factor {
            missed.push(format!("beside {}: {what} {} ms, not {} ms", measured.neighbour.name(), ms(seen), ms(target)));
        }
    };
    hold("99 % of gets", waits.gets.percentile(99.0), ns(GET_P99));
    hold("the longest get", waits.gets.greatest(), ns(GET_LONGEST));
    hold("99 % of puts", waits.puts.percentile(99.0), put(GET_P99, waits.probe.percentile(99.0)));
    hold("the longest put", waits.puts.greatest(), put(GET_LONGEST, waits.probe.greatest()));
    hold("creating a table", waits.tables.greatest(), ns(ADMINISTRATION));
    hold("a status page", waits.pages.greatest(), ns(ADMINISTRATION));
    hold("the stop", ns(measured.stop), ns(STOP));
    let most_bytes = memory_bytes + memory_bytes / 4 + BASE_BYTES;
    if measured.peak_bytes > most_bytes {
        let (seen, most) = (measured.peak_bytes >> 20, most_bytes >> 20);
        missed.push(format!("beside {}: {seen} MiB resident, not {most} MiB", measured.neighbour.name()));
    }
    if waits.failures.0 > 0 {
        missed.push(format!("beside {}: {} operations failed", measured.neighbour.name(), waits.failures.0));
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_target_is_said_and_a_met_one_is_not() {
        let mut waits = Waits::default();
        waits.gets.record(Duration::from_millis(9));
        waits.puts.record(Duration::from_millis(50));
        waits.probe.record(Duration::from_millis(20));
        let (neighbour, stop) = (Neighbour::Scans, Duration::from_secs(1));
        let mut measured = Measured { server: "basalt".to_owned(), neighbour, waits, peak_bytes: 300 << 20, stop };
        assert_eq!(misses(&measured, 256 << 20, 1.0), Vec::<String>::new(), "a put may take three bare syncs");
        measured.peak_bytes = 400 << 20;
        measured.stop = Duration::from_secs(11);
        measured.waits.gets.record(Duration::from_millis(150));
        assert_eq!(misses(&measured, 256 << 20, 1.0).len(), 4);
        assert_eq!(misses(&measured, 256 << 20, 20.0), ["beside scans: 400 MiB resident, not 384 MiB"]);
    }
}
