//! Disks beside the root directory's (`basalt.volumes`): directories of the one volume, so that the power fails for all of them at once. Each may fail,
//! come back, and take long.
//!
//! What says which volumes there are is the world's configuration, as an operator's file would: a server reads it when it starts, and again when it is told to.

use crate::trace::Trace;
use crate::world::Life;
use base::{Clock, Config, ManualClock, Rng};
use fs::tiered::{Attached, Claim, Rules, VolumeSpec, parse_volumes};
use fs::{Below, FileKind, FilePath, MemVolume, SlowVolume, TieredVolume, Trouble, Volume};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The disks there are: their tier, and the directory's name.
pub const DISKS: [(&str, &str); 3] = [("fast", "a"), ("cold", "b"), ("cold", "c")];
const KEY: &str = "basalt.volumes";
/// Longer than a volume that failed is left alone.
const PAUSE_MS: u64 = 16_000;

/// Where a disk is for operators.
pub fn directory(disk: usize) -> String {
    format!("/disk/{}", DISKS[disk].1)
}

fn below(disk: usize) -> FilePath {
    FilePath::new(".disk").join(DISKS[disk].1)
}

/// The disks: what the operator says of them, and what ails them. Outlives a server.
#[derive(Clone)]
pub struct Disks {
    named: Arc<Mutex<[Named; 3]>>,
    troubles: [Trouble; 3],
    /// What each call takes, in milliseconds.
    slow: Arc<Mutex<[u64; 3]>>,
}

impl Disks {
    /// Mounts them, empty where they were not there; so named.
    ///
    /// # Panics
    /// The volume has a fault.
    pub fn make(volume: &MemVolume, named: [Named; 3]) -> Disks {
        for disk in 0..DISKS.len() {
            volume.create_dir_all_durable(&below(disk)).expect("no fault is set yet");
        }
        Disks { named: Arc::new(Mutex::new(named)), troubles: Default::default(), slow: Arc::default() }
    }

    /// As they are named now.
    pub fn named(&self) -> [Named; 3] {
        *self.named.lock()
    }

    /// Writes what is said of them.
    pub fn write(&self, config: &mut Config) {
        write(config, self.named());
    }

    /// Told of each call to the volume: the time passes that a slow disk takes.
    pub fn passes(&self, path: &str, clock: &ManualClock) {
        let Some(rest) = path.strip_prefix(".disk/") else { return };
        let ms = DISKS.iter().position(|(_, name)| rest.starts_with(name)).map_or(0, |disk| self.slow.lock()[disk]);
        if ms > 0 {
            clock.advance_ms(ms);
        }
    }

    /// A disk fails from now on as that kind of error, or no more: one that is read-only or full can be read.
    pub fn fail(&self, disk: usize, kind: Option<io::ErrorKind>) {
        use io::ErrorKind::{ReadOnlyFilesystem, StorageFull};
        let can_be_read = |kind: &io::ErrorKind| matches!(kind, ReadOnlyFilesystem | StorageFull);
        self.troubles[disk].refuse_writes_as(kind.filter(can_be_read));
        self.troubles[disk].fail_as(kind.filter(|kind| !can_be_read(kind)));
    }

    /// Each call to a disk takes so long from now on.
    pub fn slow(&self, disk: usize, ms: u64) {
        self.slow.lock()[disk] = ms;
    }

    /// All are well.
    pub fn mend(&self) {
        (0..DISKS.len()).for_each(|disk| self.fail(disk, None));
        *self.slow.lock() = [0; 3];
    }

    fn open(&self, home: &MemVolume, spec: &VolumeSpec) -> Result<Attached, String> {
        let disk = (0..DISKS.len()).find(|disk| directory(*disk) == spec.place);
        let disk = disk.ok_or_else(|| format!("{} is not there", spec.place))?;
        let volume: Arc<dyn Volume> = Arc::new(Below::new(Arc::new(home.clone()), below(disk)));
        let volume: Arc<dyn Volume> = Arc::new(SlowVolume::new(volume, self.troubles[disk].clone()));
        let again = volume.clone();
        let claim = Claim::new(move || Ok(again.clone()));
        Ok(Attached { spec: spec.clone(), volume: Some(volume), claim: Some(claim) })
    }

    /// The root directory with the volumes of the configuration, as the binary puts them together.
    ///
    /// # Errors
    /// A sentence: why the server cannot start on them.
    pub fn attach(
        &self,
        home: &MemVolume,
        config: &Config,
        clock: &Arc<ManualClock>,
        rng: &Rng,
        trace: &Arc<Trace>,
    ) -> Result<TieredVolume, String> {
        let specs = parse_volumes(config.text(KEY).unwrap_or_default())?;
        let attached = specs.iter().map(|spec| self.open(home, spec)).collect::<Result<Vec<_>, _>>()?;
        let kinds = FileKind::PLACED.iter().filter_map(|kind| Some((kind.name(), place(config, *kind)?)));
        let rules = Rules { kinds: kinds.collect(), ..Rules::default() };
        let trace = trace.clone();
        let tell = Arc::new(move |said: String| trace.note(&said));
        let (volume, _) = TieredVolume::attach(Arc::new(home.clone()), attached, rules, rng, tell)
            .map_err(|error| error.to_string())?;
        let (disks, home) = (self.clone(), home.clone());
        let clock: Arc<dyn Clock> = clock.clone();
        Ok(volume.measured(&clock).with_opener(Arc::new(move |spec: &VolumeSpec| disks.open(&home, spec))))
    }
}

fn place(config: &Config, kind: FileKind) -> Option<String> {
    let tier = config.text(&format!("basalt.volumes.place.{}", kind.name()))?;
    (!tier.is_empty()).then(|| tier.to_owned())
}

/// How a volume is named in `basalt.volumes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Not.
    Out,
    /// With nothing more.
    In,
    /// With room for little.
    Small,
    /// To be emptied.
    Drains,
}

/// Writes the settings for volumes that are named so. What is logged and flushed belongs to the fast one, what is compacted to the others, as far as there
/// are some.
fn write(config: &mut Config, named: [Named; 3]) {
    let more = |named| match named {
        Named::Out => None,
        Named::In => Some(""),
        Named::Small => Some(":1k"),
        Named::Drains => Some(":drain"),
    };
    let class = |tier: &str| if tier == "fast" { "ssd" } else { "hdd" };
    let of = |disk: usize| {
        let tier = DISKS[disk].0;
        Some(format!("{tier}:{}:{}{}", class(tier), directory(disk), more(named[disk])?))
    };
    config.set(KEY, (0..DISKS.len()).filter_map(of).collect::<Vec<_>>().join(","));
    let has = |tier: &str| (0..DISKS.len()).any(|disk| DISKS[disk].0 == tier && named[disk] != Named::Out);
    for kind in FileKind::PLACED {
        let tier = if matches!(kind, FileKind::Log | FileKind::Flush) { "fast" } else { "cold" };
        config.set(format!("basalt.volumes.place.{}", kind.name()), if has(tier) { tier } else { "" });
    }
}

impl Life {
    /// Has the server read what the operator wrote, who takes it back when that is refused. Whether it was taken.
    pub fn read_volumes(&self, named: [Named; 3]) -> bool {
        let Some(disks) = &self.disks else { return false };
        write(&mut self.file.lock(), named);
        let taken = self.server.update_configuration().is_ok();
        if taken {
            *disks.named.lock() = named;
        } else {
            disks.write(&mut self.file.lock());
        }
        taken
    }

    /// Has the files come off the volumes that are to be emptied: one round.
    pub fn drain(&self) {
        for volume in self.server.volumes().iter().filter(|volume| volume.spec.drains) {
            let _refused = self.server.drain_volume(&volume.spec.place);
        }
    }

    /// The disks are well: regions that waited for them open again.
    pub async fn look_at_disks(&self, clock: &ManualClock) {
        for _ in 0..6 {
            clock.advance_ms(PAUSE_MS);
            self.server.look_after_volumes();
            self.settle().await;
        }
    }
}

/// The files on each volume, by its directory.
pub fn files(life: &Life) -> BTreeMap<String, u64> {
    life.server.volumes().into_iter().map(|volume| (volume.spec.place, volume.files)).collect()
}
