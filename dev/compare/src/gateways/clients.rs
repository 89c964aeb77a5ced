//! Clients of the gateways: one call at a time on a connection of their own. And the HTTP server that only knows one answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail, ensure};
use base::{Config, Rng};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{TABLE, VALUE_BYTES};
use crate::compare::drive::Worker;
use crate::compare::workers::{FAMILY, QUALIFIER, Rows};

/// A value is made of runs of eight letters, so an answer with it is at least so long.
const LEAST_ANSWER: usize = VALUE_BYTES / 8 * 8;
/// No answer of these clients is longer.
const MOST_ANSWER: usize = 1 << 20;

/// Gets over Thrift 1, in frames and the binary protocol.
pub(super) struct Thrift(Framed);

/// The same over Thrift 2.
pub(super) struct Thrift2(Framed);

struct Framed {
    address: SocketAddr,
    stream: Option<TcpStream>,
    rows: u64,
    rng: Rng,
    answer: Vec<u8>,
}

impl Framed {
    fn new(address: SocketAddr, rows: u64, rng: Rng) -> Framed {
        Framed { address, stream: None, rows, rng, answer: Vec::new() }
    }

    /// Sends a message and takes its reply, which must hold a value.
    async fn call(&mut self, mut message: Vec<u8>) -> anyhow::Result<()> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        let length = (message.len() as u32).to_be_bytes();
        message.splice(..0, length);
        stream.write_all(&message).await?;
        let length = stream.read_u32().await? as usize;
        ensure!(length <= MOST_ANSWER, "a reply of {length} bytes");
        self.answer.resize(length, 0);
        stream.read_exact(&mut self.answer).await?;
        self.stream = Some(stream);
        // The version and the type of the message: 2 is a reply, 3 an exception of the protocol.
        ensure!(self.answer.starts_with(&[0x80, 1, 0, 2]), "no reply: {}", String::from_utf8_lossy(&self.answer));
        ensure!(length > LEAST_ANSWER, "a reply without a value: {}", String::from_utf8_lossy(&self.answer));
        Ok(())
    }
}

/// A call of `get` as far as its arguments.
fn get_begins() -> Vec<u8> {
    let mut message = Vec::from(0x8001_0001_u32.to_be_bytes());
    text(&mut message, b"get");
    message.extend(1_u32.to_be_bytes());
    message
}

fn text(message: &mut Vec<u8>, text: &[u8]) {
    message.extend((text.len() as u32).to_be_bytes());
    message.extend(text);
}

/// Types of the binary protocol.
const STOP: u8 = 0;
const STRING: u8 = 11;
const STRUCT: u8 = 12;
const MAP: u8 = 13;
const LIST: u8 = 15;

fn field(message: &mut Vec<u8>, kind: u8, id: u8) {
    message.extend([kind, 0, id]);
}

impl Thrift {
    pub(super) fn new(address: SocketAddr, rows: u64, rng: Rng) -> Thrift {
        Thrift(Framed::new(address, rows, rng))
    }
}

impl Worker for Thrift {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let mut message = get_begins();
        let row = Rows::key(self.0.rng.below(self.0.rows));
        let column = format!("{FAMILY}:{QUALIFIER}");
        for (id, argument) in [(1, TABLE.as_bytes()), (2, &row), (3, column.as_bytes())] {
            field(&mut message, STRING, id);
            text(&mut message, argument);
        }
        // No attributes.
        field(&mut message, MAP, 4);
        message.extend([STRING, STRING, 0, 0, 0, 0, STOP]);
        self.0.call(message).await?;
        Ok(Some(1))
    }
}

impl Thrift2 {
    pub(super) fn new(address: SocketAddr, rows: u64, rng: Rng) -> Thrift2 {
        Thrift2(Framed::new(address, rows, rng))
    }
}

impl Worker for Thrift2 {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let mut message = get_begins();
        field(&mut message, STRING, 1);
        text(&mut message, TABLE.as_bytes());
        // TGet: the row, and one TColumn.
        field(&mut message, STRUCT, 2);
        field(&mut message, STRING, 1);
        text(&mut message, &Rows::key(self.0.rng.below(self.0.rows)));
        field(&mut message, LIST, 2);
        message.extend([STRUCT, 0, 0, 0, 1]);
        field(&mut message, STRING, 1);
        text(&mut message, FAMILY.as_bytes());
        field(&mut message, STRING, 2);
        text(&mut message, QUALIFIER.as_bytes());
        message.extend([STOP, STOP, STOP]);
        self.0.call(message).await?;
        Ok(Some(1))
    }
}

/// Gets of a cell over HTTP/1.1.
pub(super) struct Rest {
    address: SocketAddr,
    accept: &'static str,
    /// How many rows there are; 0 asks for the root.
    rows: u64,
    rng: Rng,
    sender: Option<http1::SendRequest<Empty<Bytes>>>,
}

impl Rest {
    pub(super) fn new(address: SocketAddr, accept: &'static str, rows: u64, rng: Rng) -> Rest {
        Rest { address, accept, rows, rng, sender: None }
    }

    async fn connected(&mut self) -> anyhow::Result<http1::SendRequest<Empty<Bytes>>> {
        if let Some(mut sender) = self.sender.take()
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

impl Worker for Rest {
    async fn step(&mut self) -> anyhow::Result<Option<u64>> {
        let path = if self.rows == 0 {
            "/".to_owned()
        } else {
            let key = Rows::key(self.rng.below(self.rows));
            format!("/{TABLE}/{}/{FAMILY}:{QUALIFIER}", String::from_utf8_lossy(&key))
        };
        let request = hyper::Request::get(path).header(HOST, "localhost").header(ACCEPT, self.accept);
        let mut sender = self.connected().await?;
        let response = sender.send_request(request.body(Empty::new())?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        self.sender = Some(sender);
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        ensure!(body.len() >= LEAST_ANSWER, "an answer without a value: {}", String::from_utf8_lossy(&body));
        Ok(Some(1))
    }
}

/// REST's HTTP server in a process of its own that answers everything with the same bytes.
pub(super) struct Fixed {
    child: Child,
    address: SocketAddr,
}

impl Fixed {
    pub(super) async fn start() -> anyhow::Result<Fixed> {
        let program = std::env::current_exe().context("where is this program?")?;
        let mut command = Command::new(program);
        command.args(["gateways", "--serve-fixed"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot run this program again")?;
        let said = child.stdout.take().context("its output")?;
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).map(|_| line)
        });
        let line = line.await??;
        let address = line.trim().parse().with_context(|| format!("no address: {line:?}"))?;
        Ok(Fixed { child, address })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn client(&self) -> Rest {
        Rest::new(self.address, "application/octet-stream", 0, Rng::seeded(1))
    }
}

impl Drop for Fixed {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Says where it listens, and answers until the one who started it is gone.
pub(super) async fn serve_fixed(bytes: usize) -> anyhow::Result<()> {
    let server = rest::Server::bind((Ipv4Addr::LOCALHOST, 0).into(), &Config::default())?;
    println!("{}", server.local_addr());
    let body = Bytes::from(vec![b'x'; bytes]);
    let answer = move |_| {
        let response = hyper::Response::builder().header(hyper::header::CONTENT_TYPE, "application/octet-stream");
        let response = response.body(rest::ReplyBody::whole(body.clone()));
        async move { response.expect("a name and a value that HTTP allows") }
    };
    let (ended, gone) = tokio::sync::oneshot::channel::<()>();
    std::thread::Builder::new().name("parent".into()).spawn(move || {
        std::io::stdin().read_line(&mut String::new()).ok();
        drop(ended);
    })?;
    server.serve(answer, async { gone.await.unwrap_or_default() }).await?;
    Ok(())
}
