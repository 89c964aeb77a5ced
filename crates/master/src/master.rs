//! The master: what it is made of, how it starts, what it does by itself.

use crate::cleaner::Cleaner;
use crate::cluster::{Cluster, RegionNode, RegionState, TableState};
use crate::host::{Observer, RegionHost};
use crate::locks::{LockSet, Locks};
use crate::master_store::{self, StoreError};
use crate::meta_writer::MetaWriter;
use crate::procedure::{Journal, Procedures, Record};
use crate::resolved::MasterSettings;
use crate::servers::Servers;
use crate::switches::{Switches, SwitchesError};
use crate::{ErrorKind, HostError, MasterError, Result, meta, settings};
use arc_swap::ArcSwap;
use base::{Clock, Config, TimestampMs};
use fs::Volume;
use model::region_info::META_ENCODED_NAME;
use model::{RegionInfo, ServerName, TableDescriptor, TableName};
use parking_lot::{Mutex, RwLock};
use rootdir::descriptor::{self, DescriptorError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// What a master is made with.
pub struct MasterEnv {
    /// The root directory, prepared by [`rootdir::root::prepare`]; logs of earlier lives are split.
    pub volume: Arc<dyn Volume>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Settings.
    pub config: Config,
    /// The region servers.
    pub hosts: Vec<Arc<dyn RegionHost>>,
    /// Told of changes.
    pub observer: Arc<dyn Observer>,
    /// From [`rootdir::root::prepare`].
    pub cluster_id: String,
    /// The master's own name.
    pub server_name: ServerName,
    /// Port of its pages, if it has any.
    pub info_port: Option<u16>,
}

/// Why a master could not start. One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The records of procedures.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A table's descriptor.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// The switches.
    #[error(transparent)]
    Switches(#[from] SwitchesError),
    /// The volume.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// The store that HBase's master would read.
    #[error("cannot write MasterData/data/master/store, without which HBase could not take this directory over: {0}")]
    Store(#[from] StoreError),
    /// hbase:meta or hbase:namespace could not be opened, read or written.
    #[error("cannot bring {what} up: {error}")]
    Catalog {
        /// What.
        what: &'static str,
        /// Why.
        error: MasterError,
    },
}

pub use crate::procedure::JournalError;

/// The master of a standalone server.
pub struct Master {
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) cluster: RwLock<Cluster>,
    pub(crate) meta: MetaWriter,
    pub(crate) journal: Arc<Journal>,
    pub(crate) procedures: Procedures,
    pub(crate) locks: Arc<Locks>,
    settings: ArcSwap<MasterSettings>,
    pub(crate) switches: Switches,
    pub(crate) switching: tokio::sync::Mutex<()>,
    pub(crate) open_slots: Semaphore,
    pub(crate) janitor: tokio::sync::Mutex<()>,
    pub(crate) cleaner: tokio::sync::Mutex<Cleaner>,
    pub(crate) last_stamp: Mutex<i64>,
    pub(crate) started_at: TimestampMs,
    cluster_id: String,
    server_name: ServerName,
    info_port: Option<u16>,
    open_slots_count: usize,
    initialized: AtomicBool,
    stopping: watch::Sender<bool>,
}

impl std::fmt::Debug for Master {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Master").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

fn catalog(what: &'static str) -> impl Fn(MasterError) -> StartError {
    move |error| StartError::Catalog { what, error }
}

impl Master {
    /// Starts: opens hbase:meta and hbase:namespace, finishes what was begun, opens every region of every enabled
    /// table. Ready when it returns.
    ///
    /// # Errors
    /// A root directory or catalog that cannot be used.
    pub async fn start(env: MasterEnv) -> std::result::Result<Arc<Master>, StartError> {
        let volume = Arc::clone(&env.volume);
        let read = move || -> std::result::Result<_, StartError> {
            let (journal, records) = Journal::open(Arc::clone(&volume))?;
            Ok((journal, records, Switches::load(&*volume)?, read_descriptors(&*volume)?))
        };
        let joined = off_worker(read).await;
        let (journal, records, switches, descriptors) =
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
        let servers = Arc::new(Servers::new(env.hosts));
        let open_slots_count = env.config.get(&settings::OPEN_THREADS) as usize;
        let master = Arc::new(Master {
            volume: env.volume,
            meta: MetaWriter::start(Arc::clone(&servers)),
            servers,
            observer: env.observer,
            cluster: RwLock::new(Cluster::default()),
            journal: Arc::new(journal),
            procedures: Procedures::default(),
            locks: Arc::default(),
            settings: ArcSwap::from_pointee(MasterSettings::from_config(&env.config)),
            switches,
            switching: tokio::sync::Mutex::new(()),
            open_slots: Semaphore::new(open_slots_count),
            janitor: tokio::sync::Mutex::new(()),
            cleaner: tokio::sync::Mutex::new(Cleaner::default()),
            last_stamp: Mutex::new(0),
            started_at: env.clock.now_ms(),
            clock: env.clock,
            cluster_id: env.cluster_id,
            server_name: env.server_name,
            info_port: env.info_port,
            open_slots_count,
            initialized: AtomicBool::new(false),
            stopping: watch::Sender::new(false),
        });
        master.procedures.restore(&records);
        let unfinished: Vec<Record> = records.into_iter().filter(|record| record.outcome.is_none()).collect();
        if let Err(error) = master.bring_up(descriptors, unfinished).await {
            // What was begun on the way ends at its next step.
            master.stop();
            return Err(error);
        }
        master.start_chores();
        Ok(master)
    }

    // ---- start, step by step

    async fn bring_up(
        self: &Arc<Self>,
        descriptors: Vec<TableDescriptor>,
        unfinished: Vec<Record>,
    ) -> std::result::Result<(), StartError> {
        let servers = self.load_meta(descriptors, &unfinished).await.map_err(catalog("hbase:meta"))?;
        self.write_store(servers).await?;
        self.bring_up_namespaces(&unfinished).await.map_err(catalog("hbase:namespace"))?;
        let (later, first): (Vec<Record>, Vec<Record>) =
            unfinished.into_iter().partition(|record| record.work.needs_open_regions());
        self.resume(first).await;
        self.assign_all().await.map_err(catalog("the tables"))?;
        // Before a client can ask for the same regions, whom it would otherwise be too late to refuse.
        let later: Vec<_> =
            later.into_iter().map(|record| (self.locks.try_lock(record.work.locks()), record)).collect();
        self.initialized.store(true, Ordering::SeqCst);
        self.tell_observer();
        let background = Arc::clone(self);
        tokio::spawn(async move { background.go_on_with(later).await });
        Ok(())
    }

    async fn write_store(&self, servers: BTreeSet<String>) -> std::result::Result<(), StartError> {
        let server = self.servers.meta_host().map_err(MasterError::from).map_err(catalog("hbase:meta"))?.server_name();
        let (volume, now) = (Arc::clone(&self.volume), self.clock.now_ms());
        let written = off_worker(move || master_store::write(&*volume, &server, &servers, now)).await;
        Ok(written.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?)
    }

    /// Answers the servers on which hbase:meta showed regions.
    async fn load_meta(
        self: &Arc<Self>,
        descriptors: Vec<TableDescriptor>,
        unfinished: &[Record],
    ) -> Result<BTreeSet<String>> {
        let now = self.clock.now_ms();
        let meta_table = TableName::meta();
        let described = descriptors.iter().find(|table| table.name == meta_table).cloned();
        let meta_descriptor = Arc::new(described.unwrap_or_else(TableDescriptor::meta));
        let host = self.servers.choose(None, |_| 0)?;
        let open_seq_id = host.open_region(RegionInfo::meta(), Arc::clone(&meta_descriptor)).await?;
        self.servers.set_meta_location(host.server_name());
        let cells = host.scan(META_ENCODED_NAME, meta::whole_scan()).await?;
        let content = meta::parse_meta(&cells);
        let servers = meta::servers(&cells);
        drop(cells);
        let newest_hidden = self.newest_hidden_stamp(META_ENCODED_NAME).await?;
        for row in &content.strange_rows {
            tracing::warn!(row, "a row of hbase:meta is neither a region nor a table: it is left alone");
        }
        self.stamp_after(content.newest_stamp.max(newest_hidden + 1));
        let mut orphans = Vec::new();
        {
            let mut cluster = self.cluster.write();
            cluster.put_table(meta_descriptor, TableState::Enabled);
            let mut node = RegionNode::new(RegionInfo::meta(), RegionState::Open, now);
            node.open_seq_id = Some(open_seq_id);
            node.location = Some(host.server_name());
            cluster.put_region(node);
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
                // Whatever was open in an earlier life is not open now.
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
                let mut node = RegionNode::new(row.info, state, now);
                node.open_seq_id = row.open_seq_id;
                node.daughters = row.daughters;
                node.merge_parents = row.merge_parents;
                cluster.put_region(node);
            }
        }
        for table in orphans {
            tracing::warn!(%table, "a table has a descriptor and no state in hbase:meta: taken as enabled");
            self.set_table_state(&table, TableState::Enabled).await?;
        }
        Ok(servers)
    }

    /// The newest stamp in a region of the catalog. What was deleted later than anything that is shown would hide what is written now, should
    /// the clock have gone back.
    pub(crate) async fn newest_hidden_stamp(&self, region: &str) -> Result<i64> {
        let all = model::Scan { raw: true, ..meta::whole_scan() };
        let cells = self.host_of(region)?.scan(region, all).await?;
        Ok(cells.iter_from(0).map(|cell| cell.timestamp()).max().unwrap_or(0))
    }

    async fn bring_up_namespaces(self: &Arc<Self>, unfinished: &[Record]) -> Result<()> {
        let table = TableName::namespace_table();
        // An unfinished creation of it goes on before anything else.
        let making = unfinished.iter().find(|record| record.work.locks() == crate::procedure::table_locks(&table));
        if let Some(record) = making {
            let locks = self.locks.lock(record.work.locks()).await;
            self.run_to_end(record.clone()).await;
            drop(locks);
        } else if !self.cluster.read().exists(&table) {
            self.cluster.write().put_namespace(table.namespace().to_owned(), Default::default());
            let caller = crate::Caller { user: "basalt".into(), nonce: None };
            let id = self.create_table(TableDescriptor::namespace_table(), &[], &caller).await?;
            self.wait_for(id).await?;
        } else if self.cluster.read().state(&table) == Some(TableState::Enabled) {
            self.assign(self.live_regions(&table)).await?;
        } else {
            self.enable_table_steps(&table).await?;
        }
        self.load_namespaces().await
    }

    /// Finishes what an earlier life began. Procedures that hold the same locks keep their order: locks are given in the
    /// order in which they were asked for, and asked for here one after the other.
    async fn resume(self: &Arc<Self>, records: Vec<Record>) {
        self.go_on_with(records.into_iter().map(|record| (None, record)).collect()).await;
    }

    /// The same of procedures whose locks may be held already.
    async fn go_on_with(self: &Arc<Self>, records: Vec<(Option<LockSet>, Record)>) {
        let mut running = JoinSet::new();
        for (held, record) in records {
            if self.procedures.get(record.id).is_some_and(|known| known.outcome.is_some()) {
                continue;
            }
            tracing::info!(pid = record.id, class = record.work.class_name(), "resuming procedure");
            let master = Arc::clone(self);
            // One record per lock at a time, by rule 3 of procedures: this does not wait.
            let locks = match held {
                Some(locks) => locks,
                None => self.locks.lock(record.work.locks()).await,
            };
            running.spawn(async move {
                master.run_to_end(record).await;
                drop(locks);
            });
        }
        while running.join_next().await.is_some() {}
    }

    /// Opens what should be open and is not; finishes what HBase left half enabled or half disabled.
    async fn assign_all(self: &Arc<Self>) -> Result<()> {
        let (regions, enabling, disabling) = {
            let cluster = self.cluster.read();
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
            (regions, in_state(TableState::Enabling), in_state(TableState::Disabling))
        };
        self.assign(regions).await?;
        for table in enabling {
            self.set_table_state(&table, TableState::Enabled).await?;
        }
        for table in disabling {
            self.disable_table_steps(&table).await?;
        }
        Ok(())
    }

    fn tell_observer(&self) {
        let (tables, namespaces) = {
            let cluster = self.cluster.read();
            let tables: Vec<_> = cluster.tables().map(|(table, state)| (table.name.clone(), state)).collect();
            let namespaces: Vec<_> = cluster.namespaces().map(|(name, c)| (name.to_owned(), c.clone())).collect();
            (tables, namespaces)
        };
        for (table, state) in tables {
            self.observer.table_state(&table, Some(state));
        }
        for (name, configuration) in namespaces {
            self.observer.namespace(&name, Some(&configuration));
        }
    }

    // ---- by itself

    fn start_chores(self: &Arc<Self>) {
        self.chore(
            |settings| settings.janitor_interval,
            |master| async move {
                if master.switches.janitor()
                    && let Err(error) = master.run_catalog_janitor().await
                {
                    tracing::warn!(%error, "the catalog janitor will try again");
                }
            },
        );
        self.chore(
            |settings| settings.cleaner_interval,
            |master| async move {
                if master.switches.cleaner()
                    && let Err(error) = master.run_cleaners().await
                    && !error.is_stopped()
                {
                    tracing::warn!(%error, "the cleaners will try again");
                }
            },
        );
        self.chore(
            |settings| settings.retry_failed_open,
            |master| async move {
                master.retry_failed_opens().await;
            },
        );
        self.chore(|_| Duration::from_secs(60), |master| async move { master.evict_procedures().await });
    }

    /// Runs `work` again and again until the master stops; the pause is between two runs.
    fn chore<F>(
        self: &Arc<Self>,
        every: impl Fn(&MasterSettings) -> Duration + Send + 'static,
        work: impl Fn(Arc<Master>) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send,
    {
        let master = Arc::downgrade(self);
        let mut stopping = self.stopping.subscribe();
        tokio::spawn(async move {
            loop {
                let Some(pause) = master.upgrade().map(|master| every(&master.settings())) else { return };
                tokio::select! {
                    biased;
                    _ = stopping.wait_for(|stopping| *stopping) => return,
                    () = tokio::time::sleep(pause) => {}
                }
                let Some(master) = master.upgrade() else { return };
                work(master).await;
            }
        });
    }

    async fn retry_failed_opens(self: &Arc<Self>) {
        let failed: Vec<RegionInfo> = {
            let cluster = self.cluster.read();
            let failed = |node: &&RegionNode| {
                node.state == RegionState::FailedOpen && cluster.state(&node.info.table) == Some(TableState::Enabled)
            };
            cluster.regions().filter(failed).map(|node| node.info.clone()).collect()
        };
        for info in failed {
            let _locks = self.locks.lock(crate::procedure::region_locks(std::slice::from_ref(&info))).await;
            let still = self.cluster.read().region(info.encoded_name()).map(|node| node.state);
            if still == Some(RegionState::FailedOpen)
                && let Err(error) = self.assign(vec![info.clone()]).await
            {
                // Half way: it must be found again here.
                self.note_state(&info, RegionState::FailedOpen);
                tracing::warn!(%error, "cannot record the state of a region");
            }
        }
    }

    async fn evict_procedures(&self) {
        let ttl_ms = i64::try_from(self.settings().procedure_ttl_ms).unwrap_or(i64::MAX);
        let before = self.clock.now_ms().0.saturating_sub(ttl_ms);
        let gone = self.procedures.evict(TimestampMs(before));
        let journal = Arc::clone(&self.journal);
        let forgotten = self.blocking(move |_| gone.iter().try_for_each(|id| Ok(journal.forget(*id)?)));
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, "cannot remove the record of a finished procedure");
        }
    }

    // ---- small things

    /// The server that has the region, by the region's encoded name.
    ///
    /// # Errors
    /// It is not open anywhere, or its server is not online.
    pub(crate) fn host_of(&self, region: &str) -> std::result::Result<Arc<dyn RegionHost>, HostError> {
        if region == META_ENCODED_NAME {
            return self.servers.meta_host();
        }
        let location = self.cluster.read().region(region).and_then(|node| node.location.clone());
        let location = location.ok_or_else(|| HostError::Failed(format!("region {region} is not open anywhere")))?;
        self.servers.get(&location)
    }

    /// The settings of now.
    pub(crate) fn settings(&self) -> arc_swap::Guard<Arc<MasterSettings>> {
        self.settings.load()
    }

    /// What may change while the master runs is as `config` says from now on.
    pub fn update_configuration(&self, config: &Config) {
        self.settings.store(Arc::new(MasterSettings::from_config(config)));
    }

    /// Runs `work` on the blocking pool, from now on; the future waits for it.
    pub(crate) fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Volume) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send + 'static {
        let volume = Arc::clone(&self.volume);
        let running = off_worker(move || work(&*volume));
        async move {
            running.await.unwrap_or_else(|panic| Err(MasterError::do_not_retry(format!("internal error: {panic}"))))
        }
    }

    fn stopped_error() -> MasterError {
        MasterError::new(ErrorKind::Stopped, "the master is stopping")
    }

    /// # Errors
    /// The master is stopping.
    pub(crate) fn check_running(&self) -> Result<()> {
        if *self.stopping.borrow() { Err(Master::stopped_error()) } else { Ok(()) }
    }

    /// Waits for `event`.
    ///
    /// # Errors
    /// The master stops first.
    pub(crate) async fn unless_stopped(&self, event: impl Future<Output = ()>) -> Result<()> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => Err(Master::stopped_error()),
            () = event => Ok(()),
        }
    }

    /// Waits for so long.
    ///
    /// # Errors
    /// The master stops first.
    pub(crate) async fn pause(&self, time: Duration) -> Result<()> {
        self.unless_stopped(tokio::time::sleep(time)).await
    }

    /// Stops: nothing new is begun, what runs stops at its next step and goes on at the next start. Regions are the
    /// region server's to close.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Whether it is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Whether every region had its turn.
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::SeqCst)
    }

    pub(crate) fn is_bootstrapping(&self) -> bool {
        !self.is_initialized()
    }

    pub(crate) fn open_slots_count(&self) -> usize {
        self.open_slots_count
    }

    /// The cluster's id.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The master's own name.
    pub fn server_name(&self) -> &ServerName {
        &self.server_name
    }

    /// Port of its pages, if it has any.
    pub fn info_port(&self) -> Option<u16> {
        self.info_port
    }

    /// Procedures that have not ended.
    pub fn unfinished_procedures(&self) -> usize {
        self.procedures.records().iter().filter(|record| record.outcome.is_none()).count()
    }

    /// A look at the tables and regions.
    pub fn cluster(&self) -> parking_lot::RwLockReadGuard<'_, Cluster> {
        self.cluster.read()
    }

    /// The procedures that run or ended lately.
    pub fn procedures(&self) -> &Procedures {
        &self.procedures
    }
}

/// Runs `work` on the blocking pool, from now on; the future waits for it. On a runtime of one thread (the simulator) it has
/// run when this returns, so that one seed gives one run.
fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = std::result::Result<T, tokio::task::JoinError>> + Send + 'static {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let (done, running) = if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        (Some(work()), None)
    } else {
        (None, Some(tokio::task::spawn_blocking(work)))
    };
    async move {
        match (done, running) {
            (Some(done), _) => Ok(done),
            (None, Some(running)) => running.await,
            (None, None) => unreachable!("it was begun one way or the other"),
        }
    }
}

/// Whether an unfinished procedure makes or unmakes the table, so that it is no orphan.
fn is_being_made(table: &TableName, unfinished: &[Record]) -> bool {
    let locks = crate::procedure::table_locks(table);
    unfinished.iter().any(|record| record.work.locks() == locks)
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
