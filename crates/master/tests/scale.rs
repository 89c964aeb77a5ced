//! A scale model: the master's own code with region servers that answer at once and have nothing but names. What it costs the master to know
//! many regions: memory, to take them over, to plan the recovery of a server's, to balance, to say how the cluster is.
//!
//! 5,000 regions on 20 servers, or `BASALT_SCALE_REGIONS` on `BASALT_SCALE_SERVERS`; the figures are printed.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use crate::common::{Cells, caller, table};
use basalt_master::cluster::{RegionState, TableState};
use basalt_master::{
    BoxFuture, HostError, Inherited, LogSplitter, Master, MasterEnv, OneRack, RegionHost, ServerLogs, Unobserved, meta,
};
use base::{Clock, Config, Rng, SystemClock, TimestampMs};
use bytes::Bytes;
use cell::CellBuffer;
use fs::{MemVolume, Volume};
use model::region_info::META_ENCODED_NAME;
use model::status::RegionLoad;
use model::{Mutation, RegionInfo, Scan, ServerName, TableDescriptor};
use parking_lot::Mutex;
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TABLES: usize = 10;

/// What stands for a region server.
struct StandIn {
    name: ServerName,
    online: Mutex<BTreeMap<String, RegionInfo>>,
    /// hbase:meta as the master before has left it.
    meta: Arc<CellBuffer>,
    /// hbase:namespace and its like.
    others: Arc<Mutex<BTreeMap<String, Cells>>>,
}

fn at_once<T: Send + 'static>(answer: T) -> BoxFuture<'static, Result<T, HostError>> {
    Box::pin(std::future::ready(Ok(answer)))
}

impl RegionHost for StandIn {
    fn server_name(&self) -> ServerName {
        self.name.clone()
    }
    fn is_remote(&self) -> bool {
        true
    }
    fn online_regions(&self) -> BoxFuture<'_, Result<BTreeSet<String>, HostError>> {
        at_once(self.online.lock().keys().cloned().collect())
    }
    fn open_region(&self, info: RegionInfo, _: Arc<TableDescriptor>) -> BoxFuture<'_, Result<u64, HostError>> {
        self.online.lock().insert(info.encoded_name().to_string(), info);
        at_once(2)
    }
    fn close_region(&self, encoded_name: &str) -> BoxFuture<'_, Result<(), HostError>> {
        self.online.lock().remove(encoded_name);
        at_once(())
    }
    fn flush_region(&self, _: &str, _: Vec<Bytes>) -> BoxFuture<'_, Result<(), HostError>> {
        at_once(())
    }
    fn compact_region(&self, _: &str, _: Option<Bytes>, _: bool) -> BoxFuture<'_, Result<(), HostError>> {
        at_once(())
    }
    fn split_point(&self, _: &str) -> BoxFuture<'_, Result<Option<Bytes>, HostError>> {
        at_once(None)
    }
    fn split_region_files(
        &self,
        _: &RegionInfo,
        _: Arc<TableDescriptor>,
        _: [RegionInfo; 2],
    ) -> BoxFuture<'_, Result<(), HostError>> {
        at_once(())
    }
    fn snapshot_region(&self, _: &str, _: &str, _: bool) -> BoxFuture<'_, Result<(), HostError>> {
        at_once(())
    }
    fn snapshot_closed_region(
        &self,
        _: RegionInfo,
        _: Arc<TableDescriptor>,
        _: &str,
    ) -> BoxFuture<'_, Result<(), HostError>> {
        at_once(())
    }
    fn mutate(&self, encoded_name: &str, mutations: Vec<Mutation>) -> BoxFuture<'_, Result<(), HostError>> {
        if encoded_name != META_ENCODED_NAME {
            self.others.lock().entry(encoded_name.to_owned()).or_default().apply(&mutations);
        }
        at_once(())
    }
    fn scan(&self, encoded_name: &str, _: Scan) -> BoxFuture<'_, Result<CellBuffer, HostError>> {
        if encoded_name == META_ENCODED_NAME {
            return at_once((*self.meta).clone());
        }
        at_once(self.others.lock().get(encoded_name).cloned().unwrap_or_default().scan())
    }
    fn region_loads(&self) -> Vec<RegionLoad> {
        let load = |info: &RegionInfo| RegionLoad {
            name: info.name().clone(),
            encoded_name: Arc::clone(info.encoded_name()),
            stores: 1,
            store_file_size_bytes: 3 << 30,
            read_requests: info.region_id * 7 % 1000,
            ..RegionLoad::default()
        };
        self.online.lock().values().map(load).collect()
    }
    fn reported_load(&self) -> Option<pb::ServerLoad> {
        let region_loads = self.region_loads().iter().map(convert::to_proto::region_load).collect();
        Some(pb::ServerLoad { region_loads, ..pb::ServerLoad::default() })
    }
}

struct NoLogs;

impl LogSplitter for NoLogs {
    fn split_logs(&self, _: &ServerName, _: ServerLogs) -> BoxFuture<'_, Result<(), HostError>> {
        at_once(())
    }
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// What this process holds, in mebibytes.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or_default() >> 10
}

/// A cluster as a master before has left it.
struct Left {
    cluster_id: String,
    hosts: Vec<Arc<StandIn>>,
    volume: Arc<dyn Volume>,
}

fn left(regions: usize, servers: usize) -> Left {
    let volume = Arc::new(MemVolume::new());
    let cluster_id = rootdir::root::prepare(&*volume, &Rng::seeded(5)).expect("a root directory");
    let name = |number: usize| ServerName::new(&format!("host{number}"), 16020, 1);
    let mut cells = Cells::default();
    let mut online = vec![BTreeMap::new(); servers];
    let stamp = TimestampMs(1_795_220_000_000);
    for number in 0..TABLES {
        let described = table(&format!("t{number}"), &["f"]);
        rootdir::descriptor::write(&*volume, &described).expect("written");
        cells.apply(&[meta::put_table_state(&described.name, TableState::Enabled, stamp)]);
        let count = regions / TABLES;
        let key = |at: usize| if at == 0 || at == count { Bytes::new() } else { Bytes::from(format!("{at:08}")) };
        for at in 0..count {
            let info = RegionInfo::new(described.name.clone(), key(at), key(at + 1), 1_795_000_000_000 + at as u64);
            let server = (number * count + at) % servers;
            cells.apply(&[meta::put_open_region(&info, &name(server), 2, stamp)]);
            online[server].insert(info.encoded_name().to_string(), info);
        }
    }
    online[0].insert(META_ENCODED_NAME.to_owned(), RegionInfo::meta());
    let (meta, others) = (Arc::new(cells.scan()), Arc::new(Mutex::default()));
    let host = |(number, online)| StandIn {
        name: name(number),
        online: Mutex::new(online),
        meta: Arc::clone(&meta),
        others: Arc::clone(&others),
    };
    Left { cluster_id, hosts: online.into_iter().enumerate().map(host).map(Arc::new).collect(), volume }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_regions_cost_the_master_little() {
    let regions = number("BASALT_SCALE_REGIONS", 5_000);
    let servers = number("BASALT_SCALE_SERVERS", 20);
    let Left { cluster_id, hosts, volume } = left(regions, servers);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let began = Instant::now();
    let mut config = Config::default();
    // Its chores would be in the way of what is measured.
    config.set("hbase.balancer.period", "3600000");
    if std::env::var("BASALT_SCALE_REGIONS").is_err() {
        config.set("hbase.master.balancer.stochastic.maxRunningTime", "3000");
    }
    let master = Master::start(MasterEnv {
        cluster_id,
        volume,
        clock: Arc::clone(&clock),
        hosts: hosts.iter().map(|host| host.clone() as Arc<dyn RegionHost>).collect(),
        config,
        inherited: Inherited { meta_location: Some(hosts[0].name.clone()), ..Inherited::default() },
        log_splitter: Arc::new(NoLogs),
        observer: Arc::new(Unobserved),
        racks: Arc::new(OneRack),
        group_mapping: Arc::new(crate::common::ByPrefix),
        server_name: ServerName::new("localhost", 16000, 1),
        info_port: None,
    });
    let master = master.await.expect("it takes over");
    let took_over = began.elapsed();
    assert!(master.cluster().regions().filter(|node| node.state == RegionState::Open).count() >= regions);
    // With what the stand-ins and hbase:meta itself take, which are here, too.
    let memory_mib = resident_mib();

    let limits = rpc::Limits::from_config(&Config::default());
    let address = "127.0.0.1:0".parse().expect("an address");
    let server = rpc::Server::bind(address, master.handler(), clock, limits).expect("bound");
    let options = ClientOptions::default();
    let client = Client::connect(server.local_addr(), "MasterService", options).await.expect("connects");
    let began = Instant::now();
    let request = pb::GetClusterStatusRequest::default();
    let call = client.call(Method::MasterGetClusterStatus.info(), &request, None);
    let status: pb::GetClusterStatusResponse = call.await.expect("answered").decode().expect("a status");
    let status_took = began.elapsed();
    assert_eq!(status.cluster_status.live_servers.len(), servers);

    let dead = hosts[servers - 1].name.clone();
    let lost = hosts[servers - 1].online.lock().len();
    let began = Instant::now();
    let crash = master.server_crashed(&dead).await.expect("accepted");
    master.wait_for(crash).await.expect("recovered");
    let recovered = began.elapsed();
    let elsewhere: usize = hosts[..servers - 1].iter().map(|host| host.online.lock().len()).sum();
    assert!(elsewhere > regions, "{elsewhere} of {regions} and hbase:meta");

    // One that takes its place has nothing: there is something to balance.
    let next = StandIn {
        name: ServerName::new(&dead.host, dead.port, 2),
        online: Mutex::default(),
        meta: Arc::clone(&hosts[0].meta),
        others: Arc::clone(&hosts[0].others),
    };
    assert!(master.server_joined(Arc::new(next)));
    let began = Instant::now();
    let request = pb::BalanceRequest { ignore_rit: Some(true), dry_run: Some(true) };
    // Who waits for a crash procedure may be told before it counts as ended, and until then nothing is balanced.
    let mut balance = pb::BalanceResponse::default();
    while !balance.balancer_ran && began.elapsed() < Duration::from_secs(10) {
        let call = client.call(Method::MasterBalance.info(), &request, None);
        balance = call.await.expect("answered").decode().expect("an answer");
    }
    let balanced = began.elapsed();
    assert!(balance.balancer_ran && balance.moves_calculated > Some(0), "{balance:?}");

    let began = Instant::now();
    let id = master.disable_table(&table("t0", &["f"]).name, &caller()).await.expect("accepted");
    master.wait_for(id).await.expect("disabled");
    let disabled = began.elapsed();
    println!(
        "{regions} regions on {servers} servers: taken over in {took_over:?}, then {memory_mib} MiB with the stand-ins; ClusterMetrics {status_took:?}; \
         {lost} regions of a dead server open elsewhere after {recovered:?}; a balancer run {balanced:?}, {:?} moves; \
         a table of {} regions disabled in {disabled:?}; {} MiB in the end",
        balance.moves_calculated,
        regions / TABLES,
        resident_mib()
    );
    // Of a build that nobody has optimised, on a machine that does other things: what grows with the square is far beyond.
    for (what, took, limit_s) in
        [("takeover", took_over, 20), ("ClusterMetrics", status_took, 10), ("the recovery", recovered, 20)]
    {
        assert!(took < Duration::from_secs(limit_s), "{what} took {took:?}");
    }
    assert!(memory_mib < 1024, "{memory_mib} MiB");
    master.stop();
}
