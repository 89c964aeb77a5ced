//! What becomes of the memory of dropped segments. In a process of its own: that memory is the whole process's.

mod common;

use basalt_memstore::{
    Segment, SegmentId, prefault_chunks, release_pooled_chunks, set_chunk_pool_limit, spare_memory_bytes,
    wake_prefaulters,
};
use base::{Clock, SeqId, SystemClock};
use cell::{CellRef, Order};
use common::make_cell;
use std::sync::atomic::{AtomicBool, Ordering};

const MIB: usize = 1 << 20;

/// A segment that holds so much, in chunks of the largest ordinary size but for the first 2 MiB.
fn filled(bytes: usize) -> Segment {
    let segment = Segment::new(Order::User, SegmentId(1));
    let value = vec![7; 100_000];
    for n in 0u32.. {
        if segment.heap_bytes() >= bytes {
            break;
        }
        let kv = make_cell(&n.to_be_bytes(), b"q", 1, 4, &value, b"");
        segment.insert(CellRef::from_checked(&kv, SeqId(1)));
    }
    segment
}

#[test]
fn memory_is_kept_within_the_bound_that_memstores_have_together_and_given_back_bit_by_bit() {
    drop(filled(20 * MIB));
    assert_eq!(spare_memory_bytes(), 0, "nobody has asked for it yet");

    set_chunk_pool_limit(64 * MIB);
    drop(filled(40 * MIB));
    let kept = spare_memory_bytes();
    assert!((36 * MIB..=42 * MIB).contains(&kept), "{kept} bytes are kept");
    let again = filled(30 * MIB);
    assert!(spare_memory_bytes() + 26 * MIB <= kept, "the next segment did not take what was kept");
    drop(again);
    assert_eq!(spare_memory_bytes(), kept);

    // What is in use counts: with 50 MiB in a segment 14 may lie idle.
    let (long, short) = (filled(50 * MIB), filled(30 * MIB));
    drop(short);
    let beside = spare_memory_bytes();
    assert!((10 * MIB..=16 * MIB).contains(&beside), "{beside} bytes are kept beside 50 MiB in use");
    drop(long);

    let mut before = spare_memory_bytes();
    release_pooled_chunks();
    assert!(spare_memory_bytes() >= before / 8 * 7, "a burst was over a moment ago");
    // Nobody has taken any since.
    for _ in 0..5 {
        release_pooled_chunks();
    }
    assert!(
        spare_memory_bytes() <= before / 8,
        "{} of {before} bytes are left when all is quiet",
        spare_memory_bytes()
    );
    before = spare_memory_bytes();
    for _ in 0..200 {
        release_pooled_chunks();
        let now = spare_memory_bytes();
        assert!(now < before || now == 0, "{now} of {before} bytes are left");
        assert!(now >= before / 4 || before <= 8 * MIB, "{before} bytes became {now} at once");
        before = now;
    }
    assert_eq!(before, 0);
    memory_is_made_ready_while_cells_come_in();
}

/// A part of the test above: it is about the same memory.
fn memory_is_made_ready_while_cells_come_in() {
    /// Ends the makers also when the test fails, or its thread would wait for them.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
            wake_prefaulters();
        }
    }

    let is_over = AtomicBool::new(false);
    let until = |what: &dyn Fn(usize) -> bool| {
        let (clock, patience_us) = (SystemClock::new(), 20_000_000);
        let start_us = clock.monotonic_us();
        while !what(spare_memory_bytes()) {
            assert!(clock.monotonic_us() - start_us < patience_us, "{} bytes are ready", spare_memory_bytes());
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| prefault_chunks(|| is_over.load(Ordering::Acquire)));
        let _over = Over(&is_over);
        let segment = filled(10 * MIB);
        until(&|ready| ready == 8 * MIB);
        // The next cells find theirs there, and it is made good.
        let another = filled(4 * MIB);
        until(&|ready| ready == 8 * MIB);
        // Never more than all may have together: here some 16 MiB are in use.
        set_chunk_pool_limit(20 * MIB);
        drop((segment, another));
        assert!(spare_memory_bytes() <= 20 * MIB, "{} bytes are kept", spare_memory_bytes());
        for _ in 0..200 {
            release_pooled_chunks();
        }
        let _held = filled(17 * MIB);
        until(&|ready| ready > 0);
        assert!(spare_memory_bytes() + 16 * MIB <= 20 * MIB, "{} bytes beside 17 MiB", spare_memory_bytes());
    });
}
