//! Turns a mutation into the cells that are logged and inserted: stamped, deletes spelled out, increments and appends
//! computed. Follows: `HRegion#prepareDeleteTimestamps`, `MutationBatchOperation#reckonDeltas`.

use crate::error::{RegionError, Result};
use crate::region::Region;
use crate::ticks::{MOST_AHEAD_MS, Moment, Taken};
use base::{ReadMode, ReadPoint, SeqId};
use cell::print::Binary;
use cell::{CellBuffer, CellRef, CellSpec, CellType, tag};
use model::{Get, Mutation, MutationKind};
use std::collections::BTreeMap;

const LATEST: i64 = i64::MAX;

/// A group's cells, ready for log and memstore.
pub(super) struct Prepared {
    /// When.
    pub moment: Moment,
    /// Milliseconds that LATEST stands for in the mutation that is prepared.
    pub tick: i64,
    /// Timestamp of what a check saw; puts are not stamped earlier, so that it does not eclipse them.
    pub seen: i64,
    /// The newest marker with a stamp of the server in the mutation that is prepared, if it hides what is stamped from
    /// now on.
    pub marker: Option<i64>,
    /// The ticks taken that later writes must look out for.
    pub taken: Vec<Taken>,
    /// Cells in cell-block layout.
    pub run: Vec<u8>,
    /// Number of cells in `run`.
    pub cells: usize,
    /// Those of them that are logged, where some mutations skip the log and others do not, and their number.
    pub logged: Option<(Vec<u8>, usize)>,
    /// What came of each mutation; `None` for those passed over.
    pub outcomes: Vec<Option<Result<Option<CellBuffer>>>>,
    touched: u64,
}

impl Prepared {
    pub(super) fn new(moment: Moment, group: &[Mutation]) -> Prepared {
        let bytes: usize = group.iter().map(|mutation| mutation.cells.bytes().len() + 64).sum();
        Prepared {
            moment,
            tick: moment.now,
            seen: 0,
            marker: None,
            taken: Vec::new(),
            run: Vec::with_capacity(bytes),
            cells: 0,
            logged: None,
            outcomes: Vec::with_capacity(group.len()),
            touched: 0,
        }
    }

    /// A mutation comes with this tick.
    pub(super) fn begin(&mut self, tick: i64) {
        (self.tick, self.marker) = (tick, None);
    }

    /// The server has stamped a marker.
    fn mark(&mut self, timestamp: i64) {
        // What lies behind hides nothing that comes; what lies ahead of the tick was stamped by a client.
        if (self.moment.now..=self.tick).contains(&timestamp) {
            self.marker = self.marker.max(Some(timestamp));
        }
    }

    /// The cells for the log, and their number.
    pub(super) fn for_log(&self) -> (&[u8], usize) {
        self.logged.as_ref().map_or((&self.run, self.cells), |(run, cells)| (run, *cells))
    }

    /// Whether there may be cells for store number `store`.
    pub(super) fn touches(&self, store: usize) -> bool {
        self.touched & (1 << store.min(63)) != 0
    }

    fn touch(&mut self, store: usize) {
        self.touched |= 1 << store.min(63);
    }

    /// Copies a cell; `timestamp` replaces LATEST.
    fn push(&mut self, cell: CellRef<'_>, timestamp: i64) {
        let bytes = cell.bytes();
        self.run.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        let start = self.run.len();
        self.run.extend_from_slice(bytes);
        if cell.timestamp() == LATEST {
            let at = start + 8 + cell.key().bytes().len() - 9;
            self.run[at..at + 8].copy_from_slice(&timestamp.to_be_bytes());
        }
        self.cells += 1;
    }

    fn push_spec(&mut self, spec: &CellSpec<'_>) {
        self.run.extend_from_slice(&(spec.encoded_len() as u32).to_be_bytes());
        spec.write(&mut self.run);
        self.cells += 1;
    }
}

/// Whether the cell deletes "the latest version", whichever that is.
pub(super) fn deletes_latest_version(cell: CellRef<'_>) -> bool {
    cell.type_code() == CellType::Delete.code() && cell.timestamp() == LATEST
}

/// Family and qualifier.
type Column<'a> = (&'a [u8], &'a [u8]);

fn column_of(cell: CellRef<'_>) -> Column<'_> {
    (cell.family(), cell.qualifier())
}

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

impl Region {
    /// Refuses what HBase refuses before it looks at any data.
    pub(super) fn validate(&self, mutation: &Mutation) -> Result<()> {
        self.check_row(&mutation.row, "batch mutation")?;
        if mutation.row.is_empty() {
            return Err(RegionError::DoNotRetry("Row length is 0".into()));
        }
        let settings = &self.settings;
        let newest_allowed = if settings.timestamp_slop_ms == i64::MAX {
            i64::MAX
        } else {
            self.env().clock.now_ms().0.saturating_add(settings.timestamp_slop_ms)
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
            if self.store(key.family()).is_none() {
                return Err(self.no_such_family(key.family()));
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

    /// Adds the cells of one mutation. The caller holds the row's lock, or only wants the blocks in memory.
    pub(super) fn prepare(
        &self,
        mutation: &Mutation,
        mode: ReadMode<'_>,
        prepared: &mut Prepared,
    ) -> Result<Option<CellBuffer>> {
        match mutation.kind {
            MutationKind::Put => {
                let timestamp = prepared.tick.max(prepared.seen);
                for cell in &mutation.cells {
                    prepared.touch(self.store_index(cell.family()));
                    // Of a marker, too, LATEST is the moment, even if it deletes one version: HBase looks for the
                    // latest in deletes alone.
                    if cell.is_delete() && cell.timestamp() == LATEST {
                        prepared.mark(timestamp);
                    }
                    prepared.push(cell, timestamp);
                }
                Ok(None)
            }
            MutationKind::Delete if mutation.cells.is_empty() => {
                let timestamp = if mutation.timestamp == LATEST { prepared.tick } else { mutation.timestamp };
                if mutation.timestamp == LATEST {
                    prepared.mark(timestamp);
                }
                for (i, store) in self.stores.iter().enumerate() {
                    prepared.touch(i);
                    prepared.push_spec(&CellSpec {
                        row: &mutation.row,
                        family: &store.name,
                        qualifier: b"",
                        timestamp,
                        type_code: CellType::DeleteFamily.code(),
                        value: b"",
                        tags: b"",
                    });
                }
                Ok(None)
            }
            MutationKind::Delete => {
                let mut newest = self.newest_versions(mutation, mode)?;
                for cell in &mutation.cells {
                    prepared.touch(self.store_index(cell.family()));
                    let version = match deletes_latest_version(cell) {
                        true => newest.get_mut(&column_of(cell)).and_then(Iterator::next),
                        false => None,
                    };
                    let timestamp = version.unwrap_or(prepared.tick);
                    if cell.timestamp() == LATEST {
                        prepared.mark(timestamp);
                    }
                    prepared.push(cell, timestamp);
                }
                Ok(None)
            }
            MutationKind::Append | MutationKind::Increment => self.prepare_change(mutation, mode, prepared),
        }
    }

    /// For each column of which the mutation deletes the latest version, the timestamps of its newest versions: as many
    /// as it deletes, the second delete of a column being meant for the second version. Each column is read once.
    fn newest_versions<'m>(
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
            self.read_row(&get, ReadPoint::ALL, mode, &mut found)?;
            let timestamps: Vec<i64> = found.iter_from(0).map(|cell| cell.timestamp()).collect();
            newest.insert(column, timestamps.into_iter());
        }
        Ok(newest)
    }

    fn prepare_change(
        &self,
        mutation: &Mutation,
        mode: ReadMode<'_>,
        prepared: &mut Prepared,
    ) -> Result<Option<CellBuffer>> {
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
        let mut old = CellBuffer::new();
        self.read_row(&get, ReadPoint::ALL, mode, &mut old)?;

        // HBase answers in the order of families and columns.
        let mut deltas: Vec<CellRef<'_>> = mutation.cells.iter().collect();
        deltas.sort_by(|a, b| column_of(*a).cmp(&column_of(*b)));
        let mut result = mutation.return_results.then(CellBuffer::new);
        let (mut value, mut tags) = (Vec::new(), Vec::new());
        let mut before = OldCells::new(old.iter_from(0));
        for delta in deltas {
            let current = before.of_column(column_of(delta));
            value.clear();
            if mutation.kind == MutationKind::Increment {
                let amount = long_value(delta)?;
                let sum = current.map(long_value).transpose()?.unwrap_or(0).wrapping_add(amount);
                value.extend_from_slice(&sum.to_be_bytes());
            } else {
                value.extend_from_slice(current.map_or(&b""[..], CellRef::value));
                value.extend_from_slice(delta.value());
            }
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
            let size = spec.encoded_len() as u64 + 4;
            if self.settings.max_cell_size_bytes > 0 && size > self.settings.max_cell_size_bytes {
                return Err(RegionError::DoNotRetry(format!(
                    "Cell with size {size} exceeds limit of {} bytes in region {}",
                    self.settings.max_cell_size_bytes,
                    self.info().name_string()
                )));
            }
            prepared.touch(self.store_index(delta.family()));
            prepared.push_spec(&spec);
            if let Some(result) = &mut result {
                result.push_spec(&spec, SeqId(0));
            }
        }
        Ok(result)
    }
}

impl Region {
    /// The stamp of what takes the place of a value. Of two cells of one tick the later write counts, so that a hot
    /// counter need not run ahead of the clock, where deletes would not reach it. A stamp further ahead is a client's;
    /// HBase's rule is for those.
    fn stamp_after(&self, current: i64, prepared: &Prepared) -> i64 {
        if current > prepared.moment.now.saturating_add(MOST_AHEAD_MS) || self.settings.hbase_tick_semantics {
            return prepared.tick.max(current.saturating_add(1));
        }
        prepared.tick.max(current)
    }
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
