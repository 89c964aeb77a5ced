//! Open files of the memory volume.

use super::{MemVolume, Op, tree::FileNode};
use crate::{Appender, BlockHosts, Error, FilePart, FilePath, ReadAt, ReadHints, Result};
use std::io;
use std::sync::Arc;

/// As much as the local appender gathers before it writes, so that the same bytes are at risk.
const BUFFER_BYTES: usize = 128 * 1024;

pub(super) struct MemFile {
    pub(super) volume: MemVolume,
    pub(super) node: Arc<FileNode>,
    pub(super) path: FilePath,
}

impl ReadAt for MemFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.volume.tell(Op::Read, &self.path);
        let damage = self.volume.state.lock().faults.check(Op::Read, &self.path).map_err(|e| e.at(offset))?;
        let body = self.node.body.lock();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match body.bytes.get(start..).and_then(|rest| rest.get(..buf.len())) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                // What is smaller has no checksum in HBase's formats (references).
                if damage
                    && buf.len() > 128
                    && let Some(byte) = buf.get_mut(bytes.len() / 2)
                {
                    *byte ^= 0x10;
                }
                Ok(())
            }
            None => {
                let operation = format!("read {} bytes of", buf.len());
                Err(Error::new(operation, &self.path, io::ErrorKind::UnexpectedEof.into()).at(offset))
            }
        }
    }

    fn len(&self) -> Result<u64> {
        self.volume.call(Op::Len, &self.path, |_| Ok(self.node.body.lock().bytes.len() as u64))
    }

    fn hints(&self) -> Option<&dyn ReadHints> {
        Some(self)
    }
}

impl ReadHints for MemFile {
    fn block_hosts(&self, part: FilePart) -> Option<BlockHosts> {
        let len_bytes = self.node.body.lock().bytes.len() as u64;
        self.volume.hosts_of(&self.path, part, len_bytes)
    }
}

pub(super) struct MemAppender {
    volume: MemVolume,
    node: Arc<FileNode>,
    path: FilePath,
    buffer: Vec<u8>,
    written: u64,
    broken: bool,
}

impl MemAppender {
    pub(super) fn new(volume: MemVolume, node: Arc<FileNode>, path: FilePath) -> MemAppender {
        MemAppender { volume, node, path, buffer: Vec::new(), written: 0, broken: false }
    }

    /// True when what is appended is to be damaged.
    fn check(&self, op: Op) -> Result<bool> {
        self.volume.tell(op, &self.path);
        let damage = self.volume.state.lock().faults.check(op, &self.path)?;
        if self.broken {
            let what = io::Error::other("an earlier sync of this file failed; what is on the disk is unknown");
            return Err(Error::new(op.verb(), &self.path, what));
        }
        Ok(damage)
    }

    /// Moves the buffer into the file, as far as there is room.
    fn write(&mut self) -> Result<()> {
        let state = self.volume.state.lock();
        let room = state.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(state.tree.used_bytes()));
        let fits = self.buffer.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.node.body.lock().bytes.extend(self.buffer.drain(..fits));
        self.written += fits as u64;
        if self.buffer.is_empty() {
            return Ok(());
        }
        Err(Error::new("write to", &self.path, io::ErrorKind::StorageFull.into()).at(self.written))
    }
}

impl Appender for MemAppender {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let damage = self.check(Op::Append)?;
        self.buffer.extend_from_slice(bytes);
        if damage && bytes.len() > 128 {
            let middle = self.buffer.len() - bytes.len() / 2;
            self.buffer[middle] ^= 0x10;
        }
        if self.buffer.len() >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.check(Op::Flush)?;
        self.write()
    }

    fn sync(&mut self) -> Result<()> {
        // The write comes first: a sync that fails may have left any part of it on the disk.
        if !self.broken {
            let stopped = self.volume.state.lock().faults.is_stopped();
            if !stopped {
                self.write()?;
            }
        }
        if let Err(e) = self.check(Op::Sync) {
            self.broken = true;
            return Err(e.at(self.written));
        }
        let mut body = self.node.body.lock();
        body.synced_len = body.bytes.len();
        Ok(())
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }
}
