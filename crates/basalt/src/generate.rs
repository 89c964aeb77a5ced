//! Completions and man pages, from the command line's own definition: for packages.

use crate::cli::{Arguments, GenerateCommand};
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::path::Path;

/// Writes what was asked for: completions to standard output, man pages into a directory.
///
/// # Errors
/// The directory cannot be written to.
pub fn run(what: &GenerateCommand) -> Result<()> {
    match what {
        GenerateCommand::Completions { shell } => {
            clap_complete::generate(*shell, &mut Arguments::command(), "basalt", &mut std::io::stdout());
            Ok(())
        }
        GenerateCommand::Man { directory } => man_pages(directory),
    }
}

#[allow(clippy::disallowed_methods, reason = "a directory of the command line, and no volume")]
fn man_pages(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    clap_mangen::generate_to(Arguments::command(), directory)
        .with_context(|| format!("cannot write man pages into {}", directory.display()))
}
