//! A closed file, read at random places.

use crate::bridge::Bridge;
use crate::error::failed;
use fs::{BlockHosts, Error, FilePart, FilePath, ReadAt, ReadHints, Replica, Result};
use hdfs_native::Client;
use hdfs_native::file::FileReader;
use parking_lot::RwLock;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Where the blocks lie was asked once: so the file stays readable when it is renamed, but not when it is removed.
pub(crate) struct HdfsFile {
    bridge: Bridge,
    client: Client,
    path: FilePath,
    place: String,
    len_bytes: u64,
    /// Another after a read has failed: blocks move between DataNodes.
    reader: RwLock<Arc<FileReader>>,
}

impl HdfsFile {
    pub fn new(bridge: Bridge, client: Client, path: FilePath, place: String, reader: FileReader) -> HdfsFile {
        let len_bytes = reader.file_length() as u64;
        HdfsFile { bridge, client, path, place, len_bytes, reader: RwLock::new(Arc::new(reader)) }
    }

    fn read_once(&self, offset: usize, len: usize) -> Result<bytes::Bytes> {
        let reader = self.reader.read().clone();
        let operation = format!("read {len} bytes of");
        self.bridge.wait(&operation, &self.path, async move { reader.read_range(offset, len).await })
    }

    /// Asks anew where the blocks are. False when the file is not there under its name any more, or has changed.
    fn locate(&self) -> Result<bool> {
        let (client, place) = (self.client.clone(), self.place.clone());
        let found = self.bridge.wait_for("open", &self.path, async move { client.read(&place).await })?;
        match found {
            Ok(reader) if reader.file_length() as u64 == self.len_bytes => {
                *self.reader.write() = Arc::new(reader);
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) => match failed("open", &self.path, error) {
                error if error.is_not_found() => Ok(false),
                error => Err(error),
            },
        }
    }
}

impl ReadAt for HdfsFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let (len, end) = (buf.len(), offset.checked_add(buf.len() as u64));
        if end.is_none_or(|end| end > self.len_bytes) {
            let source = io::Error::from(ErrorKind::UnexpectedEof);
            return Err(Error::new(format!("read {len} bytes of"), &self.path, source).at(offset));
        }
        if buf.is_empty() {
            return Ok(());
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = match self.read_once(start, len) {
            Err(error) => {
                if !self.locate().map_err(|error| error.at(offset))? {
                    return Err(error.at(offset));
                }
                self.read_once(start, len).map_err(|error| error.at(offset))?
            }
            Ok(bytes) => bytes,
        };
        if bytes.len() != len {
            let source = io::Error::new(ErrorKind::InvalidData, format!("HDFS gave {} bytes", bytes.len()));
            return Err(Error::new(format!("read {len} bytes of"), &self.path, source).at(offset));
        }
        buf.copy_from_slice(&bytes);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.len_bytes)
    }

    fn hints(&self) -> Option<&dyn ReadHints> {
        Some(self)
    }
}

impl ReadHints for HdfsFile {
    fn block_hosts(&self, part: FilePart) -> Option<BlockHosts> {
        Some(block_hosts(&self.reader.read(), part))
    }
}

/// Where the blocks lie that a part of the file has something of, as the NameNode said when it was asked for them. A block counts whole: so do
/// Java's clients. Host names are those that the DataNodes have, in small letters as HBase's of servers.
pub(crate) fn block_hosts(reader: &FileReader, part: FilePart) -> BlockHosts {
    let mut all = BlockHosts::default();
    for block in reader.block_locations(part.of(reader.file_length() as u64)) {
        let replicas: Vec<(String, bool)> =
            block.replicas().map(|(host, is_ssd)| (host.to_ascii_lowercase(), is_ssd)).collect();
        all.add_block(block.length(), replicas.iter().map(|(host, is_ssd)| Replica { host, is_ssd: *is_ssd }));
    }
    all
}
