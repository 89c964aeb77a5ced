//! The status pages and metrics of `basalt regionserver`: what is its own. Its master has the rest elsewhere.

use crate::details::{running, slow_calls, store_files};
use crate::pages_port;
use crate::ports::listen_address;
use crate::process::OwnProcess;
use crate::status::{fill_of_region_server, properties};
use anyhow::Result;
use base::metrics::{IPC, Registry, Sample};
use base::{Clock, Config};
use key_statistics::{Grid, Measure};
use model::{TableDescriptor, TableName};
use regionserver::RegionServer;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use web::Status;
use web::details::{
    Details, Lock, MeasuredSnapshots, Procedure, Quota, Reports, Running, SlowCall, Snapshot, StoreFile,
};
use web::settings::{REGION_SERVER_INFO_BIND_ADDRESS, REGION_SERVER_INFO_PORT};
use web::status::{Port, Property, Region, Requests, StatusSource, Table};
use zookeeper::Ensemble;

/// HBase's port, where the configuration names none.
const USUAL_PORT: i32 = 16_030;

/// The source of the pages. Knows little until the server serves.
pub struct MemberPages {
    config: Config,
    clock: Arc<dyn Clock>,
    started_ms: i64,
    /// The ensemble.
    quorum: String,
    ready: OnceLock<Ready>,
    registry: Arc<Registry>,
    process: OwnProcess,
}

struct Ready {
    server: Arc<RegionServer>,
    cluster_id: String,
    data_directory: String,
    since_ms: i64,
    rpc: Vec<Arc<rpc::Counters>>,
}

impl MemberPages {
    /// Pages of a server that is not let in yet.
    pub fn new(config: &Config, clock: &Arc<dyn Clock>, ensemble: &Ensemble) -> MemberPages {
        let (registry, started_ms) = (Registry::new(), clock.now_ms().0);
        let process = OwnProcess::new(started_ms);
        process.register(&registry);
        ensemble.register_metrics(&registry);
        MemberPages {
            config: config.clone(),
            clock: clock.clone(),
            started_ms,
            quorum: ensemble.connect_string().to_owned(),
            ready: OnceLock::new(),
            registry,
            process,
        }
    }

    /// Opens their port; `None` where none are wanted, or nothing is said and the port is another's.
    ///
    /// # Errors
    /// A port that is asked for cannot be had.
    pub fn bind(self: &Arc<Self>) -> Result<Option<web::Server>> {
        let key = REGION_SERVER_INFO_PORT.key;
        let number = if self.config.is_set(key) { self.config.get(&REGION_SERVER_INFO_PORT) } else { USUAL_PORT };
        let at = |number| listen_address(&self.config, REGION_SERVER_INFO_BIND_ADDRESS.key, number);
        let of = ("the region server's status pages", key);
        pages_port::bind(&self.config, of, number, at, self.clone(), self.clock.clone())
    }

    /// It serves from now on; calls come in at `port`.
    pub fn set_ready(&self, server: &Arc<RegionServer>, port: &rpc::Server, cluster_id: &str, data_directory: &str) {
        self.process.set_ledger(server.ledger());
        server.register_metrics(&self.registry);
        port.register_metrics(&self.registry, IPC);
        let _only_once = self.ready.set(Ready {
            server: server.clone(),
            cluster_id: cluster_id.to_owned(),
            data_directory: data_directory.to_owned(),
            since_ms: self.clock.now_ms().0,
            rpc: vec![port.counters().clone()],
        });
    }
}

impl StatusSource for MemberPages {
    fn status(&self) -> Status {
        let mut status = Status::unknown(env!("CARGO_PKG_VERSION"), self.started_ms);
        status.zookeeper_quorum.clone_from(&self.quorum);
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

    fn details(&self) -> Option<&dyn Details> {
        self.ready.get().map(|ready| ready as &dyn Details)
    }

    fn process(&self) -> Option<&dyn web::details::ProcessDetails> {
        Some(&self.process)
    }

    fn is_region_server_alone(&self) -> bool {
        true
    }

    fn is_serving(&self) -> bool {
        self.ready.get().is_some()
    }
}

fn fill(status: &mut Status, Ready { server, cluster_id, data_directory, since_ms, rpc }: &Ready) {
    let loads = fill_of_region_server(status, server, rpc);
    status.cluster_id.clone_from(cluster_id);
    status.data_directory.clone_from(data_directory);
    status.initialized_ms = *since_ms;
    status.live_servers = vec![server.name().clone()];
    status.ports = vec![Port { name: "region server", address: server.name().address() }];
    let mut loads: HashMap<_, _> = loads.into_iter().map(|load| (load.encoded_name.clone(), load)).collect();
    let mut tables = BTreeMap::new();
    for region in server.regions() {
        let info = region.info().clone();
        let load = loads.remove(info.encoded_name()).unwrap_or_default();
        status.regions.push(Region { info, load });
        tables.insert(region.info().table.clone(), region.table().clone());
    }
    status.regions.sort_by(|a, b| a.info.name().cmp(b.info.name()));
    let table = |(name, table): (TableName, Arc<TableDescriptor>)| Table {
        name,
        // A region of it is open.
        state: "ENABLED",
        families: table.families.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
    };
    status.tables = tables.into_iter().map(table).collect();
}

/// What is the master's has no pages here: nobody asks for it.
impl Details for Ready {
    fn procedures(&self) -> Vec<Procedure> {
        Vec::new()
    }

    fn locks(&self) -> Vec<Lock> {
        Vec::new()
    }

    fn snapshots(&self) -> Result<Vec<Snapshot>, String> {
        Err("the master's pages show them".to_owned())
    }

    fn snapshot_sizes(&self) -> Result<(Vec<Snapshot>, Option<MeasuredSnapshots>), String> {
        Err("the master's pages show them".to_owned())
    }

    fn quotas(&self) -> Result<Vec<Quota>, String> {
        Err("the master's pages show them".to_owned())
    }

    fn slow_calls(&self) -> Vec<SlowCall> {
        slow_calls(&self.server)
    }

    fn running(&self) -> Vec<Running> {
        running(&self.server)
    }

    fn table(&self, name: &str) -> Option<Vec<String>> {
        let name = TableName::parse(name).ok()?;
        let region = self.server.regions().into_iter().find(|region| region.info().table == name)?;
        Some(shell::describe_lines(region.table()))
    }

    fn store_files(&self, region: &str) -> Option<Vec<StoreFile>> {
        store_files(&self.server, region)
    }

    fn reports(&self) -> Reports {
        Reports::default()
    }

    fn tables_with_keys(&self) -> Vec<TableName> {
        self.server.tables_with_keys()
    }

    fn key_grid(&self, table: &TableName, measure: Measure, span_ms: i64) -> Option<Grid> {
        self.server.key_grid(table, measure, span_ms)
    }

    fn znodes(&self) -> String {
        "the master's pages show them".to_owned()
    }
}
