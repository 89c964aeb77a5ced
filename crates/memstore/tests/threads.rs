//! Many threads insert into one segment while others read it; afterwards it holds exactly what went in, in order.
//!
//! Replay one seed with `BASALT_SEED=<n> cargo test -p basalt-memstore --test main threads::` (the interleaving is the
//! machine's); run more with `BASALT_MEMSTORE_RUNS=<n>`.
#![allow(clippy::disallowed_methods, reason = "a test starts real threads")]

use crate::common::{make_cell, seeds};
use basalt_memstore::{Growth, Segment, SegmentId};
use base::{Rng, SeqId};
use cell::{CellRef, KeyRef, Order};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WRITERS: u64 = 4;
const READERS: usize = 2;

fn row(n: u64) -> Vec<u8> {
    format!("user{:012}", n).into_bytes()
}

/// What one writer inserts: batches (one sequence id each) of (row, value).
fn batches(seed: u64, writer: u64, count: u64) -> Vec<Vec<(u64, Vec<u8>)>> {
    let rng = Rng::seeded(seed.wrapping_mul(31).wrapping_add(writer));
    let mut next = 0;
    (0..count)
        .map(|_| {
            let mut batch: Vec<(u64, Vec<u8>)> = (0..1 + rng.below(20))
                .map(|_| {
                    // Some ascending runs that interleave with the other writers', some jumps, some on one spot.
                    next = match rng.below(8) {
                        0 => rng.below(4000),
                        1 => 7,
                        _ => next + 1,
                    };
                    let size = if rng.one_in(300) { 600_000 } else { rng.below(120) as usize };
                    (next, vec![writer as u8; size])
                })
                .collect();
            // Of equal cells of one batch only the last is met; that is another test's matter.
            let mut rows = BTreeSet::new();
            batch.retain(|(n, _)| rows.insert(*n));
            batch
        })
        .collect()
}

/// Whether the walk from the start is in order, and how many cells it meets.
fn walk(segment: &Arc<Segment>) -> usize {
    let mut iter = segment.iter();
    let mut behind = iter.clone();
    let mut met = 0;
    let mut on = iter.seek_to_first();
    while on {
        let here = iter.current().expect("on a cell");
        if let Some(last) = behind.current() {
            assert_ne!(segment.order().cells(last, here), std::cmp::Ordering::Greater, "out of order");
        }
        met += 1;
        behind = iter.clone();
        on = iter.next();
    }
    met
}

fn run(seed: u64) {
    let segment = Arc::new(Segment::new(Order::User, SegmentId(1)));
    let seq = AtomicU64::new(1);
    // Cells whose insert has returned, counted before a reader starts.
    let inserted = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let work: Vec<_> = (0..WRITERS).map(|writer| batches(seed, writer, 150)).collect();
    let (sent, grown) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Acquire) {
                        let at_least = inserted.load(Ordering::Acquire);
                        let met = walk(&segment) as u64;
                        assert!(met >= at_least, "met {met} of {at_least}, seed {seed}");
                    }
                })
            })
            .collect();
        let writers: Vec<_> = work
            .iter()
            .map(|batches| {
                let (segment, seq, inserted) = (&segment, &seq, &inserted);
                scope.spawn(move || {
                    let mut sent = BTreeMap::new();
                    let mut grown = Growth::default();
                    for batch in batches {
                        let id = SeqId(seq.fetch_add(1, Ordering::Relaxed));
                        let mut inserter = segment.inserter();
                        if id.0.is_multiple_of(3) {
                            let kvs: Vec<_> =
                                batch.iter().map(|(n, value)| make_cell(&row(*n), b"q", 5, 4, value, b"")).collect();
                            inserter
                                .insert_all(&kvs.iter().map(|kv| CellRef::from_checked(kv, id)).collect::<Vec<_>>());
                            for (n, value) in batch {
                                inserted.fetch_add(1, Ordering::Release);
                                *sent.entry((*n, id.0, value.clone())).or_insert(0u32) += 1;
                            }
                        } else {
                            for (n, value) in batch {
                                let kv = make_cell(&row(*n), b"q", 5, 4, value, b"");
                                let cell = CellRef::from_checked(&kv, id);
                                inserter.insert(cell);
                                inserted.fetch_add(1, Ordering::Release);
                                // One's own cell is found at once.
                                let mut iter = segment.iter();
                                assert!(iter.seek(cell.key()), "seed {seed}");
                                assert!(iter.current().is_some_and(|found| found.key() == cell.key()), "seed {seed}");
                                *sent.entry((*n, id.0, value.clone())).or_insert(0u32) += 1;
                            }
                        }
                        let more = inserter.finish();
                        grown.cells += more.cells;
                        grown.data_bytes += more.data_bytes;
                        grown.heap_bytes += more.heap_bytes;
                    }
                    (sent, grown)
                })
            })
            .collect();
        let mut sent = BTreeMap::new();
        let mut grown = Growth::default();
        for writer in writers {
            let (more, bytes) = writer.join().expect("writer");
            sent.extend(more);
            grown.cells += bytes.cells;
            grown.data_bytes += bytes.data_bytes;
            grown.heap_bytes += bytes.heap_bytes;
        }
        done.store(true, Ordering::Release);
        readers.into_iter().for_each(|reader| reader.join().expect("reader"));
        (sent, grown)
    });

    let empty = Segment::new(Order::User, SegmentId(2)).heap_bytes();
    assert_eq!(walk(&segment), grown.cells, "seed {seed}");
    assert_eq!(segment.len(), grown.cells, "seed {seed}");
    assert_eq!(segment.data_bytes(), grown.data_bytes, "seed {seed}");
    assert_eq!(segment.heap_bytes() - empty, grown.heap_bytes, "seed {seed}");
    assert_eq!(segment.max_seq().0, seq.load(Ordering::Relaxed) - 1, "seed {seed}");

    let mut found = BTreeMap::new();
    let mut iter = segment.iter();
    let mut on = iter.seek_to_first();
    while on {
        let cell = iter.current().expect("on a cell");
        let n: u64 = std::str::from_utf8(&cell.row()[4..]).expect("digits").parse().expect("digits");
        *found.entry((n, cell.seq_id().0, cell.value().to_vec())).or_insert(0u32) += 1;
        on = iter.next();
    }
    assert!(found == sent, "what is in differs from what went in, seed {seed}");

    // Every level must lead to every row: seeks and reverse seeks agree with the set of rows.
    let rows: BTreeSet<u64> = sent.keys().map(|(n, _, _)| *n).collect();
    let rng = Rng::seeded(seed);
    let mut key = Vec::new();
    for _ in 0..2000 {
        let n = rng.below(4100);
        key.clear();
        KeyRef::write(&mut key, &row(n), b"", b"", i64::MAX, 255);
        let key = KeyRef::from_checked(&key);
        iter.seek(key);
        assert_eq!(iter.current().map(|c| c.row().to_vec()), rows.range(n..).next().map(|n| row(*n)), "seed {seed}");
        iter.seek_before(key);
        assert_eq!(
            iter.current().map(|c| c.row().to_vec()),
            rows.range(..n).next_back().map(|n| row(*n)),
            "seed {seed}"
        );
    }
}

#[test]
fn concurrent_inserts_and_reads_lose_nothing() {
    seeds(6).into_iter().for_each(run);
}

/// All writers work at the same place, the end, and keep their inserters: the remembered places go stale all the time.
#[test]
fn writers_crowding_at_the_end_keep_every_level_in_order() {
    for seed in seeds(20) {
        let count = 10_000;
        let segment = Segment::new(Order::User, SegmentId(1));
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (segment, next) = (&segment, &next);
                scope.spawn(move || {
                    let rng = Rng::seeded(seed * WRITERS + writer);
                    let mut inserter = segment.inserter();
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= count {
                            break;
                        }
                        // Scattered a little, each number once: runs of 16 are turned around.
                        let n = if rng.one_in(2) { n * 2 } else { (n ^ 15) * 2 + 1 };
                        inserter.insert(CellRef::from_checked(&make_cell(&row(n), b"q", 5, 4, b"", b""), SeqId(1)));
                    }
                });
            }
        });
        assert_eq!(segment.len(), count as usize, "seed {seed}");
        // A level out of order would hide cells from seeks that come down through it.
        let (mut walker, mut seeker) = (segment.iter(), segment.iter());
        let mut met = 0;
        let mut on = walker.seek_to_first();
        while on {
            let here = walker.current().expect("on a cell");
            assert!(seeker.seek(here.key()), "seed {seed}");
            assert_eq!(seeker.current().map(|c| c.row()), Some(here.row()), "seed {seed}");
            met += 1;
            on = walker.next();
        }
        assert_eq!(met, count, "seed {seed}");
    }
}

#[test]
fn an_iterator_outlives_its_segment_and_moves_between_threads() {
    let segment = Arc::new(Segment::new(Order::User, SegmentId(1)));
    for n in 0..1000 {
        segment.insert(CellRef::from_checked(&make_cell(&row(n), b"q", 5, 4, b"value", b""), SeqId(n)));
    }
    let mut iter = segment.iter();
    assert!(iter.seek_to_first());
    drop(segment);
    let met = std::thread::spawn(move || {
        let mut met = 1;
        while iter.next() {
            assert_eq!(iter.current().expect("on a cell").value(), b"value");
            met += 1;
        }
        met
    });
    assert_eq!(met.join().expect("no panic"), 1000);
}
