//! Opening a region: its files, what recovered edits hold beyond them, and the marker that says so.

use crate::accounting::MemstoreAccounting;
use crate::backpressure::RegionDebt;
use crate::close;
use crate::core::{RegionCore, Serving};
use crate::error::{RegionError, Result};
use crate::flush_policy::FlushPolicy;
use crate::marker;
use crate::new_file::FileWriter;
use crate::outbox::Outbox;
use crate::region::RecoveredNonce;
use crate::replay::{RecoveredEdits, Replayed, Replayer};
use crate::replica::{Replica, ReplicaState};
use crate::row_lock::RowLocks;
use crate::scan::update_readers::ScannerReadPoints;
use crate::sequencer::Sequencer;
use crate::split::SplitPolicy;
use crate::stats::Counters;
use crate::store::Store;
use crate::ticks::RegionTicks;
use crate::tracker::tracker_of;
use crate::{RegionEnv, RegionSettings};
use base::{Rng, SeqId};
use fs::DirEntry;
use model::{FamilyDescriptor, RegionInfo, TableDescriptor};
use parking_lot::{Mutex, RwLock};
use proto::pb::region_event_descriptor::EventType;
use std::sync::Arc;

/// What to open.
#[derive(Debug, Clone)]
pub struct OpenRegion {
    /// Which region.
    pub info: RegionInfo,
    /// Its table.
    pub table: Arc<TableDescriptor>,
    /// Where.
    pub env: Arc<RegionEnv>,
}

impl OpenRegion {
    /// The flush policy of a table with a family that is compacted in memory is always this one. (Memstores are arenas that are not compacted
    /// here: what such a family's reads return and its files hold is the same under each policy.) Follows: `HRegion#initializeStores`.
    fn with_flush_policy(self) -> OpenRegion {
        if !self.table.families.values().any(FamilyDescriptor::compacts_in_memory) {
            return self;
        }
        let mut table = TableDescriptor::clone(&self.table);
        let policy = "org.apache.hadoop.hbase.regionserver.FlushNonSloppyStoresFirstPolicy";
        table.attributes.insert("FLUSH_POLICY".into(), policy.into());
        OpenRegion { table: Arc::new(table), ..self }
    }

    /// Opens it: the region, and the nonces that replayed edits carried.
    pub(crate) fn open(self) -> Result<(RegionCore, Vec<RecoveredNonce>)> {
        self.with_flush_policy().open_stores_and_begin()
    }

    fn open_stores_and_begin(self) -> Result<(RegionCore, Vec<RecoveredNonce>)> {
        self.refuse_what_would_be_misread()?;
        let entries = self.prepare_directory()?;
        let settings = self.table_settings();
        let stores = self.open_stores(&settings, &entries)?;
        let has_edits = entries.iter().any(|entry| entry.is_dir && entry.name == rootdir::recovered_edits::DIR);
        let edits = RecoveredEdits::find(&self.env, &self.info, has_edits)?;
        let max_in_files = stores.iter().map(Store::max_flushed).max().unwrap_or(SeqId(0));
        let core = self.assemble(settings, stores, max_in_files.max(edits.max_seq_id));
        if core.env.volume.capabilities().shared {
            FileWriter::new(&core).create_temp_dirs().map_err(|e| RegionError::volume(core.name(), e))?;
        }
        let nonces = begin(&core, edits)?;
        Ok((core, nonces))
    }

    /// Opens a read replica: what `primary` shows of its files now, or else what the primary's directory has. Nothing is written there, and it has
    /// no entry in a log; what its primary has recovered edits for comes with the primary's files.
    pub(crate) fn open_replica(self, primary: Option<&RegionCore>) -> Result<RegionCore> {
        let settings = self.table_settings();
        let OpenRegion { info, table, env } = &self;
        let store = |family| Store::of_replica(env, info, table, family, &settings);
        let stores = table.families.keys().map(store).collect::<Result<Vec<_>>>()?;
        let last = match primary {
            Some(primary) => SeqId(primary.read_point().0),
            None => self.last_of_primary()?,
        };
        let mut core = self.assemble(settings, stores, last);
        match primary {
            Some(primary) => _ = Replica::new(&core).share(primary),
            None => _ = Replica::new(&core).refresh()?,
        }
        let in_files = core.stores.iter().map(Store::max_flushed).max().unwrap_or_default();
        core.open_seq_id = core.open_seq_id.max(SeqId(in_files.0 + 1));
        *core.replica.get_mut() = ReplicaState::opening(in_files);
        Ok(core)
    }

    /// Ids up to here were used when the primary closed last or opened: HBase has a replica's opening say no lower one.
    fn last_of_primary(&self) -> Result<SeqId> {
        let dir = rootdir::region_dir(&self.info).join(rootdir::recovered_edits::DIR);
        let names = rootdir::list_if_exists(&*self.env.volume, &dir);
        let names = names.map_err(|e| RegionError::volume(self.info.encoded_name(), e))?;
        let last = rootdir::recovered_edits::max_seq_id_file(names.iter().map(|entry| entry.name.as_str()));
        Ok(last.unwrap_or_default())
    }

    /// A server that does not know who else reads or writes a region's files, or who keeps the list of them, would lose some without a word.
    fn refuse_what_would_be_misread(&self) -> Result<()> {
        let OpenRegion { info, table, .. } = self;
        let name = info.name_string();
        if info.replica_id > 0 {
            let why = format!("{name} is read replica {} of its region, and is not opened as one", info.replica_id);
            return Err(RegionError::DoNotRetry(why));
        }
        table.families.values().try_for_each(|family| tracker_of(&self.env, info, table, family).map(|_| ()))
    }

    /// What the region's directory holds, when what an earlier opening left half done is finished or swept.
    fn prepare_directory(&self) -> Result<Vec<DirEntry>> {
        let OpenRegion { info, table, env } = self;
        let volume_error = |e| RegionError::volume(info.encoded_name(), e);
        let dir = rootdir::region_dir(info);
        let entries = match env.volume.list(&dir) {
            Ok(entries) => entries,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(volume_error(error)),
        };
        if !entries.iter().any(|entry| entry.name == rootdir::region_dir::REGION_INFO_FILE) {
            rootdir::create_region_dir_durably(&*env.volume, info, table).map_err(volume_error)?;
        }
        if entries.iter().any(|entry| entry.name == rootdir::paths::TEMP) {
            env.volume.remove_dir_all(&dir.join(rootdir::paths::TEMP)).map_err(volume_error)?;
        }
        let names = entries.iter().map(|entry| entry.name.as_str());
        match crate::bulk_load::finish_interrupted(env, info, table, names)? {
            true => env.volume.list(&dir).map_err(volume_error),
            false => Ok(entries),
        }
    }

    fn table_settings(&self) -> Arc<RegionSettings> {
        of_table(&self.env.settings.load(), &self.table, &self.info)
    }

    fn open_stores(&self, settings: &Arc<RegionSettings>, entries: &[DirEntry]) -> Result<Vec<Store>> {
        let OpenRegion { info, table, env } = self;
        let mut stores = Vec::with_capacity(table.families.len());
        for family in table.families.keys() {
            let family_dir = rootdir::family_name(family);
            let exists = entries.iter().any(|entry| entry.is_dir && entry.name == family_dir);
            stores.push(Store::open(env, info, table, family, settings, exists)?);
        }
        Ok(stores)
    }

    /// The region before it has replayed anything; ids up to `last` are used.
    fn assemble(self, settings: Arc<RegionSettings>, stores: Vec<Store>, last: SeqId) -> RegionCore {
        let OpenRegion { info, table, env } = self;
        let open_seq_id = SeqId(last.0 + 1);
        let outbox = settings.replica_buffer_bytes_of(&info.table).filter(|_| has_replicas_to_tell(&info, &table));
        let flush_bytes = table.flush_size_bytes().unwrap_or(settings.flush_size_bytes);
        let core = RegionCore {
            debt: RegionDebt::new(flush_bytes, flush_bytes.saturating_mul(settings.block_multiplier)),
            table_durability: table.durability(),
            ticks: RegionTicks::new(&env, &info, &settings),
            flush_policy: FlushPolicy::new(&table, &settings),
            split_policy: SplitPolicy::new(&table, &settings, &jitter_of(&info, open_seq_id), env.clock.now_ms().0),
            settings,
            stores: stores.into_boxed_slice(),
            sequencer: Sequencer::new(info.encoded_name().clone(), last),
            locks: RowLocks::default(),
            updates: RwLock::new(()),
            flushing: Mutex::new(()),
            serving: Serving::default(),
            open_seq_id,
            scanner_read_points: ScannerReadPoints::default(),
            temp_dir: rootdir::temp_dir(&info, &env.server_name, open_seq_id),
            accounting: MemstoreAccounting::new(&env.memory, env.clock.now_ms().0),
            counters: Counters::default(),
            outbox: outbox.map(|bytes| Outbox::new(&env.memory, bytes, table.region_memstore_replication())),
            replica: Mutex::default(),
            info,
            table,
            env,
        };
        core.count_files();
        core
    }
}

fn has_replicas_to_tell(info: &RegionInfo, table: &TableDescriptor) -> bool {
    !info.is_replica() && table.region_replication() > 1
}

/// Decides how far this opening's bound of splits is from the table's. Not a draw from the server's numbers: names of files come from there.
fn jitter_of(info: &RegionInfo, open_seq_id: SeqId) -> Rng {
    let name = info
        .encoded_name()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Rng::seeded(name ^ open_seq_id.0)
}

/// Brings the edits in and says in the log that the region is open.
fn begin(core: &RegionCore, edits: RecoveredEdits) -> Result<Vec<RecoveredNonce>> {
    let replayer = Replayer::new(core);
    let replayed = replayer.replay(edits).and_then(|replayed| {
        let (seq_id, _) = marker::append(core, &marker::region_event(core, EventType::RegionOpen))?;
        if let Some(outbox) = &core.outbox {
            outbox.opens(seq_id);
            if core.accounting.heap_bytes() == 0 {
                outbox.opens_whole();
                // The log's entry may be dropped as flushed. Were the number forgotten, read replicas would take whoever opens the region after a
                // crash for an earlier primary, and not hear it. Follows: `HRegion#initializeRegionInternals`, which writes it of every region.
                close::write_seq_id_file(core, seq_id)?;
            }
        }
        Ok(replayed)
    });
    let Replayed { nonces, kept } = replayed.map_err(|error| {
        core.accounting.forget();
        core.forget_debt();
        // The log has entries under these, and the next attempt perhaps nothing that says so.
        core.env.log.note_used_seq_id(core.name(), core.sequencer.last_seq_id());
        match error {
            // Nobody was told of anything: a file that stays holds what the logs hold, and the next opening takes it for what it is.
            RegionError::RollbackFailed { region, source, .. } => RegionError::Volume { region, source },
            other => other,
        }
    })?;
    if let Some(lowest) = kept {
        replayer.keep_inherited(lowest);
    }
    Ok(nonces)
}

/// What the table's descriptor says over the server's settings.
pub(crate) fn of_table(
    settings: &Arc<RegionSettings>,
    table: &TableDescriptor,
    info: &RegionInfo,
) -> Arc<RegionSettings> {
    settings.with_overrides(table.overrides(), |what| {
        tracing::warn!(
            "descriptor of table {}: {what}; the server's value holds until the table is altered",
            info.table
        );
    })
}
