//! A file being written.

use crate::bridge::Bridge;
use bytes::{Bytes, BytesMut};
use fs::{AppendHints, Appender, Copies, Error, FilePath, Result};
use hdfs_native::Client;
use hdfs_native::file::FileWriter;
use std::io;

/// So much is gathered before the client gets it: half of one of its packets.
const BUFFER_BYTES: usize = 128 * 1024;

/// Hands bytes to the client, which sends them to the DataNodes in order.
pub(crate) struct HdfsAppender {
    bridge: Bridge,
    client: Client,
    path: FilePath,
    place: String,
    buffer: BytesMut,
    written: u64,
    /// What `flush` and `sync` need not do again.
    flushed: u64,
    synced: u64,
    /// `None` after a failure, and when the file was closed.
    writer: Option<FileWriter>,
}

/// What the DataNodes are to do with what they get.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Sent,
    Flushed,
    Synced,
}

impl HdfsAppender {
    pub fn new(bridge: Bridge, client: Client, path: FilePath, place: String, writer: FileWriter) -> HdfsAppender {
        HdfsAppender {
            bridge,
            client,
            path,
            place,
            buffer: BytesMut::new(),
            written: 0,
            flushed: 0,
            synced: 0,
            writer: Some(writer),
        }
    }

    /// Sends `bytes` and waits for what `level` says. The writer is lost with a failure: what the DataNodes have then is unknown.
    fn send(&mut self, operation: &str, bytes: Bytes, level: Level) -> Result<()> {
        let offset = self.written;
        let Some(mut writer) = self.writer.take() else {
            let what = "an earlier write to this file failed; what is in it is unknown until its lease is recovered";
            return Err(Error::new(operation, &self.path, io::Error::other(what)));
        };
        let len = bytes.len() as u64;
        let call = async move {
            writer.write_bytes(bytes).await?;
            match level {
                Level::Sent => {}
                Level::Flushed => writer.hflush().await?,
                Level::Synced => writer.hsync().await?,
            }
            Ok(writer)
        };
        let sent = self.bridge.wait(operation, &self.path, call);
        let writer = sent.map_err(|error| {
            self.give_up();
            error.at(offset)
        })?;
        self.writer = Some(writer);
        self.written += len;
        if level != Level::Sent {
            self.flushed = self.written;
        }
        if level == Level::Synced {
            self.synced = self.written;
        }
        Ok(())
    }

    /// Closes the file without what is still in the buffer. Nothing is left to do when it was closed or has failed.
    fn close(&mut self) -> Result<()> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        let closed = self.bridge.wait("close", &self.path, async move { writer.close().await });
        if closed.is_err() {
            self.give_up();
        }
        closed
    }

    /// Has the file closed without its writer, which would else stay open as long as this process renews its leases. Nobody waits for it.
    fn give_up(&self) {
        let (client, place) = (self.client.clone(), self.place.clone());
        self.bridge.handle().spawn(async move {
            if let Err(error) = client.recover_lease(&place).await {
                tracing::warn!("the lease of {place} was not recovered, the file stays open: {error}");
            }
        });
    }
}

impl Appender for HdfsAppender {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.writer.is_none() {
            return self.send("append to", Bytes::new(), Level::Sent);
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < BUFFER_BYTES {
            return Ok(());
        }
        let bytes = self.buffer.split().freeze();
        self.send("append to", bytes, Level::Sent)
    }

    fn flush(&mut self) -> Result<()> {
        if self.writer.is_some() && self.flushed == self.position() {
            return Ok(());
        }
        let bytes = self.buffer.split().freeze();
        self.send("write to", bytes, Level::Flushed)
    }

    fn sync(&mut self) -> Result<()> {
        if self.writer.is_some() && self.synced == self.position() {
            return Ok(());
        }
        let bytes = self.buffer.split().freeze();
        self.send("sync", bytes, Level::Synced)
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The last packet of a block has every DataNode sync the block: what is sent before it needs no sync of its own.
    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.writer.is_none() || !self.buffer.is_empty() {
            let bytes = self.buffer.split().freeze();
            self.send("write to", bytes, Level::Sent)?;
        }
        self.close()
    }

    fn hints(&mut self) -> Option<&mut dyn AppendHints> {
        Some(self)
    }
}

impl AppendHints for HdfsAppender {
    fn copies(&self) -> Option<Copies> {
        let (now, wanted) = self.writer.as_ref()?.replicas()?;
        Some(Copies { now, wanted })
    }
}

impl Drop for HdfsAppender {
    fn drop(&mut self) {
        // What was flushed is in the file in any case: who opens it next recovers the lease.
        if let Err(error) = self.close() {
            tracing::warn!("a file stays open until its lease is recovered: {error}");
        }
    }
}
