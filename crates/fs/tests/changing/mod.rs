//! Volumes that come and go while files are written, and are emptied.

use super::{COLD, FLASH, Machine, Promises, attached, path, write};
use basalt_fs::tiered::{Attached, Claim, Drained, Opener, Rules, TieredVolume, VolumeSpec, parse_volumes};
use basalt_fs::{CrashPolicy, FileKind, FilePath, MemVolume, Placement, Result, TEMPORARY_PREFIX, Volume, VolumeHints};
use base::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What is opened for a directory, and which directories were let go.
fn opener(machine: &Machine, let_go: &Arc<Mutex<Vec<String>>>) -> Opener {
    let (machine, let_go) = (machine.clone(), let_go.clone());
    Arc::new(move |spec: &VolumeSpec| {
        let disk = match &*spec.place {
            "/mnt/flash" => machine.flash.clone(),
            "/data/1" | "/data/1-again" => machine.cold[0].clone(),
            "/data/2" => machine.cold[1].clone(),
            place => return Err(format!("{place} is not there")),
        };
        let (disk, place, let_go): (Arc<dyn Volume>, _, _) = (Arc::new(disk), spec.place.clone(), let_go.clone());
        let of_claim = disk.clone();
        let claim = Claim::new(move || Ok(of_claim.clone()))
            .letting_go(move || let_go.lock().expect("free").push(place.clone()));
        Ok(Attached { spec: spec.clone(), volume: Some(disk), claim: Some(claim) })
    })
}

struct Changing {
    machine: Machine,
    volume: TieredVolume,
    let_go: Arc<Mutex<Vec<String>>>,
}

impl Changing {
    /// With the home alone.
    fn new() -> Changing {
        let machine = Machine::new();
        let let_go = Arc::default();
        let home = Arc::new(machine.home.clone());
        let attached = TieredVolume::attach(home, Vec::new(), Rules::default(), &Rng::seeded(1), Arc::new(|_| {}));
        let volume = attached.expect("attached").0.with_opener(opener(&machine, &let_go));
        Changing { machine, volume, let_go }
    }

    fn change(&self, volumes: &str, kinds: &[(&'static str, &str)]) -> std::result::Result<bool, String> {
        let kinds: BTreeMap<_, _> = kinds.iter().map(|(kind, tier)| (*kind, (*tier).to_owned())).collect();
        self.volume.change(&parse_volumes(volumes).expect("legal"), &kinds)
    }

    fn drain(&self, directory: &str) -> Drained {
        self.volume.drain(directory, &|_| true).expect("drained")
    }

    fn files_on(&self, disk: &MemVolume) -> usize {
        disk.all_files().iter().filter(|file| file.as_str().starts_with("files/")).count()
    }

    fn let_go(&self) -> Vec<String> {
        std::mem::take(&mut *self.let_go.lock().expect("free"))
    }
}

const ON_FLASH: &[(&str, &str)] = &[("flush", "flash"), ("wal", "flash")];

#[test]
fn a_volume_is_added_emptied_and_taken_out_while_files_are_read() {
    let c = Changing::new();
    let (volume, flash) = (&c.volume, c.machine.flash.clone());
    write(volume, "before", FileKind::Flush, &[1; 509]).expect("written");
    assert_eq!(c.machine.home.all_files(), [path("before")], "nothing else is there while there are no volumes");
    assert!(!(volume as &dyn Volume).has_several_places());
    assert_eq!(c.change(FLASH, ON_FLASH), Ok(true));
    assert_eq!(c.change(FLASH, ON_FLASH), Ok(false), "nothing new");
    assert!((volume as &dyn Volume).has_several_places());
    write(volume, "a", FileKind::Flush, &[2; 5000]).expect("written");
    write(volume, "b", FileKind::Flush, &[3; 10]).expect("written");
    let mut log = volume.create_placed(&path("log"), &Placement::of(FileKind::Log), false).expect("created");
    log.append(b"one").and_then(|()| log.sync()).expect("synced");
    assert_eq!(c.files_on(&flash), 3);
    assert_eq!(volume.read(&path("before")).expect("read"), [1; 509], "a file as long as a record is none");

    let refused = c.change("", &[]).expect_err("it has files");
    assert!(
        refused.starts_with("3 files are on the volume /mnt/flash (tier flash), which basalt.volumes does not name")
            && refused.contains("with :drain behind it")
            && refused.contains("basalt admin drain-volume --wait /mnt/flash"),
        "{refused}"
    );
    let refused = volume.drain("/mnt/flash", &|_| true).expect_err("it gets files still");
    assert!(refused.contains("write :drain behind it"), "{refused}");
    let refused = volume.drain("/mnt/other", &|_| true).expect_err("none such");
    assert_eq!(refused, "/mnt/other is no volume of basalt.volumes (it has: /mnt/flash)");

    // It gets nothing more; the other of the tier does.
    let both = "flash:ssd:/mnt/flash:drain, flash:ssd:/data/1";
    assert_eq!(c.change(both, ON_FLASH), Ok(true));
    write(volume, "c", FileKind::Flush, &[4; 10]).expect("written");
    assert_eq!((c.files_on(&flash), c.files_on(&c.machine.cold[0])), (3, 1));
    let reader = volume.open(&path("a")).expect("open");
    let drained = c.drain("/mnt/flash");
    assert_eq!((drained.files, drained.bytes, drained.left, drained.being_written), (2, 5010, 1, 1), "{drained:?}");
    log.append(b"two").and_then(|()| log.finish()).expect("what is being written stays, and is whole");
    assert_eq!(c.drain("/mnt/flash"), Drained { files: 1, bytes: 6, ..Drained::default() });
    assert_eq!((c.files_on(&flash), c.files_on(&c.machine.cold[0])), (0, 4));
    assert_eq!(volume.status()[0].moved, (3, 5016));
    assert_eq!(c.change("flash:ssd:/data/1", ON_FLASH), Ok(true));
    assert_eq!(c.let_go(), ["/mnt/flash"]);
    assert_eq!(flash.all_files(), [] as [FilePath; 0], "it is nobody's");
    flash.stop_after(0);
    let mut bytes = [0; 5000];
    reader.read_exact_at(&mut bytes, 0).expect("who had it open reads what was moved");
    assert_eq!(bytes, [2; 5000]);
    let files: [(&str, &[u8]); 4] = [("a", &[2; 5000]), ("b", &[3; 10]), ("log", b"onetwo"), ("c", &[4; 10])];
    let as_it_was = |name: &str, bytes: &[u8]| assert_eq!(volume.read(&path(name)).expect("read"), bytes, "{name}");
    files.iter().for_each(|(name, bytes)| as_it_was(name, bytes));

    // With no other of the tier what is there comes home.
    assert_eq!(c.change("flash:ssd:/data/1:drain", ON_FLASH), Ok(true));
    assert_eq!(c.drain("/data/1").left, 0);
    assert!(c.change("", ON_FLASH).expect_err("a tier is gone").contains("names no tier of basalt.volumes"));
    assert_eq!(c.change("", &[]), Ok(true));
    reader.read_exact_at(&mut bytes, 0).expect("still");
    files.iter().for_each(|(name, bytes)| as_it_was(name, bytes));
    let plain = |name: &str, bytes: &[u8]| assert_eq!(c.machine.home.read(&path(name)).expect("read"), bytes);
    files.iter().for_each(|(name, bytes)| plain(name, bytes));
}

#[test]
fn a_change_that_is_refused_changes_nothing() {
    let c = Changing::new();
    assert_eq!(c.change(FLASH, ON_FLASH), Ok(true));
    write(&c.volume, "a", FileKind::Flush, &[2; 10]).expect("written");
    let list = c.machine.home.read(&path(".basalt.volumes")).expect("a list");
    // A volume of another root.
    let other = Machine::new();
    let other_disk = MemVolume::new();
    let home = Arc::new(other.home.clone());
    let volumes = vec![attached(COLD[1], Some(&other_disk))];
    drop(TieredVolume::attach(home, volumes, Rules::default(), &Rng::seeded(9), Arc::new(|_| {})).expect("attached"));
    let identity = other_disk.read(&path(".basalt.volume")).expect("identity");
    c.machine.cold[1].publish(&path(".basalt.volume"), &identity).expect("published");
    for (volumes, kinds, why) in [
        ("flash:ssd:/mnt/flash, cold:hdd:/data/1, cold:hdd:/data/2", ON_FLASH, "files of another root directory"),
        ("flash:ssd:/mnt/flash, cold:hdd:/data/1, cold:hdd:/data/1-again", ON_FLASH, "are the same volume"),
        ("flash:ssd:/mnt/flash, cold:hdd:/data/1, cold:hdd:/data/9", ON_FLASH, "/data/9 is not there"),
        ("flash:ssd:/mnt/flash, cold:hdd:/data/1", &[("flush", "tepid")], "names no tier"),
        ("cold:hdd:/data/1", &[], "1 files are on the volume /mnt/flash"),
        ("memory:ram:/data/1, flash:ssd:/mnt/flash", &[("wal", "memory")], "the only copy of acknowledged writes"),
    ] {
        let refused = c.change(volumes, kinds).expect_err(why);
        assert!(refused.contains(why), "{refused}");
        assert_eq!(c.machine.home.read(&path(".basalt.volumes")).expect("a list"), list, "{why}");
        assert_eq!(c.volume.status().len(), 1, "{why}");
        write(&c.volume, "b", FileKind::Flush, &[2; 10]).expect("written");
        assert_eq!(c.files_on(&c.machine.flash), 2, "{why}");
        c.volume.remove_file(&path("b")).expect("removed");
    }
    assert!(c.let_go().iter().filter(|place| *place == "/data/1").count() >= 2, "what was taken is let go");
    assert_eq!(c.change("other:ssd:/mnt/flash:1k", &[("flush", "other")]), Ok(true), "a tier is called otherwise");
    write(&c.volume, "c", FileKind::Flush, &[2; 2000]).expect("written");
    write(&c.volume, "d", FileKind::Flush, &[2; 10]).expect("written");
    assert_eq!(c.files_on(&c.machine.flash), 2, "its limit counts at once");
}

#[test]
fn files_that_are_renamed_or_removed_while_they_are_moved_keep_to_that() {
    let c = Changing::new();
    assert_eq!(c.change(FLASH, ON_FLASH), Ok(true));
    for dir in ["d", "archive"] {
        c.volume.create_dir_all_durable(&path(dir)).expect("made");
    }
    for (name, byte) in [("d/a", 1), ("d/b", 2), ("d/c", 3)] {
        write(&c.volume, name, FileKind::Flush, &[byte; 100]).expect("written");
    }
    assert_eq!(c.change("flash:ssd:/mnt/flash:drain, flash:ssd:/data/1", ON_FLASH), Ok(true));
    let rounds = AtomicU64::new(0);
    let drained = c.volume.drain("/mnt/flash", &|bytes| {
        // In the midst of the copying.
        match rounds.fetch_add(u64::from(bytes > 0), Ordering::Relaxed) {
            0 if bytes > 0 => c.volume.rename_new(&path("d/a"), &path("archive/a")).expect("renamed"),
            1 if bytes > 0 => c.volume.remove_file(&path("d/b")).expect("removed"),
            _ => {}
        }
        true
    });
    assert_eq!(drained, Ok(Drained { files: 1, bytes: 100, left: 1, ..Drained::default() }));
    assert!(!c.volume.exists(&path("d/a")).expect("asked") && !c.volume.exists(&path("d/b")).expect("asked"));
    assert_eq!(c.drain("/mnt/flash"), Drained { files: 1, bytes: 100, ..Drained::default() });
    assert_eq!(c.volume.read(&path("archive/a")).expect("read"), [1; 100]);
    assert_eq!(c.volume.read(&path("d/c")).expect("read"), [3; 100]);
    assert_eq!((c.files_on(&c.machine.flash), c.files_on(&c.machine.cold[0])), (0, 2), "no copy is left");
    assert_eq!(c.volume.status()[1].files, 2);
    // A whole directory goes.
    assert_eq!(c.change("flash:ssd:/data/1:drain, flash:ssd:/mnt/flash", ON_FLASH), Ok(true));
    let gone = AtomicU64::new(0);
    let drained = c.volume.drain("/data/1", &|bytes| {
        if bytes > 0 && gone.fetch_add(1, Ordering::Relaxed) == 0 {
            c.volume.remove_dir_all(&path("archive")).expect("removed");
        }
        true
    });
    assert_eq!(drained.expect("drained").left, 0);
    assert_eq!(c.change(FLASH, ON_FLASH), Ok(true));
    assert_eq!(c.files_on(&c.machine.flash), 1);
}

#[test]
fn what_cannot_be_moved_is_said_and_stays_and_a_full_volume_is_passed_over() {
    let c = Changing::new();
    assert_eq!(c.change(FLASH, ON_FLASH), Ok(true));
    write(&c.volume, "a", FileKind::Flush, &[1; 100]).expect("written");
    write(&c.volume, "b", FileKind::Flush, &[2; 100]).expect("written");
    assert_eq!(c.change("flash:ssd:/mnt/flash:drain, flash:ssd:/data/1:1k", ON_FLASH), Ok(true));
    c.machine.home.stop_after(0);
    assert!(c.volume.drain("/mnt/flash", &|_| true).is_err(), "without the root nothing goes");
    c.machine.home.clear_faults();
    let broken_off = c.volume.drain("/mnt/flash", &|bytes| bytes == 0).expect("broken off");
    assert_eq!((broken_off.files, broken_off.left, c.files_on(&c.machine.cold[0])), (0, 2, 0));
    c.machine.flash.remove_file(&c.machine.flash.all_files()[1]).expect("a file is lost");
    let drained = c.drain("/mnt/flash");
    assert_eq!((drained.files, drained.failed, drained.left), (1, 1, 1));
    assert!(drained.why.as_deref().is_some_and(|why| why.contains("its bytes are lost")), "{drained:?}");
    assert!(c.change("flash:ssd:/data/1", ON_FLASH).expect_err("one is left").starts_with("1 files are on"));
}

fn whole_life(machine: &Machine, promises: &Promises) -> Result<()> {
    let said = |text: &str, kinds: &[(&'static str, &str)]| {
        let kinds = kinds.iter().map(|(kind, tier)| (*kind, (*tier).to_owned())).collect::<BTreeMap<_, _>>();
        (parse_volumes(text).expect("legal"), kinds)
    };
    let failed = |what: String| basalt_fs::Error::new("change", &FilePath::root(), std::io::Error::other(what));
    let attached = TieredVolume::attach(
        Arc::new(machine.home.clone()),
        Vec::new(),
        Rules::default(),
        &Rng::seeded(machine.seed),
        Arc::new(|_| {}),
    );
    let volume = attached?.0.with_opener(opener(machine, &Arc::default()));
    let change = |text: &str, kinds: &[(&'static str, &str)]| {
        let (volumes, kinds) = said(text, kinds);
        volume.change(&volumes, &kinds).map_err(failed)
    };
    for dir in ["wals", "data/f", "archive"] {
        volume.create_dir_all_durable(&path(dir))?;
    }
    write(&volume, "data/f/plain", FileKind::Flush, &[9; 509])?;
    volume.sync_dir(&path("data/f"))?;
    promises.put(&["data/f/plain"], &[9; 509]);
    change(FLASH, ON_FLASH)?;
    for (name, byte) in [("data/f/a", 1), ("data/f/b", 2), ("data/f/c", 3)] {
        write(&volume, name, FileKind::Flush, &[byte; 700])?;
        volume.sync_dir(&path("data/f"))?;
        promises.put(&[name], &[byte; 700]);
    }
    let mut log = volume.create_placed(&path("wals/log"), &Placement::of(FileKind::Log), false)?;
    log.append(b"header")?;
    log.sync()?;
    volume.sync_dir(&path("wals"))?;
    promises.put(&["wals/log"], b"header");
    change("flash:ssd:/mnt/flash:drain, flash:ssd:/data/1", ON_FLASH)?;
    // One is archived while it is copied.
    let (renamed, trouble) = (AtomicU64::new(0), Mutex::new(Ok(())));
    volume
        .drain("/mnt/flash", &|bytes| {
            if bytes > 0 && renamed.fetch_add(1, Ordering::Relaxed) == 1 {
                promises.put(&["data/f/b", "archive/b"], &[2; 700]);
                let archived = volume.rename_new(&path("data/f/b"), &path("archive/b"));
                let archived = archived.and_then(|()| volume.sync_dir(&path("archive")));
                *trouble.lock().expect("free") = archived.and_then(|()| volume.sync_dir(&path("data/f")));
            }
            true
        })
        .map_err(failed)?;
    trouble.into_inner().expect("no panic")?;
    if renamed.load(Ordering::Relaxed) < 2 {
        return Err(failed("it was not copied".to_owned()));
    }
    promises.put(&["archive/b"], &[2; 700]);
    log.append(&[1; 300])?;
    log.finish()?;
    promises.put(&["wals/log"], &[b"header".to_vec(), vec![1; 300]].concat());
    volume.drain("/mnt/flash", &|_| true).map_err(failed)?;
    change("flash:ssd:/data/1:drain", ON_FLASH)?;
    volume.drain("/data/1", &|_| true).map_err(failed)?;
    change("", &[])?;
    Ok(())
}

/// Every call of any disk is once the last before the power fails, and every state that may be left is recovered from.
#[test]
fn whatever_a_crash_leaves_of_a_change_no_file_is_lost() {
    let whole = Machine::new();
    let count = Arc::new(AtomicU64::new(0));
    for disk in whole.disks() {
        let count = count.clone();
        disk.watch(Some(Arc::new(move |_, _| _ = count.fetch_add(1, Ordering::Relaxed))));
    }
    whole_life(&whole, &Promises::default()).expect("no fault");
    let calls = count.load(Ordering::Relaxed);
    assert!(calls > 300, "{calls}");
    let mut states = 0;
    for stop in 0..calls {
        let machine = Machine::new();
        machine.stop_after(stop);
        let promises = Promises::default();
        let _ = whole_life(&machine, &promises);
        machine.go_on();
        let policies = [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];
        for (policy, seed) in policies.into_iter().flat_map(|policy| (0..3).map(move |seed| (policy, seed))) {
            if seed > 0 && matches!(policy, CrashPolicy::LoseUnsynced | CrashPolicy::KeepAll) {
                continue;
            }
            states += 1;
            let when = format!("{policy:?} after {stop} of {calls} calls, seed {seed}");
            let after = machine.crash(&Rng::seeded(seed * 1000 + stop), policy);
            // As the operator wrote the settings before or after it.
            let volumes =
                || vec![attached(FLASH, Some(&after.flash)), attached("flash:ssd:/data/1", Some(&after.cold[0]))];
            let open = || {
                let home = Arc::new(after.home.clone());
                let flash_only = Rules { kinds: [("flush", "flash".to_owned())].into(), ..Rules::default() };
                TieredVolume::attach(home, volumes(), flash_only, &Rng::seeded(after.seed), Arc::new(|_| {}))
            };
            let (volume, survey) = open().unwrap_or_else(|e| panic!("{when}: {e}"));
            assert_eq!(survey.missing, [], "{when}");
            promises.check(&volume, &when);
            let waiting = volume.exists(&path(".basalt.moving")).expect("asked")
                && !volume.list(&path(".basalt.moving")).expect("listed").is_empty();
            assert!(!waiting, "{when}: nothing waits any more");
            let files = |volume: &TieredVolume| volume.status().iter().map(|status| status.files).sum::<u64>();
            let survey = volume.survey().expect("survey");
            assert!(files(&volume) <= survey.placed, "{when}");
            volume.remove_nameless(&survey).expect("removed");
            promises.check(&volume, &format!("{when}, tidied"));
            drop(volume);
            let (volume, _) = open().unwrap_or_else(|e| panic!("{when}: {e}"));
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
    assert!(states > 2000, "{states}");
}
