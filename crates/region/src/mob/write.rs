//! Writing a store file of a MOB family: large values go aside, references take their place. Follows:
//! `DefaultMobStoreFlusher`, `DefaultMobStoreCompactor`.

use super::read::MobReads;
use super::{MobStore, Refs, file_name, is_put, is_reference, target};
use crate::error::{RegionError, Result};
use base::SeqId;
use cell::{CellRef, CellSpec};
use fs::FilePath;
use hfile::file_info::key;
use hfile::{Reader, ReaderContext, Residency, StoreMetadata, Writer, WriterOptions};
use model::MobRead;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What the large values of a rewrite come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MobWork {
    /// The newest timestamp, for the new file's name.
    pub newest_ms: i64,
    /// Large values that lie in MOB files are written anew too: what was deleted of those files goes.
    pub rewrite: bool,
    /// The cells come from a memstore.
    pub is_flush: bool,
}

/// Stands between a rewrite and its store file.
pub(crate) struct MobSink {
    store: Arc<MobStore>,
    work: MobWork,
    reads: MobReads,
    options: WriterOptions,
    temp_dir: FilePath,
    file: Option<NewMobFile>,
    refs: Refs,
    reference: Vec<u8>,
    resolved: Vec<u8>,
}

struct NewMobFile {
    name: String,
    temp: FilePath,
    writer: Writer,
}

impl MobSink {
    /// `options` are those of the store file; the MOB file differs where it must.
    pub(crate) fn new(store: &Arc<MobStore>, work: MobWork, options: &WriterOptions, temp_dir: &FilePath) -> MobSink {
        let how = MobRead { cache_blocks: false, ..MobRead::default() };
        MobSink {
            store: store.clone(),
            work,
            reads: MobReads { store: store.clone(), how, residency: Residency::MayRead },
            options: WriterOptions {
                bloom: hfile::BloomType::None,
                include_mvcc: true,
                include_tags: true,
                cache_on_write: hfile::CacheOnWrite::Nothing,
                cache_index_on_write: None,
                cache_blooms_on_write: None,
                placement: fs::Placement { kind: fs::FileKind::Large, ..options.placement.clone() },
                ..options.clone()
            },
            temp_dir: temp_dir.clone(),
            file: None,
            refs: Refs::default(),
            reference: Vec::new(),
            resolved: Vec::new(),
        }
    }

    /// Writes the cell to `out`, or a reference in its place.
    pub(crate) fn append(&mut self, cell: CellRef<'_>, out: &mut Writer) -> Result<()> {
        let wrap = |store: &MobStore, e| RegionError::file(&store.region, e);
        if !is_put(cell) {
            return out.append(cell).map_err(|e| wrap(&self.store, e));
        }
        if is_reference(cell) {
            if self.work.rewrite && target(cell).is_some() {
                let mut resolved = std::mem::take(&mut self.resolved);
                let outcome = self.reads.resolve(cell, &mut resolved).and_then(|()| {
                    let real = CellRef::from_checked(&resolved, cell.seq_id());
                    if real.value().is_empty() {
                        return Err(RegionError::Damaged {
                            region: self.store.region.clone(),
                            what: format!(
                                "a MOB file does not have the cell {} that a store file refers to",
                                cell::print::to_string_binary(cell.key().bytes())
                            ),
                        });
                    }
                    self.append_real(real, true, out)
                });
                self.resolved = resolved;
                return outcome;
            }
            match target(cell) {
                Some((table, name)) => self.refs.add(&table, name),
                None => tracing::warn!(
                    key = %cell::print::to_string_binary(cell.key().bytes()),
                    "a MOB reference names no file; it is kept as it is"
                ),
            }
            return out.append(cell).map_err(|e| wrap(&self.store, e));
        }
        self.append_real(cell, false, out)
    }

    /// A cell with its value, which lay in a MOB file or did not.
    fn append_real(&mut self, cell: CellRef<'_>, was_in_mob: bool, out: &mut Writer) -> Result<()> {
        let wrap = |store: &MobStore, e| RegionError::file(&store.region, e);
        if cell.value().len() as u64 <= self.store.threshold_bytes {
            if was_in_mob {
                self.store.counts.compacted_from.add(cell.value().len());
            }
            return out.append(cell).map_err(|e| wrap(&self.store, e));
        }
        let mut tags = self.store.reference_tags.clone();
        tags.extend_from_slice(cell.tags());
        if tags.len() > usize::from(u16::MAX) {
            // There is no room for what makes a reference.
            return out.append(cell).map_err(|e| wrap(&self.store, e));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(create(&self.store, self.work, &self.options, &self.temp_dir)?),
        };
        file.writer.append(cell).map_err(|e| wrap(&self.store, e))?;
        let counts = &self.store.counts;
        let counted = if self.work.is_flush { &counts.flushed } else { &counts.compacted_to };
        counted.add(cell.value().len());
        let len = u32::try_from(cell.value().len()).unwrap_or(u32::MAX);
        let value = [&len.to_be_bytes()[..], file.name.as_bytes()].concat();
        let spec = CellSpec {
            row: cell.row(),
            family: cell.family(),
            qualifier: cell.qualifier(),
            timestamp: cell.timestamp(),
            type_code: cell.type_code(),
            value: &value,
            tags: &tags,
        };
        self.reference.clear();
        spec.write(&mut self.reference);
        out.append(CellRef::from_checked(&self.reference, cell.seq_id())).map_err(|e| wrap(&self.store, e))
    }

    /// Bytes that left for the MOB file, before compression.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.writer.written_bytes())
    }

    /// Everything is written: brings the MOB file into its place, durably, and tells the store file what it refers to.
    pub(crate) fn finish(mut self, metadata: &StoreMetadata, out: &mut Writer) -> Result<()> {
        if let Some(file) = self.file.take() {
            let name = file.name.clone();
            let temp = file.temp.clone();
            let committed = commit(&self.store, file, metadata);
            let now = self.store.env.clock.now_ms().0;
            self.store.fresh.lock().insert(name.clone(), Some(now));
            if let Err(error) = committed {
                let _ = self.store.env.volume.remove_file(&temp);
                return Err(error);
            }
            if self.work.is_flush {
                self.store.counts.flushes.fetch_add(1, Ordering::Relaxed);
            }
            self.refs.add(&self.store.table, &name);
        }
        out.append_file_info(key::MOB_FILE_REFS, &self.refs.to_bytes());
        Ok(())
    }

    /// The store file is given up.
    pub(crate) fn discard(self) {
        if let Some(file) = self.file {
            self.store.fresh.lock().remove(&file.name);
            drop(file.writer);
            let _ = self.store.env.volume.remove_file(&file.temp);
        }
    }
}

fn create(store: &MobStore, work: MobWork, options: &WriterOptions, temp_dir: &FilePath) -> Result<NewMobFile> {
    let env = &store.env;
    let name = file_name(&store.start_key, work.newest_ms, &env.rng.uuid_hex(), &store.region);
    store.fresh.lock().insert(name.clone(), None);
    let temp = temp_dir.join(&name);
    let writer =
        Writer::create(&*env.volume, &temp, options.clone()).map_err(|e| RegionError::file(&store.region, e))?;
    Ok(NewMobFile { name, temp, writer })
}

fn commit(store: &MobStore, mut file: NewMobFile, metadata: &StoreMetadata) -> Result<()> {
    let volume = &*store.env.volume;
    let (of_volume, of_file) = (|e| RegionError::volume(&store.region, e), |e| RegionError::file(&store.region, e));
    let count = file.writer.entry_count();
    file.writer.append_file_info(key::MOB_CELLS_COUNT, &(count as i64).to_be_bytes());
    let metadata = StoreMetadata {
        max_seq_id: Some(metadata.max_seq_id.unwrap_or(SeqId(0))),
        major_compaction: metadata.major_compaction,
        ..StoreMetadata::default()
    };
    file.writer.finish(&metadata).map_err(of_file)?;
    let context = ReaderContext { dictionary: store.dictionary.clone(), ..ReaderContext::default() };
    let reader = Reader::open(volume, &file.temp, context).map_err(of_file)?;
    if reader.entry_count() != count {
        return Err(RegionError::Damaged {
            region: store.region.clone(),
            what: format!("{} was written with {count} cells and reads back with {}", file.temp, reader.entry_count()),
        });
    }
    volume.create_dir_all_durable(&store.dir).map_err(of_volume)?;
    volume.rename_new(&file.temp, &store.dir.join(&file.name)).map_err(of_volume)?;
    volume.sync_dir(&store.dir).map_err(of_volume)
}
