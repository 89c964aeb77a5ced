//! Which files to compact. Follows: `SortedCompactionPolicy`, `RatioBasedCompactionPolicy`, `ExploringCompactionPolicy`.

use super::Output;
use super::date_tiers::{TierFile, Tiering};
use super::stripes::{Selector, StripedFile};
use crate::RegionSettings;
use crate::settings::CompactionPolicy;
use crate::store_file::StoreFile;
use crate::stripes::{Layout, RowRange};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The files chosen, oldest first; none: nothing to do.
pub(super) struct Choice {
    pub files: Vec<Arc<StoreFile>>,
    pub is_major: bool,
    pub output: Output,
    /// Of a part of the store: the rows of which all files are chosen.
    pub drops: Option<RowRange>,
}

impl Choice {
    fn nothing() -> Choice {
        Choice { files: Vec::new(), is_major: false, output: Output::One, drops: None }
    }

    /// No more files than one compaction takes, unless somebody asked for a major one. It is one only if these are all `store_files`.
    fn of(
        mut files: Vec<Arc<StoreFile>>,
        output: Output,
        is_major: bool,
        force_major: bool,
        store_files: usize,
        settings: &RegionSettings,
    ) -> Choice {
        if !(is_major && force_major) {
            files.truncate(settings.compaction_max_files);
        }
        let is_major = is_major && files.len() == store_files;
        Choice { files, is_major, output, drops: None }
    }
}

/// What may be chosen from. Follows: `SortedCompactionPolicy#selectCompaction`.
struct Candidates<'f> {
    files: &'f [Arc<StoreFile>],
    /// Whether these are all of the store.
    all: bool,
    stuck: bool,
}

impl<'f> Candidates<'f> {
    fn of(
        files: &'f [Arc<StoreFile>],
        compacting: &BTreeSet<String>,
        settings: &RegionSettings,
        force_major: bool,
    ) -> Candidates<'f> {
        let busy = files.iter().filter(|file| compacting.contains(&file.name)).count();
        let stuck = files.len() - busy + usize::from(busy > 0) >= settings.blocking_store_files;
        let mut candidates = idle(files, compacting);
        if !(force_major && candidates.len() == files.len()) {
            let too_large =
                |file: &Arc<StoreFile>| !file.is_reference() && file.len_bytes() > settings.compaction_max_size_bytes;
            let skip = candidates.iter().take_while(|file| too_large(file)).count();
            candidates = &candidates[skip..];
        }
        Candidates { files: candidates, all: candidates.len() == files.len(), stuck }
    }

    fn has_references(&self) -> bool {
        self.files.iter().any(|file| file.is_reference())
    }
}

/// Only files newer than any in a running job: selections stay contiguous.
fn idle<'f>(files: &'f [Arc<StoreFile>], compacting: &BTreeSet<String>) -> &'f [Arc<StoreFile>] {
    let first = files.iter().rposition(|file| compacting.contains(&file.name)).map_or(0, |at| at + 1);
    &files[first..]
}

/// Files of one age by their newest cell: compactions by windows make several of the same age. Follows:
/// `StoreFileComparators#SEQ_ID_MAX_TIMESTAMP`.
fn by_age_and_time(files: &[Arc<StoreFile>]) -> Vec<Arc<StoreFile>> {
    let mut files = files.to_vec();
    files.sort_by_key(|file| (file.max_seq_id, file.reader.time_range().map_or(i64::MAX, |(_, newest)| newest)));
    files
}

/// Whether a store in tiers has enough files in some window. Follows: `DateTieredCompactionPolicy#needsCompaction`.
pub(super) fn wants_minor_in_tiers(
    files: &[Arc<StoreFile>],
    compacting: &BTreeSet<String>,
    tiering: Tiering<'_>,
    settings: &RegionSettings,
    now: i64,
) -> bool {
    let files = by_age_and_time(files);
    let idle: Vec<TierFile> = idle(&files, compacting).iter().map(|file| TierFile::of(file)).collect();
    tiering.minor(&idle, settings, now, true).is_some()
}

/// As [`choose`], of a store that keeps its files by windows of time. Follows: `DateTieredCompactionPolicy`.
pub(super) fn choose_in_tiers(
    files: &[Arc<StoreFile>],
    compacting: &BTreeSet<String>,
    tiering: Tiering<'_>,
    settings: &RegionSettings,
    ttl_ms: Option<i64>,
    force_major: bool,
    now: i64,
) -> Choice {
    let sorted = by_age_and_time(files);
    let candidates = Candidates::of(&sorted, compacting, settings, force_major);
    let facts: Vec<TierFile> = candidates.files.iter().map(|file| TierFile::of(file)).collect();
    let is_due = || {
        candidates.files.len() < settings.compaction_max_files
            && is_interval_over(candidates.files, settings, now)
            && tiering.wants_major(&facts, settings, ttl_ms, now)
    };
    let is_major = (force_major && candidates.all) || is_due();
    let (chosen, output) = if is_major || candidates.has_references() {
        (candidates.files.to_vec(), tiering.major_output(&facts, settings, now))
    } else {
        match tiering.minor(&facts, settings, now, candidates.stuck) {
            Some((run, output)) => (candidates.files[run].to_vec(), output),
            None => (Vec::new(), Output::One),
        }
    };
    Choice::of(chosen, output, is_major, force_major, files.len(), settings)
}

/// As [`choose`], of a store in stripes, while no other compaction of it runs. There is no major one of all files, asked for or not. Follows:
/// `StripeCompactionPolicy#shouldPerformMajorCompaction`.
pub(super) fn choose_in_stripes(
    files: &[Arc<StoreFile>],
    layout: &Layout,
    settings: &RegionSettings,
    oldest_unexpired: Option<i64>,
    now: i64,
) -> Choice {
    let facts: Vec<StripedFile> = files.iter().map(|file| StripedFile::of(file)).collect();
    match (Selector { layout, files: &facts, settings, oldest_unexpired, now }).select() {
        Some(plan) => Choice {
            files: plan.files.iter().map(|at| files[*at].clone()).collect(),
            is_major: false,
            output: Output::ByRow(plan.cut),
            drops: plan.drops,
        },
        None => Choice::nothing(),
    }
}

/// `files` oldest first; `compacting` are the names of those in running jobs.
pub(super) fn choose(
    files: &[Arc<StoreFile>],
    compacting: &BTreeSet<String>,
    settings: &RegionSettings,
    ttl_ms: Option<i64>,
    force_major: bool,
    now: i64,
) -> Choice {
    if settings.compaction_policy == CompactionPolicy::Fifo && !files.iter().any(|file| file.is_reference()) {
        return Choice::nothing();
    }
    let found = Candidates::of(files, compacting, settings, force_major);
    let (candidates, all, stuck) = (found.files, found.all, found.stuck);
    let is_due = is_major_due(candidates, settings, ttl_ms, now) && candidates.len() < settings.compaction_max_files;
    let is_major = (force_major && all) || is_due;
    let chosen: Vec<Arc<StoreFile>> = if is_major || found.has_references() {
        candidates.to_vec()
    } else {
        let eligible: Vec<Arc<StoreFile>> =
            candidates.iter().filter(|file| !file.reader.exclude_from_minor()).cloned().collect();
        let sizes: Vec<u64> = eligible.iter().map(|file| file.len_bytes()).collect();
        let (min, ratio) = (settings.compaction_min_files, ratio_at(settings, now));
        let run = match settings.compaction_policy {
            CompactionPolicy::Exploring => {
                explore_sizes(&sizes, settings, min..=settings.compaction_max_files, ratio, stuck)
            }
            CompactionPolicy::RatioBased => within_ratio(&sizes, settings, min, ratio, stuck),
            CompactionPolicy::Fifo => None,
        };
        run.map_or_else(Vec::new, |(start, end)| eligible[start..end].to_vec())
    };
    Choice::of(chosen, Output::One, is_major, force_major, files.len(), settings)
}

/// Whether the oldest file is older than the interval. Follows: `RatioBasedCompactionPolicy#shouldPerformMajorCompaction`.
fn is_major_due(files: &[Arc<StoreFile>], settings: &RegionSettings, ttl_ms: Option<i64>, now: i64) -> bool {
    if !is_interval_over(files, settings, now) {
        return false;
    }
    match files {
        // A single major-compacted file is rewritten only for what has expired inside.
        [file] if file.reader.is_major_compacted() => {
            let age = file.reader.time_range().map_or(i64::MIN, |(min, _)| now.saturating_sub(min));
            ttl_ms.is_some_and(|ttl| age > ttl)
        }
        _ => true,
    }
}

/// Whether the oldest file was made longer ago than the interval, which is not the same for all stores.
fn is_interval_over(files: &[Arc<StoreFile>], settings: &RegionSettings, now: i64) -> bool {
    let interval = settings.major_compaction_interval_ms;
    if files.is_empty() || interval == 0 {
        return false;
    }
    let Some(oldest) = files.iter().filter_map(|file| file.created_ms()).min() else { return false };
    // The same files always give the same jitter, so a restart does not bring all majors at once.
    let seed = files
        .iter()
        .flat_map(|file| file.name.bytes())
        .fold(0u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    let fraction = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
    let jitter = interval as f64 * settings.major_compaction_jitter;
    let interval = interval as f64 + jitter - 2.0 * jitter * fraction;
    (now - oldest) as f64 > interval
}

/// How much larger than the others a file may be now.
pub(super) fn ratio_at(settings: &RegionSettings, now: i64) -> f64 {
    if settings.offpeak_hours.contains(now) { settings.compaction_ratio_offpeak } else { settings.compaction_ratio }
}

/// From the oldest file on that is small or within the ratio of the newer ones, of which so many count as one compaction takes. Follows:
/// `RatioBasedCompactionPolicy#applyCompactionPolicy`.
pub(super) fn within_ratio(
    sizes: &[u64],
    settings: &RegionSettings,
    min: usize,
    ratio: f64,
    stuck: bool,
) -> Option<(usize, usize)> {
    let max = settings.compaction_max_files;
    let is_too_large = |start: usize| {
        let newer: u64 = sizes[start + 1..].iter().take(max.saturating_sub(1)).sum();
        sizes[start] > settings.compaction_min_size_bytes.max((newer as f64 * ratio) as u64)
    };
    let mut start = 0;
    while sizes.len() - start >= min && is_too_large(start) {
        start += 1;
    }
    if sizes.len() - start >= min {
        return Some((start, sizes.len()));
    }
    // Stuck: the newest, if there are enough.
    (stuck && sizes.len() >= min && start == sizes.len()).then(|| (sizes.len() - min, sizes.len()))
}

/// The contiguous run of so many that gets rid of the most files for the least bytes, all within the ratio.
pub(super) fn explore_sizes(
    sizes: &[u64],
    settings: &RegionSettings,
    counts: RangeInclusive<usize>,
    ratio: f64,
    stuck: bool,
) -> Option<(usize, usize)> {
    let (min, max) = counts.into_inner();
    let mut best: Option<(usize, usize, u64)> = None;
    let mut smallest: Option<(usize, usize, u64)> = None;
    for start in 0..sizes.len() {
        for end in start + min..=sizes.len().min(start + max) {
            let run = &sizes[start..end];
            let size: u64 = run.iter().sum();
            if stuck && smallest.is_none_or(|(_, _, least)| size < least) {
                smallest = Some((start, end, size));
            }
            if size > settings.compaction_max_size_bytes {
                continue;
            }
            let in_ratio = run.iter().all(|one| *one as f64 <= (size - one) as f64 * ratio);
            if size >= settings.compaction_min_size_bytes && !in_ratio {
                continue;
            }
            if is_better(best, (start, end, size), stuck) {
                best = Some((start, end, size));
            }
        }
    }
    best.or(smallest).map(|(start, end, _)| (start, end))
}

fn is_better(best: Option<(usize, usize, u64)>, (start, end, size): (usize, usize, u64), stuck: bool) -> bool {
    let Some((best_start, best_end, best_size)) = best else { return true };
    let (count, best_count) = (end - start, best_end - best_start);
    if stuck && best_size > 0 && size > 0 {
        return best_count as f64 / best_size as f64 * 1.05 < count as f64 / size as f64;
    }
    count > best_count || (count == best_count && size < best_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(min_size: u64) -> RegionSettings {
        let mut settings = RegionSettings::default();
        settings.compaction_min_size_bytes = min_size;
        settings
    }

    #[test]
    fn selections_follow_the_exploring_policy() {
        // From HBase's own expectations: all small files go together; a file far larger than the rest stays out.
        assert_eq!(explore_sizes(&[10, 10, 10], &settings(100), 3..=10, 1.2, false), Some((0, 3)));
        assert_eq!(explore_sizes(&[10, 10], &settings(100), 3..=10, 1.2, false), None);
        assert_eq!(explore_sizes(&[100_000, 50, 23, 12, 12], &settings(10), 3..=10, 1.2, false), Some((1, 5)));
        assert_eq!(explore_sizes(&[1000, 100, 10], &settings(10), 3..=10, 1.2, false), None);
        assert_eq!(explore_sizes(&[1000, 100, 10], &settings(10), 3..=10, 1.2, true), Some((0, 3)));
        let many = vec![5; 30];
        assert_eq!(explore_sizes(&many, &settings(1), 3..=10, 1.2, false), Some((0, 10)));
    }

    #[test]
    fn the_ratio_based_policy_takes_all_from_the_first_that_fits() {
        let choose = |sizes: &[u64], ratio, stuck| within_ratio(sizes, &settings(10), 3, ratio, stuck);
        assert_eq!(choose(&[10, 10, 10], 1.2, false), Some((0, 3)), "small ones always");
        assert_eq!(choose(&[100_000, 50, 23, 12, 12], 1.0, false), Some((2, 5)), "50 is more than 23 + 12 + 12");
        assert_eq!(choose(&[100_000, 50, 23, 12, 12], 5.0, false), Some((1, 5)), "off peak it is not");
        assert_eq!(choose(&[1000, 100, 11], 1.2, false), None);
    }
}
