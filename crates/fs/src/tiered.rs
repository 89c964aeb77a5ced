//! Several disks under one tree of names.
//!
//! The names are the home volume's, the root directory's own disk: a file that was put elsewhere has in its place there a record of
//! a few hundred bytes that says on which volume its bytes are, under which name. What the storage crates do with names, the order in which they
//! make them durable, what a crash can leave of them: all of it stays as on one disk, since the records move, appear and go as files do.
//!
//! Always true:
//!  1. When a record's name is on the disk, so is the name of the file that it tells of: a record that leads nowhere is a loss, said as one,
//!     and never taken for a file that is not there, or is empty.
//!  2. The bytes of a file are removed when its record is durably gone, and no other record tells of them (a crash may leave a renamed file
//!     both its names).
//!  3. A name leads to bytes while they are moved: they are copied, then the record is replaced by one of the copy, then what was there is removed.
//!     Names change and records are replaced one at a time.
//!  4. Each volume says whose it is, the root lists its volumes; a volume of another root, or another volume in the place of one, is refused.
//!
//! Decision 26 has the reasons.

mod aside;
mod attach;
mod change;
mod drain;
mod gather;
mod local;
mod other;
mod record;
mod rules;
mod spec;
mod speed;
mod volume;

pub use aside::Spawn;
pub use attach::{Attached, Survey};
pub use drain::Drained;
pub use gather::Gathered;
pub use local::{look, open_gathering, open_local, open_reading, volumes_of};
pub use other::Claim;
pub use rules::Rules;
pub use spec::{Class, TierSpec, VolumeSpec, parse_volumes};
pub use speed::SpeedStatus;

use crate::{Appender, DirEntry, Error, FilePath, Result, Volume};
use aside::{SyncsAside, Written};
use base::{Clock, Rng};
use other::{Other, Writing};
use parking_lot::{Mutex, RwLock};
use record::{RECORD_LEN, Record};
use speed::{Change, STALLED_US, Speed, Timed};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volume::PlacedAppender;

/// The list of volumes, in the root.
const LIST_NAME: &str = ".basalt.volumes";
/// Whose a volume is, on the volume.
const IDENTITY_NAME: &str = ".basalt.volume";
/// What a volume's speed is tried with.
const PROBE_NAME: &str = ".basalt.probe";
/// Where records wait that are to replace others, and files that come back beside their names.
const MOVING: &str = ".basalt.moving";
/// Where a volume has its files.
const OBJECTS: &str = "files";
/// A volume with less room than this gets no more files.
const ROOM_KEPT_BYTES: u64 = 64 << 20;

/// Told of what goes on, in a sentence.
pub type Tell = Arc<dyn Fn(String) + Send + Sync>;

/// What a tier has and did.
#[derive(Clone, Debug)]
pub struct VolumeStatus {
    /// As it was said.
    pub spec: VolumeSpec,
    /// Whether it is there, and has not failed.
    pub is_there: bool,
    /// Why it cannot be used, or only be read.
    pub trouble: Option<String>,
    /// Bytes of the root's files on it.
    pub used_bytes: u64,
    /// The root's files on it.
    pub files: u64,
    /// Files and bytes that were moved off it since the start.
    pub moved: (u64, u64),
    /// Bytes that the file system has left; `None` when there is no telling.
    pub free_bytes: Option<u64>,
    /// What its calls took lately; all unknown where nobody measures.
    pub speed: SpeedStatus,
}

/// Opens a volume that was not there at the start; a sentence says why that cannot be.
pub type Opener = Arc<dyn Fn(&VolumeSpec) -> std::result::Result<Attached, String> + Send + Sync>;

/// The volumes of now.
struct Set {
    tiers: Vec<TierSpec>,
    others: Vec<Arc<Other>>,
    rules: Rules,
}

/// Several volumes under one tree of names. See the module.
pub struct TieredVolume {
    home: Arc<dyn Volume>,
    set: RwLock<Arc<Set>>,
    /// Whether there are others than the home: without any there are no records, and all is as if there was the home alone.
    has_others: AtomicBool,
    /// Shared by who changes a name, alone for who replaces a record. No call to another volume than the home is made under it.
    names: RwLock<()>,
    /// Files that more than one record tells of, and how many do: crashes leave such.
    shared: Mutex<HashMap<Record, u32>>,
    /// No other process, and none before, made names with it.
    unique: u64,
    next_object: AtomicU64,
    /// Held by who changes the volumes. Numbers of volumes come from it.
    changing: Mutex<Rng>,
    opener: Option<Opener>,
    clock: Option<Arc<dyn Clock>>,
    spawn: Option<Spawn>,
    told: Mutex<HashSet<String>>,
    tell: Tell,
}

/// Where a file could not be created.
enum Failed {
    /// On the other volume: elsewhere it may go well.
    There(Error),
    /// Beside the names: it goes well nowhere.
    Home(Error),
}

/// What lies at a path of the home.
enum At {
    Plain,
    Placed(Record),
}

/// What lies at a path that had a record.
enum Now {
    Same,
    Moved(Record),
    AtHome,
    Gone,
}

fn object_path(object: &str) -> FilePath {
    FilePath::new(OBJECTS).join(object)
}

impl TieredVolume {
    fn new(home: Arc<dyn Volume>, set: Set, rng: &Rng, tell: Tell) -> TieredVolume {
        TieredVolume {
            home,
            has_others: AtomicBool::new(!set.others.is_empty()),
            set: RwLock::new(Arc::new(set)),
            names: RwLock::new(()),
            shared: Mutex::default(),
            unique: rng.next_u64(),
            next_object: AtomicU64::new(0),
            changing: Mutex::new(Rng::seeded(rng.next_u64())),
            opener: None,
            clock: None,
            spawn: None,
            told: Mutex::default(),
            tell,
        }
    }

    /// The volumes of now.
    fn set(&self) -> Arc<Set> {
        self.set.read().clone()
    }

    fn other(&self, id: u64) -> Option<Arc<Other>> {
        self.set.read().others.iter().find(|other| other.id == id).cloned()
    }

    /// Whether the home is all there is.
    fn is_plain(&self) -> bool {
        !self.has_others.load(Ordering::Acquire)
    }

    /// What each volume has.
    pub fn status(&self) -> Vec<VolumeStatus> {
        let free = |volume: Arc<dyn Volume>| volume.free_bytes().ok().flatten();
        let status = |other: &Arc<Other>| VolumeStatus {
            spec: (*other.spec()).clone(),
            is_there: !other.has_failed(),
            trouble: other.trouble().map(|why| why.to_string()),
            used_bytes: other.used_bytes.load(Ordering::Relaxed),
            files: other.files.load(Ordering::Relaxed),
            moved: (other.moved.0.load(Ordering::Relaxed), other.moved.1.load(Ordering::Relaxed)),
            free_bytes: other.volume().and_then(free),
            speed: other.speed.status(),
        };
        self.set().others.iter().map(status).collect()
    }

    /// The same, which finds volumes with `opener` that are named later ([`TieredVolume::change`]).
    #[must_use]
    pub fn with_opener(self, opener: Opener) -> TieredVolume {
        TieredVolume { opener: Some(opener), ..self }
    }

    /// The same, with the volumes beside the home measured by `clock`: one that grows slow gets no new files while others of its tier can take
    /// them. Costs two readings of the clock and a short lock for each read and sync of theirs.
    #[must_use]
    pub fn measured(mut self, clock: &Arc<dyn Clock>) -> TieredVolume {
        self.clock = Some(clock.clone());
        // Nobody has a file of theirs yet.
        if let Some(set) = Arc::get_mut(self.set.get_mut()) {
            for other in set.others.iter_mut().filter_map(Arc::get_mut) {
                other.speed = Speed::new(Some(clock.clone()));
            }
        }
        self
    }

    /// The same, for a volume that is [`TieredVolume::measured`], with threads for syncs that are given up while they stand still
    /// ([`Appender::sync_or_give_up`]). Costs a handing over to such a thread and back for each of these.
    #[must_use]
    pub fn with_threads(self, spawn: Spawn) -> TieredVolume {
        TieredVolume { spawn: Some(spawn), ..self }
    }

    /// [`TieredVolume::look_after_one`] for each volume, one after the other.
    pub fn look_after(&self) {
        self.set().others.iter().for_each(|other| self.look_after_one(other));
    }

    /// Sees whether a volume has failed or is back, tries it with a small file if it is called slow, or if too little is known of it to compare others
    /// with, and tells which have grown slow or fast. To be called about once a second, where it may wait for the volume.
    fn look_after_one(&self, other: &Arc<Other>) {
        other.look_after();
        let tier = other.spec().tier.clone();
        let has_peers = || self.set().others.iter().any(|peer| peer.id != other.id && peer.spec().tier == tier);
        let is_tried = other.speed.is_slow() || (has_peers() && !other.speed.is_known());
        // One that stands still is not asked again before it answers.
        if is_tried
            && other.is_well()
            && other.speed.status().waits_us == 0
            && let Some(volume) = other.volume()
        {
            let _ = other.speed.time(Timed::Sync, || other::probe(&*volume)).map_err(|error| other.suspect(&error));
        }
        self.look_at_speeds();
    }

    /// Tells which volumes have grown slow or fast. Waits for none.
    fn look_at_speeds(&self) {
        let set = self.set();
        for tier in &set.tiers {
            let of_tier: Vec<&Arc<Other>> =
                set.others.iter().filter(|other| other.spec().tier == *tier && !other.has_failed()).collect();
            let speeds: Vec<&Speed> = of_tier.iter().map(|other| &other.speed).collect();
            for (at, change) in speed::look(&speeds) {
                let (place, name) = (&of_tier[at].spec().place, &tier.name);
                let ms = |us: u64| us as f64 / 1000.0;
                (self.tell)(match change {
                    Change::Slow { takes_us, best_us } => format!(
                        "the volume {place} (tier {name}) has grown slow: a sync takes {:.1} ms, {:.1} ms on the fastest of the tier; new \
                         files go to the others until it is fast again",
                        ms(takes_us),
                        ms(best_us)
                    ),
                    Change::Fast => format!("the volume {place} (tier {name}) is fast again and gets new files"),
                });
            }
        }
    }

    /// What is at a path that has `len` bytes on the home volume.
    fn look(&self, path: &FilePath, len: u64) -> Result<At> {
        if len != RECORD_LEN || self.is_plain() {
            return Ok(At::Plain);
        }
        Ok(Record::decode(&self.home.read(path)?).map_or(At::Plain, At::Placed))
    }

    /// What is at a path; `None` when no file is.
    fn find(&self, path: &FilePath) -> Result<Option<At>> {
        match self.home.stat(path)? {
            Some(entry) if !entry.is_dir => self.look(path, entry.len).map(Some),
            _ => Ok(None),
        }
    }

    /// The volume that a record tells of, unless it failed.
    fn volume_of(&self, operation: &str, path: &FilePath, record: &Record) -> Result<(Arc<Other>, Arc<dyn Volume>)> {
        let error = |what: String| Error::new(operation, path, io::Error::other(what));
        let Some(other) = self.other(record.volume) else {
            return Err(error(format!(
                "its bytes are on a volume ({:016x}) that this root directory does not list; nothing was changed",
                record.volume
            )));
        };
        match other.volume() {
            Some(volume) => Ok((other, volume)),
            None => Err(other.refusal(operation, path, other.life()).unwrap_or_else(|| {
                error(format!("its bytes are on {}, which came back just now; try again", other.name()))
            })),
        }
    }

    /// Calls the volume that has the file's bytes; they may be moved to another meanwhile.
    fn on<T>(
        &self,
        operation: &str,
        path: &FilePath,
        record: &Record,
        call: impl Fn(&dyn Volume, &FilePath) -> Result<T>,
    ) -> Result<T> {
        let mut record = record.clone();
        loop {
            let outcome = self.volume_of(operation, path, &record).and_then(|(other, volume)| {
                call(&*volume, &object_path(&record.object)).map_err(|error| other.say(path, &record, error))
            });
            let Err(error) = outcome else { return outcome };
            match self.now_at(path, &record) {
                Ok(Now::Moved(now)) => record = now,
                Ok(Now::AtHome) => return call(&*self.home, path),
                Ok(Now::Gone) => return Err(Error::new(operation, path, io::ErrorKind::NotFound.into())),
                Ok(Now::Same) | Err(_) => return Err(error),
            }
        }
    }

    /// What has become of a file whose bytes could not be had where `record` says that they are.
    fn now_at(&self, path: &FilePath, record: &Record) -> Result<Now> {
        Ok(match self.find(path)? {
            Some(At::Placed(now)) if now == *record => Now::Same,
            Some(At::Placed(now)) => Now::Moved(now),
            Some(At::Plain) => Now::AtHome,
            None => Now::Gone,
        })
    }

    /// The entry as the tree has it: with the length of the bytes, wherever they are.
    fn entry(&self, path: &FilePath, entry: DirEntry) -> Result<DirEntry> {
        if entry.is_dir {
            return Ok(entry);
        }
        match self.look(path, entry.len)? {
            At::Plain => Ok(entry),
            At::Placed(record) => {
                let len = self.on("stat", path, &record, |volume, object| volume.open(object)?.len())?;
                Ok(DirEntry { len, ..entry })
            }
        }
    }

    /// Records below a directory of the home volume. What goes meanwhile is passed over.
    fn records_below(&self, dir: &FilePath) -> Result<Vec<Record>> {
        let mut found = Vec::new();
        attach::each_record(&*self.home, dir, &mut |_, record| found.push(record))?;
        Ok(found)
    }

    /// The record is durably gone: its bytes go too, unless another tells of them. What fails leaves bytes that no name has, which
    /// `basalt volumes check` finds.
    fn discard(&self, record: &Record) {
        let mut shared = self.shared.lock();
        if let Some(count) = shared.get_mut(record) {
            *count -= 1;
            if *count <= 1 {
                shared.remove(record);
            }
            return;
        }
        drop(shared);
        let Some(other) = self.other(record.volume) else { return };
        other.files.fetch_sub(1, Ordering::AcqRel);
        let Some(volume) = other.volume() else { return };
        let object = object_path(&record.object);
        let len = volume.stat(&object).ok().flatten().map_or(0, |entry| entry.len);
        match volume.remove_file(&object) {
            Ok(()) => {
                let less = |used: u64| Some(used.saturating_sub(len));
                let _ = other.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                let place = &other.spec().place;
                self.tell_once(format!(
                    "{place}: a file without a name stays there, `basalt volumes check` finds it: {error}"
                ));
            }
        }
    }

    /// A record was renamed. Its old name must not come back when the bytes are gone, though nobody who has the new one cares for it. Where
    /// this fails, who wants the new name durable hears of it by a sync of his own.
    fn forget_name(&self, from: &FilePath, to: &FilePath) {
        if from.parent() != to.parent() && self.home.sync_dir(&to.parent()).is_ok() {
            let _ = self.home.sync_dir(&from.parent());
        }
    }

    fn tell_once(&self, sentence: String) {
        if self.told.lock().insert(sentence.clone()) {
            (self.tell)(sentence);
        }
    }

    /// Volumes of the tier that can take a file, fast ones before slow ones, the one with the most room first.
    fn candidates(&self, tier: &TierSpec) -> Vec<(Arc<Other>, Arc<dyn Volume>)> {
        self.look_at_speeds();
        let mut found: Vec<(u64, Arc<Other>, Arc<dyn Volume>)> = Vec::new();
        for other in self.set().others.iter().filter(|other| other.takes_files()) {
            let spec = other.spec();
            let Some(volume) = other.volume().filter(|_| spec.tier == *tier) else { continue };
            let used = other.used_bytes.load(Ordering::Relaxed);
            let to_limit = spec.limit_bytes.map_or(u64::MAX, |limit| limit.saturating_sub(used));
            let free = match volume.free_bytes() {
                Ok(free) => free.map_or(u64::MAX, |free| free.saturating_sub(ROOM_KEPT_BYTES)),
                Err(_) => 0,
            };
            let room = to_limit.min(free);
            if room > 0 {
                found.push((room, other.clone(), volume));
            } else {
                let (place, name) = (&spec.place, &tier.name);
                self.pass_over(other, format!("the volume {place} (tier {name}) is full: new files go elsewhere"));
            }
        }
        found.sort_by_key(|(room, other, _)| (other.speed.is_slow(), std::cmp::Reverse(*room)));
        found.into_iter().map(|(_, other, volume)| (other, volume)).collect()
    }

    fn pass_over(&self, other: &Other, sentence: String) {
        if !other.passed_over.swap(true, Ordering::Relaxed) {
            (self.tell)(sentence);
        }
    }

    /// A record of a file that nobody has yet, on `other`.
    fn new_record(&self, other: &Other) -> Record {
        let number = self.next_object.fetch_add(1, Ordering::Relaxed);
        Record { volume: other.id, object: format!("{:016x}-{number:x}", self.unique) }
    }

    /// Creates the file on `other`, then its record at `path`.
    fn create_on(
        &self,
        other: &Arc<Other>,
        volume: &Arc<dyn Volume>,
        path: &FilePath,
        past_cache: bool,
    ) -> std::result::Result<Box<dyn Appender>, Failed> {
        let life = other.life();
        let refused = |what: String| Error::new("create", path, io::Error::other(what));
        let removed = other.removed.read();
        if *removed {
            return Err(Failed::There(refused(format!("{} was taken out", other.name()))));
        }
        if !other.is_itself() {
            let refused = || refused(format!("{} has just failed", other.name()));
            return Err(Failed::There(other.refusal("create", path, life).unwrap_or_else(refused)));
        }
        let record = self.new_record(other);
        let object = object_path(&record.object);
        let writing = Writing::begin(other, &record.object);
        let made = if past_cache { volume.create_past_cache(&object) } else { volume.create(&object) };
        let name_is_durable = || match base::inject!("fs.tiered.name-unsynced") {
            true => Ok(()),
            false => volume.sync_dir(&object.parent()),
        };
        let appender = made
            .and_then(|appender| name_is_durable().map(|()| appender))
            .map_err(|error| Failed::There(other.say(path, &record, error)));
        let recorded = appender.and_then(|appender| {
            let mut file = self.home.create(path).map_err(Failed::Home)?;
            other.files.fetch_add(1, Ordering::AcqRel);
            let written = file.append(&record.encode()).and_then(|()| file.finish());
            if let Err(error) = written {
                if self.home.remove_file(path).is_ok() {
                    other.files.fetch_sub(1, Ordering::AcqRel);
                }
                return Err(Failed::Home(error));
            }
            Ok(appender)
        });
        match recorded {
            Ok(inner) => {
                other.passed_over.store(false, Ordering::Relaxed);
                let spec = other.spec();
                let place = format!("{}/{object}, tier {}", spec.place, spec.tier.name);
                let file = Some(Written { appender: inner, _writing: writing });
                let (aside, other) = (self.aside_for(other), other.clone());
                Ok(Box::new(PlacedAppender { file, path: path.clone(), place, counted: 0, other, life, aside }))
            }
            Err(error) => {
                let _ = volume.remove_file(&object);
                Err(error)
            }
        }
    }

    /// What a file on `other` needs to have its syncs given up; `None` where it could not go elsewhere.
    fn aside_for(&self, other: &Arc<Other>) -> Option<SyncsAside> {
        let spawn = self.spawn.clone().filter(|_| self.clock.is_some())?;
        let tier = other.spec().tier.clone();
        let set = self.set();
        let peers: Vec<_> = set.others.iter().filter(|peer| peer.id != other.id && peer.spec().tier == tier).collect();
        (!peers.is_empty()).then(|| SyncsAside::Wanted(spawn, peers.into_iter().cloned().collect()))
    }
}
