//! NEW_VERSION_BEHAVIOR, stated as history: the column's puts and the markers that are meant for it are played in the
//! order of their arrival.
//!
//!  1. A put takes the place of one with its timestamp.
//!  2. What is older than the newest VERSIONS is gone for good, even if a newer one is deleted afterwards. Versions
//!     that one batch wrote come all at once and count as one.
//!  3. A marker takes away what it covers of what is there at that moment, and nothing that comes later. Of one batch,
//!     the puts come first.

use super::oracle::Cell;
use cell::CellType;
use std::collections::{BTreeMap, BTreeSet};

/// Places in `cells` (of one row, in order) of the puts that are not there any more. `counts` says which markers count.
pub fn gone(cells: &[Cell], counts: impl Fn(&Cell) -> bool, max_versions: usize) -> BTreeSet<usize> {
    let mut gone = BTreeSet::new();
    let columns: BTreeSet<&[u8]> = cells.iter().map(|cell| &cell.qualifier[..]).collect();
    for column in columns {
        let concerns = |cell: &Cell| match cell.is_delete() {
            true => counts(cell) && (cell.is_of_family() || cell.qualifier == column),
            false => cell.qualifier == column,
        };
        let mut history: Vec<(usize, &Cell)> = cells.iter().enumerate().filter(|(_, cell)| concerns(cell)).collect();
        history.sort_by_key(|(_, cell)| (cell.seq_id, cell.is_delete(), cell.position));
        let mut there: BTreeMap<i64, (usize, u64)> = BTreeMap::new();
        for (place, (at, cell)) in history.iter().enumerate() {
            match cell.cell_type {
                CellType::DeleteFamily | CellType::DeleteColumn => {
                    there.retain(|timestamp, _| *timestamp > cell.timestamp);
                }
                CellType::DeleteFamilyVersion | CellType::Delete => drop(there.remove(&cell.timestamp)),
                _ => drop(there.insert(cell.timestamp, (*at, cell.seq_id))),
            }
            let is_same_batch = |next: &Cell| (next.seq_id, next.is_delete()) == (cell.seq_id, cell.is_delete());
            if !history.get(place + 1).is_some_and(|(_, next)| is_same_batch(next)) {
                push_out(&mut there, max_versions);
            }
        }
        let left: BTreeSet<usize> = there.values().map(|(at, _)| *at).collect();
        gone.extend(history.iter().filter(|(at, cell)| !cell.is_delete() && !left.contains(at)).map(|(at, _)| *at));
    }
    gone
}

fn push_out(there: &mut BTreeMap<i64, (usize, u64)>, max_versions: usize) {
    let mut batches = BTreeSet::new();
    let mut kept = BTreeMap::new();
    for (timestamp, put) in there.iter().rev() {
        if batches.len() >= max_versions {
            break;
        }
        batches.insert(put.1);
        kept.insert(*timestamp, *put);
    }
    *there = kept;
}
