//! The server itself: which regions are online, opening and closing them, and what the master asks of them.
//!
//! Methods here block (they read and write files): callers on Tokio run them on the blocking pool.

use crate::bulk_load::BulkLoadFiles;
use crate::maintenance::Maintenance;
use crate::memory::{Division, MemoryWatch};
use crate::online::OnlineRegions;
use crate::operations::Operations;
use crate::orders::moving::Moving;
use crate::pressure::{MemoryMarks, MemoryPace};
use crate::replicas::ReplicaSender;
use crate::resolved::RegionServerSettings;
use crate::rpc_quotas::RpcQuotas;
use crate::sessions::Sessions;
use crate::settings;
use crate::slow_log::SlowLog;
use crate::space_quotas::SpaceQuotas;
use crate::stop_signal::StopSignal;
use crate::users::Users;
use crate::volumes::WaitingRegions;
use arc_swap::ArcSwap;
use base::{Adder, Clock, Config, Holder, Ledger, Tasks, TimestampMs};
use bytes::Bytes;
use model::{Nonce, RegionInfo, ServerName};
use parking_lot::Mutex;
use proto::methods::Method;
use region::{Region, RegionDirectories, RegionEnv, RegionError, RegionSettings};
use scheduler::Scheduler;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Why the server could not do what the master asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServerError {
    /// The region is not online here.
    #[error("{0} is not online")]
    NotOnline(String),
    /// The region is being opened or closed.
    #[error("{0} is being opened or closed")]
    InTransition(String),
    /// The server is stopping.
    #[error("server {0} is stopping")]
    Stopping(ServerName),
    /// A region's part of a snapshot took longer than it may.
    #[error("its part of the snapshot took {took_ms} ms, longer than hbase.snapshot.region.timeout = {limit_ms} ms")]
    SnapshotTimeout {
        /// How long it took.
        took_ms: u64,
        /// How long it may.
        limit_ms: u64,
    },
    /// The region failed.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// How the server asks the master to split a region: `(region, split row)`; `None` lets the server choose the row. Answers whether there
/// is a master to ask.
pub type SplitRequests = Arc<dyn Fn(RegionInfo, Option<Bytes>) -> bool + Send + Sync>;

/// Reads the configuration anew, for an update while the server runs. Reads files.
pub type ReadConfig = Arc<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// What a server is made of.
pub struct RegionServerParts {
    /// Its name.
    pub name: ServerName,
    /// Volume, clock, log and caches, shared with its regions.
    pub env: Arc<RegionEnv>,
    /// The same for hbase:meta, whose log is its own: HBase reads that one, and opens hbase:meta, before any other.
    pub meta_env: Arc<RegionEnv>,
    /// Settings.
    pub config: Config,
    /// Reads them anew.
    pub read_config: ReadConfig,
    /// The memory budget, and who holds how much of it ([`crate::ledger`]).
    pub ledger: Arc<Ledger>,
    /// Files that clients may load in bulk.
    pub bulk_load_files: BulkLoadFiles,
    /// How to ask for a split.
    pub split_requests: SplitRequests,
    /// Operations that the logs of earlier servers show to have succeeded: a retry does not count.
    pub recovered_nonces: Vec<Nonce>,
    /// Told when the log or a region can no longer be trusted; the process must end then.
    pub on_fatal: Arc<dyn Fn(String) + Send + Sync>,
    /// Told when a client asks the server to stop.
    pub on_stop_request: Arc<dyn Fn(String) + Send + Sync>,
    /// Without threads: what they would do is done when [`RegionServer::step_chores`], [`RegionServer::step_flush`] and
    /// [`RegionServer::step_compaction`] are called, and nothing waits for time to pass. So the simulator drives it.
    pub stepped: bool,
}

/// Counters of calls, for the status.
#[derive(Default)]
pub struct RequestCounts {
    /// Calls to Get,
    pub gets: Adder,
    /// Mutate,
    pub mutates: Adder,
    /// Multi,
    pub multis: Adder,
    /// Scan,
    pub scans: Adder,
    /// and to all others.
    pub others: Adder,
    /// Rows read by Get and Multi, and scan calls.
    pub reads: Adder,
    /// Rows written.
    pub writes: AtomicU64,
}

impl RequestCounts {
    /// All calls.
    pub fn total(&self) -> u64 {
        [&self.gets, &self.mutates, &self.multis, &self.scans, &self.others].map(Adder::sum).into_iter().sum()
    }

    /// Counts a call.
    pub(crate) fn count(&self, method: Method) {
        let counter = match method {
            Method::ClientGet => &self.gets,
            Method::ClientMutate => &self.mutates,
            Method::ClientMulti => &self.multis,
            Method::ClientScan => &self.scans,
            _ => &self.others,
        };
        counter.add(1);
    }
}

/// A region server.
pub struct RegionServer {
    /// Traces what nobody calls for.
    pub(crate) tracer: trace::TracerCell,
    pub(crate) name: ServerName,
    pub(crate) env: Arc<RegionEnv>,
    pub(crate) meta_env: Arc<RegionEnv>,
    settings: ArcSwap<RegionServerSettings>,
    read_config: ReadConfig,
    pub(crate) memory_watch: Mutex<MemoryWatch>,
    /// Has writes come as fast as memory is given back.
    pub(crate) memory_pace: MemoryPace,
    pub(crate) memory_budget_bytes: u64,
    /// What it remembers of its clients.
    pub(crate) sessions: Sessions,
    /// What its clients may ask for.
    pub(crate) quotas: RpcQuotas,
    /// What tables that are too large do not let in.
    pub(crate) space_quotas: SpaceQuotas,
    /// Calls that took long or were answered with much.
    pub(crate) slow_log: Arc<SlowLog>,
    /// Who holds how much of the memory budget.
    pub(crate) ledger: Arc<Ledger>,
    /// Where calls run that may wait.
    pub(crate) scheduler: Arc<Scheduler>,
    /// What is to be done in the background.
    pub(crate) maintenance: Maintenance,
    pub(crate) counts: RequestCounts,
    /// What each user's clients do.
    pub(crate) users: Users,
    /// How long operations take.
    pub(crate) operations: Operations,
    /// Flushes and compactions, for who looks at them.
    pub(crate) tasks: Tasks,
    /// Which keys were read and written.
    pub(crate) keys: Mutex<key_statistics::History>,
    pub(crate) started_ms: i64,
    pub(crate) bulk_load_files: BulkLoadFiles,
    pub(crate) stop: StopSignal,
    pub(crate) online: OnlineRegions,
    /// Regions that the master has ordered to be opened or closed.
    pub(crate) moving: Moving,
    /// Those that a failed volume keeps from being online.
    pub(crate) waiting: WaitingRegions,
    /// Sends what is written here to read replicas elsewhere.
    pub(crate) replica_sender: OnceLock<(Arc<dyn ReplicaSender>, Weak<RegionServer>)>,
    on_fatal: Arc<dyn Fn(String) + Send + Sync>,
    on_stop_request: Arc<dyn Fn(String) + Send + Sync>,
    fatal: AtomicBool,
    pub(crate) threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    pub(crate) stepped: bool,
}

/// With a smaller budget no memory waits for use.
const FEW_BYTES: u64 = 512 << 20;

/// `hbase.client.scanner.max.result.size` of a client that sets nothing.
pub(crate) const LEAST_REPLY_BYTES: u64 = 2 << 20;

impl RegionServer {
    /// A server without regions; its background threads run.
    pub fn start(parts: RegionServerParts) -> Arc<RegionServer> {
        let RegionServerParts {
            name,
            env,
            meta_env,
            config,
            read_config,
            ledger,
            bulk_load_files,
            split_requests,
            recovered_nonces,
            on_fatal,
            on_stop_request,
            stepped,
        } = parts;
        let clock = env.clock.clone();
        let started_ms = clock.now_ms().0;
        let memory_budget_bytes = ledger.budget_bytes();
        let scheduler =
            if stepped { Scheduler::stepped(clock.clone(), &config) } else { Scheduler::new(clock.clone(), &config) };
        let lanes = Arc::downgrade(&scheduler);
        // Calls that wait for room are looked at again.
        ledger.set_on_release(move || {
            if let Some(lanes) = lanes.upgrade() {
                lanes.kick();
            }
        });
        let sessions = Sessions::new(&clock, &config, &ledger, &name, recovered_nonces);
        let users = Users::new(config.get(&settings::USER_METRICS), &ledger);
        let server = Arc::new(RegionServer {
            settings: ArcSwap::from_pointee(RegionServerSettings::from_config(&config)),
            read_config,
            memory_watch: Mutex::new(MemoryWatch::default()),
            memory_pace: MemoryPace::default(),
            memory_budget_bytes,
            sessions,
            quotas: RpcQuotas::new(&config, clock.clone()),
            space_quotas: SpaceQuotas::new(&config),
            slow_log: SlowLog::new(&config, clock),
            scheduler,
            ledger,
            maintenance: Maintenance::new(split_requests, config.get(&settings::COMPACTIONS_ENABLED)),
            counts: RequestCounts::default(),
            users,
            operations: Operations::new(config.get(&settings::SLOW_METRIC_TIME_MS) * 1000),
            tasks: Tasks::new(env.clock.clone()),
            keys: Mutex::new(crate::keys::history(memory_budget_bytes)),
            started_ms,
            bulk_load_files,
            stop: StopSignal::default(),
            online: OnlineRegions::default(),
            moving: Moving::default(),
            waiting: WaitingRegions::default(),
            replica_sender: OnceLock::new(),
            on_fatal,
            on_stop_request,
            fatal: AtomicBool::new(false),
            threads: Mutex::new(Vec::new()),
            tracer: trace::TracerCell::default(),
            name,
            env,
            meta_env,
            stepped,
        });
        server.apply_grants();
        if !stepped {
            *server.threads.lock() = crate::background::spawn(&server, &config);
        }
        server
    }

    /// From now on flushes, compactions, rolls of the log and orders of a master are traced by `tracer`, too. Only the first counts.
    pub fn trace_by(&self, tracer: Arc<trace::Tracer>) {
        self.tracer.set(tracer);
    }

    /// Has block cache and spare memory keep to what the ledger grants now.
    pub(crate) fn apply_grants(&self) {
        let second_bytes = self.env.cache.second().map_or(0, |second| second.memory_bytes());
        self.env.cache.set_capacity(self.ledger.granted_bytes(Holder::BlockCache).saturating_sub(second_bytes));
        // Flushed memory waits for the next memstores, within what memstores may have. Where there is little, others need it meanwhile.
        let kept = if self.memory_budget_bytes < FEW_BYTES { 0 } else { self.ledger.granted_bytes(Holder::Memstores) };
        region::set_chunk_pool_limit(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    /// What memstores may hold together now.
    pub(crate) fn marks(&self) -> MemoryMarks {
        MemoryMarks::new(self.ledger.granted_bytes(Holder::Memstores), self.settings().memstore_lower_fraction)
    }

    /// Memory of all memstores. What readers still hold of flushed ones is memory, too.
    pub(crate) fn memstores_hold_bytes(&self) -> u64 {
        self.env.memory.memstore_bytes() + self.env.memory.pinned_bytes()
    }

    /// Waits so long, or until the server stops; returns whether it does. Without threads nobody waits.
    pub(crate) fn rest(&self, time: std::time::Duration) -> bool {
        if self.stepped { self.stop.is_set() } else { self.stop.wait(time) }
    }

    /// The settings of now.
    pub(crate) fn settings(&self) -> arc_swap::Guard<Arc<RegionServerSettings>> {
        self.settings.load()
    }

    /// Reads the configuration anew; what may change while the server runs counts from now on. Reads files.
    ///
    /// # Errors
    /// The configuration cannot be used: everything stays as it was.
    pub fn update_configuration(self: &Arc<Self>) -> Result<(), String> {
        let config = (self.read_config)()?;
        self.update_volumes(&config)?;
        self.settings.store(Arc::new(RegionServerSettings::from_config(&config)));
        let of_regions = RegionSettings::from_config(&config).within_budget(self.memory_budget_bytes);
        // That of hbase:meta's regions is the same.
        self.env.settings.store(Arc::new(of_regions));
        self.regions().iter().for_each(|region| region.update_settings());
        self.quotas.update_configuration(&config);
        self.slow_log.update_configuration(&config);
        self.scheduler.update_configuration(&config);
        if !self.stepped {
            let mut threads = self.threads.lock();
            threads.retain(|thread| !thread.is_finished());
            threads.extend(crate::background::staff(self, &config));
        }
        tracing::info!("the configuration was read anew");
        Ok(())
    }

    /// `basalt.volumes` and `basalt.volumes.place.*`: the volumes from now on, and where files go that are written. First of all, as it alone may be
    /// refused for what files there are.
    fn update_volumes(&self, config: &Config) -> Result<(), String> {
        let place = |kind: &fs::FileKind| {
            let tier = config.text(&format!("basalt.volumes.place.{}", kind.name()))?.trim();
            (!tier.is_empty()).then(|| (kind.name(), tier.to_owned()))
        };
        let said = config.text("basalt.volumes").filter(|said| said.trim() != "none").unwrap_or_default();
        let volumes = fs::tiered::parse_volumes(said).map_err(|what| format!("basalt.volumes: {what}"))?;
        if self.env.volume.change_volumes(&volumes, &fs::FileKind::PLACED.iter().filter_map(place).collect())? {
            tracing::info!(
                "volumes are those of basalt.volumes, and files written from now on go where basalt.volumes.place.* say"
            );
        }
        Ok(())
    }

    /// Who holds how much of the memory budget.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// The quotas of its requests.
    pub fn quotas(&self) -> &RpcQuotas {
        &self.quotas
    }

    /// The server's name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Bytes of cells in one reply of a scan or multi at most: as set, and with little memory a part of it, for a reply is held
    /// whole until it is sent. Never less than what HBase's client asks for by itself.
    pub(crate) fn most_reply_bytes(&self) -> u64 {
        let of_memory = (self.memory_budget_bytes / 128).max(LEAST_REPLY_BYTES);
        self.settings().max_reply_bytes.min(of_memory)
    }

    /// Bytes of edits that recovery may hold in memory, for a server with `budget_bytes` in all.
    pub fn recovery_hold_bytes(config: &Config, budget_bytes: u64) -> u64 {
        let limit_bytes = Division::new(config, budget_bytes, u64::MAX).memstores_start_bytes();
        let low_bytes = MemoryMarks::new(limit_bytes, config.get(&settings::GLOBAL_MEMSTORE_LOWER_FRACTION)).low_bytes;
        (low_bytes as f64 * config.get(&settings::RECOVERY_MEMORY_FRACTION)) as u64
    }

    /// Operations that were logged before this moment need not be remembered any more, so that a start reads no more nonces than a server
    /// that runs keeps.
    pub fn nonces_since(config: &Config, clock: &dyn Clock) -> TimestampMs {
        let remember_ms = i64::try_from(config.get(&settings::NONCE_TIMEOUT_MS)).unwrap_or(i64::MAX);
        TimestampMs(clock.now_ms().0.saturating_sub(remember_ms))
    }

    /// To be called when every region has been opened after a start: what the logs took over ([`wal::Log::adopt_recovered`]) for regions that
    /// were not is written to files, and regions with edits of earlier lives in memory are flushed soon. Waits for the disk.
    pub fn flush_recovered_edits(&self) {
        for log in self.logs() {
            match log.write_out_inherited(&mut RegionDirectories { volume: log.volume() }) {
                Ok(0) => {}
                Ok(count) => tracing::info!("edits of {count} regions that are not open went to their recovered.edits"),
                Err(error) => tracing::warn!(
                    "edits of regions that are not open stay in memory and in the logs of the earlier server: they could not be written to \
                     recovered.edits ({error})"
                ),
            }
        }
        for region in self.regions() {
            let lowest = region.env().log.lowest_unflushed(region.name());
            if lowest.is_some_and(|lowest| lowest < region.open_seq_id()) {
                self.maintenance.flushes.push(region.name(), "edits of an earlier life");
            }
        }
    }

    /// Its logs: everybody's, and that of hbase:meta.
    pub(crate) fn logs(&self) -> [&Arc<wal::Log>; 2] {
        [&self.env.log, &self.meta_env.log]
    }

    /// The online region of that encoded name.
    pub fn region(&self, encoded_name: &str) -> Option<Arc<Region>> {
        self.online.get(encoded_name)
    }

    /// The region of that encoded name, if it is closed here only until the volume of its files is back.
    pub(crate) fn waiting_region(&self, encoded_name: &str) -> Option<RegionInfo> {
        self.waiting.get(encoded_name)
    }

    /// How many regions wait until that volume is back. One that has files on several that have failed counts under each.
    pub fn waiting_on(&self, volume: &fs::tiered::VolumeStatus) -> u64 {
        if volume.is_there { 0 } else { self.waiting.count_on(&volume.spec.name()) }
    }

    /// The places of its files beside that of the names. May wait for file systems to answer.
    pub fn volumes(&self) -> Vec<fs::tiered::VolumeStatus> {
        self.env.volume.volumes()
    }

    /// All online regions.
    pub fn regions(&self) -> Vec<Arc<Region>> {
        self.online.all()
    }

    /// Says that the server can no longer be trusted. The first call wins.
    pub(crate) fn fail(&self, why: String) {
        if !self.fatal.swap(true, Ordering::SeqCst) {
            tracing::error!("{why}; the server stops, and the next start recovers from the log");
            (self.on_fatal)(why);
        }
    }

    /// Whether something happened after which the server must stop.
    pub(crate) fn has_failed(&self) -> bool {
        self.fatal.load(Ordering::SeqCst)
    }

    /// Passes on a client's wish that the server stop.
    pub(crate) fn request_stop(&self, reason: &str) {
        (self.on_stop_request)(format!("asked to stop by a client: {reason}"));
    }

    /// Stops the server if the error calls for that; gives the error back.
    pub(crate) fn escalate_fatal(&self, error: RegionError) -> RegionError {
        if error.remedy() == region::Remedy::StopServer {
            self.fail(error.to_string());
        }
        error
    }
}
