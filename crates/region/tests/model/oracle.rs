//! The oracle: a store as a list of runs, each a sorted list of cells, and HBase's rules over them, one cell after the
//! other. Slow, short, and without seeks, hints, indexes or heaps. It is the statement of what a read gives and of what
//! a flush or a compaction keeps; the engine must agree with it.
//!
//! The rules of a read, in the order in which they are tried on each cell of a row (user reads; raw reads pass 3 to 5):
//!  1. Not visible yet (sequence id above the read point), or expired by its own time to live: not there.
//!  2. Expired by the family's time to live: not there, unless MIN_VERSIONS keeps it.
//!  3. A delete marker is remembered, unless its timestamp says that it cannot count in the time range asked for.
//!  4. Masked by a remembered marker: by timestamp alone ([`masked`]), or with NEW_VERSION_BEHAVIOR by what arrived
//!     when ([`super::arrival`]).
//!  5. Outside the time range, or not of an asked column: not there.
//!  6. A second cell of the same column, timestamp and type: not there.
//!  7. More than VERSIONS (or than were asked for), or expired and more than MIN_VERSIONS: not there.
//!  8. Left out by the filter, or let through by it but more than were asked for: not there ([`super::sieve`]).
//!  9. Before the offset or after the limit of cells of a row and family: not there.

use super::arrival;
use super::sieve::Sieve;
use cell::CellType;
use model::{KeepDeletedCells, TimeRange};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub row: Vec<u8>,
    pub qualifier: Vec<u8>,
    pub timestamp: i64,
    pub cell_type: CellType,
    pub seq_id: u64,
    /// Later in one batch wins.
    pub position: usize,
    pub value: Vec<u8>,
    /// Its own time to live.
    pub ttl_ms: Option<i64>,
}

impl Cell {
    pub fn is_delete(&self) -> bool {
        CellType::is_delete(self.cell_type.code())
    }

    pub fn is_of_family(&self) -> bool {
        matches!(self.cell_type, CellType::DeleteFamily | CellType::DeleteFamilyVersion)
    }

    /// Whether it stands at the same place. Of such cells of one batch only the last was ever there.
    pub fn is_same(&self, other: &Cell) -> bool {
        self.timestamp == other.timestamp
            && self.cell_type == other.cell_type
            && (&self.row, &self.qualifier) == (&other.row, &other.qualifier)
    }

    fn has_outlived_itself(&self, now: i64) -> bool {
        self.ttl_ms.is_some_and(|ttl| self.timestamp + ttl < now)
    }

    /// Within a row by column; within a column newest first; of one timestamp markers first, then the later arrival.
    fn order(a: &Cell, b: &Cell) -> Ordering {
        let newest_first = |cell: &Cell| Reverse((cell.timestamp, cell.cell_type.code(), cell.seq_id, cell.position));
        (&a.row, &a.qualifier).cmp(&(&b.row, &b.qualifier)).then_with(|| newest_first(a).cmp(&newest_first(b)))
    }
}

#[derive(Clone, Debug)]
pub struct Rules {
    pub max_versions: usize,
    pub min_versions: usize,
    pub ttl_ms: Option<i64>,
    pub keep: KeepDeletedCells,
    /// NEW_VERSION_BEHAVIOR.
    pub by_arrival: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Empty for the memstore.
    pub name: String,
    pub cells: Vec<Cell>,
    /// No put of it is older. Of a part of another region's file: of all the file.
    pub earliest_put: i64,
    /// The rows that it is for.
    pub rows: Rows,
}

impl Run {
    pub fn new(name: String, cells: Vec<Cell>, rows: Rows) -> Run {
        let puts = cells.iter().filter(|cell| !cell.is_delete());
        let earliest_put = puts.map(|cell| cell.timestamp).min().unwrap_or(i64::MAX);
        Run { name, cells, earliest_put, rows }
    }
}

/// Rows from the first on, before the second; an empty one is open.
#[derive(Clone, Debug, Default)]
pub struct Rows(pub Vec<u8>, pub Vec<u8>);

impl Rows {
    fn contain(&self, row: &[u8]) -> bool {
        *row >= self.0[..] && (self.1.is_empty() || *row < self.1[..])
    }
}

/// Files by the rows that they are for: each cell in the one that has its row.
fn divided(cells: Vec<Cell>, files: &[(String, Rows)]) -> Vec<Run> {
    let count = cells.len();
    let of = |(name, rows): &(String, Rows)| {
        let own = cells.iter().filter(|cell| rows.contain(&cell.row)).cloned().collect();
        Run::new(name.clone(), own, rows.clone())
    };
    let runs: Vec<Run> = files.iter().map(of).collect();
    assert_eq!(runs.iter().map(|run| run.cells.len()).sum::<usize>(), count, "each cell is of one of {files:?}");
    runs
}

/// One family.
#[derive(Clone, Debug)]
pub struct Store {
    pub rules: Rules,
    pub memory: Run,
    /// Oldest first.
    pub files: Vec<Run>,
}

/// What to read of a family.
#[derive(Clone, Debug)]
pub struct Ask {
    pub versions: usize,
    pub range: TimeRange,
    pub raw: bool,
    pub columns: Option<BTreeSet<Vec<u8>>>,
    pub offset: usize,
    pub limit: Option<usize>,
    /// Cells with a higher sequence id are not visible yet.
    pub read_point: u64,
}

impl Ask {
    /// The newest `versions` of one column as a writer sees them.
    pub fn newest(qualifier: &[u8], versions: usize, range: TimeRange) -> Ask {
        let columns = Some(BTreeSet::from([qualifier.to_vec()]));
        Ask { versions, range, raw: false, columns, offset: 0, limit: None, read_point: u64::MAX }
    }
}

impl Rules {
    fn oldest_unexpired(&self, now: i64) -> i64 {
        self.ttl_ms.map_or(i64::MIN, |ttl| now - ttl)
    }

    /// KEEP_DELETED_CELLS: whether a marker of this age is a kept version like any other and masks nothing for good.
    fn keeps(&self, timestamp: i64, now: i64) -> bool {
        match self.keep {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => timestamp >= self.oldest_unexpired(now),
        }
    }
}

pub fn sorted(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.sort_by(Cell::order);
    cells
}

/// Whether one of the markers seen so far in the row hides `cell`; true with "the rest of its column as well". A
/// marker hides by timestamp, whenever it arrived. Where a marker of one version of the family hides it, one of the
/// column is not asked.
fn masked(markers: &[Cell], cell: &Cell) -> Option<bool> {
    let older = |marker: &Cell| cell.timestamp <= marker.timestamp;
    let same_time = |marker: &Cell| cell.timestamp == marker.timestamp;
    let hides = |of_type: CellType, counts: &dyn Fn(&Cell) -> bool| {
        let of_column = |m: &Cell| m.is_of_family() || m.qualifier == cell.qualifier;
        markers.iter().any(|m| m.cell_type == of_type && of_column(m) && counts(m))
    };
    if hides(CellType::DeleteFamily, &older) {
        Some(true)
    } else if hides(CellType::DeleteFamilyVersion, &same_time) {
        Some(false)
    } else if hides(CellType::DeleteColumn, &older) {
        Some(true)
    } else {
        hides(CellType::Delete, &same_time).then_some(false)
    }
}

/// State of one column while its cells go by.
#[derive(Default)]
struct Column {
    name: Option<Vec<u8>>,
    count: usize,
    last: Option<(i64, u8)>,
    /// Nothing more of it is wanted.
    closed: bool,
    /// Its asked versions are there; markers still count.
    full: bool,
}

impl Column {
    fn enter(&mut self, qualifier: &[u8]) {
        if self.name.as_deref() != Some(qualifier) {
            *self = Column { name: Some(qualifier.to_vec()), ..Column::default() };
        }
    }

    /// The rest of the column is passed over, except that nothing is passed over in the empty column, where family
    /// markers are.
    fn close(&mut self) {
        self.closed = self.name.as_deref() != Some(b"");
    }
}

impl Store {
    pub fn new(rules: Rules) -> Store {
        Store { rules, memory: Run::default(), files: Vec::new() }
    }

    pub fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        self.files.iter().chain([&self.memory]).flat_map(|run| &run.cells)
    }

    /// The cells of `row` that `ask` is answered with: rules 1 to 9.
    pub fn read_row(&self, row: &[u8], ask: &Ask, family: &str, sieve: &mut Sieve<'_>, now: i64) -> Vec<Cell> {
        let mut out: Vec<Cell> = Vec::new();
        let versions = if ask.raw { ask.versions } else { ask.versions.min(self.rules.max_versions) };
        let mut full: Option<Vec<u8>> = None;
        for cell in self.before_filter(row, ask, sieve.is_there(), now) {
            // After one too many the filter is not asked about the rest of the column.
            if full.as_ref() == Some(&cell.qualifier) || !sieve.takes(family, &cell) {
                continue;
            }
            let before = out.iter().filter(|earlier| earlier.qualifier == cell.qualifier).count();
            if before < versions || !sieve.is_there() {
                out.push(cell);
            } else if !cell.qualifier.is_empty() {
                full = Some(cell.qualifier);
            }
        }
        out.into_iter().skip(ask.offset).take(ask.limit.unwrap_or(usize::MAX)).collect()
    }

    /// The same without a filter.
    pub fn read_column(&self, row: &[u8], ask: &Ask, now: i64) -> Vec<Cell> {
        self.read_row(row, ask, "", &mut Sieve::default(), now)
    }

    /// Rules 1 to 7. A filter is shown as many versions as the family keeps.
    fn before_filter(&self, row: &[u8], ask: &Ask, filtered: bool, now: i64) -> Vec<Cell> {
        let rules = &self.rules;
        let there = |c: &&Cell| c.row == row && c.seq_id <= ask.read_point && !c.has_outlived_itself(now);
        let cells = sorted(self.all_cells().filter(there).cloned().collect());
        let oldest = if ask.raw { 0 } else { rules.oldest_unexpired(now) };
        let family_versions = if ask.raw { usize::MAX } else { rules.max_versions };
        let asked_versions = ask.versions.min(family_versions);
        let versions = if filtered { family_versions } else { asked_versions };
        let counts = |marker: &Cell| {
            if rules.keep == KeepDeletedCells::False {
                marker.timestamp >= ask.range.min
            } else {
                ask.range.contains(marker.timestamp)
            }
        };
        let by_arrival = rules.by_arrival && !ask.raw;
        let gone = if by_arrival { arrival::gone(&cells, counts, rules.max_versions) } else { BTreeSet::new() };
        let (mut markers, mut out, mut column) = (Vec::new(), Vec::new(), Column::default());
        for (at, cell) in cells.iter().enumerate() {
            column.enter(&cell.qualifier);
            let expired = cell.timestamp < oldest;
            if column.closed || (!by_arrival && rules.min_versions == 0 && expired) {
                continue;
            }
            if cell.is_delete() && !ask.raw {
                if counts(cell) {
                    markers.push(cell.clone());
                }
                continue;
            }
            let hidden = if by_arrival { gone.contains(&at) } else { !ask.raw && masked(&markers, cell).is_some() };
            let asked = ask.columns.as_ref().is_none_or(|columns| columns.contains(&cell.qualifier));
            if hidden || !ask.range.contains(cell.timestamp) || !asked {
                continue;
            }
            if by_arrival {
                column.count += 1;
                // The last that MIN_VERSIONS keeps is shown even where fewer were asked for, if it is looked at: in the
                // empty column.
                let is_last_kept = expired && column.count == rules.min_versions;
                if is_last_kept || (column.count <= asked_versions && !(expired && column.count > rules.min_versions)) {
                    out.push(cell.clone());
                }
                if column.count >= asked_versions || (expired && column.count >= rules.min_versions) {
                    column.close();
                }
                continue;
            }
            if ask.columns.is_some() {
                if column.full || column.last == Some((cell.timestamp, 0)) {
                    continue;
                }
                column.count += 1;
                column.last = Some((cell.timestamp, 0));
                out.push(cell.clone());
                // HBase looks at the age only after it has taken the cell.
                column.full = column.count >= versions || (column.count >= rules.min_versions && expired);
                continue;
            }
            if column.last == Some((cell.timestamp, cell.cell_type.code())) {
                continue;
            }
            if !cell.is_delete() {
                column.count += 1;
            }
            if column.count > versions || (column.count > rules.min_versions && expired) {
                column.close();
                continue;
            }
            column.last = Some((cell.timestamp, cell.cell_type.code()));
            out.push(cell.clone());
        }
        out
    }

    /// What a flush or a compaction makes of `cells`. What is not visible yet stays and hides nothing; what a read would
    /// never show again is left out; markers stay until all files are rewritten.
    fn rewrite(
        &self,
        cells: Vec<Cell>,
        drops_deletes: bool,
        earliest_put: i64,
        now: i64,
        read_point: u64,
    ) -> Vec<Cell> {
        let rules = &self.rules;
        let oldest = rules.oldest_unexpired(now);
        let mut cells = sorted(cells);
        if rules.by_arrival && !drops_deletes {
            // What masks what depends on everything that arrived: nothing goes before all is seen.
            return cells;
        }
        cells.retain(|cell| !cell.has_outlived_itself(now));
        let mut out = Vec::new();
        for row in cells.chunk_by(|a, b| a.row == b.row) {
            if rules.by_arrival {
                out.extend(self.rewrite_by_arrival(row, earliest_put, now, read_point));
                continue;
            }
            let (mut markers, mut column) = (Vec::new(), Column::default());
            for cell in row {
                column.enter(&cell.qualifier);
                let expired = cell.timestamp < oldest;
                if column.closed || (rules.min_versions == 0 && expired) {
                    continue;
                }
                let newer = cell.seq_id > read_point;
                if cell.is_delete() {
                    if !newer && !rules.keeps(cell.timestamp, now) {
                        markers.push(cell.clone());
                    }
                    if newer || !drops_deletes {
                        out.push(cell.clone());
                        continue;
                    }
                    if !rules.keeps(cell.timestamp, now) {
                        continue;
                    }
                    if cell.timestamp < earliest_put {
                        column.close();
                        continue;
                    }
                } else if let Some(rest) = masked(&markers, cell) {
                    if rest {
                        column.close();
                    }
                    continue;
                }
                if newer {
                    out.push(cell.clone());
                    continue;
                }
                if column.last == Some((cell.timestamp, cell.cell_type.code())) {
                    continue;
                }
                if !cell.is_delete() {
                    column.count += 1;
                }
                if column.count > rules.max_versions || (column.count > rules.min_versions && expired) {
                    column.close();
                    continue;
                }
                column.last = Some((cell.timestamp, cell.cell_type.code()));
                out.push(cell.clone());
            }
        }
        out
    }

    /// NEW_VERSION_BEHAVIOR: what a rewriting of all files keeps of a row. A kept marker (KEEP_DELETED_CELLS) counts as
    /// a version of the column that was entered before it and may push out what follows, as in HBase 2.6.4.
    fn rewrite_by_arrival(&self, row: &[Cell], earliest_put: i64, now: i64, read_point: u64) -> Vec<Cell> {
        let rules = &self.rules;
        let counts = |marker: &Cell| marker.seq_id <= read_point && !rules.keeps(marker.timestamp, now);
        let gone = arrival::gone(row, counts, rules.max_versions);
        let (mut out, mut column) = (Vec::new(), Column::default());
        let mut passed: Option<&[u8]> = None;
        for (at, cell) in row.iter().enumerate() {
            if passed == Some(&cell.qualifier) && !cell.qualifier.is_empty() {
                continue;
            }
            let newer = cell.seq_id > read_point;
            if cell.is_delete() {
                if newer {
                    out.push(cell.clone());
                    continue;
                }
                if counts(cell) {
                    column.enter(&cell.qualifier);
                    continue;
                }
                if cell.timestamp < earliest_put {
                    passed = Some(&cell.qualifier);
                    continue;
                }
            } else {
                column.enter(&cell.qualifier);
                if gone.contains(&at) {
                    continue;
                }
            }
            if newer {
                out.push(cell.clone());
                continue;
            }
            column.count += 1;
            let expired = cell.timestamp < rules.oldest_unexpired(now);
            let most = if expired { rules.max_versions.min(rules.min_versions) } else { rules.max_versions };
            if column.count <= most {
                out.push(cell.clone());
            }
            if column.count >= most {
                passed = Some(&cell.qualifier);
            }
        }
        out
    }

    /// The memstore becomes files; none when it was empty.
    pub fn flush(&mut self, files: &[(String, Rows)], now: i64, read_point: u64) {
        let cells = std::mem::take(&mut self.memory.cells);
        assert_eq!(files.is_empty(), cells.is_empty(), "a flush writes a file exactly if there is something to flush");
        let cells = self.rewrite(cells, false, i64::MIN, now, read_point);
        self.files.extend(divided(cells, files));
    }

    /// The files called `inputs` become the files `output` at the place of the newest of them. Delete markers of a row go where all files that
    /// may have the row are among them.
    pub fn compact(&mut self, inputs: &[String], output: &[(String, Rows)], now: i64, read_point: u64) {
        let taken: Vec<Run> = self.files.iter().filter(|run| inputs.contains(&run.name)).cloned().collect();
        let place = self.files.iter().position(|run| run.name == inputs[0]).expect("known files");
        let earliest_put = taken.iter().map(|run| run.earliest_put).min().unwrap_or(i64::MIN);
        let left: Vec<&Run> = self.files.iter().filter(|run| !inputs.contains(&run.name)).collect();
        let (kept, dropping): (Vec<Cell>, Vec<Cell>) = taken
            .into_iter()
            .flat_map(|run| run.cells)
            .partition(|cell| left.iter().any(|run| run.rows.contain(&cell.row)));
        let mut cells = self.rewrite(kept, false, earliest_put, now, read_point);
        cells.extend(self.rewrite(dropping, true, earliest_put, now, read_point));
        self.files.retain(|run| !inputs.contains(&run.name));
        self.files.splice(place..place, divided(sorted(cells), output));
    }
}
