//! A master that leads: how it takes the cluster over and starts.

use crate::election::{ElectionError, become_active, wait_for_active};
use crate::files::RegionFiles;
use crate::group_script::GroupScript;
use crate::lease::Lease;
use crate::logs::{DeadLogs, Splitter, fence_master_store, server_of_directory};
use crate::orders::OrderIds;
use crate::port::LeaderPort;
use crate::racks::Racks;
use crate::remote::Means;
use crate::roll::Roll;
use crate::settings;
use crate::status::StatusService;
use crate::volume::LeasedVolume;
use base::{Clock, Config, Rng};
use coordination::hbase_znodes::{RegionState, meta_replica_of, read_meta_replica, read_meta_server, strip_prefix};
use coordination::{Coordinator, HBaseZnodes, SessionOver};
use fs::Volume;
use master::{BoxFuture, Inherited, Master, MasterEnv, Observer, RegionHost, StartError};
use model::ServerName;
use rootdir::root::RootError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Who waits for the ensemble says so as often.
const TELL_AFTER: Duration = Duration::from_secs(10);

/// What a leader is made of.
pub struct LeaderParts {
    /// The root directory of the cluster.
    pub volume: Arc<dyn Volume>,
    /// As region servers are told: a URL.
    pub root: String,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rng: Arc<Rng>,
    /// Settings.
    pub config: Config,
    /// The session. The parents of HBase's nodes are there.
    pub coordinator: Arc<dyn Coordinator>,
    /// After so long without a word the ensemble ends it.
    pub session_timeout: Duration,
    /// The nodes, written through that session.
    pub znodes: Arc<HBaseZnodes>,
    /// Where they are: `/hbase`.
    pub parent: String,
    /// The master's name.
    pub name: ServerName,
    /// Port of its pages, if it has any.
    pub info_port: Option<u16>,
    /// By which network region servers are reached.
    pub dialer: rpc::Dialer,
    /// What region servers and clients call.
    pub port: Arc<LeaderPort>,
    /// Told of changes. Where hbase:meta is is written by the leader itself.
    pub observer: Arc<dyn Observer>,
    /// When the cluster was started, as the node `running` has it.
    pub start_date: String,
    /// Told when this process is master no more: it must end then.
    pub on_fatal: Arc<dyn Fn(String) + Send + Sync>,
}

/// Why a master does not lead.
#[derive(Debug, thiserror::Error)]
pub enum LeadError {
    /// It was not elected.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// The session is over.
    #[error(transparent)]
    Over(#[from] SessionOver),
    /// The root directory cannot be used.
    #[error(transparent)]
    RootDirectory(#[from] RootError),
    /// The volume.
    #[error(transparent)]
    Volume(#[from] fs::Error),
    /// What stands in place of a log.
    #[error(transparent)]
    Log(#[from] wal::Error),
    /// The nodes cannot be written.
    #[error("the coordination nodes cannot be written: {0}")]
    Nodes(#[from] coordination::TreeError),
    /// The master cannot start.
    #[error(transparent)]
    Master(#[from] StartError),
    /// Work on files failed inside.
    #[error("it failed inside: {0}")]
    Inside(#[from] tokio::task::JoinError),
}

/// The active master, with what keeps it one.
pub struct Leader {
    master: Arc<Master>,
    roll: Arc<Roll>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.master.stop();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Writes where hbase:meta is, and passes everything on.
struct Nodes {
    znodes: Arc<HBaseZnodes>,
    coordinator: Arc<dyn Coordinator>,
    /// Of the node that says where hbase:meta is.
    meta_path: String,
    next: Arc<dyn Observer>,
}

impl Observer for Nodes {
    fn meta_location(&self, server: &ServerName, is_open: bool) {
        let state = if is_open { RegionState::Open } else { RegionState::Opening };
        if let Err(error) = self.znodes.set_meta_location(server, state) {
            tracing::warn!("the node meta-region-server cannot be written: {error}");
        }
        self.next.meta_location(server, is_open);
    }

    fn meta_location_is_kept<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let over = |over: SessionOver| over.to_string();
            let kept = async {
                let mut seen = self.coordinator.value(&self.meta_path).await.map_err(over)?;
                while seen.as_ref().and_then(read_meta_server).as_ref() != Some(server) {
                    seen = self.coordinator.value_other_than(&self.meta_path, seen).await.map_err(over)?;
                }
                Ok(())
            };
            tokio::pin!(kept);
            loop {
                match tokio::time::timeout(TELL_AFTER, &mut kept).await {
                    Ok(kept) => return kept,
                    Err(_) => tracing::warn!(
                        "hbase:meta is not opened on {server} before ZooKeeper has taken the znode {}; is a quorum of the ensemble up?",
                        self.meta_path
                    ),
                }
            }
        })
    }

    fn meta_replica(&self, id: u32, at: Option<(&ServerName, RegionState)>) {
        let written = match at {
            Some((server, state)) => self.znodes.set_meta_replica(id, server, state),
            None => self.znodes.remove_meta_replica(id),
        };
        if let Err(error) = written {
            tracing::warn!(
                "the znode meta-region-server-{id} was not written, clients do not find that read replica of hbase:meta: {error}"
            );
        }
    }

    fn draining(&self, server: &ServerName, on: bool) {
        if let Err(error) = self.znodes.set_draining(server, on) {
            tracing::warn!(
                "cannot write or remove the draining node of {server} in ZooKeeper, the next master will not know of it: {error}"
            );
        }
        self.next.draining(server, on);
    }

    fn table_state(&self, table: &model::TableName, state: Option<master::cluster::TableState>) {
        self.next.table_state(table, state);
    }

    fn namespace(&self, name: &str, configuration: Option<&master::cluster::NamespaceConfiguration>) {
        self.next.namespace(name, configuration);
    }

    fn rpc_throttle(&self, on: bool) {
        if let Err(error) = self.znodes.set_rpc_throttle(on) {
            tracing::warn!(
                "the znode rpc-throttle was not written, region servers that start take the old state; switch it again: {error}"
            );
        }
        self.next.rpc_throttle(on);
    }

    fn peer(&self, id: &str, nodes: Option<&master::PeerNodes>) {
        self.next.peer(id, nodes);
    }

    fn region_server_group(&self, name: &str, node: Option<&[u8]>) {
        // Read by the next master, so written here.
        let written = match node {
            Some(node) => self.znodes.set_region_server_group(name, node),
            None => self.znodes.remove_region_server_group(name),
        };
        if let Err(error) = written {
            tracing::warn!(
                "the znode rsgroup/{name} was not written, the next master places regions by the old group until it has read hbase:rsgroup: {error}"
            );
        }
    }

    fn stop_requested(&self, whole_cluster: bool) {
        self.next.stop_requested(whole_cluster);
    }
}

impl Leader {
    /// Waits until this process is the active master, takes the cluster over, and starts. Ready when it returns.
    ///
    /// # Errors
    /// [`LeadError`].
    pub async fn start(parts: LeaderParts) -> Result<Leader, LeadError> {
        if parts.config.get(&settings::BACKUP) {
            wait_for_active(&*parts.coordinator, &parts.znodes, &parts.name).await?;
        }
        let (path, value) = become_active(&*parts.coordinator, &parts.znodes, &parts.name, parts.info_port).await?;
        let lease = Arc::new(Lease::new(parts.clock.clone()));
        let mut tasks = Vec::new();
        tasks.push(keep_lease(&parts, lease.clone(), path, value));
        let volume: Arc<dyn Volume> = Arc::new(LeasedVolume::new(parts.volume.clone(), lease.clone()));
        lease.held().await;
        let cluster_id = {
            let (volume, rng) = (volume.clone(), parts.rng.clone());
            let prepare = move || {
                volume.create_dir_all(&fs::FilePath::root())?;
                rootdir::root::prepare(&*volume, &rng)
            };
            master::off_worker(prepare).await??
        };
        parts.znodes.set_cluster_id(&cluster_id)?;
        parts.znodes.set_running(&parts.start_date)?;
        parts.port.set_cluster_id(&cluster_id);
        let roll = roll(&parts, volume.clone(), lease)?;
        parts.port.set_status(Arc::new(StatusService { roll: roll.clone(), settings: told_settings(&parts) }));
        let servers = format!("{}/rs", parts.parent);
        let first = {
            let mut names = parts.coordinator.children(&servers).await?;
            names.sort();
            names
        };
        roll.nodes_are(&first);
        // A server has its node only after a master has let it in.
        let runs_already = !first.is_empty();
        tasks.push(watch_servers(&parts, roll.clone(), servers, first));
        wait_for_servers(&roll, &parts.config, runs_already).await;
        tracing::debug!("reading the znodes and WAL directories of earlier processes");
        let inherited = inherited(&parts, &volume, &roll).await?;
        tracing::debug!("fencing master:store");
        fence_master_store(&volume).await?;
        let logs = DeadLogs::new(volume.clone(), roll.clone(), parts.name.clone(), &parts.config);
        let (master, starting) = Master::prepare(MasterEnv {
            volume,
            clock: parts.clock.clone(),
            config: parts.config.clone(),
            hosts: roll.hosts().into_iter().map(|host| host as Arc<dyn RegionHost>).collect(),
            inherited,
            log_splitter: Arc::new(Splitter(Arc::new(logs))),
            observer: Arc::new(Nodes {
                znodes: parts.znodes.clone(),
                coordinator: parts.coordinator.clone(),
                meta_path: meta_path(&parts),
                next: parts.observer.clone(),
            }),
            racks: Arc::new(Racks::from_config(&parts.config)),
            group_mapping: GroupScript::from_config(&parts.config),
            cluster_id,
            server_name: parts.name.clone(),
            info_port: parts.info_port,
        })
        .await?;
        roll.are_dead(&master.views().servers().1);
        roll.set_master(&master);
        tasks.push(watch_draining(&parts, &master).await?);
        tasks.push(watch_backups(&parts, &master));
        let leader = Leader { master, roll, tasks };
        // Clients are told to come back until it is ready.
        parts.port.set_master(leader.master.handler());
        starting.finish().await?;
        Ok(leader)
    }

    /// The master.
    pub fn master(&self) -> &Arc<Master> {
        &self.master
    }

    /// Names of the region servers that are known and not dead.
    pub fn servers(&self) -> BTreeSet<ServerName> {
        self.roll.names()
    }

    /// The whole cluster is to go down: what a server closes, or had, is opened nowhere from now on. To be said before the node `running` goes.
    pub fn go_down(&self) {
        self.roll.go_down();
    }

    /// Waits until no region server is left, for so long at most: they stop by themselves when the node `running` is gone.
    pub async fn servers_gone(&self, at_most: Duration) {
        let mut ready = self.roll.ready();
        drop(tokio::time::timeout(at_most, ready.wait_for(|count| *count == 0)).await);
    }
}

fn roll(parts: &LeaderParts, volume: Arc<dyn Volume>, lease: Arc<Lease>) -> Result<Arc<Roll>, LeadError> {
    let active_ms = parts.clock.now_ms().0;
    let timeout_ms = parts.config.get(&settings::SERVER_RPC_TIMEOUT_MS);
    let means = Means {
        ids: OrderIds::of_master(u64::try_from(active_ms).unwrap_or_default()),
        active_ms,
        lease,
        files: RegionFiles::new(
            volume,
            &parts.root,
            parts.clock.clone(),
            parts.rng.clone(),
            &parts.config,
            &parts.name,
        )?,
        call_timeout: Duration::from_millis(u64::from(timeout_ms)),
        dialer: parts.dialer.clone(),
        roll: OnceLock::new(),
        for_hbase: OnceLock::new(),
    };
    let max_skew_ms = parts.config.get(&settings::MAX_CLOCK_SKEW_MS);
    let means = Arc::new(means);
    let roll = Arc::new(Roll::new(means.clone(), parts.clock.clone(), max_skew_ms));
    let _only_once = means.roll.set(Arc::downgrade(&roll));
    Ok(roll)
}

/// What HBase's master tells a region server that starts.
fn told_settings(parts: &LeaderParts) -> Vec<(String, String)> {
    let default_fs = parts.config.text("fs.defaultFS").map(str::trim).filter(|text| !text.is_empty());
    let authority = || {
        let (scheme, rest) = parts.root.split_once("://")?;
        Some(format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()))
    };
    let default_fs = default_fs.map(str::to_owned).or_else(authority);
    let mut told = vec![("hbase.rootdir".to_owned(), parts.root.clone())];
    told.extend(default_fs.map(|uri| ("fs.defaultFS".to_owned(), uri)));
    let info_port = parts.info_port.map_or(-1, i32::from);
    told.push(("hbase.master.info.port".to_owned(), info_port.to_string()));
    told
}

fn keep_lease(parts: &LeaderParts, lease: Arc<Lease>, path: String, value: bytes::Bytes) -> JoinHandle<()> {
    let (coordinator, timeout, on_fatal) = (parts.coordinator.clone(), parts.session_timeout, parts.on_fatal.clone());
    tokio::spawn(async move {
        let why = lease.keep(&*coordinator, &path, &value, timeout).await;
        on_fatal(why);
    })
}

fn watch_servers(parts: &LeaderParts, roll: Arc<Roll>, path: String, mut seen: Vec<String>) -> JoinHandle<()> {
    let coordinator = parts.coordinator.clone();
    tokio::spawn(async move {
        // The end of the session is told by who keeps the lease.
        while let Ok(names) = coordinator.children_other_than(&path, seen).await {
            roll.nodes_are(&names);
            seen = names;
        }
    })
}

/// Servers that get no regions: those that an earlier master was told of, and those that others write down. Follows: `DrainingServerTracker`.
async fn watch_draining(parts: &LeaderParts, master: &Arc<Master>) -> Result<JoinHandle<()>, SessionOver> {
    let (coordinator, path) = (parts.coordinator.clone(), format!("{}/draining", parts.parent));
    let mut seen = coordinator.children(&path).await?;
    seen.sort();
    let set = |master: &Master, names: &[String], draining| {
        names.iter().filter_map(|name| name.parse().ok()).for_each(|server| master.set_draining(&server, draining));
    };
    set(master, &seen, true);
    let master = Arc::downgrade(master);
    Ok(tokio::spawn(async move {
        while let Ok(names) = coordinator.children_other_than(&path, seen.clone()).await {
            let Some(master) = master.upgrade() else { return };
            let only_in = |these: &[String], those: &[String]| -> Vec<String> {
                these.iter().filter(|name| !those.contains(name)).cloned().collect()
            };
            set(&master, &only_in(&seen, &names), false);
            set(&master, &only_in(&names, &seen), true);
            seen = names;
        }
    }))
}

/// Masters that wait to lead, of either kind. Follows: `ActiveMasterManager#getBackupMasters`.
fn watch_backups(parts: &LeaderParts, master: &Arc<Master>) -> JoinHandle<()> {
    let (coordinator, path) = (parts.coordinator.clone(), format!("{}/backup-masters", parts.parent));
    let master = Arc::downgrade(master);
    tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Ok(names) = coordinator.children_other_than(&path, seen).await {
            let Some(master) = master.upgrade() else { return };
            let mut backups: Vec<ServerName> = names.iter().filter_map(|name| name.parse().ok()).collect();
            backups.sort();
            master.set_backup_masters(backups);
            seen = names;
        }
    })
}

/// Waits until there are enough; in a cluster that starts also until no more come, lest the first gets all regions. Where an earlier master has led, regions
/// are where they are, and who lives is known from the nodes. Follows: `ServerManager#waitForRegionServers`, which waits for reports in either case.
async fn wait_for_servers(roll: &Roll, config: &Config, runs_already: bool) {
    let at_least = config.get(&settings::MIN_TO_START) as usize;
    let interval = Duration::from_millis(u64::from(config.get(&settings::WAIT_INTERVAL_MS)));
    let timeout = Duration::from_millis(u64::from(config.get(&settings::WAIT_TIMEOUT_MS)));
    let mut ready = roll.ready();
    tracing::info!("waiting for {at_least} region servers");
    let Ok(count) = ready.wait_for(|count| *count >= at_least).await.map(|count| *count) else { return };
    let more = async {
        let mut count = count;
        while let Ok(Ok(())) = tokio::time::timeout(interval, ready.changed()).await {
            let now = *ready.borrow();
            if now <= count {
                break;
            }
            count = now;
        }
    };
    if !runs_already {
        drop(tokio::time::timeout(timeout, more).await);
    }
    tracing::info!("{} region servers are there", roll.hosts().len());
}

fn meta_path(parts: &LeaderParts) -> String {
    format!("{}/meta-region-server", parts.parent)
}

/// Where hbase:meta was, and who is dead: whoever has logs and does not live.
async fn inherited(parts: &LeaderParts, volume: &Arc<dyn Volume>, roll: &Roll) -> Result<Inherited, LeadError> {
    let node = parts.coordinator.value(&meta_path(parts)).await?;
    let listing = volume.clone();
    let entries = master::off_worker(move || rootdir::list_if_exists(&*listing, &rootdir::wals_dir())).await??;
    // After that: a server has its node, and was let in, before it has logs.
    let nodes = parts.coordinator.children(&format!("{}/rs", parts.parent)).await?;
    let mut living = roll.names();
    living.extend(nodes.iter().filter_map(|name| name.parse::<ServerName>().ok()));
    let of_servers = entries.iter().filter(|entry| entry.is_dir).filter_map(|entry| server_of_directory(&entry.name));
    let dead: Vec<ServerName> = of_servers.filter(|server| !living.contains(server)).collect();
    for server in &dead {
        tracing::info!("{server} lives no more and has left logs");
    }
    let path = format!("{}/rsgroup", parts.parent);
    let mut groups = Vec::new();
    for name in parts.coordinator.children(&path).await? {
        let value = parts.coordinator.value(&format!("{path}/{name}")).await?;
        groups.extend(value.as_ref().and_then(strip_prefix));
    }
    let mut meta_replicas = Vec::new();
    for name in parts.coordinator.children(&parts.parent).await? {
        let Some(id) = meta_replica_of(&name) else { continue };
        let value = parts.coordinator.value(&format!("{}/{name}", parts.parent)).await?;
        // One that cannot be read is there: it is opened, or its node is removed.
        let (server, state) =
            value.as_ref().and_then(read_meta_replica).unwrap_or((parts.name.clone(), RegionState::Closed));
        meta_replicas.push((id, server, state));
    }
    let peers = Some(peer_nodes(parts).await?);
    Ok(Inherited { meta_location: node.as_ref().and_then(read_meta_server), meta_replicas, dead, groups, peers })
}

/// The replication peers as their nodes have them.
async fn peer_nodes(parts: &LeaderParts) -> Result<BTreeMap<String, master::PeerNodes>, LeadError> {
    let path = format!("{}/replication/peers", parts.parent);
    let mut peers = BTreeMap::new();
    for id in parts.coordinator.children(&path).await? {
        let config = parts.coordinator.value(&format!("{path}/{id}")).await?;
        let state = parts.coordinator.value(&format!("{path}/{id}/peer-state")).await?;
        let [config, state] = [config, state].map(|value| value.as_ref().and_then(strip_prefix).unwrap_or_default());
        peers.insert(id, master::PeerNodes { config, state });
    }
    Ok(peers)
}
