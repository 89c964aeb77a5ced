//! Volumes come and go while files are written.
//!
//! A volume is added in the order in which one is at a start: it says whose it is, then the root lists it, then it gets files. One is taken out the other
//! way round, and only when no file is on it. A crash between two steps leaves a volume of the root's that is not listed, or one that is listed
//! and has nothing: a start takes either for what it is.

use super::attach::{Attached, Records, identify, read_list};
use super::other::Other;
use super::record::{List, Listed};
use super::speed::Speed;
use super::{IDENTITY_NAME, LIST_NAME, OBJECTS, Rules, Set, TierSpec, TieredVolume, VolumeSpec};
use crate::{FilePath, Volume};
use base::Rng;
use parking_lot::RwLockWriteGuard;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The tiers that volumes are of.
pub(super) fn tiers_of<'a>(specs: impl Iterator<Item = &'a VolumeSpec>) -> Vec<TierSpec> {
    let mut tiers: Vec<TierSpec> = Vec::new();
    for spec in specs {
        if !tiers.contains(&spec.tier) {
            tiers.push(spec.tier.clone());
        }
    }
    tiers
}

/// A volume as the root's list has it.
pub(super) fn listed(other: &Other) -> Listed {
    let spec = other.spec();
    listed_as(other.id, &spec)
}

fn listed_as(id: u64, spec: &VolumeSpec) -> Listed {
    Listed { id, tier: spec.tier.name.clone(), class: spec.tier.class.name().to_owned(), place: spec.place.clone() }
}

/// What the volumes come to be.
struct Plan {
    others: Vec<(Arc<Other>, VolumeSpec)>,
    new: Vec<Arc<Other>>,
    gone: Vec<Arc<Other>>,
}

impl TieredVolume {
    /// Has these be the volumes from now on, known by their directories, and kinds of files go to tiers by their names; a kind that is not there stays
    /// with the names. Whether that is a change. Waits for volumes that are new, and for the home. Without an opener the volumes stay, and
    /// the places alone change.
    ///
    /// # Errors
    /// A sentence: what is wrong with it, a volume that is left out and has files among that. Nothing has changed then.
    pub fn change(&self, specs: &[VolumeSpec], kinds: &BTreeMap<&'static str, String>) -> Result<bool, String> {
        let rng = self.changing.lock();
        let set = self.set();
        let rules = Rules { kinds: kinds.clone(), ..set.rules.clone() };
        let Some(opener) = &self.opener else {
            rules.check(&set.tiers)?;
            let is_change = rules.kinds != set.rules.kinds;
            *self.set.write() = Arc::new(Set { tiers: set.tiers.clone(), others: set.others.clone(), rules });
            return Ok(is_change);
        };
        let tiers = tiers_of(specs.iter());
        rules.check(&tiers)?;
        let is_named = |other: &Arc<Other>| specs.iter().any(|spec| spec.place == other.spec().place);
        let (kept, gone): (Vec<_>, Vec<_>) = set.others.iter().cloned().partition(is_named);
        for other in &gone {
            is_empty(other)?;
        }
        let mut plan = Plan { others: Vec::new(), new: Vec::new(), gone };
        let mut new = Vec::new();
        for spec in specs {
            match kept.iter().find(|other| other.spec().place == spec.place) {
                Some(other) => plan.others.push((other.clone(), spec.clone())),
                None => new.push(spec),
            }
        }
        let is_change = rules.kinds != set.rules.kinds
            || !new.is_empty()
            || !plan.gone.is_empty()
            || plan.others.iter().any(|(other, spec)| *other.spec() != *spec);
        if !is_change {
            return Ok(false);
        }
        let list = self.list(&rng, &set)?;
        for spec in new {
            let attached = opener(spec)?;
            // Let go of again when this or a later one cannot be had.
            match self.added(attached, &list, &set, &plan, &rng) {
                Ok(other) => plan.new.push(other),
                Err(why) => {
                    plan.new.iter().for_each(|other| other.end());
                    return Err(why);
                }
            }
        }
        let changed = self.install(plan, rules, tiers, &list);
        drop(rng);
        changed.map(|()| true)
    }

    /// The root's list; a new one where it has none.
    fn list(&self, rng: &Rng, set: &Set) -> Result<List, String> {
        if let Some(list) = read_list(&*self.home).map_err(|error| error.to_string())? {
            return Ok(list);
        }
        if !set.others.is_empty() {
            return Err(format!(
                "{LIST_NAME} is gone from the root directory; it is made again when the server starts"
            ));
        }
        // As at a start.
        let list = List { root: rng.next_u64(), volumes: Vec::new() };
        self.home.publish(&FilePath::new(LIST_NAME), &list.encode()).map_err(|error| error.to_string())?;
        Ok(list)
    }

    fn added(&self, attached: Attached, list: &List, set: &Set, plan: &Plan, rng: &Rng) -> Result<Arc<Other>, String> {
        let Attached { spec, volume, claim } = attached;
        let let_go = || claim.iter().for_each(|claim| claim.let_go());
        let Some(volume) = volume else {
            let_go();
            return Err(format!("the volume {} (tier {}) is not there", spec.place, spec.tier.name));
        };
        // None of the root's files is on a volume that is not one of the set.
        let id = identify(&*volume, &spec, list, &Records::none(), rng).map_err(|error| {
            let_go();
            error.source.to_string()
        })?;
        if let Some(twice) = set.others.iter().chain(&plan.new).find(|other| other.id == id) {
            let_go();
            return Err(format!("{} and {} are the same volume", twice.spec().place, spec.place));
        }
        let mut other = Other::new(list.root, id, spec, Ok(volume), claim, self.tell.clone());
        other.speed = Speed::new(self.clock.clone());
        Ok(Arc::new(other))
    }

    /// The list, then the volumes of it.
    fn install(&self, plan: Plan, rules: Rules, tiers: Vec<TierSpec>, list: &List) -> Result<(), String> {
        let Plan { others, new, gone } = plan;
        let undo = |why: String| {
            new.iter().for_each(|other| other.end());
            why
        };
        // Nobody makes a file on them from here on.
        let mut closed: Vec<RwLockWriteGuard<'_, bool>> = Vec::new();
        for other in &gone {
            let busy = || format!("a file is being made on {} just now: try again", other.name());
            let guard = other.removed.try_write().ok_or_else(busy).map_err(undo)?;
            is_empty(other).map_err(undo)?;
            closed.push(guard);
        }
        let volumes = others.iter().map(|(other, spec)| listed_as(other.id, spec));
        let volumes = volumes.chain(new.iter().map(|other| listed(other))).collect();
        let wanted = List { root: list.root, volumes };
        if wanted != *list {
            self.home.publish(&FilePath::new(LIST_NAME), &wanted.encode()).map_err(|error| undo(error.to_string()))?;
        }
        closed.iter_mut().for_each(|removed| **removed = true);
        drop(closed);
        let mut now = Vec::new();
        for (other, spec) in others {
            if *other.spec() != spec {
                other.set_spec(spec);
            }
            now.push(other);
        }
        now.extend(new);
        // Before there may be a record, and after there may be none.
        if !now.is_empty() {
            self.has_others.store(true, Ordering::Release);
        }
        let is_plain = now.is_empty();
        *self.set.write() = Arc::new(Set { tiers, others: now, rules });
        if is_plain {
            self.has_others.store(false, Ordering::Release);
        }
        for other in gone {
            let place = other.spec().place.clone();
            if let Some(volume) = other.volume()
                && let Err(error) = forget(&*volume)
            {
                (self.tell)(format!(
                    "{place} is out of use, and goes on saying that it is this root directory's: {error}"
                ));
            }
            other.end();
        }
        Ok(())
    }
}

/// Whether a volume may be taken out; a sentence says why not.
fn is_empty(other: &Other) -> Result<(), String> {
    let (files, spec) = (other.files.load(Ordering::Acquire), other.spec());
    if files > 0 {
        let (name, place) = (other.name(), &spec.place);
        let how = match spec.drains {
            true => format!("move them with `basalt admin drain-volume --wait {place}`"),
            false => format!(
                "name it again, with :drain behind it, have the configuration read again, and move them with `basalt admin drain-volume --wait {place}`"
            ),
        };
        return Err(format!("{files} files are on {name}, which basalt.volumes does not name: {how}"));
    }
    if other.is_being_checked() {
        return Err(format!("{} is being looked at just now: try again", other.name()));
    }
    Ok(())
}

/// A volume is nobody's any more. Files that no name has stay: they may be somebody's.
fn forget(volume: &dyn Volume) -> crate::Result<()> {
    let objects = FilePath::new(OBJECTS);
    if volume.list(&objects)?.is_empty() {
        volume.remove_dir_all(&objects)?;
    }
    match volume.remove_file(&FilePath::new(IDENTITY_NAME)) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => volume.sync_dir(&FilePath::root()),
    }
}
