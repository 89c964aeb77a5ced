//! `basalt hbck`: what is wrong with a root directory or with a running cluster, and the repairs of hbck2. Follows: `HBaseFsck`, `HBCK2`.

mod chain;
mod cluster;
mod repair;
mod root;

use std::process::ExitCode;

use anyhow::bail;
use base::Config;
use serde_json::json;

use crate::arguments::{self, Known, flag, valued};
use crate::files;
use crate::jobs::{defines, on_cluster};

const USAGE: &str = "\
What is wrong with a cluster, and repairs.

Usage: basalt hbck [-D KEY=VALUE]... [TABLE]...              looks at a running cluster
       basalt hbck --root DIRECTORY [--read] [TABLE]...     looks at a root directory, without a server
       basalt hbck COMMAND [OPTIONS] [ARGUMENTS]...         a repair, by the master

Checks: holes and overlaps between the regions of a table, regions that no server has or two have, directories that are no region's,
tables without a descriptor, files that cannot be read, references and links to files that are not there.

    --root DIRECTORY   HBase's root directory
    --read             reads every cell of every file; else the head of each
    --json             one JSON object for each finding, and one at the end
    --help             this text

Commands, as hbck2 has them:
  assigns [-o] REGION...              opens regions, by their encoded names
  unassigns [-o] REGION...            closes regions
  bypass [-o] [-r] [-w SECONDS] PID... ends procedures without what they still have to do
  setTableState TABLE STATE           ENABLED, DISABLED, ENABLING or DISABLING, in hbase:meta alone; prints what it was
  setRegionState REGION STATE         the same for a region: OPEN, CLOSED, ...
  scheduleRecoveries SERVER...        takes servers for crashed
  recoverUnknown                      the same for servers that the master does not know
  fixMeta                             mends holes and overlaps of hbase:meta
  runHbckChore                        has the master compare its view with files and servers
  -o: also what another procedure has; -r: with the children

Ends with 0 where nothing is wrong, with 1 where something is, with 2 where it cannot be looked at.

Examples:
  basalt hbck
  basalt hbck --root /data/hbase --read t1 ns:t2 --json
  basalt hbck assigns 1588230740 de00010733901a05f5a2a3a382e27dd4
  basalt hbck setTableState users ENABLED
";

const KNOWN: &[Known] = &[
    valued("", "root"),
    valued("j", "jar"),
    valued("w", "lockWait"),
    flag("", "read"),
    flag("", "json"),
    flag("o", "override"),
    flag("r", "recursive"),
    flag("d", "details"),
    flag("v", "verbose"),
    flag("s", "skip"),
];

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// Its kind, in one word.
    pub kind: &'static str,
    /// The table; empty where there is none.
    pub table: String,
    /// What and where.
    pub what: String,
}

impl Finding {
    pub fn new(kind: &'static str, table: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { kind, table: table.into(), what: what.into() }
    }
}

/// What a check came to.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub findings: Vec<Finding>,
    pub tables: u64,
    pub regions: u64,
    pub files: u64,
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or there is nothing to look at.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if arguments::wants_help(given) {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("hbck", KNOWN, &rest)?;
    if let Some((command, arguments)) = parsed.rest.split_first()
        && repair::is_command(command)
    {
        return repair::run(&config, command, arguments, &parsed);
    }
    let tables: Vec<String> = parsed.rest.clone();
    for table in &tables {
        crate::jobs::table_name(table)?;
    }
    let report = match parsed.value("root") {
        Some(place) => {
            let volume = files::root(&files::place(place)?)?;
            root::check(&config, &*volume, &tables, parsed.has("read"))?
        }
        None if parsed.has("read") => bail!("hbck: --read is for --root: files are read without a server"),
        None => on_cluster(&config, |connection| async move { cluster::check(&connection, &tables).await })?,
    };
    Ok(print(&report, parsed.has("json")))
}

fn print(report: &Report, as_json: bool) -> ExitCode {
    for finding in &report.findings {
        let Finding { kind, table, what } = finding;
        match as_json {
            true => println!("{}", json!({"kind": kind, "table": table, "what": what})),
            false if table.is_empty() => println!("ERROR {kind}: {what}"),
            false => println!("ERROR {kind}: table {table}: {what}"),
        }
    }
    let (count, Report { tables, regions, files, .. }) = (report.findings.len(), report);
    let status = if count == 0 { "OK" } else { "INCONSISTENT" };
    match as_json {
        true => println!(
            "{}",
            json!({"status": status, "inconsistencies": count, "tables": tables, "regions": regions, "files": files})
        ),
        false => {
            println!("{tables} tables, {regions} regions, {files} files");
            println!("{count} inconsistencies detected.\nStatus: {status}");
        }
    }
    ExitCode::from(u8::from(count > 0))
}
