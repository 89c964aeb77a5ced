//! Snapshots, sizes and the facts a segment keeps about its cells.

use crate::common::make_cell;
use basalt_memstore::{MemStore, Segment, SegmentId, Sizes, TimeRange};
use base::{SeqId, TimestampMs};
use cell::{CellRef, KeyRef, Order};

fn put(segment: &Segment, row: &str, timestamp: i64, seq: u64) {
    let kv = make_cell(row.as_bytes(), b"q", timestamp, 4, b"value", b"");
    segment.insert(CellRef::from_checked(&kv, SeqId(seq)));
}

fn rows(segment: &Segment) -> Vec<String> {
    let mut iter = segment.iter();
    let mut out = Vec::new();
    let mut on = iter.seek_to_first();
    while on {
        out.push(String::from_utf8(iter.current().expect("on a cell").row().to_vec()).expect("text"));
        on = iter.next();
    }
    out
}

#[test]
fn a_snapshot_stays_until_it_is_cleared_by_its_id() {
    let mut store = MemStore::new(Order::User);
    put(store.active(), "a", 5, 1);
    let first = store.snapshot();
    assert_eq!(rows(&first), ["a"]);
    assert!(store.active().is_empty());
    put(store.active(), "b", 6, 2);
    // The flush failed: the same again, and the new cells stay out of it.
    let again = store.snapshot();
    assert_eq!(again.id(), first.id());
    assert_eq!(rows(&again), ["a"]);
    assert_eq!(store.segments().map(|s| rows(s)).collect::<Vec<_>>(), [["b"], ["a"]]);
    assert_eq!(store.flushable_sizes(), Sizes::of(&first));
    assert_eq!(store.sizes().cells, 2);

    assert!(store.clear_snapshot(SegmentId(99)).is_none());
    assert!(store.flushing().is_some());
    assert!(store.clear_snapshot(first.id()).is_some());
    assert!(store.clear_snapshot(first.id()).is_none());
    assert_eq!(store.segments().map(|s| rows(s)).collect::<Vec<_>>(), [["b"]]);
    let second = store.snapshot();
    assert_ne!(second.id(), first.id());
    assert_eq!(rows(&second), ["b"]);
    // A reader of the first still has it.
    assert_eq!(rows(&first), ["a"]);
    assert!(!store.is_empty());
    store.clear_snapshot(second.id());
    assert!(store.is_empty());
}

#[test]
fn sampled_rows_are_spread_evenly() {
    let store = MemStore::new(Order::User);
    for number in 0..20_000u32 {
        // Not in their order.
        put(store.active(), &format!("{:05}", number.wrapping_mul(7919) % 20_000), 5, u64::from(number) + 1);
    }
    let sample = store.active().sample_rows(64);
    assert!((64..600).contains(&sample.len()), "{}", sample.len());
    assert!(sample.is_sorted());
    let below = |row: &str| sample.iter().filter(|sampled| sampled[..] < *row.as_bytes()).count() as f64;
    for (row, share) in [("05000", 0.25), ("10000", 0.5), ("15000", 0.75)] {
        let found = below(row) / sample.len() as f64;
        assert!((found - share).abs() < 0.2, "{found} of the sample below {row}");
    }
    let few = MemStore::new(Order::User);
    assert!(few.active().sample_rows(64).is_empty());
    for (at, row) in ["c", "a", "b"].into_iter().enumerate() {
        put(few.active(), row, 5, at as u64 + 1);
    }
    assert_eq!(few.active().sample_rows(64), [b"a", b"b", b"c"]);
}

#[test]
#[should_panic(expected = "frozen memstore segment")]
fn a_frozen_segment_refuses_inserts() {
    let mut store = MemStore::new(Order::User);
    let late = store.active().clone();
    store.snapshot();
    put(&late, "a", 5, 1);
}

#[test]
fn an_empty_memstore_is_small_and_a_small_one_stays_small() {
    let store = MemStore::new(Order::User);
    assert!(size_of::<MemStore>() + store.sizes().heap_bytes < 1024, "{} bytes", store.sizes().heap_bytes);
    put(store.active(), "a", 5, 1);
    assert!(store.sizes().heap_bytes < 2048, "{} bytes", store.sizes().heap_bytes);
}

#[test]
fn a_cell_larger_than_a_chunk_fits() {
    let segment = Segment::new(Order::User, SegmentId(1));
    let value = vec![0xA5; 10 << 20];
    let kv = make_cell(b"big", b"q", 5, 4, &value, b"");
    let growth = segment.insert(CellRef::from_checked(&kv, SeqId(3)));
    assert!((kv.len()..kv.len() + 4096).contains(&growth.heap_bytes), "{growth:?}");
    put(&segment, "after", 5, 4);
    let mut iter = segment.iter();
    assert!(iter.seek_to_last());
    assert_eq!(iter.current().map(|c| (c.value().len(), c.seq_id())), Some((value.len(), SeqId(3))));
    assert_eq!(iter.current().expect("on a cell").bytes(), kv);
}

#[test]
fn latest_is_stamped_in_the_copy_and_sorts_by_the_stamp() {
    let segment = Segment::new(Order::User, SegmentId(1));
    for (timestamp, stamp, seq) in [(i64::MAX, 100, 1), (7, 100, 2), (i64::MAX, 200, 3)] {
        let kv = make_cell(b"r", b"q", timestamp, 4, b"v", b"\x00\x02\x08x");
        segment.insert_patched(CellRef::from_checked(&kv, SeqId(0)), stamp, SeqId(seq));
    }
    let mut iter = segment.iter();
    let mut seen = Vec::new();
    let mut on = iter.seek_to_first();
    while on {
        let cell = iter.current().expect("on a cell");
        assert_eq!((cell.value(), cell.tags()), (b"v".as_slice(), b"\x00\x02\x08x".as_slice()));
        seen.push((cell.timestamp(), cell.seq_id().0));
        on = iter.next();
    }
    assert_eq!(seen, [(200, 3), (100, 1), (7, 2)]);
    assert_eq!(segment.time_range(), Some(TimeRange { min_ms: 7, max_ms: 200 }));
    assert!(segment.has_tags());
    let mut key = Vec::new();
    KeyRef::write(&mut key, b"r", b"f", b"q", 150, 255);
    assert!(iter.seek(KeyRef::from_checked(&key)));
    assert_eq!(iter.current().map(|c| c.timestamp()), Some(100));
}

#[test]
fn facts_follow_the_cells() {
    let segment = Segment::new(Order::User, SegmentId(1));
    assert_eq!((segment.time_range(), segment.max_seq(), segment.has_deletes()), (None, SeqId(0), false));
    put(&segment, "a", 50, 4);
    put(&segment, "b", 40, 9);
    assert_eq!(segment.min_timestamp(), Some(TimestampMs(40)));
    assert_eq!(segment.max_timestamp(), Some(TimestampMs(50)));
    assert_eq!((segment.max_seq(), segment.has_deletes(), segment.has_tags()), (SeqId(9), false, false));
    // Delete and DeleteFamilyVersion hide one timestamp; DeleteColumn and DeleteFamily everything before too.
    for (type_code, min) in [(8, 30), (10, 30), (12, 0)] {
        let kv = make_cell(b"a", b"q", 30, type_code, b"", b"");
        segment.insert(CellRef::from_checked(&kv, SeqId(5)));
        assert!(segment.has_deletes());
        assert_eq!(segment.time_range(), Some(TimeRange { min_ms: min, max_ms: 50 }), "type {type_code}");
    }
    assert_eq!((segment.delete_count(), segment.len()), (3, 5));
    let mut store = MemStore::new(Order::Meta);
    assert_eq!(store.snapshot().time_range(), None);
}

#[test]
fn a_segment_expects_rows_like_those_of_the_one_before() {
    let store_of = |rows: &[&str]| {
        let store = MemStore::new(Order::User);
        for row in rows {
            let kv = make_cell(row.as_bytes(), b"q", 5, 4, b"v", b"");
            store.active().insert(CellRef::from_checked(&kv, SeqId(1)));
        }
        store
    };
    for (rows, expected) in
        [(&["user17", "user123", "user19"][..], "user1"), (&["b", "a"], ""), (&["only"], "only"), (&[], "")]
    {
        assert_eq!(store_of(rows).snapshot().common_row_prefix(), expected.as_bytes());
    }
}
