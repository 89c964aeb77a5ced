//! `basalt canary`. Follows: `CanaryTool`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use base::Config;
use client::{Connection, Put, ScanOptions, Table};
use filter::Filter;
use model::{Get, Scan, TableName};
use serde_json::json;

use super::session;
use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{defines, helped, on_cluster, table_name};

const USAGE: &str = "\
Reads from every region, or every server, and tells how long it took.

Usage: basalt canary [OPTIONS] [TABLE or SERVER]...

    -regionserver        one region of each server instead of every region
    -zookeeper           the quorum's members
    -allRegions          with -regionserver: every region of each server
    -writeSniffing       writes, too, into the table hbase:canary, which must be there
    -writeTable TABLE    into this table
    -t MS                how long all of it may take; 600000
    -e                   names of tables are regular expressions
    -f true|false        whether reads and writes that fail make the code 5; true unless given
    -treatFailureAsError, -failureAsError   the same as -f true
    -daemon              goes on for ever
    -interval SECONDS    pause between two rounds; 60
    -readTableTimeouts T=MS,...  how long reading a table should take; longer is told, and no failure
    -writeTableTimeout MS        the same for writing
    -json                one JSON object for each region
    -help                this text

Ends with 0 where all is well, 3 where it took too long, 4 where the connection failed, 5 where a read or write did; every region is tried.

Examples:
  basalt canary
  basalt canary -regionserver -t 10000
  basalt canary t1 t2 -json
  basalt canary -e 'users_.*'
  basalt canary -zookeeper
";

const KNOWN: &[Known] = &[
    flag("", "regionserver"),
    flag("", "zookeeper"),
    flag("", "allRegions"),
    flag("", "writeSniffing"),
    flag("", "treatFailureAsError"),
    flag("", "failureAsError"),
    flag("", "daemon"),
    flag("", "json"),
    flag("e", "regex"),
    valued("t", "timeout"),
    valued("f", "failOnError"),
    valued("", "interval"),
    valued("", "writeTable"),
    valued("", "readTableTimeouts"),
    valued("", "writeTableTimeout"),
    valued("", "permittedZookeeperFailures"),
];

const TIMEOUT: u8 = 3;
const INIT_ERROR: u8 = 4;
const FAILURE: u8 = 5;
const CANARY_TABLE: &str = "hbase:canary";

struct Asked {
    by_server: bool,
    all_regions: bool,
    write: Option<TableName>,
    fail_on_error: bool,
    json: bool,
    names: Vec<String>,
    /// Whether the names are regular expressions.
    by_pattern: bool,
    /// How long reading a table should take.
    limits: Vec<(String, u64)>,
    /// How long writing should take.
    write_limit: Option<u64>,
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given).filter(|_| !given.is_empty()) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("canary", KNOWN, &rest)?;
    let patience = Duration::from_millis(parsed.number("timeout")?.unwrap_or(600_000));
    let interval = Duration::from_secs(parsed.number("interval")?.unwrap_or(60));
    let forever = parsed.has("daemon") || parsed.has("interval");
    let write = match (parsed.value("writeTable"), parsed.has("writeSniffing")) {
        (Some(name), _) => Some(table_name(name)?),
        (None, true) => Some(table_name(CANARY_TABLE)?),
        (None, false) => None,
    };
    if parsed.has("regex") && parsed.has("regionserver") {
        bail!(
            "canary: -e takes regular expressions of tables only; with -regionserver give the start of the server names"
        );
    }
    let limit = |pair: &str| {
        let limit = pair.split_once('=').and_then(|(table, ms)| Some((table.to_owned(), ms.parse().ok()?)));
        limit.with_context(|| format!("-readTableTimeouts {pair} is not of the form table=ms"))
    };
    let limits = parsed.value("readTableTimeouts").unwrap_or_default().split(',').filter(|pair| !pair.is_empty());
    let asked = Asked {
        by_server: parsed.has("regionserver"),
        all_regions: parsed.has("allRegions"),
        write,
        // As in HBase 2.6, where both are the one setting hbase.canary.fail.on.error.
        fail_on_error: parsed.has("treatFailureAsError")
            || parsed.has("failureAsError")
            || parsed.value("failOnError").is_none_or(|value| value.eq_ignore_ascii_case("true")),
        json: parsed.has("json"),
        names: parsed.rest.clone(),
        by_pattern: parsed.has("regex"),
        limits: limits.map(limit).collect::<anyhow::Result<_>>()?,
        write_limit: parsed.number("writeTableTimeout")?,
    };
    let zookeeper = parsed.has("zookeeper");
    let own = config.clone();
    let code = on_cluster(&config, |connection| async move {
        loop {
            let round = async {
                match zookeeper {
                    true => quorum(&own, asked.json).await,
                    false => sniff(&connection, &asked).await,
                }
            };
            let code = match tokio::time::timeout(patience, round).await {
                Ok(code) => code?,
                Err(_) => {
                    eprintln!("basalt: canary: not done within {} ms", patience.as_millis());
                    TIMEOUT
                }
            };
            let code = if code == FAILURE && !asked.fail_on_error { 0 } else { code };
            if !forever || code != 0 {
                return Ok(code);
            }
            tokio::time::sleep(interval).await;
        }
    });
    match code {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) => {
            eprintln!("basalt: canary: {error:#}");
            Ok(ExitCode::from(INIT_ERROR))
        }
    }
}

/// Tells how a region did.
fn tell(asked: &Asked, what: &str, table: &str, region: &str, server: &str, outcome: &Result<Duration, String>) {
    let ms = outcome.as_ref().map_or(0, Duration::as_millis);
    match (asked.json, outcome) {
        (true, outcome) => println!(
            "{}",
            json!({"what": what, "table": table, "region": region, "server": server, "ms": ms as u64,
                   "error": outcome.as_ref().err()})
        ),
        (false, Ok(_)) => println!("{what} from {table} on {server} region {region} in {ms}ms"),
        (false, Err(why)) => println!("{what} from {table} on {server} region {region} failed: {why}"),
    }
}

async fn sniff(connection: &Connection, asked: &Asked) -> anyhow::Result<u8> {
    let admin = connection.admin();
    let all = admin.list_table_names(None, true).await?;
    let tables: Vec<TableName> = match asked.by_server || asked.names.is_empty() {
        true => all,
        false if asked.by_pattern => {
            let mut wanted = Vec::new();
            for pattern in &asked.names {
                let found = admin.list_table_names(Some(pattern), true).await?;
                if found.is_empty() {
                    bail!("no table matches {pattern}");
                }
                wanted.extend(found.into_iter().filter(|name| !wanted.contains(name)).collect::<Vec<_>>());
            }
            wanted
        }
        false => {
            let wanted: Vec<TableName> =
                asked.names.iter().map(|name| table_name(name)).collect::<anyhow::Result<_>>()?;
            if let Some(missing) = wanted.iter().find(|name| !all.contains(name)) {
                bail!("there is no table {missing}");
            }
            wanted
        }
    };
    let mut code = 0;
    let mut seen = std::collections::BTreeSet::new();
    for name in &tables {
        if !name.is_meta() && !admin.is_enabled(name).await? {
            continue;
        }
        let (table, start) = (connection.table(name), Instant::now());
        for location in table.regions().await? {
            let server = location.server.to_string();
            let is_named = asked.names.is_empty() || asked.names.iter().any(|name| server.starts_with(name.as_str()));
            if asked.by_server && (!is_named || (!seen.insert(server.clone()) && !asked.all_regions)) {
                continue;
            }
            let outcome = read(&table, &location.region.start_key).await;
            tell(asked, "Read", name.as_str(), location.region.encoded_name(), &server, &outcome);
            if outcome.is_err() {
                code = FAILURE;
            }
        }
        let limit = asked.limits.iter().find(|(table, _)| table == name.as_str()).map(|(_, ms)| *ms);
        if let Some(limit) = limit.filter(|limit| start.elapsed() > Duration::from_millis(*limit)) {
            eprintln!("basalt: canary: reading {name} took {} ms, more than {limit}", start.elapsed().as_millis());
        }
    }
    if asked.by_server && !asked.names.is_empty() && seen.is_empty() {
        bail!("no server is called like {}", asked.names.join(", "));
    }
    if let Some(name) = &asked.write {
        code = code.max(write(connection, name, asked).await?);
    }
    Ok(code)
}

/// Reads the first row of a region: by a get where it has a key, by a scan of one row where it has none.
async fn read(table: &Table, start: &bytes::Bytes) -> Result<Duration, String> {
    let begun = Instant::now();
    let done = match start.is_empty() {
        false => table.get(&Get::new(start.clone())).await.map(|_| ()),
        true => {
            let filter = Some(std::sync::Arc::new(Filter::FirstKeyOnly));
            let scan = Scan { filter, cache_blocks: false, ..Scan::default() };
            let options = ScanOptions { caching: 1, limit: Some(1), ..table.scan_options() };
            table.scan(scan, options).next().await.map(|_| ())
        }
    };
    done.map(|()| begun.elapsed()).map_err(|error| error.to_string())
}

/// Writes a small value into each region of a table.
async fn write(connection: &Connection, name: &TableName, asked: &Asked) -> anyhow::Result<u8> {
    let described = connection.admin().describe(name).await?;
    let described = described.with_context(|| format!("there is no table {name} to write into"))?;
    let family = described.families.keys().next().cloned().with_context(|| format!("{name} has no family"))?;
    let (table, all) = (connection.table(name), Instant::now());
    let mut code = 0;
    for location in table.regions().await? {
        // The first row of a table has no key.
        let row = if location.region.start_key.is_empty() { &b"\0"[..] } else { &location.region.start_key };
        let begun = Instant::now();
        let done = table.put(&Put::new(row).add(&family, "canary", "1").build()).await;
        let outcome = done.map(|()| begun.elapsed()).map_err(|error| error.to_string());
        let (region, server) = (location.region.encoded_name().clone(), location.server.to_string());
        tell(asked, "Write", name.as_str(), &region, &server, &outcome);
        if outcome.is_err() {
            code = FAILURE;
        }
    }
    let took_ms = all.elapsed().as_millis();
    if let Some(limit) = asked.write_limit.filter(|limit| took_ms > u128::from(*limit)) {
        eprintln!("basalt: canary: writing into {name} took {took_ms} ms, more than {limit}");
    }
    Ok(code)
}

/// Reads HBase's base node.
async fn quorum(config: &Config, json: bool) -> anyhow::Result<u8> {
    let begun = Instant::now();
    let (mut session, parent) = session(config).await?;
    let node = if parent.is_empty() { "/".to_owned() } else { parent };
    let found = session.stat(&node).await?.is_some();
    session.close().await;
    let ms = begun.elapsed().as_millis() as u64;
    match (json, found) {
        (true, _) => println!("{}", json!({"what": "ZooKeeper", "node": node, "found": found, "ms": ms})),
        (false, true) => println!("Read node {node} of ZooKeeper in {ms}ms"),
        (false, false) => println!("ZooKeeper has no node {node}"),
    }
    Ok(if found { 0 } else { FAILURE })
}
