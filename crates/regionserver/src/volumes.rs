//! Regions whose files lie on a volume that failed: they are closed here, and opened here again when the volume is back.
//!
//! Always true:
//!  1. hbase:meta goes on naming this server as their place: whoever asks is told NotServingRegionException, which clients try again.
//!  2. A region whose files are on several volumes waits for all of them that have failed, and is counted under each.
//!  3. A region waits here while nobody else was told that it is closed: an order to close it takes it from here, for good.
//!  4. A volume that stands still holds up its own regions: each volume is looked after by a thread of its own, and each region has a turn of its own.
//!
//! HBase has nothing of the kind: HDFS reads another copy.

use crate::server::{RegionServer, ServerError};
use model::{RegionInfo, TableDescriptor};
use parking_lot::{Condvar, Mutex};
use region::CloseMode;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A region that waits for its files.
struct Waiting {
    info: RegionInfo,
    table: Arc<TableDescriptor>,
    /// All that have files of it, as they are called: it waits for each of them that has failed, also after it was closed.
    volumes: BTreeSet<String>,
    /// When it was tried last, or was found to wait: what had become of the volumes, and the time.
    tried: Option<(u64, u64)>,
}

/// A region that could not be opened is tried again when a volume failed or came back, and after so long: it may have been something else.
const PAUSE_US: u64 = 15_000_000;

/// Who is at a region. Others than its volume's thread may be more than one: all but the first hear that it is in transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Volume,
    Others(usize),
}

/// Whose turn it is, by region.
#[derive(Default)]
pub(crate) struct Turns {
    at: Mutex<FxHashMap<Arc<str>, At>>,
    ended: Condvar,
}

/// A turn at one region; ends when dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    name: Arc<str>,
}

impl Turns {
    /// For who opens or closes a region by an order: waits while the thread of a volume is at it, instead of hearing that it is in transition.
    pub fn of_order(&self, name: &str) -> Turn<'_> {
        let mut at = self.at.lock();
        loop {
            match at.get_mut(name) {
                Some(At::Volume) => self.ended.wait(&mut at),
                Some(At::Others(count)) => {
                    *count += 1;
                    return Turn { turns: self, name: name.into() };
                }
                None => {
                    let name: Arc<str> = name.into();
                    at.insert(name.clone(), At::Others(1));
                    return Turn { turns: self, name };
                }
            }
        }
    }

    /// For who closes or opens a region because of its volume; `None` while anybody is at it.
    fn of_volume(&self, name: &Arc<str>) -> Option<Turn<'_>> {
        let mut at = self.at.lock();
        if at.contains_key(name) {
            return None;
        }
        at.insert(name.clone(), At::Volume);
        Some(Turn { turns: self, name: name.clone() })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut at = self.turns.at.lock();
        match at.get_mut(&self.name) {
            Some(At::Others(count)) if *count > 1 => *count -= 1,
            _ => {
                at.remove(&self.name);
                self.turns.ended.notify_all();
            }
        }
    }
}

/// Between two rounds over the files of a volume that is to be emptied.
const ROUND_PAUSE: Duration = Duration::from_secs(1);
/// Of so many rounds in which nothing was moved the first has the logs begin new files.
const ROLL_EVERY_ROUNDS: u64 = 10;
/// With so many in a row, and nobody writing there, it has no end.
const MOST_IDLE_ROUNDS: u64 = 10;

/// What one round came to.
enum Round {
    /// No file is left.
    Empty,
    /// Some are, and more rounds make no sense.
    Ended(String),
    /// Some are, for the next round.
    Again(String),
}

/// What the rounds over the files of a volume came to.
#[derive(Default)]
struct Rounds {
    files: u64,
    bytes: u64,
    /// In a row, in which nothing was moved.
    idle: u64,
}

/// The regions that wait for a volume, and the work on volumes that goes on.
#[derive(Default)]
pub(crate) struct WaitingRegions {
    regions: Mutex<FxHashMap<Arc<str>, Waiting>>,
    /// How often volumes had failed or come back at the last look: what uses them finds that out in between.
    seen: AtomicU64,
    /// Who opens or closes a region now.
    pub turns: Turns,
    /// Volumes that a thread looks after.
    attended: Mutex<FxHashSet<String>>,
    /// Volumes that files are moved off, by their directories; why it ended, where it did with files left.
    moving: Mutex<FxHashMap<String, Option<String>>>,
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

    /// How many wait that have files on that volume.
    pub fn count_on(&self, volume: &str) -> u64 {
        self.regions.lock().values().filter(|waiting| waiting.volumes.contains(volume)).count() as u64
    }

    /// Those that wait, and of whose volumes this holds.
    fn names_where(&self, is_meant: impl Fn(&BTreeSet<String>) -> bool) -> Vec<Arc<str>> {
        let regions = self.regions.lock();
        let mut names: Vec<Arc<str>> =
            regions.iter().filter(|(_, waiting)| is_meant(&waiting.volumes)).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    /// Whether files are being moved off the volume of that directory (`Some(None)`), or why they are no more, with some left.
    pub fn moving(&self, directory: &str) -> Option<Option<String>> {
        self.moving.lock().get(directory).cloned()
    }

    /// Files are moved off it from now on, by who hears that they were not.
    fn begin_moving(&self, directory: &str) -> bool {
        self.moving.lock().insert(directory.to_owned(), None) != Some(None)
    }

    /// They are no more: because all were, or why.
    fn end_moving(&self, directory: &str, why: Option<String>) {
        let mut moving = self.moving.lock();
        match why {
            Some(why) => moving.insert(directory.to_owned(), Some(why)),
            None => moving.remove(directory),
        };
    }

    /// Whether nobody looks after the volume yet: who hears so does from now on.
    pub fn attend(&self, volume: &str) -> bool {
        self.attended.lock().insert(volume.to_owned())
    }

    /// Nobody looks after it any more.
    pub fn leave(&self, volume: &str) {
        self.attended.lock().remove(volume);
    }
}

impl RegionServer {
    /// Looks at all volumes, one after the other, and does for their regions what is to be done. Where threads look after volumes, they do.
    pub fn look_after_volumes(&self) {
        for volume in self.env.volume.places() {
            self.look_after_volume(&volume);
        }
        self.look_at_volumes();
    }

    /// Looks at one volume, closes the regions whose files it took along if it failed, and opens those again that waited for it if it is back. To be
    /// called about once a second, where it may wait for that disk.
    pub(crate) fn look_after_volume(&self, name: &str) {
        self.env.volume.look_after_place(name);
        for region in self.regions() {
            if self.stop.is_set() {
                return;
            }
            // A read replica has the files of its primary, and takes them anew with it.
            if region.info().is_replica() || region.info().table.is_meta() {
                continue;
            }
            if region.is_lost_with(name) {
                self.close_lost(&region, name);
            }
        }
        self.open_those_again(|volumes| volumes.contains(name));
    }

    /// What concerns no single volume: waits for none of them, unless one is called otherwise now.
    pub(crate) fn look_at_volumes(&self) {
        let now = self.env.volume.failures_and_returns();
        if self.waiting.seen.swap(now, Ordering::Relaxed) != now {
            tracing::debug!(waiting = self.waiting.len(), "volumes failed or came back");
            // A log may have been there: what only it and memory hold goes to files.
            for region in self.regions().iter().filter(|region| region.memstore_bytes() > 0) {
                self.maintenance.flushes.push(region.name(), "a volume failed");
            }
        }
        if self.waiting.len() > 0 {
            let places = self.env.volume.places();
            self.open_those_again(|volumes| !places.iter().any(|place| volumes.contains(place)));
        }
    }

    fn open_those_again(&self, is_meant: impl Fn(&BTreeSet<String>) -> bool) {
        if base::inject!("regionserver.volumes.not-opened-again") {
            return;
        }
        for name in self.waiting.names_where(is_meant) {
            if self.stop.is_set() {
                return;
            }
            self.open_again(&name);
        }
    }

    /// Has the files on the volume of that directory moved elsewhere, in the background; without threads, one round of it now. Asked again while it goes
    /// on, it goes on.
    ///
    /// # Errors
    /// A sentence: there is no such volume, it gets new files still, or no thread can be started.
    pub fn drain_volume(self: &Arc<Self>, directory: &str) -> Result<(), String> {
        // Moves nothing: asks whether it may.
        self.env.volume.drain(directory, &|_| false)?;
        if !self.waiting.begin_moving(directory) {
            return Ok(());
        }
        if self.stepped {
            let ended = match self.drain_round(directory, &mut Rounds::default(), &|_| true) {
                Round::Empty => None,
                Round::Ended(why) | Round::Again(why) => Some(why),
            };
            self.waiting.end_moving(directory, ended);
            return Ok(());
        }
        crate::background::drain(self, directory).map_err(|error| {
            self.waiting.end_moving(directory, Some(error.to_string()));
            format!("no thread can be started: {error}")
        })
    }

    /// Moves files until none is left, or it makes no sense to go on; `goes_on` is told of bytes, and may wait. Returns to who waits for it.
    pub(crate) fn move_files_off(&self, directory: &str, goes_on: &dyn Fn(u64) -> bool) {
        let task = self.tasks.begin(format!("Moving files off the volume {directory}"), "Looking for files");
        let mut rounds = Rounds::default();
        let ended = loop {
            match self.drain_round(directory, &mut rounds, goes_on) {
                Round::Empty => break None,
                Round::Ended(why) => break Some(why),
                Round::Again(what) => task.set_status(what),
            }
            if self.rest(ROUND_PAUSE) {
                break Some("the server stopped".to_owned());
            }
        };
        match &ended {
            None => {
                tracing::info!(
                    files = rounds.files,
                    bytes = rounds.bytes,
                    "no file is on the volume {directory} any more"
                );
                task.complete(format!("{} files were moved", rounds.files));
            }
            Some(why) => {
                tracing::warn!(
                    "files are left on the volume {directory}: {why}; basalt admin drain-volume goes on with them"
                );
                task.abort(why.clone());
            }
        }
        self.waiting.end_moving(directory, ended);
    }

    fn drain_round(&self, directory: &str, rounds: &mut Rounds, goes_on: &dyn Fn(u64) -> bool) -> Round {
        // A log that is written there goes on in a file elsewhere.
        if rounds.idle.is_multiple_of(ROLL_EVERY_ROUNDS) {
            for log in self.logs() {
                if let Err(error) = log.roll() {
                    tracing::warn!("the WAL was not rolled and may still be on {directory}: {error}; trying again");
                }
            }
        }
        let drained = match self.env.volume.drain(directory, goes_on) {
            Ok(drained) => drained,
            Err(why) => return Round::Ended(why),
        };
        rounds.files += drained.files;
        rounds.bytes += drained.bytes;
        rounds.idle = if drained.files > 0 { 1 } else { rounds.idle + 1 };
        let left = drained.left;
        if left == 0 {
            return Round::Empty;
        }
        if drained.failed > 0 && drained.files == 0 {
            let why = drained.why.unwrap_or_default();
            return Round::Ended(format!("{} of {left} files cannot be moved: {why}", drained.failed));
        }
        if drained.being_written == 0 && rounds.idle > MOST_IDLE_ROUNDS {
            return Round::Ended(format!(
                "{left} files are counted there that no name leads to; start the server anew"
            ));
        }
        Round::Again(format!(
            "{} files were moved, {left} are left, {} of them are being written",
            rounds.files, drained.being_written
        ))
    }

    /// What memory holds goes to files elsewhere; where that fails the region takes no calls, and is closed the next time.
    fn close_lost(&self, region: &Arc<region::Region>, volume: &str) {
        let name = region.name();
        // By the next look who is at it is done.
        let Some(_turn) = self.waiting.turns.of_volume(name) else { return };
        if !self.region(name).is_some_and(|online| Arc::ptr_eq(&online, region)) {
            return;
        }
        let Ok(_transition) = self.begin_transition(region.info()) else { return };
        let waiting = Waiting {
            info: region.info().clone(),
            table: region.table().clone(),
            volumes: region.volumes(),
            tried: None,
        };
        self.waiting.regions.lock().insert(name.clone(), waiting);
        let is_first = !region.is_closing();
        let shown = region.info().name_string();
        match self.close_and_forget(region, CloseMode::Flush) {
            Ok(()) => {
                // What was flushed may be on yet another one.
                let volumes = region.volumes();
                let others: Vec<&str> = volumes.iter().map(String::as_str).filter(|other| *other != volume).collect();
                let others = match others.is_empty() {
                    true => String::new(),
                    false => format!(" (it has files on {}, too)", others.join(" and ")),
                };
                tracing::warn!(
                    "{shown} is closed: files of it are on {volume}, which failed; it opens again when that is back{others}"
                );
                self.waiting.regions.lock().entry(name.clone()).and_modify(|waiting| waiting.volumes = volumes);
            }
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

    fn open_again(&self, name: &Arc<str>) {
        let (now, failed) = (self.env.volume.failures_and_returns(), self.env.volume.failed_places());
        let Some(_turn) = self.waiting.turns.of_volume(name) else { return };
        let (info, table, is_news) = {
            let mut regions = self.waiting.regions.lock();
            let Some(waiting) = regions.get_mut(name) else { return };
            let now_us = self.env.clock.monotonic_us();
            // One that has failed may have nothing of it any more: its files are moved off, too.
            let still_waits = failed.iter().any(|volume| waiting.volumes.contains(volume));
            let is_news = match waiting.tried {
                Some((volumes, tried_us)) if volumes == now || still_waits => {
                    if now_us.saturating_sub(tried_us) < PAUSE_US {
                        return;
                    }
                    false
                }
                None if still_waits => {
                    waiting.tried = Some((now, now_us));
                    return;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_its_own_turn_and_orders_share_it() {
        let (turns, [a, b]) = (Turns::default(), ["a", "b"].map(Arc::from));
        let of_a = turns.of_volume(&a).expect("nobody is at it");
        assert!(turns.of_volume(&a).is_none());
        let (one, two) = (turns.of_order("b"), turns.of_order("b"));
        assert!(turns.of_volume(&b).is_none(), "orders are at it");
        drop(one);
        assert!(turns.of_volume(&b).is_none(), "one is still");
        drop(two);
        drop(turns.of_volume(&b).expect("nobody is at it"));
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            scope.spawn(|| {
                let _turn = turns.of_order("a");
                sender.send(()).expect("somebody listens");
                drop(sender);
            });
            assert!(
                receiver.recv_timeout(std::time::Duration::from_millis(50)).is_err(),
                "the volume's thread is at it"
            );
            drop(of_a);
            receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("its turn comes");
        });
        assert!(turns.at.lock().is_empty());
    }
}
