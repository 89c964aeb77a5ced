//! `basalt majorcompactor`. Follows: `MajorCompactor`, `MajorCompactorTTL`, `RSGroupMajorCompactionTTL`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use base::Config;
use client::{Admin, CompactionState, Connection, RegionLocation};
use model::{TableDescriptor, TableName};

use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{defines, helped, on_cluster, table_name};

const USAGE: &str = "\
Compacts a table wholly, so many servers at the same time, one region of each.

Usage: basalt majorcompactor --table NAME [OPTIONS]
       basalt majorcompactor --ttl (--table NAME | --rs_group NAME) [OPTIONS]

    --table NAME              the table
    --rs_group NAME           with --ttl, every table of this group of region servers
    --ttl                     only regions with files that were not compacted wholly for as long as the shortest TTL
                              of the table's families: rows in them have expired. A table without a TTL is passed over
    --cf FAMILY,...           only these families
    --servers N               servers that work at the same time; 1
    --numservers N            regions of so many servers at most
    --numregions N            so many regions of each server at most
    --minModTime MS           only regions whose last major compaction is older; now unless given
    --sleep MS                pause between two looks; 30000
    --retries N               tries for each region; 3
    --dryRun                  names the regions, and compacts none
    --skipWait                asks for the compactions, and does not wait
    --help                    this text

Begun again, it goes on where it was: regions that were compacted since --minModTime are passed over.

Examples:
  basalt majorcompactor --table t --servers 3 --sleep 1000
  basalt majorcompactor --table t --cf f --minModTime 1700000000000 --dryRun
  basalt majorcompactor --ttl --rs_group reports --numregions 10
";

const KNOWN: &[Known] = &[
    valued("", "table"),
    valued("", "rs_group"),
    valued("", "cf"),
    valued("", "servers"),
    valued("", "minModTime"),
    valued("", "sleep"),
    valued("", "retries"),
    valued("", "rootDir"),
    valued("", "zk"),
    valued("", "numservers"),
    valued("", "numregions"),
    flag("", "ttl"),
    flag("", "dryRun"),
    flag("", "skipWait"),
];

/// What is asked for.
#[derive(Clone)]
struct Asked {
    families: Vec<Option<Vec<u8>>>,
    /// Only regions whose oldest file is older.
    before_ms: i64,
    /// The same by the table's TTL, at that time.
    expired_at_ms: Option<i64>,
    servers: usize,
    most_servers: usize,
    most_regions: usize,
    sleep: Duration,
    retries: u32,
    wait: bool,
    dry_run: bool,
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or a region cannot be compacted.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("majorcompactor", KNOWN, &rest)?;
    let ttl = parsed.has("ttl");
    let table = parsed.value("table").map(table_name).transpose()?;
    let group = parsed.value("rs_group").map(str::to_owned);
    if table.is_some() == group.is_some() || (group.is_some() && !ttl) {
        bail!("majorcompactor: --table is needed, or --ttl with --rs_group");
    }
    let families = match parsed.value("cf") {
        Some(families) => families.split(',').map(|family| Some(family.as_bytes().to_vec())).collect(),
        None => vec![None],
    };
    let now_ms = crate::log::Log::new("majorcompactor").now_ms();
    let asked = Asked {
        families,
        before_ms: parsed.number("minModTime")?.unwrap_or(now_ms),
        expired_at_ms: ttl.then_some(now_ms),
        servers: parsed.number("servers")?.unwrap_or(1).max(1),
        most_servers: parsed.number("numservers")?.unwrap_or(usize::MAX),
        most_regions: parsed.number("numregions")?.unwrap_or(usize::MAX),
        sleep: Duration::from_millis(parsed.number("sleep")?.unwrap_or(30_000)),
        retries: parsed.number("retries")?.unwrap_or(3).max(1),
        wait: !parsed.has("skipWait"),
        dry_run: parsed.has("dryRun"),
    };
    on_cluster(&config, |connection| async move {
        let admin = connection.admin();
        let tables = match (table, group) {
            (Some(table), _) => vec![table],
            (None, group) => tables_of_group(&admin, &group.unwrap_or_default()).await?,
        };
        for name in tables {
            let Some(table) = admin.describe(&name).await? else { bail!("there is no table {name}") };
            compact_table(&connection, &table, &asked).await?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn tables_of_group(admin: &Admin, group: &str) -> anyhow::Result<Vec<TableName>> {
    let found = admin.group(group).await?.with_context(|| format!("there is no group {group}"))?;
    found.tables.iter().map(|table| Ok(convert::from_proto::table_name(table)?)).collect()
}

async fn compact_table(connection: &Connection, table: &TableDescriptor, asked: &Asked) -> anyhow::Result<()> {
    let (name, admin) = (&table.name, connection.admin());
    let mut before_ms = asked.before_ms;
    if let Some(now_ms) = asked.expired_at_ms {
        let Some(shortest_ms) = table.families.values().filter_map(|family| family.ttl_ms()).min() else {
            println!("No family of {name} has a TTL: it is passed over");
            return Ok(());
        };
        before_ms = before_ms.min(now_ms.saturating_sub(shortest_ms));
    }
    let with_files = match asked.expired_at_ms {
        Some(_) => Some(regions_with_files(&admin).await?),
        None => None,
    };
    let mut by_server: BTreeMap<String, Vec<RegionLocation>> = BTreeMap::new();
    let mut passed_over = 0;
    for location in connection.table(name).regions().await? {
        let region = location.region.encoded_name().to_string();
        let oldest_ms = admin.last_major_compaction_of_region(region.as_bytes()).await?;
        // Nothing expires where there is no file.
        let has_files = with_files.as_ref().is_none_or(|with_files| with_files.contains(location.region.name()));
        if oldest_ms < before_ms && has_files {
            by_server.entry(location.server.to_string()).or_default().push(location);
        } else {
            passed_over += 1;
        }
    }
    let chosen = by_server.into_values().take(asked.most_servers).map(|mut regions| {
        regions.truncate(asked.most_regions);
        regions
    });
    if asked.dry_run {
        for location in chosen.flatten() {
            println!("would compact {} at {}", location.region.encoded_name(), location.server);
        }
        return Ok(());
    }
    let mut waiting = chosen;
    let mut under_way = tokio::task::JoinSet::new();
    let mut compacted = 0;
    loop {
        while under_way.len() < asked.servers
            && let Some(regions) = waiting.next()
        {
            under_way.spawn(compact_server(connection.clone(), regions, asked.clone()));
        }
        match under_way.join_next().await {
            None => break,
            Some(done) => compacted += done.context("the compaction of a server's regions ended by itself")??,
        }
    }
    let why = if asked.expired_at_ms.is_some() { "have no file that is due" } else { "were compacted since" };
    println!("Compacted {compacted} regions of {name}; {passed_over} {why}");
    Ok(())
}

/// Names of the regions that have store files, as their servers reported last.
async fn regions_with_files(admin: &Admin) -> anyhow::Result<BTreeSet<bytes::Bytes>> {
    let status = admin.cluster_status_of(&[proto::pb::Option::LiveServers]).await?;
    let loads = status.live_servers.into_iter().flat_map(|server| server.server_load.region_loads);
    Ok(loads.filter(|load| load.storefiles() > 0).map(|load| load.region_specifier.value).collect())
}

/// Compacts the regions of one server, one after the other.
async fn compact_server(connection: Connection, regions: Vec<RegionLocation>, asked: Asked) -> anyhow::Result<usize> {
    let admin = connection.admin();
    for location in &regions {
        let region = location.region.encoded_name().to_string();
        let mut tries = 0;
        loop {
            tries += 1;
            let mut done = Ok(());
            for family in &asked.families {
                done = admin.compact_region(region.as_bytes(), family.as_deref(), true).await;
            }
            match done {
                Ok(()) => break,
                Err(error) if tries >= asked.retries => {
                    return Err(anyhow::Error::from(error).context(format!("cannot compact region {region}")));
                }
                Err(_) => tokio::time::sleep(asked.sleep).await,
            }
        }
        while asked.wait && admin.region_compaction_state(region.as_bytes()).await? != CompactionState::None {
            tokio::time::sleep(asked.sleep).await;
        }
        println!("compacted {region} at {}", location.server);
    }
    Ok(regions.len())
}
