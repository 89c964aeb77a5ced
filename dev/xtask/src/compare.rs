//! `cargo xtask compare`, `gateways`, `neighbours`, `overload`, `scale`, `stall`: the program of `dev/compare`, beside the server that it measures.

use std::path::PathBuf;

use crate::{run, server};

/// Builds both as releases and hands `args` on.
pub fn run(command: &str, args: &[String]) -> anyhow::Result<()> {
    let mut compare = std::process::Command::new(built()?);
    run::must(command, compare.arg(command).args(args).env("BASALT_BINARY", server::binary()))
}

/// The program as the tests are built, from what they have built already: minutes sooner than [`built`], and good enough where only what is out of
/// all proportion is to be noticed. The server is not built.
pub fn built_like_tests() -> anyhow::Result<PathBuf> {
    let mut build = run::cargo();
    build.args(["build", "--profile", "test", "--bin", "compare"]).args(run::EVERYTHING);
    run::must("build of the measuring client", &mut build)?;
    Ok(run::target_dir().join("debug/compare"))
}

/// The program, built with the server, unless one is given in BASALT_BINARY.
pub fn built() -> anyhow::Result<PathBuf> {
    // One after the other: built together they would share the features of their dependencies, and the server be another than the one that
    // everything else has built.
    let mut packages = vec!["basalt-compare"];
    if std::env::var_os("BASALT_BINARY").is_none() {
        packages.push("basalt");
    }
    for package in packages {
        run::must("release build", run::cargo().args(["build", "--release", "--package", package]))?;
    }
    Ok(run::target_dir().join("release/compare"))
}
