//! A world for one scene: tables and promises are there, each act is one life of the server.

use crate::Violation;
use crate::check;
use crate::order::Ending;
use crate::promises::Promises;
use crate::work::{self, Desk};
use crate::world::{World, small_settings};
use base::{Config, Rng};
use fs::CrashPolicy;
use model::Durability;
use parking_lot::Mutex;
use std::sync::Arc;

/// The scene.
pub struct Stage {
    /// What outlives a server.
    pub world: World,
    /// What was promised so far.
    pub promises: Arc<Mutex<Promises>>,
}

/// Settings under which nothing happens by itself.
pub fn calm_settings() -> Config {
    let mut config = small_settings(&Rng::seeded(3));
    config.set("hbase.hregion.memstore.flush.size", "10000000");
    config.set("hbase.hstore.compaction.min", "3");
    config.set("hbase.hregion.max.filesize", "10000000");
    let by_size = "org.apache.hadoop.hbase.regionserver.ConstantSizeRegionSplitPolicy";
    config.set("hbase.regionserver.region.split.policy", by_size);
    config.set("basalt.recovery.memory.fraction", "1");
    config.set("hbase.catalogjanitor.interval", "86400000");
    config.set("hbase.master.cleaner.interval", "86400000");
    config.set("hbase.wal.hsync", "true");
    config
}

impl Stage {
    /// One with the tables of [`work::prepare`].
    ///
    /// # Panics
    /// An empty disk cannot be used.
    pub fn new(seed: u64) -> Stage {
        Stage::with(seed, false)
    }

    /// The same with a log that promises only what the operating system has (`hbase.wal.hsync` is false).
    ///
    /// # Panics
    /// An empty disk cannot be used.
    pub fn relaxed(seed: u64) -> Stage {
        Stage::with(seed, true)
    }

    fn with(seed: u64, relaxed: bool) -> Stage {
        let mut config = calm_settings();
        config.set("hbase.wal.hsync", (!relaxed).to_string());
        let promises = Arc::new(Mutex::new(Promises { relaxed, ..Promises::default() }));
        let mut stage = Stage { world: World::new(seed, config), promises };
        if std::env::var_os("BASALT_TEST_SPEAK").is_some() {
            stage.world.trace.speak();
        }
        // The families' attributes are the seed's.
        stage
            .act(async |desk| {
                let desk = Desk { rng: Arc::new(Rng::seeded(seed)), ..desk.clone() };
                work::prepare(&desk, Durability::SyncWal).await.expect("no faults");
            })
            .expect("an empty disk");
        stage
    }

    /// One life: starts a server, does `scene`, and ends as a killed process does. The disk is left as it was then.
    ///
    /// # Errors
    /// The server does not start; the sentence says why.
    pub fn act<T>(&mut self, scene: impl AsyncFnOnce(&Desk) -> T) -> Result<T, String> {
        let runtime = World::runtime();
        let (promises, trace) = (self.promises.clone(), self.world.trace.clone());
        let outcome = runtime.block_on(async {
            let life = self.world.start().await?;
            promises.lock().started();
            let desk = Desk { life, promises, violation: Arc::default(), rng: Arc::new(Rng::seeded(17)), trace };
            Ok(scene(&desk).await)
        });
        drop(runtime);
        if outcome.is_ok() {
            self.promises.lock().server_gone(self.world.archived());
        }
        outcome
    }

    /// The power fails. Faults are gone.
    pub fn crash(&mut self, policy: CrashPolicy, seed: u64) {
        self.world.volume.watch(None);
        self.promises.lock().ended(Ending::Power);
        self.world.crash(&Rng::seeded(seed), policy);
    }

    /// The process is killed. Faults are gone.
    pub fn kill(&mut self) {
        self.world.volume.watch(None);
        self.promises.lock().ended(Ending::Kill);
        self.world.kill();
    }

    /// A life without faults in which everything promised is looked for.
    ///
    /// # Errors
    /// What is not so.
    pub fn check(&mut self) -> Result<(), Violation> {
        self.act(async |desk| check(desk).await).unwrap_or_else(|why| Err(Violation(format!("no start: {why}"))))
    }
}

/// Looks for everything promised, in this life.
///
/// # Errors
/// What is not so.
pub async fn check(desk: &Desk) -> Result<(), Violation> {
    if !check::quiet(desk).await {
        let (procedures, busy) = (desk.life.master.unfinished_procedures(), desk.promises.lock().busy);
        desk.trace.note(&format!("{procedures} procedures, {busy} calls are not ended"));
        return Err(Violation(
            format!("it does not become quiet: {:?}", desk.life.fatal()) + &check::not_open(&desk.life),
        ));
    }
    let mut promises = desk.promises.lock().clone();
    let checked = check::check_all(&desk.life, &mut promises).await;
    *desk.promises.lock() = promises;
    checked
}
