//! A node: a master and a region server over one volume. How it is started and stopped, for the binary and the simulator alike.

use crate::host::{LocalHost, Runner};
use crate::recovery::{ForEach, Recovered, Recovery, recover_logs};
use crate::server::{self, ServerParts};
use base::{Clock, Config, Ledger, Rng};
use fs::Volume;
use hfile::SecondLevel;
use master::{
    Caller, HostError, Inherited, Master, MasterEnv, NoGroupMapping, Observer, OneRack, RecoveredAtStart, StartError,
};
use model::{RegionInfo, ServerName};
use parking_lot::Mutex;
use region::CloseMode;
use regionserver::{ReadConfig, RegionServer, RegionService, ServerError};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use wal::Log;

/// Who syncs a log that others write.
pub trait Syncer: Send + Sync + 'static {
    /// Attends to `log` until the log is closed.
    ///
    /// # Errors
    /// The system gives no thread.
    fn attend(&self, log: &Arc<Log>, name: &'static str) -> std::io::Result<()>;
    /// Waits for the end of what [`Syncer::attend`] began. The logs are closed.
    fn join(&self);
}

/// Told once, before the master starts, that the region server takes calls: the cluster's id, and what answers the calls.
pub type OnRegionServer = Box<dyn FnOnce(String, RegionService) + Send>;

/// What a node is made of.
pub struct Parts<R, S> {
    /// The root directory. No other server uses it.
    pub volume: Arc<dyn Volume>,
    /// The machine's whole disk, from which clients load files in bulk.
    pub outside: Arc<dyn Volume>,
    /// Where the root directory is on it: an absolute path.
    pub root: String,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rng: Arc<Rng>,
    /// Settings.
    pub config: Config,
    /// Reads them anew, for an update while the node runs.
    pub read_config: ReadConfig,
    /// The memory budget, and who holds how much of it ([`regionserver::ledger`]).
    pub ledger: Arc<Ledger>,
    /// The level below the block cache, if there is one.
    pub second_level: Option<Arc<SecondLevel>>,
    /// Name of the region server.
    pub server_name: ServerName,
    /// Name of the master.
    pub master_name: ServerName,
    /// Port of the status pages, if there are any.
    pub info_port: Option<u16>,
    /// Runs what blocks.
    pub runner: R,
    /// Syncs the logs.
    pub syncer: S,
    /// How log files are read at the start.
    pub for_each: fn(usize, &(dyn Fn(usize) + Sync)),
    /// The region server has no threads ([`RegionServerParts::stepped`]).
    pub stepped: bool,
    /// Told of changes by the master.
    pub observer: Arc<dyn Observer>,
    /// Told that the region server takes calls.
    pub on_region_server: OnRegionServer,
    /// Told when the log or a region can no longer be trusted; the process must end then.
    pub on_fatal: Arc<dyn Fn(String) + Send + Sync>,
    /// Told when a client asks the region server to stop.
    pub on_stop_request: Arc<dyn Fn(String) + Send + Sync>,
}

/// Why a node could not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The root directory cannot be used.
    #[error(transparent)]
    RootDirectory(#[from] rootdir::root::RootError),
    /// A log of an earlier server cannot be read, or none can be made.
    #[error(transparent)]
    Log(#[from] wal::Error),
    /// Another server had the name.
    #[error("the directory {dir} is there: another server had this name, and its logs are not split yet; start again")]
    NameTaken {
        /// Of its logs.
        dir: String,
    },
    /// Nobody syncs the logs.
    #[error("cannot start the WAL sync thread: {0}")]
    Syncer(std::io::Error),
    /// What reads the logs failed inside.
    #[error("cannot recover from the WAL files of earlier servers: {0}")]
    Runner(HostError),
    /// The master cannot start.
    #[error(transparent)]
    Master(#[from] StartError),
}

/// What a stop could not do. What was acknowledged is in the log, and the next start recovers it.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// A region could not be closed.
    #[error("not every region could be closed; the next start recovers from the WAL: {0}")]
    Regions(ServerError),
    /// The log could not be closed.
    #[error("cannot close the WAL; the next start recovers from it: {0}")]
    Log(wal::Error),
}

/// A master and a region server that serve. Nothing in it refers back to it: when it is stopped and dropped, everything is.
pub struct Node<S> {
    server: Arc<RegionServer>,
    master: Arc<Master>,
    /// Of all regions but hbase:meta; of hbase:meta.
    logs: [Arc<Log>; 2],
    cluster_id: String,
    syncer: S,
    recovered_flush: Mutex<Option<JoinHandle<()>>>,
}

/// What blocks at a start.
struct Prepared {
    cluster_id: String,
    logs: [Arc<Log>; 2],
    recovered: Recovered,
}

impl<S: Syncer> Node<S> {
    /// Starts: prepares the root directory, recovers what the logs of earlier servers hold, starts the region server and then the master,
    /// which opens every region. Ready when it returns.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn start<R: Runner>(parts: Parts<R, S>) -> Result<Node<S>, NodeError> {
        let runner = Arc::new(parts.runner);
        let preparation = Preparation {
            volume: parts.volume.clone(),
            clock: parts.clock.clone(),
            rng: parts.rng.clone(),
            config: parts.config.clone(),
            budget_bytes: parts.ledger.budget_bytes(),
            name: parts.server_name.to_string(),
            for_each: parts.for_each,
        };
        crate::fence::fence_logs(&parts.volume, &*runner).await?;
        let Prepared { cluster_id, logs, recovered } =
            runner.run(move || Ok(preparation.run())).await.map_err(NodeError::Runner)??;
        logs[0].adopt_recovered(recovered.others);
        logs[1].adopt_recovered(recovered.meta);
        for (log, name) in logs.iter().zip(["log-syncer", "meta-log-syncer"]) {
            parts.syncer.attend(log, name).map_err(NodeError::Syncer)?;
        }
        let own_master = OwnMaster::default();
        let server = server::start(ServerParts {
            volume: parts.volume.clone(),
            outside: parts.outside,
            root: parts.root,
            clock: parts.clock.clone(),
            rng: parts.rng,
            config: parts.config.clone(),
            read_config: read_config(parts.read_config, own_master.clone()),
            ledger: parts.ledger,
            second_level: parts.second_level,
            name: parts.server_name,
            cluster_id: cluster_id.clone(),
            logs: logs.clone(),
            split_requests: split_requests(own_master.clone()),
            recovered_nonces: recovered.nonces,
            on_fatal: parts.on_fatal,
            on_stop_request: parts.on_stop_request,
            stepped: parts.stepped,
        });
        (parts.on_region_server)(cluster_id.clone(), RegionService::new(server.clone()));
        let master = Master::start(MasterEnv {
            volume: parts.volume,
            clock: parts.clock,
            config: parts.config,
            hosts: vec![Arc::new(LocalHost::new(server.clone(), runner.clone()))],
            inherited: Inherited::default(),
            log_splitter: Arc::new(RecoveredAtStart),
            observer: parts.observer,
            // There is one server.
            racks: Arc::new(OneRack),
            group_mapping: Arc::new(NoGroupMapping),
            cluster_id: cluster_id.clone(),
            server_name: parts.master_name,
            info_port: parts.info_port,
        })
        .await?;
        let _only_here = own_master.set(Arc::downgrade(&master));
        let settling = server.clone();
        let flush = async move {
            if let Err(error) = runner
                .run(move || {
                    settling.flush_recovered_edits();
                    Ok(())
                })
                .await
            {
                tracing::warn!(
                    "cannot flush recovered edits; they stay in memory and in the WAL files of earlier servers: {error}"
                );
            }
        };
        let recovered_flush = Mutex::new(Some(tokio::spawn(flush)));
        Ok(Node { server, master, logs, cluster_id, syncer: parts.syncer, recovered_flush })
    }

    /// Waits until edits that the logs of earlier servers held are where they belong: until regions that nobody opens have theirs in
    /// files, and the others wait to be flushed. Clients need not wait for it.
    pub async fn recovered(&self) {
        let flush = self.recovered_flush.lock().take();
        if let Some(flush) = flush {
            // It said what went wrong.
            let _ended = flush.await;
        }
    }

    /// The region server.
    pub fn server(&self) -> &Arc<RegionServer> {
        &self.server
    }

    /// The master.
    pub fn master(&self) -> &Arc<Master> {
        &self.master
    }

    /// The logs: that of all regions but hbase:meta, and that of hbase:meta.
    pub fn logs(&self) -> &[Arc<Log>; 2] {
        &self.logs
    }

    /// The cluster's id.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Stops: the master first, then every region is flushed and closed, then the logs. Regions whose turn comes after `flush_for` are not
    /// flushed: what they hold is in the log. Answers how many these are. Waits for the disk.
    ///
    /// # Errors
    /// [`StopError`]; everything else was stopped.
    pub fn stop(&self, flush_for: Option<Duration>) -> Result<usize, StopError> {
        self.master.stop();
        let regions = self.server.stop_within(CloseMode::Flush, flush_for);
        let [log, meta_log] = &self.logs;
        let mut closed = log.close().and(meta_log.close());
        if matches!(regions, Ok(0)) && closed.is_ok() {
            // hbase:meta is in its files: the next start has nothing of it to replay. The other log stays for that start: clients whose
            // answers were lost come back with nonces that only the log knows.
            closed = meta_log.archive_flushed().map(drop);
        }
        self.syncer.join();
        let left_to_log = regions.map_err(StopError::Regions)?;
        closed.map_err(StopError::Log)?;
        Ok(left_to_log)
    }
}

/// The first work of a start, which reads and writes files.
struct Preparation {
    volume: Arc<dyn Volume>,
    clock: Arc<dyn Clock>,
    rng: Arc<Rng>,
    config: Config,
    budget_bytes: u64,
    name: String,
    for_each: fn(usize, &(dyn Fn(usize) + Sync)),
}

impl Preparation {
    /// The root directory, what the logs of earlier servers hold, and the new server's logs.
    fn run(&self) -> Result<Prepared, NodeError> {
        let cluster_id = rootdir::root::prepare(&*self.volume, &self.rng)?;
        let for_each: ForEach<'_> = &self.for_each;
        let recovery = Recovery {
            worker: &self.name,
            hold_bytes: RegionServer::recovery_hold_bytes(&self.config, self.budget_bytes),
            nonces_since: RegionServer::nonces_since(&self.config, &*self.clock),
            for_each,
        };
        let recovered = recover_logs(&*self.volume, &recovery)?;
        let logs = server::create_logs(&self.volume, &self.name, &self.config, &self.clock)?;
        Ok(Prepared { cluster_id, logs, recovered })
    }
}

/// The master, once there is one. The server must not keep it: the master keeps the server.
type OwnMaster = Arc<OnceLock<Weak<Master>>>;

/// Reads the configuration anew for both: the master is told before the region server gets it.
fn read_config(read: ReadConfig, master: OwnMaster) -> ReadConfig {
    Arc::new(move || {
        let config = read()?;
        if let Some(master) = master.get().and_then(Weak::upgrade) {
            master.update_configuration(&config);
        }
        Ok(config)
    })
}

/// Passes the region server's wishes to split on to the master, once there is one.
fn split_requests(master: OwnMaster) -> regionserver::SplitRequests {
    let runtime = Handle::current();
    Arc::new(move |region: RegionInfo, row| {
        let Some(master) = master.get().and_then(Weak::upgrade) else { return false };
        runtime.spawn(async move {
            // A region that cannot be split now asks again.
            if let Err(error) = master.split_region(region.encoded_name(), row, &Caller::default()).await {
                tracing::info!("{} was not split: {error}", region.name_string());
            }
        });
        true
    })
}
