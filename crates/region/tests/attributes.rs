//! What table and family say of flushes and compactions.

use crate::common::*;
use basalt_region::{CloseMode, CompactionKind, FlushReason, Region};
use base::Config;
use cell::CellType;
use fs::{FilePath, MemVolume};
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
