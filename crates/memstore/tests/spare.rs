//! What becomes of the memory of dropped segments. In a process of its own: that memory is the whole process's.

mod common;

use basalt_memstore::{Segment, SegmentId, keep_spare_memory, release_spare_memory, spare_memory_bytes};
use base::SeqId;
use cell::{CellRef, Order};
use common::make_cell;

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

    keep_spare_memory(64 * MIB);
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
    release_spare_memory();
    for _ in 0..200 {
        release_spare_memory();
        let now = spare_memory_bytes();
        assert!(now < before || now == 0, "{now} of {before} bytes are left");
        assert!(now >= before / 4 || before <= 8 * MIB, "{before} bytes became {now} at once");
        before = now;
    }
    assert_eq!(before, 0);
}
