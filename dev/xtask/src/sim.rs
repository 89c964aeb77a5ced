//! `cargo xtask sim`: random runs and enumerations of the model world; `cargo xtask planted`: whether they would notice.

use crate::report::Report;
use crate::run;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// Hands `args` on to the program of `dev/sim`, built as a release.
pub fn run(args: &[&str]) -> anyhow::Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["run", "--release", "-p", "basalt-sim", "--bin", "sim", "--"]).args(args);
    run::must("sim", &mut cargo)
}

/// A defect to be planted: one place in one file. In what is planted, `PLANTED` stands for "this defect is wanted in this run", so
/// that one build has them all.
struct Defect {
    name: &'static str,
    file: &'static str,
    right: &'static str,
    planted: &'static str,
    /// What should notice it.
    suite: &'static [&'static str],
}

const RUNS: &[&str] = &["--runs", "400", "--until-failure"];
const STATES: &[&str] = &["--enumerate"];

const DEFECTS: &[Defect] = &[
    Defect {
        name: "a sync of the log is skipped",
        file: "crates/wal/src/log/group.rs",
        right: "file.appender.sync().map_err(|error| Trouble::Broken(error.into()))?;",
        planted: "if !PLANTED { file.appender.sync().map_err(|error| Trouble::Broken(error.into()))?; }",
        suite: RUNS,
    },
    Defect {
        name: "a small file gets its name before its bytes are synced",
        file: "crates/fs/src/volume.rs",
        right: "            file.append(bytes)?;\n            file.sync()\n",
        planted: "            file.append(bytes)?;\n            if PLANTED { file.flush() } else { file.sync() }\n",
        suite: STATES,
    },
    Defect {
        name: "the read point passes writes that the log does not have",
        file: "crates/region/src/mvcc.rs",
        right: "            && front.complete\n",
        planted: "            && (front.complete || PLANTED)\n",
        suite: RUNS,
    },
    Defect {
        name: "a flushed file claims a sequence id that is too high",
        file: "crates/region/src/flush.rs",
        right: "max_seq_id: Some(seq_id), ..StoreMetadata",
        planted: "max_seq_id: Some(SeqId(seq_id.0 + if PLANTED { 4 } else { 0 })), ..StoreMetadata",
        suite: RUNS,
    },
    Defect {
        name: "a flush of one family releases the log of the others",
        file: "crates/region/src/flush.rs",
        right: "SeqId((lowest.0 - 1).min(seq_id.0))",
        planted: "if PLANTED { seq_id } else { SeqId((lowest.0 - 1).min(seq_id.0)) }",
        suite: RUNS,
    },
    Defect {
        name: "a split region is archived while its daughters refer to it",
        file: "crates/master/src/janitor.rs",
        right: "                    return Ok(true);\n",
        planted: "                    return Ok(!PLANTED);\n",
        suite: RUNS,
    },
    Defect {
        name: "a region whose close failed is forgotten",
        file: "crates/regionserver/src/server.rs",
        right: "if closed.is_err() && mode == CloseMode::Flush &&",
        planted: "if closed.is_err() && !PLANTED && mode == CloseMode::Flush &&",
        suite: RUNS,
    },
    Defect {
        name: "a flush does not wait for a relaxed log to be synced",
        file: "crates/region/src/flush.rs",
        right: "        ticket.wait_for(Level::Synced).map_err(|failed| RegionError::log(self.name(), failed.into()))?;\n        snapshots",
        planted: "        let level = if PLANTED { ticket.default_level() } else { Level::Synced };\n        \
                  ticket.wait_for(level).map_err(|failed| RegionError::log(self.name(), failed.into()))?;\n        snapshots",
        suite: RUNS,
    },
    Defect {
        name: "FSYNC_WAL is acknowledged when it is written",
        file: "crates/region/src/write.rs",
        right: "Durability::FsyncWal => Some((ticket, Level::Synced)),",
        planted: "Durability::FsyncWal if !PLANTED => Some((ticket, Level::Synced)),",
        suite: RUNS,
    },
    Defect {
        name: "a relaxed roll does not sync the file that ends",
        file: "crates/wal/src/log/files.rs",
        right: "let outcome = old.appender.sync();",
        planted: "let outcome = if PLANTED { Ok(()) } else { old.appender.sync() };",
        suite: RUNS,
    },
    Defect {
        name: "a region rests on names that a killed process left unsynced",
        file: "crates/region/src/store.rs",
        right: "if !names.is_empty() {",
        planted: "if !names.is_empty() && !PLANTED {",
        suite: STATES,
    },
    Defect {
        name: "what a relaxed log wrote behind a lost end counts",
        file: "crates/wal/src/order.rs",
        right: "for path in &logs {",
        planted: "for path in logs.iter().filter(|_| !PLANTED) {",
        suite: RUNS,
    },
    Defect {
        name: "a replay brings back what a deleted family held",
        file: "crates/region/src/replay.rs",
        right: "if seq_id <= needless.closed_seq_id {",
        planted: "if seq_id <= needless.closed_seq_id && !PLANTED {",
        suite: STATES,
    },
];

/// The variable that says which defect is wanted.
const WANTED: &str = "BASALT_PLANTED";

/// Plants every defect in a copy of the tree, builds it once, and wants the model world to notice each, and nothing without
/// any. `only`: those whose name contains it.
pub fn planted(report: &mut Report, only: Option<&str>) -> anyhow::Result<()> {
    let target = run::scratch()?.parent().context("the target directory")?.to_path_buf();
    let tree = target.join("planted");
    let mut sim = None;
    report.step("copy, plant, build", || {
        copy_tree(&tree)?;
        for (number, defect) in DEFECTS.iter().enumerate() {
            plant(&tree, defect, number)?;
        }
        let mut cargo = run::cargo();
        cargo.args(["build", "-q", "--profile", "test", "-p", "basalt-sim", "--bin", "sim"]);
        // A target directory of its own: in the real tree's, cargo would take crates with defects for that tree's, and not build them again.
        let built = target.join("planted-build");
        run::must("build", cargo.current_dir(&tree).env("CARGO_TARGET_DIR", &built))?;
        sim = Some(built.join("debug/sim"));
        Ok(())
    });
    let Some(sim) = sim else { return Ok(()) };
    report.step("without a defect nothing is noticed", || {
        let output = Command::new(&sim).args(["--runs", "100"]).output().context("cannot run the model world")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    });
    for (number, defect) in DEFECTS.iter().enumerate() {
        if only.is_none_or(|text| defect.name.contains(text)) {
            report.step(defect.name, || notice(&sim, defect.suite, number));
        }
    }
    Ok(())
}

/// Each defect has one place in the tree as it is now.
pub fn check_places() -> anyhow::Result<()> {
    let gone = |defect: &&Defect| !has_place(&run::root().join(defect.file), defect);
    let gone: Vec<String> = DEFECTS.iter().filter(gone).map(no_place).collect();
    if !gone.is_empty() {
        bail!("{}", gone.join("\n           "));
    }
    Ok(())
}

fn has_place(path: &Path, defect: &Defect) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text.matches(defect.right).count() == 1)
}

fn no_place(defect: &Defect) -> String {
    format!("{} has changed: \"{}\" has no place there any more (xtask/src/sim.rs)", defect.file, defect.name)
}

/// The files that the repository knows, as they are now.
fn copy_tree(to: &Path) -> anyhow::Result<()> {
    let mut git = Command::new("git");
    let files = run::stdout("git ls-files", git.args(["ls-files", "-z"]).current_dir(run::root()))?;
    for file in files.split('\0').filter(|file| !file.is_empty()) {
        let (from, to) = (run::root().join(file), to.join(file));
        // What is as it was keeps its time, so that little is built again.
        if !from.is_file() || std::fs::read(&to).is_ok_and(|there| std::fs::read(&from).is_ok_and(|new| new == there)) {
            continue;
        }
        std::fs::create_dir_all(to.parent().context("a directory")?)?;
        std::fs::copy(&from, &to).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
}

/// Plants `defect` in its file, where others may be already.
fn plant(tree: &Path, defect: &Defect, number: usize) -> anyhow::Result<()> {
    let path = tree.join(defect.file);
    if !has_place(&path, defect) {
        bail!("{}", no_place(defect));
    }
    let text = std::fs::read_to_string(&path)?;
    let wanted = format!("std::env::var_os(\"{WANTED}\").is_some_and(|it| it == \"{number}\")");
    let planted = defect.planted.replace("PLANTED", &wanted);
    std::fs::write(&path, text.replace(defect.right, &planted))?;
    Ok(())
}

/// Runs the suite with one defect; prints the first line that it complains with.
fn notice(sim: &Path, suite: &[&str], number: usize) -> anyhow::Result<()> {
    let output =
        Command::new(sim).args(suite).env(WANTED, number.to_string()).output().context("cannot run the model world")?;
    if output.status.success() {
        bail!("NOT noticed by sim {}", suite.join(" "));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("(a failure without a word)");
    println!("    noticed: {}", line.chars().take(200).collect::<String>());
    Ok(())
}
