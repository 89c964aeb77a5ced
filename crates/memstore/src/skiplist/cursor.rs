//! A position in a list, with a share of the list.

use super::SkipList;
use super::node::{Header, Needle, Node};
use cell::{CellRef, KeyRef};
use std::ptr;
use std::sync::Arc;

/// Stands on a cell or nowhere.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    list: Arc<SkipList>,
    /// A node of `list`, or null.
    at: *mut Header,
}

// SAFETY: `at` points into the arena of `list`, which the cursor keeps alive and which is Send and Sync; nodes may be
// read from any thread, and `&Cursor` only reads.
unsafe impl Send for Cursor {}
// SAFETY: as above.
unsafe impl Sync for Cursor {}

impl Cursor {
    /// Nowhere in `list`.
    pub(crate) fn new(list: Arc<SkipList>) -> Cursor {
        Cursor { list, at: ptr::null_mut() }
    }

    #[inline]
    fn node(&self) -> Option<Node<'_>> {
        // SAFETY: `at` is null or a node of `list`, read with acquire order by `go_to`'s callers; the borrow of
        // `self` keeps the list alive. A cursor handed to another thread is handed over with synchronisation.
        unsafe { self.list.node(self.at) }
    }

    #[inline]
    fn go_to(&mut self, at: *mut Header) -> bool {
        self.at = at;
        !at.is_null()
    }

    /// The cell here.
    #[inline]
    pub(crate) fn current(&self) -> Option<CellRef<'_>> {
        self.node().map(Node::cell)
    }

    /// The cells from here on, to be looked at before the cursor moves; `None` where it stands nowhere.
    #[inline]
    pub(crate) fn run(&mut self) -> Option<Run<'_>> {
        let list = &*self.list;
        // SAFETY: as in `node`; the borrow of `self` keeps the list alive.
        let here = unsafe { list.node(self.at) }?;
        Some(Run { list, here, position: &mut self.at })
    }

    /// To the first cell not before `key`.
    pub(crate) fn seek(&mut self, key: KeyRef<'_>) -> bool {
        let at = address(self.list.first_at(key));
        self.go_to(at)
    }

    /// To the last cell before `key`.
    pub(crate) fn seek_before(&mut self, key: KeyRef<'_>) -> bool {
        let needle = Needle::before_key(&self.list.shape, key);
        let (found, _) = self.list.search(&needle, None, ptr::null_mut(), self.list.height());
        let at = address(found.map(|node| self.standing(node)));
        self.go_to(at)
    }

    /// To the first cell not before `key`, from here on.
    pub(crate) fn reseek(&mut self, key: KeyRef<'_>) -> bool {
        let Some(node) = self.node() else { return false };
        let at = address(self.list.first_at_from(node, key));
        self.go_to(at)
    }

    /// To the first cell.
    pub(crate) fn seek_to_first(&mut self) -> bool {
        let at = address(self.list.next_of(None, 0));
        self.go_to(at)
    }

    /// To the last cell.
    pub(crate) fn seek_to_last(&mut self) -> bool {
        let mut last = None;
        for level in (0..self.list.height()).rev() {
            while let Some(next) = self.list.next_of(last, level) {
                last = Some(next);
            }
        }
        let at = address(last.map(|node| self.standing(node)));
        self.go_to(at)
    }

    /// The node that replaced this one, or itself.
    fn standing<'a>(&'a self, node: Node<'a>) -> Node<'a> {
        if !node.is_replaced() {
            return node;
        }
        // Equals stand in the order of their replacing: the first of them is the one that counts.
        let needle = Needle::for_node(node);
        let (_, first) = self.list.search(&needle, None, ptr::null_mut(), self.list.height());
        first.unwrap_or(node)
    }

    /// One cell on.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        let Some(node) = self.node() else { return false };
        let at = address(self.list.after(node));
        self.go_to(at)
    }
}

impl SkipList {
    /// The first node not before `key`.
    fn first_at(&self, key: KeyRef<'_>) -> Option<Node<'_>> {
        if let Some(first) = self.rows.find(key.row()) {
            // All before it are of rows before.
            let is_row_start = key.type_code() == u8::MAX && key.timestamp() == i64::MAX && key.column().0.is_empty();
            return if is_row_start { Some(first) } else { self.first_at_from(first, key) };
        }
        let needle = Needle::before_key(&self.shape, key);
        self.search(&needle, None, ptr::null_mut(), self.height()).1
    }

    /// The first node from `node` on that is not before `key`.
    fn first_at_from<'a>(&'a self, mut node: Node<'a>, key: KeyRef<'_>) -> Option<Node<'a>> {
        let needle = Needle::before_key(&self.shape, key);
        if !node.is_before(&self.shape, &needle) {
            return Some(node);
        }
        // Climb: follow each node's highest link while that stays before the key; then search down from there.
        let mut level = node.height() - 1;
        let bound = loop {
            match self.next_of(Some(node), level) {
                Some(next) if next.is_before(&self.shape, &needle) => {
                    node = next;
                    level = node.height() - 1;
                }
                next => break address(next),
            }
        };
        self.search(&needle, Some(node), bound, level).1
    }

    /// The node after `node` that was not replaced.
    #[inline]
    fn after<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        let mut next = self.next_of(Some(node), 0)?;
        next.prefetch_next(0);
        while next.is_replaced() {
            next = self.next_of(Some(next), 0)?;
            next.prefetch_next(0);
        }
        Some(next)
    }

    /// A look from the first cell not before `key` on; `None` when there is none.
    pub(crate) fn look(&self, key: KeyRef<'_>) -> Option<Look<'_>> {
        Some(Look { list: self, here: self.first_at(key)? })
    }
}

/// Stands on a cell of a list that is borrowed.
pub(crate) struct Look<'a> {
    list: &'a SkipList,
    here: Node<'a>,
}

impl<'a> Look<'a> {
    /// The cell here.
    #[inline]
    pub(crate) fn cell(&self) -> CellRef<'a> {
        self.here.cell()
    }

    /// One cell on; false, and nothing is changed, at the end.
    #[inline]
    pub(crate) fn step(&mut self) -> bool {
        self.list.after(self.here).map(|next| self.here = next).is_some()
    }

    /// One cell on, past older versions of this cell's column; some of them may still follow. False, and nothing is changed, at the end.
    #[inline]
    pub(crate) fn pass_versions(&mut self) -> bool {
        let last = self.here.oldest().unwrap_or(self.here);
        self.list.after(last).map(|next| self.here = next).is_some()
    }

    /// To the first cell not before `key`, from here on; false, and nothing is changed, when there is none.
    pub(crate) fn reseek(&mut self, key: KeyRef<'_>) -> bool {
        self.list.first_at_from(self.here, key).map(|found| self.here = found).is_some()
    }
}

/// Looks ahead from a cursor's place; cells that were passed stay readable. The cursor moves only with [`Run::commit`].
pub(crate) struct Run<'a> {
    list: &'a SkipList,
    here: Node<'a>,
    position: &'a mut *mut Header,
}

impl<'a> Run<'a> {
    /// The cell here.
    #[inline]
    pub(crate) fn cell(&self) -> CellRef<'a> {
        self.here.cell()
    }

    /// One cell on; `None`, and nothing is changed, at the end.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<CellRef<'a>> {
        self.here = self.list.after(self.here)?;
        Some(self.here.cell())
    }

    /// The cursor stands here from now on.
    #[inline]
    pub(crate) fn commit(&mut self) {
        *self.position = self.here.as_ptr();
    }
}

#[inline]
fn address(node: Option<Node<'_>>) -> *mut Header {
    node.map_or(ptr::null_mut(), Node::as_ptr)
}
