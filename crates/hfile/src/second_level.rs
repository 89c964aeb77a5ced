//! The second level of the block cache: blocks as they lie in their files, in segments on a disk that is faster than theirs.
//!
//! Always true:
//!  1. A block that comes out has the checksum that it went in with, under the file and the place that are asked for; else it is as if it had not been
//!     there. What a file's blocks are called by cannot be another file's.
//!  2. A segment is written once, from its start to its end, by one thread; readers hold it open, so that one that is removed meanwhile stays
//!     readable for them. What a crash leaves of one that was not whole is thrown away when it is looked at next.
//!  3. Who reads never waits for who writes: what there is no room for is passed over and counted.
//!
//! A block may come in when it is read from its file for the second time within what the cache could hold twice over: what is read once, as by a scan over
//! everything, costs the disk no write. Where there is room it does. Else it contends with the blocks of the oldest segment: those stay or come in that
//! were asked for most of late, by an estimate of little memory (TinyLFU), and a segment most of whose blocks stay goes round without being written anew.
//! No clock and no threads: whoever has them calls [`SecondLevel::wait_for_work`] and [`SecondLevel::write_segment`].

mod seen;
mod segment;

use crate::cache_frequency::Frequencies;
use base::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use base::sync::{Condvar, Mutex, RwLock};
use bytes::Bytes;
use fs::{FilePath, ReadAt, Volume};
use rustc_hash::{FxHashMap, FxHashSet};
use seen::Seen;
use segment::Entry;
use std::collections::VecDeque;
use std::sync::Arc;

/// A block: its file's number among all files ever, and where it starts there.
pub(crate) type BlockKey = (u128, u64);

/// What a second level is like.
#[derive(Clone, Copy, Debug)]
pub struct SecondLevelOptions {
    /// Bytes on the disk at most.
    pub capacity_bytes: u64,
    /// Bytes that are written at once.
    pub segment_bytes: u64,
    /// Take over what is there; else begin empty.
    pub keeps: bool,
    /// Number for a cache that begins empty: at random.
    pub id: u64,
}

impl SecondLevelOptions {
    /// Of a cache of so many bytes; keeps what is there.
    pub fn new(capacity_bytes: u64, id: u64) -> SecondLevelOptions {
        SecondLevelOptions {
            capacity_bytes,
            segment_bytes: (capacity_bytes / 64).clamp(64 << 10, 8 << 20),
            keeps: true,
            id,
        }
    }
}

/// Counts since the cache was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondLevelStats {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Blocks that were written.
    pub inserted: u64,
    /// Blocks that went to make room.
    pub evicted: u64,
    /// Blocks that had been read once only, or were asked for no more than those that would have gone for them.
    pub refused: u64,
    /// Blocks that there was no time for.
    pub passed_over: u64,
    /// Blocks that were not what they should be.
    pub damaged: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Blocks held now.
    pub blocks: u64,
    /// Bytes of segments on the disk now.
    pub used_bytes: u64,
    /// Bytes that there may be.
    pub capacity_bytes: u64,
}

/// Told of what goes wrong, in a sentence.
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

struct Place {
    segment: Arc<Segment>,
    at: u32,
    len: u32,
    crc: u32,
}

struct Segment {
    id: u64,
    file: Arc<dyn ReadAt>,
    len_bytes: u64,
    keys: Vec<BlockKey>,
}

#[derive(Default)]
struct Index {
    places: FxHashMap<BlockKey, Place>,
    /// Bytes of blocks of each file.
    file_bytes: FxHashMap<u128, u64>,
    /// Oldest first.
    segments: VecDeque<Arc<Segment>>,
    used_bytes: u64,
}

/// Where the bytes of a block are to be had that contends for a place.
enum Origin {
    /// In the oldest segment: where, how many, their checksum.
    Segment(u32, u32, u32),
    /// It was read from its file.
    File(Bytes),
}

impl Origin {
    fn len_bytes(&self) -> u64 {
        match self {
            Origin::Segment(_, len, _) => u64::from(*len),
            Origin::File(raw) => raw.len() as u64,
        }
    }
}

/// Blocks that wait to be written.
#[derive(Default)]
struct Waiting {
    blocks: Vec<(BlockKey, Bytes)>,
    keys: FxHashSet<BlockKey>,
    bytes: u64,
    is_closed: bool,
}

/// Memory of one block's place in the index and in its segment's list.
const PLACE_BYTES: u64 = 128;
/// A block larger than this part of a segment stays out.
const LARGEST_PART: u64 = 2;
/// A full cache writes a segment when at least this part of it is new: the rest is blocks that are written once more.
const NEW_PART: u64 = 2;
/// So many of the oldest segments new blocks contend with at a time.
const CONTENDS_WITH: usize = 8;
const IDENTITY: &str = "identity";
const SEGMENT_PREFIX: &str = "segment-";

/// See the module.
pub struct SecondLevel {
    volume: Arc<dyn Volume>,
    options: SecondLevelOptions,
    id: u64,
    seen: Seen,
    frequencies: Frequencies,
    index: RwLock<Index>,
    waiting: Mutex<Waiting>,
    wanted: Condvar,
    /// Told when fewer blocks wait.
    written: Condvar,
    next_segment: AtomicU64,
    /// Told by who has a clock.
    now_ms: AtomicI64,
    /// Something went wrong and was told of.
    has_failed: AtomicBool,
    hits: AtomicU64,
    misses: AtomicU64,
    inserted: AtomicU64,
    evicted: AtomicU64,
    refused: AtomicU64,
    passed_over: AtomicU64,
    damaged: AtomicU64,
    written_bytes: AtomicU64,
    tell: Tell,
}

impl std::fmt::Debug for SecondLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecondLevel").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl SecondLevel {
    /// The cache in the directory that `volume` is, which this process has to itself. What is there is taken over if it is whole and this
    /// cache's; what is not is removed and told of, files of others are left alone.
    ///
    /// # Errors
    /// The directory cannot be read or written.
    pub fn open(volume: Arc<dyn Volume>, options: SecondLevelOptions, tell: Tell) -> fs::Result<SecondLevel> {
        let identity = FilePath::new(IDENTITY);
        let known = match volume.read(&identity) {
            Ok(bytes) => segment::decode_identity(&bytes),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let id = known.filter(|_| options.keeps).unwrap_or(options.id);
        let (index, next) = restore(&*volume, id, &options, &tell)?;
        if known != Some(id) {
            volume.publish(&identity, &segment::encode_identity(id))?;
        }
        Ok(SecondLevel {
            seen: Seen::new(options.capacity_bytes),
            frequencies: Frequencies::for_bytes(options.capacity_bytes),
            volume,
            options,
            id,
            index: RwLock::new(index),
            waiting: Mutex::default(),
            wanted: Condvar::new(),
            written: Condvar::new(),
            next_segment: AtomicU64::new(next),
            now_ms: AtomicI64::new(i64::MIN),
            has_failed: AtomicBool::new(false),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            passed_over: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            tell,
        })
    }

    /// Counts.
    pub fn stats(&self) -> SecondLevelStats {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let index = self.index.read();
        SecondLevelStats {
            hits: count(&self.hits),
            misses: count(&self.misses),
            inserted: count(&self.inserted),
            evicted: count(&self.evicted),
            refused: count(&self.refused),
            passed_over: count(&self.passed_over),
            damaged: count(&self.damaged),
            written_bytes: count(&self.written_bytes),
            blocks: index.places.len() as u64,
            used_bytes: index.used_bytes,
            capacity_bytes: self.options.capacity_bytes,
        }
    }

    /// Memory that it takes: the index, what was seen and how often, blocks that wait.
    pub fn memory_bytes(&self) -> u64 {
        let waiting = self.waiting.lock().bytes;
        let counts = self.seen.memory_bytes() + self.frequencies.memory_bytes();
        self.index.read().places.len() as u64 * PLACE_BYTES + counts + waiting
    }

    /// Bytes of blocks of a file that are here, as they lie in it.
    pub(crate) fn bytes_of(&self, file: u128) -> u64 {
        self.index.read().file_bytes.get(&file).copied().unwrap_or(0)
    }

    /// What time it is, for files that grow cold. To be said now and then, by one thread: what was asked for long ago counts for less from then on.
    pub fn set_now(&self, now: base::TimestampMs) {
        self.now_ms.store(now.0, Ordering::Relaxed);
        self.frequencies.age();
    }

    /// Whether a file that is cold from then on is cold.
    pub(crate) fn is_cold(&self, from_ms: i64) -> bool {
        self.now_ms.load(Ordering::Relaxed) >= from_ms
    }

    /// Reads the block of `len` bytes at `key`, if it is there. Reads a disk: not for who must not wait. With `in_passing`, as of a cold file or by a scan,
    /// the block does not gain by it.
    pub(crate) fn get(&self, key: BlockKey, len: u32, in_passing: bool) -> Option<Bytes> {
        if !in_passing {
            self.frequencies.count(key);
        }
        let found = {
            let index = self.index.read();
            let place = index.places.get(&key).filter(|place| place.len == len);
            place.map(|place| (place.segment.clone(), place.at, place.crc))
        };
        let Some((segment, at, crc)) = found else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let bytes = self.read(&segment, at, len, crc);
        let count = if bytes.is_some() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        if bytes.is_none() {
            self.damaged.fetch_add(1, Ordering::Relaxed);
            let mut index = self.index.write();
            index.remove(&key, segment.id);
        }
        bytes
    }

    fn read(&self, segment: &Segment, at: u32, len: u32, crc: u32) -> Option<Bytes> {
        let mut bytes = vec![0; len as usize];
        match segment.file.read_exact_at(&mut bytes, u64::from(at)) {
            Ok(()) if crc32c::crc32c(&bytes) == crc => Some(Bytes::from(bytes)),
            Ok(()) => {
                self.fail(|| format!("a block in segment {:016x} is damaged", segment.id));
                None
            }
            Err(error) => {
                self.fail(|| error.to_string());
                None
            }
        }
    }

    /// Tells of the first thing that goes wrong, until something is written again.
    fn fail(&self, what: impl FnOnce() -> String) {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            (self.tell)(format!("the second level of the block cache: {}; blocks are read from their files", what()));
        }
    }

    /// A block was read from its file: it may be worth keeping. Never waits for the disk.
    pub(crate) fn offer(&self, key: BlockKey, raw: &Bytes) {
        if !self.seen.again(key) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.put(key, raw);
    }

    /// Has a block wait for the writer.
    fn put(&self, key: BlockKey, raw: &Bytes) {
        let len = raw.len() as u64;
        let mut waiting = self.waiting.lock();
        let most = self.most_waiting_bytes();
        if waiting.is_closed || waiting.bytes + len > most || len > self.options.segment_bytes / LARGEST_PART {
            self.passed_over.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if waiting.keys.insert(key) {
            waiting.bytes += len;
            waiting.blocks.push((key, raw.clone()));
            if waiting.bytes >= self.options.segment_bytes {
                self.wanted.notify_all();
            }
        }
    }

    /// A block of a file that is read into the cache as a whole: it is kept where there is room, also when it was not asked for before. Never waits for the disk.
    pub(crate) fn fill(&self, key: BlockKey, raw: &Bytes) {
        if self.has_room(raw.len() as u64) {
            self.put(key, raw);
        }
    }

    fn has_room(&self, more_bytes: u64) -> bool {
        let waiting = self.waiting.lock().bytes;
        self.index.read().used_bytes + waiting + more_bytes <= self.options.capacity_bytes
    }

    /// For who reads files into the cache as a whole: waits until the writer has taken what waits for it. False where nothing makes room for them: the
    /// cache is full, or is being closed.
    pub fn wait_for_room(&self, bytes: u64) -> bool {
        if !self.has_room(bytes) {
            return false;
        }
        let mut waiting = self.waiting.lock();
        while !waiting.is_closed && waiting.bytes >= self.options.segment_bytes {
            self.written.wait(&mut waiting);
        }
        !waiting.is_closed
    }

    fn most_waiting_bytes(&self) -> u64 {
        2 * self.options.segment_bytes
    }

    /// Forgets the blocks of a file: they are not found any more, and go with their segments. Looks at every block held.
    pub(crate) fn forget_file(&self, file: u128) {
        {
            let mut index = self.index.write();
            if index.file_bytes.remove(&file).is_some() {
                index.places.retain(|(of, _), _| *of != file);
            }
        }
        let mut waiting = self.waiting.lock();
        let Waiting { blocks, keys, bytes, .. } = &mut *waiting;
        blocks.retain(|((of, at), raw)| {
            let stays = *of != file;
            if !stays {
                keys.remove(&(*of, *at));
                *bytes -= raw.len() as u64;
            }
            stays
        });
    }

    /// Sleeps until there is a segment to write; false when the cache is being closed, and what is left is to be written.
    pub fn wait_for_work(&self) -> bool {
        let mut waiting = self.waiting.lock();
        while !waiting.is_closed && waiting.bytes < self.options.segment_bytes {
            self.wanted.wait(&mut waiting);
        }
        !waiting.is_closed
    }

    /// Whether there is a segment to write.
    #[cfg(test)]
    fn waits_for_writer(&self) -> bool {
        self.waiting.lock().bytes >= self.options.segment_bytes
    }

    /// Nothing more is taken in; [`SecondLevel::wait_for_work`] returns.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.wanted.notify_all();
        self.written.notify_all();
    }

    /// Writes what waits as a segment, after making room for it; returns the bytes that were written. One caller at a time. What cannot be written is
    /// given up and told of.
    pub fn write_segment(&self) -> u64 {
        let mut blocks = {
            let mut waiting = self.waiting.lock();
            waiting.bytes = 0;
            waiting.keys.clear();
            self.written.notify_all();
            std::mem::take(&mut waiting.blocks)
        };
        {
            let index = self.index.read();
            blocks.retain(|(key, _)| !index.places.contains_key(key));
        }
        if blocks.is_empty() {
            return 0;
        }
        let count = blocks.len() as u64;
        match self.write(&mut blocks) {
            Ok(0) => 0,
            Ok(bytes) => {
                self.has_failed.store(false, Ordering::Relaxed);
                self.inserted.fetch_add(blocks.len() as u64, Ordering::Relaxed);
                self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
                bytes
            }
            Err(error) => {
                self.fail(|| error.to_string());
                self.passed_over.fetch_add(count, Ordering::Relaxed);
                0
            }
        }
    }

    fn write(&self, blocks: &mut Vec<(BlockKey, Bytes)>) -> fs::Result<u64> {
        for _ in 0..CONTENDS_WITH {
            let new_bytes = segment::len_bytes(blocks.iter().map(|(_, raw)| raw.len()));
            let oldest = {
                let index = self.index.read();
                let is_full = index.used_bytes + new_bytes > self.options.capacity_bytes;
                index.segments.front().filter(|_| is_full).cloned()
            };
            let Some(oldest) = oldest else { return self.write_all(blocks) };
            self.contend(&oldest, blocks);
            if blocks.is_empty() {
                return Ok(0);
            }
        }
        // There may be room the next time, or more that is new.
        self.wait_on(std::mem::take(blocks));
        Ok(0)
    }

    /// Has the blocks wait that are left, if there is room for them.
    fn wait_on(&self, blocks: Vec<(BlockKey, Bytes)>) {
        let mut waiting = self.waiting.lock();
        for (key, raw) in blocks {
            let len = raw.len() as u64;
            if waiting.is_closed || waiting.bytes + len > self.most_waiting_bytes() || !waiting.keys.insert(key) {
                self.passed_over.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            waiting.bytes += len;
            waiting.blocks.push((key, raw));
        }
    }

    fn write_all(&self, blocks: &[(BlockKey, Bytes)]) -> fs::Result<u64> {
        let new_bytes = segment::len_bytes(blocks.iter().map(|(_, raw)| raw.len()));
        let id = self.next_segment.fetch_add(1, Ordering::Relaxed);
        let path = FilePath::new(format!("{SEGMENT_PREFIX}{id:016x}"));
        let written = segment::write(&*self.volume, &path, self.id, id, blocks)
            .and_then(|entries| Ok((self.volume.open(&path)?, entries)));
        match written {
            Ok((file, entries)) => {
                let keys = entries.iter().map(|entry| entry.key).collect();
                let segment = Arc::new(Segment { id, file, len_bytes: new_bytes, keys });
                self.index.write().add(&segment, &entries);
                Ok(new_bytes)
            }
            Err(error) => {
                let _ = self.volume.remove_file(&path);
                Err(error)
            }
        }
    }

    /// Has the blocks of the oldest segment and new ones contend for its place: who was asked for more stays or comes in, the one that is there where both
    /// were asked for as much. Where little is new the segment goes round as it is; else it goes, and `blocks` are those that are to be written.
    fn contend(&self, oldest: &Arc<Segment>, blocks: &mut Vec<(BlockKey, Bytes)>) {
        let mut all: Vec<(u8, BlockKey, Origin)> = {
            let index = self.index.read();
            let of_it = |key: &BlockKey| index.places.get(key).filter(|place| place.segment.id == oldest.id);
            let held = oldest.keys.iter().filter_map(|key| Some((key, of_it(key)?)));
            held.map(|(key, place)| (self.frequencies.of(key), *key, Origin::Segment(place.at, place.len, place.crc)))
                .collect()
        };
        let held = all.len();
        let held_bytes = all.iter().map(|(_, _, from)| from.len_bytes()).sum();
        all.extend(blocks.drain(..).map(|(key, raw)| (self.frequencies.of(key), key, Origin::File(raw))));
        // Stable: of equals those come first that are there.
        all.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
        let place_bytes = self.options.segment_bytes.max(held_bytes);
        let (mut left_bytes, mut new_bytes) = (place_bytes, 0);
        let mut stay: Vec<(BlockKey, Origin)> = Vec::new();
        let (mut kept, mut refused) = (0, 0);
        for (_, key, from) in all {
            let (len, is_new) = (from.len_bytes(), matches!(from, Origin::File(_)));
            if len <= left_bytes {
                left_bytes -= len;
                new_bytes += if is_new { len } else { 0 };
                kept += usize::from(!is_new);
                stay.push((key, from));
            } else {
                refused += u64::from(is_new);
            }
        }
        self.refused.fetch_add(refused, Ordering::Relaxed);
        if new_bytes < place_bytes / NEW_PART && kept > 0 {
            let mut index = self.index.write();
            if index.segments.front().is_some_and(|front| front.id == oldest.id) {
                index.segments.rotate_left(1);
            }
            let new = |(key, from)| match from {
                Origin::File(raw) => Some((key, raw)),
                Origin::Segment(..) => None,
            };
            blocks.extend(stay.into_iter().filter_map(new));
            return;
        }
        self.remove_oldest(oldest);
        self.evicted.fetch_add((held - kept) as u64, Ordering::Relaxed);
        for (key, from) in stay {
            match from {
                Origin::File(raw) => blocks.push((key, raw)),
                Origin::Segment(at, len, crc) => match self.read(oldest, at, len, crc) {
                    Some(raw) => blocks.push((key, raw)),
                    None => _ = self.evicted.fetch_add(1, Ordering::Relaxed),
                },
            }
        }
    }

    fn remove_oldest(&self, oldest: &Arc<Segment>) {
        {
            let mut index = self.index.write();
            index.segments.pop_front();
            index.used_bytes -= oldest.len_bytes;
            oldest.keys.iter().for_each(|key| index.remove(key, oldest.id));
        }
        let _ = self.volume.remove_file(&FilePath::new(format!("{SEGMENT_PREFIX}{:016x}", oldest.id)));
    }
}

impl Index {
    fn add(&mut self, segment: &Arc<Segment>, entries: &[Entry]) {
        self.used_bytes += segment.len_bytes;
        self.segments.push_back(segment.clone());
        for Entry { key, at, len, crc } in entries {
            let place = Place { segment: segment.clone(), at: *at, len: *len, crc: *crc };
            if let Some(before) = self.places.insert(*key, place) {
                self.forget_bytes(key.0, before.len);
            }
            *self.file_bytes.entry(key.0).or_default() += u64::from(*len);
        }
    }

    /// The block is not in that segment any more.
    fn remove(&mut self, key: &BlockKey, segment: u64) {
        if self.places.get(key).is_some_and(|place| place.segment.id == segment)
            && let Some(place) = self.places.remove(key)
        {
            self.forget_bytes(key.0, place.len);
        }
    }

    fn forget_bytes(&mut self, file: u128, len: u32) {
        if let Some(bytes) = self.file_bytes.get_mut(&file) {
            *bytes -= u64::from(len);
            if *bytes == 0 {
                self.file_bytes.remove(&file);
            }
        }
    }
}

/// What the directory holds of the cache `id`, and the next segment's number.
fn restore(volume: &dyn Volume, id: u64, options: &SecondLevelOptions, tell: &Tell) -> fs::Result<(Index, u64)> {
    let mut segments = Vec::new();
    for entry in volume.list(&FilePath::root())?.into_iter().filter(|entry| !entry.is_dir) {
        let number = entry.name.strip_prefix(SEGMENT_PREFIX).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        segments.extend(number.map(|number| (number, FilePath::new(&entry.name), entry.len)));
    }
    segments.sort_by_key(|(number, ..)| *number);
    let next = segments.last().map_or(1, |(number, ..)| number + 1);
    let (mut index, mut dropped) = (Index::default(), Vec::new());
    // The newest are worth most.
    let mut left_bytes = options.capacity_bytes;
    let mut kept = Vec::new();
    for (number, path, len_bytes) in segments.into_iter().rev() {
        let read = if options.keeps && len_bytes <= left_bytes {
            let file = volume.open(&path)?;
            segment::read(&*file, id, number).map(|entries| (file, entries))
        } else {
            Err("there is no room for it".to_owned())
        };
        match read {
            Ok((file, entries)) => {
                left_bytes -= len_bytes;
                let keys = entries.iter().map(|entry| entry.key).collect();
                kept.push((Arc::new(Segment { id: number, file, len_bytes, keys }), entries));
            }
            Err(why) => {
                dropped.push((path.clone(), why));
                volume.remove_file(&path)?;
            }
        }
    }
    kept.iter().rev().for_each(|(segment, entries)| index.add(segment, entries));
    if let Some((path, why)) = dropped.first().filter(|_| options.keeps) {
        tell(format!(
            "the second level of the block cache: {} segments were thrown away, {path} among them: {why}",
            dropped.len()
        ));
    }
    Ok((index, next))
}

#[cfg(test)]
mod tests;
