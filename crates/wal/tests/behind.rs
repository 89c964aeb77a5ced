//! What makes a later sync short is done by the syncer, and before a roll, while others go on writing.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
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
    written_meanwhile: Arc<AtomicUsize>,
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
    fn sync_ahead(&self, path: &FilePath) {
        assert!(self.inner.exists(path).expect("a volume in memory"), "the file that is to end");
        let log = self.log.get().expect("a log that is rolled");
        let ticket = append(log, 2, b"meanwhile");
        log.push();
        assert!(ticket.is_done(), "nobody is held up");
        self.written_meanwhile.fetch_add(1, SeqCst);
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
        self.inner.flush()
    }
    fn sync(&mut self) -> fs::Result<()> {
        self.inner.sync()
    }
    fn position(&self) -> u64 {
        self.inner.position()
    }
    fn behind(&mut self) -> Option<Behind> {
        let volume = self.volume.clone();
        Some(Box::new(move || {
            let unsynced = volume.log.get().expect("a log that is written").stats().waiting_bytes;
            volume.behind.lock().expect("no panic").push((thread::current().id(), unsynced));
        }))
    }
}

fn append(log: &Arc<Log>, seq: u64, value: &[u8]) -> Ticket {
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
    log.append_quietly(&key, cells.bytes(), cells.len()).expect("room")
}

fn scene(sync_mode: SyncMode) {
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
            log.push();
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
        log.roll().expect("rolled").expect("there was something in it");
        let ahead = usize::from(sync_mode == SyncMode::Written);
        assert_eq!(volume.written_meanwhile.load(SeqCst), ahead, "a log that is always synced needs nothing before");
        log.close().expect("closed");
        syncer.join().expect("the syncer").expect("it ends well");
    });
}

#[test]
fn who_writes_does_not_ask_for_writeback_and_a_roll_holds_up_nobody_with_what_is_unsynced() {
    scene(SyncMode::Written);
}

#[test]
fn a_synced_group_is_answered_before_its_pages_are_let_go() {
    scene(SyncMode::Synced);
}
