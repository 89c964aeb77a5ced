use super::Syncer;
use crate::{EntryKey, Error, Level, Log, LogOptions, Reader, SyncMode};
use base::{ManualClock, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::{FilePath, MemVolume, Volume};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

fn region(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn run(value: &[u8]) -> CellBuffer {
    let mut cells = CellBuffer::new();
    let spec = CellSpec {
        row: b"row",
        family: b"f",
        qualifier: b"q",
        timestamp: 1,
        type_code: CellType::Put.code(),
        value,
        tags: b"",
    };
    cells.push_spec(&spec, SeqId(0));
    cells
}

fn open(volume: &MemVolume, options: LogOptions) -> Arc<Log> {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    Log::create(Arc::new(volume.clone()), FilePath::new("WALs/h,1,2"), "h,1,2", options, clock).expect("create")
}

fn append(log: &Arc<Log>, name: &Arc<str>, seq: u64, value: &[u8]) -> crate::Result<crate::Ticket> {
    let key = EntryKey::new(name, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
    let cells = run(value);
    log.append(&key, cells.bytes(), cells.len())
}

fn read(volume: &dyn Volume, path: &FilePath) -> Vec<u64> {
    let mut reader = Reader::open(volume, path).expect("open");
    std::iter::from_fn(|| reader.next().expect("next")).map(|entry| entry.key.seq_id.0).collect()
}

#[test]
fn names_are_hbases() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions { kind: ".meta", ..LogOptions::default() });
    assert_eq!(log.files()[0].path.as_str(), "WALs/h,1,2/h%2C1%2C2.meta.1700000000000.meta");
    append(&log, &region("r"), 1, b"v").expect("append");
    log.roll().expect("roll").expect("there was an entry");
    assert_eq!(log.files()[1].path.as_str(), "WALs/h,1,2/h%2C1%2C2.meta.1700000000001.meta", "the clock stood still");
}

#[test]
fn slow_syncs_have_it_go_on_in_a_new_file() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    append(&log, &region("r"), 1, b"v").expect("append").wait().expect("sync");
    assert!(!log.wants_roll());
    let options = log.options().slow_syncs;
    log.state.lock().slow_syncs.note(&options, options.roll_us + 1, 0);
    assert!(log.wants_roll());
    log.roll().expect("roll").expect("there was an entry");
    assert!(!log.wants_roll(), "the new file has had none");
    assert_eq!((log.stats().slow_sync_rolls, log.stats().size_rolls, log.stats().asked_rolls), (1, 0, 1));
}

#[test]
fn one_sync_serves_all_who_wait() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    let tickets: Vec<_> = (1..=10).map(|seq| append(&log, &region("r"), seq, b"v").expect("append")).collect();
    let calls = Arc::new(Mutex::new(Vec::new()));
    for (i, ticket) in tickets.iter().enumerate() {
        let calls = Arc::clone(&calls);
        ticket.on_done(move |outcome| calls.lock().push((i, outcome.is_ok())));
    }
    assert!(!tickets[0].is_done() && calls.lock().is_empty());
    tickets[3].wait().expect("sync");
    assert!(tickets.iter().all(|ticket| ticket.is_done()));
    assert_eq!(*calls.lock(), (0..10).map(|i| (i, true)).collect::<Vec<_>>());
    assert_eq!((log.stats().groups, log.stats().syncs), (1, 1));
    log.close().expect("close");
    let path = log.files()[0].path.clone();
    assert_eq!(read(&volume, &path), (1..=10).collect::<Vec<_>>());
    assert!(Reader::open(&volume, &path).expect("open").has_trailer());
    assert!(matches!(append(&log, &region("r"), 11, b"v"), Err(Error::Closed { .. })));
}

/// HBASE-22539: what is written is what was appended, although the call that brought it may long have gone on with its own buffer.
#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "entries changed between their append and their write"))]
fn f07_a_buffer_that_changes_before_it_is_written_is_noticed() {
    for byte in [40, 70] {
        let volume = MemVolume::new();
        let log = open(&volume, LogOptions::default());
        append(&log, &region("r"), 1, b"v").expect("append").wait().expect("sync");
        let ticket = append(&log, &region("r"), 2, b"some value").expect("append");
        log.state.lock().buffer[byte] ^= 0x10;
        ticket.wait().expect("only a debug build looks before it writes");
        append(&log, &region("r"), 3, b"v").expect("append").wait().expect("sync");
        // The reader always looks.
        let mut reader = Reader::open(&volume, &log.files()[0].path).expect("open");
        assert_eq!(reader.next().expect("whole").map(|entry| entry.key.seq_id.0), Some(1));
        assert!(matches!(reader.next(), Err(Error::Corrupt { .. })), "byte {byte}");
    }
}

#[test]
fn relaxed_mode_syncs_only_on_demand() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
    let first = append(&log, &region("r"), 1, b"v").expect("append");
    first.wait().expect("written");
    assert!(first.is_done() && !first.is_done_at(Level::Synced));
    assert_eq!(log.stats().syncs, 0);
    let second = append(&log, &region("r"), 2, b"v").expect("append");
    second.wait_for(Level::Synced).expect("synced");
    assert!(first.is_done_at(Level::Synced));
    let third = append(&log, &region("r"), 3, b"v").expect("append");
    third.wait().expect("written");
    third.wait_for(Level::Synced).expect("synced though it was written before");
    assert_eq!(log.stats().syncs, 2);
}

#[test]
fn a_failed_sync_moves_the_entries_to_a_fresh_file() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    append(&log, &region("r"), 1, b"v").expect("append").wait().expect("sync");
    let ticket = append(&log, &region("r"), 2, b"v").expect("append");
    volume.fail_sync(1, fs::mem::FaultKind::Io);
    ticket.wait().expect("durable in the fresh file");
    append(&log, &region("r"), 3, b"v").expect("append").wait().expect("sync");
    let files = log.files();
    assert_eq!((files.len(), log.stats().rescues), (2, 1));
    assert_eq!(read(&volume, &files[1].path), [2, 3]);
    let after = volume.crash(&base::Rng::seeded(1), fs::CrashPolicy::LoseUnsynced);
    assert_eq!(read(&after, &files[0].path), [1]);
    assert_eq!(read(&after, &files[1].path), [2, 3]);
    // Both files are needed until the region is flushed.
    log.close().expect("close");
    assert_eq!(log.archivable(), []);
    log.begin_flush("r", &[b"f"]);
    log.complete_flush("r", SeqId(3));
    assert_eq!(log.archive_flushed().expect("archive").len(), 2);
}

#[test]
fn two_failed_syncs_in_a_row_are_the_end() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    let ticket = append(&log, &region("r"), 1, b"v").expect("append");
    let outcome = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&outcome);
    ticket.on_done(move |o| *seen.lock() = Some(o));
    // The first fails the group, the second is that of the fresh file's header and the third would be the group's again.
    volume.fail_sync(1, fs::mem::FaultKind::Io);
    volume.fail_sync(3, fs::mem::FaultKind::Io);
    let error = ticket.wait().expect_err("twice");
    assert!(!error.is_full() && error.to_string().contains("must stop"), "{error}");
    assert!(outcome.lock().as_ref().is_some_and(Result::is_err));
    assert!(matches!(append(&log, &region("r"), 2, b"v"), Err(Error::Failed(_))));
    assert!(log.failure().is_some() && log.roll().is_err() && log.close().is_err());
}

#[test]
fn a_full_disk_is_waited_out() {
    for capacity in [0, 150, 250] {
        let volume = MemVolume::new();
        let log = open(&volume, LogOptions::default());
        let ticket = append(&log, &region("r"), 1, &[7; 300]).expect("append");
        volume.set_capacity(Some(capacity));
        let error = ticket.wait().expect_err("no room");
        assert!(error.is_full() && !ticket.is_done(), "{error}");
        assert!(matches!(append(&log, &region("r"), 2, b"v"), Err(Error::Full { .. })));
        assert!(log.sync_once().expect_err("still no room").is_full() && log.is_stalled());
        volume.set_capacity(None);
        log.sync_once().expect("room");
        assert!(ticket.is_done() && !log.is_stalled());
        append(&log, &region("r"), 2, b"v").expect("append").wait().expect("sync");
        assert_eq!(read(&volume, &log.files()[0].path), [1, 2]);
        assert_eq!(log.files().len(), 1, "the file was never in doubt");
    }
}

#[test]
fn a_failed_sync_on_a_full_disk_waits_for_a_home() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    let ticket = append(&log, &region("r"), 1, b"v").expect("append");
    volume.fail_sync(1, fs::mem::FaultKind::Full);
    volume.inject(fs::mem::Fault {
        op: Some(fs::mem::Op::Create),
        path_contains: None,
        nth: 1,
        kind: fs::mem::FaultKind::Full,
        forever: false,
    });
    assert!(ticket.wait().expect_err("no home").is_full());
    ticket.wait().expect("a home");
    assert_eq!(read(&volume, &log.files()[1].path), [1]);
}

#[test]
fn a_roll_meets_a_full_disk_or_a_failed_sync() {
    for kind in [fs::mem::FaultKind::Full, fs::mem::FaultKind::Io] {
        for nth in 1..12 {
            let volume = MemVolume::new();
            let log = open(&volume, LogOptions::default());
            append(&log, &region("r"), 1, b"v").expect("append").wait().expect("sync");
            let ticket = append(&log, &region("r"), 2, b"v").expect("append");
            volume.fail_op(nth, kind);
            let _ = log.roll();
            volume.clear_faults();
            assert!(log.failure().is_none(), "one fault is survived: {kind:?} {nth}");
            append(&log, &region("r"), 3, b"v")
                .or_else(|_| {
                    log.sync_once()?;
                    append(&log, &region("r"), 3, b"v")
                })
                .expect("append")
                .wait()
                .expect("sync");
            assert!(ticket.is_done());
            let mut all: Vec<u64> = log.files().iter().flat_map(|file| read(&volume, &file.path)).collect();
            all.dedup();
            assert_eq!(all, [1, 2, 3], "{kind:?} {nth}");
            log.close().expect("close");
            log.region_closed("r");
            let count = log.files().len();
            assert_eq!(log.archive_flushed().expect("archive").len(), count);
        }
    }
}

/// An unsynced log has acknowledged as written what no sync has seen yet. A roll that a full disk interrupted ends later; what is then synced in the
/// new file must not be said to be safe with all before it while the old file is not.
#[test]
fn a_relaxed_roll_that_met_a_full_disk_syncs_the_old_file_before_the_new_one_counts() {
    for fails in [false, true] {
        let volume = MemVolume::new();
        let log = open(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
        let ticket = append(&log, &region("r"), 1, &[7; 300]).expect("append");
        volume.inject(fs::mem::Fault {
            op: Some(fs::mem::Op::Flush),
            path_contains: None,
            nth: 1,
            kind: fs::mem::FaultKind::Full,
            forever: false,
        });
        assert!(log.roll().expect_err("the old file cannot be ended").is_full());
        log.sync_once().expect("room again");
        assert!(ticket.is_done(), "written, and the new file waits");
        if fails {
            volume.fail_sync(1, fs::mem::FaultKind::Io);
        }
        let synced = append(&log, &region("r"), 2, b"v").and_then(|ticket| Ok(ticket.wait_for(Level::Synced)?));
        assert_eq!(synced.is_err(), fails, "{synced:?}");
        let after = volume.crash(&base::Rng::seeded(1), fs::CrashPolicy::LoseUnsynced);
        let left: Vec<u64> = log.files().iter().flat_map(|file| read(&after, &file.path)).collect();
        assert!(left.is_empty() || left == [1, 2], "no hole: {left:?}");
        assert_eq!(left.is_empty(), fails);
        assert_eq!(log.failure().is_some(), fails, "what was acknowledged as written may be gone");
    }
}

#[test]
fn files_are_archived_when_their_edits_are_flushed() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    append(&log, &region("a"), 1, b"v").expect("append");
    let rolled = log.roll().expect("roll").expect("entries");
    assert_eq!(log.roll().expect("roll"), None, "nothing to roll");
    append(&log, &region("a"), 2, b"v").expect("append");
    append(&log, &region("b"), 1, b"v").expect("append");
    log.roll().expect("roll").expect("entries");
    assert_eq!(log.archivable(), []);
    assert_eq!(log.regions_to_flush(2), []);
    let to_flush = log.regions_to_flush(1);
    assert_eq!((to_flush.len(), &*to_flush[0].region, &to_flush[0].families), (1, "a", &vec![b"f".to_vec()]));
    assert_eq!(log.begin_flush("a", &[b"f"]), None);
    assert_eq!(log.archivable(), []);
    log.complete_flush("a", SeqId(2));
    assert_eq!(log.archivable(), std::slice::from_ref(&rolled.old));
    let moved = log.archive_flushed().expect("archive");
    assert_eq!(moved, [FilePath::new("oldWALs").join(rolled.old.name())]);
    assert_eq!(read(&volume, &moved[0]), [1]);
    log.region_closed("b");
    assert_eq!(log.archive_flushed().expect("archive").len(), 1);
    assert_eq!(log.files().len(), 1);
}

#[test]
fn too_much_waiting_is_refused_or_synced_by_the_appender() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions { max_waiting_bytes: 1000, ..LogOptions::default() });
    for seq in 1..100 {
        append(&log, &region("r"), seq, &[1; 100]).expect("the appender makes room itself");
        assert!(log.stats().waiting_bytes <= 1000);
    }
    append(&log, &region("r"), 100, &[1; 5000]).expect("a large one goes alone");
}

/// The end of the log may come between the wish and the roll.
fn roll_unless_closed(log: &Log) {
    match log.roll() {
        Ok(_) | Err(Error::Closed { .. }) => {}
        Err(error) => panic!("roll: {error}"),
    }
}

#[test]
fn many_threads_one_log() {
    for with_syncer in [false, true] {
        let volume = MemVolume::new();
        let log =
            open(&volume, LogOptions { roll_size_bytes: 4000, max_waiting_bytes: 1 << 20, ..LogOptions::default() });
        std::thread::scope(|scope| {
            let syncer = with_syncer.then(|| scope.spawn(|| log.run_syncer()));
            let roller = scope.spawn(|| {
                while log.wait_roll_wanted() {
                    roll_unless_closed(&log);
                }
            });
            let writers: Vec<_> = (0..8)
                .map(|t| {
                    let log = &log;
                    scope.spawn(move || {
                        let name = region(&format!("r{t}"));
                        for seq in 1..=200 {
                            let ticket = append(log, &name, seq, b"v").expect("append");
                            if seq % 3 == 0 {
                                ticket.wait().expect("sync");
                            }
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|w| w.join().expect("writer"));
            log.close().expect("close");
            roller.join().expect("roller");
            if let Some(syncer) = syncer {
                syncer.join().expect("syncer").expect("closed in order");
            }
        });
        let mut counts = std::collections::BTreeMap::new();
        for file in log.files() {
            let mut reader = Reader::open(&volume, &file.path).expect("open");
            assert!(reader.has_trailer());
            while let Some(entry) = reader.next().expect("next") {
                let last = counts.entry(entry.key.region).or_insert(0);
                assert_eq!(entry.key.seq_id.0, *last + 1);
                *last += 1;
            }
        }
        assert_eq!(counts.values().copied().collect::<Vec<u64>>(), [200; 8]);
    }
}

#[test]
fn damage_before_synced_bytes_is_an_error_and_a_torn_end_is_not() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    for seq in 1..=5 {
        append(&log, &region("r"), seq, b"some value").expect("append").wait().expect("sync");
    }
    let path = log.files()[0].path.clone();
    let (whole, mut offsets) = (volume.read(&path).expect("read"), Vec::new());
    let mut reader = Reader::open(&volume, &path).expect("open");
    while let Some(entry) = reader.next().expect("next") {
        offsets.push(entry.offset as usize);
    }
    for at in offsets[0]..whole.len() {
        for bit in 0..8 {
            let damaged = volume.snapshot();
            damaged.flip_bit(&path, at as u64, bit);
            let entry = offsets.iter().filter(|o| **o <= at).count() - 1;
            let mut reader = Reader::open(&damaged, &path).expect("open");
            for expected in 0..entry {
                let got = reader.next().expect("before the damage").expect("an entry");
                assert_eq!(got.key.seq_id.0, expected as u64 + 1);
            }
            match reader.next() {
                // The last entry: nothing behind it says that it was there.
                Ok(None) => assert_eq!(entry, 4, "byte {at} bit {bit}"),
                Ok(Some(entry)) => panic!("byte {at} bit {bit}: {entry:?} was believed"),
                Err(Error::Corrupt { offset, .. }) => assert_eq!(offset as usize, offsets[entry]),
                Err(error) => panic!("byte {at} bit {bit}: {error}"),
            }
        }
    }
    // Once closed in order, the last entry is guarded too.
    log.close().expect("close");
    volume.flip_bit(&path, whole.len() as u64 - 2, 0);
    let mut reader = Reader::open(&volume, &path).expect("open");
    (0..4).for_each(|_| assert!(reader.next().expect("good").is_some()));
    assert!(matches!(reader.next(), Err(Error::Corrupt { .. })));
}

#[test]
fn a_read_that_fails_is_not_the_end() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    append(&log, &region("r"), 1, b"v").expect("append").wait().expect("sync");
    let path = log.files()[0].path.clone();
    for kind in [fs::mem::FaultKind::TimedOut, fs::mem::FaultKind::ShortRead, fs::mem::FaultKind::Io] {
        for nth in 1..20 {
            volume.fail_op(nth, kind);
            let outcome = Reader::open(&volume, &path).and_then(|mut reader| {
                let first = reader.next()?.map(|entry| entry.key.seq_id.0);
                Ok((first, reader.next()?.is_none()))
            });
            volume.clear_faults();
            match outcome {
                Ok(seen) => assert_eq!(seen, (Some(1), true)),
                Err(Error::Io(_)) => {}
                Err(error) => panic!("{kind:?} {nth}: {error}"),
            }
        }
    }
}

#[test]
fn a_file_without_a_whole_header_has_no_entries() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    append(&log, &region("r"), 1, b"v").expect("append").wait().expect("sync");
    let path = log.files()[0].path.clone();
    let whole = volume.read(&path).expect("read");
    for cut in 0..=crate::header::encode(true).len() {
        for bytes in [whole[..cut].to_vec(), vec![0; cut]] {
            volume.put_file(&path, &bytes);
            let mut reader = Reader::open(&volume, &path).expect("open");
            assert!(reader.next().expect("the end").is_none(), "{cut}");
        }
    }
    volume.put_file(&path, b"something else entirely");
    assert!(matches!(Reader::open(&volume, &path), Err(Error::Corrupt { .. })));
}

#[test]
fn entries_that_came_during_a_failed_sync_follow_the_moved_ones() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    append(&log, &region("r"), 1, b"v").expect("append").wait().expect("sync");
    let ticket = append(&log, &region("r"), 2, b"v").expect("append");
    let again = Arc::clone(&log);
    // Written comes before synced: here is the moment between the two.
    ticket.on_done_at(Level::Written, move |_| {
        append(&again, &region("r"), 3, b"v").expect("append");
    });
    volume.fail_sync(1, fs::mem::FaultKind::Io);
    ticket.wait().expect("moved");
    assert!(log.stats().waiting_bytes > 0);
    log.close().expect("close");
    assert_eq!(read(&volume, &log.files()[1].path), [2, 3]);
}

#[test]
fn entries_moved_by_a_roll_hold_their_new_file_back() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    append(&log, &region("a"), 1, b"v").expect("append");
    // The first sync is that of the new file's header, the second the group's.
    volume.fail_sync(2, fs::mem::FaultKind::Io);
    log.roll().expect("roll").expect("entries");
    assert_eq!(log.stats().rescues, 1);
    append(&log, &region("b"), 1, b"v").expect("append");
    log.roll().expect("roll").expect("entries");
    let files = log.files();
    assert_eq!(read(&volume, &files[1].path), [1, 1]);
    log.region_closed("b");
    assert_eq!(log.archivable(), [], "region a is not flushed");
    log.region_closed("a");
    assert_eq!(log.archivable().len(), 2);
}

fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn who_pushes_writes_on_its_own_thread_and_leaves_syncs_to_the_syncer() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
    std::thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        until(|| log.state.lock().syncer == Syncer::Waiting);
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut tickets = Vec::new();
        for seq in 1..=3 {
            let name = region("r");
            let key = EntryKey::new(&name, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
            let cells = run(b"v");
            let ticket = log.append_deferred(&key, cells.bytes(), cells.len()).expect("append");
            let sender = sender.clone();
            ticket.on_done_deferred(Level::Written, move |outcome| {
                sender.send((std::thread::current().id(), outcome.is_ok())).expect("heard");
            });
            tickets.push(ticket);
        }
        assert!(receiver.try_recv().is_err(), "nobody has begun");
        log.write_pending();
        let here = std::thread::current().id();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(here, true); 3]);
        assert_eq!((log.stats().groups, log.stats().syncs), (1, 0));
        assert!(log.state.lock().syncer == Syncer::Waiting, "it slept all the time");
        tickets[0].on_done_at(Level::Synced, move |outcome| {
            sender.send((std::thread::current().id(), outcome.is_ok())).expect("heard");
        });
        let (who, done) = receiver.recv().expect("synced");
        assert!(done && who == syncer.thread().id());
        log.close().expect("close");
    });
}

#[test]
fn the_answers_to_a_group_are_given_within_one_call_on_the_syncer() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions::default());
    let (calls, is_answering) = (AtomicUsize::new(0), std::sync::Arc::new(AtomicBool::new(false)));
    std::thread::scope(|scope| {
        let syncer = scope.spawn(|| {
            log.run_syncer_answering(|answer| {
                calls.fetch_add(1, SeqCst);
                is_answering.store(true, SeqCst);
                answer();
                is_answering.store(false, SeqCst);
            })
        });
        until(|| log.state.lock().syncer == Syncer::Waiting);
        let (sender, receiver) = std::sync::mpsc::channel();
        for seq in 1..=3 {
            let name = region("r");
            let key = EntryKey::new(&name, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
            let cells = run(b"v");
            let ticket = log.append_deferred(&key, cells.bytes(), cells.len()).expect("append");
            let (sender, is_answering) = (sender.clone(), is_answering.clone());
            ticket.on_done_deferred(Level::Synced, move |outcome| {
                sender.send((is_answering.load(SeqCst), outcome.is_ok())).expect("heard");
            });
        }
        drop(sender);
        log.write_pending();
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [(true, true); 3]);
        log.close().expect("close");
        syncer.join().expect("the syncer").expect("it ends well");
    });
    assert_eq!(calls.load(SeqCst), 1, "one group");
}

#[test]
fn no_entry_is_left_lying_when_many_push() {
    for sync_mode in [SyncMode::Written, SyncMode::Synced] {
        let volume = MemVolume::new();
        let log = open(&volume, LogOptions { sync_mode, roll_size_bytes: 4000, ..LogOptions::default() });
        std::thread::scope(|scope| {
            scope.spawn(|| log.run_syncer());
            let roller = scope.spawn(|| {
                while log.wait_roll_wanted() {
                    roll_unless_closed(&log);
                }
            });
            until(|| log.state.lock().syncer != Syncer::Absent);
            let writers: Vec<_> = (0..4)
                .map(|t| {
                    let log = &log;
                    scope.spawn(move || {
                        let name = region(&format!("r{t}"));
                        for seq in 1..=400 {
                            let key = EntryKey::new(&name, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
                            let cells = run(b"v");
                            let ticket = log.append_deferred(&key, cells.bytes(), cells.len()).expect("append");
                            let level = if seq % 9 == 0 { Level::Synced } else { log.default_level() };
                            let (sender, receiver) = std::sync::mpsc::sync_channel(1);
                            ticket.on_done_deferred(level, move |outcome| sender.send(outcome).expect("heard"));
                            log.write_pending();
                            let outcome = receiver.recv_timeout(std::time::Duration::from_secs(60));
                            outcome.expect("somebody does it").expect("and it succeeds");
                            assert!(ticket.is_done_at(level));
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|w| w.join().expect("writer"));
            log.close().expect("close");
            roller.join().expect("roller");
        });
        let all: usize = log.files().iter().map(|file| read(&volume, &file.path).len()).sum();
        assert_eq!(all, 1600);
    }
}

/// Two writers were answered together; when one comes back, the sync waits for the other, and one sync serves both again.
#[test]
fn a_sync_waits_for_those_who_shared_the_last_one() {
    let volume = MemVolume::new();
    // Seconds, where it ends as soon as both are there.
    let log = open(&volume, LogOptions { commit_delay_percent: 1000, ..LogOptions::default() });
    let (sender, receiver) = std::sync::mpsc::channel();
    let write = |seq| {
        let name = region("r");
        let key = EntryKey::new(&name, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
        let cells = run(b"v");
        let ticket = log.append_deferred(&key, cells.bytes(), cells.len()).expect("append");
        let sender = sender.clone();
        ticket.on_done_deferred(Level::Synced, move |outcome| sender.send(outcome.is_ok()).expect("heard"));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| log.run_syncer());
        until(|| log.state.lock().syncer == Syncer::Waiting);
        write(1);
        write(2);
        log.write_pending();
        assert_eq!([receiver.recv(), receiver.recv()], [Ok(true), Ok(true)]);
        until(|| log.state.lock().syncer == Syncer::Waiting);
        log.state.lock().commit_delay.sync_us = 1_000_000;
        write(3);
        log.write_pending();
        until(|| log.state.lock().commit_delay.waits_for == 2);
        assert!(receiver.try_recv().is_err(), "it waits");
        write(4);
        log.write_pending();
        assert_eq!([receiver.recv(), receiver.recv()], [Ok(true), Ok(true)]);
        assert_eq!((log.stats().syncs, log.stats().commit_delays), (2, 1));
        // The other does not come.
        until(|| log.state.lock().syncer == Syncer::Waiting);
        log.state.lock().commit_delay.sync_us = 1_000;
        write(5);
        log.write_pending();
        assert_eq!(receiver.recv(), Ok(true));
        assert_eq!((log.stats().syncs, log.stats().commit_delays_in_vain), (3, 1));
        log.close().expect("close");
    });
}

/// However the holder of a batch leaves, its entries are written, all in one group.
#[test]
fn a_batch_that_is_dropped_is_written() {
    let volume = MemVolume::new();
    let log = open(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
    std::thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        until(|| log.state.lock().syncer == Syncer::Waiting);
        let (name, cells) = (region("r"), run(b"v"));
        let append = |batch: &mut crate::Batch, seq| {
            let key = EntryKey::new(&name, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
            batch.append(&key, cells.bytes(), cells.len()).expect("append")
        };
        let forgetful = || -> Result<(), &str> {
            let mut batch = log.batch();
            append(&mut batch, 1);
            append(&mut batch, 2);
            Err("it meets an error before it is done")
        };
        forgetful().expect_err("as it says");
        assert_eq!((log.stats().groups, log.stats().owed_bytes), (1, 0));
        // One that leaves its entries to a larger one.
        let outer = log.batch();
        let mut inner = log.batch();
        let ticket = append(&mut inner, 3);
        inner.leave_pending();
        assert_eq!((log.stats().groups, ticket.is_done()), (1, false));
        drop(outer);
        assert_eq!((log.stats().groups, ticket.is_done()), (2, true));
        log.close().expect("closed");
        syncer.join().expect("no panic").expect("no failure");
    });
}
