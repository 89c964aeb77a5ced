//! YCSB's core workloads, native: `basalt ycsb load|run -P workloada -p name=value`.
//!
//! Always true: keys, distributions, proportions, properties and report are YCSB's, the table is that of its hbase2
//! binding; one may load and the other run. Follows `site.ycsb` 0.18 and its `HBaseClient2`.
//!
//! Clients ("threads") are tasks of one runtime over one connection, as the threads of YCSB's client share one.

pub mod binding;
pub mod core;
pub mod generator;
pub mod measurements;
pub mod player;
pub mod presets;
pub mod properties;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use base::Rng;
use client::{Connection, Options};
use model::TableName;

use self::binding::Binding;
use self::core::{Core, Player};
use self::measurements::{Measurements, Status};
use self::properties::Properties;
use crate::stats::PreciseTimer;

const USAGE: &str = "\
Usage: basalt ycsb load|run [BINDING] [options]
  -P FILE             properties from a file; workloada to workloadf are built in; may be said more than once
  -p NAME=VALUE       one property, over those of files
  -threads N          clients at the same time (property threadcount; default 1)
  -target N           operations per second of all clients together (property target; default as many as possible)
  -s                  a status line every 10 seconds (property status.interval)
  -l LABEL            what the status line begins with
  -load, -t           as load and run
  -db, -cp VALUE      read over: there is one binding, and settings come from --config DIR and -D KEY=VALUE before 'ycsb'

Properties of its own, beside those of YCSB and its hbase2 binding (columnfamily, clientbuffering, durability, ...):
  measurement.interval=op|intended|both   with -target: latency from the start, from when it was due, or both
  basalt.workers=N                        threads of this process (default 1)
  basalt.create=true                      create the table with that one family if it is missing
  basalt.seed=N                           draw the same operations again

The table (usertable, property table) must be there: create 'usertable', 'family'; and -p columnfamily=family.";

/// Runs the command with the arguments behind its name.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(config: &base::Config, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let Some(job) = Job::parse(arguments)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let mut config = config.clone();
    for (name, value) in job.properties.iter() {
        if name.starts_with("hbase.") || name.starts_with("zookeeper.") {
            config.set(name, value);
        }
    }
    let workers = job.properties.number("basalt.workers", 1_usize)?;
    let runtime = match workers {
        0 | 1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        n => tokio::runtime::Builder::new_multi_thread().worker_threads(n).enable_all().build()?,
    };
    let well = runtime.block_on(job.run(Options::from_config(&config)))?;
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the command line asks for.
struct Job {
    properties: Properties,
    load: bool,
}

impl Job {
    /// `None`: explain.
    fn parse(arguments: &[String]) -> anyhow::Result<Option<Job>> {
        let mut files = Properties::default();
        let mut properties = Properties::default();
        let mut load = None;
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            let mut value = || left.next().with_context(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "load" | "-load" => load = Some(true),
                "run" | "-t" => load = Some(false),
                "-s" => properties.set("status", "true"),
                "-threads" => properties.set("threadcount", value()?),
                "-target" => properties.set("target", value()?),
                "-l" => properties.set("label", value()?),
                "-db" | "-cp" | "-jvm-args" => drop(value()?),
                "-P" => {
                    let path = value()?;
                    match std::fs::read_to_string(path) {
                        Ok(text) => files.read(&text),
                        Err(error) => match presets::preset(path) {
                            Some(text) => files.read(text),
                            None => return Err(error).with_context(|| format!("cannot read {path}")),
                        },
                    }
                }
                "-p" => {
                    let pair = value()?;
                    let (name, value) = pair.split_once('=').with_context(|| format!("-p {pair} is not NAME=VALUE"))?;
                    properties.set(name, value);
                }
                "-h" | "-help" | "--help" => return Ok(None),
                // bin/ycsb is told the binding after the command
                binding if !binding.starts_with('-') && load.is_some() => {}
                other => bail!("unknown option {other}\n{USAGE}"),
            }
        }
        let Some(load) = load else { return Ok(None) };
        files.extend(properties);
        Ok(Some(Job { properties: files, load }))
    }

    /// Plays the workload and prints the report. False when an insert of the loading phase failed for good.
    async fn run(self, options: Options) -> anyhow::Result<bool> {
        let p = &self.properties;
        let core = Arc::new(Core::new(p)?);
        let measurements = Arc::new(Measurements::new(p)?);
        let total = self.operations()?;
        let mut clients: u64 = p.number("threadcount", 1)?;
        if total > 0 && clients > total {
            println!("Warning: the threadcount is bigger than recordcount, the threadcount will be recordcount!");
            clients = total;
        }
        let clients = clients.max(1);
        let connection = Connection::open(options);
        let name = TableName::parse(p.text("table").unwrap_or("usertable"))?;
        self.check_table(&connection, &name).await?;
        let target: f64 = p.number("target", 0.0)?;
        let tick = (target > 0.0).then(|| Duration::from_secs_f64(clients as f64 / target));
        let rng = match p.text("basalt.seed") {
            None => Rng::from_system(),
            Some(_) => Rng::seeded(p.number("basalt.seed", 0)?),
        };
        let shared = Arc::new(Shared {
            core: core.clone(),
            measurements: measurements.clone(),
            done: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            timer: tick.map(|tick| (PreciseTimer::new(), tick)),
            load: self.load,
        });
        eprintln!("Starting test.");
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..clients {
            let share = if total == 0 { u64::MAX } else { total / clients + u64::from(n < total % clients) };
            let player = Player::new(core.clone(), Rng::seeded(rng.next_u64()));
            let binding = Binding::new(connection.table(&name), p)?;
            tasks.spawn(shared.clone().client(player, binding, share, Rng::seeded(rng.next_u64())));
        }
        let status = p.flag("status", false).then(|| tokio::spawn(self.clone_status(shared.clone(), total, start)));
        let limit: u64 = p.number("maxexecutiontime", 0)?;
        let wait = async { while tasks.join_next().await.is_some() {} };
        tokio::pin!(wait);
        if limit > 0 && tokio::time::timeout(Duration::from_secs(limit), &mut wait).await.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        wait.await;
        let took = start.elapsed();
        let done = shared.done.load(Ordering::Relaxed);
        if let Some(status) = status {
            status.abort();
            eprintln!("{}", status_line(p, &shared, total, start, &mut (0, start)));
        }
        let report = measurements.report(done, took);
        match p.text("exportfile") {
            Some(path) => std::fs::write(path, report).with_context(|| format!("cannot write {path}"))?,
            None => print!("{report}"),
        }
        Ok(!shared.failed.load(Ordering::Relaxed))
    }

    fn operations(&self) -> anyhow::Result<u64> {
        let p = &self.properties;
        if !self.load {
            return p.number("operationcount", 0);
        }
        let records = p.number("recordcount", 0)?;
        p.number("insertcount", records)
    }

    async fn check_table(&self, connection: &Connection, name: &TableName) -> anyhow::Result<()> {
        let admin = connection.admin();
        if admin.table_exists(name).await? {
            return Ok(());
        }
        let family = self.properties.text("columnfamily").context("no column family: say -p columnfamily=NAME")?;
        if !self.properties.flag("basalt.create", false) {
            bail!("table {name} does not exist: create '{name}', '{family}', or say -p basalt.create=true");
        }
        let family = model::FamilyDescriptor::new(family.to_owned());
        admin.create_table(&model::TableDescriptor::new(name.clone(), [family]), &[]).await?;
        Ok(())
    }

    fn clone_status(&self, shared: Arc<Shared>, total: u64, start: Instant) -> impl Future<Output = ()> + use<> {
        let p = self.properties.clone();
        async move {
            let interval = Duration::from_secs(p.number("status.interval", 10).unwrap_or(10).max(1));
            let mut last = (0, start);
            loop {
                eprintln!("{}", status_line(&p, &shared, total, start, &mut last));
                tokio::time::sleep(interval).await;
            }
        }
    }
}

struct Shared {
    core: Arc<Core>,
    measurements: Arc<Measurements>,
    done: AtomicU64,
    stop: AtomicBool,
    failed: AtomicBool,
    timer: Option<(PreciseTimer, Duration)>,
    load: bool,
}

impl Shared {
    /// One client: its share of the operations, one after the other, at its rate if there is one.
    async fn client(self: Arc<Self>, mut player: Player, binding: Binding, share: u64, rng: Rng) {
        let mut start = Instant::now();
        if let Some((timer, tick)) = &self.timer {
            // clients do not all begin at once
            if *tick >= Duration::from_millis(1) {
                timer.sleep_until(start + Duration::from_nanos(rng.below(tick.as_nanos() as u64))).await;
                start = Instant::now();
            }
        }
        let mut due = None;
        for n in 1..=share {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if self.load {
                if !self.load_one(&mut player, &binding, due, &rng).await {
                    self.failed.store(true, Ordering::Relaxed);
                    break;
                }
            } else {
                let Some(operation) = player.transaction() else { break };
                player::play(&self.core, &binding, &self.measurements, operation, due).await;
            }
            self.done.fetch_add(1, Ordering::Relaxed);
            if let Some((timer, tick)) = &self.timer {
                let next = start + Duration::from_nanos((tick.as_nanos() as u64).saturating_mul(n));
                timer.sleep_until(next).await;
                due = Some(next);
            }
        }
        let since = Instant::now();
        binding.flush().await;
        self.measurements.record(("CLEANUP", "CLEANUP"), None, since.elapsed(), Some(since.elapsed()));
    }

    async fn load_one(&self, player: &mut Player, binding: &Binding, due: Option<Instant>, rng: &Rng) -> bool {
        let operation = player.load();
        for attempt in 0..=self.core.retry_limit {
            if attempt > 0 {
                eprintln!("Retrying insertion, retry count: {attempt}");
                let share = 0.8 + 0.4 * generator::unit(rng);
                tokio::time::sleep(Duration::from_secs_f64(self.core.retry_interval_seconds * share)).await;
            }
            let status = player::play(&self.core, binding, &self.measurements, operation.clone(), due).await;
            if status == Status::Ok {
                return true;
            }
        }
        eprintln!("Error inserting, not retrying any more. number of attempts: {}", self.core.retry_limit + 1);
        self.core.keep_going
    }
}

fn status_line(p: &Properties, shared: &Shared, total: u64, start: Instant, last: &mut (u64, Instant)) -> String {
    let now = Instant::now();
    let done = shared.done.load(Ordering::Relaxed);
    let seconds = (now - start).as_secs_f64();
    let mut line =
        format!("{}{} {} sec: {done} operations; ", p.text("label").unwrap_or(""), utc_now(), seconds as u64);
    if done > 0 {
        let since = (now - last.1).as_secs_f64().max(1e-9);
        line.push_str(&format!("{:.2} current ops/sec; ", (done - last.0) as f64 / since));
    }
    if total > done && done > 0 {
        let left = ((total - done) as f64 * seconds / done as f64).ceil() as u64;
        line.push_str(&format!("est completion in {}", remaining(left)));
    }
    *last = (done, now);
    line + &shared.measurements.status_line()
}

/// Days, hours, minutes, or seconds, as YCSB says them.
fn remaining(seconds: u64) -> String {
    let unit = |n: u64, name: &str| format!("{n} {name}{} ", if n == 1 { "" } else { "s" });
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let mut text = String::new();
    if days > 0 {
        text += &unit(days, "day");
    }
    if hours > 0 {
        text += &unit(hours, "hour");
    }
    if days == 0 && minutes > 0 {
        text += &unit(minutes, "minute");
    }
    if text.is_empty() { unit(seconds, "second") } else { text }
}

/// `yyyy-MM-dd HH:mm:ss:SSS`, in UTC.
fn utc_now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (seconds, ms) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = crate::stats::civil_date(seconds / 86_400);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}:{ms:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> anyhow::Result<Option<Job>> {
        Job::parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_command_line_is_that_of_ycsb() {
        let job = parse("run hbase20 -P workloads/workloade -p recordcount=7 -threads 4 -target 100 -s -cp /conf")
            .expect("good")
            .expect("not for help");
        assert!(!job.load);
        for (name, value) in [
            ("recordcount", "7"),
            ("threadcount", "4"),
            ("target", "100"),
            ("status", "true"),
            ("maxscanlength", "100"),
        ] {
            assert_eq!(job.properties.text(name), Some(value), "{name}");
        }
        assert!(parse("load -P workloada").expect("good").expect("not for help").load);
        assert!(parse("").expect("good").is_none() && parse("run -h").expect("good").is_none());
        for bad in ["run -P nowhere/workloadz", "run -p x", "run -frobnicate", "run -threads"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_said_as_ycsb_says_them() {
        assert_eq!(remaining(1), "1 second ");
        assert_eq!(remaining(59), "59 seconds ");
        assert_eq!(remaining(3660), "1 hour 1 minute ");
        assert_eq!(remaining(90_000), "1 day 1 hour ");
    }
}
