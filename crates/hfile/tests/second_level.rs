//! The second level of the block cache under readers: over a restart, scans, cold files, damage.

use crate::common::*;
use basalt_hfile::*;
use base::{Rng, TimestampMs};
use fs::{FilePath, MemVolume};
use std::sync::Arc;

struct Place {
    data: MemVolume,
    flash: MemVolume,
    cells: Vec<Owned>,
}

impl Place {
    fn new() -> Place {
        let place = Place {
            data: MemVolume::new(),
            flash: MemVolume::new(),
            cells: random_cells(&Rng::seeded(1), 3000, false),
        };
        let options = WriterOptions { block_size_bytes: 1024, index_block_size_bytes: 512, ..WriterOptions::default() };
        write(&place.data, "file", options, &StoreMetadata::default(), &place.cells);
        place
    }

    /// As after a start: a first level that holds nothing for long, over what the second has.
    fn start(&self) -> (Arc<BlockCache>, Arc<SecondLevel>) {
        let options = SecondLevelOptions { segment_bytes: 256 << 10, ..SecondLevelOptions::new(16 << 20, 5) };
        let second = SecondLevel::open(Arc::new(self.flash.clone()), options, Arc::new(|_| {})).expect("opened");
        let second = Arc::new(second);
        (BlockCache::over(0, Some(second.clone())), second)
    }

    fn open(&self, cache: &Arc<BlockCache>, hot_age_ms: Option<i64>) -> Arc<Reader> {
        let hot_age = hot_age_ms.map(|ms| HotAge { ms, of_values: false });
        let context = ReaderContext { cache: Some(cache.clone()), hot_age, ..ReaderContext::default() };
        Reader::open(&self.data, &FilePath::new("file"), context).expect("open")
    }

    /// Every 20th cell by itself; how many calls to the data's disk that takes.
    fn get_some(&self, reader: &Arc<Reader>) -> u64 {
        let before = self.data.op_count();
        for cell in self.cells.iter().step_by(20) {
            let mut scanner = reader.scanner(ScanOptions { pread: true, ..ScanOptions::default() });
            assert!(scanner.seek(cell.cell().key()).expect("seek"));
        }
        self.data.op_count() - before
    }
}

#[test]
fn what_was_read_twice_is_not_read_from_the_file_again_nor_after_a_restart() {
    let place = Place::new();
    let (cache, second) = place.start();
    let reader = place.open(&cache, None);
    let once = place.get_some(&reader);
    assert!(once > 100, "{once}");
    place.get_some(&reader);
    assert!(second.write_segment() > 0);
    assert_eq!(place.get_some(&reader), 0, "{:?}", second.stats());
    assert_eq!(all_cells(&reader, ScanOptions::default()).expect("a scan through both"), place.cells);
    let held_bytes = reader.second_level_bytes();
    assert!(held_bytes > reader.len_bytes() / 2 && held_bytes <= reader.len_bytes(), "{held_bytes} bytes of the file");
    drop((reader, cache, second));
    let (cache, second) = place.start();
    let reader = place.open(&cache, None);
    assert_eq!(reader.second_level_bytes(), held_bytes, "also after a restart");
    assert_eq!((place.get_some(&reader), second.stats().misses), (0, 0));
    // A file that has the name and is another.
    let other = MemVolume::new();
    let options = WriterOptions { block_size_bytes: 1024, index_block_size_bytes: 512, ..WriterOptions::default() };
    let cells = random_cells(&Rng::seeded(2), 2900, false);
    write(&other, "file", options, &StoreMetadata::default(), &cells);
    let context = ReaderContext { cache: Some(cache.clone()), ..ReaderContext::default() };
    let reader = Reader::open(&other, &FilePath::new("file"), context).expect("open");
    assert_eq!(all_cells(&reader, ScanOptions::default()).expect("scan"), cells);
}

/// EVICT_BLOCKS_ON_CLOSE.
#[test]
fn a_file_that_is_closed_for_good_is_read_from_its_disk_again() {
    let place = Place::new();
    let (cache, second) = place.start();
    let reader = place.open(&cache, None);
    let once = place.get_some(&reader);
    place.get_some(&reader);
    assert!(second.write_segment() > 0);
    assert_eq!(place.get_some(&reader), 0, "{:?}", second.stats());
    reader.evict_for_good();
    drop(reader);
    let reader = place.open(&cache, None);
    assert_eq!((reader.second_level_bytes(), place.get_some(&reader), second.stats().blocks), (0, once, 0));
    // What waits to be written goes, too.
    place.get_some(&reader);
    reader.evict_for_good();
    assert_eq!(second.write_segment(), 0);
}

/// PREFETCH_BLOCKS_ON_OPEN.
#[test]
#[allow(clippy::disallowed_methods, reason = "the thread that writes is a server's")]
fn a_file_that_is_read_ahead_as_a_whole_is_there_without_being_asked_for() {
    let place = Place::new();
    let (cache, second) = place.start();
    let reader = place.open(&cache, None);
    let writer = std::thread::spawn({
        let second = second.clone();
        move || {
            while second.wait_for_work() {
                second.write_segment();
            }
            second.write_segment();
        }
    });
    assert!(reader.prefetch(&mut |bytes| second.wait_for_room(bytes)).expect("read"), "all of it");
    second.close();
    writer.join().expect("no panic");
    let data_bytes: u64 = reader.len_bytes() * 9 / 10;
    assert!(reader.second_level_bytes() >= data_bytes, "{} of {}", reader.second_level_bytes(), reader.len_bytes());
    // What has no room is not waited for.
    let options = SecondLevelOptions { segment_bytes: 16 << 10, ..SecondLevelOptions::new(64 << 10, 5) };
    let small = SecondLevel::open(Arc::new(MemVolume::new()), options, Arc::new(|_| {})).expect("opened");
    assert!(small.wait_for_room(1000) && !small.wait_for_room(65 << 10));
    small.close();
    assert!(!small.wait_for_room(1000));
}

#[test]
fn scans_write_nothing_and_take_what_is_there() {
    let place = Place::new();
    let (cache, second) = place.start();
    let reader = place.open(&cache, None);
    let stream = ScanOptions { pread: false, ..ScanOptions::default() };
    for _ in 0..4 {
        assert_eq!(all_cells(&reader, stream).expect("scan"), place.cells);
        all_cells(&reader, ScanOptions { compaction: true, ..ScanOptions::default() }).expect("a compaction");
    }
    // Index blocks are read one by one.
    second.write_segment();
    let index_blocks = second.stats().blocks;
    assert!(index_blocks < 200, "{index_blocks}");
    place.get_some(&reader);
    place.get_some(&reader);
    second.write_segment();
    let before = second.stats();
    assert!(before.blocks > 2 * index_blocks.max(20), "{before:?} after {index_blocks}");
    assert_eq!(all_cells(&reader, stream).expect("scan"), place.cells);
    assert!(second.stats().hits > before.hits + 20);
}

#[test]
fn blocks_of_a_cold_file_are_not_admitted() {
    let place = Place::new();
    let (cache, second) = place.start();
    let newest_ms = place.open(&cache, None).time_range().expect("cells").1;
    second.set_now(TimestampMs(newest_ms + 1000));
    let cold = place.open(&cache, Some(1000));
    (0..3).for_each(|_| _ = place.get_some(&cold));
    assert_eq!(second.write_segment(), 0);
    let hot = place.open(&cache, Some(1001));
    (0..3).for_each(|_| _ = place.get_some(&hot));
    assert!(second.write_segment() > 0);
    assert_eq!(place.get_some(&cold), 0, "what is there is taken");
}

#[test]
fn damage_in_the_second_level_is_read_around() {
    let place = Place::new();
    let (cache, second) = place.start();
    let reader = place.open(&cache, None);
    (0..2).for_each(|_| _ = place.get_some(&reader));
    second.write_segment();
    let segment = place.flash.all_files().into_iter().find(|f| f.as_str().starts_with("segment-")).expect("one");
    for at in (0..40_000).step_by(1000) {
        place.flash.flip_bit(&segment, at, 2);
    }
    place.get_some(&reader);
    assert!(second.stats().damaged > 20, "{:?}", second.stats());
    assert_eq!(all_cells(&reader, ScanOptions::default()).expect("scan"), place.cells);
}
