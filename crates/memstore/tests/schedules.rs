//! Inserts, reads and the keeping of spare memory under many schedules; see `base::sync`. Run by `cargo xtask schedules`.

mod common;

use basalt_memstore::{
    Segment, SegmentId, prefault_chunks, release_pooled_chunks, set_chunk_pool_limit, wake_prefaulters,
};
use base::SeqId;
use base::sync::{
    atomic::AtomicBool, atomic::AtomicUsize, atomic::Ordering, atomic::Ordering::SeqCst, explore, thread,
};
use cell::{CellRef, KeyRef, Order};
use common::make_cell;
use std::sync::Arc;

fn segment() -> Arc<Segment> {
    Arc::new(Segment::new(Order::User, SegmentId(1)))
}

fn key_value(row: u64, value: &[u8]) -> Vec<u8> {
    make_cell(format!("row{row}").as_bytes(), b"q", 5, 4, value, b"")
}

/// Rows from first to last; panics when they are not in order.
fn rows(segment: &Arc<Segment>) -> Vec<Vec<u8>> {
    let mut iter = segment.iter();
    let mut rows: Vec<Vec<u8>> = Vec::new();
    let mut on = iter.seek_to_first();
    while on {
        let cell = iter.current().expect("on a cell");
        assert!(rows.last().is_none_or(|last| last.as_slice() <= cell.row()), "out of order");
        rows.push(cell.row().to_vec());
        on = iter.next();
    }
    rows
}

#[test]
fn a_reader_sees_every_cell_whose_insert_has_returned() {
    explore(|| {
        let segment = segment();
        let inserted = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let inserted = Arc::new(inserted);
        let places: [[u64; 5]; 2] = [[5, 1, 9, 3, 3], [4, 6, 2, 3, 8]];
        let writers: Vec<_> = places
            .into_iter()
            .enumerate()
            .map(|(writer, places)| {
                let (segment, inserted) = (segment.clone(), inserted.clone());
                thread::spawn(move || {
                    for (number, place) in places.into_iter().enumerate() {
                        let bytes = key_value(place, b"value");
                        let cell = CellRef::from_checked(&bytes, SeqId(10 * writer as u64 + number as u64));
                        segment.insert(cell);
                        inserted[writer].store(number + 1, SeqCst);
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            let sure: Vec<u64> =
                (0..2).flat_map(|writer| places[writer][..inserted[writer].load(SeqCst)].to_vec()).collect();
            let seen = rows(&segment);
            for place in sure {
                assert!(seen.contains(&format!("row{place}").into_bytes()), "{place} was inserted and is not seen");
            }
        }
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        let mut all: Vec<Vec<u8>> = places.iter().flatten().map(|place| format!("row{place}").into_bytes()).collect();
        all.sort();
        assert_eq!(rows(&segment), all);
    });
}

/// Each writer has rows of its own, as row locks give them to it, and puts the later cell of each in first.
#[test]
fn a_seek_to_a_row_finds_its_first_cell() {
    explore(|| {
        let segment = segment();
        let inserted = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let writers: Vec<_> = (0..2_u64)
            .map(|writer| {
                let (segment, inserted) = (segment.clone(), inserted.clone());
                thread::spawn(move || {
                    for number in 0..6 {
                        let row = format!("row{}", 2 * (number / 2) + writer);
                        let qualifier: &[u8] = if number % 2 == 0 { b"r" } else { b"q" };
                        let bytes = make_cell(row.as_bytes(), qualifier, 5, 4, b"value", b"");
                        segment.insert(CellRef::from_checked(&bytes, SeqId(number)));
                        inserted[writer as usize].store(number as usize + 1, SeqCst);
                    }
                })
            })
            .collect();
        let check = || {
            for (writer, inserted) in inserted.iter().enumerate() {
                for row in 0..inserted.load(SeqCst).div_ceil(2) {
                    let is_whole = inserted.load(SeqCst) >= 2 * row + 2;
                    let row = format!("row{}", 2 * row + writer);
                    let mut key = Vec::new();
                    KeyRef::write(&mut key, row.as_bytes(), b"", b"", i64::MAX, 255);
                    let mut iter = segment.iter();
                    assert!(iter.seek(KeyRef::from_checked(&key)), "{row} is there");
                    let cell = iter.current().expect("on a cell");
                    assert_eq!(cell.row(), row.as_bytes());
                    assert!(!is_whole || cell.qualifier() == b"q", "{row}: its first cell was passed over");
                }
            }
        };
        (0..3).for_each(|_| check());
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        check();
    });
}

#[test]
fn batches_from_three_threads_are_all_there() {
    explore(|| {
        let segment = segment();
        let writers: Vec<_> = (0..3_u64)
            .map(|writer| {
                let segment = segment.clone();
                thread::spawn(move || {
                    let bytes: Vec<Vec<u8>> = (0..4).map(|n| key_value((n * 3 + writer) % 7, &[1; 40])).collect();
                    let cells: Vec<_> = bytes.iter().map(|kv| CellRef::from_checked(kv, SeqId(writer))).collect();
                    let mut inserter = segment.inserter();
                    inserter.insert_all(&cells);
                    inserter.finish();
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        assert_eq!(rows(&segment).len(), 12);
        assert_eq!(segment.len(), 12);
    });
}

#[test]
fn spare_memory_has_one_owner() {
    explore(|| {
        set_chunk_pool_limit(16 << 20);
        let is_over = Arc::new(AtomicBool::new(false));
        let maker = thread::spawn({
            let is_over = is_over.clone();
            move || prefault_chunks(|| is_over.load(Ordering::Acquire))
        });
        let workers: Vec<_> = (0..2_u8)
            .map(|worker| {
                thread::spawn(move || {
                    for round in 0..2_u8 {
                        let segment = segment();
                        // Large cells, so that the arena soon takes pieces of the size that is kept.
                        let value = vec![worker * 2 + round; 60_000];
                        for n in 0..40 {
                            let bytes = key_value(n, &value);
                            segment.insert(CellRef::from_checked(&bytes, SeqId(1)));
                        }
                        let mut iter = segment.iter();
                        let mut on = iter.seek_to_first();
                        while on {
                            let cell = iter.current().expect("on a cell");
                            assert!(cell.value().first() == value.first() && cell.value().last() == value.last());
                            on = iter.next();
                        }
                        if worker == 0 {
                            release_pooled_chunks();
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
        is_over.store(true, Ordering::Release);
        wake_prefaulters();
        maker.join().expect("it ends");
        set_chunk_pool_limit(0);
    });
}
