//! `cargo xtask sanitize`: tests of the crates with `unsafe` code, and of what uses them hardest, under AddressSanitizer and
//! ThreadSanitizer. Needs a nightly toolchain with the standard library's sources (`rustup component add rust-src --toolchain nightly`);
//! without them it says so and does nothing.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::report::{Outcome, Report};
use crate::run;

/// `(package, further words for cargo test, modules of tests that run; none: all)`. `unsafe` code is the memstore's, and where store files are summed and their tables looked up; regions,
/// the log and RPC bring their threads to it, or have threads of their own that only ThreadSanitizer understands.
const SUITES: &[(&str, &[&str], &[&str])] = &[
    ("basalt-memstore", &["--lib", "--tests"], &[]),
    ("basalt-region", &["--test", "main"], &["threads::"]),
    ("basalt-wal", &["--lib"], &[]),
    ("basalt-wal", &["--test", "main"], &["crash::"]),
    ("basalt-hfile", &["--lib"], &[]),
    ("basalt-hfile", &["--test", "main"], &["cache::", "on_disk::"]),
    ("basalt-rpc", &["--lib"], &[]),
    ("basalt-rpc", &["--test", "main"], &["server::"]),
];

/// The sanitizers. The standard library is built with each of them, so that ThreadSanitizer sees what its locks, channels and counters
/// order, and no exceptions are needed.
const SANITIZERS: &[&str] = &["address", "thread"];

/// Runs the suites under every sanitizer, or the one named.
pub fn run(report: &mut Report, only: Option<&str>) -> anyhow::Result<()> {
    let mut rustc = Command::new("rustc");
    let nightly =
        rustc.args(["+nightly", "-vV"]).stderr(Stdio::null()).output().ok().filter(|out| out.status.success());
    let Some(nightly) = nightly else {
        println!("no nightly toolchain (rustup toolchain install nightly): the sanitizers are skipped");
        return Ok(());
    };
    let version = String::from_utf8_lossy(&nightly.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let mut sysroot = Command::new("rustc");
    let sysroot = run::stdout("rustc", sysroot.args(["+nightly", "--print", "sysroot"]))?;
    if !Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").exists() {
        println!(
            "no sources of the standard library (rustup component add rust-src --toolchain nightly): the sanitizers are skipped"
        );
        return Ok(());
    }
    let chosen: Vec<_> = SANITIZERS.iter().filter(|name| only.is_none_or(|wanted| wanted == **name)).collect();
    if chosen.is_empty() {
        bail!("sanitize knows address and thread, not {}", only.unwrap_or_default());
    }
    for sanitizer in chosen {
        for (package, words, modules) in SUITES {
            let words: Vec<&str> = words.iter().chain(&["--", "--format=pretty"]).chain(*modules).copied().collect();
            report.part(&format!("{sanitizer} {package}"), || suite(sanitizer, host, package, &words));
        }
    }
    Ok(())
}

fn suite(sanitizer: &str, host: &str, package: &str, words: &[&str]) -> anyhow::Result<Outcome> {
    let target = run::scratch()?.parent().context("the target directory")?.join(format!("sanitize-{sanitizer}"));
    let kind = words.first().map_or("", |word| word.trim_start_matches('-'));
    let log = run::scratch()?.join(format!("sanitize-{sanitizer}-{package}-{kind}.log"));
    let mut cargo = Command::new("cargo");
    cargo
        .args(["+nightly", "test", "-Zbuild-std", "--target", host, "--target-dir"])
        .arg(target)
        .args(["--package", package]);
    cargo.args(words).current_dir(run::root());
    for of_the_outer_cargo in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN", "RUSTC"] {
        cargo.env_remove(of_the_outer_cargo);
    }
    cargo.env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"));
    let ended = run::logged(&mut cargo, &log, Duration::from_secs(3000))?;
    let passed = ended.output.lines().filter(|line| line.starts_with("test ") && line.ends_with("... ok")).count();
    let mut outcome = Outcome { passed, failures: Vec::new() };
    let warnings = ended.output.matches("WARNING: ThreadSanitizer").count();
    if !ended.well || passed == 0 || warnings > 0 {
        outcome.failures.push(format!("{package} under the {sanitizer} sanitizer; see {}", log.display()));
        let summaries = ended.output.lines().filter(|line| line.contains("SUMMARY:") || line.contains("error"));
        summaries.take(20).for_each(|line| println!("    | {line}"));
    }
    Ok(outcome)
}
