//! Several volumes under one tree of names: the contract, what a crash leaves, what is refused.

mod changing;
mod shared;

use basalt_fs::mem::{Fault, Op};
use basalt_fs::tiered::{Attached, Claim, Rules, TieredVolume, VolumeSpec};
use basalt_fs::{
    Appender, Capabilities, CrashPolicy, DirEntry, FaultKind, FileKind, FilePath, MemVolume, Placement, ReadAt, Result,
    Settled, SlowVolume, TEMPORARY_PREFIX, Trouble, Volume, VolumeHints,
};
use base::Rng;
use shared::{contract, path};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const FLASH: &str = "flash:ssd:/mnt/flash";
const COLD: [&str; 2] = ["cold:hdd:/data/1", "cold:hdd:/data/2"];

fn attached(spec: &str, volume: Option<&MemVolume>) -> Attached {
    let volume = volume.map(|volume| Arc::new(volume.clone()) as Arc<dyn Volume>);
    Attached { spec: spec.parse::<VolumeSpec>().expect("legal"), volume, claim: None }
}

fn rules() -> Rules {
    let kinds = [("wal", "flash"), ("flush", "flash"), ("minor", "flash"), ("major", "cold"), ("mob", "cold")];
    Rules { kinds: kinds.map(|(kind, tier)| (kind, tier.to_owned())).into(), ..Rules::default() }
}

/// The disks of one machine.
#[derive(Clone)]
struct Machine {
    home: MemVolume,
    flash: MemVolume,
    cold: [MemVolume; 2],
    seed: u64,
}

impl Machine {
    fn new() -> Machine {
        let new = MemVolume::new;
        Machine { home: new(), flash: new(), cold: [new(), new()], seed: 1 }
    }

    fn disks(&self) -> [&MemVolume; 4] {
        [&self.home, &self.flash, &self.cold[0], &self.cold[1]]
    }

    fn volumes(&self) -> Vec<Attached> {
        vec![
            attached(FLASH, Some(&self.flash)),
            attached(COLD[0], Some(&self.cold[0])),
            attached(COLD[1], Some(&self.cold[1])),
        ]
    }

    fn open_with(&self, volumes: Vec<Attached>) -> Result<(TieredVolume, basalt_fs::tiered::Survey)> {
        let rng = Rng::seeded(self.seed);
        TieredVolume::attach(Arc::new(self.home.clone()), volumes, rules(), &rng, Arc::new(|_| {}))
    }

    fn open(&self) -> TieredVolume {
        self.open_with(self.volumes()).expect("attached").0
    }

    /// All of it as a power failure leaves it; the next process has other random numbers.
    fn crash(&self, rng: &Rng, policy: CrashPolicy) -> Machine {
        let [home, flash, one, two] = self.disks().map(|disk| disk.crash(rng, policy));
        Machine { home, flash, cold: [one, two], seed: self.seed + 1 }
    }

    /// Stops after so many calls of any disk.
    fn stop_after(&self, calls: u64) {
        let (left, disks) = (Arc::new(AtomicU64::new(calls)), self.disks().map(MemVolume::clone));
        for disk in self.disks() {
            let (left, disks) = (left.clone(), disks.clone());
            disk.watch(Some(Arc::new(move |_, _| {
                let last = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if last.is_err() {
                    disks.iter().filter(|disk| !disk.is_stopped()).for_each(|disk| disk.stop_after(0));
                }
            })));
        }
    }

    fn go_on(&self) {
        for disk in self.disks() {
            disk.watch(None);
            disk.clear_faults();
        }
    }
}

/// Puts every file that it creates on another volume.
struct AllPlaced(TieredVolume);

impl Volume for AllPlaced {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        self.0.open(path)
    }
    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.0.create_placed(path, &Placement::of(FileKind::Flush), false)
    }
    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.0.rename(from, to)
    }
    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.0.rename_new(from, to)
    }
    fn remove_file(&self, path: &FilePath) -> Result<()> {
        self.0.remove_file(path)
    }
    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        self.0.remove_dir_all(path)
    }
    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.0.create_dir_all(path)
    }
    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        Ok(self.0.list(path)?.into_iter().filter(|entry| entry.name != ".basalt.volumes").collect())
    }
    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.0.stat(path)
    }
    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        self.0.sync_dir(path)
    }
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn settle(&self, path: &FilePath) -> Result<Settled> {
        self.0.settle(path)
    }
    fn temporary_name(&self, name: &str) -> String {
        self.0.temporary_name(name)
    }
}

#[test]
fn a_tree_over_several_volumes_keeps_the_contract() {
    let machine = Machine::new();
    contract(&AllPlaced(machine.open()));
    assert_eq!(machine.flash.all_files(), [path(".basalt.volume")], "what was removed is gone there, too");
    let machine = Machine::new();
    let volume = AllPlaced(machine.open());
    volume.put(&path("f"), b"x");
    assert_eq!(machine.flash.all_files().len(), 2);
}

trait Put {
    fn put(&self, path: &FilePath, bytes: &[u8]);
}

impl Put for AllPlaced {
    fn put(&self, path: &FilePath, bytes: &[u8]) {
        let mut file = self.create(path).expect("create");
        file.append(bytes).expect("append");
        file.finish().expect("finish");
        self.sync_dir(&path.parent()).expect("sync");
    }
}

fn write(volume: &TieredVolume, at: &str, kind: FileKind, bytes: &[u8]) -> Result<()> {
    let mut file = volume.create_placed(&path(at), &Placement::of(kind), kind == FileKind::Major)?;
    file.append(bytes)?;
    file.finish()
}

/// What must be there: each file under one of the names that it may have.
#[derive(Default)]
struct Promises(Mutex<Vec<(Vec<&'static str>, Vec<u8>)>>);

impl Promises {
    fn put(&self, names: &[&'static str], bytes: &[u8]) {
        let mut all = self.0.lock().expect("no panic");
        all.retain(|(others, _)| !others.iter().any(|other| names.contains(other)));
        all.push((names.to_vec(), bytes.to_vec()));
    }

    fn forget(&self, name: &str) {
        self.0.lock().expect("no panic").retain(|(names, _)| !names.contains(&name));
    }

    fn check(&self, volume: &dyn Volume, when: &str) {
        for (names, bytes) in &*self.0.lock().expect("no panic") {
            let found: Vec<String> = names
                .iter()
                .filter(|name| volume.exists(&path(name)).expect("stat"))
                .map(|name| {
                    let read = volume.read(&path(name)).unwrap_or_else(|e| panic!("{when}: {e}"));
                    // A log may have more than was promised.
                    assert!(read.starts_with(bytes), "{when}: {name} has {} bytes", read.len());
                    (*name).to_owned()
                })
                .collect();
            assert!(!found.is_empty(), "{when}: {names:?} is lost");
        }
    }
}

/// The life of a log, a flushed file, a compaction, the archive: in the order in which the storage crates make things durable.
fn life(volume: &TieredVolume, promises: &Promises) -> Result<()> {
    for dir in ["wals", "data/f", "archive", "data/.tmp"] {
        volume.create_dir_all_durable(&path(dir))?;
    }
    let mut log = volume.create_placed(&path("wals/log"), &Placement::of(FileKind::Log), false)?;
    log.append(b"header")?;
    log.sync()?;
    volume.sync_dir(&path("wals"))?;
    promises.put(&["wals/log"], b"header");
    log.append(&[1; 700])?;
    log.sync()?;
    promises.put(&["wals/log"], &[b"header".to_vec(), vec![1; 700]].concat());

    for (name, temporary, bytes) in
        [("data/f/a", "data/.tmp/a", vec![2; 900]), ("data/f/b", "data/.tmp/b", vec![3; 600])]
    {
        write(volume, temporary, FileKind::Flush, &bytes)?;
        volume.rename_new(&path(temporary), &path(name))?;
        volume.sync_dir(&path("data/f"))?;
        promises.put(&[name], &bytes);
    }
    // The compaction's output, in the place of both.
    write(volume, "data/.tmp/c", FileKind::Major, &[4; 1500])?;
    volume.rename_new(&path("data/.tmp/c"), &path("data/f/c"))?;
    volume.sync_dir(&path("data/f"))?;
    promises.put(&["data/f/c"], &[4; 1500]);
    promises.put(&["data/f/a", "archive/a"], &[2; 900]);
    promises.put(&["data/f/b", "archive/b"], &[3; 600]);
    for (from, to) in [("data/f/a", "archive/a"), ("data/f/b", "archive/b")] {
        volume.rename_new(&path(from), &path(to))?;
    }
    volume.sync_dir(&path("archive"))?;
    volume.sync_dir(&path("data/f"))?;
    promises.put(&["archive/a"], &[2; 900]);
    promises.put(&["archive/b"], &[3; 600]);
    promises.forget("archive/a");
    volume.remove_file(&path("archive/a"))?;
    // A list of files that takes the place of the one before.
    write(volume, "data/.tmp/d", FileKind::Minor, &[5; 800])?;
    promises.put(&["data/f/c"], &[]);
    volume.rename(&path("data/.tmp/d"), &path("data/f/c"))?;
    volume.sync_dir(&path("data/f"))?;
    promises.put(&["data/f/c"], &[5; 800]);
    volume.rename_new(&path("wals/log"), &path("archive/log"))?;
    promises.put(&["wals/log", "archive/log"], b"header");
    volume.sync_dir(&path("archive"))?;
    volume.sync_dir(&path("wals"))?;
    write(volume, "data/.tmp/e", FileKind::Minor, &[6; 20])?;
    volume.remove_dir_all(&path("data/.tmp"))
}

/// Every call of any of four disks is once the last before the power fails, and every state that may be left is recovered from.
#[test]
fn whatever_a_crash_leaves_no_promised_file_is_lost_and_one_directory_can_be_made_of_it() {
    let whole = Machine::new();
    let count = Arc::new(AtomicU64::new(0));
    for disk in whole.disks() {
        let count = count.clone();
        disk.watch(Some(Arc::new(move |_, _| _ = count.fetch_add(1, Ordering::Relaxed))));
    }
    life(&whole.open(), &Promises::default()).expect("no fault");
    let calls = count.load(Ordering::Relaxed);
    assert!(calls > 100, "{calls}");
    let mut states = 0;
    for stop in 0..=calls {
        let machine = Machine::new();
        machine.stop_after(stop);
        let promises = Promises::default();
        let outcome = machine.open_with(machine.volumes()).and_then(|(volume, _)| life(&volume, &promises));
        // What goes wrong with bytes that no name has any more nobody hears of.
        assert!(outcome.is_ok() || stop < calls, "after {stop} calls");
        assert!(outcome.is_err() || stop + 5 > calls, "after {stop} calls");
        machine.go_on();
        let policies = [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];
        for (policy, seed) in policies.into_iter().flat_map(|policy| (0..4).map(move |seed| (policy, seed))) {
            if seed > 0 && matches!(policy, CrashPolicy::LoseUnsynced | CrashPolicy::KeepAll) {
                continue;
            }
            states += 1;
            let when = format!("{policy:?} after {stop} of {calls} calls, seed {seed}");
            let after = machine.crash(&Rng::seeded(seed * 1000 + stop), policy);
            let (volume, survey) = after.open_with(after.volumes()).unwrap_or_else(|e| panic!("{when}: {e}"));
            assert_eq!(survey.missing, [], "{when}");
            promises.check(&volume, &when);
            // What the next opening of a region does.
            volume.remove_dir_all(&path("data/.tmp")).unwrap_or_else(|e| panic!("{when}: {e}"));
            promises.check(&volume, &format!("{when}, swept"));
            volume.remove_nameless(&volume.survey().expect("survey")).expect("removed");
            promises.check(&volume, &format!("{when}, tidied"));
            drop(volume);
            let volume = after.open();
            volume.gather(&mut |_, _| {}).unwrap_or_else(|e| panic!("{when}: {e}"));
            promises.check(&after.home, &format!("{when}, gathered"));
            let left: Vec<FilePath> = after.disks()[1..]
                .iter()
                .flat_map(|disk| disk.all_files())
                .filter(|file| !file.name().starts_with(TEMPORARY_PREFIX))
                .collect();
            assert_eq!(left, [], "{when}");
        }
    }
    assert!(states > 1000, "{states}");
}

/// A gathering that is broken off at any call is begun again, and loses nothing.
#[test]
fn gathering_may_be_broken_off_anywhere() {
    let made = Machine::new();
    let volume = AllPlaced(made.open());
    let files = [("a", vec![1; 700]), ("d/b", vec![2; 100]), ("d/c", vec![3; 1])];
    volume.create_dir_all_durable(&path("d")).expect("dir");
    files.iter().for_each(|(name, bytes)| volume.put(&path(name), bytes));
    drop(volume);
    for stop in 0.. {
        let machine = made.crash(&Rng::seeded(0), CrashPolicy::KeepAll);
        machine.stop_after(stop);
        let outcome = machine.open_with(machine.volumes()).and_then(|(volume, _)| volume.gather(&mut |_, _| {}));
        machine.go_on();
        for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn] {
            let after = machine.crash(&Rng::seeded(stop), policy);
            after.open().gather(&mut |_, _| {}).unwrap_or_else(|e| panic!("{policy:?} after {stop}: {e}"));
            for (name, bytes) in &files {
                assert_eq!(&after.home.read(&path(name)).expect("there"), bytes, "{policy:?} after {stop}: {name}");
            }
        }
        if outcome.is_ok() {
            assert!(stop > 50, "{stop}");
            return;
        }
    }
}

#[test]
fn files_lie_where_their_kind_and_policy_say_and_names_are_one_tree() {
    let machine = Machine::new();
    let volume = machine.open();
    let place = |name: &str, placement: Placement| {
        let mut file = volume.create_placed(&path(name), &placement, false).expect("created");
        file.append(name.as_bytes()).expect("append");
        file.finish().expect("finish");
    };
    place("flushed", Placement::of(FileKind::Flush));
    place("major", Placement::of(FileKind::Major));
    place("hot", Placement::of(FileKind::Flush).with_policy(Some("HOT")));
    place("other", Placement::default());
    let objects = |disk: &MemVolume| disk.all_files().iter().filter(|file| file.as_str().starts_with("files/")).count();
    assert_eq!(machine.disks().map(objects), [0, 1, 1, 0]);
    assert_eq!(machine.home.read(&path("hot")).expect("plain"), b"hot");
    for name in ["flushed", "major", "hot", "other"] {
        assert_eq!(volume.read(&path(name)).expect("read"), name.as_bytes());
        assert_eq!(volume.stat(&path(name)).expect("stat").expect("there").len, name.len() as u64);
    }
    // The emptier disk of the tier is taken.
    machine.cold[0].set_capacity(Some(200 << 20));
    place("second", Placement::of(FileKind::Major));
    assert_eq!(machine.disks().map(objects), [0, 1, 1, 1]);
    assert_eq!(volume.status().iter().map(|status| status.used_bytes).collect::<Vec<_>>(), [7, 5, 6]);
}

#[test]
fn a_full_failing_or_limited_volume_is_passed_over() {
    let machine = Machine::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = {
        let told = told.clone();
        Arc::new(move |sentence: String| told.lock().expect("no panic").push(sentence))
    };
    let mut volumes = machine.volumes();
    volumes[0] = attached("flash:ssd:/mnt/flash:1k", Some(&machine.flash));
    let (volume, _) = TieredVolume::attach(Arc::new(machine.home.clone()), volumes, rules(), &Rng::seeded(1), tell)
        .expect("attached");
    write(&volume, "a", FileKind::Flush, &[1; 2000]).expect("within the limit when it was begun");
    write(&volume, "b", FileKind::Flush, &[1; 2000]).expect("elsewhere");
    assert_eq!(machine.home.stat(&path("b")).expect("stat").expect("plain").len, 2000);
    assert!(told.lock().expect("no panic").iter().any(|line| line.contains("/mnt/flash") && line.contains("full")));
    for disk in &machine.cold {
        let kind = FaultKind::Io;
        disk.inject(Fault { op: Some(Op::Create), path_contains: None, nth: 1, kind, forever: false });
    }
    write(&volume, "c", FileKind::Major, &[1; 2000]).expect("elsewhere");
    assert_eq!(machine.home.stat(&path("c")).expect("stat").expect("plain").len, 2000);
    assert_eq!(told.lock().expect("no panic").iter().filter(|line| line.contains("go elsewhere")).count(), 3);
    machine.home.fail_op(3, FaultKind::Full);
    let error = write(&volume, "d", FileKind::Major, &[1; 20]).expect_err("the names' own disk is full");
    assert!(error.is_full(), "{error}");
    assert_eq!(volume.survey().expect("survey").nameless, []);
}

#[test]
fn a_volume_that_is_missing_swapped_or_emptied_is_said_and_nothing_is_changed() {
    let machine = Machine::new();
    let volume = AllPlaced(machine.open());
    volume.put(&path("a"), &[1; 700]);
    drop(volume);
    let refused = |volumes: Vec<Attached>| machine.open_with(volumes).map(|_| ()).expect_err("refused").to_string();
    let with_flash = |flash: Option<&MemVolume>| {
        let mut volumes = machine.volumes();
        volumes[0] = attached(FLASH, flash);
        volumes
    };
    // Not named any more.
    let error = refused(machine.volumes().split_off(1));
    // The rules are looked at first.
    assert!(error.contains("names no tier"), "{error}");
    let no_rules = |volumes| {
        let rng = Rng::seeded(5);
        TieredVolume::attach(Arc::new(machine.home.clone()), volumes, Rules::default(), &rng, Arc::new(|_| {}))
    };
    let error = no_rules(machine.volumes().split_off(1)).map(|_| ()).expect_err("refused").to_string();
    assert!(error.contains("1 files of this root directory are on /mnt/flash (tier flash)"), "{error}");
    // An empty directory where the disk should be mounted.
    let error = refused(with_flash(Some(&MemVolume::new())));
    assert!(error.contains("is the volume mounted?"), "{error}");
    // A disk of another root.
    let other = Machine { seed: 77, ..Machine::new() };
    drop(other.open());
    let error = refused(with_flash(Some(&other.flash)));
    assert!(error.contains("another root directory"), "{error}");
    assert_eq!(other.flash.all_files(), [path(".basalt.volume")]);
    // Two disks of one root in each other's place are both known.
    let swapped = vec![
        attached(FLASH, Some(&machine.cold[0])),
        attached(COLD[0], Some(&machine.flash)),
        attached(COLD[1], Some(&machine.cold[1])),
    ];
    let (volume, survey) = machine.open_with(swapped).expect("known by what they say");
    assert_eq!((volume.read(&path("a")).expect("found"), survey.missing.len()), (vec![1; 700], 0));
    drop(volume);
    // Missing, and the operator goes on: its files are missed, and are not taken for absent.
    let (volume, survey) = machine.open_with(with_flash(None)).expect("goes on");
    assert_eq!(survey.missing, [path("a")]);
    assert!(volume.exists(&path("a")).expect("its name is there"));
    for error in [
        volume.read(&path("a")).expect_err("missing"),
        volume.open(&path("a")).map(|_| ()).expect_err("missing"),
        volume.remove_file(&path("a")).expect_err("kept"),
        volume.list(&FilePath::root()).expect_err("no length"),
    ] {
        assert!(!error.is_not_found() && error.to_string().contains("/mnt/flash"), "{error}");
    }
    drop(volume);
    // The list is lost: the volumes know whose they are.
    machine.home.remove_file(&path(".basalt.volumes")).expect("removed");
    assert_eq!(machine.open().read(&path("a")).expect("found"), vec![1; 700]);
    // The bytes are gone.
    let object = machine.flash.all_files().into_iter().find(|file| file.as_str().starts_with("files/")).expect("one");
    machine.flash.remove_file(&object).expect("removed");
    let (volume, survey) = machine.open_with(machine.volumes()).expect("attached");
    assert_eq!(survey.missing, [path("a")]);
    let error = volume.open(&path("a")).map(|_| ()).expect_err("lost");
    assert!(!error.is_not_found() && error.to_string().contains("its bytes are lost"), "{error}");
    let error = volume.gather(&mut |_, _| {}).expect_err("nothing to bring");
    assert!(error.to_string().contains("its bytes are lost"), "{error}");
    volume.remove_file(&path("a")).expect("it may be given up");
}

#[test]
fn what_is_read_of_another_volume_is_named_by_both_its_places() {
    let machine = Machine::new();
    let volume = machine.open();
    write(&volume, "f", FileKind::Flush, &[1; 100]).expect("written");
    let file = volume.open(&path("f")).expect("open");
    let error = file.read_exact_at(&mut [0; 10], 95).expect_err("past the end");
    let text = error.to_string();
    assert!(error.path == path("f") && text.contains("/mnt/flash/files/") && text.contains("at offset 95"), "{text}");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// Two volumes of one tier; on one of them syncs begin to take long.
#[test]
fn new_files_go_to_the_fast_volume_of_a_tier_until_the_slow_one_is_fast_again() {
    let machine = Machine::new();
    let clock = Arc::new(base::ManualClock::new(0));
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, rng) = (told.clone(), Rng::seeded(1));
    let tell = Arc::new(move |sentence| seen.lock().expect("not poisoned").push(sentence));
    let (volume, _) =
        TieredVolume::attach(Arc::new(machine.home.clone()), machine.volumes(), rules(), &rng, tell).expect("attached");
    let volume = volume.measured(&(clock.clone() as Arc<dyn base::Clock>));
    let slow_ms = Arc::new(AtomicU64::new(1));
    let (ms, at) = (slow_ms.clone(), clock.clone());
    machine.cold[0].watch(Some(Arc::new(move |_, _| at.advance_ms(ms.load(Ordering::Relaxed)))));
    let at = clock.clone();
    machine.cold[1].watch(Some(Arc::new(move |_, _| at.advance_ms(1))));
    let placement = Placement::of(FileKind::Major);
    let mut number = 0;
    let mut write = || {
        number += 1;
        let mut file = volume.create_placed(&path(&format!("f{number}")), &placement, false).expect("created");
        file.append(b"bytes").expect("appended");
        file.finish().expect("finished");
    };
    let on = |disk: &MemVolume| disk.list(&path("files")).expect("listed").len();
    (0..20).for_each(|_| write());
    let before = [on(&machine.cold[0]), on(&machine.cold[1])];
    assert_eq!(before, [20, 0], "both have as much room: the first gets them");
    for _ in 0..5 {
        clock.advance_ms(1000);
        volume.look_after();
    }
    assert!(volume.status().iter().all(|status| !status.speed.is_slow));
    // A log, say: open for as long as it is written.
    let log = |name: &str| volume.create_placed(&path(name), &placement, false).expect("created");
    let open = log("log");
    assert!(!open.is_on_slow_volume());
    slow_ms.store(80, Ordering::Relaxed);
    (0..40).for_each(|_| write());
    assert!(open.is_on_slow_volume() && !log("next").is_on_slow_volume(), "the next file of it lies better");
    let after = [on(&machine.cold[0]), on(&machine.cold[1])];
    let status = volume.status();
    let slow: Vec<&str> = status.iter().filter(|s| s.speed.is_slow).map(|s| s.spec.place.as_str()).collect();
    assert_eq!(slow, ["/data/1"], "{after:?} {status:?}");
    assert!(after[1] > 5, "files go to the other: {before:?} {after:?}");
    let sentences = told.lock().expect("not poisoned").clone();
    assert!(sentences.iter().any(|s| s.contains("/data/1 (tier cold) has grown slow")), "{sentences:?}");
    let median_us = status[1].speed.sync_median_us.expect("measured");
    assert!(median_us >= 10_000, "{status:?}");
    slow_ms.store(1, Ordering::Relaxed);
    for _ in 0..30 {
        clock.advance_ms(1000);
        volume.look_after();
    }
    assert!(volume.status().iter().all(|status| !status.speed.is_slow), "{:?}", volume.status());
}

/// A machine whose volumes may be put in trouble, and what was told.
struct Troubled {
    machine: Machine,
    troubles: [Trouble; 2],
    /// What is found at the places of the two cold volumes.
    mounted: [Arc<Mutex<std::result::Result<MemVolume, String>>>; 2],
    told: Arc<Mutex<Vec<String>>>,
    clock: Arc<base::ManualClock>,
    volume: TieredVolume,
}

impl Troubled {
    fn new() -> Troubled {
        let machine = Machine::new();
        let troubles = [Trouble::default(), Trouble::default()];
        let mounted = [0, 1].map(|at| Arc::new(Mutex::new(Ok(machine.cold[at].clone()))));
        let cold = |at: usize| {
            let (place, trouble): (Arc<Mutex<std::result::Result<MemVolume, String>>>, _) =
                (mounted[at].clone(), troubles[at].clone());
            let take = move || -> std::result::Result<Arc<dyn Volume>, String> {
                let volume = place.lock().expect("free").clone()?;
                Ok(Arc::new(SlowVolume::new(Arc::new(volume), trouble.clone())))
            };
            let volume = Some(take().expect("mounted"));
            let claim = Claim::new(take);
            Attached { spec: COLD[at].parse::<VolumeSpec>().expect("legal"), volume, claim: Some(claim) }
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = told.clone();
        let tell = Arc::new(move |sentence| telling.lock().expect("free").push(sentence));
        let clock = Arc::new(base::ManualClock::new(0));
        let volumes = vec![attached(FLASH, Some(&machine.flash)), cold(0), cold(1)];
        let home = Arc::new(machine.home.clone());
        let (volume, _) = TieredVolume::attach(home, volumes, rules(), &Rng::seeded(7), tell).expect("attached");
        let volume = volume.measured(&(clock.clone() as Arc<dyn base::Clock>));
        Troubled { machine, troubles, mounted, told, clock, volume }
    }

    /// A second passes.
    fn look(&self) {
        self.clock.advance_ms(1000);
        self.volume.look_after();
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().expect("free"))
    }

    /// Whether the two cold volumes are there.
    fn there(&self) -> [bool; 2] {
        let status = self.volume.status();
        [status[1].is_there, status[2].is_there]
    }
}

#[test]
fn a_volume_that_fails_takes_its_files_along_and_nothing_else_and_brings_them_back() {
    let disks = Troubled::new();
    let volume = &disks.volume;
    write(volume, "a", FileKind::Major, &[1; 700]).expect("written");
    let on = usize::from(!disks.machine.cold[0].exists(&path("files")).expect("asked"))
        + usize::from(disks.machine.cold[0].list(&path("files")).expect("listed").is_empty());
    let open = volume.open(&path("a")).expect("open");
    write(volume, "b", FileKind::Flush, &[2; 700]).expect("written");
    let mut half = volume.create_placed(&path("half"), &Placement::of(FileKind::Major), false).expect("created");
    half.append(&[3; 10]).expect("buffered");
    let before = volume.failures_and_returns();
    disks.told();

    // Both fail as one goes: whichever has the half file.
    disks.troubles.iter().for_each(|trouble| trouble.fail(true));
    let error = open.read_exact_at(&mut [0; 1], 0).expect_err("it fails").to_string();
    assert!(error.contains("read a") && error.contains("/data/"), "{error}");
    assert!(!disks.there()[on], "at the first error that it cannot explain away");
    let told = disks.told();
    assert!(
        told.len() == 1 && told[0].contains("has failed: ") && told[0].contains("are closed until it is back"),
        "{told:?}"
    );
    assert!(open.lost_with().is_some(), "who has it open is told");
    let error = volume.open(&path("a")).map(drop).expect_err("refused").to_string();
    assert!(error.contains("which has failed") && error.contains("used again when it is back"), "{error}");
    disks.look();
    assert_eq!(disks.there(), [false, false], "one that nobody used is seen, too");
    // The rest goes on, and new files go elsewhere.
    assert_eq!(volume.read(&path("b")).expect("there"), [2; 700]);
    write(volume, "c", FileKind::Major, &[4; 700]).expect("written elsewhere");
    assert_eq!(volume.read(&path("c")).expect("there"), [4; 700]);
    volume.remove_file(&path("a")).expect_err("its bytes would be forgotten");

    // Tried with growing pauses; told once.
    disks.told();
    (0..40).for_each(|_| disks.look());
    assert_eq!(disks.told(), Vec::<String>::new());
    disks.troubles.iter().for_each(|trouble| trouble.fail(false));
    (0..16).for_each(|_| disks.look());
    assert_eq!(disks.there(), [true, true]);
    assert!(disks.told().iter().filter(|told| told.ends_with("is back: its files are used again")).count() == 2);
    assert!(volume.failures_and_returns() > before);
    assert_eq!(volume.read(&path("a")).expect("back"), [1; 700]);
    assert!(open.lost_with().is_some(), "what was open before is not to be relied on");
    assert!(volume.open(&path("a")).expect("anew").lost_with().is_none());
    half.append(&[3; 10]).and_then(|()| half.sync()).expect_err("nobody knows what is there of it");
    write(volume, "d", FileKind::Major, &[5; 700]).expect("written");
    volume.remove_file(&path("a")).expect("removed");
}

#[test]
fn a_volume_that_was_swapped_gets_no_file_and_one_that_is_gone_is_taken_anew() {
    let disks = Troubled::new();
    let volume = &disks.volume;
    (0..4).for_each(|at| write(volume, &format!("f{at}"), FileKind::Major, &[at; 700]).expect("written"));
    // Emptied, and another root's volume in the place of the other: what the mount points show.
    let kept = disks.machine.cold.each_ref().map(|disk| disk.crash(&Rng::seeded(1), CrashPolicy::KeepAll));
    for disk in &disks.machine.cold {
        disk.remove_dir_all(&path("files")).expect("gone");
        disk.remove_file(&path(".basalt.volume")).expect("gone");
    }
    disks.machine.cold[1].create_dir_all(&path("files")).expect("made");
    disks.machine.cold[1].publish(&path(".basalt.volume"), &stranger()).expect("another's");
    write(volume, "new", FileKind::Major, &[9; 700]).expect("elsewhere");
    assert_eq!(disks.machine.cold[1].list(&path("files")).expect("listed").len(), 0, "nothing for a stranger");
    let told = disks.told().join("\n");
    assert!(told.contains("is the volume mounted?") && told.contains("another volume is in its place"), "{told}");
    assert_eq!(disks.there(), [false, false]);
    // Unmounted altogether, then mounted again.
    for place in &disks.mounted {
        *place.lock().expect("free") = Err("it is not there".into());
    }
    (0..20).for_each(|_| disks.look());
    assert_eq!(disks.there(), [false, false]);
    for (place, disk) in disks.mounted.iter().zip(kept) {
        *place.lock().expect("free") = Ok(disk);
    }
    (0..16).for_each(|_| disks.look());
    assert_eq!(disks.there(), [true, true]);
    (0..4).for_each(|at| assert_eq!(volume.read(&path(&format!("f{at}"))).expect("back"), [at; 700]));
    assert_eq!(volume.read(&path("new")).expect("there"), [9; 700]);
}

/// What a volume of another root directory says of itself.
fn stranger() -> Vec<u8> {
    let other = Machine { seed: 99, ..Machine::new() };
    other.open();
    other.flash.read(&path(".basalt.volume")).expect("it says whose it is")
}

#[test]
fn a_volume_that_can_only_be_read_gets_no_files_and_a_damaged_file_is_not_its_volumes_failure() {
    let disks = Troubled::new();
    let volume = &disks.volume;
    write(volume, "a", FileKind::Flush, &[1; 700]).expect("written");
    let flash = &disks.machine.flash;
    let only_read = |on: bool| {
        flash.watch(None);
        flash.clear_faults();
        if on {
            let kind = FaultKind::ReadOnly;
            flash.inject(Fault { op: Some(Op::Create), path_contains: None, nth: 1, kind, forever: true });
        }
    };
    only_read(true);
    write(volume, "b", FileKind::Flush, &[2; 700]).expect("in the root directory");
    let status = volume.status();
    assert!(status[0].is_there, "{status:?}");
    assert!(status[0].trouble.as_deref().is_some_and(|why| why.contains("can only be read")), "{status:?}");
    assert_eq!(volume.read(&path("a")).expect("read"), [1; 700]);
    only_read(false);
    (0..4).for_each(|_| disks.look());
    assert_eq!(volume.status()[0].trouble, None);
    // The file alone.
    let object = flash.list(&path("files")).expect("listed")[0].name.clone();
    flash.remove_file(&path("files").join(&object)).expect("damaged");
    let error = volume.open(&path("a")).map(drop).expect_err("lost").to_string();
    assert!(error.contains("its bytes are lost"), "{error}");
    assert!(volume.status()[0].is_there);
}

#[test]
fn kinds_of_files_get_other_places_while_files_are_written() {
    let machine = Machine::new();
    let volume = machine.open();
    let write = |name: &str| {
        let file = volume.create_placed(&path(name), &Placement::of(FileKind::Flush), false).expect("created");
        file.finish().expect("finished");
    };
    let counts = || [&machine.flash, &machine.cold[0]].map(|disk| disk.list(&path("files")).expect("listed").len());
    write("a");
    assert_eq!(counts(), [1, 0]);
    let to = |tier: &str| [("flush", tier.to_owned())].into();
    let set_places = |kinds| volume.change(&[], &kinds);
    assert_eq!(set_places(to("cold")), Ok(true));
    assert_eq!(set_places(to("cold")), Ok(false), "nothing new");
    write("b");
    assert_eq!(counts(), [1, 1]);
    let refused = set_places(to("tepid")).expect_err("no such tier");
    assert!(refused.contains("names no tier of basalt.volumes"), "{refused}");
    write("c");
    assert_eq!(counts(), [1, 2], "what was refused has changed nothing");
    assert_eq!(set_places(Default::default()), Ok(true));
    write("d");
    assert_eq!(counts(), [1, 2], "without a word it stays with the names");
    assert!(["a", "b", "c", "d"].iter().all(|name| volume.exists(&path(name)).expect("asked")));
}
