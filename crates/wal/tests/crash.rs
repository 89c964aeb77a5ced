//! The machine stops at every call on the volume; what was not synced is lost, torn or full of holes; a sync may have failed before. Then the
//! logs are split, perhaps with another crash on the way, and the regions' recovered edits are read: every acknowledged entry is
//! there, nothing is there that was not written.
//!
//! Replay one run: `BASALT_SEED=<seed> cargo test -p basalt-wal --test main crash::`. More runs: `BASALT_LONG_TESTS=1`.

use crate::common::{Directories, directories, edits_dir};
use basalt_wal::{
    EntryKey, Level, Log, LogOptions, Reader, SplitOptions, SyncMode, Ticket, recovered_edits, split_directory,
};
use base::{ManualClock, Rng, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::mem::{Fault, FaultKind, Op};
use fs::{CrashPolicy, FilePath, MemVolume, Volume};
use std::collections::BTreeMap;
use std::sync::Arc;

const REGIONS: [&str; 3] = ["r0", "r1", "r2"];
const WAL_DIR: &str = "WALs/h,1,2";

fn region_dir(name: &str) -> FilePath {
    crate::common::region_dir("t", name)
}

fn value(region: usize, seq: u64, seed: u64) -> Vec<u8> {
    let rng = Rng::seeded(seed ^ (region as u64) << 32 ^ seq);
    let len = if rng.one_in(5) { rng.below(3000) } else { rng.below(60) };
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

#[derive(Default)]
struct Journal {
    sync_mode: SyncMode,
    appended: BTreeMap<(usize, u64), Option<Ticket>>,
    flushed: BTreeMap<usize, u64>,
    finished: bool,
}

impl Journal {
    /// What must be there after a crash: of an unsynced log with the machine only what was asked to be synced.
    fn acknowledged(&self, policy: CrashPolicy) -> impl Iterator<Item = (usize, u64)> {
        let relaxed = self.sync_mode == SyncMode::Written && policy == CrashPolicy::KeepAll;
        let level = if relaxed { Level::Written } else { Level::Synced };
        let acknowledged = move |ticket: &Option<Ticket>| ticket.as_ref().is_some_and(|t| t.is_done_at(level));
        self.appended.iter().filter(move |(_, ticket)| acknowledged(ticket)).map(|(id, _)| *id)
    }
}

/// What a server does with its log, until something fails.
fn workload(volume: &MemVolume, seed: u64, journal: &mut Journal) -> basalt_wal::Result<()> {
    let rng = Rng::seeded(seed);
    let names: Vec<Arc<str>> = REGIONS.iter().map(|name| Arc::from(*name)).collect();
    let options = LogOptions { max_waiting_bytes: 20_000, sync_mode: journal.sync_mode, ..LogOptions::default() };
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let log = Log::create(Arc::new(volume.clone()), FilePath::new(WAL_DIR), "h,1,2", options, clock)?;
    let mut next = [1u64; REGIONS.len()];
    for step in 0..24 {
        let r = rng.below(REGIONS.len() as u64) as usize;
        match rng.below(12) {
            0 => {
                log.roll()?;
            }
            1 => {
                // A flush: what the region has is in store files, of which this test has none but a number.
                if log.begin_flush(REGIONS[r], &[b"f"]).is_none() && !rng.one_in(4) {
                    log.complete_flush(REGIONS[r], SeqId(next[r] - 1));
                    journal.flushed.insert(r, next[r] - 1);
                } else {
                    log.abort_flush(REGIONS[r]);
                }
            }
            2 => {
                log.archive_flushed()?;
            }
            _ => {
                let (seq, bytes) = (next[r], value(r, next[r], seed));
                let mut cells = CellBuffer::new();
                let (row, type_code) = (REGIONS[r].as_bytes(), CellType::Put.code());
                let spec =
                    CellSpec { row, family: b"f", qualifier: b"q", timestamp: 1, type_code, value: &bytes, tags: b"" };
                cells.push_spec(&spec, SeqId(0));
                let key = EntryKey::new(&names[r], "t", SeqId(seq), TimestampMs(step), &[b"f"]);
                next[r] += 1;
                journal.appended.insert((r, seq), None);
                let ticket = log.append(&key, cells.bytes(), 1)?;
                journal.appended.insert((r, seq), Some(ticket.clone()));
                if rng.one_in(2) {
                    ticket.wait()?;
                } else if journal.sync_mode == SyncMode::Written && rng.one_in(3) {
                    ticket.wait_for(Level::Synced)?;
                }
            }
        }
    }
    if rng.one_in(2) {
        log.close()?;
    }
    journal.finished = true;
    Ok(())
}

fn prepared() -> MemVolume {
    let volume = MemVolume::new();
    for name in REGIONS {
        volume.create_dir_all_durable(&region_dir(name)).expect("dirs");
    }
    volume
}

fn split(volume: &MemVolume, journal: &Journal, worker: &str, buffer_bytes: usize) -> basalt_wal::Result<()> {
    let flushed = |name: &str| {
        let r = REGIONS.iter().position(|n| *n == name).expect("a region of the test");
        journal.flushed.get(&r).map(|seq| SeqId(*seq))
    };
    let mut target = Directories { volume, flushed };
    let options = SplitOptions { buffer_bytes, worker: worker.to_owned(), ..SplitOptions::default() };
    let (wal_dir, archive) = (FilePath::new(WAL_DIR), FilePath::new("oldWALs"));
    split_directory(volume, &wal_dir, &archive, &mut target, &options).map(|_| ())
}

/// `once`: no entry may be there twice, which only an interrupted split may cause.
fn check(volume: &MemVolume, journal: &Journal, seed: u64, once: bool, policy: CrashPolicy, what: &str) {
    for (r, name) in REGIONS.iter().enumerate() {
        let mut found = BTreeMap::new();
        for (last, path) in recovered_edits(volume, &edits_dir("t", name)).expect("list") {
            let mut reader = Reader::open(volume, &path).expect("open");
            assert!(reader.has_trailer(), "{what}: {path} is not whole");
            let mut highest = SeqId(0);
            while let Some(entry) = reader.next().unwrap_or_else(|e| panic!("{what}: {e}")) {
                let cell = entry.cells.iter().next().expect("a cell");
                let seq = entry.key.seq_id;
                assert_eq!((&*entry.key.region, cell.row()), (*name, name.as_bytes()), "{what}");
                assert!(journal.appended.contains_key(&(r, seq.0)), "{what}: {name} {seq} was invented");
                assert!(cell.value() == value(r, seq.0, seed), "{what}: {name} {seq} has another value");
                let twice = found.insert(seq.0, ()).is_some();
                assert!(!(once && twice), "{what}: {name} {seq} is there twice");
                highest = highest.max(seq);
            }
            assert_eq!(highest, last, "{what}: {path}");
        }
        let flushed = journal.flushed.get(&r).copied().unwrap_or(0);
        for (region, seq) in journal.acknowledged(policy).filter(|(region, seq)| *region == r && *seq > flushed) {
            assert!(found.contains_key(&seq), "{what}: region {region} lost the acknowledged entry {seq}");
        }
    }
}

const POLICIES: [CrashPolicy; 4] =
    [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];

fn seeds(few: u64) -> std::ops::Range<u64> {
    if let Some(seed) = std::env::var("BASALT_SEED").ok().and_then(|s| s.parse().ok()) {
        return seed..seed + 1;
    }
    0..if std::env::var_os("BASALT_LONG_TESTS").is_some() { few * 30 } else { few }
}

/// Stops the workload at every call; `fault` may add a failure before.
fn stop_everywhere(seed: u64, sync_mode: SyncMode, fault: impl Fn(&MemVolume, u64)) {
    for stop in 0.. {
        let (volume, mut journal) = (prepared(), Journal { sync_mode, ..Journal::default() });
        fault(&volume, stop);
        volume.stop_after(stop);
        let _ = workload(&volume, seed, &mut journal);
        for (i, policy) in POLICIES.into_iter().enumerate() {
            let what = format!("seed {seed}, stop {stop}, {policy:?}");
            let after = volume.crash(&Rng::seeded(seed.wrapping_mul(1000) + stop * 4 + i as u64), policy);
            split(&after, &journal, "w", 1 << 20).unwrap_or_else(|e| panic!("{what}: {e}"));
            check(&after, &journal, seed, true, policy, &what);
            assert!(!after.exists(&FilePath::new(WAL_DIR)).expect("stat"), "{what}");
        }
        // An unsynced log whose sync failed ends; other stops come with other failures, so some more are tried.
        let ended = sync_mode == SyncMode::Written && stop > 80 && !volume.is_stopped();
        if journal.finished || ended {
            return;
        }
        assert!(stop < 2000, "the workload does not end");
    }
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_machine_stops() {
    for seed in seeds(12) {
        stop_everywhere(seed, SyncMode::Synced, |_, _| {});
    }
}

/// An unsynced log: when the process dies all is there that was handed to the operating system, when the machine does all that was synced.
#[test]
fn an_unsynced_log_loses_nothing_that_was_promised_wherever_it_stops() {
    for seed in seeds(24) {
        stop_everywhere(seed, SyncMode::Written, |_, _| {});
    }
}

#[test]
fn nor_after_failed_syncs_and_writes() {
    for seed in seeds(24) {
        let sync_mode = if seed % 2 == 0 { SyncMode::Synced } else { SyncMode::Written };
        stop_everywhere(seed, sync_mode, |volume, stop| {
            let rng = Rng::seeded(seed * 7919 + stop);
            for op in [Op::Sync, Op::Flush, Op::Append, Op::SyncDir] {
                let kind = if rng.one_in(3) { FaultKind::Full } else { FaultKind::Io };
                volume.inject(Fault {
                    op: Some(op),
                    path_contains: None,
                    nth: 1 + rng.below(12),
                    kind,
                    forever: false,
                });
            }
        });
    }
}

/// The split is stopped at every call and done again, by the same worker or another, with much or little memory.
#[test]
fn a_split_may_be_interrupted_anywhere_and_repeated() {
    for seed in seeds(6) {
        let (volume, mut journal) = (prepared(), Journal::default());
        let _ = workload(&volume, seed, &mut journal);
        let crashed = volume.crash(&Rng::seeded(seed), CrashPolicy::TornWithHoles);
        for buffer_bytes in [1 << 20, 1500] {
            for stop in 0.. {
                let first = crashed.snapshot();
                first.stop_after(stop);
                let done = split(&first, &journal, "one", buffer_bytes).is_ok();
                for policy in POLICIES {
                    let what = format!("seed {seed}, split stopped at {stop}, buffer {buffer_bytes}, {policy:?}");
                    let again = first.crash(&Rng::seeded(seed * 31 + stop), policy);
                    let worker = if stop % 2 == 0 { "one" } else { "two" };
                    split(&again, &journal, worker, 1 << 20).unwrap_or_else(|e| panic!("{what}: {e}"));
                    check(&again, &journal, seed, false, CrashPolicy::LoseUnsynced, &what);
                }
                if done {
                    break;
                }
            }
        }
    }
}

/// A worker that was thought dead goes on after another has done the work (HBASE-28951).
#[test]
fn two_workers_at_once_do_no_harm() {
    for seed in seeds(6) {
        let (volume, mut journal) = (prepared(), Journal::default());
        let _ = workload(&volume, seed, &mut journal);
        for stop in (0..60).step_by(3) {
            // The first stands still in the middle of the log; the second does everything; the first goes on.
            let volume = volume.snapshot();
            let wal = FilePath::new(WAL_DIR);
            let logs = volume.list(&wal).expect("list");
            volume.inject(Fault { op: None, path_contains: None, nth: stop + 1, kind: FaultKind::Io, forever: false });
            for log in &logs {
                let _ = one_file(&volume, &wal.join(&log.name), &journal, "one");
            }
            volume.clear_faults();
            for log in &logs {
                one_file(&volume, &wal.join(&log.name), &journal, "two").expect("split");
            }
            for log in &logs {
                one_file(&volume, &wal.join(&log.name), &journal, "one").expect("split");
            }
            check(&volume, &journal, seed, false, CrashPolicy::LoseUnsynced, &format!("seed {seed}, stop {stop}"));
        }
    }
}

fn one_file(volume: &MemVolume, wal: &FilePath, journal: &Journal, worker: &str) -> basalt_wal::Result<()> {
    let flushed = |name: &str| {
        let r = REGIONS.iter().position(|n| *n == name).expect("a region of the test");
        journal.flushed.get(&r).map(|seq| SeqId(*seq))
    };
    let mut target = Directories { volume, flushed };
    let options = SplitOptions { worker: worker.to_owned(), ..SplitOptions::default() };
    basalt_wal::split_file(volume, wal, &mut target, &options).map(|_| ())
}

#[test]
fn a_region_that_is_gone_stays_gone() {
    let (volume, mut journal) = (prepared(), Journal::default());
    workload(&volume, 3, &mut journal).expect("workload");
    volume.remove_dir_all(&region_dir("r1")).expect("remove");
    split(&volume, &journal, "w", 1 << 20).expect("split");
    assert!(!volume.exists(&region_dir("r1")).expect("stat"));
    assert!(!recovered_edits(&volume, &edits_dir("t", "r0")).expect("list").is_empty());
}

/// What is found does not depend on how many threads write it; and with memory for all of a log there is one file of each region.
#[test]
fn several_threads_write_what_one_writes() {
    for seed in 0..20 {
        let (volume, mut journal) = (prepared(), Journal::default());
        workload(&volume, seed, &mut journal).expect("workload");
        let wal_dir = FilePath::new(WAL_DIR);
        let logs = volume.list(&wal_dir).expect("list");
        for buffer_bytes in [1, 2000, 1 << 20] {
            let of = |writers: usize| {
                let volume = volume.crash(&base::Rng::seeded(seed), CrashPolicy::KeepAll);
                for log in &logs {
                    let options = SplitOptions { buffer_bytes, writers, ..SplitOptions::default() };
                    let wal = wal_dir.join(&log.name);
                    let report =
                        basalt_wal::split_file(&volume, &wal, &mut directories(&volume), &options).expect("split");
                    assert!(buffer_bytes < 1 << 20 || report.files.len() <= REGIONS.len(), "seed {seed}: {report:?}");
                }
                let mut found = Vec::new();
                for name in REGIONS {
                    let left = volume.list(&edits_dir("t", name)).unwrap_or_default();
                    assert!(left.iter().all(|entry| !entry.name.ends_with(".temp")), "seed {seed}: {left:?}");
                    for (_, path) in recovered_edits(&volume, &edits_dir("t", name)).expect("list") {
                        let mut reader = Reader::open(&volume, &path).expect("open");
                        while let Some(entry) = reader.next().expect("whole") {
                            found.push((name, entry.key.seq_id, entry.cells.bytes().to_vec()));
                        }
                    }
                }
                found.sort();
                found
            };
            let one = of(1);
            assert!(!one.is_empty(), "seed {seed}");
            assert_eq!(one, of(4), "seed {seed}, {buffer_bytes} bytes of buffer");
        }
    }
}

/// A damaged log stops the split, or is used up to the damage and set aside: as the operator said.
#[test]
fn a_damaged_log_is_never_passed_over_in_silence() {
    let (volume, mut journal) = (prepared(), Journal::default());
    workload(&volume, 5, &mut journal).expect("workload");
    let wal_dir = FilePath::new(WAL_DIR);
    let first = wal_dir.join(&volume.list(&wal_dir).expect("list")[0].name);
    volume.flip_bit(&first, 300, 1);
    let error = split(&volume, &journal, "w", 1 << 20).expect_err("damaged");
    assert!(matches!(&error, basalt_wal::Error::Corrupt { path, .. } if *path == first), "{error}");
    assert!(volume.exists(&first).expect("stat"));
    assert!(REGIONS.iter().all(|name| recovered_edits(&volume, &edits_dir("t", name)).expect("list").is_empty()));

    let mut target = directories(&volume);
    let options = SplitOptions { skip_errors: true, ..SplitOptions::default() };
    let report = split_directory(&volume, &wal_dir, &FilePath::new("oldWALs"), &mut target, &options).expect("split");
    assert_eq!((report.damaged.len(), &report.damaged[0].0), (1, &first));
    assert!(volume.exists(&FilePath::new("corrupt").join(first.name())).expect("stat"));
}
