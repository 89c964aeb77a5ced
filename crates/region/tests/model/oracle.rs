//! The oracle: a store as a list of runs, each a sorted list of cells, and HBase's rules over them, one cell after the
//! other. Slow, short, and without seeks, hints, indexes or heaps.

use cell::CellType;
use model::{KeepDeletedCells, TimeRange};
use std::cmp::Reverse;
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
}

impl Cell {
    fn is_delete(&self) -> bool {
        CellType::is_delete(self.cell_type.code())
    }

    fn sort_key(&self) -> impl Ord + use<> {
        (
            self.row.clone(),
            self.qualifier.clone(),
            Reverse(self.timestamp),
            Reverse(self.cell_type.code()),
            Reverse(self.seq_id),
            Reverse(self.position),
        )
    }
}

#[derive(Clone, Debug)]
pub struct Rules {
    pub max_versions: usize,
    pub min_versions: usize,
    pub ttl_ms: Option<i64>,
    pub keep: KeepDeletedCells,
}

#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Empty for the memstore.
    pub name: String,
    pub cells: Vec<Cell>,
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

impl Rules {
    fn oldest_unexpired(&self, now: i64) -> i64 {
        self.ttl_ms.map_or(i64::MIN, |ttl| now - ttl)
    }

    fn keeps(&self, timestamp: i64, now: i64) -> bool {
        match self.keep {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => timestamp >= self.oldest_unexpired(now),
        }
    }
}

pub fn sorted(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.sort_by_key(Cell::sort_key);
    cells
}

/// Whether one of the markers seen so far in the row hides `cell`; true with "the rest of its column as well".
fn masked(markers: &[Cell], cell: &Cell) -> Option<bool> {
    let same_column = |marker: &&Cell| marker.qualifier == cell.qualifier;
    let all = markers.iter().any(|m| m.cell_type == CellType::DeleteFamily && cell.timestamp <= m.timestamp)
        || markers
            .iter()
            .filter(same_column)
            .any(|m| m.cell_type == CellType::DeleteColumn && cell.timestamp <= m.timestamp);
    let one = markers.iter().any(|m| m.cell_type == CellType::DeleteFamilyVersion && cell.timestamp == m.timestamp)
        || markers.iter().filter(same_column).any(|m| m.cell_type == CellType::Delete && cell.timestamp == m.timestamp);
    if all { Some(true) } else { one.then_some(false) }
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
    pub fn all_cells(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = self.files.iter().flat_map(|run| run.cells.clone()).collect();
        cells.extend(self.memory.cells.iter().cloned());
        sorted(cells)
    }

    /// The cells of `row` that `ask` is answered with.
    pub fn read_row(&self, row: &[u8], ask: &Ask, now: i64) -> Vec<Cell> {
        let rules = &self.rules;
        let cells: Vec<Cell> =
            self.all_cells().into_iter().filter(|c| c.row == row && c.seq_id <= ask.read_point).collect();
        let oldest = if ask.raw { 0 } else { rules.oldest_unexpired(now) };
        let versions = if ask.raw { ask.versions } else { ask.versions.min(rules.max_versions) };
        let (mut markers, mut out, mut column) = (Vec::new(), Vec::new(), Column::default());
        for cell in &cells {
            column.enter(&cell.qualifier);
            let expired = cell.timestamp < oldest;
            if column.closed || (rules.min_versions == 0 && expired) {
                continue;
            }
            if cell.is_delete() && !ask.raw {
                let counts = if rules.keep == KeepDeletedCells::False {
                    cell.timestamp >= ask.range.min
                } else {
                    ask.range.contains(cell.timestamp)
                };
                if counts {
                    markers.push(cell.clone());
                }
                continue;
            }
            if !ask.raw && masked(&markers, cell).is_some() {
                continue;
            }
            if !ask.range.contains(cell.timestamp) {
                continue;
            }
            if let Some(columns) = &ask.columns {
                if !columns.contains(&cell.qualifier) || column.full || column.last == Some((cell.timestamp, 0)) {
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
        let limit = ask.limit.unwrap_or(usize::MAX);
        out.into_iter().skip(ask.offset).take(limit).collect()
    }

    /// What a flush or a compaction makes of `cells`. What is not visible yet stays and hides nothing.
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
        let (mut markers, mut out, mut column) = (Vec::new(), Vec::new(), Column::default());
        let mut row: Option<Vec<u8>> = None;
        for cell in sorted(cells) {
            if row.as_ref() != Some(&cell.row) {
                row = Some(cell.row.clone());
                markers.clear();
                column = Column::default();
            }
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
                    out.push(cell);
                    continue;
                }
                if !rules.keeps(cell.timestamp, now) {
                    continue;
                }
                if cell.timestamp < earliest_put {
                    column.close();
                    continue;
                }
            } else if let Some(rest) = masked(&markers, &cell) {
                if rest {
                    column.close();
                }
                continue;
            }
            if newer {
                out.push(cell);
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
            out.push(cell);
        }
        out
    }

    /// The memstore becomes the file `name`; `None` when nothing of it was left to write.
    pub fn flush(&mut self, name: Option<&str>, now: i64, read_point: u64) {
        let cells = std::mem::take(&mut self.memory.cells);
        let cells = self.rewrite(cells, false, i64::MIN, now, read_point);
        assert_eq!(name.is_some(), !cells.is_empty(), "a flush writes a file exactly if there is something to keep");
        if let Some(name) = name {
            self.files.push(Run { name: name.to_owned(), cells });
        }
    }

    /// The files called `inputs` become the file `output` at the place of the newest of them.
    pub fn compact(&mut self, inputs: &[String], output: &str, now: i64, read_point: u64) {
        let all = inputs.len() == self.files.len();
        let taken: Vec<Run> = self.files.iter().filter(|run| inputs.contains(&run.name)).cloned().collect();
        let place = self.files.iter().position(|run| run.name == inputs[0]).expect("known files");
        let earliest = |run: &Run| {
            run.cells.iter().filter(|cell| !cell.is_delete()).map(|cell| cell.timestamp).min().unwrap_or(i64::MAX)
        };
        let earliest_put = taken.iter().map(earliest).min().unwrap_or(i64::MIN);
        let cells: Vec<Cell> = taken.into_iter().flat_map(|run| run.cells).collect();
        let cells = self.rewrite(cells, all, earliest_put, now, read_point);
        self.files.retain(|run| !inputs.contains(&run.name));
        self.files.insert(place, Run { name: output.to_owned(), cells });
    }
}
