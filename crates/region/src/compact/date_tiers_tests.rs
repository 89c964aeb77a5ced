//! What HBase's own test of its policy (`TestDateTieredCompactionPolicy`) says of files with given times and sizes.

use super::*;
use base::Config;

const MIN: i64 = i64::MIN;

fn settings(more: &[(&str, &str)]) -> RegionSettings {
    let tiered = |key: &str| format!("hbase.hstore.compaction.date.tiered.{key}");
    let mut config = Config::default();
    for (key, value) in [
        ("max.storefile.age.millis", "100"),
        ("incoming.window.min", "3"),
        ("base.window.millis", "6"),
        ("windows.per.tier", "4"),
        ("single.output.for.minor.compaction", "false"),
    ] {
        config.set(tiered(key), value);
    }
    for (key, value) in [("min", "2"), ("max", "12"), ("ratio", "1.2"), ("min.size", "10"), ("max.size", "2100")] {
        config.set(format!("hbase.hstore.compaction.{key}"), value);
    }
    more.iter().for_each(|(key, value)| config.set(tiered(key), *value));
    RegionSettings::from_config(&config)
}

fn files(earliest: &[i64], latest: &[i64], sizes: &[u64]) -> Vec<TierFile> {
    let file = |at: usize| TierFile {
        times: Some((earliest[at.min(earliest.len() - 1)], latest[at])),
        len_bytes: sizes[at],
        is_major: true,
        values: None,
    };
    (0..latest.len()).map(file).collect()
}

/// Sizes of what a minor compaction takes, and where its windows begin.
fn minor_of(now: i64, earliest: i64, latest: &[i64], sizes: &[u64]) -> (Vec<u64>, Vec<i64>) {
    let files = files(&[earliest], latest, sizes);
    let (run, windows) = minor(&files, &settings(&[]), now, false).expect("something is worth it");
    assert!(minor(&files, &settings(&[]), now, true).is_some());
    (sizes[run].to_vec(), windows.iter().map(|window| window.start_ms).collect())
}

#[test]
fn the_newest_window_waits_for_files_of_its_own() {
    let latest: Vec<i64> = (1..=15).collect();
    let sizes = [30, 31, 32, 33, 34, 20, 21, 22, 23, 24, 25, 10, 11, 12, 13];
    assert_eq!(minor_of(16, 0, &latest, &sizes), (vec![10, 11, 12, 13], vec![MIN, 12]));
    let too_few = (vec![20, 21, 22, 23, 24, 25], vec![MIN, 6]);
    assert_eq!(minor_of(16, 0, &latest[..13], &sizes[..13]), too_few, "two are not three");
    for future in [18, 19] {
        let mut latest = latest.clone();
        latest[14] = future;
        assert_eq!(minor_of(16, 0, &latest, &sizes), (vec![10, 11, 12, 13], vec![MIN, 12]), "{future}");
    }
}

#[test]
fn earlier_windows_are_longer() {
    let chosen = minor_of(194, 0, &[44, 60, 61, 97, 100, 193], &[0, 20, 21, 22, 23, 1]);
    assert_eq!(chosen, (vec![22, 23], vec![MIN, 96]), "nothing in the first tier");
    let latest = [44, 60, 61, 96, 100, 104, 120, 124, 143, 145, 157];
    let chosen = minor_of(161, 0, &latest, &[0, 50, 51, 40, 41, 42, 30, 31, 32, 2, 1]);
    assert_eq!(chosen, (vec![30, 31, 32], vec![MIN, 120]));
    let latest = [44, 60, 61, 96, 100, 104, 105, 106, 113, 145, 157];
    let chosen = minor_of(161, 0, &latest, &[0, 50, 51, 40, 41, 42, 33, 30, 31, 2, 1]);
    assert_eq!(chosen, (vec![40, 41, 42, 33, 30, 31], vec![MIN, 96]), "what is older than 100 is left alone");
}

#[test]
fn a_part_of_a_window_becomes_one_file() {
    let latest: Vec<i64> = (1..=12).collect();
    let sizes = [30, 31, 32, 33, 34, 20, 21, 22, 280, 23, 24, 1];
    assert_eq!(minor_of(16, 0, &latest, &sizes), (vec![20, 21, 22], vec![MIN]));
    let latest = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12];
    let sizes = [30, 31, 32, 33, 34, 22, 280, 23, 24, 1];
    assert_eq!(minor_of(16, 0, &latest, &sizes), (vec![23, 24], vec![MIN]), "and what comes after it");
    let latest = [44, 60, 61, 96, 100, 104, 120, 124, 143, 145, 157];
    let sizes = [0, 50, 51, 40, 41, 42, 350, 30, 31, 2, 1];
    assert_eq!(minor_of(161, 0, &latest, &sizes), (vec![30, 31], vec![MIN]));
}

#[test]
fn late_data_belongs_to_the_window_of_the_files_before_it() {
    let latest = [0, 13, 3, 10, 11, 1, 2, 12, 14, 15];
    let sizes = [30, 31, 32, 33, 34, 22, 28, 23, 24, 1];
    assert_eq!(minor_of(16, 0, &latest, &sizes), (sizes[1..].to_vec(), vec![MIN, 12]));
    let latest = [-28, -11, -10, -9, -8, -7, -6, -5, -4, -3];
    let sizes = [30, 31, 32, 33, 34, 22, 25, 23, 24, 1];
    assert_eq!(minor_of(1, -1000, &latest, &sizes), (sizes[1..].to_vec(), vec![MIN, -24]), "before 1970");
}

fn major_of(now: i64, files: &[TierFile], worth_it: bool) -> Vec<i64> {
    assert_eq!(wants_major(files, &settings(&[]), None, now), worth_it);
    major_windows(files, &settings(&[]), now).iter().map(|window| window.start_ms).collect()
}

#[test]
fn a_major_compaction_makes_a_file_of_every_window() {
    let sizes = [0, 50, 51, 40, 41, 42, 33, 30, 31, 2, 1];
    let at_161 = [MIN, 24, 48, 72, 96, 120, 144, 150, 156];
    let latest = [44, 60, 61, 96, 100, 104, 105, 106, 113, 145, 157];
    assert_eq!(major_of(161, &files(&[0], &latest, &sizes), true), at_161);
    let earliest = [0, 26, 50, 90, 98, 122, 145, 151, 158, 166];
    let latest = [12, 46, 70, 95, 100, 140, 148, 155, 162, 174];
    assert_eq!(major_of(161, &files(&earliest, &latest, &sizes), true), at_161, "two are of the newest window");
    assert_eq!(
        major_of(161, &files(&earliest[..9], &latest[..9], &sizes), false),
        at_161,
        "one in each is not worth it"
    );
    let earliest = [-155, -100, -100, -100, -100, -100, -100, -100, -100, -100, -100];
    let latest = [-8, -7, -6, -5, -4, -3, -2, -1, 0, 6, 13];
    let expected = [MIN, -144, -120, -96, -72, -48, -24, 0, 6, 12];
    assert_eq!(major_of(16, &files(&earliest, &latest, &sizes), true), expected);
}

#[test]
fn a_major_compaction_is_worth_it_for_new_and_for_expired_cells() {
    let settings = settings(&[]);
    let mut one = files(&[158], &[159], &[10]);
    assert!(!wants_major(&one, &settings, None, 161));
    assert!(!wants_major(&one, &settings, Some(4), 161));
    assert!(wants_major(&one, &settings, Some(3), 161), "its earliest cell has lived its time");
    one[0].is_major = false;
    assert!(wants_major(&one, &settings, None, 161));
}

#[test]
fn the_age_of_a_window_says_where_its_file_lies() {
    let settings = settings(&[
        ("storage.policy.enable", "true"),
        ("hot.window.age.millis", "10"),
        ("hot.window.storage.policy", "ALL_SSD"),
        ("warm.window.age.millis", "40"),
        ("warm.window.storage.policy", "ONE_SSD"),
        ("cold.window.storage.policy", "HOT"),
    ]);
    let files = files(&[0], &[44, 60, 61, 96, 100, 104, 105, 106, 113, 145, 157], &[10; 11]);
    let windows = major_windows(&files, &settings, 161);
    let policies: Vec<_> =
        windows.iter().map(|window| (window.start_ms, window.policy.as_deref().unwrap_or(""))).collect();
    assert_eq!(policies[..2], [(MIN, "HOT"), (24, "HOT")]);
    assert_eq!(policies[5..], [(120, "HOT"), (144, "ONE_SSD"), (150, "ONE_SSD"), (156, "ALL_SSD")]);
}

#[test]
fn windows_that_would_be_too_many_are_bounded() {
    let settings = settings(&[("base.window.millis", "1"), ("max.tier.age.millis", "1")]);
    let now = 1_700_000_000_000;
    let old = files(&[0], &[1, 2], &[10, 10]);
    let windows = major_windows(&old, &settings, now);
    assert_eq!((windows.len(), windows[0].start_ms), (MAX_WINDOWS, MIN));
    let eternal = settings_of_all_time();
    let (run, _) = minor(&old, &eternal, now, true).expect("both are of some window");
    assert_eq!(run, 0..2);
}

/// Windows that never grow, over all time.
fn settings_of_all_time() -> RegionSettings {
    let max = i64::MAX.to_string();
    settings(&[("base.window.millis", "10"), ("windows.per.tier", "1"), ("max.storefile.age.millis", max.as_str())])
}

/// Files of ten bytes each, whose rows have values from the first to the second.
fn files_of_values(values: &[Option<(i64, i64)>]) -> Vec<TierFile> {
    values.iter().map(|values| TierFile { values: *values, ..files(&[150], &[160], &[10])[0] }).collect()
}

#[test]
fn rows_are_divided_where_their_values_are_as_old_as_the_age_limit() {
    let settings = settings(&[("custom.age.limit.millis", "100")]);
    let starts = |values: &[Option<(i64, i64)>]| {
        let windows = windows_of_values(&files_of_values(values), &settings, 161);
        windows.iter().map(|window| window.start_ms).collect::<Vec<_>>()
    };
    assert_eq!(starts(&[None, None]), [MIN], "no compaction has looked at the rows yet");
    assert_eq!(starts(&[Some((20, i64::MAX)), None]), [MIN, 20, 61]);
    assert_eq!(starts(&[Some((61, 70)), Some((80, 90))]), [MIN], "all of them are new");
    assert_eq!(starts(&[Some((20, 61)), Some((30, 40))]), [MIN, 20], "all of them are old");
    let wants = |values: &[Option<(i64, i64)>]| wants_major_by_value(&files_of_values(values), &settings, None, 161);
    assert!(wants(&[Some((20, 60)), None]), "nobody has looked at the second's rows");
    assert!(wants(&[Some((20, 70))]), "values on both sides");
    assert!(wants(&[Some((20, 60)), Some((30, 61))]), "two that are old");
    assert!(wants(&[Some((61, 62)), Some((70, 80))]), "two that are new");
    assert!(!wants(&[Some((20, 60)), Some((70, 80))]), "one of each");
    assert!(wants_major_by_value(&files_of_values(&[Some((20, 60))]), &settings, Some(5), 161), "it has expired");
    let qualifier: Arc<[u8]> = Arc::from(*b"q");
    let minor = |count, stuck| {
        let chosen = Tiering::Values(&qualifier).minor(&files_of_values(&vec![None; count]), &settings, 161, stuck);
        chosen.map(|(run, _)| run)
    };
    assert_eq!((minor(1, true), minor(2, false), minor(3, true)), (None, Some(0..2), Some(0..3)));
}
