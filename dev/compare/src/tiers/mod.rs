//! What it buys to have logs, flushed and compacted files on memory, flash or a slow disk: `cargo xtask tiers`. Each of the three kinds lies once on each of the
//! three, everything else on flash; YCSB loads a table and plays A.
//!
//! Always true:
//!  1. Each arrangement meets a fresh server with empty volumes, and plays the same.
//!  2. HBase plays where it can be arranged alike on a local disk: all on flash, all in memory, and its logs in memory.
//!  3. A slow disk is a directory whose calls take longer ([`basalt.volumes.delay.for.tests`]): the report says by how much.
//!  4. What fails is in the report.
//!
//! Must not know: how a server is made, but for what [`crate::server`] knows of starting one.

mod page;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use base::Rng;

use crate::compare::figures::{Comparison, ServerInfo};
use crate::compare::pass::{Pass, Scale};
use crate::compare::{now, table};
use crate::jars;
use crate::server::{self, Contender, Origin, Site};
use tools::stats::Machine;

/// What the measurement is told.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// A short look: a small table, two seconds of YCSB A; about two minutes
    #[arg(long)]
    quick: bool,
    /// Records of YCSB's table, ten times 100 bytes each [default: 200000; quick: 5000]
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Measured seconds of YCSB A [default: 20; quick: 2]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Clients at the same time
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: u64,
    /// Milliseconds that each call to the slow disk takes longer
    #[arg(long, value_name = "MS", default_value_t = 10)]
    delay: u64,
    /// Directory in memory
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    ram: PathBuf,
    /// Directory on flash; the root directory is there, too [default: that of --out]
    #[arg(long, value_name = "DIR")]
    ssd: Option<PathBuf>,
    /// Size of a memstore in MiB [default: 16; quick: 2]
    #[arg(long, value_name = "MIB")]
    flush_size: Option<u64>,
    /// Memory budget of the server in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: u64,
    /// Settings of Basalt, as KEY=VALUE
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    define: Vec<String>,
    /// Only arrangements whose names begin so; may be said more than once
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Basalt's program [default: BASALT_BINARY, or that beside this program]
    #[arg(long, value_name = "FILE")]
    basalt: Option<PathBuf>,
    /// Also Apache HBase 2.6.4 from Maven, where it can be arranged alike: all-ssd, all-ram, wal-ram
    #[arg(long)]
    with_hbase: bool,
    /// Directory with HBase's jars, instead of those from Maven
    #[arg(long, value_name = "DIR")]
    hbase_jars: Option<PathBuf>,
    /// Where the report goes, and the data meanwhile
    #[arg(long, value_name = "DIR", default_value = "basalt-tiers")]
    out: PathBuf,
    /// Draw the report of an earlier measurement anew
    #[arg(long, value_name = "FILE")]
    from_json: Option<PathBuf>,
}

/// Where files may lie: the tiers' names.
const MEDIA: [&str; 3] = ["ram", "ssd", "slow"];
/// What is placed, and the words of `basalt.volumes.place.*` for it.
const PLACED: [(&str, &[&str]); 3] = [("wal", &["wal"]), ("flush", &["flush"]), ("compaction", &["minor", "major"])];
/// That with everything on flash.
const BASE: &str = "all-ssd";
/// YCSB's workloads that are played.
const WORKLOADS: [(&str, &str); 2] = [("ycsb-load", "YCSB load"), ("ycsb-a", "YCSB A")];

/// Those that HBase can be arranged as without HDFS: it places logs alone.
const OF_HBASE: [&str; 3] = [BASE, "all-ram", "wal-ram"];

/// HBase's name in the report, arranged so.
fn hbase_as(arrangement: &str) -> String {
    format!("hbase {arrangement}")
}

/// Which kind lies where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arrangement {
    name: String,
    /// The medium of each of [`PLACED`].
    media: [&'static str; 3],
}

/// One kind elsewhere at a time, and all of them.
fn arrangements() -> Vec<Arrangement> {
    let all = |medium: &'static str| Arrangement { name: format!("all-{medium}"), media: [medium; 3] };
    let mut found = vec![all("ssd"), all("ram"), all("slow")];
    for (at, (kind, _)) in PLACED.iter().enumerate() {
        for medium in ["ram", "slow"] {
            let mut media = ["ssd"; 3];
            media[at] = medium;
            found.push(Arrangement { name: format!("{kind}-{medium}"), media });
        }
    }
    found
}

/// The arrangement of a cell of the matrix.
fn of_cell(kind: usize, medium: &str) -> String {
    if medium == "ssd" { BASE.to_owned() } else { format!("{}-{medium}", PLACED[kind].0) }
}

/// Measures, and writes the report.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.from_json {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let comparison =
            serde_json::from_str(&text).with_context(|| format!("{} is no measurement", path.display()))?;
        return report(&comparison, &arguments.out);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let comparison = runtime.block_on(measure(arguments))?;
    report(&comparison, &arguments.out)
}

fn report(comparison: &Comparison, out: &Path) -> anyhow::Result<ExitCode> {
    save(comparison, out)?;
    print!("{}", page::text(comparison));
    println!("\n{}\n{}", out.join("report.html").display(), out.join("report.json").display());
    Ok(if comparison.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn save(comparison: &Comparison, out: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for (name, text) in
        [("report.json", serde_json::to_string_pretty(comparison)?), ("report.html", page::html(comparison))]
    {
        std::fs::write(out.join(name), text).with_context(|| format!("cannot write {name} in {}", out.display()))?;
    }
    Ok(())
}

/// The directories of one server's volumes; they go with it.
struct Volumes([PathBuf; 3]);

impl Volumes {
    fn make(arguments: &Arguments, ssd: &Path) -> anyhow::Result<Volumes> {
        let own = format!("basalt-tiers-{}", std::process::id());
        let dirs = [arguments.ram.join(&own), ssd.join("volumes/ssd"), ssd.join("volumes/slow")];
        for dir in &dirs {
            if dir.exists() {
                std::fs::remove_dir_all(dir).with_context(|| format!("cannot clear {}", dir.display()))?;
            }
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        Ok(Volumes(dirs))
    }
}

impl Drop for Volumes {
    fn drop(&mut self) {
        self.0.iter().for_each(|dir| drop(std::fs::remove_dir_all(dir)));
    }
}

fn settings(
    arguments: &Arguments,
    arrangement: &Arrangement,
    volumes: &Volumes,
) -> anyhow::Result<BTreeMap<String, String>> {
    let classes = ["ram", "ssd", "hdd"];
    let said = MEDIA.iter().zip(classes).zip(&volumes.0);
    let said: Vec<String> = said.map(|((medium, class), dir)| format!("{medium}:{class}:{}", dir.display())).collect();
    let mut settings = BTreeMap::from(
        [
            ("basalt.volumes", said.join(",")),
            ("basalt.volumes.delay.for.tests", format!("slow={}", arguments.delay)),
            ("basalt.volumes.ram.may.lose.acknowledged.writes", "true".to_owned()),
            ("hbase.hregion.memstore.flush.size", flush_size_bytes(arguments).to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    for ((_, words), medium) in PLACED.iter().zip(arrangement.media) {
        for word in *words {
            settings.insert(format!("basalt.volumes.place.{word}"), medium.to_owned());
        }
    }
    for said in &arguments.define {
        let (key, value) = said.split_once('=').with_context(|| format!("-D {said} is not KEY=VALUE"))?;
        settings.insert(key.to_owned(), value.to_owned());
    }
    Ok(settings)
}

fn flush_size_bytes(arguments: &Arguments) -> u64 {
    arguments.flush_size.unwrap_or(if arguments.quick { 2 } else { 16 }) << 20
}

fn scale(arguments: &Arguments) -> Scale {
    let (records, seconds) = if arguments.quick { (5_000, 2.0) } else { (200_000, 20.0) };
    Scale {
        rows: 1_000,
        records: arguments.records.unwrap_or(records).max(1_000),
        measure: Duration::from_secs_f64(arguments.seconds.unwrap_or(seconds).max(0.1)),
        warm_up: Duration::from_secs_f64(if arguments.quick { 0.5 } else { 3.0 }),
        first_warm_up: Duration::ZERO,
        mixed: Duration::ZERO,
        fixed_rate: Duration::ZERO,
        unflushed_bytes: 0,
        regions: 4,
        clients: arguments.clients.max(1),
    }
}

async fn measure(arguments: &Arguments) -> anyhow::Result<Comparison> {
    let binary = match &arguments.basalt {
        Some(file) => file.canonicalize().with_context(|| format!("no program {}", file.display()))?,
        None => server::default_binary()?,
    };
    let ssd = arguments.ssd.clone().unwrap_or_else(|| arguments.out.clone());
    std::fs::create_dir_all(&ssd).with_context(|| format!("cannot make {}", ssd.display()))?;
    let ssd = ssd.canonicalize()?;
    let wanted = |arrangement: &Arrangement| {
        arguments.only.is_empty() || arguments.only.iter().any(|name| arrangement.name.starts_with(name.as_str()))
    };
    let scale = scale(arguments);
    let mut comparison = Comparison {
        begun: now(),
        machine: Machine::this(),
        settings: BTreeMap::from([
            ("delay".to_owned(), format!("{} ms", arguments.delay)),
            ("records".to_owned(), scale.records.to_string()),
            ("clients".to_owned(), scale.clients.to_string()),
            ("seconds of YCSB A".to_owned(), scale.measure.as_secs_f64().to_string()),
        ]),
        ..Comparison::default()
    };
    for arrangement in arrangements().into_iter().filter(wanted) {
        eprintln!("{}", arrangement.name);
        let volumes = Volumes::make(arguments, &ssd)?;
        let contender = Contender {
            name: arrangement.name.clone(),
            origin: Origin::Basalt { binary: binary.clone() },
            settings: settings(arguments, &arrangement, &volumes)?,
            memory_bytes: arguments.memory << 20,
            only_writes: false,
        };
        play(&mut comparison, contender, ssd.join("data"), &scale).await?;
        // What is there so far survives an interruption.
        save(&comparison, &arguments.out)?;
    }
    if arguments.with_hbase || arguments.hbase_jars.is_some() {
        let jars = jars::hbase(arguments.hbase_jars.as_deref(), &|what| eprintln!("{what}"))?;
        for arrangement in arrangements().iter().filter(|arrangement| OF_HBASE.contains(&&*arrangement.name)) {
            if !wanted(arrangement) {
                continue;
            }
            eprintln!("{}", hbase_as(&arrangement.name));
            let volumes = Volumes::make(arguments, &ssd)?;
            let contender = Contender {
                name: hbase_as(&arrangement.name),
                origin: Origin::HBase { jars: jars.clone(), options: Vec::new() },
                settings: hbase_settings(arguments, arrangement, &volumes),
                memory_bytes: arguments.memory << 20,
                only_writes: false,
            };
            let root = if arrangement.media == ["ram"; 3] { &volumes.0[0] } else { &ssd };
            play(&mut comparison, contender, root.join("data"), &scale).await?;
            save(&comparison, &arguments.out)?;
        }
    }
    std::fs::remove_dir(ssd.join("volumes")).ok();
    Ok(comparison)
}

/// All on flash or in memory is a matter of where the root directory is; logs alone have a setting.
fn hbase_settings(arguments: &Arguments, arrangement: &Arrangement, volumes: &Volumes) -> BTreeMap<String, String> {
    let mut settings =
        BTreeMap::from([("hbase.hregion.memstore.flush.size".to_owned(), flush_size_bytes(arguments).to_string())]);
    if arrangement.media == ["ram", "ssd", "ssd"] {
        settings.insert("hbase.wal.dir".to_owned(), format!("file://{}", volumes.0[0].join("wal").display()));
    }
    settings
}

/// Has a server play, and notes what came of it; what it wrote is removed.
async fn play(comparison: &mut Comparison, contender: Contender, dir: PathBuf, scale: &Scale) -> anyhow::Result<()> {
    let (name, about) = (contender.name.clone(), contender.about());
    comparison.servers.push(ServerInfo { name: name.clone(), about });
    let only = WORKLOADS.map(|(workload, _)| workload.to_owned());
    let mut site = Site::new(contender, dir, 2)?;
    let mut pass = Pass {
        site: &mut site,
        scale,
        run: 1,
        only: &only,
        fixed_rate: &mut None,
        profile: None,
        say: &|measured| eprintln!("  {}", table::line(measured)),
        measured: Vec::new(),
        failures: Vec::new(),
        rng: Rng::seeded(1),
    };
    let played = pass.play().await;
    let (measured, failures) = (std::mem::take(&mut pass.measured), std::mem::take(&mut pass.failures));
    comparison.measured.extend(measured);
    comparison.failures.extend(failures);
    if let Err(error) = played {
        comparison.failures.push(format!("{name}: {error:#}"));
    }
    site.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn each_kind_lies_once_on_each_medium() {
        let all = arrangements();
        assert_eq!(all.len(), 9);
        for kind in 0..3 {
            for medium in MEDIA {
                let name = of_cell(kind, medium);
                let found = all.iter().find(|arrangement| arrangement.name == name).expect("it is measured");
                assert_eq!(found.media[kind], medium);
                assert!((0..3).all(|other| other == kind || found.media[other] == "ssd"), "{name}");
            }
        }
        let words = ["tiers", "--delay", "7", "-D", "hbase.wal.hsync=false"];
        let arguments = <Words as clap::Parser>::try_parse_from(words).expect("good arguments").arguments;
        let volumes = Volumes(["/r", "/s", "/d"].map(PathBuf::from));
        let arrangement = all.iter().find(|a| a.name == "compaction-slow").expect("there");
        let settings = settings(&arguments, arrangement, &volumes).expect("legal");
        std::mem::forget(volumes);
        assert_eq!(settings["basalt.volumes"], "ram:ram:/r,ssd:ssd:/s,slow:hdd:/d");
        assert_eq!(settings["basalt.volumes.delay.for.tests"], "slow=7");
        let places = ["wal", "flush", "minor", "major"].map(|kind| &*settings[&format!("basalt.volumes.place.{kind}")]);
        assert_eq!(places, ["ssd", "ssd", "slow", "slow"]);
        assert_eq!(settings["hbase.wal.hsync"], "false");
        let volumes = Volumes(["/r", "/s", "/d"].map(PathBuf::from));
        let of_hbase = |name: &str| {
            let arrangement = all.iter().find(|a| a.name == name).expect("there");
            hbase_settings(&arguments, arrangement, &volumes)
        };
        assert_eq!(of_hbase("wal-ram")["hbase.wal.dir"], "file:///r/wal");
        assert!(["all-ssd", "all-ram"].iter().all(|name| !of_hbase(name).contains_key("hbase.wal.dir")));
        std::mem::forget(volumes);
    }
}
