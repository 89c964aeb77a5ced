//! The standalone server: coordination endpoint, master and region server in one process, on the local disk or on HDFS.
//!
//! Always true: whatever makes a start impossible is found before anything is written (settings, a directory that is
//! not ours, a lock held by another process, a port in use), and each ends it with one sentence. Start is recovery:
//! logs that an earlier life left are split before any region opens.

use crate::coordinated::Coordination;
use crate::gateways::{Gateways, Means};
use crate::host::{BlockingPool, LogThreads, Mirror, on_every_core};
use crate::logging::tell;
use crate::ports::Ports;
use crate::storage::{self, Storage};
use crate::{memory, settings, unheeded};
use anyhow::{Context, Result, bail};
use assembly::{Node, Parts, local_servers};
use base::{Clock, Config, Rng, SystemClock};
use client::{Connection, Options};
use coordination::HBaseZnodes;
use regionserver::ReadConfig;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How long open calls may take to end when the server stops.
const DRAIN: Duration = Duration::from_secs(2);

/// For so much of that time long calls go on as if nothing were.
const LONG_CALLS_DRAIN: Duration = Duration::from_secs(1);

/// How long a stop waits for the disk beyond the time for flushes: then the process ends as if it were killed, which loses nothing.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// Threads for administration and the master. What users read and write has threads of its own, and so have the status pages.
const ADMINISTRATION_THREADS: usize = 64;

/// What is wanted of the data when the process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// All of it.
    Everything,
    /// None: programs that test start the server and throw its directory away.
    Nothing,
}

/// Why the process ends.
pub enum End {
    /// A signal, or a client's wish: stop cleanly.
    Asked(String),
    /// The log or a region cannot be trusted any more: stop at once.
    Fatal(String),
}

/// Runs the server until it is told to stop. A client may have `read_config` called meanwhile.
///
/// # Errors
/// A sentence saying why it could not start, or that it had to stop.
pub fn run(
    config: Config,
    config_directory: Option<&Path>,
    read_config: ReadConfig,
    ready_file: Option<&Path>,
    keeps: Keeps,
) -> Result<()> {
    crate::logging::to_stderr();
    unheeded::of(&config, &settings::rows())?.warn();
    if config.text(settings::DISTRIBUTED.key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        && config.is_set(settings::ROOT_DIRECTORY.key)
    {
        tracing::info!("hbase.cluster.distributed is set; this version serves all of a cluster in one process");
    }
    let budget_bytes = match config.get(&settings::MEMORY_SIZE) {
        0 => memory::default_budget_bytes(),
        bytes => bytes,
    };
    memory::spare(budget_bytes);
    let storage = storage::open(&config, config_directory)?;
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let signals = signals()?;
        let serves = AtomicBool::new(false);
        tokio::select! {
            result = serve(config, read_config, budget_bytes, storage, (signals.clone(), &serves), (ready_file, keeps)) => {
                result
            }
            signal = stopped_early(signals, &serves) => {
                tracing::info!("{signal} during startup; exiting, recovery will run at the next start");
                Ok(())
            }
        }
    });
    // Blocking calls that still run must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// The threads of a server.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("basalt-worker")
        .max_blocking_threads(ADMINISTRATION_THREADS)
        .on_thread_park(memory::on_idle)
        .build()
        .context("cannot start threads")
}

/// A node, with what its ports and pages need.
struct Serving {
    node: Node<LogThreads>,
    ports: Ports,
    znodes: Arc<HBaseZnodes>,
    coordination: Coordination,
    info_thread: Option<std::thread::JoinHandle<()>>,
    gateways: Vec<JoinHandle<std::io::Result<()>>>,
    /// Says to the endpoint and the pages that they are to end.
    stop: watch::Sender<bool>,
}

async fn serve(
    config: Config,
    read_config: ReadConfig,
    budget_bytes: u64,
    storage: Storage,
    (mut signals, serves): (watch::Receiver<Option<&'static str>>, &AtomicBool),
    (ready_file, keeps): (Option<&Path>, Keeps),
) -> Result<()> {
    let (ends, mut ended) = mpsc::unbounded_channel::<End>();
    let name = storage.name.clone();
    let mut serving = start(&config, read_config, budget_bytes, storage, &ends).await?;
    serves.store(true, Ordering::SeqCst);
    match keeps {
        Keeps::Everything => announce(&name, &serving.ports),
        Keeps::Nothing => tell(&format!("{}\n", ready_json(&serving.ports))),
    }
    if let Some(file) = ready_file {
        write_ready_file(file, &serving.ports).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let end = tokio::select! {
        end = ended.recv() => end.unwrap_or_else(|| End::Fatal("every part of the server is gone".into())),
        signal = signals.wait_for(Option::is_some) => {
            End::Asked(signal.ok().and_then(|signal| *signal).unwrap_or("a signal").to_owned())
        }
    };
    match end {
        End::Fatal(why) => {
            // Nothing more may be acknowledged or written, and no procedure goes a step further; the next start recovers
            // from the log.
            serving.node.master().stop();
            bail!("stopped, because {why}");
        }
        End::Asked(why) => tracing::info!("stopping: {why}"),
    }
    if keeps == Keeps::Nothing {
        serving.node.master().stop();
        serving.ports.tracing.end().await;
        return Ok(());
    }
    stop(serving, Duration::from_millis(config.get(&regionserver::settings::STOP_FLUSH_TIMEOUT_MS))).await
}

/// Opens the ports, then starts the node and shows it in the coordination nodes and on the status pages.
async fn start(
    config: &Config,
    read_config: ReadConfig,
    budget_bytes: u64,
    storage: Storage,
    ends: &mpsc::UnboundedSender<End>,
) -> Result<Serving> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let rng = Arc::new(Rng::from_system());
    let ledger = regionserver::ledger(config, budget_bytes, config.get(&rpc::settings::MAX_CALL_QUEUE_SIZE));
    let Storage { name, volume, outside, root } = storage;
    let mut ports = Ports::bind(config, &name, &clock, &rng, &ledger).await?;
    let gateways = Gateways::bind(config).await?;
    let (stop, stopping) = watch::channel(false);
    let workers = tokio::runtime::Handle::current().metrics().num_workers();
    tokio::spawn(memory::give_back_what_is_free(ledger.clone(), workers, stopping.clone()));
    let parent = coordination::settings::znode_parent(config).to_owned();
    let mut coordination = Coordination::start(config, &mut ports, &volume, stopping.clone()).await?;
    let kept_on = volume.clone();
    let znodes = Arc::new(HBaseZnodes::new(coordination.store(), &parent, ports.master_name.port, rng.clone()));
    let wait_for_stop =
        |mut stopping: watch::Receiver<bool>| async move { drop(stopping.wait_for(|stop| *stop).await) };
    znodes.create_base_nodes()?;
    let end = |kind: fn(String) -> End| {
        let ends = ends.clone();
        move |why| drop(ends.send(kind(why)))
    };
    coordination.take_over(&znodes, &ports, end(End::Fatal)).await?;
    let services = ports.services.clone();
    let server_name = ports.server_name.clone();
    let local = local_servers(&services, (&server_name, &ports.master_name), &clock, &ledger);
    let means = Means { clock: clock.clone(), ledger: ledger.clone() };
    let second_level = crate::second_level::open(config)?;
    let parts = Parts {
        outside,
        root,
        volume,
        clock,
        rng,
        config: config.clone(),
        read_config: ports.read_config(read_config, &ledger),
        ledger,
        second_level,
        server_name: server_name.clone(),
        master_name: ports.master_name.clone(),
        info_port: ports.info_port(),
        runner: BlockingPool,
        syncer: LogThreads::default(),
        for_each: on_every_core,
        stepped: false,
        observer: Arc::new(Mirror::new(znodes.clone(), {
            let end = end(End::Asked);
            move |why, _| end(why)
        })),
        on_region_server: Box::new(move |cluster_id, service| {
            services.set_cluster_id(cluster_id, server_name);
            services.set_region(service);
        }),
        on_fatal: Arc::new(end(End::Fatal)),
        on_stop_request: Arc::new(end(End::Asked)),
    };
    let node = Node::start(parts).await.with_context(|| format!("cannot start on {name}"))?;
    coordination.keep(kept_on, stopping.clone()).await?;
    ports.services.set_master(node.master().handler());
    publish(&znodes, node.cluster_id(), &ports)?;
    ports.show_pages_of(&node);
    if let Some(tracer) = ports.tracing.tracer() {
        node.server().trace_by(tracer.clone());
        node.master().trace_by(tracer);
    }
    ports.gateways = gateways.listening();
    let connection = Connection::open(Options::in_process(local));
    let gateways = gateways.run(&connection, config, &means, (ports.registry(), &ports.tracing), &stopping);
    let info_thread = ports.info_server.take().map(|server| status_pages_thread(server, wait_for_stop(stopping)));
    let info_thread = info_thread.transpose().context("cannot start a thread for the status pages")?;
    Ok(Serving { node, ports, znodes, coordination, info_thread, gateways, stop })
}

/// Lets calls end, closes every region, then the log.
#[allow(clippy::disallowed_methods, reason = "threads that outlive the runtime begin here")]
async fn stop(serving: Serving, flush_for: Duration) -> Result<()> {
    let Serving { node, mut ports, znodes, coordination, info_thread, gateways, stop } = serving;
    node.master().stop();
    znodes.remove_region_server(&ports.server_name)?;
    znodes.clear_running(true)?;
    let _ = stop.send(true);
    // Their clients' calls end like everybody's; each waits for them a second at most.
    for gateway in gateways {
        if let Ok(Err(error)) = gateway.await {
            tracing::warn!("a gateway has ended: {error}");
        }
    }
    let calls = node.server().clone();
    let end_calls = async move {
        tokio::time::sleep(LONG_CALLS_DRAIN).await;
        calls.stop_calls();
    };
    let drained = async { tokio::join!(ports.region_port.shutdown(DRAIN), ports.master_port.shutdown(DRAIN)) };
    tokio::select! {
        _ = drained => {}
        () = async { end_calls.await; std::future::pending().await } => {}
    }
    ports.tracing.end().await;
    // A thread of its own: the pool for administration may be full of calls that wait for the disk.
    let (stopped_sender, stopped) = tokio::sync::oneshot::channel();
    let close = move || drop(stopped_sender.send(node.stop(Some(flush_for))));
    std::thread::Builder::new().name("stop".into()).spawn(close).context("cannot start a thread to stop")?;
    let Ok(stopped) = tokio::time::timeout(flush_for + STOP_GRACE, stopped).await else {
        tracing::warn!("stopped while regions were being flushed: the next start replays what they hold from the log");
        return Ok(());
    };
    let stopped = stopped.context("the stop failed; the next start recovers from the log")?;
    coordination.stop(STOP_GRACE).await;
    drop(info_thread);
    let left_to_log = stopped?;
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
#[allow(clippy::disallowed_methods, reason = "threads that outlive the runtime begin here")]
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

fn publish(znodes: &HBaseZnodes, cluster_id: &str, ports: &Ports) -> Result<()> {
    let (master, server) = (&ports.master_name, &ports.server_name);
    znodes.set_cluster_id(cluster_id)?;
    znodes.set_running(&crate::status::java_date(master.start_code))?;
    znodes.add_region_server(server, None, None)?;
    znodes.set_master(master, ports.info_port())?;
    znodes.set_meta_location(server, coordination::hbase_znodes::RegionState::Open)?;
    Ok(())
}

fn announce(root: &str, ports: &Ports) {
    let all = ports.listening().into_iter().chain(ports.gateways.iter().copied());
    let mut listening: Vec<String> = all.map(|(name, port)| format!("{name} {port}")).collect();
    listening.extend(ports.info_port().map(|port| format!("status pages {port}")));
    let is_local = ports.region_port.local_addr().ip().is_loopback();
    let reach = if is_local { " (this machine alone; -D basalt.bind=0.0.0.0 opens it)" } else { "" };
    let (host, zk_port) = (&ports.server_name.host, ports.zk_port);
    let connect = match &ports.ensemble {
        Some(members) => format!("hbase.zookeeper.quorum={members}"),
        None => format!("hbase.zookeeper.quorum={host}  hbase.zookeeper.property.clientPort={zk_port}"),
    };
    tell(&format!(
        "Basalt {} is ready.\n  data       {root}\n  listening  {}{reach}\n  connect    {connect}\n  stop       Ctrl-C, or kill {}\n",
        env!("CARGO_PKG_VERSION"),
        listening.join(", "),
        std::process::id()
    ));
}

/// What programs are told of a server that serves: one flat object on one line.
fn ready_json(ports: &Ports) -> String {
    let region_port = ports.region_port.local_addr().port();
    let info_port = ports.info_port().map_or("null".to_owned(), |port| port.to_string());
    let gateways: String =
        ports.gateways.iter().map(|(name, port)| format!(", \"{}_port\": {port}", name.to_lowercase())).collect();
    let quorum = match &ports.ensemble {
        Some(members) => members.clone(),
        None => format!("{}:{}", ports.server_name.host, ports.zk_port),
    };
    format!(
        "{{\"pid\": {}, \"quorum\": \"{quorum}\", \"zookeeper_port\": {}, \"master_port\": {}, \"region_port\": {region_port}, \
         \"info_port\": {info_port}{gateways}}}",
        std::process::id(),
        ports.zk_port,
        ports.master_port.local_addr().port(),
    )
}

/// Says for programs that the server serves, and where. The file gets its name when it is whole.
fn write_ready_file(file: &Path, ports: &Ports) -> std::io::Result<()> {
    write_whole(file, &(ready_json(ports) + "\n"))
}

/// Writes a file that is whole when it has its name.
#[allow(clippy::disallowed_methods, reason = "no file of the volume: a path of the command line")]
pub fn write_whole(file: &Path, text: &str) -> std::io::Result<()> {
    let mut temporary = file.as_os_str().to_owned();
    temporary.push(".tmp");
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, file)
}

/// The first signal to stop, as soon as it comes.
pub fn signals() -> Result<watch::Receiver<Option<&'static str>>> {
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
