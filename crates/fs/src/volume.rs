//! The contract: a volume, a file being read, a file being appended to. What only some volumes can be told beside it is in
//! [`crate::hints`].

use crate::hints::{AppendHints, ReadHints, VolumeHints};
use crate::{Error, FilePath, Result};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Name within the directory.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Bytes in the file; 0 for a directory.
    pub len: u64,
}

/// A tree of files.
pub trait Volume: Send + Sync + 'static {
    /// Opens a file for reading at random places. The handle outlives a rename or removal of the file.
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>>;
    /// Creates a file to append to; fails when it exists. Its directory must exist. The file's name is not durable
    /// before [`Volume::sync_dir`] of its directory.
    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>>;
    /// Renames a file or directory; an existing file at `to` is replaced. Not durable before both directories are synced.
    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()>;
    /// As [`Volume::rename`], where nothing may be lost: fails with `AlreadyExists` when something is at `to`, and changes nothing then.
    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &FilePath) -> Result<()>;
    /// Removes a directory and all below it; nothing happens when it does not exist.
    fn remove_dir_all(&self, path: &FilePath) -> Result<()>;
    /// Makes a directory and those above it; nothing happens when it exists.
    fn create_dir_all(&self, path: &FilePath) -> Result<()>;
    /// The entries of a directory, sorted by name.
    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>>;
    /// What is at `path`; `None` when nothing is.
    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &FilePath) -> Result<()>;

    /// What the volume is like, where its users must know.
    fn capabilities(&self) -> Capabilities;

    /// What the volume can be told or asked beside this contract; none by default.
    fn hints(&self) -> Option<&dyn VolumeHints> {
        None
    }

    /// Ends what a process that is no more has begun with a file, before its bytes are relied on. After [`Settled::Final`] no appender that was
    /// opened before, in any process, adds a byte, and all that a `flush` or `sync` of theirs acknowledged is in the file. Does not wait:
    /// whoever hears [`Settled::Pending`] asks again a little later. Makes nothing durable that was not. On a volume which one process
    /// has to itself, as by default, dead appenders write nothing, and there is nothing to do.
    fn settle(&self, path: &FilePath) -> Result<Settled> {
        match self.stat(path)? {
            Some(entry) if !entry.is_dir => Ok(Settled::Final { len_bytes: entry.len }),
            Some(_) => Err(Error::new("settle", path, io::ErrorKind::IsADirectory.into())),
            None => Err(Error::new("settle", path, io::ErrorKind::NotFound.into())),
        }
    }

    /// A name for a file that is to be renamed to `name` when it is whole; no other call gets it, in no process that may be writing to the
    /// volume now. It begins with [`TEMPORARY_PREFIX`].
    fn temporary_name(&self, name: &str) -> String;

    /// Makes the contents of a finished file durable, whoever wrote it; its name is [`Volume::sync_dir`]'s business.
    /// Unless the volume knows better, by writing it anew.
    fn sync_file(&self, path: &FilePath) -> Result<()> {
        let bytes = self.read(path)?;
        self.publish(path, &bytes)
    }

    /// Makes a directory and those above it, and makes every name that was missing durable. One that is there already is
    /// made durable again: the sync of an earlier attempt may have failed.
    fn create_dir_all_durable(&self, path: &FilePath) -> Result<()> {
        let (mut missing, mut at) = (Vec::new(), path.clone());
        while !at.as_str().is_empty() && !self.exists(&at)? {
            missing.push(at.clone());
            at = at.parent();
        }
        // Name by name from the top: so at most the lowest that is there can be one that was never synced.
        if !at.as_str().is_empty() {
            self.sync_dir(&at.parent())?;
        }
        missing.iter().rev().try_for_each(|dir| {
            self.create_dir_all(dir)?;
            self.sync_dir(&dir.parent())
        })
    }

    /// Whether something is at `path`.
    fn exists(&self, path: &FilePath) -> Result<bool> {
        Ok(self.stat(path)?.is_some())
    }

    /// The whole file. For small files: descriptors, ids, manifests.
    fn read(&self, path: &FilePath) -> Result<Vec<u8>> {
        let file = self.open(path)?;
        let len = file.len()?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Publishes a small file at once and durably: writes it beside its place under a [`Volume::temporary_name`], syncs, renames, syncs
    /// the directory. Readers see the old file or the whole new one, after a crash too. Of two who publish the same file at once one wins.
    fn publish(&self, path: &FilePath, bytes: &[u8]) -> Result<()> {
        let (temporary, mut file) = create_temporary(self, path)?;
        let write = || -> Result<()> {
            file.append(bytes)?;
            finish(file)
        };
        if let Err(error) = write() {
            // What stays is a name that nobody reads.
            let _ = self.remove_file(&temporary);
            return Err(error);
        }
        self.rename(&temporary, path)?;
        self.sync_dir(&path.parent())
    }
}

/// As [`Volume::publish`], for many small files: all are written before the first is synced, and each directory is synced once. A disk's
/// journal then takes them in a few turns, where one after the other each would wait for a turn of its own. A failure leaves some of the
/// files published, and no half of any.
///
/// # Errors
/// The first.
pub fn publish_all(volume: &dyn Volume, files: &[(FilePath, Vec<u8>)]) -> Result<()> {
    let mut begun = Vec::with_capacity(files.len());
    let published = write_all(volume, files, &mut begun);
    if published.is_err() {
        for temporary in &begun {
            // What stays is a name that nobody reads.
            let _ = volume.remove_file(temporary);
        }
    }
    published
}

/// `begun` has the temporary names of what is not published when this fails.
fn write_all(volume: &dyn Volume, files: &[(FilePath, Vec<u8>)], begun: &mut Vec<FilePath>) -> Result<()> {
    let mut open = Vec::with_capacity(files.len().min(OPEN_AT_ONCE));
    for chunk in files.chunks(OPEN_AT_ONCE) {
        for (path, bytes) in chunk {
            let (temporary, mut file) = create_temporary(volume, path)?;
            begun.push(temporary);
            file.append(bytes)?;
            file.flush()?;
            open.push(file);
        }
        open.drain(..).try_for_each(finish)?;
    }
    for (path, _) in files.iter().rev() {
        if let Some(temporary) = begun.last() {
            volume.rename(temporary, path)?;
            begun.pop();
        }
    }
    sync_dirs(volume, files.iter().map(|(path, _)| path.parent()))
}

/// Makes a file durable that gets its name next.
fn finish(mut file: Box<dyn Appender>) -> Result<()> {
    if base::inject!("fs.publish.unsynced") { file.flush() } else { file.finish() }
}

/// Files that are held open for [`publish_all`].
const OPEN_AT_ONCE: usize = 128;

/// Makes the entries of directories durable, of each once.
///
/// # Errors
/// The first.
pub fn sync_dirs(volume: &dyn Volume, dirs: impl IntoIterator<Item = FilePath>) -> Result<()> {
    let dirs: BTreeSet<FilePath> = dirs.into_iter().collect();
    dirs.iter().try_for_each(|dir| volume.sync_dir(dir))
}

/// A file under a [`Volume::temporary_name`] beside `path`.
fn create_temporary<V: Volume + ?Sized>(volume: &V, path: &FilePath) -> Result<(FilePath, Box<dyn Appender>)> {
    loop {
        let temporary = path.parent().join(volume.temporary_name(path.name()));
        match volume.create(&temporary) {
            // Left by a process that died.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((temporary, created?)),
        }
    }
}

/// What names of files begin with that are not whole yet.
pub const TEMPORARY_PREFIX: &str = ".tmp-";

/// What a volume is like. The contract is the same for all; these tell what it costs and what it protects from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A name is durable when the call that changed it returns: [`Volume::sync_dir`] has nothing to do.
    pub names_durable_at_once: bool,
    /// Calls cross a network: milliseconds, and they may end in doubt.
    pub remote: bool,
    /// Other processes may be writing to it, among them one that does not know yet that its work was given to others.
    pub shared: bool,
    /// What [`Appender::flush`] acknowledged is not lost with the appender or its machine.
    pub flushed_survives_appender: bool,
    /// A file that is open for reading stays readable when it is removed.
    pub handle_outlives_removal: bool,
    /// Files lie on several machines, and the volume tells on which ([`crate::VolumeHints::block_hosts`]).
    pub names_hosts: bool,
}

impl Capabilities {
    /// Those of a disk that one process has to itself.
    pub const LOCAL_DISK: Capabilities = Capabilities {
        names_durable_at_once: false,
        remote: false,
        shared: false,
        flushed_survives_appender: false,
        handle_outlives_removal: true,
        names_hosts: false,
    };
}

/// What came of [`Volume::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The file has so many bytes and gets no more.
    Final {
        /// Its length.
        len_bytes: u64,
    },
    /// Somebody sees to it; to be asked again.
    Pending,
}

/// A file open for reading. Shared between threads.
pub trait ReadAt: Send + Sync {
    /// Fills `buf` from `offset` on, or fails (a file that ends before is an `UnexpectedEof`).
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;
    /// As [`ReadAt::read_exact_at`] for who reads a file from one end to the other, says what he will need ([`ReadHints::will_need`]) and what he has read
    /// ([`ReadHints::forget_range`]): a volume may have read ahead for him what it reads past the system's memory for others.
    fn read_sequential_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.read_exact_at(buf, offset)
    }
    /// Bytes in the file now.
    fn len(&self) -> Result<u64>;
    /// Whether the file has no bytes now.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// What the file can be told beside this contract; none by default.
    fn hints(&self) -> Option<&dyn ReadHints> {
        None
    }
}

/// A file being written from its start to its end by one writer.
pub trait Appender: Send {
    /// Writes all of `bytes` at the end, through a buffer of the appender's own: readers and the operating system see
    /// them after [`Appender::flush`] or when the buffer is full. Dropping an appender forgets what it still holds.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Hands what was appended to the operating system (`write`): it survives the process, not the machine.
    /// After a failure (a full disk) the rest is kept and the call may be repeated.
    fn flush(&mut self) -> Result<()>;
    /// Makes what was appended durable (`fdatasync`). After a failure every further call fails.
    fn sync(&mut self) -> Result<()>;
    /// Bytes appended so far.
    fn position(&self) -> u64;
    /// Makes what was appended durable and ends the file: from here on it can be opened, wherever it is renamed to. Dropping an appender ends
    /// the file as well, but cannot say when that fails; where capabilities say `remote` it may.
    fn finish(mut self: Box<Self>) -> Result<()> {
        self.sync()
    }
    /// As [`Appender::sync`] for who has what is not synced yet and can write it to another file: may fail with `TimedOut` while the volume stands
    /// still, where others do not. The file is ended then, whenever that is done; what was not synced may be in it or not.
    fn sync_or_give_up(&mut self) -> Result<()> {
        self.sync()
    }
    /// Whether the file lies on a volume that has grown slow while others take new files: another file would be written faster. Asks nobody.
    fn is_on_slow_volume(&self) -> bool {
        false
    }
    /// What the appender can be told beside this contract; none by default.
    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        None
    }
}
