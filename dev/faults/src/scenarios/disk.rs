//! A disk that is full, and is not any more.

use std::time::{Duration, Instant};

use anyhow::Context;

use crate::lab::Lab;
use crate::load::{Load, Shape, retried};
use crate::remote::{Remote, Table};
use crate::site::{Server, Site};
use crate::tools::SmallDisk;

const PATIENCE: Duration = Duration::from_secs(40);

async fn small(lab: &mut Lab) -> anyhow::Result<(SmallDisk, Site, Server, Load)> {
    let mut site = lab.site()?;
    let disk = SmallDisk::mount(&site.dir.join("disk"), 96)?;
    site.root = disk.dir.join("root");
    site.define("hbase.regionserver.hlog.blocksize", 2 << 20);
    let (server, load) = lab.start(&mut site, Shape { patience: Duration::from_secs(2), ..Shape::default() }).await?;
    Ok((disk, site, server, load))
}

/// Fills the disk until writes stand still; an error if they never do.
async fn fill(disk: &SmallDisk, load: &Load) -> anyhow::Result<()> {
    for _ in 0..100 {
        disk.fill(0)?;
        let before = load.tally();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let after = load.tally();
        if after.refused > before.refused {
            return Ok(());
        }
    }
    anyhow::bail!("the disk is full and no write is refused")
}

/// F6: full under load: reads go on, writes are refused with one clear message, the process lives, and all goes on by
/// itself when there is room again.
pub async fn f06_full_disk_and_back(lab: &mut Lab) -> anyhow::Result<()> {
    let (disk, mut site, mut server, mut load) = small(lab).await?;
    load.go();
    let reader = Table::new("faults", std::sync::Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE)));
    for _ in 0..4 {
        load.progress(300, PATIENCE).await?;
        let said_before = server.said().lines().count();
        fill(&disk, &load).await?;
        lab.sleep(1000, 6000).await;
        lab.faults += 1;
        if !server.is_alive() {
            anyhow::bail!("a full disk ended the server: {}", server.last_words());
        }
        let rows = reader.scan(b"s", b"t", 50, Duration::from_secs(5)).await;
        lab.expect(rows.as_ref().is_ok_and(|rows| rows.len() == 300), || {
            format!("reads do not go on while the disk is full: {:?}", rows.as_ref().map(Vec::len))
        });
        let said = server.said();
        let news: Vec<&str> = said.lines().skip(said_before).filter(|line| line.contains("read-only")).collect();
        lab.expect(news.len() == 1, || format!("one message should say it, {} did: {news:?}", news.len()));
        let lines = said.lines().count() - said_before;
        lab.expect(lines < 60, || format!("{lines} lines of log about one full disk"));
        disk.free()?;
        load.progress(300, Duration::from_secs(20)).await.context("room again, but writes do not go on")?;
        // The thread that says so looks after the logs now and then, on a busy machine later than the first writes.
        let (room_since, mut is_back) = (Instant::now(), false);
        while !is_back && room_since.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            is_back = server.said().lines().skip(said_before).any(|line| line.contains("room again"));
        }
        lab.expect(is_back, || "nothing says that writes go on".to_owned());
        lab.rounds += 1;
    }
    lab.expect(load.saw_refusal("RegionTooBusyException"), || {
        format!("writes are not refused with HBase's retryable exception: {}", load.failures())
    });
    lab.verify(&mut load, &mut site, server).await
}

/// F6: killed while the disk is full; a start then recovers or says why it cannot; all is there when there is room.
pub async fn f06_killed_on_a_full_disk(lab: &mut Lab) -> anyhow::Result<()> {
    let (disk, mut site, mut server, mut load) = small(lab).await?;
    load.go();
    for _ in 0..4 {
        load.progress(300, PATIENCE).await?;
        fill(&disk, &load).await?;
        lab.sleep(0, 1500).await;
        server.kill();
        load.server_is_dead();
        lab.faults += 1;
        // With nothing left at all, with a little, and with enough for half of what a start writes.
        disk.free()?;
        disk.fill([0, 16, 200][lab.rng.below(3) as usize])?;
        match site.start_within(Duration::from_secs(15)) {
            Ok(started) => started.kill(),
            Err(error) => {
                let said = format!("{error:#}");
                let fine = !said.contains("panicked")
                    && (said.contains("No space left") || said.contains("full") || said.contains("not ready"));
                lab.expect(fine, || format!("a start on a full disk: {said}"));
            }
        }
        load.server_is_dead();
        disk.free()?;
        server = site.start().context("a start with room again")?;
        lab.rounds += 1;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F6: started on a full disk that gets room later: it ends with one sentence, or waits and goes on by itself.
pub async fn f06_start_on_a_full_disk(lab: &mut Lab) -> anyhow::Result<()> {
    for leave_kib in [0, 8, 40, 150] {
        let mut site = lab.site()?;
        let disk = SmallDisk::mount(&site.dir.join("disk"), 16)?;
        site.root = disk.dir.join("root");
        site.define("hbase.regionserver.hlog.blocksize", 1 << 20);
        disk.fill(leave_kib)?;
        let started = site.start_within(Duration::from_secs(6));
        lab.faults += 1;
        lab.rounds += 1;
        let said = site.all_said();
        lab.expect(!said.contains("panicked"), || format!("{leave_kib} KiB: {said}"));
        if let Err(error) = &started {
            let clear = said.contains("No space left") || said.contains("full");
            lab.expect(clear, || format!("{leave_kib} KiB: nothing says that the disk is full: {error:#}"));
        }
        disk.free()?;
        let server = match started {
            // There was enough for a start: it goes on by itself.
            Ok(server) => server,
            Err(_) => site.start().with_context(|| format!("{leave_kib} KiB: a start with room again"))?,
        };
        let mut load = Load::prepare(&site.region, &site.master, Shape::default(), lab.rng.next_u64())
            .await
            .with_context(|| format!("{leave_kib} KiB: a table with room again"))?;
        load.go();
        load.progress(200, PATIENCE).await?;
        lab.verify(&mut load, &mut site, server).await?;
    }
    // A server that lives through it: the table's row is asked for, not its table's state.
    let mut site = lab.site()?;
    let disk = SmallDisk::mount(&site.dir.join("disk"), 16)?;
    site.root = disk.dir.join("root");
    let server = site.start()?;
    disk.fill(0)?;
    let admin = crate::remote::Admin::new(site.master.clone(), site.region.clone());
    let made = tokio::time::timeout(Duration::from_secs(5), admin.create("late", &[], true)).await;
    lab.expect(!matches!(made, Ok(Ok(()))), || "a table was made on a full disk".to_owned());
    lab.faults += 1;
    disk.free()?;
    let remote = std::sync::Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
    let outcome = retried(
        || async {
            let admin = crate::remote::Admin::new(site.master.clone(), site.region.clone());
            admin.create("second", &[], true).await.map_err(|e| crate::remote::Failure::Refused(e.to_string()))
        },
        PATIENCE,
    )
    .await;
    lab.expect(outcome.is_ok(), || format!("no table can be made with room again: {outcome:?}"));
    let table = Table::new("second", remote);
    let put = retried(|| table.put(b"a", &[("f", "q", b"v")]), PATIENCE).await;
    lab.expect(put.is_ok(), || format!("no row can be put with room again: {put:?}"));
    server.stop()
}
