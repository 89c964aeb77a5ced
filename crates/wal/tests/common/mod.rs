//! What entries of these tests have, and where their regions are: a directory for each below its table's.
#![allow(dead_code, reason = "each test takes what it needs")]

use basalt_wal::{Result, SplitDestination, SplitTarget};
use base::SeqId;
use cell::{CellBuffer, CellSpec, CellType};
use fs::{FilePath, Volume};

/// What an entry has whose cells do not matter.
pub fn one_cell() -> CellBuffer {
    let mut cells = CellBuffer::new();
    let spec = CellSpec {
        row: b"row",
        family: b"f",
        qualifier: b"q",
        timestamp: 1,
        type_code: CellType::Put.code(),
        value: b"v",
        tags: b"",
    };
    cells.push_spec(&spec, SeqId(0));
    cells
}

/// The directory of a region.
pub fn region_dir(table: &str, region: &str) -> FilePath {
    FilePath::new("tables").join(table).join(region)
}

/// The directory of its recovered edits.
pub fn edits_dir(table: &str, region: &str) -> FilePath {
    region_dir(table, region).join("recovered.edits")
}

/// The regions that have a directory.
pub struct Directories<'a, F> {
    pub volume: &'a dyn Volume,
    /// Up to which id a region's entries are in store files, if known.
    pub flushed: F,
}

impl<F: FnMut(&str) -> Option<SeqId>> SplitTarget for Directories<'_, F> {
    fn destination(&mut self, table: &str, region: &str) -> Result<SplitDestination> {
        let dir = region_dir(table, region);
        if !self.volume.exists(&dir)? {
            return Ok(SplitDestination::Drop);
        }
        Ok(SplitDestination::Directory { dir, edits_dir: edits_dir(table, region), flushed: (self.flushed)(region) })
    }
}

/// The same, with nothing in store files.
pub fn directories(volume: &dyn Volume) -> Directories<'_, impl FnMut(&str) -> Option<SeqId>> {
    Directories { volume, flushed: |_: &str| None }
}
