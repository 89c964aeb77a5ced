//! Memory that comes back when what needed it is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::busy::said;
use crate::bystander::metrics;
use crate::lab::Lab;
use crate::remote::{Admin, Remote, Table};
use crate::site::{Server, Site};

const PATIENCE: Duration = Duration::from_secs(60);
const BUDGET_MIB: u64 = 512;
/// What the process may have beyond its memstores and the blocks in its cache.
const BESIDE_MIB: u64 = 100;
/// When it must have come to that.
const WITHIN: Duration = Duration::from_secs(60);
const TABLES: u64 = 3;
const ROWS: u64 = 6_000;
const ROW_BYTES: usize = 10_000;
const BATCH: u64 = 50;

/// F69: tables are written, read whole into the cache, and dropped; another load has passed. A minute later resident memory follows what
/// memstores and cache hold, and no block of a dropped file is in the cache.
pub async fn f69_memory_comes_back(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(BUDGET_MIB)?;
    let server = site.start()?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    let remote = Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
    for number in 0..TABLES {
        let name = format!("passing{number}");
        admin.create(&name, &[], true).await?;
        let table = Table::new(&name, remote.clone());
        fill(lab, &table).await?;
        let region = table.regions().await.map_err(said)?[0].1.clone();
        admin.flush(&region).await.map_err(said)?;
        for _ in 0..2 {
            let rows = table.scan(b"", b"", 100, PATIENCE).await.map_err(said)?;
            lab.expect(rows.len() as u64 == ROWS, || format!("{} rows of {ROWS} in {name}", rows.len()));
        }
    }
    let (memstores, cache) = in_use_mib(&site).await?;
    println!("    loaded: {memstores} MiB of memstores, {cache} MiB of blocks, {} MiB resident", server.resident_mib());
    lab.expect(cache > BESIDE_MIB, || format!("only {cache} MiB of blocks are cached: nothing is to be given back"));
    for number in 0..TABLES {
        admin.drop_table(&format!("passing{number}")).await?;
        lab.faults += 1;
    }
    until_back(lab, &site, &server, "tables were dropped").await?;
    let (_, cache) = in_use_mib(&site).await?;
    lab.expect(cache < 8, || format!("{cache} MiB of blocks are cached, of files that were dropped"));

    // A load that stays: what it needed beyond its cells and blocks comes back.
    admin.create("staying", &[], true).await?;
    let table = Table::new("staying", remote);
    fill(lab, &table).await?;
    until_back(lab, &site, &server, "a load had passed").await?;
    lab.rounds += 1;
    server.stop()
}

async fn fill(lab: &mut Lab, table: &Table) -> anyhow::Result<()> {
    for first in (0..ROWS).step_by(BATCH as usize) {
        // Bytes that do not compress: in the cache as in the file.
        let value = || (0..ROW_BYTES / 8).flat_map(|_| lab.rng.next_u64().to_be_bytes()).collect::<Vec<u8>>();
        let rows: Vec<(Vec<u8>, Vec<u8>)> =
            (first..first + BATCH).map(|row| (format!("{row:08}").into_bytes(), value())).collect();
        for outcome in table.put_all(&rows).await {
            outcome.map_err(said)?;
        }
        lab.tally.done += BATCH;
    }
    Ok(())
}

/// What memstores and the block cache hold.
async fn in_use_mib(site: &Site) -> anyhow::Result<(u64, u64)> {
    let page = metrics(&site.page).await?;
    let value = |name: &str| {
        let line = page.lines().find(|line| !line.starts_with('#') && line.contains(name));
        let number = line.and_then(|line| line.rsplit(' ').next()).and_then(|number| number.parse::<f64>().ok());
        number.map(|bytes| bytes as u64 >> 20).with_context(|| format!("no {name} among the metrics"))
    };
    Ok((value("memstores_held_bytes")?, value("block_cache_held_bytes")?))
}

/// Waits until resident memory follows what is in use, and says how long that took.
async fn until_back(lab: &mut Lab, site: &Site, server: &Server, after: &str) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let (memstores, cache) = in_use_mib(site).await?;
        let (resident, most) = (server.resident_mib(), memstores + cache + BESIDE_MIB);
        let (took, is_back) = (start.elapsed(), resident > 0 && resident <= most);
        if is_back || took > WITHIN {
            println!(
                "    {} s after {after}: {memstores} MiB of memstores, {cache} MiB of blocks, {resident} MiB resident",
                took.as_secs()
            );
            lab.expect(is_back, || format!("{resident} MiB resident a minute after {after}, {most} are allowed"));
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
