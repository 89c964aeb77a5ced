//! Which regions an order opens or closes now, until the master knows the outcome. Follows: `HRegionServer#getRegionsInTransitionInRS`.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What an order does to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Opening,
    Closing,
}

/// The regions under way, by encoded name.
#[derive(Default)]
pub(crate) struct Moving(Arc<Mutex<FxHashMap<Arc<str>, Direction>>>);

/// A region under way; ends when dropped.
pub(crate) struct Move {
    all: Arc<Mutex<FxHashMap<Arc<str>, Direction>>>,
    name: Arc<str>,
}

impl Drop for Move {
    fn drop(&mut self) {
        self.all.lock().remove(&self.name);
    }
}

impl Moving {
    /// Whether an order opens the region, or will when its turn comes.
    pub fn opens(&self, name: &str) -> bool {
        self.0.lock().get(name) == Some(&Direction::Opening)
    }

    /// Begins; or what another order does to the region.
    pub fn begin(&self, name: &Arc<str>, direction: Direction) -> Result<Move, Direction> {
        let mut all = self.0.lock();
        match all.get(name) {
            Some(other) => Err(*other),
            None => {
                all.insert(name.clone(), direction);
                Ok(Move { all: self.0.clone(), name: name.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_moves_one_way_at_a_time() {
        let (moving, name) = (Moving::default(), Arc::from("a"));
        let closing = moving.begin(&name, Direction::Closing);
        assert!(closing.is_ok());
        assert_eq!(moving.begin(&name, Direction::Opening).err(), Some(Direction::Closing));
        drop(closing);
        let opening = moving.begin(&name, Direction::Opening);
        assert!(opening.is_ok() && moving.opens("a"));
        drop(opening);
        assert!(!moving.opens("a"));
    }
}
