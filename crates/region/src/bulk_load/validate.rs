//! Whether a file can be loaded. Follows: `HStore#assertBulkLoadHFileOk`.

use super::{BulkLoader, LoadFile};
use crate::error::{RegionError, Result};
use bytes::Bytes;
use hfile::{Reader, ReaderContext, ScanOptions};
use std::sync::Arc;

impl BulkLoader<'_> {
    /// False when the file holds rows of other regions.
    pub(super) fn check_load_file(&self, file: &LoadFile) -> Result<bool> {
        let Some(store) = self.core.store(&file.family) else {
            let family = cell::print::to_string_binary(&file.family);
            return Err(RegionError::DoNotRetry(format!("No such column family {family}")));
        };
        let open = file.place.open(&*self.core.env.volume).map_err(|e| RegionError::volume(self.core.name(), e))?;
        let path = file.place.path();
        let context = ReaderContext { dictionary: store.dictionary.clone(), ..ReaderContext::default() };
        let reader = Reader::open_at(open, path, context).map_err(|e| RegionError::file(self.core.name(), e))?;
        let (Some(first), Some(last)) = (reader.first_key(), reader.last_key()) else {
            return Err(RegionError::Damaged {
                region: self.core.name().clone(),
                what: format!("First key can not be null: {} holds no cells", file.name),
            });
        };
        let (first, last) = (first.row(), last.row());
        if first > last {
            return Err(RegionError::Damaged {
                region: self.core.name().clone(),
                what: format!(
                    "Invalid range: {} > {} in {}",
                    cell::print::to_string_binary(first),
                    cell::print::to_string_binary(last),
                    file.name
                ),
            });
        }
        if !self.core.info.contains(first) || !self.core.info.contains(last) {
            tracing::warn!(region = %self.core.name(), file = %file.name, "a file to be loaded does not fit inside the region");
            return Ok(false);
        }
        if store.settings.load().verify_bulk_load {
            self.verify_cells(file, &reader)?;
        }
        Ok(true)
    }

    fn verify_cells(&self, file: &LoadFile, reader: &Arc<Reader>) -> Result<()> {
        let wrap = |e| RegionError::file(self.core.name(), e);
        let options = ScanOptions { cache_blocks: false, pread: false, compaction: true, ..ScanOptions::default() };
        let mut scanner = reader.scanner(options);
        let mut last: Option<(Bytes, Bytes)> = None;
        let mut more = scanner.seek_to_first().map_err(wrap)?;
        while more {
            let Some(cell) = scanner.current() else { break };
            let what = match &last {
                Some((row, _)) if cell.row() < &row[..] => Some("Previous row is greater than current row"),
                Some((_, family)) if cell.family() != &family[..] => {
                    Some("Previous key had different family compared to current key")
                }
                _ => None,
            };
            if let Some(what) = what {
                return Err(RegionError::Damaged {
                    region: self.core.name().clone(),
                    what: format!("{what}: path={} current={}", file.name, cell::print::to_string_binary(cell.row())),
                });
            }
            if last.as_ref().is_none_or(|(row, _)| cell.row() != &row[..]) {
                last = Some((Bytes::copy_from_slice(cell.row()), Bytes::copy_from_slice(cell.family())));
            }
            more = scanner.next().map_err(wrap)?;
        }
        Ok(())
    }
}
