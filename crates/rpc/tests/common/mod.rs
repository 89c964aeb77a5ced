//! A toy server and a raw connection to it.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "a test starts real threads")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use basalt_rpc::frame::{Front, put_frame, take_delimited, take_frame};
use basalt_rpc::{Call, Cancellation, Exception, Handler, Limits, Outcome, Reply, Responder, Server};
use base::{Config, ManualClock};
use bytes::{Bytes, BytesMut};
use proto::methods::Method;
use proto::{Message, pb};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Answers: Get with the row it asks for; Multi with the cells it brings; BulkLoadHFile when the gate opens; Scan with
/// as many bytes as `number_of_rows` says; ExecService with its own request, from another thread; a Scan that closes when [`answer_waiting`] is
/// called. ExecRegionServerService
/// forgets to answer, or panics before it could. CleanupBulkLoad and PrepareBulkLoad panic, at once and later. Any other
/// method is not supported.
pub struct Toy {
    pub cluster_id: Option<String>,
    pub gate: Arc<Semaphore>,
    pub running: Arc<AtomicU32>,
    /// Every call is answered with an empty message.
    pub says_yes: bool,
    /// Scans that close, and how long their answers shall be.
    pub waiting: Waiting,
    /// Whether anybody still waits for the last BulkLoadHFile.
    pub cancellation: Arc<Mutex<Option<Cancellation>>>,
}

pub type Waiting = Arc<Mutex<Vec<(Responder, usize)>>>;

/// Answers the calls that wait, on this thread.
pub fn answer_waiting(waiting: &Waiting) {
    for (responder, len) in waiting.lock().unwrap().drain(..) {
        responder.answer(Ok(Reply { message: Bytes::from(vec![0; len]), ..Reply::default() }));
    }
}

impl Default for Toy {
    fn default() -> Self {
        let gate = Arc::new(Semaphore::new(0));
        Self {
            cluster_id: Some("the-cluster".into()),
            gate,
            running: Arc::default(),
            says_yes: false,
            waiting: Arc::default(),
            cancellation: Arc::default(),
        }
    }
}

impl Handler for Toy {
    fn call(&self, call: Call) -> Outcome {
        if self.says_yes {
            return Outcome::Ready(Ok(Reply::default()));
        }
        match call.method.method {
            Method::ClientGet => match call.decode::<pb::GetRequest>() {
                Ok(request) => Outcome::reply(&pb::CoprocessorServiceResult {
                    value: Some(pb::NameBytesPair { name: call.user.to_string(), value: Some(request.get.row) }),
                }),
                Err(exception) => exception.into(),
            },
            Method::ClientMulti => Outcome::Ready(call.cells().map(|cells| Reply {
                message: Bytes::new(),
                cells: cells.bytes().clone(),
                may_have_tags: true,
                ..Reply::default()
            })),
            Method::ClientScan => match call.decode::<pb::ScanRequest>() {
                Ok(request) if request.close_scanner() => {
                    self.waiting.lock().unwrap().push((call.responder(), request.number_of_rows() as usize));
                    Outcome::Deferred
                }
                Ok(request) => Outcome::Ready(Ok(Reply {
                    message: Bytes::from(vec![0; request.number_of_rows() as usize]),
                    ..Reply::default()
                })),
                Err(exception) => exception.into(),
            },
            Method::ClientBulkLoadHFile => {
                let (gate, running) = (self.gate.clone(), self.running.clone());
                *self.cancellation.lock().unwrap() = Some(call.cancellation());
                Outcome::later(async move {
                    running.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.expect("the gate is never closed").forget();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(Reply::default())
                })
            }
            Method::ClientCleanupBulkLoad => panic!("inline"),
            Method::ClientExecService => {
                let responder = call.responder();
                std::thread::spawn(move || responder.answer(Ok(Reply { message: call.param, ..Reply::default() })));
                Outcome::Deferred
            }
            Method::ClientExecRegionServerService => {
                let _broken = call.responder();
                assert!(call.param.is_empty(), "behind a deferred call");
                Outcome::Deferred
            }
            Method::ClientPrepareBulkLoad => Outcome::later(async { panic!("later") }),
            _ => Exception::unsupported(call.method).into(),
        }
    }

    fn cluster_id(&self) -> Option<String> {
        self.cluster_id.clone()
    }
}

pub fn limits() -> Limits {
    Limits::from_config(&Config::default())
}

pub fn start(toy: Toy, limits: Limits) -> Server {
    let any_port = "127.0.0.1:0".parse().unwrap();
    Server::bind(any_port, Arc::new(toy), Arc::new(ManualClock::new(0)), limits).unwrap()
}

/// A connection that says exactly what it is told to.
pub struct Raw {
    pub stream: TcpStream,
    buffer: BytesMut,
}

pub fn header(service: &str) -> pb::ConnectionHeader {
    pb::ConnectionHeader {
        user_info: Some(pb::UserInformation { effective_user: "me".into(), real_user: None }),
        service_name: Some(service.into()),
        cell_block_codec_class: Some("org.apache.hadoop.hbase.codec.KeyValueCodec".into()),
        version_info: Some(pb::VersionInfo { version: "2.6.4".into(), ..Default::default() }),
        ..Default::default()
    }
}

/// The request as a frame.
pub fn request(id: u32, method: &str, param: &[u8], cells: &[u8]) -> BytesMut {
    let header = pb::RequestHeader {
        call_id: Some(id),
        method_name: Some(method.into()),
        request_param: Some(true),
        cell_block_meta: (!cells.is_empty()).then_some(pb::CellBlockMeta { length: Some(cells.len() as u32) }),
        ..Default::default()
    };
    let mut frame = BytesMut::new();
    put_frame(&mut frame, &header, Some(param), cells.len());
    frame.extend_from_slice(cells);
    frame
}

/// A Scan for as many bytes; it waits for [`answer_waiting`].
pub fn waiting_request(id: u32, bytes: u32) -> BytesMut {
    let scan = pb::ScanRequest { number_of_rows: Some(bytes), close_scanner: Some(true), ..Default::default() };
    request(id, "Scan", &scan.encode_to_vec(), b"")
}

pub fn get_request(id: u32, row: &[u8]) -> BytesMut {
    let get = pb::Get { row: Bytes::copy_from_slice(row), ..Default::default() };
    request(id, "Get", &pb::GetRequest { get, ..Default::default() }.encode_to_vec(), b"")
}

impl Raw {
    pub async fn connect(server: &Server) -> Self {
        Self::connect_to(server.local_addr()).await
    }

    pub async fn connect_to(address: std::net::SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), buffer: BytesMut::new() }
    }

    /// Connected and introduced to ClientService.
    pub async fn ready(server: &Server) -> Self {
        let mut raw = Self::connect(server).await;
        raw.hello(&header("ClientService")).await;
        raw
    }

    pub async fn hello(&mut self, header: &pb::ConnectionHeader) {
        self.send(b"HBas\0P").await;
        self.send_delimited(&header.encode_to_vec()).await;
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub async fn send_delimited(&mut self, bytes: &[u8]) {
        self.send(&(bytes.len() as u32).to_be_bytes()).await;
        self.send(bytes).await;
    }

    /// The next frame; `None` when the server has ended the connection.
    pub async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Front::Frame(frame) = take_frame(&mut self.buffer, 1 << 30) {
                return Some(frame);
            }
            let read = tokio::time::timeout(Duration::from_secs(20), self.stream.read_buf(&mut self.buffer)).await;
            if !matches!(read.expect("neither a frame nor the end"), Ok(n) if n > 0) {
                return None;
            }
        }
    }

    /// The next reply: its header and what follows.
    pub async fn reply(&mut self) -> (pb::ResponseHeader, Bytes) {
        let mut frame = self.frame().await.expect("a reply, not the end of the connection");
        let header = take_delimited(&mut frame).unwrap();
        (pb::ResponseHeader::decode(header).unwrap(), frame)
    }

    /// The next reply, which is an exception: call id, simple class name, text.
    pub async fn exception(&mut self) -> (i32, String, String) {
        let (header, _) = self.reply().await;
        let exception = header.exception.as_ref().expect("an exception");
        let class = exception.exception_class_name().rsplit('.').next().unwrap().to_owned();
        (header.call_id() as i32, class, exception.stack_trace().to_owned())
    }

    /// A Get goes through: the connection is alive.
    pub async fn assert_alive(&mut self) {
        self.send(&get_request(4242, b"alive")).await;
        let (header, mut rest) = self.reply().await;
        assert_eq!((header.call_id(), header.exception), (4242, None));
        let reply = pb::CoprocessorServiceResult::decode(take_delimited(&mut rest).unwrap()).unwrap();
        assert_eq!(reply.value.unwrap().value.unwrap(), "alive");
    }

    pub async fn assert_closed(&mut self) {
        assert_eq!(self.frame().await, None, "the connection should have ended");
    }
}

/// Waits until `condition` holds; the server's tasks run meanwhile.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}
