//! Puts the volumes together: whose each is, what the root lists, which files tell of which.

use super::change::{listed, tiers_of};
use super::other::{Claim, Other, identify as identify_as};
use super::record::{Identity, List, Listed, RECORD_LEN, Record};
use super::{IDENTITY_NAME, LIST_NAME, MOVING, OBJECTS, Rules, Set, Tell, TieredVolume, VolumeSpec};
use crate::{Error, FilePath, Result, Volume};
use base::Rng;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A volume to be put under the root's names.
pub struct Attached {
    /// As it was said.
    pub spec: VolumeSpec,
    /// What is there; `None` when nothing is, and the operator said to go on.
    pub volume: Option<Arc<dyn Volume>>,
    /// How to take its place anew when it failed; `None`: it is tried as it is.
    pub claim: Option<Claim>,
}

/// What the files of a root and those on its volumes come to.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Files that are on other volumes.
    pub placed: u64,
    /// Names of files whose bytes are not there.
    pub missing: Vec<FilePath>,
    /// Files on volumes that no name has: the volume's place, the file, its bytes.
    pub nameless: Vec<(String, FilePath, u64)>,
}

/// Has `each` see every record below a directory of the home volume.
pub(super) fn each_record(home: &dyn Volume, dir: &FilePath, each: &mut dyn FnMut(&FilePath, Record)) -> Result<()> {
    let entries = match home.list(dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            each_record(home, &path, each)?;
        } else if entry.len == RECORD_LEN {
            match home.read(&path) {
                Ok(bytes) => Record::decode(&bytes).into_iter().for_each(|record| each(&path, record)),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn refuse(path: &FilePath, what: String) -> Error {
    Error::new("use the volumes of", path, io::Error::new(io::ErrorKind::InvalidInput, what))
}

pub(super) fn read_if_there(volume: &dyn Volume, name: &str) -> Result<Option<Vec<u8>>> {
    match volume.read(&FilePath::new(name)) {
        Err(error) if error.is_not_found() => Ok(None),
        other => other.map(Some),
    }
}

/// The root's list; `None` when it has no other volumes.
pub(super) fn read_list(home: &dyn Volume) -> Result<Option<List>> {
    let path = FilePath::new(LIST_NAME);
    let Some(bytes) = read_if_there(home, LIST_NAME)? else { return Ok(None) };
    let damaged = || {
        refuse(
            &path,
            format!(
                "{LIST_NAME} is damaged; bring back the copy of a backup, or remove it and start with the same basalt.volumes: each \
                 volume says whose it is"
            ),
        )
    };
    List::decode(&bytes).map(Some).ok_or_else(damaged)
}

/// Records of the whole tree, by volume.
pub(super) struct Records {
    all: Vec<(FilePath, Record)>,
}

impl Records {
    /// None, of a tree that has none.
    pub(super) fn none() -> Records {
        Records { all: Vec::new() }
    }

    fn of(home: &dyn Volume) -> Result<Records> {
        let mut all = Vec::new();
        each_record(home, &FilePath::root(), &mut |path, record| all.push((path.clone(), record)))?;
        Ok(Records { all })
    }

    fn on(&self, id: u64) -> usize {
        self.all.iter().filter(|(_, record)| record.volume == id).count()
    }

    /// Files, each once, however many records tell of it.
    fn named(&self) -> HashSet<(u64, &str)> {
        self.all.iter().map(|(_, record)| (record.volume, record.object.as_str())).collect()
    }

    fn shared(&self) -> HashMap<Record, u32> {
        let mut counts = HashMap::new();
        self.all.iter().for_each(|(_, record)| *counts.entry(record.clone()).or_insert(0) += 1);
        counts.retain(|_, count| *count > 1);
        counts
    }
}

impl TieredVolume {
    /// Puts `volumes` under the names of `home`, which may be none. Who calls has the home and each of them to itself. `rng` numbers volumes that are
    /// new.
    ///
    /// # Errors
    /// A sentence as the source of the error: a volume of another root, one that is missing, a rule without a tier; and what volumes say.
    pub fn attach(
        home: Arc<dyn Volume>,
        volumes: Vec<Attached>,
        rules: Rules,
        rng: &Rng,
        tell: Tell,
    ) -> Result<(TieredVolume, Survey)> {
        let root_path = FilePath::root();
        let tiers = tiers_of(volumes.iter().map(|attached| &attached.spec));
        rules.check(&tiers).map_err(|what| refuse(&root_path, what))?;
        let found = read_list(&*home)?;
        if volumes.is_empty() && found.is_none() {
            // As if it was the home alone: nothing is written, and no directory read.
            let set = Set { tiers, others: Vec::new(), rules };
            return Ok((TieredVolume::new(home, set, rng, tell), Survey::default()));
        }
        end_moves(&*home)?;
        let records = Records::of(&*home)?;
        let list = match found {
            Some(list) => list,
            None => {
                // No volume says that it is the root's before the root says which it is.
                let list = adopted(&volumes, &records, rng)?;
                home.publish(&FilePath::new(LIST_NAME), &list.encode())?;
                list
            }
        };
        let mut others: Vec<Arc<Other>> = Vec::new();
        // Those that are there say who they are; what is left in the list is missing.
        let (there, missing): (Vec<_>, Vec<_>) = volumes.into_iter().partition(|attached| attached.volume.is_some());
        for Attached { spec, volume, claim } in there.into_iter().chain(missing) {
            let id = match &volume {
                Some(volume) => identify(&**volume, &spec, &list, &records, rng)?,
                None => {
                    let left = || list.volumes.iter().filter(|l| !others.iter().any(|other| other.id == l.id));
                    let by_place = left().find(|listed| listed.place == spec.place);
                    let by_tier = || left().find(|listed| listed.tier == spec.tier.name);
                    match by_place.or_else(by_tier).or_else(|| left().next()) {
                        Some(listed) => listed.id,
                        // It has no file of this root.
                        None => continue,
                    }
                }
            };
            if let Some(twice) = others.iter().find(|other| other.id == id) {
                let what = format!("{} and {} are the same volume", twice.spec().place, spec.place);
                return Err(refuse(&root_path, what));
            }
            let volume = volume.ok_or_else(|| "it was missing at the start".to_owned());
            others.push(Arc::new(Other::new(list.root, id, spec, volume, claim, tell.clone())));
        }
        forgotten(&list, &others, &records)?;
        let wanted = List { root: list.root, volumes: others.iter().map(|other| listed(other)).collect() };
        if read_list(&*home)?.as_ref() != Some(&wanted) {
            // Each volume says whose it is before the root relies on it.
            home.publish(&FilePath::new(LIST_NAME), &wanted.encode())?;
        }
        let tiered = TieredVolume::new(home, Set { tiers, others, rules }, rng, tell);
        *tiered.shared.lock() = records.shared();
        let survey = tiered.survey_of(&records)?;
        Ok((tiered, survey))
    }

    /// How many files each volume has that a record tells of.
    fn count(&self, records: &Records) {
        let named = records.named();
        for other in &self.set().others {
            let on_it = named.iter().filter(|(volume, _)| *volume == other.id).count();
            other.files.store(on_it as u64, Ordering::Release);
        }
    }

    /// As [`TieredVolume::attach`] for who only reads: nothing is written, and what is missing is missed when it is read.
    ///
    /// # Errors
    /// As there.
    pub fn attach_reading(
        home: Arc<dyn Volume>,
        open: &dyn Fn(&str) -> Option<Arc<dyn Volume>>,
    ) -> Result<TieredVolume> {
        let list = read_list(&*home)?.unwrap_or(List { root: 0, volumes: Vec::new() });
        let other = |listed: &Listed| -> Option<Arc<Other>> {
            let spec: VolumeSpec = format!("{}:{}:{}", listed.tier, listed.class, listed.place).parse().ok()?;
            let wanted = Identity { root: list.root, id: listed.id };
            let volume = open(&listed.place).ok_or_else(|| "its directory is not there".to_owned());
            let volume = volume.and_then(|volume| identify_as(&*volume, wanted).map(|()| volume));
            Some(Arc::new(Other::new(list.root, listed.id, spec, volume, None, Arc::new(|_| {}))))
        };
        let others = list.volumes.iter().filter_map(other).collect();
        let set = Set { tiers: Vec::new(), others, rules: Rules::default() };
        Ok(TieredVolume::new(home, set, &Rng::seeded(0), Arc::new(|_| {})))
    }

    /// What the files of the root and those on its volumes come to. Looks at every directory of the root.
    ///
    /// # Errors
    /// What volumes say.
    pub fn survey(&self) -> Result<Survey> {
        self.survey_of(&Records::of(&*self.home)?)
    }

    fn survey_of(&self, records: &Records) -> Result<Survey> {
        let mut survey = Survey { placed: records.all.len() as u64, ..Survey::default() };
        self.count(records);
        let named = records.named();
        let mut there: HashSet<(u64, String)> = HashSet::new();
        for other in &self.set().others {
            let Some(volume) = other.volume() else { continue };
            let dir = FilePath::new(OBJECTS);
            let mut used_bytes = 0;
            for entry in volume.list(&dir)?.into_iter().filter(|entry| !entry.is_dir) {
                used_bytes += entry.len;
                if !named.contains(&(other.id, entry.name.as_str())) {
                    survey.nameless.push((other.spec().place.clone(), dir.join(&entry.name), entry.len));
                }
                there.insert((other.id, entry.name));
            }
            other.used_bytes.store(used_bytes, Ordering::Relaxed);
        }
        let missing = records.all.iter().filter(|(_, record)| !there.contains(&(record.volume, record.object.clone())));
        survey.missing = missing.map(|(path, _)| path.clone()).collect();
        Ok(survey)
    }

    /// Removes the files that no name has, as a survey found them just now and nobody wrote since.
    ///
    /// # Errors
    /// What volumes say.
    pub fn remove_nameless(&self, survey: &Survey) -> Result<()> {
        for (place, object, _) in &survey.nameless {
            let set = self.set();
            let volume = set.others.iter().find(|other| other.spec().place == *place).and_then(|other| other.volume());
            volume.map_or(Ok(()), |volume| volume.remove_file(object))?;
        }
        Ok(())
    }
}

/// What a crash left of files that were being moved is nobody's: not even of a volume that there still is. The copies stay as files without a name.
fn end_moves(home: &dyn Volume) -> Result<()> {
    let dir = FilePath::new(MOVING);
    let left = match home.list(&dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        left => left?,
    };
    left.iter().try_for_each(|entry| home.remove_file(&dir.join(&entry.name)))?;
    home.sync_dir(&dir)
}

/// The list of a root that has none: a new one, or, where it was lost, that of the root whose the volumes say that they are.
fn adopted(volumes: &[Attached], records: &Records, rng: &Rng) -> Result<List> {
    let mut list = List { root: rng.next_u64(), volumes: Vec::new() };
    if records.all.is_empty() {
        return Ok(list);
    }
    for Attached { spec, volume, .. } in volumes {
        let Some(volume) = volume else { continue };
        let identity = read_if_there(&**volume, IDENTITY_NAME)?.and_then(|bytes| Identity::decode(&bytes));
        if let Some(identity) = identity.filter(|identity| records.on(identity.id) > 0) {
            list.root = identity.root;
            list.volumes.push(Listed {
                id: identity.id,
                tier: spec.tier.name.clone(),
                class: spec.tier.class.name().to_owned(),
                place: spec.place.clone(),
            });
        }
    }
    Ok(list)
}

/// The number of the volume that was found at a place: that which it says itself, or a new one.
pub(super) fn identify(
    volume: &dyn Volume,
    spec: &VolumeSpec,
    list: &List,
    records: &Records,
    rng: &Rng,
) -> Result<u64> {
    let (place, tier) = (&spec.place, &spec.tier.name);
    let path = FilePath::new(IDENTITY_NAME);
    let expected = list.volumes.iter().find(|listed| listed.place == *place);
    match read_if_there(volume, IDENTITY_NAME)? {
        Some(bytes) => {
            let Some(identity) = Identity::decode(&bytes) else {
                return Err(refuse(
                    &path,
                    format!("{place}/{IDENTITY_NAME} is damaged; bring back the copy of a backup"),
                ));
            };
            if identity.root != list.root {
                return Err(refuse(
                    &path,
                    format!(
                        "the volume {place} (tier {tier}) has files of another root directory; was it swapped with another? Nothing was \
                         changed"
                    ),
                ));
            }
            // Where it was mounted before does not matter, nor whether the list has it yet.
            volume.create_dir_all_durable(&FilePath::new(OBJECTS))?;
            Ok(identity.id)
        }
        None => {
            if let Some(listed) = expected
                && records.on(listed.id) > 0
            {
                return Err(refuse(
                    &path,
                    format!(
                        "{place} (tier {tier}) does not have the files that this root directory put there ({} of them): is the volume \
                         mounted? Nothing was changed",
                        records.on(listed.id)
                    ),
                ));
            }
            let identity = Identity { root: list.root, id: rng.next_u64() };
            volume.create_dir_all_durable(&FilePath::new(OBJECTS))?;
            volume.publish(&path, &identity.encode())?;
            Ok(identity.id)
        }
    }
}

/// Refuses to go on without a volume that has files.
fn forgotten(list: &List, others: &[Arc<Other>], records: &Records) -> Result<()> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    records.all.iter().for_each(|(_, record)| *counts.entry(record.volume).or_default() += 1);
    let lost = counts.into_iter().find(|(id, _)| !others.iter().any(|other| other.id == *id));
    let Some((id, count)) = lost else { return Ok(()) };
    let listed = list.volumes.iter().find(|listed| listed.id == id);
    let (place, tier) =
        listed.map_or(("a volume that is in no list", "unknown"), |l| (l.place.as_str(), l.tier.as_str()));
    Err(refuse(
        &FilePath::new(LIST_NAME),
        format!(
            "{count} files of this root directory are on {place} (tier {tier}), which basalt.volumes does not name; name it again, or \
                 bring the files back with `basalt volumes gather`"
        ),
    ))
}
