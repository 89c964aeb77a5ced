//! What the tests need on this machine: a C++ compiler for libFuzzer; a JDK, Maven, Go and jars for the real clients. Installed where that is possible,
//! named exactly where it is not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::run;

/// `(program, the Debian package that brings it)`.
const PROGRAMS: &[(&str, &str)] = &[
    ("c++", "g++"),
    ("java", "default-jre-headless"),
    ("javac", "default-jdk-headless"),
    ("mvn", "maven"),
    ("go", "golang-go"),
];

/// Is the program on the path and does it run?
fn present(program: &str) -> bool {
    let argument = match program {
        "go" => "version",
        "c++" => "--version",
        _ => "-version",
    };
    Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Makes sure of `programs`; tries `apt-get` once when it may.
pub fn programs(programs: &[&str]) -> anyhow::Result<()> {
    let missing = |programs: &[&str]| -> Vec<&'static (&'static str, &'static str)> {
        PROGRAMS.iter().filter(|(p, _)| programs.contains(p) && !present(p)).collect()
    };
    let before = missing(programs);
    if before.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = before.iter().map(|(_, package)| *package).collect();
    if may_install() {
        println!("    installing {}", packages.join(", "));
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "--no-install-recommends"]).args(&packages);
        let first = apt.stdout(Stdio::null()).status();
        if !first.is_ok_and(|s| s.success()) {
            Command::new("apt-get").arg("update").stdout(Stdio::null()).status().ok();
            apt.status().ok();
        }
    }
    let after = missing(programs);
    if after.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = after.iter().map(|(program, _)| *program).collect();
    let packages: Vec<&str> = after.iter().map(|(_, package)| *package).collect();
    bail!(
        "missing on this machine: {}; install them (Debian: apt-get install {})",
        names.join(", "),
        packages.join(" ")
    )
}

fn may_install() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    root && Command::new("apt-get").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// The directory with every jar; fetched on first use (about a minute).
pub fn jars() -> anyhow::Result<PathBuf> {
    let lab = match std::env::var_os("BASALT_INTEROP_CACHE") {
        Some(dir) => PathBuf::from(dir),
        None => cache_dir()?.join("basalt-interop"),
    };
    programs(&["java", "javac", "mvn"])?;
    let mut setup = Command::new("bash");
    setup.arg(scripts().join("setup.sh")).env("LAB", &lab).stdout(Stdio::null());
    run::must("fetching jars with Maven (network needed on first use)", &mut setup)?;
    Ok(lab)
}

fn cache_dir() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("XDG_CACHE_HOME") {
        return Ok(dir.into());
    }
    let home = std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cache"))
}

/// The scripts that run the real HBase and its tools.
pub fn scripts() -> PathBuf {
    run::root().join("tests/interop/real-hbase")
}
