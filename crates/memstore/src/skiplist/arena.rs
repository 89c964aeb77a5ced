//! Memory for nodes: handed out in growing chunks, taken back all at once.
//!
//! Chunks of the ordinary size are not given back to the allocator at once but kept for the next arena, up to a bound: a
//! memstore that was flushed is soon followed by one as large, and memory fresh from the operating system must be cleared
//! first, which costs more than all else that an insert does. Follows: `ChunkCreator`, `MemStoreChunkPool`.

use base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use base::sync::{Condvar, Mutex};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// Alignment of everything handed out.
pub(super) const ALIGN: usize = 8;
/// Whole first chunk; each next one is twice as large, up to [`MAX_CHUNK_BYTES`].
const FIRST_CHUNK_BYTES: usize = 1 << 10;
/// Largest ordinary chunk: `MemStoreLAB`'s chunk size.
const MAX_CHUNK_BYTES: usize = 2 << 20;
/// Pieces above this get a chunk of their own, so that at most a quarter of an ordinary chunk is left unused at its end.
const MAX_SHARED_BYTES: usize = MAX_CHUNK_BYTES / 4;

/// Most chunks in arenas and kept for later together; none are kept until somebody who knows the memory budget says how many.
static MAX_CHUNKS: AtomicUsize = AtomicUsize::new(0);
/// Of the spare chunks that nobody needed, this part is given back at a time (of ten seconds): a flush, and what follows it some minutes
/// later, must not find them gone.
const GIVEN_BACK_AT_ONCE: usize = 32;
/// As [`GIVEN_BACK_AT_ONCE`], while no cells come in at all: of what a load needed that is over, little is left after a minute.
const GIVEN_BACK_AT_ONCE_WHEN_IDLE: usize = 2;

/// What given-back memory holds in debug builds.
const POISON: u8 = 0xDB;

#[cfg(test)]
thread_local!(static OVERWRITTEN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

/// Spare chunks that there should be while cells come in. An insert that finds none has 2 MiB cleared by the operating system before it
/// goes on, and whoever waits for its row, its turn or its processor with it.
const READY_CHUNKS: usize = 4;

/// Chunks of [`MAX_CHUNK_BYTES`] that no arena holds, and how many are held.
static SPARE: Mutex<Spare> =
    Mutex::new(Spare { chunks: Vec::new(), fewest: 0, in_arenas: 0, wanted: 0, in_making: 0, is_taken_from: false });
/// Somebody wants chunks to be made ready, or those who do it are to look whether they should stop.
static WANTED: Condvar = Condvar::new();

struct Spare {
    chunks: Vec<NonNull<Chunk>>,
    /// The least that there were since the last [`release_spare`].
    fewest: usize,
    /// Chunks of that size in arenas.
    in_arenas: usize,
    /// Chunks that are to be made ready and that nobody has begun with.
    wanted: usize,
    /// Those that somebody makes ready now.
    in_making: usize,
    /// Whether anybody has asked for a chunk since the last [`release_spare`].
    is_taken_from: bool,
}

impl Spare {
    /// Chunks that may be added.
    fn room(&self) -> usize {
        MAX_CHUNKS.load(Relaxed).saturating_sub(self.in_arenas + self.chunks.len() + self.in_making)
    }
}

// SAFETY: each chunk is plain memory from the global allocator, tied to no thread, and owned by the list alone.
unsafe impl Send for Spare {}

/// Bounds what is kept for later from now on: with what is in use it comes to `bytes` at the most.
pub(crate) fn keep_spare(bytes: usize) {
    MAX_CHUNKS.store(bytes / MAX_CHUNK_BYTES, Relaxed);
}

/// Bytes that are kept for later now.
pub(crate) fn spare_bytes() -> usize {
    SPARE.lock().chunks.len() * MAX_CHUNK_BYTES
}

/// Gives back a part of the memory that nobody has needed since the last call.
pub(crate) fn release_spare() {
    let unneeded = {
        let mut spare = SPARE.lock();
        let is_taken_from = std::mem::take(&mut spare.is_taken_from);
        let part = if is_taken_from { GIVEN_BACK_AT_ONCE } else { GIVEN_BACK_AT_ONCE_WHEN_IDLE };
        let keep = spare.chunks.len() - spare.fewest.div_ceil(part);
        let unneeded = spare.chunks.split_off(keep);
        spare.fewest = keep;
        spare.wanted = 0;
        unneeded
    };
    for chunk in unneeded {
        // SAFETY: every spare chunk was allocated with this layout and is taken off the list once.
        unsafe { dealloc(chunk.as_ptr().cast::<u8>(), Arena::layout(MAX_CHUNK_BYTES)) };
    }
}

/// Makes chunks ready, ahead of those who need them, until `is_over` says so: asked whenever there is something to do, and after
/// [`wake_makers`].
pub(crate) fn make_ready(is_over: impl Fn() -> bool) {
    let mut spare = SPARE.lock();
    loop {
        if is_over() {
            return;
        }
        if spare.wanted == 0 || spare.room() == 0 {
            WANTED.wait(&mut spare);
            continue;
        }
        spare.wanted -= 1;
        spare.in_making += 1;
        drop(spare);
        let chunk = Arena::new_chunk(MAX_CHUNK_BYTES);
        // It is only now that the operating system gives the pages.
        for at in (0..MAX_CHUNK_BYTES).step_by(PAGE_BYTES) {
            // SAFETY: inside a chunk that is nobody else's yet.
            unsafe { chunk.cast::<u8>().add(at).write_volatile(0) };
        }
        spare = SPARE.lock();
        spare.in_making -= 1;
        spare.chunks.push(chunk);
    }
}

/// Has everybody who is in [`make_ready`] look whether it is over.
pub(crate) fn wake_makers() {
    let _so_that_none_is_between_looking_and_waiting = SPARE.lock();
    WANTED.notify_all();
}

/// Start of every chunk; the bytes to hand out follow it.
#[repr(C, align(8))]
struct Chunk {
    /// The chunk allocated before, null for the first. Written once, before the chunk is shared.
    previous: *mut Chunk,
    /// Size of the whole allocation, this header included.
    bytes: usize,
    /// Where the next piece starts. Runs past `bytes` when pieces did not fit.
    used_bytes: AtomicUsize,
}

/// The largest piece that fits an ordinary chunk.
pub(super) const TABLE_BYTES: usize = MAX_CHUNK_BYTES - HEADER_BYTES;
/// No system has smaller pages.
const PAGE_BYTES: usize = 4096;
const HEADER_BYTES: usize = size_of::<Chunk>();
const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGN) && align_of::<Chunk>() == ALIGN);

/// What only the thread that grows the arena looks at.
#[derive(Debug)]
struct Growth {
    /// Most recent of all chunks, the head of the list through [`Chunk::previous`].
    newest: *mut Chunk,
    next_chunk_bytes: usize,
}

/// Hands out pieces that stay where they are until the arena is dropped.
#[derive(Debug)]
pub(super) struct Arena {
    /// The chunk pieces are cut from; null before the first.
    current: AtomicPtr<Chunk>,
    held_bytes: AtomicUsize,
    growth: Mutex<Growth>,
}

// SAFETY: `Growth::newest` is the only field that is not Send and Sync by itself. Chunks are plain memory from the
// global allocator, tied to no thread; the list is read and changed only under the mutex, or with `&mut self`.
unsafe impl Send for Arena {}
// SAFETY: as above; `allocate` on `&self` works through atomics and the mutex only.
unsafe impl Sync for Arena {}

impl Arena {
    /// Holds no memory yet.
    pub(super) fn new() -> Arena {
        Arena {
            current: AtomicPtr::new(ptr::null_mut()),
            held_bytes: AtomicUsize::new(0),
            growth: Mutex::new(Growth { newest: ptr::null_mut(), next_chunk_bytes: FIRST_CHUNK_BYTES }),
        }
    }

    /// Bytes of all chunks.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Relaxed)
    }

    /// An uninitialised piece of `bytes` bytes, aligned to [`ALIGN`], that no one else gets, and by how many bytes the
    /// arena grew for it. The piece may be used until the arena is dropped.
    #[inline]
    pub(super) fn allocate(&self, bytes: usize) -> (NonNull<u8>, usize) {
        let bytes = bytes.checked_next_multiple_of(ALIGN).expect("a cell is under 4 GiB");
        if bytes <= MAX_SHARED_BYTES
            && let Some(chunk) = NonNull::new(self.current.load(Acquire))
            && let Some(piece) = Arena::cut(chunk, bytes)
        {
            return (piece, 0);
        }
        self.allocate_slow(bytes)
    }

    /// As [`Arena::allocate`], for up to [`TABLE_BYTES`] that are written at once: a large piece is a spare chunk, if there is one, so that
    /// its pages are there already.
    pub(super) fn allocate_table(&self, bytes: usize) -> (NonNull<u8>, usize) {
        if bytes <= MAX_SHARED_BYTES || bytes > TABLE_BYTES {
            return self.allocate(bytes);
        }
        let chunk = self.add_chunk(&mut self.growth.lock(), MAX_CHUNK_BYTES);
        (Arena::cut(chunk, bytes).expect("a fresh chunk has room"), MAX_CHUNK_BYTES)
    }

    /// A piece of `chunk`, which must be one of this arena's; `None` when it is used up.
    #[inline]
    fn cut(chunk: NonNull<Chunk>, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: chunks are freed only on drop, which needs `&mut self`, and their header is written before their
        // address is shared (released by the store to `current`, acquired by its load, or under the mutex).
        let header = unsafe { chunk.as_ref() };
        // Relaxed: the counter alone says who owns which piece; contents are published by the list's links.
        let at = header.used_bytes.fetch_add(bytes, Relaxed);
        if at > header.bytes || header.bytes - at < bytes {
            return None;
        }
        // SAFETY: `at + bytes` is inside the allocation, and `chunk` was derived from the whole of it.
        Some(unsafe { chunk.cast::<u8>().add(at) })
    }

    #[cold]
    fn allocate_slow(&self, bytes: usize) -> (NonNull<u8>, usize) {
        let mut growth = self.growth.lock();
        if bytes > MAX_SHARED_BYTES {
            let chunk = self.add_chunk(&mut growth, HEADER_BYTES + bytes);
            let piece = Arena::cut(chunk, bytes).expect("made to measure");
            return (piece, HEADER_BYTES + bytes);
        }
        // Another thread may have grown the arena while this one waited for the lock.
        if let Some(chunk) = NonNull::new(self.current.load(Relaxed))
            && let Some(piece) = Arena::cut(chunk, bytes)
        {
            return (piece, 0);
        }
        let chunk_bytes = growth.next_chunk_bytes.max((HEADER_BYTES + bytes).next_power_of_two());
        growth.next_chunk_bytes = (chunk_bytes * 2).min(MAX_CHUNK_BYTES);
        let chunk = self.add_chunk(&mut growth, chunk_bytes);
        let piece = Arena::cut(chunk, bytes).expect("a fresh chunk has room");
        self.current.store(chunk.as_ptr(), Release);
        (piece, chunk_bytes)
    }

    fn add_chunk(&self, growth: &mut Growth, chunk_bytes: usize) -> NonNull<Chunk> {
        let chunk = Arena::spare_chunk(chunk_bytes).unwrap_or_else(|| Arena::new_chunk(chunk_bytes));
        let header = Chunk { previous: growth.newest, bytes: chunk_bytes, used_bytes: AtomicUsize::new(HEADER_BYTES) };
        // SAFETY: memory of nobody else's, large enough and aligned for the header.
        unsafe { chunk.write(header) };
        growth.newest = chunk.as_ptr();
        self.held_bytes.fetch_add(chunk_bytes, Relaxed);
        chunk
    }

    /// Fresh memory, not written yet.
    fn new_chunk(chunk_bytes: usize) -> NonNull<Chunk> {
        let layout = Arena::layout(chunk_bytes);
        // SAFETY: the layout has a size of at least the header's.
        NonNull::new(unsafe { alloc(layout) }.cast::<Chunk>()).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// Overwrites all that was handed out of `chunk`, in debug builds: whoever still looked at a cell there would see it at once, not only when
    /// the memory is used again (F8 of the list of faults, HBASE-26281).
    ///
    /// # Safety
    /// No piece of the chunk is in use any more.
    unsafe fn poison(chunk: NonNull<Chunk>) {
        if cfg!(debug_assertions) {
            // SAFETY: `add_chunk` wrote the header; the rest up to `bytes` is the chunk's own, and nobody else's by now.
            unsafe {
                let header = chunk.as_ref();
                let used_bytes = header.used_bytes.load(Relaxed).min(header.bytes) - HEADER_BYTES;
                chunk.cast::<u8>().add(HEADER_BYTES).write_bytes(POISON, used_bytes);
                #[cfg(test)]
                OVERWRITTEN.set(OVERWRITTEN.get() + used_bytes);
            }
        }
    }

    fn spare_chunk(chunk_bytes: usize) -> Option<NonNull<Chunk>> {
        if chunk_bytes != MAX_CHUNK_BYTES {
            return None;
        }
        let mut spare = SPARE.lock();
        spare.in_arenas += 1;
        spare.is_taken_from = true;
        let chunk = spare.chunks.pop();
        spare.fewest = spare.fewest.min(spare.chunks.len());
        spare.wanted = READY_CHUNKS.saturating_sub(spare.chunks.len() + spare.in_making);
        if spare.wanted > 0 && spare.room() > 0 {
            WANTED.notify_one();
        }
        chunk
    }

    fn layout(chunk_bytes: usize) -> Layout {
        Layout::from_size_align(chunk_bytes, ALIGN).expect("chunks are far below the address space")
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let mut next = self.growth.get_mut().newest;
        let mut spare = Vec::new();
        while let Some(chunk) = NonNull::new(next) {
            // SAFETY: every chunk on the list was made by `add_chunk` with this layout and is visited once; `&mut self`
            // says that no piece of it is in use any more. The header is read before the memory goes.
            unsafe {
                next = chunk.as_ref().previous;
                let bytes = chunk.as_ref().bytes;
                Arena::poison(chunk);
                if bytes == MAX_CHUNK_BYTES {
                    spare.push(chunk);
                } else {
                    dealloc(chunk.as_ptr().cast::<u8>(), Arena::layout(bytes));
                }
            }
        }
        if spare.is_empty() {
            return;
        }
        let mut kept = SPARE.lock();
        kept.in_arenas -= spare.len();
        let room = kept.room();
        let too_many = spare.split_off(spare.len().min(room));
        kept.chunks.append(&mut spare);
        drop(kept);
        for chunk in too_many {
            // SAFETY: as above.
            unsafe { dealloc(chunk.as_ptr().cast::<u8>(), Arena::layout(MAX_CHUNK_BYTES)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_overlap_and_are_aligned() {
        let arena = Arena::new();
        assert_eq!(arena.held_bytes(), 0);
        let mut pieces = Vec::new();
        let mut grown = 0;
        for (fill, bytes) in
            [1, 7, 8, 9, 500, 2000, MAX_SHARED_BYTES, 3, MAX_CHUNK_BYTES * 2 + 1, 5].into_iter().enumerate()
        {
            let (piece, grew) = arena.allocate(bytes);
            assert_eq!(piece.addr().get() % ALIGN, 0);
            // SAFETY: the piece is `bytes` long and ours.
            unsafe { piece.write_bytes(fill as u8 + 1, bytes) };
            pieces.push((piece, bytes));
            grown += grew;
        }
        assert_eq!(grown, arena.held_bytes());
        for (fill, (piece, bytes)) in pieces.into_iter().enumerate() {
            // SAFETY: written above; the arena is alive.
            let content = unsafe { std::slice::from_raw_parts(piece.as_ptr(), bytes) };
            assert!(content.iter().all(|b| *b == fill as u8 + 1), "piece {fill}");
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn f08_what_was_handed_out_is_overwritten_before_it_is_given_back() {
        let arena = Arena::new();
        let (piece, _) = arena.allocate(100);
        // SAFETY: the piece is 100 bytes long and ours.
        unsafe { piece.write_bytes(7, 100) };
        let chunk = NonNull::new(arena.growth.lock().newest).expect("a chunk");
        // SAFETY: the piece is not used again, but for a look at what is there now; the arena, alive, has the memory still.
        let content = unsafe {
            Arena::poison(chunk);
            std::slice::from_raw_parts(piece.as_ptr(), 100)
        };
        assert!(content.iter().all(|byte| *byte == POISON));
    }

    /// Chunks that go back to the allocator, and those that are kept to be used again.
    #[test]
    #[cfg(debug_assertions)]
    fn f08_an_arena_overwrites_every_chunk_when_it_is_dropped() {
        let arena = Arena::new();
        let mut handed_out = 0;
        for bytes in [8, 1000, 5000, MAX_SHARED_BYTES, MAX_CHUNK_BYTES + 8] {
            arena.allocate(bytes);
            handed_out += bytes;
        }
        arena.allocate_table(TABLE_BYTES);
        OVERWRITTEN.set(0);
        drop(arena);
        // A piece that did not fit into a chunk has used up its end.
        assert!(OVERWRITTEN.get() >= handed_out + TABLE_BYTES, "{} of {}", OVERWRITTEN.get(), handed_out + TABLE_BYTES);
    }

    #[test]
    fn chunks_grow_from_small_to_a_bound() {
        let arena = Arena::new();
        let grown: Vec<usize> = (0..60_000).map(|_| arena.allocate(100).1).filter(|bytes| *bytes > 0).collect();
        assert_eq!(grown[0], FIRST_CHUNK_BYTES);
        assert!(grown.windows(2).all(|w| w[1] == (w[0] * 2).min(MAX_CHUNK_BYTES)), "{grown:?}");
        assert_eq!(grown.last(), Some(&MAX_CHUNK_BYTES));
    }
}
