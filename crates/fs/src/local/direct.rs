//! Files written and read past the page cache (`O_DIRECT`): no page of the kernel's is taken, cleared and copied into.
//!
//! Always true: while the file is direct, what goes out starts at a multiple of [`ALIGN_BYTES`] in file and memory and is a multiple of it
//! long. The rest at the end, which is not, goes through the page cache. A file system that refuses (`EINVAL`, as some
//! in memory do) is written and read in the usual way from there on, and nobody hears of it.

use super::{AppendHints, Appender, Error, FilePath, Result, fs, io};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::cell::RefCell;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// What one `write` takes. Less makes more of them: each tells the disk, sleeps and wakes (of a gigabyte, filling and writing the buffer took 110 to 140 ns of CPU
/// time a kilobyte with 1 MiB, 80 to 90 with 2 MiB, 60 to 68 with 4). More lets the disk wait longer for the next, and others longer for the disk.
const BUFFER_BYTES: usize = 2 << 20;
/// No disk wants more.
const ALIGN_BYTES: usize = 4096;
/// What one `read` takes: as much as a scan reads ahead, with what lies beside it. Each thread that reads so keeps so much.
const READ_BYTES: usize = (256 << 10) + 2 * ALIGN_BYTES;

pub(super) struct DirectAppender {
    file: fs::File,
    path: FilePath,
    buffer: Aligned,
    written: u64,
    is_direct: bool,
    /// Why the file is to be given up.
    broken: Option<&'static str>,
}

/// Bytes at an aligned place.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// Takes memory with the first bytes: who writes from memory of his own needs none but for the end of the file.
    const NONE: Aligned = Aligned { memory: Vec::new(), start: 0, len: 0 };

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Takes memory for so many bytes if it has none.
    fn have_room(&mut self, bytes: usize) {
        if self.memory.is_empty() {
            self.memory = vec![0; bytes + ALIGN_BYTES];
            self.start = self.memory.as_ptr().align_offset(ALIGN_BYTES);
            assert!(self.start < ALIGN_BYTES, "there is an aligned place in every page");
        }
    }

    /// Takes what there is room for; says how much.
    fn take(&mut self, bytes: &[u8]) -> usize {
        self.have_room(BUFFER_BYTES);
        let count = bytes.len().min(BUFFER_BYTES - self.len);
        let at = self.start + self.len;
        self.memory[at..at + count].copy_from_slice(&bytes[..count]);
        self.len += count;
        count
    }
}

thread_local!(static READ: RefCell<Aligned> = const { RefCell::new(Aligned::NONE) });

/// Fills `buf` from `offset` on, of a file that is direct.
///
/// # Errors
/// `UnexpectedEof` where the file ends before; `InvalidInput` from file systems that take the flag and not the reads.
pub(super) fn read_exact_at(file: &fs::File, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    READ.with_borrow_mut(|aligned| {
        aligned.have_room(READ_BYTES);
        let room = &mut aligned.memory[aligned.start..aligned.start + READ_BYTES];
        while !buf.is_empty() {
            let skipped = (offset % ALIGN_BYTES as u64) as usize;
            let wanted = (skipped + buf.len()).next_multiple_of(ALIGN_BYTES).min(READ_BYTES);
            let read = match file.read_at(&mut room[..wanted], offset - skipped as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let count = read.saturating_sub(skipped).min(buf.len());
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (now, later) = std::mem::take(&mut buf).split_at_mut(count);
            now.copy_from_slice(&room[skipped..skipped + count]);
            (buf, offset) = (later, offset + count as u64);
        }
        Ok(())
    })
}

/// Switches `O_DIRECT`; false where the file system refuses.
pub(super) fn set_direct(file: &fs::File, on: bool) -> bool {
    let Ok(flags) = fcntl_getfl(file) else { return false };
    fcntl_setfl(file, if on { flags | OFlags::DIRECT } else { flags - OFlags::DIRECT }).is_ok()
}

impl DirectAppender {
    /// `file` is empty.
    pub fn new(file: fs::File, path: FilePath) -> DirectAppender {
        let is_direct = set_direct(&file, true);
        DirectAppender { file, path, buffer: Aligned::NONE, written: 0, is_direct, broken: None }
    }

    fn check(&self, operation: &str) -> Result<()> {
        match self.broken {
            Some(why) => Err(Error::new(operation, &self.path, io::Error::other(why))),
            None => Ok(()),
        }
    }

    /// Writes the buffer. When it is not full, the file is written through the page cache from now on.
    fn write_out(&mut self) -> Result<()> {
        let buffer = std::mem::replace(&mut self.buffer, Aligned::NONE);
        let outcome = self.write_all(buffer.bytes());
        self.buffer = buffer;
        outcome?;
        self.buffer.len = 0;
        Ok(())
    }

    /// Writes `bytes`, which lie at an aligned place in memory and belong at one in the file.
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            if self.is_direct && !(rest.len().is_multiple_of(ALIGN_BYTES) && done.is_multiple_of(ALIGN_BYTES)) {
                self.is_direct = false;
                set_direct(&self.file, false);
            }
            match (&self.file).write(rest) {
                Ok(0) => return Err(self.give_up(io::ErrorKind::WriteZero.into())),
                Ok(n) => {
                    done += n;
                    self.written += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if self.is_direct && e.kind() == io::ErrorKind::InvalidInput => {
                    self.is_direct = false;
                    set_direct(&self.file, false);
                }
                Err(e) => return Err(self.give_up(e)),
            }
        }
        Ok(())
    }

    fn give_up(&mut self, error: io::Error) -> Error {
        self.broken = Some("an earlier write to this file failed; it is to be written anew");
        Error::new("write to", &self.path, error).at(self.written)
    }
}

impl Appender for DirectAppender {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.check("append to")?;
        while !bytes.is_empty() {
            bytes = &bytes[self.buffer.take(bytes)..];
            if self.buffer.len == BUFFER_BYTES {
                self.write_out()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.check("write to")?;
        self.write_out()
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file.sync_data().map_err(|e| {
            self.broken = Some("an earlier sync of this file failed; what is on the disk is unknown");
            Error::new("sync", &self.path, e).at(self.written)
        })
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len as u64
    }

    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        Some(self)
    }
}

impl AppendHints for DirectAppender {
    fn straight_bytes(&self) -> usize {
        BUFFER_BYTES
    }

    fn append_straight(&mut self, bytes: &[u8]) -> Result<usize> {
        let place = bytes.as_ptr().align_offset(ALIGN_BYTES);
        if self.buffer.len > 0 || place > 0 || !self.written.is_multiple_of(ALIGN_BYTES as u64) {
            return self.append(bytes).map(|()| bytes.len());
        }
        self.check("append to")?;
        let whole = bytes.len() / ALIGN_BYTES * ALIGN_BYTES;
        self.write_all(&bytes[..whole])?;
        Ok(whole)
    }
}
