//! A bare client of the endpoint: frames in, frames out.
#![allow(dead_code, reason = "each test file uses a part")]

use basalt_coordination::jute::{JutePut, JuteReader};
use basalt_coordination::{Endpoint, EndpointOptions, Kept, TreeHandle};
use base::{ManualClock, Rng};
use bytes::{BufMut, Bytes, BytesMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

pub struct Server {
    pub address: SocketAddr,
    pub tree: TreeHandle,
    pub clock: Arc<ManualClock>,
    pub rng: Arc<Rng>,
    _stop: oneshot::Sender<()>,
}

/// A live endpoint on a free port; it stops when dropped.
pub async fn start(options: EndpointOptions) -> Server {
    start_on(options, None).await
}

/// The same, with the nodes of an earlier life.
pub async fn start_on(options: EndpointOptions, kept: Option<&Kept>) -> Server {
    let clock = Arc::new(ManualClock::new(1_795_220_000_000));
    let rng = Arc::new(Rng::seeded(1));
    let any = "127.0.0.1:0".parse().expect("an address");
    let endpoint = Endpoint::bind(any, options, clock.clone(), rng.clone()).await.expect("a free port");
    let (address, tree) = (endpoint.local_addr().expect("bound"), endpoint.tree());
    if let Some(kept) = kept {
        tree.restore(kept).expect("a tree");
    }
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(endpoint.run(async {
        let _dropped = stopped.await;
    }));
    Server { address, tree, clock, rng, _stop: stop }
}

pub struct Client {
    pub stream: TcpStream,
    pub session: i64,
    pub password: Bytes,
    pub timeout_ms: i32,
    xid: i32,
}

pub struct Reply {
    pub xid: i32,
    pub zxid: i64,
    pub err: i32,
    pub body: Bytes,
}

/// No test waits longer for anything.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("an answer within 20 s")
}

impl Client {
    pub async fn connect(server: &Server) -> Client {
        Client::resume(server, 0, &[0; 16]).await
    }

    pub async fn resume(server: &Server, session: i64, password: &[u8]) -> Client {
        let stream = TcpStream::connect(server.address).await.expect("connects");
        let mut client = Client { stream, session: 0, password: Bytes::new(), timeout_ms: 0, xid: 0 };
        let mut body = BytesMut::new();
        body.put_i32(0);
        body.put_i64(0);
        body.put_i32(30_000);
        body.put_i64(session);
        body.put_buffer(password);
        body.put_boolean(false);
        client.send_raw(&body).await;
        let mut reply = JuteReader::new(client.read_frame().await.expect("a connect reply"));
        assert_eq!(reply.int(), Ok(0));
        client.timeout_ms = reply.int().expect("timeout");
        client.session = reply.long().expect("session");
        client.password = reply.buffer().expect("password");
        assert_eq!(reply.boolean(), Ok(false));
        assert!(reply.is_empty());
        client
    }

    pub async fn send_raw(&mut self, body: &[u8]) {
        let frame = [&(body.len() as u32).to_be_bytes(), body].concat();
        self.stream.write_all(&frame).await.expect("written");
    }

    /// The next frame's body; `None` when the server closed.
    pub async fn read_frame(&mut self) -> Option<Bytes> {
        read_frame(&mut self.stream).await
    }

    pub async fn reply(&mut self) -> Option<Reply> {
        let mut frame = JuteReader::new(self.read_frame().await?);
        let (xid, zxid, err) = (frame.int().expect("xid"), frame.long().expect("zxid"), frame.int().expect("err"));
        Some(Reply { xid, zxid, err, body: frame.rest() })
    }

    pub async fn send(&mut self, op: i32, body: impl FnOnce(&mut BytesMut)) -> i32 {
        self.xid += 1;
        let xid = self.xid;
        self.send_as(xid, op, body).await;
        xid
    }

    pub async fn send_as(&mut self, xid: i32, op: i32, body: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        out.put_i32(xid);
        out.put_i32(op);
        body(&mut out);
        self.send_raw(&out).await;
    }

    pub async fn call(&mut self, op: i32, body: impl FnOnce(&mut BytesMut)) -> Reply {
        let xid = self.send(op, body).await;
        let reply = self.reply().await.expect("a reply");
        assert_eq!(reply.xid, xid);
        reply
    }

    pub async fn create(&mut self, path: &str, flags: i32) -> Reply {
        self.call(1, |out| {
            out.put_string(path);
            out.put_buffer(b"data");
            out.put_u32(1);
            out.put_i32(31);
            out.put_string("world");
            out.put_string("anyone");
            out.put_i32(flags);
        })
        .await
    }

    /// exists 3, getData 4, getChildren 8, getChildren2 12.
    pub async fn look(&mut self, op: i32, path: &str, watch: bool) -> Reply {
        self.call(op, |out| {
            out.put_string(path);
            out.put_boolean(watch);
        })
        .await
    }

    /// The next frame, which must be a watch event: its type and path.
    pub async fn event(&mut self) -> (i32, String) {
        let event = self.reply().await.expect("an event");
        assert_eq!((event.xid, event.zxid, event.err), (-1, -1, 0));
        let mut body = JuteReader::new(event.body);
        let (kind, state) = (body.int().expect("type"), body.int().expect("state"));
        assert_eq!(state, 3);
        (kind, body.string().expect("path"))
    }
}

pub async fn read_frame(stream: &mut TcpStream) -> Option<Bytes> {
    let read = async {
        let len = stream.read_u32().await.ok()?;
        let mut body = vec![0; len as usize];
        stream.read_exact(&mut body).await.ok()?;
        Some(Bytes::from(body))
    };
    soon(read).await
}
