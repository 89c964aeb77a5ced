//! Reading a file back after it was written: is all of it there, and can all of it be read?

use crate::reader::Reader;
use crate::scanner::{Residency, ScanOptions};
use crate::{Error, Result};
use std::sync::Arc;

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
        let options = ScanOptions {
            cache_blocks: false,
            pread: false,
            compaction: true,
            residency: Residency::MayRead,
            ..ScanOptions::default()
        };
        let damaged = |what: &str| Error::corrupt(self.path(), 0, what.to_owned());
        let mut scanner = self.scanner(options);
        let (mut count, mut previous, mut next_block) = (0, Vec::new(), None::<Vec<u8>>);
        let mut more = scanner.seek_to_first()?;
        while more {
            let cell = scanner.current().ok_or_else(|| damaged("a scanner lost its place"))?;
            let key = cell.key();
            let in_order = |before: cell::KeyRef<'_>| self.order().keys(before, key).is_le();
            if count > 0 && !cell::KeyRef::parse(&previous).is_ok_and(in_order) {
                return Err(damaged("its cells are not in order"));
            }
            let next = scanner.next_indexed_key();
            if count == 0 || next.map(|key| key.bytes()) != next_block.as_deref() {
                next_block = next.map(|key| key.bytes().to_vec());
                let before = (count > 0).then(|| cell::KeyRef::from_checked(&previous));
                if !scanner.is_indexed(before, key) {
                    return Err(damaged("its index does not lead to a cell that it holds"));
                }
                let is_marker = FAMILY_MARKERS.contains(&cell.type_code());
                let found = match is_marker {
                    true => self.may_contain_delete_family(cell.row(), Residency::MayRead)?,
                    false => self.may_contain_row_col(cell.row(), cell.qualifier(), Residency::MayRead)?,
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
        if count != self.entry_count() {
            return Err(damaged(&format!("it holds {count} cells and says {}", self.entry_count())));
        }
        Ok(count)
    }
}
