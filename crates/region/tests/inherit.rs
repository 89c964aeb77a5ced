//! Regions take what a killed server had in its logs from the log that took these over.

use crate::common::*;
use basalt_region::{CloseMode, FlushRequest};
use base::{Config, Rng, SeqId};
use bytes::Bytes;
use cell::CellType;
use fs::mem::{Fault, Op};
use fs::{CrashPolicy, FaultKind, MemVolume, Volume};
use model::{RegionInfo, Scan, TableDescriptor};
use rootdir::recovered_edits::{DeletedFamily, max_seq_id_file};
use std::sync::Arc;

const START: i64 = 1_700_000_000_000;

fn table() -> Arc<TableDescriptor> {
    Arc::new(TableDescriptor::new(table_name(), [family("f"), family("g")]))
}

fn heir(volume: &MemVolume, life: u64) -> Server {
    let now_ms = START + i64::try_from(life).expect("small") * 1_000;
    Server::after(volume.clone(), now_ms, &Config::default(), life, true).expect("logs are read")
}

/// A life that writes these rows and is killed.
fn write_and_die(volume: &MemVolume, life: u64, rows: &[&str]) {
    let server = heir(volume, life);
    let region = server.open(&whole_table(), &table()).expect("it opens");
    for row in rows {
        write(&region, &[put(row, "f", "q", LATEST, row)]);
    }
}

fn rows(server: &Server) -> Vec<String> {
    let region = server.open(&whole_table(), &table()).expect("it opens");
    let rows = scan(&region, &Scan::default(), 0);
    rows.concat().iter().map(|cell| cell.split('/').next().expect("a row").to_owned()).collect()
}

fn lowest(server: &Server) -> Option<SeqId> {
    server.env.log.lowest_unflushed(whole_table().encoded_name())
}

#[test]
fn edits_are_back_without_a_file_being_written() {
    let volume = MemVolume::new();
    write_and_die(&volume, 1, &["a", "b"]);
    let server = heir(&volume, 2);
    assert_eq!(rows(&server), ["a", "b"]);
    let dir = rootdir::region_dir(&whole_table());
    assert!(!volume.exists(&dir.join("recovered.edits")).expect("seen"), "nothing went to files");
    assert!(lowest(&server).is_some(), "they are in memory only");
    // Killed again before any flush, and again.
    drop(server);
    write_and_die(&volume, 3, &["c"]);
    assert_eq!(rows(&heir(&volume, 4)), ["a", "b", "c"]);
}

#[test]
fn what_was_taken_over_goes_with_the_next_flush_and_its_logs_with_it() {
    let volume = MemVolume::new();
    write_and_die(&volume, 1, &["a"]);
    write_and_die(&volume, 2, &["b"]);
    let server = heir(&volume, 3);
    let region = server.open(&whole_table(), &table()).expect("it opens");
    assert_eq!(server.env.log.archive_flushed().expect("archived").len(), 0);
    write(&region, &[put("c", "f", "q", LATEST, "c")]);
    flush(&region);
    assert_eq!(lowest(&server), None);
    assert_eq!(server.env.log.archive_flushed().expect("archived").len(), 2);
    assert_eq!(volume.list(&rootdir::wals_dir()).expect("listed").len(), 1, "only the server's own is left");
    region.close(CloseMode::Flush).expect("closed");
    assert_eq!(rows(&server), ["a", "b", "c"]);
}

#[test]
fn a_log_with_lower_ids_that_is_read_later_is_not_released_too_soon() {
    let volume = MemVolume::new();
    // The clock went back: the second life's directory sorts before the first one's.
    write_and_die(&volume, 8, &["a", "b"]);
    write_and_die(&volume, 3, &["c"]);
    let names: Vec<String> = volume.list(&rootdir::wals_dir()).expect("listed").into_iter().map(|e| e.name).collect();
    assert!(names[0] < names[1] && names[0].contains("-3"), "{names:?}");
    let server = heir(&volume, 9);
    let region = server.open(&whole_table(), &table()).expect("it opens");
    let first = lowest(&server).expect("in memory");
    assert!(first < region.open_seq_id());
    let ids = |life: u64| {
        let dir = rootdir::wals_dir().join(names.iter().find(|name| name.ends_with(&format!("-{life}"))).expect("it"));
        let file = dir.join(&volume.list(&dir).expect("listed")[0].name);
        let mut reader = wal::Reader::open(&volume, &file).expect("a log");
        let data = std::iter::from_fn(|| reader.next().expect("whole")).filter(|entry| !entry.is_marker());
        data.map(|entry| entry.key.seq_id).collect::<Vec<_>>()
    };
    assert_eq!(Some(&first), ids(8).iter().min(), "of the first life; the second has {:?}", ids(3));
}

#[test]
fn an_opening_that_fails_after_it_took_its_edits_loses_none() {
    let volume = MemVolume::new();
    write_and_die(&volume, 1, &["a", "b"]);
    let server = heir(&volume, 2);
    // A log on a full disk takes no entry, and an opening ends with one.
    let log = &server.env.log;
    let region = whole_table();
    let key = wal::EntryKey::new(region.encoded_name(), "t", SeqId(1), base::TimestampMs(5), &[]);
    volume.set_capacity(Some(0));
    log.append(&key, &[], 0).expect("it waits");
    log.sync_once().expect_err("no room");
    server.open(&whole_table(), &table()).expect_err("the log is stalled");
    volume.set_capacity(None);
    log.sync_once().expect("there is room again");
    assert_eq!(rows(&server), ["a", "b"]);
}

#[test]
fn what_the_killed_server_had_not_synced_is_on_the_disk_before_it_is_served() {
    let volume = MemVolume::new();
    {
        let server = heir(&volume, 1);
        let region = server.open(&whole_table(), &table()).expect("it opens");
        write(&region, &[put("a", "f", "q", LATEST, "a")]);
        let applied = region.apply(&[put("b", "f", "q", LATEST, "b")]).expect("applied");
        // The entry is with the operating system when the process is killed, and its sync is not done.
        volume.inject(Fault {
            op: Some(Op::Sync),
            path_contains: None,
            nth: 1,
            kind: FaultKind::Stopped,
            forever: true,
        });
        applied.commit.wait().expect_err("not synced");
    }
    // The process was killed, and the machine goes on.
    let volume = volume.snapshot();
    let server = heir(&volume, 2);
    assert_eq!(rows(&server), ["a", "b"]);
    // Now the machine stops as well: who saw `b` must see it again.
    let volume = volume.crash(&Rng::seeded(1), CrashPolicy::LoseUnsynced);
    assert_eq!(rows(&heir(&volume, 3)), ["a", "b"]);
}

#[test]
fn a_store_file_whose_name_the_killed_server_had_not_synced_stays_when_its_log_goes() {
    let volume = MemVolume::new();
    {
        let server = heir(&volume, 1);
        let region = server.open(&whole_table(), &table()).expect("it opens");
        write(&region, &[put("a", "f", "q", LATEST, "a")]);
        for op in [Op::SyncDir, Op::RemoveFile] {
            let path_contains = Some("/f".to_owned());
            volume.inject(Fault { op: Some(op), path_contains, nth: 1, kind: FaultKind::Stopped, forever: true });
        }
        region.flush(&FlushRequest::default()).expect_err("the machine stops");
    }
    let volume = volume.snapshot();
    let server = heir(&volume, 2);
    assert_eq!(rows(&server), ["a"]);
    assert_eq!(lowest(&server), None, "it is in the file");
    assert_eq!(server.env.log.archive_flushed().expect("archived").len(), 1);
    for path in volume.list(&rootdir::old_wals_dir()).expect("listed") {
        volume.remove_file(&rootdir::old_wals_dir().join(&path.name)).expect("the cleaner may do so");
    }
    let volume = volume.crash(&Rng::seeded(1), CrashPolicy::LoseUnsynced);
    assert_eq!(rows(&heir(&volume, 3)), ["a"]);
}

/// Seed 400757 of the simulator: a log that was taken over held only a compaction's marker of a region, whose id was used again. Both
/// logs were then split, and what was written under that id was taken for the marker's file.
#[test]
fn ids_of_markers_in_what_was_taken_over_are_not_used_again() {
    let volume = MemVolume::new();
    let server = heir(&volume, 1);
    let region = server.open(&whole_table(), &table()).expect("it opens");
    let used = leave_a_marker(&server, &region);
    drop((server, region));
    for (life, writes) in (2..).zip(1..6) {
        let volume = volume.snapshot();
        let server = heir(&volume, life);
        let region = server.open(&whole_table(), &table()).expect("it opens");
        assert!(region.stats().max_seq_id >= used, "an id is used once");
        for number in 0..writes {
            write(&region, &[put(&format!("later{number}"), "f", "q", 1, "v")]);
        }
        drop((server, region));
        // Now all goes to files.
        let server = Server::try_on(volume.clone(), START + 60_000, &Config::default(), 60).expect("logs are split");
        assert_eq!(rows(&server).len(), 2 + writes, "after {writes} acknowledged writes");
    }
}

/// A note of a deleted family counts for the logs that there are, and no longer than until somebody opens or closes the region, who may be HBase.
#[test]
fn a_note_of_a_deleted_family_counts_once() {
    let volume = MemVolume::new();
    write_and_die(&volume, 1, &["old"]);
    let edits_dir = rootdir::region_dir(&whole_table()).join("recovered.edits");
    volume.create_dir_all(&edits_dir).expect("made");
    let note = DeletedFamily { dir: "f".to_owned(), closed_seq_id: SeqId(0) };
    let note_file = edits_dir.join(note.file_name());
    let leave_note = || volume.publish(&note_file, note.contents().as_bytes()).expect("written");
    leave_note();
    write_and_die(&volume, 2, &["new"]);
    assert!(!volume.exists(&note_file).expect("memory"));
    assert_eq!(rows(&heir(&volume, 3)), ["new"], "the log of the first life is there still");
    // It comes back when its time is over.
    leave_note();
    assert_eq!(rows(&heir(&volume, 4)), ["new"]);
    assert!(!volume.exists(&note_file).expect("memory"), "nobody needs it");
}

/// A truncation goes on after a kill, when the region was not closed: its files are gone, and so is what the logs have.
#[test]
fn what_a_killed_server_wrote_to_a_region_is_gone_when_it_is_truncated() {
    let volume = MemVolume::new();
    write_and_die(&volume, 1, &["old"]);
    let families = ["f".to_owned(), "g".to_owned()];
    for _ in 0..2 {
        rootdir::archive::truncate_region(&volume, &whole_table(), &families).expect("emptied");
    }
    write_and_die(&volume, 2, &["new"]);
    assert_eq!(rows(&heir(&volume, 3)), ["new"], "the log of the first life is there still");
}

/// The disk fails while a note goes away, and the region is opened at the next try: should the note be there again after a power failure, it
/// says nothing of what was written since.
#[test]
fn a_note_of_a_deleted_family_that_comes_back_does_not_count_again() {
    let edits_dir = rootdir::region_dir(&whole_table()).join("recovered.edits");
    let mut failed = 0;
    for nth in 1..5 {
        let volume = MemVolume::new();
        heir(&volume, 1).open(&whole_table(), &table()).expect("it opens").close(CloseMode::Flush).expect("closed");
        let names: Vec<String> = volume.list(&edits_dir).expect("listed").into_iter().map(|entry| entry.name).collect();
        let closed_seq_id = max_seq_id_file(names.iter().map(String::as_str)).expect("it was closed");
        let note = DeletedFamily { dir: "f".to_owned(), closed_seq_id };
        volume.publish(&edits_dir.join(note.file_name()), note.contents().as_bytes()).expect("written");
        let server = Server::try_on(volume.clone(), START + 2_000, &Config::default(), 2).expect("logs are split");
        let path_contains = Some("recovered.edits".to_owned());
        volume.inject(Fault { op: Some(Op::SyncDir), path_contains, nth, kind: FaultKind::Io, forever: false });
        failed += usize::from(server.open(&whole_table(), &table()).is_err());
        volume.clear_faults();
        let region = server.open(&whole_table(), &table()).expect("it opens");
        write(&region, &[put("new", "f", "q", LATEST, "new")]);
        let volume = volume.crash(&Rng::seeded(nth), CrashPolicy::LoseUnsynced);
        assert_eq!(rows(&heir(&volume, 3)), ["new"], "sync {nth} failed");
    }
    assert!(failed > 0, "no opening failed");
}

/// All that a flush finds has lived its time, and the log with a delete goes; should the clock go back, the put before it, whose log another
/// region holds, is still deleted.
#[test]
fn a_flush_of_expired_cells_says_up_to_where_it_was() {
    let volume = MemVolume::new();
    let table = Arc::new(TableDescriptor::new(table_name(), [family("f").with("TTL", "100")]));
    let other = RegionInfo::new(table_name(), Bytes::from("x"), Bytes::new(), 1_700_000_000_001);
    let server = heir(&volume, 1);
    let region = server.open(&whole_table(), &table).expect("it opens");
    let holding = server.open(&other, &table).expect("it opens");
    write(&holding, &[put("z", "f", "q", LATEST, "v")]);
    write(&region, &[put("a", "f", "q", LATEST, "v")]);
    server.env.log.roll().expect("rolled");
    write(&region, &[delete("a", "f", "q", LATEST, CellType::DeleteColumn)]);
    server.env.log.roll().expect("rolled");
    server.clock.advance_ms(1_000_000);
    flush(&region);
    assert_eq!(server.env.log.archive_flushed().expect("archived").len(), 1, "of the delete");
    drop((server, region, holding));
    let region = heir(&volume, 2).open(&whole_table(), &table).expect("it opens");
    assert_eq!(scan(&region, &Scan::default(), START).concat(), [""; 0]);
}

#[test]
fn a_file_that_is_no_note_of_a_deleted_family_hides_nothing() {
    let volume = MemVolume::new();
    write_and_die(&volume, 1, &["a"]);
    let edits_dir = rootdir::region_dir(&whole_table()).join("recovered.edits");
    volume.create_dir_all(&edits_dir).expect("made");
    volume.put_file(&edits_dir.join("f.deleted"), b"by hand");
    assert_eq!(rows(&heir(&volume, 2)), ["a"]);
}
