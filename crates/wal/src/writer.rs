//! Writes a log file from start to end, entry by entry: recovered edits, and whatever else is not the live log.

use crate::key::{EntryKey, Key, KeyParts, encode};
use crate::{Result, header, seal};
use fs::{Appender, FilePath, Volume};

/// A log file being written. Plain; sealed when asked for.
pub struct FileWriter {
    file: Box<dyn Appender>,
    sealed: bool,
    scratch: Vec<u8>,
}

impl FileWriter {
    /// Creates the file and writes its header. Neither is durable before [`FileWriter::finish`] and a sync of the
    /// directory.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(volume: &dyn Volume, path: &FilePath, sealed: bool) -> Result<FileWriter> {
        let mut file = volume.create(path)?;
        file.append(&header::encode(sealed))?;
        Ok(FileWriter { file, sealed, scratch: Vec::new() })
    }

    /// Appends an entry: `run` is `count` cells in cell-block layout.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, key: &EntryKey<'_>, run: &[u8], count: usize) -> Result<()> {
        self.write(&KeyParts::of_append(key, count), run)
    }

    /// Appends a copy of an entry that was read.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append_read(&mut self, key: &Key, run: &[u8], count: usize) -> Result<()> {
        self.write(&KeyParts::of_entry(key, count), run)
    }

    fn write<F: AsRef<[u8]>>(&mut self, parts: &KeyParts<'_, F>, run: &[u8]) -> Result<()> {
        let (more, tail_len): (&[u8], usize) = if self.sealed { (&seal::HEAD, seal::TAIL_LEN) } else { (&[], 0) };
        let offset = self.file.position();
        let head = encode(&mut self.scratch, parts, more, tail_len);
        self.file.append(head)?;
        if self.sealed {
            // Nothing of the file is durable before its end.
            self.file.append(&seal::tail(seal::body_crc(head, run), offset, 0))?;
        }
        self.file.append(run)?;
        Ok(())
    }

    /// Bytes so far.
    pub fn position(&self) -> u64 {
        self.file.position()
    }

    /// Writes the trailer and makes the bytes durable; the name is the caller's.
    ///
    /// # Errors
    /// When the file cannot be written or synced.
    pub fn finish(mut self) -> Result<u64> {
        self.file.append(header::TRAILER)?;
        let len_bytes = self.file.position();
        self.file.finish()?;
        Ok(len_bytes)
    }
}
