//! Moves an idle scanner from memstore segments that are in files now onto these files, so that the segments' memory is let go.
//!
//! A scanner sees the region at its read point, whatever it reads it from. It can be moved where the store's picture still has every
//! version of that read point; flushes and compactions keep those that open scanners see ([`ScannerReadPoints`]), so only one that was
//! opened while the flush ran cannot be. Nothing is decided anew: rows, columns and versions are counted on where they were.
//! Follows: `StoreScanner#updateReaders`, `#reopenAfterFlush`, `HRegion#getSmallestReadPoint`.

use super::merge::Merge;
use super::rows::RowReader;
use super::store_scanner::StoreScanner;
use crate::core::RegionCore;
use crate::error::Result;
use crate::store::StoreView;
use base::{ReadPoint, SeqId};
use cell::KeyRef;
use hfile::Residency;
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The read points of a region's open scanners: flushes and compactions keep what they see.
#[derive(Debug, Default)]
pub(crate) struct ScannerReadPoints(Mutex<BTreeMap<ReadPoint, usize>>);

impl ScannerReadPoints {
    pub(crate) fn add(&self, point: ReadPoint) {
        *self.0.lock().entry(point).or_default() += 1;
    }

    pub(crate) fn remove(&self, point: ReadPoint) {
        let mut points = self.0.lock();
        if let Some(count) = points.get_mut(&point) {
            *count -= 1;
            if *count == 0 {
                points.remove(&point);
            }
        }
    }

    /// The lowest, if there is a scanner.
    pub(crate) fn smallest(&self) -> Option<ReadPoint> {
        self.0.lock().first_key_value().map(|(point, _)| *point)
    }
}

/// Where a merge stood.
enum Mark {
    /// Nothing is left.
    End,
    /// Forwards at this cell, or, with its row, backwards.
    Cell { key: Vec<u8>, seq_id: SeqId, row: Option<Vec<u8>> },
    /// Backwards, behind the last cell of this row.
    RowEnd(Vec<u8>),
}

impl Mark {
    fn of(merge: &Merge) -> Mark {
        let row = merge.row().map(<[u8]>::to_vec);
        match (merge.current(), row) {
            (Some(cell), row) => Mark::Cell { key: cell.key().bytes().to_vec(), seq_id: cell.seq_id(), row },
            (None, Some(row)) => Mark::RowEnd(row),
            (None, None) => Mark::End,
        }
    }

    /// Brings a merge of other sources to the same place, or behind it where the cell is gone, because it has expired.
    fn restore(&self, merge: &mut Merge) -> hfile::Result<()> {
        let order = merge.order();
        match self {
            Mark::End => Ok(()),
            Mark::Cell { key, seq_id, row } => {
                match row {
                    Some(row) => merge.seek_row_back(Some(row), true)?,
                    None => merge.sources_moved()?,
                }
                let key = KeyRef::from_checked(key);
                while let Some(cell) = merge.current() {
                    let is_before = match order.keys(cell.key(), key) {
                        Ordering::Less => true,
                        // Of equal keys the newer comes first.
                        Ordering::Equal => cell.seq_id() > *seq_id,
                        Ordering::Greater => false,
                    };
                    // Backwards another row is a later place, whatever its keys.
                    if !is_before || row.as_ref().is_some_and(|row| cell.row() != &row[..]) {
                        break;
                    }
                    merge.next()?;
                }
                Ok(())
            }
            Mark::RowEnd(row) => {
                merge.seek_row_back(Some(row), true)?;
                while merge.current().is_some_and(|cell| cell.row() == &row[..]) {
                    merge.next()?;
                }
                Ok(())
            }
        }
    }
}

impl StoreScanner {
    /// Whether it keeps a segment in memory that is not part of `view`.
    fn holds_flushed(&self, view: &StoreView) -> bool {
        let is_there = |segment| view.memory.segments().any(|now| Arc::ptr_eq(now, segment));
        self.merge().sources().iter().filter_map(|source| source.pinned()).any(|segment| !is_there(segment))
    }

    /// Goes on from the sources of `view`, which has all that the read point shows.
    fn move_to(&mut self, view: &StoreView, read_point: ReadPoint) -> Result<()> {
        // Afterwards the cell that comes next has not been looked at yet: if it is gone, the one behind it is next.
        self.finish_step()?;
        let order = self.merge().order();
        let mark = if self.peek().is_none() && !self.in_row() { Mark::End } else { Mark::of(self.merge()) };
        let moved = match (&mark, self.selection()) {
            (Mark::End, _) | (_, None) => Ok(Merge::new(order, Vec::new())),
            (mark, Some(selection)) => {
                let opened = selection.open(view, read_point, Residency::MayRead, |source, _| match mark {
                    Mark::Cell { key, row: None, .. } => source.seek(KeyRef::from_checked(key)),
                    _ => Ok(()),
                });
                opened.and_then(|mut merge| mark.restore(&mut merge).map(|()| merge))
            }
        };
        let moved = self.wrap(moved)?;
        self.replace_merge(moved);
        Ok(())
    }
}

impl RowReader {
    /// Lets go of segments that have been flushed; false where some must stay, for the files do not have all that the reader sees.
    /// Between two steps. After an error the reader is not to be used again.
    pub(super) fn update_readers(&mut self, core: &RegionCore) -> Result<bool> {
        let read_point = self.read_point;
        let residency = self.residency();
        let is_streaming = self.is_streaming();
        let mut is_free = true;
        for scanner in self.scanners_mut() {
            let Some(store) = scanner.selection().and_then(|selection| core.store(selection.family())) else {
                continue;
            };
            let view = store.view();
            if !scanner.holds_flushed(&view) {
                continue;
            }
            if view.whole_from > read_point {
                is_free = false;
                continue;
            }
            scanner.set_residency(Residency::MayRead);
            scanner.move_to(&view, read_point)?;
            scanner.set_residency(residency);
            if is_streaming {
                scanner.merge_mut().sources_mut().iter_mut().for_each(|source| source.set_pread(false));
            }
        }
        Ok(is_free)
    }

    /// Whether it keeps segments in memory that have been flushed.
    pub(super) fn holds_flushed(&mut self, core: &RegionCore) -> bool {
        self.scanners_mut().any(|scanner| {
            let store = scanner.selection().and_then(|selection| core.store(selection.family()));
            store.is_some_and(|store| scanner.holds_flushed(&store.peek()))
        })
    }
}
