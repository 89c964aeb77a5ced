//! `cargo xtask compare`, `gateways`, `neighbours`, `overload`, `scale`, `stall`, `tiers`: the program of `dev/compare`, beside the server that it measures.

use std::path::PathBuf;

use crate::{run, server};

/// Builds both as releases and hands `args` on.
pub fn run(command: &str, args: &[String]) -> anyhow::Result<()> {
    let mut compare = std::process::Command::new(built()?);
    run::must(command, compare.arg(command).args(args).env("BASALT_BINARY", server::binary()))
}

/// The program, built with the server, unless one is given in BASALT_BINARY.
pub fn built() -> anyhow::Result<PathBuf> {
    // One after the other: built together they would share the features of their dependencies, and the server be another than the one that
    // everything else has built.
    let mut packages = vec!["basalt-compare"];
    if server::given().is_none() {
        packages.push("basalt");
    }
    for package in packages {
        run::must("release build", run::cargo().args(["build", "--release", "--package", package]))?;
    }
    Ok(run::target_dir().join("release/compare"))
}
