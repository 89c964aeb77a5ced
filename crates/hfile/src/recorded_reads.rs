//! Which blocks this thread looks at, one by one: for whoever explains a single call. Nothing is recorded unless somebody asks for it on this
//! thread; then the first so many are kept, and the others counted.

use fs::FilePath;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

/// Most looks that one recording keeps.
const MOST_LOOKS: usize = 128;

/// A block that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLook {
    /// Its file.
    pub path: FilePath,
    /// Where it begins in it.
    pub offset: u64,
    /// Bytes, as it lies in the file.
    pub bytes: u32,
    /// Whence it came.
    pub from: BlockFrom,
    /// When it was there, on the clock of the cache; 0 where that has none ([`crate::BlockCache::time_reads_by`]).
    pub at_us: u64,
}

/// Where a block was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFrom {
    /// In the cache, in memory.
    Cache,
    /// In the cache's second level.
    SecondLevel,
    /// In its file, perhaps read ahead.
    File,
}

std::thread_local! {
    static RECORDS: Cell<bool> = const { Cell::new(false) };
    static LOOKS: RefCell<(Vec<BlockLook>, u32)> = const { RefCell::new((Vec::new(), 0)) };
}

/// A recording of this thread's looks at blocks. Only one at a time: a second one begins anew.
#[derive(Debug)]
#[must_use = "it records until it is dropped"]
pub struct LooksRecording(PhantomData<*const ()>);

impl LooksRecording {
    /// Records from now on.
    pub fn begin() -> LooksRecording {
        RECORDS.set(true);
        LOOKS.take();
        LooksRecording(PhantomData)
    }

    /// What there is by now, and how many more there were.
    pub fn take(&self) -> (Vec<BlockLook>, u32) {
        LOOKS.take()
    }
}

impl Drop for LooksRecording {
    fn drop(&mut self) {
        RECORDS.set(false);
        LOOKS.take();
    }
}

/// Tells the recording, if there is one, of a look.
#[inline]
pub(crate) fn looked(look: impl FnOnce() -> BlockLook) {
    if RECORDS.get() {
        keep(look());
    }
}

#[cold]
fn keep(look: BlockLook) {
    LOOKS.with_borrow_mut(|(looks, dropped)| {
        if looks.len() < MOST_LOOKS {
            looks.push(look);
        } else {
            *dropped = dropped.saturating_add(1);
        }
    });
}
