//! `cargo xtask fuzz`: each decoder of foreign bytes under libFuzzer, for some time.
//!
//! Everything it makes is in `target/fuzz`: the instrumented build, `seeds/`, what was found to reach further in `corpus/`, inputs that
//! went wrong in `findings/`, and in `time/` how long each target has run since that was last put into the tree's ledger. Works with stable
//! Rust and a C++ compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::report::{Outcome, Report};
use crate::{ledger, run, toolchain};

/// What `cargo fuzz` gives to the compiler, as far as stable Rust takes it: counters of edges, their places, and the
/// operands of comparisons.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// More memory than this in all is a finding (one allocation of 64 MiB is one, too).
const MEMORY_MB: u32 = 1024;
/// One input may take so many seconds of a core; a hundred times what the slowest good one takes.
const INPUT_SECONDS: u32 = 10;
/// The engine knows only the wall's clock, and fuzzers run where others work: it ends after this, and what it calls slow
/// is measured again alone.
const PATIENCE_SECONDS: u32 = 120;

/// So much of what a target's fuzzer found is put into the tree at a time, the smallest inputs first: it is a tree of sources.
const MOST_KEPT_BYTES: u64 = 20 << 10;
/// And so many inputs.
const MOST_KEPT_INPUTS: usize = 100;

/// What to run.
pub struct Plan {
    /// Seconds of the wall's clock for each target; 0 runs none.
    pub seconds: u64,
    /// Only targets whose name contains this.
    pub only: Option<String>,
    /// Targets at once.
    pub jobs: usize,
    /// Put the time into the tree's ledger afterwards.
    pub record: bool,
}

/// The built program, and where its things are.
struct Lab {
    dir: PathBuf,
    engine: PathBuf,
    targets: Vec<(String, String)>,
}

impl Lab {
    fn build() -> anyhow::Result<Lab> {
        let dir = run::scratch()?.parent().context("the target directory")?.join("fuzz");
        toolchain::programs(&["c++"]).context("libFuzzer is built with a C++ compiler")?;
        let version = run::stdout("rustc", Command::new("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
        let cargo = |args: &[&str]| {
            let mut cargo = run::cargo();
            cargo.args(args).args(["--package", "basalt-fuzz", "--features", "engine", "--target-dir"]).arg(&dir);
            cargo
        };
        // With a target given, only what runs there is instrumented, not what builds it.
        let mut engine = cargo(&["build", "--quiet", "--profile", "fuzz", "--bin", "engine", "--target", host]);
        run::must("build of the fuzzers", engine.env("RUSTFLAGS", FLAGS))?;
        let engine = dir.join(host).join("fuzz/engine");
        let list = run::stdout("seeds", Command::new(&engine).env("BASALT_FUZZ_SEEDS", dir.join("seeds")))?;
        let targets = list.lines().filter_map(|line| {
            let (name, rest) = line.split_once(' ')?;
            Some((name.to_owned(), rest.split_once(' ')?.0.to_owned()))
        });
        Ok(Lab { targets: targets.collect(), engine, dir })
    }

    fn engine(&self, target: &str) -> Command {
        // The server's threads have stacks of 2 MiB: what recurses too deep there must do so here.
        let mut engine = Command::new("sh");
        engine
            .args(["-c", "ulimit -s 2048; exec \"$0\" \"$@\""])
            .arg(&self.engine)
            .env("BASALT_FUZZ_TARGET", target)
            .current_dir(run::root());
        engine
    }

    fn folder(&self, kind: &str, target: &str) -> anyhow::Result<PathBuf> {
        let folder = self.dir.join(kind).join(target);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Runs one target; the line that says how it went.
    fn run(
        &self,
        target: &str,
        max_len: &str,
        seconds: u64,
        recorded: ledger::Entry,
    ) -> anyhow::Result<(String, Vec<String>)> {
        let (corpus, findings) = (self.folder("corpus", target)?, self.folder("findings", target)?);
        let mut engine = self.engine(target);
        engine.arg(&corpus).arg(self.dir.join("seeds").join(target));
        let kept = kept_folder(target);
        if kept.exists() {
            engine.arg(kept);
        }
        engine
            .arg(format!("-dict={}", self.dir.join("seeds").join(format!("{target}.dict")).display()))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .args([format!("-max_total_time={seconds}"), format!("-rss_limit_mb={MEMORY_MB}")])
            .args([format!("-timeout={PATIENCE_SECONDS}"), format!("-report_slow_units={INPUT_SECONDS}")])
            .arg(format!("-max_len={max_len}"))
            .args(["-print_final_stats=1", "-use_value_profile=0", "-reload=0"]);
        let log = self.dir.join(format!("{target}.log"));
        let before = files(&findings)?;
        let ended = run::logged(&mut engine, &log, Duration::from_secs(seconds + 300))?;
        let said = Said::of(&ended.output);
        let (mut wrong, mut waited): (Vec<String>, bool) = (Vec::new(), false);
        for file in files(&findings)?.into_iter().filter(|file| !before.contains(file)) {
            if self.only_waited(target, &file)? {
                std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
                waited = true;
                continue;
            }
            wrong.push(format!("{target}: {}; replay: cargo xtask fuzz --replay {target} {0}", file.display()));
        }
        let this = ledger::Entry {
            cpu_seconds: ended.cpu.as_secs_f64(),
            inputs: said.runs,
            edges: said.edges,
            findings: wrong.len() as u64,
        };
        let now = recorded.and(ledger::note(&self.times(), target, this)?);
        let line = format!(
            "{target:14} {:>5.0} s of a core, {:>9} inputs {:>6} edges (+{}) {:>4} new inputs; by now {:.1} min, {} inputs",
            this.cpu_seconds,
            said.runs,
            said.edges,
            said.edges.saturating_sub(said.edges_of_corpus),
            said.new_inputs,
            now.cpu_seconds / 60.0,
            now.inputs
        );
        if !ended.well && wrong.is_empty() && !waited {
            wrong.push(format!("{target}: it ended badly without a finding; see {}", log.display()));
        }
        Ok((line, wrong))
    }

    /// Whether an input was called slow because the fuzzer had to wait for a core: alone, it takes little of one.
    fn only_waited(&self, target: &str, file: &Path) -> anyhow::Result<bool> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("slow-unit-") && !name.starts_with("timeout-") {
            return Ok(false);
        }
        let mut engine = self.engine(target);
        engine.args([format!("-rss_limit_mb={MEMORY_MB}"), format!("-timeout={PATIENCE_SECONDS}")]).arg(file);
        let log = self.dir.join(format!("{target}.slow.log"));
        let ended = run::logged(&mut engine, &log, Duration::from_secs(2 * u64::from(PATIENCE_SECONDS)))?;
        Ok(ended.well && ended.cpu < Duration::from_secs(u64::from(INPUT_SECONDS)))
    }

    /// What has run since the ledger was last written.
    fn times(&self) -> PathBuf {
        self.dir.join("time")
    }
}

/// What is kept in the tree because it reaches what no seed does.
fn kept_folder(target: &str) -> PathBuf {
    run::root().join("dev/fuzz/corpus").join(target)
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    Ok(files)
}

/// What libFuzzer said of a run.
#[derive(Debug, Default, PartialEq)]
struct Said {
    runs: u64,
    edges_of_corpus: u64,
    edges: u64,
    new_inputs: u64,
}

impl Said {
    fn of(output: &str) -> Said {
        let mut said = Said::default();
        for line in output.lines() {
            let number = |name: &str| line.split_once(name)?.1.split_whitespace().next()?.parse::<u64>().ok();
            if let Some(edges) = number(" cov: ") {
                said.edges = edges;
                if line.contains("INITED") {
                    said.edges_of_corpus = edges;
                }
            }
            if let Some(runs) = number("stat::number_of_executed_units:") {
                said.runs = runs;
            }
            if let Some(new) = number("stat::new_units_added:") {
                said.new_inputs = new;
            }
        }
        said
    }
}

/// Runs the targets; each that found nothing is a case that passed.
pub fn run(report: &mut Report, plan: &Plan) {
    report.part("fuzzers", || {
        let lab = Lab::build()?;
        let chosen = |name: &str| plan.only.as_ref().is_none_or(|part| name.contains(part.as_str()));
        let mut queue: Vec<&(String, String)> = lab.targets.iter().filter(|(name, _)| chosen(name)).collect();
        if queue.is_empty() {
            bail!("no target has that in its name; there are {}", names(&lab.targets));
        }
        // Those that have run least go first, so that a round that is stopped evens them out.
        let ledger = ledger::read()?;
        let recorded = |name: &str| ledger.get(name).copied().unwrap_or_default();
        let by_now = |name: &str| recorded(name).and(ledger::unrecorded(&lab.times(), name)).cpu_seconds;
        queue.sort_by(|(a, _), (b, _)| by_now(a).total_cmp(&by_now(b)));
        if plan.seconds == 0 {
            queue.clear();
        }
        let (queue, outcome) = (Mutex::new(queue.into_iter()), Mutex::new(Outcome::default()));
        std::thread::scope(|scope| {
            for _ in 0..plan.jobs {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().ok().and_then(|mut queue| queue.next());
                        let Some((target, max_len)) = next else { return };
                        let ended = lab.run(target, max_len, plan.seconds, recorded(target));
                        let Ok(mut outcome) = outcome.lock() else { return };
                        match ended {
                            Ok((line, wrong)) => {
                                println!("    {line}");
                                outcome.passed += usize::from(wrong.is_empty());
                                outcome.failures.extend(wrong);
                            }
                            Err(error) => outcome.failures.push(format!("{target}: {error:#}")),
                        }
                    }
                });
            }
        });
        if plan.record {
            ledger::record(&lab.times(), &lab.targets)?;
        }
        outcome.into_inner().map_err(|_| anyhow::anyhow!("a fuzzer's thread panicked"))
    });
}

fn names(targets: &[(String, String)]) -> String {
    targets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Plays one input again, under the limits of the fuzzers.
pub fn replay(target: &str, file: &str) -> anyhow::Result<()> {
    let lab = Lab::build()?;
    let mut engine = lab.engine(target);
    run::must(
        "replay",
        engine.args([format!("-rss_limit_mb={MEMORY_MB}"), format!("-timeout={PATIENCE_SECONDS}")]).arg(file),
    )
}

/// Keeps in the tree, of what was found by now, the smallest inputs that reach what seeds and kept ones do not; and the time it took.
pub fn keep(only: Option<&str>) -> anyhow::Result<()> {
    let lab = Lab::build()?;
    for (target, max_len) in lab.targets.iter().filter(|(name, _)| only.is_none_or(|part| name.contains(part))) {
        let merged = lab.folder("merged", target)?;
        std::fs::remove_dir_all(&merged)?;
        std::fs::create_dir_all(&merged)?;
        let kept = kept_folder(target);
        let mut known = files(&lab.dir.join("seeds").join(target))?;
        known.extend(files(&kept).unwrap_or_default());
        for (number, file) in known.iter().enumerate() {
            std::fs::copy(file, merged.join(format!("known-{number:04}")))?;
        }
        let mut engine = lab.engine(target);
        // Edges only: how often each is passed would keep ten times as many.
        engine.args(["-merge=1", "-use_counters=0", &format!("-max_len={max_len}")]).arg(&merged);
        engine.arg(lab.folder("corpus", target)?);
        let ended = run::logged(&mut engine, &lab.dir.join(format!("{target}.merge.log")), Duration::from_secs(1800))?;
        if !ended.well {
            bail!("the merge of {target} did not end well; see {target}.merge.log in {}", lab.dir.display());
        }
        let new: Vec<PathBuf> =
            files(&merged)?.into_iter().filter(|file| !file.to_string_lossy().contains("known-")).collect();
        if !new.is_empty() {
            std::fs::create_dir_all(&kept)?;
        }
        let mut by_size = Vec::new();
        for file in &new {
            by_size.push((std::fs::metadata(file)?.len(), file));
        }
        by_size.sort();
        let (mut bytes, mut count) = (0, 0);
        for (len, file) in by_size {
            if bytes + len > MOST_KEPT_BYTES || count == MOST_KEPT_INPUTS {
                break;
            }
            bytes += std::fs::copy(file, kept.join(file.file_name().context("a name")?))?;
            count += 1;
        }
        println!("{target}: {count} inputs more, {bytes} bytes; {} larger ones are left out", new.len() - count);
    }
    ledger::record(&lab.times(), &lab.targets)
}

#[cfg(test)]
mod tests {
    use super::Said;

    #[test]
    fn what_the_engine_says_is_understood() {
        let output = "#2\tINITED cov: 40 ft: 41 corp: 1/1b\n#9\tNEW    cov: 44 ft: 45 corp: 2/3b lim: 4\n#1000\tDONE   cov: 44 ft: 45\n\
                      stat::number_of_executed_units: 1000\nstat::new_units_added:          1\n";
        assert_eq!(Said::of(output), Said { runs: 1000, edges_of_corpus: 40, edges: 44, new_inputs: 1 });
    }
}
