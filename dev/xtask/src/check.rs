//! `cargo xtask check`: what ends a task. Cheap things first; each is reported, none hides another.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::report::{Outcome, Report};
use crate::{coverage, edges, ledger, native_client, pages, proto, reliability, run, sim, tidy};

/// The most outside and inside crates that `cargo build` may compile for the server.
const CRATES_MAX: usize = 250;

/// Licences that ask for no more than a notice.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "bzip2-1.0.6",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Runs every check.
pub fn run(report: &mut Report) {
    run_with_every_feature(report);
    // What the server of every feature uses may be unused in the default one, or missing.
    report.step("clippy of the default build", || {
        run::must("cargo clippy", run::cargo().args(["clippy", "--package", "basalt", "--", "-D", "warnings"]))
    });
}

/// The same without the default build.
pub fn run_with_every_feature(report: &mut Report) {
    run_quick(report);
    report.step("clippy", || {
        let mut cargo = run::cargo();
        run::must(
            "cargo clippy",
            cargo.arg("clippy").args(run::EVERYTHING).args(["--all-targets", "--", "-D", "warnings"]),
        )
    });
    report.part("workspace tests", workspace_tests);
}

/// Only what needs no compiler: seconds.
pub fn run_quick(report: &mut Report) {
    report.step("format", || run::must("cargo fmt", run::cargo().args(["fmt", "--all", "--", "--check", "-l"])));
    report.step("generated protobuf code", || proto::generate(true));
    report.step("coverage", || coverage::run(true));
    report.step("tidy", tidy::check);
    report.step("tests of the scenarios", reliability::check);
    report.step("pages for people", pages::check);
    report.step("places of the injected bugs", sim::check_places);
    report.step("table of the fuzzers", ledger::check);
    report.step("crate edges", || edges::check(&metadata(&["--no-deps"])?));
    report.step("licences", || licences(&metadata(&[])?));
    report.step("crates of the default build", crate_count);
}

fn metadata(extra: &[&str]) -> anyhow::Result<Value> {
    let mut cargo = run::cargo();
    let text =
        run::stdout("cargo metadata", cargo.args(["metadata", "--format-version", "1", "--locked"]).args(extra))?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}

fn licences(metadata: &Value) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
        let licence = package["license"].as_str().unwrap_or("none given");
        if !is_permissive(licence) {
            wrong.push(format!("{} {}: {licence}", package["name"], package["version"]));
        }
    }
    if !wrong.is_empty() {
        bail!("not on the list of licences in xtask/src/check.rs: {}", wrong.join("; "));
    }
    Ok(())
}

/// Every part joined by AND must offer, among those joined by OR, one of the list.
fn is_permissive(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|licence| PERMISSIVE.contains(&licence.trim())))
}

fn crate_count() -> anyhow::Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["tree", "--package", "basalt", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let tree = run::stdout("cargo tree", &mut cargo)?;
    let crates: BTreeSet<&str> = tree.lines().map(|l| l.trim_end_matches(" (*)")).filter(|l| !l.is_empty()).collect();
    println!("    {} crates", crates.len());
    if crates.len() >= CRATES_MAX {
        bail!("{} crates in the default build, the limit is {CRATES_MAX}", crates.len());
    }
    Ok(())
}

/// All of `cargo test`, its cases counted.
fn workspace_tests() -> anyhow::Result<Outcome> {
    let log = run::scratch()?.join("workspace-tests.log");
    let mut cargo = run::cargo();
    cargo.arg("test").args(run::EVERYTHING).args(["--no-fail-fast", "--quiet", "--", "--format=pretty"]);
    let ended = run::logged(&mut cargo, &log, std::time::Duration::from_secs(3000))?;
    let mut outcome = Outcome::default();
    for line in ended.output.lines() {
        if let Some(name) = line.strip_prefix("test ").and_then(|l| l.strip_suffix(" ... FAILED")) {
            outcome.failures.push(name.to_owned());
        } else if line.starts_with("test ") && line.contains(" ... ok") {
            outcome.passed += 1;
        }
    }
    if !ended.well {
        outcome.failures.push(format!("cargo test did not end well; see {}", log.display()));
        let said = native_client::failures_say(&ended.output);
        let tail = || ended.output.lines().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        let lines: Vec<&str> = if said.is_empty() { tail() } else { said };
        for line in lines {
            println!("    | {line}");
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::is_permissive;

    #[test]
    fn licence_expressions() {
        assert!(is_permissive("MIT OR Apache-2.0"));
        assert!(is_permissive("MIT/Apache-2.0"));
        assert!(is_permissive("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(is_permissive("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
        assert!(!is_permissive("GPL-3.0"));
        assert!(!is_permissive("MIT AND GPL-3.0"));
    }
}
