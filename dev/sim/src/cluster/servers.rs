//! A region server and a master as processes of the simulated cluster, put together as the binary does it.

use super::client::Caller;
use super::ensemble::{Ensemble, Session};
use super::gate::Gate;
use super::hdfs::Hdfs;
use super::network::Net;
use super::process::Main;
use super::replicas::Routes;
use assembly::{Member, MemberParts, RegionServerPort, Runner, Services, Syncer};
use base::{Clock, Config, ManualClock, Rng};
use coordination::{Coordinator, HBaseZnodes};
use fs::Volume;
use leader::{Leader, LeaderParts, LeaderPort};
use master::{BoxFuture, HostError, Master, Unobserved};
use membership::{Candidate, ClusterNodes, MasterLink, Registry, RegistryService, ReplicaShipper, Reporter};
use model::ServerName;
use parking_lot::Mutex;
use regionserver::{LoadReports, RegionServer, ServeLease, StoreFileRefresher};
use rpc::Dialer;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Where HBase's nodes are.
pub const PARENT: &str = "/hbase";
/// The root directory as it is told to region servers.
const ROOT: &str = "hdfs://namenode/hbase";
/// What a server may use.
const MEMORY_BUDGET_BYTES: u64 = 64 << 20;
/// A call to the master that has no answer by then has failed.
const MASTER_TIMEOUT: Duration = Duration::from_secs(3);
/// A call to another region server for the sake of read replicas that has no answer by then has failed.
const REPLICA_PATIENCE: Duration = Duration::from_secs(3);
/// Between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(700);
/// How long an abort may take to say so.
const ABORT_GRACE: Duration = Duration::from_secs(2);
/// Port of a region server.
pub const SERVER_PORT: u16 = 16020;
/// Port of a master.
pub const MASTER_PORT: u16 = 16000;

/// What the world gives a process.
#[derive(Clone)]
pub struct Surroundings {
    /// The volume.
    pub hdfs: Hdfs,
    /// The ensemble.
    pub ensemble: Ensemble,
    /// The network.
    pub net: Net,
    /// The process's own clock.
    pub clock: Arc<ManualClock>,
    /// Its own dice.
    pub rng: Arc<Rng>,
    /// Settings.
    pub config: Config,
    /// Its address.
    pub host: String,
    /// A number that no other life of a process has.
    pub unique: u64,
    /// A bug of a region server that the product does not have.
    pub defect: Option<ServerDefect>,
}

/// A bug that is put into a region server where it is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerDefect {
    /// Clients are answered whether or not the lease holds.
    ServesWithoutLease,
}

/// What the world sees of a process from outside.
#[derive(Default)]
pub struct Status {
    /// Its name in this life, once it has one.
    pub name: Mutex<Option<ServerName>>,
    /// A region server, when it serves.
    pub server: Mutex<Option<Weak<RegionServer>>>,
    /// Until when it answers.
    pub lease: Mutex<Option<Arc<ServeLease>>>,
    /// A master, when it leads.
    pub master: Mutex<Option<Weak<Master>>>,
    /// Why it has ended.
    pub ended: Mutex<Option<String>>,
}

struct Inline;

impl Runner for Inline {
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HostError>> {
        Box::pin(async move { work() })
    }
}

/// The logs, which a task syncs.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<Arc<wal::Log>>>>);

impl Syncer for Logs {
    fn attend(&self, log: &Arc<wal::Log>, _: &'static str) -> std::io::Result<()> {
        self.0.lock().push(log.clone());
        Ok(())
    }

    fn join(&self) {
        self.0.lock().clear();
    }
}

fn address(number: u64) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, (number % 250) as u8], SERVER_PORT))
}

type Ends = mpsc::UnboundedSender<String>;

/// A region server.
pub fn region_server(around: Surroundings, status: Arc<Status>) -> impl FnOnce(Arc<Gate>) -> Main + Send {
    move |gate| {
        Box::pin(async move {
            let ended = serve(around, gate, &status).await;
            *status.ended.lock() = Some(ended);
        })
    }
}

/// A master.
pub fn master(around: Surroundings, status: Arc<Status>) -> impl FnOnce(Arc<Gate>) -> Main + Send {
    move |gate| {
        Box::pin(async move {
            let ended = lead(around, gate, &status).await;
            *status.ended.lock() = Some(ended);
        })
    }
}

fn session(around: &Surroundings, gate: &Arc<Gate>) -> (Arc<Session>, Arc<dyn Coordinator>) {
    let session = around.ensemble.session(gate.clone());
    let kept = session.clone();
    tokio::spawn(async move { kept.keep().await });
    (session.clone(), session)
}

async fn serve(around: Surroundings, gate: Arc<Gate>, status: &Status) -> String {
    let Surroundings { clock, rng, config, .. } = &around;
    let (nodes_session, coordinator) = session(&around, &gate);
    let nodes = ClusterNodes::new(coordinator.clone(), PARENT);
    let dialer = Dialer::Network(around.net.of(gate.clone()));
    let link = Arc::new(MasterLink::over(dialer, nodes.clone(), MASTER_TIMEOUT));
    let services = Arc::new(Services::default());
    let ledger = regionserver::ledger(config, MEMORY_BUDGET_BYTES, u64::MAX);
    let mut limits = rpc::Limits::from_config(config);
    limits.within(&ledger);
    let handler = Arc::new(RegionServerPort(services.clone()));
    let server = Arc::new(rpc::Server::unbound(address(around.unique), handler, clock.clone(), limits));
    let listening = server.clone();
    around.net.listen((&around.host, SERVER_PORT), gate.clone(), Handle::current(), move |pipe, peer| {
        listening.attach(pipe, peer);
    });
    let candidate = Candidate {
        host: Some(around.host.clone()),
        port: SERVER_PORT,
        start_code: u64::try_from(clock.now_ms().0).unwrap_or_default(),
        version: None,
    };
    let admitted = match membership::join(&link, &candidate, None, (&**clock, rng)).await {
        Ok(admitted) => admitted,
        Err(error) => return format!("it cannot join: {error}"),
    };
    let name = admitted.server_name.clone();
    *status.name.lock() = Some(name.clone());
    let lease = Arc::new(ServeLease::new(clock.clone()));
    let (ends, mut ended) = mpsc::unbounded_channel::<String>();
    let (fatal, asked) = (ends.clone(), ends.clone());
    let volume: Arc<dyn Volume> = Arc::new(around.hdfs.mount(gate.clone(), around.unique));
    let logs = Logs::default();
    let read_config = config.clone();
    let member = Member::start(MemberParts {
        volume: volume.clone(),
        outside: volume,
        root: ROOT.to_owned(),
        clock: clock.clone(),
        rng: rng.clone(),
        config: config.clone(),
        read_config: Arc::new(move || Ok(read_config.clone())),
        ledger,
        second_level: None,
        server_name: name.clone(),
        cluster_id: admitted.cluster_id.clone(),
        lease: lease.clone(),
        reports: Arc::new(Reporter::new(link.clone(), name.clone())),
        runner: Inline,
        syncer: logs.clone(),
        stepped: true,
        on_fatal: Arc::new(move |why| drop(fatal.send(why))),
        on_stop_request: Arc::new(move |why| drop(asked.send(why))),
    });
    let member = match member.await {
        Ok(member) => Arc::new(member),
        Err(error) => return format!("it cannot start: {error}"),
    };
    // The real one's client opens a session of its own whenever it reads nodes: one that is over is no end of it.
    let routes = || Routes(Arc::new(Caller::new(&around.net, nodes_session, gate.clone(), REPLICA_PATIENCE)));
    // Before it has regions.
    let shipper = ReplicaShipper::over(member.server(), routes, config);
    *status.server.lock() = Some(Arc::downgrade(member.server()));
    *status.lease.lock() = Some(lease.clone());
    let registry = Arc::new(Registry::default());
    let (watching, kept) = (nodes.clone(), registry.clone());
    tokio::spawn(async move { watching.watch(&kept).await });
    let service = RegistryService::new(nodes.clone(), registry, admitted.cluster_id.clone());
    services.set_cluster_id(admitted.cluster_id, name.clone());
    services.set_master(Arc::new(service));
    services.set_region(member.service());
    keep_lease(&around, nodes.clone(), &name, &lease, &ends);
    if let Some(shipper) = shipper {
        tokio::spawn(shipper.keep());
    }
    look_for_files(member.server(), config);
    keep_reporting(&link, &name, member.server(), &ends);
    sync_logs(&logs, rng, &ends);
    maintain(member.server(), rng);
    let why = tokio::select! {
        biased;
        why = ended.recv() => why.unwrap_or_default(),
        down = nodes.cluster_shutdown() => match down {
            Ok(()) => "the cluster goes down".to_owned(),
            Err(over) => over.to_string(),
        },
    };
    member.server().abort();
    drop(tokio::time::timeout(ABORT_GRACE, link.report_fatal(&name, &why)).await);
    let node = format!("{PARENT}/rs/{name}");
    drop(tokio::time::timeout(ABORT_GRACE, coordinator.remove(&node)).await);
    why
}

/// What the thread does that looks for store files of the primaries of read replicas.
fn look_for_files(server: &Arc<RegionServer>, config: &Config) {
    let Some(mut refresher) = StoreFileRefresher::from_config(config) else { return };
    let server = server.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(refresher.period()).await;
            refresher.round(&server);
        }
    });
}

fn keep_lease(around: &Surroundings, nodes: ClusterNodes, name: &ServerName, lease: &Arc<ServeLease>, ends: &Ends) {
    let (lease, name, ends) = (lease.clone(), name.clone(), ends.clone());
    let (timeout, defect) = (around.ensemble.session_timeout(), around.defect);
    tokio::spawn(async move {
        if defect == Some(ServerDefect::ServesWithoutLease) {
            lease.extend(u64::MAX);
        }
        let why = membership::keep_lease(&nodes, &name, timeout, &lease).await;
        if defect != Some(ServerDefect::ServesWithoutLease) {
            drop(ends.send(why));
        }
    });
}

fn keep_reporting(link: &Arc<MasterLink>, name: &ServerName, server: &Arc<RegionServer>, ends: &Ends) {
    let (link, name, server, ends) = (link.clone(), name.clone(), server.clone(), ends.clone());
    tokio::spawn(async move {
        let loads = LoadReports::default();
        let why = membership::keep_reporting(&link, &name, REPORT_EVERY, || loads.take(&server, None)).await;
        drop(ends.send(why.to_string()));
    });
}

/// What the threads of the logs do.
fn sync_logs(logs: &Logs, rng: &Arc<Rng>, ends: &Ends) {
    let (logs, rng, ends) = (logs.clone(), rng.clone(), ends.clone());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1 + rng.below(6))).await;
            let all = logs.0.lock().clone();
            for log in all {
                // Who waits is told.
                let _outcome = log.sync_once();
                if let Some(failed) = log.failure() {
                    drop(ends.send(failed.to_string()));
                }
            }
        }
    });
}

/// What the other threads of a region server do.
fn maintain(server: &Arc<RegionServer>, rng: &Arc<Rng>) {
    let (server, rng) = (server.clone(), rng.clone());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(30 + rng.below(200))).await;
            server.step_chores();
            server.step_flush();
            server.step_compaction();
            server.step_prefetch();
        }
    });
}

async fn lead(around: Surroundings, gate: Arc<Gate>, status: &Status) -> String {
    let Surroundings { clock, rng, config, .. } = &around;
    let (session, coordinator) = session(&around, &gate);
    let port = Arc::new(LeaderPort::default());
    let limits = rpc::Limits::from_config(config);
    let server = Arc::new(rpc::Server::unbound(address(around.unique), port.clone(), clock.clone(), limits));
    let listening = server.clone();
    around.net.listen((&around.host, MASTER_PORT), gate.clone(), Handle::current(), move |pipe, peer| {
        listening.attach(pipe, peer);
    });
    let start_code = u64::try_from(clock.now_ms().0).unwrap_or_default();
    let name = ServerName::new(&around.host, MASTER_PORT, start_code);
    *status.name.lock() = Some(name.clone());
    port.set_name(name.clone());
    let znodes = Arc::new(HBaseZnodes::new(session.clone(), PARENT, MASTER_PORT, rng.clone()));
    if let Err(error) = znodes.create_base_nodes() {
        return error.to_string();
    }
    session.all_written().await;
    let (ends, mut ended) = mpsc::unbounded_channel::<String>();
    let over = coordinator.over();
    let leading = Leader::start(LeaderParts {
        volume: Arc::new(around.hdfs.mount(gate.clone(), around.unique)),
        root: ROOT.to_owned(),
        clock: clock.clone(),
        rng: rng.clone(),
        config: config.clone(),
        coordinator,
        session_timeout: around.ensemble.session_timeout(),
        znodes,
        parent: PARENT.to_owned(),
        name,
        info_port: None,
        dialer: Dialer::Network(around.net.of(gate.clone())),
        port,
        observer: Arc::new(Unobserved),
        start_date: "today".to_owned(),
        on_fatal: Arc::new(move |why| drop(ends.send(why))),
    });
    let (mut leading, mut over, mut leader) = (Box::pin(leading), over, None);
    loop {
        tokio::select! {
            biased;
            why = ended.recv() => return why.unwrap_or_else(|| "every part of the master is gone".to_owned()),
            over = &mut over => return over.to_string(),
            led = &mut leading, if leader.is_none() => match led {
                Ok(started) => {
                    *status.master.lock() = Some(Arc::downgrade(started.master()));
                    leader = Some(started);
                }
                Err(error) => return format!("it cannot lead: {error}"),
            },
        }
    }
}
