//! Reading a file back after it was written: is all of it there, and can all of it be read?

use crate::reader::{LastChunk, Reader};
use crate::scanner::{Residency, ScanOptions};
use crate::{Error, Result};
use cell::KeyRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The cells from one key of the index to another.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The first is at this key or behind it; `None`: the file's first.
    from: Option<Vec<u8>>,
    /// The last is before this key; `None`: the file's last.
    to: Option<Vec<u8>>,
}

/// Cell types of DeleteFamily and DeleteFamilyVersion, which have a Bloom filter of their own.
const FAMILY_MARKERS: [u8; 2] = [14, 10];

impl Reader {
    /// Reads every block once: data blocks from the first cell to the last, and for the first cell of each the path through the index, whose
    /// entries must lie between the cells before and behind them, and the chunks of the Bloom filters. Checks the cells' order and number. Returns the number. Keeps nothing in the cache.
    ///
    /// More than HBase, which looks at the first cell of each block. Costs a sequential read of the file and its decoding.
    ///
    /// # Errors
    /// `Corrupt` when something does not fit; `Io`.
    pub fn read_through(self: &Arc<Self>) -> Result<u64> {
        let count = self.read_part(&Part::default())?;
        self.check_count(count)?;
        Ok(count)
    }

    /// The file in at most so many parts of about as many blocks, each of which may be read by another thread; together they are all of it.
    pub fn parts(&self, most: usize) -> Vec<Part> {
        let (entries, most) = (self.root.len(), most.max(1));
        let cuts = (1..most).map(|part| part * entries / most).filter(|cut| *cut > 0).collect::<BTreeSet<usize>>();
        let mut parts = vec![Part::default()];
        for cut in cuts {
            let key = self.root.key(cut).bytes().to_vec();
            parts.last_mut().expect("one at least").to = Some(key.clone());
            parts.push(Part { from: Some(key), to: None });
        }
        parts
    }

    /// The file has so many cells, as all parts together had.
    ///
    /// # Errors
    /// `Corrupt`: it says that it has others.
    pub fn check_count(&self, count: u64) -> Result<()> {
        if count == self.entry_count() {
            return Ok(());
        }
        Err(Error::corrupt(self.path(), 0, format!("it holds {count} cells and says {}", self.entry_count())))
    }

    /// [`Reader::read_through`] for the cells of a part. Returns their number, which is not checked.
    ///
    /// # Errors
    /// As of that.
    pub fn read_part(self: &Arc<Self>, part: &Part) -> Result<u64> {
        let options = ScanOptions {
            cache_blocks: false,
            pread: false,
            compaction: true,
            residency: Residency::MayRead,
            ..ScanOptions::default()
        };
        let damaged = |what: &str| Error::corrupt(self.path(), 0, what.to_owned());
        let end = part.to.as_deref().map(KeyRef::from_checked);
        let mut scanner = self.scanner(options);
        let (mut count, mut previous, mut next_block) = (0, Vec::new(), None::<Vec<u8>>);
        // Cells in order ask one chunk many times in a row, and there may be no cache that keeps it.
        let (mut of_markers, mut of_others) = (LastChunk::default(), LastChunk::default());
        let mut more = match part.from.as_deref() {
            Some(from) => scanner.seek(KeyRef::from_checked(from))?,
            None => scanner.seek_to_first()?,
        };
        while more {
            let cell = scanner.current().ok_or_else(|| damaged("a scanner lost its place"))?;
            let key = cell.key();
            if end.is_some_and(|end| self.order().keys(key, end).is_ge()) {
                break;
            }
            // A key that was read was checked.
            if count > 0 && self.order().keys(KeyRef::from_checked(&previous), key).is_gt() {
                return Err(damaged("its cells are not in order"));
            }
            let next = scanner.next_indexed_key();
            if count == 0 || next.map(|key| key.bytes()) != next_block.as_deref() {
                next_block = next.map(|key| key.bytes().to_vec());
                let before = (count > 0).then(|| KeyRef::from_checked(&previous));
                if !scanner.is_indexed(before, key) {
                    return Err(damaged("its index does not lead to a cell that it holds"));
                }
                let is_marker = FAMILY_MARKERS.contains(&cell.type_code());
                let found = match is_marker {
                    true => self.ask_delete_family(cell.row(), Residency::MayRead, Some(&mut of_markers))?,
                    false => {
                        let last = Some(&mut of_others);
                        self.ask_row_col(cell.row(), cell.qualifier(), Residency::MayRead, last)?
                    }
                };
                if !found {
                    return Err(damaged("its Bloom filter denies a cell that it holds"));
                }
            }
            previous.clear();
            previous.extend_from_slice(key.bytes());
            count += 1;
            more = scanner.next()?;
        }
        Ok(count)
    }
}
