//! System calls that fail or take long, by strace.

use std::time::Duration;

use anyhow::Context;

use crate::lab::Lab;
use crate::load::Shape;
use crate::tools::Strace;

const PATIENCE: Duration = Duration::from_secs(40);

fn inject(calls: &str, what: &str) -> Vec<String> {
    vec!["-e".into(), format!("trace={calls}"), "-e".into(), format!("inject={calls}:{what}")]
}

/// F4: each thread's next `fdatasync` fails once. The log goes on in a fresh file, or the server stops and the next start
/// recovers; either way nothing was acknowledged falsely.
pub async fn f04_sync_fails_once(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    let mut survived = 0;
    for _ in 0..4 {
        load.progress(200, PATIENCE).await?;
        let (strace, trace) = lab.strace(&server, &inject("fdatasync", "error=EIO:when=1"))?;
        lab.sleep(400, 1200).await;
        drop(strace);
        lab.faults += Strace::injected(&trace);
        lab.rounds += 1;
        if server.is_alive() {
            survived += 1;
        } else {
            lab.expect(server.said().contains("could not be made durable"), || {
                format!("it ended without naming the log: {}", server.last_words())
            });
            load.server_is_dead();
            server = site.start().context("a start after a failed sync")?;
        }
    }
    lab.expect(survived > 0, || "one failed sync always stops the server".to_owned());
    load.progress(200, PATIENCE).await?;
    lab.verify(&mut load, &mut site, server).await
}

/// F4: every `fdatasync` fails from some moment on. The server stops by itself and says why; nothing that was not
/// durable had been acknowledged.
pub async fn f04_sync_fails_for_good(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for _ in 0..3 {
        load.progress(200, PATIENCE).await?;
        lab.sleep(0, 300).await;
        let (strace, trace) = lab.strace(&server, &inject("fdatasync", "error=EIO"))?;
        let status = server.wait(Duration::from_secs(20));
        drop(strace);
        lab.faults += Strace::injected(&trace);
        lab.rounds += 1;
        match status {
            Some(status) => lab
                .expect(!status.success() && server.said().contains("could not be made durable"), || {
                    format!("it ended with {status} and said: {}", server.last_words())
                }),
            None => lab.violations.push("no sync succeeds and the server goes on".to_owned()),
        }
        server.kill();
        load.server_is_dead();
        server = site.start().context("a start after failed syncs")?;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// A disk that takes long: writes are slow, in order, and nothing gives up.
pub async fn f04_slow_sync(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for delay_ms in [20, 300, 1500] {
        load.progress(200, PATIENCE).await?;
        let delay = format!("delay_enter={}", delay_ms * 1000);
        let (strace, trace) = lab.strace(&server, &inject("fdatasync,rename,openat", &delay))?;
        tokio::time::sleep(Duration::from_millis(1500 + 2 * delay_ms)).await;
        drop(strace);
        lab.faults += Strace::injected(&trace).max(1);
        lab.rounds += 1;
    }
    load.progress(200, PATIENCE).await?;
    lab.verify(&mut load, &mut site, server).await
}

/// F5: syncs fail and the process is killed a moment later: no write was told to have failed and is there all the same,
/// none was acknowledged and is not.
pub async fn f05_failed_sync_then_crash(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for _ in 0..6 {
        load.progress(150, PATIENCE).await?;
        let when = ["error=EIO", "error=EIO:when=2+", "error=ENOSPC", "error=EIO:when=1+2"][lab.rng.below(4) as usize];
        let (strace, trace) = lab.strace(&server, &inject("fdatasync", when))?;
        lab.sleep(1, 120).await;
        server.kill();
        drop(strace);
        lab.faults += Strace::injected(&trace).max(1);
        lab.rounds += 1;
        load.server_is_dead();
        server = site.start().context("a start after a failed sync")?;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F11: a read fails while logs are split and replayed. An error is not an end: the start fails or tries again, and
/// nothing is dropped.
pub async fn f11_read_error_during_replay(lab: &mut Lab) -> anyhow::Result<()> {
    Strace::is_there()?;
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for _ in 0..5 {
        load.progress(300, PATIENCE).await?;
        server.kill();
        load.server_is_dead();
        for _ in 0..2 {
            let first = 1 + lab.rng.below(12);
            site.injections = inject("pread64", &format!("error=EIO:when={first}+{}", 1 + lab.rng.below(5)));
            match site.start_within(Duration::from_secs(20)) {
                // Regions that could not be opened are tried again; the load goes on with what there is.
                Ok(half) => {
                    lab.sleep(100, 500).await;
                    half.kill();
                }
                Err(error) => {
                    let said = format!("{error:#}");
                    lab.expect(!said.contains("panicked"), || said.clone());
                }
            }
            load.server_is_dead();
            lab.faults += 1;
        }
        site.injections.clear();
        server = site.start().context("a start after failed reads")?;
        lab.rounds += 1;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F3: renames fail for a while (flushes, compactions and archiving end in one). The server serves on, and they are done
/// later.
pub async fn f03_rename_fails(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for _ in 0..3 {
        load.progress(300, PATIENCE).await?;
        let what = ["error=EIO", "error=EIO:when=1+2", "error=ENOSPC"][lab.rng.below(3) as usize];
        let (strace, trace) = lab.strace(&server, &inject("rename", what))?;
        lab.sleep(1000, 2500).await;
        drop(strace);
        lab.faults += Strace::injected(&trace);
        lab.rounds += 1;
        if !server.is_alive() {
            lab.violations.push(format!("a failed rename ended the server: {}", server.last_words()));
            load.server_is_dead();
            server = site.start()?;
        }
        load.progress(300, PATIENCE).await?;
    }
    lab.verify(&mut load, &mut site, server).await
}

/// F6: writes to the log's file fail with EIO, or with ENOSPC: it goes on in a fresh file, or when there is room.
pub async fn f06_write_fails(lab: &mut Lab) -> anyhow::Result<()> {
    let mut site = lab.site()?;
    // One log file for the whole life: strace is told its name.
    site.define("hbase.regionserver.hlog.blocksize", 1 << 30);
    let (mut server, mut load) = lab.start(&mut site, Shape::default()).await?;
    load.go();
    for error in ["ENOSPC", "EIO", "ENOSPC:when=1+2"] {
        load.progress(200, PATIENCE).await?;
        let Some(log) = newest_log(&site.root.join("WALs")) else { anyhow::bail!("there is no log") };
        let mut options = inject("write", &format!("error={error}"));
        options.extend(["-P".to_owned(), log.display().to_string()]);
        let (strace, trace) = lab.strace(&server, &options)?;
        lab.sleep(700, 1500).await;
        drop(strace);
        lab.faults += Strace::injected(&trace);
        lab.rounds += 1;
        if !server.is_alive() {
            lab.violations
                .push(format!("{error} at a write to one log file ended the server: {}", server.last_words()));
            load.server_is_dead();
            server = site.start()?;
        }
        load.progress(200, PATIENCE).await?;
    }
    lab.verify(&mut load, &mut site, server).await
}

fn newest_log(dir: &std::path::Path) -> Option<std::path::PathBuf> {
    let servers = std::fs::read_dir(dir).ok()?.filter_map(|entry| std::fs::read_dir(entry.ok()?.path()).ok());
    let files = servers.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    files
        .filter(|path| !path.to_string_lossy().ends_with(".meta"))
        .max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok())
}
