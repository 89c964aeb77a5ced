//! `basalt master`: a master of a cluster whose region servers are other processes, or a backup that waits for its end.
//!
//! Always true: when the session is over, or the node `master` is another's, the process ends at once: a backup is doing its work.

use crate::host::Mirror;
use crate::leader_pages::LeaderPages;
use crate::logging::tell;
use crate::ports::{
    MASTER_EIGHTHS, advertised_host, anywhere, listen_address, port_error, raise_descriptor_limit, rpc_limits,
};
use crate::standalone::{signals, write_whole};
use crate::storage::{self, Storage};
use crate::traces::Tracing;
use crate::{memory, quorum, settings, unheeded};
use anyhow::{Context, Result, bail};
use base::{Clock, Config, Rng, SystemClock};
use coordination::{Coordinator, HBaseZnodes};
use leader::{Leader, LeaderParts, LeaderPort};
use membership::{ClusterNodes, Registry, RegistryService};
use model::ServerName;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use zookeeper::Ensemble;

/// How long open calls may take to end when the master stops.
const DRAIN: Duration = Duration::from_secs(2);
/// For what is under way to come to its end before another master leads.
const HAND_OVER: Duration = Duration::from_secs(10);
/// How long a stop waits for the ensemble.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// How long the master of a cluster that goes down waits for its region servers.
const SERVERS_GRACE: Duration = Duration::from_secs(120);

/// Why the process ends.
enum End {
    /// A signal, or a client's wish.
    Asked { why: String, whole_cluster: bool },
    /// It is no master any more.
    Fatal(String),
}

/// Leads, or waits to, until it is told to stop, or must.
///
/// # Errors
/// A sentence saying why it could not start, or that it had to end.
pub fn run(config: &Config, config_directory: Option<&Path>, ready_file: Option<&Path>) -> Result<()> {
    crate::logging::to_stderr();
    unheeded::of(config, &settings::rows())?.warn();
    let budget_bytes = match config.get(&settings::MEMORY_SIZE) {
        0 => memory::default_budget_bytes(),
        bytes => bytes,
    };
    let runtime = crate::standalone::runtime()?;
    let result = runtime.block_on(async {
        let signals = signals()?;
        Process::start(config, budget_bytes).await?.serve(config, config_directory, signals, ready_file).await
    });
    // Blocking calls that still run must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// A process that listens and has a session.
struct Process {
    port: Arc<LeaderPort>,
    server: rpc::Server,
    /// Traces its calls.
    tracing: Tracing,
    name: ServerName,
    clock: Arc<dyn Clock>,
    rng: Arc<Rng>,
    ensemble: Arc<Ensemble>,
    parent: String,
    znodes: Arc<HBaseZnodes>,
    pages: Arc<LeaderPages>,
    /// Where they listen, if they do.
    info_port: Option<u16>,
}

impl Process {
    async fn start(config: &Config, budget_bytes: u64) -> Result<Process> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let rng = Arc::new(Rng::from_system());
        let ledger = regionserver::ledger(config, budget_bytes, config.get(&rpc::settings::MAX_CALL_QUEUE_SIZE));
        let connect = connect_string(config)?;
        let address = own_listen_address(config)?;
        let port = Arc::new(LeaderPort::default());
        let limits = rpc_limits(config, &ledger, raise_descriptor_limit() / 8 * MASTER_EIGHTHS);
        let server = rpc::Server::bind(address, port.clone(), clock.clone(), limits)
            .map_err(|error| port_error("the master", settings::MASTER_PORT.key, address, &error))?;
        let tracing = Tracing::start(config, &clock)?;
        tracing.trace(&server);
        let bound = server.local_addr();
        let set = config.text(settings::MASTER_HOSTNAME.key).map(|name| name.trim().to_owned());
        let host = set.unwrap_or_else(|| advertised_host(bound.ip()));
        let start_code = u64::try_from(clock.now_ms().0).unwrap_or_default();
        let name = ServerName::new(&host, bound.port(), start_code);
        port.set_name(name.clone());
        let ensemble = quorum::connect(config, connect).await?;
        let parent = coordination::settings::znode_parent(config).to_owned();
        let znodes = Arc::new(HBaseZnodes::new(quorum::store(&ensemble), &parent, bound.port(), rng.clone()));
        znodes.create_base_nodes()?;
        ensemble.written().await?;
        let pages = Arc::new(LeaderPages::new(&anywhere(config), &clock, &name, &ensemble));
        let info_server = pages.bind()?;
        let info_port = info_server.as_ref().map(|server| server.local_addr().port());
        // It ends with the process.
        info_server.map(|server| tokio::spawn(server.run(std::future::pending())));
        Ok(Process { port, server, tracing, name, clock, rng, ensemble, parent, znodes, pages, info_port })
    }

    async fn serve(
        self,
        config: &Config,
        config_directory: Option<&Path>,
        mut signals: watch::Receiver<Option<&'static str>>,
        ready_file: Option<&Path>,
    ) -> Result<()> {
        let (ends, mut ended) = mpsc::unbounded_channel::<End>();
        self.tell_of_lost_session(&ends);
        self.serve_registry();
        if let Some(file) = ready_file {
            let (pid, port) = (std::process::id(), self.name.port);
            write_whole(file, &format!("{{\"pid\": {pid}, \"master_port\": {port}}}\n"))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let storage = {
            let (config, directory) = (config.clone(), config_directory.map(Path::to_owned));
            tokio::task::spawn_blocking(move || storage::open_shared(&config, directory.as_deref())).await??
        };
        let name = storage.name.clone();
        tell(&format!("Basalt {} is a backup master until it becomes the active one.\n", env!("CARGO_PKG_VERSION")));
        let mut leading = Box::pin(Leader::start(self.leader_parts(config, storage, &ends)));
        let mut leader = None;
        let end = loop {
            tokio::select! {
                started = &mut leading, if leader.is_none() => {
                    let started = started.with_context(|| format!("cannot lead on {name}"))?;
                    if let Some(tracer) = self.tracing.tracer() {
                        started.master().trace_by(tracer);
                    }
                    self.pages.set_ready(started.master(), &name);
                    leader = Some(started);
                    self.announce(&name);
                }
                end = ended.recv() => break end.unwrap_or_else(|| End::Fatal("every part of the master is gone".into())),
                signal = signals.wait_for(Option::is_some) => {
                    let why = signal.ok().and_then(|signal| *signal).unwrap_or("a signal").to_owned();
                    break End::Asked { why, whole_cluster: false };
                }
            }
        };
        drop(leading);
        match end {
            End::Fatal(why) => {
                if let Some(leader) = &leader {
                    leader.master().stop();
                }
                bail!("stopped, because {why}")
            }
            End::Asked { why, whole_cluster } => {
                tracing::info!("stopping: {why}");
                self.stop(leader, whole_cluster).await
            }
        }
    }

    fn tell_of_lost_session(&self, ends: &mpsc::UnboundedSender<End>) {
        let (lost, ends) = (self.ensemble.lost(), ends.clone());
        tokio::spawn(async move {
            let why = format!("its ZooKeeper session is over: {}", lost.await);
            drop(ends.send(End::Fatal(why)));
        });
    }

    /// Answers, when there is a cluster, what clients ask any server of it.
    fn serve_registry(&self) {
        let coordinator: Arc<dyn Coordinator> = self.ensemble.clone();
        let nodes = ClusterNodes::new(coordinator, &self.parent);
        let registry = Arc::new(Registry::default());
        let (watching, kept) = (nodes.clone(), registry.clone());
        tokio::spawn(async move { watching.watch(&kept).await });
        let port = self.port.clone();
        tokio::spawn(async move {
            if let Ok(Some(cluster_id)) = nodes.cluster_id().await {
                port.set_registry(Arc::new(RegistryService::new(nodes, registry, cluster_id)));
            }
        });
    }

    fn leader_parts(&self, config: &Config, storage: Storage, ends: &mpsc::UnboundedSender<End>) -> LeaderParts {
        let (asked, fatal) = (ends.clone(), ends.clone());
        let stop = move |why, whole_cluster| drop(asked.send(End::Asked { why, whole_cluster }));
        LeaderParts {
            volume: storage.volume,
            root: storage.root,
            clock: self.clock.clone(),
            rng: self.rng.clone(),
            config: config.clone(),
            coordinator: self.ensemble.clone(),
            session_timeout: self.ensemble.session_timeout(),
            znodes: self.znodes.clone(),
            parent: self.parent.clone(),
            name: self.name.clone(),
            info_port: self.info_port,
            dialer: rpc::Dialer::Tcp,
            port: self.port.clone(),
            observer: Arc::new(Mirror::new(self.znodes.clone(), stop)),
            start_date: crate::status::java_date(self.name.start_code),
            on_fatal: Arc::new(move |why| drop(fatal.send(End::Fatal(why)))),
        }
    }

    fn announce(&self, storage_name: &str) {
        let status =
            self.info_port.map(|port| format!("  status     http://{}:{port}/master-status\n", self.name.host));
        tell(&format!(
            "Basalt {} is ready.\n  data       {storage_name}\n  leading    {}{} as {}\n{}  stop       Ctrl-C, or kill {}\n",
            env!("CARGO_PKG_VERSION"),
            self.ensemble.connect_string(),
            self.parent,
            self.name,
            status.unwrap_or_default(),
            std::process::id()
        ));
    }

    /// Lets go of the node, so that a backup need not wait. Region servers go on, unless the whole cluster is to go down.
    async fn stop(mut self, leader: Option<Leader>, whole_cluster: bool) -> Result<()> {
        let is_active = leader.is_some();
        if let (Some(leader), true) = (&leader, whole_cluster) {
            leader.go_down();
            self.znodes.clear_running(false)?;
            tracing::info!("waiting for {} region servers to stop", leader.servers().len());
            leader.servers_gone(SERVERS_GRACE).await;
        }
        if let Some(leader) = leader {
            if !whole_cluster {
                leader.master().hand_over(HAND_OVER).await;
            }
            leader.master().stop();
        }
        self.server.shutdown(DRAIN).await;
        self.tracing.end().await;
        if is_active {
            let path = format!("{}/master", self.parent);
            drop(tokio::time::timeout(STOP_GRACE, self.ensemble.remove(&path)).await);
        }
        drop(tokio::time::timeout(STOP_GRACE, self.ensemble.written()).await);
        tracing::info!("stopped");
        Ok(())
    }
}

fn own_listen_address(config: &Config) -> Result<SocketAddr> {
    listen_address(&anywhere(config), settings::MASTER_ADDRESS.key, config.get(&settings::MASTER_PORT))
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(async { tokio::time::timeout(STOP_GRACE, work).await }).context("no answer")?
}

fn connect_string(config: &Config) -> Result<String> {
    quorum::connect_string(config).context(
        "basalt master needs a ZooKeeper ensemble: set hbase.cluster.distributed = true and hbase.zookeeper.quorum",
    )
}

async fn cluster_nodes(config: &Config) -> Result<(Arc<Ensemble>, String)> {
    let connect = connect_string(config)?;
    let parent = coordination::settings::znode_parent(config).to_owned();
    Ok((quorum::connect(config, connect).await?, parent))
}

/// Has the active master shut the cluster down.
///
/// # Errors
/// A sentence: there is none, or it refuses.
pub fn stop(config: &Config) -> Result<()> {
    let active = block_on(async {
        let (ensemble, parent) = cluster_nodes(config).await?;
        let value = ensemble.value(&format!("{parent}/master")).await?;
        let active = value.as_ref().and_then(coordination::hbase_znodes::read_master).context("no master is active")?;
        let address = {
            let mut found = tokio::net::lookup_host((&*active.host, active.port)).await?;
            found.next().with_context(|| format!("the name {} has no address", active.host))?
        };
        let client = rpc::client::Client::connect(address, "MasterService", Default::default()).await?;
        client.call(proto::methods::Method::MasterShutdown.info(), &proto::pb::ShutdownRequest {}, None).await?;
        Ok(active)
    })?;
    println!("Asked the active master {active} to shut the cluster down.");
    Ok(())
}

/// Removes the node of a master that was at this machine's address.
///
/// # Errors
/// A sentence: another master is active.
pub fn clear(config: &Config) -> Result<()> {
    let mut address = own_listen_address(config)?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let own = config.text(settings::MASTER_HOSTNAME.key).map(|name| name.trim().to_owned());
    let own = own.unwrap_or_else(|| advertised_host(address.ip()));
    let said = block_on(async {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            bail!("a master runs on this machine ({address} is in use): stop it first");
        }
        let (ensemble, parent) = cluster_nodes(config).await?;
        let path = format!("{parent}/master");
        let Some(value) = ensemble.value(&path).await? else { return Ok("No master is active.".to_owned()) };
        let Some(active) = coordination::hbase_znodes::read_master(&value) else {
            bail!("the node {path} is not HBase's: look at zookeeper.znode.parent");
        };
        if active.address() != format!("{own}:{}", address.port()) {
            bail!("the active master is {active}, not this machine's {own}:{}: nothing was removed", address.port());
        }
        ensemble.remove(&path).await?;
        Ok(format!("The node of {active} is removed."))
    })?;
    println!("{said}");
    Ok(())
}
