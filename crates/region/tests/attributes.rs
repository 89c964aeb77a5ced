//! What table and family say of flushes and compactions.

use crate::common::*;
use basalt_region::{CloseMode, CompactionKind, FlushReason, FlushRequest, Region};
use base::Config;
use cell::CellType;
use fs::{FilePath, MemVolume};
use hfile::{Reader, ReaderContext};
use model::{RegionInfo, Scan, TableDescriptor};
use rootdir::archive::truncate_region;
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn server(settings: &[(&str, &str)]) -> Server {
    let mut config = Config::default();
    settings.iter().for_each(|(key, value)| config.set(*key, *value));
    Server::try_on(MemVolume::new(), NOW, &config, 1).expect("an empty volume")
}

fn open_with(server: &Server, attributes: &[(&str, &str)]) -> Arc<Region> {
    let mut table = TableDescriptor::new(table_name(), [family("f")]);
    for (key, value) in attributes {
        table.attributes.insert((*key).to_owned().into(), (*value).to_owned().into());
    }
    let info: RegionInfo = whole_table();
    server.open(&info, &Arc::new(table)).expect("opened")
}

fn add_files(region: &Region, count: i64) {
    for at in 0..count {
        write(region, &[put("r", "f", "q", at + 1, "v")]);
        flush(region);
    }
}

fn files(region: &Region) -> usize {
    region.stats().files
}

#[test]
fn a_flush_waits_for_a_compaction_where_there_are_too_many_files() {
    let settings = [
        ("hbase.hregion.memstore.flush.size", "1000"),
        ("hbase.hregion.memstore.block.multiplier", "1000"),
        ("hbase.hstore.blockingStoreFiles", "4"),
        ("hbase.hstore.blockingWaitTime", "5000"),
    ];
    let server = server(&settings);
    let region = server.table([family("f")]);
    let large = "x".repeat(2000);
    add_files(&region, 4);
    write(&region, &[put("r", "f", "q", 90, &large)]);
    assert_eq!(region.needs_flush(), Some(FlushReason::Size), "four are not too many");
    add_files(&region, 1);
    write(&region, &[put("r", "f", "q", 91, &large)]);
    assert_eq!(region.needs_flush(), None);
    server.clock.advance_ms(4999);
    assert_eq!(region.needs_flush(), None);
    server.clock.advance_ms(1);
    assert_eq!(region.needs_flush(), Some(FlushReason::Size), "it has waited for long enough");
    flush(&region);
    write(&region, &[put("r", "f", "q", 92, &large)]);
    assert_eq!(region.needs_flush(), None, "and waits again");
    major_compact(&region);
    assert_eq!(region.needs_flush(), Some(FlushReason::Size));
    let server = self::server(&settings);
    let region = open_with(&server, &[("COMPACTION_ENABLED", "false")]);
    add_files(&region, 9);
    write(&region, &[put("r", "f", "q", 93, &large)]);
    assert_eq!(region.needs_flush(), Some(FlushReason::Size), "there is no compaction to wait for");
}

#[test]
fn what_a_flush_writes_is_cached_as_the_server_or_the_family_says() {
    let cached = |settings: &[(&str, &str)], on_write: &str| {
        let server = server(settings);
        let region = server.table([family("f").with("CACHE_DATA_ON_WRITE", on_write)]);
        write(&region, &[put("r", "f", "q", 1, "v")]);
        flush(&region);
        server.env.cache.stats().data_blocks
    };
    let key = "hbase.rs.cacheblocksonwrite";
    let nothing = cached(&[], "false");
    assert!(cached(&[(key, "true")], "false") > nothing);
    assert_eq!(cached(&[(key, "true")], "false"), cached(&[(key, "false")], "true"));
}

/// FLUSH_POLICY, `hbase.regionserver.flush.policy` and `hbase.hregion.percolumnfamilyflush.size.lower.bound`: which families of a region are
/// flushed when one of them is large.
#[test]
fn the_flush_policy_chooses_the_families() {
    const BOUND: &str = "hbase.hregion.percolumnfamilyflush.size.lower.bound";
    const ALL: &str = "org.apache.hadoop.hbase.regionserver.FlushAllStoresPolicy";
    const LARGE: &str = "org.apache.hadoop.hbase.regionserver.FlushAllLargeStoresPolicy";
    const FIRST: &str = "org.apache.hadoop.hbase.regionserver.FlushNonSloppyStoresFirstPolicy";
    let flushed = |settings: &[(&str, &str)], attributes: &[(&str, &str)]| {
        let mut settings = settings.to_vec();
        settings.push(("hbase.hregion.percolumnfamilyflush.size.lower.bound.min", "100000"));
        let server = server(&settings);
        let mut table = TableDescriptor::new(table_name(), [family("a"), family("b")]);
        for (key, value) in attributes {
            table.attributes.insert((*key).to_owned().into(), (*value).to_owned().into());
        }
        table.attributes.insert("MEMSTORE_FLUSHSIZE".into(), "10000".into());
        let region = server.open(&whole_table(), &Arc::new(table)).expect("opened");
        write(&region, &[put("r", "a", "q", 1, &"x".repeat(20_000)), put("r", "b", "q", 1, "small")]);
        region.flush(&FlushRequest::default()).expect("flushed").files
    };
    assert_eq!(flushed(&[], &[]), 2, "none is above the least bound");
    assert_eq!(flushed(&[], &[(BOUND, "15000")]), 1, "the table's own bound");
    assert_eq!(flushed(&[], &[(BOUND, "many")]), 2, "no number is no bound");
    assert_eq!(flushed(&[], &[(BOUND, "15000"), ("FLUSH_POLICY", ALL)]), 2);
    assert_eq!(flushed(&[("hbase.regionserver.flush.policy", ALL)], &[(BOUND, "15000")]), 2);
    for policy in [LARGE, FIRST, "org.example.Unknown"] {
        let server_says = [("hbase.regionserver.flush.policy", ALL)];
        assert_eq!(flushed(&server_says, &[(BOUND, "15000"), ("FLUSH_POLICY", policy)]), 1, "{policy}");
    }
}

#[test]
fn index_and_bloom_blocks_are_cached_as_the_server_or_the_family_says() {
    let cached = |settings: &[(&str, &str)], of_family: &[(&'static str, &str)]| {
        let mut settings = settings.to_vec();
        settings.extend([("hfile.index.block.max.size", "256"), ("hfile.index.block.min.entries", "2")]);
        let server = server(&settings);
        let family = of_family.iter().fold(family("f").with("BLOCKSIZE", "1024"), |f, (key, on)| f.with(key, *on));
        let region = server.table([family]);
        for row in 0..200 {
            write(&region, &[put(&format!("row{row:05}"), "f", "q", 1, &"v".repeat(100))]);
        }
        flush(&region);
        let stats = server.env.cache.stats();
        assert_eq!(stats.data_blocks, 0);
        stats.blocks
    };
    assert_eq!(cached(&[], &[]), 0);
    let (index, blooms) =
        (cached(&[], &[("CACHE_INDEX_ON_WRITE", "true")]), cached(&[], &[("CACHE_BLOOMS_ON_WRITE", "true")]));
    assert!(index > 3, "{index}");
    assert_eq!(blooms, 1);
    assert_eq!(cached(&[("hfile.block.index.cacheonwrite", "true")], &[]), index);
    assert_eq!(cached(&[("hfile.block.bloom.cacheonwrite", "true")], &[]), blooms);
    assert_eq!(
        cached(&[("hfile.block.bloom.cacheonwrite", "true")], &[("CACHE_INDEX_ON_WRITE", "true")]),
        index + blooms
    );
}

/// PREFETCH_BLOCKS_ON_OPEN and `hbase.rs.prefetchblocksonopen`.
#[test]
fn files_are_read_into_the_cache_when_they_are_opened() {
    let due = |settings: &[(&str, &str)], of_family: &[(&'static str, &str)]| {
        let server = server(settings);
        let region = server.table([of_family.iter().fold(family("f"), |f, (key, on)| f.with(key, *on))]);
        assert!(!region.wants_prefetch(), "there is no file yet");
        add_files(&region, 2);
        let wanted = region.wants_prefetch();
        let files = region.prefetch(&mut |_| true).expect("read");
        assert!(!region.wants_prefetch(), "each file is read once");
        assert_eq!(wanted, files > 0);
        (files, server.env.cache.stats().data_blocks)
    };
    let on = ("PREFETCH_BLOCKS_ON_OPEN", "true");
    assert_eq!(due(&[], &[]), (0, 0));
    assert_eq!(due(&[], &[on]), (2, 2));
    assert_eq!(due(&[("hbase.rs.prefetchblocksonopen", "true")], &[]), (2, 2));
    assert_eq!(due(&[], &[on, ("BLOCKCACHE", "false")]), (0, 0), "the cache is not for them");
    let server = server(&[]);
    let region = server.table([family("f").with(on.0, on.1)]);
    add_files(&region, 3);
    assert_eq!(region.prefetch(&mut |_| false).expect("nothing was read"), 0);
    assert_eq!(
        (region.wants_prefetch(), server.env.cache.stats().blocks),
        (false, 0),
        "what is given up is not due again"
    );
    major_compact(&region);
    assert_eq!(region.prefetch(&mut |_| true).expect("read"), 1, "a new file is");
}

/// What `RegionMetrics` has as the last major compaction: the time of the oldest file of one, whatever was flushed since. Follows:
/// `HRegion#getOldestHfileTs`.
#[test]
fn the_last_major_compaction_is_that_of_the_files_which_had_one() {
    let server = server(&[]);
    let region = server.table([family("f"), family("g")]);
    add_files(&region, 2);
    assert_eq!(region.stats().last_major_compaction_ms, 0);
    server.clock.advance_ms(5);
    major_compact(&region);
    server.clock.advance_ms(5);
    write(&region, &[put("r", "g", "q", 9, "v")]);
    flush(&region);
    let stats = region.stats();
    assert_eq!((stats.files, stats.last_major_compaction_ms), (2, NOW + 5));
    assert_eq!((stats.own_files_bytes, stats.file_readers), (stats.files_bytes, 0));
}

#[test]
fn a_table_without_compactions_is_not_compacted() {
    let server = server(&[]);
    let region = open_with(&server, &[("COMPACTION_ENABLED", "false")]);
    add_files(&region, 5);
    assert!(!region.needs_compaction());
    for kind in [CompactionKind::Minor, CompactionKind::Major] {
        assert!(region.select_compaction(None, kind).expect("open").is_none());
    }
    assert_eq!(files(&region), 5);
}

#[test]
fn the_fifo_policy_only_drops_what_has_expired() {
    let server = server(&[]);
    let class = "org.apache.hadoop.hbase.regionserver.compactions.FIFOCompactionPolicy";
    let fifo = family("f").with("TTL", "10").with("hbase.hstore.defaultengine.compactionpolicy.class", class);
    let region = server.table([fifo]);
    for at in 0..5 {
        write(&region, &[put("r", "f", "q", NOW + 1000 * at, "v")]);
        flush(&region);
    }
    assert!(!region.needs_compaction());
    assert!(region.select_compaction(None, CompactionKind::Major).expect("open").is_none(), "not even if asked for");
    server.clock.advance_ms(12_500);
    assert!(region.needs_compaction());
    assert!(region.select_compaction(None, CompactionKind::Minor).expect("open").is_none());
    assert_eq!((files(&region), region.needs_compaction()), (2, false), "three are past their time");
}

/// A base window of an hour, two to a tier.
fn tiered() -> model::FamilyDescriptor {
    let class = "org.apache.hadoop.hbase.regionserver.DateTieredStoreEngine";
    let tier = |key: &str| format!("hbase.hstore.compaction.date.tiered.{key}");
    let mut family = family("f").with("hbase.hstore.engine.class", class).with("VERSIONS", "9");
    for (key, value) in [("base.window.millis", "3600000"), ("windows.per.tier", "2"), ("incoming.window.min", "2")] {
        family.configuration.insert(tier(key), value.to_owned());
    }
    family
}

/// Of each file the timestamps of its earliest and latest cell, in hours before now.
fn hours(server: &Server, region: &Region) -> Vec<(i64, i64)> {
    let range = |path: &String| {
        let path = FilePath::new(path);
        let file = hfile::Reader::open(&*server.env.volume, &path, hfile::ReaderContext::default()).expect("a file");
        let (earliest, latest) = file.time_range().expect("cells");
        ((NOW - earliest) / 3_600_000, (NOW - latest) / 3_600_000)
    };
    let mut hours: Vec<_> = region.store_file_paths(b"f").expect("a family").iter().map(range).collect();
    hours.sort_unstable();
    hours
}

#[test]
fn a_tiered_store_has_a_file_for_every_window_of_time() {
    let server = server(&[]);
    let region = server.table([tiered()]);
    // It is 472,222.2 hours since 1970: windows begin at hour 472,222, 220, 216, 208, 192, ...
    for row in ["a", "b", "c"] {
        for age in [0, 1, 2, 3, 4, 5, 7, 9, 30] {
            write(&region, &[put(row, "f", "q", NOW - age * 3_600_000, &format!("{row}{age}"))]);
        }
        flush(&region);
    }
    write(&region, &[delete("b", "f", "q", NOW - 3 * 3_600_000, CellType::Delete)]);
    flush(&region);
    let before = scan(&region, &Scan { max_versions: 9, ..Scan::default() }, NOW);
    assert_eq!((files(&region), before.concat().len()), (4, 26));
    major_compact(&region);
    assert_eq!(hours(&server, &region), [(0, 0), (2, 1), (5, 3), (9, 7), (30, 30)]);
    assert_eq!(scan(&region, &Scan { max_versions: 9, ..Scan::default() }, NOW), before);
    assert!(region.select_compaction(None, CompactionKind::Minor).expect("open").is_none(), "one file in each");
    // Flushes are as ever, and two make the newest window's three files worth a compaction.
    for at in 1..=2 {
        write(&region, &[put("d", "f", "q", NOW + at, "v")]);
        flush(&region);
    }
    assert!(region.needs_compaction());
    let job = region.select_compaction(None, CompactionKind::Minor).expect("open").expect("three files");
    assert_eq!((job.file_count(), job.is_major()), (3, false));
    assert!(region.compact(job, &basalt_region::Unthrottled).expect("compacted").completed);
    assert_eq!(hours(&server, &region).len(), 5);
    let all = scan(&region, &Scan { max_versions: 9, ..Scan::default() }, NOW);
    region.archive_compacted_files().expect("archived");
    let (info, table) = (region.info().clone(), region.table().clone());
    region.close(CloseMode::Flush).expect("closed");
    let region = server.open(&info, &table).expect("opened");
    assert_eq!(scan(&region, &Scan { max_versions: 9, ..Scan::default() }, NOW), all);
    assert_eq!((files(&region), all.concat().len()), (5, 28));
}

/// Values of the column `since`: before and after the age limit of [`by_value`], in bytes that are letters, too.
const OLD: (&str, i64) = ("\0\0\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}", 0x0101_0101_0101);
const NEW: (&str, i64) = ("\0\0\u{1}\u{20}\0\0\0\0", 0x0120_0000_0000);

fn by_value() -> model::FamilyDescriptor {
    let mut family = family("f").with("hbase.hstore.engine.class", "CustomTieredStoreEngine").with("VERSIONS", "9");
    let limit = (NOW - 0x0110_0000_0000).to_string();
    for (key, value) in
        [("TIERING_CELL_QUALIFIER", "since"), ("hbase.hstore.compaction.date.tiered.custom.age.limit.millis", &limit)]
    {
        family.configuration.insert(key.to_owned(), value.to_owned());
    }
    family
}

/// Of each file how many cells it has and the range of its tiering values.
fn tiers(server: &Server, region: &Region) -> Vec<(u64, Option<(i64, i64)>)> {
    let tier = |path: &String| {
        let path = FilePath::new(path);
        let file = hfile::Reader::open(&*server.env.volume, &path, hfile::ReaderContext::default()).expect("a file");
        (file.entry_count(), file.tiering_values())
    };
    let mut tiers: Vec<_> = region.store_file_paths(b"f").expect("a family").iter().map(tier).collect();
    tiers.sort_by_key(|(_, values)| *values);
    tiers
}

#[test]
fn rows_of_old_and_of_new_values_have_files_of_their_own() {
    let server = server(&[]);
    let region = server.table([by_value()]);
    let all = |region: &Arc<Region>| scan(region, &Scan { max_versions: 9, ..Scan::default() }, NOW);
    for (row, since) in [("a", Some(OLD.0)), ("b", Some(NEW.0)), ("c", None), ("d", Some("short")), ("e", Some(OLD.0))]
    {
        // The column lies between the others.
        for column in ["about", "zip"] {
            write(&region, &[put(row, "f", column, NOW, "v")]);
        }
        since.iter().for_each(|since| write(&region, &[put(row, "f", "since", NOW, since)]));
        flush(&region);
    }
    let before = all(&region);
    assert_eq!((files(&region), before.concat().len()), (5, 14));
    major_compact(&region);
    assert_eq!(tiers(&server, &region), [(14, Some((OLD.1, i64::MAX)))], "the first looks at the rows");
    major_compact(&region);
    let divided = [(6, Some((OLD.1, OLD.1))), (8, Some((NEW.1, i64::MAX)))];
    assert_eq!(tiers(&server, &region), divided);
    assert_eq!(all(&region), before);
    // What a row became later does not move its older cells, as in HBase.
    write(&region, &[put("a", "f", "since", NOW + 1, NEW.0)]);
    flush(&region);
    major_compact(&region);
    assert_eq!(tiers(&server, &region), [(6, Some((OLD.1, OLD.1))), (9, Some((NEW.1, i64::MAX)))]);
    let (info, table, before) = (region.info().clone(), region.table().clone(), all(&region));
    region.archive_compacted_files().expect("archived");
    region.close(CloseMode::Flush).expect("closed");
    assert_eq!(all(&server.open(&info, &table).expect("opened")), before);
}

#[test]
fn a_row_whose_value_comes_late_is_held_back_in_bounds() {
    let server = server(&[]);
    let region = server.table([by_value()]);
    // More cells before the column than are held back: those that had to go are with the new ones.
    for n in 0..2500 {
        write(&region, &[put("wide", "f", &format!("a{n:04}"), NOW, "v")]);
    }
    write(&region, &[put("wide", "f", "since", NOW, OLD.0), put("wide", "f", "zip", NOW, "v")]);
    flush(&region);
    let before = scan(&region, &Scan::default(), NOW);
    major_compact(&region);
    major_compact(&region);
    assert_eq!(tiers(&server, &region), [(502, Some((OLD.1, OLD.1))), (2000, Some((i64::MAX, i64::MAX)))]);
    assert_eq!(scan(&region, &Scan::default(), NOW), before);
}

#[test]
fn a_tiered_store_of_which_no_cell_is_left_keeps_one_empty_file() {
    let server = server(&[]);
    let region = server.table([tiered().with("TTL", "10")]);
    write(&region, &[put("r", "f", "q", NOW, "v"), put("s", "f", "q", NOW - 7_200_000, "v")]);
    flush(&region);
    server.clock.advance_ms(20_000);
    major_compact(&region);
    assert_eq!((files(&region), scan(&region, &Scan::default(), 0).len()), (1, 0));
}

#[test]
fn compactions_are_more_eager_in_the_off_peak_hours() {
    // The server's clock shows 22:13 UTC.
    for (start, end, eager) in [("-1", "-1", false), ("22", "3", true), ("3", "22", false)] {
        let server = server(&[
            ("hbase.offpeak.start.hour", start),
            ("hbase.offpeak.end.hour", end),
            ("hbase.hstore.compaction.min.size", "0"),
        ]);
        let region = server.table([family("f")]);
        for (at, len) in [(1, 30_000), (2, 4000), (3, 4000)] {
            // Values that no codec makes smaller, so that sizes are what they seem.
            let rng = base::Rng::seeded(at as u64);
            let value: String = (0..len).map(|_| char::from(33 + rng.below(94) as u8)).collect();
            write(&region, &[put("r", "f", "q", at, &value)]);
            flush(&region);
        }
        let job = region.select_compaction(None, CompactionKind::Minor).expect("open");
        assert_eq!(job.map(|job| job.file_count()), eager.then_some(3), "{start} to {end}");
    }
}

#[test]
fn a_truncated_region_is_empty_and_its_ids_grow() {
    let server = server(&[]);
    let region = server.table([family("f"), family("g")]);
    write(&region, &[put("r", "f", "q", 1, "v"), put("r", "g", "q", 1, "v")]);
    flush(&region);
    write(&region, &[put("s", "f", "q", 1, "v")]);
    let (info, table, paths) = (region.info().clone(), region.table().clone(), region.store_file_paths(b"f"));
    region.close(CloseMode::Flush).expect("closed");
    let used = region.stats().max_seq_id;
    drop(region);
    // May be repeated.
    for _ in 0..2 {
        truncate_region(&*server.env.volume, &info, &["f".to_owned(), "g".to_owned()]).expect("emptied");
    }
    let region = server.open(&info, &table).expect("opened");
    assert_eq!(scan(&region, &Scan::default(), 0), [[""; 0]; 0]);
    assert!(region.open_seq_id().0 > used);
    for path in paths.expect("a family") {
        let archived = rootdir::archive_dir(&FilePath::new(&path).parent()).join(FilePath::new(&path).name());
        assert!(server.env.volume.exists(&archived).expect("memory"), "{archived} keeps what was there");
    }
    write(&region, &[put("r", "f", "q", 2, "new")]);
    flush(&region);
    assert_eq!(scan(&region, &Scan::default(), 0), [["r/f:q/2/Put=new"]]);
}

/// HBase's regions have such a table flushed by the policy that it made for them, and say so wherever they show the table.
#[test]
fn a_family_that_is_compacted_in_memory_sets_the_flush_policy() {
    let shown = |policy: &str| {
        let server = Server::new(1000);
        let region = server.table([family("f").with("IN_MEMORY_COMPACTION", policy)]);
        write(&region, &[put("row", "f", "q", 1, "value")]);
        flush(&region);
        assert_eq!(scan(&region, &Scan::default(), 0).concat().len(), 1);
        let refused = region.apply(&[put("row", "g", "q", 1, "value")]);
        let refused = refused.map(|applied| applied.only(&region).map(|_| ()).expect_err("no such family"));
        refused.map_or_else(|error| error.to_string(), |error| error.to_string())
    };
    let set = "'FLUSH_POLICY' => 'org.apache.hadoop.hbase.regionserver.FlushNonSloppyStoresFirstPolicy'";
    for (policy, sets) in [("NONE", false), ("BASIC", true), ("eager", true), ("ADAPTIVE", true)] {
        let error = shown(policy);
        assert!(error.contains("Column family g does not exist") && error.contains(set) == sets, "{policy}: {error}");
    }
}

/// What IN_MEMORY_COMPACTION => EAGER drops of a memstore while it grows, every family's flush leaves out; in the file nobody sees a difference.
#[test]
fn no_superseded_version_is_flushed_whatever_is_compacted_in_memory() {
    let flushed = |policy: Option<&str>, versions: &str| {
        let server = Server::new(1000);
        let mut of_family = family("f").with("VERSIONS", versions);
        if let Some(policy) = policy {
            of_family = of_family.with("IN_MEMORY_COMPACTION", policy);
        }
        let region = server.table([of_family]);
        for at in 1..=9 {
            write(&region, &[put("row", "f", "q", at, &format!("v{at}"))]);
        }
        flush(&region);
        let paths = region.store_file_paths(b"f").expect("a family");
        let open = |path: &String| Reader::open(&*server.env.volume, &FilePath::new(path), ReaderContext::default());
        paths.iter().map(|path| open(path).expect("a store file").entry_count()).sum::<u64>()
    };
    for policy in [None, Some("NONE"), Some("BASIC"), Some("EAGER"), Some("ADAPTIVE")] {
        assert_eq!((flushed(policy, "1"), flushed(policy, "3")), (1, 3), "{policy:?}");
    }
}
