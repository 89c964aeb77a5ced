//! A gateway on a free port, and requests to it over plain sockets.

use crate::common::Place;
use basalt_rest::{Gateway, Server};
use base::Config;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A gateway and the node behind it.
pub struct Rest {
    pub place: Place,
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

/// What came back.
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Rest {
    pub async fn start(settings: &[(&str, &str)]) -> Rest {
        let place = Place::start().await;
        let mut config = Config::default();
        settings.iter().for_each(|(key, value)| config.set(*key, *value));
        let ledger = place.ledger.clone();
        let gateway = Arc::new(Gateway::new(place.connection.clone(), &config, ledger));
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &config).expect("a free port");
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.run(gateway, async move { drop(stopped.await) }));
        Rest { place, address, stop, served }
    }

    /// Sends bytes as they are, and reads until the server closes.
    pub async fn raw(&self, request: &[u8]) -> Response {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.write_all(request).await.expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("answered");
        parse(&answer)
    }

    /// `METHOD /path`, headers as `Name: value`.
    pub async fn request(&self, line: &str, headers: &[&str], body: &[u8]) -> Response {
        let mut head =
            format!("{line} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        let mut request = (head + "\r\n").into_bytes();
        request.extend_from_slice(body);
        self.raw(&request).await
    }

    /// Without a body.
    pub async fn get(&self, path: &str, accept: &str) -> Response {
        self.request(&format!("GET {path}"), &[&format!("Accept: {accept}")], b"").await
    }

    /// Makes `t` with the families `f` and `g`.
    pub async fn table(&self) {
        let schema = b"{\"name\":\"t\",\"ColumnSchema\":[{\"name\":\"f\",\"VERSIONS\":\"3\"},{\"name\":\"g\"}]}";
        let made = self.request("PUT /t/schema", &["Content-Type: application/json"], schema).await;
        assert_eq!((made.status, made.header("location")), (201, Some("http://gateway/t/schema")), "{}", made.text());
    }

    pub async fn stop(self) {
        self.stop.send(()).expect("it runs");
        self.served.await.expect("no panic").expect("it ends well");
        self.place.stop().await;
    }
}

fn parse(answer: &[u8]) -> Response {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = &answer[end + 4..];
    Response { status, headers, body: if chunked { unchunked(body) } else { body.to_vec() } }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&body[..end]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let size = size.expect("a chunk's size");
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
    whole
}
