//! Settings of stores that HBase reads again while a region is open: what they do then. Follows: `HStore#onConfigurationChange`,
//! `CacheConfig#onConfigurationChange`.

use crate::common::{Server, family, flush, put, write};
use basalt_region::{CompactionKind, Region, RegionSettings};
use base::Config;
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
