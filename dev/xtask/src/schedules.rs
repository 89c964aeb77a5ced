//! `cargo xtask schedules`: the hand-made concurrent parts under shuttle, each test under many orders of its threads' operations.

use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::run;

/// `(package, where its tests are)`.
const SUITES: &[(&str, &[&str])] = &[
    ("basalt-memstore", &["--test", "schedules"]),
    ("basalt-region", &["--test", "schedules"]),
    ("basalt-wal", &["--test", "schedules"]),
    ("basalt-hfile", &["--lib"]),
    ("basalt-rpc", &["--lib"]),
];

/// Runs every suite, so many schedules for each test.
pub fn run(report: &mut Report, schedules: u64) {
    for (package, place) in SUITES {
        report.part(&format!("schedules of {package}"), || suite(package, place, schedules));
    }
}

fn suite(package: &str, place: &[&str], schedules: u64) -> anyhow::Result<Outcome> {
    let log = run::scratch()?.join(format!("schedules-{package}.log"));
    let mut cargo = run::cargo();
    // A feature and not a cfg for all: what has nothing to do with it is as the other tests have built it.
    cargo.args(["test", "--package", package, "--features", &format!("{package}/shuttle")]).args(place);
    // Other tests of these crates start real threads, which shuttle does not lead.
    cargo.args(["--", "--format=pretty"]).args(place.contains(&"--lib").then_some("schedules::"));
    cargo.env("BASALT_SCHEDULES", schedules.to_string());
    let ended = run::logged(&mut cargo, &log, Duration::from_secs(3000))?;
    let passed = ended.output.lines().filter(|line| line.starts_with("test ") && line.ends_with("... ok")).count();
    let mut outcome = Outcome { passed, failures: Vec::new() };
    if !ended.well || passed == 0 {
        outcome.failures.push(format!("{package}; see {}", log.display()));
        for line in ended.output.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev() {
            println!("    | {line}");
        }
    }
    println!("    {schedules} schedules for each of {passed} tests");
    Ok(outcome)
}
