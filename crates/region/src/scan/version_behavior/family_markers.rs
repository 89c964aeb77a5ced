//! The markers of a row that concern all columns of the family.
//!
//! A marker over the whole family ends an epoch: what is stamped no later than it and arrived before is gone. Markers of one version
//! belong to the epoch that they were read into, and markers come by timestamp: where a later one over the family has an older timestamp,
//! an earlier version marker is in a later epoch than the one in which it arrived. It is a stray, and then it matters in HBase 2.6.4 which
//! epoch a marker is in: see [`super::plain`]. Without strays the epochs need not be told apart.

use super::counts::END;
use cell::CellType;
use std::collections::BTreeMap;

/// What is known of the family's markers in this row.
#[derive(Debug, Default)]
pub(super) struct FamilyMarkers {
    /// As they came: type, timestamp, sequence id.
    read: Vec<(CellType, i64, u64)>,
    /// Timestamps of the markers over the family, by sequence id: the ends of the epochs.
    epochs: BTreeMap<u64, i64>,
    /// Sequence ids of the markers of one version, by timestamp, in order.
    versions: BTreeMap<i64, Vec<u64>>,
    has_strays: bool,
    /// Made of these when the first column that has a name begins.
    sealed: Option<Sealed>,
}

/// In a form to be looked up.
#[derive(Debug, Default)]
struct Sealed {
    epochs: Vec<(u64, i64)>,
    /// A tree of the highest timestamps: node 1 is of all, node `n` of what nodes `2n` and `2n + 1` are of.
    highest: Vec<i64>,
    /// Sequence ids of the version markers, in order, each once.
    moments: Vec<u64>,
}

impl FamilyMarkers {
    pub(super) fn clear(&mut self) {
        self.read.clear();
        self.epochs.clear();
        self.versions.clear();
        self.has_strays = false;
        self.sealed = None;
    }

    /// All so far, as they came.
    pub(super) fn read(&self) -> &[(CellType, i64, u64)] {
        &self.read
    }

    /// What is stamped at or before `timestamp` and arrived before `seq_id` is gone.
    pub(super) fn add_epoch(&mut self, timestamp: i64, seq_id: u64) {
        self.read.push((CellType::DeleteFamily, timestamp, seq_id));
        // Of one batch the later marker takes the place of the earlier, whose version markers are forgotten in HBase.
        self.has_strays |= self.epochs.insert(seq_id, timestamp).is_some();
    }

    /// What is stamped `timestamp` and arrived before `seq_id` is gone.
    pub(super) fn add_version(&mut self, timestamp: i64, seq_id: u64) {
        self.read.push((CellType::DeleteFamilyVersion, timestamp, seq_id));
        let ids = self.versions.entry(timestamp).or_default();
        if let Err(at) = ids.binary_search(&seq_id) {
            ids.insert(at, seq_id);
        }
    }

    /// All markers are there.
    pub(super) fn seal(&mut self) {
        if self.sealed.is_some() {
            return;
        }
        let epochs: Vec<(u64, i64)> = self.epochs.iter().map(|(end, timestamp)| (*end, *timestamp)).collect();
        let leaves = epochs.len().next_power_of_two();
        let mut highest = vec![i64::MIN; 2 * leaves];
        for (leaf, (_, timestamp)) in highest[leaves..].iter_mut().zip(&epochs) {
            *leaf = *timestamp;
        }
        for node in (1..leaves).rev() {
            highest[node] = highest[2 * node].max(highest[2 * node + 1]);
        }
        let mut moments: Vec<u64> = self.versions.values().flatten().copied().collect();
        moments.sort_unstable();
        moments.dedup();
        self.sealed = Some(Sealed { epochs, highest, moments });
        self.has_strays |= self.is_some_stray();
    }

    /// Whether the epoch that some version marker arrived in was not known when the marker was read.
    fn is_some_stray(&self) -> bool {
        let mut known = BTreeMap::new();
        let end_of = |epochs: &BTreeMap<u64, i64>, id: u64| epochs.range(id..).next().map_or(END, |(end, _)| *end);
        self.read.iter().any(|(kind, timestamp, id)| {
            if *kind == CellType::DeleteFamily {
                known.insert(*id, *timestamp);
                return false;
            }
            end_of(&known, *id) != end_of(&self.epochs, *id)
        })
    }

    /// Whether it matters which epoch a version marker is in. When all markers are there.
    pub(super) fn has_strays(&self) -> bool {
        self.has_strays
    }

    /// The moments at which puts are counted; none before all markers are there.
    pub(super) fn moments(&self) -> &[u64] {
        self.sealed.as_ref().map_or(&[], |sealed| &sealed.moments)
    }

    /// The first marker over the family that hides a put of `timestamp` which arrives as `seq_id`.
    pub(super) fn epoch_that_hides(&self, timestamp: i64, seq_id: u64) -> Option<u64> {
        self.sealed.as_ref().and_then(|sealed| sealed.first_as_late(timestamp, seq_id))
    }

    /// The first marker of one version that hides a put of `timestamp` which arrives as `seq_id`.
    pub(super) fn version_that_hides(&self, timestamp: i64, seq_id: u64) -> Option<u64> {
        let ids = self.versions.get(&timestamp).filter(|_| self.sealed.is_some())?;
        ids.get(ids.partition_point(|id| *id < seq_id)).copied()
    }
}

impl Sealed {
    fn first_as_late(&self, timestamp: i64, seq_id: u64) -> Option<u64> {
        let from = self.epochs.partition_point(|(end, _)| *end < seq_id);
        if from == self.epochs.len() {
            return None;
        }
        // Up from the leaf until something to the right is as late, then down to the first leaf that is.
        let leaves = self.highest.len() / 2;
        let mut node = leaves + from;
        while self.highest[node] < timestamp {
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < leaves {
            node = if self.highest[2 * node] >= timestamp { 2 * node } else { 2 * node + 1 };
        }
        self.epochs.get(node - leaves).map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn the_first_epoch_that_hides_a_put_is_found() {
        let rng = Rng::seeded(3);
        for count in [0, 1, 2, 3, 7, 8, 9, 100] {
            let mut markers = FamilyMarkers::default();
            let mut plain = BTreeMap::new();
            for _ in 0..count {
                let (id, timestamp) = (rng.below(500), rng.below(50) as i64);
                markers.add_epoch(timestamp, id);
                plain.insert(id, timestamp);
            }
            markers.seal();
            for _ in 0..300 {
                let (id, timestamp) = (rng.below(520), rng.below(52) as i64);
                let expected = plain.range(id..).find(|(_, hides)| **hides >= timestamp).map(|(id, _)| *id);
                assert_eq!(markers.epoch_that_hides(timestamp, id), expected, "{timestamp} {id} of {plain:?}");
            }
        }
    }
}
