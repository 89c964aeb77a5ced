//! A region: one key range of a table, open on this server. Opening and closing, and what reads and writes share.
//!
//! Follows: `HRegion`.

use crate::accounting::MemstoreAccounting;
use crate::error::{RegionError, Result};
use crate::replay::{RecoveredEdits, Replayed};
use crate::row_lock::RowLocks;
use crate::sequencer::Sequencer;
use crate::stats::Counters;
use crate::store::Store;
use crate::ticks::{self, Moment};
use crate::{RegionEnv, RegionSettings};
use base::{ReadPoint, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType, Order};
use fs::FilePath;
use model::{Durability, Nonce, RegionInfo, TableDescriptor};
use parking_lot::{Mutex, RwLock};
use proto::pb;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use wal::marker::{METAFAMILY, Marker, row_for_region};
use wal::{EntryKey, Ticket};

/// What to open.
#[derive(Debug, Clone)]
pub struct OpenRegion {
    /// Which region.
    pub info: RegionInfo,
    /// Its table.
    pub table: Arc<TableDescriptor>,
    /// Where.
    pub env: Arc<RegionEnv>,
}

/// A nonce that replayed edits carried: its operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredNonce {
    /// The nonce.
    pub nonce: Nonce,
    /// When its entry was written (milliseconds).
    pub write_time_ms: i64,
}

/// How a region is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseMode {
    /// Write the memstores to files first.
    Flush,
    /// Leave everything as it is: the log will be replayed.
    Abort,
}

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// An open region. Shared between threads; see the crate's header.
#[derive(Debug)]
pub struct Region {
    info: RegionInfo,
    table: Arc<TableDescriptor>,
    env: Arc<RegionEnv>,
    pub(crate) settings: Arc<RegionSettings>,
    /// In the order of the families' names.
    pub(crate) stores: Box<[Store]>,
    pub(crate) sequencer: Sequencer,
    pub(crate) locks: RowLocks,
    /// Shared by writers from sequence id to memstore; exclusive while memstores are swapped for a flush.
    pub(crate) updates: RwLock<()>,
    /// One flush at a time.
    pub(crate) flushing: Mutex<()>,
    state: AtomicU8,
    pub(crate) table_durability: Durability,
    open_seq_id: SeqId,
    /// Of this opening alone; see [`rootdir::temp_dir`].
    pub(crate) temp_dir: FilePath,
    recovered_nonces: Mutex<Vec<RecoveredNonce>>,
    /// No LATEST is stamped earlier, though the clock may step back.
    last_stamp: AtomicI64,
    /// No tick that a row of this region must look out for is later.
    pub(crate) newest_tick: AtomicI64,
    /// Of the table's name, for [`ticks::RowKey`].
    pub(crate) table_hash: u64,
    pub(crate) accounting: MemstoreAccounting,
    pub(crate) counters: Counters,
}

impl Region {
    /// Writes the directory of a new region, durably. May be repeated.
    ///
    /// # Errors
    /// When the volume fails.
    pub fn create(env: &RegionEnv, info: &RegionInfo, table: &TableDescriptor) -> Result<()> {
        rootdir::create_region_dir_durably(&*env.volume, info, table)
            .map_err(|e| RegionError::volume(info.encoded_name(), e))
    }

    /// Opens a region: its files, then what recovered edits hold beyond them. An empty region costs a listing of its
    /// directory, and a sync and a listing of each family's; nothing is written.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged.
    pub fn open(open: OpenRegion) -> Result<Arc<Region>> {
        let OpenRegion { info, table, env } = open;
        let name = info.encoded_name().clone();
        let volume_error = |e| RegionError::volume(&name, e);
        let dir = rootdir::region_dir(&info);
        let entries = match env.volume.list(&dir) {
            Ok(entries) => entries,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(volume_error(error)),
        };
        if !entries.iter().any(|entry| entry.name == rootdir::region_dir::REGION_INFO_FILE) {
            rootdir::create_region_dir_durably(&*env.volume, &info, &table).map_err(volume_error)?;
        }
        if entries.iter().any(|entry| entry.name == rootdir::paths::TEMP) {
            env.volume.remove_dir_all(&dir.join(rootdir::paths::TEMP)).map_err(volume_error)?;
        }
        let names = entries.iter().map(|entry| entry.name.as_str());
        let loaded = crate::bulk_load::finish_interrupted(&*env.volume, &info, &table, names);
        let entries = match loaded.map_err(volume_error)? {
            true => env.volume.list(&dir).map_err(volume_error)?,
            false => entries,
        };
        let settings = env.settings.with_overrides(table.overrides(), |what| {
            tracing::warn!(
                "descriptor of table {}: {what}; the server's value holds until the table is altered",
                info.table
            );
        });
        let mut stores = Vec::with_capacity(table.families.len());
        for family in table.families.keys() {
            let family_dir = rootdir::family_name(family);
            let exists = entries.iter().any(|entry| entry.is_dir && entry.name == family_dir);
            stores.push(Store::open(&env, &info, &table, family, &settings, exists)?);
        }
        let max_in_files = stores.iter().map(Store::max_flushed).max().unwrap_or(SeqId(0));
        let has_edits = entries.iter().any(|entry| entry.is_dir && entry.name == rootdir::recovered_edits::DIR);
        let edits = RecoveredEdits::find(&env, &info, has_edits)?;
        let last = max_in_files.max(edits.max_seq_id);
        let open_seq_id = SeqId(last.0 + 1);
        let region = Arc::new(Region {
            table_durability: table.durability(),
            settings,
            stores: stores.into_boxed_slice(),
            sequencer: Sequencer::new(name.clone(), last),
            locks: RowLocks::default(),
            updates: RwLock::new(()),
            flushing: Mutex::new(()),
            state: AtomicU8::new(OPEN),
            open_seq_id,
            temp_dir: rootdir::temp_dir(&info, &env.server_name, open_seq_id),
            recovered_nonces: Mutex::new(Vec::new()),
            last_stamp: AtomicI64::new(0),
            newest_tick: AtomicI64::new(env.ticks.newest()),
            table_hash: ticks::table_hash(info.table.as_str()),
            accounting: MemstoreAccounting::new(&env.memory, env.clock.now_ms().0),
            counters: Counters::default(),
            info,
            table,
            env,
        });
        if region.env.volume.capabilities().shared {
            region.create_temp_dirs().map_err(volume_error)?;
        }
        let event = pb::region_event_descriptor::EventType::RegionOpen;
        let replayed = region.replay(edits).and_then(|replayed| {
            region.append_marker(&region.event_marker(event))?;
            Ok(replayed)
        });
        let Replayed { nonces, kept } = replayed.map_err(|error| {
            region.accounting.forget();
            // The log has entries under these, and the next attempt perhaps nothing that says so.
            region.env.log.note_used_seq_id(region.name(), region.sequencer.last_seq_id());
            match error {
                // Nobody was told of anything: a file that stays holds what the logs hold, and the next opening takes it for what it is.
                RegionError::RollbackFailed { region, source, .. } => RegionError::Volume { region, source },
                other => other,
            }
        })?;
        *region.recovered_nonces.lock() = nonces;
        if let Some(lowest) = kept {
            region.keep_inherited(lowest);
        }
        Ok(region)
    }

    /// Which region.
    pub fn info(&self) -> &RegionInfo {
        &self.info
    }

    /// Its encoded name.
    pub fn name(&self) -> &Arc<str> {
        self.info.encoded_name()
    }

    /// Its table.
    pub fn table(&self) -> &Arc<TableDescriptor> {
        &self.table
    }

    /// The server's settings under what its table says.
    pub fn settings(&self) -> &RegionSettings {
        &self.settings
    }

    /// What it was opened with.
    pub fn env(&self) -> &Arc<RegionEnv> {
        &self.env
    }

    /// The first sequence id of this opening (`seqnumDuringOpen`).
    pub fn open_seq_id(&self) -> SeqId {
        self.open_seq_id
    }

    /// The nonces that replayed edits carried; they are given once.
    pub fn recovered_nonces(&self) -> Vec<RecoveredNonce> {
        std::mem::take(&mut self.recovered_nonces.lock())
    }

    /// What a read that starts now may see.
    pub fn read_point(&self) -> ReadPoint {
        self.sequencer.read_point()
    }

    /// Whether it takes no new work.
    pub fn is_closing(&self) -> bool {
        self.state.load(Ordering::Acquire) != OPEN
    }

    /// Order of its cells.
    pub fn order(&self) -> Order {
        if self.info.table.is_meta() { Order::Meta } else { Order::User }
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
            table: self.info.table.to_string(),
        }
    }

    /// The moment of a write that begins now.
    pub(crate) fn moment(&self) -> Moment {
        let clock = self.env.clock.now_ms().0;
        let mut moment = Moment::of(clock, self.last_stamp.fetch_max(clock, Ordering::Relaxed));
        if self.info.table.is_system() {
            // The server writes them itself, in its turn, and never often.
            moment.limit = i64::MAX;
        }
        moment
    }

    /// Refuses work when the region is not serving or has lost a write.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        let state = match self.state.load(Ordering::Acquire) {
            OPEN => return self.sequencer.check(),
            CLOSING => "closing",
            _ => "closed",
        };
        Err(RegionError::NotServing { region: self.info.name_string(), state })
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.table.read_only() {
            return Err(RegionError::DoNotRetry("region is read only".into()));
        }
        if self.is_above_blocking_size() && !self.info.table.is_meta() {
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

    /// Memory held by the memstores.
    pub fn memstore_bytes(&self) -> u64 {
        self.accounting.heap_bytes()
    }

    /// Bytes of the cells in the memstores.
    pub fn memstore_data_bytes(&self) -> u64 {
        self.accounting.data_bytes()
    }

    /// Memstore size at which the region wants to be flushed.
    pub fn flush_size_bytes(&self) -> u64 {
        self.table.flush_size_bytes().unwrap_or(self.settings.flush_size_bytes)
    }

    fn blocking_size_bytes(&self) -> u64 {
        self.flush_size_bytes().saturating_mul(self.settings.block_multiplier)
    }

    /// Whether writes are refused until a flush.
    pub fn is_above_blocking_size(&self) -> bool {
        self.memstore_bytes() > self.blocking_size_bytes()
    }

    /// Milliseconds stamp of the oldest unflushed edit; `None` when everything is in files.
    pub fn oldest_edit_ms(&self) -> Option<i64> {
        self.accounting.oldest_edit_ms()
    }

    /// Puts a marker into the log; it takes a sequence id that is visible at once.
    pub(crate) fn append_marker(&self, marker: &Marker) -> Result<(SeqId, Ticket)> {
        let now = self.env.clock.now_ms();
        let mut run = CellBuffer::new();
        marker.write(row_for_region(&self.info.start_key), now.0, &mut run);
        let turn = self.sequencer.turn();
        let key = EntryKey::new(self.name(), self.info.table.as_str(), turn.seq_id(), now, &[]);
        let appended = self.env.log.append(&key, run.bytes(), run.len());
        turn.marked(appended).map_err(|e| RegionError::log(self.name(), e))
    }

    /// Puts an entry into the log that only carries a nonce of an earlier run, so that another crash does not forget it.
    pub(crate) fn append_nonce(&self, recovered: &RecoveredNonce) -> Result<Ticket> {
        let row = row_for_region(&self.info.start_key);
        let mut run = CellBuffer::new();
        let spec = CellSpec {
            row,
            family: METAFAMILY,
            qualifier: wal::marker::NONCE,
            timestamp: recovered.write_time_ms,
            type_code: CellType::Put.code(),
            value: b"",
            tags: b"",
        };
        run.push_spec(&spec, SeqId(0));
        let turn = self.sequencer.turn();
        let write_time = TimestampMs(recovered.write_time_ms);
        let mut key = EntryKey::new(self.name(), self.info.table.as_str(), turn.seq_id(), write_time, &[]);
        key.nonce = Some((recovered.nonce.group, recovered.nonce.number));
        let appended = self.env.log.append(&key, run.bytes(), run.len());
        turn.marked(appended).map(|(_, ticket)| ticket).map_err(|e| RegionError::log(self.name(), e))
    }

    fn event_marker(&self, event: pb::region_event_descriptor::EventType) -> Marker {
        let stores = self
            .stores
            .iter()
            .map(|store| pb::StoreDescriptor {
                family_name: store.name.clone(),
                store_home_dir: rootdir::family_name(&store.name),
                store_file: store.peek().files.iter().map(|file| file.name.clone()).collect(),
                store_file_size_bytes: Some(store.files_len_bytes()),
            })
            .collect();
        Marker::RegionEvent(pb::RegionEventDescriptor {
            event_type: event as i32,
            table_name: self.info.table.as_str().as_bytes().to_vec().into(),
            encoded_region_name: self.name().as_bytes().to_vec().into(),
            log_sequence_number: Some(self.sequencer.last_seq_id().0 + 1),
            stores,
            server: Some(convert::to_proto::server_name(&self.env.server_name)),
            region_name: Some(self.info.name().clone()),
        })
    }

    /// Stops serving. With [`CloseMode::Flush`] everything in memory is in files when it returns; the region may then be
    /// opened elsewhere. New work is refused from the beginning on, readers in flight get [`RegionError::NotServing`] at
    /// their next step. May be repeated after an error.
    ///
    /// # Errors
    /// When a flush fails: the region stays closing, its edits are in the log.
    pub fn close(&self, mode: CloseMode) -> Result<()> {
        if self.state.load(Ordering::Acquire) == CLOSED {
            return Ok(());
        }
        if mode == CloseMode::Flush && self.state.load(Ordering::Acquire) == OPEN && !self.table.read_only() {
            // The bulk goes while writes are still taken, so that the time without service is short.
            self.flush_all("before close")?;
        }
        {
            // Writers that are past their check end before this lock is had.
            let _no_updates = self.updates.write();
            self.state.store(CLOSING, Ordering::Release);
        }
        // A compaction that is about to publish does so now or never.
        drop(self.flushing.lock());
        if mode == CloseMode::Flush {
            self.sequencer.check()?;
            self.flush_all("close")?;
            let event = pb::region_event_descriptor::EventType::RegionClose;
            let (seq_id, _) = self.append_marker(&self.event_marker(event))?;
            self.write_seq_id_file(seq_id)?;
            self.env.log.region_closed(self.name());
            self.sync_compaction_markers()?;
            self.archive_retired(true)?;
        }
        self.state.store(CLOSED, Ordering::Release);
        self.accounting.forget();
        Ok(())
    }

    /// Tells the next opening, durably, that ids up to here are used and no edit with one of them is needed from the log any more: ids
    /// grow even where no file says so, and what a family held that is deleted now does not come back when one of its name is added.
    pub(crate) fn write_seq_id_file(&self, seq_id: SeqId) -> Result<()> {
        let error = |e| RegionError::volume(self.name(), e);
        let volume = &*self.env.volume;
        let dir = rootdir::region_dir(&self.info).join(rootdir::recovered_edits::DIR);
        let old: Vec<String> = match volume.list(&dir) {
            Ok(entries) => entries.into_iter().map(|e| e.name).filter(|name| name.ends_with("seqid")).collect(),
            Err(_) => {
                volume.create_dir_all_durable(&dir).map_err(error)?;
                Vec::new()
            }
        };
        let name = format!("{seq_id}.seqid");
        if !old.contains(&name) {
            drop(volume.create(&dir.join(&name)).map_err(error)?);
        }
        volume.sync_dir(&dir).map_err(error)?;
        for other in old.iter().filter(|other| **other != name) {
            volume.remove_file(&dir.join(other)).map_err(error)?;
        }
        Ok(())
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
