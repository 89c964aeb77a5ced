//! Settings of stores that HBase reads again while a region is open: what they do then. Follows: `HStore#onConfigurationChange`,
//! `CacheConfig#onConfigurationChange`.

use crate::common::{Server, family, flush, get, put, write};
use basalt_region::{CompactionKind, Region, RegionSettings};
use base::Config;
use fs::{MemVolume, Volume};
use std::sync::Arc;

/// As `update_config` does it.
fn update(server: &Server, region: &Region, settings: &[(&str, &str)]) {
    let mut config = Config::default();
    settings.iter().for_each(|(key, value)| config.set(*key, *value));
    server.env.settings.store(Arc::new(RegionSettings::from_config(&config)));
    region.update_settings();
}

/// An open region with so many files of about the same size.
fn with_files(count: usize) -> (Server, Arc<Region>) {
    let server = Server::new(1_000_000);
    let region = server.table([family("f")]);
    for number in 0..count {
        write(&region, &[put(&format!("row{number}"), "f", "q", 1, "value")]);
        flush(&region);
    }
    (server, region)
}

/// How many files the policy would compact now.
fn chosen(region: &Arc<Region>) -> usize {
    let job = region.select_compaction(Some(b"f"), CompactionKind::Minor).expect("open");
    job.map_or(0, |job| job.file_count())
}

#[test]
fn what_a_minor_compaction_takes_follows_the_configuration() {
    let (server, region) = with_files(3);
    assert_eq!(chosen(&region), 3);
    // Not even a tenth of the others: nothing fits, unless all are small.
    let strict = [("hbase.hstore.compaction.min.size", "0"), ("hbase.hstore.compaction.ratio", "0.1")];
    let offpeak =
        |start, end| [&strict[..], &[("hbase.offpeak.start.hour", start), ("hbase.offpeak.end.hour", end)]].concat();
    let less_offpeak = [&offpeak("0", "2")[..], &[("hbase.hstore.compaction.ratio.offpeak", "0.1")]].concat();
    let steps: [(&[(&str, &str)], usize); 12] = [
        (&[("hbase.hstore.compaction.min", "4")], 0),
        (&[], 3),
        (&[("hbase.hstore.compactionThreshold", "4")], 0),
        (&[("hbase.hstore.compaction.min", "2"), ("hbase.hstore.compaction.max", "2")], 2),
        (&[("hbase.hstore.compaction.max.size", "1")], 0),
        (&strict[1..], 3),
        (&strict, 0),
        (&strict[..1], 3),
        // It is between midnight and one o'clock.
        (&offpeak("0", "2"), 3),
        (&offpeak("2", "4"), 0),
        (&less_offpeak, 0),
        (&[], 3),
    ];
    for (settings, files) in steps {
        update(&server, &region, settings);
        assert_eq!(chosen(&region), files, "{settings:?}");
    }
}

#[test]
fn when_all_files_are_compacted_and_which_queue_is_theirs_follows_the_configuration() {
    let (server, region) = with_files(2);
    server.clock.advance_ms(60_000);
    let never_by_itself = ("hbase.hregion.majorcompaction", "0");
    let select = || region.select_compaction(Some(b"f"), CompactionKind::Minor).expect("open");
    update(&server, &region, &[never_by_itself]);
    assert!(select().is_none(), "two files are too few");
    update(&server, &region, &[("hbase.hregion.majorcompaction", "10000")]);
    assert!(select().is_some_and(|job| job.is_major() && !job.is_large()), "a minute is more than twice ten seconds");
    let throttle = ("hbase.regionserver.thread.compaction.throttle", "1");
    update(&server, &region, &[("hbase.hregion.majorcompaction", "10000"), throttle]);
    assert!(select().is_some_and(|job| job.is_large()));
    // Files of a minute are younger than any interval between nine tenths of ten minutes and eleven.
    update(
        &server,
        &region,
        &[("hbase.hregion.majorcompaction", "600000"), ("hbase.hregion.majorcompaction.jitter", "0.1")],
    );
    assert!(select().is_none());
    server.clock.advance_ms(600_000);
    update(
        &server,
        &region,
        &[("hbase.hregion.majorcompaction", "600000"), ("hbase.hregion.majorcompaction.jitter", "0")],
    );
    assert!(select().is_some_and(|job| job.is_major()), "eleven minutes are more than ten");
}

#[test]
fn whether_new_files_are_put_into_the_cache_follows_the_configuration() {
    let (server, region) = with_files(1);
    let kept_by_a_flush = |on: &str| {
        update(&server, &region, &[("hbase.rs.cacheblocksonwrite", on)]);
        let before = server.env.cache.stats().inserted;
        write(&region, &[put("more", "f", "q", 1, "value")]);
        flush(&region);
        server.env.cache.stats().inserted - before
    };
    let off = kept_by_a_flush("false");
    assert!(kept_by_a_flush("true") > off, "the blocks of the file");
    assert_eq!(kept_by_a_flush("false"), off);
}

/// EVICT_BLOCKS_ON_CLOSE and `hbase.rs.evictblocksonclose`: whether the second level of the cache still has a region's blocks when it is opened again.
#[test]
fn whether_a_closed_region_is_forgotten_follows_family_and_configuration() {
    let blocks_after_close = |of_family: &str, updated: &[(&str, &str)]| {
        let server = Server::new(1_000_000);
        let options = hfile::SecondLevelOptions::new(1 << 20, 1);
        let tell = Arc::new(|text: String| panic!("{text}"));
        let second = hfile::SecondLevel::open(Arc::new(MemVolume::new()), options, tell).expect("opened");
        let second = Arc::new(second);
        let cache = hfile::BlockCache::over(0, Some(second.clone()));
        let server = Server { env: Arc::new(basalt_region::RegionEnv { cache, ..(*server.env).clone() }), ..server };
        let region = server.table([family("f").with("EVICT_BLOCKS_ON_CLOSE", of_family)]);
        write(&region, &[put("row", "f", "q", 1, "value")]);
        flush(&region);
        for _ in 0..2 {
            assert_eq!(get(&region, &model::Get::new("row"), 0).len(), 1);
        }
        assert!(second.write_segment() > 0);
        update(&server, &region, updated);
        assert!(second.stats().blocks > 0);
        region.close(basalt_region::CloseMode::Flush).expect("closed");
        second.stats().blocks
    };
    assert!(blocks_after_close("false", &[]) > 0);
    assert_eq!(blocks_after_close("true", &[]), 0);
    assert_eq!(blocks_after_close("false", &[("hbase.rs.evictblocksonclose", "true")]), 0);
}

/// How many files the policy would compact now, and how many it would make of them.
fn chosen_and_made(region: &Arc<Region>) -> (usize, usize) {
    let Some(job) = region.select_compaction(Some(b"f"), CompactionKind::Minor).expect("open") else { return (0, 0) };
    let files = region.store_file_paths(b"f").expect("a family").len();
    let chosen = job.file_count();
    assert!(region.compact(job, &basalt_region::Unthrottled).expect("compacted").completed);
    (chosen, region.store_file_paths(b"f").expect("a family").len() - (files - chosen))
}

#[test]
fn what_a_tiered_store_compacts_and_makes_follows_the_configuration() {
    const HOUR: i64 = 3_600_000;
    let tiered = |key: &str| format!("hbase.hstore.compaction.date.tiered.{key}");
    let engine = ("hbase.hstore.engine.class".to_owned(), "DateTieredStoreEngine");
    let base = [engine, (tiered("base.window.millis"), "3600000"), ("hbase.hstore.compaction.min".to_owned(), "2")];
    let now = 1_000_000 * HOUR;
    // Five files of this hour, of which the first has a cell of long ago; the last is large.
    let with = |settings: &[(&str, &str)]| {
        let server = Server::new(now);
        let region = server.table([family("f").with("COMPRESSION", "NONE").with("BLOOMFILTER", "NONE")]);
        write(&region, &[put("old", "f", "q", now - 9 * HOUR, "value")]);
        for number in 0..5 {
            let value = if number == 4 { "x".repeat(2_000_000) } else { "value".into() };
            write(&region, &[put(&format!("row{number}"), "f", "q", now, &value)]);
            flush(&region);
        }
        let owned: Vec<(String, &str)> = settings.iter().map(|(key, value)| (tiered(key), *value)).collect();
        let all: Vec<(&str, &str)> = base.iter().chain(&owned).map(|(key, value)| (key.as_str(), *value)).collect();
        let small = [&all[..], &[("hbase.hstore.compaction.min.size", "0")]].concat();
        update(&server, &region, &small);
        chosen_and_made(&region)
    };
    let five = ("incoming.window.min", "2");
    assert_eq!(with(&[]), (0, 0), "six are wanted in the newest window");
    assert_eq!(with(&[five]), (4, 1), "the large one is out of the ratio");
    let apart = ("single.output.for.minor.compaction", "false");
    assert_eq!(with(&[five, apart]), (4, 1), "a part of a window is one file whatever is set");
    assert_eq!(with(&[("incoming.window.min", "5")]), (0, 0), "four that fit are not five");
    // From the oldest on that is within the ratio: all of them are.
    let by_ratio =
        ("window.policy.class", "org.apache.hadoop.hbase.regionserver.compactions.RatioBasedCompactionPolicy");
    assert_eq!(with(&[five, by_ratio]), (5, 1));
    assert_eq!(with(&[five, by_ratio, apart]), (5, 2), "what is older than the window comes into a file of its own");

    // Of an hour ago: too old, or not.
    let aged = |age: &str| {
        let server = Server::new(now);
        let region = server.table([family("f")]);
        for number in 0..3 {
            write(&region, &[put(&format!("row{number}"), "f", "q", now - 2 * HOUR, "value")]);
            flush(&region);
        }
        let keys = [(tiered("max.storefile.age.millis"), age)];
        let all: Vec<(&str, &str)> = base.iter().chain(&keys).map(|(key, value)| (key.as_str(), *value)).collect();
        update(&server, &region, &all);
        chosen_and_made(&region)
    };
    assert_eq!((aged("1000"), aged("36000000")), ((0, 0), (3, 1)));
}

/// Where the files of old and new cells lie, after a compaction of all.
#[test]
fn where_the_files_of_a_tiered_store_lie_follows_the_configuration() {
    const DAY: i64 = 86_400_000;
    // Half way through the hundred days of a tier.
    let now = 20_050 * DAY;
    let tiered = |key: &str| format!("hbase.hstore.compaction.date.tiered.{key}");
    let on_flash = |settings: &[(&str, &str)]| {
        let flash = MemVolume::new();
        let spec = fs::tiered::Attached {
            spec: "flash:ssd:/mnt/flash".parse().expect("legal"),
            volume: Some(Arc::new(flash.clone()) as Arc<dyn Volume>),
            claim: None,
        };
        let server = Server::new(now);
        let (home, rules) = (Arc::new(server.volume.clone()), fs::tiered::Rules::default());
        let attached = fs::tiered::TieredVolume::attach(home, vec![spec], rules, &server.rng, Arc::new(|_| {}));
        let volume: Arc<dyn Volume> = Arc::new(attached.expect("attached").0);
        let env = Arc::new(basalt_region::RegionEnv { volume, ..(*server.env).clone() });
        let server = Server { env, ..server };
        let region = server.table([family("f")]);
        for (row, age) in [("today", 0), ("this week", 3), ("long ago", 30), ("in the beginning", 40)] {
            write(&region, &[put(row, "f", "q", now - age * DAY, "value")]);
        }
        flush(&region);
        let before = flash.all_files().len();
        let engine = ("hbase.hstore.engine.class".to_owned(), "DateTieredStoreEngine");
        let base = [engine, (tiered("base.window.millis"), "86400000"), (tiered("windows.per.tier"), "100")];
        let owned: Vec<(String, &str)> = settings.iter().map(|(key, value)| (tiered(key), *value)).collect();
        let all: Vec<(&str, &str)> = base.iter().chain(&owned).map(|(key, value)| (key.as_str(), *value)).collect();
        update(&server, &region, &all);
        let job = region.select_compaction(Some(b"f"), CompactionKind::Major).expect("open").expect("a job");
        assert!(region.compact(job, &basalt_region::Unthrottled).expect("compacted").completed);
        assert_eq!(region.store_file_paths(b"f").expect("a family").len(), 4, "a file for each window");
        flash.all_files().len() - before
    };
    assert_eq!(on_flash(&[]), 0);
    let [on, cold] = [("storage.policy.enable", "true"), ("cold.window.storage.policy", "HOT")];
    let warm = ("warm.window.storage.policy", "HOT");
    let [week, month] = [("hot.window.age.millis", "432000000"), ("warm.window.age.millis", "8640000000")];
    assert_eq!(on_flash(&[on, warm, cold]), 1, "today's");
    assert_eq!(on_flash(&[on, week, warm, cold]), 2, "the week's");
    assert_eq!(on_flash(&[on, week, month, cold]), 3, "what is warm lies there, too; the first window is always cold");
}

#[test]
fn windows_are_made_in_one_way_whose_name_an_update_may_say() {
    let key = "hbase.hstore.compaction.date.tiered.window.factory.class";
    let is_legal = |class: &str| {
        let mut config = Config::default();
        config.set(key, class);
        config.check(basalt_region::settings::ALL).is_ok()
    };
    let class = "org.apache.hadoop.hbase.regionserver.compactions.ExponentialCompactionWindowFactory";
    assert!(is_legal(class) && is_legal("ExponentialCompactionWindowFactory") && !is_legal("com.example.Windows"));
    let (server, region) = with_files(3);
    update(&server, &region, &[(key, class), ("hbase.hstore.compaction.min", "4")]);
    assert_eq!(chosen(&region), 0, "the rest of the update counts");
}
