//! The local disk. The only module of the workspace that calls `std::fs`.
//!
//! Always true: `append` costs one system call for 128 KiB at most; reads are `pread` on a shared handle; after
//! a failed `fdatasync` the appender refuses every call, because Linux may have dropped the dirty pages
//! and a second `fdatasync` would lie.
#![allow(clippy::disallowed_methods, reason = "the one place that uses std::fs")]

mod direct;

use crate::volume::TEMPORARY_PREFIX;
use crate::{
    AppendHints, Appender, Behind, BlockHosts, Capabilities, DirEntry, Error, FilePart, FilePath, ReadAt, ReadHints,
    Result, Volume, VolumeHints,
};
use rustix::fs::{Advice, CWD, FallocateFlags, FlockOperation, RenameFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What is gathered goes out in pieces that end where the file's length is a multiple of this: of a piece that is written at a round place the
/// kernel makes one large page, else a dozen, and each costs those who write, read and drop it the same. In turns, 256 MB in pieces of 128 KiB instead of 66
/// KB anywhere: 5.4 instead of 3.9 GB a second of CPU time to write, 9.9 instead of 8.7 to read, 33 instead of 21 to drop.
const BUFFER_BYTES: usize = 128 * 1024;
/// How far behind its end a file that is written behind stays in the page cache: enough that what is older has mostly reached
/// the disk, so that its pages can be let go.
const KEPT_BEHIND_BYTES: u64 = 32 << 20;
/// The kernel is not yet asked to write the last so many bytes of a file: while it makes ready the page that the file ends in, waiting for a place
/// in a busy disk's queue, say, nobody can append to it (20 ms were seen).
const LEFT_AT_END_BYTES: u64 = 1 << 20;
const LOCK_NAME: &str = ".basalt.lock";

/// A directory of the local file system.
#[derive(Debug)]
pub struct LocalVolume {
    root: PathBuf,
    /// Temporary names given out so far.
    temporary_names: AtomicU64,
}

/// Keeps other processes out of a volume while it lives. The kernel gives it up when the process dies.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

impl LocalVolume {
    /// The volume at `root`, made when it does not exist.
    ///
    /// # Errors
    /// When the directory cannot be made or is not one.
    pub fn open(root: &Path) -> Result<LocalVolume> {
        let error = |source| Error::new(format!("open the volume {}:", root.display()), &FilePath::root(), source);
        fs::create_dir_all(root).map_err(error)?;
        let root = fs::canonicalize(root).map_err(error)?;
        Ok(LocalVolume { root, temporary_names: AtomicU64::new(0) })
    }

    /// The volume at `root`, which must be there: a place where a disk is to be mounted is not made when the disk is missing.
    ///
    /// # Errors
    /// `NotFound` when nothing is there, `NotADirectory` when that is no directory.
    pub fn open_existing(root: &Path) -> Result<LocalVolume> {
        let error = |source| Error::new(format!("open the volume {}:", root.display()), &FilePath::root(), source);
        let root = fs::canonicalize(root).map_err(error)?;
        if !fs::metadata(&root).map_err(error)?.is_dir() {
            return Err(error(io::ErrorKind::NotADirectory.into()));
        }
        Ok(LocalVolume { root, temporary_names: AtomicU64::new(0) })
    }

    /// Where the volume is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Claims the volume for this process (`flock` on `.basalt.lock` in the root, which holds the pid).
    ///
    /// # Errors
    /// `WouldBlock`, naming the other process when it left its pid, when the volume is claimed already.
    pub fn lock(&self) -> Result<DirectoryLock> {
        let path = FilePath::new(LOCK_NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.place(&path))
            .map_err(|e| Error::new("open the lock file", &path, e))?;
        if let Err(errno) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            let mut text = String::new();
            // The pid is a courtesy: a lock file that cannot be read must not hide the real trouble.
            let _ = Read::by_ref(&mut file).take(32).read_to_string(&mut text);
            let owner = match text.trim() {
                "" => "another process".to_owned(),
                pid => format!("the process with pid {pid}"),
            };
            let what = format!("{} is in use by {owner}; stop it or choose another directory", self.root.display());
            let kind = io::Error::from(errno).kind();
            return Err(Error::new("lock", &path, io::Error::new(kind, what)));
        }
        let write_pid = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write_pid(&mut file).map_err(|e| Error::new("write the pid to", &path, e))?;
        Ok(DirectoryLock { _file: file })
    }

    /// The process that has claimed the volume, by the pid that it left, 0 where it left none; `None`: nobody has. For who wants to know and not to
    /// use it.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn claimed_by(&self) -> Result<Option<u32>> {
        let path = FilePath::new(LOCK_NAME);
        let mut file = match File::open(self.place(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|e| Error::new("open the lock file", &path, e))?,
        };
        // Others who ask have the same lock; it is gone with the file.
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _ = Read::by_ref(&mut file).take(32).read_to_string(&mut text);
                Ok(Some(text.trim().parse().unwrap_or(0)))
            }
            Err(errno) => Err(Error::new("look at the lock file", &path, errno.into())),
        }
    }

    fn create_new(&self, path: &FilePath) -> Result<File> {
        let place = self.place(path);
        OpenOptions::new().write(true).create_new(true).open(place).map_err(|e| Error::new("create", path, e))
    }

    fn place(&self, path: &FilePath) -> PathBuf {
        if path.as_str().is_empty() { self.root.clone() } else { self.root.join(path.as_str()) }
    }
}

impl Volume for LocalVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        let file = File::open(self.place(path)).map_err(|e| Error::new("open", path, e))?;
        Ok(Arc::new(LocalFile {
            file,
            path: path.clone(),
            is_direct: AtomicBool::new(false),
            read_ahead: OnceLock::new(),
        }))
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        let file = self.create_new(path)?;
        Ok(Box::new(LocalAppender {
            file: Arc::new(file),
            path: path.clone(),
            buffer: Vec::new(),
            written: 0,
            preallocated: 0,
            written_behind: 0,
            let_go: 0,
            broken: false,
        }))
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        fs::rename(self.place(from), self.place(to)).map_err(|e| Error::new(format!("rename to {to} from"), from, e))
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        let error = |e| Error::new(format!("rename to {to}, which must not exist, from"), from, e);
        match rustix::fs::renameat_with(CWD, self.place(from), CWD, self.place(to), RenameFlags::NOREPLACE) {
            // A file system that cannot do it in one step; nobody else writes to the volume.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
                if fs::symlink_metadata(self.place(to)).is_ok() {
                    return Err(error(io::ErrorKind::AlreadyExists.into()));
                }
                fs::rename(self.place(from), self.place(to)).map_err(error)
            }
            outcome => outcome.map_err(|errno| error(errno.into())),
        }
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        fs::remove_file(self.place(path)).map_err(|e| Error::new("remove", path, e))
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        match fs::remove_dir_all(self.place(path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::new("remove the directory", path, e)),
            _ => Ok(()),
        }
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        fs::create_dir_all(self.place(path)).map_err(|e| Error::new("create the directory", path, e))
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        let error = |e| Error::new("list", path, e);
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.place(path)).map_err(error)? {
            let entry = entry.map_err(error)?;
            let Ok(name) = entry.file_name().into_string() else {
                continue; // No name that HBase or Basalt writes; a FilePath could not hold it.
            };
            match fs::metadata(entry.path()) {
                Ok(meta) => entries.push(dir_entry(name, &meta)),
                // Removed since the directory was read, or a dangling link.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(error(e)),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        match fs::metadata(self.place(path)) {
            Ok(meta) => Ok(Some(dir_entry(path.name().to_owned(), &meta))),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(Error::new("stat", path, e)),
        }
    }

    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        File::open(self.place(path))
            .and_then(|dir| dir.sync_all())
            .map_err(|e| Error::new("sync the directory", path, e))
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        File::open(self.place(path)).and_then(|file| file.sync_all()).map_err(|e| Error::new("sync", path, e))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::LOCAL_DISK
    }

    fn hints(&self) -> Option<&dyn VolumeHints> {
        Some(self)
    }

    fn temporary_name(&self, name: &str) -> String {
        // Two processes of one machine at most: the root has an owner, and tools that read and write beside it have another pid.
        let number = self.temporary_names.fetch_add(1, Ordering::Relaxed);
        format!("{TEMPORARY_PREFIX}{name}-{}-{number}", std::process::id())
    }

    fn read(&self, path: &FilePath) -> Result<Vec<u8>> {
        fs::read(self.place(path)).map_err(|e| Error::new("read", path, e))
    }
}

impl VolumeHints for LocalVolume {
    fn create_past_cache(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        let file = self.create_new(path)?;
        Ok(Box::new(direct::DirectAppender::new(file, path.clone())))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let stat = rustix::fs::statvfs(&self.root)
            .map_err(|e| Error::new("ask for the free space of", &FilePath::root(), e.into()))?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn release_reserved(&self, path: &FilePath) -> Result<()> {
        // A length set to what it is drops the blocks behind it.
        OpenOptions::new()
            .write(true)
            .open(self.place(path))
            .and_then(|file| file.set_len(file.metadata()?.len()))
            .map_err(|e| Error::new("give back the room reserved for", path, e))
    }

    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        let meta = fs::metadata(self.place(path)).map_err(|e| Error::new("ask where the blocks are of", path, e))?;
        Ok(Some(BlockHosts::here(part, meta.len())))
    }
}

fn dir_entry(name: String, meta: &fs::Metadata) -> DirEntry {
    DirEntry { name, is_dir: meta.is_dir(), len: if meta.is_dir() { 0 } else { meta.len() } }
}

struct LocalFile {
    file: File,
    path: FilePath,
    /// It is read past the page cache.
    is_direct: AtomicBool,
    /// The same file through the page cache, for who reads it from one end to the other while it is direct: the kernel can read ahead for him.
    read_ahead: OnceLock<File>,
}

/// Whether the file's room is memory: there reserving takes it at once, and clears it (a log of 129 MB took 40 ms).
fn is_in_memory(file: &File) -> bool {
    /// `TMPFS_MAGIC` of Linux.
    const TMPFS: u64 = 0x0102_1994;
    rustix::fs::fstatfs(file).is_ok_and(|of| u64::try_from(of.f_type) == Ok(TMPFS))
}

impl LocalFile {
    fn read_error(&self, bytes: usize, offset: u64, source: io::Error) -> Error {
        Error::new(format!("read {bytes} bytes of"), &self.path, source).at(offset)
    }

    fn read_direct(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match direct::read_exact_at(&self.file, buf, offset) {
            // The file system takes the flag, and not such reads.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.is_direct.store(false, Ordering::Relaxed);
                direct::set_direct(&self.file, false);
                self.file.read_exact_at(buf, offset)
            }
            read => read,
        }
    }
}

impl ReadAt for LocalFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let is_direct = self.is_direct.load(Ordering::Relaxed);
        let read = if is_direct { self.read_direct(buf, offset) } else { self.file.read_exact_at(buf, offset) };
        read.map_err(|e| self.read_error(buf.len(), offset, e))
    }

    fn read_sequential_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        match self.read_ahead.get().filter(|_| self.is_direct.load(Ordering::Relaxed)) {
            Some(file) => file.read_exact_at(buf, offset).map_err(|e| self.read_error(buf.len(), offset, e)),
            None => self.read_exact_at(buf, offset),
        }
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| Error::new("stat", &self.path, e))
    }

    fn hints(&self) -> Option<&dyn ReadHints> {
        Some(self)
    }
}

impl ReadHints for LocalFile {
    fn forget(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
    }

    fn forget_range(&self, offset: u64, len: u64) {
        if let Some(len) = std::num::NonZeroU64::new(len) {
            let _ = rustix::fs::fadvise(&self.file, offset, Some(len), Advice::DontNeed);
        }
    }

    fn past_cache(&self) {
        if direct::set_direct(&self.file, true) {
            // Its own flags, and whatever name it has by now. Where that is not to be had, nobody reads ahead.
            if let Ok(file) = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd())) {
                let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
                let _ = self.read_ahead.set(file);
            }
            self.is_direct.store(true, Ordering::Relaxed);
        }
    }

    fn will_need(&self, offset: u64, len: u64) {
        // The kernel reads ahead by itself for who reads on, in larger pieces.
        if self.is_direct.load(Ordering::Relaxed) {
            return;
        }
        // A hint: a file system that does not know it changes nothing.
        let _ = rustix::fs::fadvise(&self.file, offset, std::num::NonZeroU64::new(len), Advice::WillNeed);
    }

    fn block_hosts(&self, part: FilePart) -> Option<BlockHosts> {
        Some(BlockHosts::here(part, self.len().ok()?))
    }
}

struct LocalAppender {
    file: Arc<File>,
    path: FilePath,
    buffer: Vec<u8>,
    written: u64,
    preallocated: u64,
    written_behind: u64,
    /// Up to here the page cache was asked to forget.
    let_go: u64,
    broken: bool,
}

impl LocalAppender {
    fn check(&self, operation: &str) -> Result<()> {
        if self.broken {
            let what = io::Error::other("an earlier sync of this file failed; what is on the disk is unknown");
            return Err(Error::new(operation, &self.path, what));
        }
        Ok(())
    }

    /// Writes until `bytes` are out; says how many went.
    fn write(&mut self, bytes: &[u8]) -> (usize, Result<()>) {
        let mut done = 0;
        while done < bytes.len() {
            match (&*self.file).write(&bytes[done..]) {
                Ok(0) => {
                    let error = Error::new("write to", &self.path, io::ErrorKind::WriteZero.into());
                    return (done, Err(error.at(self.written)));
                }
                Ok(n) => {
                    done += n;
                    self.written += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return (done, Err(Error::new("write to", &self.path, e).at(self.written))),
            }
        }
        (done, Ok(()))
    }
}

impl Appender for LocalAppender {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.check("append to")?;
        if bytes.len() >= BUFFER_BYTES {
            // Large pieces go straight out.
            self.flush()?;
            let (done, outcome) = self.write(bytes);
            self.buffer.extend_from_slice(&bytes[done..]);
            return outcome;
        }
        let start = self.position();
        let round = (start + bytes.len() as u64) / BUFFER_BYTES as u64 * BUFFER_BYTES as u64;
        if round <= self.written {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        // A round place in what is held already was passed by a write that failed.
        let (now, later) = bytes.split_at(round.saturating_sub(start) as usize);
        self.buffer.extend_from_slice(now);
        let outcome = self.flush();
        // What a full disk left over waits in the buffer for the next flush.
        self.buffer.extend_from_slice(later);
        outcome
    }

    fn flush(&mut self) -> Result<()> {
        self.check("write to")?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let (done, outcome) = self.write(&buffer);
        buffer.drain(..done);
        self.buffer = buffer;
        outcome
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file.sync_data().map_err(|e| {
            self.broken = true;
            Error::new("sync", &self.path, e).at(self.written)
        })
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        Some(self)
    }
}

impl AppendHints for LocalAppender {
    fn straight_bytes(&self) -> usize {
        BUFFER_BYTES
    }

    fn append_straight(&mut self, bytes: &[u8]) -> Result<usize> {
        self.check("append to")?;
        self.flush()?;
        let end = self.written + bytes.len() as u64;
        let round = end / BUFFER_BYTES as u64 * BUFFER_BYTES as u64;
        let (now, _) = bytes.split_at(round.saturating_sub(self.written) as usize);
        self.write(now).1.map(|()| now.len())
    }

    fn preallocate(&mut self, len: u64) {
        if len <= self.written || is_in_memory(&self.file) {
            return;
        }
        // A hint: file systems without it allocate as they go.
        let (from, more) = (self.written, len - self.written);
        if rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, more).is_ok() {
            self.preallocated = len;
        }
    }

    fn behind(&mut self) -> Option<Behind> {
        // Linux begins to write dirty pages that it is told are not needed; it cannot drop them before.
        let begin = self.written_behind;
        let begun = begin.max(self.written.saturating_sub(LEFT_AT_END_BYTES) / LEFT_AT_END_BYTES * LEFT_AT_END_BYTES);
        self.written_behind = begun;
        // What lies further back has reached the disk meanwhile, and now the same advice drops it. The kernel takes those very pages
        // for what is written next, instead of others that it would have to take from the reader's files, or to clear for the first time.
        let (let_go, end) = (self.let_go, self.let_go.max(begun.saturating_sub(KEPT_BEHIND_BYTES)));
        self.let_go = end;
        if begun == begin && end == let_go {
            return None;
        }
        let file = self.file.clone();
        Some(Box::new(move || {
            for (from, to) in [(begin, begun), (let_go, end)] {
                if let Some(len) = std::num::NonZeroU64::new(to - from) {
                    let _ = rustix::fs::fadvise(&*file, from, Some(len), Advice::DontNeed);
                }
            }
        }))
    }
}

impl Drop for LocalAppender {
    fn drop(&mut self) {
        if self.preallocated > self.written && !self.broken {
            // Gives back blocks beyond the end; the length stays. Blocks that stay cost space, nothing else.
            let _ = self.file.set_len(self.written);
        }
    }
}
