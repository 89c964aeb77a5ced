//! The log on a volume across a network, where what was written survives the file that broke.

use crate::common::one_cell;
use basalt_wal::{EntryKey, Level, Log, LogOptions, Reader, SyncMode, Ticket};
use base::{Config, ManualClock, SeqId, TimestampMs};
use fs::{AppendHints, Appender, Capabilities, Copies, DirEntry, FilePath, MemVolume, ReadAt, Volume};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

/// Memory that says of itself what HDFS does.
#[derive(Clone, Default)]
struct Remote {
    inner: MemVolume,
    /// The flush or sync with this number fails, and its file takes nothing any more. 0: none.
    fails: Arc<AtomicU64>,
    calls: Arc<AtomicU64>,
    /// So many DataNodes of three have failed.
    dead: Arc<AtomicU32>,
    callers: Arc<Mutex<Vec<ThreadId>>>,
}

impl Volume for Remote {
    fn open(&self, path: &FilePath) -> fs::Result<Arc<dyn ReadAt>> {
        self.inner.open(path)
    }
    fn create(&self, path: &FilePath) -> fs::Result<Box<dyn Appender>> {
        let (inner, path) = (self.inner.create(path)?, path.clone());
        Ok(Box::new(RemoteAppender { inner, path, volume: self.clone(), is_broken: false }))
    }
    fn rename(&self, from: &FilePath, to: &FilePath) -> fs::Result<()> {
        self.inner.rename(from, to)
    }
    fn rename_new(&self, from: &FilePath, to: &FilePath) -> fs::Result<()> {
        self.inner.rename_new(from, to)
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { remote: true, shared: true, flushed_survives_appender: true, ..self.inner.capabilities() }
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

struct RemoteAppender {
    inner: Box<dyn Appender>,
    path: FilePath,
    volume: Remote,
    is_broken: bool,
}

impl RemoteAppender {
    fn check(&mut self) -> fs::Result<()> {
        self.volume.callers.lock().expect("no panic").push(thread::current().id());
        self.is_broken |= self.volume.calls.fetch_add(1, SeqCst) + 1 == self.volume.fails.load(SeqCst);
        if self.is_broken {
            return Err(fs::Error::new("write to", &self.path, std::io::Error::other("every DataNode failed")));
        }
        Ok(())
    }
}

impl Appender for RemoteAppender {
    fn append(&mut self, bytes: &[u8]) -> fs::Result<()> {
        self.inner.append(bytes)
    }
    fn flush(&mut self) -> fs::Result<()> {
        self.check()?;
        self.inner.flush()
    }
    fn sync(&mut self) -> fs::Result<()> {
        self.check()?;
        self.inner.sync()
    }
    fn position(&self) -> u64 {
        self.inner.position()
    }
    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        Some(self)
    }
}

impl AppendHints for RemoteAppender {
    fn copies(&self) -> Option<Copies> {
        Some(Copies { now: 3 - self.volume.dead.load(SeqCst), wanted: 3 })
    }
}

fn create(volume: &Remote, options: LogOptions) -> Arc<Log> {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    Log::create(Arc::new(volume.clone()), FilePath::new("WALs/h,1,2"), "h,1,2", options, clock).expect("created")
}

fn append(log: &Arc<Log>, seq: u64) -> Ticket {
    let region: Arc<str> = Arc::from("r");
    let cells = one_cell();
    let key = EntryKey::new(&region, "t", SeqId(seq), TimestampMs(5), &[b"f"]);
    let mut batch = log.batch();
    let ticket = batch.append(&key, cells.bytes(), cells.len()).expect("room");
    batch.leave_pending();
    ticket
}

/// The ids in every file of the log.
fn read_back(volume: &Remote) -> Vec<u64> {
    let mut ids = Vec::new();
    let dir = FilePath::new("WALs/h,1,2");
    for entry in volume.list(&dir).expect("listed") {
        let mut reader = Reader::open(volume, &dir.join(&entry.name)).expect("opened");
        while let Some(entry) = reader.next().expect("read") {
            ids.push(entry.key.seq_id.0);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn entries_are_done_when_written_unless_the_operator_says_otherwise() {
    let mut config = Config::default();
    assert_eq!(LogOptions::on(&Remote::default(), &config).sync_mode, SyncMode::Written);
    assert_eq!(LogOptions::on(&MemVolume::new(), &config).sync_mode, SyncMode::Synced);
    config.set("hbase.wal.hsync", "true");
    assert_eq!(LogOptions::on(&Remote::default(), &config).sync_mode, SyncMode::Synced);
}

/// Follows: `TestLogRolling#testLogRollOnDatanodeDeath`.
#[test]
fn a_log_that_gets_too_few_copies_goes_on_in_a_new_file() {
    let volume = Remote::default();
    let log = create(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
    let write = |seq| {
        append(&log, seq).wait_for(Level::Written).expect("written");
        log.wants_roll()
    };
    assert!(!write(1));
    volume.dead.store(1, SeqCst);
    assert!(write(2), "a DataNode is missing");
    volume.dead.store(0, SeqCst);
    log.roll().expect("rolled").expect("there were entries");
    assert!(!write(3) && !write(4));
    let stats = log.stats();
    assert_eq!((stats.low_replication_rolls, stats.slow_sync_rolls, stats.size_rolls, stats.asked_rolls), (1, 0, 0, 1));
    log.close().expect("closed");
    assert_eq!(read_back(&volume), [1, 2, 3, 4]);
}

/// The same with a log on one disk is the end of the server: what was only written is lost with its file.
#[test]
fn a_broken_file_is_followed_by_another_and_loses_nothing_that_was_written() {
    let volume = Remote::default();
    let log = create(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
    thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        for seq in 1..=20 {
            if seq % 5 == 0 {
                volume.fails.store(volume.calls.load(SeqCst) + 1, SeqCst);
            }
            let ticket = append(&log, seq);
            ticket.write_pending();
            ticket.wait().expect("it went to another file");
        }
        log.close().expect("closed");
        syncer.join().expect("no panic").expect("it did not fail");
    });
    assert_eq!(log.stats().rescues, 4);
    assert_eq!(read_back(&volume), (1..=20).collect::<Vec<u64>>());
}

/// Also a roll whose last sync of the old file fails.
#[test]
fn a_roll_loses_nothing_when_the_old_file_breaks() {
    let volume = Remote::default();
    let log = create(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
    thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        for nth in 1..=6 {
            append(&log, nth).wait_for(Level::Written).expect("written");
            // The new file's header, the group, the sync of the old file.
            volume.fails.store(volume.calls.load(SeqCst) + 1 + nth % 3, SeqCst);
            drop(log.roll());
            volume.fails.store(0, SeqCst);
        }
        append(&log, 7).wait_for(Level::Synced).expect("synced");
        log.close().expect("closed");
        syncer.join().expect("no panic").expect("it did not fail");
    });
    assert_eq!(read_back(&volume), (1..=7).collect::<Vec<u64>>());
}

#[test]
fn only_the_syncer_waits_for_the_network() {
    let volume = Remote::default();
    let log = create(&volume, LogOptions { sync_mode: SyncMode::Written, ..LogOptions::default() });
    volume.callers.lock().expect("no panic").clear();
    thread::scope(|scope| {
        let syncer = scope.spawn(|| log.run_syncer());
        let syncer_id = syncer.thread().id();
        for seq in 1..=50 {
            let ticket = append(&log, seq);
            // Whoever waits without a syncer would have to work: until there is one this looks.
            while !ticket.is_done() {
                ticket.write_pending();
                thread::yield_now();
            }
        }
        let callers = volume.callers.lock().expect("no panic").clone();
        assert!(callers.len() >= 50 && callers.iter().all(|caller| *caller == syncer_id), "{callers:?}");
        log.close().expect("closed");
        syncer.join().expect("no panic").expect("it did not fail");
    });
}
