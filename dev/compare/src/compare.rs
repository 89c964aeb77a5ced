//! Workloads played against several servers in turn, and a report of it: `cargo xtask compare`.
//!
//! Always true:
//!  1. One client program, one schema, one memory budget, one durability for all that are compared; where Basalt's
//!     defaults differ, it takes part with them as a server of its own.
//!  2. Servers take turns (A B A B), each from an empty directory; best and worst run are dropped from four runs on.
//!  3. What a server costs is read from the kernel; the report says how busy others kept the machine.
//!  4. A target that is missed is shown as missed.
//!
//! Must not know: how a server is made. It starts programs and speaks HBase's protocol to them.

pub(crate) mod chart;
mod disk;
pub mod drive;
pub mod figures;
mod html;
mod limits;
pub(crate) mod pass;
mod published;
pub(crate) mod table;
pub mod targets;
pub mod workers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use base::Rng;

use self::figures::{Comparison, ServerInfo};
use self::pass::{Pass, Scale, WORKLOADS};
use crate::jars;
use crate::server::{self, Contender, Origin, Site};
use tools::stats::{Machine, civil_date};

/// Play the same load against several servers in turn and report throughput, latency and what the servers used
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Start Apache HBase 2.6.4 (brought from Maven on first use) and compare with it
    #[arg(long)]
    with_hbase: bool,
    /// Directory with HBase's jars, instead of those from Maven
    #[arg(long, value_name = "DIR")]
    hbase_jars: Option<PathBuf>,
    /// Options of HBase's JVM, separated by white space
    #[arg(long, value_name = "OPTIONS", default_value = "", allow_hyphen_values = true)]
    hbase_options: String,
    /// A setting of HBase's hbase-site.xml
    #[arg(long, value_name = "KEY=VALUE")]
    hbase_define: Vec<String>,
    /// Basalt's program; may be said more than once, as NAME=FILE [default: BASALT_BINARY, or that beside this program]
    #[arg(long, value_name = "[NAME=]FILE")]
    basalt: Vec<String>,
    /// A setting of Basalt
    #[arg(long, value_name = "KEY=VALUE")]
    basalt_define: Vec<String>,
    /// Leave out Basalt with its own defaults (every write synced, files compressed)
    #[arg(long)]
    no_safe: bool,
    /// Leave out Basalt altogether
    #[arg(long)]
    no_basalt: bool,
    /// A server that runs already on this machine; its tables rows, usertable, warm and first are replaced
    #[arg(long, value_name = "NAME=ZKHOST:PORT,pid=N")]
    server: Vec<String>,
    /// Only workloads whose names begin so; may be said more than once
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',')]
    only: Vec<String>,
    /// A short look: small tables, one run
    #[arg(long)]
    quick: bool,
    /// Runs [default: 2; quick: 1]
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// Measured seconds of a workload [default: 10; quick: 2]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Seconds before each workload that are not measured [default: 3; quick: 1]
    #[arg(long, value_name = "SECONDS")]
    warm_up: Option<f64>,
    /// CPU seconds that a new JVM may use before anything is measured; a native server less [default: 45; quick: 15]
    #[arg(long, value_name = "SECONDS")]
    first_warm_up: Option<f64>,
    /// Measured seconds of the mixed workload, for its longest stall [default: 60; quick: 5]
    #[arg(long, value_name = "SECONDS")]
    mixed_seconds: Option<f64>,
    /// Rows of 1000 bytes in the table [default: 500000; quick: 60000]
    #[arg(long, value_name = "N")]
    rows: Option<u64>,
    /// Records of YCSB's table [default: 200000; quick: 20000]
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// MiB that are not flushed when a server is killed [default: 1024; quick: 128]
    #[arg(long, value_name = "MIB")]
    unflushed: Option<u64>,
    /// Memory of each server in MiB: HBase's heap, Basalt's budget [default: 4096; quick: 2048]
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// Regions of each table
    #[arg(long, value_name = "N", default_value_t = 4)]
    regions: u64,
    /// Clients at the same time, where the workload does not say
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: u64,
    /// Connections of the load generator to a server, over which the clients' calls take turns (hbase.client.ipc.pool.size)
    #[arg(long, value_name = "N", default_value_t = 2)]
    connections: usize,
    /// Where servers keep their data meanwhile; and where the report goes
    #[arg(long, value_name = "DIR", default_value = "basalt-compare")]
    out: PathBuf,
    /// Draw the report of an earlier comparison anew; said more than once, of all of them together
    #[arg(long, value_name = "FILE")]
    from_json: Vec<PathBuf>,
    /// Record each workload's server with perf into this directory
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,
    /// List the workloads
    #[arg(long)]
    list: bool,
}

/// Runs the comparison.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        for (name, about) in WORKLOADS {
            println!("{name:<14} {about}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some((first, others)) = arguments.from_json.split_first() {
        let mut comparison = read(first)?;
        for other in others {
            comparison.join(read(other)?);
        }
        return report(&comparison, &arguments.out);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let comparison = runtime.block_on(compare(arguments))?;
    report(&comparison, &arguments.out)
}

fn read(path: &std::path::Path) -> anyhow::Result<Comparison> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no comparison", path.display()))
}

fn report(comparison: &Comparison, out: &std::path::Path) -> anyhow::Result<ExitCode> {
    print!("{}", table::text(comparison));
    save(comparison, out)?;
    println!("\n{}\n{}", out.join("report.html").display(), out.join("report.json").display());
    Ok(if comparison.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn save(comparison: &Comparison, out: &std::path::Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for (name, text) in [
        ("report.json", serde_json::to_string_pretty(comparison)?),
        ("report.html", html::page(comparison)),
        ("report.md", table::markdown(comparison)),
    ] {
        std::fs::write(out.join(name), text).with_context(|| format!("cannot write {name} in {}", out.display()))?;
    }
    Ok(())
}

impl Arguments {
    fn scale(&self) -> Scale {
        let seconds = |said: Option<f64>, default: f64, quick: f64| {
            Duration::from_secs_f64(said.unwrap_or(if self.quick { quick } else { default }).max(0.0))
        };
        let pick =
            |said: Option<u64>, default: u64, quick: u64| said.unwrap_or(if self.quick { quick } else { default });
        let measure = seconds(self.seconds, 10.0, 2.0);
        let mixed = seconds(self.mixed_seconds, 60.0, 5.0);
        Scale {
            rows: pick(self.rows, 500_000, 60_000).max(1_000),
            records: pick(self.records, 200_000, 20_000).max(1_000),
            measure,
            warm_up: seconds(self.warm_up, 3.0, 1.0),
            first_warm_up: seconds(self.first_warm_up, 45.0, 15.0),
            mixed,
            fixed_rate: mixed.min(measure * 3),
            unflushed_bytes: pick(self.unflushed, 1024, 128) << 20,
            regions: self.regions.max(1),
            clients: self.clients.max(1),
        }
    }

    fn contenders(&self) -> anyhow::Result<Vec<Contender>> {
        let memory_bytes = self.memory.unwrap_or(if self.quick { 2048 } else { 4096 }) << 20;
        let pairs = |said: &[String]| -> anyhow::Result<BTreeMap<String, String>> {
            let pair = |text: &String| {
                let (key, value) = text.split_once('=').with_context(|| format!("{text} is not KEY=VALUE"))?;
                Ok((key.to_owned(), value.to_owned()))
            };
            said.iter().map(pair).collect()
        };
        let mut contenders = Vec::new();
        if self.with_hbase || self.hbase_jars.is_some() {
            let jars = jars::hbase(self.hbase_jars.as_deref(), &|what| eprintln!("{what}"))?;
            let options = self.hbase_options.split_whitespace().map(str::to_owned).collect();
            contenders.push(Contender {
                name: "hbase".to_owned(),
                origin: Origin::HBase { jars, options },
                settings: pairs(&self.hbase_define)?,
                memory_bytes,
                only_writes: false,
            });
        }
        for said in &self.server {
            let wrong = || format!("--server {said} is not NAME=ZKHOST:PORT,pid=N");
            let (name, rest) = said.split_once('=').with_context(wrong)?;
            let (zookeeper, pid) = rest.split_once(",pid=").with_context(wrong)?;
            contenders.push(Contender {
                name: name.to_owned(),
                origin: Origin::Running { zookeeper: zookeeper.to_owned(), pid: pid.parse().with_context(wrong)? },
                settings: BTreeMap::new(),
                memory_bytes,
                only_writes: false,
            });
        }
        let mut binaries = self.basalt.clone();
        if binaries.is_empty() && !self.no_basalt {
            binaries.push(server::default_binary()?.display().to_string());
        }
        for (n, said) in binaries.iter().enumerate() {
            let (name, binary) = match said.split_once('=') {
                Some((name, binary)) => (name.to_owned(), binary),
                None if n == 0 => ("basalt".to_owned(), said.as_str()),
                None => (format!("basalt-{}", n + 1), said.as_str()),
            };
            let binary = PathBuf::from(binary).canonicalize().with_context(|| format!("no program {binary}"))?;
            let origin = Origin::Basalt { binary };
            let defined = pairs(&self.basalt_define)?;
            let mut settings = as_hbase_does();
            settings.extend(defined.clone());
            contenders.push(Contender {
                name: name.clone(),
                origin: origin.clone(),
                settings,
                memory_bytes,
                only_writes: false,
            });
            if !self.no_safe && n == 0 {
                let name = format!("{name}{}", targets::OWN_DEFAULTS);
                contenders.push(Contender { name, origin, settings: defined, memory_bytes, only_writes: true });
            }
        }
        if self.scale().mixed > LONG_MIXED {
            for contender in contenders.iter_mut().filter(|c| !matches!(c.origin, Origin::Running { .. })) {
                for (key, value) in TIDY {
                    contender.settings.entry(key.to_owned()).or_insert_with(|| value.to_owned());
                }
            }
        }
        if contenders.is_empty() {
            bail!("no server to compare: say --with-hbase, --server or --basalt");
        }
        Ok(contenders)
    }
}

/// A mixed workload of more than this leaves more old logs and compacted files than a disk can be asked to hold: 46 GB in six minutes, seen.
const LONG_MIXED: Duration = Duration::from_secs(60);
/// So then every server that is started here removes them at once rather than after five or ten minutes.
const TIDY: [(&str, &str); 3] = [
    ("hbase.master.cleaner.interval", "10000"),
    ("hbase.master.hfilecleaner.ttl", "5000"),
    ("hbase.master.logcleaner.ttl", "5000"),
];

/// Settings under which Basalt does what HBase does with its defaults.
fn as_hbase_does() -> BTreeMap<String, String> {
    let settings = [
        // on a local disk: handed to the operating system, synced only when a write says so
        ("hbase.wal.hsync", "false"),
        // as the family says that the tool's client sends
        ("basalt.hfile.compression.default", "NONE"),
    ];
    settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

async fn compare(arguments: &Arguments) -> anyhow::Result<Comparison> {
    for name in &arguments.only {
        if !WORKLOADS.iter().any(|(workload, _)| workload.starts_with(name.as_str())) {
            bail!("no workload begins with {name}; --list names them");
        }
    }
    let contenders = arguments.contenders()?;
    let scale = arguments.scale();
    let runs = arguments.runs.unwrap_or(if arguments.quick { 1 } else { 2 }).max(1);
    let mut comparison = Comparison {
        begun: now(),
        machine: Machine::this(),
        servers: contenders.iter().map(|c| ServerInfo { name: c.name.clone(), about: c.about() }).collect(),
        settings: BTreeMap::from([("runs".to_owned(), runs.to_string()), ("scale".to_owned(), format!("{scale:?}"))]),
        ..Comparison::default()
    };
    let rng = Rng::from_system();
    let mut fixed_rate = None;
    for run in 1..=runs {
        for contender in &contenders {
            eprintln!("run {run} of {runs}: {}", contender.name);
            let dir = arguments.out.join("data").join(format!("{}-{run}", contender.name));
            let mut site = Site::new(contender.clone(), dir, arguments.connections)?;
            let mut pass = Pass {
                site: &mut site,
                scale: &scale,
                run,
                only: &arguments.only,
                fixed_rate: &mut fixed_rate,
                profile: arguments.profile.as_deref(),
                say: &|measured| eprintln!("  {}", table::line(measured)),
                measured: Vec::new(),
                failures: Vec::new(),
                rng: Rng::seeded(rng.next_u64()),
            };
            let result = pass.play().await;
            let (measured, failures) = (std::mem::take(&mut pass.measured), std::mem::take(&mut pass.failures));
            comparison.measured.extend(measured);
            comparison.failures.extend(failures);
            if let Err(error) = result {
                let failure = format!("{}, run {run}: {error:#}", contender.name);
                eprintln!("  {failure}");
                comparison.failures.push(failure);
                site.kill();
            } else {
                site.clear();
            }
            // what is there so far survives an interruption
            save(&comparison, &arguments.out)?;
        }
    }
    std::fs::remove_dir(arguments.out.join("data")).ok();
    Ok(comparison)
}

/// The time in UTC, to the minute.
pub(crate) fn now() -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil_date(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::figures::Measured;
    use super::*;

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(words: &str) -> Arguments {
        let words = std::iter::once("compare").chain(words.split_whitespace());
        <Words as clap::Parser>::try_parse_from(words).expect("good arguments").arguments
    }

    #[test]
    fn contenders_are_those_asked_for() {
        let program = std::env::current_exe().expect("a program");
        let arguments = parse(&format!("--basalt {} --server other=127.0.0.1:2181,pid=1 --quick", program.display()));
        let contenders = arguments.contenders().expect("good");
        let names: Vec<&str> = contenders.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["other", "basalt", "basalt-safe"]);
        assert_eq!(contenders[1].settings["hbase.wal.hsync"], "false");
        assert_eq!(contenders[1].settings["basalt.hfile.compression.default"], "NONE");
        assert!(contenders[2].settings.is_empty() && contenders[2].only_writes);
        let long =
            format!("--basalt {} --mixed-seconds 600 --basalt-define hbase.master.logcleaner.ttl=1", program.display());
        let tidy = parse(&long).contenders().expect("good").swap_remove(0).settings;
        assert_eq!(tidy["hbase.master.cleaner.interval"], "10000");
        assert_eq!(tidy["hbase.master.logcleaner.ttl"], "1", "what the user says");
        assert!(contenders.iter().all(|c| c.memory_bytes == 2048 << 20));
        assert!(parse("--no-basalt").contenders().is_err());
        assert!(parse("--no-basalt --server x").contenders().is_err());
        assert!(arguments.scale().measure < parse("").scale().measure);
    }

    #[test]
    fn every_target_is_of_a_workload_that_exists() {
        for target in targets::TARGETS {
            assert!(WORKLOADS.iter().any(|(name, _)| *name == target.workload), "{}", target.workload);
        }
    }

    #[test]
    fn a_report_says_what_was_measured_and_what_was_missed() {
        let server = |name: &str| ServerInfo { name: name.to_owned(), about: "<about>".to_owned() };
        let measured = |server: &str, cpu_ns| {
            let mut m = Measured { workload: "get-32".into(), server: server.into(), run: 1, ..Measured::default() };
            (m.operations, m.rows, m.seconds, m.usage.cpu_ns) = (1000, 1000, 1.0, cpu_ns);
            (m.latency.count, m.latency.p999_ns) = (1000, 5_000_000);
            m.curve = vec![(0.0, 1_000), (50.0, 20_000), (100.0, 5_000_000)];
            m.tenths = vec![100; 10];
            m
        };
        let comparison = Comparison {
            servers: vec![server("hbase"), server("basalt")],
            measured: vec![measured("hbase", 100_000_000), measured("basalt", 50_000_000)],
            failures: vec!["a < b".to_owned()],
            ..Comparison::default()
        };
        let page = html::page(&comparison);
        for want in ["<svg", "get-32", "&lt;about&gt;", "a &lt; b", "missed", "1,212", "Bigtable"] {
            assert!(page.contains(want), "{want}");
        }
        assert!(!page.contains("http://") || !page.contains("<script"), "one file, nothing fetched");
        let text = table::text(&comparison);
        assert!(text.contains("missed") && text.contains("1/2.0"), "{text}");
        let json = serde_json::to_string(&comparison).expect("plain values");
        let back: Comparison = serde_json::from_str(&json).expect("the same");
        assert_eq!(back.measured.len(), 2);
    }
}
