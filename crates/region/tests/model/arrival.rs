//! NEW_VERSION_BEHAVIOR, stated as history: the column's puts and the markers that are meant for it are played in the
//! order of their arrival.
//!
//!  1. A put takes the place of one with its timestamp.
//!  2. What is older than the newest VERSIONS is gone for good, even if a newer one is deleted afterwards. Versions
//!     that one batch wrote come all at once and count as one.
//!  3. A marker takes away what it covers of what is there at that moment, and nothing that comes later. Of one batch,
//!     the puts come first.
//!  4. As in HBase 2.6.4, a marker of one version of the family is forgotten when 2 is judged on the day of a later
//!     marker over the family that has an older timestamp.

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
        // Each marker over a family or column is a day of reckoning, and the end of time is one.
        let wide = |cell: &Cell| matches!(cell.cell_type, CellType::DeleteFamily | CellType::DeleteColumn);
        let days: Vec<&Cell> = history.iter().map(|(_, cell)| *cell).filter(|cell| wide(cell)).collect();
        for day in days.iter().copied().map(Some).chain([None]) {
            let until = day.map_or(u64::MAX, |day| day.seq_id);
            if day.is_none_or(|day| day.cell_type == CellType::DeleteFamily) {
                let is_that_day =
                    |marker: &Cell| day_of(marker, &days).map(|day| day.seq_id) == day.map(|day| day.seq_id);
                let matters = |(at, cell): &&(usize, &Cell)| {
                    cell.seq_id <= until
                        && if cell.is_delete() { !wide(cell) && is_that_day(cell) } else { !gone.contains(at) }
                };
                let played: Vec<(usize, &Cell)> = history.iter().filter(matters).copied().collect();
                let left = play(&played, max_versions);
                gone.extend(
                    played.iter().filter(|(at, cell)| !cell.is_delete() && !left.contains(at)).map(|(at, _)| *at),
                );
            }
            let covered = |cell: &Cell| day.is_some_and(|day| cell.seq_id <= until && cell.timestamp <= day.timestamp);
            gone.extend(history.iter().filter(|(_, cell)| !cell.is_delete() && covered(cell)).map(|(at, _)| *at));
        }
    }
    gone
}

/// The day up to which a marker of one version counts: the first after it. HBase looks only among those that it has read
/// by then: with the family's markers, among the ones that are not older by timestamp.
fn day_of<'a>(marker: &Cell, days: &[&'a Cell]) -> Option<&'a Cell> {
    let is_read = |day: &&Cell| day.timestamp >= marker.timestamp || (!marker.is_of_family() && day.is_of_family());
    days.iter().copied().filter(is_read).find(|day| day.seq_id >= marker.seq_id)
}

/// Places of the puts that are there in the end.
fn play(history: &[(usize, &Cell)], max_versions: usize) -> BTreeSet<usize> {
    let mut there: BTreeMap<i64, (usize, u64)> = BTreeMap::new();
    for (place, (at, cell)) in history.iter().enumerate() {
        if cell.is_delete() {
            there.remove(&cell.timestamp);
        } else {
            there.insert(cell.timestamp, (*at, cell.seq_id));
        }
        let is_same_batch = |next: &Cell| (next.seq_id, next.is_delete()) == (cell.seq_id, cell.is_delete());
        if !history.get(place + 1).is_some_and(|(_, next)| is_same_batch(next)) {
            push_out(&mut there, max_versions);
        }
    }
    there.values().map(|(at, _)| *at).collect()
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
