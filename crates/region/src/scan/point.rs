//! The fast path to one row: a Get of one family where nothing is to be decided but which versions are the newest. Its cells are looked at
//! where they lie, in the memstore's segments and in cached blocks, and copied at once; no scanner, merge or matcher is made.
//!
//! Whatever else turns up (a delete marker, tags, something expired or outside the time range, a row that goes on in another block) ends the
//! look: the cells are taken back, and the row is matched on the general path ([`super::store_scanner`]). So this module only knows when
//! HBase's rules do not matter. See docs/decisions/0015.

use super::limits::estimated_bytes;
use super::open::RegionReader;
use super::selection::{sorted_columns, wants_times};
use crate::error::{RegionError, Result};
use crate::store::{Store, StoreView};
use crate::store_file::StoreFile;
use base::effort::GATHERED_STEP_BYTES;
use base::{EffortBudget, PausePoint, ReadPoint};
use bytes::Bytes;
use cell::key::same_bytes;
use cell::order::without_row;
use cell::{CellBuffer, CellRef, CellType, KeyRef};
use hfile::{BloomType, Found, Residency};
use memstore::SegmentLook;
use model::{Get, TimeRange};
use std::cmp::Ordering;

/// Columns nobody asked for that are passed one by one before a seek in a segment: each is a wait for memory, and so is each step of a seek.
const NEAR_COLUMNS: u32 = 4;

/// The row's cells in one segment or file, from where it stands on.
struct SourceCursor<'a> {
    place: Place<'a>,
}

enum Place<'a> {
    Memory(SegmentLook<'a>),
    File(hfile::PointCursor),
}

/// What a move of a cursor came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Advance {
    /// It stands at a cell of the row that the reader sees.
    Here,
    /// The row has no more cells there.
    RowEnd,
    /// It cannot be said without reading on.
    NeedsScanner,
}

impl SourceCursor<'_> {
    #[inline]
    fn cell(&self) -> CellRef<'_> {
        match &self.place {
            Place::Memory(look) => look.cell(),
            Place::File(look) => look.cell(),
        }
    }

    /// Stays, or goes on to the first cell that the reader sees.
    #[inline]
    fn settle(&mut self, row: &[u8], read_point: ReadPoint) -> Advance {
        loop {
            let cell = self.cell();
            if !same_bytes(cell.row(), row) {
                return Advance::RowEnd;
            }
            if cell.seq_id().0 <= read_point.0 {
                return Advance::Here;
            }
            if let Some(end) = self.step() {
                return end;
            }
        }
    }

    /// One cell on; where there is none, what that means.
    #[inline]
    fn step(&mut self) -> Option<Advance> {
        match &mut self.place {
            Place::Memory(look) => (!look.step()).then_some(Advance::RowEnd),
            Place::File(look) => {
                if look.step() {
                    None
                } else {
                    Some(if look.goes_on() { Advance::NeedsScanner } else { Advance::RowEnd })
                }
            }
        }
    }

    #[inline]
    fn next(&mut self, row: &[u8], read_point: ReadPoint) -> Advance {
        match self.step() {
            Some(end) => end,
            None => self.settle(row, read_point),
        }
    }

    /// As [`SourceCursor::next`], past older versions of the cell's column, as far as that is cheaper than to look at them.
    #[inline]
    fn pass_versions(&mut self, row: &[u8], read_point: ReadPoint) -> Advance {
        match &mut self.place {
            Place::Memory(look) => {
                if look.pass_versions() {
                    self.settle(row, read_point)
                } else {
                    Advance::RowEnd
                }
            }
            Place::File(_) => self.next(row, read_point),
        }
    }

    /// To the first cell at or after `key`, which is in the row and not before the cursor's place.
    fn reseek(&mut self, key: KeyRef<'_>, row: &[u8], read_point: ReadPoint) -> Advance {
        match &mut self.place {
            Place::Memory(look) => {
                if look.reseek(key) {
                    self.settle(row, read_point)
                } else {
                    Advance::RowEnd
                }
            }
            // Cells of one block lie side by side.
            Place::File(_) => self.next(row, read_point),
        }
    }
}

/// What the Get asks of the family, and how far it has got.
struct Point<'g> {
    row: &'g [u8],
    family: &'g [u8],
    read_point: ReadPoint,
    oldest_unexpired: i64,
    expired_before: i64,
    time_range: TimeRange,
    max_versions: u32,
    /// Asked columns in order that are still to come; `None` for all.
    columns: Option<&'g [Bytes]>,
    max_row_bytes: u64,
    residency: Residency,
    /// What the look may cost.
    effort: Option<&'g EffortBudget>,
    /// Who is told of what is gathered.
    pause: Option<&'g dyn PausePoint>,
    /// Space for keys.
    key: Vec<u8>,
}

impl RegionReader<'_> {
    /// Adds what `get` asks for to `out`, if it is the kind of Get and the kind of row that can be read on the fast path; false, and `out`
    /// is as before, if it must be judged.
    pub(super) fn read_point_row(
        &self,
        get: &Get,
        read_point: Option<ReadPoint>,
        residency: Residency,
        (effort, pause): (Option<&EffortBudget>, Option<&dyn PausePoint>),
        out: &mut CellBuffer,
    ) -> Result<bool> {
        if get.filter.is_some() || get.store_limit.is_some() || get.store_offset > 0 || get.read_uncommitted {
            return Ok(false);
        }
        let (store, qualifiers): (&Store, &[Bytes]) = match (get.columns.len(), &self.core.stores[..]) {
            (0, [store]) => (store, &[]),
            (1, _) => match get.columns.first_key_value() {
                Some((family, qualifiers)) => match self.core.store(family) {
                    Some(store) => (store, qualifiers),
                    None => return Ok(false),
                },
                None => return Ok(false),
            },
            _ => return Ok(false),
        };
        let rules = &store.rules;
        let max_versions = get.max_versions.min(rules.max_versions);
        if rules.new_version_behavior || store.mob.is_some() || max_versions == 0 {
            return Ok(false);
        }
        let view = store.peek();
        let current = self.core.read_point();
        if !store.is_current(&view) {
            return Ok(false);
        }
        let columns = sorted_columns(qualifiers);
        let time_range = get.family_time_ranges.get(&store.name).copied().unwrap_or(get.time_range);
        let oldest_unexpired = match rules.ttl_ms {
            Some(_) => rules.oldest_unexpired(self.core.env.clock.now_ms().0),
            None => i64::MIN,
        };
        let point = Point {
            row: &get.row,
            family: &store.name,
            read_point: read_point.unwrap_or(current),
            oldest_unexpired,
            expired_before: if rules.min_versions == 0 { oldest_unexpired } else { i64::MIN },
            time_range,
            max_versions,
            columns: columns.as_deref(),
            max_row_bytes: self.core.settings.max_row_size_bytes,
            residency,
            effort,
            pause,
            key: Vec::new(),
        };
        let from = out.len();
        let mut with_files = false;
        let read = point.read(&view, get.cache_blocks && store.caches_blocks, out, &mut with_files);
        if !matches!(read, Ok(true)) {
            out.truncate(from);
        } else if out.len() > from {
            store.row_reads.read(with_files);
        }
        read.map_err(|error| RegionError::file(self.core.name(), error))
    }
}

impl Point<'_> {
    /// `with_files` becomes true when a cell that is added is from a file.
    fn read(
        mut self,
        view: &StoreView,
        keep: bool,
        out: &mut CellBuffer,
        with_files: &mut bool,
    ) -> hfile::Result<bool> {
        let mut cursors: Vec<SourceCursor<'_>> = Vec::new();
        let files = view.files_of(self.row);
        if let Some(columns) = self.columns {
            // Of several places that may have the newest version of a column the general path begins with the newest, and mostly needs no other.
            let segments = view.memory.segments().filter(|segment| !segment.is_empty()).count();
            if segments + files.len() > 1 || view.memory.segments().any(|segment| segment.has_deletes()) {
                return Ok(false);
            }
            self.start_at(&columns[0]);
        } else {
            KeyRef::write(&mut self.key, self.row, b"", b"", i64::MAX, CellType::Maximum.code());
        }
        for segment in view.memory.segments() {
            let wanted = segment.time_range().is_some_and(|range| self.wants_times(range.min_ms, range.max_ms));
            if wanted && let Some(look) = segment.look(KeyRef::from_checked(&self.key)) {
                let mut cursor = SourceCursor { place: Place::Memory(look) };
                if cursor.settle(self.row, self.read_point) == Advance::Here {
                    cursors.push(cursor);
                }
            }
        }
        for file in files.iter().rev() {
            if !self.wants_file(file)? {
                continue;
            }
            if self.columns.is_some() && file.reader.delete_family_count() > 0 {
                return Ok(false);
            }
            match file.reader.look(KeyRef::from_checked(&self.key), self.residency, keep)? {
                Found::Nothing => {}
                Found::NeedsScanner => return Ok(false),
                Found::Cells(look) => {
                    let mut cursor = SourceCursor { place: Place::File(look) };
                    match cursor.settle(self.row, self.read_point) {
                        Advance::Here => cursors.push(cursor),
                        Advance::RowEnd => {}
                        Advance::NeedsScanner => return Ok(false),
                    }
                }
            }
        }
        self.walk(cursors, out, with_files)
    }

    /// Makes the key where `column` starts.
    fn start_at(&mut self, column: &[u8]) {
        self.key.clear();
        KeyRef::write(&mut self.key, self.row, self.family, column, i64::MAX, CellType::Maximum.code());
    }

    fn wants_times(&self, min: i64, max: i64) -> bool {
        wants_times(&self.time_range, self.expired_before, min, max)
    }

    fn wants_file(&self, file: &StoreFile) -> hfile::Result<bool> {
        let reader = &file.reader;
        if !file.is_visible_at(self.read_point)
            || reader.time_range().is_some_and(|(min, max)| !self.wants_times(min, max))
        {
            return Ok(false);
        }
        let (Some(first), Some(last)) = (reader.first_key(), reader.last_key()) else { return Ok(false) };
        let order = reader.order();
        if order.rows(last.row(), self.row).is_lt() || order.rows(first.row(), self.row).is_gt() {
            return Ok(false);
        }
        match (self.columns, reader.bloom_type()) {
            (Some(columns), BloomType::RowCol) => {
                for column in columns {
                    if reader.may_contain_row_col(self.row, column, self.residency)? {
                        return Ok(true);
                    }
                }
                reader.may_contain_delete_family(self.row, self.residency)
            }
            _ => reader.may_contain_row(self.row, self.residency),
        }
    }

    /// Goes through the cursors, which stand in the row, newest first where they are equal. False where a cell must be judged.
    ///
    /// # Errors
    /// `WouldBlock`: the effort is used up.
    fn walk(
        mut self,
        mut cursors: Vec<SourceCursor<'_>>,
        out: &mut CellBuffer,
        with_files: &mut bool,
    ) -> hfile::Result<bool> {
        let from = out.len();
        // Of the column of the last cell that was taken.
        let (mut count, mut last_timestamp) = (0_u32, 0_i64);
        let (mut passed, mut row_bytes, mut gathered_bytes) = (0_u32, 0_u64, 0_u64);
        while !cursors.is_empty() {
            let at = first_of(&cursors);
            let cursor = &mut cursors[at];
            let is_in_file = matches!(cursor.place, Place::File(_));
            let cell = cursor.cell();
            if self.effort.is_some_and(|effort| !effort.spend(1)) {
                return Err(hfile::Error::WouldBlock);
            }
            let key = cell.key();
            let qualifier = key.qualifier();
            let is_next_version = out.len() > from && same_bytes(out.get(out.len() - 1).qualifier(), qualifier);
            // Markers of the whole family share the empty qualifier with its puts: there everything is looked at.
            let is_over = is_next_version && count >= self.max_versions && !qualifier.is_empty();
            let mut is_asked = true;
            if !is_next_version && let Some(columns) = &mut self.columns {
                while columns.first().is_some_and(|column| column[..] < *qualifier) {
                    *columns = &columns[1..];
                }
                match columns.first() {
                    None => return Ok(true),
                    Some(column) => is_asked = column[..] == *qualifier,
                }
            }
            let moved = if is_over {
                cursor.pass_versions(self.row, self.read_point)
            } else if let Some(column) = self.columns.and_then(<[Bytes]>::first).filter(|_| !is_asked) {
                passed += 1;
                if passed <= NEAR_COLUMNS {
                    cursor.pass_versions(self.row, self.read_point)
                } else {
                    passed = 0;
                    let mut key = std::mem::take(&mut self.key);
                    key.clear();
                    KeyRef::write(&mut key, self.row, self.family, column, i64::MAX, CellType::Maximum.code());
                    let moved = cursor.reseek(KeyRef::from_checked(&key), self.row, self.read_point);
                    self.key = key;
                    moved
                }
            } else {
                let timestamp = key.timestamp();
                if key.type_code() != CellType::Put.code()
                    || timestamp < self.oldest_unexpired
                    || !self.time_range.contains(timestamp)
                    || !cell.tags().is_empty()
                {
                    return Ok(false);
                }
                passed = 0;
                if !is_next_version {
                    count = 0;
                }
                // Of versions with the same time only the newest written counts.
                let is_taken = count < self.max_versions && (count == 0 || timestamp != last_timestamp);
                if is_taken {
                    count += 1;
                    last_timestamp = timestamp;
                    row_bytes += estimated_bytes(cell);
                    if row_bytes > self.max_row_bytes {
                        return Ok(false);
                    }
                    if row_bytes >= gathered_bytes + GATHERED_STEP_BYTES {
                        gathered_bytes = row_bytes;
                        // The general path fails of it.
                        if self.pause.is_some_and(|pause| pause.gathered(row_bytes).is_err()) {
                            return Ok(false);
                        }
                    }
                    if self.effort.is_some_and(|effort| !effort.spend_bytes(cell.bytes().len() as u64)) {
                        return Err(hfile::Error::WouldBlock);
                    }
                    out.push(cell);
                    *with_files |= is_in_file;
                    if count == self.max_versions && self.columns.is_some_and(|columns| columns.len() == 1) {
                        return Ok(true);
                    }
                }
                if count >= self.max_versions && !qualifier.is_empty() {
                    cursor.pass_versions(self.row, self.read_point)
                } else {
                    cursor.next(self.row, self.read_point)
                }
            };
            match moved {
                Advance::Here => {}
                Advance::RowEnd => {
                    cursors.remove(at);
                }
                Advance::NeedsScanner => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The cursor whose cell comes first; of equals the first cursor.
#[inline]
fn first_of(cursors: &[SourceCursor<'_>]) -> usize {
    let mut first = 0;
    for at in 1..cursors.len() {
        let (a, b) = (cursors[at].cell(), cursors[first].cell());
        let order = without_row(a.key(), b.key()).then_with(|| b.seq_id().cmp(&a.seq_id()));
        if order == Ordering::Less {
            first = at;
        }
    }
    first
}
