//! Group commit under many schedules: writers that push the log, the syncer thread, rolls, a failing disk; see `base::sync`. Run by
//! `cargo xtask schedules`.

use basalt_wal::{EntryKey, Level, Log, LogOptions, Reader, SyncMode, Ticket};
use base::sync::{atomic::AtomicUsize, atomic::Ordering::SeqCst, explore, thread};
use base::{ManualClock, Rng, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::{CrashPolicy, FaultKind, FilePath, MemVolume, Volume};
use std::collections::BTreeSet;
use std::sync::Arc;

const DIR: &str = "WALs/h,1,2";

fn create(volume: &MemVolume, sync_mode: SyncMode) -> Arc<Log> {
    let options = LogOptions { sync_mode, ..LogOptions::default() };
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    Log::create(Arc::new(volume.clone()), FilePath::new(DIR), "h,1,2", options, clock).expect("create")
}

/// One region for each writer: a region's ids must come in order.
fn append(log: &Arc<Log>, writer: u64, number: u64) -> basalt_wal::Result<Ticket> {
    let mut cells = CellBuffer::new();
    let type_code = CellType::Put.code();
    let spec = CellSpec { row: b"row", family: b"f", qualifier: b"q", timestamp: 1, type_code, value: b"v", tags: b"" };
    cells.push_spec(&spec, SeqId(0));
    let region: Arc<str> = Arc::from(format!("r{writer}"));
    let key = EntryKey::new(&region, "t", SeqId(number), TimestampMs(5), &[b"f"]);
    let mut batch = log.batch();
    let appended = batch.append(&key, cells.bytes(), cells.len());
    batch.leave_pending();
    appended
}

/// Regions and ids in every log of the volume.
fn found(volume: &dyn Volume) -> BTreeSet<(String, u64)> {
    let mut found = BTreeSet::new();
    for dir in [DIR, "oldWALs"] {
        for file in volume.list(&FilePath::new(dir)).unwrap_or_default() {
            let mut reader = Reader::open(volume, &FilePath::new(dir).join(&file.name)).expect("open");
            while let Some(entry) = reader.next().expect("no damage") {
                found.insert((entry.key.region.to_string(), entry.key.seq_id.0));
            }
        }
    }
    found
}

/// Two writers of three entries each, every other one waited for and every other one promised; a syncer; perhaps a roll.
fn scene(sync_mode: SyncMode, rolls: bool, fault: Option<u64>) {
    let volume = MemVolume::new();
    let log = create(&volume, sync_mode);
    if let Some(nth) = fault {
        volume.fail_sync(nth, FaultKind::Io);
    }
    let told = Arc::new(AtomicUsize::new(0));
    let syncer = {
        let log = log.clone();
        thread::spawn(move || log.run_syncer())
    };
    let writers: Vec<_> = (0..2_u64)
        .map(|writer| {
            let (log, told, volume) = (log.clone(), told.clone(), volume.clone());
            thread::spawn(move || {
                for number in 1..=3 {
                    let ticket = append(&log, writer, number).expect("room");
                    let mine = (format!("r{writer}"), number);
                    if (writer + number) % 2 == 0 {
                        ticket.wait().expect("a log that can go on");
                        assert!(ticket.is_done());
                        let left = match ticket.default_level() {
                            Level::Synced => volume.crash(&Rng::seeded(1), CrashPolicy::LoseUnsynced),
                            Level::Written => volume.snapshot(),
                        };
                        assert!(found(&left).contains(&mine), "{mine:?} was promised");
                    } else {
                        let told = told.clone();
                        ticket.on_done_deferred(ticket.default_level(), move |outcome| {
                            outcome.expect("a log that can go on");
                            told.fetch_add(1, SeqCst);
                        });
                        log.write_pending();
                    }
                }
            })
        })
        .collect();
    if rolls {
        let rolled = log.roll();
        // A failed sync that meets the new file leaves the old one in use.
        assert!(rolled.is_ok() || fault.is_some(), "{rolled:?}");
    }
    writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
    // Whatever was promised is told by the one who did it; nobody else is left to do it but the syncer.
    let mut turns = 0;
    while told.load(SeqCst) < 3 {
        thread::yield_now();
        turns += 1;
        assert!(turns < 10_000, "an entry was left lying");
    }
    assert_eq!(told.load(SeqCst), 3);
    log.close().expect("closed");
    syncer.join().expect("the syncer").expect("it ends well");
    let all: BTreeSet<(String, u64)> = (0..2).flat_map(|w| (1..=3).map(move |n| (format!("r{w}"), n))).collect();
    assert_eq!(found(&volume), all);
}

#[test]
fn writers_that_push_and_a_syncer_leave_nothing_lying() {
    explore(|| scene(SyncMode::Written, false, None));
}

#[test]
fn synced_entries_are_on_the_disk_when_they_are_said_to_be() {
    explore(|| scene(SyncMode::Synced, false, None));
}

#[test]
fn a_roll_between_entries_loses_none() {
    explore(|| scene(SyncMode::Written, true, None));
    explore(|| scene(SyncMode::Synced, true, None));
}

/// A roll of an unsynced log leaves the old file to be synced while the next one is written. What is synced there means that all before is.
#[test]
fn what_is_synced_in_the_next_file_means_that_the_old_one_is() {
    explore(|| {
        let volume = MemVolume::new();
        let log = create(&volume, SyncMode::Written);
        let syncer = {
            let log = log.clone();
            thread::spawn(move || log.run_syncer())
        };
        let writer = {
            let (log, volume) = (log.clone(), volume.clone());
            thread::spawn(move || {
                for number in 1..=4 {
                    let ticket = append(&log, 0, number).expect("room");
                    log.write_pending();
                    if number % 2 == 0 {
                        ticket.wait_for(Level::Synced).expect("a log that can go on");
                        let left = found(&volume.crash(&Rng::seeded(1), CrashPolicy::LoseUnsynced));
                        let missing: Vec<u64> =
                            (1..=number).filter(|n| !left.contains(&("r0".to_owned(), *n))).collect();
                        assert!(
                            missing.is_empty(),
                            "{number} was said to be synced, and {missing:?} before it are not"
                        );
                    } else {
                        ticket.wait().expect("a log that can go on");
                    }
                }
            })
        };
        log.roll().expect("rolled");
        log.roll().expect("rolled");
        writer.join().expect("the writer");
        log.close().expect("closed");
        syncer.join().expect("the syncer").expect("it ends well");
    });
}

#[test]
fn a_failed_sync_moves_the_entries_and_breaks_no_promise() {
    explore(|| scene(SyncMode::Synced, false, Some(1)));
    explore(|| scene(SyncMode::Synced, true, Some(2)));
}

#[test]
fn without_a_syncer_the_waiters_do_it_themselves() {
    explore(|| {
        let volume = MemVolume::new();
        let log = create(&volume, SyncMode::Synced);
        let writers: Vec<_> = (0..3_u64)
            .map(|writer| {
                let log = log.clone();
                thread::spawn(move || {
                    for number in 1..=2 {
                        append(&log, writer, number).expect("room").wait().expect("synced");
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        assert_eq!(found(&volume.crash(&Rng::seeded(1), CrashPolicy::LoseUnsynced)).len(), 6);
    });
}
