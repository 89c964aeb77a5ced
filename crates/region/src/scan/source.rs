//! One sorted run of cells as a reader at some read point sees it: a memstore segment or a store file.
//!
//! Cells newer than the read point are stepped over. A store file may put off its seek: it then stands at a fake key,
//! the earliest at which it could have something to say (its newest timestamp at the wanted row and column), and
//! only seeks when that key comes up. A Get whose newest version is in memory never touches the files.
//! Follows: `StoreFileScanner`, `SegmentScanner`.

use base::ReadPoint;
use cell::{CellRef, CellType, KeyRef, Order};
use hfile::{BlockReads, BlockRun, Reader, Residency, ScanOptions, Scanner};
use memstore::{Segment, SegmentIter, SegmentRun};
use std::cmp::Ordering;
use std::sync::Arc;

enum Cursor {
    Memory(SegmentIter),
    File(Box<Scanner>),
}

/// A run and a position in it.
pub(crate) struct Source {
    cursor: Cursor,
    /// The segment of a cursor in memory, which itself keeps only the cells: the memory meter asks who holds it.
    pinned: Option<Arc<Segment>>,
    read_point: u64,
    /// Whether there may be cells newer than the read point.
    checks_read_point: bool,
    /// Of two equal cells the one from the source with the higher rank is the newer.
    rank: u32,
    /// No cell of the run has a later timestamp.
    max_timestamp: i64,
    /// The key of a seek that was put off; empty when there is none.
    lazy_seek_key: Vec<u8>,
    /// Where the source pretends to stand meanwhile.
    fake_key: Vec<u8>,
    /// In a reversed merge: not standing in the merge's row.
    parked: bool,
    /// In a reversed merge: nothing is left before.
    finished: bool,
}

/// The cells from a source's position on, as far as they can be looked at without reading or moving. Goes back to where it began
/// unless it is told to stay.
pub(crate) trait Run<'a> {
    /// The cell here.
    fn cell(&self) -> CellRef<'a>;
    /// To the next cell that the reader sees; `None`, and nothing is changed, where the run ends.
    fn step(&mut self) -> Option<CellRef<'a>>;
    /// The cells after this one are likely to be copied soon.
    fn expect_next(&self) {}
    /// The source stands here from now on.
    fn commit(&mut self);
}

impl<'a> Run<'a> for BlockRun<'a> {
    #[inline]
    fn cell(&self) -> CellRef<'a> {
        BlockRun::cell(self)
    }

    #[inline]
    fn step(&mut self) -> Option<CellRef<'a>> {
        BlockRun::step(self)
    }

    #[inline]
    fn expect_next(&self) {
        BlockRun::expect_next(self);
    }

    #[inline]
    fn commit(&mut self) {
        BlockRun::commit(self);
    }
}

/// A segment's cells that are not newer than the read point.
pub(crate) struct MemoryRun<'a> {
    cells: SegmentRun<'a>,
    read_point: u64,
    /// Of the cells that it came to since the source stands.
    passed_bytes: usize,
}

impl<'a> Run<'a> for MemoryRun<'a> {
    #[inline]
    fn cell(&self) -> CellRef<'a> {
        self.cells.cell()
    }

    #[inline]
    fn step(&mut self) -> Option<CellRef<'a>> {
        // The end of a segment is no place to stand: whoever runs into it moves the source itself.
        loop {
            let cell = self.cells.step()?;
            self.passed_bytes += cell.bytes().len();
            if cell.seq_id().0 <= self.read_point {
                return Some(cell);
            }
        }
    }

    #[inline]
    fn commit(&mut self) {
        self.cells.commit();
        BlockReads::add_memory_bytes(std::mem::take(&mut self.passed_bytes));
    }
}

/// The run of either kind of source.
pub(crate) enum AnyRun<'a> {
    Memory(MemoryRun<'a>),
    File(BlockRun<'a>),
}

/// A cursor in memory came to where it is. Follows: `SegmentScanner#updateCurrent`.
#[inline]
fn count(iter: &SegmentIter) {
    if let Some(cell) = iter.current() {
        BlockReads::add_memory_bytes(cell.bytes().len());
    }
}

/// The first key of a row.
pub(crate) fn write_first_on_row(out: &mut Vec<u8>, row: &[u8]) {
    out.clear();
    KeyRef::write(out, row, b"", b"", i64::MAX, CellType::Maximum.code());
}

/// The key after a row.
pub(crate) fn write_last_on_row(out: &mut Vec<u8>, row: &[u8]) {
    out.clear();
    KeyRef::write(out, row, b"", b"", i64::MIN, CellType::Minimum.code());
}

impl Source {
    pub(crate) fn memory(segment: &Arc<Segment>, read_point: ReadPoint, rank: u32) -> Source {
        let checks = read_point != ReadPoint::ALL;
        let source = Source::new(Cursor::Memory(segment.iter()), read_point, checks, rank, i64::MAX);
        Source { pinned: Some(segment.clone()), ..source }
    }

    pub(crate) fn file(reader: &Arc<Reader>, options: ScanOptions, read_point: ReadPoint, rank: u32) -> Source {
        let max_timestamp = reader.time_range().map_or(i64::MAX, |(_, max)| max);
        // A file whose cells kept no sequence ids holds only what everybody may see.
        let checks = reader.highest_seq_id() > read_point.0;
        Source::new(Cursor::File(Box::new(reader.scanner(options))), read_point, checks, rank, max_timestamp)
    }

    fn new(cursor: Cursor, read_point: ReadPoint, checks: bool, rank: u32, max_timestamp: i64) -> Source {
        Source {
            cursor,
            pinned: None,
            read_point: read_point.0,
            checks_read_point: checks,
            rank,
            max_timestamp,
            lazy_seek_key: Vec::new(),
            fake_key: Vec::new(),
            parked: false,
            finished: false,
        }
    }

    /// The segment that it keeps in memory.
    pub(crate) fn pinned(&self) -> Option<&Arc<Segment>> {
        self.pinned.as_ref()
    }

    /// The cell here. Meaningless while a seek is put off.
    #[inline]
    pub(crate) fn current(&self) -> Option<CellRef<'_>> {
        if self.parked {
            return None;
        }
        match &self.cursor {
            Cursor::Memory(iter) => iter.current(),
            Cursor::File(scanner) => scanner.current(),
        }
    }

    /// See [`Scanner::is_wanted`].
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(&self.cursor, Cursor::File(scanner) if scanner.is_wanted())
    }

    #[inline]
    pub(crate) fn has_lazy_seek(&self) -> bool {
        !self.lazy_seek_key.is_empty()
    }

    /// Orders sources by where they stand; one at its end comes last. A fake_key key comes before a real cell.
    #[inline]
    pub(crate) fn compare(&self, other: &Source, order: Order) -> Ordering {
        if self.has_lazy_seek() || other.has_lazy_seek() {
            return self.compare_fake_keys(other, order);
        }
        match (self.current(), other.current()) {
            (Some(a), Some(b)) => order.cells(a, b).then_with(|| other.rank.cmp(&self.rank)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }

    fn compare_fake_keys(&self, other: &Source, order: Order) -> Ordering {
        match (self.position(), other.position()) {
            (Some(a), Some(b)) => order.keys(a, b).then_with(|| other.has_lazy_seek().cmp(&self.has_lazy_seek())),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }

    fn position(&self) -> Option<KeyRef<'_>> {
        if self.has_lazy_seek() {
            return Some(KeyRef::from_checked(&self.fake_key));
        }
        self.current().map(CellRef::key)
    }

    /// Whether the source stands before `key`.
    #[inline]
    pub(crate) fn is_before(&self, key: KeyRef<'_>, order: Order) -> bool {
        self.position().is_some_and(|at| order.keys(at, key) == Ordering::Less)
    }

    /// Whether its cells are in the memstore.
    #[inline]
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.cursor, Cursor::Memory(_))
    }

    /// The cells from here on. `None` where the source must be moved cell by cell: while a seek is put off, at the end, in a file with
    /// cells newer than the read point.
    #[inline]
    pub(crate) fn run(&mut self) -> Option<AnyRun<'_>> {
        if self.parked || self.has_lazy_seek() {
            return None;
        }
        match &mut self.cursor {
            Cursor::Memory(iter) => {
                let read_point = self.read_point;
                iter.run().map(|cells| AnyRun::Memory(MemoryRun { cells, read_point, passed_bytes: 0 }))
            }
            Cursor::File(_) if self.checks_read_point => None,
            Cursor::File(scanner) => scanner.run().map(AnyRun::File),
        }
    }

    /// To the first visible cell at or after `key`.
    pub(crate) fn seek(&mut self, key: KeyRef<'_>) -> hfile::Result<()> {
        self.lazy_seek_key.clear();
        match &mut self.cursor {
            Cursor::Memory(iter) => {
                iter.seek(key);
                count(iter);
            }
            Cursor::File(scanner) => {
                scanner.seek(key)?;
            }
        }
        self.skip_newer()
    }

    pub(crate) fn seek_to_first(&mut self) -> hfile::Result<()> {
        self.lazy_seek_key.clear();
        match &mut self.cursor {
            Cursor::Memory(iter) => {
                iter.seek_to_first();
                count(iter);
            }
            Cursor::File(scanner) => {
                scanner.seek_to_first()?;
            }
        }
        self.skip_newer()
    }

    /// As [`Source::seek`], never backwards.
    pub(crate) fn reseek(&mut self, key: KeyRef<'_>) -> hfile::Result<()> {
        if self.raw().is_none() {
            // Nowhere yet, which is allowed only while a seek is put off.
            return self.seek(key);
        }
        self.lazy_seek_key.clear();
        match &mut self.cursor {
            Cursor::Memory(iter) => {
                iter.reseek(key);
                count(iter);
            }
            Cursor::File(scanner) => {
                scanner.reseek(key)?;
            }
        }
        self.skip_newer()
    }

    /// As [`Source::seek`], now or when it matters. `key` must name a column or be the first of its row.
    pub(crate) fn lazy_seek(&mut self, key: KeyRef<'_>) -> hfile::Result<()> {
        if key.timestamp() <= self.max_timestamp || matches!(self.cursor, Cursor::Memory(_)) {
            return self.reseek(key);
        }
        self.lazy_seek_key.clear();
        self.lazy_seek_key.extend_from_slice(key.bytes());
        self.fake_key.clear();
        let maximum = CellType::Maximum.code();
        KeyRef::write(&mut self.fake_key, key.row(), key.family(), key.qualifier(), self.max_timestamp, maximum);
        Ok(())
    }

    /// Does what was put off.
    pub(crate) fn settle(&mut self) -> hfile::Result<()> {
        if self.has_lazy_seek() {
            let key = std::mem::take(&mut self.lazy_seek_key);
            let done = self.reseek(KeyRef::from_checked(&key));
            self.lazy_seek_key = key;
            self.lazy_seek_key.clear();
            done?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> hfile::Result<()> {
        self.step()?;
        self.skip_newer()
    }

    #[inline]
    fn step(&mut self) -> hfile::Result<bool> {
        match &mut self.cursor {
            Cursor::Memory(iter) => {
                let moved = iter.next();
                count(iter);
                Ok(moved)
            }
            Cursor::File(scanner) => scanner.next(),
        }
    }

    #[inline]
    fn skip_newer(&mut self) -> hfile::Result<()> {
        if self.checks_read_point {
            while self.raw().is_some_and(|cell| cell.seq_id().0 > self.read_point) {
                self.step()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn raw(&self) -> Option<CellRef<'_>> {
        match &self.cursor {
            Cursor::Memory(iter) => iter.current(),
            Cursor::File(scanner) => scanner.current(),
        }
    }

    pub(crate) fn park(&mut self, parked: bool) {
        self.parked = parked;
    }

    /// Reversed: whether nothing is left before.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// The row here, parked or not.
    pub(crate) fn raw_row(&self) -> Option<&[u8]> {
        self.raw().map(|cell| cell.key().row())
    }

    /// To the first visible cell of the last row before `bound` (or at it, when `inclusive`); `None` is the end of
    /// everything. `key` is scratch space.
    pub(crate) fn seek_row_back(
        &mut self,
        bound: Option<&[u8]>,
        inclusive: bool,
        key: &mut Vec<u8>,
    ) -> hfile::Result<()> {
        self.lazy_seek_key.clear();
        self.finished = false;
        match bound {
            Some(row) if inclusive => write_last_on_row(key, row),
            Some(row) => write_first_on_row(key, row),
            None => {
                // All-ones at full length is the last row there can be.
                key.clear();
                KeyRef::write(key, &[0xFF; cell::MAX_ROW_LENGTH], b"", b"", i64::MIN, CellType::Minimum.code());
            }
        }
        loop {
            let found = match &mut self.cursor {
                Cursor::Memory(iter) => iter.seek_before(KeyRef::from_checked(key)),
                Cursor::File(scanner) => scanner.seek_before(KeyRef::from_checked(key))?,
            };
            if !found {
                // Both kinds of cursor may stay where they were: make sure that there is no position.
                return self.move_to_end();
            }
            let Some(row) = self.raw_row() else { return self.move_to_end() };
            write_first_on_row(key, row);
            let first = KeyRef::from_checked(key);
            match &mut self.cursor {
                Cursor::Memory(iter) => {
                    iter.seek(first);
                    count(iter);
                }
                Cursor::File(scanner) => {
                    scanner.seek(first)?;
                }
            }
            loop {
                match self.raw() {
                    Some(cell) if cell.key().row() == first.row() => {
                        if !self.checks_read_point || cell.seq_id().0 <= self.read_point {
                            return Ok(());
                        }
                    }
                    // Nothing visible in this row: `key` is its first key, go on before it.
                    _ => break,
                }
                self.step()?;
            }
        }
    }

    fn move_to_end(&mut self) -> hfile::Result<()> {
        self.finished = true;
        if self.raw().is_some() {
            let mut key = Vec::new();
            KeyRef::write(&mut key, &[0xFF; cell::MAX_ROW_LENGTH], b"", b"", i64::MIN, CellType::Minimum.code());
            match &mut self.cursor {
                Cursor::Memory(iter) => {
                    iter.seek(KeyRef::from_checked(&key));
                }
                Cursor::File(scanner) => {
                    scanner.seek(KeyRef::from_checked(&key))?;
                }
            }
        }
        Ok(())
    }

    /// What a miss in the cache does from now on.
    pub(crate) fn set_residency(&mut self, residency: Residency) {
        if let Cursor::File(scanner) = &mut self.cursor {
            scanner.set_residency(residency);
        }
    }

    /// Switches a file between reads of single blocks and streaming.
    pub(crate) fn set_pread(&mut self, pread: bool) {
        if let Cursor::File(scanner) = &mut self.cursor {
            scanner.set_pread(pread);
        }
    }
}
