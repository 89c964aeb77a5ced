//! Choosing what to compact: a job owns its files until it is done or dropped.

use super::policy::{self, Choice};
use super::{CompactionKind, Compactor, Output};
use crate::error::{RegionError, Result};
use crate::region::Region;
use crate::settings::RegionSettings;
use crate::store::{FileWork, Store, StoreView};
use crate::store_file::StoreFile;
use crate::stripes::{RowRange, Stripes};
use base::ReadPoint;
use bytes::Bytes;
use model::StoreEngine;
use std::sync::Arc;

/// Files chosen to be compacted; they are in no other job. Dropping it gives them back.
#[derive(Debug)]
pub struct CompactionJob {
    region: Arc<Region>,
    /// Place of its store.
    pub(super) store: usize,
    pub(super) files: Vec<Arc<StoreFile>>,
    pub(super) all_files: bool,
    pub(super) is_major: bool,
    /// Values in MOB files are written anew, as HBase does when somebody asks for a major compaction.
    pub(super) rewrites_mob: bool,
    /// How what comes out is divided.
    pub(super) output: Output,
    /// The rows of which delete markers go although it is not of all files.
    pub(super) drops: Option<RowRange>,
}

impl CompactionJob {
    /// The family.
    pub fn family(&self) -> &Bytes {
        &self.region.core().stores[self.store].name
    }

    /// Bytes to be read.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len_bytes()).sum()
    }

    /// Number of files.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Names of the files, oldest first.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.name.as_str())
    }

    /// Whether it belongs in the queue for large compactions.
    pub fn is_large(&self) -> bool {
        self.size_bytes() > self.region.core().stores[self.store].settings.load().compaction_throttle_point_bytes
    }

    /// Whether all files of the store are in it and delete markers go.
    pub fn is_major(&self) -> bool {
        self.is_major
    }

    /// Chooses files of one store to compact: of the given family, else of the family with the most files. Files whose
    /// cells are all expired are dropped on the way. `None`: nothing to do now.
    pub(crate) fn select(
        region: &Arc<Region>,
        family: Option<&[u8]>,
        kind: CompactionKind,
    ) -> Result<Option<CompactionJob>> {
        let core = region.core();
        core.check_open()?;
        if !Compactor::new(core).may_compact() {
            return Ok(None);
        }
        let mut order: Vec<usize> = match family {
            Some(family) => {
                let at = core.stores.iter().position(|store| store.name == family);
                vec![at.ok_or_else(|| core.no_such_family(family))?]
            }
            None => (0..core.stores.len()).collect(),
        };
        order.sort_by_key(|at| std::cmp::Reverse(core.stores[*at].peek().files.len()));
        for at in order {
            if let Some(job) = CompactionJob::select_in(region, at, kind)? {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    fn select_in(region: &Arc<Region>, at: usize, kind: CompactionKind) -> Result<Option<CompactionJob>> {
        let core = region.core();
        let store = &core.stores[at];
        Compactor::new(core).drop_expired_files(store)?;
        let mut work = store.work.lock();
        let view = store.view();
        let wants_major = kind == CompactionKind::Major || work.force_major;
        let now = core.env.clock.now_ms().0;
        let settings = store.settings.load();
        let ttl_ms = store.rules.ttl_ms;
        let engine = store.engine(&settings);
        let Choice { files, is_major, output, drops } = match engine {
            StoreEngine::Default => policy::choose(&view.files, &work.compacting, &settings, ttl_ms, wants_major, now),
            StoreEngine::DateTiered | StoreEngine::CustomTiered => {
                let tiering = store.tiering(&settings);
                policy::choose_in_tiers(&view.files, &work.compacting, tiering, &settings, ttl_ms, wants_major, now)
            }
            StoreEngine::Stripe if !work.compacting.is_empty() => return Ok(None),
            StoreEngine::Stripe => Compactor::new(core).choose_in_stripes(store, &view, &settings),
        };
        if files.is_empty() {
            return Ok(None);
        }
        // In stripes none counts as one, whatever it takes: that is for each of them.
        let all_files = files.len() == view.files.len() && engine != StoreEngine::Stripe;
        if is_major && all_files {
            (work.force_major, work.owes_major) = (false, false);
        }
        work.compacting.extend(files.iter().map(|file| file.name.clone()));
        drop(work);
        let is_major = is_major && all_files;
        let rewrites_mob = is_major && wants_major;
        let region = region.clone();
        Ok(Some(CompactionJob { region, store: at, files, all_files, is_major, rewrites_mob, output, drops }))
    }
}

impl Drop for CompactionJob {
    fn drop(&mut self) {
        let mut work = self.region.core().stores[self.store].work.lock();
        for file in &self.files {
            work.compacting.remove(&file.name);
        }
    }
}

impl Compactor<'_> {
    /// What a store in stripes has to compact.
    pub(super) fn choose_in_stripes(&self, store: &Store, view: &StoreView, settings: &RegionSettings) -> Choice {
        let now = self.core.env.clock.now_ms().0;
        let expires = store.rules.ttl_ms.is_some() && store.rules.min_versions == 0;
        let oldest_unexpired = expires.then(|| store.rules.oldest_unexpired(now));
        let choose = |stripes: &Stripes| {
            policy::choose_in_stripes(&view.files, &stripes.layout, settings, oldest_unexpired, now)
        };
        match &view.stripes {
            Some(stripes) => choose(stripes),
            // The engine was another when this picture was made.
            None => choose(&Stripes::of(&view.files)),
        }
    }

    /// Follows: `HStore#removeUnneededFiles`.
    fn drop_expired_files(&self, store: &Store) -> Result<()> {
        let view = store.view();
        let expired: Vec<Arc<StoreFile>> = {
            let work = store.work.lock();
            self.expired_files(store, &view, &work).cloned().collect()
        };
        if expired.is_empty() {
            return Ok(());
        }
        let _gate = self.core.flushing.lock();
        self.core.check_open()?;
        let untracked = store.tracker.replace(&self.core.env, expired.iter().map(|file| file.name.as_str()), &[]);
        untracked.map_err(|failed| match failed.is_undone {
            true => RegionError::volume(self.core.name(), failed.error),
            // The next opening may look for the files that go.
            false => self.core.sequencer.rollback_failed("the list of store files", failed.error),
        })?;
        self.replace_files(store, &expired, &[], ReadPoint(0))?;
        // They are archived with the next compaction, or by whoever does so now and then.
        Ok(())
    }

    pub(super) fn has_expired_files(&self, store: &Store, view: &StoreView, work: &FileWork) -> bool {
        self.expired_files(store, view, work).next().is_some()
    }

    /// Files that are to be dropped: all their cells are past the time to live.
    fn expired_files<'v>(
        &self,
        store: &Store,
        view: &'v StoreView,
        work: &'v FileWork,
    ) -> impl Iterator<Item = &'v Arc<StoreFile>> {
        let drops =
            store.settings.load().delete_expired_files && store.rules.min_versions == 0 && store.rules.ttl_ms.is_some();
        let oldest_unexpired = store.rules.oldest_unexpired(self.core.env.clock.now_ms().0);
        // The newest file stays: it says up to where the log was flushed. So does the newest of each stripe, which says that the stripe is there.
        let newest = view.files.last().map(|file| file.max_seq_id);
        let layout = view.stripes.iter().map(|stripes| &stripes.layout);
        let of_stripes =
            layout.flat_map(|layout| layout.stripes.iter().chain([&layout.level0])).filter_map(|files| files.last());
        let kept: Vec<usize> = of_stripes.copied().chain(view.files.len().checked_sub(1)).collect();
        let files = view.files.iter().enumerate().take(if drops { view.files.len() } else { 0 });
        files
            .filter(move |(at, file)| !kept.contains(at) && (view.stripes.is_none() || Some(file.max_seq_id) != newest))
            .map(|(_, file)| file)
            .filter(|file| !work.compacting.contains(&file.name))
            .filter(move |file| file.reader.time_range().is_some_and(|(_, max)| max < oldest_unexpired))
    }
}
