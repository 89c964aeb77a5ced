//! `cargo xtask differential`: the same random programs against Apache HBase 2.6.4 and against Basalt, step by step;
//! every reply must be the same. The programs are made and compared by two Java programs: `Differential` (data), `Administration`.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;

use crate::report::{Outcome, Report};
use crate::server::{Kind, Site};
use crate::suites::Context;
use crate::{interop, jvm, run, toolchain};

/// Which programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Requests of one table; each is made of both servers before the next.
    Data,
    /// Tables, families, namespaces, snapshots, regions, quotas, peers and switches: a whole program on one server, then on the other.
    Administration,
}

impl Calls {
    fn class(self) -> &'static str {
        match self {
            Calls::Data => "basalt.interop.differential.Differential",
            Calls::Administration => "basalt.interop.differential.Administration",
        }
    }

    /// What Apache HBase is started with.
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Calls::Data => QUICK,
            Calls::Administration => QUICK_WITH_QUOTAS,
        }
    }
}

/// What is to be played.
pub struct Plan {
    /// Of which kind.
    pub calls: Calls,
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
    fn small(calls: Calls) -> Plan {
        Plan { calls, programs: 30, seed: SUITE_SEED, steps: None, limit: Duration::from_secs(60) }
    }
}

/// The seed of the suite: the same programs every time, so that the suite's verdict depends on the code alone, not on chance.
/// `cargo xtask differential` is where new programs are tried.
const SUITE_SEED: u64 = 20_261_121;

/// Apache HBase with many small tables, made and dropped in a second: no 2 MB of memory to each family that was written
/// to (but chunks there must be: without them a comparator that reads on behind a cell's end finds other bytes), no 150 ms before each order from its master, no program started for each file.
const QUICK: &[(&str, &str)] = &[
    ("hbase.hregion.memstore.mslab.chunksize", "65536"),
    ("hbase.hregion.memstore.mslab.max.allocation", "16384"),
    ("hbase.procedure.remote.dispatcher.delay.msec", "1"),
    ("fs.file.impl", "basalt.interop.differential.QuickFiles"),
    // what a family with HBase's own block size has: with four of our small blocks a reply ends long before it is full,
    // to go over from positional reads to streams (`StoreScanner`, `returnImmediately`)
    ("hbase.storescanner.pread.max.bytes", "262144"),
    ("hbase.regionserver.thread.compaction.small", "3"),
    ("hbase.regionserver.thread.compaction.large", "2"),
];

/// [`QUICK`], but for what only many reads of one table meet, and with quotas, which are off by themselves.
const QUICK_WITH_QUOTAS: &[(&str, &str)] = &[
    QUICK[0],
    QUICK[1],
    QUICK[2],
    QUICK[3],
    WITH_QUOTAS[0],
    // a busy machine is no dead server: otherwise HBase ends after 40 s in which it could not say that it is there
    ("hbase.zookeeper.property.maxSessionTimeout", "300000"),
    ("zookeeper.session.timeout", "300000"),
    // once, half a minute after its start, its RollingUpgradeChore writes DEFAULT into descriptors whose program has just taken the tracker out
    ("hbase.master.rolling.upgrade.chore.delay.secs", "1000000"),
];

/// What the server under test is told where programs set quotas.
pub const WITH_QUOTAS: &[(&str, &str)] = &[("hbase.quota.enabled", "true")];

/// Differences that are as they must be, with their reasons.
const ALLOWED: &str = "tests/interop/administration-allowed.txt";

/// A seed that nobody has tried.
pub fn any_seed() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as u64 % 1_000_000_007)
}

/// Starts both servers and plays.
pub fn run(report: &mut Report, plan: &Plan) -> anyhow::Result<()> {
    if !interop::build(report) {
        return Ok(());
    }
    if plan.calls == Calls::Administration {
        part(report, &format!("differential of administration, {} programs", plan.programs), plan, WITH_QUOTAS);
        return Ok(());
    }
    part(report, &format!("differential, {} programs", plan.programs), plan, HBASE_TICKS);
    if plan.steps.is_none() {
        // what a client sees of Basalt's own rule for writes behind a delete of the same millisecond: nothing else
        let plan = Plan { programs: plan.programs.min(30), steps: None, ..*plan };
        part(report, &format!("differential with Basalt's ticks, {} programs", plan.programs), &plan, &[]);
    }
    Ok(())
}

/// Basalt stamps as HBase does, so that what the server's clock has to do with is the same too.
const HBASE_TICKS: &[(&str, &str)] = &[("basalt.hbase.tick.semantics", "true")];

fn part(report: &mut Report, name: &str, plan: &Plan, extra: &'static [(&'static str, &'static str)]) {
    report.part(name, || {
        let lab = toolchain::jars()?;
        let mut site = Site::new(Kind::Basalt, &lab, "differential")?;
        site.extra = extra;
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
}

/// As one of the interop suites. Facing HBase it plays HBase against HBase: what differs then is the test's fault.
pub fn suite(c: &Context) -> anyhow::Result<Outcome> {
    small(c, Calls::Data)
}

/// The same of administration.
pub fn administration_suite(c: &Context) -> anyhow::Result<Outcome> {
    small(c, Calls::Administration)
}

fn small(c: &Context, calls: Calls) -> anyhow::Result<Outcome> {
    let plan = Plan::small(calls);
    match c.kind {
        Kind::Basalt => against_hbase(&plan, &c.lab, &c.zookeeper, &c.log),
        Kind::HBase => {
            let class_path = jvm::HBASE_2.compile(&c.lab)?;
            Ok(play(&plan, &class_path, &c.zookeeper, &c.zookeeper, &c.log)?.outcome)
        }
    }
}

/// Programs that one life of HBase is good for: it grows slower with the tables that were.
const PROGRAMS_TO_A_LIFE: u32 = 500;

/// Plays against one HBase after another: each for so many programs at most, or until it answers no more.
fn against_hbase(plan: &Plan, lab: &Path, basalt: &str, log: &Path) -> anyhow::Result<Outcome> {
    let class_path = jvm::HBASE_2.compile(lab)?;
    let end = plan.seed + u64::from(plan.programs);
    let started = Instant::now();
    let mut outcome = Outcome::default();
    let mut seed = plan.seed;
    for life in 1.. {
        let mut site = Site::new(Kind::HBase, lab, "differential-hbase")?;
        site.heap = "1g";
        site.extra = plan.calls.settings();
        site.classes = class_path.split(':').next().map(Into::into);
        let hbase = site.start().context("starting Apache HBase to compare with")?;
        let programs = u32::try_from(end - seed).unwrap_or(u32::MAX).min(PROGRAMS_TO_A_LIFE);
        let limit = plan.limit.saturating_sub(started.elapsed());
        let part = Plan { calls: plan.calls, programs, seed, steps: plan.steps.clone(), limit };
        let log = if life == 1 { log.to_owned() } else { log.with_extension(format!("{life}.log")) };
        let played = play(&part, &class_path, &site.zookeeper(), basalt, &log)?;
        if played.stalled_at.is_some() {
            // where its handlers go round is to be seen later
            let threads = log.with_extension("threads");
            hbase.thread_dump(&threads)?;
            println!("    HBase answered no more; its threads: {}", threads.display());
        }
        hbase.kill()?;
        if played.outcome.failures.is_empty() {
            std::fs::remove_dir_all(&site.dir).ok();
        }
        outcome.passed += played.outcome.passed;
        outcome.failures.extend(played.outcome.failures);
        seed = played.stalled_at.unwrap_or(seed + u64::from(programs));
        if seed >= end || started.elapsed() >= plan.limit {
            break;
        }
    }
    Ok(outcome)
}

/// What one HBase was good for.
struct Played {
    outcome: Outcome,
    /// It stopped answering; the seed to go on with.
    stalled_at: Option<u64>,
}

fn play(plan: &Plan, class_path: &str, left: &str, right: &str, log: &Path) -> anyhow::Result<Played> {
    let kind = if plan.calls == Calls::Administration { "--administration " } else { "" };
    println!("    replay with: cargo xtask differential {kind}--programs {} --seed {}", plan.programs, plan.seed);
    let mut java = jvm::java(class_path, plan.calls.class());
    java.arg("--allowed").arg(run::root().join(ALLOWED));
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
    let mut stalled_at = None;
    for line in ended.output.lines() {
        if let Some(failure) = line.strip_prefix("FAILED ") {
            outcome.failures.push(failure.to_owned());
        } else if let Some(next) = line.strip_prefix("continue at ") {
            stalled_at = next.parse().ok();
        } else if line.starts_with("allowed ") {
            println!("    {line}");
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
    Ok(Played { outcome, stalled_at })
}
