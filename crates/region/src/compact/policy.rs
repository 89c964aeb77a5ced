//! Which files to compact. Follows: `SortedCompactionPolicy`, `RatioBasedCompactionPolicy`, `ExploringCompactionPolicy`.

use crate::RegionSettings;
use crate::settings::CompactionPolicy;
use crate::store_file::StoreFile;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The files chosen, oldest first; none: nothing to do.
pub(super) struct Choice {
    pub files: Vec<Arc<StoreFile>>,
    pub is_major: bool,
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
        return Choice { files: Vec::new(), is_major: false };
    }
    let busy = files.iter().filter(|file| compacting.contains(&file.name)).count();
    let stuck = files.len() - busy + usize::from(busy > 0) >= settings.blocking_store_files;
    // Only files newer than any in a running job: selections stay contiguous.
    let first = files.iter().rposition(|file| compacting.contains(&file.name)).map_or(0, |at| at + 1);
    let mut candidates = &files[first..];
    let mut all = candidates.len() == files.len();
    if !(force_major && all) {
        let too_large =
            |file: &Arc<StoreFile>| !file.is_reference() && file.len_bytes() > settings.compaction_max_size_bytes;
        let skip = candidates.iter().take_while(|file| too_large(file)).count();
        candidates = &candidates[skip..];
        all = candidates.len() == files.len();
    }
    let is_due = is_major_due(candidates, settings, ttl_ms, now) && candidates.len() < settings.compaction_max_files;
    let is_major = (force_major && all) || is_due;
    let has_references = candidates.iter().any(|file| file.is_reference());
    let mut chosen: Vec<Arc<StoreFile>> = if is_major || has_references {
        candidates.to_vec()
    } else {
        let eligible: Vec<Arc<StoreFile>> =
            candidates.iter().filter(|file| !file.reader.exclude_from_minor()).cloned().collect();
        let sizes: Vec<u64> = eligible.iter().map(|file| file.len_bytes()).collect();
        let ratio = ratio_at(settings, now);
        let run = match settings.compaction_policy {
            CompactionPolicy::Exploring => explore_sizes(&sizes, settings, ratio, stuck),
            CompactionPolicy::RatioBased => within_ratio(&sizes, settings, ratio, stuck),
            CompactionPolicy::Fifo => None,
        };
        run.map_or_else(Vec::new, |(start, end)| eligible[start..end].to_vec())
    };
    if !(is_major && force_major) {
        chosen.truncate(settings.compaction_max_files);
    }
    let is_major = is_major && chosen.len() == files.len();
    Choice { files: chosen, is_major }
}

/// Whether the oldest file is older than the interval. Follows: `RatioBasedCompactionPolicy#shouldPerformMajorCompaction`.
fn is_major_due(files: &[Arc<StoreFile>], settings: &RegionSettings, ttl_ms: Option<i64>, now: i64) -> bool {
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
    if (now - oldest) as f64 <= interval {
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

/// How much larger than the others a file may be now.
fn ratio_at(settings: &RegionSettings, now: i64) -> f64 {
    if settings.offpeak_hours.contains(now) { settings.compaction_ratio_offpeak } else { settings.compaction_ratio }
}

/// From the oldest file on that is small or within the ratio of the newer ones, of which so many count as one compaction takes. Follows:
/// `RatioBasedCompactionPolicy#applyCompactionPolicy`.
fn within_ratio(sizes: &[u64], settings: &RegionSettings, ratio: f64, stuck: bool) -> Option<(usize, usize)> {
    let (min, max) = (settings.compaction_min_files, settings.compaction_max_files);
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

/// The contiguous run that gets rid of the most files for the least bytes, all within the ratio.
fn explore_sizes(sizes: &[u64], settings: &RegionSettings, ratio: f64, stuck: bool) -> Option<(usize, usize)> {
    let (min, max) = (settings.compaction_min_files, settings.compaction_max_files);
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
        assert_eq!(explore_sizes(&[10, 10, 10], &settings(100), 1.2, false), Some((0, 3)));
        assert_eq!(explore_sizes(&[10, 10], &settings(100), 1.2, false), None);
        assert_eq!(explore_sizes(&[100_000, 50, 23, 12, 12], &settings(10), 1.2, false), Some((1, 5)));
        assert_eq!(explore_sizes(&[1000, 100, 10], &settings(10), 1.2, false), None);
        assert_eq!(explore_sizes(&[1000, 100, 10], &settings(10), 1.2, true), Some((0, 3)));
        let many = vec![5; 30];
        assert_eq!(explore_sizes(&many, &settings(1), 1.2, false), Some((0, 10)));
    }

    #[test]
    fn the_ratio_based_policy_takes_all_from_the_first_that_fits() {
        let choose = |sizes: &[u64], ratio, stuck| within_ratio(sizes, &settings(10), ratio, stuck);
        assert_eq!(choose(&[10, 10, 10], 1.2, false), Some((0, 3)), "small ones always");
        assert_eq!(choose(&[100_000, 50, 23, 12, 12], 1.0, false), Some((2, 5)), "50 is more than 23 + 12 + 12");
        assert_eq!(choose(&[100_000, 50, 23, 12, 12], 5.0, false), Some((1, 5)), "off peak it is not");
        assert_eq!(choose(&[1000, 100, 11], 1.2, false), None);
    }
}
