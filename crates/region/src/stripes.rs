//! How the files of a store lie in stripes: ranges of rows that divide the region, so that no file has cells of two. A file that is for no
//! stripe (it came by a bulk load, or was written before the store had stripes) is at level 0 and may have any row.
//!
//! The files alone say it, each the range that it is for; so the same files lie the same way in every opening, whatever was cut off, and a file
//! that fits nowhere is at level 0, where it is as right as in a stripe. Follows: `StripeStoreFileManager#loadUnclassifiedStoreFiles`.

use crate::store_file::StoreFile;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The rows that a file is for: from the first on, before the second. An empty one is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    pub start: Bytes,
    pub end: Bytes,
}

impl RowRange {
    /// All rows.
    pub(crate) const ALL: RowRange = RowRange { start: Bytes::new(), end: Bytes::new() };

    pub(crate) fn contains(&self, row: &[u8]) -> bool {
        *row >= self.start[..] && (self.end.is_empty() || *row < self.end[..])
    }

    fn is_possible(&self) -> bool {
        self.start.is_empty() || self.end.is_empty() || self.start < self.end
    }
}

/// Where a store's files lie, by their places in its list, which are in the order of age. Oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub level0: Vec<usize>,
    /// The row at which each stripe but the last ends.
    pub ends: Vec<Bytes>,
    /// In the order of rows; each has a file.
    pub stripes: Vec<Vec<usize>>,
}

/// A stripe's end; an open one comes after all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    is_open: bool,
    row: Bytes,
}

impl Layout {
    /// Of files that are for these ranges, oldest first; `None` for one that does not say.
    pub(crate) fn of(ranges: &[Option<RowRange>]) -> Layout {
        let mut level0 = Vec::new();
        let mut candidates = BTreeMap::<End, Vec<(usize, &RowRange)>>::new();
        for (at, range) in ranges.iter().enumerate() {
            match range {
                Some(range) if range.is_possible() => {
                    let end = End { is_open: range.end.is_empty(), row: range.end.clone() };
                    candidates.entry(end).or_default().push((at, range));
                }
                _ => level0.push(at),
            }
        }
        // Each must begin where the one before it ends; the first where its newest file says.
        let mut expected: Option<&Bytes> = None;
        let mut has_overlaps = false;
        candidates.retain(|_, files| {
            let Some(newest) = files.last() else { return false };
            let start = expected.unwrap_or(&newest.1.start);
            files.retain(|(at, range)| {
                let fits = range.start == *start;
                if !fits {
                    has_overlaps = true;
                    level0.push(*at);
                }
                fits
            });
            expected = files.first().map(|(_, range)| &range.end).or(Some(start));
            !files.is_empty()
        });
        let first = candidates.first_key_value().and_then(|(_, files)| files.first());
        let is_open = first.is_some_and(|(_, range)| range.start.is_empty())
            && candidates.last_key_value().is_some_and(|(end, _)| end.is_open);
        // After a split the outermost boundaries are those of the parent: that is as good as open. With anything else amiss none is believed.
        if !is_open && has_overlaps {
            level0.extend(candidates.values().flatten().map(|(at, _)| *at));
            candidates.clear();
        }
        level0.sort_unstable();
        let mut ends: Vec<Bytes> = candidates.keys().map(|end| end.row.clone()).collect();
        ends.pop();
        let stripes = candidates.into_values().map(|files| files.into_iter().map(|(at, _)| at).collect()).collect();
        Layout { level0, ends, stripes }
    }

    /// The stripe that has a row, if there are stripes.
    pub(crate) fn stripe_of(&self, row: &[u8]) -> usize {
        self.ends.partition_point(|end| end[..] <= *row)
    }

    /// The rows of some neighbouring stripes; the outermost are open.
    pub(crate) fn range_of(&self, stripes: RangeInclusive<usize>) -> RowRange {
        let start = stripes.start().checked_sub(1).and_then(|before| self.ends.get(before));
        RowRange {
            start: start.cloned().unwrap_or_default(),
            end: self.ends.get(*stripes.end()).cloned().unwrap_or_default(),
        }
    }
}

/// A [`Layout`] for readers.
#[derive(Debug)]
pub(crate) struct Stripes {
    pub layout: Layout,
    /// Of each stripe the files that can have its rows, those of level 0 among them. Oldest first.
    readable: Vec<Arc<[Arc<StoreFile>]>>,
}

impl Stripes {
    /// Costs a look at each file.
    pub(crate) fn of(files: &[Arc<StoreFile>]) -> Stripes {
        let ranges: Vec<_> = files.iter().map(|file| range_of(file)).collect();
        let layout = Layout::of(&ranges);
        let readable = layout.stripes.iter().map(|stripe| {
            let mut places: Vec<usize> = stripe.iter().chain(&layout.level0).copied().collect();
            places.sort_unstable();
            places.into_iter().map(|at| files[at].clone()).collect()
        });
        Stripes { readable: readable.collect(), layout }
    }

    /// The files that can have a row; `None` where there are no stripes.
    pub(crate) fn files_of(&self, row: &[u8]) -> Option<&[Arc<StoreFile>]> {
        self.readable.get(self.layout.stripe_of(row)).map(|files| &files[..])
    }
}

/// What a file says that it is for, if it has no other rows.
fn range_of(file: &StoreFile) -> Option<RowRange> {
    let (start, end) = file.reader.stripe()?;
    let range = RowRange { start: start.clone(), end: end.clone() };
    let keys = [file.reader.first_key(), file.reader.last_key()];
    let strange = keys.into_iter().flatten().find(|key| !range.contains(key.row()));
    if let Some(strange) = strange {
        let shown = |row: &[u8]| cell::print::Binary(row).to_string();
        tracing::warn!(
            "{} says that it has the rows from '{}' to '{}', and has '{}': it is read as one of no stripe, until a compaction divides it",
            file.reader.path(),
            shown(start),
            shown(end),
            shown(strange.row())
        );
    }
    strange.is_none().then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Option<RowRange> {
        let (start, end) = text.split_once('-')?;
        Some(RowRange { start: Bytes::copy_from_slice(start.as_bytes()), end: Bytes::copy_from_slice(end.as_bytes()) })
    }

    /// Places at level 0, then those of each stripe behind the row at which it ends.
    fn layout(files: &[&str]) -> (Vec<usize>, Vec<(String, Vec<usize>)>) {
        let ranges: Vec<_> = files.iter().map(|text| range(text)).collect();
        let layout = Layout::of(&ranges);
        let ends = layout.ends.iter().map(|end| String::from_utf8_lossy(end).into_owned()).chain([String::new()]);
        (layout.level0, ends.zip(layout.stripes).collect())
    }

    fn stripes(of: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
        of.iter().map(|(end, files)| ((*end).to_owned(), files.to_vec())).collect()
    }

    /// `TestStripeStoreFileManager#testLoadFilesWithRecoverableBadFiles` and its neighbours.
    #[test]
    fn files_lie_in_stripes_as_they_say() {
        assert_eq!(layout(&[]), (vec![], vec![]));
        assert_eq!(layout(&["", ""]), (vec![0, 1], vec![]), "nothing said");
        let three = ["-b", "b-m", "m-", "b-m", ""];
        assert_eq!(layout(&three), (vec![4], stripes(&[("b", &[0]), ("m", &[1, 3]), ("", &[2])])));
        assert_eq!(layout(&["-b", "m-m", "b-"]), (vec![1], stripes(&[("b", &[0]), ("", &[2])])), "no row can be there");
    }

    #[test]
    fn a_file_that_fits_nowhere_is_at_level_0() {
        // A flush by the old boundaries came in while the stripe was divided.
        assert_eq!(layout(&["-b", "b-g", "g-", "b-"]).0, [3]);
        // The first stripe begins where its newest file does.
        assert_eq!(layout(&["a-b", "-b", "b-"]), (vec![0], stripes(&[("b", &[1]), ("", &[2])])));
    }

    #[test]
    fn a_gap_or_an_overlap_to_the_end_leaves_no_stripe() {
        assert_eq!(layout(&["-b", "c-"]), (vec![0, 1], vec![]), "a gap: the last does not begin where the first ends");
        assert_eq!(layout(&["-b", "a-m"]), (vec![0, 1], vec![]));
    }

    /// HBase: "they might be coming from a split".
    #[test]
    fn the_outermost_boundaries_of_a_daughter_are_open() {
        let (level0, daughter) = layout(&["c-g", "g-k", "g-k"]);
        assert_eq!((level0, daughter), (vec![], stripes(&[("g", &[0]), ("", &[1, 2])])));
    }

    #[test]
    fn a_row_is_in_the_stripe_that_begins_with_it() {
        let layout = Layout::of(&["-b", "b-m", "m-"].map(range));
        let rows: [&[u8]; 6] = [b"", b"a", b"b", b"bb", b"m", b"z"];
        assert_eq!(rows.map(|row| layout.stripe_of(row)), [0, 0, 1, 1, 2, 2]);
        assert_eq!(
            [layout.range_of(0..=0), layout.range_of(1..=1), layout.range_of(2..=2)].map(Some),
            ["-b", "b-m", "m-"].map(range)
        );
        assert_eq!(Some(layout.range_of(1..=2)), range("b-"));
        assert_eq!(layout.range_of(0..=2), RowRange::ALL);
    }
}
