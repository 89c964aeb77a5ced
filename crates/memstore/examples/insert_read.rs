//! Times one segment with a million cells of 100-byte values: inserts, seeks, walks; nanoseconds each.
//!
//! `cargo run --release -p basalt-memstore --example insert_read [cells]`

use basalt_memstore::{Segment, SegmentId};
use base::{Clock, Rng, SeqId, SystemClock};
use cell::{CellRef, CellSpec, KeyRef, Order};
use std::hint::black_box;
use std::sync::Arc;

/// All cells, one KeyValue after the other, each of the same length.
struct Cells {
    bytes: Vec<u8>,
    each: usize,
}

impl Cells {
    fn new(rows: impl Iterator<Item = (u64, u64)>) -> Cells {
        let (mut bytes, mut each) = (Vec::new(), 0);
        for (row, field) in rows {
            let (row, qualifier) = (format!("user{row:012}"), format!("field{field}"));
            let (row, qualifier) = (row.as_bytes(), qualifier.as_bytes());
            let before = bytes.len();
            CellSpec {
                row,
                family: b"f",
                qualifier,
                timestamp: 1_700_000_000_000,
                type_code: 4,
                value: &[7; 100],
                tags: &[],
            }
            .write(&mut bytes);
            each = bytes.len() - before;
        }
        Cells { bytes, each }
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = CellRef<'_>> {
        self.bytes.chunks_exact(self.each).enumerate().map(|(i, kv)| CellRef::from_checked(kv, SeqId(i as u64 + 1)))
    }
}

fn timed<T>(what: &str, count: usize, work: impl FnOnce() -> T) -> T {
    let clock = SystemClock::new();
    let start = clock.monotonic_us();
    let result = work();
    let ns = (clock.monotonic_us() - start) as f64 * 1000.0;
    println!("{what:<58} {:>8.1} ns", ns / count as f64);
    result
}

fn insert_each(cells: &Cells) -> Arc<Segment> {
    let segment = Arc::new(Segment::new(Order::User, SegmentId(1)));
    for cell in cells.iter() {
        segment.insert(cell);
    }
    segment
}

fn insert_in_batches(cells: &Cells, of: usize) -> Arc<Segment> {
    let segment = Arc::new(Segment::new(Order::User, SegmentId(1)));
    let mut cells = cells.iter().peekable();
    while cells.peek().is_some() {
        let mut inserter = segment.inserter();
        cells.by_ref().take(of).for_each(|cell| inserter.insert(cell));
    }
    segment
}

fn read(name: &str, segment: &Arc<Segment>, keys: &[Vec<u8>]) {
    let mut iter = segment.iter();
    timed(&format!("{name}: seek, random"), keys.len(), || {
        for key in keys {
            assert!(black_box(iter.seek(KeyRef::from_checked(key))));
        }
    });
    timed(&format!("{name}: next, reading each cell"), segment.len(), || {
        let mut bytes = 0;
        let mut on = iter.seek_to_first();
        while on {
            bytes += iter.current().map_or(0, |cell| cell.value().len());
            on = iter.next();
        }
        assert_eq!(black_box(bytes), segment.len() * 100);
    });
}

fn main() {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000u64);
    let n = count as usize;
    let rng = Rng::seeded(1);
    let mut shuffled: Vec<u64> = (0..count).collect();
    for i in (1..n).rev() {
        shuffled.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let ascending = Cells::new((0..count).map(|row| (row, 0)));
    let random = Cells::new(shuffled.iter().map(|row| (*row, 0)));
    let wide = Cells::new(shuffled.iter().take(n / 10).flat_map(|row| (0..10).map(|field| (*row, field))));
    let keys: Vec<Vec<u8>> = (0..n)
        .map(|_| {
            let mut key = Vec::new();
            let row = format!("user{:012}", rng.below(count));
            KeyRef::write(&mut key, row.as_bytes(), b"", b"", i64::MAX, 255);
            key
        })
        .collect();

    println!("{n} cells of {} bytes", ascending.each);
    timed("copying the cells to one vector, for comparison", n, || {
        let mut copy = Vec::with_capacity(ascending.bytes.len());
        ascending.iter().for_each(|cell| copy.extend_from_slice(cell.bytes()));
        black_box(copy.len())
    });
    let a = timed("insert, ascending rows, one at a time", n, || insert_each(&ascending));
    timed("insert, ascending rows, batches of 100", n, || insert_in_batches(&ascending, 100));
    let r = timed("insert, random rows, one at a time", n, || insert_each(&random));
    let expected = Segment::expecting(Order::User, SegmentId(1), &a.common_row_prefix());
    timed("insert, random rows of a known beginning, one at a time", n, || {
        for cell in random.iter() {
            expected.insert(cell);
        }
    });
    timed("insert, rows that are there, one at a time", n, || {
        for cell in random.iter() {
            expected.insert(cell.with_seq_id(SeqId(cell.seq_id().0 + count)));
        }
    });
    timed("insert, random rows, batches of 100", n, || insert_in_batches(&random, 100));
    timed("insert, random rows of 10 cells, a batch per row", n / 10 * 10, || insert_in_batches(&wide, 10));
    println!("random: {} data bytes, {} heap bytes", r.data_bytes(), r.heap_bytes());
    read("ascending", &a, &keys);
    read("random", &r, &keys);

    for threads in [1, 2] {
        let segment = Segment::new(Order::User, SegmentId(1));
        timed(&format!("insert, random rows of 10 cells, {threads} thread(s), wall"), n / 10 * 10, || {
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (segment, wide) = (&segment, &wide);
                    scope.spawn(move || {
                        let mut cells = wide.iter();
                        let mut row = 0;
                        while cells.len() > 0 {
                            let batch = cells.by_ref().take(10);
                            if row % threads == thread {
                                let mut inserter = segment.inserter();
                                batch.for_each(|cell| inserter.insert(cell));
                            } else {
                                batch.for_each(drop);
                            }
                            row += 1;
                        }
                    });
                }
            });
        });
        assert_eq!(segment.len(), n / 10 * 10);
    }
    timed("drop, random", n, || drop(r));
}
