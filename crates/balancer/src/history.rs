//! What is remembered of a region's load from one report to the next. Follows: `BalancerRegionLoad`, `CostFromRegionLoadFunction`,
//! `CostFromRegionLoadAsRateFunction`.

use std::collections::VecDeque;

/// A region's load at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadSample {
    /// Reads since it was opened.
    pub reads: u64,
    /// Writes since it was opened.
    pub writes: u64,
    /// Mebibytes of cells in memory.
    pub memstore_mb: u32,
    /// Mebibytes of store files.
    pub store_file_mb: u32,
}

/// The newest loads of a region, 24 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadHistory {
    samples: VecDeque<LoadSample>,
}

/// What a region has to do, drawn from its history.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RegionCosts {
    /// Reads from one report to the next, in the mean.
    pub reads: f64,
    /// Writes, likewise.
    pub writes: f64,
    /// Mebibytes by which the memstores grew, likewise.
    pub memstore: f64,
    /// Mebibytes of store files, in the mean.
    pub store_files: f64,
    /// Mebibytes of store files of late.
    pub size_mb: u32,
}

impl LoadHistory {
    /// Adds a load; of more than `keep` the oldest go.
    pub fn push(&mut self, sample: LoadSample, keep: usize) {
        while self.samples.len() >= keep.max(1) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// What it says. Where a count has fallen, the region was opened anew in between, and counts from 0.
    pub fn costs(&self) -> RegionCosts {
        let Some(last) = self.samples.back() else { return RegionCosts::default() };
        let steps = self.samples.len() - 1;
        let rate = |value: fn(&LoadSample) -> u64| {
            let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
            let grown: f64 = pairs
                .map(|(before, after)| (value(before), value(after)))
                .map(|(before, after)| after.checked_sub(before).unwrap_or(after) as f64)
                .sum();
            if steps == 0 { 0.0 } else { grown / steps as f64 }
        };
        let store_files: f64 = self.samples.iter().map(|sample| f64::from(sample.store_file_mb)).sum();
        RegionCosts {
            reads: rate(|sample| sample.reads),
            writes: rate(|sample| sample.writes),
            memstore: rate(|sample| u64::from(sample.memstore_mb)),
            store_files: store_files / self.samples.len() as f64,
            size_mb: last.store_file_mb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_between_reports_and_begin_anew_when_a_region_is_opened_anew() {
        let mut history = LoadHistory::default();
        assert_eq!(history.costs(), RegionCosts::default());
        let sample = |reads, store_file_mb| LoadSample { reads, store_file_mb, ..LoadSample::default() };
        history.push(sample(100, 4), 3);
        assert_eq!(history.costs().reads, 0.0, "one report is no rate");
        history.push(sample(150, 8), 3);
        assert_eq!(history.costs().reads, 50.0);
        history.push(sample(10, 9), 3);
        assert_eq!(history.costs().reads, 30.0);
        assert_eq!((history.costs().store_files, history.costs().size_mb), (7.0, 9));
        history.push(sample(10, 1), 3);
        assert_eq!(history.costs().reads, 5.0, "the oldest is forgotten");
    }
}
