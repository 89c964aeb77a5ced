//! What the log took over from servers that are no more: see [`crate::RecoveredLogs`].
//!
//! Always true: until a region has said what of its edits it still has in memory ([`Log::keep_inherited`]), or its edits are in files of
//! recovered edits, every file that holds some of them stays. Only a file whose edits are all in store files goes to the archive, as with
//! the log's own.

use super::{ClosedFile, Log};
use crate::marker::METAFAMILY;
use crate::recovered_logs::{InheritedEdit, RecoveredLogs};
use crate::split::{Doubtful, SplitDestination, SplitTarget, split_one};
use crate::{Result, SplitOptions};
use base::SeqId;
use fs::{FilePath, Volume};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// By region.
pub(super) type Waiting = BTreeMap<Arc<str>, Edits>;

/// Where a region's edits are beside the files.
pub(super) enum Edits {
    Held(Vec<InheritedEdit>),
    /// With somebody who opens the region and has not said what became of them.
    Given,
}

/// What there is for a region that is being opened.
#[derive(Debug)]
pub enum Inherited {
    /// Nothing.
    Nothing,
    /// These edits, in the order of the log. [`Log::keep_inherited`] must follow when they are in memory.
    Edits(Vec<InheritedEdit>),
    /// They were written to the region's recovered edits just now.
    Written,
}

impl Log {
    /// Takes over the files and edits of servers that are no more. Once, before the first region is opened.
    pub fn adopt_recovered(&self, recovered: RecoveredLogs) {
        let RecoveredLogs { files, edits, used } = recovered;
        *self.used_ids.lock() = used;
        let mut waiting = self.inherited.lock();
        let mut state = self.state.lock();
        for (region, edits) in edits {
            // Nobody knows yet which families have them in files.
            let lowest = edits.iter().map(|edit| (METAFAMILY, edit.seq_id)).min_by_key(|(_, id)| *id);
            state.accounting.inherit(&region, lowest);
            waiting.insert(region, Edits::Held(edits));
        }
        let files = files.into_iter();
        let files = files.map(|file| ClosedFile { path: file.path, len_bytes: file.len_bytes, highest: file.highest });
        state.closed_files.splice(0..0, files);
    }

    /// The highest id that a region has in the files that the log took over, or of [`Log::note_used_seq_id`]: what it writes now must have
    /// higher ones.
    pub fn used_seq_id(&self, region: &str) -> SeqId {
        self.used_ids.lock().get(region).copied().unwrap_or_default()
    }

    /// An opening of the region failed that may have appended entries up to this id.
    pub fn note_used_seq_id(&self, region: &Arc<str>, seq_id: SeqId) {
        let mut ids = self.used_ids.lock();
        let used = ids.entry(Arc::clone(region)).or_default();
        *used = (*used).max(seq_id);
    }

    /// The edits of a region that is being opened. They are given once: if they were, and it was not said that they are in memory, they
    /// are written to the region's recovered edits, where `directories` says, now, as they are if `to_files` asks for it.
    ///
    /// # Errors
    /// When they cannot be written; may be asked for again.
    pub fn take_inherited(&self, region: &str, to_files: bool, directories: &mut dyn SplitTarget) -> Result<Inherited> {
        let mut waiting = self.inherited.lock();
        let Some(edits) = waiting.get_mut(region) else { return Ok(Inherited::Nothing) };
        if !to_files && let Edits::Held(edits) = std::mem::replace(edits, Edits::Given) {
            return Ok(Inherited::Edits(edits));
        }
        let name: Arc<str> = Arc::from(region);
        self.write_inherited(&BTreeSet::from([name]), directories)?;
        waiting.remove(region);
        Ok(Inherited::Written)
    }

    /// The volume that the log's files are on.
    pub fn volume(&self) -> &dyn Volume {
        &*self.volume
    }

    /// The region's edits are in its memstores, with these as the lowest ids of its families; those not named are in store files.
    pub fn keep_inherited(&self, region: &Arc<str>, lowest: &[(&[u8], SeqId)]) {
        let mut waiting = self.inherited.lock();
        if waiting.remove(region).is_some() {
            self.state.lock().accounting.inherit(region, lowest.iter().copied());
        }
    }

    /// Writes the edits of all regions that nobody has opened (their tables are disabled, say) to their recovered edits, and forgets them.
    /// Returns how many regions that were. Waits for the disk, and so does meanwhile whoever opens one of them.
    ///
    /// # Errors
    /// When they cannot be written. They are still held then, and their files stay.
    pub fn write_out_inherited(&self, directories: &mut dyn SplitTarget) -> Result<usize> {
        let mut waiting = self.inherited.lock();
        let held = waiting.iter().filter(|(_, edits)| matches!(edits, Edits::Held(_)));
        let names: BTreeSet<Arc<str>> = held.map(|(region, _)| Arc::clone(region)).collect();
        if !names.is_empty() {
            self.write_inherited(&names, directories)?;
            waiting.retain(|region, _| !names.contains(region));
        }
        Ok(names.len())
    }

    /// Splits the files once more, for some regions.
    fn write_inherited(&self, regions: &BTreeSet<Arc<str>>, directories: &mut dyn SplitTarget) -> Result<()> {
        let state = self.state.lock();
        let files = state.closed_files.iter().filter(|file| file.highest.keys().any(|region| regions.contains(region)));
        let files: Vec<FilePath> = files.map(|file| file.path.clone()).collect();
        drop(state);
        let options = SplitOptions { worker: self.name.clone(), ..SplitOptions::default() };
        let mut target = Only { regions, directories };
        let mut doubtful = Doubtful::new();
        for file in &files {
            split_one(&*self.volume, file, &mut target, &options, &mut doubtful)?;
        }
        let mut state = self.state.lock();
        regions.iter().for_each(|region| state.accounting.region_closed(region));
        Ok(())
    }
}

/// Some regions; nothing is asked of the others.
struct Only<'a> {
    regions: &'a BTreeSet<Arc<str>>,
    directories: &'a mut dyn SplitTarget,
}

impl SplitTarget for Only<'_> {
    fn destination(&mut self, table: &str, region: &str) -> Result<SplitDestination> {
        if self.regions.contains(region) {
            return self.directories.destination(table, region);
        }
        Ok(SplitDestination::Drop)
    }
}
