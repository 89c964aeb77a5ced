//! Connections in memory to the server's ports, through the code that serves sockets, and a client's bare end of one.

use crate::world::Life;
use assembly::{RegionServerPort, Services};
use base::Config;
use bytes::{Bytes, BytesMut};
use prost::Message;
use proto::methods::{Method, Service};
use proto::pb;
use regionserver::RegionService;
use rpc::frame::{Front, put_frame, take_delimited, take_frame};
use rpc::transport::{Pipe, pipe};
use rpc::{Limits, Server};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longest reply that a client takes.
const MAX_REPLY_BYTES: u64 = 1 << 30;

/// The region server's port in one life of the server. Dropped, it closes all its connections.
pub struct Network {
    server: Server,
}

impl Network {
    /// The port of `life`, which counts on the server's ledger.
    pub fn new(life: &Life) -> Network {
        let services = Arc::new(Services::default());
        services.set_region(RegionService::new(life.server.clone()));
        let mut limits = Limits::from_config(&Config::default());
        limits.within(life.server.ledger());
        let address = SocketAddr::from(([127, 0, 0, 1], 16020));
        Network { server: Server::unbound(address, Arc::new(RegionServerPort(services)), life.clock.clone(), limits) }
    }

    /// A connection to `service`, each direction of which holds `capacity_bytes` on its way. `None` when the server ends it at once.
    pub async fn connect(&self, service: Service, capacity_bytes: usize) -> Option<Peer> {
        let (ours, theirs) = pipe(capacity_bytes);
        self.server.attach(theirs, SocketAddr::from(([127, 0, 0, 1], 40_000)));
        let mut peer = Peer { pipe: ours, input: BytesMut::new(), next_id: 0 };
        let name = if service == Service::Admin { "AdminService" } else { "ClientService" };
        let header = pb::ConnectionHeader {
            user_info: Some(pb::UserInformation { effective_user: "sim".to_owned(), real_user: None }),
            service_name: Some(name.to_owned()),
            ..pb::ConnectionHeader::default()
        }
        .encode_to_vec();
        let hello = [&b"HBas\0P"[..], &(header.len() as u32).to_be_bytes(), &header].concat();
        peer.pipe.write_all(&hello).await.ok()?;
        Some(peer)
    }
}

/// A reply: of which call, and the message or the exception's class.
#[derive(Debug)]
pub struct PeerReply {
    /// As [`Peer::send`] said.
    pub id: u32,
    /// The message, or the class and text of the exception.
    pub result: Result<Bytes, String>,
}

impl PeerReply {
    /// The message, decoded.
    ///
    /// # Errors
    /// The exception.
    pub fn decode<M: Message + Default>(self) -> Result<M, String> {
        M::decode(self.result?).map_err(|error| error.to_string())
    }
}

/// A client's end of a connection. Dropped, it is closed, whatever is under way.
pub struct Peer {
    pipe: Pipe,
    input: BytesMut,
    next_id: u32,
}

impl Peer {
    /// Sends a request, which is worth nothing to the client after `timeout_ms`; waits until the connection has taken it. Its id, or `None`
    /// when the server has ended the connection.
    pub async fn send(&mut self, method: Method, message: &impl Message, timeout_ms: u32) -> Option<u32> {
        let frame = self.frame(method, message, timeout_ms);
        self.pipe.write_all(&frame).await.ok()?;
        Some(self.next_id)
    }

    /// Sends the first part of a request: `parts` of eight.
    pub async fn send_part(&mut self, method: Method, message: &impl Message, parts: usize) {
        let frame = self.frame(method, message, 60_000);
        let _may_have_ended = self.pipe.write_all(&frame[..frame.len() * parts.min(7) / 8]).await;
    }

    fn frame(&mut self, method: Method, message: &impl Message, timeout_ms: u32) -> BytesMut {
        self.next_id += 1;
        let header = pb::RequestHeader {
            call_id: Some(self.next_id),
            method_name: Some(method.info().name.to_owned()),
            request_param: Some(true),
            timeout: Some(timeout_ms),
            ..pb::RequestHeader::default()
        };
        let mut frame = BytesMut::new();
        put_frame(&mut frame, &header, Some(&message.encode_to_vec()), 0);
        frame
    }

    /// The next reply; `None` when the server has ended the connection.
    pub async fn reply(&mut self) -> Option<PeerReply> {
        let mut frame = loop {
            if let Front::Frame(frame) = take_frame(&mut self.input, MAX_REPLY_BYTES) {
                break frame;
            }
            if self.pipe.read_buf(&mut self.input).await.ok()? == 0 {
                return None;
            }
        };
        let header = pb::ResponseHeader::decode(take_delimited(&mut frame).ok()?).ok()?;
        let result = match header.exception {
            Some(exception) => Err(format!("{}: {}", exception.exception_class_name(), exception.stack_trace())),
            None => Ok(take_delimited(&mut frame).ok()?),
        };
        Some(PeerReply { id: header.call_id.unwrap_or_default(), result })
    }

    /// Takes a few bytes off the connection, and leaves them unread.
    pub async fn sip(&mut self, bytes: usize) {
        let mut few = vec![0; bytes];
        let _may_have_ended = self.pipe.read(&mut few).await;
    }
}
