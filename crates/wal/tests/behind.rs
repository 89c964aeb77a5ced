//! What makes a later sync short is done by the syncer, and the sync of a file that ends by whoever rolls, while others go on writing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};

use basalt_wal::{EntryKey, Level, Log, LogOptions, SyncMode, Ticket};
use base::{ManualClock, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::{Appender, Behind, DirEntry, FilePath, MemVolume, ReadAt, Volume};

/// A volume in memory that notes who does what early.
#[derive(Clone, Default)]
struct Noting {
    inner: MemVolume,
    /// Who let pages go, and how many bytes were unsynced then.
    behind: Arc<Mutex<Vec<(ThreadId, u64)>>>,
    log: Arc<OnceLock<Arc<Log>>>,
    /// The next sync of what a file of more than a MiB holds is that of a roll.
    rolls: Arc<AtomicBool>,
    /// That one fails.
    fails: Arc<AtomicBool>,
    /// So many writes to come see another entry arrive.
    to_follow: Arc<AtomicUsize>,
    followers: Arc<Mutex<Vec<Ticket>>>,
    /// Held by a test, keeps the syncer at its writeback.
    slow: Arc<Mutex<()>>,
    /// What a write heard that asked to be synced meanwhile.
    answered: Arc<Mutex<Vec<bool>>>,
}

impl Volume for Noting {
    fn open(&self, path: &FilePath) -> fs::Result<Arc<dyn ReadAt>> {
        self.inner.open(path)
    }
    fn create(&self, path: &FilePath) -> fs::Result<Box<dyn Appender>> {
        Ok(Box::new(NotingAppender { inner: self.inner.create(path)?, volume: self.clone() }))
    }
    fn rename(&self, from: &FilePath, to: &FilePath) -> fs::Result<()> {
        self.inner.rename(from, to)
    }
    fn rename_new(&self, from: &FilePath, to: &FilePath) -> fs::Result<()> {
        self.inner.rename_new(from, to)
    }
    fn capabilities(&self) -> fs::Capabilities {
        self.inner.capabilities()
    }
    fn temporary_name(&self, name: &str) -> String {
        self.inner.temporary_name(name)
    }
    fn remove_file(&self, path: &FilePath) -> fs::Result<()> {
        self.inner.remove_file(path)
    }
    fn remove_dir_all(&self, path: &FilePath) -> fs::Result<()> {
        self.inner.remove_dir_all(path)
    }
    fn create_dir_all(&self, path: &FilePath) -> fs::Result<()> {
        self.inner.create_dir_all(path)
    }
    fn list(&self, path: &FilePath) -> fs::Result<Vec<DirEntry>> {
        self.inner.list(path)
    }
    fn stat(&self, path: &FilePath) -> fs::Result<Option<DirEntry>> {
        self.inner.stat(path)
    }
    fn sync_dir(&self, path: &FilePath) -> fs::Result<()> {
        self.inner.sync_dir(path)
    }
}

struct NotingAppender {
    inner: Box<dyn Appender>,
    volume: Noting,
}

impl Appender for NotingAppender {
    fn append(&mut self, bytes: &[u8]) -> fs::Result<()> {
        self.inner.append(bytes)
    }
    fn flush(&mut self) -> fs::Result<()> {
        if self.volume.to_follow.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            // Somebody else, who leaves his entry to the one who writes.
            let log = self.volume.log.get().expect("a log that is written");
            let ticket = append(log, 2, b"during a write");
            log.write_pending();
            assert!(!ticket.is_done());
            self.volume.followers.lock().expect("no panic").push(ticket);
        }
        self.inner.flush()
    }
    fn sync(&mut self) -> fs::Result<()> {
        // The file that ends, and once: its trailer follows.
        if self.inner.position() > 1 << 20 && self.volume.rolls.swap(false, SeqCst) {
            let log = self.volume.log.get().expect("a log that is rolled");
            let ticket = append(log, 2, b"meanwhile");
            log.write_pending();
            assert!(ticket.is_done(), "nobody is held up");
            let synced = append(log, 3, b"to be synced");
            let volume = self.volume.clone();
            synced.on_done_at(Level::Synced, move |outcome| {
                volume.answered.lock().expect("no panic").push(outcome.is_ok())
            });
            assert!(!synced.is_done_at(Level::Synced) && self.volume.answered.lock().expect("no panic").is_empty());
            if self.volume.fails.load(SeqCst) {
                return Err(fs::Error::new("sync", &FilePath::new("the old one"), std::io::Error::other("gone")));
            }
        }
        self.inner.sync()
    }
    fn position(&self) -> u64 {
        self.inner.position()
    }
    fn hints(&mut self) -> Option<&mut dyn fs::AppendHints> {
        Some(self)
    }
}

impl fs::AppendHints for NotingAppender {
    fn behind(&mut self) -> Option<Behind> {
        let volume = self.volume.clone();
        Some(Box::new(move || {
            let unsynced = volume.log.get().expect("a log that is written").stats().waiting_bytes;
            volume.behind.lock().expect("no panic").push((thread::current().id(), unsynced));
            drop(volume.slow.lock());
        }))
    }
}

fn append(log: &Arc<Log>, seq: u64, value: &[u8]) -> Ticket {
    append_to(log, seq, value).expect("room")
}

fn append_to(log: &Arc<Log>, seq: u64, value: &[u8]) -> basalt_wal::Result<Ticket> {
    let region: Arc<str> = Arc::from("r");
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
    let key = EntryKey::new(&region, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
    let mut batch = log.batch();
    let appended = batch.append(&key, cells.bytes(), cells.len());
    batch.leave_pending();
    appended
}

fn scene(sync_mode: SyncMode, fails: bool) {
    let volume = Noting::default();
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let options = LogOptions { sync_mode, ..LogOptions::default() };
    let dir = FilePath::new("WALs/h,1,2");
    let log = Log::create(Arc::new(volume.clone()), dir, "h,1,2", options, clock).expect("created");
    assert!(volume.log.set(log.clone()).is_ok());
    thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        // Until there is a syncer nothing is pushed.
        let first = append(&log, 1, &vec![7; 2 << 20]);
        while !first.is_done() {
            log.write_pending();
            thread::yield_now();
        }
        while volume.behind.lock().expect("no panic").is_empty() {
            thread::yield_now();
        }
        let (who, unsynced) = volume.behind.lock().expect("no panic")[0];
        assert_eq!(who, syncer.thread().id());
        match sync_mode {
            SyncMode::Written => assert!(!first.is_done_at(Level::Synced)),
            SyncMode::Synced => assert_eq!(unsynced, 0, "all are answered"),
        }
        if sync_mode == SyncMode::Synced {
            log.roll().expect("rolled").expect("there was something in it");
            log.close().expect("closed");
            return syncer.join().expect("the syncer").expect("it ends well");
        }
        volume.rolls.store(true, SeqCst);
        volume.fails.store(fails, SeqCst);
        let rolled = log.roll();
        assert!(!volume.rolls.load(SeqCst), "the old file was synced");
        if fails {
            // Promised as written, and now nobody knows: that is for recovery.
            let error = rolled.expect_err("what was promised may be gone").to_string();
            assert!(error.contains("the old one"), "{error}");
            assert!(log.failure().is_some() && append_to(&log, 4, b"never").is_err());
            syncer.join().expect("the syncer").expect_err("the server stops");
        } else {
            rolled.expect("rolled").expect("there was something in it");
            assert!(first.is_done_at(Level::Synced));
            log.close().expect("closed");
            syncer.join().expect("the syncer").expect("it ends well");
        }
        assert_eq!(*volume.answered.lock().expect("no panic"), [!fails]);
    });
}

#[test]
fn who_writes_does_not_ask_for_writeback_and_a_roll_holds_up_nobody_with_what_is_unsynced() {
    scene(SyncMode::Written, false);
}

#[test]
fn a_file_that_ended_and_cannot_be_synced_is_the_end_of_the_log_for_all_who_wrote_meanwhile() {
    scene(SyncMode::Written, true);
}

#[test]
fn entries_are_not_left_to_a_syncer_that_waits_for_writeback() {
    let volume = Noting::default();
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let options = LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() };
    let log = Log::create(Arc::new(volume.clone()), FilePath::new("WALs/h,1,2"), "h,1,2", options, clock);
    let log = log.expect("created");
    assert!(volume.log.set(log.clone()).is_ok());
    thread::scope(|scope| {
        let slow = volume.slow.lock().expect("no panic");
        let syncer = scope.spawn(|| log.run_syncer());
        let first = append(&log, 1, &vec![7; 2 << 20]);
        while !first.is_done() || volume.behind.lock().expect("no panic").is_empty() {
            log.write_pending();
            thread::yield_now();
        }
        // The syncer is at its writeback until `slow` is let go.
        volume.to_follow.store(20, SeqCst);
        append(&log, 2, b"the first of many");
        log.write_pending();
        let followers = volume.followers.lock().expect("no panic");
        assert!(followers.len() == 20 && followers.iter().all(Ticket::is_done), "nobody would come for them");
        drop((slow, followers));
        log.close().expect("closed");
        syncer.join().expect("the syncer").expect("it ends well");
    });
}

#[test]
fn a_synced_group_is_answered_before_its_pages_are_let_go() {
    scene(SyncMode::Synced, false);
}
