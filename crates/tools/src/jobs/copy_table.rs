//! `basalt copytable`. Follows: `CopyTable`.

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use client::{Connection, Options};
use serde_json::json;
use tokio::sync::mpsc;

use super::hfile_output::HFileOutput;
use super::import::mutations;
use super::{Work, defines, helped, on_cluster, scan, table_name};
use crate::arguments::{self, Known, flag, valued};
use crate::files;
use crate::places::Source;
use model::Durability;

const USAGE: &str = "\
Copies a table, or a part of it, into another table, of this cluster or of another.

Usage: basalt copytable [-D KEY=VALUE]... [OPTIONS] TABLE

    --new.name=NAME             the other table, which must be there; the same name unless given
    --peer.adr=QUORUM           the other cluster: host[,host...][:port][:/base-node]
    --peer.uri=URI              the same as hbase+zk://... or hbase+rpc://...
    --startrow=ROW              first row (bytes as \\xNN)
    --stoprow=ROW               the first row that is not copied any more
    --starttime=MS, --endtime=MS, --versions=N
    --families=F,OLD:NEW,...    only these families, some called otherwise there
    --snapshot                  TABLE is a snapshot's name: a table is cloned from it for as long as the copy takes; --new.name is needed
    --all.cells                 markers of deletes and deleted cells, too
    --bulkload                  by HFiles, which are loaded into the other table of this cluster; they are in hbase.fs.tmp.dir
                                meanwhile, or where TMPDIR says
    --json                      one JSON object
    --help                      this text

Copying again changes nothing: cells keep their times.

Examples:
  basalt copytable --new.name=t2 t
  basalt copytable --bulkload --new.name=t2 t
  basalt copytable --snapshot --new.name=t2 before
  basalt copytable --peer.adr=zk1,zk2,zk3:2181:/hbase --families=f,old:new --starttime=1700000000000 t
";

const KNOWN: &[Known] = &[
    valued("", "new.name"),
    valued("", "peer.adr"),
    valued("", "peer.uri"),
    valued("", "startrow"),
    valued("", "stoprow"),
    valued("", "starttime"),
    valued("", "endtime"),
    valued("", "versions"),
    valued("", "families"),
    valued("", "rs.class"),
    valued("", "rs.impl"),
    flag("", "all.cells"),
    flag("", "bulkload"),
    flag("", "snapshot"),
    flag("", "json"),
];
/// Rows that wait for being written, of each part.
const WAITING_ROWS: usize = 1_000;
/// Bytes that are gathered before they are sent.
const BUFFER_BYTES: usize = 4 << 20;

/// `quorum:port:/base-node` as a connection string.
pub(super) fn peer(address: &str) -> anyhow::Result<Options> {
    let wrong = || format!("{address} names no cluster: it is of the form host[,host...][:port][:/base-node]");
    let mut parts = address.splitn(3, ':');
    let hosts = parts.next().filter(|hosts| !hosts.is_empty()).with_context(wrong)?;
    let port = parts.next().filter(|port| !port.is_empty()).unwrap_or("2181");
    let port: u16 = port.parse().ok().with_context(wrong)?;
    let hosts: Vec<String> = hosts.split(',').map(|host| format!("{}:{port}", host.trim())).collect();
    let node = parts.next().unwrap_or("/hbase");
    if !node.starts_with('/') {
        bail!("{}", wrong());
    }
    Ok(Options::zookeeper(&format!("{}{node}", hosts.join(","))))
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, a table cannot be read or written.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("copytable", KNOWN, &rest)?;
    for refused in ["rs.class", "rs.impl"] {
        if parsed.has(refused) {
            bail!("copytable: --{refused} is not supported: cells are read and written through the tables");
        }
    }
    let [table] = parsed.rest.as_slice() else { bail!("copytable: one table is needed") };
    let is_snapshot = parsed.has("snapshot");
    if is_snapshot && !parsed.has("new.name") {
        bail!("copytable: --new.name says where the snapshot's rows go");
    }
    let from = match is_snapshot {
        true => table_name(&format!("basalt_copytable_{}", base::Rng::from_system().uuid_hex()))?,
        false => table_name(table)?,
    };
    let to = table_name(parsed.value("new.name").unwrap_or(table))?;
    let other = match (parsed.value("peer.adr"), parsed.value("peer.uri")) {
        (Some(address), _) => Some(peer(address)?),
        (None, Some(uri)) => Some(Options::parse(uri).map_err(|error| anyhow::anyhow!("{error}"))?),
        (None, None) => None,
    };
    if parsed.has("bulkload") && other.is_some() {
        bail!("copytable: --bulkload goes into a table of this cluster: the other one's servers have other disks");
    }
    if other.is_none() && from == to {
        bail!("copytable: {from} would be copied onto itself: --new.name or --peer.adr says where it goes");
    }
    let mut wanted = scan::of_settings(&config)?;
    let row = |name: &str| parsed.value(name).map(|row| bytes::Bytes::from(cell::print::to_bytes_binary(row)));
    wanted.start_row = row("startrow").unwrap_or(wanted.start_row);
    wanted.stop_row = row("stoprow").unwrap_or(wanted.stop_row);
    wanted.raw = parsed.has("all.cells");
    wanted.max_versions = match parsed.number("versions")? {
        Some(versions) => versions,
        None if wanted.raw => i32::MAX as u32,
        None => wanted.max_versions,
    };
    let (start, end) = (parsed.number("starttime")?, parsed.number("endtime")?);
    if start.is_some() || end.is_some() {
        wanted.time_range = scan::time_range(start.unwrap_or(0), end.unwrap_or(i64::MAX))?;
    }
    let mut families = HashMap::new();
    for family in parsed.value("families").unwrap_or_default().split(',').filter(|family| !family.is_empty()) {
        let (old, new) = family.split_once(':').unwrap_or((family, family));
        scan::add_column(&mut wanted, old);
        families.insert(old.as_bytes().to_vec(), new.as_bytes().to_vec());
    }
    let (settings, is_bulk, snapshot) = (config.clone(), parsed.has("bulkload"), table.clone());
    let (shown, rows) = (
        to.clone(),
        on_cluster(&config, |connection| async move {
            let target = other.map_or_else(|| connection.clone(), Connection::open);
            let admin = connection.admin();
            if is_snapshot {
                if !target.admin().table_exists(&to).await? {
                    bail!("there is no table {to}");
                }
                admin.clone_snapshot(&snapshot, &from).await?;
            }
            for (connection, name) in [(&connection, &from), (&target, &to)] {
                if !connection.admin().table_exists(name).await? {
                    bail!("there is no table {name}");
                }
            }
            let work = Work::new(&settings, connection.table(&from), wanted, "copytable");
            let copied = match is_bulk {
                true => copy_by_files(work, &connection, &settings, &to, families).await,
                false => copy(work, target.table(&to), families).await,
            };
            if is_snapshot {
                admin.disable_table(&from).await?;
                admin.delete_table(&from).await?;
            }
            copied
        })?,
    );
    match parsed.has("json") {
        true => println!("{}", json!({"from": table, "to": shown.as_str(), "rows": rows})),
        false => println!("Copied {rows} rows of {table} into {shown}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads all parts, and writes what they bring by a task for each, which the readers wait for when it is behind.
async fn copy(work: Work, to: client::Table, families: HashMap<Vec<u8>, Vec<u8>>) -> anyhow::Result<u64> {
    let (send, mut receive) = mpsc::channel::<client::Row>(WAITING_ROWS);
    let writer = tokio::spawn(async move {
        let mut buffer = to.buffered(BUFFER_BYTES);
        let mut rows = 0_u64;
        while let Some(row) = receive.recv().await {
            rows += 1;
            for mutation in mutations(row.cells(), &families, Durability::UseDefault) {
                buffer.mutate(mutation).await?;
            }
        }
        buffer.flush().await?;
        anyhow::Ok(rows)
    });
    let read = work.feed(send).await;
    let written = writer.await.context("the writer ended by itself")?;
    // What the writer met is why the readers could not go on.
    let rows = written?;
    read?;
    Ok(rows)
}

/// Reads all parts, sorts what they bring into HFiles, and loads them.
async fn copy_by_files(
    work: Work,
    connection: &Connection,
    config: &Config,
    to: &model::TableName,
    families: HashMap<Vec<u8>, Vec<u8>>,
) -> anyhow::Result<u64> {
    let descriptor = connection.admin().describe(to).await?.with_context(|| format!("there is no table {to}"))?;
    let starts: Vec<_> = connection.table(to).start_end_keys().await?.into_iter().map(|(start, _)| start).collect();
    let tmp = config.text("hbase.fs.tmp.dir").map(files::place).transpose()?.unwrap_or_else(std::env::temp_dir);
    let place = tmp.join(format!("basalt-copytable-{}", base::Rng::from_system().uuid_hex()));
    let (dir, settings) = (place.clone(), config.clone());
    let (send, mut receive) = mpsc::channel::<client::Row>(WAITING_ROWS);
    let sorting = tokio::task::spawn_blocking(move || {
        let mut output = HFileOutput::new(&settings, &dir, &descriptor, starts)?;
        let mut rows = 0_u64;
        while let Some(row) = receive.blocking_recv() {
            rows += 1;
            for mutation in mutations(row.cells(), &families, Durability::UseDefault) {
                mutation.cells.iter().try_for_each(|cell| output.add(cell))?;
            }
        }
        anyhow::Ok((output, rows))
    });
    let read = work.feed(send).await;
    // What the thread met is why the readers could not go on.
    let (output, rows) = sorting.await.context("sorting ended by itself")??;
    read?;
    let written = tokio::task::spawn_blocking(move || output.finish()).await.context("sorting ended by itself")??;
    let loaded = match written.files {
        0 => Ok(()),
        _ => {
            let (source, dir) = (Source::everything()?, files::path_of(&place)?);
            super::bulk_load::load_dir(connection, config, to, &source, &dir).await.map(drop)
        }
    };
    // Also where it failed: what is left in it is copies.
    let _ = std::fs::remove_dir_all(&place);
    loaded?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Registry;

    #[test]
    fn a_peer_is_a_quorum_a_port_and_a_node() {
        let registry = |address: &str| peer(address).expect("legal").registry;
        assert_eq!(
            registry("a,b:2182:/x"),
            Registry::ZooKeeper { quorum: vec!["a:2182".into(), "b:2182".into()], znode_parent: "/x".into() }
        );
        assert_eq!(registry("a"), Registry::ZooKeeper { quorum: vec!["a:2181".into()], znode_parent: "/hbase".into() });
        assert!(peer("").is_err() && peer("a:b").is_err() && peer("a:1:x").is_err());
    }
}
