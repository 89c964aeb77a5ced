//! How regions open and close here, and how the whole server stops. These methods wait for the disk.

use crate::online::Transition;
use crate::server::{RegionServer, ServerError};
use crate::traces;
use model::{RegionInfo, TableDescriptor};
use parking_lot::Mutex;
use region::{CloseMode, OpenRegion, Region};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Regions closed at the same time when the server stops.
const CLOSERS: usize = 32;

/// A region that is open, and not online yet.
pub struct OpenedRegion {
    region: Arc<Region>,
    _transition: Transition,
}

impl OpenedRegion {
    /// The sequence number that it opened at.
    pub fn open_seq_id(&self) -> u64 {
        self.region.open_seq_id().0
    }
}

impl RegionServer {
    /// Opens a region: replays what the log left for it, then serves it. Returns its open sequence number. A region
    /// that is online already is left as it is.
    ///
    /// # Errors
    /// [`ServerError`]; the region is not online then.
    pub fn open_region(&self, info: &RegionInfo, table: Arc<TableDescriptor>) -> Result<u64, ServerError> {
        let name = info.encoded_name().clone();
        if self.stop.is_set() {
            return Err(ServerError::Stopping(self.name.clone()));
        }
        let _turn = self.waiting.turns.of_order(&name);
        if let Some(region) = self.region(&name) {
            if region.is_closing() {
                // Its closing failed half way and has to end first: what it holds is in the log only.
                self.close_in_turn(&name)?;
            } else {
                return Ok(region.open_seq_id().0);
            }
        }
        let opened = self.open_offline_in_turn(info, table)?;
        Ok(self.put_online(opened))
    }

    /// Opens a region that is not online, and leaves it offline: calls are told that it is being opened until [`RegionServer::put_online`].
    ///
    /// # Errors
    /// [`ServerError`]; nothing is open then.
    pub fn open_offline(&self, info: &RegionInfo, table: Arc<TableDescriptor>) -> Result<OpenedRegion, ServerError> {
        let _turn = self.waiting.turns.of_order(info.encoded_name());
        self.open_offline_in_turn(info, table)
    }

    /// As [`RegionServer::open_offline`], for who has the turn.
    pub(crate) fn open_offline_in_turn(
        &self,
        info: &RegionInfo,
        table: Arc<TableDescriptor>,
    ) -> Result<OpenedRegion, ServerError> {
        if self.stop.is_set() {
            return Err(ServerError::Stopping(self.name.clone()));
        }
        traces::on_region(self, "AssignRegionHandler", info, || self.open_now(info, table))
    }

    fn open_now(&self, info: &RegionInfo, table: Arc<TableDescriptor>) -> Result<OpenedRegion, ServerError> {
        let transition = self.begin_transition(info)?;
        let env = if info.table.is_meta() { self.meta_env.clone() } else { self.env.clone() };
        let request = OpenRegion { info: info.clone(), table, env };
        let opened = if info.is_replica() {
            Region::open_replica(request, self.region(info.replica(0).encoded_name()).as_deref())
        } else {
            Region::open(request)
        };
        let region = opened.map_err(|error| self.escalate_fatal(error))?;
        self.sessions.remember(region.recovered_nonces().into_iter().map(|recovered| recovered.nonce));
        Ok(OpenedRegion { region, _transition: transition })
    }

    /// The region takes calls from now on. Returns its open sequence number.
    pub fn put_online(&self, opened: OpenedRegion) -> u64 {
        let region = &opened.region;
        self.prepare_replication(region);
        self.online.insert(region);
        self.waiting.forget(region.name());
        self.refresh_replicas(region);
        if region.needs_compaction() || region.splitter().has_references() {
            self.maintenance.consider_compaction(region.name());
        }
        // Its replicas may have been found before it was, and want its files.
        if region.outbox().is_some() {
            self.maintenance.consider_flush(region);
        }
        region.open_seq_id().0
    }

    /// Closes a region: flushes it and refuses further calls. A region that is not online is closed already.
    ///
    /// # Errors
    /// [`ServerError`]; the region is open as before or half closed (it takes no more calls), and stays here: closing it
    /// again goes on where this stopped.
    pub fn close_region(&self, encoded_name: &str) -> Result<(), ServerError> {
        let _turn = self.waiting.turns.of_order(encoded_name);
        self.close_in_turn(encoded_name)
    }

    fn close_in_turn(&self, encoded_name: &str) -> Result<(), ServerError> {
        let Some(region) = self.region(encoded_name) else {
            // One that waits for its volume is closed, and does not open again by itself.
            self.waiting.forget(encoded_name);
            return Ok(());
        };
        traces::on_region(self, "UnassignRegionHandler", region.info(), || {
            let _transition = self.begin_transition(region.info())?;
            self.close_and_forget(&region, CloseMode::Flush)
        })
    }

    pub(crate) fn close_and_forget(&self, region: &Arc<Region>, mode: CloseMode) -> Result<(), ServerError> {
        let closed = region.close(mode).map_err(|error| self.escalate_fatal(error));
        if closed.is_err()
            && !base::inject!("regionserver.close.failure-forgotten")
            && mode == CloseMode::Flush
            && !self.stop.is_set()
        {
            // What could not be flushed is in its memstores and in the log, which nobody replays while this server lives:
            // forgotten here, it would be missing from the region as it is opened next. The close is to be tried again.
            return Ok(closed?);
        }
        self.online.remove(region.info().encoded_name());
        self.sessions.close_scanners_of(region);
        Ok(closed?)
    }

    pub(crate) fn begin_transition(&self, info: &RegionInfo) -> Result<Transition, ServerError> {
        let begun = self.online.begin_transition(info.encoded_name());
        begun.ok_or_else(|| ServerError::InTransition(info.name_string()))
    }

    /// Stops: closes every region (hbase:meta last), then the background threads. With [`CloseMode::Abort`] nothing is
    /// flushed; the next start replays the log. Returns the first error, having tried everything.
    ///
    /// # Errors
    /// [`ServerError`] of the first region that did not close.
    pub fn stop(&self, mode: CloseMode) -> Result<(), ServerError> {
        self.stop_within(mode, None).map(drop)
    }

    /// Serves nothing from now on, and leaves the regions as they are: others have them, or will when the log was split.
    pub fn abort(&self) {
        self.stop.set();
        self.env.cache.second().inspect(|second| second.close());
        self.scheduler.stop();
        for region in self.regions() {
            self.online.remove(region.info().encoded_name());
            self.sessions.close_scanners_of(&region);
        }
    }

    /// Ends calls that wait in the lanes, and those that run at their next pause point.
    pub fn stop_calls(&self) {
        self.scheduler.stop();
    }

    /// As [`RegionServer::stop`]; regions whose closing begins when `flush_for` has passed are not flushed: what they hold is in the log.
    /// Returns how many of them there are.
    ///
    /// # Errors
    /// As [`RegionServer::stop`].
    pub fn stop_within(&self, mode: CloseMode, flush_for: Option<std::time::Duration>) -> Result<usize, ServerError> {
        let clock = &self.env.clock;
        let flush_until_us = flush_for.map(|time| clock.monotonic_us() + time.as_micros() as u64);
        let left_to_log = AtomicUsize::new(0);
        let mode_of = |region: &Region| {
            let is_late = flush_until_us.is_some_and(|until_us| clock.monotonic_us() >= until_us);
            if mode == CloseMode::Flush && is_late && region.memstore_bytes() > 0 {
                left_to_log.fetch_add(1, Ordering::Relaxed);
                return CloseMode::Abort;
            }
            mode
        };
        self.stop.set();
        self.env.cache.second().inspect(|second| second.close());
        self.scheduler.stop();
        region::wake_prefaulters();
        self.maintenance.close();
        let (meta, others): (Vec<_>, Vec<_>) =
            self.regions().into_iter().partition(|region| region.info().table.is_meta());
        // Each close waits for its marker in the log; side by side they share its syncs.
        let waiting = Mutex::new(others);
        let first_error = Mutex::new(None);
        let close_all = |waiting: &Mutex<Vec<Arc<Region>>>| {
            loop {
                let Some(region) = waiting.lock().pop() else { return };
                if let Err(error) = self.close_and_forget(&region, mode_of(&region)) {
                    tracing::warn!("closing {}: {error}", region.info().name_string());
                    first_error.lock().get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            let closers = if self.stepped { 1 } else { waiting.lock().len().min(CLOSERS) };
            for _ in 1..closers {
                scope.spawn(|| close_all(&waiting));
            }
            close_all(&waiting);
        });
        close_all(&Mutex::new(meta));
        // Not under the lock: the chores may be about to add some.
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a background thread had panicked");
            }
        }
        first_error.into_inner().map_or(Ok(left_to_log.into_inner()), Err)
    }
}
