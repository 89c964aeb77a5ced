//! Where rows begin: a table from a row's hash to the row's first node, so that a reader of one row need not search the list, which in
//! a large list is a dozen waits for memory.
//!
//! The table forgets: of rows that share a bucket only some find room, and early rows are not in it. What it does say is right, as long as
//! cells of one row are not inserted by two threads at once (the region's row locks see to that): whoever makes another node the first
//! of its row changes the table before its insert returns.

use super::arena::{ALIGN, Arena, TABLE_BYTES};
use super::node::{Header, Node};
use base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

/// Rows at which each table is made. A list of fewer rows is searched fast enough, and at the end a table has had about as many rows as
/// it has slots.
#[cfg(not(feature = "shuttle"))]
const ROWS_AT: [usize; 5] = [1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16];
/// So that the few rows of an explored schedule meet all of them.
#[cfg(feature = "shuttle")]
const ROWS_AT: [usize; 4] = [1, 2, 4, 8];
const SLOTS_PER_ROW: usize = 4;
/// Slots that a row may be in, side by side in one cache line: one that three rows in four have filled keeps nineteen rows in twenty.
const BUCKET: usize = if cfg!(feature = "shuttle") { 2 } else { 8 };
const BUCKET_BYTES: usize = BUCKET * size_of::<Slot>();
const LINE_BYTES: usize = 64;
/// The upper bits of an address, which no system uses for a program's own memory unless asked to: a part of the hash, so that a slot of
/// another row is known without a look at its node.
const TAG_SHIFT: u32 = usize::BITS - 16;
const TAG_MASK: usize = usize::MAX << TAG_SHIFT;

type Slot = AtomicPtr<Header>;

/// Buckets of the table that is made with so many rows. The largest table just fits an ordinary chunk of the arena.
const fn buckets_for(rows: usize) -> usize {
    let (wanted, most) = ((rows * SLOTS_PER_ROW).div_ceil(BUCKET), (TABLE_BYTES - LINE_BYTES) / BUCKET_BYTES);
    if wanted < most { wanted } else { most }
}
const _: () = assert!(align_of::<Slot>() <= ALIGN && LINE_BYTES.is_multiple_of(ALIGN));

/// Buckets in the arena of the list that these beginnings belong to.
#[derive(Clone, Copy, Debug)]
struct Table {
    buckets: NonNull<[Slot; BUCKET]>,
    len: usize,
}

// SAFETY: an address of atomics that live as long as the list, which only hands out references to them.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// An empty table, and by how many bytes the arena grew for it.
    fn new(arena: &Arena, len: usize) -> (Table, usize) {
        let (piece, grown_bytes) = arena.allocate_table(LINE_BYTES + len * BUCKET_BYTES);
        let to_line = piece.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES) / ALIGN * ALIGN;
        // SAFETY: no more than the line that the piece has room for beside the buckets.
        let buckets = unsafe { piece.add(to_line) }.cast::<[Slot; BUCKET]>();
        for at in 0..len {
            // SAFETY: inside the piece, which is ours and aligned.
            unsafe { buckets.add(at).write([const { Slot::new(ptr::null_mut()) }; BUCKET]) };
        }
        (Table { buckets, len }, grown_bytes)
    }

    fn bucket(&self, hash: usize) -> &[Slot; BUCKET] {
        let at = (((hash as u64 & u64::from(u32::MAX)) * self.len as u64) >> 32) as usize;
        // SAFETY: a number of 32 bits times `len`, without its lower 32, is below `len`; the buckets were made by `new`, and the arena,
        // which belongs to the same list as the table, lives at least as long as this borrow of the table.
        unsafe { self.buckets.add(at).as_ref() }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct RowStarts {
    tables: [OnceLock<Table>; ROWS_AT.len()],
    /// Rows that were noted.
    rows: AtomicUsize,
}

/// A product of 128 bits folded into 64, as in wyhash: every bit of the words comes to every bit of the result.
fn hash(row: &[u8]) -> usize {
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
        (product as u64) ^ (product >> 64) as u64
    };
    let (words, rest) = row.as_chunks::<8>();
    let hash = words.iter().fold(row.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(hash, u64::from_le_bytes(last)), 0x2545_f491_4f6c_dd1d) as usize
}

fn tag(hash: usize) -> usize {
    hash & TAG_MASK
}

impl RowStarts {
    pub(super) const fn new() -> RowStarts {
        RowStarts { tables: [const { OnceLock::new() }; ROWS_AT.len()], rows: AtomicUsize::new(0) }
    }

    /// `node`, which is linked, is now its row's first; `is_new`: it is the only one. Returns by how many bytes the tables grew.
    pub(super) fn note(&self, arena: &Arena, node: Node<'_>, is_new: bool) -> usize {
        let mut grown_bytes = 0;
        let row = node.cell().row();
        let hash = hash(row);
        if is_new {
            let rows = self.rows.fetch_add(1, Relaxed) + 1;
            if let Some(at) = ROWS_AT.iter().position(|at| *at == rows) {
                self.tables[at].get_or_init(|| {
                    let (table, bytes) = Table::new(arena, buckets_for(rows));
                    grown_bytes = bytes;
                    table
                });
            }
        }
        let address = node.as_ptr();
        // An address that has no room for a tag: the row is looked for in the list, then.
        let noted =
            if address.addr() & TAG_MASK == 0 { address.map_addr(|bits| bits | tag(hash)) } else { ptr::null_mut() };
        let mut is_noted = false;
        for table in self.tables.iter().rev().filter_map(OnceLock::get) {
            let bucket = table.bucket(hash);
            let held = |slot: &&Slot| !is_new && self.holds(slot, hash, row).is_some();
            if !is_noted {
                let empty = |slot: &&Slot| slot.load(Relaxed).is_null();
                let slot = bucket.iter().find(held).or_else(|| bucket.iter().find(empty));
                slot.unwrap_or(&bucket[(hash as u64 >> 32) as usize % BUCKET]).store(noted, Release);
                is_noted = true;
            } else {
                // The node that was first before.
                bucket.iter().filter(held).for_each(|slot| slot.store(ptr::null_mut(), Release));
            }
            if is_new {
                break;
            }
        }
        grown_bytes
    }

    /// Has the processor bring near where `row` will be noted.
    #[inline]
    pub(super) fn prefetch(&self, row: &[u8]) {
        if let Some(table) = self.tables.iter().rev().find_map(OnceLock::get) {
            super::node::prefetch(ptr::from_ref(table.bucket(hash(row))).cast());
        }
    }

    /// The first node of `row`, if the table knows it. The list must be the one whose nodes were noted.
    #[inline]
    pub(super) fn find<'a>(&'a self, row: &[u8]) -> Option<Node<'a>> {
        self.tables[0].get()?;
        let hash = hash(row);
        let tables = self.tables.iter().rev().filter_map(OnceLock::get);
        tables.flat_map(|table| table.bucket(hash)).find_map(|slot| self.holds(slot, hash, row))
    }

    #[inline]
    fn holds<'a>(&'a self, slot: &Slot, hash: usize, row: &[u8]) -> Option<Node<'a>> {
        let held = slot.load(Acquire);
        if held.addr() & TAG_MASK != tag(hash) {
            return None;
        }
        // SAFETY: null, or a node of the list that these tables belong to, stored with release order after it was made; the arena lives
        // as long as the list.
        let node = unsafe { Node::from_ptr(held.map_addr(|address| address & !TAG_MASK)) }?;
        (node.cell().row() == row).then_some(node)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Numbers at a row's end are what most rows differ in, and they may end with a whole word or within one.
    #[test]
    fn rows_that_differ_in_their_last_bytes_get_slots_of_their_own() {
        for start in ["", "user", "row-", "user0000000"] {
            for digits in 5..20 {
                let mut slots: Vec<usize> =
                    (0..10_000).map(|i| hash(format!("{start}{i:0digits$}").as_bytes()) & ((1 << 18) - 1)).collect();
                slots.sort_unstable();
                slots.dedup();
                // Of 10,000 balls in 262,144 urns some 190 meet another.
                assert!(slots.len() > 9_700, "{start} and {digits} digits: {} slots", slots.len());
            }
        }
    }
}
