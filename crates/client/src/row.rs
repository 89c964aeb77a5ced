//! What a read brings back. Follows: `Result`.

use bytes::Bytes;
use cell::{CellBlock, CellIter, CellRef, CellRuns};
use proto::pb;
use std::collections::VecDeque;

/// The cells of one row, or none. Cloning shares the bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    cells: CellBlock,
    exists: Option<bool>,
    stale: bool,
    partial: bool,
    /// What few rows have.
    extra: Option<Box<Extra>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Extra {
    cursor: Option<Bytes>,
    block_bytes_scanned: Option<u64>,
}

impl Row {
    pub(crate) fn new(cells: CellBlock) -> Row {
        Row { cells, exists: None, stale: false, partial: false, extra: None }
    }

    /// The row of a result whose cells stand in the message, as an endpoint may send it. Copies the cells.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`].
    pub fn of_result(result: &pb::Result) -> crate::Result<Row> {
        crate::locator::inline_row(result)
    }

    pub(crate) fn of_existence(exists: bool) -> Row {
        Row { exists: Some(exists), ..Row::default() }
    }

    /// No row, but how far a scan has come.
    pub(crate) fn of_cursor(row: Bytes) -> Row {
        Row { extra: Some(Box::new(Extra { cursor: Some(row), ..Extra::default() })), ..Row::default() }
    }

    /// Takes over what a result says of itself.
    pub(crate) fn note(&mut self, result: &pb::Result) {
        self.stale = result.stale();
        if let Some(metrics) = &result.metrics {
            self.extra.get_or_insert_default().block_bytes_scanned = metrics.block_bytes_scanned;
        }
    }

    /// For a scan that asked for cursors: the row that the server has come to. Such a row has no cells.
    pub fn cursor(&self) -> Option<&[u8]> {
        self.extra.as_ref()?.cursor.as_deref()
    }

    /// For a read that asked for query metrics: bytes of the blocks that were read for this row.
    pub fn block_bytes_scanned(&self) -> Option<u64> {
        self.extra.as_ref()?.block_bytes_scanned
    }

    /// The cells, in HBase's order.
    pub fn cells(&self) -> &CellBlock {
        &self.cells
    }

    /// The cells, one after the other.
    pub fn iter(&self) -> CellIter<'_> {
        self.cells.iter()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Bytes of the cells as they travelled.
    pub fn byte_len(&self) -> usize {
        self.cells.bytes().len()
    }

    /// The answer to a Get that only asks for existence; else whether there are cells.
    pub fn exists(&self) -> bool {
        self.exists.unwrap_or(!self.cells.is_empty())
    }

    /// Whether a read replica answered.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Whether the row may have cells after these: a scan with a batch, or one that allows partial results, cut it here
    /// (`Result#mayHaveMoreCellsInRow`).
    pub fn may_have_more_cells(&self) -> bool {
        self.partial
    }

    pub(crate) fn cut(mut self, partial: bool) -> Row {
        self.partial = partial;
        self
    }

    /// The row's key; empty when there are no cells.
    pub fn row(&self) -> &[u8] {
        self.iter().next().map(CellRef::row).unwrap_or_default()
    }

    /// The newest cell of a column. Looks from the first cell on.
    pub fn cell(&self, family: &[u8], qualifier: &[u8]) -> Option<CellRef<'_>> {
        self.iter().find(|cell| cell.family() == family && cell.qualifier() == qualifier)
    }

    /// The newest value of a column.
    pub fn value(&self, family: &[u8], qualifier: &[u8]) -> Option<&[u8]> {
        self.cell(family, qualifier).map(CellRef::value)
    }
}

impl<'a> IntoIterator for &'a Row {
    type Item = CellRef<'a>;
    type IntoIter = CellIter<'a>;
    fn into_iter(self) -> CellIter<'a> {
        self.iter()
    }
}

/// Rows in order, such as those of a scan's reply. What is taken out is cut out then: rows that nobody looks at cost next to nothing.
#[derive(Debug, Default)]
pub struct Rows {
    runs: CellRuns,
    /// How many of the runs were taken out.
    taken: usize,
    /// Rows after those of the runs.
    others: VecDeque<Row>,
}

impl Rows {
    pub(crate) fn new(runs: CellRuns) -> Rows {
        Rows { runs, ..Rows::default() }
    }

    pub(crate) fn push(&mut self, row: Row) {
        self.others.push_back(row);
    }

    /// The last one.
    pub(crate) fn last_row(&self) -> Option<Row> {
        if let Some(row) = self.others.back() {
            return Some(row.clone());
        }
        let last = self.runs.len().checked_sub(1).filter(|last| *last >= self.taken)?;
        self.runs.get(last).map(Row::new)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        match self.runs.get(self.taken) {
            Some(run) => {
                self.taken += 1;
                Some(Row::new(run))
            }
            None => self.others.pop_front(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.runs.len() - self.taken + self.others.len();
        (len, Some(len))
    }
}

impl ExactSizeIterator for Rows {}

impl FromIterator<Row> for Rows {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Rows {
        Rows { others: rows.into_iter().collect(), ..Rows::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::{CellSpec, CellType};

    fn block(rows: &[&'static str]) -> CellBlock {
        CellBlock::from_specs(rows.iter().map(|row| CellSpec {
            row: row.as_bytes(),
            family: b"f",
            qualifier: b"q",
            timestamp: 5,
            type_code: CellType::Put.code(),
            value: b"v",
            tags: b"",
        }))
    }

    #[test]
    fn rows_come_out_in_order_from_either_part() {
        let runs = block(&["a", "b", "b", "c"]).split_into(&[1, 2, 1]).expect("four cells");
        let mut rows = Rows::new(runs);
        assert_eq!(rows.last_row().expect("three").row(), b"c");
        rows.push(Row::new(block(&["d"])));
        assert_eq!((rows.len(), rows.last_row().expect("four").row()), (4, &b"d"[..]));
        let first = rows.next().expect("four");
        assert_eq!((first.row(), first.len(), rows.len()), (&b"a"[..], 1, 3));
        let rest: Vec<_> = rows.by_ref().map(|row| (Bytes::copy_from_slice(row.row()), row.len())).collect();
        assert_eq!(rest, [("b".into(), 2), ("c".into(), 1), ("d".into(), 1)]);
        assert!(rows.is_empty() && rows.next().is_none() && rows.last_row().is_none());
    }
}
