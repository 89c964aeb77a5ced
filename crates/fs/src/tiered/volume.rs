//! The contract, over all volumes at once.

use super::other::Other;
use super::rules::Choice;
use super::speed::Timed;
use super::{At, Failed, RECORD_LEN, Record, TieredVolume, VolumeStatus, object_path};
use crate::{
    AppendHints, Appender, BlockHosts, Capabilities, DirEntry, Error, FileKind, FilePart, FilePath, Placement, ReadAt,
    ReadHints, Result, Settled, Volume, VolumeHints,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Volume for TieredVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        let file = self.home.open(path)?;
        if file.len()? != RECORD_LEN {
            return Ok(file);
        }
        let mut bytes = vec![0; RECORD_LEN as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let Some(record) = Record::decode(&bytes) else { return Ok(file) };
        let (other, _) = self.volume_of("open", path, &record)?;
        // Before it is opened: what is opened in a life that ends meanwhile is not taken for one of the next.
        let (other, life) = (other.clone(), other.life());
        let inner = self.on("open", path, &record, |volume, object| volume.open(object))?;
        let place = format!("{}/{}, tier {}", other.spec.place, object_path(&record.object), other.spec.tier.name);
        Ok(Arc::new(PlacedFile { inner, path: path.clone(), place, other, life }))
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.home.create(path)
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        let replaced = if from == to { None } else { self.find(to)? };
        let is_placed = matches!(self.find(from)?, Some(At::Placed(_)));
        self.home.rename(from, to)?;
        if is_placed {
            self.forget_name(from, to);
        }
        if let Some(At::Placed(record)) = replaced {
            self.home.sync_dir(&to.parent())?;
            self.discard(&record);
        }
        Ok(())
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        let is_placed = matches!(self.find(from)?, Some(At::Placed(_)));
        self.home.rename_new(from, to)?;
        if is_placed {
            self.forget_name(from, to);
        }
        Ok(())
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        let Some(At::Placed(record)) = self.find(path)? else { return self.home.remove_file(path) };
        self.volume_of("remove", path, &record)?;
        self.home.remove_file(path)?;
        self.home.sync_dir(&path.parent())?;
        self.discard(&record);
        Ok(())
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        let records = self.records_below(path)?;
        for record in &records {
            self.volume_of("remove", path, record)?;
        }
        self.home.remove_dir_all(path)?;
        if records.is_empty() {
            return Ok(());
        }
        self.home.sync_dir(&path.parent())?;
        records.iter().for_each(|record| self.discard(record));
        Ok(())
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.home.create_dir_all(path)
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
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
        if let Some(At::Placed(record)) = self.find(path)? {
            self.on("sync", path, &record, |volume, object| volume.sync_file(object))?;
        }
        self.home.sync_file(path)
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        match self.find(path)? {
            Some(At::Placed(record)) => self.on("settle", path, &record, |volume, object| volume.settle(object)),
            _ => self.home.settle(path),
        }
    }

    fn read(&self, path: &FilePath) -> Result<Vec<u8>> {
        let bytes = self.home.read(path)?;
        match Record::decode(&bytes) {
            None => Ok(bytes),
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
        let choice = self.rules.read().tier(&self.tiers, placement);
        let tier = match choice {
            Choice::Home => return at_home(),
            Choice::Refused(why) => {
                self.tell_once(why);
                return at_home();
            }
            Choice::Tier(tier) => &self.tiers[tier],
        };
        // As at home, and before anything is made elsewhere.
        if self.home.exists(path)? {
            return Err(Error::new("create", path, io::ErrorKind::AlreadyExists.into()));
        }
        for (other, volume) in self.candidates(tier) {
            match self.create_on(other, &volume, path, past_cache) {
                Ok(appender) => return Ok(appender),
                Err(Failed::Home(error)) => return Err(error),
                Err(Failed::There(error)) => {
                    self.pass_over(other, format!("new files go elsewhere than to the tier {}: {error}", tier.name));
                }
            }
        }
        if placement.kind == FileKind::Log || !self.others.iter().any(|other| other.spec.tier == *tier) {
            self.tell_once(format!(
                "no volume of the tier {} can take a file: it goes to the root directory's disk",
                tier.name
            ));
        }
        at_home()
    }

    fn release_reserved(&self, path: &FilePath) -> Result<()> {
        match self.find(path)? {
            Some(At::Placed(record)) => self
                .on("give back the room reserved for", path, &record, |volume, object| volume.release_reserved(object)),
            _ => self.home.release_reserved(path),
        }
    }

    fn places(&self) -> Vec<String> {
        self.others.iter().map(|other| other.name()).collect()
    }

    fn look_after_place(&self, place: &str) {
        self.others.iter().filter(|other| other.name() == place).for_each(|other| self.look_after_one(other));
    }

    fn volumes(&self) -> Vec<VolumeStatus> {
        self.status()
    }

    fn failures_and_returns(&self) -> u64 {
        self.others.iter().map(|other| other.life()).sum()
    }

    fn set_places(&self, kinds: &BTreeMap<&'static str, String>) -> std::result::Result<bool, String> {
        TieredVolume::set_places(self, kinds)
    }

    fn has_several_places(&self) -> bool {
        !self.others.is_empty()
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.home.free_bytes()
    }

    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
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

/// A file on another volume, under its name in the tree.
struct PlacedFile {
    inner: Arc<dyn ReadAt>,
    path: FilePath,
    place: String,
    other: Arc<Other>,
    /// In which it was opened.
    life: u64,
}

impl PlacedFile {
    fn say(&self, error: Error) -> Error {
        self.other.suspect(&error);
        say(&self.path, &self.place, error)
    }
}

impl ReadAt for PlacedFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        if self.other.has_failed()
            && let Some(refusal) = self.other.refusal("read", &self.path, self.life)
        {
            return Err(refusal);
        }
        self.other.speed.time(Timed::Read, || self.inner.read_exact_at(buf, offset)).map_err(|error| self.say(error))
    }

    fn len(&self) -> Result<u64> {
        self.inner.len().map_err(|error| self.say(error))
    }

    fn hints(&self) -> Option<&dyn ReadHints> {
        Some(self)
    }
}

impl ReadHints for PlacedFile {
    fn will_need(&self, offset: u64, len: u64) {
        self.inner.will_need(offset, len);
    }

    fn forget(&self) {
        self.inner.forget();
    }

    fn forget_range(&self, offset: u64, len: u64) {
        self.inner.forget_range(offset, len);
    }

    fn block_hosts(&self, part: FilePart) -> Option<BlockHosts> {
        self.inner.block_hosts(part)
    }

    fn lost_with(&self) -> Option<String> {
        (self.other.life() != self.life).then(|| self.other.name())
    }
}

/// A file that is being written on another volume.
pub(super) struct PlacedAppender {
    pub inner: Box<dyn Appender>,
    pub path: FilePath,
    pub place: String,
    /// So much of the bytes used on its volume is this file's.
    pub counted: u64,
    pub other: Arc<Other>,
    /// In which it was created.
    pub life: u64,
}

impl PlacedAppender {
    /// Calls the file, unless its volume failed since it was begun: nobody knows then what is there of it.
    fn on<T>(&mut self, operation: &str, call: impl FnOnce(&mut dyn Appender) -> Result<T>) -> Result<T> {
        match self.other.refusal(operation, &self.path, self.life) {
            Some(refusal) => Err(refusal),
            None => call(&mut *self.inner).map_err(|error| {
                self.other.suspect(&error);
                say(&self.path, &self.place, error)
            }),
        }
    }

    fn count(&mut self) {
        let position = self.inner.position();
        self.other.used_bytes.fetch_add(position.saturating_sub(self.counted), Ordering::Relaxed);
        self.counted = position;
    }
}

impl Appender for PlacedAppender {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.on("append to", |inner| inner.append(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.on("write", |inner| inner.flush())
    }

    fn sync(&mut self) -> Result<()> {
        let other = self.other.clone();
        let outcome = self.on("sync", |inner| other.speed.time(Timed::Sync, || inner.sync()));
        self.count();
        outcome
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.count();
        if let Some(refusal) = self.other.refusal("sync", &self.path, self.life) {
            return Err(refusal);
        }
        let PlacedAppender { inner, path, place, other, .. } = *self;
        other.speed.time(Timed::Sync, || inner.finish()).map_err(|error| {
            other.suspect(&error);
            say(&path, &place, error)
        })
    }

    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        self.inner.hints()
    }
}
