//! Background work: threads that flush, compact, and once a second look after leases, the log and memory.

use crate::idle_scanners;
use crate::maintenance::CompactionRequest;
use crate::operations::Compacted;
use crate::replicas::StoreFileRefresher;
use crate::server::RegionServer;
use crate::{settings, slow_log, traces};
use base::{Config, Holder, LogThrottle};
use parking_lot::Mutex;
use region::{CompactionKind, FlushRequest, Region, Throttle};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the chores look around.
pub(crate) const CHORE_PERIOD_MS: u64 = 250;

/// Rounds of the chores between two looks at how many threads there are to be.
const STAFF_EVERY_CHORES: u64 = 4;

/// How often volumes are looked at that may grow slow.
const VOLUMES_PERIOD: Duration = Duration::from_secs(1);

/// How long a flusher rests after a flush that failed.
const FAILED_FLUSH_PAUSE: Duration = Duration::from_secs(1);

/// How soon a message that stays true is repeated.
pub(crate) const REPEAT_MESSAGE_US: u64 = 60_000_000;

/// What a thread does.
type Body = Box<dyn FnOnce(&Arc<RegionServer>) + Send>;

#[allow(clippy::disallowed_methods, reason = "the threads of a server begin here")]
fn start(server: &Arc<RegionServer>, name: String, body: Body) -> std::io::Result<JoinHandle<()>> {
    let server = server.clone();
    std::thread::Builder::new().name(name).spawn(move || body(&server))
}

/// Starts the threads that flush and compact, as many as there are to be and are not; those that are too many end by themselves. Follows:
/// `CompactSplit#onConfigurationChange`, `MemStoreFlusher#onConfigurationChange`.
pub(crate) fn staff(server: &Arc<RegionServer>, config: &Config) -> Vec<JoinHandle<()>> {
    let (flushers, compactors) =
        (config.get(&settings::FLUSHER_COUNT) as usize, config.get(&settings::SMALL_COMPACTION_THREADS) as usize);
    server.maintenance.flushers.lock().set(flushers);
    server.maintenance.compactors.lock().set(compactors);
    let mut threads = staff_flushers(server, flushers);
    threads.extend(staff_compactors(server, compactors));
    let queue = &server.maintenance.large_compactions;
    let missing = queue.staff(config.get(&settings::LARGE_COMPACTION_THREADS) as usize);
    let body = |server: &Arc<RegionServer>| {
        server.maintenance.large_compactions.run(|name, asked| compact(server, name, asked));
    };
    threads.extend(start_all(server, "compact-l", missing, body, &|| queue.unstaff()));
    threads
}

fn staff_flushers(server: &Arc<RegionServer>, wanted: usize) -> Vec<JoinHandle<()>> {
    let queue = &server.maintenance.flushes;
    let body = |server: &Arc<RegionServer>| {
        server.maintenance.flushes.run(|name, reason| flush(server, name, reason));
    };
    start_all(server, "flusher", queue.staff(wanted), body, &|| queue.unstaff())
}

fn staff_compactors(server: &Arc<RegionServer>, wanted: usize) -> Vec<JoinHandle<()>> {
    let queue = &server.maintenance.small_compactions;
    let body = |server: &Arc<RegionServer>| {
        server.maintenance.small_compactions.run(|name, asked| compact(server, name, asked));
    };
    start_all(server, "compact-s", queue.staff(wanted), body, &|| queue.unstaff())
}

/// Starts threads of a queue, as many as it misses.
fn start_all(
    server: &Arc<RegionServer>,
    name: &str,
    missing: usize,
    body: fn(&Arc<RegionServer>),
    unstaff: &dyn Fn(),
) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for number in 0..missing {
        match start(server, format!("{name}-{number}"), Box::new(body)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                tracing::warn!("a thread {name} cannot be started, there is one less: {error}");
                unstaff();
            }
        }
    }
    threads
}

/// Where there are several disks: as many threads flush and make small compactions as get more done together.
fn adapt_staff(server: &Arc<RegionServer>) {
    if !server.env.volume.has_several_places() {
        return;
    }
    let (maintenance, memory, now_us) = (&server.maintenance, &server.env.memory, server.env.clock.monotonic_us());
    let waits = maintenance.flushes.len() > 0;
    let flushers = maintenance.flushers.lock().look(waits, memory.flush_drain.per_second(now_us), now_us);
    let waits = maintenance.small_compactions.len() > 0;
    let compactors = maintenance.compactors.lock().look(waits, memory.compaction_drain.per_second(now_us), now_us);
    let mut started = flushers.map(|wanted| staff_flushers(server, wanted)).unwrap_or_default();
    started.extend(compactors.map(|wanted| staff_compactors(server, wanted)).unwrap_or_default());
    if flushers.is_some() || compactors.is_some() {
        tracing::debug!(?flushers, ?compactors, "threads that flush and compact");
        let mut threads = server.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.extend(started);
    }
}

/// Starts the threads of a server.
pub(crate) fn spawn(server: &Arc<RegionServer>, config: &Config) -> Vec<JoinHandle<()>> {
    let mut threads = staff(server, config);
    let mut start = |name: String, body: Body| {
        threads.push(start(server, name, body).expect("the system lets a process have a dozen threads"));
    };
    start("chores".into(), Box::new(chores));
    if server.env.cache.second().is_some() {
        let bytes_per_second = config.get(&settings::SECOND_LEVEL_WRITE_RATE);
        start("cache-writer".into(), Box::new(move |server| write_second_level(server, bytes_per_second)));
    }
    start("prefetch".into(), Box::new(|server| server.maintenance.prefetches.run(|name, ()| prefetch(server, name))));
    start("mob-cleaner".into(), Box::new(clean_mob_files));
    if let Some(period) = slow_log::table_period(config) {
        let body = move |server: &Arc<RegionServer>| {
            while !server.stop.wait(period) {
                slow_log::write_table(server);
            }
        };
        start("slow-log-table".into(), Box::new(body));
    }
    if let Some(refresher) = StoreFileRefresher::from_config(config) {
        start("store-files".into(), Box::new(move |server| refresher.run(server)));
    }
    if server.env.keys.is_on() {
        start("keys".into(), Box::new(crate::keys::run));
    }
    start(
        "volumes".into(),
        Box::new(|server| {
            while !server.stop.wait(VOLUMES_PERIOD) {
                attend_volumes(server);
                server.look_at_volumes();
            }
        }),
    );
    start("memory".into(), Box::new(|server| region::prefault_chunks(|| server.stop.is_set())));
    threads
}

/// Has each volume looked after by a thread of its own, which alone is held up when it stands still. One that is no longer there ends its thread.
fn attend_volumes(server: &Arc<RegionServer>) {
    for volume in server.env.volume.places() {
        if !server.waiting.attend(&volume) {
            continue;
        }
        let name = volume.clone();
        let body = move |server: &Arc<RegionServer>| {
            while server.env.volume.places().contains(&name) {
                server.look_after_volume(&name);
                if server.stop.wait(VOLUMES_PERIOD) {
                    return;
                }
            }
            server.waiting.leave(&name);
        };
        match start(server, "volume".into(), Box::new(body)) {
            Ok(thread) => {
                let mut threads = server.threads.lock();
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            }
            Err(error) => {
                tracing::warn!(
                    "volume {volume} is not monitored, no thread can be started: {error}; raise the limit of threads (ulimit -u) and restart"
                );
                server.waiting.leave(&volume);
            }
        }
    }
}

/// Has files moved off a volume, no faster than a compaction writes.
pub(crate) fn drain(server: &Arc<RegionServer>, directory: &str) -> std::io::Result<()> {
    let directory = directory.to_owned();
    let body = move |server: &Arc<RegionServer>| {
        let pace = Pace::new(server);
        server.move_files_off(&directory, &|bytes| pace.wrote(bytes));
    };
    let thread = start(server, "drain".into(), Box::new(body))?;
    let mut threads = server.threads.lock();
    threads.retain(|thread| !thread.is_finished());
    threads.push(thread);
    Ok(())
}

/// Writes the second level of the block cache, no faster than so many bytes in a second.
fn write_second_level(server: &Arc<RegionServer>, bytes_per_second: u64) {
    let Some(second) = server.env.cache.second() else { return };
    loop {
        let goes_on = second.wait_for_work();
        let written = second.write_segment();
        if !goes_on {
            return;
        }
        server.stop.wait(Duration::from_secs_f64(written as f64 / bytes_per_second as f64));
    }
}

fn flush(server: &Arc<RegionServer>, name: &Arc<str>, reason: &'static str) {
    let Some(region) = server.region(name) else { return };
    if region.info().is_replica() {
        let held_bytes = region.memstore_bytes();
        let refreshed = server.refresh_replica(&region);
        if let Err(error) = &refreshed {
            tracing::warn!(
                "the store files of read replica {} were not refreshed: {error}; trying again",
                region.info().name_string()
            );
        }
        if region.memstore_bytes() >= held_bytes {
            // Its primary has not flushed: not asked again at once.
            server.rest(FAILED_FLUSH_PAUSE);
        }
        return;
    }
    // Read replicas that missed something are told of the files when all is in files.
    let all = region.outbox().is_some_and(|outbox| outbox.wants_flush());
    let flushed = server.flush(&region, &FlushRequest { all, ..FlushRequest::default() });
    match flushed {
        Ok(outcome) => {
            if outcome.flushed {
                tracing::debug!(region = %region.info().name_string(), reason, bytes = outcome.bytes, "flushed");
            }
            request_split(server, &region);
        }
        Err(error) if region.is_closing() => tracing::debug!("flush of a closing region: {error}"),
        // One message says that the disk is full; each region's failure would drown it.
        Err(error) if error.is_disk_full() && !server.maintenance.full_flushes.allow(&*server.env.clock) => {
            tracing::debug!("flushing {}: {error}", region.info().name_string());
            server.rest(FAILED_FLUSH_PAUSE);
        }
        Err(error) => {
            tracing::warn!("flushing {}: {error}", region.info().name_string());
            // What failed (a full disk, say) will hardly be repaired at once, and every write asks again.
            server.rest(FAILED_FLUSH_PAUSE);
        }
    }
}

fn request_split(server: &Arc<RegionServer>, region: &Arc<Region>) {
    let (all, of_table) = server.online.count_with(&region.info().table);
    if all < server.settings().region_split_limit && region.splitter().should_split(of_table) {
        // Without a master it is asked for again after the next flush or compaction.
        let _asked = server.maintenance.request_split(region, None);
    }
}

fn compact(server: &Arc<RegionServer>, name: &Arc<str>, asked: Option<CompactionRequest>) {
    if asked.is_none() && !server.maintenance.compacts() {
        return;
    }
    let Some(region) = server.region(name) else { return };
    let asked = asked.unwrap_or(CompactionRequest { family: None, kind: CompactionKind::Minor });
    // A major one is owed once to each store: asked for again every round, it would rewrite its own result for ever.
    if asked.kind == CompactionKind::Major
        && let Err(error) =
            region.request_major_compaction(asked.family.as_deref()).map_err(|error| server.escalate_fatal(error))
    {
        tracing::warn!("compacting {}: {error}", region.info().name_string());
        return;
    }
    let families: Vec<_> = match asked.family {
        Some(family) => vec![family],
        None => region.table().families.keys().cloned().collect(),
    };
    for family in families {
        compact_family(server, &region, &family, asked.kind);
    }
    if let Err(error) = region.archive_compacted_files() {
        tracing::warn!("archiving compacted files of {}: {error}", region.info().name_string());
    }
    request_split(server, &region);
}

/// A major compaction is one job; minor ones go on until the policy has no more.
fn compact_family(server: &Arc<RegionServer>, region: &Arc<Region>, family: &[u8], kind: CompactionKind) {
    while !server.stop.is_set() {
        let job = match region.select_compaction(Some(family), kind).map_err(|error| server.escalate_fatal(error)) {
            Ok(Some(job)) => job,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!("choosing files of {}: {error}", region.info().name_string());
                return;
            }
        };
        let is_major = job.is_major();
        let begun_us = server.env.clock.monotonic_us();
        let store = format!("{}/{}", region.info().encoded_name(), String::from_utf8_lossy(family));
        let description = format!("Compacting {store} in {}", region.info().name_string());
        let task = server.tasks.begin(description, format!("Compacting store {store}"));
        let compact = || region.compact(job, &Pace::new(server));
        let compacted = traces::on_region(server, "Region.compact", region.info(), compact);
        match compacted.map_err(|error| server.escalate_fatal(error)) {
            Ok(outcome) if outcome.completed => {
                server.operations.compacted(&Compacted {
                    is_major,
                    took_us: server.env.clock.monotonic_us().saturating_sub(begun_us),
                    input_files: outcome.input_files as u64,
                    input_bytes: outcome.input_bytes,
                    output_bytes: outcome.output_bytes,
                });
                server.refresh_replicas(region);
                task.complete("Compaction complete");
            }
            Ok(_) => task.abort(format!("region {} compaction interrupted", region.info().name_string())),
            Err(error) => {
                task.abort(error.to_string());
                if !region.is_closing() && !server.stop.is_set() {
                    tracing::warn!("compacting {}: {error}", region.info().name_string());
                }
                return;
            }
        }
        if is_major {
            return;
        }
    }
}

/// Bytes of blocks that are read between two looks at how full the cache is: that costs a walk over its shards.
const PREFETCHED_BETWEEN_LOOKS: u64 = 1 << 20;

/// Reads a region's files into the cache, those of families that want it, until the cache is full: more would only push out what was read before. Follows:
/// `HFilePreadReader`.
fn prefetch(server: &Arc<RegionServer>, name: &Arc<str>) {
    let Some(region) = server.region(name) else { return };
    let cache = &server.env.cache;
    let (mut since_look, mut is_full) = (PREFETCHED_BETWEEN_LOOKS, false);
    let read = region.prefetch(&mut |bytes| {
        since_look += bytes;
        if since_look >= PREFETCHED_BETWEEN_LOOKS {
            since_look = 0;
            let stats = cache.stats();
            is_full = stats.used_bytes + PREFETCHED_BETWEEN_LOOKS > stats.capacity_bytes;
        }
        // The second level is written no faster than it may be.
        let fills_second = cache.second().is_some_and(|second| second.wait_for_room(bytes));
        (!is_full || fills_second) && !server.stop.is_set()
    });
    match read {
        Ok(0) => {}
        Ok(files) => tracing::debug!(region = %region.info().name_string(), files, "read into the block cache"),
        Err(error) if region.is_closing() => tracing::debug!("reading a closing region's files: {error}"),
        Err(error) => {
            tracing::warn!(
                "cannot prefetch blocks of region {} into the block cache: {error}",
                region.info().name_string()
            );
            // The others.
            server.maintenance.consider_prefetch(&region);
        }
    }
}

/// A compaction that is ahead of its pace by less goes on: every rest is two turns of the scheduler, and a cold start after it. At 50 MB a second
/// that is a rest for each write of 2 MiB, after less than two milliseconds of a processor; HBase rests once in 50 MB.
const LEAST_REST_US: u64 = 40_000;

impl RegionServer {
    /// What a compaction that began now might write in a second, as bytes before compression.
    pub fn compaction_bytes_per_second(&self) -> u64 {
        let settings = self.settings();
        let (low, high) = (settings.compaction_bytes_per_second, settings.compaction_bytes_per_second_max);
        // Jobs waiting behind it are the pressure: with four or more the upper bound holds.
        let waiting =
            (self.maintenance.small_compactions.len() + self.maintenance.large_compactions.len()).min(4) as u64;
        low + high.saturating_sub(low) * waiting / 4
    }
}

/// Paces one compaction: so many bytes a second, more when stores are full. Follows:
/// `PressureAwareCompactionThroughputController`.
struct Pace<'a> {
    server: &'a RegionServer,
    bytes_per_second: u64,
    state: Mutex<(u64, u64)>,
}

impl<'a> Pace<'a> {
    fn new(server: &'a RegionServer) -> Pace<'a> {
        let bytes_per_second = server.compaction_bytes_per_second();
        Pace { server, bytes_per_second, state: Mutex::new((server.env.clock.monotonic_us(), 0)) }
    }
}

impl Throttle for Pace<'_> {
    fn wrote(&self, bytes: u64) -> bool {
        let wait_us = {
            let mut state = self.state.lock();
            state.1 += bytes;
            let due_us = state.0 + state.1.saturating_mul(1_000_000) / self.bytes_per_second;
            due_us.saturating_sub(self.server.env.clock.monotonic_us())
        };
        if wait_us > LEAST_REST_US {
            !self.server.rest(Duration::from_micros(wait_us))
        } else {
            !self.server.stop.is_set()
        }
    }
}

/// What the chores know of the logs from earlier rounds.
struct LogWatch {
    rolled_us: u64,
    /// Operators have been told that writes are refused.
    is_read_only: bool,
    failed_rolls: LogThrottle,
}

fn chores(server: &Arc<RegionServer>) {
    let mut round = 0u64;
    let rolled_us = server.env.clock.monotonic_us();
    let mut logs = LogWatch { rolled_us, is_read_only: false, failed_rolls: LogThrottle::every_us(REPEAT_MESSAGE_US) };
    while !server.stop.wait(Duration::from_millis(CHORE_PERIOD_MS)) {
        round += 1;
        run_chores(server, &mut logs, round.is_multiple_of(server.settings().survey_every_chores));
        if round.is_multiple_of(STAFF_EVERY_CHORES) {
            adapt_staff(server);
        }
    }
}

/// One round of the chores.
fn run_chores(server: &Arc<RegionServer>, logs: &mut LogWatch, survey_too: bool) {
    server.sessions.expire_scanners();
    relieve_memory(server);
    maintain_logs(server, logs);
    if survey_too {
        survey(server);
        server.sessions.forget_old_nonces(&*server.env.clock);
        region::release_pooled_chunks();
    }
}

/// What the threads of a server would do, one piece at a time and when the caller says so: a server without threads is driven
/// by these, and one seed gives one run.
impl RegionServer {
    /// One round of the chores, the survey of all regions included.
    pub fn step_chores(self: &Arc<Self>) {
        let rolled_us = self.env.clock.monotonic_us();
        let mut logs =
            LogWatch { rolled_us, is_read_only: false, failed_rolls: LogThrottle::every_us(REPEAT_MESSAGE_US) };
        run_chores(self, &mut logs, true);
    }

    /// The oldest waiting flush; false when none waits.
    pub fn step_flush(self: &Arc<Self>) -> bool {
        self.maintenance.flushes.run_one(|name, reason| flush(self, name, reason))
    }

    /// Whether calls that go to the scheduler's lanes wait there from now on until [`RegionServer::step_call`].
    pub fn hold_calls(&self, holds: bool) {
        self.scheduler.hold(holds);
    }

    /// The next call that waits in a lane; false when none does.
    pub fn step_call(&self) -> bool {
        self.scheduler.step()
    }

    /// The oldest waiting reading of files into the cache; false when none waits.
    pub fn step_prefetch(self: &Arc<Self>) -> bool {
        self.maintenance.prefetches.run_one(|name, ()| prefetch(self, name))
    }

    /// The oldest waiting compaction, small ones first; false when none waits.
    pub fn step_compaction(self: &Arc<Self>) -> bool {
        self.maintenance.small_compactions.run_one(|name, asked| compact(self, name, asked))
            || self.maintenance.large_compactions.run_one(|name, asked| compact(self, name, asked))
    }
}

/// Now and then archives the MOB files that no store file names any more. On a thread of its own: it opens every store
/// file of the tables that have some.
fn clean_mob_files(server: &Arc<RegionServer>) {
    while !server.stop.wait(server.settings().mob_cleaner_period) {
        let min_age_ms = server.settings().mob_min_age_ms;
        let mut regions = server.regions();
        regions.retain(|region| {
            !region.info().is_replica() && region.table().families.values().any(|family| family.is_mob())
        });
        regions.sort_by(|a, b| a.info().table.cmp(&b.info().table));
        for of_table in regions.chunk_by(|a, b| a.info().table == b.info().table) {
            let cleaned = region::clean_mob_files(&server.env, of_table[0].table(), of_table, min_age_ms);
            match cleaned.map_err(|error| server.escalate_fatal(error)) {
                Ok(0) => {}
                Ok(count) => tracing::info!(table = %of_table[0].info().table, "{count} MOB files were archived"),
                Err(error) => tracing::warn!("archiving MOB files: {error}"),
            }
        }
    }
}

/// Flushed memstores that readers still hold may be one part in so many of what memstores may have.
const MOST_PINNED_PART: u64 = 8;
/// A scanner that nobody has used for so long is given up where memory is short.
const IDLE_SCANNER_MS: u64 = 1000;

/// Has scanners let go of memory that is in files already. Above the low mark: flushes the regions that hold the most.
fn relieve_memory(server: &Arc<RegionServer>) {
    let (memory, marks) = (&server.env.memory, server.marks());
    let most_pinned = marks.limit_bytes / MOST_PINNED_PART;
    if memory.pinned_bytes() > most_pinned && idle_scanners::update_readers(&server.sessions, None) == 0 {
        // They see what no file has any more, or are too many for their own good.
        let closed = server.sessions.scanners.close_idle(IDLE_SCANNER_MS, || memory.pinned_bytes() > most_pinned);
        if closed > 0 {
            tracing::info!("{closed} idle scanners were closed: they held memstores that are in files already");
        }
    }
    let held_bytes = memory.memstore_bytes() + memory.pinned_bytes() + memory.outbox_bytes();
    server.ledger.report(Holder::Memstores, held_bytes);
    server.env.cache.sweep();
    let cache = server.env.cache.stats();
    server.env.cache.second().inspect(|second| second.set_now(server.env.clock.now_ms()));
    let second_bytes = server.env.cache.second().map_or(0, |second| second.memory_bytes());
    server.ledger.report(Holder::BlockCache, cache.used_bytes + second_bytes);
    let held = memory.memstore_bytes();
    server.memory_watch.lock().look(&server.ledger, cache, held >= marks.low_bytes);
    server.apply_grants();
    server.memory_pace.look(&server.env.memory, server.marks());
    flush_largest(server);
}

/// Asks for flushes of the regions that hold the most, where all memstores together are above the low mark.
pub(crate) fn flush_largest(server: &RegionServer) {
    let (held, marks) = (server.env.memory.memstore_bytes(), server.marks());
    if held < marks.low_bytes {
        return;
    }
    // A read replica flushes nothing, and gives memory back only if its primary has.
    let multiplier = server.settings().replica_refresh_multiplier;
    let weight = |region: &Region| {
        let bytes = region.memstore_bytes();
        match region.info().is_replica() {
            true => multiplier.map_or(0, |multiplier| (bytes as f64 / multiplier) as u64),
            false => bytes,
        }
    };
    let mut regions: Vec<_> = server.regions().into_iter().map(|region| (weight(&region), region)).collect();
    regions.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut to_free = held - marks.low_bytes + marks.low_bytes / 10;
    for (weight, region) in regions {
        let bytes = if weight == 0 { 0 } else { region.memstore_bytes() };
        if bytes == 0 || to_free == 0 {
            break;
        }
        server.maintenance.flushes.push(region.info().encoded_name(), "memory of all memstores");
        to_free = to_free.saturating_sub(bytes);
    }
}

/// Maintains each log; all are rolled together when it is time.
fn maintain_logs(server: &Arc<RegionServer>, watch: &mut LogWatch) {
    let now_us = server.env.clock.monotonic_us();
    let period_us = server.settings().log_roll_period_us;
    let due = now_us.saturating_sub(watch.rolled_us) >= period_us;
    if due {
        watch.rolled_us = now_us;
    }
    retry_stalled_logs(server, watch);
    for log in server.logs() {
        maintain_log(server, log, due, watch);
    }
}

/// A full disk stops the log, and with it writes. Nothing is lost meanwhile; here it is tried whether there is room again.
fn retry_stalled_logs(server: &Arc<RegionServer>, watch: &mut LogWatch) {
    for log in server.logs().into_iter().filter(|log| log.is_stalled()) {
        let Err(error) = log.sync_once() else { continue };
        if error.is_full() && !watch.is_read_only {
            watch.is_read_only = true;
            tracing::error!(
                "the server is read-only: the disk is full, and writes are refused until there is room ({error}); free \
                 some space, then writes go on by themselves"
            );
        }
    }
    if watch.is_read_only && !server.logs().into_iter().any(|log| log.is_stalled()) {
        watch.is_read_only = false;
        tracing::info!("the disk has room again; writes go on");
    }
}

/// Rolls the log when it is time, archives what nobody needs, and flushes regions that hold too many files back.
fn maintain_log(server: &Arc<RegionServer>, log: &wal::Log, due: bool, watch: &LogWatch) {
    // Entries that nobody waits for.
    log.write_pending();
    if let Some(told) = log.take_copies_told() {
        tracing::warn!("{told}");
    }
    if (log.wants_roll() || due)
        && !log.is_stalled()
        && let Err(error) = traces::roll(server, log)
    {
        if log.failure().is_some() {
            server.fail(format!("the log cannot be rolled: {error}"));
            return;
        }
        // Entries go on into the file that was to end; it is tried again in a moment.
        if watch.failed_rolls.allow(&*server.env.clock) {
            tracing::warn!("cannot roll the WAL, continuing in the current file: {error}");
        }
    }
    if let Err(error) = log.archive_flushed() {
        tracing::warn!("archiving log files: {error}");
    }
    for held in log.regions_to_flush(server.settings().max_logs) {
        server.maintenance.flushes.push(&held.region, "too many log files");
    }
}

/// Looks at every region: old edits, due compactions, compacted files that no reader holds any more.
fn survey(server: &Arc<RegionServer>) {
    for region in server.regions() {
        if server.stop.is_set() {
            return;
        }
        server.maintenance.consider_flush(&region);
        if region.needs_compaction() {
            server.maintenance.consider_compaction(region.info().encoded_name());
        }
        if let Err(error) = region.archive_compacted_files() {
            tracing::warn!("archiving compacted files of {}: {error}", region.info().name_string());
        }
    }
}
