//! A concurrent skip list of cells that only grows. The one place with `unsafe`, here and in [`arena`] and [`node`].
//!
//! How it stays sound:
//!  1. A node is one piece of the [`arena::Arena`], written whole by its creator and then published by a
//!     compare-and-swap with release order into a link; every link is loaded with acquire order. So whoever can name
//!     a node sees all of it.
//!  2. After publication only links change, and they are atomics.
//!  3. Nodes are never unlinked and the arena frees nothing before it is dropped. [`Cursor`] owns a share of the list,
//!     [`Insertion`] borrows it, so every address either of them holds outlives them.
//!  4. Addresses kept across calls (a cursor's, a splice's) were all taken from nodes of the same list.
//!
//! A node's levels are linked from the lowest up, so a node met on any level is on all below it, or will be before
//! its insert returns; searches only rely on the lowest. Follows the idea of RocksDB's `InlineSkipList`: links and key
//! in one allocation, and a splice remembered between inserts so that ascending keys are found at once.
#![allow(unsafe_code)]

mod arena;
mod cursor;
mod node;
mod rows;
#[cfg(test)]
mod tests;

use arena::Arena;
pub(crate) use arena::{keep_spare, make_ready, release_spare, spare_bytes, wake_makers};
use base::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use base::sync::{Mutex, MutexGuard};
use cell::key::same_bytes;
use cell::{CellRef, Order};
pub(crate) use cursor::{Cursor, Look, Run};
use node::{Header, Link, Needle, Node, Shape};
use rows::RowStarts;
use std::ptr;

/// Most levels of a node. With one node in four going a level higher this serves 16 million cells at full speed.
const MAX_HEIGHT: usize = 12;

/// Nodes that are passed on the way from a row's first node before a search from the top is taken to be shorter.
const NEAR_NODES: usize = 8;

/// Searches that go on side by side in [`Insertion::insert_all`]: enough to hide one cache miss behind the others.
const LANES: usize = 8;

/// Sorted cells; see the module.
#[derive(Debug)]
pub(crate) struct SkipList {
    shape: Shape,
    /// The links before the first node.
    head: [Link; MAX_HEIGHT],
    /// Height of the tallest node; may lag behind for a moment.
    height: AtomicUsize,
    /// Draws for node heights handed out so far.
    draws: AtomicUsize,
    arena: Arena,
    rows: RowStarts,
    /// Where the last run of inserts ended. Only ever tried, never waited for.
    splice: Mutex<Splice>,
}

/// For each level the nodes around the place of the last insert: `previous` (null: the head) and the one after it.
#[derive(Clone, Debug)]
struct Splice {
    /// Levels that are filled in; above them nothing is known.
    height: usize,
    previous: [*mut Header; MAX_HEIGHT],
    next: [*mut Header; MAX_HEIGHT],
}

// SAFETY: a splice holds addresses only. They are followed by methods of the list they came from, whose nodes may be
// read from any thread.
unsafe impl Send for Splice {}

impl Splice {
    const fn new() -> Splice {
        Splice { height: 0, previous: [ptr::null_mut(); MAX_HEIGHT], next: [ptr::null_mut(); MAX_HEIGHT] }
    }
}

impl SkipList {
    /// An empty list; takes no memory besides itself. `common` is what most of its rows are expected to begin with: a good guess makes
    /// comparisons faster, a wrong one does no harm.
    pub(crate) fn new(order: Order, common: &[u8]) -> SkipList {
        SkipList {
            shape: Shape::new(order, common),
            head: [const { Link::new(ptr::null_mut()) }; MAX_HEIGHT],
            height: AtomicUsize::new(1),
            draws: AtomicUsize::new(0),
            arena: Arena::new(),
            rows: RowStarts::new(),
            splice: Mutex::new(Splice::new()),
        }
    }

    /// The order of its cells.
    pub(crate) fn order(&self) -> Order {
        self.shape.order
    }

    /// Bytes of the chunks with its nodes and tables.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.arena.held_bytes()
    }

    /// Starts a run of inserts by this thread.
    #[inline]
    pub(crate) fn insertion(&self) -> Insertion<'_> {
        let splice = match self.splice.try_lock() {
            Some(shared) => SpliceHold::Shared(shared),
            None => SpliceHold::Own(Splice::new()),
        };
        Insertion { list: self, splice }
    }

    /// The node a pointer of this list stands for.
    ///
    /// # Safety
    /// `header` is null or was read, with acquire order or by the thread that made the node, from a link or a node
    /// of this very list.
    #[inline]
    unsafe fn node(&self, header: *mut Header) -> Option<Node<'_>> {
        // SAFETY: handed on; the arena lives as long as the list.
        unsafe { Node::from_ptr(header) }
    }

    /// The link on `level` that follows `previous`, or the head.
    #[inline]
    fn link_after<'a>(&'a self, previous: Option<Node<'a>>, level: usize) -> &'a Link {
        match previous {
            Some(node) => node.link(level),
            None => &self.head[level],
        }
    }

    /// The node on `level` after `previous`.
    #[inline]
    fn next_of<'a>(&'a self, previous: Option<Node<'a>>, level: usize) -> Option<Node<'a>> {
        // SAFETY: read with acquire order from a link of this list.
        unsafe { self.node(self.link_after(previous, level).load(Acquire)) }
    }

    /// On `level`, starting after `previous` (which is before the needle): the last node before the needle and the
    /// one after it. `bound` is a node known not to be before the needle, or null; it saves a comparison.
    #[inline]
    fn search_level<'a>(
        &'a self,
        needle: &Needle<'_>,
        mut previous: Option<Node<'a>>,
        bound: *mut Header,
        level: usize,
    ) -> (Option<Node<'a>>, *mut Header) {
        loop {
            let Some(next) = self.next_of(previous, level) else { return (previous, ptr::null_mut()) };
            if next.as_ptr() == bound {
                return (previous, bound);
            }
            // While this node is compared, the one to go to if it is before the needle comes nearer.
            next.prefetch_next(level);
            if !next.is_before(&self.shape, needle) {
                return (previous, next.as_ptr());
            }
            previous = Some(next);
            if level > 0 {
                next.prefetch_next(level - 1);
            }
        }
    }

    /// From `previous` (before the needle) on levels below `height`: the last node before the needle on the lowest
    /// level, and the one after it. `bound` as in [`SkipList::search_level`].
    #[inline]
    fn search<'a>(
        &'a self,
        needle: &Needle<'_>,
        mut previous: Option<Node<'a>>,
        mut bound: *mut Header,
        height: usize,
    ) -> (Option<Node<'a>>, Option<Node<'a>>) {
        for level in (0..height).rev() {
            (previous, bound) = self.search_level(needle, previous, bound, level);
        }
        // SAFETY: null, or read from a link of this list with acquire order, by `search_level` or the caller.
        (previous, unsafe { self.node(bound) })
    }

    /// Hears of cells that are spread evenly over the list, in order: those on the highest level that has at least `wanted` of them, or all.
    /// So many times four are met, about, and a few more on the levels above.
    pub(crate) fn sample(&self, wanted: usize, mut each: impl FnMut(CellRef<'_>)) {
        let on = |level| std::iter::successors(self.next_of(None, level), move |node| self.next_of(Some(*node), level));
        let has_enough = |level: &usize| on(*level).nth(wanted.saturating_sub(1)).is_some();
        let level = (0..self.height()).rev().find(has_enough).unwrap_or(0);
        on(level).for_each(|node| each(node.cell()));
    }

    /// Levels that have nodes, at least one.
    #[inline]
    fn height(&self) -> usize {
        self.height.load(Relaxed)
    }

    /// Height for draw number `draw`: each further level with chance 1/4. A hash of the number, so that equal runs
    /// build equal lists.
    #[inline]
    fn height_for(draw: usize) -> usize {
        let mut z = (draw as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (1 + z.trailing_zeros() as usize / 2).min(MAX_HEIGHT)
    }
}

/// A splice on loan from the list, or one's own while another thread has that.
enum SpliceHold<'a> {
    Shared(MutexGuard<'a, Splice>),
    Own(Splice),
}

impl SpliceHold<'_> {
    #[inline]
    fn get(&mut self) -> &mut Splice {
        match self {
            SpliceHold::Shared(shared) => shared,
            SpliceHold::Own(own) => own,
        }
    }
}

/// A run of inserts by one thread.
pub(crate) struct Insertion<'a> {
    list: &'a SkipList,
    splice: SpliceHold<'a>,
}

impl Insertion<'_> {
    /// Copies `cells` in, one after the other; `grown` hears of each by how many bytes the list grew. In a large list a
    /// search waits for memory most of its time. So the places of cells that are far from each other are looked for side
    /// by side, each step of one search being fetched while the others are looked at.
    pub(crate) fn insert_all(&mut self, cells: &[CellRef<'_>], mut grown: impl FnMut(CellRef<'_>, usize)) {
        for some in cells.chunks(LANES) {
            let mut row: &[u8] = &[];
            for cell in some {
                if !same_bytes(cell.row(), row) {
                    row = cell.row();
                    self.list.rows.prefetch(row);
                }
            }
            if some.len() < 2 || self.is_near(some[0]) {
                some.iter().for_each(|cell| grown(*cell, self.insert(*cell, None)));
                continue;
            }
            let mut lanes = [const { Splice::new() }; LANES];
            self.list.aim_all(&mut lanes[..some.len()], some);
            for (cell, aimed) in some.iter().zip(lanes) {
                *self.splice.get() = aimed;
                grown(*cell, self.insert(*cell, None));
            }
        }
    }

    /// Whether the place of `cell` is beside the last one, so that a search would be short.
    fn is_near(&mut self, cell: CellRef<'_>) -> bool {
        let (list, splice) = (self.list, self.splice.get());
        let needle = Needle::for_cell(&list.shape, cell);
        (0..splice.height.min(2)).any(|level| list.encloses(splice, &needle, level))
    }

    /// Copies `cell` in, before its equals; `stamp` replaces its timestamp. Returns by how many bytes the list grew.
    #[inline]
    pub(crate) fn insert(&mut self, cell: CellRef<'_>, stamp: Option<i64>) -> usize {
        let list = self.list;
        let splice = self.splice.get();
        let height = SkipList::height_for(list.draws.fetch_add(1, Relaxed));
        let (node, grown_bytes) = Node::create(&list.arena, &list.shape, cell, stamp, height);
        let needle = Needle::for_node(node);
        if height > list.height.load(Relaxed) {
            list.height.fetch_max(height, Relaxed);
        }
        // Of a node on the lowest level alone only that place matters. To find those on other levels from the row's first node takes longer
        // than a search from the top.
        let is_aimed =
            height == 1 && (list.encloses_lowest(splice, &needle) || list.aim_by_row(splice, &needle, cell.row()));
        if !is_aimed {
            list.aim(splice, &needle, list.height());
        }
        grown_bytes + list.link(splice, &needle, node)
    }
}

impl SkipList {
    /// Makes `splice` enclose the needle on every level below `height`.
    #[inline]
    fn aim(&self, splice: &mut Splice, needle: &Needle<'_>, height: usize) {
        // Of levels the splice never saw it knows no node to start from, and those above are where a search is short.
        let is_whole = splice.height >= height;
        let height = splice.height.max(height);
        splice.height = height;
        // The lowest level where the splice still has the needle between two neighbours; only those below are searched
        // anew. On the levels above, the needle is then between the splice's nodes too, though they may not be
        // neighbours any more (linking notices and repairs that): `previous` there is not after `previous` here, and
        // `next` there, which is after `previous` here and on this level as well, cannot be before `next` here,
        // because here nothing is in between. That is why being neighbours must be checked, not only the order.
        let mut right = if is_whole { 0 } else { height };
        while right < height {
            if self.encloses(splice, needle, right) {
                break;
            }
            right += 1;
        }
        let (mut previous, mut bound) = if right < height {
            // SAFETY: addresses in a splice are null or come from nodes of this list that this thread read with
            // acquire order, or got with the splice's lock from one that did.
            (unsafe { self.node(splice.previous[right]) }, splice.next[right])
        } else {
            (None, ptr::null_mut())
        };
        for level in (0..right).rev() {
            (previous, bound) = self.search_level(needle, previous, bound, level);
            splice.previous[level] = previous.map_or(ptr::null_mut(), Node::as_ptr);
            splice.next[level] = bound;
        }
    }

    /// Makes `splice` enclose the needle on the lowest level alone, if the table knows the row and the place is near the row's first node;
    /// false, and nothing is changed, if not.
    #[inline]
    fn aim_by_row(&self, splice: &mut Splice, needle: &Needle<'_>, row: &[u8]) -> bool {
        let Some(first) = self.rows.find(row) else { return false };
        let start = if first.is_before(&self.shape, needle) {
            Some(first)
        } else {
            // Were another thread at this row, which the region does not allow, that node could be behind the place by now.
            first.before().filter(|before| before.is_before(&self.shape, needle))
        };
        let Some(mut previous) = start else { return false };
        for _ in 0..NEAR_NODES {
            let next = previous.link(0).load(Acquire);
            // SAFETY: read with acquire order from a link of this list.
            match unsafe { self.node(next) } {
                Some(node) if node.is_before(&self.shape, needle) => previous = node,
                _ => {
                    splice.height = 1;
                    splice.previous[0] = previous.as_ptr();
                    splice.next[0] = next;
                    return true;
                }
            }
        }
        false
    }

    /// Makes each of the fresh splices enclose its cell's place, searching for all of them at once.
    fn aim_all(&self, splices: &mut [Splice], cells: &[CellRef<'_>]) {
        let height = self.height();
        // Where each search stands on the present level: after `previous`, looking at `next`, not going beyond `bound`.
        let mut previous: [Option<Node<'_>>; LANES] = [None; LANES];
        let mut next: [*mut Header; LANES] = [ptr::null_mut(); LANES];
        let mut bound: [*mut Header; LANES] = [ptr::null_mut(); LANES];
        let mut needles = [const { None }; LANES];
        for (needle, cell) in needles.iter_mut().zip(cells) {
            *needle = Some(Needle::for_cell(&self.shape, *cell));
        }
        splices.iter_mut().for_each(|splice| splice.height = height);
        for level in (0..height).rev() {
            for lane in 0..splices.len() {
                next[lane] = self.link_after(previous[lane], level).load(Acquire);
                node::prefetch(next[lane].cast());
            }
            let mut under_way: u32 = (1 << splices.len()) - 1;
            while under_way != 0 {
                let mut round = under_way;
                while round != 0 {
                    let lane = round.trailing_zeros() as usize;
                    round &= round - 1;
                    // SAFETY: null, or just read with acquire order from a link of this list.
                    let found = if next[lane] == bound[lane] { None } else { unsafe { self.node(next[lane]) } };
                    match (found, &needles[lane]) {
                        (Some(found), Some(needle)) if found.is_before(&self.shape, needle) => {
                            previous[lane] = Some(found);
                            next[lane] = found.link(level).load(Acquire);
                            node::prefetch(next[lane].cast());
                        }
                        _ => under_way &= !(1 << lane),
                    }
                }
            }
            for (lane, splice) in splices.iter_mut().enumerate() {
                splice.previous[level] = previous[lane].map_or(ptr::null_mut(), Node::as_ptr);
                splice.next[level] = next[lane];
                bound[lane] = next[lane];
            }
        }
    }

    /// Whether the splice of the last insert is right for the needle already.
    #[inline]
    fn encloses_lowest(&self, splice: &Splice, needle: &Needle<'_>) -> bool {
        splice.height > 0 && self.encloses(splice, needle, 0)
    }

    /// Whether the needle belongs between the two nodes of `splice` on `level`, and these are still neighbours.
    #[inline]
    fn encloses(&self, splice: &Splice, needle: &Needle<'_>, level: usize) -> bool {
        // SAFETY: addresses in a splice; see `aim`.
        let (previous, next) = unsafe { (self.node(splice.previous[level]), self.node(splice.next[level])) };
        self.link_after(previous, level).load(Acquire) == splice.next[level]
            && previous.is_none_or(|node| node.is_before(&self.shape, needle))
            && next.is_none_or(|node| !node.is_before(&self.shape, needle))
    }

    /// Links `node` in where the aimed `splice` says, lowest level first, and leaves the splice after it. Returns by how many bytes the
    /// table of rows grew.
    #[inline]
    fn link(&self, splice: &mut Splice, needle: &Needle<'_>, node: Node<'_>) -> usize {
        let mut grown_bytes = 0;
        for level in 0..node.height() {
            loop {
                let next = splice.next[level];
                // SAFETY: an address in a splice; see `aim`.
                let previous = unsafe { self.node(splice.previous[level]) };
                node.link(level).store(next, Relaxed);
                if level == 0 {
                    // SAFETY: an address in a splice; see `aim`.
                    node.note_oldest(unsafe { self.node(next) });
                }
                // Release publishes the node and the link just set; acquire on failure is for following what is there.
                let link = self.link_after(previous, level);
                if link.compare_exchange(next, node.as_ptr(), AcqRel, Acquire).is_ok() {
                    if level == 0 {
                        node.set_before(splice.previous[0]);
                        // SAFETY: an address in a splice; see `aim`.
                        let next = unsafe { self.node(next) };
                        if let Some(next) = next {
                            next.give_way_to(node);
                            next.set_before(node.as_ptr());
                        }
                        // Rows of hbase:meta sort by their parts; reads of one are none that matter.
                        if self.shape.order == Order::User
                            && !previous.is_some_and(|previous| previous.is_in_row_of(node))
                        {
                            grown_bytes =
                                self.rows.note(&self.arena, node, !next.is_some_and(|next| next.is_in_row_of(node)));
                        }
                    }
                    break;
                }
                // Someone was faster here: look again from the same node on.
                let (previous, next) = self.search_level(needle, previous, ptr::null_mut(), level);
                splice.previous[level] = previous.map_or(ptr::null_mut(), Node::as_ptr);
                splice.next[level] = next;
            }
        }
        // The next key is most likely the one after this: keep the place behind the new node.
        for level in 0..node.height() {
            splice.previous[level] = node.as_ptr();
        }
        grown_bytes
    }
}
