//! `cargo xtask differential`: the same random programs against Apache HBase 2.6.4 and against Basalt, step by step;
//! every reply must be the same. The programs are made and compared by a Java program (`Differential`).

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use crate::report::{Outcome, Report};
use crate::server::{Kind, Site};
use crate::suites::Context;
use crate::{interop, jvm, run, toolchain};

/// What is to be played.
pub struct Plan {
    /// How many programs.
    pub programs: u32,
    /// Of the first; the next has the next.
    pub seed: u64,
    /// Only these steps of the one program.
    pub steps: Option<String>,
    /// No new program is begun after that.
    pub limit: Duration,
}

impl Plan {
    /// The small one: what a test run can spend.
    fn small() -> anyhow::Result<Plan> {
        Ok(Plan { programs: 30, seed: SUITE_SEED, steps: None, limit: Duration::from_secs(60) })
    }
}

/// The seed of the suite: the same programs every time, so that the suite's verdict is the code's and not the dice's.
/// `cargo xtask differential` is where new programs are tried.
const SUITE_SEED: u64 = 20_261_121;

/// Apache HBase with many small tables, made and dropped in a second: no 2 MB of memory to each family that was written
/// to (but chunks there must be: without them a comparator that reads on behind a cell's end finds other bytes), no 150 ms before each order from its master, no program started for each file.
const QUICK: &[(&str, &str)] = &[
    ("hbase.hregion.memstore.mslab.chunksize", "65536"),
    ("hbase.hregion.memstore.mslab.max.allocation", "16384"),
    ("hbase.procedure.remote.dispatcher.delay.msec", "1"),
    ("fs.file.impl", "basalt.interop.differential.QuickFiles"),
    ("hbase.regionserver.thread.compaction.small", "3"),
    ("hbase.regionserver.thread.compaction.large", "2"),
];

/// A seed that nobody has tried.
pub fn any_seed() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as u64 % 1_000_000_007)
}

/// Starts both servers and plays.
pub fn run(report: &mut Report, plan: &Plan) -> anyhow::Result<()> {
    if !interop::build(report) {
        return Ok(());
    }
    report.part(&format!("differential, {} programs", plan.programs), || {
        let lab = toolchain::jars()?;
        let mut site = Site::new(Kind::Basalt, &lab, "differential")?;
        let basalt = site.start()?;
        let log = run::scratch()?.join("differential.log");
        let mut outcome = against_hbase(plan, &lab, &site.zookeeper(), &log)?;
        basalt.stop().context("orderly stop at the end")?;
        outcome.failures.extend(site.complaints()?);
        if outcome.failures.is_empty() {
            std::fs::remove_dir_all(&site.dir).ok();
        } else {
            println!("    server: {}", site.dir.display());
        }
        Ok(outcome)
    });
    Ok(())
}

/// As one of the interop suites. Facing HBase it plays HBase against HBase: what differs then is the test's fault.
pub fn suite(c: &Context) -> anyhow::Result<Outcome> {
    match c.kind {
        Kind::Basalt => against_hbase(&Plan::small()?, &c.lab, &c.zookeeper, &c.log),
        Kind::HBase => {
            let class_path = jvm::HBASE_2.compile(&c.lab)?;
            play(&Plan::small()?, &class_path, &c.zookeeper, &c.zookeeper, &c.log)
        }
    }
}

fn against_hbase(plan: &Plan, lab: &Path, basalt: &str, log: &Path) -> anyhow::Result<Outcome> {
    let class_path = jvm::HBASE_2.compile(lab)?;
    let mut site = Site::new(Kind::HBase, lab, "differential-hbase")?;
    site.heap = "1g";
    site.extra = QUICK;
    site.classes = class_path.split(':').next().map(Into::into);
    let hbase = site.start().context("starting Apache HBase to compare with")?;
    let outcome = play(plan, &class_path, &site.zookeeper(), basalt, log);
    hbase.kill()?;
    if outcome.as_ref().is_ok_and(|o| o.failures.is_empty()) {
        std::fs::remove_dir_all(&site.dir).ok();
    }
    outcome
}

fn play(plan: &Plan, class_path: &str, left: &str, right: &str, log: &Path) -> anyhow::Result<Outcome> {
    println!("    replay with: cargo xtask differential --programs {} --seed {}", plan.programs, plan.seed);
    let mut java = jvm::java(class_path, "basalt.interop.differential.Differential");
    java.args(["--left", left, "--right", right]);
    java.args(["--programs", &plan.programs.to_string(), "--seed", &plan.seed.to_string()]);
    java.args(["--limit", &plan.limit.as_secs().to_string()]);
    if let Some(steps) = &plan.steps {
        java.args(["--steps", steps]);
    }
    // what is under way when the time is over is played to its end, and a difference made small
    let ended = run::logged(&mut java, log, plan.limit.saturating_add(Duration::from_secs(300)))?;
    let mut outcome = Outcome::default();
    let mut played = 0;
    for line in ended.output.lines() {
        if let Some(failure) = line.strip_prefix("FAILED ") {
            outcome.failures.push(failure.to_owned());
        } else if line.starts_with("seeds ") {
            println!("    {line}");
            played = line.split(": ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0);
        } else if plan.steps.is_some() {
            println!("    {line}");
        }
    }
    outcome.passed =
        usize::from(plan.steps.is_some() && ended.well) + usize::saturating_sub(played, outcome.failures.len());
    if !ended.well && outcome.failures.is_empty() || outcome.passed == 0 && outcome.failures.is_empty() {
        let tail: Vec<&str> = ended.output.lines().rev().take(5).collect();
        outcome.failures.push(format!("did not come to its end; last lines, newest first: {}", tail.join(" / ")));
    }
    if !outcome.failures.is_empty() {
        println!("    the replies: {}", log.display());
    }
    Ok(outcome)
}
