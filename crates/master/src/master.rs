//! The master: what it is made of.

use crate::assignment::Assignment;
use crate::balancing::Balancer;
use crate::catalog::Catalog;
use crate::chores;
use crate::cleaner::Cleaner;
use crate::client_locks::ClientLocks;
use crate::cluster::Cluster;
use crate::consistency::CatalogReport;
use crate::files::Files;
use crate::groups::{GroupMapping, RegionServerGroups};
use crate::hbck::HbckChore;
use crate::healing::Healing;
use crate::host::{Inherited, LogSplitter, Observer, RegionHost};
use crate::lifetime::Lifetime;
use crate::locality::{Localities, RackMapping};
use crate::namespaces::Namespaces;
use crate::normalizer::Normalizer;
use crate::peers::Peers;
use crate::procedure::Procedures;
use crate::procedure::for_hbase::ForHBase;
use crate::quotas::Quotas;
use crate::resolved::MasterSettings;
use crate::servers::Servers;
use crate::snapshot_sizes::LastSizes;
use crate::start::{self, StartError, Starting};
use crate::switches::Switches;
use crate::tables::Tables;
use arc_swap::ArcSwap;
use base::{Clock, Config, Tasks, TimestampMs};
use fs::Volume;
use model::ServerName;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    /// What is known of servers that were there before this master.
    pub inherited: Inherited,
    /// Recovers what the logs of a server hold that crashes while this master runs.
    pub log_splitter: Arc<dyn LogSplitter>,
    /// Told of changes.
    pub observer: Arc<dyn Observer>,
    /// Says where machines stand.
    pub racks: Arc<dyn RackMapping>,
    /// Says to which groups of region servers new tables belong.
    pub group_mapping: Arc<dyn GroupMapping>,
    /// From [`rootdir::root::prepare`].
    pub cluster_id: String,
    /// The master's own name.
    pub server_name: ServerName,
    /// Port of its pages, if it has any.
    pub info_port: Option<u16>,
}

/// The master: its parts, each of which does one thing. What clients ask for is in `admin.rs`.
pub struct Master {
    pub(crate) tracer: Arc<trace::TracerCell>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) files: Files,
    pub(crate) lifetime: Arc<Lifetime>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) log_splitter: Arc<dyn LogSplitter>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) cluster: Arc<RwLock<Cluster>>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) for_hbase: Arc<ForHBase>,
    pub(crate) namespaces: Namespaces,
    pub(crate) procedures: Arc<Procedures>,
    pub(crate) client_locks: ClientLocks,
    pub(crate) peers: Peers,
    pub(crate) switches: Switches,
    pub(crate) quotas: Quotas,
    pub(crate) groups: Arc<RegionServerGroups>,
    pub(crate) group_mapping: Arc<dyn GroupMapping>,
    pub(crate) normalizer: Arc<Normalizer>,
    pub(crate) balancer: Balancer,
    pub(crate) localities: Arc<Localities>,
    /// Whether there is to be a table hbase:slowlog.
    pub(crate) keeps_slow_log: bool,
    /// Held by a run of the catalog janitor.
    pub(crate) janitor: tokio::sync::Mutex<()>,
    /// What the catalog janitor found last; `None` before its first run.
    pub(crate) catalog_report: parking_lot::Mutex<Option<Arc<CatalogReport>>>,
    pub(crate) hbck: HbckChore,
    pub(crate) healing: Healing,
    pub(crate) last_sizes: LastSizes,
    /// Held by a run of the cleaners.
    pub(crate) cleaner: tokio::sync::Mutex<Cleaner>,
    /// Bytes of logs in `oldWALs` when the cleaner last looked.
    pub(crate) old_logs_bytes: AtomicU64,
    pub(crate) settings: ArcSwap<MasterSettings>,
    pub(crate) open_slots_count: usize,
    pub(crate) started_at: TimestampMs,
    /// Snapshots that are taken, restored and cloned, for who looks at them.
    pub(crate) tasks_now: Tasks,
    pub(crate) initialized: AtomicBool,
    /// Started for repairs: it never becomes initialized.
    pub(crate) in_maintenance_mode: bool,
    /// Whether the picture has what hbase:meta says.
    pub(crate) meta_loaded: crate::latch::Latch,
    pub(crate) cluster_id: String,
    /// Masters that wait to lead, by name.
    pub(crate) backup_masters: parking_lot::RwLock<Vec<ServerName>>,
    /// The largest id of a procedure that HBase's master has given; 0 when it gave none.
    pub(crate) largest_id_of_hbase: u64,
    /// Where `master:store` says that hbase:meta is.
    pub(crate) stored_meta_location: tokio::sync::Mutex<Option<ServerName>>,
    pub(crate) server_name: ServerName,
    pub(crate) info_port: Option<u16>,
}

impl std::fmt::Debug for Master {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Master").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl Master {
    /// Starts: opens hbase:meta and hbase:namespace, finishes what was begun, opens every region of every enabled
    /// table. Ready when it returns.
    ///
    /// # Errors
    /// A root directory or catalog that cannot be used.
    pub async fn start(env: MasterEnv) -> std::result::Result<Arc<Master>, StartError> {
        start::start(env).await
    }

    /// As [`Master::start`], in two steps: what region servers report while it starts may be told to the master that is returned.
    ///
    /// # Errors
    /// A root directory that cannot be used.
    pub async fn prepare(env: MasterEnv) -> std::result::Result<(Arc<Master>, Starting), StartError> {
        start::prepare(env).await
    }

    /// From now on procedures are traced by `tracer`, too. Only the first counts.
    pub fn trace_by(&self, tracer: Arc<trace::Tracer>) {
        self.tracer.set(tracer);
    }

    /// The settings of now.
    pub(crate) fn settings(&self) -> arc_swap::Guard<Arc<MasterSettings>> {
        self.settings.load()
    }

    /// What may change while the master runs is as `config` says from now on.
    pub fn update_configuration(self: &Arc<Self>, config: &Config) {
        self.settings.store(Arc::new(MasterSettings::from_config(config)));
        self.groups.update_configuration(config);
        // Perhaps regions may be opened now where they could not.
        chores::wake_failed_opens(self);
    }

    /// Stops: nothing new is begun, what runs stops at its next step and goes on at the next start. Regions are the
    /// region server's to close.
    pub fn stop(&self) {
        self.lifetime.stop();
    }

    /// Whether it is stopping.
    pub fn is_stopping(&self) -> bool {
        self.lifetime.is_stopping()
    }

    /// Whether every region had its turn.
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::SeqCst)
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

    /// The tables and regions, as they are now.
    pub fn cluster(&self) -> parking_lot::RwLockReadGuard<'_, Cluster> {
        self.cluster.read()
    }
}
