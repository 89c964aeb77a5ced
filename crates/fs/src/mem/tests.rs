use super::*;
use base::Rng;

fn path(text: &str) -> FilePath {
    FilePath::new(text)
}

fn write(volume: &MemVolume, at: &str, bytes: &[u8]) -> Box<dyn Appender> {
    let mut file = volume.create(&path(at)).expect("create");
    file.append(bytes).expect("append");
    file.flush().expect("flush");
    file
}

fn lose(volume: &MemVolume) -> MemVolume {
    volume.crash(&Rng::seeded(1), CrashPolicy::LoseUnsynced)
}

#[test]
fn a_synced_file_without_a_synced_name_is_lost() {
    let volume = MemVolume::new();
    write(&volume, "a", b"hello").sync().expect("sync");
    assert!(!lose(&volume).exists(&path("a")).expect("stat"));
    volume.sync_dir(&FilePath::root()).expect("sync");
    assert_eq!(lose(&volume).read(&path("a")).expect("read"), b"hello");
}

#[test]
fn unsynced_bytes_are_lost_and_synced_ones_are_not() {
    let volume = MemVolume::new();
    let mut file = write(&volume, "a", b"hello");
    volume.sync_dir(&FilePath::root()).expect("sync");
    assert_eq!(lose(&volume).read(&path("a")).expect("read"), b"");
    file.sync().expect("sync");
    file.append(b" world").expect("append");
    assert_eq!(volume.read(&path("a")).expect("read"), b"hello", "what is in the appender's buffer is not in the file");
    file.flush().expect("flush");
    assert_eq!(volume.read(&path("a")).expect("read"), b"hello world");
    assert_eq!(lose(&volume).read(&path("a")).expect("read"), b"hello");
    let (rng, mut lengths) = (Rng::seeded(3), std::collections::BTreeSet::new());
    for _ in 0..200 {
        let bytes = volume.crash(&rng, CrashPolicy::Torn).read(&path("a")).expect("read");
        assert!(b"hello world".starts_with(&bytes) && bytes.len() >= 5);
        lengths.insert(bytes.len());
    }
    assert_eq!(lengths.len(), 7, "every length is met");
}

#[test]
fn a_rename_happens_whole_or_not_at_all() {
    let volume = MemVolume::new();
    write(&volume, "a", b"1").sync().expect("sync");
    volume.sync_dir(&FilePath::root()).expect("sync");
    volume.rename(&path("a"), &path("b")).expect("rename");
    let rng = Rng::seeded(4);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        seen.insert(volume.crash(&rng, CrashPolicy::Torn).all_files());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [vec![path("a")], vec![path("b")]]);
}

#[test]
fn a_rename_to_another_directory_is_safe_when_the_target_is_synced() {
    let volume = MemVolume::new();
    volume.create_dir_all_durable(&path("x/y")).expect("dirs");
    volume.create_dir_all_durable(&path("z")).expect("dirs");
    write(&volume, "x/y/a", b"1").sync().expect("sync");
    volume.rename(&path("x/y/a"), &path("z/b")).expect("rename");
    assert_eq!(lose(&volume).all_files(), []);
    volume.sync_dir(&path("z")).expect("sync");
    assert_eq!(lose(&volume).all_files(), [path("z/b")]);
}

/// A file is moved and moved back, and only the directory of its first name is synced.
#[test]
fn a_name_that_was_given_away_and_comes_back_is_safe_when_it_is_synced() {
    for again in ["moved back", "made anew"] {
        let volume = MemVolume::new();
        volume.create_dir_all_durable(&path("a")).expect("a directory");
        volume.create_dir_all_durable(&path("b")).expect("a directory");
        write(&volume, "a/x", b"x").sync().expect("synced");
        volume.sync_dir(&path("a")).expect("synced");
        volume.rename(&path("a/x"), &path("b/y")).expect("moved");
        match again {
            "moved back" => volume.rename(&path("b/y"), &path("a/x")).expect("moved"),
            _ => write(&volume, "a/x", b"x").sync().expect("synced"),
        }
        volume.sync_dir(&path("a")).expect("synced");
        for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn] {
            for seed in 0..20 {
                let after = volume.crash(&Rng::seeded(seed), policy);
                assert_eq!(after.read(&path("a/x")).expect("there"), b"x"[..], "{again}, {policy:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_directory_needs_its_own_name_synced() {
    let volume = MemVolume::new();
    volume.create_dir_all(&path("x/y")).expect("dirs");
    write(&volume, "x/y/a", b"1").sync().expect("sync");
    volume.sync_dir(&path("x/y")).expect("sync");
    volume.sync_dir(&path("x")).expect("sync");
    assert_eq!(lose(&volume).list(&FilePath::root()).expect("list"), []);
    volume.sync_dir(&FilePath::root()).expect("sync");
    assert_eq!(lose(&volume).read(&path("x/y/a")).expect("read"), b"1");
    volume.remove_dir_all(&path("x")).expect("remove");
    assert_eq!(lose(&volume).read(&path("x/y/a")).expect("read"), b"1");
    volume.sync_dir(&FilePath::root()).expect("sync");
    assert_eq!(lose(&volume).all_files(), []);
}

#[test]
fn publishing_is_atomic_at_every_call() {
    for stop in 0.. {
        let volume = MemVolume::new();
        volume.publish(&path("f"), b"old").expect("publish");
        volume.stop_after(stop);
        let done = volume.publish(&path("f"), b"new").is_ok();
        for seed in 0..20 {
            let after = volume.crash(&Rng::seeded(seed), CrashPolicy::TornWithHoles);
            let bytes = after.read(&path("f")).expect("one of the two is there");
            assert!(bytes == b"new" || (!done && bytes == b"old"), "stop {stop} seed {seed}: {bytes:?}");
        }
        if done {
            return;
        }
    }
}

#[test]
fn a_failed_sync_breaks_the_file_for_good() {
    let volume = MemVolume::new();
    let mut file = write(&volume, "a", b"1");
    volume.fail_sync(1, FaultKind::Io);
    assert!(file.sync().is_err());
    assert!(file.sync().is_err() && file.append(b"2").is_err() && file.flush().is_err());
    let mut other = write(&volume, "b", b"1");
    other.sync().expect("another file is not concerned");
}

#[test]
fn a_full_volume_refuses_and_goes_on_when_there_is_room() {
    let volume = MemVolume::new();
    volume.set_capacity(Some(4));
    let mut file = volume.create(&path("a")).expect("create");
    file.append(b"123456").expect("the buffer takes it");
    let error = file.sync().expect_err("no room");
    assert!(error.is_full(), "{error}");
    assert_eq!(volume.read(&path("a")).expect("read"), b"1234");
    assert_eq!(volume.free_bytes().expect("free"), Some(0));
    volume.set_capacity(None);
    file.sync().expect("sync");
    assert_eq!(volume.read(&path("a")).expect("read"), b"123456");
}

#[test]
fn calls_are_counted_named_and_failed() {
    let volume = MemVolume::new();
    volume.record_ops();
    volume.fail_op(2, FaultKind::TimedOut);
    volume.create_dir_all(&path("d")).expect("first call");
    let error = volume.stat(&path("d")).expect_err("second call");
    assert_eq!((error.kind(), error.to_string().contains('d')), (io::ErrorKind::TimedOut, true));
    volume.stat(&path("d")).expect("third call");
    assert_eq!(volume.op_count(), 3);
    assert_eq!(volume.op_log()[0], OpRecord { op: Op::CreateDirAll, path: path("d") });
    volume.put_file(&path("d/f"), b"\x00abc");
    volume.flip_bit(&path("d/f"), 0, 3);
    volume.truncate(&path("d/f"), 2);
    assert_eq!(volume.read(&path("d/f")).expect("read"), b"\x08a");
}

#[test]
fn a_snapshot_lives_its_own_life() {
    let volume = MemVolume::new();
    let mut file = write(&volume, "a", b"1");
    let copy = volume.snapshot();
    file.append(b"2").expect("append");
    file.sync().expect("sync");
    volume.sync_dir(&FilePath::root()).expect("sync");
    assert_eq!(copy.read(&path("a")).expect("read"), b"1");
    assert!(!lose(&copy).exists(&path("a")).expect("stat"));
}
