//! `cargo xtask compare`, `gateways`, `neighbours`, `overload`, `stall`: the program of `dev/compare`, beside the server that it measures.

use std::path::PathBuf;

use crate::{run, server};

/// Builds both as releases and hands `args` on.
pub fn run(command: &str, args: &[String]) -> anyhow::Result<()> {
    let mut compare = std::process::Command::new(built()?);
    run::must(command, compare.arg(command).args(args).env("BASALT_BINARY", server::binary()))
}

/// The program, built with the server, unless one is given in BASALT_BINARY.
pub fn built() -> anyhow::Result<PathBuf> {
    let mut cargo = run::cargo();
    cargo.args(["build", "--release", "--package", "basalt-compare"]);
    if std::env::var_os("BASALT_BINARY").is_none() {
        cargo.args(["--package", "basalt"]);
    }
    run::must("release build", &mut cargo)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| run::root().join("target"), PathBuf::from);
    Ok(target.join("release/compare"))
}
