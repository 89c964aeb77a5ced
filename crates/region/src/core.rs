//! What all parts of an open region share: its names, its stores, the order of its writes, its locks and counts.
//!
//! The parts that do something ([`crate::write`], [`crate::flush`], [`crate::compact`], [`crate::scan`] and so on) borrow it;
//! here is only what several of them ask.

use crate::accounting::MemstoreAccounting;
use crate::error::{RegionError, Result};
use crate::flush_policy::FlushPolicy;
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
use model::{Durability, Mutation, RegionInfo, TableDescriptor};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// Whether the region takes work.
#[derive(Debug, Default)]
pub(crate) struct Serving(AtomicU8);

impl Serving {
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == OPEN
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
    pub counters: Counters,
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
        let state = if self.serving.is_closed() { "closed" } else { "closing" };
        Err(RegionError::NotServing { region: self.info.name_string(), state })
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
