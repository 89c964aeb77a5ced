//! What HBase's own test of its policy (`TestStripeCompactionPolicy`) says of stripes with files of given sizes, and more.

use super::*;
use base::Config;

const NOW: i64 = 1_000_000;
/// A part of 1000 bytes, a split at 2000.
const SPLIT: [(&str, &str); 1] = [("hbase.store.stripe.sizeToSplit", "2000")];

/// A store whose files are written down as `stripe:bytes`, oldest first: stripe `0` for level 0, else a number from 1 on.
struct Case {
    layout: Layout,
    files: Vec<StripedFile>,
    settings: RegionSettings,
    oldest_unexpired: Option<i64>,
}

fn row(at: usize) -> Bytes {
    Bytes::from(format!("{at}"))
}

fn case(stripes: usize, files: &str, settings: &[(&str, &str)]) -> Case {
    let mut config = Config::default();
    config.set("hbase.hstore.compaction.min.size", "1");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    let mut layout =
        Layout { level0: Vec::new(), ends: (1..stripes).map(row).collect(), stripes: vec![Vec::new(); stripes] };
    let mut facts = Vec::new();
    for (at, file) in files.split_whitespace().enumerate() {
        let (stripe, bytes) = file.split_once(':').expect("a stripe and bytes");
        match stripe.parse().expect("a number") {
            0usize => layout.level0.push(at),
            stripe => layout.stripes[stripe - 1].push(at),
        }
        let len_bytes: u64 = bytes.trim_end_matches(['x', 'r']).parse().expect("bytes");
        facts.push(StripedFile {
            len_bytes,
            cells: len_bytes,
            latest: Some(if bytes.ends_with('x') { 1 } else { NOW }),
            is_reference: bytes.ends_with('r'),
        });
    }
    Case { layout, files: facts, settings: RegionSettings::from_config(&config), oldest_unexpired: Some(100) }
}

impl Case {
    fn select(&self) -> Option<Plan> {
        let Case { layout, files, settings, oldest_unexpired } = self;
        Selector { layout, files, settings, oldest_unexpired: *oldest_unexpired, now: NOW }.select()
    }
}

fn rows(start: usize, end: usize, of: usize) -> RowRange {
    let open = |at: usize| if at == 0 || at == of { Bytes::new() } else { row(at) };
    RowRange { start: open(start), end: open(end) }
}

fn by_count(files: &[usize], within: RowRange, max_files: u32, cells: u64, drops: bool) -> Option<Plan> {
    let drops = drops.then(|| within.clone());
    Some(Plan { files: files.to_vec(), cut: RowCut::After { cells, max_files, within }, drops })
}

fn at_ends(files: &[usize], case: &Case, whole: Range<usize>, drops: Option<RowRange>) -> Option<Plan> {
    Some(Plan { files: files.to_vec(), cut: RowCut::At { ends: case.layout.ends.clone(), whole }, drops })
}

/// `testNoStripesFromFlush`, `testOldStripesFromFlush`.
#[test]
fn a_flush_is_divided_by_the_stripes_that_are_there() {
    let four = case(3, "1:5 2:5 3:5", &[("hbase.store.stripe.initialStripeCount", "4")]);
    let (layout, settings) = (&four.layout, &four.settings.stripes);
    assert_eq!(of_flush(layout, settings, 100), Some(RowCut::At { ends: vec![row(1), row(2)], whole: 0..0 }));
    let none = of_flush(&Layout::default(), settings, 100);
    assert_eq!(none, Some(RowCut::After { cells: 25, max_files: 4, within: RowRange::ALL }));
    let level0 = case(3, "1:5 2:5 3:5", &[("hbase.store.stripe.compaction.flushToL0", "true")]);
    assert_eq!(of_flush(layout, &level0.settings.stripes, 100), None);
}

/// `testNothingToCompactFromL0`, `testInitialCountFromL0`.
#[test]
fn level_0_makes_the_first_stripes() {
    assert_eq!(case(0, "0:2 0:2 0:2", &[]).select(), None, "three are not four");
    let four = [SPLIT[0], ("hbase.store.stripe.initialStripeCount", "4")];
    assert_eq!(case(0, "0:2 0:2 0:2 0:2", &four).select(), by_count(&[0, 1, 2, 3], RowRange::ALL, 4, 2, true));
    // As many parts as make them of the size that is wanted: 6000 bytes are six of a thousand.
    let large = case(0, "0:1500 0:1500 0:1500 0:1500", &SPLIT);
    assert_eq!(large.select(), by_count(&[0, 1, 2, 3], RowRange::ALL, 6, 1000, true));
}

/// `testExistingStripesFromL0`, `testSelectL0Compaction`.
#[test]
fn level_0_is_divided_among_the_stripes() {
    let few = case(3, "1:20 2:20 3:20 0:3 0:3 0:3", &[]);
    assert_eq!(few.select(), None);
    let due = case(3, "1:20 2:20 3:20 0:3 0:3 0:3 0:3", &[]);
    assert_eq!(due.select(), at_ends(&[3, 4, 5, 6], &due, 0..0, None));
    // Larger than one compaction may be: the newest of it.
    let max = [("hbase.hstore.compaction.max.size", "7"), ("hbase.store.stripe.compaction.minFiles", "9")];
    let large = case(3, "1:20 2:20 3:20 0:3 0:3 0:3 0:3", &max);
    assert_eq!(large.select(), at_ends(&[4, 5, 6], &large, 0..0, None));
}

/// `testWithParallelCompaction`'s single stripe, `testSingleStripeCompaction`, `testCheckExpiredStripeCompaction`.
#[test]
fn one_stripe_is_compacted_as_a_small_store_would_be() {
    let whole = case(3, "1:2 2:2 2:2 3:2 2:2 2:2", &[]);
    assert_eq!(whole.select(), by_count(&[1, 2, 4, 5], rows(1, 2, 3), 1, u64::MAX, true));
    // The one with the most files, then that with the fewest bytes.
    let two = case(2, "1:3 1:3 1:3 1:3 2:2 2:2 2:2 2:2", &[]);
    assert_eq!(two.select(), by_count(&[4, 5, 6, 7], rows(1, 2, 2), 1, u64::MAX, true));
    let more = case(2, "1:3 1:3 1:3 1:3 1:3 2:2 2:2 2:2 2:2", &[]);
    assert_eq!(more.select(), by_count(&[0, 1, 2, 3, 4], rows(0, 1, 2), 1, u64::MAX, true));
    // Without its oldest the delete markers stay.
    let part = case(2, "1:900 1:3 1:3 1:3 1:3 2:2", &[]);
    assert_eq!(part.select(), by_count(&[1, 2, 3, 4], rows(0, 1, 2), 1, u64::MAX, false));
    // As they do with something at level 0, which may be older or newer.
    let above = case(2, "1:3 1:3 1:3 1:3 0:1 2:2", &[]);
    assert_eq!(above.select(), by_count(&[0, 1, 2, 3], rows(0, 1, 2), 1, u64::MAX, false));
}

/// `testSplitOffStripe`.
#[test]
fn a_large_stripe_is_divided() {
    let large = case(2, "1:600 1:600 1:600 1:600 2:2", &SPLIT);
    assert_eq!(large.select(), by_count(&[0, 1, 2, 3], rows(0, 1, 2), 2, 1200, true));
    let parts = [("hbase.store.stripe.sizeToSplit", "300"), ("hbase.store.stripe.splitPartCount", "3")];
    let larger = case(2, "1:125 1:125 1:125 1:125 2:2", &parts);
    assert_eq!(larger.select(), by_count(&[0, 1, 2, 3], rows(0, 1, 2), 5, 100, true), "500 bytes are five of 100");
    let enough = case(2, "1:499 1:500 1:500 1:500 2:2", &SPLIT);
    assert_eq!(enough.select(), by_count(&[0, 1, 2, 3], rows(0, 1, 2), 1, u64::MAX, true), "a byte less");
}

/// `testSplitOffStripeDropDeletes`, `testSingleStripeDropDeletes`.
#[test]
fn level_0_goes_with_a_whole_stripe_for_its_delete_markers() {
    let both = case(2, "1:9 1:9 1:9 1:9 2:2 0:5 0:5 0:5 0:5", &[]);
    assert_eq!(both.select(), at_ends(&[0, 1, 2, 3, 5, 6, 7, 8], &both, 0..1, Some(rows(0, 1, 2))));
    let large = case(2, "1:600 1:600 1:600 1:600 2:2 0:5 0:5 0:5 0:5", &SPLIT);
    assert_eq!(large.select(), at_ends(&[5, 6, 7, 8], &large, 0..0, None), "not with one that is to be divided");
}

/// `testMergeExpiredStripes`, `testMergeExpiredFiles`.
#[test]
fn stripes_of_which_all_has_expired_become_one() {
    let inner = case(4, "1:5 2:5x 3:5x 2:4x 4:5", &[]);
    assert_eq!(inner.select(), by_count(&[1, 2, 3], rows(1, 3, 4), 1, u64::MAX, true));
    let one = case(3, "1:5 2:5x 3:5", &[]);
    assert_eq!(one.select(), by_count(&[1, 2], rows(1, 3, 3), 1, u64::MAX, true), "with its neighbour");
    assert_eq!(case(3, "1:5 2:5 3:5x", &[]).select(), None, "the last alone stays");
    let eternal = Case { oldest_unexpired: None, ..case(3, "1:5 2:5x 3:5x", &[]) };
    assert_eq!(eternal.select(), None);
    let level0 = case(2, "1:5 2:5 0:3x", &[]);
    assert_eq!(level0.select(), at_ends(&[2], &level0, 0..0, None));
}

/// `testSplitAfterRegionSplit`'s references: everything is written anew.
#[test]
fn references_are_compacted_with_all_files() {
    let daughter = case(2, "1:500r 2:500 0:10", &SPLIT);
    assert_eq!(daughter.select(), by_count(&[0, 1, 2], RowRange::ALL, 512, 1010, true));
}

#[test]
fn parts_are_bounded_whatever_the_settings_say() {
    let tiny = [("hbase.store.stripe.sizeToSplit", "1")];
    let large = case(0, "0:4000000000 0:4000000000 0:4000000000 0:4000000000", &tiny);
    assert_eq!(large.select(), by_count(&[0, 1, 2, 3], RowRange::ALL, 512, 31_250_000, true));
}

/// `TestStripeStoreFileManager#testGetSplitPointEdgeCases` and `testGetStripeBoundarySplits`.
#[test]
fn a_region_is_split_between_stripes_unless_that_is_unequal() {
    use SplitAt::{End, Middle, MiddleOfAll};
    for (sizes, imbalance, expected) in [
        (&[][..], 1.5, MiddleOfAll),
        (&[5], 1.5, MiddleOfAll),
        (&[2, 2], 1.5, End(0)),
        (&[3, 3, 6], 1.5, End(1)),
        (&[1, 1, 1, 1, 2], 1.5, End(2)),
        // 3 and 9, or in the middle of the 9 6 and 6.
        (&[3, 9], 1.5, Middle(1)),
        (&[3, 9], 4.0, End(0)),
        (&[9, 3], 1.5, Middle(0)),
        (&[0, 0, 7], 1.5, MiddleOfAll),
    ] {
        assert_eq!(split_at(sizes, imbalance), expected, "{sizes:?} {imbalance}");
    }
}
