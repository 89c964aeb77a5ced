//! What the status pages show, gathered from the parts of the process.

use crate::details::PageDetails;
use crate::process::OwnProcess;
use crate::settings;
use base::metrics::{MASTER, Registry, Sample};
use base::{Clock, Config, Ledger};
use master::Master;
use master::cluster::TableState;
use regionserver::RegionServer;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use web::status::{BlockCache, Holder, InTransition, Log, Port, Property, Queues, Region, Requests, Status, Table};

/// The source of the pages. Knows little until the servers are ready.
pub struct Pages {
    config: Config,
    clock: Arc<dyn Clock>,
    data_directory: String,
    started_ms: i64,
    ready: OnceLock<Ready>,
    /// Where every part of the process has put its metrics.
    registry: Arc<Registry>,
    process: OwnProcess,
}

struct Ready {
    server: Arc<RegionServer>,
    master: Arc<Master>,
    ports: Vec<Port>,
    initialized_ms: i64,
    /// What the RPC ports count.
    rpc: Vec<Arc<rpc::Counters>>,
    details: PageDetails,
}

impl Pages {
    /// Pages of a process that is starting.
    pub fn new(config: Config, clock: Arc<dyn Clock>, root: &str) -> Pages {
        let started_ms = clock.now_ms().0;
        Pages {
            config,
            clock,
            data_directory: root.to_owned(),
            started_ms,
            ready: OnceLock::new(),
            registry: Registry::new(),
            process: OwnProcess::new(started_ms),
        }
    }

    /// Where parts of the process put their metrics.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The servers serve from now on.
    pub fn set_ready(
        &self,
        server: &Arc<RegionServer>,
        master: &Arc<Master>,
        listening: &[(&'static str, u16)],
        info_port: Option<u16>,
        rpc: Vec<Arc<rpc::Counters>>,
    ) {
        let host = &server.name().host;
        let pages = info_port.map(|port| ("status pages", port));
        let ports = listening.iter().copied().chain(pages);
        let ports = ports.map(|(name, port)| Port { name, address: format!("{host}:{port}") }).collect();
        let initialized_ms = self.clock.now_ms().0;
        server.register_metrics(&self.registry);
        self.process.set_ledger(server.ledger());
        self.process.register(&self.registry);
        master.register_metrics(&self.registry);
        let (started_ms, requests) = (self.started_ms, Arc::downgrade(server));
        self.registry.collect(move |sink, _| {
            let of = |ms: i64| u64::try_from(ms).unwrap_or(0);
            sink.bean(MASTER)
                .gauge("masterActiveTime", of(started_ms))
                .gauge("masterStartTime", of(started_ms))
                .gauge("masterFinishedInitializationTime", of(initialized_ms))
                .counter("clusterRequests", requests.upgrade().map_or(0, |server| server.request_counts().0));
        });
        let details = PageDetails::new(server, master, coordination::settings::znode_parent(&self.config));
        let (server, master) = (server.clone(), master.clone());
        let _ = self.ready.set(Ready { server, master, ports, initialized_ms, rpc, details });
    }
}

impl web::StatusSource for Pages {
    fn status(&self) -> Status {
        let mut status = Status::unknown(env!("CARGO_PKG_VERSION"), self.started_ms);
        status.data_directory.clone_from(&self.data_directory);
        status.memory.resident_bytes = crate::memory::resident_bytes();
        if let Some(ready) = self.ready.get() {
            fill(&mut status, ready);
        }
        status
    }

    fn metrics(&self, now_ms: i64) -> Vec<Sample> {
        self.registry.read(now_ms)
    }

    fn requests(&self) -> Requests {
        let Some(ready) = self.ready.get() else { return Requests::default() };
        let (total, reads, writes) = ready.server.request_counts();
        Requests { total, reads, writes, filtered_reads: 0 }
    }

    fn configuration(&self) -> Vec<Property> {
        properties(&self.config)
    }

    fn details(&self) -> Option<&dyn web::Details> {
        self.ready.get().map(|ready| &ready.details as &dyn web::Details)
    }

    fn process(&self) -> Option<&dyn web::details::ProcessDetails> {
        Some(&self.process)
    }

    fn is_serving(&self) -> bool {
        self.ready.get().is_some()
    }
}

/// Every setting in force.
pub fn properties(config: &Config) -> Vec<Property> {
    let mut all: HashMap<String, Property> = HashMap::new();
    let mut put = |key: &str, value: &str, source| {
        all.insert(key.to_owned(), Property { key: key.to_owned(), value: value.to_owned(), source });
    };
    for row in settings::rows() {
        put(row.key(), &row.describe().default, "hbase-default.xml");
    }
    for (key, value) in config.iter() {
        put(key, value, "hbase-site.xml");
    }
    all.into_values().collect()
}

/// Who holds how much, by a ledger.
pub fn holders(ledger: &Ledger) -> Vec<Holder> {
    let entries = ledger.entries().into_iter().map(|entry| Holder {
        name: entry.holder.name(),
        held_bytes: entry.held_bytes,
        highest_bytes: entry.highest_bytes,
        cap_bytes: (entry.granted_bytes != u64::MAX).then_some(entry.granted_bytes),
    });
    entries.collect()
}

fn fill(status: &mut Status, ready: &Ready) {
    let Ready { server, master, ports, initialized_ms, rpc, details: _ } = ready;
    let loads = fill_of_region_server(status, server, rpc);
    status.master = master.server_name().clone();
    (status.live_servers, status.dead_servers) = master.views().servers();
    status.draining_servers = master.views().draining_servers();
    status.cluster_id = master.cluster_id().to_owned();
    status.zookeeper_quorum = ports.first().map(|port| port.address.clone()).unwrap_or_default();
    status.initialized_ms = *initialized_ms;
    status.ports.clone_from(ports);
    let cluster = master.cluster();
    status.tables = cluster
        .tables()
        .map(|(table, state)| Table {
            name: table.name.clone(),
            state: state_name(state),
            families: table.families.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        })
        .collect();
    let mut loads: HashMap<_, _> = loads.into_iter().map(|load| (load.encoded_name.clone(), load)).collect();
    for node in cluster.regions().filter(|node| node.is_live()) {
        match loads.remove(node.info.encoded_name()) {
            Some(load) => status.regions.push(Region { info: node.info.clone(), load }),
            None if cluster.state(&node.info.table) == Some(TableState::Disabled) => {}
            None => status.in_transition.push(InTransition {
                region: node.info.name_string(),
                state: format!("{:?}", node.state).to_uppercase(),
                since_ms: node.since.0,
            }),
        }
    }
    status.regions.sort_by(|a, b| a.info.name().cmp(b.info.name()));
}

fn volume(server: &RegionServer, now: fs::tiered::VolumeStatus) -> web::status::Volume {
    let condition = match &now.trouble {
        Some(why) if !now.is_there => format!("failed: {why}; {} regions wait for it", server.waiting_on(&now)),
        Some(why) => why.clone(),
        None if now.speed.is_slow => "slow".to_owned(),
        None if now.spec.drains => format!("to be emptied, {} files left", now.files),
        None => "well".to_owned(),
    };
    web::status::Volume {
        place: now.spec.place,
        tier: format!("{} ({})", now.spec.tier.name, now.spec.tier.class),
        used_bytes: now.used_bytes,
        free_bytes: now.free_bytes,
        sync_p99_us: now.speed.sync_p99_us,
        is_well: now.trouble.is_none() && !now.speed.is_slow,
        condition,
    }
}

/// What a region server says of itself; its regions' loads are answered.
pub fn fill_of_region_server(
    status: &mut Status,
    server: &RegionServer,
    rpc: &[Arc<rpc::Counters>],
) -> Vec<model::status::RegionLoad> {
    let now = server.status();
    status.region_server = server.name().clone();
    status.host_name = server.name().host.to_string();
    let filtered_reads = now.regions.iter().map(|load| load.filtered_read_requests).sum();
    status.requests = Requests { total: now.requests, reads: now.reads, writes: now.writes, filtered_reads };
    status.memory.budget_bytes = now.memory_budget_bytes;
    status.memory.memstore_bytes = now.memstore_bytes;
    status.memory.memstore_limit_bytes = now.memstore_limit_bytes;
    let cache = server.env().cache.stats();
    status.block_cache = BlockCache {
        capacity_bytes: cache.capacity_bytes,
        used_bytes: cache.used_bytes,
        blocks: cache.blocks,
        hits: cache.hits,
        misses: cache.misses,
        evicted: cache.evicted,
    };
    status.volumes = server.volumes().into_iter().map(|now| volume(server, now)).collect();
    let log = &server.env().log;
    let (files, stats) = (log.files(), log.stats());
    status.log = Log {
        files: files.len() as u64,
        files_bytes: files.iter().map(|file| file.len_bytes).sum(),
        entries: stats.entries,
        bytes: stats.bytes,
        syncs: stats.syncs,
        sync_us: stats.sync_us,
        max_sync_us: stats.max_sync_us,
        rolls: stats.files.saturating_sub(1),
        rescues: stats.rescues,
        waiting_bytes: stats.waiting_bytes,
        stalled: log.is_stalled(),
    };
    status.queues = Queues {
        flushes: now.flush_queue as u64,
        small_compactions: now.compaction_queues.0 as u64,
        large_compactions: now.compaction_queues.1 as u64,
        splits: 0,
    };
    status.rpc.connections = rpc.iter().map(|port| port.connections.load(Ordering::Relaxed) as u64).sum();
    status.rpc.open_scanners = now.open_scanners as u64;
    status.rpc.queued_calls = now.queued_calls as u64;
    status.rpc.active_calls = now.running_calls as u64;
    let ledger = server.ledger();
    status.rpc.queued_bytes = ledger.held_bytes(base::Holder::Requests);
    status.holders = holders(ledger);
    now.regions
}

/// A state of a table in HBase's words.
pub fn state_name(state: TableState) -> &'static str {
    match state {
        TableState::Enabled => "ENABLED",
        TableState::Disabled => "DISABLED",
        TableState::Disabling => "DISABLING",
        TableState::Enabling => "ENABLING",
    }
}

/// A moment as Java's `Date.toString` writes it in UTC: `Sat Nov 21 00:04:14 UTC 2026`.
pub fn java_date(ms_since_epoch: u64) -> String {
    let (days, second) = (ms_since_epoch / 86_400_000, ms_since_epoch / 1000 % 86_400);
    let week_day = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let (mut year, mut day) = (1970, days);
    let length = |year: u64| {
        if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) { 366 } else { 365 }
    };
    while day >= length(year) {
        day -= length(year);
        year += 1;
    }
    let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days_of = [31, length(year) - 337, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= days_of[month] {
        day -= days_of[month];
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{week_day} {} {:02} {hour:02}:{minute:02}:{:02} UTC {year}", names[month], day + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use super::java_date;

    #[test]
    fn dates_read_as_java_writes_them() {
        assert_eq!(java_date(0), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(java_date(1_795_219_454_000), "Sat Nov 21 00:04:14 UTC 2026");
        assert_eq!(java_date(1_709_164_800_000), "Thu Feb 29 00:00:00 UTC 2024");
    }
}
