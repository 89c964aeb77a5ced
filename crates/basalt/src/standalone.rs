//! The standalone server: coordination endpoint, master and region server in one process on the local disk.
//!
//! Always true: whatever makes a start impossible is found before anything is written (settings, a directory that is
//! not ours, a lock held by another process, a port in use), and each ends it with one sentence. Start is recovery:
//! logs that an earlier life left are split before any region opens.

use crate::host::{BlockingPool, Mirror};
use crate::services::{MasterPort, RegionServerPort, Services};
use crate::status::Pages;
use crate::{memory, settings};
use anyhow::{Context, Result, anyhow, bail};
use assembly::LocalHost;
use base::{Clock, Config, Dice, SystemClock};
use coordination::{Endpoint, EndpointOptions, HBaseZnodes};
use fs::{FilePath, LocalVolume};
use hfile::BlockCache;
use master::{Caller, Master, MasterEnv};
use model::{RegionInfo, ServerName};
use region::{CloseMode, MemoryMeter, RegionEnv, RegionSettings};
use regionserver::{BulkLoadDoor, RegionServer, RegionServerParts, RegionService};
use std::mem::ManuallyDrop;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long open calls may take to end when the server stops.
const DRAIN: Duration = Duration::from_secs(2);

/// For so much of that time long calls go on as if nothing were.
const LONG_CALLS_DRAIN: Duration = Duration::from_secs(1);

/// How long a stop waits for the disk beyond the time for flushes: then the process ends as if it were killed, which loses nothing.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// Threads for administration and the master. What users read and write has threads of its own, and so have the status pages.
const ADMINISTRATION_THREADS: usize = 64;

/// Why the process ends.
enum End {
    /// A signal, or a client's wish: stop cleanly.
    Asked(String),
    /// The log or a region cannot be trusted any more: stop at once.
    Fatal(String),
}

/// Runs the server until it is told to stop.
///
/// # Errors
/// A sentence saying why it could not start, or that it had to stop.
pub fn run(config: Config) -> Result<()> {
    log_to_stderr();
    let unknown = config.check(&settings::rows())?;
    let strangers: Vec<&str> =
        unknown.into_iter().filter(|key| !settings::TEXT_KEYS.iter().any(|(known, ..)| known == key)).collect();
    if !strangers.is_empty() {
        tracing::info!("settings that nothing here reads: {}", strangers.join(", "));
    }
    if config.text("hbase.cluster.distributed").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        && config.is_set("hbase.rootdir")
    {
        tracing::info!("hbase.cluster.distributed is set; this version serves one process on a local disk");
    }
    let budget_bytes = match config.get(&settings::MEMORY_SIZE) {
        0 => memory::default_budget_bytes(),
        bytes => bytes,
    };
    memory::spare(budget_bytes);
    let root = root_directory(&config)?;
    if root.exists() {
        inspect(&root)?;
    }
    let volume = Arc::new(LocalVolume::open(&root).with_context(|| format!("cannot use {}", root.display()))?);
    // Held until the process is gone: what still runs when this returns must not meet another server's writes.
    let _lock = ManuallyDrop::new(volume.lock().map_err(|error| lock_error(&root, error))?);
    inspect(&root)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("basalt-worker")
        .max_blocking_threads(ADMINISTRATION_THREADS)
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(async {
        let signals = signals()?;
        let serves = AtomicBool::new(false);
        tokio::select! {
            result = serve(config, budget_bytes, root, volume, signals.clone(), &serves) => result,
            signal = stopped_early(signals, &serves) => {
                tracing::info!("stopped by {signal} while starting; the next start begins anew with all that is there");
                Ok(())
            }
        }
    });
    // Blocking calls that still run must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("BASALT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,basalt=info,basalt_regionserver=info"));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}

fn lock_error(root: &Path, error: fs::Error) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::WouldBlock {
        return anyhow!("{}", error.source);
    }
    anyhow!("cannot write to {}: {}", root.display(), error.source)
}

fn inspect(root: &Path) -> Result<()> {
    let volume = LocalVolume::open(root).with_context(|| format!("cannot read {}", root.display()))?;
    master::rootdir::inspect(&volume).with_context(|| format!("cannot serve {}", root.display()))?;
    Ok(())
}

/// `hbase.rootdir` as a path.
fn root_directory(config: &Config) -> Result<PathBuf> {
    let text = config.text("hbase.rootdir").map(str::trim).filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok(std::env::current_dir()?.join("basalt-data")) };
    let path = match text.split_once("://") {
        Some(("file", path)) => path,
        Some((scheme, _)) => {
            bail!("hbase.rootdir = {text}: this version stores on the local disk only, not on {scheme}")
        }
        None => text.strip_prefix("file:").unwrap_or(text),
    };
    if path.is_empty() {
        bail!("hbase.rootdir = {text} names no directory");
    }
    Ok(std::path::absolute(path)?)
}

/// Raises the soft limit of open descriptors to the hard one, as the JVM does; returns what it is now.
fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: maximum, maximum };
    match (current, setrlimit(Resource::Nofile, wanted)) {
        (_, Ok(())) => maximum.unwrap_or(u64::MAX),
        // As it was: it serves with what it has.
        (current, Err(_)) => current.unwrap_or(u64::MAX),
    }
}

/// Where to listen: as `key` says, else as `basalt.bind` does, else for this machine alone.
fn address(config: &Config, key: &str, port: u16) -> Result<SocketAddr> {
    let (key, text) = match (config.text(key), config.text(settings::BIND_KEY)) {
        (Some(text), _) => (key, text.trim()),
        (None, Some(text)) => (settings::BIND_KEY, text.trim()),
        (None, None) => (settings::BIND_KEY, "localhost"),
    };
    let ip: IpAddr = match text {
        "localhost" => IpAddr::from([127, 0, 0, 1]),
        other => other.parse().map_err(|_| anyhow!("{key} = {other} is not an IP address"))?,
    };
    Ok(SocketAddr::new(ip, port))
}

/// The name under which clients find what listens on `ip`.
fn advertised_host(ip: IpAddr) -> String {
    if ip.is_loopback() {
        return "localhost".to_owned();
    }
    if !ip.is_unspecified() {
        return ip.to_string();
    }
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // A name that nobody can look up, here at least, is of no use elsewhere.
    let is_known =
        std::net::ToSocketAddrs::to_socket_addrs(&(own.as_str(), 0)).is_ok_and(|mut all| all.next().is_some());
    if is_known {
        return own;
    }
    tracing::warn!(
        "the name of this machine, {own}, has no address: clients elsewhere need hbase.master.hostname and \
         hbase.unsafe.regionserver.hostname"
    );
    "localhost".to_owned()
}

fn port_error(what: &str, key: &str, address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::AddrInUse {
        anyhow!("port {} for {what} is in use: stop what uses it, or choose another with -D {key}=PORT", address.port())
    } else {
        anyhow!("cannot listen on {address} for {what}: {error}")
    }
}

async fn serve(
    config: Config,
    budget_bytes: u64,
    root: PathBuf,
    volume: Arc<LocalVolume>,
    mut signals: watch::Receiver<Option<&'static str>>,
    serves: &AtomicBool,
) -> Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let dice = Arc::new(Dice::from_system());
    let (ends, mut ended) = mpsc::unbounded_channel::<End>();
    let (stop_sender, stop) = watch::channel(false);

    // Ports first: one in use is noticed before a file is touched.
    let zk_key = "hbase.zookeeper.property.clientPort";
    let zk_address = address(
        &config,
        "hbase.zookeeper.property.clientPortAddress",
        config.get(&coordination::settings::CLIENT_PORT),
    )?;
    let endpoint = Endpoint::bind(zk_address, EndpointOptions::from_config(&config), clock.clone(), dice.clone())
        .await
        .map_err(|error| port_error("the ZooKeeper endpoint", zk_key, zk_address, &error))?;
    let services = Arc::new(Services::default());
    let descriptors = raise_descriptor_limit();
    let ledger = regionserver::ledger(&config, budget_bytes, config.get(&rpc::settings::MAX_CALL_QUEUE_SIZE));
    let limits = |eighths: u64| {
        let mut limits = rpc::Limits::from_config(&config);
        // One half of the descriptors is for the two ports, mostly for that of data; the other for files and what else is opened.
        let share = usize::try_from(descriptors / 8 * eighths).unwrap_or(usize::MAX).max(16);
        limits.max_connections = limits.max_connections.min(share);
        // Requests and replies are memory, too: one account for both ports.
        limits.within(&ledger);
        limits
    };
    let master_address = address(&config, "hbase.master.ipc.address", config.get(&settings::MASTER_PORT))?;
    let master_port =
        rpc::Server::bind(master_address, Arc::new(MasterPort(services.clone())), clock.clone(), limits(1))
            .map_err(|error| port_error("the master", "hbase.master.port", master_address, &error))?;
    let region_address = address(&config, "hbase.regionserver.ipc.address", config.get(&settings::REGION_SERVER_PORT))?;
    let region_port =
        rpc::Server::bind(region_address, Arc::new(RegionServerPort(services.clone())), clock.clone(), limits(3))
            .map_err(|error| port_error("the region server", "hbase.regionserver.port", region_address, &error))?;

    let info_port = config.get(&web::settings::INFO_PORT);
    let pages = Arc::new(Pages::new(config.clone(), clock.clone(), &root));
    let info_server = match u16::try_from(info_port) {
        Ok(port) => {
            let address = address(&config, web::settings::INFO_BIND_ADDRESS_KEY, port)?;
            let source: Arc<dyn web::StatusSource> = pages.clone();
            let server = web::Server::bind(address, source, clock.clone())
                .map_err(|error| port_error("the status pages", "hbase.master.info.port", address, &error))?;
            Some(server)
        }
        Err(_) => None,
    };
    let info_port = info_server.as_ref().map(|server| server.local_addr().port());

    let start_code = u64::try_from(clock.now_ms().0).unwrap_or_default();
    let host = |key: &str, bound: SocketAddr| match config.text(key) {
        Some(name) => name.trim().to_owned(),
        None => advertised_host(bound.ip()),
    };
    let master_bound = master_port.local_addr();
    let master_name = ServerName::new(&host("hbase.master.hostname", master_bound), master_bound.port(), start_code);
    let region_bound = region_port.local_addr();
    let region_host = host("hbase.unsafe.regionserver.hostname", region_bound);
    let server_name = ServerName::new(&region_host, region_bound.port(), start_code);

    // The directory, and what an earlier life left in its logs.
    let (volume_, dice_, config_, clock_, name) =
        (volume.clone(), dice.clone(), config.clone(), clock.clone(), server_name.to_string());
    let (cluster_id, log, meta_log, nonces) = tokio::task::spawn_blocking(move || {
        let cluster_id = master::rootdir::prepare(&*volume_, &dice_)?;
        let hold_bytes = RegionServer::recovery_hold_bytes(&config_, budget_bytes);
        let nonces_since = RegionServer::nonces_since(&config_, &*clock_);
        let recovery = assembly::Recovery { worker: &name, hold_bytes, nonces_since, for_each: &on_every_core };
        let recovered = assembly::recover_logs(&*volume_, &recovery)?;
        let dir = FilePath::new("WALs").join(&name);
        let options = wal::LogOptions::from_config(&config_);
        let meta_options = wal::LogOptions::of_meta(&config_);
        let log = wal::Log::create(volume_.clone(), dir.clone(), &name, options, clock_.clone())?;
        let meta_log = wal::Log::create(volume_, dir, &name, meta_options, clock_)?;
        log.inherit(recovered.others);
        meta_log.inherit(recovered.meta);
        anyhow::Ok((cluster_id, log, meta_log, recovered.nonces))
    })
    .await?
    .with_context(|| format!("cannot start on {}", root.display()))?;
    services.set_cluster_id(cluster_id.clone(), server_name.clone());
    let mut syncers = Vec::new();
    for (log, name) in [(&log, "log-syncer"), (&meta_log, "meta-log-syncer")] {
        let log = log.clone();
        syncers.push(
            std::thread::Builder::new()
                .name(name.into())
                .spawn(move || log.run_syncer_answering(|answer| rpc::answer_together(answer)))?,
        );
    }

    // The region server.
    let env = Arc::new(RegionEnv {
        volume: volume.clone(),
        log: log.clone(),
        clock: clock.clone(),
        dice: dice.clone(),
        cache: BlockCache::new(ledger.cap_bytes(base::Holder::BlockCache)),
        settings: Arc::new(RegionSettings::from_config(&config).within_budget(budget_bytes)),
        memory: MemoryMeter::new(),
        server_name: Arc::from(server_name.to_string()),
    });
    let meta_env = Arc::new(RegionEnv { log: meta_log.clone(), ..RegionEnv::clone(&env) });
    let (fatal_ends, asked_ends) = (ends.clone(), ends.clone());
    let server = RegionServer::start(RegionServerParts {
        name: server_name.clone(),
        env,
        meta_env,
        config: config.clone(),
        ledger: ledger.clone(),
        on_fatal: Arc::new(move |why| drop(fatal_ends.send(End::Fatal(why)))),
        on_stop_request: Arc::new(move |why| drop(asked_ends.send(End::Asked(why)))),
    });
    server.remember(nonces);
    server.set_bulk_load_door(BulkLoadDoor {
        outside: Arc::new(LocalVolume::open(Path::new("/")).context("cannot read the root of the file system")?),
        root: volume.root().display().to_string(),
        cluster_id: cluster_id.clone(),
    });
    services.set_region(RegionService::new(server.clone()));

    // Coordination, and the master, which opens every region.
    let parent = coordination::settings::znode_parent(&config).to_owned();
    let znodes = Arc::new(HBaseZnodes::new(endpoint.tree(), &parent, master_name.port, dice.clone()));
    let zk_port = endpoint.local_addr()?.port();
    let mut endpoint_stop = stop.clone();
    let endpoint_task = tokio::spawn(endpoint.run(async move { drop(endpoint_stop.wait_for(|stop| *stop).await) }));
    let observer_ends = ends.clone();
    znodes.create_base_nodes()?;
    let parts = MasterEnv {
        volume: volume.clone(),
        clock: clock.clone(),
        config: config.clone(),
        host: Arc::new(LocalHost::new(server.clone(), BlockingPool)),
        observer: Arc::new(Mirror::new(znodes.clone(), move |why| drop(observer_ends.send(End::Asked(why))))),
        cluster_id: cluster_id.clone(),
        server_name: master_name.clone(),
        info_port,
    };
    let master = Master::start(parts).await.with_context(|| format!("cannot start on {}", root.display()))?;
    let settling = server.clone();
    drop(tokio::task::spawn_blocking(move || settling.settle_inheritance()));
    let splitter = master.clone();
    let runtime = tokio::runtime::Handle::current();
    server.set_split_requests(Arc::new(move |region: RegionInfo, row| {
        let splitter = splitter.clone();
        runtime.spawn(async move {
            if let Err(error) = splitter.split_region(region.encoded_name(), row, &Caller::default()).await {
                tracing::info!("{} was not split: {error}", region.name_string());
            }
        });
    }));
    services.set_master(master.handler());
    publish(&znodes, &cluster_id, &master_name, &server_name, info_port)?;
    let listening = [("ZooKeeper", zk_port), ("master", master_name.port), ("region server", server_name.port)];
    region_port.register_metrics(pages.registry(), base::metrics::IPC);
    master_port.register_metrics(pages.registry(), base::metrics::MASTER_IPC);
    let counters = vec![region_port.counters().clone(), master_port.counters().clone()];
    pages.set_ready(&server, &master, &listening, info_port, counters);
    let info_thread = info_server.map(|server| {
        let mut stop = stop.clone();
        status_pages_thread(server, async move { drop(stop.wait_for(|stop| *stop).await) })
    });
    let info_thread = info_thread.transpose().context("cannot start a thread for the status pages")?;
    serves.store(true, Ordering::SeqCst);
    announce(&root, &listening, info_port, &server_name, region_bound.ip());

    let end = tokio::select! {
        end = ended.recv() => end.unwrap_or_else(|| End::Fatal("every part of the server is gone".into())),
        signal = signals.wait_for(Option::is_some) => {
            End::Asked(signal.ok().and_then(|signal| *signal).unwrap_or("a signal").to_owned())
        }
    };
    if let End::Fatal(why) = end {
        // Nothing more may be acknowledged or written, and no procedure goes a step further; the next start recovers
        // from the log.
        master.stop();
        bail!("stopped, because {why}");
    }
    if let End::Asked(why) = &end {
        tracing::info!("stopping: {why}");
    }
    master.stop();
    znodes.clear_running(true)?;
    let _ = stop_sender.send(true);
    let (closing, calls) = (server.clone(), server.clone());
    let end_calls = async move {
        tokio::time::sleep(LONG_CALLS_DRAIN).await;
        calls.stop_calls();
    };
    let drained = async { tokio::join!(region_port.shutdown(DRAIN), master_port.shutdown(DRAIN)) };
    tokio::select! {
        _ = drained => {}
        () = async { end_calls.await; std::future::pending().await } => {}
    }
    let flush_for = Duration::from_millis(config.get(&regionserver::settings::STOP_FLUSH_TIMEOUT_MS));
    // A thread of its own: the pool for administration may be full of calls that wait for the disk.
    let (closed_sender, closed) = tokio::sync::oneshot::channel();
    let close = move || {
        let closed = closing.stop_within(CloseMode::Flush, Some(flush_for));
        let mut log_closed = log.close().and(meta_log.close());
        if matches!(closed, Ok(0)) && log_closed.is_ok() {
            // hbase:meta is in its files: the next start has nothing of it to replay. Everybody's log stays for that start: clients
            // whose answers were lost come back with nonces that only the log knows.
            log_closed = meta_log.archive_flushed().map(drop);
        }
        for syncer in syncers {
            let _ = syncer.join();
        }
        let _ = closed_sender.send((closed, log_closed));
    };
    std::thread::Builder::new().name("stop".into()).spawn(close).context("cannot start a thread to stop")?;
    let Ok(closed) = tokio::time::timeout(flush_for + STOP_GRACE, closed).await else {
        tracing::warn!("stopped while regions were being flushed: the next start replays what they hold from the log");
        return Ok(());
    };
    let (closed, log_closed) = closed.context("the stop failed; the next start recovers from the log")?;
    let _ = tokio::time::timeout(STOP_GRACE, endpoint_task).await;
    drop(info_thread);
    let left_to_log = closed.context("not every region could be closed; the next start recovers from the log")?;
    log_closed.context("the log could not be closed; the next start recovers from it")?;
    if left_to_log == 0 {
        tracing::info!("stopped");
    } else {
        tracing::warn!(
            "stopped; {left_to_log} regions were not flushed within {} = {} ms: the next start replays what they hold from the log",
            regionserver::settings::STOP_FLUSH_TIMEOUT_MS.key,
            flush_for.as_millis()
        );
    }
    Ok(())
}

/// Serves the status pages on threads that nothing else uses: one for the connections, two that draw.
fn status_pages_thread(
    server: web::Server,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("status-pages")
        .max_blocking_threads(2)
        .build()?;
    std::thread::Builder::new().name("status-pages".into()).spawn(move || {
        if let Err(error) = runtime.block_on(server.run(shutdown)) {
            tracing::warn!("the status pages have ended: {error}");
        }
        runtime.shutdown_background();
    })
}

fn publish(
    znodes: &HBaseZnodes,
    cluster_id: &str,
    master: &ServerName,
    server: &ServerName,
    info_port: Option<u16>,
) -> Result<()> {
    znodes.set_cluster_id(cluster_id)?;
    znodes.set_running(&crate::status::java_date(master.start_code))?;
    znodes.add_region_server(server, None, None)?;
    znodes.set_master(master, info_port)?;
    znodes.set_meta_location(server, coordination::hbase_znodes::RegionState::Open)?;
    Ok(())
}

fn announce(root: &Path, listening: &[(&str, u16)], info_port: Option<u16>, server: &ServerName, bound: IpAddr) {
    let mut ports: Vec<String> = listening.iter().map(|(name, port)| format!("{name} {port}")).collect();
    ports.extend(info_port.map(|port| format!("status pages {port}")));
    let zk_port = listening[0].1;
    println!("Basalt {} is ready.", env!("CARGO_PKG_VERSION"));
    println!("  data       {}", root.display());
    let reach = if bound.is_loopback() { " (this machine alone; -D basalt.bind=0.0.0.0 opens it)" } else { "" };
    println!("  listening  {}{reach}", ports.join(", "));
    println!("  connect    hbase.zookeeper.quorum={}  hbase.zookeeper.property.clientPort={zk_port}", server.host);
    println!("  stop       Ctrl-C, or kill {}", std::process::id());
}

/// The first signal to stop, as soon as it comes.
fn signals() -> Result<watch::Receiver<Option<&'static str>>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        sender.send_replace(Some(name));
        // Further signals change nothing: a stop is under way.
        sender.closed().await;
    });
    Ok(receiver)
}

/// Ends when a signal comes before the server serves. A start may be left at any point: it is as a crash there.
async fn stopped_early(mut signals: watch::Receiver<Option<&'static str>>, serves: &AtomicBool) -> &'static str {
    if let Ok(signal) = signals.wait_for(Option::is_some).await
        && !serves.load(Ordering::SeqCst)
    {
        return signal.unwrap_or("a signal");
    }
    std::future::pending().await
}

/// Calls the function with 0, 1, ... up to `count`, on as many threads as there are cores.
fn on_every_core(count: usize, work: &(dyn Fn(usize) + Sync)) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let next = AtomicUsize::new(0);
    let take = || {
        let indexes = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < count));
        indexes.for_each(work);
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(take)));
        take();
    });
}
