//! `basalt snapshot`: what a snapshot holds, whether it is whole, and how it gets to another root directory. Follows: `SnapshotInfo`,
//! `ExportSnapshot`, `CreateSnapshot`.

pub(crate) mod copy;
mod create;
pub(crate) mod export;
pub(crate) mod files;
mod info;
mod verify;

use std::process::ExitCode;

use anyhow::bail;
use base::Config;

const USAGE: &str = "\
Snapshots in a root directory, without a server but for create.

Usage: basalt snapshot COMMAND [OPTIONS]

  create    has the cluster take a snapshot of a table
  info      what a snapshot holds, or which snapshots there are
  verify    whether all files of a snapshot are there and whole
  export    copies a snapshot with its files into another root directory
  import    the same from another root directory into this one

basalt snapshot COMMAND --help explains a command. The root directory is what hbase.rootdir says.

Examples:
  basalt snapshot info --list-snapshots
  basalt snapshot info --snapshot before --files
  basalt snapshot verify --snapshot before
  basalt snapshot export --snapshot before --copy-to /backup/hbase
  basalt snapshot import --snapshot before --copy-from /backup/hbase
";

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or a directory cannot be used.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    let Some((command, rest)) = given.split_first() else {
        print!("{USAGE}");
        return Ok(ExitCode::FAILURE);
    };
    match command.as_str() {
        "info" => info::run(config, rest),
        "verify" => verify::run(config, rest),
        "export" => export::run(config, rest, export::Direction::Out),
        "import" => export::run(config, rest, export::Direction::In),
        "-h" | "--help" | "-help" | "help" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        "create" => create::run(config, rest),
        other => bail!("snapshot: {other} is no command; basalt snapshot --help lists them"),
    }
}
