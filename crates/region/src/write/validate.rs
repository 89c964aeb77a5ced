//! What is refused before anybody looks at the data. Follows: `HRegion#checkFamilies`, `#checkTimestamps`, `RSRpcServices#checkCellSizeLimit`.

use super::Writer;
use super::prepare::LATEST;
use crate::error::{RegionError, Result};
use cell::print::Binary;
use cell::{CellRef, CellType};
use model::{Mutation, MutationKind};

impl Writer<'_> {
    /// Refuses what HBase refuses before it looks at any data.
    pub(super) fn validate(&self, mutation: &Mutation) -> Result<()> {
        self.core.check_row(&mutation.row, "batch mutation")?;
        if mutation.row.is_empty() {
            return Err(RegionError::DoNotRetry("Row length is 0".into()));
        }
        let settings = &self.core.settings;
        let newest_allowed = if settings.timestamp_slop_ms == i64::MAX {
            i64::MAX
        } else {
            self.core.env.clock.now_ms().0.saturating_add(settings.timestamp_slop_ms)
        };
        let deletes = mutation.kind == MutationKind::Delete;
        let builds_on = matches!(mutation.kind, MutationKind::Increment | MutationKind::Append);
        for cell in &mutation.cells {
            let key = cell.key();
            if key.row() != &mutation.row[..] {
                return Err(RegionError::DoNotRetry(format!(
                    "The row in {} doesn't match the original one {}",
                    Binary(key.row()),
                    Binary(&mutation.row)
                )));
            }
            if self.core.store(key.family()).is_none() {
                return Err(self.core.no_such_family(key.family()));
            }
            // A put may hold markers, of any type.
            let is_put = key.type_code() == CellType::Put.code();
            if !cell.is_delete() && (deletes || !is_put) || cell.is_delete() && builds_on {
                return Err(RegionError::DoNotRetry(format!(
                    "{:?} mutation holds a cell of type {}",
                    mutation.kind,
                    key.type_code()
                )));
            }
            let size = cell.bytes().len() as u64 + 4;
            if settings.max_cell_size_bytes > 0 && size > settings.max_cell_size_bytes {
                return Err(RegionError::DoNotRetry(format!(
                    "Cell[{}] with size {size} exceeds limit of {} bytes",
                    describe(cell),
                    settings.max_cell_size_bytes
                )));
            }
            if key.timestamp() != LATEST && key.timestamp() > newest_allowed {
                return Err(RegionError::FailedSanityCheck(format!(
                    "Timestamp for KV out of range {} (too.new={})",
                    describe(cell),
                    settings.timestamp_slop_ms
                )));
            }
        }
        Ok(())
    }
}

/// As `KeyValue#toString`.
fn describe(cell: CellRef<'_>) -> String {
    let timestamp = match cell.timestamp() {
        LATEST => "LATEST_TIMESTAMP".to_owned(),
        timestamp => timestamp.to_string(),
    };
    let type_name = CellType::from_code(cell.type_code()).map_or("Unknown".to_owned(), |t| format!("{t:?}"));
    format!(
        "{}/{}:{}/{timestamp}/{type_name}/vlen={}/seqid={}",
        Binary(cell.row()),
        Binary(cell.family()),
        Binary(cell.qualifier()),
        cell.value().len(),
        cell.seq_id()
    )
}
