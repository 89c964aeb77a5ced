//! An unsynced log goes on in its next file while the one before is being synced. The power fails just then, and whatever is left of the two
//! files, what recovery takes from them has no hole.

use crate::common::{directories, edits_dir, region_dir};
use basalt_wal::{
    EntryKey, Error, Level, Log, LogOptions, Reader, SplitOptions, SyncMode, Ticket, quarantine_orphaned_log,
    recovered_edits, split_directory,
};
use base::{ManualClock, Rng, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::mem::Op;
use fs::{CrashPolicy, FilePath, MemVolume, Volume};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

const WAL_DIR: &str = "WALs/h,1,2";
/// Entries of the old file; so many of them were synced early.
const OLD: u64 = 6;
const SYNCED: u64 = 2;
/// Entries of both.
const ALL: u64 = 10;

fn append(log: &Arc<Log>, seq: u64) -> Ticket {
    let region: Arc<str> = Arc::from("r");
    let value = vec![seq as u8; 300];
    let mut cells = CellBuffer::new();
    let (row, type_code) = (b"row", CellType::Put.code());
    let spec = CellSpec { row, family: b"f", qualifier: b"q", timestamp: 1, type_code, value: &value, tags: b"" };
    cells.push_spec(&spec, SeqId(0));
    let key = EntryKey::new(&region, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
    log.append(&key, cells.bytes(), cells.len()).expect("room")
}

fn relaxed_log(volume: &MemVolume) -> Arc<Log> {
    let options = LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() };
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    Log::create(Arc::new(volume.clone()), FilePath::new(WAL_DIR), "h,1,2", options, clock).expect("created")
}

/// When the power fails.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fails {
    /// While the old file is being synced, with entries in the new one.
    DuringSync,
    /// As soon as it is synced, before its trailer is written.
    BeforeTrailer,
}

/// A volume whose power has failed in the middle of a roll, and the tickets of what was written meanwhile.
fn failed_in_a_roll(fails: Fails) -> (MemVolume, Vec<Ticket>) {
    let volume = MemVolume::new();
    volume.create_dir_all_durable(&region_dir("t", "r")).expect("dirs");
    let log = relaxed_log(&volume);
    for seq in 1..=OLD {
        let level = if seq == SYNCED { Level::Synced } else { Level::Written };
        append(&log, seq).wait_for(level).expect("done");
    }
    let (waits, meanwhile) = (AtomicBool::new(true), Arc::<Mutex<Vec<Ticket>>>::default());
    let (old, writer, off, tickets) = (log.files()[0].path.clone(), log.clone(), volume.clone(), meanwhile.clone());
    volume.watch(Some(Arc::new(move |op, path| {
        if op != Op::Sync || *path != old || !waits.swap(false, SeqCst) {
            return;
        }
        for seq in OLD + 1..=ALL {
            let ticket = append(&writer, seq);
            ticket.wait_for(Level::Written).expect("nobody is held up");
            tickets.lock().expect("no panic").push(ticket);
        }
        off.stop_after(match fails {
            Fails::DuringSync => 0,
            Fails::BeforeTrailer => 1,
        });
    })));
    let rolled = log.roll();
    volume.watch(None);
    assert_eq!(rolled.is_ok(), fails == Fails::BeforeTrailer);
    let tickets = std::mem::take(&mut *meanwhile.lock().expect("no panic"));
    assert_eq!(tickets.len() as u64, ALL - OLD);
    (volume, tickets)
}

fn recover(volume: &MemVolume) -> basalt_wal::Result<()> {
    let mut target = directories(volume);
    let (wal_dir, archive) = (FilePath::new(WAL_DIR), FilePath::new("oldWALs"));
    split_directory(volume, &wal_dir, &archive, &mut target, &SplitOptions::default()).map(drop)
}

/// Ids that recovery found, in its order.
fn recovered(volume: &MemVolume) -> Vec<u64> {
    let mut ids = Vec::new();
    for (_, path) in recovered_edits(volume, &edits_dir("t", "r")).expect("list") {
        let mut reader = Reader::open(volume, &path).expect("open");
        while let Some(entry) = reader.next().expect("whole") {
            ids.push(entry.key.seq_id.0);
        }
    }
    ids
}

fn logs(volume: &MemVolume) -> Vec<FilePath> {
    let dir = FilePath::new(WAL_DIR);
    volume.list(&dir).expect("list").iter().map(|entry| dir.join(&entry.name)).collect()
}

#[test]
fn what_follows_a_lost_end_does_not_count() {
    let (failed, _) = failed_in_a_roll(Fails::DuringSync);
    let (mut cut_short, mut all) = (0, 0);
    for seed in 0..300 {
        let policy = [CrashPolicy::Torn, CrashPolicy::TornWithHoles, CrashPolicy::KeepAll][seed as usize % 3];
        let left = failed.crash(&Rng::seeded(seed), policy);
        let kept = left.list(&FilePath::new(WAL_DIR)).expect("list").len();
        assert_eq!(kept, 2, "the names are durable before the files are used");
        recover(&left).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let found = recovered(&left);
        let whole: Vec<u64> = (1..=found.len() as u64).collect();
        assert!(found == whole && found.len() as u64 >= SYNCED, "seed {seed}, {policy:?}: {found:?}");
        cut_short += u64::from((found.len() as u64) < OLD);
        all += u64::from(found.len() as u64 == ALL);
    }
    assert!(cut_short > 50 && all > 50, "both must be met: {cut_short}, {all}");
}

/// The log that does not count goes before the other one may: else it would look as if it did.
#[test]
fn a_recovery_that_is_broken_off_finds_the_same_again() {
    let (failed, _) = failed_in_a_roll(Fails::DuringSync);
    // The old file has lost its end, the new one is all there.
    let left = failed.crash(&Rng::seeded(0), CrashPolicy::KeepAll);
    let old = &logs(&left)[0];
    let bytes = left.read(old).expect("read");
    left.put_file(old, &bytes[..bytes.len() - 500]);
    for stop in 0.. {
        let first = left.snapshot();
        first.stop_after(stop);
        let done = recover(&first).is_ok();
        for (policy, seed) in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn].into_iter().zip(0..)
        {
            let again = first.crash(&Rng::seeded(stop * 3 + seed), policy);
            recover(&again).unwrap_or_else(|error| panic!("stop {stop}: {error}"));
            assert_eq!(recovered(&again), [1, 2, 3, 4], "stop {stop}, {policy:?}");
        }
        if done {
            return;
        }
    }
}

#[test]
fn what_follows_a_synced_file_counts_with_or_without_its_trailer() {
    let (failed, tickets) = failed_in_a_roll(Fails::BeforeTrailer);
    assert!(tickets.iter().all(|ticket| !ticket.is_done_at(Level::Synced)));
    for seed in 0..60 {
        let left = failed.crash(&Rng::seeded(seed), CrashPolicy::Torn);
        recover(&left).expect("recovered");
        let found = recovered(&left);
        assert!(found.len() as u64 >= OLD && found.len() as u64 <= ALL, "seed {seed}: {found:?}");
    }
    let left = failed.crash(&Rng::seeded(1), CrashPolicy::KeepAll);
    assert_eq!(quarantine_orphaned_log(&left, &FilePath::new(WAL_DIR), &FilePath::new("oldWALs")).expect("read"), None);
    recover(&left).expect("recovered");
    assert_eq!(recovered(&left), (1..=ALL).collect::<Vec<_>>());
}

/// With every edit of it in store files the old file goes to the archive; what follows counts by itself.
#[test]
fn what_follows_a_file_that_is_gone_counts() {
    let (failed, _) = failed_in_a_roll(Fails::DuringSync);
    let left = failed.crash(&Rng::seeded(0), CrashPolicy::KeepAll);
    left.remove_file(&logs(&left)[0]).expect("removed");
    recover(&left).expect("recovered");
    assert_eq!(recovered(&left), (OLD + 1..=ALL).collect::<Vec<_>>());
}

/// The next file says that the old one was on the disk, all of it: then a lost end is damage, and named.
#[test]
fn a_lost_end_that_was_on_the_disk_is_damage() {
    let volume = MemVolume::new();
    volume.create_dir_all_durable(&region_dir("t", "r")).expect("dirs");
    let log = relaxed_log(&volume);
    let (waits, old, writer) = (AtomicBool::new(true), log.files()[0].path.clone(), log.clone());
    append(&log, 1).wait_for(Level::Written).expect("done");
    append(&log, 2).wait_for(Level::Written).expect("done");
    let during = old.clone();
    volume.watch(Some(Arc::new(move |op, path| {
        if op == Op::Sync && *path == during && waits.swap(false, SeqCst) {
            append(&writer, 3).wait_for(Level::Written).expect("nobody is held up");
        }
    })));
    log.roll().expect("rolled").expect("there was something in it");
    volume.watch(None);
    append(&log, 4).wait_for(Level::Written).expect("done");
    let bytes = volume.read(&old).expect("read");
    volume.put_file(&old, &bytes[..bytes.len() - 20]);
    let (before, error) = (logs(&volume), recover(&volume).expect_err("two bytes are missing"));
    assert!(matches!(&error, Error::Corrupt { path, .. } if *path == old), "{error}");
    assert!(error.to_string().contains("all of them on the disk"), "{error}");
    assert_eq!(logs(&volume), before, "nothing was moved");
}
