//! A client of a gateway: just enough of Thrift, with the crate's own codecs.

use crate::common::Place;
use basalt_thrift::protocol::{Kind, MessageKind, Protocol, Reader, Writer};
use basalt_thrift::wire::Wire;
use basalt_thrift::{Server, ServerOptions, Version};
use base::SystemClock;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A node with a gateway in front.
pub struct Gateway {
    place: Place,
    pub address: SocketAddr,
    pub options: ServerOptions,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Gateway {
    pub async fn start(version: Version, change: impl FnOnce(&mut ServerOptions)) -> Gateway {
        Gateway::configured(version, &base::Config::default(), change).await
    }

    /// As `config` says, and then otherwise.
    pub async fn configured(
        version: Version,
        config: &base::Config,
        change: impl FnOnce(&mut ServerOptions),
    ) -> Gateway {
        let place = Place::start().await;
        let mut options = ServerOptions::from_config(config, &place.connection.options().user);
        change(&mut options);
        let server =
            Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), version, options.clone()).await.expect("a port");
        let address = server.local_addr().expect("it is open");
        let (stop, stopped) = oneshot::channel();
        let (connection, ledger) = (place.connection.clone(), place.ledger.clone());
        let clock = Arc::new(SystemClock::new());
        let serving =
            tokio::spawn(async move { server.run(connection, clock, ledger, async { drop(stopped.await) }).await });
        Gateway { place, address, options, stop, serving }
    }

    pub async fn connect(&self) -> Client {
        let socket = TcpStream::connect(self.address).await.expect("it listens");
        let ServerOptions { protocol, framed, http, .. } = self.options;
        Client { socket, protocol: if http { Protocol::Binary } else { protocol }, framed, http, sequence: 0 }
    }

    pub async fn stop(self) {
        self.stop_gateway().await.stop().await;
    }

    /// Stops the gateway and leaves the node.
    pub async fn stop_gateway(self) -> Place {
        self.stop.send(()).expect("it runs");
        self.serving.await.expect("no panic");
        self.place
    }
}

pub struct Client {
    pub socket: TcpStream,
    protocol: Protocol,
    framed: bool,
    http: bool,
    sequence: i32,
}

/// What a call brought.
#[derive(Debug, PartialEq)]
pub enum Reply<T> {
    Value(T),
    /// An exception of the IDL: its field, and its first field.
    Thrown(i16, String),
    /// A `TApplicationException`.
    Application(i32, String),
}

impl<T: std::fmt::Debug> Reply<T> {
    pub fn value(self) -> T {
        match self {
            Reply::Value(value) => value,
            other => panic!("{other:?}"),
        }
    }
}

impl Client {
    /// Sends bytes as a message.
    pub async fn send(&mut self, message: &[u8]) {
        if self.http {
            let head = format!(
                "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-thrift\r\nContent-Length: {}\r\n\r\n",
                message.len()
            );
            self.socket.write_all(head.as_bytes()).await.expect("it is open");
        } else if self.framed {
            self.socket.write_all(&(message.len() as u32).to_be_bytes()).await.expect("it is open");
        }
        self.socket.write_all(message).await.expect("it is open");
    }

    /// A message with arguments that `write` writes, whose last field's number it is handed.
    pub fn message(&mut self, method: &str, write: impl FnOnce(&mut Writer, &mut i16)) -> Vec<u8> {
        self.sequence += 1;
        let mut writer = Writer::new(self.protocol);
        writer.message(method, MessageKind::Call, self.sequence);
        write(&mut writer, &mut 0);
        writer.stop();
        Bytes::from(writer.finish()).into()
    }

    /// Calls a method.
    pub async fn call<T: Wire>(&mut self, method: &str, write: impl FnOnce(&mut Writer, &mut i16)) -> Reply<T> {
        let message = self.message(method, write);
        self.send(&message).await;
        self.reply(method).await
    }

    async fn reply<T: Wire>(&mut self, method: &str) -> Reply<T> {
        let bytes = self.receive().await;
        let mut reader = Reader::new(self.protocol, &bytes);
        let message = reader.message().expect("a message");
        assert_eq!((message.name.as_str(), message.sequence), (method, self.sequence));
        let mut last = 0;
        if message.kind == MessageKind::Exception {
            reader.field(&mut last).expect("a field").expect("a text");
            let text = String::read(&mut reader).expect("a text");
            reader.field(&mut last).expect("a field").expect("a number");
            return Reply::Application(reader.i32().expect("a number"), text);
        }
        match reader.field(&mut last).expect("a field") {
            Some((_, 0)) => Reply::Value(T::read(&mut reader).expect("a value")),
            Some((Kind::Struct, id)) => {
                let mut last = 0;
                reader.field(&mut last).expect("a field").expect("a text");
                Reply::Thrown(id, String::read(&mut reader).expect("a text"))
            }
            Some(other) => panic!("{other:?}"),
            // Nothing: as a struct without fields.
            None => {
                Reply::Value(T::read(&mut Reader::new(self.protocol, &Bytes::from_static(&[0]))).expect("no value"))
            }
        }
    }

    /// One message's bytes.
    pub async fn receive(&mut self) -> Bytes {
        if self.http {
            let (status, body) = self.response().await;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            return body;
        }
        if self.framed {
            let length = self.socket.read_u32().await.expect("a frame");
            let mut bytes = vec![0; length as usize];
            self.socket.read_exact(&mut bytes).await.expect("a frame");
            return bytes.into();
        }
        let mut boundary = basalt_thrift::protocol::Boundary::new(self.protocol);
        let mut bytes = Vec::new();
        loop {
            bytes.push(self.socket.read_u8().await.expect("a reply"));
            if let Some(length) = boundary.find(&bytes, 1 << 30).expect("a message") {
                assert_eq!(length, bytes.len());
                return bytes.into();
            }
        }
    }

    /// Status and body of an answer over HTTP.
    pub async fn response(&mut self) -> (u16, Bytes) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.socket.read_u8().await.expect("a head"));
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        self.socket.read_exact(&mut body).await.expect("a body");
        (head.split(' ').nth(1).expect("a status").parse().expect("a number"), body.into())
    }

    /// Whether the gateway closes the connection.
    pub async fn is_closed(&mut self) -> bool {
        let mut left = Vec::new();
        // A reset is as good an end.
        self.socket.read_to_end(&mut left).await.map_or(true, |_| left.is_empty())
    }
}

/// Bytes of a text.
pub fn b(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
