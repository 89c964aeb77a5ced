//! One node: header, links, cell bytes, side by side in one piece of the arena.

use super::arena::{ALIGN, Arena};
use base::SeqId;
use base::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use cell::key::same_bytes;
use cell::{CellRef, KeyRef, Order};
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// A link to the next node of a level; null at the end.
pub(super) type Link = AtomicPtr<Header>;

/// Start of a node. `height` links follow, then the KeyValue. What a comparison needs comes first, so that one with
/// rows that differ early, or in a node of small height, costs one cache line.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Header {
    row_prefix: u64,
    seq_id: u64,
    kv_len: u32,
    height: u16,
    /// Whether an equal cell of the same batch came after it.
    is_replaced: AtomicBool,
    /// A node before it, mostly the last one, or null: where a search for a place just before it may begin.
    before: Link,
    /// The oldest version of its column there was when it was linked in; null when there was none. Not changed any more then.
    oldest: Link,
}

const HEADER_BYTES: usize = size_of::<Header>();
const LINK_BYTES: usize = size_of::<Link>();
const _: () = assert!(HEADER_BYTES.is_multiple_of(align_of::<Link>()) && align_of::<Header>() <= ALIGN);

/// A whole node of a list that lives for `'a`. Nothing in it changes any more except its links, the mark that it is
/// replaced and the note of a node before it.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    header: NonNull<Header>,
    arena: PhantomData<&'a Arena>,
}

impl<'a> Node<'a> {
    /// Writes a node into `arena`, its links null; `stamp` replaces the cell's timestamp. Also tells by how many
    /// bytes the arena grew.
    #[inline]
    pub(super) fn create(
        arena: &'a Arena,
        shape: &Shape,
        cell: CellRef<'_>,
        stamp: Option<i64>,
        height: usize,
    ) -> (Node<'a>, usize) {
        let kv = cell.bytes();
        let kv_len = u32::try_from(kv.len()).expect("a cell is under 4 GiB");
        let kv_at = HEADER_BYTES + height * LINK_BYTES;
        let (piece, grown_bytes) = arena.allocate(kv_at + kv.len());
        let header = Header {
            row_prefix: shape.prefix_of(cell.row()),
            seq_id: cell.seq_id().0,
            kv_len,
            height: height as u16,
            is_replaced: AtomicBool::new(false),
            before: Link::new(ptr::null_mut()),
            oldest: Link::new(ptr::null_mut()),
        };
        // SAFETY: the piece is ours alone, `kv_at + kv.len()` bytes long and aligned for header and links; the three
        // parts written lie inside it one after the other. The timestamp is the key's last 8 bytes before the type,
        // and a well-formed cell's key is at least 12 bytes long.
        unsafe {
            piece.cast::<Header>().write(header);
            let links = piece.add(HEADER_BYTES).cast::<Link>();
            for level in 0..height {
                links.add(level).write(Link::new(ptr::null_mut()));
            }
            let kv_copy = piece.add(kv_at).as_ptr();
            ptr::copy_nonoverlapping(kv.as_ptr(), kv_copy, kv.len());
            if let Some(timestamp) = stamp {
                let timestamp_at = 8 + cell.key().bytes().len() - 9;
                kv_copy.add(timestamp_at).cast::<[u8; 8]>().write(timestamp.to_be_bytes());
            }
        }
        (Node { header: piece.cast(), arena: PhantomData }, grown_bytes)
    }

    /// The node at `header`; `None` when null.
    ///
    /// # Safety
    /// Not null: it was given out by [`Node::as_ptr`] of a node in an arena that lives for `'a`, and the node's
    /// creation happens before this call (same thread, or released and acquired through a link or a lock).
    #[inline]
    pub(super) unsafe fn from_ptr(header: *mut Header) -> Option<Node<'a>> {
        NonNull::new(header).map(|header| Node { header, arena: PhantomData })
    }

    /// Its address, good for [`Node::from_ptr`].
    #[inline]
    pub(super) fn as_ptr(self) -> *mut Header {
        self.header.as_ptr()
    }

    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: a `Node` is whole and alive for `'a`; nobody writes a header after creation, but for its atomics.
        unsafe { self.header.as_ref() }
    }

    /// Number of levels it is on.
    #[inline]
    pub(super) fn height(self) -> usize {
        self.header().height as usize
    }

    /// Marks it as replaced by `newer`, the node before it, if both are the same cell of one batch.
    #[inline]
    pub(super) fn give_way_to(self, newer: Node<'_>) {
        if self.header().seq_id == newer.header().seq_id && self.cell().key().bytes() == newer.cell().key().bytes() {
            // Relaxed: a batch is seen only after all of it was inserted, and that is what publishes it.
            self.header().is_replaced.store(true, Relaxed);
        }
    }

    /// Whether an equal cell of the same batch came after it: it was never there then.
    #[inline]
    pub(super) fn is_replaced(self) -> bool {
        self.header().is_replaced.load(Relaxed)
    }

    /// Whether both are of one row.
    #[inline]
    pub(super) fn is_in_row_of(self, other: Node<'_>) -> bool {
        self.header().row_prefix == other.header().row_prefix && self.cell().row() == other.cell().row()
    }

    /// Notes a node before it, or null, from which a search for a place just before this one may begin. It must be of the same list, and
    /// its creation must happen before this call.
    #[inline]
    pub(super) fn set_before(self, before: *mut Header) {
        self.header().before.store(before, Release);
    }

    /// What was noted last with [`Node::set_before`].
    #[inline]
    pub(super) fn before(self) -> Option<Node<'a>> {
        // SAFETY: null, or a node of this list, whose arena lives for `'a`; its creation happens before it was stored with release order.
        unsafe { Node::from_ptr(self.header().before.load(Acquire)) }
    }

    /// Before it is linked in before `next`: notes the oldest version of its column, as far as `next` knows it. The creation of `next` must happen
    /// before this call.
    #[inline]
    pub(super) fn note_oldest(self, next: Option<Node<'_>>) {
        let older = next.filter(|next| next.is_version_of(self)).map(|next| next.oldest().unwrap_or(next));
        // Relaxed: what publishes the node publishes this too.
        self.header().oldest.store(older.map_or(ptr::null_mut(), Node::as_ptr), Relaxed);
    }

    /// A version of its column behind which few others stand, if any: those that came after it and are older still.
    #[inline]
    pub(super) fn oldest(self) -> Option<Node<'a>> {
        // SAFETY: null, or a node of this list, whose arena lives for `'a`; its creation happens before this node was published.
        unsafe { Node::from_ptr(self.header().oldest.load(Relaxed)) }
    }

    /// Whether both are of one column of one row.
    #[inline]
    fn is_version_of(self, other: Node<'_>) -> bool {
        let (a, b) = (self.cell().key().bytes(), other.cell().key().bytes());
        // The key's last nine bytes are time and type.
        self.header().row_prefix == other.header().row_prefix
            && a.len() == b.len()
            && same_bytes(&a[..a.len() - 9], &b[..b.len() - 9])
    }

    /// Its link on `level`, which must be below its height.
    #[inline]
    pub(super) fn link(self, level: usize) -> &'a Link {
        debug_assert!(level < self.height());
        // SAFETY: the links follow the header inside the node's piece, `height` of them; the pointer was derived from
        // the whole chunk, not from a reference to the header. Links are only touched as atomics after creation.
        unsafe { self.header.byte_add(HEADER_BYTES + level * LINK_BYTES).cast::<Link>().as_ref() }
    }

    /// Its cell.
    #[inline]
    pub(super) fn cell(self) -> CellRef<'a> {
        let header = self.header();
        let kv_at = HEADER_BYTES + header.height as usize * LINK_BYTES;
        // SAFETY: `kv_len` bytes were written there at creation, inside the node's piece, and are never written again.
        let kv = unsafe {
            std::slice::from_raw_parts(self.header.byte_add(kv_at).cast::<u8>().as_ptr(), header.kv_len as usize)
        };
        CellRef::from_checked(kv, SeqId(header.seq_id))
    }

    /// Asks the processor to bring the next node on `level` near: header, short links and the start of the row.
    #[inline]
    pub(super) fn prefetch_next(self, level: usize) {
        prefetch(self.link(level).load(Relaxed).cast::<u8>());
    }

    /// Whether it comes before `needle`.
    #[inline]
    pub(super) fn is_before(self, shape: &Shape, needle: &Needle<'_>) -> bool {
        let header = self.header();
        if header.row_prefix != needle.row_prefix {
            return header.row_prefix < needle.row_prefix;
        }
        match shape.order.keys(self.cell().key(), needle.key) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => header.seq_id > needle.seq_id,
        }
    }
}

/// A place between cells: before those with this key and a sequence id that is not larger.
pub(super) struct Needle<'k> {
    row_prefix: u64,
    key: KeyRef<'k>,
    seq_id: u64,
}

impl<'k> Needle<'k> {
    /// Before every cell with `key`.
    #[inline]
    pub(super) fn before_key(shape: &Shape, key: KeyRef<'k>) -> Needle<'k> {
        Needle { row_prefix: shape.prefix_of(key.row()), key, seq_id: u64::MAX }
    }

    /// Where `cell` belongs: before its equals.
    #[inline]
    pub(super) fn for_cell(shape: &Shape, cell: CellRef<'k>) -> Needle<'k> {
        Needle { row_prefix: shape.prefix_of(cell.row()), key: cell.key(), seq_id: cell.seq_id().0 }
    }

    /// Where `node` belongs: before its equals.
    #[inline]
    pub(super) fn for_node(node: Node<'k>) -> Needle<'k> {
        let header = node.header();
        Needle { row_prefix: header.row_prefix, key: node.cell().key(), seq_id: header.seq_id }
    }
}

/// What a list knows of its rows before the first of them.
#[derive(Debug)]
pub(super) struct Shape {
    /// The order of the cells.
    pub(super) order: Order,
    /// What most rows begin with: a guess, that only makes comparisons faster.
    common: Box<[u8]>,
}

impl Shape {
    pub(super) fn new(order: Order, common: &[u8]) -> Shape {
        Shape { order, common: common.into() }
    }

    /// A number that orders as rows do, as far as it goes: of rows that begin as most do the 8 bytes behind that, missing ones 0; of rows
    /// before all those the least, of rows after them the greatest. Rows of hbase:meta do not sort by their bytes; they all get 0.
    #[inline]
    fn prefix_of(&self, row: &[u8]) -> u64 {
        if self.order != Order::User {
            return 0;
        }
        let rest = match row.split_at_checked(self.common.len()) {
            Some((start, rest)) if same_bytes(start, &self.common) => rest,
            _ => return if row < &*self.common { 0 } else { u64::MAX },
        };
        if let Some(first) = rest.first_chunk::<8>() {
            return u64::from_be_bytes(*first);
        }
        let mut padded = [0; 8];
        padded[..rest.len()].copy_from_slice(rest);
        u64::from_be_bytes(padded)
    }
}

/// Brings two cache lines from `start` on near. Any address is allowed, null too.
#[inline]
pub(super) fn prefetch(start: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start.cast::<i8>());
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(64).cast::<i8>());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = start;
}
