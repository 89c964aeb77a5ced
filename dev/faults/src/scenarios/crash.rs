//! Crashes, pauses and orders to stop.

use std::time::Duration;

use anyhow::Context;
use rustix::process::Signal;

use crate::lab::Lab;
use crate::load::{Load, Shape, retried};
use crate::remote::{Remote, Table};

const PATIENCE: Duration = Duration::from_secs(30);

/// F1: killed under load again and again; everything acknowledged is there, nothing else, each row in one order.
pub async fn f01_kill_under_load(lab: &mut Lab) -> anyhow::Result<()> {
    kills(lab, &[]).await
}

/// The same with `hbase.wal.hsync` off: what the operating system has survives the process.
pub async fn f01_kill_under_load_relaxed(lab: &mut Lab) -> anyhow::Result<()> {
    kills(lab, &["hbase.wal.hsync=false"]).await
}

async fn kills(lab: &mut Lab, defines: &[&str]) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    site.defines.extend(defines.iter().map(|define| (*define).to_owned()));
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for _ in 0..8 {
        load.progress(100, PATIENCE).await?;
        lab.sleep(50, 1200).await;
        server.kill();
        load.server_is_dead();
        server = site.start().context("a start after a kill")?;
        lab.rounds += 1;
        lab.faults += 1;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F13: killed again while it recovers, at any moment of the start.
pub async fn f13_killed_while_recovering(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for _ in 0..5 {
        load.progress(200, PATIENCE).await?;
        let usual_start_ms = server.start_took.as_millis() as u64;
        server.kill();
        load.server_is_dead();
        for _ in 0..4 {
            let half_started = site.spawn()?;
            lab.sleep(1, usual_start_ms.max(20) * 5 / 4).await;
            half_started.kill();
            lab.faults += 1;
        }
        server = site.start().context("a start after half starts")?;
        lab.rounds += 1;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F51: an increment that was acknowledged counts once, also when it is repeated after crashes and flushes.
pub async fn f51_nonce_after_restart(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let shape = Shape { counter_clients: 6, register_clients: 1, scan_clients: 0, twice: true, ..Shape::default() };
    let (mut server, mut load) = lab.start(&mut site, shape).await?;
    load.go();
    let remote = std::sync::Arc::new(Remote::new(site.region.clone(), "ClientService", PATIENCE));
    let table = Table::new("faults", remote);
    let row = b"c900";
    for round in 1..=4u64 {
        let nonce = (7, round);
        retried(|| table.count(row, nonce), PATIENCE).await.map_err(|f| anyhow::anyhow!("{}", f.text()))?;
        load.progress(100, PATIENCE).await?;
        for _ in 0..2 {
            server.kill();
            server = site.start()?;
            lab.faults += 1;
            retried(|| table.count(row, nonce), PATIENCE).await.map_err(|f| anyhow::anyhow!("{}", f.text()))?;
        }
        let seen = retried(|| table.get(row), PATIENCE).await.map_err(|f| anyhow::anyhow!("{}", f.text()))?;
        let count = seen.as_ref().and_then(|row| Some(u64::from_be_bytes(row.value("f:q")?.try_into().ok()?)));
        lab.expect(count == Some(round), || format!("after {round} increments the counter is {count:?}"));
        lab.rounds += 1;
    }
    load.counted(900, 4);
    lab.verify(&mut load, &mut site, server).await
}

/// F32 as far as one server can suffer it: the process stands still for a while, its clients do not.
pub async fn f32_stopped_and_continued(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let shape = Shape { patience: Duration::from_millis(700), ..Shape::default() };
    let (server, mut load) = lab.start(&mut site, shape).await?;
    load.go();
    for _ in 0..4 {
        load.progress(200, PATIENCE).await?;
        server.signal(Signal::STOP)?;
        lab.sleep(200, 2500).await;
        server.signal(Signal::CONT)?;
        lab.faults += 1;
        lab.rounds += 1;
    }
    load.progress(200, PATIENCE).await?;
    lab.verify(&mut load, &mut site, server).await
}

/// SIGTERM while the server starts, after a crash: it ends with a word and status 0, and the next start has it all.
pub async fn stop_signal_during_start(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load): (_, Load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for _ in 0..4 {
        load.progress(200, PATIENCE).await?;
        let usual_start_ms = server.start_took.as_millis() as u64;
        server.kill();
        load.server_is_dead();
        for _ in 0..3 {
            let mut half_started = site.spawn()?;
            // Before it has come to itself a signal ends any process.
            lab.sleep(usual_start_ms / 4, usual_start_ms.max(20)).await;
            let waited_for = half_started.said();
            half_started.signal(Signal::TERM)?;
            let status = half_started.wait(Duration::from_secs(20));
            lab.faults += 1;
            let Some(status) = status else {
                lab.violations.push("SIGTERM during a start does not end it within 20 s".to_owned());
                continue;
            };
            // Killed by the signal: it came before the process could listen for it.
            let early = waited_for.is_empty() && status.code().is_none();
            lab.expect(status.success() || early, || {
                format!("SIGTERM during a start ended it with {status}: {}", half_started.last_words())
            });
        }
        server = site.start().context("a start after half starts")?;
        lab.rounds += 1;
    }
    lab.verify(&mut load, &mut site, server).await
}
