//! Writes a new store file: into the opening's own directory below `.tmp`, synced, moved into the family's directory, that synced too. Only
//! then does anybody hear of it; a crash before leaves at most a file that nobody knows.

mod by_value;

use self::by_value::ByValue;
use crate::compact::{Output, OutputWindow, RowCut};
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::mob::write::{MobSink, MobWork};
use crate::scan::store_scanner::{Step, StoreScanner};
use crate::store::Store;
use crate::store_file::StoreFile;
use crate::stripes::RowRange;
use base::SeqId;
use bytes::Bytes;
use cell::CellRef;
use fs::FilePath;
use hfile::{CacheOnWrite, FinishedFile, Reader, ReaderContext, StoreMetadata, Writer, WriterOptions};
use rootdir::family_name;
use std::sync::Arc;

/// Bytes written between two reports.
const REPORTED_BYTES: u64 = 64 * 1024;

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
    /// What it is for: where it lies may depend on that.
    pub kind: fs::FileKind,
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

    /// How many cells it has, and their bytes before compression.
    pub(crate) fn cells(&self) -> (u64, u64) {
        (self.finished.entry_count, self.finished.uncompressed_bytes)
    }
}

/// A file that is being written, and the one for its large values.
struct Draft<'r> {
    core: &'r RegionCore,
    name: String,
    temp: FilePath,
    writer: Writer,
    mob: Option<MobSink>,
    forget_seq_ids_to: SeqId,
}

/// Takes cells in order.
trait Sink {
    fn take(&mut self, cell: CellRef<'_>, is_wanted: bool) -> Result<()>;
    fn written_bytes(&self) -> u64;
}

fn drain(sink: &mut impl Sink, mut scanner: StoreScanner, proceed: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
    let mut reported = 0;
    while scanner.peek().is_some() {
        scanner.take_plain_rows(|cell, is_wanted| sink.take(cell, is_wanted))?;
        scanner.start_row();
        loop {
            let mut budget = u64::MAX;
            match scanner.step(None, &mut budget)? {
                Step::Cell => sink.take(scanner.cell(), scanner.is_wanted())?,
                Step::Pause => {}
                Step::RowEnd | Step::End => break,
            }
        }
        let written = sink.written_bytes();
        if written - reported >= REPORTED_BYTES {
            proceed(written - reported)?;
            reported = written;
        }
    }
    Ok(())
}

impl Sink for Draft<'_> {
    #[inline]
    fn take(&mut self, cell: CellRef<'_>, is_wanted: bool) -> Result<()> {
        let cell = if cell.seq_id() <= self.forget_seq_ids_to { cell.with_seq_id(SeqId(0)) } else { cell };
        match &mut self.mob {
            Some(mob) => mob.append(cell, &mut self.writer),
            None => self.writer.append_wanted(cell, is_wanted).map_err(|e| RegionError::file(self.core.name(), e)),
        }
    }

    fn written_bytes(&self) -> u64 {
        self.writer.written_bytes() + self.mob.as_ref().map_or(0, MobSink::written_bytes)
    }
}

/// One draft for each window of time that a cell was of. Follows: `DateTieredMultiFileWriter`.
struct Windows<'r, 'w> {
    files: FileWriter<'r>,
    store: &'w Store,
    new: NewFile,
    windows: &'w [OutputWindow],
    drafts: Vec<Option<Draft<'r>>>,
}

impl<'r> Windows<'r, '_> {
    fn draft(&mut self, at: usize) -> Result<&mut Draft<'r>> {
        if self.drafts[at].is_none() {
            let policy = self.windows[at].policy.as_deref();
            self.drafts[at] = Some(self.files.begin(self.store, self.new, policy)?);
        }
        Ok(self.drafts[at].as_mut().expect("made above"))
    }

    fn window_of(&self, time: i64) -> usize {
        self.windows.partition_point(|window| window.start_ms <= time).saturating_sub(1)
    }

    /// The files, oldest window first; an empty one where no cell was left. The last of them alone says what all of them replace: those
    /// before it, without it, add nothing to what they were made of. `values`: what tiering values are in each, if any are.
    fn finish(mut self, metadata: &StoreMetadata, values: &[Option<(i64, i64)>]) -> Result<Vec<Pending>> {
        if self.drafts.iter().all(Option::is_none) {
            self.draft(0)?;
        }
        let mut done = Vec::new();
        let drafts = self.drafts.into_iter().enumerate();
        let drafts: Vec<(usize, Draft<'_>)> = drafts.filter_map(|(at, draft)| Some((at, draft?))).collect();
        let mut rest = drafts.into_iter();
        while let Some((at, draft)) = rest.next() {
            let mut metadata = StoreMetadata { tiering_values: values.get(at).copied().flatten(), ..metadata.clone() };
            if rest.len() > 0 {
                metadata.compacted_files.clear();
            }
            match draft.finish(&metadata) {
                Ok(pending) => done.push(pending),
                Err(error) => {
                    rest.for_each(|(_, draft)| draft.discard());
                    let volume = &self.files.core.env.volume;
                    // As in Draft::discard: what stays behind is swept when the region opens.
                    done.iter().for_each(|file: &Pending| _ = volume.remove_file(&file.temp));
                    return Err(error);
                }
            }
        }
        Ok(done)
    }

    fn discard(self) {
        self.drafts.into_iter().flatten().for_each(Draft::discard);
    }
}

impl Sink for Windows<'_, '_> {
    fn take(&mut self, cell: CellRef<'_>, is_wanted: bool) -> Result<()> {
        self.draft(self.window_of(cell.timestamp()))?.take(cell, is_wanted)
    }

    fn written_bytes(&self) -> u64 {
        self.drafts.iter().flatten().map(Sink::written_bytes).sum()
    }
}

/// One draft after the other, each for a range of rows. Follows: `StripeMultiFileWriter`.
struct Rows<'r, 'w> {
    files: FileWriter<'r>,
    store: &'w Store,
    new: NewFile,
    cut: &'w RowCut,
    /// What all files but the last say of themselves.
    before_last: StoreMetadata,
    draft: Option<Draft<'r>>,
    /// Where the draft's range begins. Cut at given rows: which range it is.
    start: Bytes,
    stripe: usize,
    /// Cells of the draft.
    cells: u64,
    /// The draft has enough and ends with this row.
    last_row: Option<Vec<u8>>,
    /// The draft before, complete but for what it says of itself: that depends on whether it is the last.
    closed: Option<(Draft<'r>, RowRange)>,
    /// Ranges that were begun.
    begun: u32,
    done: Vec<Pending>,
}

impl<'r> Rows<'r, '_> {
    fn begin(&mut self) -> Result<()> {
        if self.draft.is_none() {
            self.draft = Some(self.files.begin(self.store, self.new, None)?);
            self.begun += 1;
        }
        Ok(())
    }

    /// The draft's range ends before `end`.
    fn close(&mut self, end: Bytes) -> Result<()> {
        let start = std::mem::replace(&mut self.start, end.clone());
        (self.cells, self.last_row) = (0, None);
        let Some(draft) = self.draft.take() else { return Ok(()) };
        if let Some((before, range)) = self.closed.replace((draft, RowRange { start, end })) {
            self.done.push(before.finish(&of_range(&self.before_last, range))?);
        }
        Ok(())
    }

    /// The range at given rows is over.
    fn end_stripe(&mut self, end: Bytes, whole: bool) -> Result<()> {
        if whole {
            self.begin()?;
        }
        self.close(end)?;
        self.stripe += 1;
        Ok(())
    }

    /// The files in the order of their rows. There is one at least: it says that the store is flushed, and its stripe there.
    fn close_all(&mut self) -> Result<()> {
        match self.cut {
            RowCut::At { ends, whole } => {
                while self.stripe < ends.len() {
                    let end = ends[self.stripe].clone();
                    self.end_stripe(end, whole.contains(&self.stripe))?;
                }
                self.end_stripe(Bytes::new(), whole.contains(&self.stripe) || self.begun == 0)
            }
            RowCut::After { within, .. } => {
                if self.begun == 0 {
                    self.begin()?;
                }
                self.close(within.end.clone())
            }
        }
    }

    fn finish(mut self, metadata: &StoreMetadata) -> Result<Vec<Pending>> {
        let finished = self.close_all().and_then(|()| match self.closed.take() {
            Some((last, range)) => last.finish(&of_range(metadata, range)).map(|pending| self.done.push(pending)),
            None => Ok(()),
        });
        match finished {
            Ok(()) => Ok(self.done),
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    fn discard(self) {
        self.draft.into_iter().chain(self.closed.map(|(draft, _)| draft)).for_each(Draft::discard);
        let volume = &self.files.core.env.volume;
        // As in Draft::discard: what stays behind is swept when the region opens.
        self.done.iter().for_each(|file| _ = volume.remove_file(&file.temp));
    }
}

fn of_range(metadata: &StoreMetadata, range: RowRange) -> StoreMetadata {
    StoreMetadata { stripe: Some((range.start, range.end)), ..metadata.clone() }
}

impl Sink for Rows<'_, '_> {
    fn take(&mut self, cell: CellRef<'_>, is_wanted: bool) -> Result<()> {
        let row = cell.row();
        match self.cut {
            RowCut::At { ends, whole } => {
                while let Some(end) = ends.get(self.stripe).filter(|end| end[..] <= *row) {
                    self.end_stripe(end.clone(), whole.contains(&self.stripe))?;
                }
            }
            RowCut::After { .. } => {
                if self.last_row.as_ref().is_some_and(|last| last != row) {
                    self.close(Bytes::copy_from_slice(row))?;
                }
            }
        }
        self.begin()?;
        if let Some(draft) = &mut self.draft {
            draft.take(cell, is_wanted)?;
        }
        self.cells += 1;
        if let RowCut::After { cells, max_files, .. } = self.cut
            && self.last_row.is_none()
            && self.begun < *max_files
            && self.cells >= *cells
        {
            self.last_row = Some(row.to_vec());
        }
        Ok(())
    }

    fn written_bytes(&self) -> u64 {
        let drafts = self.draft.iter().chain(self.closed.iter().map(|(draft, _)| draft));
        let done: u64 = self.done.iter().map(|file| file.finished.uncompressed_bytes).sum();
        done + drafts.map(Sink::written_bytes).sum::<u64>()
    }
}

impl Draft<'_> {
    fn finish(mut self, metadata: &StoreMetadata) -> Result<Pending> {
        if let Some(mob) = self.mob.take()
            && let Err(error) = mob.finish(metadata, &mut self.writer)
        {
            self.discard();
            return Err(error);
        }
        let Draft { core, name, temp, writer, .. } = self;
        match writer.finish(metadata) {
            Ok(finished) => Ok(Pending { name, temp, finished }),
            Err(error) => {
                let _ = core.env.volume.remove_file(&temp);
                Err(RegionError::file(core.name(), error))
            }
        }
    }

    fn discard(self) {
        drop(self.writer);
        if let Some(mob) = self.mob {
            mob.discard();
        }
        // What stays behind here is swept when the region opens.
        let _ = self.core.env.volume.remove_file(&self.temp);
    }
}

/// To read a new file of a store.
fn context_of(store: &Store) -> ReaderContext {
    ReaderContext { dictionary: store.dictionary.clone(), ..ReaderContext::default() }
}

/// Writes the store files of a region.
#[derive(Clone, Copy)]
pub(crate) struct FileWriter<'r> {
    core: &'r RegionCore,
}

impl<'r> FileWriter<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        FileWriter { core }
    }

    /// Runs `scanner` to its end into a new file, also when no cell was left to write: the file says up to where the store was flushed.
    /// `proceed` is asked now and then with the bytes written since; when it says no, the file is given up and the result is an error made
    /// by it.
    pub(crate) fn write(
        &self,
        store: &Store,
        scanner: StoreScanner,
        new: NewFile,
        metadata: &StoreMetadata,
        proceed: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Pending> {
        let mut draft = self.begin(store, new, None)?;
        match drain(&mut draft, scanner, proceed) {
            Ok(()) => draft.finish(metadata),
            Err(error) => {
                draft.discard();
                Err(error)
            }
        }
    }

    /// As [`FileWriter::write`], divided into files as `output` says; the last of them alone says all that `metadata` does.
    pub(crate) fn write_divided(
        &self,
        store: &Store,
        scanner: StoreScanner,
        new: NewFile,
        output: &Output,
        metadata: &StoreMetadata,
        proceed: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Vec<Pending>> {
        match output {
            Output::One => Ok(vec![self.write(store, scanner, new, metadata, proceed)?]),
            Output::ByTime(windows) => {
                let drafts = windows.iter().map(|_| None).collect();
                let mut out = Windows { files: *self, store, new, windows, drafts };
                match drain(&mut out, scanner, proceed) {
                    Ok(()) => out.finish(metadata, &[]),
                    Err(error) => {
                        out.discard();
                        Err(error)
                    }
                }
            }
            Output::ByValue { windows, qualifier } => {
                let drafts = windows.iter().map(|_| None).collect();
                let mut out = ByValue::new(Windows { files: *self, store, new, windows, drafts }, qualifier);
                match drain(&mut out, scanner, proceed).and_then(|()| out.end()) {
                    Ok(()) => out.files.finish(metadata, &out.values),
                    Err(error) => {
                        out.files.discard();
                        Err(error)
                    }
                }
            }
            Output::ByRow(cut) => {
                let mut out = self.rows(store, new, cut, metadata);
                match drain(&mut out, scanner, proceed) {
                    Ok(()) => out.finish(metadata),
                    Err(error) => {
                        out.discard();
                        Err(error)
                    }
                }
            }
        }
    }

    fn rows<'w>(&self, store: &'w Store, new: NewFile, cut: &'w RowCut, metadata: &StoreMetadata) -> Rows<'r, 'w> {
        let start = match cut {
            RowCut::At { .. } => Bytes::new(),
            RowCut::After { within, .. } => within.start.clone(),
        };
        Rows {
            files: *self,
            store,
            new,
            cut,
            before_last: StoreMetadata {
                compacted_files: Vec::new(),
                more_follow: new.kind == fs::FileKind::Flush,
                ..metadata.clone()
            },
            draft: None,
            start,
            stripe: 0,
            cells: 0,
            last_row: None,
            closed: None,
            begun: 0,
            done: Vec::new(),
        }
    }

    /// `policy`: where the file is to lie, if its window says so.
    fn begin(&self, store: &Store, new: NewFile, policy: Option<&str>) -> Result<Draft<'r>> {
        let core = self.core;
        let temp_dir = self.temp_dir_of(store).map_err(|e| RegionError::volume(core.name(), e))?;
        let name = core.env.rng.uuid_hex();
        let temp = temp_dir.join(&name);
        let new = match &store.mob {
            // References have tags, and are told apart by their sequence ids.
            Some(_) => NewFile { include_tags: true, forget_seq_ids_to: SeqId(0), ..new },
            None => new,
        };
        let mut options = self.writer_options(store, new)?;
        if policy.is_some() && !store.table.name.is_system() {
            options.placement = options.placement.with_policy(policy);
        }
        let mob = store.mob.as_ref().map(|mob| MobSink::new(mob, new.mob, &options, &temp_dir));
        let writer =
            Writer::create(&*core.env.volume, &temp, options).map_err(|e| RegionError::file(core.name(), e))?;
        Ok(Draft { core, name, temp, writer, mob, forget_seq_ids_to: new.forget_seq_ids_to })
    }

    /// Makes the directories of this opening for files being written. Not durable: what is in them is of no use after a crash.
    pub(crate) fn create_temp_dirs(&self) -> fs::Result<()> {
        let of = |store: &Store| self.core.temp_dir.join(family_name(&store.name));
        self.core.stores.iter().try_for_each(|store| self.core.env.volume.create_dir_all(&of(store)))
    }

    /// Where files of a family are written. On a shared volume it is never made here: the next owner removes it before it looks at the
    /// families' directories, and from then on an owner that does not know of it yet can neither write nor publish a file.
    fn temp_dir_of(&self, store: &Store) -> fs::Result<FilePath> {
        let dir = self.core.temp_dir.join(family_name(&store.name));
        let volume = &*self.core.env.volume;
        if !volume.capabilities().shared {
            volume.create_dir_all(&dir)?;
        }
        Ok(dir)
    }

    /// Reads a written file as a whole where that is asked for (HBASE-29131): what was damaged on its way to the disk is found while the
    /// cells are still elsewhere. Follows: `StoreEngine#validateStoreFile`.
    fn read_back(&self, store: &Store, pending: &Pending) -> Result<()> {
        if !store.settings.load().validate_read_fully {
            return Ok(());
        }
        let volume = &*self.core.env.volume;
        let read = Reader::open(volume, &pending.temp, context_of(store)).and_then(|file| file.read_through());
        let count = match read {
            Ok(count) => count,
            Err(error) => {
                // What stays behind here is swept when the region opens.
                let _ = volume.remove_file(&pending.temp);
                return Err(RegionError::file(self.core.name(), error));
            }
        };
        if count == pending.finished.entry_count { Ok(()) } else { Err(self.miscounted(store, pending, count)) }
    }

    fn miscounted(&self, store: &Store, pending: &Pending, count: u64) -> RegionError {
        let written = pending.finished.entry_count;
        let what =
            format!("{} was written with {written} cells and reads back with {count}", store.dir.join(&pending.name));
        RegionError::Damaged { region: self.core.name().clone(), what }
    }

    /// Moves written files into their place, one after the other, each durably; opens them and has the store's tracker name them in place of
    /// `replaced`.
    pub(crate) fn commit_all(
        &self,
        store: &Store,
        pending: &[Pending],
        replaced: &[Arc<StoreFile>],
    ) -> Result<Vec<Arc<StoreFile>>> {
        pending.iter().try_for_each(|one| self.read_back(store, one))?;
        self.settle_doubts(store)?;
        let mut files = Vec::with_capacity(pending.len());
        for (at, one) in pending.iter().enumerate() {
            if let Err(error) = self.move_in(store, one) {
                store.in_doubt.lock().push((one.temp.clone(), store.dir.join(&one.name)));
                if let Err(stays) = self.settle_doubts(store) {
                    tracing::warn!(region = %self.core.name(), error = %stays, "the rename of a new store file had no answer; the file is removed, if it is there, before the next flush or compaction commits; nothing is lost, and nothing need be done");
                }
                return self.take_back(store, &pending[..at], error);
            }
            match self.open_committed(store, one) {
                Ok(file) => files.push(Arc::new(file)),
                Err(error) => return self.take_back(store, &pending[..=at], error),
            }
        }
        let replaced = replaced.iter().map(|file| file.name.as_str());
        match store.tracker.replace(&self.core.env, replaced, &files) {
            Ok(()) => Ok(files),
            Err(failed) if failed.is_undone => {
                self.take_back(store, pending, RegionError::volume(self.core.name(), failed.error))
            }
            // The next opening may find either list: the files of both must be there.
            Err(failed) => Err(self.core.sequencer.rollback_failed("the list of store files", failed.error)),
        }
    }

    fn move_in(&self, store: &Store, pending: &Pending) -> Result<()> {
        let volume = &*self.core.env.volume;
        let volume_error = |e| RegionError::volume(self.core.name(), e);
        let target = store.dir.join(&pending.name);
        match volume.rename_new(&pending.temp, &target) {
            Err(error) if error.is_not_found() => {
                // A family that was added to the table has no directory yet.
                if let Err(error) = volume.create_dir_all_durable(&store.dir) {
                    // The next attempt must find it missing again, and sync its name.
                    let _ = volume.remove_dir_all(&store.dir);
                    return Err(volume_error(error));
                }
                volume.rename_new(&pending.temp, &target).map_err(volume_error)
            }
            other => other.map_err(volume_error),
        }
    }

    /// Sees to it that files are not there of which that is not known: the next opening would read one, and what it holds may have been deleted, and
    /// the delete marker compacted away, since.
    fn settle_doubts(&self, store: &Store) -> Result<()> {
        let volume = &*self.core.env.volume;
        let remove = |path: &FilePath| match volume.remove_file(path) {
            Err(error) if error.is_not_found() => Ok(()),
            outcome => outcome,
        };
        let mut in_doubt = store.in_doubt.lock();
        while let Some((temp, target)) = in_doubt.last() {
            // Without it, a move that is still on its way to the name node finds nothing.
            let gone = remove(temp).and_then(|()| remove(target)).and_then(|()| volume.sync_dir(&store.dir));
            match gone {
                // There is no such directory.
                Err(error) if error.is_not_found() => {}
                gone => gone.map_err(|error| RegionError::volume(self.core.name(), error))?,
            }
            in_doubt.pop();
        }
        Ok(())
    }

    /// Files that nobody has heard of go again, the last first: it is the one that says what they replace.
    fn take_back<T>(&self, store: &Store, pending: &[Pending], error: RegionError) -> Result<T> {
        let volume = &*self.core.env.volume;
        // The work will be done again: these files must not come to light at the next opening, when what they
        // hold may have been deleted since.
        let remove =
            |one: &Pending| volume.remove_file(&store.dir.join(&one.name)).and_then(|()| volume.sync_dir(&store.dir));
        match pending.iter().rev().try_for_each(remove) {
            Ok(()) => Err(error),
            Err(stays) => Err(self.core.sequencer.rollback_failed("a new store file", stays)),
        }
    }

    fn open_committed(&self, store: &Store, pending: &Pending) -> Result<StoreFile> {
        self.core.env.volume.sync_dir(&store.dir).map_err(|e| RegionError::volume(self.core.name(), e))?;
        let opening = store.opening(&self.core.env, &self.core.info);
        let file = StoreFile::open(opening, &pending.name, pending.finished.cache_file_id)?;
        if file.reader.entry_count() != pending.finished.entry_count {
            return Err(self.miscounted(store, pending, file.reader.entry_count()));
        }
        Ok(file)
    }

    fn writer_options(&self, store: &Store, new: NewFile) -> Result<WriterOptions> {
        let family = store.family();
        let compression = match new.compression {
            // HBase must find its own tables plain, whatever codecs it has.
            None if self.core.info.table.is_system() => hfile::Compression::None,
            None => store.settings.load().default_compression,
            Some(model::Compression::None) => hfile::Compression::None,
            Some(model::Compression::Gz) => hfile::Compression::Gz,
            Some(model::Compression::Snappy) => hfile::Compression::Snappy,
            Some(model::Compression::Lz4) => hfile::Compression::Lz4,
            Some(model::Compression::Zstd) => hfile::Compression::Zstd,
            Some(model::Compression::Lzo) => hfile::Compression::Lzo,
            Some(model::Compression::Bzip2) => hfile::Compression::Bzip2,
            Some(model::Compression::Lzma) => hfile::Compression::Lzma,
            Some(model::Compression::Brotli) => hfile::Compression::Brotli,
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
        let cache = || self.core.env.cache.clone();
        let cache_on_write = match new.cache {
            Caching::AsFamily if !family.cache_data_on_write() && !store.settings.load().cache_on_write => {
                CacheOnWrite::Nothing
            }
            Caching::AsFamily | Caching::All => CacheOnWrite::All(cache()),
            Caching::Wanted => CacheOnWrite::Wanted(cache()),
        };
        let switches = store.cache_switches();
        Ok(WriterOptions {
            compression,
            compression_must_pay: new.compression.is_none(),
            encoding,
            block_size_bytes: family.block_size_bytes(),
            bloom,
            bloom_prefix_len: prefix_len,
            order: self.core.order(),
            include_mvcc: new.include_mvcc,
            include_tags: new.include_tags,
            compress_tags: family.compress_tags(),
            create_time_ms: self.core.env.clock.now_ms(),
            cache_on_write,
            cache_index_on_write: switches.index_on_write.then(cache),
            cache_blooms_on_write: switches.blooms_on_write.then(cache),
            times_go_to: Some(cache()),
            dictionary: store.dictionary.clone(),
            past_cache: new.past_cache,
            placement: store.placement(new.kind),
            ..store.settings.load().new_files.clone()
        })
    }
}
