//! The numbers under HBase's names, as beans: one list that `/jmx` and `/prometheus` both write.
//!
//! A bean is here when its numbers are known; a name that HBase has and Basalt cannot fill is left out, so that no
//! monitor takes a zero for a measurement.

use crate::rates::RequestRates;
use crate::status::{Histogram, Region, Status};
use model::TableName;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A metric's value, written as Java writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A `long`.
    Long(i64),
    /// A `double`.
    Double(f64),
}

/// Whether a value only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It does.
    Counter,
    /// It may fall.
    Gauge,
}

/// One number.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Name in the bean.
    pub name: Cow<'static, str>,
    /// Value.
    pub number: Number,
    /// Kind.
    pub kind: Kind,
}

/// One bean.
#[derive(Clone, Debug)]
pub struct Bean {
    /// What follows `Hadoop:service=HBase,name=`.
    pub tail: &'static str,
    /// Name of the metrics record: the beginning of its names in `/prometheus`.
    pub record: &'static str,
    /// Texts that say whose numbers they are.
    pub tags: Vec<(&'static str, String)>,
    /// The numbers.
    pub metrics: Vec<Metric>,
}

impl Bean {
    fn new(tail: &'static str, record: &'static str, tags: Vec<(&'static str, String)>) -> Bean {
        Bean { tail, record, tags, metrics: Vec::new() }
    }

    /// The bean's full name.
    pub fn name(&self) -> String {
        format!("Hadoop:service=HBase,name={}", self.tail)
    }

    fn gauge(&mut self, name: impl Into<Cow<'static, str>>, value: u64) {
        self.metrics.push(Metric { name: name.into(), number: long(value), kind: Kind::Gauge });
    }

    fn counter(&mut self, name: impl Into<Cow<'static, str>>, value: u64) {
        self.metrics.push(Metric { name: name.into(), number: long(value), kind: Kind::Counter });
    }

    fn real(&mut self, name: &'static str, value: f64) {
        let value = if value.is_finite() { value } else { 0.0 };
        self.metrics.push(Metric { name: name.into(), number: Number::Double(value), kind: Kind::Gauge });
    }

    fn histogram(&mut self, histogram: &Histogram) {
        const PERCENTILES: [&str; 8] = [
            "25th_percentile",
            "median",
            "75th_percentile",
            "90th_percentile",
            "95th_percentile",
            "98th_percentile",
            "99th_percentile",
            "99.9th_percentile",
        ];
        let name = histogram.name;
        self.counter(format!("{name}_num_ops"), histogram.count);
        self.gauge(format!("{name}_min"), histogram.min);
        self.gauge(format!("{name}_max"), histogram.max);
        self.gauge(format!("{name}_mean"), histogram.mean);
        for (suffix, value) in PERCENTILES.iter().zip(histogram.percentiles) {
            self.gauge(format!("{name}_{suffix}"), value);
        }
    }
}

fn long(value: u64) -> Number {
    Number::Long(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Every bean. `now_ms`: the wall clock, for ages.
pub fn all(status: &Status, rates: &RequestRates, now_ms: i64) -> Vec<Bean> {
    vec![
        master_server(status),
        assignment_manager(status, now_ms),
        region_server(status, rates),
        tables(status),
        ipc(status),
        wal(status),
        memory(status),
    ]
}

fn context(status: &Status, context: &str) -> Vec<(&'static str, String)> {
    vec![("Context", context.to_owned()), ("Hostname", status.host_name.clone())]
}

/// Sums over regions.
#[derive(Debug, Default)]
pub struct Sums {
    /// Regions.
    pub regions: u64,
    /// Stores.
    pub stores: u64,
    /// Store files.
    pub store_files: u64,
    /// The region with most of them: how many.
    pub max_store_files: u64,
    /// Bytes of store files.
    pub store_file_bytes: u64,
    /// Bytes of memstores.
    pub memstore_bytes: u64,
    /// Bytes of root indexes.
    pub root_index_bytes: u64,
    /// Bytes of all index levels.
    pub index_bytes: u64,
    /// Bytes of Bloom filters.
    pub bloom_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Reads that a filter dropped.
    pub filtered_reads: u64,
    /// Writes.
    pub writes: u64,
}

impl Sums {
    /// Adds a region.
    pub fn add(&mut self, region: &Region) {
        let load = &region.load;
        self.regions += 1;
        self.stores += u64::from(load.stores);
        self.store_files += u64::from(load.store_files);
        self.max_store_files = self.max_store_files.max(u64::from(load.store_files));
        self.store_file_bytes += load.store_file_size_bytes;
        self.memstore_bytes += load.memstore_size_bytes;
        self.root_index_bytes += load.root_index_size_bytes;
        self.index_bytes += load.index_size_bytes;
        self.bloom_bytes += load.bloom_size_bytes;
        self.reads += load.read_requests;
        self.filtered_reads += load.filtered_read_requests;
        self.writes += load.write_requests;
    }

    /// Over all regions.
    pub fn of(regions: &[Region]) -> Sums {
        let mut sums = Sums::default();
        regions.iter().for_each(|region| sums.add(region));
        sums
    }

    /// Over the regions of each table.
    pub fn by_table(regions: &[Region]) -> BTreeMap<&TableName, Sums> {
        let mut tables: BTreeMap<&TableName, Sums> = BTreeMap::new();
        regions.iter().for_each(|region| tables.entry(&region.info.table).or_default().add(region));
        tables
    }
}

fn names(servers: &[model::ServerName]) -> String {
    servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
}

fn time(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}

fn master_server(status: &Status) -> Bean {
    let mut tags = vec![
        ("liveRegionServers", names(&status.live_servers)),
        ("deadRegionServers", names(&status.dead_servers)),
        ("drainingRegionServers", String::new()),
        ("zookeeperQuorum", status.zookeeper_quorum.clone()),
        ("serverName", status.master.to_string()),
        ("clusterId", status.cluster_id.clone()),
        ("isActiveMaster", "true".to_owned()),
    ];
    tags.extend(context(status, "master"));
    let mut bean = Bean::new("Master,sub=Server", "Server", tags);
    bean.gauge("masterActiveTime", time(status.started_ms));
    bean.gauge("masterStartTime", time(status.started_ms));
    bean.gauge("masterFinishedInitializationTime", time(status.initialized_ms));
    bean.real("averageLoad", status.regions.len() as f64 / status.live_servers.len().max(1) as f64);
    bean.gauge("numRegionServers", status.live_servers.len() as u64);
    bean.gauge("numDeadRegionServers", status.dead_servers.len() as u64);
    bean.gauge("numDrainingRegionServers", 0);
    bean.counter("clusterRequests", status.requests.total);
    bean
}

fn assignment_manager(status: &Status, now_ms: i64) -> Bean {
    /// `hbase.metrics.rit.stuck.warning.threshold`.
    const STUCK_MS: u64 = 60_000;
    let ages: Vec<u64> = status.in_transition.iter().map(|rit| time(now_ms - rit.since_ms)).collect();
    let mut bean = Bean::new("Master,sub=AssignmentManager", "AssignmentManager", context(status, "master"));
    bean.gauge("ritOldestAge", ages.iter().copied().max().unwrap_or(0));
    bean.gauge("ritCountOverThreshold", ages.iter().filter(|age| **age > STUCK_MS).count() as u64);
    bean.gauge("ritCount", ages.len() as u64);
    bean
}

fn region_server(status: &Status, rates: &RequestRates) -> Bean {
    let mut tags = vec![
        ("zookeeperQuorum", status.zookeeper_quorum.clone()),
        ("serverName", status.region_server.to_string()),
        ("clusterId", status.cluster_id.clone()),
    ];
    tags.extend(context(status, "regionserver"));
    let mut bean = Bean::new("RegionServer,sub=Server", "Server", tags);
    let sums = Sums::of(&status.regions);
    let (cache, queues) = (&status.block_cache, &status.queues);
    let lookups = (cache.hits + cache.misses).max(1) as f64;
    let free_bytes = cache.capacity_bytes.saturating_sub(cache.used_bytes);
    bean.gauge("regionCount", sums.regions);
    bean.gauge("storeCount", sums.stores);
    bean.gauge("hlogFileCount", status.log.files);
    bean.gauge("hlogFileSize", status.log.files_bytes);
    bean.gauge("storeFileCount", sums.store_files);
    bean.gauge("maxStoreFileCount", sums.max_store_files);
    bean.gauge("memStoreSize", status.memory.memstore_bytes);
    bean.gauge("storeFileSize", sums.store_file_bytes);
    bean.gauge("regionServerStartTime", time(status.started_ms));
    bean.gauge("averageRegionSize", (sums.store_file_bytes + sums.memstore_bytes) / sums.regions.max(1));
    bean.gauge("storeFileIndexSize", sums.root_index_bytes);
    bean.gauge("staticIndexSize", sums.index_bytes);
    bean.gauge("staticBloomSize", sums.bloom_bytes);
    // The volume is this machine's own.
    bean.real("percentFilesLocal", 100.0);
    bean.gauge("splitQueueLength", queues.splits);
    bean.gauge("compactionQueueLength", queues.small_compactions + queues.large_compactions);
    bean.gauge("smallCompactionQueueLength", queues.small_compactions);
    bean.gauge("largeCompactionQueueLength", queues.large_compactions);
    bean.gauge("flushQueueLength", queues.flushes);
    bean.gauge("blockCacheFreeSize", free_bytes);
    bean.gauge("blockCacheCount", cache.blocks);
    bean.gauge("blockCacheSize", cache.used_bytes);
    bean.real("blockCacheCountHitPercent", 100.0 * cache.hits as f64 / lookups);
    bean.gauge("l1CacheSize", cache.used_bytes);
    bean.gauge("l1CacheFreeSize", free_bytes);
    bean.gauge("l1CacheCount", cache.blocks);
    bean.counter("l1CacheEvictionCount", cache.evicted);
    bean.gauge("l1CacheHitCount", cache.hits);
    bean.gauge("l1CacheMissCount", cache.misses);
    bean.real("l1CacheHitRatio", 100.0 * cache.hits as f64 / lookups);
    bean.real("l1CacheMissRatio", 100.0 * cache.misses as f64 / lookups);
    bean.real("readRequestRatePerSecond", rates.reads);
    bean.real("writeRequestRatePerSecond", rates.writes);
    bean.gauge("activeScanners", status.rpc.open_scanners);
    bean.counter("totalRequestCount", status.requests.total);
    bean.counter("totalRowActionRequestCount", status.requests.reads + status.requests.writes);
    bean.counter("readRequestCount", status.requests.reads);
    bean.counter("filteredReadRequestCount", status.requests.filtered_reads);
    bean.counter("writeRequestCount", status.requests.writes);
    bean.counter("blockCacheHitCount", cache.hits);
    bean.counter("blockCacheMissCount", cache.misses);
    bean.counter("blockCacheEvictionCount", cache.evicted);
    status.histograms.iter().for_each(|histogram| bean.histogram(histogram));
    bean
}

fn tables(status: &Status) -> Bean {
    let mut bean = Bean::new("RegionServer,sub=Tables", "Tables", context(status, "regionserver"));
    let sums = Sums::by_table(&status.regions);
    let served = sums.len() as u64;
    for (table, sums) in sums {
        let full = table.as_str();
        let (namespace, qualifier) = full.split_once(':').unwrap_or(("default", full));
        let name = |metric: &str| format!("Namespace_{namespace}_table_{qualifier}_metric_{metric}");
        bean.counter(name("readRequestCount"), sums.reads);
        bean.counter(name("filteredReadRequestCount"), sums.filtered_reads);
        bean.counter(name("writeRequestCount"), sums.writes);
        bean.counter(name("totalRequestCount"), sums.reads + sums.writes);
        bean.gauge(name("memStoreSize"), sums.memstore_bytes);
        bean.gauge(name("storeFileCount"), sums.store_files);
        bean.gauge(name("maxStoreFileCount"), sums.max_store_files);
        bean.gauge(name("storeFileSize"), sums.store_file_bytes);
        bean.gauge(name("tableSize"), sums.store_file_bytes + sums.memstore_bytes);
        bean.gauge(name("averageRegionSize"), (sums.store_file_bytes + sums.memstore_bytes) / sums.regions.max(1));
        bean.gauge(name("regionCount"), sums.regions);
        bean.gauge(name("storeCount"), sums.stores);
        bean.gauge(name("staticBloomSize"), sums.bloom_bytes);
        bean.gauge(name("staticIndexSize"), sums.index_bytes);
    }
    bean.gauge("numTables", served);
    bean
}

fn ipc(status: &Status) -> Bean {
    let mut bean = Bean::new("RegionServer,sub=IPC", "RegionServer", context(status, "regionserver"));
    bean.gauge("queueSize", status.rpc.queued_bytes);
    bean.gauge("numCallsInGeneralQueue", status.rpc.queued_calls);
    bean.gauge("numOpenConnections", status.rpc.connections);
    bean.gauge("numActiveHandler", status.rpc.active_calls);
    bean
}

fn wal(status: &Status) -> Bean {
    let log = &status.log;
    let mut bean = Bean::new("RegionServer,sub=WAL", "WAL", context(status, "regionserver"));
    bean.counter("SyncTime_num_ops", log.syncs);
    bean.gauge("SyncTime_max", log.max_sync_us / 1000);
    bean.gauge("SyncTime_mean", log.sync_us / log.syncs.max(1) / 1000);
    bean.counter("successfulLogRolls", log.rolls);
    bean.counter("writtenBytes", log.bytes);
    bean.counter("appendCount", log.entries);
    bean
}

fn memory(status: &Status) -> Bean {
    let mut bean = Bean::new("RegionServer,sub=Memory", "Memory", context(status, "regionserver"));
    bean.gauge("memStoreSize", status.memory.memstore_bytes);
    bean.gauge("blockCacheSize", status.block_cache.used_bytes);
    for holder in &status.holders {
        bean.gauge(format!("{}_heldBytes", holder.name), holder.held_bytes);
        bean.gauge(format!("{}_highestBytes", holder.name), holder.highest_bytes);
        if let Some(cap_bytes) = holder.cap_bytes {
            bean.gauge(format!("{}_capBytes", holder.name), cap_bytes);
        }
    }
    bean
}
