//! Which sequence ids are not flushed yet, per region and family; so which files are still needed. Follows
//! `SequenceIdAccounting`.
//!
//! Always true: an id counts as unflushed from its append until the flush that took it is complete; a flush that is under way or was
//! aborted releases nothing.

use base::SeqId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The ids of all regions of a log. Not synchronised: the log keeps it under its lock, together with the appends.
#[derive(Default, Debug)]
pub struct SequenceIdAccounting {
    regions: HashMap<Arc<str>, RegionIds>,
    /// Regions with an entry since the last [`SequenceIdAccounting::take_highest`].
    touched: Vec<Arc<str>>,
}

#[derive(Default, Debug)]
struct RegionIds {
    /// Highest id in the current file.
    highest: Option<SeqId>,
    /// Lowest unflushed id of each family that has one; a handful, so a list.
    unflushed: Vec<(Box<[u8]>, SeqId)>,
    /// The same of families being flushed now.
    flushing: Vec<(Box<[u8]>, SeqId)>,
}

fn lowest(ids: &[(Box<[u8]>, SeqId)]) -> Option<SeqId> {
    ids.iter().map(|(_, id)| *id).min()
}

impl SequenceIdAccounting {
    /// Notes an entry of `families` (none for a marker).
    pub fn append(&mut self, region: &Arc<str>, families: &[&[u8]], seq_id: SeqId) {
        let ids = match self.regions.get_mut(region) {
            Some(ids) => ids,
            None => self.regions.entry(Arc::clone(region)).or_default(),
        };
        if ids.highest.is_none() {
            self.touched.push(Arc::clone(region));
        }
        ids.highest = ids.highest.max(Some(seq_id));
        for family in families {
            if !ids.unflushed.iter().any(|(name, _)| **name == **family) {
                ids.unflushed.push((Box::from(*family), seq_id));
            }
        }
    }

    /// Notes ids of files from before this log: the region's lowest unflushed one of each family, in place of what was noted so before.
    /// To be told before anything of the region is appended.
    pub fn inherit<'a>(&mut self, region: &Arc<str>, lowest: impl IntoIterator<Item = (&'a [u8], SeqId)>) {
        let ids = self.regions.entry(Arc::clone(region)).or_default();
        ids.unflushed = lowest.into_iter().map(|(family, id)| (Box::from(family), id)).collect();
        self.forget_if_idle(region);
    }

    /// The highest id of each region in the current file, which ends here.
    pub fn take_highest(&mut self) -> BTreeMap<Arc<str>, SeqId> {
        let mut all = BTreeMap::new();
        for region in std::mem::take(&mut self.touched) {
            if let Some(highest) = self.regions.get_mut(&region).and_then(|ids| ids.highest.take()) {
                self.forget_if_idle(&region);
                all.insert(region, highest);
            }
        }
        all
    }

    /// Takes back what [`SequenceIdAccounting::take_highest`] gave: the entries are in the next file too.
    pub fn put_back(&mut self, highest: &BTreeMap<Arc<str>, SeqId>) {
        for (region, id) in highest {
            self.append(region, &[], *id);
        }
    }

    /// The same without ending the file.
    pub fn highest(&self) -> BTreeMap<Arc<str>, SeqId> {
        let of = |region: &Arc<str>| Some((Arc::clone(region), self.regions.get(region)?.highest?));
        self.touched.iter().filter_map(of).collect()
    }

    /// A flush of `families` begins; the region's updates are blocked meanwhile. Returns the lowest unflushed id of the
    /// families that stay behind.
    pub fn begin_flush(&mut self, region: &str, families: &[&[u8]]) -> Option<SeqId> {
        let ids = self.regions.get_mut(region)?;
        let (taken, left) = std::mem::take(&mut ids.unflushed)
            .into_iter()
            .partition(|(name, _)| families.iter().any(|family| **family == **name));
        ids.unflushed = left;
        // A flush that was neither completed nor aborted must not release its ids.
        ids.flushing.extend::<Vec<_>>(taken);
        lowest(&ids.unflushed)
    }

    /// The flush is durable: every id up to `flushed` of the region is in files, of all families.
    pub fn complete_flush(&mut self, region: &str, flushed: SeqId) {
        let Some(ids) = self.regions.get_mut(region) else { return };
        ids.flushing.clear();
        for (_, id) in &mut ids.unflushed {
            // An append that was numbered before the flush and arrived after it began.
            *id = (*id).max(SeqId(flushed.0 + 1));
        }
        self.forget_if_idle(region);
    }

    /// The flush did not happen.
    pub fn abort_flush(&mut self, region: &str) {
        let Some(ids) = self.regions.get_mut(region) else { return };
        for (family, id) in std::mem::take(&mut ids.flushing) {
            match ids.unflushed.iter_mut().find(|(name, _)| *name == family) {
                Some((_, newer)) => *newer = (*newer).min(id),
                None => ids.unflushed.push((family, id)),
            }
        }
    }

    /// The region was closed with everything flushed, or is gone: nothing of it is needed.
    pub fn region_closed(&mut self, region: &str) {
        if let Some(ids) = self.regions.get_mut(region) {
            ids.unflushed.clear();
            ids.flushing.clear();
        }
        self.forget_if_idle(region);
    }

    fn forget_if_idle(&mut self, region: &str) {
        let idle = |ids: &RegionIds| ids.highest.is_none() && ids.unflushed.is_empty() && ids.flushing.is_empty();
        if self.regions.get(region).is_some_and(idle) {
            self.regions.remove(region);
        }
    }

    /// The lowest id of the region that is not in files yet.
    pub fn lowest_unflushed(&self, region: &str) -> Option<SeqId> {
        let ids = self.regions.get(region)?;
        [lowest(&ids.unflushed), lowest(&ids.flushing)].into_iter().flatten().min()
    }

    /// The same for one family.
    pub fn lowest_unflushed_of(&self, region: &str, family: &[u8]) -> Option<SeqId> {
        let ids = self.regions.get(region)?;
        let of = |ids: &[(Box<[u8]>, SeqId)]| ids.iter().find(|(name, _)| **name == *family).map(|(_, id)| *id);
        [of(&ids.flushing), of(&ids.unflushed)].into_iter().flatten().min()
    }

    /// Whether everything up to these ids is in files.
    pub fn all_flushed(&self, highest: &BTreeMap<Arc<str>, SeqId>) -> bool {
        highest.iter().all(|(region, id)| self.lowest_unflushed(region).is_none_or(|lowest| lowest > *id))
    }

    /// The families that hold these ids back and are not being flushed already.
    pub fn holding_back(&self, highest: &BTreeMap<Arc<str>, SeqId>) -> Vec<(Arc<str>, Vec<Vec<u8>>)> {
        let mut all = Vec::new();
        for (region, id) in highest {
            let Some(ids) = self.regions.get(region) else { continue };
            let families: Vec<Vec<u8>> =
                ids.unflushed.iter().filter(|(_, lowest)| lowest <= id).map(|(name, _)| name.to_vec()).collect();
            if !families.is_empty() {
                all.push((Arc::clone(region), families));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    #[test]
    fn a_partial_flush_releases_only_its_families() {
        let (mut ids, r) = (SequenceIdAccounting::default(), region("r"));
        ids.append(&r, &[b"a"], SeqId(1));
        ids.append(&r, &[b"b"], SeqId(2));
        let file = ids.take_highest();
        assert_eq!(file[&r], SeqId(2));
        assert_eq!(ids.begin_flush("r", &[b"a"]), Some(SeqId(2)));
        assert!(!ids.all_flushed(&file), "a flush under way releases nothing");
        ids.append(&r, &[b"a"], SeqId(3));
        ids.complete_flush("r", SeqId(1));
        assert_eq!((ids.lowest_unflushed("r"), ids.lowest_unflushed_of("r", b"a")), (Some(SeqId(2)), Some(SeqId(3))));
        assert!(!ids.all_flushed(&file));
        assert_eq!(ids.holding_back(&file), [(r, vec![b"b".to_vec()])]);
        ids.begin_flush("r", &[b"b"]);
        ids.complete_flush("r", SeqId(2));
        assert!(ids.all_flushed(&file));
    }

    #[test]
    fn an_aborted_flush_takes_its_ids_back() {
        let (mut ids, r) = (SequenceIdAccounting::default(), region("r"));
        ids.append(&r, &[b"a"], SeqId(1));
        let file = ids.take_highest();
        ids.begin_flush("r", &[b"a"]);
        ids.append(&r, &[b"a"], SeqId(5));
        ids.abort_flush("r");
        assert_eq!(ids.lowest_unflushed_of("r", b"a"), Some(SeqId(1)));
        assert!(!ids.all_flushed(&file));
    }

    #[test]
    fn markers_hold_nothing_back_and_closed_regions_are_forgotten() {
        let (mut ids, r) = (SequenceIdAccounting::default(), region("r"));
        ids.append(&r, &[], SeqId(1));
        ids.append(&region("q"), &[b"a"], SeqId(9));
        let file = ids.take_highest();
        assert_eq!(file.len(), 2);
        assert!(!ids.all_flushed(&file));
        ids.region_closed("q");
        ids.region_closed("r");
        assert!(ids.all_flushed(&file) && ids.regions.is_empty());
    }

    /// A naive account: every id with its families; an id is needed while any family of it is unflushed.
    #[test]
    fn random_histories_agree_with_the_naive_account() {
        for seed in 0..300 {
            let (rng, r) = (base::Rng::seeded(seed), region("r"));
            let mut ids = SequenceIdAccounting::default();
            let mut needed: BTreeMap<(u8, u64), bool> = BTreeMap::new(); // (family, id) -> being flushed
            let (mut next, mut flushing) = (1u64, false);
            for _ in 0..60 {
                match rng.below(6) {
                    0..3 => {
                        let family = rng.below(3) as u8;
                        ids.append(&r, &[&[family]], SeqId(next));
                        needed.insert((family, next), false);
                        next += 1;
                    }
                    3 if !flushing => {
                        let family = rng.below(3) as u8;
                        ids.begin_flush("r", &[&[family]]);
                        needed.iter_mut().filter(|((f, _), _)| *f == family).for_each(|(_, busy)| *busy = true);
                        flushing = true;
                    }
                    4 if flushing => {
                        needed.retain(|_, busy| !*busy);
                        let flushed = needed.keys().map(|(_, id)| *id).min().unwrap_or(next) - 1;
                        ids.complete_flush("r", SeqId(flushed));
                        flushing = false;
                    }
                    5 if flushing => {
                        ids.abort_flush("r");
                        needed.values_mut().for_each(|busy| *busy = false);
                        flushing = false;
                    }
                    _ => {}
                }
                let lowest = needed.keys().map(|(_, id)| SeqId(*id)).min();
                assert_eq!(ids.lowest_unflushed("r"), lowest, "replay: seed {seed}");
            }
        }
    }
}
