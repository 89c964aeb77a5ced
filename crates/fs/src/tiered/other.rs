//! A volume beside the home: what is on it, how fast it is, whether it can be used.
//!
//! A call that fails makes it suspect: it is asked whose it is, and has to make a byte durable. One that cannot do so has failed, and is asked for
//! nothing but that until it can: with growing pauses, the place taken anew each time, as it may have been mounted again. A full one has not failed,
//! nor has one that can only be read.

use super::attach::read_if_there;
use super::record::{Identity, Record};
use super::speed::{Speed, Timed};
use super::volume::PlacedFile;
use super::{IDENTITY_NAME, OBJECTS, PROBE_NAME, Tell, VolumeSpec, object_path};
use crate::{Error, FilePath, Result, Volume};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

type Take = Arc<dyn Fn() -> std::result::Result<Arc<dyn Volume>, String> + Send + Sync>;

/// How the place of a volume becomes this process's.
#[derive(Clone)]
pub struct Claim {
    take: Take,
    let_go: Arc<dyn Fn() + Send + Sync>,
}

impl Claim {
    /// `take` takes the place anew each time: a sentence says why that cannot be. What was there before is let go first.
    pub fn new(take: impl Fn() -> std::result::Result<Arc<dyn Volume>, String> + Send + Sync + 'static) -> Claim {
        Claim { take: Arc::new(take), let_go: Arc::new(|| ()) }
    }

    /// The same, which has `let_go` called when nobody uses the place any more.
    #[must_use]
    pub fn letting_go(self, let_go: impl Fn() + Send + Sync + 'static) -> Claim {
        Claim { let_go: Arc::new(let_go), ..self }
    }

    pub(super) fn take(&self) -> std::result::Result<Arc<dyn Volume>, String> {
        (self.take)()
    }

    pub(super) fn let_go(&self) {
        (self.let_go)();
    }
}

/// A suspect that turned out to be well is not looked at again for so long.
const SUSPECT_PAUSE_US: u64 = 1_000_000;
/// A volume that failed is tried again after so long at first, after twice as long each time, and
const FIRST_PAUSE_US: u64 = 1_000_000;
/// after so long at the most.
const LONGEST_PAUSE_US: u64 = 15_000_000;
/// With a call that has been waiting for so long it is not asked for more.
const WAITS_US: u64 = 1_000_000;

const WELL: u8 = 0;
const ONLY_READ: u8 = 1;
const FAILED: u8 = 2;

#[derive(Debug, Default)]
struct Checking {
    due_us: u64,
    pause_us: u64,
}

#[derive(Debug, Default)]
struct Health {
    condition: AtomicU8,
    /// Grows with each failure and each return: what was opened in another life of the volume is not to be relied on.
    life: AtomicU64,
    why: RwLock<Option<Arc<str>>>,
    /// Held by who looks.
    checking: Mutex<Checking>,
}

/// A volume beside the home.
pub(super) struct Other {
    pub id: u64,
    /// Of the root whose it is.
    pub root: u64,
    spec: RwLock<Arc<VolumeSpec>>,
    /// `None` when it is missing and the operator said to go on.
    volume: RwLock<Option<Arc<dyn Volume>>>,
    claim: Option<Claim>,
    pub used_bytes: AtomicU64,
    /// Files on it that a record tells of, or is about to.
    pub files: AtomicU64,
    /// Files and bytes that were moved off it since the start.
    pub moved: (AtomicU64, AtomicU64),
    /// Whether it was taken out. Shared by who makes a file there, while he does.
    pub removed: RwLock<bool>,
    /// Files on it that somebody appends to, by their names there.
    writing: Mutex<HashSet<String>>,
    /// Who reads its files, by their names there.
    pub readers: Mutex<HashMap<String, Vec<Weak<PlacedFile>>>>,
    /// Files that were to be put here and were not since the last that was.
    pub passed_over: AtomicBool,
    pub speed: Speed,
    health: Health,
    tell: Tell,
}

/// Somebody appends to a file on a volume.
pub(super) struct Writing {
    other: Arc<Other>,
    object: String,
}

impl Writing {
    pub(super) fn begin(other: &Arc<Other>, object: &str) -> Writing {
        other.writing.lock().insert(object.to_owned());
        Writing { other: other.clone(), object: object.to_owned() }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.other.writing.lock().remove(&self.object);
    }
}

/// Makes a byte durable, and forgets it.
pub(super) fn probe(volume: &dyn Volume) -> Result<()> {
    let path = FilePath::new(PROBE_NAME);
    let _ = volume.remove_file(&path);
    let mut file = volume.create(&path)?;
    file.append(b"x")?;
    file.finish()
}

/// Whether it is the volume that it is taken for; a sentence says why not. Reads one small file.
pub(super) fn identify(volume: &dyn Volume, wanted: Identity) -> std::result::Result<(), String> {
    match read_if_there(volume, IDENTITY_NAME) {
        Err(error) => Err(error.to_string()),
        Ok(None) => Err(format!("{IDENTITY_NAME} is not there: is the volume mounted?")),
        Ok(Some(bytes)) if Identity::decode(&bytes) == Some(wanted) => Ok(()),
        Ok(Some(_)) => Err("another volume is in its place".to_owned()),
    }
}

impl Other {
    pub(super) fn new(
        root: u64,
        id: u64,
        spec: VolumeSpec,
        volume: std::result::Result<Arc<dyn Volume>, String>,
        claim: Option<Claim>,
        tell: Tell,
    ) -> Other {
        let health = Health::default();
        let volume = match volume {
            Ok(volume) => Some(volume),
            Err(why) => {
                health.condition.store(FAILED, Ordering::Relaxed);
                *health.why.write() = Some(why.into());
                None
            }
        };
        Other {
            id,
            root,
            spec: RwLock::new(Arc::new(spec)),
            volume: RwLock::new(volume),
            claim,
            used_bytes: AtomicU64::new(0),
            files: AtomicU64::new(0),
            moved: (AtomicU64::new(0), AtomicU64::new(0)),
            removed: RwLock::new(false),
            writing: Mutex::default(),
            readers: Mutex::default(),
            passed_over: AtomicBool::new(false),
            speed: Speed::new(None),
            health,
            tell,
        }
    }

    /// As it is said now.
    pub(super) fn spec(&self) -> Arc<VolumeSpec> {
        self.spec.read().clone()
    }

    /// It is said otherwise from now on: another tier, another limit, to be emptied. Its place is the same.
    pub(super) fn set_spec(&self, spec: VolumeSpec) {
        *self.spec.write() = Arc::new(spec);
        self.passed_over.store(false, Ordering::Relaxed);
    }

    /// Whether somebody appends to a file on it.
    pub(super) fn is_writing(&self, object: &str) -> bool {
        self.writing.lock().contains(object)
    }

    /// Whether somebody waits for it to say what it can do.
    pub(super) fn is_being_checked(&self) -> bool {
        self.health.checking.is_locked()
    }

    /// Nobody uses it any more: what is still open of it is to be opened anew, and its place may be unmounted.
    pub(super) fn end(&self) {
        // Who is at it takes its place anew, perhaps.
        let _checking = self.health.checking.lock();
        *self.health.why.write() = Some("it was taken out of basalt.volumes".into());
        self.health.condition.store(FAILED, Ordering::Release);
        self.health.life.fetch_add(1, Ordering::AcqRel);
        *self.volume.write() = None;
        self.claim.iter().for_each(Claim::let_go);
    }

    /// What is there, unless it failed.
    pub(super) fn volume(&self) -> Option<Arc<dyn Volume>> {
        if self.has_failed() { None } else { self.volume.read().clone() }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.health.condition.load(Ordering::Acquire) == FAILED
    }

    /// Whether it can be read and written to.
    pub(super) fn is_well(&self) -> bool {
        self.health.condition.load(Ordering::Acquire) == WELL
    }

    /// Whether new files may go there.
    pub(super) fn takes_files(&self) -> bool {
        self.is_well() && !self.spec.read().drains
    }

    /// Grows when it fails and when it comes back.
    pub(super) fn life(&self) -> u64 {
        self.health.life.load(Ordering::Acquire)
    }

    /// Why it cannot be used, or only be read.
    pub(super) fn trouble(&self) -> Option<Arc<str>> {
        if self.is_well() { None } else { self.health.why.read().clone() }
    }

    /// As people call it.
    pub(super) fn name(&self) -> String {
        self.spec().name()
    }

    pub(super) fn tell(&self, sentence: String) {
        (self.tell)(sentence);
    }

    /// What is said of `path`, whose bytes are on it, while it has failed, or when it did since `life`.
    pub(super) fn refusal(&self, operation: &str, path: &FilePath, life: u64) -> Option<Error> {
        let what = if self.has_failed() {
            let why = self.trouble().unwrap_or_else(|| "no call to it goes well".into());
            format!("its bytes are on {}, which has failed: {why}; it is used again when it is back", self.name())
        } else if self.life() != life {
            format!("{} failed since the file was opened; open it anew", self.name())
        } else {
            return None;
        };
        Some(Error::new(operation, path, io::Error::other(what)))
    }

    /// An error of the volume's file as one of the name that it has in the tree. A file that is missing there is none that does not exist. The volume
    /// is looked at.
    pub(super) fn say(&self, path: &FilePath, record: &Record, error: Error) -> Error {
        self.suspect(&error);
        let Error { operation, offset, source, .. } = error;
        let spec = self.spec();
        let place = format!("{}/{}", spec.place, object_path(&record.object));
        let source = match source.kind() {
            io::ErrorKind::NotFound if self.has_failed() => {
                io::Error::other(format!("{place} is not there: {} has failed", self.name()))
            }
            io::ErrorKind::NotFound => io::Error::other(format!(
                "its bytes are lost: {place} (tier {}) is not there; the volume was emptied or is not the one that it was. To give the \
                 file up, remove its record from the root directory",
                spec.tier.name
            )),
            kind => io::Error::new(kind, format!("{source} ({place}, tier {})", spec.tier.name)),
        };
        Error { operation, path: path.clone(), offset, source }
    }

    /// A call has failed: looks whether it is the volume that did. A full one did not.
    pub(super) fn suspect(&self, error: &Error) {
        use io::ErrorKind::{AlreadyExists, InvalidInput, UnexpectedEof};
        // What is asked wrongly, and a file that ends early, say nothing of the volume either.
        if error.is_full() || self.has_failed() || matches!(error.kind(), AlreadyExists | InvalidInput | UnexpectedEof)
        {
            return;
        }
        let Some(mut checking) = self.health.checking.try_lock() else { return };
        let now_us = self.speed.now_us();
        if now_us.is_some_and(|now_us| now_us < checking.due_us) {
            return;
        }
        self.check(&mut checking);
    }

    /// Whether it is the volume that it was; where it is not, it has failed from now on. Costs a read of a small file. To be asked before a
    /// file is made on it: one that was mounted in its place would take it as well.
    pub(super) fn is_itself(&self) -> bool {
        let Some(volume) = self.volume() else { return false };
        if self.identify(&*volume).is_ok() {
            return true;
        }
        // Once more, lest one call that failed be taken for a disk that did.
        if let Some(mut checking) = self.health.checking.try_lock() {
            self.check(&mut checking);
        }
        !self.has_failed()
    }

    /// To be called about once a second: tries a volume that failed again when it is time, and sees whether one that is well is still there.
    pub(super) fn look_after(&self) {
        if self.speed.status().waits_us >= WAITS_US {
            return;
        }
        if self.is_well() {
            self.is_itself();
            return;
        }
        let Some(mut checking) = self.health.checking.try_lock() else { return };
        if self.speed.now_us().is_some_and(|now_us| now_us < checking.due_us) {
            return;
        }
        self.check(&mut checking);
    }

    fn identify(&self, volume: &dyn Volume) -> std::result::Result<(), String> {
        identify(volume, Identity { root: self.root, id: self.id })
    }

    /// Looks what it can do now.
    fn check(&self, checking: &mut Checking) {
        // Its place may be another's by now.
        if *self.removed.read() {
            return;
        }
        let had_failed = self.has_failed();
        let volume = match (&self.claim, had_failed) {
            (Some(claim), true) => {
                *self.volume.write() = None;
                claim.take().map(Some)
            }
            _ => Ok(self.volume.read().clone()),
        };
        let identified = volume.and_then(|volume| {
            let volume = volume.ok_or("it was missing at the start")?;
            self.identify(&*volume)?;
            // Files that it had are to be there when it is called well.
            match volume.stat(&FilePath::new(OBJECTS)) {
                Ok(Some(entry)) if entry.is_dir => Ok(volume),
                Ok(_) => Err(format!("its directory {OBJECTS} is not there")),
                Err(error) => Err(error.to_string()),
            }
        });
        let volume = match identified {
            Ok(volume) => volume,
            Err(why) => return self.fail(checking, why),
        };
        let is_barred =
            |error: &Error| matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied);
        let condition = match self.speed.time(Timed::Sync, || probe(&*volume)) {
            Err(error) if is_barred(&error) => {
                if self.health.condition.load(Ordering::Acquire) != ONLY_READ {
                    let why = format!("it can only be read: {error}");
                    (self.tell)(format!("{}: {why}; new files go elsewhere until it can be written to", self.name()));
                    *self.health.why.write() = Some(why.into());
                }
                ONLY_READ
            }
            Err(error) if !error.is_full() => return self.fail(checking, error.to_string()),
            _ => WELL,
        };
        if had_failed {
            *self.volume.write() = Some(volume);
            self.health.life.fetch_add(1, Ordering::AcqRel);
            self.passed_over.store(false, Ordering::Relaxed);
            (self.tell)(format!("{} is back: its files are used again", self.name()));
        }
        self.health.condition.store(condition, Ordering::Release);
        if condition == WELL {
            *self.health.why.write() = None;
            checking.pause_us = 0;
            checking.due_us = self.speed.now_us().unwrap_or(0) + SUSPECT_PAUSE_US;
        } else {
            self.pause(checking);
        }
    }

    fn pause(&self, checking: &mut Checking) {
        checking.pause_us = (checking.pause_us * 2).clamp(FIRST_PAUSE_US, LONGEST_PAUSE_US);
        checking.due_us = self.speed.now_us().unwrap_or(0) + checking.pause_us;
    }

    fn fail(&self, checking: &mut Checking, why: String) {
        let is_new = !self.has_failed();
        if is_new {
            (self.tell)(format!(
                "{} has failed: {why}; regions with files there are closed until it is back, which is tried again and again, and new files go \
                 elsewhere",
                self.name()
            ));
            checking.pause_us = 0;
        }
        *self.health.why.write() = Some(why.into());
        if is_new {
            // In this order: what is opened meanwhile belongs to the life that is over.
            self.health.condition.store(FAILED, Ordering::Release);
            self.health.life.fetch_add(1, Ordering::AcqRel);
        }
        self.pause(checking);
    }
}
