//! One memstore segment with 100-byte values.

use crate::Group;
use crate::data::{self, FAMILY};
use crate::measure::{Done, Session, Size};
use base::{Rng, SeqId};
use cell::{CellRef, CellSpec, KeyRef, Order};
use memstore::{Segment, SegmentId};
use std::hint::black_box;

pub const GROUP: Group = Group {
    names: &["memstore.insert.ascending", "memstore.insert.random", "memstore.insert.batch100", "memstore.seek"],
    needs_server: false,
    run,
};

const VALUE: [u8; 100] = [7; 100];

/// Cells of one length, one after the other.
struct Cells {
    bytes: Vec<u8>,
    each: usize,
}

impl Cells {
    fn new(rows: impl Iterator<Item = u64>) -> Cells {
        let (mut bytes, mut each) = (Vec::new(), 0);
        for row in rows {
            let row = format!("user{row:016x}");
            let spec = CellSpec { timestamp: 1_700_000_000_000, ..data::spec(row.as_bytes(), &VALUE) };
            let start = bytes.len();
            spec.write(&mut bytes);
            each = bytes.len() - start;
        }
        Cells { bytes, each }
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = CellRef<'_>> {
        self.bytes.chunks_exact(self.each).enumerate().map(|(i, kv)| CellRef::from_checked(kv, SeqId(i as u64 + 1)))
    }
}

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let count = session.scale().rows;
    let random = || (0..count).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let kinds = [
        ("memstore.insert.ascending", Cells::new(0..count), 1),
        ("memstore.insert.random", Cells::new(random()), 1),
        ("memstore.insert.batch100", Cells::new(random()), 100),
    ];
    for (name, cells, batch) in &kinds {
        let fresh = |_| Ok(Segment::new(Order::User, SegmentId(1)));
        session.measure(name, Size::Fixed(count), fresh, |segment, n| {
            let mut cells_left = cells.iter();
            while cells_left.len() > 0 {
                let mut inserter = segment.inserter();
                match batch {
                    1 => cells_left.by_ref().take(1).for_each(|cell| inserter.insert(cell)),
                    batch => inserter.insert_all(&cells_left.by_ref().take(*batch).collect::<Vec<_>>()),
                }
            }
            Ok(Done { ops: n, bytes: cells.bytes.len() as u64 })
        })?;
    }
    let segment = Segment::new(Order::User, SegmentId(1));
    for cell in kinds[1].1.iter() {
        segment.insert(cell);
    }
    let rng = Rng::seeded(2);
    let keys: Vec<Vec<u8>> = (0..32_768)
        .map(|_| {
            let mut key = Vec::new();
            let row = data::row(rng.below(count));
            KeyRef::write(&mut key, &row, FAMILY, b"", i64::MAX, u8::MAX);
            key
        })
        .collect();
    let (mut iter, mut at) = (segment.iter(), 0);
    session.measure(
        "memstore.seek",
        Size::Timed { most: u64::MAX, step: 1 },
        |_| Ok(()),
        |(), n| {
            for _ in 0..n {
                at = (at + 1) % keys.len();
                anyhow::ensure!(black_box(iter.seek(KeyRef::from_checked(&keys[at]))), "a row is missing");
            }
            Ok(Done { ops: n, bytes: 0 })
        },
    )
}
