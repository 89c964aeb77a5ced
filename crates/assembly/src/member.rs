//! A region server whose master is another process. How it is started and stopped; who lets it into the cluster, and how it hears of its end,
//! is the crate `membership`.

use crate::host::Runner;
use crate::node::{NodeError, StopError, Syncer};
use crate::server::{self, ServerParts};
use base::{Clock, Config, Ledger, Rng};
use bytes::Bytes;
use fs::Volume;
use hfile::SecondLevel;
use model::{RegionInfo, ServerName};
use region::CloseMode;
use regionserver::{MasterReports, Orders, ReadConfig, RegionServer, RegionService, ServeLease, SplitRequests};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use wal::Log;

/// What a member is made of.
pub struct MemberParts<R, S> {
    /// The root directory of the cluster.
    pub volume: Arc<dyn Volume>,
    /// The whole file system, from which clients load files in bulk.
    pub outside: Arc<dyn Volume>,
    /// Where the root directory is on it: an absolute path.
    pub root: String,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rng: Arc<Rng>,
    /// Settings.
    pub config: Config,
    /// Reads them anew, for an update while the server runs.
    pub read_config: ReadConfig,
    /// The memory budget, and who holds how much of it ([`regionserver::ledger`]).
    pub ledger: Arc<Ledger>,
    /// The level below the block cache, if there is one.
    pub second_level: Option<Arc<SecondLevel>>,
    /// The name under which the master let it in. No server had it before.
    pub server_name: ServerName,
    /// The cluster's id.
    pub cluster_id: String,
    /// Clients are answered while it holds.
    pub lease: Arc<ServeLease>,
    /// The way to whoever is master.
    pub reports: Arc<dyn MasterReports>,
    /// Runs what blocks.
    pub runner: R,
    /// Syncs the logs.
    pub syncer: S,
    /// The region server has no threads ([`regionserver::RegionServerParts::stepped`]).
    pub stepped: bool,
    /// Told when the log or a region can no longer be trusted, or the master takes what was done for undone; the process must end then.
    pub on_fatal: Arc<dyn Fn(String) + Send + Sync>,
    /// Told when a client asks the server to stop.
    pub on_stop_request: Arc<dyn Fn(String) + Send + Sync>,
}

/// A region server that takes orders.
pub struct Member<S> {
    server: Arc<RegionServer>,
    orders: Arc<Orders>,
    lease: Arc<ServeLease>,
    logs: [Arc<Log>; 2],
    volume: Arc<dyn Volume>,
    syncer: S,
}

impl<S: Syncer> Member<S> {
    /// Makes the server's logs and starts it, without regions.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn start<R: Runner>(parts: MemberParts<R, S>) -> Result<Member<S>, NodeError> {
        let (volume, config, clock) = (parts.volume.clone(), parts.config.clone(), parts.clock.clone());
        let name = parts.server_name.to_string();
        let create = move || Ok(create_logs(&volume, &name, &config, &clock));
        let logs = parts.runner.run(create).await.map_err(NodeError::Runner)??;
        for (log, name) in logs.iter().zip(["log-syncer", "meta-log-syncer"]) {
            parts.syncer.attend(log, name).map_err(NodeError::Syncer)?;
        }
        let own_orders = OwnOrders::default();
        let server = server::start(ServerParts {
            volume: parts.volume.clone(),
            outside: parts.outside,
            root: parts.root,
            clock: parts.clock,
            rng: parts.rng,
            config: parts.config,
            read_config: parts.read_config,
            ledger: parts.ledger,
            second_level: parts.second_level,
            name: parts.server_name,
            cluster_id: parts.cluster_id,
            logs: logs.clone(),
            split_requests: split_requests(own_orders.clone()),
            recovered_nonces: Vec::new(),
            on_fatal: parts.on_fatal,
            on_stop_request: parts.on_stop_request,
            stepped: parts.stepped,
        });
        let orders = Orders::new(server.clone(), parts.reports);
        let _only_here = own_orders.set(Arc::downgrade(&orders));
        Ok(Member { server, orders, lease: parts.lease, logs, volume: parts.volume, syncer: parts.syncer })
    }

    /// What answers calls to the server.
    pub fn service(&self) -> RegionService {
        RegionService::of_member(self.server.clone(), self.orders.clone(), self.lease.clone())
    }

    /// What its master may order.
    pub fn orders(&self) -> &Arc<Orders> {
        &self.orders
    }

    /// The region server.
    pub fn server(&self) -> &Arc<RegionServer> {
        &self.server
    }

    /// Stops: every region is flushed and closed, then the logs, which nobody needs then: they go to the archive. Regions whose turn comes
    /// after `flush_for` are not flushed: what they hold is in the logs, which stay for the master to split. Answers how many these are. Waits
    /// for the disk.
    ///
    /// # Errors
    /// [`StopError`]; everything else was stopped.
    pub fn stop(&self, flush_for: Duration) -> Result<usize, StopError> {
        let regions = self.server.stop_within(CloseMode::Flush, Some(flush_for));
        let [log, meta_log] = &self.logs;
        let closed = log.close().and(meta_log.close());
        self.syncer.join();
        let left_to_log = regions.map_err(StopError::Regions)?;
        closed.map_err(StopError::Log)?;
        if left_to_log == 0 {
            self.archive_logs().map_err(StopError::Log)?;
        }
        Ok(left_to_log)
    }

    /// All that the closed logs hold is in store files.
    fn archive_logs(&self) -> wal::Result<()> {
        let dir = rootdir::server_wals_dir(&self.server.name().to_string());
        for file in self.volume.list(&dir)?.into_iter().filter(|entry| !entry.is_dir) {
            wal::archive_log(&*self.volume, &dir.join(&file.name), &rootdir::old_wals_dir())?;
        }
        Ok(())
    }
}

/// The directory is there only if another process had the name: its logs are the master's to split.
fn create_logs(
    volume: &Arc<dyn Volume>,
    name: &str,
    config: &Config,
    clock: &Arc<dyn Clock>,
) -> Result<[Arc<Log>; 2], NodeError> {
    let dir = rootdir::server_wals_dir(name);
    if volume.exists(&dir).map_err(wal::Error::from)? {
        return Err(NodeError::NameTaken { dir: dir.to_string() });
    }
    Ok(server::create_logs(volume, name, config, clock)?)
}

/// The server's orders, once there are some. The server must not keep them: they keep the server.
type OwnOrders = Arc<OnceLock<Weak<Orders>>>;

/// Passes the server's wishes to split on to the master.
fn split_requests(orders: OwnOrders) -> SplitRequests {
    let runtime = Handle::current();
    Arc::new(move |region: RegionInfo, row| {
        let Some(orders) = orders.get().and_then(Weak::upgrade) else { return false };
        runtime.spawn(request_split(orders, region, row));
        true
    })
}

async fn request_split(orders: Arc<Orders>, region: RegionInfo, row: Option<Bytes>) {
    // A region that cannot be split now asks again.
    if let Err(why) = orders.request_split(&region, row).await {
        tracing::info!("{} was not split: {why}", region.name_string());
    }
}
