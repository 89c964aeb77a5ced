//! What all parts of an open region share: its names, its stores, the order of its writes, its locks and counts.
//!
//! The parts that do something ([`crate::write`], [`crate::flush`], [`crate::compact`], [`crate::scan`] and so on) borrow it;
//! here is only what several of them ask.

use crate::accounting::MemstoreAccounting;
use crate::backpressure::{self, RegionDebt};
use crate::error::{RegionError, Result};
use crate::flush_policy::FlushPolicy;
use crate::outbox::Outbox;
use crate::replica::ReplicaState;
use crate::row_lock::RowLocks;
use crate::scan::update_readers::ScannerReadPoints;
use crate::sequencer::Sequencer;
use crate::split::SplitPolicy;
use crate::stats::Counters;
use crate::store::Store;
use crate::ticks::RegionTicks;
use crate::{RegionEnv, RegionSettings};
use base::{ReadPoint, SeqId};
use cell::Order;
use fs::FilePath;
use key_statistics::Kind;
use model::{Durability, Mutation, RegionInfo, StoreEngine, TableDescriptor};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Writes that wait for compactions come at this part of what is flushed at the least, before what the number of files makes of it.
const LEAST_OF_FLUSHED: f64 = 0.125;

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;
/// Open, and a read replica that answers no reads for now.
const UNREADABLE: u8 = 3;

/// Whether the region takes work.
#[derive(Debug, Default)]
pub(crate) struct Serving(AtomicU8);

impl Serving {
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == OPEN
    }

    /// Whether it is to be closed, or is.
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.0.load(Ordering::Acquire), CLOSING | CLOSED)
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        self.0.load(Ordering::Acquire) == UNREADABLE
    }

    /// Reads are answered from now on, or not; whether that is new. A region that closes answers none.
    pub(crate) fn set_readable(&self, is_readable: bool) -> bool {
        let (from, to) = if is_readable { (UNREADABLE, OPEN) } else { (OPEN, UNREADABLE) };
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) == CLOSED
    }

    pub(crate) fn set_closing(&self) {
        self.0.store(CLOSING, Ordering::Release);
    }

    pub(crate) fn set_closed(&self) {
        self.0.store(CLOSED, Ordering::Release);
    }
}

/// What the parts of an open region share.
#[derive(Debug)]
pub(crate) struct RegionCore {
    pub info: RegionInfo,
    pub table: Arc<TableDescriptor>,
    pub env: Arc<RegionEnv>,
    pub settings: Arc<RegionSettings>,
    /// In the order of the families' names.
    pub stores: Box<[Store]>,
    pub sequencer: Sequencer,
    pub locks: RowLocks,
    /// Shared by writers from sequence id to memstore; exclusive while memstores are swapped for a flush.
    pub updates: RwLock<()>,
    /// One flush at a time.
    pub flushing: Mutex<()>,
    pub serving: Serving,
    pub table_durability: Durability,
    /// The first sequence id of this opening.
    pub open_seq_id: SeqId,
    /// Of this opening alone; see [`rootdir::temp_dir`].
    pub temp_dir: FilePath,
    pub scanner_read_points: ScannerReadPoints,
    pub split_policy: SplitPolicy,
    pub flush_policy: FlushPolicy,
    pub ticks: RegionTicks,
    pub accounting: MemstoreAccounting,
    pub debt: RegionDebt,
    pub counters: Counters,
    /// What its read replicas elsewhere are to be told, if anybody tells them.
    pub outbox: Option<Outbox>,
    /// Of a read replica: what it was told of its primary's log.
    pub replica: Mutex<ReplicaState>,
}

impl RegionCore {
    /// Rows of the region were read or written, so many; `row` gives the key and the bytes of each, if anybody asks.
    #[inline]
    pub(crate) fn rows_passed<'a>(&self, kind: Kind, count: usize, row: impl Fn(usize) -> (&'a [u8], usize)) {
        self.env.keys.passed(&self.info.table, kind, count, row);
    }

    /// The rows of these mutations were written.
    #[inline]
    pub(crate) fn rows_written(&self, mutations: &[Mutation]) {
        self.rows_passed(Kind::Write, mutations.len(), |at| (&mutations[at].row, mutations[at].cells.bytes().len()));
    }

    /// The encoded name.
    #[inline]
    pub(crate) fn name(&self) -> &Arc<str> {
        self.info.encoded_name()
    }

    /// Order of its cells.
    pub(crate) fn order(&self) -> Order {
        if self.info.table.is_meta() { Order::Meta } else { Order::User }
    }

    /// What a read that starts now may see.
    #[inline]
    pub(crate) fn read_point(&self) -> ReadPoint {
        self.sequencer.read_point()
    }

    /// What every reader to come can see, and every open scanner: what a rewriting of cells keeps the versions of.
    pub(crate) fn smallest_read_point(&self) -> ReadPoint {
        // In this order: a scanner that is opened in between sees no less.
        let read_point = self.read_point();
        self.scanner_read_points.smallest().map_or(read_point, |smallest| smallest.min(read_point))
    }

    #[inline]
    pub(crate) fn store(&self, family: &[u8]) -> Option<&Store> {
        self.stores.iter().find(|store| store.name == family)
    }

    /// Place of a family that is known to exist.
    pub(crate) fn store_index(&self, family: &[u8]) -> usize {
        self.stores.iter().position(|store| store.name == family).expect("families were checked")
    }

    pub(crate) fn no_such_family(&self, family: &[u8]) -> RegionError {
        RegionError::NoSuchColumnFamily {
            family: family.to_vec(),
            region: self.info.name_string(),
            table: self.table.description(),
        }
    }

    /// Refuses work when the region is not serving or has lost a write.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.serving.is_open() {
            return self.sequencer.check();
        }
        Err(self.not_open())
    }

    #[cold]
    fn not_open(&self) -> RegionError {
        if self.serving.is_unreadable() {
            return RegionError::ReadsDisabled(self.name().clone());
        }
        let state = if self.serving.is_closed() { "closed" } else { "closing" };
        RegionError::NotServing { region: self.info.name_string(), state }
    }

    /// As [`RegionCore::check_open`], for what goes on while a read replica answers no reads.
    pub(crate) fn check_not_closing(&self) -> Result<()> {
        if self.serving.is_closing() { Err(self.not_open()) } else { self.sequencer.check() }
    }

    /// Refuses what changes the region where it takes no changes. Follows: `HRegion#checkReadOnly`, `ServerRegionReplicaUtil#isReadOnly`.
    pub(crate) fn check_not_read_only(&self) -> Result<()> {
        if self.table.read_only() || self.info.is_replica() {
            return Err(RegionError::DoNotRetry("region is read only".into()));
        }
        Ok(())
    }

    /// Refuses writes when the region takes none.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.check_not_read_only()?;
        if self.accounting.heap_bytes() > self.blocking_size_bytes() && !self.info.table.is_meta() {
            self.counters.blocked.fetch_add(1, Ordering::Relaxed);
            return Err(RegionError::TooBusy(format!(
                "Over memstore limit={}, regionName={}, server={}",
                human_size(self.blocking_size_bytes()),
                self.name(),
                self.env.server_name
            )));
        }
        Ok(())
    }

    /// How long a write of `bytes` is to wait before it is applied: microseconds, mostly none. Without a debt it costs two loads.
    #[inline]
    pub(crate) fn write_wait_us(&self, bytes: u64) -> u64 {
        let held_bytes = self.accounting.heap_bytes();
        if held_bytes <= self.debt.start_bytes && !self.debt.has_many_files.load(Ordering::Relaxed) {
            return 0;
        }
        let now_us = self.env.clock.monotonic_us();
        self.debt.pace.wait_us(bytes, now_us, || self.write_rate(held_bytes, now_us))
    }

    /// How many bytes may be written in a second; `None`: as many as come.
    fn write_rate(&self, held_bytes: u64, now_us: u64) -> Option<f64> {
        let memory = &self.env.memory;
        let debt = self.debt.debt(held_bytes);
        let sum = self.debt.tell(debt.owed_bytes, &memory.owing_bytes).max(1);
        let flushed = memory.flush_drain.per_second(now_us);
        // Of what is flushed each has a part as large as its debt.
        let share = (debt.owed_bytes as f64 / sum as f64).min(1.0);
        let by_memory = debt.part().and_then(|part| Some(part * share * flushed?));
        let files = memory.compaction_drain.per_second(now_us);
        // Where nobody compacts nobody waits for it: the policy has found nothing worth it among these files.
        let is_compacting = memory.compaction_drain.is_working();
        let by_files = self.part_of_files().filter(|_| is_compacting).and_then(|part| {
            let crowded = memory.crowded_regions.load(Ordering::Relaxed).max(1) as f64;
            let bytes = files.map(|files| files * self.debt.file_bytes() as f64);
            // A compaction of large old files does away with few for long, and says little of those that flushes bring.
            let least = flushed.map(|flushed| flushed * LEAST_OF_FLUSHED);
            Some(part * bytes.into_iter().chain(least).reduce(f64::max)? / crowded)
        });
        match (by_memory, by_files) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn part_of_files(&self) -> Option<f64> {
        if self.info.table.is_meta() || !self.table.compaction_enabled() {
            return None;
        }
        let of_store = |store: &Store| {
            let settings = store.settings.load();
            // Others keep as many as they have windows or stripes, and none of them waits for anything.
            let is_default = store.engine(&settings) == StoreEngine::Default;
            let files = || store.peek().files.len();
            is_default.then(|| backpressure::part_of_files(files(), settings.blocking_store_files)).flatten()
        };
        self.stores.iter().filter_map(of_store).reduce(f64::min)
    }

    /// The files are others than they were.
    pub(crate) fn count_files(&self) {
        let has_many = self.part_of_files().is_some();
        if self.debt.has_many_files.swap(has_many, Ordering::Relaxed) != has_many {
            let crowded = &self.env.memory.crowded_regions;
            if has_many {
                crowded.fetch_add(1, Ordering::Relaxed)
            } else {
                crowded.fetch_sub(1, Ordering::Relaxed)
            };
        }
    }

    /// The region is closed: it owes nothing.
    pub(crate) fn forget_debt(&self) {
        self.debt.tell(0, &self.env.memory.owing_bytes);
        if self.debt.has_many_files.swap(false, Ordering::Relaxed) {
            self.env.memory.crowded_regions.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn check_row(&self, row: &[u8], operation: &'static str) -> Result<()> {
        if self.info.contains(row) {
            return Ok(());
        }
        Err(RegionError::WrongRegion {
            operation,
            region: self.info.name_string(),
            start: self.info.start_key.to_vec(),
            end: self.info.end_key.to_vec(),
            row: row.to_vec(),
        })
    }

    /// Memstore size at which the region wants to be flushed.
    pub(crate) fn flush_size_bytes(&self) -> u64 {
        self.table.flush_size_bytes().unwrap_or(self.settings.flush_size_bytes)
    }

    /// Memstore size above which writes are refused until a flush.
    fn blocking_size_bytes(&self) -> u64 {
        self.flush_size_bytes().saturating_mul(self.settings.block_multiplier)
    }
}

/// As `StringUtils.humanSize`.
fn human_size(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    match units.iter().find(|(shift, _)| bytes >= 1 << shift) {
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => bytes.to_string(),
    }
}
