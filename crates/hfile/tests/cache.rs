//! The block cache through readers: what is kept, what is pushed out, what may be read.

use crate::common::*;
use basalt_hfile::*;
use base::{ManualClock, Rng};
use fs::{FilePath, MemVolume, Volume};
use std::sync::Arc;

fn file(volume: &MemVolume, name: &str, cells: &[Owned], options: WriterOptions) -> FinishedFile {
    let options = WriterOptions { block_size_bytes: 1024, index_block_size_bytes: 512, ..options };
    write(volume, name, options, &StoreMetadata::default(), cells)
}

fn open(volume: &MemVolume, name: &str, cache: &Arc<BlockCache>, in_memory: bool) -> Arc<Reader> {
    let context = ReaderContext { cache: Some(cache.clone()), in_memory, ..ReaderContext::default() };
    Reader::open(volume, &FilePath::new(name), context).expect("open")
}

#[test]
fn a_miss_would_block_and_reading_makes_it_a_hit() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(16 << 20));
    let cells = random_cells(&Rng::seeded(1), 2000, false);
    file(&volume, "file", &cells, WriterOptions { bloom: BloomType::Row, ..Default::default() });
    let reader = open(&volume, "file", &cache, false);
    let key = cells[1000].cell().key();
    let cached_only = ScanOptions { residency: Residency::CachedOnly, ..ScanOptions::default() };
    let mut scanner = reader.scanner(cached_only);
    assert!(matches!(scanner.seek(key), Err(Error::WouldBlock)));
    assert!(scanner.current().is_none());
    assert!(matches!(reader.may_contain_row(key.row(), Residency::CachedOnly), Err(Error::WouldBlock)));
    scanner.set_residency(Residency::MayRead);
    assert!(scanner.seek(key).expect("seek"));
    assert!(reader.may_contain_row(key.row(), Residency::MayRead).expect("bloom"));
    let reads = volume.op_count();
    let mut scanner = reader.scanner(cached_only);
    assert!(scanner.seek(key).expect("cached now"));
    assert!(reader.may_contain_row(key.row(), Residency::CachedOnly).expect("cached now"));
    assert_eq!(volume.op_count(), reads, "nothing was read");
}

#[test]
fn what_must_not_be_kept_is_not_kept() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(16 << 20));
    let cells = random_cells(&Rng::seeded(2), 2000, false);
    file(&volume, "file", &cells, WriterOptions::default());
    let reader = open(&volume, "file", &cache, false);
    all_cells(&reader, ScanOptions { compaction: true, ..ScanOptions::default() }).expect("scan");
    assert_eq!(cache.stats().blocks, 0, "a compaction leaves nothing");
    all_cells(&reader, ScanOptions { cache_blocks: false, ..ScanOptions::default() }).expect("scan");
    let index_blocks = cache.stats().blocks;
    all_cells(&reader, ScanOptions::default()).expect("scan");
    assert!(cache.stats().blocks > 4 * index_blocks, "{:?} after {index_blocks}", cache.stats());
    reader.evict();
    assert_eq!((cache.stats().blocks, cache.stats().used_bytes), (0, 0));
    assert_eq!(all_cells(&reader, ScanOptions::default()).expect("scan").len(), cells.len());
}

#[test]
fn the_capacity_holds_and_follows_the_setting() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(64 << 10));
    let cells = random_cells(&Rng::seeded(3), 6000, false);
    file(&volume, "file", &cells, WriterOptions::default());
    let reader = open(&volume, "file", &cache, false);
    for _ in 0..3 {
        assert_eq!(all_cells(&reader, ScanOptions::default()).expect("scan"), cells);
        let stats = cache.stats();
        assert!(stats.used_bytes <= 64 << 10 && stats.used_bytes > 32 << 10, "{stats:?}");
    }
    assert!(cache.stats().evicted > 0);
    cache.set_capacity(8 << 10);
    assert!(cache.stats().used_bytes <= 8 << 10, "{:?}", cache.stats());
    cache.set_capacity(0);
    assert_eq!(cache.stats().blocks, 0);
    assert_eq!(all_cells(&reader, ScanOptions::default()).expect("scan"), cells);
}

#[test]
fn blocks_of_closed_files_leave_with_the_next_sweep() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(16 << 20));
    let cells = random_cells(&Rng::seeded(7), 2000, false);
    let [stays, goes, goes_too] = ["stays", "goes", "goes-too"].map(|name| {
        file(&volume, name, &cells, WriterOptions::default());
        open(&volume, name, &cache, false)
    });
    for reader in [&stays, &goes, &goes_too] {
        all_cells(reader, ScanOptions::default()).expect("scan");
    }
    let all = cache.stats();
    assert_eq!(cache.sweep(), 0, "all are open");
    let scanner = goes_too.scanner(ScanOptions::default());
    drop((goes, goes_too));
    assert_eq!(cache.sweep() as u64, all.blocks / 3, "one has a scanner still");
    drop(scanner);
    assert_eq!(cache.sweep() as u64, all.blocks / 3);
    assert_eq!((cache.stats().blocks, cache.stats().used_bytes), (all.blocks / 3, all.used_bytes / 3));
    assert_eq!(cache.sweep(), 0);
}

#[test]
fn blocks_that_would_have_been_found_in_a_larger_cache_are_counted() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(64 << 10));
    let cells = random_cells(&Rng::seeded(8), 1000, false);
    file(&volume, "file", &cells, WriterOptions::default());
    let reader = open(&volume, "file", &cache, false);
    for (capacity_bytes, returns) in [(64 << 10, true), (16 << 20, false)] {
        cache.set_capacity(capacity_bytes);
        all_cells(&reader, ScanOptions::default()).expect("scan");
        let before = cache.stats().returned;
        for _ in 0..3 {
            all_cells(&reader, ScanOptions::default()).expect("scan");
        }
        assert_eq!(cache.stats().returned > before, returns, "{:?}", cache.stats());
    }
}

#[test]
fn a_scan_does_not_push_out_what_is_asked_for_again() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(256 << 10));
    let hot = random_cells(&Rng::seeded(4), 500, false);
    let cold = random_cells(&Rng::seeded(5), 20_000, false);
    file(&volume, "hot", &hot, WriterOptions::default());
    let scanned = file(&volume, "cold", &cold, WriterOptions::default());
    assert!(scanned.len_bytes > 3 * (256 << 10), "the scan is larger than the cache");
    let (hot_reader, cold_reader) = (open(&volume, "hot", &cache, false), open(&volume, "cold", &cache, false));
    all_cells(&hot_reader, ScanOptions::default()).expect("scan");
    all_cells(&hot_reader, ScanOptions::default()).expect("scan");
    all_cells(&cold_reader, ScanOptions::default()).expect("scan");
    let cached_only = ScanOptions { residency: Residency::CachedOnly, ..ScanOptions::default() };
    assert_eq!(all_cells(&hot_reader, cached_only).expect("all of it is still cached"), hot);
}

#[test]
fn blocks_of_in_memory_families_outlast_others() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(256 << 10));
    let hot = random_cells(&Rng::seeded(6), 500, false);
    let cold = random_cells(&Rng::seeded(7), 20_000, false);
    file(&volume, "hot", &hot, WriterOptions::default());
    file(&volume, "cold", &cold, WriterOptions::default());
    let (hot_reader, cold_reader) = (open(&volume, "hot", &cache, true), open(&volume, "cold", &cache, false));
    all_cells(&hot_reader, ScanOptions::default()).expect("scan");
    all_cells(&cold_reader, ScanOptions::default()).expect("scan");
    let cached_only = ScanOptions { residency: Residency::CachedOnly, ..ScanOptions::default() };
    assert_eq!(all_cells(&hot_reader, cached_only).expect("all of it is still cached"), hot);
}

#[test]
fn blocks_put_in_while_writing_are_found_by_the_reader() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(16 << 20));
    let cells = random_cells(&Rng::seeded(8), 2000, true);
    for &encoding in Encoding::ALL {
        let options = WriterOptions {
            encoding,
            include_tags: true,
            compress_tags: true,
            bloom: BloomType::Row,
            cache_on_write: CacheOnWrite::All(cache.clone()),
            ..WriterOptions::default()
        };
        let name = encoding.as_str();
        let options = WriterOptions { block_size_bytes: 1024, ..options };
        let finished = write(&volume, name, options, &StoreMetadata::default(), &cells);
        let context = ReaderContext {
            cache: Some(cache.clone()),
            cache_file_id: finished.cache_file_id,
            ..ReaderContext::default()
        };
        let reader = Reader::open(&volume, &FilePath::new(name), context).expect("open");
        let cached_only = ScanOptions { residency: Residency::CachedOnly, ..ScanOptions::default() };
        assert_eq!(all_cells(&reader, cached_only).expect("all is cached"), cells, "{name}");
        assert!(reader.may_contain_row(cells[0].cell().row(), Residency::CachedOnly).expect("cached"));
    }
}

/// CACHE_INDEX_ON_WRITE and CACHE_BLOOMS_ON_WRITE: those blocks and no others.
#[test]
fn index_and_bloom_blocks_are_put_in_by_themselves() {
    let volume = MemVolume::new();
    let cells = random_cells(&Rng::seeded(12), 12_000, false);
    let base = WriterOptions {
        bloom: BloomType::Row,
        bloom_block_size_bytes: 1024,
        block_size_bytes: 1024,
        index_block_size_bytes: 512,
        index_min_entries: 2,
        ..WriterOptions::default()
    };
    // What reading the whole file and asking about every row bring in, by kind of block.
    let whole = BlockCache::new(16 << 20);
    file(&volume, "plain", &cells, base.clone());
    let reader = open(&volume, "plain", &whole, false);
    assert!(reader.index_levels() > 2, "{} levels", reader.index_levels());
    all_cells(&reader, ScanOptions::default()).expect("scan");
    let index_blocks = whole.stats().blocks - whole.stats().data_blocks;
    for owned in &cells {
        reader.may_contain_row(owned.cell().row(), Residency::MayRead).expect("read");
        // Family deletes have a filter of their own.
        reader.may_contain_delete_family(owned.cell().row(), Residency::MayRead).expect("read");
    }
    let bloom_blocks = whole.stats().blocks - whole.stats().data_blocks - index_blocks;
    assert!(index_blocks > 10 && bloom_blocks > 1, "{index_blocks} and {bloom_blocks}");
    for (index, blooms) in [(true, false), (false, true), (true, true), (false, false)] {
        let cache = BlockCache::new(16 << 20);
        let chosen = |on: bool| on.then(|| cache.clone());
        let options = WriterOptions {
            cache_index_on_write: chosen(index),
            cache_blooms_on_write: chosen(blooms),
            ..base.clone()
        };
        let name = format!("{index}-{blooms}");
        let finished = write(&volume, &name, options, &StoreMetadata::default(), &cells);
        let expected = u64::from(index) * index_blocks + u64::from(blooms) * bloom_blocks;
        assert_eq!((cache.stats().blocks, cache.stats().data_blocks), (expected, 0), "{name}");
        let context = ReaderContext {
            cache: Some(cache.clone()),
            cache_file_id: finished.cache_file_id,
            ..ReaderContext::default()
        };
        let reader = Reader::open(&volume, &FilePath::new(&name), context).expect("open");
        assert_eq!(all_cells(&reader, ScanOptions::default()).expect("scan"), cells, "{name}");
        let row = cells[0].cell().row();
        assert_eq!(reader.may_contain_row(row, Residency::CachedOnly).is_ok(), blooms, "{name}");
    }
}

#[test]
fn a_file_is_read_into_the_cache_before_anybody_asks() {
    let volume = MemVolume::new();
    let cells = random_cells(&Rng::seeded(13), 4000, false);
    let options = WriterOptions {
        bloom: BloomType::Row,
        block_size_bytes: 1024,
        index_block_size_bytes: 512,
        index_min_entries: 2,
        ..WriterOptions::default()
    };
    let finished = file(&volume, "file", &cells, options);
    let cache = BlockCache::new(16 << 20);
    let reader = open(&volume, "file", &cache, false);
    let (mut bytes, mut calls) = (0, 0);
    let mut stops_after_ten = |_| {
        calls += 1;
        calls <= 10
    };
    assert!(!reader.prefetch(&mut stops_after_ten).expect("read"), "it was told to end");
    assert_eq!(cache.stats().blocks, 10);
    let mut counts = |len| {
        bytes += len;
        true
    };
    assert!(reader.prefetch(&mut counts).expect("read"));
    assert!(bytes > finished.len_bytes / 2 && bytes < finished.len_bytes, "{bytes} of {}", finished.len_bytes);
    let cached_only = ScanOptions { residency: Residency::CachedOnly, ..ScanOptions::default() };
    assert_eq!(all_cells(&reader, cached_only).expect("all is cached"), cells);
    for owned in &cells {
        assert!(reader.may_contain_row(owned.cell().row(), Residency::CachedOnly).expect("cached"));
    }
    let read = cache.file_bytes();
    assert!(reader.prefetch(&mut |_| true).expect("cached"));
    assert_eq!(cache.file_bytes(), read, "nothing is read twice");
}

/// A file whose every read takes three milliseconds.
struct Slow {
    file: Arc<dyn fs::ReadAt>,
    clock: Arc<ManualClock>,
}

impl fs::ReadAt for Slow {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> fs::Result<()> {
        self.clock.advance_ms(3);
        self.file.read_exact_at(buf, offset)
    }

    fn len(&self) -> fs::Result<u64> {
        self.file.len()
    }
}

#[test]
fn what_reads_of_files_take_is_counted_and_what_the_cache_has_takes_none() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(16 << 20));
    let cells = random_cells(&Rng::seeded(14), 2000, false);
    file(&volume, "file", &cells, WriterOptions::default());
    let clock = Arc::new(ManualClock::new(0));
    cache.time_reads_by(clock.clone());
    let path = FilePath::new("file");
    let slow = Arc::new(Slow { file: fs::Volume::open(&volume, &path).expect("there"), clock: clock.clone() });
    let context = ReaderContext { cache: Some(cache.clone()), ..ReaderContext::default() };
    let reader = Reader::open_at(slow, &path, context).expect("open");
    for (pread, is_read) in [(true, true), (true, false), (false, false)] {
        let (before, begun_us) = (BlockReads::of_thread(), base::Clock::monotonic_us(&*clock));
        all_cells(&reader, ScanOptions { pread, ..ScanOptions::default() }).expect("scan");
        let reads = BlockReads::of_thread().since(before);
        assert_eq!(reads.file_us, base::Clock::monotonic_us(&*clock) - begun_us);
        assert_eq!((reads.file_us > 0, reads.file_blocks > 0), (is_read, is_read), "{reads:?}");
    }
}

/// HBASE-26281: a block that somebody reads stays what it is although the cache gives it up: threads stand on cells, and copy from them
/// as a reply does, while the others' reads, a capacity that falls to nothing and an eviction of the file push every block out.
#[test]
fn f08_blocks_that_are_pushed_out_stay_whole_for_their_readers() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(96 << 10));
    let cells = random_cells(&Rng::seeded(9), 4000, true);
    file(&volume, "file", &cells, WriterOptions { include_tags: true, ..WriterOptions::default() });
    let reader = open(&volume, "file", &cache, false);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (reader, cells, cache) = (&reader, &cells, &cache);
            scope.spawn(move || {
                let rng = Rng::seeded(seed);
                let mut scanner = reader.scanner(ScanOptions::default());
                for _ in 0..500 {
                    let at = rng.below(cells.len() as u64) as usize;
                    assert!(scanner.seek(cells[at].cell().key()).expect("seek"));
                    let held = scanner.current().expect("positioned");
                    let before = Owned::of(held);
                    match rng.below(8) {
                        0 => {
                            reader.evict();
                        }
                        1 => cache.set_capacity(0),
                        2 => cache.set_capacity(96 << 10),
                        _ => std::thread::yield_now(),
                    }
                    assert_eq!(Owned::of(held), before, "the block has changed under its reader");
                    assert_eq!(before.cell().key(), cells[at].cell().key());
                }
            });
        }
    });
    assert!(cache.stats().inserted > 1000, "{:?}", cache.stats());
    assert!(cache.stats().used_bytes <= 96 << 10);
}

#[test]
fn bulk_loaded_cells_get_the_files_sequence_id() {
    let volume = MemVolume::new();
    let cells = random_cells(&Rng::seeded(10), 100, false);
    file(&volume, "file", &cells, WriterOptions::default());
    let context = ReaderContext { override_seq_id: Some(base::SeqId(77)), ..ReaderContext::default() };
    let reader = Reader::open(&volume, &FilePath::new("file"), context).expect("open");
    assert!(all_cells(&reader, ScanOptions::default()).expect("scan").iter().all(|cell| cell.seq_id == 77));
}

#[test]
#[should_panic(expected = "not added in order")]
fn a_cell_out_of_order_is_not_written() {
    let volume = MemVolume::new();
    let mut cells = random_cells(&Rng::seeded(11), 100, false);
    cells.reverse();
    file(&volume, "file", &cells, WriterOptions::default());
}

#[test]
fn blocks_that_readers_want_are_put_in_while_others_are_not() {
    let (volume, cache) = (MemVolume::new(), BlockCache::new(16 << 20));
    let cells = random_cells(&Rng::seeded(10), 2000, false);
    let options = WriterOptions {
        bloom: BloomType::Row,
        cache_on_write: CacheOnWrite::Wanted(cache.clone()),
        block_size_bytes: 1024,
        ..WriterOptions::default()
    };
    let mut writer = Writer::create(&volume, &FilePath::new("file"), options).expect("created");
    for (n, owned) in cells.iter().enumerate() {
        writer.append_wanted(owned.cell(), (1000..1500).contains(&n)).expect("appended");
    }
    let finished = writer.finish(&StoreMetadata::default()).expect("written");
    let context =
        ReaderContext { cache: Some(cache.clone()), cache_file_id: finished.cache_file_id, ..ReaderContext::default() };
    let reader = Reader::open(&volume, &FilePath::new("file"), context).expect("open");
    let mut scanner = reader.scanner(ScanOptions { residency: Residency::CachedOnly, ..ScanOptions::default() });
    let mut is_cached = |n: usize| match scanner.seek(cells[n].cell().key()) {
        Ok(found) => found,
        Err(Error::WouldBlock) => false,
        Err(error) => panic!("{error}"),
    };
    // Of the blocks at the ends some cells are wanted and some are not.
    assert!((1100..1400).all(&mut is_cached));
    assert!((0..900).chain(1600..2000).all(|n| !is_cached(n)));
    assert!(reader.may_contain_row(cells[1200].cell().row(), Residency::CachedOnly).expect("cached"));
}

/// What was read often is read again after much more than fits was read, all of it twice in a row: only a policy that counts has it still.
#[test]
fn what_is_read_often_stays_with_a_policy_that_counts() {
    let volume = MemVolume::new();
    let cells = random_cells(&Rng::seeded(9), 6000, false);
    file(&volume, "often", &cells[..100], WriterOptions::default());
    file(&volume, "twice", &cells, WriterOptions::default());
    let found = |policy| {
        let cache = BlockCache::with(CacheOptions { policy, ..CacheOptions::new(64 << 10) });
        let [often, twice] = ["often", "twice"].map(|name| open(&volume, name, &cache, false));
        for _ in 0..20 {
            all_cells(&often, ScanOptions::default()).expect("scan");
        }
        for cell in cells.iter().step_by(5) {
            for _ in 0..2 {
                assert!(twice.scanner(ScanOptions::default()).seek(cell.cell().key()).expect("seek"));
            }
        }
        let before = cache.stats();
        assert!(before.evicted > 4 * before.blocks && before.used_bytes <= 64 << 10, "{before:?}");
        assert_eq!(all_cells(&often, ScanOptions::default()).expect("scan"), cells[..100]);
        let after = cache.stats();
        (after.hits - before.hits) * 100 / (after.hits + after.misses - before.hits - before.misses)
    };
    let (lru, counting) = (found(CachePolicy::Lru), found(CachePolicy::TinyLfu));
    println!("{lru} % found with LRU, {counting} % with TinyLFU");
    assert!(counting >= 50 && lru <= 20, "{lru} % with LRU, {counting} % with TinyLFU");
}

/// Without the comparison a wrong bit is read; what its file's opening reads is compared in any case.
#[test]
fn checksums_are_compared_unless_it_is_said_not_to() {
    let volume = MemVolume::new();
    let cells = random_cells(&Rng::seeded(11), 50, false);
    file(&volume, "file", &cells, WriterOptions { compression: Compression::None, ..WriterOptions::default() });
    let path = FilePath::new("file");
    let mut bytes = volume.read(&path).expect("read");
    let value = cells.iter().map(|cell| cell.cell().value()).find(|value| value.len() > 8).expect("a long value");
    let at = bytes.windows(value.len()).position(|window| window == value).expect("a plain value");
    bytes[at] ^= 1;
    volume.put_file(&path, &bytes);
    for verify_checksums in [true, false] {
        let cache = BlockCache::with(CacheOptions { verify_checksums, ..CacheOptions::new(16 << 20) });
        let reader = open(&volume, "file", &cache, false);
        match all_cells(&reader, ScanOptions::default()) {
            Ok(read) => assert!(!verify_checksums && read.len() == cells.len() && read != cells),
            Err(error) => assert!(verify_checksums && error.to_string().contains("checksum"), "{error}"),
        }
    }
}
