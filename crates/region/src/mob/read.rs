//! From a reference to the cell it stands for. Follows: `HMobStore#resolve`, `MobFile#readCell`.

use super::{MobStore, target};
use crate::error::{RegionError, Result};
use cell::{CellRef, CellSpec};
use hfile::{Residency, ScanOptions};
use model::MobRead;
use std::sync::Arc;

/// How one scanner reads large values.
#[derive(Clone, Debug)]
pub(crate) struct MobReads {
    pub store: Arc<MobStore>,
    pub how: MobRead,
    pub residency: Residency,
}

impl MobReads {
    /// As [`MobReads::resolve`], for a reader: what it takes from a MOB file is counted.
    pub(crate) fn read(&self, reference: CellRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.resolve(reference, out)?;
        self.store.counts.read.add(out.len());
        Ok(())
    }

    /// Writes the KeyValue that `reference` stands for into `out`. A cell that its file does not have is one with an
    /// empty value.
    ///
    /// # Errors
    /// A file that is nowhere, unless the read wants an empty value then; one that cannot be read; `WouldBlock`.
    pub(crate) fn resolve(&self, reference: CellRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let found = match target(reference) {
            Some((table, name)) => match self.store.file(&table, name, self.residency)? {
                Some(reader) => self.find(&reader, reference, out)?,
                None if self.how.empty_on_miss => false,
                None => {
                    return Err(RegionError::DoNotRetry(format!(
                        "java.io.FileNotFoundException: the MOB file {name} of table {table} is neither in {} nor in the archive",
                        self.store.dir
                    )));
                }
            },
            None => false,
        };
        if !found {
            tracing::warn!(
                key = %cell::print::to_string_binary(reference.key().bytes()),
                "a MOB reference leads to no cell; it is read with an empty value"
            );
            write(reference, b"", reference.tags(), out);
        }
        Ok(())
    }

    fn find(&self, reader: &Arc<hfile::Reader>, reference: CellRef<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let wrap = |e| RegionError::file(&self.store.region, e);
        let options = ScanOptions {
            cache_blocks: self.how.cache_blocks,
            pread: true,
            residency: self.residency,
            ..ScanOptions::default()
        };
        let mut scanner = reader.scanner(options);
        let mut more = scanner.seek(reference.key()).map_err(wrap)?;
        let mut found = false;
        // Of several cells with this key the one of the reference's own sequence id, else the next older; a reference
        // that lost its id was the newest.
        while more && let Some(cell) = scanner.current() {
            if cell.key().bytes() != reference.key().bytes() {
                break;
            }
            let is_it = cell.seq_id() <= reference.seq_id();
            if is_it || !found {
                out.clear();
                write(reference, cell.value(), cell.tags(), out);
                found = true;
            }
            if is_it {
                break;
            }
            more = scanner.next().map_err(wrap)?;
        }
        Ok(found)
    }
}

fn write(key_of: CellRef<'_>, value: &[u8], tags: &[u8], out: &mut Vec<u8>) {
    let spec = CellSpec {
        row: key_of.row(),
        family: key_of.family(),
        qualifier: key_of.qualifier(),
        timestamp: key_of.timestamp(),
        type_code: key_of.type_code(),
        value,
        tags,
    };
    spec.write(out);
}
