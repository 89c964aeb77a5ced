//! The status pages and metrics of `basalt master`: what it sees of its region servers, which have theirs elsewhere.

use crate::details::PageDetails;
use crate::pages_port;
use crate::ports::listen_address;
use crate::process::OwnProcess;
use crate::status::{properties, state_name};
use anyhow::Result;
use base::metrics::{MASTER, Registry, Sample};
use base::{Clock, Config};
use master::Master;
use master::cluster::TableState;
use model::ServerName;
use model::status::{LoadTotals, RegionLoad};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use web::Status;
use web::settings::{INFO_BIND_ADDRESS, INFO_PORT};
use web::status::{
    Balance, Cluster, InTransition, Property, Region, Requests, Server, ServerGroup, StatusSource, Table,
};
use zookeeper::Ensemble;

/// The source of the pages. Knows little while the master is a backup.
pub struct LeaderPages {
    config: Config,
    clock: Arc<dyn Clock>,
    started_ms: i64,
    name: ServerName,
    /// The ensemble.
    quorum: String,
    ready: OnceLock<Ready>,
    registry: Arc<Registry>,
    process: OwnProcess,
}

struct Ready {
    master: Arc<Master>,
    data_directory: String,
    since_ms: i64,
    details: PageDetails,
}

impl LeaderPages {
    /// Pages of a master that waits.
    pub fn new(config: &Config, clock: &Arc<dyn Clock>, name: &ServerName, ensemble: &Ensemble) -> LeaderPages {
        let (registry, started_ms) = (Registry::new(), clock.now_ms().0);
        let process = OwnProcess::new(started_ms);
        process.register(&registry);
        ensemble.register_metrics(&registry);
        LeaderPages {
            config: config.clone(),
            clock: clock.clone(),
            started_ms,
            name: name.clone(),
            quorum: ensemble.connect_string().to_owned(),
            ready: OnceLock::new(),
            registry,
            process,
        }
    }

    /// It leads from now on.
    pub fn set_ready(&self, master: &Arc<Master>, data_directory: &str) {
        let since_ms = self.clock.now_ms().0;
        master.register_metrics(&self.registry);
        let started_ms = self.started_ms;
        self.registry.collect(move |sink, _| {
            let of = |ms: i64| u64::try_from(ms).unwrap_or(0);
            sink.bean(MASTER)
                .gauge("masterActiveTime", of(since_ms))
                .gauge("masterStartTime", of(started_ms))
                .gauge("masterFinishedInitializationTime", of(since_ms));
        });
        let data_directory = data_directory.to_owned();
        let details = PageDetails::of_master(master, coordination::settings::znode_parent(&self.config));
        let _only_once = self.ready.set(Ready { master: master.clone(), data_directory, since_ms, details });
    }

    /// Opens their port; `None` where none are wanted, or nothing is said and the port is another's.
    ///
    /// # Errors
    /// A port that is asked for cannot be had.
    pub fn bind(self: &Arc<Self>) -> Result<Option<web::Server>> {
        let (of, number) = (("the master's status pages", INFO_PORT.key), self.config.get(&INFO_PORT));
        let at = |number| listen_address(&self.config, INFO_BIND_ADDRESS.key, number);
        pages_port::bind(&self.config, of, number, at, self.clone(), self.clock.clone())
    }
}

impl StatusSource for LeaderPages {
    fn status(&self) -> Status {
        let mut status = Status::unknown(env!("CARGO_PKG_VERSION"), self.started_ms);
        status.master = self.name.clone();
        status.host_name = self.name.host.to_string();
        status.zookeeper_quorum.clone_from(&self.quorum);
        status.memory.resident_bytes = crate::memory::resident_bytes();
        status.cluster = Some(Cluster::default());
        if let Some(ready) = self.ready.get() {
            fill(&mut status, ready);
        }
        status
    }

    fn metrics(&self, now_ms: i64) -> Vec<Sample> {
        self.registry.read(now_ms)
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

    fn is_master_alone(&self) -> bool {
        true
    }

    fn is_serving(&self) -> bool {
        self.ready.get().is_some_and(|ready| !ready.master.is_stopping())
    }
}

fn fill(status: &mut Status, Ready { master, data_directory, since_ms, .. }: &Ready) {
    let views = master.views();
    (status.live_servers, status.dead_servers) = views.servers();
    status.draining_servers = views.draining_servers();
    status.cluster_id = master.cluster_id().to_owned();
    status.data_directory.clone_from(data_directory);
    status.initialized_ms = *since_ms;
    let loads = views.loads();
    let (balancer_on, last) = views.balancer();
    let running = views.procedures();
    let running = running.iter().filter(|record| !has_ended(record));
    status.cluster = Some(Cluster {
        backup_masters: views.backup_masters(),
        servers: loads
            .iter()
            .map(|(name, regions, memory)| Server {
                name: name.clone(),
                is_draining: status.draining_servers.contains(name),
                load: LoadTotals::of(regions),
                memory_bytes: (memory.used_bytes, memory.max_bytes),
            })
            .collect(),
        balancer_on,
        last_balance: last.map(|run| Balance {
            at_ms: run.at_ms,
            calculated: run.calculated as u64,
            executed: run.executed as u64,
        }),
        procedures: running
            .map(|record| {
                let class = record.class_name.rsplit('.').next().unwrap_or_default();
                (record.proc_id, format!("{class} {}", record.state().as_str_name()))
            })
            .collect(),
        groups: views.groups().map(|groups| groups.into_iter().map(group).collect()),
    });
    let mut by_region: HashMap<Arc<str>, RegionLoad> =
        loads.into_iter().flat_map(|(_, regions, _)| regions).map(|load| (load.encoded_name.clone(), load)).collect();
    let sums = LoadTotals::of(by_region.values());
    status.requests = Requests {
        total: sums.reads + sums.writes,
        reads: sums.reads,
        writes: sums.writes,
        filtered_reads: sums.filtered_reads,
    };
    let cluster = master.cluster();
    let table = |(table, state): (&Arc<model::TableDescriptor>, TableState)| Table {
        name: table.name.clone(),
        state: state_name(state),
        families: table.families.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
    };
    status.tables = cluster.tables().map(table).collect();
    for node in cluster.regions().filter(|node| node.is_live()) {
        if node.state == master::cluster::RegionState::Open {
            let load = by_region.remove(node.info.encoded_name()).unwrap_or_default();
            status.regions.push(Region { info: node.info.clone(), load });
        } else if cluster.state(&node.info.table) != Some(TableState::Disabled) {
            status.in_transition.push(InTransition {
                region: node.info.name_string(),
                state: node.state.as_str_name().to_owned(),
                since_ms: node.since.0,
            });
        }
    }
}

fn group(group: master::GroupOfServers) -> ServerGroup {
    let master::GroupOfServers { name, servers, tables, configuration } = group;
    ServerGroup { name, servers, tables, configuration }
}

fn has_ended(record: &proto::pb::Procedure) -> bool {
    use proto::pb::ProcedureState::{Failed, Rolledback, Success};
    matches!(record.state(), Failed | Rolledback | Success)
}
