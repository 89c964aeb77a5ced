//! The region server's metrics under HBase's names. Follows: `MetricsRegionServerSource`, `MetricsRegionServerWrapperImpl`,
//! `MetricsTableAggregateSourceImpl`, `MetricsWALSource`, `MetricsHeapMemoryManagerSource`.
//!
//! What the server keeps anyway is read when somebody asks. Only names whose numbers are known are here.

use crate::server::RegionServer;
use base::metrics::{IPC, MEMORY, REGION_SERVER, Registry, Sink, TABLES, WAL};
use model::TableName;
use model::status::LoadTotals;
use region::{Region, RegionStats};
use scheduler::LaneName;
use std::collections::HashMap;
use std::sync::Arc;

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
            lanes(sink.bean(IPC), &server);
            tables(sink.bean(TABLES), &regions, &status);
            log(sink.bean(WAL), &server, now_ms);
            memory(sink.bean(MEMORY), &server);
        });
    }
}

fn server_numbers(sink: &mut Sink, server: &RegionServer, status: &crate::ServerStatus, stats: &[RegionStats]) {
    let totals = LoadTotals::of(&status.regions);
    let sum = |number: fn(&RegionStats) -> u64| stats.iter().map(number).sum::<u64>();
    let cache = server.env.cache.stats();
    let lookups = (cache.hits + cache.misses).max(1) as f64;
    let free_bytes = cache.capacity_bytes.saturating_sub(cache.used_bytes);
    let files = server.env.log.files();
    let (small, large) = status.compaction_queues;
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
        .gauge("activeScanners", status.open_scanners as u64)
        // A volume of this machine alone.
        .real("percentFilesLocal", 100.0);
    sink.gauge("blockCacheFreeSize", free_bytes)
        .gauge("blockCacheCount", cache.blocks)
        .gauge("blockCacheSize", cache.used_bytes)
        .counter("blockCacheHitCount", cache.hits)
        .counter("blockCacheMissCount", cache.misses)
        .counter("blockCacheEvictionCount", cache.evicted)
        .real("blockCacheCountHitPercent", 100.0 * cache.hits as f64 / lookups)
        .gauge("l1CacheSize", cache.used_bytes)
        .gauge("l1CacheFreeSize", free_bytes)
        .gauge("l1CacheCount", cache.blocks)
        .counter("l1CacheEvictionCount", cache.evicted)
        .gauge("l1CacheHitCount", cache.hits)
        .gauge("l1CacheMissCount", cache.misses)
        .real("l1CacheHitRatio", 100.0 * cache.hits as f64 / lookups)
        .real("l1CacheMissRatio", 100.0 * cache.misses as f64 / lookups);
    sink.counter("totalRequestCount", status.requests)
        .counter("totalRowActionRequestCount", status.reads + status.writes)
        .counter("readRequestCount", status.reads)
        .counter("writeRequestCount", status.writes)
        .gauge("filteredReadRequestCount", totals.filtered_reads)
        .gauge("blockedRequestCount", sum(|stats| stats.blocked_requests))
        .gauge("checkMutatePassedCount", sum(|stats| stats.checks_passed))
        .gauge("checkMutateFailedCount", sum(|stats| stats.checks_failed))
        .gauge("mutationsWithoutWALCount", sum(|stats| stats.writes_without_log))
        .gauge("compactedCellsCount", sum(|stats| stats.current_compacted_cells))
        .gauge("flushedOutputBytes", sum(|stats| stats.flushed_bytes))
        .gauge("compactedOutputBytes", sum(|stats| stats.compacted_bytes));
}

/// Calls that wait and run, by lane.
fn lanes(sink: &mut Sink, server: &RegionServer) {
    let lanes = server.scheduler.stats();
    let lane = |wanted: LaneName| lanes.iter().find(|(name, _)| *name == wanted).map(|(_, stats)| stats);
    let queued = |name| lane(name).map_or(0, |stats| stats.queued as u64);
    let running = |name| lane(name).map_or(0, |stats| stats.running as u64);
    let (meta, read, write) = (LaneName::Meta, LaneName::Read, LaneName::Write);
    sink.gauge("queueSize", server.ledger.held_bytes(base::Holder::Requests))
        .gauge("numCallsInGeneralQueue", queued(read) + queued(write))
        .gauge("numCallsInReadQueue", queued(read))
        .gauge("numCallsInWriteQueue", queued(write))
        .gauge("numCallsInPriorityQueue", queued(meta))
        .gauge("numActiveHandler", running(meta) + running(read) + running(write))
        .gauge("numActiveGeneralHandler", running(read) + running(write))
        .gauge("numActiveReadHandler", running(read))
        .gauge("numActiveWriteHandler", running(write))
        .gauge("numActivePriorityHandler", running(meta));
}

/// Sums over each table's regions.
fn tables(sink: &mut Sink, regions: &[Arc<Region>], status: &crate::ServerStatus) {
    let tables: HashMap<&str, &TableName> =
        regions.iter().map(|region| (&**region.info().encoded_name(), &region.info().table)).collect();
    let loads = status.regions.iter().filter_map(|load| Some((*tables.get(&*load.encoded_name)?, load)));
    let totals = LoadTotals::by_table(loads);
    let served = totals.len() as u64;
    for (table, totals) in totals {
        let full = table.as_str();
        let (namespace, qualifier) = full.split_once(':').unwrap_or(("default", full));
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
    }
    sink.gauge("numTables", served);
}

/// The users' log; that of hbase:meta is small.
fn log(sink: &mut Sink, server: &RegionServer, now_ms: i64) {
    let stats = server.env.log.stats();
    sink.counter("successfulLogRolls", stats.files.saturating_sub(1))
        .counter("errorRollRequest", stats.rescues)
        .counter("writtenBytes", stats.bytes)
        .counter("appendCount", stats.entries)
        .histogram("syncTime", server.env.log.sync_times(), now_ms);
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
