//! The world: a volume that outlives servers, a clock, a random number generator, and one life of a server after the other.

use crate::disks::{Disks, Named};
use crate::host::Paced;
use crate::trace::Trace;
use assembly::{Node, Parts, Syncer};
use base::{Clock, Config, ManualClock, Rng};
use fs::mem::Op;
use fs::{CrashPolicy, FilePath, MemVolume, Volume};
use master::{Master, Unobserved};
use model::ServerName;
use parking_lot::Mutex;
use regionserver::{RegionServer, RegionService};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Every policy of a crash.
pub const POLICIES: [CrashPolicy; 4] =
    [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];

/// Where the volume is on the disk that clients know.
pub const ROOT: &str = "/srv/basalt";

/// When the world begins.
pub const START_MS: i64 = 1_795_220_000_000;

/// What outlives a server.
pub struct World {
    /// The disk.
    pub volume: MemVolume,
    /// Time.
    pub clock: Arc<ManualClock>,
    /// What the server's own generator draws (names of files), and how long its steps take.
    pub rng: Arc<Rng>,
    /// What happened.
    pub trace: Arc<Trace>,
    /// Settings.
    pub config: Config,
    /// Disks beside that one, if there are any.
    pub disks: Option<Disks>,
    lives: u64,
    archived: Arc<AtomicU64>,
    sync_hook: Arc<Mutex<Option<SyncHook>>>,
}

/// What happens while a file is being synced, once.
struct SyncHook {
    path: FilePath,
    work: Box<dyn FnOnce() + Send>,
}

/// One life of a server.
pub struct Life {
    /// Opens, closes, flushes, compacts.
    pub server: Arc<RegionServer>,
    /// Tables and regions.
    pub master: Arc<Master>,
    /// Takes calls.
    pub service: RegionService,
    /// The logs: everybody's and that of hbase:meta.
    pub logs: [Arc<wal::Log>; 2],
    /// Time.
    pub clock: Arc<ManualClock>,
    node: Node<Logs>,
    /// What it reads when it is told to read its settings again.
    pub(crate) file: Arc<Mutex<Config>>,
    /// The disks beside the root directory's.
    pub disks: Option<Disks>,
    fatal: Arc<Mutex<Option<String>>>,
    archived: Arc<AtomicU64>,
    stop_requests: Arc<AtomicU64>,
}

/// The logs of a node, which the schedule syncs.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<Arc<wal::Log>>>>);

impl Syncer for Logs {
    fn attend(&self, log: &Arc<wal::Log>, _: &'static str) -> std::io::Result<()> {
        self.0.lock().push(log.clone());
        Ok(())
    }

    fn join(&self) {
        self.0.lock().clear();
    }
}

/// When somebody mends a disk with which a start does not come to its end, for procedures go on.
const MENDED_AFTER_ROUNDS: u32 = 500;

/// What a server may use.
const MEMORY_BUDGET_BYTES: u64 = 64 << 20;

/// Settings under which things happen soon.
pub fn small_settings(rng: &Rng) -> Config {
    let mut config = Config::default();
    let mut set = |key: &str, value: u64| config.set(key, value.to_string());
    set("hbase.hregion.memstore.flush.size", [2_000, 6_000, 40_000][rng.below(3) as usize]);
    set("hbase.hregion.percolumnfamilyflush.size.lower.bound.min", [0, 500, 100_000][rng.below(3) as usize]);
    set("hbase.regionserver.hlog.blocksize", [8_192, 65_536][rng.below(2) as usize]);
    set("hbase.regionserver.maxlogs", 2 + rng.below(6));
    // Threads would come to the disk in any order.
    set("hbase.regionserver.hlog.splitlog.writer.threads", 1);
    set("basalt.recovery.memory.fraction", rng.below(2));
    set("hbase.hstore.compaction.min", 2 + rng.below(3));
    set("hbase.hregion.majorcompaction", [0, 86_400_000][rng.below(2) as usize]);
    set("hbase.hregion.max.filesize", [30_000, 10_000_000][rng.below(2) as usize]);
    set("hbase.catalogjanitor.interval", 50);
    set("hbase.master.cleaner.interval", 80);
    set("hbase.master.hfilecleaner.ttl", [0, 60_000][rng.below(2) as usize]);
    set("hbase.master.logcleaner.ttl", [0, 60_000][rng.below(2) as usize]);
    set("basalt.master.failed.open.retry", 20);
    config.set("hbase.table.sanity.checks", "false");
    // 256 KiB: blocks are pushed out, and read again.
    config.set("hfile.block.cache.size", "0.00390625");
    config
}

impl World {
    /// An empty one.
    pub fn new(seed: u64, config: Config) -> World {
        World::on(MemVolume::new(), seed, config)
    }

    /// One on files that are there.
    pub fn on(volume: MemVolume, seed: u64, config: Config) -> World {
        let clock = Arc::new(ManualClock::new(START_MS));
        let rng = Arc::new(Rng::seeded(seed ^ 0x5157_0001));
        let (trace, archived, sync_hook) = <(Arc<Trace>, Arc<AtomicU64>, Arc<Mutex<Option<SyncHook>>>)>::default();
        let world = World { volume, clock, rng, trace, config, disks: None, lives: 0, archived, sync_hook };
        world.listen();
        world
    }

    /// Has every call to the volume noted.
    fn listen(&self) {
        let (trace, clock, archived) = (self.trace.clone(), self.clock.clone(), self.archived.clone());
        let (sync_hook, disks) = (self.sync_hook.clone(), self.disks.clone());
        self.volume.watch(Some(Arc::new(move |op, path| {
            if let Some(disks) = &disks {
                disks.passes(path.as_str(), &clock);
            }
            if op == Op::Rename && path.as_str().starts_with("WALs/") {
                archived.fetch_add(1, Ordering::Relaxed);
            }
            trace.note(&format!("{op:?} {} at {}", path.as_str(), clock.now_ms()));
            let now = if op == Op::Sync { sync_hook.lock().take_if(|todo| todo.path == *path) } else { None };
            if let Some(SyncHook { work, .. }) = now {
                work();
            }
        })));
    }

    /// The same with disks beside the root directory's, named so at first.
    pub fn with_disks(mut self, named: [Named; 3]) -> World {
        self.disks = Some(Disks::make(&self.volume, named));
        self.listen();
        self
    }

    /// What is to happen while the file is being synced the next time, by the same thread; `None`: nothing, after all.
    pub fn set_sync_hook(&self, todo: Option<(FilePath, Box<dyn FnOnce() + Send>)>) {
        *self.sync_hook.lock() = todo.map(|(path, work)| SyncHook { path, work });
    }

    /// A runtime for one life. Its time stands still except when every task waits for it.
    pub fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime of one thread asks nothing of the system")
    }

    /// Starts a node as the binary does: recovers logs, opens everything. Inside a [`World::runtime`].
    ///
    /// # Errors
    /// The sentence with which the server would end.
    pub async fn start(&mut self) -> Result<Arc<Life>, String> {
        self.lives += 1;
        self.trace.note(&format!("life {}", self.lives));
        // No two lives share a start code, whatever the clock was set to.
        let start_code = u64::try_from(self.clock.now_ms().0).unwrap_or_default() + self.lives;
        let volume: Arc<dyn Volume> = match &self.disks {
            None => Arc::new(self.volume.clone()),
            Some(disks) => {
                disks.write(&mut self.config);
                Arc::new(disks.attach(&self.volume, &self.config, &self.clock, &self.rng, &self.trace)?)
            }
        };
        let file = Arc::new(Mutex::new(self.config.clone()));
        let fatal = Arc::new(Mutex::new(None));
        let told = fatal.clone();
        let logs = Logs::default();
        let stop_requests = Arc::new(AtomicU64::new(0));
        let parts = Parts {
            outside: volume.clone(),
            root: ROOT.to_owned(),
            volume,
            clock: self.clock.clone(),
            rng: self.rng.clone(),
            config: self.config.clone(),
            read_config: {
                let file = file.clone();
                Arc::new(move || Ok(file.lock().clone()))
            },
            ledger: regionserver::ledger(&self.config, MEMORY_BUDGET_BYTES, u64::MAX),
            server_name: ServerName::new("localhost", 16020, start_code),
            master_name: ServerName::new("localhost", 16000, start_code),
            info_port: None,
            runner: Paced::new(self.rng.clone(), self.trace.clone()),
            syncer: logs.clone(),
            for_each: |count, work| (0..count).for_each(work),
            stepped: true,
            observer: Arc::new(Unobserved),
            on_region_server: Box::new(|_, _| ()),
            on_fatal: Arc::new(move |why| _ = told.lock().get_or_insert(why)),
            second_level: None,
            on_stop_request: {
                let stop_requests = stop_requests.clone();
                Arc::new(move |_| _ = stop_requests.fetch_add(1, Ordering::Relaxed))
            },
        };
        let mut starting = Box::pin(Node::start(parts));
        let mut off = Box::pin(self.until_off(&logs));
        let started = std::future::poll_fn(|context| match starting.as_mut().poll(context) {
            Poll::Ready(started) => Poll::Ready(Some(started)),
            Poll::Pending => off.as_mut().poll(context).map(|()| None),
        });
        let node = match started.await {
            Some(started) => started.map_err(|e| e.to_string())?,
            None => return Err("the machine went off while the node started".into()),
        };
        node.recovered().await;
        Ok(Arc::new(Life {
            server: node.server().clone(),
            master: node.master().clone(),
            service: RegionService::new(node.server().clone()),
            logs: node.logs().clone(),
            node,
            clock: self.clock.clone(),
            file,
            disks: self.disks.clone(),
            fatal,
            archived: self.archived.clone(),
            stop_requests,
        }))
    }

    /// Ends when the machine is off: a procedure that goes on after a restart would try again for ever.
    async fn until_off(&self, logs: &Logs) {
        for round in 0.. {
            if self.volume.is_stopped() {
                break;
            }
            if round == MENDED_AFTER_ROUNDS {
                self.volume.clear_faults();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            // As the server's own thread does: a log that found the disk full tries again now and then.
            let logs = logs.0.lock().clone();
            for log in logs.iter().filter(|log| log.is_stalled()) {
                let _told_to_who_waits = log.sync_once();
            }
        }
    }

    /// The volume after the machine lost its power. The life before must be gone with its runtime.
    pub fn crash(&mut self, rng: &Rng, policy: CrashPolicy) {
        self.trace.note(&format!("crash {policy:?}"));
        self.go_on_with(self.volume.crash(rng, policy));
    }

    /// The volume after the process was killed: all is there, and what waited for a sync still does. The life before must be gone with
    /// its runtime.
    pub fn kill(&mut self) {
        self.trace.note("kill");
        self.go_on_with(self.volume.snapshot());
    }

    fn go_on_with(&mut self, volume: MemVolume) {
        self.volume = volume;
        self.volume.set_capacity(None);
        // Whoever starts it again has seen to them.
        self.disks.iter().for_each(Disks::mend);
        self.listen();
    }

    /// Logs that were put away since the world began.
    pub fn archived(&self) -> u64 {
        self.archived.load(Ordering::Relaxed)
    }

    /// The files as they are now, for a world that starts from there.
    pub fn snapshot(&self) -> MemVolume {
        self.volume.snapshot()
    }
}

impl Life {
    /// Why the server had to stop, if it had to.
    pub fn fatal(&self) -> Option<String> {
        let failed = || self.logs.iter().find_map(|log| log.failure()).map(|failed| failed.to_string());
        self.fatal.lock().clone().or_else(failed)
    }

    /// Logs that were put away since the world began.
    pub fn archived(&self) -> u64 {
        self.archived.load(Ordering::Relaxed)
    }

    /// How often clients have asked the server to stop.
    pub fn stop_requests(&self) -> u64 {
        self.stop_requests.load(Ordering::Relaxed)
    }

    /// Lets every task go on until all wait for something: a log, time, or the next action.
    pub async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Syncs the logs until nobody waits for them. Fails when the disk does.
    pub async fn quiet(&self) -> bool {
        for _ in 0..200 {
            let synced = self.logs.iter().all(|log| log.sync_once().is_ok());
            self.settle().await;
            if !synced || self.fatal().is_some() {
                return false;
            }
            if self.logs.iter().all(|log| log.stats().owed_bytes == 0) && self.master.unfinished_procedures() == 0 {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Stops as a signal would: closes every region, then the logs.
    ///
    /// # Errors
    /// What could not be closed.
    pub async fn stop(&self) -> Result<(), String> {
        self.master.stop();
        self.settle().await;
        self.node.stop(None).map(drop).map_err(|e| e.to_string())
    }
}
