//! The client end of one connection, as small as tests and tools need it: no retries, no pool.
//!
//! A call is a part of the trace of what its thread does when it is first polled ([`trace::within`]). Calls may be made from many tasks at once; replies are matched by their ids. A call that is dropped leaves its
//! reply to be thrown away.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::{Bytes, BytesMut};
use cell::CellBlock;
use parking_lot::Mutex;
use proto::methods::MethodInfo;
use proto::{Message, pb};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use trace::TraceParent;

use crate::frame::{Front, put_frame, split_body, take_delimited, take_frame};
use crate::transport::Transport;
use crate::{CellCodec, Compressor};

/// Replies longer than this end the connection.
const MAX_REPLY_BYTES: u64 = 1 << 31;

/// A call that brought no reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection broke.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// The connection ended before the reply came.
    #[error("the connection ended before the reply")]
    Closed,
    /// The server answered with an exception.
    #[error("{}", .0.stack_trace())]
    Remote(Box<pb::ExceptionResponse>),
    /// The reply cannot be read.
    #[error("unreadable reply: {0}")]
    Malformed(String),
}

impl ClientError {
    /// The Java class of the server's exception, if that is what it is.
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Remote(exception) => Some(exception.exception_class_name()),
            _ => None,
        }
    }
}

/// A reply: the encoded message and its cells.
#[derive(Debug, Clone)]
pub struct ClientReply {
    /// The encoded message.
    pub message: Bytes,
    /// The cells that came with it.
    pub cells: CellBlock,
}

impl ClientReply {
    /// The message as its type.
    ///
    /// # Errors
    /// The bytes are no such message.
    pub fn decode<M: Message + Default>(&self) -> Result<M, ClientError> {
        M::decode(self.message.clone()).map_err(|e| ClientError::Malformed(e.to_string()))
    }
}

/// What a connection says about itself.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Who calls.
    pub user: String,
    /// How cells travel.
    pub codec: Option<CellCodec>,
    /// How cell blocks are compressed.
    pub compressor: Option<Compressor>,
    /// The version of HBase that it says it has.
    pub version: String,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            user: "basalt".to_owned(),
            codec: Some(CellCodec::KeyValue),
            compressor: None,
            version: "2.6.4".to_owned(),
        }
    }
}

/// By id, so that who waits is told of the connection's end in the order of the calls.
type Waiting = BTreeMap<u32, oneshot::Sender<Result<(pb::ResponseHeader, Bytes), ClientError>>>;

/// Calls that wait, or why there can be none.
enum State {
    Open(Waiting),
    /// The connection has ended; perhaps the server said why.
    Ended(Option<Box<pb::ExceptionResponse>>),
}

impl State {
    /// Ends the connection: tells those who wait, and those who will ask.
    fn end(&mut self, reason: Option<pb::ExceptionResponse>) {
        let reason = reason.map(Box::new);
        if let Self::Open(waiting) = std::mem::replace(self, Self::Ended(reason.clone())) {
            for (_, sender) in waiting {
                // An error means that the call was dropped.
                let _ = sender.send(Err(ended(reason.clone())));
            }
        }
    }
}

fn ended(reason: Option<Box<pb::ExceptionResponse>>) -> ClientError {
    reason.map_or(ClientError::Closed, ClientError::Remote)
}

/// A connection to one service of one server. Dropping it closes it.
pub struct Client {
    options: ClientOptions,
    next_id: AtomicU32,
    state: Arc<Mutex<State>>,
    writer: tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    reader: tokio::task::JoinHandle<()>,
}

impl Client {
    /// Connects to `service` (its name, `ClientService`) at `address`.
    ///
    /// # Errors
    /// The connection cannot be made. A service or codec that the server refuses shows at the first call.
    pub async fn connect(address: SocketAddr, service: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address).await?;
        crate::socket::prepare(&stream);
        Self::over(stream, service, options).await
    }

    /// As [`Client::connect`], over a stream that is connected already.
    ///
    /// # Errors
    /// The other end does not take the connection's header.
    pub async fn over<T: Transport>(transport: T, service: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let (read, mut write) = transport.split();
        let header = pb::ConnectionHeader {
            user_info: Some(pb::UserInformation { effective_user: options.user.clone(), real_user: None }),
            service_name: Some(service.to_owned()),
            cell_block_codec_class: options.codec.map(|c| c.class().to_owned()),
            cell_block_compressor_class: options.compressor.map(|c| c.class().to_owned()),
            version_info: Some(pb::VersionInfo {
                version: options.version.clone(),
                version_major: Some(2),
                version_minor: Some(6),
                ..pb::VersionInfo::default()
            }),
            ..pb::ConnectionHeader::default()
        };
        let mut hello = BytesMut::from(&b"HBas\0P"[..]);
        hello.extend_from_slice(&(header.encoded_len() as u32).to_be_bytes());
        header.encode_raw(&mut hello);
        write.write_all(&hello).await?;
        let state = Arc::new(Mutex::new(State::Open(Waiting::new())));
        let reader = tokio::spawn(read_replies(read, state.clone()));
        Ok(Self {
            options,
            next_id: AtomicU32::new(0),
            state,
            writer: tokio::sync::Mutex::new(Box::new(write)),
            reader,
        })
    }

    /// Calls `method` and waits for its reply.
    ///
    /// # Errors
    /// The server's exception, or the end of the connection.
    pub async fn call(
        &self,
        method: &MethodInfo,
        message: &impl Message,
        cells: Option<&CellBlock>,
    ) -> Result<ClientReply, ClientError> {
        self.call_raw(method.name, &message.encode_to_vec(), cells).await
    }

    /// As [`Client::call`], with the name and the encoded message as they are.
    ///
    /// # Errors
    /// The server's exception, or the end of the connection.
    pub async fn call_raw(
        &self,
        method: &str,
        message: &[u8],
        cells: Option<&CellBlock>,
    ) -> Result<ClientReply, ClientError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let block = match (cells, self.options.codec) {
            (Some(cells), Some(codec)) => {
                let plain = codec.encode(cells.bytes().clone(), true);
                Some(self.options.compressor.map_or(plain.clone(), |c| c.compress(&plain)))
            }
            _ => None,
        };
        let header = pb::RequestHeader {
            call_id: Some(id),
            method_name: Some(method.to_owned()),
            request_param: Some(true),
            cell_block_meta: block.as_ref().map(|b| pb::CellBlockMeta { length: Some(b.len() as u32) }),
            timeout: Some(60_000),
            trace_info: trace::current().map(|place| pb::RpctInfo {
                headers: [(TraceParent::HEADER.to_owned(), place.traceparent())].into(),
                ..pb::RpctInfo::default()
            }),
            ..pb::RequestHeader::default()
        };
        let block = block.unwrap_or_default();
        let mut frame = BytesMut::new();
        put_frame(&mut frame, &header, Some(message), block.len());
        frame.extend_from_slice(&block);

        let (sender, receiver) = oneshot::channel();
        match &mut *self.state.lock() {
            State::Open(waiting) => waiting.insert(id, sender),
            State::Ended(reason) => return Err(ended(reason.clone())),
        };
        // When the write fails the server may have said why; the reader will find it, or the end.
        let _ = self.writer.lock().await.write_all(&frame).await;
        let (header, rest) = receiver.await.map_err(|_| ClientError::Closed)??;
        if let Some(exception) = header.exception {
            return Err(ClientError::Remote(Box::new(exception)));
        }
        let malformed = |e: &dyn std::fmt::Display| ClientError::Malformed(e.to_string());
        let cell_len = header.cell_block_meta.map(|m| m.length());
        let body = split_body(rest, true, cell_len).map_err(|e| malformed(&e))?;
        let cells = match (body.cell_block.is_empty(), self.options.codec) {
            (true, _) => CellBlock::default(),
            (false, None) => return Err(ClientError::Malformed("cells, and no codec was asked for".to_owned())),
            (false, Some(codec)) => {
                let plain = match self.options.compressor {
                    Some(c) => c.decompress(&body.cell_block, MAX_REPLY_BYTES).map_err(|e| malformed(&e))?,
                    None => body.cell_block,
                };
                codec.decode(plain).map_err(|e| malformed(&e))?
            }
        };
        Ok(ClientReply { message: body.message, cells })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read_replies(mut read: impl AsyncRead + Unpin, state: Arc<Mutex<State>>) {
    let mut buffer = BytesMut::new();
    let reason = loop {
        match take_frame(&mut buffer, MAX_REPLY_BYTES) {
            Front::Frame(mut frame) => {
                let header = take_delimited(&mut frame).ok().and_then(|h| pb::ResponseHeader::decode(h).ok());
                let Some(header) = header else { break None };
                let call_id = header.call_id();
                if call_id == u32::MAX {
                    break header.exception;
                }
                let sender = match &mut *state.lock() {
                    State::Open(waiting) => waiting.remove(&call_id),
                    State::Ended(_) => None,
                };
                if let Some(sender) = sender {
                    // An error means that the call was dropped.
                    let _ = sender.send(Ok((header, frame)));
                }
            }
            Front::TooLong { .. } => break None,
            Front::Partial { .. } => {
                buffer.reserve(16 * 1024);
                if !matches!(read.read_buf(&mut buffer).await, Ok(n) if n > 0) {
                    break None;
                }
            }
        }
    };
    state.lock().end(reason);
}
