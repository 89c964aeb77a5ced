//! Mutations that build on what the row holds: Increment, Append, and the delete of a column's latest version. Follows:
//! `MutationBatchOperation#reckonDeltas`, `HRegion#prepareDeleteTimestamps`.

use super::Writer;
use super::prepare::{Column, LATEST, Prepared, column_of, deletes_latest_version};
use crate::error::{RegionError, Result};
use crate::scan::open::RegionReader;
use crate::ticks::MOST_AHEAD_MS;
use base::{ReadMode, ReadPoint, SeqId};
use cell::{CellBuffer, CellRef, CellSpec, CellType, tag};
use model::{Get, Mutation, MutationKind};
use std::collections::BTreeMap;

/// Cells of a row as a Get answers them, in the order of families and columns, asked for in that order: so each is
/// passed once, however many columns a mutation changes.
struct OldCells<'a, I: Iterator<Item = CellRef<'a>>> {
    cells: std::iter::Peekable<I>,
    #[cfg(test)]
    passed: usize,
}

impl<'a, I: Iterator<Item = CellRef<'a>>> OldCells<'a, I> {
    fn new(cells: I) -> Self {
        OldCells {
            cells: cells.peekable(),
            #[cfg(test)]
            passed: 0,
        }
    }

    /// The column's first cell. It may be asked for again, but no column before it.
    fn of_column(&mut self, column: Column<'_>) -> Option<CellRef<'a>> {
        while self.cells.next_if(|cell| column_of(*cell) < column).is_some() {
            #[cfg(test)]
            {
                self.passed += 1;
            }
        }
        self.cells.peek().copied().filter(|cell| column_of(*cell) == column)
    }
}

impl Writer<'_> {
    /// For each column of which the mutation deletes the latest version, the timestamps of its newest versions: as many
    /// as it deletes, the second delete of a column being meant for the second version. Each column is read once.
    pub(super) fn newest_versions<'m>(
        &self,
        mutation: &'m Mutation,
        mode: ReadMode<'_>,
    ) -> Result<BTreeMap<Column<'m>, std::vec::IntoIter<i64>>> {
        let mut wanted: BTreeMap<Column<'m>, u32> = BTreeMap::new();
        for cell in mutation.cells.iter().filter(|cell| deletes_latest_version(*cell)) {
            *wanted.entry(column_of(cell)).or_default() += 1;
        }
        let mut newest = BTreeMap::new();
        let mut found = CellBuffer::new();
        for (column, count) in wanted {
            let mut get = Get::new(mutation.row.clone());
            let (family, qualifier) =
                (bytes::Bytes::copy_from_slice(column.0), bytes::Bytes::copy_from_slice(column.1));
            get.columns.insert(family, vec![qualifier]);
            get.max_versions = count;
            found.clear();
            RegionReader::new(self.core).read_row(&get, ReadPoint::ALL, mode, &mut found)?;
            let timestamps: Vec<i64> = found.iter_from(0).map(|cell| cell.timestamp()).collect();
            newest.insert(column, timestamps.into_iter());
        }
        Ok(newest)
    }

    /// Adds what an Increment or Append comes to.
    pub(super) fn prepare_change(
        &self,
        mutation: &Mutation,
        mode: ReadMode<'_>,
        prepared: &mut Prepared,
    ) -> Result<Option<CellBuffer>> {
        let get = get_of_changed(mutation);
        let mut old = CellBuffer::new();
        RegionReader::new(self.core).read_row(&get, ReadPoint::ALL, mode, &mut old)?;

        // HBase answers in the order of families and columns.
        let mut deltas: Vec<CellRef<'_>> = mutation.cells.iter().collect();
        deltas.sort_by(|a, b| column_of(*a).cmp(&column_of(*b)));
        let mut result = mutation.return_results.then(CellBuffer::new);
        let (mut value, mut tags) = (Vec::new(), Vec::new());
        let mut before = OldCells::new(old.iter_from(0));
        for delta in deltas {
            let current = before.of_column(column_of(delta));
            new_value(mutation.kind, delta, current, &mut value)?;
            tags.clear();
            carry_tags(&mut tags, mutation.ttl_ms, delta, current);
            if tags.len() > usize::from(u16::MAX) {
                return Err(RegionError::DoNotRetry(format!("the tags of a cell come to {} bytes", tags.len())));
            }
            let timestamp = match current {
                Some(current) => self.stamp_after(current.timestamp(), prepared),
                None if delta.timestamp() == LATEST => prepared.tick,
                None => delta.timestamp(),
            };
            let spec = CellSpec {
                row: &mutation.row,
                family: delta.family(),
                qualifier: delta.qualifier(),
                timestamp,
                type_code: CellType::Put.code(),
                value: &value,
                tags: &tags,
            };
            self.check_size(&spec)?;
            prepared.touch(self.core.store_index(delta.family()));
            prepared.push_spec(&spec);
            if let Some(result) = &mut result {
                result.push_spec(&spec, SeqId(0));
            }
        }
        Ok(result)
    }

    fn check_size(&self, spec: &CellSpec<'_>) -> Result<()> {
        let max_bytes = self.core.settings.max_cell_size_bytes;
        let size = spec.encoded_len() as u64 + 4;
        if max_bytes == 0 || size <= max_bytes {
            return Ok(());
        }
        Err(RegionError::DoNotRetry(format!(
            "Cell with size {size} exceeds limit of {max_bytes} bytes in region {}",
            self.core.info.name_string()
        )))
    }

    /// The stamp of what takes the place of a value. Of two cells of one tick the later write counts, so that a hot
    /// counter need not run ahead of the clock, where deletes would not reach it. A stamp further ahead is a client's;
    /// HBase's rule is for those.
    fn stamp_after(&self, current: i64, prepared: &Prepared) -> i64 {
        if current > prepared.moment.now.saturating_add(MOST_AHEAD_MS) || self.core.ticks.has_hbase_semantics() {
            return prepared.tick.max(current.saturating_add(1));
        }
        prepared.tick.max(current)
    }
}

/// Asks for the columns that the mutation changes.
fn get_of_changed(mutation: &Mutation) -> Get {
    let mut get = Get::new(mutation.row.clone());
    get.time_range = mutation.time_range;
    for cell in &mutation.cells {
        let columns = get.columns.entry(bytes::Bytes::copy_from_slice(cell.family())).or_default();
        columns.push(bytes::Bytes::copy_from_slice(cell.qualifier()));
    }
    for columns in get.columns.values_mut() {
        columns.sort();
        columns.dedup();
    }
    get
}

/// What `delta` makes of the value that is there.
fn new_value(kind: MutationKind, delta: CellRef<'_>, current: Option<CellRef<'_>>, value: &mut Vec<u8>) -> Result<()> {
    value.clear();
    if kind == MutationKind::Increment {
        let amount = long_value(delta)?;
        let sum = current.map(long_value).transpose()?.unwrap_or(0).wrapping_add(amount);
        value.extend_from_slice(&sum.to_be_bytes());
    } else {
        value.extend_from_slice(current.map_or(&b""[..], CellRef::value));
        value.extend_from_slice(delta.value());
    }
    Ok(())
}

/// Tags of the change, then those of the old value; the change's time to live wins. Follows: `TagUtil`.
fn carry_tags(out: &mut Vec<u8>, ttl_ms: Option<i64>, delta: CellRef<'_>, current: Option<CellRef<'_>>) {
    let all = [delta.tags(), current.map_or(&b""[..], CellRef::tags)];
    for (tag_type, value) in all.into_iter().flat_map(tag::iter) {
        if ttl_ms.is_none() || tag_type != tag::TTL {
            tag::write(out, tag_type, value);
        }
    }
    if let Some(ttl_ms) = ttl_ms {
        tag::write(out, tag::TTL, &ttl_ms.to_be_bytes());
    }
}

fn long_value(cell: CellRef<'_>) -> Result<i64> {
    let value = cell.value();
    value
        .try_into()
        .map(i64::from_be_bytes)
        .map_err(|_| RegionError::DoNotRetry(format!("Field is not a long, it's {} bytes wide", value.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An increment of a whole wide row passes each old cell once; columns that are new or named twice cost nothing
    /// more.
    #[test]
    fn the_old_cells_of_a_wide_row_are_passed_once() {
        const COLUMNS: usize = 5000;
        let name = |i: usize| format!("q{i:05}");
        let mut old = CellBuffer::new();
        for family in [&b"f"[..], b"g"] {
            for i in (0..COLUMNS).step_by(2) {
                let name = name(i);
                let spec = CellSpec {
                    row: b"r",
                    family,
                    qualifier: name.as_bytes(),
                    timestamp: 1,
                    type_code: CellType::Put.code(),
                    value: b"v",
                    tags: b"",
                };
                old.push_spec(&spec, SeqId(1));
            }
        }
        let mut before = OldCells::new(old.iter_from(0));
        for family in [&b"f"[..], b"g"] {
            for i in 0..COLUMNS {
                let name = name(i);
                for _ in 0..2 {
                    let found = before.of_column((family, name.as_bytes()));
                    assert_eq!(found.map(column_of), (i % 2 == 0).then_some((family, name.as_bytes())));
                }
            }
        }
        assert!(before.passed <= old.len(), "{} steps for {} cells", before.passed, old.len());
    }
}
