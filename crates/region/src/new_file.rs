//! Writes a new store file: into the opening's own directory below `.tmp`, synced, moved into the family's directory, that synced too. Only
//! then does anybody hear of it; a crash before leaves at most a file that nobody knows.

use crate::error::{RegionError, Result};
use crate::mob::write::{MobSink, MobWork};
use crate::region::Region;
use crate::scan::store_scanner::{Step, StoreScanner};
use crate::store::Store;
use crate::store_file::StoreFile;
use base::SeqId;
use cell::CellRef;
use fs::FilePath;
use hfile::{CacheOnWrite, FinishedFile, Reader, ReaderContext, StoreMetadata, Writer, WriterOptions};
use rootdir::family_name;
use std::sync::Arc;

/// What the cells of a new file come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewFile {
    /// The codec that the family chose; without one the server's default holds.
    pub compression: Option<model::Compression>,
    pub include_mvcc: bool,
    pub include_tags: bool,
    pub cache: Caching,
    /// Whether the file is written past the operating system's memory.
    pub past_cache: bool,
    /// What becomes of large values, in a MOB family.
    pub mob: MobWork,
    /// Cells up to this id lose it: every reader sees them.
    pub forget_seq_ids_to: SeqId,
}

/// Which blocks of a new file the block cache gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// All, if the family says so.
    AsFamily,
    /// All.
    All,
    /// Those whose cells were in it before.
    Wanted,
}

/// A written file that is not in its place yet.
pub(crate) struct Pending {
    name: String,
    temp: FilePath,
    finished: FinishedFile,
}

impl Pending {
    pub(crate) fn len_bytes(&self) -> u64 {
        self.finished.len_bytes
    }
}

impl Region {
    /// Runs `scanner` to its end into a new file, also when no cell was left to write: the file says up to where the store was flushed.
    /// `proceed` is asked now and then with the bytes written since; when it says no, the file is given up and the result is an error made
    /// by it.
    pub(crate) fn write_file(
        &self,
        store: &Store,
        mut scanner: StoreScanner,
        new: NewFile,
        metadata: &StoreMetadata,
        proceed: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Pending> {
        let volume = &*self.env().volume;
        let region = self.name();
        let volume_error = |e| RegionError::volume(region, e);
        let file_error = |e| RegionError::file(region, e);
        let temp_dir = self.temp_dir(store).map_err(volume_error)?;
        let name = self.env().rng.uuid_hex();
        let temp = temp_dir.join(&name);
        let new = match &store.mob {
            // References have tags, and are told apart by their sequence ids.
            Some(_) => NewFile { include_tags: true, forget_seq_ids_to: SeqId(0), ..new },
            None => new,
        };
        let options = self.writer_options(store, new)?;
        let mut mob = store.mob.as_ref().map(|mob| MobSink::new(mob, new.mob, &options, &temp_dir));
        let mut writer = Writer::create(volume, &temp, options).map_err(file_error)?;
        let mut reported = 0;
        let mut write_all = || -> Result<()> {
            while scanner.peek().is_some() {
                let mut take = |cell: CellRef<'_>, is_wanted: bool| -> Result<()> {
                    let cell = if cell.seq_id() <= new.forget_seq_ids_to { cell.with_seq_id(SeqId(0)) } else { cell };
                    match &mut mob {
                        Some(mob) => mob.append(cell, &mut writer),
                        None => writer.append_wanted(cell, is_wanted).map_err(file_error),
                    }
                };
                scanner.take_plain_rows(&mut take)?;
                scanner.start_row();
                loop {
                    let mut budget = u64::MAX;
                    match scanner.step(None, &mut budget)? {
                        Step::Cell => take(scanner.cell(), scanner.is_wanted())?,
                        Step::Pause => {}
                        Step::RowEnd | Step::End => break,
                    }
                }
                let written = writer.written_bytes() + mob.as_ref().map_or(0, MobSink::written_bytes);
                if written - reported >= 64 * 1024 {
                    proceed(written - reported)?;
                    reported = written;
                }
            }
            Ok(())
        };
        if let Err(error) = write_all() {
            drop(writer);
            if let Some(mob) = mob {
                mob.discard();
            }
            // What stays behind here is swept when the region opens.
            let _ = volume.remove_file(&temp);
            return Err(error);
        }
        if let Some(mob) = mob
            && let Err(error) = mob.finish(metadata, &mut writer)
        {
            drop(writer);
            let _ = volume.remove_file(&temp);
            return Err(error);
        }
        match writer.finish(metadata) {
            Ok(finished) => Ok(Pending { name, temp, finished }),
            Err(error) => {
                let _ = volume.remove_file(&temp);
                Err(file_error(error))
            }
        }
    }

    /// Makes the directories of this opening for files being written. Not durable: what is in them is of no use after a crash.
    pub(crate) fn create_temp_dirs(&self) -> fs::Result<()> {
        let of = |store: &Store| self.temp_dir.join(family_name(&store.name));
        self.stores.iter().try_for_each(|store| self.env().volume.create_dir_all(&of(store)))
    }

    /// Where files of a family are written. On a shared volume it is never made here: the next owner removes it before it looks at the
    /// families' directories, and from then on an owner that does not know of it yet can neither write nor publish a file.
    fn temp_dir(&self, store: &Store) -> fs::Result<FilePath> {
        let dir = self.temp_dir.join(family_name(&store.name));
        let volume = &*self.env().volume;
        if !volume.capabilities().shared {
            volume.create_dir_all(&dir)?;
        }
        Ok(dir)
    }

    /// Reads a written file as a whole where that is asked for (HBASE-29131): what was damaged on its way to the disk is found while the
    /// cells are still elsewhere. Follows: `StoreEngine#validateStoreFile`.
    fn read_back(&self, store: &Store, pending: &Pending) -> Result<()> {
        if !store.settings.validate_read_fully {
            return Ok(());
        }
        let volume = &*self.env().volume;
        let read = Reader::open(volume, &pending.temp, ReaderContext::default()).and_then(|file| file.read_through());
        let count = match read {
            Ok(count) => count,
            Err(error) => {
                // What stays behind here is swept when the region opens.
                let _ = volume.remove_file(&pending.temp);
                return Err(RegionError::file(self.name(), error));
            }
        };
        if count == pending.finished.entry_count { Ok(()) } else { Err(self.miscounted(store, pending, count)) }
    }

    fn miscounted(&self, store: &Store, pending: &Pending, count: u64) -> RegionError {
        let written = pending.finished.entry_count;
        let what =
            format!("{} was written with {written} cells and reads back with {count}", store.dir.join(&pending.name));
        RegionError::Damaged { region: self.name().clone(), what }
    }

    /// Moves a written file into its place, durably, and opens it.
    pub(crate) fn commit_file(&self, store: &Store, pending: &Pending) -> Result<Arc<StoreFile>> {
        self.read_back(store, pending)?;
        let volume = &*self.env().volume;
        let volume_error = |e| RegionError::volume(self.name(), e);
        let target = store.dir.join(&pending.name);
        match volume.rename_new(&pending.temp, &target) {
            Err(error) if error.is_not_found() => {
                // A family that was added to the table has no directory yet.
                if let Err(error) = volume.create_dir_all_durable(&store.dir) {
                    // The next attempt must find it missing again, and sync its name.
                    let _ = volume.remove_dir_all(&store.dir);
                    return Err(volume_error(error));
                }
                volume.rename_new(&pending.temp, &target).map_err(volume_error)?;
            }
            other => other.map_err(volume_error)?,
        }
        match self.open_committed(store, pending) {
            Ok(file) => Ok(Arc::new(file)),
            Err(error) => {
                // The work will be done again: this file must not come to light at the next opening, when what it
                // holds may have been deleted since.
                match volume.remove_file(&target).and_then(|()| volume.sync_dir(&store.dir)) {
                    Ok(()) => Err(error),
                    Err(stays) => Err(self.sequencer.rollback_failed("a new store file", stays)),
                }
            }
        }
    }

    fn open_committed(&self, store: &Store, pending: &Pending) -> Result<StoreFile> {
        self.env().volume.sync_dir(&store.dir).map_err(|e| RegionError::volume(self.name(), e))?;
        let opening = store.opening(self.env(), self.info());
        let file = StoreFile::open(opening, &pending.name, pending.finished.cache_file_id)?;
        if file.reader.entry_count() != pending.finished.entry_count {
            return Err(self.miscounted(store, pending, file.reader.entry_count()));
        }
        Ok(file)
    }

    fn writer_options(&self, store: &Store, new: NewFile) -> Result<WriterOptions> {
        let family = store.family();
        let unsupported = |what: &str| {
            RegionError::DoNotRetry(format!(
                "family {} asks for {what}, which is not supported; alter the table",
                cell::print::to_string_binary(&family.name)
            ))
        };
        let compression = match new.compression {
            // HBase must find its own tables plain, whatever codecs it has.
            None if self.info().table.is_system() => hfile::Compression::None,
            None => store.settings.default_compression,
            Some(model::Compression::None) => hfile::Compression::None,
            Some(model::Compression::Gz) => hfile::Compression::Gz,
            Some(model::Compression::Snappy) => hfile::Compression::Snappy,
            Some(model::Compression::Lz4) => hfile::Compression::Lz4,
            Some(model::Compression::Zstd) => hfile::Compression::Zstd,
            Some(other) => return Err(unsupported(&format!("compression {}", other.as_str()))),
        };
        let encoding = match family.data_block_encoding() {
            model::DataBlockEncoding::None => hfile::Encoding::None,
            model::DataBlockEncoding::Prefix => hfile::Encoding::Prefix,
            model::DataBlockEncoding::Diff => hfile::Encoding::Diff,
            model::DataBlockEncoding::FastDiff => hfile::Encoding::FastDiff,
            model::DataBlockEncoding::RowIndexV1 => hfile::Encoding::RowIndexV1,
        };
        let prefix_len = family.bloom_prefix_length().unwrap_or(0);
        let bloom = match family.bloom_type() {
            model::BloomType::None => hfile::BloomType::None,
            model::BloomType::Row => hfile::BloomType::Row,
            model::BloomType::RowCol => hfile::BloomType::RowCol,
            model::BloomType::RowPrefixFixedLength if prefix_len == 0 => hfile::BloomType::None,
            model::BloomType::RowPrefixFixedLength => hfile::BloomType::RowPrefixFixedLength,
        };
        let cache = || self.env().cache.clone();
        let cache_on_write = match new.cache {
            Caching::AsFamily if !family.cache_data_on_write() => CacheOnWrite::Nothing,
            Caching::AsFamily | Caching::All => CacheOnWrite::All(cache()),
            Caching::Wanted => CacheOnWrite::Wanted(cache()),
        };
        Ok(WriterOptions {
            compression,
            compression_must_pay: new.compression.is_none(),
            encoding,
            block_size_bytes: family.block_size_bytes(),
            bloom,
            bloom_prefix_len: prefix_len,
            order: self.order(),
            include_mvcc: new.include_mvcc,
            include_tags: new.include_tags,
            compress_tags: family.compress_tags(),
            create_time_ms: self.env().clock.now_ms(),
            cache_on_write,
            past_cache: new.past_cache,
            ..store.settings.new_files.clone()
        })
    }
}
