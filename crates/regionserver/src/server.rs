//! The server itself: which regions are online, opening and closing them, and what the master asks of them.
//!
//! Methods here block (they read and write files): callers on Tokio run them on the blocking pool.

use crate::bulk_load::BulkLoadFiles;
use crate::handlers::scan::OpenScanner;
use crate::large_writes::FlushesEnded;
use crate::memory::{Division, MemoryWatch};
use crate::nonces::Nonces;
use crate::pressure::MemoryMarks;
use crate::resolved::RegionServerSettings;
use crate::scanners::Scanners;
use crate::settings;
use crate::work_queue::WorkQueue;
use arc_swap::ArcSwap;
use base::{Adder, Clock, Config, Holder, Ledger, TimestampMs};
use bytes::Bytes;
use cell::CellBuffer;
use model::{Durability, Mutation, Nonce, RegionInfo, Scan, ServerName, TableDescriptor};
use parking_lot::{Condvar, Mutex, RwLock};
use region::{
    CloseMode, CompactionKind, FlushReason, FlushRequest, Limits, OpenRegion, Region, RegionDirectories, RegionEnv,
    RegionError,
};
use rustc_hash::{FxHashMap, FxHashSet};
use scheduler::Scheduler;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Regions closed at the same time when the server stops.
const CLOSERS: usize = 32;

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
    /// All calls.
    pub total: Adder,
    /// Rows read by Get and Multi, and scan calls.
    pub reads: Adder,
    /// Rows written.
    pub writes: AtomicU64,
}

/// A region server.
pub struct RegionServer {
    pub(crate) name: ServerName,
    pub(crate) env: Arc<RegionEnv>,
    meta_env: Arc<RegionEnv>,
    settings: ArcSwap<RegionServerSettings>,
    read_config: ReadConfig,
    pub(crate) memory_watch: Mutex<MemoryWatch>,
    pub(crate) memory_budget_bytes: u64,
    pub(crate) scanners: Scanners<OpenScanner>,
    /// Bytes of a row in the last scan's reply: what room to make for the next.
    pub(crate) scanned_row_bytes: AtomicUsize,
    pub(crate) nonces: Arc<Nonces>,
    /// Who holds how much of the memory budget.
    pub(crate) ledger: Arc<Ledger>,
    /// Where calls run that may wait.
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) flushes: WorkQueue<&'static str>,
    pub(crate) flushes_ended: FlushesEnded,
    pub(crate) small_compactions: WorkQueue<Option<CompactionRequest>>,
    pub(crate) large_compactions: WorkQueue<Option<CompactionRequest>>,
    pub(crate) counts: RequestCounts,
    pub(crate) compactions_enabled: AtomicBool,
    pub(crate) started_ms: i64,
    pub(crate) bulk_load_files: BulkLoadFiles,
    pub(crate) split_requests: SplitRequests,
    pub(crate) stop: StopSignal,
    /// Flushes that failed because the disk is full.
    pub(crate) full_flushes: base::LogThrottle,
    /// Nonces that were forgotten before their time.
    pub(crate) forgotten_nonces: base::LogThrottle,
    regions: RwLock<FxHashMap<Arc<str>, Arc<Region>>>,
    in_transition: Mutex<FxHashSet<Arc<str>>>,
    on_fatal: Arc<dyn Fn(String) + Send + Sync>,
    on_stop_request: Arc<dyn Fn(String) + Send + Sync>,
    fatal: AtomicBool,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    stepped: bool,
}

/// What was asked to be compacted; `None` in a queue means "what the policy chooses".
#[derive(Clone, Debug)]
pub(crate) struct CompactionRequest {
    pub family: Option<Bytes>,
    pub kind: CompactionKind,
}

/// Tells background threads to end, and lets them wait for it.
#[derive(Default)]
pub(crate) struct StopSignal {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    pub fn is_set(&self) -> bool {
        *self.stopped.lock()
    }

    pub fn set(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for the signal, at most `timeout`; returns whether it is set.
    pub fn wait(&self, timeout: std::time::Duration) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, timeout);
        }
        *stopped
    }
}

/// With a smaller budget no memory waits for use.
const FEW_BYTES: u64 = 512 << 20;

/// `hbase.client.scanner.max.result.size` of a client that sets nothing.
const LEAST_REPLY_BYTES: u64 = 2 << 20;

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
        // Ids of two lives of a server do not meet: the start code is in their upper half.
        let first_scanner_id = (name.start_code & 0x7FFF_FFFF) << 32 | 1;
        let scheduler =
            if stepped { Scheduler::stepped(clock.clone()) } else { Scheduler::new(clock.clone(), &config) };
        let lanes = Arc::downgrade(&scheduler);
        // Calls that wait for room are looked at again.
        ledger.set_on_release(move || {
            if let Some(lanes) = lanes.upgrade() {
                lanes.kick();
            }
        });
        let server = Arc::new(RegionServer {
            settings: ArcSwap::from_pointee(RegionServerSettings::from_config(&config)),
            read_config,
            memory_watch: Mutex::new(MemoryWatch::default()),
            memory_budget_bytes,
            scanned_row_bytes: AtomicUsize::new(0),
            scanners: Scanners::new(clock.clone(), config.get(&settings::SCANNER_TIMEOUT_MS), first_scanner_id),
            scheduler,
            nonces: Nonces::new(clock, config.get(&settings::NONCE_TIMEOUT_MS), &ledger),
            ledger,
            flushes: WorkQueue::default(),
            flushes_ended: FlushesEnded::default(),
            small_compactions: WorkQueue::default(),
            large_compactions: WorkQueue::default(),
            counts: RequestCounts::default(),
            compactions_enabled: AtomicBool::new(true),
            started_ms,
            bulk_load_files,
            split_requests,
            stop: StopSignal::default(),
            full_flushes: base::LogThrottle::every_us(crate::background::REPEAT_MESSAGE_US),
            forgotten_nonces: base::LogThrottle::every_us(crate::background::REPEAT_MESSAGE_US),
            regions: RwLock::new(FxHashMap::default()),
            in_transition: Mutex::new(FxHashSet::default()),
            on_fatal,
            on_stop_request,
            fatal: AtomicBool::new(false),
            threads: Mutex::new(Vec::new()),
            name,
            env,
            meta_env,
            stepped,
        });
        server.apply_grants();
        server.remember(recovered_nonces);
        if !stepped {
            *server.threads.lock() = crate::background::spawn(&server, &config);
        }
        server
    }

    /// Has block cache and spare memory keep to what the ledger grants now.
    pub(crate) fn apply_grants(&self) {
        self.env.cache.set_capacity(self.ledger.granted_bytes(Holder::BlockCache));
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
    pub(crate) fn update_configuration(&self) -> Result<(), String> {
        let config = (self.read_config)()?;
        self.settings.store(Arc::new(RegionServerSettings::from_config(&config)));
        tracing::info!("the configuration was read anew");
        Ok(())
    }

    /// Who holds how much of the memory budget.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
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

    /// Operations that were logged have succeeded: a retry does not count.
    fn remember(&self, nonces: impl IntoIterator<Item = Nonce>) {
        nonces.into_iter().for_each(|nonce| self.nonces.recovered(nonce));
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
                self.flushes.push(region.name(), "edits of an earlier life");
            }
        }
    }

    /// Its logs: everybody's, and that of hbase:meta.
    pub(crate) fn logs(&self) -> [&Arc<wal::Log>; 2] {
        [&self.env.log, &self.meta_env.log]
    }

    /// The online region of that encoded name.
    pub fn region(&self, encoded_name: &str) -> Option<Arc<Region>> {
        self.regions.read().get(encoded_name).cloned()
    }

    /// All online regions.
    pub fn regions(&self) -> Vec<Arc<Region>> {
        self.regions.read().values().cloned().collect()
    }

    /// Whether the region is being opened or closed.
    pub(crate) fn is_in_transition(&self, encoded_name: &str) -> bool {
        self.in_transition.lock().contains(encoded_name)
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

    /// Opens a region: replays what the log left for it, then serves it. Returns its open sequence number. A region
    /// that is online already is left as it is.
    ///
    /// # Errors
    /// [`ServerError`]; the region is not online then.
    pub fn open_region(&self, info: &RegionInfo, table: Arc<TableDescriptor>) -> Result<u64, ServerError> {
        let name = info.encoded_name().clone();
        if self.stop.is_set() {
            return Err(ServerError::Stopping(self.name.clone()));
        }
        if let Some(region) = self.region(&name) {
            if region.is_closing() {
                // Its closing failed half way and has to end first: what it holds is in the log only.
                self.close_region(&name)?;
            } else {
                return Ok(region.open_seq_id().0);
            }
        }
        let _transition = self.begin_transition(&name, info)?;
        let env = if info.table.is_meta() { self.meta_env.clone() } else { self.env.clone() };
        let request = OpenRegion { info: info.clone(), table, env };
        let region = Region::open(request).map_err(|error| self.escalate_fatal(error))?;
        self.remember(region.recovered_nonces().into_iter().map(|recovered| recovered.nonce));
        let open_seq_id = region.open_seq_id().0;
        self.regions.write().insert(name.clone(), region.clone());
        if region.needs_compaction() || region.splitter().has_references() {
            self.small_compactions.push(&name, None);
        }
        Ok(open_seq_id)
    }

    /// Closes a region: flushes it and refuses further calls. A region that is not online is closed already.
    ///
    /// # Errors
    /// [`ServerError`]; the region is open as before or half closed (it takes no more calls), and stays here: closing it
    /// again goes on where this stopped.
    pub fn close_region(&self, encoded_name: &str) -> Result<(), ServerError> {
        let Some(region) = self.region(encoded_name) else { return Ok(()) };
        let name = region.info().encoded_name().clone();
        let _transition = self.begin_transition(&name, region.info())?;
        self.close_and_forget(&region, CloseMode::Flush)
    }

    fn close_and_forget(&self, region: &Arc<Region>, mode: CloseMode) -> Result<(), ServerError> {
        let closed = region.close(mode).map_err(|error| self.escalate_fatal(error));
        if closed.is_err()
            && !base::inject!("regionserver.close.failure-forgotten")
            && mode == CloseMode::Flush
            && !self.stop.is_set()
        {
            // What could not be flushed is in its memstores and in the log, which nobody replays while this server lives:
            // forgotten here, it would be missing from the region as it is opened next. The close is to be tried again.
            return Ok(closed?);
        }
        self.regions.write().remove(region.info().encoded_name());
        self.scanners.close_where(|scanner| Arc::ptr_eq(scanner.region(), region));
        Ok(closed?)
    }

    fn begin_transition(&self, name: &Arc<str>, info: &RegionInfo) -> Result<Transition<'_>, ServerError> {
        if !self.in_transition.lock().insert(name.clone()) {
            return Err(ServerError::InTransition(info.name_string()));
        }
        Ok(Transition { server: self, name: name.clone() })
    }

    fn online(&self, encoded_name: &str) -> Result<Arc<Region>, ServerError> {
        self.region(encoded_name).ok_or_else(|| ServerError::NotOnline(encoded_name.to_owned()))
    }

    /// Flushes a region now, whole or some families; waits for a flush that runs. Returns whether there was something.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn flush_region(&self, encoded_name: &str, families: Vec<Bytes>) -> Result<bool, ServerError> {
        let region = self.online(encoded_name)?;
        self.flush_now(&region, families)
    }

    pub(crate) fn flush_now(&self, region: &Arc<Region>, families: Vec<Bytes>) -> Result<bool, ServerError> {
        let request = FlushRequest { families, all: true };
        let outcome = region.flush(&request).map_err(|error| self.escalate_fatal(error));
        self.flushes_ended.tell();
        let outcome = outcome?;
        if outcome.needs_compaction {
            self.small_compactions.push(region.info().encoded_name(), None);
        }
        Ok(outcome.flushed)
    }

    /// Asks for a compaction; returns at once.
    ///
    /// # Errors
    /// The region is not online.
    pub fn request_compaction(
        &self,
        encoded_name: &str,
        family: Option<Bytes>,
        major: bool,
    ) -> Result<(), ServerError> {
        let region = self.online(encoded_name)?;
        if major {
            region.request_major_compaction(family.as_deref())?;
        }
        let kind = if major { CompactionKind::Major } else { CompactionKind::Minor };
        let queue = if major { &self.large_compactions } else { &self.small_compactions };
        queue.push(region.info().encoded_name(), Some(CompactionRequest { family, kind }));
        Ok(())
    }

    /// The row at which a region is best split, flushing it if only its memstore knows one. `None` when it has no row
    /// to split at.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn split_point(&self, encoded_name: &str) -> Result<Option<Bytes>, ServerError> {
        let region = self.online(encoded_name)?;
        if let Some(row) = region.splitter().split_point()? {
            return Ok(Some(row));
        }
        self.flush_now(&region, Vec::new())?;
        Ok(region.splitter().split_point()?)
    }

    /// Writes the daughters of a closed parent.
    ///
    /// # Errors
    /// [`ServerError`]; doing it again is safe.
    pub fn split_region_files(
        &self,
        parent: &RegionInfo,
        table: &TableDescriptor,
        daughters: [&RegionInfo; 2],
    ) -> Result<(), ServerError> {
        Ok(region::split::write_daughters(&self.env, parent, table, daughters)
            .map_err(|error| self.escalate_fatal(error))?)
    }

    /// Whether a region that is online here still refers to its parent's files.
    pub fn has_references(&self, encoded_name: &str) -> Option<bool> {
        self.region(encoded_name).map(|region| region.splitter().has_references())
    }

    /// Applies mutations to an online region, all or nothing, durable and visible on return, whatever the log promises others: how the
    /// master writes hbase:meta and hbase:namespace.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn mutate(&self, encoded_name: &str, mut mutations: Vec<Mutation>) -> Result<(), ServerError> {
        let region = self.online(encoded_name)?;
        mutations.iter_mut().for_each(|mutation| mutation.durability = Durability::FsyncWal);
        let written = region.mutate_rows(&mutations, None).map_err(|error| self.escalate_fatal(error))?;
        written.commit.wait().map_err(|error| self.escalate_fatal(error))?;
        self.consider_flush(&region);
        Ok(())
    }

    /// All cells that a scan of one region finds: for small scans of hbase:meta.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn scan(&self, encoded_name: &str, scan: &Scan) -> Result<CellBuffer, ServerError> {
        let region = self.online(encoded_name)?;
        let mut scanner = region.scanner(scan)?;
        let mut out = CellBuffer::new();
        let mut limits = Limits::default();
        while scanner.next(&mut limits, &mut out)?.more {}
        Ok(out)
    }

    /// Queues a flush if the region wants one.
    pub(crate) fn consider_flush(&self, region: &Arc<Region>) {
        let reason = match region.needs_flush() {
            None => return,
            Some(FlushReason::Size) => "size",
            Some(FlushReason::Edits) => "number of edits",
            Some(FlushReason::Age) => "age of the oldest edit",
        };
        self.flushes.push(region.info().encoded_name(), reason);
    }

    /// Stops: closes every region (hbase:meta last), then the background threads. With [`CloseMode::Abort`] nothing is
    /// flushed; the next start replays the log. Returns the first error, having tried everything.
    ///
    /// # Errors
    /// [`ServerError`] of the first region that did not close.
    pub fn stop(&self, mode: CloseMode) -> Result<(), ServerError> {
        self.stop_within(mode, None).map(drop)
    }

    /// Ends calls that wait in the lanes, and those that run at their next pause point.
    pub fn stop_calls(&self) {
        self.scheduler.stop();
    }

    /// As [`RegionServer::stop`]; regions whose closing begins when `flush_for` has passed are not flushed: what they hold is in the log.
    /// Returns how many of them there are.
    ///
    /// # Errors
    /// As [`RegionServer::stop`].
    pub fn stop_within(&self, mode: CloseMode, flush_for: Option<std::time::Duration>) -> Result<usize, ServerError> {
        let clock = &self.env.clock;
        let flush_until_us = flush_for.map(|time| clock.monotonic_us() + time.as_micros() as u64);
        let left_to_log = AtomicUsize::new(0);
        let mode_of = |region: &Region| {
            let is_late = flush_until_us.is_some_and(|until_us| clock.monotonic_us() >= until_us);
            if mode == CloseMode::Flush && is_late && region.memstore_bytes() > 0 {
                left_to_log.fetch_add(1, Ordering::Relaxed);
                return CloseMode::Abort;
            }
            mode
        };
        self.stop.set();
        self.scheduler.stop();
        region::wake_prefaulters();
        self.flushes.close();
        self.small_compactions.close();
        self.large_compactions.close();
        let (meta, others): (Vec<_>, Vec<_>) =
            self.regions().into_iter().partition(|region| region.info().table.is_meta());
        // Each close waits for its marker in the log; side by side they share its syncs.
        let waiting = Mutex::new(others);
        let first_error = Mutex::new(None);
        let close_all = |waiting: &Mutex<Vec<Arc<Region>>>| {
            loop {
                let Some(region) = waiting.lock().pop() else { return };
                if let Err(error) = self.close_and_forget(&region, mode_of(&region)) {
                    tracing::warn!("closing {}: {error}", region.info().name_string());
                    first_error.lock().get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            let closers = if self.stepped { 1 } else { waiting.lock().len().min(CLOSERS) };
            for _ in 1..closers {
                scope.spawn(|| close_all(&waiting));
            }
            close_all(&waiting);
        });
        close_all(&Mutex::new(meta));
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a background thread had panicked");
            }
        }
        first_error.into_inner().map_or(Ok(left_to_log.into_inner()), Err)
    }
}

/// A region between being asked for and being done; ends when dropped.
struct Transition<'a> {
    server: &'a RegionServer,
    name: Arc<str>,
}

impl Drop for Transition<'_> {
    fn drop(&mut self) {
        self.server.in_transition.lock().remove(&self.name);
    }
}
