//! Flushing: memstores become store files.
//!
//! The memstores are swapped under the exclusive update lock together with taking a sequence id and appending the
//! START marker, so that exactly the edits below that id are in the snapshots. The marker's ticket is waited for before
//! anything is written, synced even where the log is relaxed: no file ever holds an edit that the log could still lose, with the other families'
//! part of its row and its nonce. Then file by file: write, sync, move,
//! publish; the COMMIT marker and the log's accounting come last. What fails on the way is repeated by the next flush;
//! the edits are still in the log. Follows: `HRegion#internalFlushcache`, `DefaultStoreFlusher`.

use crate::compact::{self, Compactor, Output};
use crate::core::RegionCore;
use crate::error::{RegionError, Remedy, Result};
use crate::marker;
use crate::mob::write::MobWork;
use crate::new_file::{Caching, FileWriter, NewFile};
use crate::scan::matcher::Matcher;
use crate::scan::merge::Merge;
use crate::scan::source::Source;
use crate::scan::store_scanner::{RowLimits, StoreScanner};
use crate::store::{Store, sort_files};
use crate::store_file::StoreFile;
use base::{ReadPoint, SeqId};
use bytes::Bytes;
use hfile::StoreMetadata;
use memstore::Segment;
use model::StoreEngine;
use proto::pb::{self, flush_descriptor::FlushAction};
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::marker::Marker;
use wal::{Level, Ticket};

/// What to flush.
#[derive(Clone, Debug, Default)]
pub struct FlushRequest {
    /// Just these families; empty leaves the choice to the policy.
    pub families: Vec<Bytes>,
    /// All families, however small.
    pub all: bool,
}

/// What a flush did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushOutcome {
    /// Whether there was anything to flush.
    pub flushed: bool,
    /// The flush's sequence id.
    pub seq_id: SeqId,
    /// Files written.
    pub files: usize,
    /// Bytes written.
    pub bytes: u64,
    /// Whether some store now wants a compaction.
    pub needs_compaction: bool,
}

/// Why a region wants to be flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushReason {
    /// The memstores are large.
    Size,
    /// There were many edits.
    Edits,
    /// The oldest edit is old.
    Age,
    /// Read replicas elsewhere have missed something: all is to be flushed.
    Replicas,
}

struct Snapshot<'a> {
    store: &'a Store,
    segment: Arc<Segment>,
}

/// A flush whose memstores are swapped.
struct Begun<'a> {
    seq_id: SeqId,
    /// The lowest id of what stays in memory.
    stay_behind: Option<SeqId>,
    /// Of the START marker.
    ticket: Ticket,
    snapshots: Vec<Snapshot<'a>>,
}

/// A memstore on its way to its file, as the pace of writes sees it.
struct Running<'r> {
    core: &'r RegionCore,
    memory_bytes: u64,
    data_bytes: u64,
    wrote_bytes: Cell<u64>,
    is_done: Cell<bool>,
}

impl<'r> Running<'r> {
    fn begin(core: &'r RegionCore, segment: &Segment) -> Running<'r> {
        let (memory_bytes, data_bytes) = (segment.grown_bytes() as u64, segment.data_bytes() as u64);
        core.debt.begin_flush(memory_bytes);
        core.env.memory.flushes(memory_bytes as i64, 0);
        core.env.memory.flush_drain.begin(core.env.clock.monotonic_us());
        Running { core, memory_bytes, data_bytes, wrote_bytes: Cell::new(0), is_done: Cell::new(false) }
    }

    /// So many bytes of cells more are written.
    fn wrote(&self, bytes: u64) {
        self.wrote_bytes.set(self.wrote_bytes.get() + bytes);
        // The file's end, its sync and its name are still to come: not all of it before.
        self.come_to(self.wrote_bytes.get() as f64 / self.data_bytes.max(1) as f64 * 0.95);
    }

    fn come_to(&self, part: f64) {
        let more = self.core.debt.flushed(part);
        self.core.env.memory.flushes(0, more as i64);
        self.core.env.memory.flush_drain.did(more as f64, self.core.env.clock.monotonic_us());
    }

    /// The file is there.
    fn end(&self) {
        self.come_to(1.0);
        self.is_done.set(true);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let written = self.core.debt.end_flush(self.is_done.get().then_some(self.memory_bytes));
        let memory = &self.core.env.memory;
        memory.flushes(-(self.memory_bytes as i64), -(written as i64));
        memory.flush_drain.end(self.core.env.clock.monotonic_us());
        let held_bytes = self.core.accounting.heap_bytes();
        self.core.debt.tell(self.core.debt.debt(held_bytes).owed_bytes, &memory.owing_bytes);
    }
}

/// Turns a region's memstores into store files.
#[derive(Clone, Copy)]
pub(crate) struct Flusher<'r> {
    core: &'r RegionCore,
}

impl<'r> Flusher<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        Flusher { core }
    }

    /// Whether and why the region should be flushed now.
    pub(crate) fn reason(&self) -> Option<FlushReason> {
        // A read replica writes no files: what it holds goes when its primary's are there.
        if self.core.info.is_replica() {
            return None;
        }
        if self.core.outbox.as_ref().is_some_and(|outbox| outbox.flush_is_due(|| self.core.env.clock.now_ms().0)) {
            return Some(FlushReason::Replicas);
        }
        self.reason_now().filter(|_| !self.waits_for_compaction())
    }

    /// Whether some store has so many files that a compaction is waited for. Follows: `MemStoreFlusher#isTooManyStoreFiles`.
    fn waits_for_compaction(&self) -> bool {
        let core = self.core;
        let has_too_many = |store: &Store| store.peek().files.len() > store.settings.load().blocking_store_files;
        if core.info.table.is_meta() || !core.table.compaction_enabled() || !core.stores.iter().any(has_too_many) {
            core.accounting.end_flush_delay();
            return false;
        }
        // Memory is short: more files are the lesser evil.
        if core.debt.owes_much(core.accounting.heap_bytes()) {
            return false;
        }
        core.accounting.delays_flush(core.env.clock.now_ms().0, core.settings.blocking_wait_ms)
    }

    fn reason_now(&self) -> Option<FlushReason> {
        let settings = &self.core.settings;
        if self.core.accounting.heap_bytes() > self.core.flush_size_bytes() {
            return Some(FlushReason::Size);
        }
        if self.core.accounting.edits_since_flush() > settings.flush_per_changes {
            return Some(FlushReason::Edits);
        }
        let interval = i64::try_from(settings.periodic_flush_interval_ms).unwrap_or(i64::MAX);
        let age =
            self.core.accounting.oldest_edit_ms().map(|oldest| self.core.env.clock.now_ms().0.saturating_sub(oldest));
        (interval > 0 && age.is_some_and(|age| age > interval)).then_some(FlushReason::Age)
    }

    /// Writes memstores to files.
    pub(crate) fn flush(&self, request: &FlushRequest) -> Result<FlushOutcome> {
        self.core.check_not_closing()?;
        for family in &request.families {
            if self.core.store(family).is_none() {
                return Err(self.core.no_such_family(family));
            }
        }
        if self.core.info.is_replica() {
            return Ok(FlushOutcome::default());
        }
        let _flushing = self.core.flushing.lock();
        let stores: Vec<&Store> = if !request.families.is_empty() {
            self.core.stores.iter().filter(|store| request.families.contains(&store.name)).collect()
        } else if request.all {
            self.core.stores.iter().collect()
        } else {
            self.core.flush_policy.stores(self.core)
        };
        self.flush_stores(&stores)
    }

    /// Flushes everything, serving or not.
    pub(crate) fn flush_all(&self, _why: &str) -> Result<FlushOutcome> {
        let _flushing = self.core.flushing.lock();
        self.flush_stores(&self.core.stores.iter().collect::<Vec<_>>())
    }

    /// The caller holds the flush lock.
    pub(crate) fn flush_stores(&self, stores: &[&Store]) -> Result<FlushOutcome> {
        self.core.sequencer.check()?;
        let mut outcome = FlushOutcome::default();
        let left = self.flush_left(stores, &mut outcome)?;
        if stores.iter().all(|store| store.peek().memory.is_empty()) && self.account_for_left(&left, &mut outcome) {
            self.tell_of_files_without_flush(stores);
            return Ok(outcome);
        }
        let log = &self.core.env.log;
        let oldest_before = self.core.accounting.oldest_edit_ms();
        let begun = self.begin(stores, &left)?;
        let full: Vec<&Store> = begun.snapshots.iter().map(|snapshot| snapshot.store).collect();
        let mut files = Vec::with_capacity(full.len());
        if let Err(error) = self.flush_snapshots(&begun, &mut files, &mut outcome) {
            log.abort_flush(self.core.name());
            self.core.accounting.abort_flush(oldest_before);
            self.core.outbox.as_ref().inspect(|outbox| outbox.whole_flush_failed());
            // The error matters more than markers that could not be written. Read replicas hear nowhere else of the files that are there: the next
            // flush tells of its own.
            let (done, left) = full.split_at(files.len());
            if !done.is_empty() {
                let _ = self.tell_of_files(begun.seq_id, done, &files);
            }
            let _ = marker::append(self.core, &self.flush_marker(FlushAction::AbortFlush, begun.seq_id, left, &[]));
            return Err(error);
        }
        let seq_id = begun.seq_id;
        // Everything is in files up to here, of every family.
        let flushed = begun.stay_behind.map_or(seq_id, |lowest| {
            if base::inject!("region.flush.others-released") { seq_id } else { SeqId((lowest.0 - 1).min(seq_id.0)) }
        });
        self.tell_of_files(seq_id, &full, &files)?;
        if let Some(outbox) = self.core.outbox.as_ref().filter(|outbox| outbox.is_flushing()) {
            marker::tell_of_all_files(self.core, outbox);
        }
        log.complete_flush(self.core.name(), flushed);
        outcome.seq_id = seq_id;
        self.count(&mut outcome);
        Ok(outcome)
    }

    /// What an earlier flush left goes first, under its own id; the stores that had something. That flush may have failed because the
    /// log did (a full disk): what the log does not have yet must not be in the file of one family alone.
    fn flush_left<'s>(&self, stores: &[&'s Store], outcome: &mut FlushOutcome) -> Result<Vec<&'s Store>> {
        let has_left = |store: &&&Store| store.peek().memory.flushing().is_some();
        let left: Vec<&Store> = stores.iter().filter(has_left).copied().collect();
        if left.is_empty() {
            return Ok(left);
        }
        let start = |seq_id| self.flush_marker(FlushAction::StartFlush, seq_id, &left, &[]);
        let (_, ticket) = marker::append_numbered(self.core, start)?;
        ticket.wait_for(Level::Synced).map_err(|failed| RegionError::log(self.core.name(), failed.into()))?;
        for store in &left {
            let Some(segment) = store.view().memory.flushing().cloned() else { continue };
            let seq_id = SeqId(store.snapshot_seq_id.load(Ordering::Acquire));
            let files = self.flush_snapshot(&Snapshot { store, segment }, seq_id, outcome)?;
            outcome.seq_id = outcome.seq_id.max(seq_id);
            // Read replicas hear of its files nowhere else.
            self.tell_of_files(seq_id, &[store], &[files])?;
        }
        Ok(left)
    }

    /// Says that there is nothing to flush; false where there is, or the log does not take it. Follows: `HRegion#writeFlushRequestMarkerToWAL`.
    pub(crate) fn tell_nothing(&self) -> bool {
        if self.core.check_not_closing().is_err() || self.core.check_not_read_only().is_err() {
            return false;
        }
        let _flushing = self.core.flushing.lock();
        let _no_updates = self.core.updates.write();
        let is_empty = self.core.stores.iter().all(|store| store.peek().memory.is_empty());
        is_empty
            && marker::append_numbered(self.core, |id| self.flush_marker(FlushAction::CannotFlush, id, &[], &[]))
                .is_ok()
    }

    /// Where nothing is in memory, read replicas that have missed something are told of the files at once.
    fn tell_of_files_without_flush(&self, stores: &[&Store]) {
        let Some(outbox) = self.core.outbox.as_ref().filter(|outbox| outbox.wants_flush()) else { return };
        let _no_updates = self.core.updates.write();
        if stores.len() == self.core.stores.len() && stores.iter().all(|store| store.peek().memory.is_empty()) {
            outbox.whole_flush_begun();
            marker::tell_of_all_files(self.core, outbox);
        }
    }

    /// Says in the log which files a flush has made.
    fn tell_of_files(&self, seq_id: SeqId, stores: &[&Store], files: &[Vec<Arc<StoreFile>>]) -> Result<()> {
        match marker::append(self.core, &self.flush_marker(FlushAction::CommitFlush, seq_id, stores, files)) {
            // The files are in place and say themselves up to where; without room for a marker none is needed.
            Err(error) if error.remedy() == Remedy::StopServer => Err(error),
            Err(_) => {
                // Read replicas did not hear of them.
                self.core.outbox.as_ref().inspect(|outbox| outbox.want_all_files(false));
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Swaps the memstores while nobody writes, and says so in the log. `left` are stores of which an earlier flush was finished just now.
    fn begin<'s>(&self, stores: &[&'s Store], left: &[&Store]) -> Result<Begun<'s>> {
        let log = &self.core.env.log;
        let _no_updates = self.core.updates.write();
        // Looked at where nobody writes: below the flush's id nothing is left in a store that is not in the list.
        let full: Vec<&Store> = stores.iter().copied().filter(|store| !store.peek().memory.is_empty()).collect();
        // What an earlier flush left is in files now, too: the log counts it as in memory until it hears of it.
        let only_left = left.iter().filter(|store| !full.iter().any(|other| other.name == store.name));
        let names: Vec<&[u8]> = full.iter().chain(only_left).map(|store| &store.name[..]).collect();
        let stay_behind = log.begin_flush(self.core.name(), &names);
        let start = |seq_id| self.flush_marker(FlushAction::StartFlush, seq_id, &full, &[]);
        let (seq_id, ticket) =
            marker::append_numbered(self.core, start).inspect_err(|_| log.abort_flush(self.core.name()))?;
        // A store whose files claim this id would not be asked for the edits of the flush again.
        let claimed = full.iter().map(|store| store.max_flushed()).max().unwrap_or_default();
        base::never!(claimed >= seq_id, "flush {seq_id} of {} comes after files up to {claimed}", self.core.name());
        let snapshots: Vec<Snapshot<'_>> = full
            .iter()
            .map(|store| {
                store.snapshot_seq_id.store(seq_id.0, Ordering::Release);
                Snapshot { store, segment: store.change(|view| view.memory.snapshot()) }
            })
            .collect();
        // What an earlier flush left of any of them is in files, too.
        if stores.len() == self.core.stores.len() {
            self.core.outbox.as_ref().inspect(|outbox| outbox.whole_flush_begun());
        }
        let is_rest_empty = || self.core.stores.iter().all(|store| store.peek().memory.active().is_empty());
        if full.len() == self.core.stores.len() || is_rest_empty() {
            self.core.accounting.begin_flush_of_all();
        }
        Ok(Begun { seq_id, stay_behind, ticket, snapshots })
    }

    /// A flush is done.
    fn count(&self, outcome: &mut FlushOutcome) {
        outcome.flushed = true;
        outcome.needs_compaction = Compactor::new(self.core).is_needed();
        self.core.counters.flushes.fetch_add(1, Ordering::Relaxed);
        self.core.counters.flushed_bytes.fetch_add(outcome.bytes, Ordering::Relaxed);
        self.core.accounting.note_flush(self.core.env.clock.now_ms().0);
        self.core.accounting.end_flush_delay();
    }

    /// Tells the log that what an earlier flush had left is in files now, when nothing else is in memory. False: a write has come since.
    fn account_for_left(&self, left: &[&Store], outcome: &mut FlushOutcome) -> bool {
        if left.is_empty() {
            return true;
        }
        let log = &self.core.env.log;
        {
            let _no_updates = self.core.updates.write();
            if left.iter().any(|store| !store.peek().memory.is_empty()) {
                return false;
            }
            let names: Vec<&[u8]> = left.iter().map(|store| &store.name[..]).collect();
            let stay_behind = log.begin_flush(self.core.name(), &names);
            let flushed = stay_behind.map_or(outcome.seq_id, |lowest| SeqId((lowest.0 - 1).min(outcome.seq_id.0)));
            log.complete_flush(self.core.name(), flushed);
            if self.core.stores.iter().all(|store| store.peek().memory.is_empty()) {
                self.core.accounting.begin_flush_of_all();
            }
        }
        self.count(outcome);
        true
    }

    /// Flushes everything and returns a sequence id: all edits below it are in files, and none has it. The caller holds
    /// the flush lock. Follows: the flush of a bulk load, `HRegion#internalPrepareFlush`.
    pub(crate) fn flush_for_load(&self) -> Result<SeqId> {
        loop {
            let outcome = self.flush_stores(&self.core.stores.iter().collect::<Vec<_>>())?;
            if outcome.flushed {
                return Ok(outcome.seq_id);
            }
            let _no_updates = self.core.updates.write();
            if self.core.stores.iter().all(|store| store.peek().memory.is_empty()) {
                return Ok(self.core.sequencer.skip());
            }
        }
    }

    /// Pushes the files of each, up to the first that fails.
    fn flush_snapshots(
        &self,
        begun: &Begun<'_>,
        files: &mut Vec<Vec<Arc<StoreFile>>>,
        outcome: &mut FlushOutcome,
    ) -> Result<()> {
        let Begun { ticket, snapshots, seq_id, .. } = begun;
        let unsynced = base::inject!("region.flush.log-unsynced");
        let level = if unsynced { ticket.default_level() } else { Level::Synced };
        ticket.wait_for(level).map_err(|failed| RegionError::log(self.core.name(), failed.into()))?;
        for snapshot in snapshots {
            files.push(self.flush_snapshot(snapshot, *seq_id, outcome)?);
        }
        Ok(())
    }

    fn flush_snapshot(
        &self,
        snapshot: &Snapshot<'_>,
        seq_id: SeqId,
        outcome: &mut FlushOutcome,
    ) -> Result<Vec<Arc<StoreFile>>> {
        let running = Running::begin(self.core, &snapshot.segment);
        let files = self.write_snapshot(snapshot, seq_id, outcome, &running)?;
        running.end();
        self.core.count_files();
        Ok(files)
    }

    fn write_snapshot(
        &self,
        snapshot: &Snapshot<'_>,
        seq_id: SeqId,
        outcome: &mut FlushOutcome,
        running: &Running<'_>,
    ) -> Result<Vec<Arc<StoreFile>>> {
        let Snapshot { store, segment } = snapshot;
        let mut merge = Merge::new(self.core.order(), vec![Source::memory(segment, ReadPoint::ALL, 0)]);
        merge.seek_to_first().map_err(|e| RegionError::file(self.core.name(), e))?;
        // Readers that come after this file is published see at least this much.
        let read_point = self.core.smallest_read_point();
        let now = self.core.env.clock.now_ms().0;
        let matcher = Matcher::rewrite(&store.rules, false, read_point, i64::MIN, now);
        let scanner = StoreScanner::new(self.core.name().clone(), merge, matcher, RowLimits::default());
        let new = NewFile {
            compression: store.family().compression_chosen(),
            include_mvcc: true,
            include_tags: segment.has_tags(),
            cache: Caching::AsFamily,
            past_cache: false,
            kind: fs::FileKind::Flush,
            mob: MobWork {
                newest_ms: segment.time_range().map_or(0, |range| range.max_ms),
                rewrite: false,
                is_flush: true,
            },
            forget_seq_ids_to: SeqId(0),
        };
        let claimed = if base::inject!("region.flush.id-too-high") { SeqId(seq_id.0 + 4) } else { seq_id };
        let metadata = StoreMetadata { max_seq_id: Some(claimed), ..StoreMetadata::default() };
        let output = self.division_of(store, segment);
        let writer = FileWriter::new(self.core);
        let pending = writer.write_divided(store, scanner, new, &output, &metadata, &mut |bytes| {
            running.wrote(bytes);
            Ok(())
        })?;
        // Also one without a cell, when all have lived their time: what the log has up to here must not be brought back, should the clock go back.
        let new_files = writer.commit_all(store, &pending, &[])?;
        store.change(|view| {
            let mut files = view.files.to_vec();
            files.extend(new_files.iter().cloned());
            sort_files(&mut files);
            view.files = files.into();
            view.memory.clear_snapshot(segment.id());
            view.whole_from = view.whole_from.max(read_point);
        });
        store.snapshot_seq_id.store(0, Ordering::Release);
        // Before it is given back: what is somewhere between the two must not look free.
        self.core.env.memory.pin(segment);
        self.core.accounting.grew(-(segment.grown_bytes() as i64), -(segment.data_bytes() as i64));
        outcome.files += pending.len();
        for file in &pending {
            outcome.bytes += file.len_bytes();
            let (cells, cells_bytes) = file.cells();
            self.core.counters.flushed_cells.fetch_add(cells, Ordering::Relaxed);
            self.core.counters.flushed_cells_bytes.fetch_add(cells_bytes, Ordering::Relaxed);
        }
        Ok(new_files)
    }

    /// How the store's engine divides what is flushed.
    fn division_of(&self, store: &Store, segment: &Segment) -> Output {
        let settings = store.settings.load();
        if store.engine(&settings) != StoreEngine::Stripe {
            return Output::One;
        }
        let view = store.view();
        let layout = view.stripes.as_ref().map(|stripes| Cow::Borrowed(&stripes.layout)).unwrap_or_default();
        compact::of_flush(&layout, &settings.stripes, segment.len() as u64).map_or(Output::One, Output::ByRow)
    }

    /// All markers of a flush have its id: read replicas know by it what its files stand for.
    fn flush_marker(
        &self,
        action: FlushAction,
        seq_id: SeqId,
        stores: &[&Store],
        files: &[Vec<Arc<StoreFile>>],
    ) -> Marker {
        let store_flushes = stores
            .iter()
            .enumerate()
            .map(|(i, store)| pb::flush_descriptor::StoreFlushDescriptor {
                family_name: store.name.clone(),
                store_home_dir: rootdir::family_name(&store.name),
                flush_output: files.get(i).into_iter().flatten().map(|file| file.name.clone()).collect(),
            })
            .collect();
        Marker::Flush(pb::FlushDescriptor {
            action: action as i32,
            table_name: self.core.info.table.as_str().as_bytes().to_vec().into(),
            encoded_region_name: self.core.name().as_bytes().to_vec().into(),
            flush_sequence_number: Some(seq_id.0),
            store_flushes,
            region_name: Some(self.core.info.name().clone()),
        })
    }

    /// In the middle of a replay: everything replayed so far, all of it up to `seq_id`, goes to files. The log knows
    /// nothing of these edits.
    pub(crate) fn flush_replayed(&self, seq_id: SeqId) -> Result<()> {
        let _flushing = self.core.flushing.lock();
        let mut outcome = FlushOutcome::default();
        for store in &*self.core.stores {
            if store.peek().memory.is_empty() {
                continue;
            }
            store.snapshot_seq_id.store(seq_id.0, Ordering::Release);
            let segment = store.change(|view| view.memory.snapshot());
            self.flush_snapshot(&Snapshot { store, segment }, seq_id, &mut outcome)?;
        }
        Ok(())
    }
}
