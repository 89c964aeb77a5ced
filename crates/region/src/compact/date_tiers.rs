//! Which files of a store in tiers to compact, and by which windows of time. Follows: `DateTieredCompactionPolicy`,
//! `ExponentialCompactionWindowFactory`.
//!
//! Windows are aligned: the newest, which holds the present time, has the base length; after every so many the earlier ones are so many
//! times as long. A file belongs to the window of its newest cell, or of that of any file before it: the order of ages and that of windows
//! are one, and a selection is contiguous in both.

use super::Output;
use super::policy::{explore_sizes, ratio_at, within_ratio};
use crate::settings::{CompactionPolicy, RegionSettings, Tiers};
use crate::store_file::StoreFile;
use std::ops::Range;
use std::sync::Arc;

/// Files that one compaction makes at most: each that is being written has its memory.
const MAX_WINDOWS: usize = 512;

/// Where the cells of one window of time are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputWindow {
    /// From this timestamp on, up to the next window's; `i64::MIN` for all that is earlier.
    pub start_ms: i64,
    /// Storage policy of the file, if the window has one.
    pub policy: Option<Arc<str>>,
}

/// What a selection looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierFile {
    /// Timestamps of its earliest and latest cell, if it has any.
    times: Option<(i64, i64)>,
    len_bytes: u64,
    /// Whether a major compaction made it.
    is_major: bool,
    /// The least and the greatest tiering value of its cells, if a compaction by those made it.
    values: Option<(i64, i64)>,
}

impl TierFile {
    pub(super) fn of(file: &StoreFile) -> TierFile {
        TierFile {
            times: file.reader.time_range(),
            len_bytes: file.len_bytes(),
            is_major: file.reader.is_major_compacted() && !file.is_bulk_loaded,
            values: file.reader.tiering_values(),
        }
    }

    fn earliest(&self) -> i64 {
        self.times.map_or(i64::MAX, |(earliest, _)| earliest)
    }
}

/// How a store in tiers tells old from new.
#[derive(Clone, Copy)]
pub(crate) enum Tiering<'s> {
    /// By the timestamps of cells.
    Times,
    /// By the values that rows have in this column.
    Values(&'s Arc<[u8]>),
}

impl Tiering<'_> {
    /// How the files are divided anew when all of them are compacted.
    pub(super) fn major_output(self, files: &[TierFile], settings: &RegionSettings, now: i64) -> Output {
        match self {
            Tiering::Times => Output::ByTime(major_windows(files, settings, now)),
            Tiering::Values(qualifier) => {
                Output::ByValue { windows: windows_of_values(files, settings, now), qualifier: qualifier.clone() }
            }
        }
    }

    /// Whether files that are old enough for it are worth a major compaction.
    pub(super) fn wants_major(
        self,
        files: &[TierFile],
        settings: &RegionSettings,
        ttl_ms: Option<i64>,
        now: i64,
    ) -> bool {
        match self {
            Tiering::Times => wants_major(files, settings, ttl_ms, now),
            Tiering::Values(_) => wants_major_by_value(files, settings, ttl_ms, now),
        }
    }

    /// Files worth a minor compaction, and how they are divided. `files` oldest first.
    pub(super) fn minor(
        self,
        files: &[TierFile],
        settings: &RegionSettings,
        now: i64,
        stuck: bool,
    ) -> Option<(Range<usize>, Output)> {
        match self {
            Tiering::Times => minor(files, settings, now, stuck).map(|(run, windows)| (run, Output::ByTime(windows))),
            Tiering::Values(_) => {
                if files.len() < settings.compaction_min_files {
                    return None;
                }
                let run = choose_in(files, settings, settings.compaction_min_files, now, stuck)?;
                let output = self.major_output(&files[run.clone()], settings, now);
                Some((run, output))
            }
        }
    }
}

/// Two windows of values, of which the second begins where the age limit is, where there are values on both sides of it; the first of all holds nothing then. Files that
/// no compaction by values made have none: the first such compaction makes one file. Follows: `CustomDateTieredCompactionPolicy#getCompactBoundariesForMajor`.
fn windows_of_values(files: &[TierFile], settings: &RegionSettings, now: i64) -> Vec<OutputWindow> {
    let cutoff = now.saturating_sub(settings.tiers.value_age_limit_ms);
    let least = files.iter().filter_map(|file| file.values).map(|(least, _)| least).min().unwrap_or(i64::MAX);
    let greatest = files.iter().filter_map(|file| file.values).map(|(_, greatest)| greatest).max().unwrap_or(0);
    let mut starts = vec![i64::MIN];
    if least < cutoff {
        starts.push(least);
        if greatest > cutoff {
            starts.push(cutoff);
        }
    }
    starts.dedup();
    let of = |start_ms: i64| OutputWindow { start_ms, policy: place_of_window(&settings.tiers, start_ms, now) };
    starts.into_iter().map(of).collect()
}

/// Whether there is a file that no major compaction made, one with values on both sides of the age limit, or two on one side. Follows:
/// `CustomDateTieredCompactionPolicy#shouldPerformMajorCompaction`.
fn wants_major_by_value(files: &[TierFile], settings: &RegionSettings, ttl_ms: Option<i64>, now: i64) -> bool {
    let cutoff = now.saturating_sub(settings.tiers.value_age_limit_ms);
    let (mut older, mut newer) = (0, 0);
    for file in files {
        let expired = |(earliest, _): (i64, i64)| ttl_ms.is_some_and(|ttl| now.saturating_sub(earliest) >= ttl);
        let Some((least, greatest)) = file.values else { return true };
        if file.times.is_some_and(expired) || !file.is_major || (least < cutoff && greatest > cutoff) {
            return true;
        }
        if least < cutoff { older += 1 } else { newer += 1 }
    }
    older > 1 || newer > 1
}

/// One window; it knows how those before it are made.
#[derive(Clone, Copy, Debug)]
struct Window {
    len_ms: i64,
    /// A timestamp is in it whose quotient by the length this is.
    at: i64,
    per_tier: i64,
    /// Windows do not become longer before it.
    cutoff_ms: i64,
}

impl Window {
    fn incoming(tiers: &Tiers, now: i64) -> Window {
        let len_ms = tiers.base_window_ms;
        let cutoff_ms = now.saturating_sub(tiers.max_age_ms);
        Window { len_ms, at: now / len_ms, per_tier: tiers.windows_per_tier, cutoff_ms }
    }

    fn place_of(&self, time: i64) -> i64 {
        // Division that rounds down, also below zero.
        if time < 0 { time.saturating_sub(self.len_ms - 1) / self.len_ms } else { time / self.len_ms }
    }

    fn is_after(&self, time: i64) -> bool {
        self.at > self.place_of(time)
    }

    fn is_before(&self, time: i64) -> bool {
        self.at < self.place_of(time)
    }

    fn start_ms(&self) -> i64 {
        self.len_ms.checked_mul(self.at).unwrap_or(i64::MIN)
    }

    /// Whether it, and so all before it, are followed by windows of their own length.
    fn is_last_tier(&self) -> bool {
        self.per_tier == 1 || self.start_ms().saturating_sub(self.len_ms.saturating_mul(self.per_tier)) < self.cutoff_ms
    }

    fn earlier(self) -> Window {
        if self.at % self.per_tier > 0 || self.is_last_tier() {
            return Window { at: self.at - 1, ..self };
        }
        Window { len_ms: self.len_ms.saturating_mul(self.per_tier), at: self.at / self.per_tier - 1, ..self }
    }

    /// An earlier window, not past the one of `time`: at once where those between are of one length.
    fn earlier_towards(self, time: i64) -> Window {
        if self.is_last_tier() { Window { at: self.place_of(time), ..self } } else { self.earlier() }
    }
}

fn place_of_window(tiers: &Tiers, start_ms: i64, now: i64) -> Option<Arc<str>> {
    let places = tiers.places.as_ref()?;
    Some(if start_ms >= now.saturating_sub(places.hot_age_ms) {
        places.hot.clone()
    } else if start_ms >= now.saturating_sub(places.warm_age_ms) {
        places.warm.clone()
    } else {
        places.cold.clone()
    })
}

/// The windows of all files: one for what is earlier than any that has a whole window before the present.
pub(super) fn major_windows(files: &[TierFile], settings: &RegionSettings, now: i64) -> Vec<OutputWindow> {
    let tiers = &settings.tiers;
    let earliest = files.iter().map(TierFile::earliest).min().unwrap_or(i64::MAX);
    let mut starts = Vec::new();
    let mut window = Window::incoming(tiers, now);
    while window.is_after(earliest) && starts.len() < MAX_WINDOWS - 1 {
        starts.push(window.start_ms());
        window = window.earlier();
    }
    starts.push(i64::MIN);
    starts.dedup();
    let of = |start_ms: i64| OutputWindow { start_ms, policy: place_of_window(tiers, start_ms, now) };
    starts.into_iter().rev().map(of).collect()
}

/// Whether files that are old enough for it are worth a major compaction: there are some that none made, two in one window, or one in two.
/// Follows: `DateTieredCompactionPolicy#shouldPerformMajorCompaction`.
pub(super) fn wants_major(files: &[TierFile], settings: &RegionSettings, ttl_ms: Option<i64>, now: i64) -> bool {
    let windows = major_windows(files, settings, now);
    let window_of = |time: i64| windows.partition_point(|window| window.start_ms <= time).saturating_sub(1);
    let mut taken = vec![false; windows.len()];
    files.iter().any(|file| {
        let expired = |(earliest, _): (i64, i64)| ttl_ms.is_some_and(|ttl| now.saturating_sub(earliest) >= ttl);
        let (first, last) = (window_of(file.earliest()), window_of(file.times.map_or(i64::MAX, |(_, last)| last)));
        file.times.is_some_and(expired) || !file.is_major || first != last || std::mem::replace(&mut taken[last], true)
    })
}

/// The newest window with files worth a compaction: which they are, and by which windows they are written. `files` oldest first.
pub(super) fn minor(
    files: &[TierFile],
    settings: &RegionSettings,
    now: i64,
    stuck: bool,
) -> Option<(Range<usize>, Vec<OutputWindow>)> {
    let tiers = &settings.tiers;
    let oldest = now.saturating_sub(tiers.max_file_age_ms);
    let newest_so_far = files.iter().scan(i64::MIN, |newest, file| {
        *newest = file.times.map_or(*newest, |(_, last)| last.max(*newest));
        Some(*newest)
    });
    let times: Vec<i64> = newest_so_far.collect();
    let mut window = Window::incoming(tiers, now);
    let mut min_files = tiers.incoming_min_files;
    let mut end = files.len();
    while end > 0 && !window.is_before(oldest) {
        if window.is_after(times[end - 1]) {
            window = window.earlier_towards(times[end - 1]);
            min_files = settings.compaction_min_files;
            continue;
        }
        let start = times[..end].partition_point(|time| window.is_after(*time));
        let of_window = &files[start..end];
        if of_window.len() >= min_files
            && let Some(run) = choose_in(of_window, settings, min_files, now, stuck)
        {
            let is_whole = run.len() == of_window.len();
            let single = !is_whole || tiers.single_output;
            let policy = place_of_window(tiers, window.start_ms(), now);
            let windows = match single {
                true => vec![OutputWindow { start_ms: i64::MIN, policy }],
                false => vec![
                    OutputWindow { start_ms: i64::MIN, policy: None },
                    OutputWindow { start_ms: window.start_ms(), policy },
                ],
            };
            return Some((start + run.start..start + run.end, windows));
        }
        end = start;
    }
    None
}

fn choose_in(files: &[TierFile], settings: &RegionSettings, min: usize, now: i64, stuck: bool) -> Option<Range<usize>> {
    if stuck {
        return Some(0..files.len());
    }
    let sizes: Vec<u64> = files.iter().map(|file| file.len_bytes).collect();
    let ratio = ratio_at(settings, now);
    let run = match settings.tiers.policy {
        CompactionPolicy::RatioBased => within_ratio(&sizes, settings, min, ratio, false),
        CompactionPolicy::Exploring | CompactionPolicy::Fifo => {
            explore_sizes(&sizes, settings, min..=settings.compaction_max_files, ratio, false)
        }
    };
    run.map(|(start, end)| start..end)
}

#[cfg(test)]
#[path = "date_tiers_tests.rs"]
mod tests;
