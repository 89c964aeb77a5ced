//! Random cells, and a sorted vector that says what a segment should hold.
#![allow(dead_code, reason = "each test binary uses its share")]

use base::{Rng, SeqId};
use cell::{CellRef, CellSpec, KeyRef, Order};
use std::cmp::{Ordering, Reverse};

/// The seeds of this run: the one in `BASALT_SEED`, or as many as `BASALT_MEMSTORE_RUNS` (or `usual`) says.
pub fn seeds(usual: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("BASALT_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("BASALT_MEMSTORE_RUNS").unwrap_or(usual)).collect(),
    }
}

pub fn make_cell(row: &[u8], qualifier: &[u8], timestamp: i64, type_code: u8, value: &[u8], tags: &[u8]) -> Vec<u8> {
    let mut kv = Vec::new();
    CellSpec { row, family: b"f", qualifier, timestamp, type_code, value, tags }.write(&mut kv);
    kv
}

/// Few rows, qualifiers and timestamps, so that every kind of tie occurs.
pub fn random_row(rng: &Rng, order: Order) -> Vec<u8> {
    if order == Order::Meta {
        let start = ["", "a", "b,c", "\u{1}"][rng.below(4) as usize];
        return format!("{}{},{start},{}", ["t", "t!", "u"][rng.below(3) as usize], "", rng.below(5)).into_bytes();
    }
    let prefix: &[u8] = [b"".as_slice(), b"user0000", b"user", b"\xff\xff"][rng.below(4) as usize];
    let mut row = prefix.to_vec();
    (0..rng.below(4)).for_each(|_| row.push([0, b'a', b'b', 0xff][rng.below(4) as usize]));
    row
}

pub fn random_cell(rng: &Rng, order: Order) -> Vec<u8> {
    let row = random_row(rng, order);
    let qualifier = [b"".as_slice(), b"q", b"q1", b"r"][rng.below(4) as usize];
    let type_code = [4, 4, 4, 8, 12, 14][rng.below(6) as usize];
    let mut value = vec![rng.next_u64() as u8; rng.below(60) as usize];
    if rng.one_in(200) {
        value.resize(700_000, 7);
    }
    let tags: &[u8] = if rng.one_in(5) { b"\x00\x02\x08x" } else { b"" };
    make_cell(&row, qualifier, rng.below(4) as i64, type_code, &value, tags)
}

/// A key to look for: often one that is there, sometimes a first-of-row or last-of-row one.
pub fn random_key(rng: &Rng, order: Order, model: &Model) -> Vec<u8> {
    if model.len() > 0 && rng.one_in(3) {
        return model.any_key(rng.below(model.len() as u64) as usize);
    }
    let mut key = Vec::new();
    let row = random_row(rng, order);
    match rng.below(3) {
        0 => KeyRef::write(&mut key, &row, b"", b"", i64::MAX, 255),
        1 => KeyRef::write(&mut key, &row, b"", b"", 0, 0),
        _ => KeyRef::write(&mut key, &row, b"f", b"q", rng.below(5) as i64, 4),
    }
    key
}

/// Cells in a sorted vector. For user tables the order is written out here once more, without `Order`.
pub struct Model {
    order: Order,
    cells: Vec<(Vec<u8>, SeqId)>,
}

impl Model {
    pub fn new(order: Order) -> Model {
        Model { order, cells: Vec::new() }
    }

    fn compare_keys(&self, a: KeyRef<'_>, b: KeyRef<'_>) -> Ordering {
        let fake_last = |k: KeyRef<'_>| k.family().is_empty() && k.qualifier().is_empty() && k.type_code() == 0;
        if self.order == Order::Meta || fake_last(a) || fake_last(b) {
            return self.order.keys(a, b);
        }
        let parts = |k: KeyRef<'_>| {
            let (row, family, qualifier) = (k.row().to_vec(), k.family().to_vec(), k.qualifier().to_vec());
            (row, family, qualifier, Reverse(k.timestamp()), Reverse(k.type_code()))
        };
        parts(a).cmp(&parts(b))
    }

    /// In the place of its equal, if there is one.
    pub fn insert(&mut self, kv: Vec<u8>, seq: SeqId) {
        let cell = CellRef::from_checked(&kv, seq);
        let at = self.cells.partition_point(|(other, other_seq)| {
            let other = CellRef::from_checked(other, *other_seq);
            self.compare_keys(other.key(), cell.key()).then(seq.cmp(other_seq)) == Ordering::Less
        });
        let is_equal = |(other, other_seq): &(Vec<u8>, SeqId)| {
            *other_seq == seq && CellRef::from_checked(other, seq).key().bytes() == cell.key().bytes()
        };
        if self.cells.get(at).is_some_and(is_equal) {
            self.cells[at].0 = kv;
        } else {
            self.cells.insert(at, (kv, seq));
        }
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn get(&self, i: usize) -> Option<(Vec<u8>, SeqId)> {
        self.cells.get(i).cloned()
    }

    pub fn any_key(&self, i: usize) -> Vec<u8> {
        CellRef::from_checked(&self.cells[i].0, SeqId(0)).key().bytes().to_vec()
    }

    pub fn first_not_before(&self, key: KeyRef<'_>) -> usize {
        self.cells.partition_point(|(kv, _)| {
            self.compare_keys(CellRef::from_checked(kv, SeqId(0)).key(), key) == Ordering::Less
        })
    }
}
