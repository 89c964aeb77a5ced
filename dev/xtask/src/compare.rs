//! `cargo xtask compare`, `gateways`, `neighbours`, `overload`, `scale`, `slow-volume`, `stall`, `tiers`, `warm-cache`: the program of `dev/compare`, beside the server that it measures.

use std::path::PathBuf;

use crate::{on_hdfs, run, server};

/// Below a master of HBase's, on a real HDFS and ZooKeeper.
const ON_HDFS: &str = "--on-hdfs";

/// Builds both as releases and hands `args` on; a comparison on HDFS is arranged here.
pub fn run(command: &str, args: &[String]) -> anyhow::Result<()> {
    if command == "compare" && args.iter().any(|word| word == ON_HDFS) {
        let words: Vec<String> = args.iter().filter(|word| *word != ON_HDFS).cloned().collect();
        return on_hdfs::run(&words);
    }
    let mut compare = std::process::Command::new(built()?);
    run::must(command, compare.arg(command).args(args).env("BASALT_BINARY", server::binary()))
}

/// The program, built with the server, unless one is given in BASALT_BINARY.
pub fn built() -> anyhow::Result<PathBuf> {
    // One after the other: built together they would share the features of their dependencies, and the server be another than the one that
    // everything else has built.
    let program = program()?;
    if server::given().is_none() {
        run::must("release build", run::cargo().args(["build", "--release", "--package", "basalt"]))?;
    }
    Ok(program)
}

/// The program alone.
pub fn program() -> anyhow::Result<PathBuf> {
    run::must("release build", run::cargo().args(["build", "--release", "--package", "basalt-compare"]))?;
    Ok(run::target_dir().join("release/compare"))
}
