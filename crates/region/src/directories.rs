//! Where the edits of a log go: to the directories of the regions that are there.

use fs::Volume;
use rootdir::{paths::region_dir_of_names, recovered_edits};
use wal::{SplitDestination, SplitTarget};

/// The regions of a root directory. One whose directory does not exist is gone. Which of its entries are in store files already is seen
/// when it is opened, family by family.
pub struct RegionDirectories<'a> {
    /// The root directory.
    pub volume: &'a dyn Volume,
}

impl SplitTarget for RegionDirectories<'_> {
    fn destination(&mut self, table: &str, region: &str) -> wal::Result<SplitDestination> {
        let Some(dir) = region_dir_of_names(table, region) else { return Ok(SplitDestination::Drop) };
        Ok(match self.volume.stat(&dir)? {
            Some(entry) if entry.is_dir => {
                let edits_dir = dir.join(recovered_edits::DIR);
                SplitDestination::Directory { dir, edits_dir, flushed: None }
            }
            _ => SplitDestination::Drop,
        })
    }
}
