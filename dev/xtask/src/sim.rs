//! `cargo xtask sim`: random runs and enumerations of the simulator; `cargo xtask injected`: whether they would notice bugs.

use crate::report::Report;
use crate::run;
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Hands `args` on to the program of `dev/sim`, built as a release.
pub fn run(args: &[String]) -> anyhow::Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["run", "--release", "-p", "basalt-sim", "--bin", "sim", "--"]).args(args);
    run::must("sim", &mut cargo)
}

/// A bug that a build with `--cfg inject` has where `base::inject!` names it.
struct Bug {
    /// As in `base::inject!`.
    name: &'static str,
    what: &'static str,
    /// What should notice it.
    suite: &'static [&'static str],
}

/// The variable that names the bug that is wanted, as in `base::inject`.
const WANTED: &str = "BASALT_INJECT";

const RUNS: &[&str] = &["--runs", "400", "--until-failure"];
const STATES: &[&str] = &["--enumerate"];
/// Seeds of three servers and two masters.
const CLUSTERS: &[&str] = &[
    "--servers",
    "3",
    "--masters",
    "2",
    "--episodes",
    "1",
    "--actions",
    "30",
    "--seed",
    "1",
    "--runs",
    "1500",
    "--until-failure",
];

const BUGS: &[Bug] = &[
    Bug { name: "wal.sync.skipped", what: "a sync of the log is skipped", suite: RUNS },
    Bug { name: "fs.publish.unsynced", what: "a small file gets its name before its bytes are synced", suite: STATES },
    Bug {
        name: "region.mvcc.incomplete-visible",
        what: "the read point passes writes that the log does not have",
        suite: RUNS,
    },
    Bug { name: "region.flush.id-too-high", what: "a flushed file claims a sequence id that is too high", suite: RUNS },
    Bug {
        name: "region.flush.others-released",
        what: "a flush of one family releases the log of the others",
        suite: RUNS,
    },
    Bug {
        name: "master.janitor.references-overlooked",
        what: "a split region is archived while its daughters refer to it",
        suite: RUNS,
    },
    Bug { name: "regionserver.close.failure-forgotten", what: "a region whose close failed is forgotten", suite: RUNS },
    Bug {
        name: "region.flush.log-unsynced",
        what: "a flush does not wait for an unsynced log to be synced",
        suite: RUNS,
    },
    Bug {
        name: "region.write.fsync-acknowledged-early",
        what: "FSYNC_WAL is acknowledged when it is written",
        suite: RUNS,
    },
    Bug {
        name: "wal.roll.sync-skipped",
        what: "a roll of an unsynced log does not sync the file that ends",
        suite: RUNS,
    },
    Bug {
        name: "region.store.names-unsynced",
        what: "a region rests on names that a killed process left unsynced",
        suite: STATES,
    },
    Bug { name: "wal.order.lost-end-counts", what: "what an unsynced log wrote behind a lost end counts", suite: RUNS },
    Bug {
        name: "region.replay.deleted-family-returns",
        what: "a replay brings back what a deleted family held",
        suite: STATES,
    },
    Bug {
        name: "rpc.request.kept-for-who-left",
        what: "memory of a request is not given back when its client has left",
        suite: RUNS,
    },
    Bug {
        name: "regionserver.stop.on-the-read-lane",
        what: "a wish to stop waits in the pool of the users' reads",
        suite: RUNS,
    },
    Bug { name: "scheduler.deadline.ignored", what: "a call is begun after its deadline", suite: RUNS },
    Bug {
        name: "fs.tiered.name-unsynced",
        what: "a record tells of a file on another volume whose name there is not durable",
        suite: STATES,
    },
    Bug {
        name: "fs.tiered.moved-unsynced",
        what: "a file is removed from a volume before the record of its copy is durable",
        suite: STATES,
    },
    Bug {
        name: "regionserver.volumes.not-opened-again",
        what: "regions stay closed when the volume is back that they wait for",
        suite: RUNS,
    },
    Bug {
        name: "master.transit.open-unconfirmed",
        what: "hbase:meta says that a region is open before its server has said so",
        suite: CLUSTERS,
    },
    Bug {
        name: "master.place.holder-overlooked",
        what: "a region is opened elsewhere though its server may have it",
        suite: CLUSTERS,
    },
    Bug { name: "regionserver.nonce.forgotten", what: "an increment that comes twice counts twice", suite: CLUSTERS },
];

/// Builds the simulator with every bug in it, once, and wants it to notice each, and nothing without any. `only`: those whose name or
/// description contains it.
pub fn injected(report: &mut Report, only: Option<&str>) -> anyhow::Result<()> {
    let target = run::scratch()?.parent().context("the target directory")?.join("injected");
    let sim = target.join("debug/sim");
    report.step("build with --cfg inject", || {
        let mut cargo = run::cargo();
        cargo.args(["build", "-q", "--profile", "test", "-p", "basalt-sim", "--bin", "sim"]);
        // A target directory of its own, or everything would be built again each time.
        let flags = std::env::var("RUSTFLAGS").unwrap_or_default() + " --cfg inject";
        run::must("build", cargo.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", flags.trim()))
    });
    report.step("without a bug nothing is noticed", || {
        let output = Command::new(&sim).args(["--runs", "100"]).output().context("cannot run the simulator")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    });
    for bug in BUGS {
        if only.is_none_or(|text| bug.name.contains(text) || bug.what.contains(text)) {
            report.step(&format!("{}: {}", bug.name, bug.what), || notice(&sim, bug));
        }
    }
    Ok(())
}

/// Each bug of the list has one place in the crates, and each place a bug in the list.
pub fn check_places() -> anyhow::Result<()> {
    let mut places = Vec::new();
    find_places(&run::root().join("crates"), &mut places)?;
    let unique: BTreeSet<&str> = places.iter().map(String::as_str).collect();
    let listed: BTreeSet<&str> = BUGS.iter().map(|bug| bug.name).collect();
    let mut wrong: Vec<String> = Vec::new();
    wrong.extend(
        listed.difference(&unique).map(|name| format!("no crate has inject!(\"{name}\") (dev/xtask/src/sim.rs)")),
    );
    wrong.extend(unique.difference(&listed).map(|name| format!("inject!(\"{name}\") is not in dev/xtask/src/sim.rs")));
    if places.len() != unique.len() {
        wrong.push("two places inject a bug of the same name".to_owned());
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n           "));
    }
    Ok(())
}

fn find_places(dir: &Path, into: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find_places(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.extend(injected_in(&std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// The names in a source's `inject!("...")`.
fn injected_in(source: &str) -> Vec<String> {
    let rest = source.split("base::inject!(\"").skip(1);
    rest.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

/// Runs the suite with one bug; prints the first line that it complains with.
fn notice(sim: &Path, bug: &Bug) -> anyhow::Result<()> {
    let mut command = Command::new(sim);
    let output = command.args(bug.suite).env(WANTED, bug.name).output().context("cannot run the simulator")?;
    if output.status.success() {
        bail!("NOT noticed by sim {}", bug.suite.join(" "));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("(a failure without a word)");
    println!("    noticed: {}", line.chars().take(200).collect::<String>());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injected_bugs_are_found_in_a_source() {
        assert_eq!(injected_in("if base::inject!(\"a.b\") || x(base::inject!(\"c\")) {"), ["a.b", "c"]);
    }

    #[test]
    fn each_bug_has_its_place_in_the_tree() {
        check_places().unwrap();
    }
}
