//! `cargo xtask kill`: the server is killed at random moments under concurrent writes, started again, and asked for
//! everything it had acknowledged. The writer (a Java program, `KillWriter`) outlives it and keeps the journal.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};

use crate::report::{Outcome, Report};
use crate::server::{Kind, Site};
use crate::{interop, jvm, run, toolchain};

/// Cuts the end off the newest log after each kill: the test must then find what is missing, or it tests nothing.
const SABOTAGE_BYTES: u64 = 8192;

/// Runs `rounds` rounds; prints the seed, and how to play it again. With `sabotage` it is the test that is tested.
pub fn run(report: &mut Report, kind: Kind, rounds: u32, seed: Option<u64>, sabotage: bool) -> anyhow::Result<()> {
    if kind == Kind::Basalt && !interop::build(report) {
        return Ok(());
    }
    let seed = match seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as u64 % 1_000_000_007,
    };
    let name = if sabotage { "kill -9 with a cut log".to_owned() } else { format!("kill -9, {rounds} rounds") };
    report.part(&name, || {
        println!("    replay with: cargo xtask kill --rounds {rounds} --seed {seed}");
        let outcome = rounds_of(kind, rounds, seed, sabotage)?;
        if !sabotage {
            return Ok(outcome);
        }
        if outcome.failures.iter().any(|f| f.contains("acknowledged")) {
            return Ok(Outcome { passed: 1, failures: Vec::new() });
        }
        bail!("logs were cut and nothing was found missing: {}", outcome.failures.join("; "))
    });
    Ok(())
}

fn rounds_of(kind: Kind, rounds: u32, seed: u64, sabotage: bool) -> anyhow::Result<Outcome> {
    let lab = toolchain::jars()?;
    let class_path = jvm::HBASE_2.compile(&lab)?;
    let mut site = Site::new(kind, &lab, "kill")?;
    let mut rng = Rng(seed);
    let mut server = site.start()?;
    let mut writer = Writer::start(&class_path, &site.zookeeper(), seed, sabotage)?;
    let mut outcome = Outcome::default();
    let mut acknowledged = 0;
    let mut slowest_start = Duration::ZERO;
    for round in 1..=rounds {
        writer.say("go")?;
        writer.hear("going", Duration::from_secs(60))?;
        let life = Duration::from_millis(100 + rng.below(1900));
        std::thread::sleep(life);
        if !server.is_alive() {
            outcome
                .failures
                .push(format!("round {round}: the server was gone before it was killed; see {}", site.dir.display()));
            return Ok(outcome);
        }
        server.kill()?;
        if sabotage {
            cut_newest_log(&site.dir.join("root/WALs"))?;
        }
        // now and then it is killed again while it recovers
        let mut early_kills = 0;
        while kind == Kind::Basalt && rng.below(4) == 0 && early_kills < 3 {
            let half_started = site.spawn()?;
            std::thread::sleep(Duration::from_millis(rng.below(150)));
            half_started.kill()?;
            early_kills += 1;
        }
        server = match site.start() {
            Ok(server) => server,
            Err(e) => {
                outcome
                    .failures
                    .push(format!("round {round}: no start after the kill: {e:#}; see {}", site.dir.display()));
                return Ok(outcome);
            }
        };
        slowest_start = slowest_start.max(server.start_took);
        writer.say(&format!("verify {early_kills}"))?;
        let verdict = writer.hear("verified ", Duration::from_secs(120))?;
        println!(
            "    round {round}: lived {} ms, {early_kills} kills in recovery, start {} ms, {}",
            life.as_millis(),
            server.start_took.as_millis(),
            verdict.summary
        );
        acknowledged += verdict.acknowledged;
        if verdict.lost.is_empty() && verdict.summary.ends_with(" 0 lost") {
            outcome.passed += 1;
        } else {
            outcome.failures.push(format!("round {round}: {}", verdict.lost.join("; ")));
        }
    }
    println!("    {acknowledged} operations acknowledged in all; slowest start {} ms", slowest_start.as_millis());
    if acknowledged < u64::from(rounds) * 20 {
        outcome.failures.push(format!("only {acknowledged} operations were acknowledged: that tests nothing"));
    }
    writer.say("quit")?;
    server.stop().context("orderly stop at the end")?;
    outcome.failures.extend(site.complaints()?);
    if outcome.failures.is_empty() {
        std::fs::remove_dir_all(&site.dir).ok();
    } else if !sabotage {
        println!("    the data: {}", site.dir.display());
    }
    Ok(outcome)
}

fn cut_newest_log(dir: &Path) -> anyhow::Result<()> {
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for server in std::fs::read_dir(dir).with_context(|| format!("no logs in {}", dir.display()))? {
        let server = server?.path();
        if !server.is_dir() {
            continue;
        }
        for log in std::fs::read_dir(server)? {
            let log = log?;
            if log.path().extension().is_some_and(|kind| kind == "meta") {
                // Without it there may be no table to look at.
                continue;
            }
            let written = log.metadata()?.modified()?;
            if newest.as_ref().is_none_or(|(at, _)| written > *at) {
                newest = Some((written, log.path()));
            }
        }
    }
    let (_, path) = newest.context("no log to cut")?;
    let file = std::fs::OpenOptions::new().write(true).open(&path)?;
    file.set_len(file.metadata()?.len().saturating_sub(SABOTAGE_BYTES))?;
    Ok(())
}

struct Verdict {
    summary: String,
    acknowledged: u64,
    lost: Vec<String>,
}

struct Writer {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// Losses are expected: not to be shown.
    quiet: bool,
}

impl Writer {
    fn start(class_path: &str, zookeeper: &str, seed: u64, quiet: bool) -> anyhow::Result<Writer> {
        let log = run::scratch()?.join("kill-writer.log");
        let mut java = jvm::java(class_path, "basalt.interop.KillWriter");
        let mut child = java
            .args([zookeeper, "it_kill", &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(log)?)
            .spawn()
            .context("cannot start the writer")?;
        let input = child.stdin.take().context("the writer has no input")?;
        let output = child.stdout.take().context("the writer has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut writer = Writer { child, input, lines, quiet };
        writer.hear("ready", Duration::from_secs(60))?;
        Ok(writer)
    }

    fn say(&mut self, word: &str) -> anyhow::Result<()> {
        writeln!(self.input, "{word}").and_then(|()| self.input.flush()).context("the writer is gone")
    }

    /// Lines until one that begins with `wanted`.
    fn hear(&mut self, wanted: &str, limit: Duration) -> anyhow::Result<Verdict> {
        let start = Instant::now();
        let mut lost = Vec::new();
        loop {
            match self.lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
                Ok(line) if line.starts_with(wanted) => {
                    let acknowledged = line.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
                    return Ok(Verdict { summary: line, acknowledged, lost });
                }
                Ok(line) => {
                    if line.starts_with("note: ") {
                        println!("    {line}");
                    }
                    if let Some(l) = line.strip_prefix("LOST ") {
                        if !self.quiet {
                            println!("    {line}");
                        }
                        lost.push(l.to_owned());
                    }
                }
                Err(_) => bail!("the writer did not say \"{}\" within {} s", wanted.trim(), limit.as_secs()),
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// SplitMix64: the same seed, the same moments.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
