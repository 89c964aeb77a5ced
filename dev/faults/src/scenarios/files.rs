//! Files that are not what they should be, or that change under a reader.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;

use crate::lab::Lab;
use crate::load::{Shape, retried};
use crate::remote::{Admin, Remote, Table};

const PATIENCE: Duration = Duration::from_secs(30);

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

/// F16: log files of no bytes, and of every part of a header, beside whole ones: the start goes on, and nothing is
/// lost.
pub async fn f16_empty_and_headless_logs(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for round in 0..4usize {
        load.progress(200, PATIENCE).await?;
        server.kill();
        load.server_is_dead();
        let logs = files_below(&site.root.join("WALs"));
        let whole = logs.iter().find(|log| log.metadata().is_ok_and(|m| m.len() > 200)).context("no log")?.clone();
        let bytes = std::fs::read(&whole)?;
        for (nth, cut) in [0, 1, 3, 4, 7, 8, 20 + round * 9, 60].into_iter().enumerate() {
            let name = whole.file_name().context("a name")?.to_string_lossy().into_owned();
            let (front, back) = name.rsplit_once('.').context("a log's name ends in a time")?;
            // Meta logs end in `.meta`: the time stands before.
            let torn = match back {
                "meta" => format!("{front}9{nth}.meta"),
                time => format!("{front}.{time}9{nth}"),
            };
            std::fs::write(whole.with_file_name(torn), &bytes[..cut.min(bytes.len())])?;
            lab.faults += 1;
        }
        server = site.start().context("a start with torn logs")?;
        lab.rounds += 1;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F20: a table is deleted and the process killed while the log still has its edits: recovery does not make it again.
pub async fn f20_table_deleted_before_replay(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for round in 0..4 {
        let name = format!("gone{round}");
        let admin = Admin::new(site.master.clone(), site.region.clone());
        admin.create(&name, &["m"], true).await?;
        let remote = Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
        let table = Table::new(&name, remote);
        for row in 0..50 {
            let row = format!("{}{row}", if row % 2 == 0 { "a" } else { "z" });
            let put = retried(|| table.put(row.as_bytes(), &[("f", "q", b"v"), ("g", "q", b"v")]), PATIENCE).await;
            put.map_err(|f| anyhow::anyhow!("{}", f.text()))?;
        }
        admin.drop_table(&name).await?;
        lab.sleep(0, 50).await;
        server.kill();
        load.server_is_dead();
        lab.faults += 1;
        server = site.start().context("a start after a table was deleted")?;
        let dir = site.root.join("data/default").join(&name);
        lab.expect(!dir.exists(), || format!("recovery has made {name} again: {:?}", files_below(&dir)));
        load.progress(100, PATIENCE).await?;
        lab.rounds += 1;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F39: scans, gets and writes while every region is flushed, compacted and its log rolled without pause.
pub async fn f39_scan_while_files_change(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let shape = Shape { scan_clients: 5, value_bytes: 200, ..Shape::default() };
    let (server, mut load) = lab.start(&mut site, shape).await?;
    load.go();
    load.progress(100, PATIENCE).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let (region, master, stopped) = (site.region.clone(), site.master.clone(), stop.clone());
    let stirrer = tokio::spawn(async move {
        let admin = Admin::new(master, region.clone());
        let table = Table::new("faults", Arc::new(Remote::new(region, "ClientService", PATIENCE)));
        let mut changes = 0u64;
        while !stopped.load(Ordering::Relaxed) {
            for (_, name) in table.regions().await.unwrap_or_default() {
                let major = changes.is_multiple_of(3);
                // A region that is busy flushing already is as good.
                changes += u64::from(admin.flush(&name).await.is_ok());
                changes += u64::from(admin.compact(&name, major).await.is_ok());
            }
            changes += u64::from(admin.roll().await.is_ok());
        }
        changes
    });
    tokio::time::sleep(Duration::from_secs(6)).await;
    stop.store(true, Ordering::Relaxed);
    lab.faults += stirrer.await?;
    lab.rounds += 1;
    lab.verify(&mut load, &mut site, server).await
}

/// F47, as an operator meets it: a flipped byte in a store file is never served; the answer and the log name the file,
/// the other regions and the process go on; with the file restored all is as before.
pub async fn f47_flipped_byte_is_named(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    load.progress(300, PATIENCE).await?;
    load.finish().await?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    let remote = Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
    let table = Table::new("faults", remote.clone());
    let regions = table.regions().await.map_err(|f| anyhow::anyhow!("{}", f.text()))?;
    for (_, name) in &regions {
        admin.flush(name).await.map_err(|f| anyhow::anyhow!("{}", f.text()))?;
    }
    server.stop()?;
    // The region of the fixed rows' second half: its file of the family f.
    let encoded = {
        let name = String::from_utf8_lossy(&regions.last().context("regions")?.1).into_owned();
        name.trim_end_matches('.').rsplit('.').next().unwrap_or_default().to_owned()
    };
    let dir = site.root.join("data/default/faults").join(&encoded).join("f");
    let file = files_below(&dir).into_iter().find(|f| f.metadata().is_ok_and(|m| m.len() > 100)).context("a file")?;
    let name = file.file_name().context("a name")?.to_string_lossy().into_owned();
    let good = std::fs::read(&file)?;
    let len = good.len();
    // In the first data block; in the index or Bloom filter near the end; in the trailer.
    for at in [40, 60 + lab.rng.below(100) as usize, len / 2, len - 30, len - 4, len - 200.min(len - 1)] {
        let mut bad = good.clone();
        bad[at] ^= 1 << lab.rng.below(8);
        std::fs::write(&file, &bad)?;
        server = site.start().with_context(|| format!("byte {at} of {len} flipped: the process does not start"))?;
        lab.faults += 1;
        lab.rounds += 1;
        let reader = Table::new("faults", Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE)));
        let hit = reader.scan(b"s00150", b"t", 50, Duration::from_millis(300)).await;
        let said = server.said();
        match &hit {
            // Not every byte counts for a scan; what is served must be right.
            Ok(rows) => lab.expect(rows.len() == 150, || format!("byte {at} of {len} flipped: {} rows", rows.len())),
            Err(failure) => lab.expect(failure.text().contains(&name) || said.contains(&name), || {
                format!("byte {at} of {len} flipped: nothing names the file {name}: {} | {said}", failure.text())
            }),
        }
        let other = reader.scan(b"s", b"s00150", 50, Duration::from_secs(10)).await;
        lab.expect(other.as_ref().is_ok_and(|rows| rows.len() == 150), || {
            format!("byte {at} of {len} flipped: another region does not serve: {:?}", other.as_ref().map(Vec::len))
        });
        lab.expect(server.is_alive(), || format!("byte {at} of {len} flipped: the process ended"));
        lab.expect(file.exists(), || format!("byte {at} of {len} flipped: the file was moved without a command"));
        server.kill();
    }
    std::fs::write(&file, &good)?;
    let server = site.start()?;
    lab.verify(&mut load, &mut site, server).await
}

/// F67: a flush of a region fails once, because a file stands where its temporary files go, and is done the second
/// time; then the region is idle. The logs that hold its edits are archived while another region goes on.
pub async fn f67_flush_that_failed_once_beside_an_idle_region(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.bounded_site(256)?;
    site.define("hbase.regionserver.logroll.period", 1000);
    site.define("hbase.wal.hsync", false);
    let server = site.start()?;
    let admin = Admin::new(site.master.clone(), site.region.clone());
    let said = |failure: crate::remote::Failure| anyhow::anyhow!("{}", failure.text().to_owned());
    let remote = Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
    for table in ["idle", "busy"] {
        admin.create(table, &[], true).await?;
    }
    let (idle, busy) = (Table::new("idle", remote.clone()), Table::new("busy", remote));
    let idle_region = idle.regions().await.map_err(said)?[0].1.clone();
    let busy_region = busy.regions().await.map_err(said)?[0].1.clone();
    // The first log holds what the start wrote to system tables, which stays in memory for long.
    let logs =
        || files_below(&site.root.join("WALs")).into_iter().filter(|log| !log.to_string_lossy().ends_with("meta"));
    let first = logs().collect::<Vec<_>>();
    while logs().all(|log| first.contains(&log)) {
        busy.put(b"row", &[("f", "q", &[2; 1000])]).await.map_err(said)?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    idle.put(b"row", &[("f", "q", &[1; 1000])]).await.map_err(said)?;
    let name = String::from_utf8_lossy(&idle_region).into_owned();
    let encoded = name.trim_end_matches('.').rsplit('.').next().context("a region's name")?;
    let temporary = site.root.join("data/default/idle").join(encoded).join(".tmp");
    if temporary.is_dir() {
        std::fs::remove_dir_all(&temporary)?;
    }
    std::fs::write(&temporary, b"")?;
    let failed = admin.flush(&idle_region).await;
    lab.expect(failed.is_err(), || "a flush into a directory that is a file was done".to_owned());
    std::fs::remove_file(&temporary)?;
    admin.flush(&idle_region).await.map_err(said)?;
    let flushed_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
    lab.faults += 1;
    // A log's name ends in the time at which it was begun.
    let begun_before = |path: &PathBuf| {
        let time = path.extension().and_then(|time| time.to_str()).and_then(|time| time.parse::<u128>().ok());
        time.is_some_and(|begun_ms| begun_ms < flushed_ms) && !first.contains(path)
    };
    let old_logs = || logs().filter(begun_before).count();
    let (at_first, begun) = (old_logs(), std::time::Instant::now());
    while old_logs() > 0 && begun.elapsed() < Duration::from_secs(60) {
        busy.put(b"row", &[("f", "q", &[2; 1000])]).await.map_err(said)?;
        admin.flush(&busy_region).await.map_err(said)?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        lab.rounds += 1;
    }
    println!("    {} old logs after {} ms, at first {at_first}", old_logs(), begun.elapsed().as_millis());
    lab.expect(at_first > 0, || "the flushed edits were in no log".to_owned());
    lab.expect(old_logs() == 0, || format!("{} logs of flushed edits are not archived", old_logs()));
    let row = idle.get(b"row").await.map_err(said)?;
    lab.expect(row.is_some(), || "the row of the region whose flush failed is gone".to_owned());
    server.stop()
}
