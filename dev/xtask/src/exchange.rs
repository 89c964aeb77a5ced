//! `cargo xtask interop exchange`: one root directory, served by HBase 2.6.4 and by Basalt in turn. What a client finds
//! after each change of hands must equal what it found before: every cell, descriptor, region boundary, table state and
//! namespace; and every region must be open. Between two changes the server of the day writes, splits, flushes, compacts,
//! makes and drops tables, and is then stopped, or killed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};

use crate::report::Outcome;
use crate::server::{Kind, Site};
use crate::{jvm, run, suites};

/// How a server's turn ends.
#[derive(Clone, Copy)]
enum End {
    /// SIGTERM.
    Stop,
    /// SIGKILL.
    Kill,
}

/// What a server does in its turn, before its content is written down for the next.
#[derive(Clone, Copy)]
enum Work {
    /// Makes every table.
    Make,
    /// Makes the changes of a round.
    Write(u32),
    /// Nothing.
    Look,
}

type Leg = (Kind, Work, End);

/// Made by HBase: handed over after a stop, and after a kill, in each direction.
const MADE_BY_HBASE: &[Leg] = &[
    (Kind::HBase, Work::Make, End::Stop),
    (Kind::Basalt, Work::Write(1), End::Stop),
    (Kind::HBase, Work::Write(2), End::Kill),
    (Kind::Basalt, Work::Write(3), End::Kill),
    (Kind::HBase, Work::Write(4), End::Stop),
    (Kind::Basalt, Work::Look, End::Stop),
];

/// Made by Basalt: HBase has never seen it. Killed at once, so that HBase takes over from the logs alone.
const MADE_BY_BASALT: &[Leg] = &[
    (Kind::Basalt, Work::Make, End::Kill),
    (Kind::HBase, Work::Write(1), End::Stop),
    (Kind::Basalt, Work::Look, End::Stop),
];

/// The table of a family that names no codec, with values that pack well.
const LETTERS: &str = "data/default/ex_letters";
/// The table whose rows are divided by the values of a column.
const TIERED: &str = "data/default/ex_tiered";

/// Longest time of one client run.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs both journeys; the second whatever became of the first.
pub fn run(lab: &Path) -> anyhow::Result<Outcome> {
    let class_path = jvm::HBASE_2.compile(lab)?;
    let mut outcome = Outcome::default();
    for (name, legs) in [("made by HBase", MADE_BY_HBASE), ("made by Basalt", MADE_BY_BASALT)] {
        let mut journey = Journey::new(lab, &class_path, name)?;
        if let Err(error) = journey.travel(legs, &mut outcome) {
            outcome.failures.push(format!("{name}: {error:#}"));
        }
        outcome.failures.extend(journey.basalt.complaints()?);
        if outcome.failures.is_empty() {
            std::fs::remove_dir_all(&journey.hbase.dir).ok();
            std::fs::remove_dir_all(&journey.basalt.dir).ok();
        } else {
            println!("    servers: {}, {}", journey.hbase.dir.display(), journey.basalt.dir.display());
        }
    }
    Ok(outcome)
}

struct Journey<'a> {
    name: &'static str,
    class_path: &'a str,
    hbase: Site,
    basalt: Site,
    logs: PathBuf,
}

impl<'a> Journey<'a> {
    fn new(lab: &Path, class_path: &'a str, name: &'static str) -> anyhow::Result<Journey<'a>> {
        let word = name.replace(' ', "-");
        let logs = run::scratch()?.join("logs").join(format!("exchange-{word}"));
        if logs.exists() {
            std::fs::remove_dir_all(&logs)?;
        }
        std::fs::create_dir_all(&logs)?;
        Ok(Journey {
            name,
            class_path,
            hbase: Site::new(Kind::HBase, lab, &format!("exchange-{word}-hbase"))?,
            basalt: Site::new(Kind::Basalt, lab, &format!("exchange-{word}-basalt"))?,
            logs,
        })
    }

    fn site(&mut self, kind: Kind) -> &mut Site {
        if kind == Kind::HBase { &mut self.hbase } else { &mut self.basalt }
    }

    /// The root directory of a server of this kind.
    fn root(&self, kind: Kind) -> PathBuf {
        if kind == Kind::HBase { self.hbase.root() } else { self.basalt.root() }
    }

    /// Holds the newest file of [`LETTERS`], as HBase's own tool reads it, against what its writer does where nobody chose a codec: HBase
    /// writes plainly, Basalt with Snappy. So each turn began with a file of the other one's, and rewrote it.
    fn codec(&self, writer: Kind) -> anyhow::Result<()> {
        let newest = self.store_files(writer, LETTERS)?.into_iter().max().context("no file")?.1;
        let said = self.metadata(&newest)?;
        let wanted = if writer == Kind::HBase { "compression=none" } else { "compression=snappy" };
        if !said.contains(wanted) {
            bail!("{} is not written with {wanted}: {said}", newest.display());
        }
        Ok(())
    }

    /// The store files of a table, with their times.
    fn store_files(&self, writer: Kind, table: &str) -> anyhow::Result<Vec<(SystemTime, PathBuf)>> {
        let mut found = Vec::new();
        let mut dirs = vec![self.root(writer).join(table)];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
                let (path, name) = entry.map(|e| (e.path(), e.file_name().to_string_lossy().into_owned()))?;
                if name.starts_with('.') {
                    continue;
                }
                if path.is_dir() {
                    dirs.push(path);
                } else if dir.ends_with("f") {
                    found.push((path.metadata()?.modified()?, path));
                }
            }
        }
        Ok(found)
    }

    /// What HBase's own tool says of a store file.
    fn metadata(&self, file: &Path) -> anyhow::Result<String> {
        let mut tool = jvm::java(self.class_path, "org.apache.hadoop.hbase.io.hfile.HFilePrettyPrinter");
        tool.arg("-m").arg("-f").arg(format!("file://{}", file.display()));
        Ok(run::logged(&mut tool, &self.logs.join("hfile.log"), LIMIT)?.output)
    }

    /// Whether the last compaction of [`TIERED`] made two files, each of which says which values it has.
    fn tiers(&self, writer: Kind) -> anyhow::Result<()> {
        let mut files = self.store_files(writer, TIERED)?;
        files.sort();
        let [.., (_, first), (_, second)] = &files[..] else {
            bail!("{} store files: the compaction did not split the rows by their values", files.len())
        };
        let said = [self.metadata(first)?, self.metadata(second)?];
        if let Some(said) = said.iter().find(|said| !said.contains("CUSTOM_TIERING_TIME_RANGE")) {
            bail!("a store file has no CUSTOM_TIERING_TIME_RANGE in its file info: {said}");
        }
        let entries = said.map(|said| {
            said.lines().find_map(|line| {
                line.trim().strip_prefix("entryCount=").map(|count| count.trim_end_matches(',').to_owned())
            })
        });
        if entries != [Some("100".to_owned()), Some("100".to_owned())] {
            bail!("the two store files should have 100 cells each, and have {entries:?}");
        }
        Ok(())
    }

    fn travel(&mut self, legs: &[Leg], outcome: &mut Outcome) -> anyhow::Result<()> {
        let mut last: Option<Kind> = None;
        for (number, (kind, work, end)) in legs.iter().enumerate() {
            let who = if *kind == Kind::HBase { "HBase" } else { "Basalt" };
            let how = format!("{}, turn {} ({who})", self.name, number + 1);
            if let Some(before) = last {
                let (from, to) = (self.root(before), self.root(*kind));
                std::fs::create_dir_all(to.parent().context("a root has a parent")?)?;
                std::fs::rename(&from, &to).with_context(|| format!("{how}: cannot hand {} over", from.display()))?;
            }
            let server = self.site(*kind).start().with_context(|| format!("{how}: does not start"))?;
            let start_ms = server.start_took.as_millis();
            let mut client = jvm::java(self.class_path, "basalt.interop.Exchange");
            client.arg(self.site(*kind).zookeeper());
            if last.is_some() {
                client.arg("same").arg(self.logs.join(format!("{number}.txt")));
            }
            match work {
                Work::Make => drop(client.arg("make")),
                Work::Write(round) => drop(client.args(["write", &round.to_string()])),
                Work::Look => {}
            }
            client.arg("dump").arg(self.logs.join(format!("{}.txt", number + 1)));
            let log = self.logs.join(format!("{}-{who}.log", number + 1));
            let ended = suites::judge(&run::logged(&mut client, &log, LIMIT)?);
            println!("    {how}: up in {start_ms} ms, {} passed, {} failed", ended.passed, ended.failures.len());
            outcome.passed += ended.passed;
            if !ended.failures.is_empty() {
                bail!("{how}: {}; see {}", ended.failures.join("; "), log.display());
            }
            match end {
                End::Stop => server.stop().with_context(|| format!("{how}: orderly stop"))?,
                End::Kill => server.kill()?,
            }
            outcome.passed += 1;
            if !matches!(work, Work::Look) {
                self.codec(*kind).with_context(|| format!("{how}: the files of {LETTERS}"))?;
                self.tiers(*kind).with_context(|| format!("{how}: the files of {TIERED}"))?;
                outcome.passed += 2;
            }
            last = Some(*kind);
        }
        Ok(())
    }
}
