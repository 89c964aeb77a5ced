//! What a scenario works with: a place, a random number generator, and a sheet to write its results on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use base::Rng;

use crate::load::{Load, Shape, Tally};
use crate::site::{Server, Site};
use crate::tools::Strace;

/// One run of one scenario.
pub struct Lab {
    binary: PathBuf,
    dir: PathBuf,
    pub rng: Rng,
    /// What went wrong that must not.
    pub violations: Vec<String>,
    pub rounds: u64,
    pub faults: u64,
    pub tally: Tally,
    traces: u32,
}

impl Lab {
    pub fn new(binary: &Path, scratch: &Path, name: &str, seed: u64) -> Lab {
        Lab {
            binary: binary.to_owned(),
            dir: scratch.join(name),
            rng: Rng::seeded(seed),
            violations: Vec::new(),
            rounds: 0,
            faults: 0,
            tally: Tally::default(),
            traces: 0,
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn clear(&self) {
        std::fs::remove_dir_all(&self.dir).ok();
    }

    /// An empty site whose server rolls, flushes and compacts often.
    pub fn site(&self) -> anyhow::Result<Site> {
        let mut site = Site::new(&self.binary, &self.dir, "site")?;
        site.define("hbase.hregion.memstore.flush.size", 1 << 20);
        site.define("hbase.hregion.percolumnfamilyflush.size.lower.bound.min", 64 << 10);
        site.define("hbase.regionserver.hlog.blocksize", 4 << 20);
        site.define("basalt.memory.size", 128 << 20);
        Ok(site)
    }

    /// An empty site with this budget and status pages, for what is held against [`Lab::expect_bounded`].
    pub fn bounded_site(&self, budget_mib: u64) -> anyhow::Result<Site> {
        let mut site = Site::new(&self.binary, &self.dir, "site")?;
        site.define("basalt.memory.size", budget_mib << 20);
        site.define("hbase.master.info.port", 0);
        Ok(site)
    }

    /// Notes it if the process ever had more in memory than its budget, a quarter of that, and 64 MiB.
    pub fn expect_bounded(&mut self, server: &Server, budget_mib: u64) {
        let (peak_mib, most_mib) = (server.peak_mib(), budget_mib + budget_mib / 4 + 64);
        println!("    at most {peak_mib} MiB resident, {most_mib} are allowed with a budget of {budget_mib}");
        self.expect(peak_mib > 0, || "the process ended".to_owned());
        self.expect(peak_mib <= most_mib, || format!("{peak_mib} MiB resident with a budget of {budget_mib}"));
    }

    /// Notes it if the process still works for somebody: a second of little to do must come within ten.
    pub async fn expect_idle(&mut self, server: &Server) {
        let mut used = Duration::ZERO;
        for _ in 0..10 {
            let before = server.cpu();
            tokio::time::sleep(Duration::from_secs(1)).await;
            used = server.cpu().saturating_sub(before);
            if used < Duration::from_millis(200) {
                return;
            }
        }
        self.expect(false, || {
            format!("10 s after its clients left it still uses {} ms of CPU a second", used.as_millis())
        });
    }

    /// A running server with a table, and clients that wait for the word.
    pub async fn start(&self, site: &mut Site, shape: Shape) -> anyhow::Result<(Server, Load)> {
        let server = site.start()?;
        let load = Load::prepare(&site.region, &site.master, shape, self.rng.next_u64()).await?;
        Ok((server, load))
    }

    pub async fn sleep(&self, from_ms: u64, to_ms: u64) {
        let ms = from_ms + self.rng.below(to_ms.saturating_sub(from_ms).max(1));
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Notes something that must not be.
    pub fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(what());
        }
    }

    /// Attaches strace with an injection.
    pub fn strace(&mut self, server: &Server, options: &[String]) -> anyhow::Result<(Strace, PathBuf)> {
        Strace::is_there()?;
        self.traces += 1;
        let trace = self.dir.join(format!("attached-{}.txt", self.traces));
        Ok((Strace::attach(server.pid(), &trace, options)?, trace))
    }

    /// Compares what clients remember with what the server has; then once more after a kill and a new start.
    pub async fn verify(&mut self, load: &mut Load, site: &mut Site, server: Server) -> anyhow::Result<()> {
        self.violations.extend(load.verify().await.context("with the server that went through it")?);
        server.kill();
        let server = site.start().context("a start after everything")?;
        self.violations.extend(load.verify().await.context("after a new start")?);
        self.tally += load.tally();
        server.stop().context("an orderly stop after everything")?;
        let server = site.start().context("a start after an orderly stop")?;
        self.violations.extend(load.verify().await.context("after an orderly stop")?);
        drop(server);
        let said = site.all_said();
        self.expect(!said.contains("panicked"), || {
            let line = said.lines().find(|line| line.contains("panicked")).unwrap_or_default();
            format!("something panicked: {line}")
        });
        Ok(())
    }
}
