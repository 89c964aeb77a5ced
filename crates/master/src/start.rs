//! How a master starts: what it reads, in which order it brings up what there is, what it finishes. Follows:
//! `HMaster#finishActiveMasterInitialization`.

use crate::assignment::Assignment;
use crate::balancing::Balancer;
use crate::catalog::{Catalog, newest_hidden_stamp};
use crate::chores;
use crate::cleaner::Cleaner;
use crate::client_locks::ClientLocks;
use crate::cluster::{Cluster, RegionNode, RegionState, TableState};
use crate::files::{Files, off_worker};
use crate::groups::RegionServerGroups;
use crate::hbck::HbckChore;
use crate::healing::Healing;
use crate::host::{Inherited, PeerNodes, RegionHost};
use crate::latch::Latch;
use crate::lifetime::Lifetime;
use crate::locality::Localities;
use crate::locks::{LockSet, Locks, Mode, Resource};
use crate::master::{Master, MasterEnv};
use crate::master_store::log::{Before, StoreLog};
use crate::master_store::{self, StoreError, contents};
use crate::namespaces::Namespaces;
use crate::peers::{Peer, Peers, PeersError};
use crate::procedure::ddl;
use crate::procedure::engine::Parts;
use crate::procedure::engine::store::ProcedureStore;
use crate::procedure::for_hbase::ForHBase;
use crate::procedure::of_hbase;
use crate::procedure::operations::Operations;
use crate::procedure::{Caller, KINDS, ProcedureStoreError, Procedures, Record, Unfinished, table_locks};
use crate::quotas::{self, Quotas};
use crate::resolved::MasterSettings;
use crate::servers::Servers;
use crate::slow_log;
use crate::snapshot_sizes::LastSizes;
use crate::switches::{Switches, SwitchesError};
use crate::tables::Tables;
use crate::{ErrorKind, MasterError, Result, groups, handover, meta, settings, takeover};
use arc_swap::ArcSwap;
use base::Tasks;
use fs::Volume;
use model::region_info::META_ENCODED_NAME;
use model::{RegionInfo, TableDescriptor, TableName};
use parking_lot::RwLock;
use rootdir::descriptor::{self, DescriptorError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Why a master could not start. One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The records of procedures.
    #[error(transparent)]
    Procedures(#[from] ProcedureStoreError),
    /// A table's descriptor.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// The switches.
    #[error(transparent)]
    Switches(#[from] SwitchesError),
    /// The replication peers.
    #[error(transparent)]
    Peers(#[from] PeersError),
    /// The volume.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// The store of HBase's master, or ours.
    #[error(
        "MasterData/data/master/store cannot be read: {0}; move its directories `state` and `proc` away to start with all switches as in a new cluster, and without what HBase's master had begun"
    )]
    Contents(StoreError),
    /// The store that HBase's master would read.
    #[error("cannot write MasterData/data/master/store, without which HBase could not take this directory over: {0}")]
    Store(MasterError),
    /// hbase:meta or hbase:namespace could not be opened, read or written.
    #[error("cannot bring {what} up: {error}")]
    Catalog {
        /// What.
        what: &'static str,
        /// Why.
        error: MasterError,
    },
}

fn catalog_error(what: &'static str) -> impl Fn(MasterError) -> StartError {
    move |error| StartError::Catalog { what, error }
}

/// What is read before anything runs.
struct OnDisk {
    store: ProcedureStore,
    /// Rows of `master:store` as masters before have left them.
    before: Before,
    largest_id: u64,
    records: Vec<Record>,
    switches: Switches,
    peers: BTreeMap<String, Peer>,
    descriptors: Vec<TableDescriptor>,
}

impl OnDisk {
    /// `peer_nodes`: the replication peers as HBase's master keeps them.
    fn read(
        volume: &Arc<dyn Volume>,
        is_cluster: bool,
        peer_nodes: Option<&BTreeMap<String, PeerNodes>>,
    ) -> std::result::Result<OnDisk, StartError> {
        tracing::debug!("reading master:store");
        let contents = contents::read(&**volume).map_err(StartError::Contents)?;
        let (store, records) =
            ProcedureStore::open(Arc::clone(volume), |message| Record::from_message(message, KINDS))?;
        // Before its procedures are ours: some are of peers.
        let peers = match peer_nodes.filter(|_| !contents.of_hbase.is_empty()) {
            Some(nodes) => Peers::take_over(&**volume, nodes).map_err(PeersError::from)?,
            None => Peers::load(&**volume)?,
        };
        let records = of_hbase::take_over(&**volume, &store, records, &contents, is_cluster)?;
        let before = contents.before();
        // Ids of orders are in logs of ours alone.
        let largest_id = if contents.of_hbase.is_empty() { contents.largest_id_in_files } else { before.largest_id };
        let (switches, descriptors) = (Switches::load(&**volume, &contents)?, read_descriptors(&**volume)?);
        // One that is to be taken is begun anew, by who takes it: until then HBase's master may still lead instead, and go on with it.
        let taken_now: BTreeSet<String> = records.iter().filter_map(snapshot_in_work).collect();
        rootdir::snapshot::clear_working(&**volume, |name| taken_now.contains(name))?;
        rootdir::clear_temp(&**volume)?;
        Ok(OnDisk { store, before, largest_id, records, switches, peers, descriptors })
    }
}

/// The name of the snapshot that an unfinished procedure takes.
fn snapshot_in_work(record: &Record) -> Option<String> {
    let locks = record.outcome().is_none().then(|| record.procedure.locks())?;
    locks.into_iter().find_map(|lock| match lock {
        (Resource::Snapshot(name), Mode::Exclusive) => Some(name),
        _ => None,
    })
}

/// A master that is put together, and has not opened or read hbase:meta yet.
pub struct Starting {
    master: Arc<Master>,
    descriptors: Vec<TableDescriptor>,
    unfinished: Vec<Unfinished>,
    inherited: Inherited,
}

impl Starting {
    /// Brings the master up. Ready when it returns.
    ///
    /// # Errors
    /// [`StartError`]; the master has stopped then.
    pub async fn finish(self) -> std::result::Result<(), StartError> {
        let Starting { master, descriptors, unfinished, inherited } = self;
        if let Err(error) = bring_up(&master, descriptors, unfinished, inherited).await {
            // What was begun on the way ends at its next step.
            master.stop();
            return Err(error);
        }
        if !master.in_maintenance_mode {
            chores::start(&master);
            handover::start(&master);
        }
        Ok(())
    }
}

/// Starts a master. Ready when it returns.
pub(crate) async fn start(env: MasterEnv) -> std::result::Result<Arc<Master>, StartError> {
    let (master, starting) = prepare(env).await?;
    starting.finish().await?;
    Ok(master)
}

/// Reads what is on the volume, and puts the master together.
pub(crate) async fn prepare(mut env: MasterEnv) -> std::result::Result<(Arc<Master>, Starting), StartError> {
    let volume = Arc::clone(&env.volume);
    let is_cluster = env.hosts.iter().all(|host| host.is_remote());
    let mut inherited = std::mem::take(&mut env.inherited);
    let peer_nodes = inherited.peers.take();
    let joined = off_worker(move || OnDisk::read(&volume, is_cluster, peer_nodes.as_ref())).await;
    let on_disk = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    let (master, descriptors, unfinished) = assemble(env, on_disk, &inherited);
    takeover::give_up_dead(&master, &inherited, &unfinished);
    let starting = Starting { master: Arc::clone(&master), descriptors, unfinished, inherited };
    Ok((master, starting))
}

/// Puts the parts together.
fn assemble(
    env: MasterEnv,
    on_disk: OnDisk,
    inherited: &Inherited,
) -> (Arc<Master>, Vec<TableDescriptor>, Vec<Unfinished>) {
    let OnDisk { store, before, largest_id, records, switches, peers, descriptors } = on_disk;
    let files = Files::new(Arc::clone(&env.volume));
    let (lifetime, cluster) = (Arc::<Lifetime>::default(), Arc::new(RwLock::new(Cluster::default())));
    let servers = Arc::new(Servers::new(env.hosts));
    let catalog = Arc::new(Catalog::new(Arc::clone(&servers), Arc::clone(&lifetime), Arc::clone(&env.clock)));
    let tables = Arc::new(Tables {
        cluster: Arc::clone(&cluster),
        catalog: Arc::clone(&catalog),
        observer: Arc::clone(&env.observer),
    });
    let log = servers
        .are_remote()
        .then(|| StoreLog::new(env.volume, env.server_name.clone(), &env.config, Arc::clone(&env.clock), before));
    let active_ms = u64::try_from(env.clock.now_ms().0).unwrap_or_default();
    let for_hbase = Arc::new(ForHBase::new(log, active_ms, files.clone(), Arc::clone(&lifetime)));
    let open_slots_count = env.config.get(&settings::OPEN_THREADS) as usize;
    let operations = Arc::<Operations>::default();
    let groups = Arc::new(RegionServerGroups::new(&env.config, &inherited.groups));
    let localities = Arc::new(Localities::new(env.racks));
    let assignment = Arc::new(Assignment {
        cluster: Arc::clone(&cluster),
        servers: Arc::clone(&servers),
        catalog: Arc::clone(&catalog),
        lifetime: Arc::clone(&lifetime),
        clock: Arc::clone(&env.clock),
        slots: Semaphore::new(open_slots_count),
        operations: Arc::clone(&operations),
        observer: Arc::clone(&env.observer),
        groups: Arc::clone(&groups),
        localities: Arc::clone(&localities),
        for_hbase: Arc::clone(&for_hbase),
    });
    let namespaces = Namespaces {
        cluster: Arc::clone(&cluster),
        catalog: Arc::clone(&catalog),
        tables: Arc::clone(&tables),
        assignment: Arc::clone(&assignment),
        files: files.clone(),
        observer: Arc::clone(&env.observer),
    };
    let locks = Arc::<Locks>::default();
    let client_locks = ClientLocks::new(Arc::clone(&locks), Arc::clone(&lifetime));
    let tracer = Arc::<trace::TracerCell>::default();
    let parts = Parts {
        tracer: Arc::clone(&tracer),
        store,
        for_hbase: Arc::clone(&for_hbase),
        largest_id,
        files: files.clone(),
        lifetime: Arc::clone(&lifetime),
        clock: Arc::clone(&env.clock),
        servers: Arc::clone(&servers),
        locks: Arc::clone(&locks),
        operations,
    };
    for_hbase.are_decided(&records);
    let (procedures, unfinished) = Procedures::new(parts, records);
    let peers = Peers::new(peers, files.clone(), Arc::clone(&env.observer));
    let master = Master {
        tracer,
        files,
        lifetime,
        servers,
        log_splitter: env.log_splitter,
        observer: env.observer,
        cluster,
        catalog,
        tables,
        assignment,
        for_hbase,
        namespaces,
        procedures,
        client_locks,
        peers,
        switches,
        quotas: Quotas::new(&env.config),
        groups,
        group_mapping: env.group_mapping,
        normalizer: Arc::default(),
        balancer: Balancer::new(&env.config, &*env.clock),
        localities,
        keeps_slow_log: env.config.get(&rpc::settings::SLOW_LOG_TABLE),
        janitor: tokio::sync::Mutex::new(()),
        catalog_report: parking_lot::Mutex::default(),
        hbck: HbckChore::default(),
        healing: Healing::default(),
        last_sizes: LastSizes::default(),
        cleaner: tokio::sync::Mutex::new(Cleaner::default()),
        old_logs_bytes: AtomicU64::new(0),
        settings: ArcSwap::from_pointee(MasterSettings::from_config(&env.config)),
        open_slots_count,
        started_at: env.clock.now_ms(),
        tasks_now: Tasks::new(Arc::clone(&env.clock)),
        clock: env.clock,
        initialized: AtomicBool::new(false),
        in_maintenance_mode: env.config.get(&settings::MAINTENANCE_MODE),
        meta_loaded: Latch::default(),
        backup_masters: RwLock::default(),
        largest_id_of_hbase: largest_id,
        stored_meta_location: tokio::sync::Mutex::default(),
        cluster_id: env.cluster_id,
        server_name: env.server_name,
        info_port: env.info_port,
    };
    (Arc::new(master), descriptors, unfinished)
}

/// A master that starts waits so long for a topology script.
const RACKS_AT_MOST: Duration = Duration::from_secs(10);

async fn bring_up(
    master: &Arc<Master>,
    descriptors: Vec<TableDescriptor>,
    mut unfinished: Vec<Unfinished>,
    inherited: Inherited,
) -> std::result::Result<(), StartError> {
    tracing::debug!("reading hbase:meta");
    let loaded = takeover::load_meta(master, descriptors, &unfinished, &inherited).await;
    let servers = loaded.map_err(catalog_error("hbase:meta"))?;
    tracing::debug!("beginning the WAL of master:store");
    // Before what it goes on from is moved away.
    while !takeover::is_done(master, master.for_hbase.begin_log().await).await.map_err(StartError::Store)? {}
    tracing::debug!("writing master:store");
    write_store(master, servers).await.map_err(StartError::Store)?;
    *master.stored_meta_location.lock().await = master.servers.meta_location();
    if master.in_maintenance_mode {
        tracing::warn!(
            "hbase.master.maintenance_mode is on: hbase:meta is open for repairs, and no other region is opened. Take the setting away and \
             start again when it is repaired"
        );
        return Ok(());
    }
    tracing::debug!("recovering the regions of dead region servers");
    let crashes = takeover::take_crashes(master, &mut unfinished);
    takeover::recover(master, crashes).await.map_err(catalog_error("the regions of dead servers"))?;
    tracing::debug!("opening hbase:namespace");
    loop {
        let outcome = bring_up_namespaces(master, &mut unfinished).await;
        if takeover::is_done(master, outcome).await.map_err(catalog_error("hbase:namespace"))? {
            break;
        }
    }
    tracing::debug!("resuming unfinished procedures");
    let (later, first): (Vec<Unfinished>, Vec<Unfinished>) =
        unfinished.into_iter().partition(|unfinished| unfinished.record.procedure.needs_open_regions());
    master.procedures.resume(master, first.into_iter().map(|unfinished| (None, unfinished)).collect()).await;
    while !takeover::is_done(master, groups::bring_up(master).await).await.map_err(catalog_error("hbase:rsgroup"))? {}
    tracing::debug!("resolving racks");
    let servers = master.servers.names();
    if tokio::time::timeout(RACKS_AT_MOST, master.localities.find_racks(&servers)).await.is_err() {
        tracing::info!(
            "regions are opened before the racks of all hosts are known: read replicas may share one until the balancer runs"
        );
    }
    tracing::debug!("assigning regions");
    while !takeover::is_done(master, assign_all(master).await).await.map_err(catalog_error("the tables"))? {}
    master.for_hbase.all_arrived().await.map_err(catalog_error("the tables"))?;
    tracing::debug!("loading quotas");
    while !takeover::is_done(master, quotas::bring_up(master).await).await.map_err(catalog_error("hbase:quota"))? {}
    while !takeover::is_done(master, slow_log::bring_up(master).await).await.map_err(catalog_error("hbase:slowlog"))? {}
    // Before a client can ask for the same regions, whom it would otherwise be too late to refuse.
    let lock = |unfinished: &Unfinished| master.procedures.locks.try_lock(unfinished.record.procedure.locks());
    let later: Vec<(Option<LockSet>, Unfinished)> =
        later.into_iter().map(|unfinished| (lock(&unfinished), unfinished)).collect();
    tracing::debug!("the master is initialized");
    master.initialized.store(true, Ordering::SeqCst);
    tell_observer(master);
    // Servers may have come since.
    chores::wake_failed_opens(master);
    if let Err(error) = settle_meta_replicas(master).await {
        tracing::error!(%error, "REGION_REPLICATION of hbase:meta was not set to hbase.meta.replica.count; set it in the shell: alter 'hbase:meta', REGION_REPLICATION => N");
    }
    let background = Arc::clone(master);
    tokio::spawn(async move { background.procedures.resume(&background, later).await });
    Ok(())
}

/// Writes `master:store` as it is to be read by a master of HBase's that comes after this one.
///
/// # Errors
/// hbase:meta is nowhere, or the volume's.
pub(crate) async fn write_store(master: &Master, servers: BTreeSet<String>) -> Result<()> {
    let (server, now) = (master.servers.meta_host()?.server_name(), master.clock.now_ms());
    let (largest_id, log_dir) = (Some(master.largest_id_of_hbase).filter(|id| *id > 0), master.for_hbase.log_dir());
    let write = move |volume: &dyn Volume| {
        let written = master_store::write(volume, &server, &servers, largest_id, log_dir.as_ref(), now);
        let written = written.and_then(|()| Ok(of_hbase::forget(volume)?));
        written.map_err(|error| MasterError::new(ErrorKind::Io, error))
    };
    master.files.run(write).await
}

/// The descriptor of hbase:meta.
pub(crate) fn meta_descriptor(descriptors: &[TableDescriptor]) -> Arc<TableDescriptor> {
    let described = descriptors.iter().find(|table| table.name == TableName::meta()).cloned();
    Arc::new(described.unwrap_or_else(TableDescriptor::meta))
}

/// Reads hbase:meta from the server that has it open. Answers the servers on which it showed regions.
pub(crate) async fn read_meta(
    master: &Arc<Master>,
    (host, open_seq_id): (&dyn RegionHost, u64),
    descriptors: Vec<TableDescriptor>,
    unfinished: &[Unfinished],
    inherited: &Inherited,
) -> Result<BTreeSet<String>> {
    let now = master.clock.now_ms();
    let meta_table = TableName::meta();
    let meta_descriptor = meta_descriptor(&descriptors);
    let cells = host.scan(META_ENCODED_NAME, meta::whole_scan()).await?;
    let content = meta::parse_meta(&cells);
    let servers = meta::servers(&cells);
    drop(cells);
    let newest_hidden = newest_hidden_stamp(host, META_ENCODED_NAME).await?;
    for row in &content.strange_rows {
        tracing::warn!(row, "a row of hbase:meta is neither a region nor a table: it is left alone");
    }
    master.catalog.stamp_after(content.newest_stamp.max(newest_hidden + 1));
    let mut orphans = Vec::new();
    {
        let mut cluster = master.cluster.write();
        cluster.put_table(meta_descriptor, TableState::Enabled);
        let mut node = RegionNode::new(RegionInfo::meta(), RegionState::Open, now);
        node.open_seq_id = Some(open_seq_id);
        node.location = Some(host.server_name());
        cluster.put_region(node);
        for (id, server, state) in inherited.meta_replicas.iter().filter(|_| host.is_remote()) {
            let mut node = RegionNode::new(RegionInfo::meta().replica(*id), *state, now);
            let is_somewhere = matches!(state, RegionState::Open | RegionState::Opening | RegionState::Closing);
            node.location = is_somewhere.then(|| server.clone());
            cluster.put_region(node);
        }
        let states: std::collections::HashMap<_, _> = content.tables.into_iter().collect();
        for table in descriptors.into_iter().filter(|table| table.name != meta_table) {
            let state = states.get(&table.name).copied();
            if state.is_none() && !is_being_made(&table.name, unfinished) {
                orphans.push(table.name.clone());
            }
            if let Some(state) = state {
                cluster.put_table(Arc::new(table), state);
            } else if !is_being_made(&table.name, unfinished) {
                cluster.put_table(Arc::new(table), TableState::Enabled);
            }
        }
        for row in content.regions.into_iter().filter(|row| !row.info.table.is_meta()) {
            // Whatever was open in an earlier run is not open now.
            let state = match row.state {
                // HBase leaves a split parent's state as CLOSED: the region itself says that it was split.
                _ if row.info.split && row.info.offline => RegionState::Split,
                Some(RegionState::Split) => RegionState::Split,
                Some(RegionState::Closed) => RegionState::Closed,
                _ => RegionState::Offline,
            };
            if !cluster.exists(&row.info.table) && !is_being_made(&row.info.table, unfinished) {
                tracing::error!(region = %row.info.name_string(), "hbase:meta has a region of a table without descriptor");
            }
            if row.info.replica_id == 0 && state != RegionState::Split {
                for replica in row.replicas {
                    let mut node = RegionNode::new(replica.info, RegionState::Closed, now);
                    node.open_seq_id = replica.open_seq_id;
                    if host.is_remote() && replica.location.is_some() {
                        (node.state, node.location) = (replica.state.unwrap_or(node.state), replica.location);
                    }
                    cluster.put_region(node);
                }
            }
            let mut node = RegionNode::new(row.info, state, now);
            node.open_seq_id = row.open_seq_id;
            // Unless its server lives in another process.
            if host.is_remote() && node.is_live() && row.location.is_some() {
                (node.state, node.location) = (row.state.unwrap_or(state), row.location);
            }
            node.daughters = row.daughters;
            node.merge_parents = row.merge_parents;
            cluster.put_region(node);
        }
    }
    for table in orphans {
        tracing::warn!(%table, "a table has a descriptor and no state in hbase:meta: taken as enabled");
        master.tables.set_state(&table, TableState::Enabled).await?;
    }
    Ok(servers)
}

async fn bring_up_namespaces(master: &Arc<Master>, unfinished: &mut Vec<Unfinished>) -> Result<()> {
    let table = TableName::namespace_table();
    // An unfinished creation of it goes on before anything else.
    let making = unfinished.iter().position(|unfinished| unfinished.record.procedure.locks() == table_locks(&table));
    if let Some(making) = making {
        let making = unfinished.remove(making);
        master.procedures.resume(master, vec![(None, making)]).await;
    } else if !master.cluster.read().exists(&table) {
        master.cluster.write().put_namespace(table.namespace().to_owned(), Default::default());
        let caller = Caller { user: "basalt".into(), nonce: None };
        let id = ddl::create::submit(master, TableDescriptor::namespace_table(), &[], &caller).await?;
        master.procedures.wait_for(id).await?;
    } else if master.cluster.read().state(&table) == Some(TableState::Enabled) {
        // Its server would have nothing to report of an order to open what is open there, and be asked after a second.
        master.assignment.assign(master.tables.closed_regions(&table)).await?;
    } else {
        ddl::enable::enable(master, &table).await?;
    }
    master.namespaces.load().await
}

/// Opens what should be open and is not; finishes what HBase left half enabled or half disabled.
async fn assign_all(master: &Arc<Master>) -> Result<()> {
    let (regions, replicated, enabling, disabling) = {
        let cluster = master.cluster.read();
        let in_state = |wanted: TableState| -> Vec<TableName> {
            cluster.tables().filter(|(_, state)| *state == wanted).map(|(table, _)| table.name.clone()).collect()
        };
        let serves =
            |table: &TableName| matches!(cluster.state(table), Some(TableState::Enabled | TableState::Enabling));
        let regions: Vec<RegionInfo> = cluster
            .regions()
            .filter(|node| node.is_live() && !matches!(node.state, RegionState::Open | RegionState::FailedOpen))
            .filter(|node| serves(&node.info.table))
            .map(|node| node.info.clone())
            .collect();
        // Those that are open already: perhaps a read replica is not.
        let has_replicas = |node: &&RegionNode| {
            let wants = cluster.descriptor(&node.info.table).is_some_and(|table| table.region_replication() > 1);
            wants || cluster.replicas_of(&node.info).next().is_some()
        };
        let open = cluster.regions().filter(|node| node.is_live() && node.state == RegionState::Open);
        let replicated: Vec<RegionInfo> =
            open.filter(|node| serves(&node.info.table)).filter(has_replicas).map(|node| node.info.clone()).collect();
        (regions, replicated, in_state(TableState::Enabling), in_state(TableState::Disabling))
    };
    master.assignment.assign(regions).await?;
    master.assignment.settle_replicas(replicated).await?;
    for table in enabling {
        master.tables.set_state(&table, TableState::Enabled).await?;
    }
    for table in disabling {
        ddl::disable::disable(master, &table).await?;
    }
    Ok(())
}

/// Has hbase:meta altered where the setting asks for another number of read replicas; does not wait for it. Follows:
/// `HMaster#finishActiveMasterInitialization`.
async fn settle_meta_replicas(master: &Arc<Master>) -> Result<()> {
    let Some(wanted) = master.settings().meta_replica_count else { return Ok(()) };
    let meta = TableName::meta();
    let (table, _) = master.tables.existing(&meta)?;
    if table.region_replication() == wanted {
        return Ok(());
    }
    tracing::info!(
        from = table.region_replication(),
        to = wanted,
        "altering REGION_REPLICATION of hbase:meta, as hbase.meta.replica.count is set"
    );
    let caller = Caller { user: master.server_name.to_string(), nonce: None };
    let change = |old: &TableDescriptor| {
        let mut new = old.clone();
        new.attributes.insert("REGION_REPLICATION".into(), wanted.to_string().into());
        Ok(new)
    };
    ddl::modify::submit(master, &meta, true, &caller, change).await.map(drop)
}

fn tell_observer(master: &Master) {
    let (tables, namespaces) = {
        let cluster = master.cluster.read();
        let tables: Vec<_> = cluster.tables().map(|(table, state)| (table.name.clone(), state)).collect();
        let namespaces: Vec<_> = cluster.namespaces().map(|(name, c)| (name.to_owned(), c.clone())).collect();
        (tables, namespaces)
    };
    for (table, state) in tables {
        master.observer.table_state(&table, Some(state));
    }
    for (name, configuration) in namespaces {
        master.observer.namespace(&name, Some(&configuration));
    }
    master.peers.tell_observer();
}

/// Whether an unfinished procedure makes or unmakes the table, so that it is no orphan.
fn is_being_made(table: &TableName, unfinished: &[Unfinished]) -> bool {
    unfinished.iter().any(|unfinished| {
        let held = unfinished.record.procedure.locks();
        table_locks(table).iter().all(|lock| held.contains(lock))
    })
}

/// Every table's descriptor. One that is damaged is told of, and its table is not served.
fn read_descriptors(volume: &dyn Volume) -> std::result::Result<Vec<TableDescriptor>, StartError> {
    let mut descriptors = Vec::new();
    for table in descriptor::list_tables(volume)? {
        match descriptor::read(volume, &table) {
            Ok(Some(descriptor)) => descriptors.push(descriptor),
            Ok(None) => tracing::warn!(%table, "a table's directory has no descriptor: it is not served"),
            Err(error @ DescriptorError::Damaged { .. }) if !table.is_system() => {
                tracing::error!(%table, %error, "the table is not served");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(descriptors)
}
