//! Fuzzers for every decoder of bytes that come from outside, and where their seeds come from.
//!
//! A [`Target`] is a function of bytes. `cargo xtask fuzz` runs each under libFuzzer (the program `engine`, built with
//! coverage counters); the program `fuzz` lists them, writes seeds and plays files again; the tests give each target all its seeds
//! and all that was ever found (`corpus/<target>/`).
//!
//! Always true: whatever the bytes, a target returns: no panic, no loop, no memory by a length that was only claimed. Where
//! a decoder has an encoder, what was read is written and read again, and must be the same.
//!
//! Must not know: processes, disks. Files are in memory, the server is the simulator's. Sockets: only those of this machine that the client
//! under test is given.

mod golden;
mod targets;

use anyhow::Context;
use std::path::Path;

/// A decoder, driven by bytes.
pub struct Target {
    /// Its name on the command line and in paths.
    pub name: &'static str,
    /// What is decoded.
    pub about: &'static str,
    /// Longest input that is tried, in bytes.
    pub max_len: usize,
    /// Words that inputs are made of.
    pub words: &'static [&'static str],
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Does it. Any panic is a finding.
    pub run: fn(&[u8]),
}

pub use targets::ALL;

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}

/// A line for each target: name, longest input, what it is.
pub fn list() -> String {
    ALL.iter().map(|target| format!("{} {} {}\n", target.name, target.max_len, target.about)).collect()
}

/// Makes a folder of seeds and a dictionary for each target in `directory`.
///
/// # Errors
/// A folder that cannot be written, named.
#[allow(clippy::disallowed_methods, reason = "a tool on a developer's files")]
pub fn write_seeds(directory: &Path) -> anyhow::Result<()> {
    for target in ALL {
        let folder = directory.join(target.name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot clear {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("{number:04}")), seed)?;
        }
        let words: String = target.words.iter().map(|word| format!("\"{word}\"\n")).collect();
        std::fs::write(directory.join(format!("{}.dict", target.name)), words)?;
    }
    Ok(())
}
