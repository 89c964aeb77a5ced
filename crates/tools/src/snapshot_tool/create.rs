//! `basalt snapshot create`. Follows: `CreateSnapshot`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use proto::pb::SnapshotDescription;
use proto::pb::snapshot_description::Type;
use serde_json::json;

use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{helped, on_cluster, table_name};

const USAGE: &str = "\
Has the cluster take a snapshot of a table.

Usage: basalt snapshot create -t TABLE -n NAME [OPTIONS]

 -t,--table TABLE          the table
 -n,--name NAME            what the snapshot is called
 -s,--snapshot_type TYPE   FLUSH (memstores are flushed first), or SKIPFLUSH; FLUSH unless given
    --json                 one JSON object
    --help                 this text

Examples:
  basalt snapshot create -t orders -n before
  basalt snapshot create --table ns:users --name quick --snapshot_type SKIPFLUSH
";

const KNOWN: &[Known] = &[valued("t", "table"), valued("n", "name"), valued("s", "snapshot_type"), flag("", "json")];

pub(super) fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let parsed = arguments::parse("snapshot create", KNOWN, given)?;
    let table = table_name(parsed.value("table").context("snapshot create: --table is needed")?)?;
    let name = parsed.value("name").context("snapshot create: --name is needed")?.to_owned();
    let kind = match parsed.value("snapshot_type").map(str::to_uppercase).as_deref() {
        None | Some("FLUSH") => Type::Flush,
        Some("SKIPFLUSH") => Type::Skipflush,
        Some("DISABLED") => Type::Disabled,
        Some(other) => bail!("snapshot create: --snapshot_type {other}: FLUSH and SKIPFLUSH are known"),
    };
    let description = SnapshotDescription {
        name: name.clone(),
        table: Some(table.to_string()),
        r#type: Some(kind.into()),
        ..SnapshotDescription::default()
    };
    on_cluster(config, |connection| async move { Ok(connection.admin().take_snapshot(description).await?) })?;
    match parsed.has("json") {
        true => println!("{}", json!({"snapshot": name, "table": table.as_str()})),
        false => println!("Snapshot '{name}' of {table} is taken"),
    }
    Ok(ExitCode::SUCCESS)
}
