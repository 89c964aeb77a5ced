//! One connection: whole messages in, whole replies out, in order.

use crate::dispatch::{Handled, Manner, Service, handle};
use crate::metrics::Stopwatch;
use crate::protocol::{Boundary, ProtocolError};
use crate::server::ServerOptions;
use base::{Charge, Holder, Ledger};
use bytes::{Bytes, BytesMut};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// What is read from the socket at once.
const READ_BYTES: usize = 16 * 1024;

/// Why a connection ends other than by its client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Bytes that are no message.
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    /// A frame beyond the limit.
    #[error("a frame of {announced} bytes; hbase.regionserver.thrift.framed.max_frame_size_in_mb allows {allowed}")]
    Frame {
        /// As the client says.
        announced: i64,
        /// The limit.
        allowed: usize,
    },
    /// No room for the request.
    #[error("the gateway holds too many bytes of requests; try again later")]
    NoRoom,
    /// The client does nothing.
    #[error("its client was silent, or took nothing of its reply, for hbase.thrift.server.socket.read.timeout")]
    Silent,
}

/// A connection.
pub struct Connection<T> {
    socket: T,
    options: Arc<ServerOptions>,
    ledger: Arc<Ledger>,
    stopwatch: Stopwatch,
    read: BytesMut,
    charge: Charge,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Connection<T> {
    /// Over a socket.
    pub fn new(socket: T, options: Arc<ServerOptions>, ledger: Arc<Ledger>, stopwatch: Stopwatch) -> Connection<T> {
        let charge = ledger.charge(Holder::Requests, 0);
        Connection { socket, options, ledger, stopwatch, read: BytesMut::new(), charge }
    }

    /// Answers calls until the client leaves.
    ///
    /// # Errors
    /// It was left.
    pub async fn run<S: Service>(mut self, service: &S, with_class: bool) -> Result<(), ConnectionError> {
        let manner = Manner { protocol: self.options.protocol, with_class };
        while let Some(message) = self.next_message().await? {
            let handled = handle(service, manner, &self.stopwatch, &message).await?;
            drop(message);
            self.send(handled).await?;
            if self.read.is_empty() {
                // A connection that waits for its client holds nothing.
                self.read = BytesMut::new();
            }
            self.charge.resize(self.read.capacity() as u64);
        }
        Ok(())
    }

    async fn next_message(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        if self.options.framed {
            return self.next_frame().await;
        }
        let mut boundary = Boundary::new(self.options.protocol);
        loop {
            if !self.read.is_empty()
                && let Some(length) = boundary.find(&self.read, self.options.max_message_bytes)?
            {
                return Ok(Some(self.read.split_to(length).freeze()));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    async fn next_frame(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        loop {
            if let Some(head) = self.read.first_chunk::<4>() {
                let announced = i64::from(i32::from_be_bytes(*head));
                let allowed = self.options.max_frame_bytes;
                let length = usize::try_from(announced).ok().filter(|length| *length <= allowed);
                let length = length.ok_or(ConnectionError::Frame { announced, allowed })?;
                if self.read.len() >= 4 + length {
                    let mut frame = self.read.split_to(4 + length);
                    return Ok(Some(frame.split_off(4).freeze()));
                }
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Reads more; false at the end.
    async fn fill(&mut self) -> Result<bool, ConnectionError> {
        // Memory follows what came, never what was announced.
        if self.read.capacity() - self.read.len() < READ_BYTES / 4 {
            self.read.reserve(READ_BYTES.max(self.read.len()));
        }
        if !self.charge.try_grow_share(self.read.capacity() as u64) {
            return Err(ConnectionError::NoRoom);
        }
        let reading = timeout(self.options.socket_timeout, self.socket.read_buf(&mut self.read));
        let count = reading.await.map_err(|_| ConnectionError::Silent)??;
        Ok(count > 0)
    }

    async fn send(&mut self, mut handled: Handled) -> Result<(), ConnectionError> {
        let Some(mut reply) = handled.reply.take() else { return Ok(()) };
        let fits = reply.len() <= self.options.max_message_bytes;
        let charge = fits.then(|| self.ledger.try_charge_reply(reply.len() as u64)).flatten();
        if charge.is_none() {
            reply = handled.refusal();
        }
        if self.options.framed {
            reply = reply.into_frame();
        }
        while !reply.is_empty() {
            let writing = timeout(self.options.socket_timeout, self.socket.write_buf(&mut reply));
            let count = writing.await.map_err(|_| ConnectionError::Silent)??;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
        }
        Ok(())
    }
}
