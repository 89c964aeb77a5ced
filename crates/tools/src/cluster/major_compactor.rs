//! `basalt majorcompactor`. Follows: `MajorCompactor`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use base::Config;
use client::{CompactionState, Connection, RegionLocation};

use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{defines, helped, on_cluster, table_name};

const USAGE: &str = "\
Compacts a table wholly, so many servers at the same time, one region of each.

Usage: basalt majorcompactor --table NAME [OPTIONS]

    --table NAME              the table
    --cf FAMILY,...           only these families
    --servers N               servers that work at the same time; 1
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
";

const KNOWN: &[Known] = &[
    valued("", "table"),
    valued("", "cf"),
    valued("", "servers"),
    valued("", "minModTime"),
    valued("", "sleep"),
    valued("", "retries"),
    valued("", "rootDir"),
    valued("", "zk"),
    valued("", "numservers"),
    valued("", "numregions"),
    flag("", "dryRun"),
    flag("", "skipWait"),
];

/// What is asked for.
#[derive(Clone)]
struct Asked {
    families: Vec<Option<Vec<u8>>>,
    sleep: Duration,
    retries: u32,
    wait: bool,
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
    let name = table_name(parsed.value("table").context("majorcompactor: --table is needed")?)?;
    let families = match parsed.value("cf") {
        Some(families) => families.split(',').map(|family| Some(family.as_bytes().to_vec())).collect(),
        None => vec![None],
    };
    let servers: usize = parsed.number("servers")?.unwrap_or(1).max(1);
    let now_ms = crate::log::Log::new("majorcompactor").now_ms();
    let before_ms: i64 = parsed.number("minModTime")?.unwrap_or(now_ms);
    let asked = Asked {
        families,
        sleep: Duration::from_millis(parsed.number("sleep")?.unwrap_or(30_000)),
        retries: parsed.number("retries")?.unwrap_or(3).max(1),
        wait: !parsed.has("skipWait"),
    };
    let dry_run = parsed.has("dryRun");
    on_cluster(&config, |connection| async move {
        let admin = connection.admin();
        if !admin.table_exists(&name).await? {
            bail!("there is no table {name}");
        }
        let mut by_server: BTreeMap<String, Vec<RegionLocation>> = BTreeMap::new();
        let mut passed_over = 0;
        for location in connection.table(&name).regions().await? {
            let region = location.region.encoded_name().to_string();
            let last_ms = admin.last_major_compaction_of_region(region.as_bytes()).await?;
            match last_ms >= before_ms {
                true => passed_over += 1,
                false if dry_run => println!("would compact {region} at {}", location.server),
                false => by_server.entry(location.server.to_string()).or_default().push(location),
            }
        }
        if dry_run {
            return Ok(());
        }
        let mut waiting = by_server.into_values();
        let mut under_way = tokio::task::JoinSet::new();
        let mut compacted = 0;
        loop {
            while under_way.len() < servers
                && let Some(regions) = waiting.next()
            {
                under_way.spawn(compact_server(connection.clone(), regions, asked.clone()));
            }
            match under_way.join_next().await {
                None => break,
                Some(done) => compacted += done.context("the compaction of a server's regions ended by itself")??,
            }
        }
        println!("Compacted {compacted} regions of {name}; {passed_over} were compacted since");
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
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
