//! What is to be done for regions in the background: flushes, compactions, splits. Who does it is in [`crate::background`].

use crate::large_writes::FlushesEnded;
use crate::server::SplitRequests;
use crate::staffing::Staffing;
use crate::work_queue::WorkQueue;
use base::LogThrottle;
use bytes::Bytes;
use model::status::CompactionState;
use parking_lot::Mutex;
use region::{CompactionKind, FlushReason, Region, RegionError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What was asked to be compacted; `None` in a queue means "what the policy chooses".
#[derive(Clone, Debug)]
pub(crate) struct CompactionRequest {
    pub family: Option<Bytes>,
    pub kind: CompactionKind,
}

/// The queues of background work, and whether it is wanted.
pub(crate) struct Maintenance {
    /// Regions to be flushed, and why.
    pub flushes: WorkQueue<&'static str>,
    pub flushes_ended: FlushesEnded,
    pub small_compactions: WorkQueue<Option<CompactionRequest>>,
    pub large_compactions: WorkQueue<Option<CompactionRequest>>,
    /// Regions with files that are to be read into the cache.
    pub prefetches: WorkQueue<()>,
    /// Whether compactions are made that nobody asks for.
    compactions_enabled: AtomicBool,
    split_requests: SplitRequests,
    /// Splits that were asked for.
    requested_splits: AtomicU64,
    /// How many threads flush, and make small compactions, where volumes are measured.
    pub flushers: Mutex<Staffing>,
    pub compactors: Mutex<Staffing>,
    /// Flushes that failed because the disk is full.
    pub full_flushes: LogThrottle,
}

impl Maintenance {
    /// Nothing is queued yet; splits are asked for with `split_requests`.
    pub fn new(split_requests: SplitRequests, compactions_enabled: bool) -> Maintenance {
        Maintenance {
            flushes: WorkQueue::default(),
            flushes_ended: FlushesEnded::default(),
            small_compactions: WorkQueue::default(),
            large_compactions: WorkQueue::default(),
            prefetches: WorkQueue::default(),
            compactions_enabled: AtomicBool::new(compactions_enabled),
            split_requests,
            requested_splits: AtomicU64::new(0),
            flushers: Mutex::default(),
            compactors: Mutex::default(),
            full_flushes: LogThrottle::every_us(crate::background::REPEAT_MESSAGE_US),
        }
    }

    /// Queues a flush if the region wants one.
    pub fn consider_flush(&self, region: &Region) {
        let reason = match region.needs_flush() {
            None => return,
            Some(FlushReason::Size) => "size",
            Some(FlushReason::Edits) => "number of edits",
            Some(FlushReason::Age) => "age of the oldest edit",
            Some(FlushReason::Replicas) => "read replicas that missed entries",
        };
        self.flushes.push(region.info().encoded_name(), reason);
    }

    /// Queues the compaction that the policy chooses.
    pub fn consider_compaction(&self, encoded_name: &Arc<str>) {
        self.small_compactions.push(encoded_name, None);
    }

    /// Queues the reading of files into the cache if the region wants some there.
    pub fn consider_prefetch(&self, region: &Region) {
        if region.wants_prefetch() {
            self.prefetches.push(region.info().encoded_name(), ());
        }
    }

    /// Asks for a compaction; returns at once.
    ///
    /// # Errors
    /// The region cannot be compacted.
    pub fn request_compaction(&self, region: &Region, family: Option<Bytes>, major: bool) -> Result<(), RegionError> {
        if major {
            region.request_major_compaction(family.as_deref())?;
        }
        let kind = if major { CompactionKind::Major } else { CompactionKind::Minor };
        let queue = if major { &self.large_compactions } else { &self.small_compactions };
        queue.push(region.info().encoded_name(), Some(CompactionRequest { family, kind }));
        Ok(())
    }

    /// Asks the master to split `region`, at `split_row` or where the server finds best; false: no master is there to ask.
    pub fn request_split(&self, region: &Region, split_row: Option<Bytes>) -> bool {
        self.requested_splits.fetch_add(1, Ordering::Relaxed);
        (self.split_requests)(region.info().clone(), split_row)
    }

    /// Splits that were asked for since the start.
    pub fn requested_splits(&self) -> u64 {
        self.requested_splits.load(Ordering::Relaxed)
    }

    /// Which compactions of a region wait or run.
    pub fn compaction_state(&self, encoded_name: &str) -> CompactionState {
        match (self.large_compactions.is_pending(encoded_name), self.small_compactions.is_pending(encoded_name)) {
            (true, true) => CompactionState::MajorAndMinor,
            (true, false) => CompactionState::Major,
            (false, true) => CompactionState::Minor,
            (false, false) => CompactionState::None,
        }
    }

    /// Whether compactions are made that nobody asks for.
    pub fn compacts(&self) -> bool {
        self.compactions_enabled.load(Ordering::Relaxed)
    }

    /// Turns such compactions on or off; whether they were on.
    pub fn enable_compactions(&self, enabled: bool) -> bool {
        self.compactions_enabled.swap(enabled, Ordering::Relaxed)
    }

    /// Ends the work: what waits is forgotten.
    pub fn close(&self) {
        self.flushes.close();
        self.small_compactions.close();
        self.large_compactions.close();
        self.prefetches.close();
    }
}
