//! A file read forward through a window, so that an entry is contiguous in memory and a reader needs no more than that.

use crate::{Error, key::get_varint};
use fs::{FilePath, ReadAt};
use std::sync::Arc;

const READ_BYTES: usize = 256 * 1024;

/// Why bytes could not be taken.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file ends before.
    Short,
    /// They are not what they must be.
    Bad(String),
    /// They could not be read; says nothing about what is in the file.
    Fatal(Error),
}

impl From<fs::Error> for Fault {
    fn from(error: fs::Error) -> Fault {
        Fault::Fatal(Error::Io(error))
    }
}

/// `Fault::Bad` with these words.
pub(crate) fn bad<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Bad(what.into()))
}

pub(crate) struct Source {
    file: Arc<dyn ReadAt>,
    path: FilePath,
    /// Bytes of the file that may be taken.
    limit: u64,
    /// Where in the file `buffer` begins.
    start: u64,
    buffer: Vec<u8>,
    /// Next byte to take, within `buffer`.
    at: usize,
    /// Bytes before it may be forgotten.
    mark: usize,
}

impl Source {
    pub(crate) fn new(file: Arc<dyn ReadAt>, path: FilePath, limit: u64) -> Source {
        Source { file, path, limit, start: 0, buffer: Vec::new(), at: 0, mark: 0 }
    }

    pub(crate) fn path(&self) -> &FilePath {
        &self.path
    }

    pub(crate) fn file(&self) -> &Arc<dyn ReadAt> {
        &self.file
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        let keep = usize::try_from(limit.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.buffer.truncate(keep);
        self.at = self.at.min(self.buffer.len());
        self.mark = self.mark.min(self.at);
    }

    /// Place of the next byte in the file.
    pub(crate) fn position(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Goes to a place in the file and marks it.
    pub(crate) fn seek(&mut self, position: u64) {
        let within = position.checked_sub(self.start).and_then(|d| usize::try_from(d).ok());
        match within.filter(|d| *d <= self.buffer.len()) {
            Some(at) => (self.at, self.mark) = (at, at),
            None => {
                self.buffer.clear();
                (self.start, self.at, self.mark) = (position, 0, 0);
            }
        }
    }

    /// From here on bytes stay until the next mark.
    pub(crate) fn set_mark(&mut self) {
        self.mark = self.at;
    }

    /// The bytes taken since the mark.
    pub(crate) fn since_mark(&self) -> &[u8] {
        &self.buffer[self.mark..self.at]
    }

    fn fill(&mut self, len: usize) -> Result<(), Fault> {
        if self.buffer.len() - self.at >= len {
            return Ok(());
        }
        if self.limit.saturating_sub(self.position()) < len as u64 {
            return Err(Fault::Short);
        }
        self.buffer.drain(..self.mark);
        self.start += self.mark as u64;
        self.at -= self.mark;
        self.mark = 0;
        let have = self.buffer.len();
        let from = self.start + have as u64;
        let want = (len - (have - self.at)).max(READ_BYTES);
        let want = want.min(usize::try_from(self.limit - from).unwrap_or(usize::MAX));
        self.buffer.resize(have + want, 0);
        if let Err(error) = self.file.read_exact_at(&mut self.buffer[have..], from) {
            self.buffer.truncate(have);
            return Err(error.into());
        }
        self.file.will_need(from + want as u64, READ_BYTES as u64);
        Ok(())
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&[u8], Fault> {
        self.fill(len)?;
        let from = self.at;
        self.at += len;
        Ok(&self.buffer[from..self.at])
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?[0])
    }

    /// A varint of at most 64 bits.
    pub(crate) fn varint(&mut self) -> Result<u64, Fault> {
        // Near the end fewer than ten bytes are left.
        let left = self.limit.saturating_sub(self.position()).min(10) as usize;
        self.fill(left)?;
        match get_varint(&self.buffer[self.at..self.at + left]) {
            Some((value, len)) => {
                self.at += len;
                Ok(value)
            }
            None if left < 10 => Err(Fault::Short),
            None => bad("a variable-length number of more than 10 bytes"),
        }
    }

    /// A length as a varint of 32 bits.
    pub(crate) fn len_varint(&mut self) -> Result<usize, Fault> {
        let value = self.varint()?;
        match u32::try_from(value) {
            Ok(len) if len <= i32::MAX as u32 => Ok(len as usize),
            _ => bad(format!("a length of {value}")),
        }
    }
}
