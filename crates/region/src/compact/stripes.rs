//! Which files of a store in stripes to compact, and by which rows what comes out is divided. Follows: `StripeCompactionPolicy`.
//!
//! One compaction of a store at a time. A stripe is compacted by itself, as a small store would be, and delete markers go when all of its files
//! are taken and nothing is at level 0: so there is no major compaction, and none is needed. Files at level 0 are divided among the stripes when
//! there are enough of them; a stripe that has grown large is divided, those of which all has expired become one.

use super::policy::{explore_sizes, ratio_at};
use crate::settings::{RegionSettings, StripeSettings};
use crate::store_file::StoreFile;
use crate::stripes::{Layout, RowRange};
use bytes::Bytes;
use std::ops::Range;

/// Files that one compaction makes at most. So many parts are enough for any stripe; more would be of wrong settings.
const MAX_PARTS: f64 = 512.0;

/// By which rows what is written is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowCut {
    /// A file for each stripe that a cell is of; also an empty one for each of `whole`, and one if there is no cell at all.
    At {
        /// The row at which each stripe but the last ends.
        ends: Vec<Bytes>,
        /// Stripes of which all files are rewritten: a file must say that they are there.
        whole: Range<usize>,
    },
    /// A new file, of a stripe of its own, with the row after so many cells.
    After { cells: u64, max_files: u32, within: RowRange },
}

/// A compaction of a store in stripes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Places of the files in the store's list, ascending.
    pub files: Vec<usize>,
    pub cut: RowCut,
    /// Rows of which all files are taken, so that delete markers can go.
    pub drops: Option<RowRange>,
}

/// What a selection looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct StripedFile {
    len_bytes: u64,
    cells: u64,
    /// Timestamp of its latest cell, if it has any.
    latest: Option<i64>,
    is_reference: bool,
}

impl StripedFile {
    pub(super) fn of(file: &StoreFile) -> StripedFile {
        StripedFile {
            len_bytes: file.len_bytes(),
            cells: file.reader.entry_count(),
            latest: file.reader.time_range().map(|(_, latest)| latest),
            is_reference: file.is_reference(),
        }
    }
}

/// By which rows a flush of so many cells is divided; `None`: it makes one file, at level 0. Follows: `StripeCompactionPolicy#selectFlush`.
pub(crate) fn of_flush(layout: &Layout, settings: &StripeSettings, cells: u64) -> Option<RowCut> {
    if settings.flush_to_l0 {
        return None;
    }
    Some(match layout.stripes.is_empty() {
        true => RowCut::After {
            cells: cells / u64::from(settings.initial_count),
            max_files: settings.initial_count,
            within: RowRange::ALL,
        },
        false => RowCut::At { ends: layout.ends.clone(), whole: 0..0 },
    })
}

/// A selection among the files of one store.
pub(super) struct Selector<'a> {
    pub layout: &'a Layout,
    /// Oldest first.
    pub files: &'a [StripedFile],
    pub settings: &'a RegionSettings,
    /// Cells with older timestamps have lived their time, whatever else; `None` where that cannot be said of whole files.
    pub oldest_unexpired: Option<i64>,
    pub now: i64,
}

impl Selector<'_> {
    /// The compaction that is worth it now; no other may be running.
    pub(super) fn select(&self) -> Option<Plan> {
        if self.files.iter().any(|file| file.is_reference) {
            let files: Vec<usize> = (0..self.files.len()).collect();
            let (cells, _) = self.parts(&files, f64::from(self.stripes().initial_count));
            return Some(self.cut_by_count(files, RowRange::ALL, u32::MAX, cells, true));
        }
        let level0 = &self.layout.level0;
        let is_level0_due = level0.len() >= self.stripes().min_files_l0 || self.has_expired(level0);
        if !is_level0_due {
            return self.merge_of_expired().or_else(|| self.of_one_stripe(false));
        }
        if self.layout.stripes.is_empty() || level0.is_empty() {
            return (!level0.is_empty()).then(|| self.of_level0());
        }
        // With a whole stripe of them delete markers can go.
        self.of_one_stripe(!self.is_level0_large()).or_else(|| Some(self.of_level0()))
    }

    fn stripes(&self) -> &StripeSettings {
        &self.settings.stripes
    }

    fn bytes_of(&self, files: &[usize]) -> u64 {
        files.iter().map(|at| self.files[*at].len_bytes).sum()
    }

    /// Whether all cells of some files have lived their time.
    fn has_expired(&self, files: &[usize]) -> bool {
        let Some(oldest) = self.oldest_unexpired else { return false };
        let is_live = |at: &usize| {
            let file = self.files[*at];
            file.cells > 0 && file.latest.is_none_or(|latest| latest >= oldest)
        };
        !files.is_empty() && !files.iter().any(is_live)
    }

    fn is_level0_large(&self) -> bool {
        let level0 = &self.layout.level0;
        level0.len() > self.stripes().max_files || self.bytes_of(level0) > self.settings.compaction_max_size_bytes
    }

    /// Cells of each part, and how many parts, if files are divided into `parts` or as many more as make them small enough. Follows:
    /// `StripeCompactionPolicy#estimateTargetKvs`.
    fn parts(&self, files: &[usize], mut parts: f64) -> (u64, u32) {
        let (bytes, part) = (self.bytes_of(files) as f64, self.stripes().part_bytes() as f64);
        let mut ratio = bytes / (parts * part);
        while ratio > 1.0 && parts < MAX_PARTS {
            let next = bytes / ((parts + 1.0) * part);
            if 1.0 / next >= ratio {
                // Small enough, but further from what is wanted than before.
                break;
            }
            (ratio, parts) = (next, parts + 1.0);
        }
        let cells: u64 = files.iter().map(|at| self.files[*at].cells).sum();
        ((cells as f64 / parts) as u64, parts.ceil() as u32)
    }

    fn cut_by_count(&self, files: Vec<usize>, within: RowRange, max_files: u32, cells: u64, drops: bool) -> Plan {
        let max_files = max_files.min(MAX_PARTS as u32);
        Plan { files, drops: drops.then(|| within.clone()), cut: RowCut::After { cells, max_files, within } }
    }

    /// Files of level 0 alone, into stripes. Follows: `StripeCompactionPolicy#selectL0OnlyCompaction`.
    fn of_level0(&self) -> Plan {
        let level0 = &self.layout.level0;
        let files = if self.is_level0_large() { self.of_too_large_level0() } else { level0.clone() };
        if !self.layout.stripes.is_empty() {
            return Plan { files, cut: RowCut::At { ends: self.layout.ends.clone(), whole: 0..0 }, drops: None };
        }
        let (cells, parts) = self.parts(&files, f64::from(self.stripes().initial_count));
        let drops = files.len() == level0.len();
        self.cut_by_count(files, RowRange::ALL, parts, cells, drops)
    }

    fn of_too_large_level0(&self) -> Vec<usize> {
        let level0 = &self.layout.level0;
        let chosen = self.explore(level0, self.stripes().min_files, false);
        if !chosen.is_empty() {
            return chosen;
        }
        // The newest, until they are as large as one compaction may be; if there are not so many, all.
        let max = self.stripes().max_files.max(self.stripes().min_files);
        let mut bytes = 0;
        for (count, at) in level0.iter().rev().take(max).enumerate() {
            bytes += self.files[*at].len_bytes;
            if bytes >= self.settings.compaction_max_size_bytes {
                return level0[level0.len() - count - 1..].to_vec();
            }
        }
        level0.clone()
    }

    /// The run of files that is worth a compaction; none: none is. Newest first, as HBase goes through them: of runs that are equally good the
    /// first is taken. Follows: `StripeCompactionPolicy#selectSimpleCompaction`.
    fn explore(&self, files: &[usize], min_files: usize, is_off_peak: bool) -> Vec<usize> {
        let sizes: Vec<u64> = files.iter().rev().map(|at| self.files[*at].len_bytes).collect();
        let max_files = self.stripes().max_files.max(min_files);
        let ratio = if is_off_peak { ratio_at(self.settings, self.now) } else { self.settings.compaction_ratio };
        let run = explore_sizes(&sizes, self.settings, min_files..=max_files, ratio, false);
        run.map_or_else(Vec::new, |(from, to)| files[files.len() - to..files.len() - from].to_vec())
    }

    /// The best compaction within one stripe. Follows: `StripeCompactionPolicy#selectSingleStripeCompaction`.
    fn of_one_stripe(&self, with_level0: bool) -> Option<Plan> {
        let level0 = &self.layout.level0;
        let mut best: Option<(usize, Vec<usize>, u64)> = None;
        for (at, stripe) in self.layout.stripes.iter().enumerate() {
            // With level 0 it is for the delete markers: all of the stripe or nothing.
            let all_only = if with_level0 && !level0.is_empty() { stripe.len() } else { 0 };
            let chosen = self.explore(stripe, self.stripes().min_files.max(all_only), true);
            let bytes = self.bytes_of(&chosen);
            let is_better = best.as_ref().is_none_or(|(_, files, most)| {
                chosen.len() > files.len() || (chosen.len() == files.len() && bytes < *most)
            });
            if !chosen.is_empty() && is_better {
                best = Some((at, chosen, bytes));
            }
        }
        let (at, mut files, bytes) = best?;
        let is_whole = files.len() == self.layout.stripes[at].len();
        let is_divided = is_whole && bytes >= self.stripes().split_size_bytes;
        let rows = self.layout.range_of(at..=at);
        if with_level0 {
            if is_divided {
                // Without level 0, then: the stripe would be written twice.
                return None;
            }
            files.extend(level0);
            files.sort_unstable();
            let cut = RowCut::At { ends: self.layout.ends.clone(), whole: at..at + 1 };
            return Some(Plan { files, cut, drops: Some(rows) });
        }
        let (cells, parts) = if is_divided { self.parts(&files, self.stripes().split_parts) } else { (u64::MAX, 1) };
        Some(self.cut_by_count(files, rows, parts, cells, is_whole && level0.is_empty()))
    }

    /// The longest run of stripes of which all has expired becomes one. Follows: `StripeCompactionPolicy#selectExpiredMergeCompaction`.
    fn merge_of_expired(&self) -> Option<Plan> {
        let oldest = self.oldest_unexpired?;
        // A file without a cell, such as the last merge left, keeps its stripe from being merged for it again and again.
        let is_expired = |at: &usize| self.files[*at].latest.is_some_and(|latest| latest < oldest);
        let stripes = &self.layout.stripes;
        let (mut best, mut from) = (0..0, 0);
        for (at, stripe) in stripes.iter().enumerate() {
            if !stripe.iter().all(is_expired) {
                from = at + 1;
            } else if at + 1 - from > best.len() {
                best = from..at + 1;
            }
        }
        if best.is_empty() {
            return None;
        }
        if best.len() == 1 {
            // Alone it would be rewritten to say that it is there: it is merged with the next.
            if best.end == stripes.len() {
                return None;
            }
            best.end += 1;
        }
        let mut files: Vec<usize> = stripes[best.clone()].concat();
        files.sort_unstable();
        let rows = self.layout.range_of(best.start..=best.end - 1);
        Some(self.cut_by_count(files, rows, 1, u64::MAX, self.layout.level0.is_empty()))
    }
}

/// Where to split a region whose largest store has these stripes. Follows: `StripeStoreFileManager#getSplitPoint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitAt {
    /// At the end of this stripe.
    End(usize),
    /// In the middle of the largest file of this one.
    Middle(usize),
    /// In the middle of the largest file of all.
    MiddleOfAll,
}

/// `sizes`: bytes of each stripe.
pub(crate) fn split_at(sizes: &[u64], max_imbalance: f64) -> SplitAt {
    if sizes.len() <= 1 {
        return SplitAt::MiddleOfAll;
    }
    // Of the stripes not counted yet the outermost one of the smaller side is next.
    let (mut left, mut right) = (0, sizes.len());
    let (mut left_bytes, mut right_bytes) = (0u64, 0u64);
    let (mut last_left, mut last_right) = (0u64, 0u64);
    while left < right {
        if left_bytes >= right_bytes {
            right -= 1;
            last_right = sizes[right];
            right_bytes += last_right;
        } else {
            last_left = sizes[left];
            left_bytes += last_left;
            left += 1;
        }
    }
    if left_bytes == 0 || right_bytes == 0 {
        return SplitAt::MiddleOfAll;
    }
    let at_least_1 = |ratio: f64| if ratio < 1.0 { 1.0 / ratio } else { ratio };
    let ratio = at_least_1(right_bytes as f64 / left_bytes as f64);
    let through_middle =
        |small: u64, large: u64, last: u64| (large as f64 - last as f64 / 2.0) / (small as f64 + last as f64 / 2.0);
    let (divided, new_ratio) = if right_bytes >= left_bytes {
        (right, through_middle(left_bytes, right_bytes, last_right))
    } else {
        (left - 1, through_middle(right_bytes, left_bytes, last_left))
    };
    if max_imbalance > ratio || at_least_1(new_ratio) >= ratio {
        SplitAt::End(left - 1)
    } else {
        SplitAt::Middle(divided)
    }
}

#[cfg(test)]
#[path = "stripes_tests.rs"]
mod tests;
