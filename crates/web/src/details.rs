//! What the pages beside the status page show: plain values, gathered when somebody asks.

use key_statistics::{Grid, Measure};
use model::TableName;
use std::collections::BTreeMap;

/// A procedure of the master.
#[derive(Clone, Debug, Default)]
pub struct Procedure {
    /// Its id.
    pub id: u64,
    /// The procedure that waits for it.
    pub parent: Option<u64>,
    /// HBase's class, without its package.
    pub class: String,
    /// `RUNNABLE`, `WAITING`, `SUCCESS` and so on.
    pub state: String,
    /// Who asked for it.
    pub owner: String,
    /// When.
    pub submitted_ms: i64,
    /// When its state was last recorded.
    pub updated_ms: i64,
    /// Why it failed.
    pub error: Option<String>,
}

/// Something that a procedure, or a client, has locked.
#[derive(Clone, Debug)]
pub struct Lock {
    /// `table`, `region` and so on.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Nobody else may have it.
    pub is_exclusive: bool,
}

/// A snapshot that was taken.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Of which table.
    pub table: String,
    /// `FLUSH`, `SKIPFLUSH`, `DISABLED`.
    pub kind: String,
    /// When it was taken.
    pub created_ms: i64,
    /// Seconds of life; 0: no limit.
    pub ttl_seconds: i64,
    /// Who took it.
    pub owner: String,
    /// Version of the format that it is kept in.
    pub version: i32,
}

/// What the store files of snapshots take, each file counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSizes {
    /// Files that are there,
    pub files: u64,
    /// and those of them that are in the archive.
    pub archived_files: u64,
    /// Bytes of files that a table still has.
    pub shared_bytes: u64,
    /// Bytes of files of large values that are still where those are.
    pub mob_bytes: u64,
    /// Bytes of files in the archive,
    pub archived_bytes: u64,
    /// and those of them that no other snapshot needs, nor a table made of one.
    pub own_archived_bytes: u64,
    /// Files that are missing,
    pub missing: u64,
    /// and files of another length than they had.
    pub corrupted: u64,
}

impl SnapshotSizes {
    /// Bytes of all files.
    pub fn total_bytes(&self) -> u64 {
        self.shared_bytes + self.mob_bytes + self.archived_bytes
    }
}

/// What all snapshots take.
#[derive(Clone, Debug, Default)]
pub struct MeasuredSnapshots {
    /// When that was measured.
    pub at_ms: i64,
    /// Each by its name; of one that cannot be read, why.
    pub each: BTreeMap<String, Result<SnapshotSizes, String>>,
    /// All together: a file of several counts once.
    pub all: SnapshotSizes,
    /// Whether all of them were measured: there may be more than is looked at.
    pub is_whole: bool,
}

/// What somebody may use.
#[derive(Clone, Debug)]
pub struct Quota {
    /// Of whom: a user, a table, a namespace.
    pub subject: String,
    /// How much, in words.
    pub limits: String,
}

/// A call that took long, or was answered with much.
#[derive(Clone, Debug, Default)]
pub struct SlowCall {
    /// Which server has answered it; empty: this one.
    pub server: String,
    /// When it came.
    pub at_ms: i64,
    /// How long it took.
    pub took_ms: i64,
    /// Bytes of its answer.
    pub response_bytes: i64,
    /// Where it came from.
    pub client: String,
    /// For whom.
    pub user: String,
    /// Its method.
    pub method: String,
    /// Its region.
    pub region: String,
    /// What it asked for.
    pub details: String,
    /// It counts as slow,
    pub is_slow: bool,
    /// as large, or as both.
    pub is_large: bool,
}

/// A flush or compaction that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// `flush`, `compaction`, `major compaction`.
    pub what: &'static str,
    /// Encoded name of its region.
    pub region: String,
    /// Its table.
    pub table: String,
    /// Cells that it has gone through and is to go through, where that is known.
    pub cells: Option<(u64, u64)>,
}

/// A store file.
#[derive(Clone, Debug, Default)]
pub struct StoreFile {
    /// Its family.
    pub family: String,
    /// Its name.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Cells.
    pub cells: u64,
    /// When it was made, if it says so.
    pub created_ms: Option<i64>,
    /// Whether it shows part of another region's file.
    pub is_reference: bool,
    /// Bytes of its index,
    pub index_bytes: u64,
    /// and of its Bloom filter.
    pub bloom_bytes: u64,
}

/// A thread of the process.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// The kernel's number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// `R`unning, `S`leeping, waiting for a `D`isk, as the kernel says.
    pub state: String,
    /// Processor time so far.
    pub cpu_ms: u64,
    /// Where in the kernel it waits, if that may be known.
    pub waits_in: String,
}

/// What the catalog janitor, the hbck chore and the self-healing found, and what became of it.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// When the hbck chore last ran; 0: not yet.
    pub hbck_ended_ms: i64,
    /// What they found: the kind, and what.
    pub findings: Vec<(&'static str, String)>,
}

/// What of a JVM's standard beans a process without a JVM can say of itself and its machine. Zero, or empty: not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runtime {
    /// Wall clock at the start of the process.
    pub started_ms: i64,
    /// Memory of the process that lies in the machine's.
    pub resident_bytes: u64,
    /// Memory that has been promised to the process, whether it lies anywhere or not.
    pub virtual_bytes: u64,
    /// What stands for a JVM's heap.
    pub heap: Heap,
    /// The process's number.
    pub pid: u32,
    /// What it was started with, its own name left out.
    pub arguments: Vec<String>,
    /// Threads now.
    pub threads: u64,
    /// Processor time so far.
    pub cpu_ns: u64,
    /// Descriptors that are open,
    pub open_files: u64,
    /// and that may be.
    pub max_files: u64,
    /// Runnable tasks of the machine, over the last minute.
    pub load_average: f64,
    /// Processors that the process may use.
    pub processors: u64,
    /// Memory of the machine,
    pub machine_bytes: u64,
    /// what of it is free,
    pub free_bytes: u64,
    /// its swap space,
    pub swap_bytes: u64,
    /// and what of that is free.
    pub free_swap_bytes: u64,
    /// The machine, as the system calls itself.
    pub machine: Machine,
}

/// Memory that a JVM would have in its heap. A process with a memory ledger: what the ledger has accounts of, out of its budget, so that used to
/// max says how full the server is; what the process has besides (code, stacks, what the allocator holds in reserve) is what a JVM has outside
/// of its heap. One without: all that is resident, out of what the machine or the cgroup allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Bytes in use,
    pub used_bytes: u64,
    /// and the most that may be.
    pub max_bytes: u64,
    /// Resident bytes that are not of the heap.
    pub outside_bytes: u64,
}

impl Heap {
    /// Of a process of which so much is resident: by the ledger's total and budget, or without one by what it may take.
    pub fn of(resident_bytes: u64, ledger: Option<(u64, u64)>, limit_bytes: u64) -> Heap {
        match ledger {
            Some((used_bytes, max_bytes)) => {
                Heap { used_bytes, max_bytes, outside_bytes: resident_bytes.saturating_sub(used_bytes) }
            }
            None => Heap { used_bytes: resident_bytes, max_bytes: limit_bytes, outside_bytes: 0 },
        }
    }
}

/// A machine and its system. Follows: `uname`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its host's name.
    pub host: String,
    /// The system,
    pub system: String,
    /// its version,
    pub release: String,
    /// and the kind of processor, in the words of Java: `amd64`, `aarch64`.
    pub processor: String,
}

/// Events of which a process can be profiled: those that any kernel and machine has.
pub const PROFILE_EVENTS: [&str; 3] = ["cpu-clock", "page-faults", "context-switches"];

/// A profile that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRequest {
    /// One of [`PROFILE_EVENTS`].
    pub event: String,
    /// How long it is recorded.
    pub seconds: u32,
}

impl ProfileRequest {
    /// Longest recording.
    pub const MAX_SECONDS: u32 = 60;
}

/// A profile that was recorded, or that was to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its number.
    pub id: u64,
    /// Wall clock when it was begun.
    pub begun_ms: i64,
    /// What was asked for.
    pub request: ProfileRequest,
    /// Samples in it.
    pub samples: u64,
    /// Why there is none.
    pub error: Option<String>,
}

/// Profiles of a process.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    /// The one that is being recorded.
    pub recording: Option<ProfileRequest>,
    /// Those of before, the newest first.
    pub done: Vec<Profile>,
}

/// What any process can say of itself. Every method may take a moment, and none waits for a client.
pub trait ProcessDetails: Send + Sync {
    /// Its threads.
    fn threads(&self) -> Vec<Thread>;

    /// Memory, threads, descriptors, the machine.
    fn runtime(&self) -> Runtime;

    /// The newest lines of the log, oldest first.
    fn log_lines(&self) -> Vec<String>;

    /// Which parts log from which level on.
    fn log_filter(&self) -> String;

    /// Has a part log from another level on; answers the whole filter.
    ///
    /// # Errors
    /// A sentence: no such level, no such name.
    fn set_log_level(&self, part: &str, level: &str) -> Result<String, String>;

    /// Profiles of the process.
    fn profiles(&self) -> Profiles;

    /// Begins to record one.
    ///
    /// # Errors
    /// A sentence: one is being recorded already, or nothing like that can be.
    fn start_profile(&self, request: ProfileRequest) -> Result<(), String>;

    /// A profile's flame graph, an SVG document.
    fn profile(&self, id: u64) -> Option<String>;

    /// What a form must bring along that changes something: known to who was shown a page of this process.
    fn token(&self) -> &str;
}

/// Where the details of a server come from. Every method may take a moment, and none waits for a client.
pub trait Details: Send + Sync {
    /// Procedures that run or ended lately.
    fn procedures(&self) -> Vec<Procedure>;

    /// What is locked.
    fn locks(&self) -> Vec<Lock>;

    /// Snapshots, by name.
    ///
    /// # Errors
    /// A sentence.
    fn snapshots(&self) -> Result<Vec<Snapshot>, String>;

    /// The same, and what they take; `None`: it is being measured, and is to be asked for again.
    ///
    /// # Errors
    /// A sentence.
    fn snapshot_sizes(&self) -> Result<(Vec<Snapshot>, Option<MeasuredSnapshots>), String>;

    /// Quotas that were set.
    ///
    /// # Errors
    /// A sentence.
    fn quotas(&self) -> Result<Vec<Quota>, String>;

    /// Slow and large calls that this process keeps, the newest first.
    fn slow_calls(&self) -> Vec<SlowCall>;

    /// The same of all servers that this process can ask, and a sentence for each that did not answer. May wait.
    fn slow_calls_everywhere(&self) -> (Vec<SlowCall>, Vec<String>) {
        (self.slow_calls(), Vec::new())
    }

    /// Flushes and compactions that run.
    fn running(&self) -> Vec<Running>;

    /// A table's descriptor as the shell writes it: the table's own line, and one for each family.
    fn table(&self, name: &str) -> Option<Vec<String>>;

    /// The files of a region by its encoded or whole name; `None`: it is not open here.
    fn store_files(&self, region: &str) -> Option<Vec<StoreFile>>;

    /// What checks have found.
    fn reports(&self) -> Reports;

    /// Tables of whose keys something is known.
    fn tables_with_keys(&self) -> Vec<TableName>;

    /// The load of a table's keys from `span_ms` ago until now; `None`: nothing is gathered here.
    fn key_grid(&self, table: &TableName, measure: Measure, span_ms: i64) -> Option<Grid>;

    /// The coordination nodes, as text.
    fn znodes(&self) -> String;
}
