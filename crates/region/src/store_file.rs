//! A file of a store: whole, a reference to one half of a split parent's file, or a link to another table's file.
//!
//! Follows: `HStoreFile`, `StoreFileInfo`, `Reference`.

use crate::error::{RegionError, Result};
use base::{ReadPoint, SeqId};
use bytes::Bytes;
use cell::KeyRef;
use cell::print::Binary;
use fs::{BlockHosts, DirEntry, FilePath, ReadAt, ReadHints, Volume};
use hfile::{BlockCache, Dictionary, Half, HalfSide, HotAge, Reader, ReaderContext};
use model::RegionInfo;
use parking_lot::RwLock;
use proto::{Message, magic, pb};
use rootdir::{FileName, family_dir};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An open store file. Held by every reader that may still look into it.
#[derive(Debug)]
pub struct StoreFile {
    /// Its name in the family's directory.
    pub name: String,
    /// What the name says.
    pub parsed: FileName,
    /// The open file.
    pub reader: Arc<Reader>,
    /// No cell inside is newer; decides the order of files and what replay may pass over.
    pub max_seq_id: SeqId,
    /// Whether it came by bulk load.
    pub is_bulk_loaded: bool,
    /// Where its blocks were when it was opened, of a reference those of its half. Follows: `StoreFileInfo#getHDFSBlockDistribution`.
    pub block_hosts: BlockHosts,
    /// Set once when it was replaced by a compaction: the file is then archived as soon as nobody reads it.
    replaced: AtomicBool,
    /// Whether it was read into the cache as its family wants, or that was given up.
    prefetched: AtomicBool,
    /// Readers whose read point is lower do not look into it; 0 for all files but those loaded since the region opened.
    visible_from: AtomicU64,
}

/// What is needed to open store files of one family.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub volume: &'a dyn Volume,
    pub cache: &'a Arc<BlockCache>,
    pub info: &'a RegionInfo,
    pub family: &'a [u8],
    pub in_memory: bool,
    /// As [`ReaderContext::hot_age`].
    pub hot_age: Option<HotAge>,
    /// As [`ReaderContext::dictionary`].
    pub dictionary: Option<&'a Arc<Dictionary>>,
    /// Of a read replica, whose files others move while they are read.
    pub moves: Option<&'a Arc<dyn Volume>>,
}

impl StoreFile {
    /// Opens the file called `name`. `cache_file_id` is its number in the block cache if its writer put blocks there.
    pub(crate) fn open(opening: Opening<'_>, name: &str, cache_file_id: Option<u64>) -> Result<StoreFile> {
        let region = opening.info.encoded_name();
        let parsed = FileName::parse(name).ok_or_else(|| RegionError::Damaged {
            region: region.clone(),
            what: format!("{name} is not the name of a store file"),
        })?;
        let mut context = ReaderContext {
            cache: Some(opening.cache.clone()),
            cache_file_id,
            in_memory: opening.in_memory,
            half: None,
            override_seq_id: None,
            hot_age: opening.hot_age,
            dictionary: opening.dictionary.cloned(),
        };
        let damaged = |what: String| RegionError::Damaged { region: region.clone(), what };
        let path = || family_dir(opening.info, opening.family).join(name);
        if parsed.parent.is_some() {
            let bytes = match opening.volume.read(&path()) {
                // HBase archives references that a compaction has replaced.
                Err(error) if error.is_not_found() && opening.moves.is_some() => {
                    opening.volume.read(&rootdir::archive_dir(&path())).map_err(|_| error)
                }
                read => read,
            };
            let bytes = bytes.map_err(|e| RegionError::volume(region, e))?;
            let half = parse_reference(&bytes)
                .ok_or_else(|| damaged(format!("{} is not a reference to a store file", path())))?;
            check_half(opening.info, &half).map_err(|what| damaged(format!("{} is damaged: {what}", path())))?;
            context.half = Some(half);
        }
        let is_top = context.half.as_ref().is_some_and(|half| half.side == HalfSide::Top);
        let bulk_seq_id = parsed.bulk_load_seq_id();
        let mut reader = open_first(opening, &parsed, context.clone())?;
        // A merged region's reference shows a whole file of one that it came from, which has no row before the key.
        if let Some(half) = context.half.as_ref().filter(|half| half.side == HalfSide::Top)
            && KeyRef::parse(&half.split_key).is_ok_and(|key| key.row() != &opening.info.start_key[..])
            && reader.first_key().is_some_and(|first| first.bytes() == &half.split_key[..])
        {
            return Err(damaged(format!("{} is damaged: it would hide rows of {}", path(), parsed.file)));
        }
        let is_bulk_loaded = bulk_seq_id.is_some() || reader.bulk_load_time_ms().is_some();
        if let Some(seq_id) = bulk_seq_id
            && !reader.skip_reset_seq_id()
        {
            context.override_seq_id = Some(seq_id);
            reader = open_first(opening, &parsed, context)?;
        }
        let mut max_seq_id = bulk_seq_id.or_else(|| reader.max_seq_id()).unwrap_or(SeqId(0));
        if is_bulk_loaded && reader.skip_reset_seq_id() {
            // Follows `HStoreFile#open`: newer than the files whose cells it holds.
            max_seq_id.0 += 1;
        }
        if is_top {
            // The two halves of one file must not be equal in age when they meet again in a merged region.
            max_seq_id.0 += 1;
        }
        Ok(StoreFile {
            name: name.to_owned(),
            parsed,
            block_hosts: reader.block_hosts(),
            reader,
            max_seq_id,
            is_bulk_loaded,
            replaced: AtomicBool::new(false),
            prefetched: AtomicBool::new(false),
            visible_from: AtomicU64::new(0),
        })
    }

    /// Whether it shows part of another region's file.
    pub fn is_reference(&self) -> bool {
        self.parsed.parent.is_some()
    }

    /// Bytes that it stands for: a reference counts half its file.
    pub fn len_bytes(&self) -> u64 {
        if self.is_reference() { self.reader.len_bytes() / 2 } else { self.reader.len_bytes() }
    }

    /// The time at which it was made (milliseconds), if it says so.
    pub fn created_ms(&self) -> Option<i64> {
        self.reader.create_time_ms().filter(|ms| *ms > 0)
    }

    /// Whether a compaction has replaced it.
    pub fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Relaxed)
    }

    pub(crate) fn set_replaced(&self) {
        self.replaced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_prefetched(&self) -> bool {
        self.prefetched.load(Ordering::Relaxed)
    }

    pub(crate) fn set_prefetched(&self) {
        self.prefetched.store(true, Ordering::Relaxed);
    }

    /// Whether a reader with this read point looks into it.
    pub(crate) fn is_visible_at(&self, read_point: ReadPoint) -> bool {
        self.visible_from.load(Ordering::Relaxed) <= read_point.0
    }

    /// Before anybody else has the file.
    pub(crate) fn set_visible_from(&self, seq_id: SeqId) {
        self.visible_from.store(seq_id.0, Ordering::Relaxed);
    }

    /// Whether it is of a flush into several files and not the last of them. What stands for another region's file was whole when that was.
    pub(crate) fn more_follow(&self) -> bool {
        self.parsed.parent.is_none() && self.parsed.link.is_none() && !self.is_bulk_loaded && self.reader.more_follow()
    }

    /// Names of the files that this one replaced.
    pub(crate) fn replaces(&self) -> Vec<String> {
        let Some(bytes) = self.reader.file_info().get(&b"COMPACTION_EVENT_KEY"[..]) else { return Vec::new() };
        let tracker = magic::decode::<pb::CompactionEventTracker>(bytes);
        match tracker {
            Some(Ok(tracker)) => {
                tracker.compacted_store_file.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Names of those among a store's files that do not count, although they are there: what others say that they replace, and the beginning of
/// a flush of which the last file never came. Of every flush that was done, it or what has replaced it is there, as new as the others at least:
/// it is never dropped as long as it is the newest. The log has the edits of one that was not.
pub(crate) fn dead_names<'f>(files: impl Iterator<Item = &'f StoreFile> + Clone) -> BTreeSet<String> {
    let mut dead: BTreeSet<String> = files.clone().flat_map(StoreFile::replaces).collect();
    let whole_to = files.clone().filter(|file| !file.more_follow()).map(|file| file.max_seq_id).max();
    let is_part = |file: &&StoreFile| file.more_follow() && whole_to.is_none_or(|whole| file.max_seq_id > whole);
    dead.extend(files.filter(is_part).map(|file| file.name.clone()));
    dead
}

fn open_first(opening: Opening<'_>, parsed: &FileName, context: ReaderContext) -> Result<Arc<Reader>> {
    let region = opening.info.encoded_name();
    let candidates = parsed.candidates(opening.info, opening.family);
    let mut missing = None;
    for path in &candidates {
        match opening.volume.open(path) {
            Ok(file) => {
                let file = match opening.moves {
                    Some(volume) => MovingFile::over(volume, &candidates, file),
                    None => Ok(file),
                };
                let file = file.map_err(|e| RegionError::volume(region, e))?;
                return Reader::open_at(file, path, context).map_err(|e| RegionError::file(region, e));
            }
            Err(error) if error.is_not_found() => missing = missing.or(Some(error)),
            Err(error) => return Err(RegionError::volume(region, error)),
        }
    }
    match missing {
        Some(error) => Err(RegionError::volume(region, error)),
        None => Err(RegionError::Damaged { region: region.clone(), what: format!("{} has no place", parsed.file) }),
    }
}

/// A file that somebody else may move to another of its places, or out of reach, while it is read: one that cannot be read is looked for there.
/// Follows: `FileLink.FileLinkInputStream`.
struct MovingFile {
    volume: Arc<dyn Volume>,
    places: Vec<FilePath>,
    len_bytes: u64,
    first: Arc<dyn ReadAt>,
    /// In place of the first.
    found: RwLock<Option<Arc<dyn ReadAt>>>,
}

impl MovingFile {
    fn over(volume: &Arc<dyn Volume>, places: &[FilePath], first: Arc<dyn ReadAt>) -> fs::Result<Arc<dyn ReadAt>> {
        let (volume, places, len_bytes) = (volume.clone(), places.to_vec(), first.len()?);
        Ok(Arc::new(MovingFile { volume, places, len_bytes, first, found: RwLock::default() }))
    }

    fn read(&self, offset: u64, len: u64, mut read: impl FnMut(&dyn ReadAt) -> fs::Result<()>) -> fs::Result<()> {
        let now = self.found.read().clone();
        let Err(error) = read(&**now.as_ref().unwrap_or(&self.first)) else { return Ok(()) };
        if offset.checked_add(len).is_none_or(|end| end > self.len_bytes) {
            return Err(error);
        }
        let Some(found) = self.find() else { return Err(error) };
        *self.found.write() = Some(found.clone());
        read(&*found)
    }

    /// The same file, opened anew where it is now.
    fn find(&self) -> Option<Arc<dyn ReadAt>> {
        let mut opened = self.places.iter().filter_map(|place| self.volume.open(place).ok());
        opened.find(|file| file.len().is_ok_and(|len_bytes| len_bytes == self.len_bytes))
    }
}

impl ReadAt for MovingFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> fs::Result<()> {
        self.read(offset, buf.len() as u64, |file| file.read_exact_at(buf, offset))
    }

    fn read_sequential_at(&self, buf: &mut [u8], offset: u64) -> fs::Result<()> {
        self.read(offset, buf.len() as u64, |file| file.read_sequential_at(buf, offset))
    }

    fn len(&self) -> fs::Result<u64> {
        Ok(self.len_bytes)
    }

    fn hints(&self) -> Option<&dyn ReadHints> {
        self.first.hints()
    }
}

/// The bytes of a reference file. `split_row` is the first row of the upper daughter.
pub fn reference_bytes(split_row: &[u8], side: HalfSide) -> Bytes {
    let range = match side {
        HalfSide::Top => pb::reference::Range::Top,
        HalfSide::Bottom => pb::reference::Range::Bottom,
    };
    let mut key = Vec::new();
    crate::scan::source::write_first_on_row(&mut key, split_row);
    magic::encode(&pb::Reference { splitkey: Bytes::from(key), range: range as i32 })
}

pub(crate) fn parse_reference(bytes: &[u8]) -> Option<Half> {
    let message = pb::Reference::decode(magic::strip_slice(bytes)?).ok()?;
    KeyRef::parse(&message.splitkey).ok()?;
    let side = match pb::reference::Range::try_from(message.range).ok()? {
        pb::reference::Range::Top => HalfSide::Top,
        pb::reference::Range::Bottom => HalfSide::Bottom,
    };
    Some(Half { side, split_key: message.splitkey })
}

/// Whether a reference of `info` can show this half. Its file has no checksum, and a split key that is not the region's own would
/// hide rows or show another region's: a daughter's key is the boundary at which its parent was split, a merged region's the
/// first row of one that it came from. Says what is wrong.
fn check_half(info: &RegionInfo, half: &Half) -> std::result::Result<(), String> {
    let key = KeyRef::parse(&half.split_key).map_err(|error| error.to_string())?;
    let shown = |row: &[u8]| Binary(row).to_string();
    if !key.family().is_empty() || !key.qualifier().is_empty() {
        return Err("its split key is in the middle of a row".into());
    }
    let (row, start, end) = (key.row(), &info.start_key[..], &info.end_key[..]);
    match half.side {
        HalfSide::Bottom if end.is_empty() || row != end => {
            Err(format!("it shows the rows before '{}', and its region ends at '{}'", shown(row), shown(end)))
        }
        HalfSide::Top if row < start || (!end.is_empty() && row >= end) => Err(format!(
            "it shows the rows from '{}' on, and its region has those from '{}' to '{}'",
            shown(row),
            shown(start),
            shown(end)
        )),
        HalfSide::Top | HalfSide::Bottom => Ok(()),
    }
}

/// Names and lengths of the store files among what a family's directory holds.
pub(crate) fn store_files_of(entries: Vec<DirEntry>) -> Vec<(String, u64)> {
    let files = entries.into_iter().filter(|entry| !entry.is_dir && FileName::parse(&entry.name).is_some());
    files.map(|entry| (entry.name, entry.len)).collect()
}

/// Names of the store files in a family's directory, with their lengths; other entries are passed over.
pub(crate) fn list_store_files(volume: &dyn Volume, dir: &FilePath) -> fs::Result<Vec<(String, u64)>> {
    match volume.list(dir) {
        Ok(entries) => Ok(store_files_of(entries)),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
