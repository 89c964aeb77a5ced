//! `basalt regionserver`: a region server that joins the cluster of another master, HBase's own, by `hbase-site.xml` alone.
//!
//! Always true: nothing is served before the master has let the server in and its node is made; when the session is over, or the master takes it
//! for dead, the process ends at once and without a word to anybody, for others have its regions.

use crate::host::{BlockingPool, LogThreads};
use crate::logging::tell;
use crate::member_pages::MemberPages;
use crate::ports::anywhere;
use crate::region_port::RegionPort;
use crate::standalone::{End, signals, write_whole};
use crate::storage::{self, Storage};
use crate::{memory, quorum, settings, unheeded};
use anyhow::{Context, Result, bail};
use assembly::{Member, MemberParts};
use base::{Clock, Config, Ledger, Rng, SystemClock};
use client::{Connection, Options};
use coordination::Coordinator;
use membership::{
    Admitted, ClusterNodes, MasterLink, QuotaReader, Registry, RegistryService, ReplicaShipper, Reporter,
};
use regionserver::{LoadReports, ReadConfig, ServeLease};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use zookeeper::Ensemble;

/// How long open calls may take to end when the server stops.
const DRAIN: Duration = Duration::from_secs(2);
/// How long an abort may take to say so.
const ABORT_GRACE: Duration = Duration::from_secs(2);
/// How long a stop waits for the disk beyond the time for flushes.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Runs the server until it is told to stop, or must.
///
/// # Errors
/// A sentence saying why it could not join, or that it had to end.
pub fn run(
    config: Config,
    config_directory: Option<&Path>,
    read_config: ReadConfig,
    ready_file: Option<&Path>,
) -> Result<()> {
    crate::logging::to_stderr();
    unheeded::of(&config, &settings::rows())?.warn();
    refuse_what_is_unsafe(&config)?;
    let budget_bytes = match config.get(&settings::MEMORY_SIZE) {
        0 => memory::default_budget_bytes(),
        bytes => bytes,
    };
    memory::spare(budget_bytes);
    let runtime = crate::standalone::runtime()?;
    let result = runtime.block_on(async {
        let signals = signals()?;
        let start = Start { config, config_directory, read_config, budget_bytes };
        let mut early = signals.clone();
        let joined = tokio::select! {
            joined = start.join() => joined?,
            signal = early.wait_for(Option::is_some) => {
                drop(signal);
                tracing::info!("told to stop before the server was let in");
                return Ok(());
            }
        };
        joined.serve(signals, ready_file).await
    });
    // Blocking calls that still run must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// What HBase's servers of the cluster do and this one cannot.
fn refuse_what_is_unsafe(config: &Config) -> Result<()> {
    let is = |key: &str, value: &str| config.text(key).is_some_and(|text| text.trim().eq_ignore_ascii_case(value));
    if is("hbase.security.authentication", "kerberos") || is("hbase.security.authorization", "true") {
        bail!(
            "hbase.security.authentication: this server knows no Kerberos and no permissions, and would let everybody in"
        );
    }
    Ok(())
}

struct Start<'a> {
    config: Config,
    config_directory: Option<&'a Path>,
    read_config: ReadConfig,
    budget_bytes: u64,
}

/// A member, with what keeps it one.
struct Joined {
    member: Member<LogThreads>,
    port: RegionPort,
    ensemble: Arc<Ensemble>,
    link: Arc<MasterLink>,
    admitted: Admitted,
    storage_name: String,
    /// Where the status pages are, if they are.
    info_port: Option<u16>,
    flush_for: Duration,
    ended: mpsc::UnboundedReceiver<End>,
    ends: mpsc::UnboundedSender<End>,
    report_every: Duration,
}

/// A server that the master has let in, before it serves.
struct Entered {
    port: RegionPort,
    ensemble: Arc<Ensemble>,
    link: Arc<MasterLink>,
    admitted: Admitted,
    clock: Arc<dyn Clock>,
    rng: Arc<Rng>,
    ledger: Arc<Ledger>,
    /// With what the master's answer says.
    config: Config,
    pages: Arc<MemberPages>,
    /// Where they are, if they are.
    info_port: Option<u16>,
}

impl Start<'_> {
    async fn join(self) -> Result<Joined> {
        let entered = self.enter().await?;
        let storage = open_storage(&entered, self.config_directory).await?;
        entered.start(storage, self.read_config).await
    }

    /// Opens the port and a session, and asks the master.
    async fn enter(&self) -> Result<Entered> {
        let mut config = self.config.clone();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let rng = Arc::new(Rng::from_system());
        let queue_bytes = config.get(&rpc::settings::MAX_CALL_QUEUE_SIZE);
        let ledger = regionserver::ledger(&config, self.budget_bytes, queue_bytes);
        let port = RegionPort::bind(&config, &clock, &ledger)?;
        let Some(connect) = quorum::connect_string(&config) else {
            bail!("a region server joins a cluster: set hbase.cluster.distributed = true and hbase.zookeeper.quorum");
        };
        let ensemble = quorum::connect(&config, connect).await?;
        let pages = Arc::new(MemberPages::new(&anywhere(&config), &clock, &ensemble));
        let info_server = pages.bind()?;
        let info_port = info_server.as_ref().map(|server| server.local_addr().port());
        // It ends with the process.
        info_server.map(|server| tokio::spawn(server.run(std::future::pending())));
        let coordinator: Arc<dyn Coordinator> = ensemble.clone();
        let nodes = ClusterNodes::new(coordinator, coordination::settings::znode_parent(&config));
        let timeout = Duration::from_millis(u64::from(config.get(&membership::settings::MASTER_RPC_TIMEOUT_MS)));
        let link = Arc::new(MasterLink::new(nodes, timeout));
        let candidate = port.candidate(&config, &*clock);
        let admitted = membership::join(&link, &candidate, info_port, (&*clock, &rng)).await?;
        tracing::info!("let into cluster {} as {}", admitted.cluster_id, admitted.server_name);
        for (key, value) in &admitted.settings {
            config.set(key.as_str(), value.clone());
        }
        Ok(Entered { port, ensemble, link, admitted, clock, rng, ledger, config, pages, info_port })
    }
}

/// The root directory that the master named, if it is the cluster's.
async fn open_storage(entered: &Entered, config_directory: Option<&Path>) -> Result<Storage> {
    let (config, directory) = (entered.config.clone(), config_directory.map(Path::to_owned));
    let open = move || -> Result<_> {
        let storage = storage::open_shared(&config, directory.as_deref())?;
        let found = rootdir::root::inspect(&*storage.volume)?;
        Ok((storage, found))
    };
    let (storage, found) = tokio::task::spawn_blocking(open).await??;
    check_cluster_id(&found, &entered.admitted, &storage.name)?;
    Ok(storage)
}

impl Entered {
    async fn start(self, storage: Storage, read_config: ReadConfig) -> Result<Joined> {
        let Entered { port, ensemble, link, admitted, clock, rng, ledger, config, pages, info_port } = self;
        let Storage { name: storage_name, volume, outside, root } = storage;
        let (ends, ended) = mpsc::unbounded_channel::<End>();
        let end = |kind: fn(String) -> End| {
            let ends = ends.clone();
            move |why| drop(ends.send(kind(why)))
        };
        let lease = Arc::new(ServeLease::new(clock.clone()));
        let member = Member::start(MemberParts {
            volume,
            outside,
            root,
            clock,
            rng,
            config: config.clone(),
            read_config: port.read_config(read_config, &ledger),
            ledger,
            second_level: crate::second_level::open(&config)?,
            server_name: admitted.server_name.clone(),
            cluster_id: admitted.cluster_id.clone(),
            lease: lease.clone(),
            reports: Arc::new(Reporter::new(link.clone(), admitted.server_name.clone())),
            runner: BlockingPool,
            syncer: LogThreads::default(),
            stepped: false,
            on_fatal: Arc::new(end(End::Fatal)),
            on_stop_request: Arc::new(end(End::Asked)),
        })
        .await
        .with_context(|| format!("cannot start on {storage_name}"))?;
        serve_registry(&port, link.nodes(), &admitted);
        keep_quotas(&member, &link, &config);
        tell_replicas(&member, &config);
        port.services.set_region(member.service());
        if let Some(tracer) = port.tracing.tracer() {
            member.server().trace_by(tracer);
        }
        pages.set_ready(member.server(), &port.server, &admitted.cluster_id, &storage_name);
        let (nodes, name, timeout) = (link.nodes().clone(), admitted.server_name.clone(), ensemble.session_timeout());
        let gone = end(End::Fatal);
        tokio::spawn(async move {
            gone(membership::keep_lease(&nodes, &name, timeout, &lease).await);
        });
        let flush_for = Duration::from_millis(config.get(&regionserver::settings::STOP_FLUSH_TIMEOUT_MS));
        let report_every = Duration::from_millis(u64::from(config.get(&membership::settings::REPORT_INTERVAL_MS)));
        Ok(Joined {
            member,
            port,
            ensemble,
            link,
            admitted,
            storage_name,
            info_port,
            flush_for,
            ended,
            ends,
            report_every,
        })
    }
}

/// Holds the server to what hbase:quota says, if there are quotas. It ends with the process.
fn keep_quotas(member: &Member<LogThreads>, link: &Arc<MasterLink>, config: &Config) {
    let connect = || Connection::open(Options::from_config(config));
    if let Some(quotas) = QuotaReader::new(member.server().clone(), link.clone(), connect, config) {
        member.orders().set_quota_source(quotas.clone());
        tokio::spawn(async move { quotas.keep().await });
    }
}

/// Tells read replicas elsewhere what the server's regions write, if that is wanted. It ends with the process.
fn tell_replicas(member: &Member<LogThreads>, config: &Config) {
    let connect = || Connection::open(Options::from_config(config));
    if let Some(shipper) = ReplicaShipper::new(member.server(), connect, config) {
        tokio::spawn(shipper.keep());
    }
}

/// Answers from now on what clients ask any server of the cluster.
fn serve_registry(port: &RegionPort, nodes: &ClusterNodes, admitted: &Admitted) {
    let registry = Arc::new(Registry::default());
    let (watching, kept) = (nodes.clone(), registry.clone());
    tokio::spawn(async move { watching.watch(&kept).await });
    let service = RegistryService::new(nodes.clone(), registry, admitted.cluster_id.clone());
    port.services.set_cluster_id(admitted.cluster_id.clone(), admitted.server_name.clone());
    port.services.set_master(Arc::new(service));
}

fn check_cluster_id(found: &rootdir::root::Found, admitted: &Admitted, root: &str) -> Result<()> {
    match found {
        rootdir::root::Found::HBase { cluster_id } if *cluster_id == admitted.cluster_id => Ok(()),
        rootdir::root::Found::HBase { cluster_id } => bail!(
            "{root} belongs to cluster {cluster_id}, and the master that answers in ZooKeeper leads cluster {}: look at hbase.rootdir and \
             hbase.zookeeper.quorum",
            admitted.cluster_id
        ),
        rootdir::root::Found::Empty => {
            bail!("{root} is no root directory of HBase yet, and only a master may make it one")
        }
    }
}

impl Joined {
    async fn serve(
        mut self,
        mut signals: watch::Receiver<Option<&'static str>>,
        ready_file: Option<&Path>,
    ) -> Result<()> {
        let reporting = self.keep_reporting();
        self.announce();
        if let Some(file) = ready_file {
            let (pid, port) = (std::process::id(), self.port.server.local_addr().port());
            let pages = self.info_port.map(|port| format!(", \"info_port\": {port}")).unwrap_or_default();
            let json = format!("{{\"pid\": {pid}, \"region_port\": {port}{pages}}}\n");
            write_whole(file, &json).with_context(|| format!("cannot write {}", file.display()))?;
        }
        let end = tokio::select! {
            end = self.ended.recv() => end.unwrap_or_else(|| End::Fatal("every part of the server is gone".into())),
            signal = signals.wait_for(Option::is_some) => {
                End::Asked(signal.ok().and_then(|signal| *signal).unwrap_or("a signal").to_owned())
            }
            down = self.link.nodes().cluster_shutdown() => match down {
                Ok(()) => End::Asked("the cluster goes down".into()),
                Err(over) => End::Fatal(over.to_string()),
            }
        };
        match end {
            // Nothing more may be acknowledged, read or written: the master has the log split.
            End::Fatal(why) => {
                self.abort(&why).await;
                bail!("stopped, because {why}")
            }
            End::Asked(why) => tracing::info!("stopping: {why}"),
        }
        let stopped = self.stop().await;
        reporting.abort();
        stopped
    }

    fn announce(&self) {
        let name = &self.admitted.server_name;
        let status = self.info_port.map(|port| format!("  status     http://{}:{port}/rs-status\n", name.host));
        tell(&format!(
            "Basalt {} is ready.\n  data       {}\n  cluster    {} in {}\n  serving    {name}\n{}  stop       Ctrl-C, or kill {}\n",
            env!("CARGO_PKG_VERSION"),
            self.storage_name,
            self.admitted.cluster_id,
            self.ensemble.connect_string(),
            status.unwrap_or_default(),
            std::process::id()
        ));
    }

    /// Serves nothing from now on. Then the master is told, if it still listens: it need not wait for the session to end.
    async fn abort(&self, why: &str) {
        self.member.server().abort();
        tracing::error!("aborting: {why}");
        let told = self.link.report_fatal(&self.admitted.server_name, why);
        drop(tokio::time::timeout(ABORT_GRACE, told).await);
        drop(tokio::time::timeout(ABORT_GRACE, self.ensemble.remove(&self.node())).await);
    }

    /// The path of the server's node.
    fn node(&self) -> String {
        format!("{}/rs/{}", self.link.nodes().parent(), self.admitted.server_name)
    }

    /// Reports go on while the server stops: the master is not to take it for dead before its regions are closed.
    fn keep_reporting(&self) -> tokio::task::JoinHandle<()> {
        let (link, name, interval) = (self.link.clone(), self.admitted.server_name.clone(), self.report_every);
        let (server, reports, ends) = (self.member.server().clone(), LoadReports::default(), self.ends.clone());
        tokio::spawn(async move {
            let expelled = membership::keep_reporting(&link, &name, interval, || reports.take(&server, None)).await;
            drop(ends.send(End::Fatal(expelled.to_string())));
        })
    }

    /// Lets calls end, closes every region, then the logs; last goes the node, so that the master has nothing to split.
    #[allow(clippy::disallowed_methods, reason = "threads that outlive the runtime begin here")]
    async fn stop(self) -> Result<()> {
        let node = self.node();
        let Joined { member, mut port, ensemble, flush_for, .. } = self;
        let (sender, stopped) = tokio::sync::oneshot::channel();
        let close = move || drop(sender.send(member.stop(flush_for)));
        std::thread::Builder::new().name("stop".into()).spawn(close).context("cannot start a thread to stop")?;
        let stopped = tokio::time::timeout(flush_for + STOP_GRACE, stopped).await;
        port.server.shutdown(DRAIN).await;
        port.tracing.end().await;
        // What could not be closed is split from the log: the sooner the master knows, the sooner it is served.
        drop(tokio::time::timeout(STOP_GRACE, ensemble.remove(&node)).await);
        match stopped {
            Err(_) => tracing::warn!("stopped while regions were being flushed: the master splits the log"),
            Ok(stopped) => match stopped.context("the stop failed; the master splits the log")?? {
                0 => tracing::info!("stopped"),
                left => tracing::warn!("stopped; {left} regions were not flushed: the master splits the log"),
            },
        }
        Ok(())
    }
}

/// Asks the region server of this machine to stop, as `hbase-site.xml` says where it listens.
///
/// # Errors
/// A sentence: nobody listens, or it refuses.
pub fn stop(config: &Config) -> Result<()> {
    let address = crate::region_port::own_address(config)?;
    let ask = async {
        let options = rpc::client::ClientOptions::default();
        let client = rpc::client::Client::connect(address, "AdminService", options).await?;
        let request = proto::pb::StopServerRequest { reason: "basalt regionserver stop".into() };
        client.call(proto::methods::Method::AdminStopServer.info(), &request, None).await
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start threads")?;
    let asked = runtime.block_on(async { tokio::time::timeout(STOP_GRACE, ask).await });
    let answered = asked.with_context(|| format!("the server at {address} does not answer"))?;
    answered.with_context(|| format!("no region server at {address} takes the request"))?;
    println!("The region server at {address} stops.");
    Ok(())
}
