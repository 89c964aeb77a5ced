//! The region server's metrics under HBase's names. Follows: `MetricsRegionServerSource`, `MetricsRegionServerWrapperImpl`,
//! `MetricsTableAggregateSourceImpl`, `MetricsWALSource`, `MetricsHeapMemoryManagerSource`.
//!
//! What the server keeps anyway is read when somebody asks. Only names whose numbers are known are here.

mod cache;
mod stores;

use crate::server::RegionServer;
use crate::users::TIMES;
use base::Adder;
use base::metrics::{IO, IPC, MEMORY, REGION_SERVER, REGIONS, Registry, Sink, TABLES, USERS, WAL};
use hfile::FileReads;
use model::TableName;
use model::status::{CompactionState, LoadTotals, Locality};
use proto::pb;
use region::{FileTimes, Region, RegionStats};
use scheduler::LaneName;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl RegionServer {
    /// Puts this server's metrics into `registry`, which does not keep the server alive.
    pub fn register_metrics(self: &Arc<Self>, registry: &Registry) {
        let server = Arc::downgrade(self);
        registry.collect(move |sink, now_ms| {
            let Some(server) = server.upgrade() else { return };
            let status = server.status();
            let regions = server.regions();
            let stats: Vec<RegionStats> = regions.iter().map(|region| region.stats()).collect();
            server_numbers(sink.bean(REGION_SERVER), &server, &status, &stats);
            requests(sink, &server, &status, &stats, now_ms);
            server.operations.collect(sink, now_ms);
            lanes(sink.bean(IPC), &server);
            each_region(sink.bean(REGIONS), &server, &regions, &stats, now_ms);
            tables(sink.bean(TABLES), &regions, &status, &stats, now_ms);
            if let Some(users) = server.users.count() {
                each_user(sink.bean(USERS), &server, users, now_ms);
            }
            log(sink.bean(WAL), &server, now_ms);
            file_reads(sink.bean(IO), server.env.cache.file_reads(), now_ms);
            memory(sink.bean(MEMORY), &server);
            volumes(sink.bean(IO), &server);
        });
    }
}

fn server_numbers(sink: &mut Sink, server: &RegionServer, status: &crate::ServerStatus, stats: &[RegionStats]) {
    let totals = LoadTotals::of(&status.regions);
    let sum = |number: fn(&RegionStats) -> u64| stats.iter().map(number).sum::<u64>();
    let files = server.env.log.files();
    let (small, large) = status.compaction_queues;
    let hedged = server.env.volume.hedged_reads();
    sink.counter("hedgedReads", hedged.asked)
        .counter("hedgedReadWins", hedged.won)
        .counter("hedgedReadOpsInCurThread", hedged.alone);
    let started_ms = u64::try_from(status.started_ms).unwrap_or(0);
    sink.gauge("regionCount", totals.regions)
        .gauge("storeCount", totals.stores)
        .gauge("hlogFileCount", files.len() as u64)
        .gauge("hlogFileSize", files.iter().map(|file| file.len_bytes).sum())
        .gauge("storeFileCount", totals.store_files)
        .gauge("maxStoreFileCount", stats.iter().map(|stats| stats.max_store_files as u64).max().unwrap_or(0))
        .gauge("numReferenceFiles", sum(|stats| stats.reference_files as u64))
        .gauge("memStoreSize", status.memstore_bytes)
        .gauge("memStoreHeapSize", status.memstore_bytes)
        .gauge("storeFileSize", totals.store_file_bytes)
        .gauge("regionServerStartTime", started_ms)
        .gauge("averageRegionSize", totals.mean_region_bytes())
        .gauge("storeFileIndexSize", totals.root_index_bytes)
        .gauge("staticIndexSize", totals.index_bytes)
        .gauge("staticBloomSize", totals.bloom_bytes)
        .gauge("compactionQueueLength", (small + large) as u64)
        .gauge("smallCompactionQueueLength", small as u64)
        .gauge("largeCompactionQueueLength", large as u64)
        .gauge("flushQueueLength", status.flush_queue as u64)
        .gauge("activeScanners", status.open_scanners as u64);
    let read_bytes = server.env.cache.file_bytes();
    sink.gauge("totalBytesRead", read_bytes);
    if !server.env.volume.capabilities().remote {
        sink.gauge("localBytesRead", read_bytes);
    }
    localities(sink, server, status);
    cache::collect(sink, &server.env.cache);
    stores::collect(sink, stats);
    sink.gauge("filteredReadRequestCount", totals.filtered_reads)
        .gauge("blockedRequestCount", sum(|stats| stats.blocked_requests))
        .gauge("checkMutatePassedCount", sum(|stats| stats.checks_passed))
        .gauge("checkMutateFailedCount", sum(|stats| stats.checks_failed));
}

/// Which part of the files' blocks is on this machine. Follows: `MetricsRegionServerWrapperImpl#getPercentFileLocal`.
fn localities(sink: &mut Sink, server: &RegionServer, status: &crate::ServerStatus) {
    let replicas: HashSet<Arc<str>> = server
        .regions()
        .iter()
        .map(|region| region.info())
        .filter(|info| info.replica_id > 0)
        .map(|info| info.encoded_name().clone())
        .collect();
    let (mut primary, mut secondary) = (Locality::default(), Locality::default());
    for load in &status.regions {
        if replicas.contains(&load.encoded_name) { secondary += load.locality } else { primary += load.locality }
    }
    let mut all = primary;
    all += secondary;
    let percent = |locality: Locality| f64::from(locality.part() * 100.0);
    sink.real("percentFilesLocal", percent(all))
        .real("percentFilesLocalPrimaryRegions", percent(primary))
        .real("percentFilesLocalSecondaryRegions", percent(secondary));
}

/// How often the server was asked, and when the files of its regions were made.
fn requests(sink: &mut Sink, server: &RegionServer, status: &crate::ServerStatus, stats: &[RegionStats], now_ms: i64) {
    let counts = &server.counts;
    let count = |counter: &Adder| counter.sum();
    sink.counter("totalRequestCount", status.requests)
        .counter("totalRowActionRequestCount", status.reads + status.writes)
        .counter("readRequestCount", status.reads)
        .counter("writeRequestCount", status.writes)
        .counter("rpcGetRequestCount", count(&counts.gets))
        .counter("rpcMutateRequestCount", count(&counts.mutates))
        .counter("rpcMultiRequestCount", count(&counts.multis))
        .counter("rpcScanRequestCount", count(&counts.scans))
        .counter("rpcFullScanRequestCount", count(&server.operations.full_scans))
        .counter("scannerLeaseExpiredCount", server.sessions.expired_scanners.load(Ordering::Relaxed))
        .counter("splitRequestCount", server.maintenance.requested_splits());
    let times = stats.iter().fold(FileTimes::default(), |times, stats| times.and(stats.file_times));
    file_ages(sink, str::to_owned, times, now_ms);
}

fn file_ages(sink: &mut Sink, name: impl Fn(&str) -> String, times: FileTimes, now_ms: i64) {
    let (least, greatest, mean) = times.ages(now_ms);
    sink.gauge(name("minStoreFileAge"), least)
        .gauge(name("maxStoreFileAge"), greatest)
        .gauge(name("avgStoreFileAge"), mean);
}

/// Each region under a name of its own. Follows: `MetricsRegionSourceImpl`.
fn each_region(sink: &mut Sink, server: &RegionServer, regions: &[Arc<Region>], stats: &[RegionStats], now_ms: i64) {
    for (region, stats) in regions.iter().zip(stats) {
        let info = region.info();
        let (namespace, qualifier) = parts_of(&info.table);
        let name = |metric: &str| {
            format!("Namespace_{namespace}_table_{qualifier}_region_{}_metric_{metric}", info.encoded_name())
        };
        let maintenance = &server.maintenance;
        let is_compaction_queued = maintenance.compaction_state(info.encoded_name()) != CompactionState::None;
        let major_age_ms = match stats.last_major_compaction_ms {
            0 => 0,
            at_ms => u64::try_from(now_ms - at_ms).unwrap_or(0),
        };
        sink.gauge(name("storeCount"), stats.stores.len() as u64)
            .gauge(name("storeFileCount"), stats.files as u64)
            .gauge(name("numReferenceFiles"), stats.reference_files as u64)
            .gauge(name("memStoreSize"), stats.memstore_bytes)
            .gauge(name("storeFileSize"), stats.files_bytes)
            .real(name("currentRegionCacheRatio"), stats.second_level_bytes as f64 / stats.files_bytes.max(1) as f64)
            .counter(name("readRequestCount"), stats.read_requests)
            .counter(name("filteredReadRequestCount"), stats.filtered_read_requests)
            .counter(name("writeRequestCount"), stats.write_requests)
            .counter(name("compactionsCompletedCount"), stats.compactions)
            .counter(name("compactionsFailedCount"), stats.compactions_failed)
            .counter(name("numBytesCompactedCount"), stats.compacted_bytes)
            .counter(name("numFilesCompactedCount"), stats.compacted_files)
            .counter(name("compactionsQueuedCount"), u64::from(is_compaction_queued))
            .counter(name("flushesQueuedCount"), u64::from(maintenance.flushes.is_pending(info.encoded_name())))
            .gauge(name("lastMajorCompactionAge"), major_age_ms)
            .counter(name("replicaid"), u64::from(info.replica_id));
        for store in &stats.stores {
            let name = |metric: &str| {
                let (encoded, family) = (info.encoded_name(), String::from_utf8_lossy(&store.family));
                format!("Namespace_{namespace}_table_{qualifier}_region_{encoded}_store_{family}_metric_{metric}")
            };
            sink.counter(name("memstoreOnlyRowReadsCount"), store.memory_row_reads)
                .counter(name("mixedRowReadsCount"), store.mixed_row_reads);
        }
        file_ages(sink, name, stats.file_times, now_ms);
    }
}

/// Namespace and the rest of a table's name.
fn parts_of(table: &TableName) -> (&str, &str) {
    table.as_str().split_once(':').unwrap_or(("default", table.as_str()))
}

/// Calls that wait and run, by lane.
fn lanes(sink: &mut Sink, server: &RegionServer) {
    let lanes = server.scheduler.stats();
    let lane = |wanted: LaneName| lanes.iter().find(|(name, _)| *name == wanted).map(|(_, stats)| stats);
    let queued = |name| lane(name).map_or(0, |stats| stats.queued as u64);
    let running = |name| lane(name).map_or(0, |stats| stats.running as u64);
    let (meta, read, write, large) = (LaneName::Meta, LaneName::Read, LaneName::Write, LaneName::LargeWrite);
    let held = |holder| server.ledger.held_bytes(holder);
    sink.gauge("queueSize", held(base::Holder::Requests))
        .gauge("nettyDirectMemoryUsage", held(base::Holder::Requests) + held(base::Holder::Replies))
        .gauge("nettyTotalPendingOutboundBytes", held(base::Holder::Replies))
        .gauge("numCallsInGeneralQueue", queued(read) + queued(write) + queued(large))
        .gauge("numCallsInReadQueue", queued(read))
        .gauge("numCallsInWriteQueue", queued(write) + queued(large))
        .gauge("numCallsInPriorityQueue", queued(meta))
        .gauge("numActiveHandler", running(meta) + running(read) + running(write) + running(large))
        .gauge("numActiveGeneralHandler", running(read) + running(write) + running(large))
        .gauge("numActiveReadHandler", running(read))
        .gauge("numActiveWriteHandler", running(write) + running(large))
        .gauge("numActivePriorityHandler", running(meta))
        .counter("numGeneralCallsDropped", lanes.iter().map(|(_, stats)| stats.dropped + stats.refused).sum());
}

/// Sums over each table's regions.
fn tables(sink: &mut Sink, regions: &[Arc<Region>], status: &crate::ServerStatus, stats: &[RegionStats], now_ms: i64) {
    let mut times: HashMap<&TableName, FileTimes> = HashMap::new();
    let mut reads: BTreeMap<(&TableName, &[u8]), (u64, u64)> = BTreeMap::new();
    for (region, stats) in regions.iter().zip(stats) {
        let table = &region.info().table;
        let of_table = times.entry(table).or_default();
        *of_table = of_table.and(stats.file_times);
        for store in &stats.stores {
            let (memory, mixed) = reads.entry((table, &store.family)).or_default();
            *memory += store.memory_row_reads;
            *mixed += store.mixed_row_reads;
        }
    }
    let tables: HashMap<&str, &TableName> =
        regions.iter().map(|region| (&**region.info().encoded_name(), &region.info().table)).collect();
    let loads = status.regions.iter().filter_map(|load| Some((*tables.get(&*load.encoded_name)?, load)));
    let totals = LoadTotals::by_table(loads);
    let served = totals.len() as u64;
    for (table, totals) in totals {
        let (namespace, qualifier) = parts_of(table);
        let name = |metric: &str| format!("Namespace_{namespace}_table_{qualifier}_metric_{metric}");
        sink.gauge(name("readRequestCount"), totals.reads)
            .gauge(name("filteredReadRequestCount"), totals.filtered_reads)
            .gauge(name("writeRequestCount"), totals.writes)
            .gauge(name("totalRequestCount"), totals.reads + totals.writes)
            .gauge(name("memStoreSize"), totals.memstore_bytes)
            .gauge(name("storeFileCount"), totals.store_files)
            .gauge(name("maxStoreFileCount"), totals.max_store_files)
            .gauge(name("storeFileSize"), totals.store_file_bytes)
            .gauge(name("tableSize"), totals.store_file_bytes + totals.memstore_bytes)
            .gauge(name("averageRegionSize"), totals.mean_region_bytes())
            .gauge(name("regionCount"), totals.regions)
            .gauge(name("storeCount"), totals.stores)
            .gauge(name("staticBloomSize"), totals.bloom_bytes)
            .gauge(name("staticIndexSize"), totals.index_bytes);
        file_ages(sink, name, times.get(table).copied().unwrap_or_default(), now_ms);
    }
    for ((table, family), (memory, mixed)) in reads {
        let ((namespace, qualifier), family) = (parts_of(table), String::from_utf8_lossy(family));
        let name =
            |metric: &str| format!("Namespace_{namespace}_table_{qualifier}_columnfamily_{family}_metric_{metric}");
        sink.gauge(name("memstoreOnlyRowReadsCount"), memory).gauge(name("mixedRowReadsCount"), mixed);
    }
    sink.gauge("numTables", served);
}

/// Follows: `MetricsUserSourceImpl`.
fn each_user(sink: &mut Sink, server: &RegionServer, users: u64, now_ms: i64) {
    sink.gauge("numUsers", users);
    for (user, measured) in server.users.measured() {
        let name = |metric: &str| format!("User_{user}_metric_{metric}");
        for ((metric, _), times) in TIMES.iter().zip(&measured.times) {
            sink.histogram(&name(metric), times, now_ms);
        }
        sink.counter(name("blockBytesScannedCount"), measured.block_bytes.sum());
    }
    for user in server.users.loads() {
        let name = |metric: &str| format!("user_{}_metric_{metric}", user.user_name);
        let sum = |of: fn(&pb::ClientMetrics) -> Option<u64>| user.client_metrics.iter().filter_map(of).sum::<u64>();
        sink.counter(name("readRequestCount"), sum(|client| client.read_requests_count))
            .counter(name("writeRequestCount"), sum(|client| client.write_requests_count))
            .counter(name("filteredReadRequestCount"), sum(|client| client.filtered_requests_count));
    }
}

/// The users' log; that of hbase:meta is small.
fn log(sink: &mut Sink, server: &RegionServer, now_ms: i64) {
    let stats = server.env.log.stats();
    sink.counter("successfulLogRolls", stats.files.saturating_sub(1))
        .counter("errorRollRequest", stats.rescues)
        .counter("writtenBytes", stats.bytes)
        .counter("appendCount", stats.entries)
        .counter("rollRequest", stats.asked_rolls + stats.rescues)
        .counter("sizeRollRequest", stats.size_rolls)
        .counter("slowSyncRollRequest", stats.slow_sync_rolls)
        .counter("lowReplicaRollRequest", stats.low_replication_rolls)
        .counter("slowAppendCount", server.env.log.slow_appends())
        .histogram("appendTime", server.env.log.append_times(), now_ms)
        .histogram("appendSize", server.env.log.append_sizes(), now_ms)
        .histogram("syncTime", server.env.log.sync_times(), now_ms);
}

/// Follows: `MetricsIOSourceImpl`.
fn file_reads(sink: &mut Sink, reads: &FileReads, now_ms: i64) {
    sink.counter("fsChecksumFailureCount", reads.damaged())
        .counter("fsSlowReadsCount", reads.slow())
        .histogram("fsPReadTime", reads.pread_times(), now_ms)
        .histogram("fsReadTime", reads.read_times(), now_ms)
        .histogram("fsWriteTime", reads.write_times(), now_ms);
}

/// The disks beside the root's own, and how writes are paced. Basalt's own names.
fn volumes(sink: &mut Sink, server: &RegionServer) {
    let now_us = server.env.clock.monotonic_us();
    let memory = &server.env.memory;
    if let Some(bytes) = memory.flush_drain.per_second(now_us) {
        sink.gauge("memstoreBytesFlushedPerSecond", bytes as u64);
    }
    if let Some(files) = memory.compaction_drain.per_second(now_us) {
        sink.real("storeFilesCompactedAwayPerSecond", files);
    }
    let volumes = server.env.volume.volumes();
    if !volumes.is_empty() {
        sink.gauge("regionsWaitingForVolumes", server.waiting.len() as u64);
    }
    for volume in volumes {
        let name =
            format!("volume_{}_{}", volume.spec.tier.name, volume.spec.place.trim_matches('/').replace('/', "_"));
        let speed = volume.speed;
        sink.gauge(format!("{name}_usedBytes"), volume.used_bytes)
            .gauge(format!("{name}_isThere"), u64::from(volume.is_there))
            .gauge(format!("{name}_takesFiles"), u64::from(volume.trouble.is_none() && !volume.spec.drains))
            .gauge(format!("{name}_files"), volume.files)
            .gauge(format!("{name}_regionsWaiting"), server.waiting_on(&volume))
            .gauge(format!("{name}_isSlow"), u64::from(speed.is_slow))
            .gauge(format!("{name}_waitsMicros"), speed.waits_us);
        let times = [
            ("syncMedianMicros", speed.sync_median_us),
            ("sync99thMicros", speed.sync_p99_us),
            ("readMedianMicros", speed.read_median_us),
            ("read99thMicros", speed.read_p99_us),
        ];
        for (what, us) in times {
            if let Some(us) = us {
                sink.gauge(format!("{name}_{what}"), us);
            }
        }
    }
}

fn memory(sink: &mut Sink, server: &RegionServer) {
    sink.gauge("memStoreSize", server.env.memory.memstore_bytes())
        .gauge("blockCacheSize", server.env.cache.stats().used_bytes);
    for entry in server.ledger.entries() {
        let name = entry.holder.name();
        sink.gauge(format!("{name}_heldBytes"), entry.held_bytes)
            .gauge(format!("{name}_highestBytes"), entry.highest_bytes);
        if entry.cap_bytes != u64::MAX {
            sink.gauge(format!("{name}_capBytes"), entry.cap_bytes);
        }
    }
}
