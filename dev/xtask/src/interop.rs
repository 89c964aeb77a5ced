//! `cargo xtask interop`: unmodified clients against a server, one fresh server per suite.

use std::path::PathBuf;

use anyhow::bail;

use crate::report::{Outcome, Report};
use crate::server::{Kind, Site};
use crate::suites::{self, Context};
use crate::{exchange, run, server, toolchain};

/// The suite that no single server stands for.
const EXCHANGE: &str = "exchange";

/// The suites that Apache HBase does not pass, so that against it they run only when they are named: `traced` has settings that are ours; in
/// `moving` HBase serves a scan that its client resumes (`ClientScanner#handleScanError` keeps the scan's `mvccReadPoint`) at the read point of the scanner
/// that was lost, though compactions of the daughter regions keep nothing for it, and so misses rows that were written
/// again since.
const NOT_HBASE: &[&str] = &["moving", "traced"];

/// Runs `wanted` (none: all but [`EXCHANGE`], which takes minutes) in the order of the table in `suites`.
pub fn run(report: &mut Report, kind: Kind, only: Option<&str>, wanted: &[String]) -> anyhow::Result<()> {
    for name in wanted {
        if name != EXCHANGE && !suites::ALL.iter().any(|s| s.name == name) {
            let names: Vec<&str> = suites::ALL.iter().map(|s| s.name).collect();
            bail!("no suite {name}; there are: {} {EXCHANGE}", names.join(" "));
        }
    }
    if kind == Kind::Basalt && !build(report) {
        return Ok(());
    }
    let mut lab: Option<PathBuf> = None;
    report.step("tools and jars", || {
        toolchain::programs(&["java", "javac", "mvn", "go"]).or_else(|e| {
            // Go is wanted by one suite only, which will say so itself
            if toolchain::programs(&["java", "javac", "mvn"]).is_ok() { Ok(()) } else { Err(e) }
        })?;
        lab = Some(toolchain::jars()?);
        Ok(())
    });
    let Some(lab) = lab else { return Ok(()) };
    for suite in suites::ALL {
        let asked_for = wanted.iter().any(|w| w == suite.name);
        if !asked_for && (!wanted.is_empty() || kind == Kind::HBase && NOT_HBASE.contains(&suite.name)) {
            continue;
        }
        report.part(&format!("interop {}", suite.name), || {
            let mut site = Site::new(kind, &lab, suite.name)?;
            site.extra = suite.settings;
            let server = site.start()?;
            let logs = run::scratch()?.join("logs");
            std::fs::create_dir_all(&logs)?;
            let context = Context {
                kind,
                lab: lab.clone(),
                zookeeper: site.zookeeper(),
                bootstrap: site.bootstrap(),
                root: site.root(),
                log: logs.join(format!("{}.log", suite.name)),
                only: only.map(str::to_owned),
            };
            let mut outcome =
                (suite.run)(&context).unwrap_or_else(|e| Outcome { passed: 0, failures: vec![format!("{e:#}")] });
            let stopped = if suite.name == suites::STOP { server.ended() } else { server.stop() };
            match stopped {
                Ok(()) => outcome.passed += 1,
                Err(e) => outcome.failures.push(format!("orderly stop: {e:#}")),
            }
            outcome.failures.extend(site.complaints()?);
            if outcome.failures.is_empty() {
                std::fs::remove_dir_all(&site.dir).ok();
            } else {
                println!("    output: {}; server: {}", context.log.display(), site.dir.display());
            }
            Ok(outcome)
        });
    }
    // it starts both servers itself, in turn
    if kind == Kind::Basalt && only.is_none() && wanted.iter().any(|w| w == EXCHANGE) {
        report.part("interop exchange", || exchange::run(&lab));
    }
    Ok(())
}

/// The release binary, unless there is one already. False: there is nothing to test.
pub fn build(report: &mut Report) -> bool {
    server::given().is_some()
        || report.step("release build", || {
            run::must("cargo build", run::cargo().args(["build", "--release", "--quiet", "--package", "basalt"]))
        })
}
