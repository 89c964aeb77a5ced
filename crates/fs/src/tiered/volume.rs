//! The contract, over all volumes at once.

use super::aside::{SyncsAside, Written};
use super::other::Other;
use super::rules::Choice;
use super::speed::Timed;
use super::{At, Drained, Failed, Now, RECORD_LEN, Record, TieredVolume, VolumeSpec, VolumeStatus, object_path};
use crate::{
    AppendHints, Appender, BlockHosts, Capabilities, DirEntry, Error, FileKind, FilePart, FilePath, Placement, ReadAt,
    ReadHints, Result, Settled, Volume, VolumeHints,
};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

impl Volume for TieredVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        loop {
            let file = self.home.open(path)?;
            if self.is_plain() || file.len()? != RECORD_LEN {
                return Ok(file);
            }
            let mut bytes = vec![0; RECORD_LEN as usize];
            file.read_exact_at(&mut bytes, 0)?;
            let Some(record) = Record::decode(&bytes) else { return Ok(file) };
            let opened = self.open_placed(path, &record);
            // Its bytes may have been moved since the record was read.
            match self.now_at(path, &record) {
                Ok(Now::Moved(_) | Now::AtHome) => {}
                Ok(Now::Gone) if opened.is_err() => {
                    return Err(Error::new("open", path, io::ErrorKind::NotFound.into()));
                }
                _ => return opened,
            }
        }
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.home.create(path)
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        if self.is_plain() {
            return self.home.rename(from, to);
        }
        let replaced = {
            let _names = self.names.read();
            let replaced = if from == to { None } else { self.find(to)? };
            let is_placed = matches!(self.find(from)?, Some(At::Placed(_)));
            self.home.rename(from, to)?;
            if is_placed {
                self.forget_name(from, to);
            }
            let Some(At::Placed(record)) = replaced else { return Ok(()) };
            self.home.sync_dir(&to.parent())?;
            record
        };
        self.discard(&replaced);
        Ok(())
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        if self.is_plain() {
            return self.home.rename_new(from, to);
        }
        let _names = self.names.read();
        let is_placed = matches!(self.find(from)?, Some(At::Placed(_)));
        self.home.rename_new(from, to)?;
        if is_placed {
            self.forget_name(from, to);
        }
        Ok(())
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        if self.is_plain() {
            return self.home.remove_file(path);
        }
        let record = {
            let _names = self.names.read();
            let Some(At::Placed(record)) = self.find(path)? else { return self.home.remove_file(path) };
            self.volume_of("remove", path, &record)?;
            self.home.remove_file(path)?;
            self.home.sync_dir(&path.parent())?;
            record
        };
        self.discard(&record);
        Ok(())
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        if self.is_plain() {
            return self.home.remove_dir_all(path);
        }
        let records = {
            let _names = self.names.read();
            let records = self.records_below(path)?;
            for record in &records {
                self.volume_of("remove", path, record)?;
            }
            self.home.remove_dir_all(path)?;
            if records.is_empty() {
                return Ok(());
            }
            self.home.sync_dir(&path.parent())?;
            records
        };
        records.iter().for_each(|record| self.discard(record));
        Ok(())
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.home.create_dir_all(path)
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        if self.is_plain() {
            return self.home.list(path);
        }
        let mut entries = Vec::new();
        for entry in self.home.list(path)? {
            let at = path.join(&entry.name);
            match self.entry(&at, entry) {
                Ok(entry) => entries.push(entry),
                // Removed since the directory was read.
                Err(_) if !self.home.exists(&at)? => {}
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.home.stat(path)?.map(|entry| self.entry(path, entry)).transpose()
    }

    fn exists(&self, path: &FilePath) -> Result<bool> {
        self.home.exists(path)
    }

    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        self.home.sync_dir(path)
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        if !self.is_plain()
            && let Some(At::Placed(record)) = self.find(path)?
        {
            self.on("sync", path, &record, |volume, object| volume.sync_file(object))?;
        }
        self.home.sync_file(path)
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        if self.is_plain() {
            return self.home.settle(path);
        }
        match self.find(path)? {
            Some(At::Placed(record)) => self.on("settle", path, &record, |volume, object| volume.settle(object)),
            _ => self.home.settle(path),
        }
    }

    fn read(&self, path: &FilePath) -> Result<Vec<u8>> {
        let bytes = self.home.read(path)?;
        match Record::decode(&bytes) {
            None => Ok(bytes),
            Some(_) if self.is_plain() => Ok(bytes),
            Some(record) => self.on("read", path, &record, |volume, object| volume.read(object)),
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.home.capabilities()
    }

    fn hints(&self) -> Option<&dyn VolumeHints> {
        Some(self)
    }

    fn temporary_name(&self, name: &str) -> String {
        self.home.temporary_name(name)
    }
}

impl VolumeHints for TieredVolume {
    fn create_past_cache(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.home.create_past_cache(path)
    }

    fn create_placed(&self, path: &FilePath, placement: &Placement, past_cache: bool) -> Result<Box<dyn Appender>> {
        let at_home = || self.home.create_placed(path, placement, past_cache);
        if self.is_plain() {
            return at_home();
        }
        let set = self.set();
        let tier = match set.rules.tier(&set.tiers, placement) {
            Choice::Home => return at_home(),
            Choice::Refused(why) => {
                self.tell_once(why);
                return at_home();
            }
            Choice::Tier(tier) => &set.tiers[tier],
        };
        // As at home, and before anything is made elsewhere.
        if self.home.exists(path)? {
            return Err(Error::new("create", path, io::ErrorKind::AlreadyExists.into()));
        }
        for (other, volume) in self.candidates(tier) {
            match self.create_on(&other, &volume, path, past_cache) {
                Ok(appender) => return Ok(appender),
                Err(Failed::Home(error)) => return Err(error),
                Err(Failed::There(error)) => {
                    self.pass_over(&other, format!("new files go elsewhere than to the tier {}: {error}", tier.name));
                }
            }
        }
        if placement.kind == FileKind::Log || !set.others.iter().any(|other| other.spec().tier == *tier) {
            self.tell_once(format!(
                "no volume of the tier {} can take a file: it goes to the root directory's disk",
                tier.name
            ));
        }
        at_home()
    }

    fn release_reserved(&self, path: &FilePath) -> Result<()> {
        if self.is_plain() {
            return self.home.release_reserved(path);
        }
        match self.find(path)? {
            Some(At::Placed(record)) => self
                .on("give back the room reserved for", path, &record, |volume, object| volume.release_reserved(object)),
            _ => self.home.release_reserved(path),
        }
    }

    fn places(&self) -> Vec<String> {
        self.set().others.iter().map(|other| other.name()).collect()
    }

    fn look_after_place(&self, place: &str) {
        self.set().others.iter().filter(|other| other.name() == place).for_each(|other| self.look_after_one(other));
    }

    fn volumes(&self) -> Vec<VolumeStatus> {
        self.status()
    }

    fn failures_and_returns(&self) -> u64 {
        self.set.read().others.iter().map(|other| other.life()).sum()
    }

    fn failed_places(&self) -> Vec<String> {
        self.set().others.iter().filter(|other| other.has_failed()).map(|other| other.name()).collect()
    }

    fn change_volumes(
        &self,
        volumes: &[VolumeSpec],
        kinds: &BTreeMap<&'static str, String>,
    ) -> std::result::Result<bool, String> {
        self.change(volumes, kinds)
    }

    fn drain(&self, directory: &str, goes_on: &dyn Fn(u64) -> bool) -> std::result::Result<Drained, String> {
        TieredVolume::drain(self, directory, goes_on)
    }

    fn has_several_places(&self) -> bool {
        !self.is_plain()
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.home.free_bytes()
    }

    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        if self.is_plain() {
            return self.home.block_hosts(path, part);
        }
        match self.find(path)? {
            Some(At::Placed(record)) => {
                self.on("ask where the blocks are of", path, &record, |volume, object| volume.block_hosts(object, part))
            }
            _ => self.home.block_hosts(path, part),
        }
    }
}

fn say(path: &FilePath, place: &str, error: Error) -> Error {
    let Error { operation, offset, source, .. } = error;
    let source = io::Error::new(source.kind(), format!("{source} ({place})"));
    Error { operation, path: path.clone(), offset, source }
}

/// Where the bytes of an open file are.
pub(super) struct Place {
    inner: Arc<dyn ReadAt>,
    /// For people.
    name: String,
    other: Option<Arc<Other>>,
    /// In which it was opened.
    life: u64,
    object: String,
}

impl Place {
    /// Beside the name.
    pub(super) fn home(inner: Arc<dyn ReadAt>) -> Place {
        Place { inner, name: String::new(), other: None, life: 0, object: String::new() }
    }

    fn say(&self, path: &FilePath, error: Error) -> Error {
        let Some(other) = &self.other else { return error };
        other.suspect(&error);
        say(path, &self.name, error)
    }
}

/// A file on another volume, under its name in the tree. Its bytes may be moved while it is open.
pub(super) struct PlacedFile {
    path: FilePath,
    place: RwLock<Arc<Place>>,
    /// It is read past the page cache, wherever it is.
    is_past_cache: AtomicBool,
}

impl PlacedFile {
    fn place(&self) -> Arc<Place> {
        self.place.read().clone()
    }
}

impl TieredVolume {
    pub(super) fn open_on(&self, path: &FilePath, record: &Record) -> Result<Place> {
        let (other, volume) = self.volume_of("open", path, record)?;
        // Before it is opened: what is opened in a life that ends meanwhile is not taken for one of the next.
        let life = other.life();
        let object = object_path(&record.object);
        let inner = volume.open(&object).map_err(|error| other.say(path, record, error))?;
        let spec = other.spec();
        let name = format!("{}/{object}, tier {}", spec.place, spec.tier.name);
        Ok(Place { inner, name, other: Some(other), life, object: record.object.clone() })
    }

    fn open_placed(&self, path: &FilePath, record: &Record) -> Result<Arc<dyn ReadAt>> {
        let place = self.open_on(path, record)?;
        let other = place.other.clone();
        let file = Arc::new(PlacedFile {
            path: path.clone(),
            place: RwLock::new(Arc::new(place)),
            is_past_cache: AtomicBool::new(false),
        });
        if let Some(other) = other {
            let mut readers = other.readers.lock();
            readers.entry(record.object.clone()).or_default().push(Arc::downgrade(&file));
        }
        Ok(file)
    }

    /// The bytes that `record` told of are elsewhere: who reads them reads what `open` opens from now on. Where that fails he goes on with what he has.
    pub(super) fn lead_readers(&self, from: &Arc<Other>, record: &Record, open: impl FnOnce() -> Result<Place>) {
        let readers = from.readers.lock().remove(&record.object).unwrap_or_default();
        let readers: Vec<Arc<PlacedFile>> = readers.iter().filter_map(Weak::upgrade).collect();
        if readers.is_empty() {
            return;
        }
        let Ok(place) = open().map(Arc::new) else { return };
        if readers.iter().any(|reader| reader.is_past_cache.load(Ordering::Relaxed)) {
            place.inner.past_cache();
        }
        for reader in &readers {
            *reader.place.write() = place.clone();
        }
        if let Some(there) = &place.other {
            let mut registered = there.readers.lock();
            registered.entry(place.object.clone()).or_default().extend(readers.iter().map(Arc::downgrade));
        }
    }
}

impl Drop for PlacedFile {
    fn drop(&mut self) {
        let place = self.place.get_mut();
        let Some(other) = &place.other else { return };
        let mut readers = other.readers.lock();
        if let Some(of_file) = readers.get_mut(&place.object) {
            of_file.retain(|reader| reader.strong_count() > 0);
            if of_file.is_empty() {
                readers.remove(&place.object);
            }
        }
    }
}

impl PlacedFile {
    fn read(&self, read: impl FnOnce(&dyn ReadAt) -> Result<()>) -> Result<()> {
        let place = self.place();
        let Some(other) = &place.other else { return read(&*place.inner) };
        if other.has_failed()
            && let Some(refusal) = other.refusal("read", &self.path, place.life)
        {
            return Err(refusal);
        }
        let outcome = other.speed.time(Timed::Read, || read(&*place.inner));
        outcome.map_err(|error| place.say(&self.path, error))
    }
}

impl ReadAt for PlacedFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.read(|inner| inner.read_exact_at(buf, offset))
    }

    fn read_sequential_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.read(|inner| inner.read_sequential_at(buf, offset))
    }

    fn len(&self) -> Result<u64> {
        let place = self.place();
        place.inner.len().map_err(|error| place.say(&self.path, error))
    }

    fn hints(&self) -> Option<&dyn ReadHints> {
        Some(self)
    }
}

impl ReadHints for PlacedFile {
    fn past_cache(&self) {
        self.is_past_cache.store(true, Ordering::Relaxed);
        self.place().inner.past_cache();
    }

    fn will_need(&self, offset: u64, len: u64) {
        self.place().inner.will_need(offset, len);
    }

    fn forget(&self) {
        self.place().inner.forget();
    }

    fn forget_range(&self, offset: u64, len: u64) {
        self.place().inner.forget_range(offset, len);
    }

    fn block_hosts(&self, part: FilePart) -> Option<BlockHosts> {
        self.place().inner.block_hosts(part)
    }

    fn lost_with(&self) -> Option<String> {
        let place = self.place();
        let other = place.other.as_ref()?;
        (other.life() != place.life).then(|| other.name())
    }

    fn place(&self) -> Option<String> {
        self.place().other.as_ref().map(|other| other.name())
    }
}

/// A file that is being written on another volume.
pub(super) struct PlacedAppender {
    /// `None` once a sync was given up.
    pub file: Option<Written>,
    pub path: FilePath,
    pub place: String,
    /// So much of the bytes used on its volume is this file's.
    pub counted: u64,
    pub other: Arc<Other>,
    /// In which it was created.
    pub life: u64,
    pub aside: Option<SyncsAside>,
}

impl PlacedAppender {
    /// Calls the file, unless its volume failed since it was begun: nobody knows then what is there of it.
    fn on<T>(&mut self, operation: &str, call: impl FnOnce(&mut dyn Appender) -> Result<T>) -> Result<T> {
        if let Some(refusal) = self.other.refusal(operation, &self.path, self.life) {
            return Err(refusal);
        }
        let Some(file) = &mut self.file else { return Err(self.given_up(operation)) };
        call(&mut *file.appender).map_err(|error| {
            self.other.suspect(&error);
            say(&self.path, &self.place, error)
        })
    }

    fn given_up(&self, operation: &str) -> Error {
        let what = format!("a sync has not returned for a second, and others of its tier take files ({})", self.place);
        Error::new(operation, &self.path, io::Error::new(io::ErrorKind::TimedOut, what))
    }

    fn count(&mut self) {
        let position = self.position();
        self.other.used_bytes.fetch_add(position.saturating_sub(self.counted), Ordering::Relaxed);
        self.counted = position;
    }
}

impl Appender for PlacedAppender {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.on("append to", |file| file.append(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.on("write", |file| file.flush())
    }

    fn sync(&mut self) -> Result<()> {
        let other = self.other.clone();
        let outcome = self.on("sync", |file| other.speed.time(Timed::Sync, || file.sync()));
        self.count();
        outcome
    }

    fn sync_or_give_up(&mut self) -> Result<()> {
        self.count();
        let aside = self.aside.as_mut().and_then(|aside| aside.started(&self.other).ok());
        let (Some(aside), None) = (aside, self.other.refusal("sync", &self.path, self.life)) else {
            return self.sync();
        };
        match self.file.take().map(|file| aside.sync(file)) {
            Some(Some((file, outcome))) => {
                self.file = Some(file);
                self.on("sync", |_| outcome)
            }
            Some(None) => {
                self.other.tell(format!(
                    "{}: a sync of {} has not returned for a second; what is not synced of it is written to another volume",
                    self.other.name(),
                    self.path
                ));
                Err(self.given_up("sync"))
            }
            None => Err(self.given_up("sync")),
        }
    }

    fn position(&self) -> u64 {
        self.file.as_ref().map_or(self.counted, |file| file.appender.position())
    }

    fn is_on_slow_volume(&self) -> bool {
        self.other.speed.is_slow()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.count();
        if let Some(refusal) = self.other.refusal("sync", &self.path, self.life) {
            return Err(refusal);
        }
        let given_up = self.given_up("sync");
        let PlacedAppender { file, path, place, other, .. } = *self;
        let Some(Written { appender, _writing }) = file else { return Err(given_up) };
        other.speed.time(Timed::Sync, || appender.finish()).map_err(|error| {
            other.suspect(&error);
            say(&path, &place, error)
        })
    }

    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        self.file.as_mut().and_then(|file| file.appender.hints())
    }
}
