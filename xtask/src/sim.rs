//! `cargo xtask sim`: random runs and enumerations of the model world; `cargo xtask planted`: whether they would notice.

use crate::report::Report;
use crate::run;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// Hands `args` on to the program of `crates/sim`, built as a release.
pub fn run(args: &[&str]) -> anyhow::Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["run", "--release", "-p", "basalt-sim", "--bin", "sim", "--"]).args(args);
    run::must("sim", &mut cargo)
}

/// A defect to be planted: one place in one file.
struct Defect {
    name: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
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
        wrong: "",
        suite: RUNS,
    },
    Defect {
        name: "a small file gets its name before its bytes are synced",
        file: "crates/fs/src/volume.rs",
        right: "        file.sync()?;\n        drop(file);\n        self.rename(&temporary, path)?;\n        self.sync_dir(&path.parent())",
        wrong: "        self.rename(&temporary, path)?;\n        self.sync_dir(&path.parent())?;\n        file.sync()",
        suite: STATES,
    },
    Defect {
        name: "the read point passes writes that the log does not have",
        file: "crates/region/src/mvcc.rs",
        right: "            && front.complete\n",
        wrong: "",
        suite: RUNS,
    },
    Defect {
        name: "a flushed file claims a sequence id that is too high",
        file: "crates/region/src/flush.rs",
        right: "max_seq_id: Some(seq_id), ..StoreMetadata",
        wrong: "max_seq_id: Some(SeqId(seq_id.0 + 4)), ..StoreMetadata",
        suite: RUNS,
    },
    Defect {
        name: "a flush of one family releases the log of the others",
        file: "crates/region/src/flush.rs",
        right: "let flushed = stay_behind.map_or(seq_id, |lowest| SeqId((lowest.0 - 1).min(seq_id.0)));",
        wrong: "let flushed = stay_behind.map_or(seq_id, |_| seq_id);",
        suite: RUNS,
    },
    Defect {
        name: "a split region is archived while its daughters refer to it",
        file: "crates/master/src/janitor.rs",
        right: "                    return Ok(true);\n",
        wrong: "                    return Ok(false);\n",
        suite: RUNS,
    },
    Defect {
        name: "a region whose close failed is forgotten",
        file: "crates/regionserver/src/server.rs",
        right: "if closed.is_err() && mode == CloseMode::Flush && !self.stop.is_set() {",
        wrong: "if closed.is_err() && mode == CloseMode::Abort && !self.stop.is_set() {",
        suite: RUNS,
    },
];

/// Plants each defect in a copy of the tree and wants the model world to notice. `only`: those whose name contains it.
pub fn planted(report: &mut Report, only: Option<&str>) -> anyhow::Result<()> {
    let scratch = run::scratch()?.parent().context("the target directory")?.join("planted");
    copy_tree(&scratch)?;
    for defect in DEFECTS.iter().filter(|defect| only.is_none_or(|text| defect.name.contains(text))) {
        report.step(defect.name, || plant(&scratch, defect));
    }
    Ok(())
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

fn plant(tree: &Path, defect: &Defect) -> anyhow::Result<()> {
    let path = tree.join(defect.file);
    let right = std::fs::read_to_string(&path).with_context(|| format!("no {}", defect.file))?;
    if right.matches(defect.right).count() != 1 {
        bail!("{} has changed: the defect has no place there any more (xtask/src/sim.rs)", defect.file);
    }
    std::fs::write(&path, right.replace(defect.right, defect.wrong))?;
    let caught = notice(tree, defect.suite);
    std::fs::write(&path, right)?;
    caught
}

/// Builds the copy and runs the suite; the first line that it complains with.
fn notice(tree: &Path, suite: &[&str]) -> anyhow::Result<()> {
    let target = run::scratch()?.parent().context("the target directory")?.to_path_buf();
    let cargo = |args: &[&str]| {
        let mut cargo = run::cargo();
        cargo.args(args).current_dir(tree).env("CARGO_TARGET_DIR", &target);
        cargo
    };
    run::must("build", &mut cargo(&["build", "-q", "--profile", "test", "-p", "basalt-sim", "--bin", "sim"]))?;
    let mut sim = cargo(&["run", "-q", "--profile", "test", "-p", "basalt-sim", "--bin", "sim", "--"]);
    let output = sim.args(suite).output().context("cannot run the model world")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        bail!("NOT noticed by sim {}", suite.join(" "));
    }
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("(a failure without a word)");
    let short: String = line.chars().take(200).collect();
    println!("    noticed: {short}");
    Ok(())
}
