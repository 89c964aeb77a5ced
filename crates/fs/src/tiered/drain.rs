//! What lies on a volume that is to be emptied moves to others of its tier, else beside its name.
//!
//! One file at a time: the copy is made and made durable, a record of it waits in the root, and takes the place of the old one if that is still what it
//! was. Who reads the file goes on with the copy. Then what was there is removed. A crash leaves the file where it was or where it is to be, and
//! perhaps a copy that no name has.

use super::attach::each_record;
use super::gather::copy;
use super::other::Other;
use super::volume::Place;
use super::{At, MOVING, Record, TieredVolume, object_path};
use crate::{FilePath, ReadAt, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What one round over a volume's files came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Files that were moved, and
    pub files: u64,
    /// their bytes.
    pub bytes: u64,
    /// Files that are there still.
    pub left: u64,
    /// Those of them that somebody is writing.
    pub being_written: u64,
    /// Those that could not be moved, and why the first of them could not.
    pub failed: u64,
    /// See above.
    pub why: Option<String>,
}

/// Where a copy went.
enum Copied {
    /// Its record waits.
    Elsewhere(Record),
    /// It waits itself; open, as it is called otherwise soon.
    Home(Arc<dyn ReadAt>),
}

impl TieredVolume {
    /// Moves the files on the volume of that directory elsewhere, which must have been said to be emptied: one round over all of them. `goes_on` is
    /// told of bytes that were copied, may wait, and ends the round with false. Files that somebody writes, and what is named anew meanwhile, are
    /// left for the next round.
    ///
    /// # Errors
    /// A sentence: there is no such volume, it is not to be emptied, the root cannot be read. A file that cannot be moved is none: it stays.
    pub fn drain(&self, directory: &str, goes_on: &dyn Fn(u64) -> bool) -> std::result::Result<Drained, String> {
        let set = self.set();
        let Some(other) = set.others.iter().find(|other| other.spec().place == directory) else {
            let places: Vec<String> = set.others.iter().map(|other| other.spec().place.clone()).collect();
            return Err(format!("{directory} is no volume of basalt.volumes (it has: {})", places.join(", ")));
        };
        if !other.spec().drains {
            return Err(format!(
                "{} gets new files still: write :drain behind it in basalt.volumes and have the configuration read again",
                other.name()
            ));
        }
        if !goes_on(0) {
            return Ok(Drained { left: other.files.load(Ordering::Acquire), ..Drained::default() });
        }
        let mut found: Vec<(FilePath, Record)> = Vec::new();
        let mut note = |path: &FilePath, record: Record| {
            if record.volume == other.id {
                found.push((path.clone(), record));
            }
        };
        each_record(&*self.home, &FilePath::root(), &mut note).map_err(|error| error.to_string())?;
        let moving = FilePath::new(MOVING);
        self.home.create_dir_all_durable(&moving).map_err(|error| error.to_string())?;
        let mut drained = Drained::default();
        for (path, record) in found.iter().filter(|(path, _)| path.parent() != moving) {
            if !goes_on(0) {
                break;
            }
            if other.is_writing(&record.object) {
                drained.being_written += 1;
                continue;
            }
            match self.move_file(other, path, record, goes_on) {
                Ok(None) => {}
                Ok(Some(bytes)) => {
                    drained.files += 1;
                    drained.bytes += bytes;
                    other.moved.0.fetch_add(1, Ordering::Relaxed);
                    other.moved.1.fetch_add(bytes, Ordering::Relaxed);
                }
                Err(error) => {
                    drained.failed += 1;
                    drained.why.get_or_insert_with(|| error.to_string());
                }
            }
        }
        drained.left = other.files.load(Ordering::Acquire);
        Ok(drained)
    }

    /// The bytes that were moved; `None` when the name is another's or nobody's by now, or it was broken off.
    fn move_file(
        &self,
        from: &Arc<Other>,
        path: &FilePath,
        record: &Record,
        goes_on: &dyn Fn(u64) -> bool,
    ) -> Result<Option<u64>> {
        let source = match self.on("move", path, record, |volume, object| volume.open(object)) {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        let number = self.next_object.fetch_add(1, Ordering::Relaxed);
        let waiting = FilePath::new(MOVING).join(format!("{:016x}-{number:x}", self.unique));
        for (other, volume) in self.candidates(&from.spec().tier) {
            // It is not taken out meanwhile.
            let removed = other.removed.read();
            if *removed || !other.is_itself() {
                continue;
            }
            let to = self.new_record(&other);
            let object = object_path(&to.object);
            let made = volume.create_past_cache(&object).map_err(|error| other.say(path, &to, error));
            let copied = made.and_then(|out| {
                let copied = copy(&*source, out, goes_on)?;
                volume.sync_dir(&object.parent()).map_err(|error| other.say(path, &to, error))?;
                Ok(copied)
            });
            match copied {
                Ok(Some(bytes)) => {
                    other.used_bytes.fetch_add(bytes, Ordering::Relaxed);
                    other.files.fetch_add(1, Ordering::AcqRel);
                    let outcome = self
                        .put_record(&waiting, &to)
                        .and_then(|()| self.replace(from, path, record, &waiting, Copied::Elsewhere(to.clone())));
                    // Where the record does not wait any more, it may be in its place: the bytes stay.
                    if !matches!(outcome, Ok(true)) && self.home.remove_file(&waiting).is_ok() {
                        self.discard(&to);
                    }
                    return outcome.map(|is_moved| is_moved.then_some(bytes));
                }
                Ok(None) => {
                    let _ = volume.remove_file(&object);
                    return Ok(None);
                }
                // One that is full or fails is passed over.
                Err(error) => {
                    let _ = volume.remove_file(&object);
                    self.pass_over(&other, format!("files are moved elsewhere than to {}: {error}", other.name()));
                }
            }
        }
        let out = self.home.create(&waiting)?;
        let moved = || -> Result<Option<u64>> {
            let Some(bytes) = copy(&*source, out, goes_on)? else { return Ok(None) };
            let copied = Copied::Home(self.home.open(&waiting)?);
            Ok(self.replace(from, path, record, &waiting, copied)?.then_some(bytes))
        };
        let outcome = moved();
        if !matches!(outcome, Ok(Some(_))) {
            let _ = self.home.remove_file(&waiting);
        }
        outcome
    }

    fn put_record(&self, at: &FilePath, record: &Record) -> Result<()> {
        let mut file = self.home.create(at)?;
        file.append(&record.encode())?;
        file.finish()
    }

    /// Has what waits take the place of `record`, if that is still at its place. Whether it was.
    fn replace(
        &self,
        from: &Arc<Other>,
        path: &FilePath,
        record: &Record,
        waiting: &FilePath,
        copied: Copied,
    ) -> Result<bool> {
        {
            let _names = self.names.write();
            let is_same = matches!(self.find(path)?, Some(At::Placed(now)) if now == *record);
            if !is_same || from.is_writing(&record.object) {
                return Ok(false);
            }
            self.home.rename(waiting, path)?;
            // Where this fails nobody knows which of the two a crash leaves: both stay.
            if !base::inject!("fs.tiered.moved-unsynced") {
                self.home.sync_dir(&path.parent())?;
            }
        }
        match copied {
            Copied::Elsewhere(now) => self.lead_readers(from, record, || self.open_on(path, &now)),
            Copied::Home(file) => self.lead_readers(from, record, || Ok(Place::home(file))),
        }
        self.discard(record);
        Ok(true)
    }
}
