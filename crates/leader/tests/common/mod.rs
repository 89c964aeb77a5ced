//! A cluster whose processes are values of this test: each has a session of its own, and can be killed.

use assembly::{Member, MemberParts, RegionServerPort, Runner, Services, Syncer};
use basalt_leader::{LeadError, Leader, LeaderParts, LeaderPort};
use base::{Clock, Config, Rng, SystemClock};
use bytes::Bytes;
use client::{Connection, Options, Put, RegionLocation, ScanOptions};
use coordination::{Coordinator, Endpoint, EndpointOptions, HBaseZnodes, TreeHandle};
use fs::{MemVolume, Volume};
use master::{BoxFuture, HostError, Unobserved};
use membership::{
    Candidate, ClusterNodes, MasterLink, QuotaReader, Registry, RegistryService, ReplicaShipper, Reporter,
};
use model::{FamilyDescriptor, Get, Scan, ServerName, TableDescriptor, TableName};
use parking_lot::Mutex;
use regionserver::{LoadReports, ServeLease};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

const MEMORY_BUDGET_BYTES: u64 = 64 << 20;
const SESSION_TIMEOUT: Duration = Duration::from_secs(20);
const REPORT_EVERY: Duration = Duration::from_millis(100);
pub const LIMIT: Duration = Duration::from_secs(60);

pub struct Pool;

impl Runner for Pool {
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, HostError>> {
        Box::pin(async move { tokio::task::spawn_blocking(work).await.expect("no panic") })
    }
}

#[derive(Default)]
pub struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Syncer for Threads {
    fn attend(&self, log: &Arc<wal::Log>, _: &'static str) -> std::io::Result<()> {
        let log = log.clone();
        self.0.lock().push(std::thread::spawn(move || drop(log.run_syncer())));
        Ok(())
    }

    fn join(&self) {
        self.0.lock().drain(..).for_each(|thread| thread.join().expect("no panic"));
    }
}

/// What all of them share.
pub struct Place {
    pub volume: Arc<MemVolume>,
    pub tree: TreeHandle,
    pub config: Config,
    zookeeper: SocketAddr,
    clock: Arc<dyn Clock>,
    endpoint: AbortHandle,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.endpoint.abort();
    }
}

fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

impl Place {
    pub async fn new() -> Place {
        Place::with_clock(Arc::new(SystemClock::new())).await
    }

    pub async fn with_clock(clock: Arc<dyn Clock>) -> Place {
        let mut config = Config::default();
        config.set("hbase.master.wait.on.regionservers.interval", "200");
        let options = EndpointOptions::from_config(&config);
        let endpoint = Endpoint::bind(anywhere(), options, clock.clone(), Arc::new(Rng::seeded(1)));
        let endpoint = endpoint.await.expect("bound");
        let (tree, zookeeper) = (endpoint.tree(), endpoint.local_addr().expect("its address"));
        let endpoint = tokio::spawn(endpoint.run(std::future::pending())).abort_handle();
        Place { volume: Arc::new(MemVolume::new()), tree, config, zookeeper, clock, endpoint }
    }

    fn start_code(&self) -> u64 {
        u64::try_from(self.clock.now_ms().0).expect("after 1970")
    }

    /// Starts a master beside the active one; it waits for its turn.
    pub async fn backup_master(&self) -> MasterProcess {
        let backup = self.master();
        until("the backup waits", async || {
            self.tree.children("/hbase/backup-masters").is_ok_and(|names| names.len() == 1)
        })
        .await;
        backup
    }

    /// Starts a master, which may be a backup.
    pub fn master(&self) -> MasterProcess {
        let (tree, port) = (self.tree.another_session(), Arc::new(LeaderPort::default()));
        let limits = rpc::Limits::from_config(&self.config);
        let server = rpc::Server::bind(anywhere(), port.clone(), self.clock.clone(), limits).expect("bound");
        let name = ServerName::new("127.0.0.1", server.local_addr().port(), self.start_code());
        port.set_name(name.clone());
        let rng = Arc::new(Rng::from_system());
        let znodes = HBaseZnodes::new(Arc::new(tree.clone()), "/hbase", name.port, rng.clone());
        znodes.create_base_nodes().expect("made");
        let registry = tokio::spawn({
            let (nodes, port) = (ClusterNodes::new(Arc::new(tree.clone()), "/hbase"), port.clone());
            async move {
                let Ok(Some(id)) = nodes.cluster_id().await else { return };
                let registry = Arc::new(Registry::default());
                port.set_registry(Arc::new(RegistryService::new(nodes.clone(), registry.clone(), id)));
                nodes.watch(&registry).await;
            }
        });
        let leader = tokio::spawn(Leader::start(LeaderParts {
            volume: self.volume.clone(),
            root: "mem://nowhere/hbase".into(),
            clock: self.clock.clone(),
            rng,
            config: self.config.clone(),
            coordinator: Arc::new(tree.clone()),
            session_timeout: SESSION_TIMEOUT,
            znodes: Arc::new(znodes),
            parent: "/hbase".into(),
            name,
            info_port: None,
            dialer: rpc::Dialer::Tcp,
            port,
            observer: Arc::new(Unobserved),
            start_date: "today".into(),
            on_fatal: Arc::new(|_| ()),
        }));
        MasterProcess { tree, server, leader, registry: registry.abort_handle() }
    }

    /// Starts a region server; it takes regions when the master has heard of it.
    pub async fn region_server(&self) -> ServerProcess {
        self.region_server_on(Ipv4Addr::LOCALHOST).await
    }

    /// The same on a machine of its own: 127.0.0.2, say.
    pub async fn region_server_on(&self, machine: Ipv4Addr) -> ServerProcess {
        let tree = self.tree.another_session();
        let coordinator: Arc<dyn Coordinator> = Arc::new(tree.clone());
        let nodes = ClusterNodes::new(coordinator, "/hbase");
        let link = Arc::new(MasterLink::new(nodes.clone(), Duration::from_secs(10)));
        let services = Arc::new(Services::default());
        let ledger = regionserver::ledger(&self.config, MEMORY_BUDGET_BYTES, u64::MAX);
        let limits = rpc::Limits::from_config(&self.config);
        let handler = Arc::new(RegionServerPort(services.clone()));
        let server =
            rpc::Server::bind(SocketAddr::from((machine, 0)), handler, self.clock.clone(), limits).expect("bound");
        let config = self.config.clone();
        let candidate = Candidate {
            host: Some(machine.to_string()),
            port: server.local_addr().port(),
            start_code: self.start_code(),
            version: None,
        };
        let rng = Arc::new(Rng::from_system());
        let admitted = membership::join(&link, &candidate, None, (&*self.clock, &rng)).await.expect("let in");
        let name = admitted.server_name.clone();
        let lease = Arc::new(ServeLease::new(self.clock.clone()));
        let volume: Arc<dyn Volume> = self.volume.clone();
        let member = Member::start(MemberParts {
            volume: volume.clone(),
            outside: volume,
            root: "/hbase".into(),
            clock: self.clock.clone(),
            rng,
            config: self.config.clone(),
            read_config: Arc::new(move || Ok(config.clone())),
            ledger,
            server_name: name.clone(),
            cluster_id: admitted.cluster_id.clone(),
            lease: lease.clone(),
            reports: Arc::new(Reporter::new(link.clone(), name.clone())),
            runner: Pool,
            syncer: Threads::default(),
            stepped: false,
            on_fatal: Arc::new(|why| println!("a region server ends: {why}")),
            second_level: None,
            on_stop_request: Arc::new(|_| ()),
        });
        let member = Arc::new(member.await.expect("starts"));
        let shipper = ReplicaShipper::new(member.server(), || self.connect_as("hbase", 3), &self.config);
        services.set_cluster_id(admitted.cluster_id, name.clone());
        services.set_region(member.service());
        let (expelled, quota_link) = (Arc::new(Mutex::new(None)), link.clone());
        let keeping = {
            let (nodes, name) = (nodes.clone(), name.clone());
            tokio::spawn(async move { membership::keep_lease(&nodes, &name, SESSION_TIMEOUT, &lease).await })
        };
        let reporting = {
            let (link, name, server, expelled) = (link, name.clone(), member.server().clone(), expelled.clone());
            let loads = LoadReports::default();
            tokio::spawn(async move {
                let load = || loads.take(&server, None);
                let why = membership::keep_reporting(&link, &name, REPORT_EVERY, load).await;
                *expelled.lock() = Some(why.to_string());
            })
        };
        let mut tasks = vec![keeping.abort_handle(), reporting.abort_handle()];
        tasks.extend(shipper.map(|shipper| tokio::spawn(shipper.keep()).abort_handle()));
        let quotas = QuotaReader::new(member.server().clone(), quota_link, || self.connect(), &self.config);
        if let Some(quotas) = quotas {
            member.orders().set_quota_source(quotas.clone());
            tasks.push(tokio::spawn(async move { quotas.keep().await }).abort_handle());
        }
        ServerProcess { name, tree, member, server, tasks, expelled }
    }

    /// The switch of the limits of calls as its node says, without anybody being told.
    pub fn set_rpc_throttle_node(&self, on: bool) {
        let tree = Arc::new(self.tree.another_session());
        let znodes = HBaseZnodes::new(tree, "/hbase", 0, Arc::new(Rng::seeded(3)));
        znodes.set_rpc_throttle(on).expect("set");
    }

    /// A region server's way to the active master.
    pub fn link(&self) -> MasterLink {
        let coordinator: Arc<dyn Coordinator> = Arc::new(self.tree.another_session());
        MasterLink::new(ClusterNodes::new(coordinator, "/hbase"), Duration::from_secs(10))
    }

    pub fn connect(&self) -> Connection {
        self.connect_as("admin", 100)
    }

    /// A client that asks servers, not ZooKeeper, where things are.
    pub fn connect_by_rpc(&self, bootstrap: SocketAddr) -> Connection {
        let registry = client::Registry::Rpc { bootstrap: vec![bootstrap.to_string()] };
        Connection::open(Options { registry, ..self.options("admin", 100) })
    }

    /// A client that tries again so often.
    pub fn connect_as(&self, user: &str, retries: u32) -> Connection {
        Connection::open(self.options(user, retries))
    }

    fn options(&self, user: &str, retries: u32) -> Options {
        let options = Options::zookeeper(&self.zookeeper.to_string());
        let (pause, user) = (Duration::from_millis(20), user.to_owned());
        Options { pause, user, retries, operation_timeout: LIMIT, ..options }
    }
}

/// A master, active or not.
pub struct MasterProcess {
    tree: TreeHandle,
    server: rpc::Server,
    leader: tokio::task::JoinHandle<Result<Leader, LeadError>>,
    registry: AbortHandle,
}

impl MasterProcess {
    /// Waits until it leads.
    pub async fn leads(&mut self) -> Leader {
        let led = tokio::time::timeout(LIMIT, &mut self.leader).await.expect("in time");
        led.expect("no panic").expect("leads")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Ends it as a power cut would; `leader` is its own, if it led.
    pub async fn kill(self, leader: Option<Leader>) {
        self.leader.abort();
        self.registry.abort();
        drop(leader);
        self.server.shutdown(Duration::ZERO).await;
        self.tree.end_session();
    }
}

/// A region server.
pub struct ServerProcess {
    pub name: ServerName,
    tree: TreeHandle,
    member: Arc<Member<Threads>>,
    server: rpc::Server,
    tasks: Vec<AbortHandle>,
    expelled: Arc<Mutex<Option<String>>>,
}

impl ServerProcess {
    /// Ends it as a power cut would.
    pub async fn kill(self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.member.server().abort();
        self.server.shutdown(Duration::ZERO).await;
        self.tree.end_session();
    }

    /// The ensemble has not heard of it for too long; it does not know.
    pub fn lose_session(&self) {
        self.tree.end_session();
    }

    /// Why it is no member any more.
    pub fn expelled(&self) -> Option<String> {
        self.expelled.lock().clone()
    }

    pub fn server(&self) -> &Arc<regionserver::RegionServer> {
        self.member.server()
    }

    pub fn regions(&self) -> usize {
        self.member.server().regions().len()
    }
}

/// Asks until it is so.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < LIMIT, "not within {} s: {what}", LIMIT.as_secs());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A table and the rows that were acknowledged.
pub struct Rows {
    pub connection: Connection,
    pub table: TableName,
    pub count: u32,
}

pub fn row(n: u32) -> String {
    // Over all regions.
    format!("{}{n:05}", char::from(b'a' + (n % 8) as u8))
}

impl Rows {
    /// A table of eight regions.
    pub async fn create(place: &Place) -> Rows {
        let (connection, table) = (place.connect(), TableName::parse("t").expect("a name"));
        let descriptor = TableDescriptor::new(table.clone(), [FamilyDescriptor::new("f")]);
        let splits: Vec<Bytes> = (1..8).map(|n| Bytes::from(vec![b'a' + n])).collect();
        connection.admin().create_table(&descriptor, &splits).await.expect("made");
        Rows { connection, table, count: 0 }
    }

    pub async fn put(&mut self, count: u32) {
        let table = self.connection.table(&self.table);
        for n in self.count..self.count + count {
            let put = Put::new(row(n)).add("f", "q", format!("value{n}"));
            table.put(&put.build()).await.unwrap_or_else(|error| panic!("row {n}: {error}"));
        }
        self.count += count;
    }

    /// Every acknowledged row is there, by a scan and by gets.
    pub async fn expect_all(&self) {
        let table = self.connection.table(&self.table);
        let mut scanner = table.scan(Scan::default(), ScanOptions::default());
        let mut found = 0;
        while scanner.next().await.expect("a row or the end").is_some() {
            found += 1;
        }
        assert_eq!(found, self.count, "rows by a scan");
        for n in (0..self.count).step_by(5) {
            let got = table.get(&Get::new(row(n))).await.expect("an answer");
            assert_eq!(got.value(b"f", b"q"), Some(format!("value{n}").as_bytes()), "{}", row(n));
        }
    }

    pub async fn regions(&self) -> Vec<RegionLocation> {
        self.connection.forget_locations();
        self.connection.admin().regions(&self.table).await.expect("their places")
    }

    pub async fn regions_on(&self, server: &ServerName) -> Vec<RegionLocation> {
        self.regions().await.into_iter().filter(|at| at.server == *server).collect()
    }

    pub async fn meta_is_on(&self, server: &ServerName) -> bool {
        self.connection.forget_locations();
        let meta = self.connection.admin().regions(&TableName::meta()).await.expect("its place");
        meta.iter().any(|at| at.server == *server)
    }

    /// The cluster's DDL works.
    pub async fn make_and_drop(&self, name: &str) {
        let table = TableName::parse(name).expect("a name");
        let descriptor = TableDescriptor::new(table.clone(), [FamilyDescriptor::new("f")]);
        let admin = self.connection.admin();
        admin.create_table(&descriptor, &[]).await.expect("made");
        admin.disable_table(&table).await.expect("disabled");
        admin.delete_table(&table).await.expect("deleted");
    }
}

/// The root directory is as it should be when nobody works on it.
pub fn no_logs_of(volume: &MemVolume, server: &ServerName) {
    for name in [server.to_string(), format!("{server}-splitting")] {
        assert!(!volume.exists(&rootdir::server_wals_dir(&name)).expect("looked"), "{name}");
    }
}

/// A master that leads and two region servers that it knows.
pub async fn two_servers(place: &mut Place) -> (MasterProcess, Leader, [ServerProcess; 2]) {
    place.config.set("hbase.master.wait.on.regionservers.mintostart", "2");
    let mut master = place.master();
    let (first, second) = tokio::join!(place.region_server(), place.region_server());
    let leader = master.leads().await;
    (master, leader, [first, second])
}
