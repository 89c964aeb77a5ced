//! Regions whose files lie on a volume that failed: they are closed here, and opened here again when the volume is back.
//!
//! Always true:
//!  1. hbase:meta goes on naming this server as their place: whoever asks is told NotServingRegionException, which clients try again.
//!  2. A region waits here while nobody else was told that it is closed: an order to close it takes it from here, for good.
//!
//! HBase has nothing of the kind: HDFS reads another copy.

use crate::server::{RegionServer, ServerError};
use model::{RegionInfo, TableDescriptor};
use parking_lot::{Mutex, RwLock};
use region::CloseMode;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A region that waits for its files.
struct Waiting {
    info: RegionInfo,
    table: Arc<TableDescriptor>,
    /// When it was tried last: what had become of the volumes, and the time.
    tried: Option<(u64, u64)>,
}

/// A region that could not be opened is tried again when a volume failed or came back, and after so long: it may have been something else.
const PAUSE_US: u64 = 15_000_000;

/// The regions that wait for a volume.
#[derive(Default)]
pub(crate) struct WaitingRegions {
    regions: Mutex<FxHashMap<Arc<str>, Waiting>>,
    /// How often volumes had failed or come back at the last look: what uses them finds that out in between.
    seen: AtomicU64,
    /// Held by who closes or opens a region because of its volume; shared by whoever else opens or closes one, who waits instead of hearing that it
    /// is in transition.
    pub turn: RwLock<()>,
}

impl WaitingRegions {
    /// The region, if it waits here.
    pub fn get(&self, encoded_name: &str) -> Option<RegionInfo> {
        self.regions.lock().get(encoded_name).map(|waiting| waiting.info.clone())
    }

    /// It waits no more.
    pub fn forget(&self, encoded_name: &str) {
        self.regions.lock().remove(encoded_name);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.regions.lock().len()
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.regions.lock().keys().cloned().collect()
    }
}

impl RegionServer {
    /// Looks at the volumes, closes the regions whose files one took along that failed, and opens those again whose volume is back. To be called
    /// about once a second, where it may wait for disks.
    pub fn look_after_volumes(&self) {
        self.env.volume.look_after();
        for region in self.regions() {
            if self.stop.is_set() {
                return;
            }
            // A read replica has the files of its primary, and takes them anew with it.
            if region.info().is_replica() || region.info().table.is_meta() {
                continue;
            }
            if let Some(volume) = region.lost_with() {
                self.close_lost(&region, &volume);
            }
        }
        let now = self.env.volume.failures_and_returns();
        for name in self.waiting.names() {
            if self.stop.is_set() {
                return;
            }
            self.open_again(&name, now);
        }
        if self.waiting.seen.swap(now, Ordering::Relaxed) != now {
            tracing::debug!(waiting = self.waiting.len(), "volumes failed or came back");
            // A log may have been there: what only it and memory hold goes to files.
            for region in self.regions().iter().filter(|region| region.memstore_bytes() > 0) {
                self.maintenance.flushes.push(region.name(), "a volume failed");
            }
        }
    }

    /// What memory holds goes to files elsewhere; where that fails the region takes no calls, and is closed the next time.
    fn close_lost(&self, region: &Arc<region::Region>, volume: &str) {
        let _turn = self.waiting.turn.write();
        let name = region.name();
        if !self.region(name).is_some_and(|online| Arc::ptr_eq(&online, region)) {
            return;
        }
        let Ok(_transition) = self.begin_transition(region.info()) else { return };
        let waiting = Waiting { info: region.info().clone(), table: region.table().clone(), tried: None };
        self.waiting.regions.lock().insert(name.clone(), waiting);
        let is_first = !region.is_closing();
        let shown = region.info().name_string();
        match self.close_and_forget(region, CloseMode::Flush) {
            Ok(()) => tracing::warn!(
                "{shown} is closed: files of it are on {volume}, which failed; it opens again when that is back"
            ),
            Err(error) => {
                // It is online still, and closing.
                self.waiting.forget(name);
                if is_first {
                    tracing::warn!(
                        "{shown} takes no calls: files of it are on {volume}, which failed; closing it is tried again: {error}"
                    );
                }
            }
        }
    }

    fn open_again(&self, name: &Arc<str>, now: u64) {
        let _turn = self.waiting.turn.write();
        let (info, table, is_news) = {
            let mut regions = self.waiting.regions.lock();
            let Some(waiting) = regions.get_mut(name) else { return };
            let now_us = self.env.clock.monotonic_us();
            let is_news = match waiting.tried {
                Some((volumes, tried_us)) if volumes == now => {
                    if now_us.saturating_sub(tried_us) < PAUSE_US {
                        return;
                    }
                    false
                }
                _ => true,
            };
            waiting.tried = Some((now, now_us));
            (waiting.info.clone(), waiting.table.clone(), is_news)
        };
        match self.open_offline_in_turn(&info, table) {
            Ok(opened) => {
                self.put_online(opened);
                tracing::info!("opened {}: the volume with its store files is back", info.name_string());
            }
            // Somebody opens it, or closes what was opened.
            Err(ServerError::InTransition(_) | ServerError::Stopping(_)) => {
                self.waiting.regions.lock().entry(name.clone()).and_modify(|waiting| waiting.tried = None);
            }
            Err(error) if !is_news => tracing::debug!("opening {}: {error}", info.name_string()),
            Err(error) => {
                tracing::warn!(
                    "cannot open {} yet; it is tried again when a volume comes back, and every 15 s: {error}",
                    info.name_string()
                );
            }
        }
    }
}
