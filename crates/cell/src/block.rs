//! Runs of cells in cell-block layout, `len(4) KeyValue` each: what the wire and the log carry.
//!
//! [`CellBlock`] is such a run, checked, as shared bytes; [`CellBuffer`] is one being built, with an index so that
//! a row can be looked at again and taken back.

use crate::{CellError, CellRef, CellSpec};
use base::SeqId;
use bytes::Bytes;

/// A checked run of cells. Cloning shares the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellBlock {
    bytes: Bytes,
    count: usize,
}

impl CellBlock {
    /// Checks every cell of a foreign run (see [`CellRef::parse`]).
    ///
    /// # Errors
    /// The first cell that is not whole or not legal.
    pub fn parse(bytes: Bytes) -> Result<CellBlock, CellError> {
        CellBlock::parse_by(bytes, |cell| CellRef::parse(cell, SeqId(0)).map(|_| ()))
    }

    /// As [`CellBlock::parse`] with the checks of [`CellRef::parse_shape`]: for runs that come out of files.
    ///
    /// # Errors
    /// The first cell that is not whole.
    pub fn parse_shapes(bytes: Bytes) -> Result<CellBlock, CellError> {
        CellBlock::parse_by(bytes, |cell| CellRef::parse_shape(cell, SeqId(0)).map(|_| ()))
    }

    fn parse_by(bytes: Bytes, check: impl Fn(&[u8]) -> Result<(), CellError>) -> Result<CellBlock, CellError> {
        let (mut at, mut count) = (0, 0);
        while at < bytes.len() {
            let cell =
                next_run(&bytes[at..]).ok_or_else(|| CellError::new("the cell block is cut short at offset", at))?;
            check(cell)?;
            at += 4 + cell.len();
            count += 1;
        }
        Ok(CellBlock { bytes, count })
    }

    /// As [`CellBlock::parse`] and [`CellBlock::split_into`] in one pass; and whether any cell has tags. `None` when there are fewer cells.
    ///
    /// # Errors
    /// The first cell that is not whole or not legal, among those left out too.
    pub fn parse_into(bytes: &Bytes, counts: &[u32]) -> Result<Option<(CellRuns, bool)>, CellError> {
        let mut ends = Vec::with_capacity(counts.len().min(bytes.len() / 16 + 1));
        let (mut at, mut has_tags) = (0, false);
        let mut next = |at: usize| {
            let cell =
                next_run(&bytes[at..]).ok_or_else(|| CellError::new("the cell block is cut short at offset", at))?;
            has_tags |= !CellRef::parse(cell, SeqId(0))?.tags().is_empty();
            Ok::<_, CellError>(at + 4 + cell.len())
        };
        for count in counts {
            for _ in 0..*count {
                if at == bytes.len() {
                    return Ok(None);
                }
                at = next(at)?;
            }
            ends.push((at, *count));
        }
        while at < bytes.len() {
            at = next(at)?;
        }
        Ok(Some((CellRuns { bytes: bytes.clone(), ends }, has_tags)))
    }

    /// This run in consecutive runs of so many cells; the rest is left out. `None` when there are fewer cells.
    pub fn split_into(&self, counts: &[u32]) -> Option<CellRuns> {
        let mut ends = Vec::with_capacity(counts.len().min(self.count + 1));
        let mut at = 0;
        for count in counts {
            for _ in 0..*count {
                at += 4 + next_run(&self.bytes[at..])?.len();
            }
            ends.push((at, *count));
        }
        Some(CellRuns { bytes: self.bytes.clone(), ends })
    }

    /// The first `count` cells of this run, and the rest. `None` when there are fewer.
    pub fn split(&self, count: usize) -> Option<(CellBlock, CellBlock)> {
        if count > self.count {
            return None;
        }
        let mut at = 0;
        for _ in 0..count {
            at += 4 + next_run(&self.bytes[at..])?.len();
        }
        let first = CellBlock { bytes: self.bytes.slice(..at), count };
        Some((first, CellBlock { bytes: self.bytes.slice(at..), count: self.count - count }))
    }

    /// A run of the given cells.
    pub fn from_specs<'a>(specs: impl IntoIterator<Item = CellSpec<'a>>) -> CellBlock {
        let mut buffer = CellBuffer::new();
        specs.into_iter().for_each(|spec| buffer.push_spec(&spec, SeqId(0)));
        buffer.into_block()
    }

    /// Number of cells.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no cells.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes, in cell-block layout.
    #[inline]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The cells in order, with sequence id 0.
    #[inline]
    pub fn iter(&self) -> CellIter<'_> {
        CellIter { rest: &self.bytes, seq_id: SeqId(0) }
    }
}

impl<'a> IntoIterator for &'a CellBlock {
    type Item = CellRef<'a>;
    type IntoIter = CellIter<'a>;
    fn into_iter(self) -> CellIter<'a> {
        self.iter()
    }
}

/// Checked runs of cells that follow each other in shared bytes, such as the rows of a scan's reply. A run is cut out when it is asked for:
/// until then it costs 16 bytes and no share in the bytes of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellRuns {
    bytes: Bytes,
    /// Where each run ends, and how many cells it has.
    ends: Vec<(usize, u32)>,
}

impl CellRuns {
    /// Number of runs.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no runs.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Run number `i`.
    pub fn get(&self, i: usize) -> Option<CellBlock> {
        let (end, count) = *self.ends.get(i)?;
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before].0);
        Some(CellBlock { bytes: self.bytes.slice(start..end), count: count as usize })
    }

    /// The runs in order.
    pub fn iter(&self) -> impl Iterator<Item = CellBlock> {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

#[inline]
fn next_run(rest: &[u8]) -> Option<&[u8]> {
    let (len, after) = rest.split_first_chunk::<4>()?;
    after.get(..u32::from_be_bytes(*len) as usize)
}

/// Walks checked cells in cell-block layout.
#[derive(Clone, Debug)]
pub struct CellIter<'a> {
    rest: &'a [u8],
    seq_id: SeqId,
}

impl<'a> CellIter<'a> {
    /// Over a run that was checked before; each cell gets `seq_id`.
    pub fn over_checked(run: &'a [u8], seq_id: SeqId) -> CellIter<'a> {
        CellIter { rest: run, seq_id }
    }
}

impl<'a> Iterator for CellIter<'a> {
    type Item = CellRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<CellRef<'a>> {
        let cell = next_run(self.rest)?;
        self.rest = &self.rest[4 + cell.len()..];
        Some(CellRef::from_checked(cell, self.seq_id))
    }
}

/// Cells being gathered in cell-block layout (tags kept), each at a known place. Scanners write results into it; a
/// row that a filter refuses in the end is taken back with [`CellBuffer::truncate`].
#[derive(Debug, Default, Clone)]
pub struct CellBuffer {
    bytes: Vec<u8>,
    /// Start of each cell's length field, and its sequence id.
    index: Vec<(u32, SeqId)>,
    has_tags: bool,
}

impl CellBuffer {
    /// An empty buffer.
    pub fn new() -> CellBuffer {
        CellBuffer::default()
    }

    /// An empty buffer with room for `cells` cells that have `bytes` together, length fields included.
    pub fn with_capacity(bytes: usize, cells: usize) -> CellBuffer {
        CellBuffer { bytes: Vec::with_capacity(bytes), index: Vec::with_capacity(cells), has_tags: false }
    }

    /// Appends a copy of `cell`.
    #[inline]
    pub fn push(&mut self, cell: CellRef<'_>) {
        let kv = cell.bytes();
        self.has_tags |= !cell.tags().is_empty();
        self.start_cell(kv.len(), cell.seq_id());
        self.bytes.extend_from_slice(kv);
    }

    /// Appends `cell` with another value (key-only filters, increments): key and tags are kept.
    pub fn push_with_value(&mut self, cell: CellRef<'_>, value: &[u8]) {
        let spec = CellSpec {
            row: cell.row(),
            family: cell.family(),
            qualifier: cell.qualifier(),
            timestamp: cell.timestamp(),
            type_code: cell.type_code(),
            value,
            tags: cell.tags(),
        };
        self.push_spec(&spec, cell.seq_id());
    }

    /// Appends a cell made of parts.
    pub fn push_spec(&mut self, spec: &CellSpec<'_>, seq_id: SeqId) {
        self.has_tags |= !spec.tags.is_empty();
        self.start_cell(spec.encoded_len(), seq_id);
        spec.write(&mut self.bytes);
    }

    #[inline]
    fn start_cell(&mut self, kv_len: usize, seq_id: SeqId) {
        let start = u32::try_from(self.bytes.len()).expect("a reply stays under 4 GiB: limits are checked per cell");
        self.index.push((start, seq_id));
        self.bytes.extend_from_slice(&(kv_len as u32).to_be_bytes());
    }

    /// Number of cells.
    #[inline]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no cells.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes so far, length fields included.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether any cell since the last [`CellBuffer::clear`] had tags (taken-back ones included).
    #[inline]
    pub fn has_tags(&self) -> bool {
        self.has_tags
    }

    /// Cell number `i`.
    ///
    /// # Panics
    /// When `i` is not below [`CellBuffer::len`].
    #[inline]
    pub fn get(&self, i: usize) -> CellRef<'_> {
        let (start, seq_id) = self.index[i];
        let kv = next_run(&self.bytes[start as usize..]).expect("the index points at cells");
        CellRef::from_checked(kv, seq_id)
    }

    /// The cells from number `from` on.
    pub fn iter_from(&self, from: usize) -> impl Iterator<Item = CellRef<'_>> {
        (from..self.len()).map(|i| self.get(i))
    }

    /// Takes back every cell from number `len` on.
    pub fn truncate(&mut self, len: usize) {
        if let Some((start, _)) = self.index.get(len) {
            self.bytes.truncate(*start as usize);
            self.index.truncate(len);
        }
    }

    /// Of the cells from number `from` on, keeps those that `keep` says (by their number).
    pub fn retain_from(&mut self, from: usize, mut keep: impl FnMut(usize, CellRef<'_>) -> bool) {
        let mut kept = CellBuffer::new();
        for i in from..self.len() {
            let cell = self.get(i);
            if keep(i, cell) {
                kept.push(cell);
            }
        }
        self.truncate(from);
        kept.iter_from(0).for_each(|cell| self.push(cell));
    }

    /// Forgets all cells, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.index.clear();
        self.has_tags = false;
    }

    /// The bytes, in cell-block layout.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The run as bytes; the sequence ids are dropped.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The run as a shared block.
    pub fn into_block(self) -> CellBlock {
        CellBlock { count: self.index.len(), bytes: Bytes::from(self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellType;

    fn spec<'a>(row: &'a [u8], value: &'a [u8], tags: &'a [u8]) -> CellSpec<'a> {
        CellSpec { row, family: b"f", qualifier: b"q", timestamp: 5, type_code: CellType::Put.code(), value, tags }
    }

    #[test]
    fn a_block_splits_and_reads_back() {
        let block =
            CellBlock::from_specs([spec(b"a", b"1", b""), spec(b"b", b"22", b"\x00\x02\x08x"), spec(b"c", b"", b"")]);
        let again = CellBlock::parse(block.bytes().clone()).expect("own bytes");
        assert_eq!(again.len(), 3);
        let (first, rest) = again.split(2).expect("three cells");
        assert_eq!(first.iter().map(|c| c.row().to_vec()).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(rest.iter().next().expect("one").row(), b"c");
        assert_eq!(first.iter().nth(1).expect("two").tags(), b"\x00\x02\x08x");
        assert!(again.split(4).is_none());
        let runs = again.split_into(&[1, 0, 2]).expect("three cells");
        assert_eq!(runs.iter().map(|run| run.len()).collect::<Vec<_>>(), [1, 0, 2]);
        assert_eq!(runs.get(2).expect("three runs").iter().next().expect("one").row(), b"b");
        assert!(runs.get(1).expect("three runs").bytes().is_empty() && runs.get(3).is_none());
        assert!(again.split_into(&[2, 2]).is_none());
        let (parsed, has_tags) =
            CellBlock::parse_into(block.bytes(), &[1, 0, 2]).expect("own bytes").expect("three cells");
        assert_eq!((parsed, has_tags), (runs, true));
        let (first, has_tags) = CellBlock::parse_into(block.bytes(), &[1]).expect("own bytes").expect("three cells");
        assert_eq!((first.len(), has_tags), (1, true), "tags are told of in cells that are left out too");
        assert_eq!(CellBlock::parse_into(block.bytes(), &[2, 2]), Ok(None));
    }

    #[test]
    fn every_truncation_of_a_block_is_refused() {
        let block = CellBlock::from_specs([spec(b"abc", b"value", b"\x00\x02\x08x")]);
        for cut in 1..block.bytes().len() {
            assert!(CellBlock::parse(block.bytes().slice(..cut)).is_err(), "cut at {cut}");
            assert!(CellBlock::parse_into(&block.bytes().slice(..cut), &[]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_row_can_be_taken_back() {
        let mut buffer = CellBuffer::new();
        buffer.push_spec(&spec(b"a", b"1", b""), SeqId(7));
        let mark = buffer.len();
        buffer.push_spec(&spec(b"b", b"2", b""), SeqId(8));
        buffer.push_spec(&spec(b"b", b"3", b""), SeqId(9));
        buffer.retain_from(mark, |_, c| c.value() == b"3");
        assert_eq!((buffer.len(), buffer.get(1).value(), buffer.get(1).seq_id()), (2, &b"3"[..], SeqId(9)));
        buffer.truncate(mark);
        assert_eq!((buffer.len(), buffer.get(0).row(), buffer.get(0).seq_id()), (1, &b"a"[..], SeqId(7)));
    }
}
