//! Seeks forwards and backwards against a sorted list of cells, for every encoding and codec, with small blocks so that
//! the index has several levels, whole files and halves. Seeds are fixed; `BASALT_TEST_SEED=n` tries another.

use crate::common::*;
use basalt_hfile::*;
use base::Rng;
use bytes::Bytes;
use cell::{KeyRef, Order};
use fs::{FilePath, MemVolume};
use std::sync::Arc;

fn seed() -> u64 {
    base_seed("BASALT_TEST_SEED", 20)
}

fn base_seed(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A key to look for: of a cell, near one, made for searching, or anything.
fn probe(rng: &Rng, cells: &[Owned]) -> Vec<u8> {
    let near = cells[rng.below(cells.len() as u64) as usize].cell();
    let mut out = Vec::new();
    let mut row = near.row().to_vec();
    match rng.below(8) {
        0..=2 => return near.key().bytes().to_vec(),
        3 => KeyRef::write(&mut out, &row, b"", b"", i64::MAX, 255),
        4 => KeyRef::write(&mut out, &row, b"", b"", 0, 0),
        5 => KeyRef::write(&mut out, &row, b"f", near.qualifier(), i64::MAX, 255),
        6 => {
            row.push(b'0');
            KeyRef::write(&mut out, &row, b"f", b"", near.timestamp(), 4);
        }
        _ => {
            row.truncate(rng.below(row.len() as u64 + 1) as usize);
            KeyRef::write(&mut out, &row, b"f", b"q", rng.below(100) as i64, 8);
        }
    }
    out
}

/// A model of a scanner: the cells shown and the position among them.
struct Model<'a> {
    cells: &'a [Owned],
}

impl Model<'_> {
    fn at_or_after(&self, key: KeyRef<'_>) -> usize {
        self.cells.partition_point(|cell| Order::User.keys(cell.cell().key(), key).is_lt())
    }
}

fn run(reader: &Arc<Reader>, cells: &[Owned], rng: &Rng, steps: usize, label: &str) {
    let model = Model { cells };
    let options = ScanOptions {
        cache_blocks: rng.one_in(2),
        pread: rng.one_in(2),
        compaction: rng.one_in(4),
        ..ScanOptions::default()
    };
    let mut scanner = reader.scanner(options);
    // `cells.len()` and beyond stand for "unpositioned".
    let mut at = cells.len();
    for step in 0..steps {
        let key = probe(rng, cells);
        let key = KeyRef::parse(&key).expect("a key");
        let (what, moved) = match rng.below(6) {
            0 => {
                at = 0;
                ("seek_to_first", scanner.seek_to_first())
            }
            1 => {
                at = model.at_or_after(key);
                ("seek", scanner.seek(key))
            }
            2 => {
                at = model.at_or_after(key).checked_sub(1).unwrap_or(cells.len());
                ("seek_before", scanner.seek_before(key))
            }
            3 if at < cells.len() => {
                at = model.at_or_after(key).max(at);
                ("reseek", scanner.reseek(key))
            }
            _ => {
                at = (at + 1).min(cells.len());
                ("next", scanner.next())
            }
        };
        let moved = moved.unwrap_or_else(|e| panic!("{label} step {step} {what}: {e}"));
        assert_eq!(moved, at < cells.len(), "{label} step {step} {what} {key:?} to {at}");
        let got = scanner.current().map(Owned::of);
        assert_eq!(got.as_ref(), cells.get(at), "{label} step {step} {what} {key:?} to {at}");
        if let (Some(cell), Some(next)) = (scanner.current_key(), scanner.next_indexed_key()) {
            assert!(Order::User.keys(cell, next).is_le(), "{label} step {step} {what}");
        }
    }
}

/// As a reversed scan goes: to the row before, and forwards through it; each cell comes once, with its tags.
fn walk_rows_backwards(reader: &Arc<Reader>, cells: &[Owned], label: &str) {
    let mut scanner = reader.scanner(ScanOptions::default());
    let mut rows: Vec<&[Owned]> = cells.chunk_by(|a, b| a.cell().row() == b.cell().row()).collect();
    rows.reverse();
    for (nth, row) in rows.iter().enumerate() {
        let mut first = Vec::new();
        KeyRef::write(&mut first, row[0].cell().row(), b"", b"", i64::MAX, 255);
        let first = KeyRef::parse(&first).expect("a key");
        let mut more = scanner.seek(first).unwrap_or_else(|e| panic!("{label} row {nth}: {e}"));
        for cell in *row {
            assert!(more, "{label} row {nth}");
            assert_eq!(scanner.current().map(Owned::of).as_ref(), Some(cell), "{label} row {nth}");
            more = scanner.next().unwrap_or_else(|e| panic!("{label} row {nth}: {e}"));
        }
        let before = scanner.seek_before(first).unwrap_or_else(|e| panic!("{label} row {nth}: {e}"));
        let previous = rows.get(nth + 1).and_then(|row| row.last());
        assert_eq!((before, scanner.current().map(Owned::of).as_ref()), (previous.is_some(), previous), "{label}");
    }
}

/// HBASE-27580, HBASE-28482: every encoding with every compression, without tags, with plain and with compressed ones; every way to
/// move, forwards and backwards.
#[test]
fn f41_scanners_move_as_a_sorted_list_does() {
    let seed = seed();
    println!("replay: BASALT_TEST_SEED={seed} cargo test -p basalt-hfile --test main seek::");
    let rng = Rng::seeded(seed);
    let cache = BlockCache::new(1 << 20);
    let kinds = Encoding::ALL.iter().flat_map(|encoding| Compression::ALL.iter().map(move |codec| (encoding, codec)));
    for (&encoding, &compression) in kinds {
        for (tags, compress_tags) in [(false, false), (true, false), (true, true)] {
            let mut cells = random_cells(&rng, 300, tags);
            let include_mvcc = !rng.one_in(4);
            if !include_mvcc {
                cells.iter_mut().for_each(|cell| cell.seq_id = 0);
            }
            let options = WriterOptions {
                encoding,
                compression,
                include_mvcc,
                block_size_bytes: 64 + rng.below(1200) as u32,
                index_block_size_bytes: 64 + rng.below(600) as u32,
                index_min_entries: 2 + rng.below(3) as u32,
                include_tags: tags,
                compress_tags,
                bloom: BloomType::ALL[rng.below(4) as usize],
                bloom_prefix_len: 4,
                bloom_block_size_bytes: 128,
                ..WriterOptions::default()
            };
            let volume = MemVolume::new();
            write(&volume, "file", options, &StoreMetadata::default(), &cells);
            let path = FilePath::new("file");
            let label = format!("seed {seed} {encoding:?} {compression:?} tags {tags} compressed {compress_tags}");
            let context = ReaderContext { cache: Some(cache.clone()), ..ReaderContext::default() };
            let reader = Reader::open(&volume, &path, context.clone()).expect("open");
            for _ in 0..2 {
                run(&reader, &cells, &rng, 200, &label);
            }
            walk_rows_backwards(&reader, &cells, &label);
            let split = Bytes::from(probe(&rng, &cells));
            let middle = Model { cells: &cells }.at_or_after(KeyRef::parse(&split).expect("a key"));
            for (side, shown) in [(HalfSide::Bottom, &cells[..middle]), (HalfSide::Top, &cells[middle..])] {
                let half = Some(Half { side, split_key: split.clone() });
                let reader = Reader::open(&volume, &path, ReaderContext { half, ..context.clone() }).expect("open");
                let label = format!("{label} {side:?} of {}", cell::print::Binary(&split));
                assert_eq!(all_cells(&reader, ScanOptions::default()).expect("read"), shown, "{label}");
                if !shown.is_empty() {
                    run(&reader, shown, &rng, 150, &label);
                }
            }
        }
    }
}

#[test]
fn cells_of_one_key_are_found_from_the_first_on() {
    // Versions that differ in nothing but the sequence id, many more than a block's size.
    let mut cells = Vec::new();
    for row in ["a", "b", "c"] {
        for seq_id in (0..40).rev() {
            let mut bytes = Vec::new();
            let value = [seq_id as u8; 30];
            let spec = cell::CellSpec {
                row: row.as_bytes(),
                family: b"f",
                qualifier: b"q",
                timestamp: 5,
                type_code: 4,
                value: &value,
                tags: b"",
            };
            spec.write(&mut bytes);
            cells.push(Owned { bytes, seq_id });
        }
    }
    let volume = MemVolume::new();
    let options = WriterOptions { block_size_bytes: 128, ..WriterOptions::default() };
    write(&volume, "file", options, &StoreMetadata::default(), &cells);
    let reader = Reader::open(&volume, &FilePath::new("file"), ReaderContext::default()).expect("open");
    let mut scanner = reader.scanner(ScanOptions::default());
    for row in 0..3 {
        assert!(scanner.seek(cells[row * 40].cell().key()).expect("seek"));
        assert_eq!(scanner.current().map(Owned::of), Some(cells[row * 40].clone()));
    }
}

#[test]
fn an_empty_file_has_no_cells() {
    let volume = MemVolume::new();
    write(&volume, "file", WriterOptions::default(), &StoreMetadata::default(), &[]);
    let reader = Reader::open(&volume, &FilePath::new("file"), ReaderContext::default()).expect("open");
    let mut scanner = reader.scanner(ScanOptions::default());
    let mut key = Vec::new();
    KeyRef::write(&mut key, b"a", b"", b"", 0, 4);
    let key = KeyRef::parse(&key).expect("a key");
    assert!(!scanner.seek_to_first().expect("first"));
    assert!(!scanner.seek(key).expect("seek"));
    assert!(!scanner.reseek(key).expect("reseek"));
    assert!(!scanner.seek_before(key).expect("before"));
    assert!(!scanner.next().expect("next"));
    assert_eq!((reader.first_key(), reader.last_key(), reader.time_range()), (None, None, None));
    assert_eq!(reader.mid_key().expect("mid key"), None);
}

#[test]
fn rows_of_hbase_meta_are_found_in_their_own_order() {
    let rng = Rng::seeded(seed());
    let mut cells = Vec::new();
    for table in ["a", "a!", "a-b", "b", "ns:t"] {
        for _ in 0..60 {
            let start = ["", ",", "k,", "zz", "k\x00", "!"][rng.below(6) as usize];
            let row = format!("{table},{start}{},{}.x", rng.below(30), rng.below(3));
            for qualifier in ["regioninfo", "server"] {
                let mut bytes = Vec::new();
                let parts = (row.as_bytes(), qualifier.as_bytes());
                cell::CellSpec {
                    row: parts.0,
                    family: b"info",
                    qualifier: parts.1,
                    timestamp: rng.below(5) as i64,
                    type_code: 4,
                    value: b"v",
                    tags: b"",
                }
                .write(&mut bytes);
                cells.push(Owned { bytes, seq_id: 1 });
            }
        }
    }
    cells.sort_by(|a, b| Order::Meta.cells(a.cell(), b.cell()));
    for bloom in [BloomType::Row, BloomType::RowCol, BloomType::RowPrefixFixedLength] {
        let options = WriterOptions {
            order: Order::Meta,
            bloom,
            bloom_prefix_len: 3,
            bloom_block_size_bytes: 128,
            block_size_bytes: 200,
            index_block_size_bytes: 300,
            index_min_entries: 2,
            ..WriterOptions::default()
        };
        let volume = MemVolume::new();
        write(&volume, "file", options, &StoreMetadata::default(), &cells);
        let reader = Reader::open(&volume, &FilePath::new("file"), ReaderContext::default()).expect("open");
        assert_eq!(all_cells(&reader, ScanOptions::default()).expect("scan"), cells);
        let mut scanner = reader.scanner(ScanOptions::default());
        for cell in cells.iter().map(Owned::cell) {
            assert!(scanner.seek(cell.key()).expect("seek"));
            assert_eq!(scanner.current_key(), Some(cell.key()));
            assert!(reader.may_contain_row(cell.row(), Residency::MayRead).expect("bloom"));
            assert!(reader.may_contain_row_col(cell.row(), cell.qualifier(), Residency::MayRead).expect("bloom"));
        }
    }
}
