//! The same over directories of this machine.

use super::attach::read_list;
use super::{Attached, Claim, LIST_NAME, Opener, Rules, Survey, Tell, TieredVolume, VolumeSpec};
use crate::{DirectoryLock, Error, FilePath, LocalVolume, Result, SlowVolume, Trouble, Volume};
use base::Rng;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn refuse(what: String) -> Error {
    Error::new("use the volumes of", &FilePath::root(), io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// A volume's directory, for this process alone.
fn claim(spec: &VolumeSpec) -> std::result::Result<(LocalVolume, DirectoryLock), String> {
    let (place, tier) = (&spec.place, &spec.tier.name);
    let volume = LocalVolume::open_existing(Path::new(place)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("the volume {place} (tier {tier}) is not there: mount it, make the directory, or take it out of basalt.volumes")
        }
        _ => format!("the volume {place} (tier {tier}) cannot be used: {}", error.source),
    })?;
    match volume.lock() {
        Ok(lock) => Ok((volume, lock)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error.source.to_string()),
        Err(error) => Err(format!("the volume {place} (tier {tier}) cannot be written to: {}", error.source)),
    }
}

/// What makes a volume's directory this process's; none while it could not be had.
pub type HeldLock = Arc<Mutex<Option<DirectoryLock>>>;

/// How much longer each call to a volume takes, for tests.
pub type Delay = Arc<dyn Fn(&VolumeSpec) -> Duration + Send + Sync>;

/// Takes the directory as often as it is asked to: what is mounted there may be another file system each time.
fn claim_again(spec: &VolumeSpec, lock: HeldLock, delay: Duration) -> Claim {
    let (spec, of_claim) = (spec.clone(), lock.clone());
    let claim = Claim::new(move || {
        let mut lock = of_claim.lock();
        // A lock on what was there before would be in the way of the same directory's.
        *lock = None;
        let (volume, taken) = claim(&spec)?;
        *lock = Some(taken);
        let volume: Arc<dyn Volume> = Arc::new(volume);
        if delay.is_zero() {
            return Ok(volume);
        }
        let trouble = Trouble::default();
        trouble.delay(delay);
        Ok(Arc::new(SlowVolume::new(volume, trouble)))
    });
    claim.letting_go(move || *lock.lock() = None)
}

/// What opens volumes for a root directory.
struct Opening {
    root: PathBuf,
    delay: Delay,
    tell: Tell,
}

impl Opening {
    /// The volume's place, taken or not yet.
    fn claim(&self, spec: &VolumeSpec) -> std::result::Result<(Claim, HeldLock), String> {
        if Path::new(&spec.place).starts_with(&self.root) || self.root.starts_with(&spec.place) {
            let root = self.root.display();
            return Err(format!("the volume {} and the root directory {root} lie in one another", spec.place));
        }
        let lock: HeldLock = Arc::default();
        let delay = (self.delay)(spec);
        if !delay.is_zero() {
            (self.tell)(format!(
                "each call to the volume {} takes {delay:?} longer, as it was set for a test",
                spec.place
            ));
        }
        Ok((claim_again(spec, lock.clone(), delay), lock))
    }
}

/// Puts the volumes that `specs` say under the names of `home`, for this process alone; the locks are to be kept as long as the volume.
/// Each call to a volume takes so much longer as `delay` says, for tests. With `may_be_missing` what cannot be used is told of and missed when a file
/// of it is wanted. Without specs, and for a root that never had other volumes, it is as if there was `home` alone; volumes may be added
/// ([`TieredVolume::change`]).
///
/// # Errors
/// A sentence, as the source of the error.
pub fn open_local(
    home: Arc<LocalVolume>,
    specs: &[VolumeSpec],
    rules: Rules,
    may_be_missing: bool,
    delay: Delay,
    rng: &Rng,
    tell: Tell,
) -> Result<(TieredVolume, Survey, Vec<HeldLock>)> {
    let opening = Opening { root: home.root().to_owned(), delay, tell: tell.clone() };
    let (mut volumes, mut locks) = (Vec::new(), Vec::new());
    for spec in specs {
        let (claim, lock) = opening.claim(spec).map_err(refuse)?;
        let volume = match claim.take() {
            Ok(volume) => Some(volume),
            Err(why) if may_be_missing => {
                tell(format!("{why}; its files are missing until it is back"));
                None
            }
            Err(why) => return Err(refuse(why)),
        };
        locks.push(lock);
        volumes.push(Attached { spec: spec.clone(), volume, claim: Some(claim) });
    }
    let (volume, survey) = TieredVolume::attach(home, volumes, rules, rng, tell)?;
    // One that is added is there, whatever may be missing at a start.
    let opener: Opener = Arc::new(move |spec| {
        let (claim, lock) = opening.claim(spec)?;
        // Until it is let go: what still runs when this process ends must not meet another's writes.
        std::mem::forget(lock);
        Ok(Attached { spec: spec.clone(), volume: Some(claim.take()?), claim: Some(claim) })
    });
    Ok((volume.with_opener(opener), survey, locks))
}

/// All volumes that the root lists, for this process alone: to bring their files back. `None` for a root that has none.
///
/// # Errors
/// As [`open_local`].
pub fn open_gathering(
    home: Arc<LocalVolume>,
    rng: &Rng,
    tell: Tell,
) -> Result<Option<(TieredVolume, Survey, Vec<HeldLock>)>> {
    let Some(list) = read_list(&*home)? else { return Ok(None) };
    let mut specs = Vec::new();
    for listed in &list.volumes {
        let text = format!("{}:{}:{}", listed.tier, listed.class, listed.place);
        specs.push(text.parse::<VolumeSpec>().map_err(refuse)?);
    }
    open_local(home, &specs, Rules::default(), false, Arc::new(|_| Duration::ZERO), rng, tell).map(Some)
}

/// The root as its volumes have it, for who only reads and has nothing to himself: a tool, while a server may run.
///
/// # Errors
/// What the root's volume says.
pub fn open_reading(home: LocalVolume) -> Result<Arc<dyn Volume>> {
    let home = Arc::new(home);
    match look(home.clone())? {
        Some(tiered) => Ok(Arc::new(tiered)),
        None => Ok(home),
    }
}

/// As [`open_reading`], for who wants to know of the volumes; `None` for a root that has none.
///
/// # Errors
/// What the root's volume says.
pub fn look(home: Arc<LocalVolume>) -> Result<Option<TieredVolume>> {
    if !home.exists(&FilePath::new(LIST_NAME))? {
        return Ok(None);
    }
    let open = |place: &str| {
        LocalVolume::open_existing(Path::new(place)).ok().map(|volume| Arc::new(volume) as Arc<dyn Volume>)
    };
    TieredVolume::attach_reading(home, &open).map(Some)
}

/// The directories of the other volumes that a root lists.
///
/// # Errors
/// What the root's volume says; the list is damaged.
pub fn volumes_of(home: &LocalVolume) -> Result<Vec<String>> {
    let list = read_list(home)?;
    Ok(list.map(|list| list.volumes.into_iter().map(|listed| listed.place).collect()).unwrap_or_default())
}
