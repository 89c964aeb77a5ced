//! Little memory, much work, large rows.

use std::sync::Arc;
use std::time::Duration;

use crate::lab::Lab;
use crate::load::{Shape, retried};
use crate::remote::{Admin, Remote, Table};
use crate::tools::MemoryCap;

const PATIENCE: Duration = Duration::from_secs(60);

/// F49: a cgroup's memory limit, found by the server itself: large values for a while, and the kernel never has to kill.
pub async fn f49_memory_cap(lab: &mut Lab) -> anyhow::Result<()> {
    let cap = MemoryCap::new(192)?;
    let mut site = lab.site()?;
    site.defines.retain(|define| !define.starts_with("basalt.memory.size") && !define.contains("memstore.flush.size"));
    site.cgroup = Some(cap.dir.clone());
    let shape = Shape { journal_clients: 8, value_bytes: 200_000, patience: PATIENCE, ..Shape::default() };
    let (mut server, mut load) = lab.start(&mut site, shape).await?;
    load.go();
    let mut most = 0;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        most = most.max(server.resident_mib());
        if !server.is_alive() {
            anyhow::bail!("the process was killed at {most} MiB: {}", server.last_words());
        }
    }
    lab.faults += 1;
    lab.rounds += 1;
    println!("    at most {most} MiB resident of 192, limit hit: {}", cap.hits());
    lab.expect(most < 192, || format!("{most} MiB resident"));
    load.progress(50, PATIENCE).await?;
    lab.verify(&mut load, &mut site, server).await
}

/// F49: more writes than memory for them: first slower, then refused with the exception that clients retry; memory stays
/// under its cap, and all goes on afterwards.
pub async fn f49_overload_is_refused(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    site.defines.retain(|define| !define.starts_with("basalt.memory.size"));
    site.define("basalt.memory.size", 24 << 20);
    site.define("hbase.hregion.memstore.flush.size", 64 << 20);
    site.define("hbase.hstore.flusher.count", 1);
    let shape = Shape { journal_clients: 16, value_bytes: 60_000, scan_clients: 1, ..Shape::default() };
    let (mut server, mut load) = lab.start(&mut site, shape).await?;
    // Syncs that cost nothing let writes outrun the flushes.
    load.go();
    let mut most = 0;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        most = most.max(server.resident_mib());
    }
    lab.faults += 1;
    lab.rounds += 1;
    println!("    at most {most} MiB resident; {}", load.failures());
    // Beside the budget there are the requests of 23 clients, blocks being written and read, and the process itself.
    lab.expect(server.is_alive() && most < 160, || format!("{most} MiB resident with a budget of 24"));
    load.progress(200, PATIENCE).await?;
    lab.verify(&mut load, &mut site, server).await
}

/// F49: cells at the limit, a row of a hundred thousand columns, a request over the limit.
pub async fn f49_huge_rows(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let server = site.start()?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    admin.create("wide", &[], true).await?;
    let remote = Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
    let table = Table::new("wide", remote);
    let said = |f: crate::remote::Failure| anyhow::anyhow!("{}", f.text().to_owned());
    for batch in 0..100 {
        let names: Vec<String> = (0..1000).map(|column| format!("{:06}", batch * 1000 + column)).collect();
        let columns: Vec<(&str, &str, &[u8])> = names.iter().map(|name| ("f", &name[..], name.as_bytes())).collect();
        retried(|| table.put(b"wide", &columns), PATIENCE).await.map_err(said)?;
        lab.tally.done += 1;
    }
    let row = table.get(b"wide").await.map_err(said)?;
    let columns = row.map_or(0, |row| row.cells.len());
    lab.expect(columns == 100_000, || format!("a row of 100000 columns has {columns}"));
    let large = vec![7; 10 * 1024 * 1024 - 200];
    let put = table.put(b"large", &[("f", "q", &large)]).await;
    lab.expect(put.is_ok(), || format!("a cell just under 10 MiB: {put:?}"));
    let over = vec![7; 10 * 1024 * 1024 + 1];
    let put = table.put(b"over", &[("f", "q", &over)]).await;
    lab.expect(put.is_err(), || "a cell over 10 MiB was taken".to_owned());
    let back = table.get(b"large").await.map_err(said)?;
    lab.expect(back.and_then(|row| row.value("f:q").map(<[u8]>::len)) == Some(large.len()), || "the large cell".into());
    lab.expect(matches!(table.get(b"over").await, Ok(None)), || "the refused cell is there".to_owned());
    lab.faults += 3;
    lab.rounds += 1;
    println!("    {} MiB resident", server.resident_mib());
    server.kill();
    let server = site.start()?;
    let columns = retried(|| table.get(b"wide"), PATIENCE).await.map_err(said)?.map_or(0, |row| row.cells.len());
    lab.expect(columns == 100_000, || format!("after a kill a row of 100000 columns has {columns}"));
    server.stop()
}
