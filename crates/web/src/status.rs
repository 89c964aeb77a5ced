//! What the pages are drawn from: plain values, filled in by whoever owns the servers.

use crate::details::{Details, ProcessDetails};
use model::status::{LoadTotals, RegionLoad};
use model::{RegionInfo, ServerName, TableName};

/// Who answers for the process. Methods are called from several threads, and often; none may wait for a disk.
pub trait StatusSource: Send + Sync + 'static {
    /// Everything, now. Cost: proportional to the number of regions.
    fn status(&self) -> Status;

    /// The counters alone, for rates; asked every few seconds.
    fn requests(&self) -> Requests {
        self.status().requests
    }

    /// Every metric now; `now_ms` is the wall clock. May walk over all regions.
    fn metrics(&self, now_ms: i64) -> Vec<base::metrics::Sample>;

    /// Settings in force, in any order.
    fn configuration(&self) -> Vec<Property> {
        Vec::new()
    }

    /// What the pages beside the status page show of the server; `None`: nothing yet, or nothing at all where this is a gateway.
    fn details(&self) -> Option<&dyn Details> {
        None
    }

    /// What the pages show of the process; `None`: nothing yet.
    fn process(&self) -> Option<&dyn ProcessDetails> {
        None
    }

    /// What this is where it is no server: its pages are fewer, and its status is this.
    fn gateway(&self) -> Option<Gateway> {
        None
    }

    /// Whether this is a region server whose master is another process: the pages of what is the master's are not there.
    fn is_region_server_alone(&self) -> bool {
        false
    }

    /// Whether this is a master whose region servers are other processes: the pages of what only they have are not there.
    fn is_master_alone(&self) -> bool {
        false
    }

    /// Whether clients are being served.
    fn is_serving(&self) -> bool {
        true
    }
}

/// A gateway at one moment.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Which: it says what its pages are called.
    pub kind: GatewayKind,
    /// What there is to know, in words, in the order in which it is shown.
    pub facts: Vec<(&'static str, String)>,
}

/// Kinds of gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayKind {
    /// REST: `/rest.jsp`, `/processRest.jsp`.
    Rest,
    /// Thrift 1 and Thrift 2: `/thrift.jsp`, `/processThrift.jsp`.
    Thrift,
}

impl GatewayKind {
    /// The path of the page that shows its status.
    pub fn status_path(self) -> &'static str {
        match self {
            GatewayKind::Rest => "/rest.jsp",
            GatewayKind::Thrift => "/thrift.jsp",
        }
    }

    /// The path of the page that shows its process.
    pub fn process_path(self) -> &'static str {
        match self {
            GatewayKind::Rest => "/processRest.jsp",
            GatewayKind::Thrift => "/processThrift.jsp",
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            GatewayKind::Rest => "REST",
            GatewayKind::Thrift => "Thrift",
        }
    }
}

/// A process at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// Version of the program, as shown.
    pub version: String,
    /// The master's name.
    pub master: ServerName,
    /// The region server's name.
    pub region_server: ServerName,
    /// Every live region server, this one included.
    pub live_servers: Vec<ServerName>,
    /// Region servers to which nothing is moved: decommissioned.
    pub draining_servers: Vec<ServerName>,
    /// Region servers that are known to have died.
    pub dead_servers: Vec<ServerName>,
    /// The cluster's id.
    pub cluster_id: String,
    /// `host:port` list of the coordination service.
    pub zookeeper_quorum: String,
    /// This machine's name.
    pub host_name: String,
    /// Wall clock at the start of the process.
    pub started_ms: i64,
    /// Wall clock when it began to serve; 0 while it does not.
    pub initialized_ms: i64,
    /// Where the data is.
    pub data_directory: String,
    /// What listens where.
    pub ports: Vec<Port>,
    /// Calls since the start.
    pub requests: Requests,
    /// Memory.
    pub memory: Memory,
    /// Who holds how much of the memory budget.
    pub holders: Vec<Holder>,
    /// The disks beside the root directory's.
    pub volumes: Vec<Volume>,
    /// The block cache.
    pub block_cache: BlockCache,
    /// The write-ahead log.
    pub log: Log,
    /// Background work that waits.
    pub queues: Queues,
    /// Open connections and calls.
    pub rpc: Rpc,
    /// Tables, in the order in which they are shown.
    pub tables: Vec<Table>,
    /// Regions open here, in the order in which they are shown.
    pub regions: Vec<Region>,
    /// Regions on their way.
    pub in_transition: Vec<InTransition>,
    /// What went wrong lately, newest first.
    pub problems: Vec<Problem>,
    /// What a master sees whose region servers are other processes; `None` where all is one process.
    pub cluster: Option<Cluster>,
}

/// A cluster as its master sees it.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The live region servers, in the order in which they are shown.
    pub servers: Vec<Server>,
    /// Masters that wait to lead, by name.
    pub backup_masters: Vec<ServerName>,
    /// Whether the balancer is switched on.
    pub balancer_on: bool,
    /// What the balancer did last.
    pub last_balance: Option<Balance>,
    /// Procedures that have not ended: their ids, and what they do.
    pub procedures: Vec<(u64, String)>,
    /// The groups of region servers, by name; `None` where there are none, or they are not known yet.
    pub groups: Option<Vec<ServerGroup>>,
}

/// A group of region servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerGroup {
    /// Its name.
    pub name: String,
    /// `host:port` of its servers, online or not.
    pub servers: Vec<String>,
    /// Its tables.
    pub tables: Vec<TableName>,
    /// What is configured for it.
    pub configuration: Vec<(String, String)>,
}

/// A region server as it reported last.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name.
    pub name: ServerName,
    /// Whether it gets no regions.
    pub is_draining: bool,
    /// Sums over its regions.
    pub load: LoadTotals,
    /// Memory in use, and to be used at most.
    pub memory_bytes: (u64, u64),
}

/// A run of the balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// When it ended, by the wall clock.
    pub at_ms: i64,
    /// Moves that were worth it.
    pub calculated: u64,
    /// Moves that were begun.
    pub executed: u64,
}

impl Status {
    /// A process about which nothing is known but its version and this.
    pub fn unknown(version: &str, started_ms: i64) -> Status {
        let nobody = || ServerName::new("localhost", 0, 0);
        Status {
            version: version.to_owned(),
            master: nobody(),
            region_server: nobody(),
            live_servers: Vec::new(),
            draining_servers: Vec::new(),
            dead_servers: Vec::new(),
            cluster_id: String::new(),
            zookeeper_quorum: String::new(),
            host_name: "localhost".to_owned(),
            started_ms,
            initialized_ms: 0,
            data_directory: String::new(),
            ports: Vec::new(),
            requests: Requests::default(),
            memory: Memory::default(),
            block_cache: BlockCache::default(),
            log: Log::default(),
            holders: Vec::new(),
            volumes: Vec::new(),
            queues: Queues::default(),
            rpc: Rpc::default(),
            tables: Vec::new(),
            regions: Vec::new(),
            in_transition: Vec::new(),
            problems: Vec::new(),
            cluster: None,
        }
    }
}

/// Something that listens.
#[derive(Clone, Debug)]
pub struct Port {
    /// What it is, for people: "master".
    pub name: &'static str,
    /// `address:port`.
    pub address: String,
}

/// Calls and rows since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// All calls.
    pub total: u64,
    /// Rows read.
    pub reads: u64,
    /// Rows that a filter dropped.
    pub filtered_reads: u64,
    /// Rows written.
    pub writes: u64,
}

/// The one memory budget and who uses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// For memstores and block cache together.
    pub budget_bytes: u64,
    /// In all memstores.
    pub memstore_bytes: u64,
    /// At which writes are held back; 0 when not known.
    pub memstore_limit_bytes: u64,
    /// Of the whole process, as the operating system sees it; 0 when not known.
    pub resident_bytes: u64,
}

/// A line of the memory ledger.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// Who, as in metrics: small letters and underscores.
    pub name: &'static str,
    /// Held now.
    pub held_bytes: u64,
    /// Most held at any moment.
    pub highest_bytes: u64,
    /// May be held now; `None` without a limit.
    pub cap_bytes: Option<u64>,
}

/// A disk beside the root directory's.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its directory.
    pub place: String,
    /// Its tier, and that one's class.
    pub tier: String,
    /// Bytes of files on it.
    pub used_bytes: u64,
    /// Bytes that it has left; `None` when there is no telling.
    pub free_bytes: Option<u64>,
    /// What ninety-nine of a hundred syncs of the last minute took no longer than, in microseconds; `None` without any.
    pub sync_p99_us: Option<u64>,
    /// How it is, as a sentence.
    pub condition: String,
    /// Whether that is as it should be.
    pub is_well: bool,
}

/// The block cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockCache {
    /// May be held.
    pub capacity_bytes: u64,
    /// Is held.
    pub used_bytes: u64,
    /// Blocks held.
    pub blocks: u64,
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Blocks pushed out by others.
    pub evicted: u64,
}

/// The write-ahead log. Counters are since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log {
    /// Files that hold unflushed edits, the current one included.
    pub files: u64,
    /// Their bytes; 0 when not known.
    pub files_bytes: u64,
    /// Entries appended.
    pub entries: u64,
    /// Bytes appended.
    pub bytes: u64,
    /// Syncs done.
    pub syncs: u64,
    /// Microseconds spent in them.
    pub sync_us: u64,
    /// The longest of them.
    pub max_sync_us: u64,
    /// Files begun.
    pub rolls: u64,
    /// Files left because a write or sync failed.
    pub rescues: u64,
    /// Appended and not yet synced.
    pub waiting_bytes: u64,
    /// Set while the disk takes nothing.
    pub stalled: bool,
}

/// Background work that waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queues {
    /// Flushes.
    pub flushes: u64,
    /// Compactions of few bytes.
    pub small_compactions: u64,
    /// Compactions of many bytes.
    pub large_compactions: u64,
    /// Splits.
    pub splits: u64,
}

/// Calls in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rpc {
    /// Connections.
    pub connections: u64,
    /// Calls that were read and wait.
    pub queued_calls: u64,
    /// Bytes of the calls that were read and are not answered.
    pub queued_bytes: u64,
    /// Calls being carried out.
    pub active_calls: u64,
    /// Scanners that clients hold.
    pub open_scanners: u64,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: TableName,
    /// `ENABLED`, `DISABLED`, `ENABLING`, `DISABLING`.
    pub state: &'static str,
    /// Names of its families.
    pub families: Vec<String>,
}

/// A region that is open here.
#[derive(Clone, Debug)]
pub struct Region {
    /// What it is.
    pub info: RegionInfo,
    /// What it holds and does.
    pub load: RegionLoad,
}

/// A region on its way from one state to another.
#[derive(Clone, Debug)]
pub struct InTransition {
    /// Its printable name.
    pub region: String,
    /// Where it is: `OPENING`, `SPLITTING`.
    pub state: String,
    /// Since when.
    pub since_ms: i64,
}

/// Something that went wrong.
#[derive(Clone, Debug)]
pub struct Problem {
    /// When.
    pub at_ms: i64,
    /// What, and what to do about it.
    pub text: String,
}

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its key.
    pub key: String,
    /// Its value, as text.
    pub value: String,
    /// Where it was set: `hbase-default.xml`, `hbase-site.xml`, `command line`.
    pub source: &'static str,
}
