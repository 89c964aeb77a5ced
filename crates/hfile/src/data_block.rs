//! A data block in memory: cells in plain layout, checked, with a sparse table of where they start.

use crate::cursor::{Cursor, Decoded};
use crate::encoding::{self, Tail};
use crate::row_window::RowWindow;
use base::SeqId;
use bytes::Bytes;
use cell::{CellRef, KeyRef, Order, vint};
use std::cmp::Ordering;

/// Every how many cells the tables have an entry: 12 bytes, about 2 % of the block with cells of 130 bytes.
const CELLS_PER_MARK: usize = 4;
/// A cell has an entry in any case when it starts so many bytes after the last that has one: each cell that a search looks at on its way
/// is another wait for memory, and where cells are large an entry for each costs little.
const BYTES_PER_MARK: usize = 512;

/// From this length on the processor does not see by itself where the next cells will start.
const LARGE_CELL_BYTES: usize = 256;
/// How many cells ahead of a run over large cells their first lines are asked for: a wait for memory is worth several steps.
const CELLS_AHEAD: usize = 6;

/// Bytes of a cell that are asked for before it is copied: the processor sees the rest coming.
const MOST_BYTES_AHEAD: usize = 2048;
/// What the processor brings near at a time.
const LINE_BYTES: usize = 64;

/// The cells of one data block. Every cell was checked when the block was made.
#[derive(Debug)]
pub(crate) struct DataBlock {
    bytes: Bytes,
    marks: Box<[u32]>,
    /// Every cell is marked.
    all_marked: bool,
    /// Row prefixes of the marked cells.
    rows: RowWindow,
    tags: bool,
    mvcc: bool,
}

#[cfg(debug_assertions)]
impl Drop for DataBlock {
    fn drop(&mut self) {
        crate::poison::overwrite_unshared(&mut self.bytes);
    }
}

/// Where a cell lies in its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellAt {
    pub start: u32,
    /// End of the KeyValue bytes as a [`CellRef`] wants them.
    pub end: u32,
    /// Start of the next cell.
    pub next: u32,
    pub seq_id: u64,
}

impl DataBlock {
    /// Decodes and checks a block's payload. With the file's `order` it gets a table for searches.
    pub fn decode(payload: Bytes, encoded: bool, tail: Tail, order: Option<Order>) -> Decoded<DataBlock> {
        DataBlock::new(encoding::decode(payload, encoded, tail)?, tail, order)
    }

    fn new(bytes: Bytes, tail: Tail, order: Option<Order>) -> Decoded<DataBlock> {
        let mut marks = Vec::with_capacity(bytes.len() / 256);
        let mut at = Cursor::new(&bytes);
        let (mut count, mut unmarked) = (0, 0);
        while !at.is_empty() {
            let start = bytes.len() - at.len();
            if marks
                .last()
                .is_none_or(|mark| unmarked + 1 >= CELLS_PER_MARK || start - *mark as usize >= BYTES_PER_MARK)
            {
                marks.push(start as u32);
                unmarked = 0;
            } else {
                unmarked += 1;
            }
            let (key_len, value_len) = (at.u32()? as usize, at.u32()? as usize);
            at.take(key_len)?;
            at.take(value_len)?;
            let mut end = bytes.len() - at.len();
            if tail.tags {
                let tags_len = usize::from(at.u16()?);
                at.take(tags_len)?;
                end = if tags_len > 0 { bytes.len() - at.len() } else { end };
            }
            CellRef::parse_shape(&bytes[start..end], SeqId(0))
                .map_err(|e| format!("cell {count} at {start} of the block: {e}"))?;
            if tail.mvcc {
                at.vlong()?;
            }
            count += 1;
        }
        if count == 0 {
            return Err("a data block has no cells".into());
        }
        let all_marked = marks.len() == count;
        let marks = marks.into_boxed_slice();
        let rows = RowWindow::default();
        let mut block = DataBlock { bytes, marks, all_marked, rows, tags: tail.tags, mvcc: tail.mvcc };
        if let Some(order) = order {
            let last = block.key(block.last()).row();
            block.rows = RowWindow::new(order, block.marks.len(), |mark| block.key_at(block.marks[mark]).row(), last);
        }
        Ok(block)
    }

    /// Bytes of the cells, unpacked.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Memory the block takes.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len() + self.marks.len() * 4 + self.rows.heap_bytes() + size_of::<DataBlock>() + 64
    }

    #[inline]
    fn number_at(&self, at: usize) -> usize {
        u32::from_be_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]]) as usize
    }

    /// Bytes of a key and its value together, whose lengths are there: read at once, for this is where a scan's time goes.
    #[inline]
    fn lengths_at(&self, at: usize) -> usize {
        let lengths: [u8; 8] = self.bytes[at..at + 8].try_into().unwrap_or_default();
        let lengths = u64::from_be_bytes(lengths);
        (lengths >> 32) as usize + (lengths & 0xFFFF_FFFF) as usize
    }

    /// The cell that starts at `start`, which is the start of one.
    #[inline]
    pub fn at(&self, start: u32) -> CellAt {
        let from = start as usize;
        let mut end = from + 8 + self.lengths_at(from);
        let mut next = end;
        if self.tags {
            let tags_len = usize::from(u16::from_be_bytes([self.bytes[end], self.bytes[end + 1]]));
            next = end + 2 + tags_len;
            end = if tags_len > 0 { next } else { end };
        }
        let mut seq_id = 0;
        if self.mvcc {
            let first = self.bytes[next] as i8;
            if first >= 0 {
                // Old cells have had their sequence id set to 0; the common case.
                (seq_id, next) = (first as u64, next + 1);
            } else if let Some((value, len)) = vint::read(&self.bytes[next..]) {
                (seq_id, next) = (value as u64, next + len);
            }
        }
        CellAt { start, end: end as u32, next: next as u32, seq_id }
    }

    /// The cell after `cell`, if it is in this block.
    #[inline]
    pub fn after(&self, cell: CellAt) -> Option<CellAt> {
        ((cell.next as usize) < self.bytes.len()).then(|| self.at(cell.next))
    }

    /// Has the processor bring near the start of the cell after `cell`: with large cells each is a wait for memory.
    #[inline]
    pub fn prefetch_after(&self, cell: CellAt) {
        prefetch(&self.bytes, cell.next as usize);
    }

    /// As [`DataBlock::prefetch_after`], further ahead: where cells are large the one to come in some steps starts about as many of this
    /// cell's lengths away. A wrong guess costs nothing but its lines. Small cells the processor brings near by itself.
    #[inline]
    pub fn prefetch_beyond(&self, cell: CellAt) {
        let len = (cell.next - cell.start) as usize;
        if len >= LARGE_CELL_BYTES {
            prefetch(&self.bytes, cell.start as usize + CELLS_AHEAD * len);
        }
    }

    /// Has the processor bring near all of the second cell after `cell`, if cells are large and of about the same length: it is to be
    /// copied soon. The wait for memory is longer than the copy of the one between.
    #[inline]
    pub fn prefetch_whole_beyond(&self, cell: CellAt) {
        let len = (cell.next - cell.start) as usize;
        if len >= LARGE_CELL_BYTES {
            for line in (0..len.min(MOST_BYTES_AHEAD)).step_by(2 * LINE_BYTES) {
                prefetch(&self.bytes, cell.next as usize + len + line);
            }
        }
    }

    /// The first cell.
    #[inline]
    pub fn first(&self) -> CellAt {
        self.at(0)
    }

    /// The last cell.
    pub fn last(&self) -> CellAt {
        let mut cell = self.at(self.marks[self.marks.len() - 1]);
        while let Some(next) = self.after(cell) {
            cell = next;
        }
        cell
    }

    #[inline]
    pub fn cell(&self, at: CellAt) -> CellRef<'_> {
        CellRef::from_checked(&self.bytes[at.start as usize..at.end as usize], SeqId(at.seq_id))
    }

    #[inline]
    pub fn key(&self, at: CellAt) -> KeyRef<'_> {
        self.key_at(at.start)
    }

    #[inline]
    fn key_at(&self, start: u32) -> KeyRef<'_> {
        let from = start as usize + 8;
        KeyRef::from_checked(&self.bytes[from..from + self.number_at(from - 8)])
    }

    /// The KeyValue bytes, shared.
    pub fn shared(&self, at: CellAt) -> Bytes {
        self.bytes.slice(at.start as usize..at.end as usize)
    }

    /// The first cell at or after `key`.
    pub fn seek(&self, order: Order, key: KeyRef<'_>) -> Option<CellAt> {
        self.seek_from_mark(order, key, 0)
    }

    /// As [`DataBlock::seek`], where the cell is likely to be copied: it is on its way here while its key is still compared.
    #[inline]
    pub fn seek_to_copy(&self, order: Order, key: KeyRef<'_>) -> Option<CellAt> {
        if !self.all_marked {
            return self.seek(order, key);
        }
        self.rows.prefetch();
        let (low, high) = self.rows.around(key.row(), self.marks.len());
        if let Some(start) = self.marks.get(low) {
            let end = self.marks.get(low + 1).map_or(self.bytes.len(), |next| *next as usize);
            let start = *start as usize;
            for line in (start..end.min(start + MOST_BYTES_AHEAD)).step_by(128) {
                prefetch(&self.bytes, line);
            }
        }
        let less = |mark: &u32| order.keys(self.key_at(*mark), key) == Ordering::Less;
        let beyond = low + self.marks[low..high].partition_point(less);
        self.marks.get(beyond).map(|start| self.at(*start))
    }

    /// The first cell at or after `key`, no earlier than `from`.
    pub fn seek_from(&self, order: Order, key: KeyRef<'_>, from: CellAt) -> Option<CellAt> {
        // Most steps forward are short: look at a few cells before the table.
        let mut cell = from;
        for _ in 0..CELLS_PER_MARK {
            if order.keys(self.key(cell), key) != Ordering::Less {
                return Some(cell);
            }
            cell = self.after(cell)?;
        }
        if order.keys(self.key(cell), key) != Ordering::Less {
            return Some(cell);
        }
        self.seek_from_mark(order, key, self.marks.partition_point(|mark| *mark <= cell.start) - 1)
    }

    /// How many marked cells are before `key`.
    fn marks_before(&self, order: Order, key: KeyRef<'_>) -> usize {
        let (low, high) = self.rows.around(key.row(), self.marks.len());
        low + self.marks[low..high].partition_point(|mark| order.keys(self.key_at(*mark), key) == Ordering::Less)
    }

    fn seek_from_mark(&self, order: Order, key: KeyRef<'_>, from_mark: usize) -> Option<CellAt> {
        let less = |start: u32| order.keys(self.key_at(start), key) == Ordering::Less;
        let beyond = self.marks_before(order, key).max(from_mark);
        if self.all_marked {
            return self.marks.get(beyond).map(|start| self.at(*start));
        }
        let mut cell = self.at(self.marks[beyond.saturating_sub(1).max(from_mark)]);
        while less(cell.start) {
            cell = self.after(cell)?;
        }
        Some(cell)
    }

    /// The last cell before `key`.
    pub fn seek_before(&self, order: Order, key: KeyRef<'_>) -> Option<CellAt> {
        let less = |start: u32| order.keys(self.key_at(start), key) == Ordering::Less;
        let mut cell = self.at(self.marks[self.marks_before(order, key).checked_sub(1)?]);
        while let Some(next) = self.after(cell).filter(|next| less(next.start)) {
            cell = next;
        }
        Some(cell)
    }
}

/// Brings two cache lines from `bytes[at]` on near, which need not be inside.
#[inline]
fn prefetch(bytes: &[u8], at: usize) {
    prefetch_lines(bytes.as_ptr().wrapping_add(at));
}

/// Brings two cache lines from `start` on near. Any address is allowed.
#[inline]
#[allow(
    unsafe_code,
    reason = "half a scan's time over large cells is the wait for their first lines (`scan.filtered`)"
)]
pub(crate) fn prefetch_lines(start: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = start.cast::<i8>();
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start);
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(LINE_BYTES));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = start;
}
