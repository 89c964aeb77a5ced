//! A store: one family of a region, in memory and in files.
//!
//! Readers take the store's [`StoreView`], an immutable picture: the memstore's segments and the list of files. Every
//! change (a flush that begins or ends, a compaction) publishes a new picture in one step; whoever holds an old one
//! keeps reading it, whatever happens to the store. Follows: `HStore`, `StoreFileManager`.

use crate::RegionEnv;
use crate::RegionSettings;
use crate::compact::{Retired, Tiering};
use crate::error::{RegionError, Result};
use crate::mob::MobStore;
use crate::row_reads::RowReads;
use crate::scan::matcher::FamilyRules;
use crate::settings::CacheSwitches;
use crate::store_file::{Opening, StoreFile, dead_names};
use crate::stripes::Stripes;
use crate::tracker::{StoreTracker, tracker_of};
use arc_swap::ArcSwap;
use base::{ReadPoint, SeqId};
use bytes::Bytes;
use cell::Order;
use fs::FilePath;
use hfile::Dictionary;
use memstore::MemStore;
use model::{FamilyDescriptor, RegionInfo, StoreEngine, TableDescriptor};
use parking_lot::Mutex;
use rootdir::family_dir;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// What a reader sees of a store: shared, never changed (but for inserts into the active segment, which carry sequence
/// ids that the reader does not look at).
#[derive(Clone)]
pub(crate) struct StoreView {
    pub memory: MemStore,
    /// Oldest first, by sequence id.
    pub files: Arc<[Arc<StoreFile>]>,
    /// The earliest read point that still finds all its versions here: flushes and compactions keep only what later
    /// ones see. Of this opening; what an earlier one dropped is not known.
    pub whole_from: ReadPoint,
    /// How the files lie, in a store that keeps them in stripes.
    pub stripes: Option<Arc<Stripes>>,
}

impl StoreView {
    /// The files that can have a row, and others. Oldest first.
    #[inline]
    pub(crate) fn files_of(&self, row: &[u8]) -> &[Arc<StoreFile>] {
        self.stripes.as_ref().and_then(|stripes| stripes.files_of(row)).unwrap_or(&self.files)
    }
}

/// Files that are being worked on or wait to be archived.
#[derive(Default)]
pub(crate) struct FileWork {
    /// Names of files in a running compaction.
    pub compacting: BTreeSet<String>,
    /// Replaced files that some reader may still hold, or of which the log does not tell durably yet.
    pub retired: Vec<Retired>,
    /// The next selection is a major compaction.
    pub force_major: bool,
    /// And it comes without being asked for: there were files when somebody asked.
    pub owes_major: bool,
}

/// One family of a region.
pub(crate) struct Store {
    pub name: Bytes,
    pub table: Arc<TableDescriptor>,
    pub dir: FilePath,
    pub tracker: StoreTracker,
    pub rules: FamilyRules,
    /// Whether its edits are replicated.
    pub replicated: bool,
    /// Whether what reads bring from files is kept in the block cache (BLOCKCACHE), if they want that too.
    pub caches_blocks: bool,
    /// Of the family. Exchanged when the configuration is updated.
    pub settings: ArcSwap<RegionSettings>,
    /// What Zstandard blocks of its files are packed with: that of the opening.
    pub dictionary: Option<Arc<Dictionary>>,
    /// Where large values go; `None` in most families.
    pub mob: Option<Arc<MobStore>>,
    view: ArcSwap<StoreView>,
    /// Held while the view is replaced.
    changing: Mutex<()>,
    pub work: Mutex<FileWork>,
    /// Files whose move into the directory failed, and may have been done: where each was written, and where it may be.
    pub in_doubt: Mutex<Vec<(FilePath, FilePath)>>,
    /// Of the outstanding memstore snapshot: its newest possible sequence id; 0 when there is none.
    pub snapshot_seq_id: AtomicU64,
    pub last_major_compaction_ms: AtomicI64,
    /// Where cells that were read came from.
    pub row_reads: Arc<RowReads>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// What the family's descriptor says over the table's settings.
fn of_family(
    table_settings: &Arc<RegionSettings>,
    family: &FamilyDescriptor,
    info: &RegionInfo,
) -> Arc<RegionSettings> {
    table_settings.with_overrides(family.overrides(), |what| {
        let family = cell::print::to_string_binary(&family.name);
        tracing::warn!(
            "descriptor of table {}, family {family}: {what}; the table's value holds until the family is altered",
            info.table
        );
    })
}

impl Store {
    /// Opens the files of `family`, those that wait in `recovered.hfiles` too. Files that a compaction had replaced before a crash are archived, files that were
    /// never finished stay in `.tmp` (the region clears it).
    pub(crate) fn open(
        env: &Arc<RegionEnv>,
        info: &RegionInfo,
        table: &Arc<TableDescriptor>,
        name: &Bytes,
        table_settings: &Arc<RegionSettings>,
        directory_exists: bool,
    ) -> Result<Store> {
        let region = info.encoded_name();
        let volume_error = |e| RegionError::volume(region, e);
        let family = &table.families[name];
        let dir = family_dir(info, name);
        let settings = of_family(table_settings, family, info);
        let dictionary = dictionary_of(env, &settings, family, region)?;
        let opening = Opening {
            volume: &*env.volume,
            cache: &env.cache,
            info,
            family: name,
            in_memory: family.in_memory(),
            hot_age: settings.hot_age,
            dictionary: dictionary.as_ref(),
            moves: None,
        };
        let (tracker, names) =
            StoreTracker::open(env, region, &dir, tracker_of(env, info, table, family)?, directory_exists)?;
        if !names.is_empty() && !base::inject!("region.store.names-unsynced") {
            // A process that was killed may have left names that are not durable yet. Edits are dropped and replaced files archived because
            // of them, and readers see them: a power failure must not take them back.
            env.volume.sync_dir(&dir).map_err(volume_error)?;
        }
        let mut files = Vec::with_capacity(names.len());
        for name in &names {
            files.push(Arc::new(StoreFile::open(opening, name, None)?));
        }
        let gone = dead_names(files.iter().map(|file| &**file));
        let dead: Vec<&str> = files.iter().map(|file| file.name.as_str()).filter(|name| gone.contains(*name)).collect();
        let mut live: Vec<Arc<StoreFile>> = files.iter().filter(|file| !gone.contains(&file.name)).cloned().collect();
        tracker.settle(env, &live).map_err(volume_error)?;
        if !dead.is_empty() {
            rootdir::archive_files(opening.volume, &dir, &dead).map_err(volume_error)?;
        }
        sort_files(&mut live);
        Ok(Store::assemble(env, info, table, name, settings, tracker, live.into(), dictionary))
    }

    /// The store of a read replica: no files yet.
    pub(crate) fn of_replica(
        env: &Arc<RegionEnv>,
        info: &RegionInfo,
        table: &Arc<TableDescriptor>,
        name: &Bytes,
        table_settings: &Arc<RegionSettings>,
    ) -> Result<Store> {
        let family = &table.families[name];
        let settings = of_family(table_settings, family, info);
        let tracker = StoreTracker::of_replica(tracker_of(env, info, table, family)?);
        let dictionary = dictionary_of(env, &settings, family, info.encoded_name())?;
        Ok(Store::assemble(env, info, table, name, settings, tracker, Arc::new([]), dictionary))
    }

    #[allow(clippy::too_many_arguments, reason = "what two openings have in common")]
    fn assemble(
        env: &Arc<RegionEnv>,
        info: &RegionInfo,
        table: &Arc<TableDescriptor>,
        name: &Bytes,
        settings: Arc<RegionSettings>,
        tracker: StoreTracker,
        files: Arc<[Arc<StoreFile>]>,
        dictionary: Option<Arc<Dictionary>>,
    ) -> Store {
        let family = &table.families[name];
        let order = if info.table.is_meta() { Order::Meta } else { Order::User };
        let memory = MemStore::expecting(order, &common_row_prefix(&files));
        let view = StoreView { memory, files, whole_from: ReadPoint(0), stripes: None };
        let store = Store {
            name: name.clone(),
            rules: FamilyRules::of(family, settings.time_to_purge_deletes_ms),
            replicated: family.replication_scope() != 0,
            caches_blocks: family.block_cache_enabled(),
            table: table.clone(),
            dir: family_dir(info, name),
            tracker,
            settings: ArcSwap::new(settings),
            mob: MobStore::of(env, info, family, dictionary.clone()),
            dictionary,
            view: ArcSwap::from_pointee(view),
            changing: Mutex::new(()),
            work: Mutex::new(FileWork::default()),
            in_doubt: Mutex::default(),
            snapshot_seq_id: AtomicU64::new(0),
            last_major_compaction_ms: AtomicI64::new(0),
            row_reads: Arc::default(),
        };
        store.change(|_| ());
        store
    }

    /// The table's settings are others now.
    pub(crate) fn set_settings(&self, table_settings: &Arc<RegionSettings>, info: &RegionInfo) {
        self.settings.store(of_family(table_settings, self.family(), info));
    }

    pub(crate) fn family(&self) -> &FamilyDescriptor {
        &self.table.families[&self.name]
    }

    /// What comes into the block cache unasked, and leaves it.
    pub(crate) fn cache_switches(&self) -> CacheSwitches {
        self.settings.load().cache_switches(self.family())
    }

    /// How its files are kept. A family with MOB files has HBase's `MobStoreEngine` whatever is said.
    pub(crate) fn engine(&self, settings: &RegionSettings) -> StoreEngine {
        match settings.engine {
            _ if self.mob.is_some() => StoreEngine::Default,
            // Nothing says by which values.
            StoreEngine::CustomTiered if settings.tiers.value_qualifier.is_none() => StoreEngine::Default,
            engine => engine,
        }
    }

    /// What tells old from new, where its engine keeps them apart.
    pub(crate) fn tiering<'s>(&self, settings: &'s RegionSettings) -> Tiering<'s> {
        match &settings.tiers.value_qualifier {
            Some(qualifier) if settings.engine == StoreEngine::CustomTiered => Tiering::Values(qualifier),
            _ => Tiering::Times,
        }
    }

    /// Where a new file of this kind is to lie. Those of HBase's own tables lie with the names: nothing works without them.
    pub(crate) fn placement(&self, kind: fs::FileKind) -> fs::Placement {
        if self.table.name.is_system() {
            return fs::Placement::default();
        }
        placement_of(self.family(), &self.settings.load(), kind)
    }

    /// The present picture.
    #[inline]
    pub(crate) fn view(&self) -> Arc<StoreView> {
        self.view.load_full()
    }

    /// The present picture for a moment.
    #[inline]
    pub(crate) fn peek(&self) -> arc_swap::Guard<Arc<StoreView>> {
        self.view.load()
    }

    /// Whether `view` is still the present picture.
    #[inline]
    pub(crate) fn is_current(&self, view: &Arc<StoreView>) -> bool {
        Arc::ptr_eq(&self.view.load(), view)
    }

    /// Publishes a changed picture.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut StoreView) -> T) -> T {
        let _changing = self.changing.lock();
        let before = self.view.load_full();
        let mut view = (*before).clone();
        let result = change(&mut view);
        // Readers take the newest version from the newest file.
        let unsorted = !view.files.is_sorted_by(|a, b| by_age(a, b).is_le());
        if base::never!(unsorted, "{}: the files are not published in their order", self.dir) {
            let mut files = view.files.to_vec();
            sort_files(&mut files);
            view.files = files.into();
        }
        let in_stripes = self.engine(&self.settings.load()) == StoreEngine::Stripe;
        if in_stripes != view.stripes.is_some() || (in_stripes && !Arc::ptr_eq(&view.files, &before.files)) {
            view.stripes = in_stripes.then(|| Arc::new(Stripes::of(&view.files)));
        }
        self.view.store(Arc::new(view));
        result
    }

    /// No edit up to here is needed from the log for this family. A bulk load that gives its file a sequence id must
    /// flush first, or edits below that id would be passed over by a replay.
    pub(crate) fn max_flushed(&self) -> SeqId {
        self.peek().files.iter().map(|file| file.max_seq_id).max().unwrap_or(SeqId(0))
    }

    pub(crate) fn files_len_bytes(&self) -> u64 {
        self.peek().files.iter().map(|file| file.len_bytes()).sum()
    }

    pub(crate) fn heap_bytes(&self) -> u64 {
        self.peek().memory.sizes().heap_bytes as u64
    }

    pub(crate) fn opening<'a>(&'a self, env: &'a RegionEnv, info: &'a RegionInfo) -> Opening<'a> {
        Opening {
            volume: &*env.volume,
            cache: &env.cache,
            info,
            family: &self.name,
            in_memory: self.family().in_memory(),
            hot_age: self.settings.load().hot_age,
            dictionary: self.dictionary.as_ref(),
            moves: info.is_replica().then_some(&env.volume),
        }
    }
}

/// The dictionary that table or family name, if the family has files that may need it.
///
/// # Errors
/// It cannot be read: the family's files can neither be read nor written.
pub(crate) fn dictionary_of(
    env: &RegionEnv,
    settings: &RegionSettings,
    family: &FamilyDescriptor,
    region: &Arc<str>,
) -> Result<Option<Arc<Dictionary>>> {
    let Some(path) = &settings.zstd_dictionary else { return Ok(None) };
    match env.dictionaries.get(path) {
        Ok(dictionary) => Ok(Some(dictionary)),
        Err(what) => {
            let chosen = [
                family.compression_chosen(),
                family.compression_compact_chosen(true),
                family.compression_compact_chosen(false),
            ];
            let (name, key) = (cell::print::to_string_binary(&family.name), hfile::settings::ZSTD_DICTIONARY.key);
            if chosen.contains(&Some(model::Compression::Zstd)) {
                let what = format!(
                    "family {name}: {what}; its files cannot be unpacked without it: put it there, or correct {key}"
                );
                return Err(RegionError::Damaged { region: region.clone(), what });
            }
            tracing::warn!(
                "region {region}, family {name}: {what}. The region opens, but files that were packed with the dictionary cannot be \
                 read: put it there, or correct {key}"
            );
            Ok(None)
        }
    }
}

/// As [`dictionary_of`], of a region that is not open.
///
/// # Errors
/// As there.
pub(crate) fn dictionary_of_closed(
    env: &RegionEnv,
    table: &TableDescriptor,
    family: &FamilyDescriptor,
    region: &Arc<str>,
) -> Result<Option<Arc<Dictionary>>> {
    let settings = env.settings.load().with_overrides(table.overrides().chain(family.overrides()), |_| ());
    dictionary_of(env, &settings, family, region)
}

/// Of a family's files: its own STORAGE_POLICY or what `settings` say, and as many copies as its DFS_REPLICATION wants.
fn placement_of(family: &FamilyDescriptor, settings: &RegionSettings, kind: fs::FileKind) -> fs::Placement {
    let placement = fs::Placement { copies: family.dfs_replication(), ..fs::Placement::of(kind) };
    match family.storage_policy() {
        Some(policy) => placement.with_policy(Some(policy)),
        None => fs::Placement { policy: settings.block_storage_policy.clone(), ..placement },
    }
}

/// Oldest first. Follows: `StoreFileComparators.SEQ_ID`.
pub(crate) fn sort_files(files: &mut [Arc<StoreFile>]) {
    files.sort_by(|a, b| by_age(a, b));
}

fn by_age(a: &StoreFile, b: &StoreFile) -> Ordering {
    a.max_seq_id
        .cmp(&b.max_seq_id)
        .then_with(|| b.len_bytes().cmp(&a.len_bytes()))
        .then_with(|| a.reader.bulk_load_time_ms().cmp(&b.reader.bulk_load_time_ms()))
        .then_with(|| a.name.cmp(&b.name))
}

/// What all rows of the files begin with: so most rows to come are likely to begin.
fn common_row_prefix(files: &[Arc<StoreFile>]) -> Vec<u8> {
    let mut rows =
        files.iter().flat_map(|file| [file.reader.first_key(), file.reader.last_key()]).flatten().map(|key| key.row());
    let mut common = rows.next().unwrap_or_default().to_vec();
    for row in rows {
        let len = common.iter().zip(row).take_while(|(a, b)| a == b).count();
        common.truncate(len);
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    /// STORAGE_POLICY, `hbase.hstore.block.storage.policy`, `hbase.hregion.block.storage.policy`, DFS_REPLICATION.
    #[test]
    fn files_lie_where_family_store_or_region_say_in_as_many_copies() {
        let of = |says: &[(&'static str, &str)], site: &[(&str, &str)]| {
            let mut config = base::Config::default();
            site.iter().for_each(|(key, value)| config.set(*key, *value));
            let family = says.iter().fold(FamilyDescriptor::new("f"), |family, (key, value)| family.with(key, *value));
            let placement = placement_of(&family, &RegionSettings::from_config(&config), fs::FileKind::Flush);
            (placement.policy.as_deref().map(str::to_owned), placement.copies)
        };
        let named = |name: &str| (Some(name.to_owned()), None);
        const STORE: (&str, &str) = ("hbase.hstore.block.storage.policy", "WARM");
        const REGION: (&str, &str) = ("hbase.hregion.block.storage.policy", "COLD");
        assert_eq!(of(&[], &[]), (None, None));
        assert_eq!(of(&[], &[REGION]), named("COLD"));
        assert_eq!(of(&[], &[STORE, REGION]), named("WARM"));
        assert_eq!(of(&[("STORAGE_POLICY", "HOT")], &[STORE, REGION]), named("HOT"));
        assert_eq!(of(&[("STORAGE_POLICY", "NONE")], &[STORE, REGION]), (None, None));
        for (copies, kept) in [("2", Some(2)), ("0", None), ("-1", None), ("two", None)] {
            assert_eq!(of(&[("DFS_REPLICATION", copies)], &[]), (None, kept), "{copies}");
        }
    }
}
