//! Which regions are online here, and which are on their way in or out.
//!
//! Always true: a region is opened or closed by one caller at a time, for as long as that one holds its [`Transition`].

use model::TableName;
use parking_lot::{Mutex, RwLock};
use region::Region;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The regions of a server, by encoded name.
#[derive(Default)]
pub(crate) struct OnlineRegions {
    regions: RwLock<FxHashMap<Arc<str>, Arc<Region>>>,
    in_transition: Arc<Mutex<FxHashSet<Arc<str>>>>,
}

impl OnlineRegions {
    /// The online region of that name.
    pub fn get(&self, encoded_name: &str) -> Option<Arc<Region>> {
        self.regions.read().get(encoded_name).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Region>> {
        self.regions.read().values().cloned().collect()
    }

    /// How many regions are here, and how many of them are of `table`.
    pub fn count_with(&self, table: &TableName) -> (usize, usize) {
        let regions = self.regions.read();
        let of_table = regions.values().filter(|region| region.info().table == *table && region.info().replica_id == 0);
        (regions.len(), of_table.count())
    }

    /// The region takes calls from now on.
    pub fn insert(&self, region: &Arc<Region>) {
        self.regions.write().insert(region.info().encoded_name().clone(), region.clone());
    }

    /// The region is not here any more.
    pub fn remove(&self, encoded_name: &str) {
        self.regions.write().remove(encoded_name);
    }

    /// Whether the region is being opened or closed.
    pub fn is_in_transition(&self, encoded_name: &str) -> bool {
        self.in_transition.lock().contains(encoded_name)
    }

    /// Begins to open or close a region; `None`: somebody else is at it.
    pub fn begin_transition(&self, encoded_name: &Arc<str>) -> Option<Transition> {
        let is_first = self.in_transition.lock().insert(encoded_name.clone());
        is_first.then(|| Transition { all: self.in_transition.clone(), name: encoded_name.clone() })
    }
}

/// A region between being asked for and being done; ends when dropped.
pub(crate) struct Transition {
    all: Arc<Mutex<FxHashSet<Arc<str>>>>,
    name: Arc<str>,
}

impl Drop for Transition {
    fn drop(&mut self) {
        self.all.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_one_transition_at_a_time() {
        let (regions, name) = (OnlineRegions::default(), Arc::from("a"));
        let first = regions.begin_transition(&name);
        assert!(first.is_some() && regions.is_in_transition("a"));
        assert!(regions.begin_transition(&name).is_none());
        drop(first);
        assert!(!regions.is_in_transition("a") && regions.begin_transition(&name).is_some());
    }
}
