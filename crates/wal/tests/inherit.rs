//! A new log takes over the files of a server that was killed.

use crate::common::{directories, edits_dir, one_cell, region_dir};
use basalt_wal::{EntryKey, Gathered, HoldBudget, Inherited, Log, LogOptions, ReadLog, gather, recovered_edits};
use base::{ManualClock, SeqId, TimestampMs};
use fs::{FilePath, MemVolume, Volume};
use std::sync::Arc;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(1_700_000_000_000))
}

fn append(log: &Arc<Log>, table: &str, region: &str, seq_id: u64) {
    let cells = one_cell();
    let region = Arc::from(region);
    let key = EntryKey::new(&region, table, SeqId(seq_id), TimestampMs(5), &[b"f"]);
    log.append(&key, cells.bytes(), 1).expect("append").wait().expect("synced");
}

/// The logs of a server that was killed: two files, of the regions `a` (1, 4), `b` (2) and `gone` (3), whose directory is not there.
fn killed() -> MemVolume {
    let volume = MemVolume::new();
    for region in ["a", "b"] {
        volume.create_dir_all(&region_dir("t", region)).expect("a directory");
    }
    let dir = FilePath::new("WALs/old,1,1");
    let log = Log::create(Arc::new(volume.clone()), dir, "old,1,1", LogOptions::default(), clock()).expect("a log");
    append(&log, "t", "a", 1);
    append(&log, "t", "b", 2);
    append(&log, "t", "gone", 3);
    log.roll().expect("rolled");
    append(&log, "t", "a", 4);
    volume
}

fn read(volume: &MemVolume, budget_bytes: u64) -> Option<Gathered> {
    let dir = FilePath::new("WALs/old,1,1");
    let budget = HoldBudget::new(budget_bytes);
    let names = volume.list(&dir).expect("listed").into_iter().map(|entry| dir.join(&entry.name));
    let logs: Option<Vec<ReadLog>> = names
        .map(|path| ReadLog::read(volume, &path, &budget, TimestampMs(0), &|_| true).expect("an unbroken log"))
        .collect();
    let mut target = directories(volume);
    gather(logs?, &mut target).expect("regions can be asked for")
}

/// A new log with what the old one left.
fn heir(volume: &MemVolume) -> Arc<Log> {
    let dir = FilePath::new("WALs/new,1,2");
    let log = Log::create(Arc::new(volume.clone()), dir, "new,1,2", LogOptions::default(), clock()).expect("a log");
    log.adopt_recovered(read(volume, 1 << 20).expect("it fits").others);
    log
}

fn ids(inherited: Inherited) -> Vec<u64> {
    let Inherited::Edits(edits) = inherited else { panic!("{inherited:?}") };
    edits.iter().map(|edit| edit.seq_id.0).collect()
}

fn edits_in_files(volume: &MemVolume, region: &str) -> Vec<u64> {
    let files = recovered_edits(volume, &edits_dir("t", region)).expect("listed");
    files.into_iter().map(|(last, _)| last.0).collect()
}

fn flush(log: &Log, region: &str, upto: u64) {
    log.begin_flush(region, &[b"f"]);
    log.complete_flush(region, SeqId(upto));
}

#[test]
fn files_stay_until_every_region_has_flushed_what_it_took() {
    let volume = killed();
    let log = heir(&volume);
    assert_eq!(ids(log.take_inherited("a", false, &mut directories(&volume)).expect("a")), [1, 4]);
    assert_eq!(ids(log.take_inherited("b", false, &mut directories(&volume)).expect("b")), [2]);
    assert!(
        matches!(log.take_inherited("gone", false, &mut directories(&volume)), Ok(Inherited::Nothing)),
        "it has no directory"
    );
    assert!(log.archivable().is_empty(), "nobody has said what became of the edits");
    log.keep_inherited(&Arc::from("a"), &[(b"f", SeqId(1))]);
    // All of it is in store files.
    log.keep_inherited(&Arc::from("b"), &[]);
    assert!(log.archivable().is_empty(), "1 and 4 are in memory");
    append(&log, "t", "a", 5);
    assert_eq!(log.lowest_unflushed("a"), Some(SeqId(1)), "new edits do not hide the old");
    flush(&log, "a", 5);
    let moved = log.archive_flushed().expect("archived");
    assert_eq!(moved.len(), 2);
    assert!(moved.iter().all(|path| path.as_str().starts_with("oldWALs/old")), "{moved:?}");
    assert!(!volume.exists(&FilePath::new("WALs/old,1,1")).expect("seen"), "the last file takes the directory with it");
}

#[test]
fn a_region_that_is_not_opened_finds_its_edits_in_files() {
    let volume = killed();
    let log = heir(&volume);
    assert_eq!(ids(log.take_inherited("a", false, &mut directories(&volume)).expect("a")), [1, 4]);
    assert_eq!(log.write_out_inherited(&mut directories(&volume)).expect("written"), 1);
    assert_eq!(edits_in_files(&volume, "b"), [2]);
    assert!(edits_in_files(&volume, "a").is_empty(), "it is being opened");
    assert!(matches!(log.take_inherited("b", false, &mut directories(&volume)), Ok(Inherited::Nothing)));
    log.keep_inherited(&Arc::from("a"), &[(b"f", SeqId(1))]);
    flush(&log, "a", 4);
    assert_eq!(log.archive_flushed().expect("archived").len(), 2);
}

#[test]
fn an_opening_that_failed_leaves_its_edits_to_the_next_in_files() {
    let volume = killed();
    let log = heir(&volume);
    assert_eq!(ids(log.take_inherited("a", false, &mut directories(&volume)).expect("a")), [1, 4]);
    assert!(matches!(log.take_inherited("a", false, &mut directories(&volume)), Ok(Inherited::Written)));
    assert_eq!(edits_in_files(&volume, "a"), [1, 4], "one file of each log");
    log.keep_inherited(&Arc::from("a"), &[(b"f", SeqId(1))]);
    assert_eq!(log.lowest_unflushed("a"), None, "what is in files is not held");
}

#[test]
fn a_full_disk_loses_nothing_of_what_is_to_be_written_out() {
    let volume = killed();
    let log = heir(&volume);
    volume.set_capacity(Some(0));
    log.write_out_inherited(&mut directories(&volume)).expect_err("no room");
    assert!(log.archivable().is_empty());
    volume.set_capacity(None);
    assert_eq!(ids(log.take_inherited("a", false, &mut directories(&volume)).expect("still held")), [1, 4]);
    assert!(matches!(log.take_inherited("b", true, &mut directories(&volume)), Ok(Inherited::Written)));
    assert_eq!(edits_in_files(&volume, "b"), [2]);
}

#[test]
fn too_much_for_memory_is_left_to_files() {
    assert!(read(&killed(), 100).is_none());
}

#[test]
fn a_log_of_hbase_meta_with_another_tables_entries_is_left_to_files() {
    let volume = killed();
    let name = volume.list(&FilePath::new("WALs/old,1,1")).expect("listed")[0].name.clone();
    let dir = FilePath::new("WALs/old,1,1");
    volume.rename(&dir.join(&name), &dir.join(format!("{name}.meta"))).expect("renamed");
    assert!(read(&volume, 1 << 20).is_none(), "its region would look in the other log");
}
