//! What takes spans, as a collector of OpenTelemetry does, and keeps them.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Takes whatever is posted to it, until the process ends.
pub struct Collector {
    endpoint: String,
    posts: Arc<(Mutex<Vec<Post>>, Condvar)>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Post {
    /// The request line and headers.
    pub head: String,
    /// What they announce.
    pub body: Vec<u8>,
}

impl Collector {
    /// Listens on a free port of this machine.
    ///
    /// # Errors
    /// There is none.
    pub fn start() -> io::Result<Collector> {
        Collector::listen(true)
    }

    /// As [`Collector::start`], and what is posted is thrown away: for loads that go on for long.
    ///
    /// # Errors
    /// There is none.
    pub fn start_forgetful() -> io::Result<Collector> {
        Collector::listen(false)
    }

    fn listen(keeps: bool) -> io::Result<Collector> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let posts: Arc<(Mutex<Vec<Post>>, Condvar)> = Arc::default();
        let kept = posts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that left early is missed by the test that waits for it.
                let Ok((mut stream, post)) = stream.and_then(take) else { continue };
                // Kept before it is answered: whoever has an answer finds it.
                if keeps {
                    kept.0.lock().unwrap_or_else(PoisonError::into_inner).push(post);
                    kept.1.notify_all();
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Ok(Collector { endpoint, posts })
    }

    /// `http://HOST:PORT`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What was posted, once there is something; nothing after `patience`.
    pub fn posts(&self, patience: Duration) -> Vec<Post> {
        let until = Instant::now() + patience;
        let mut posts = self.posts.0.lock().unwrap_or_else(PoisonError::into_inner);
        while posts.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            posts = self.posts.1.wait_timeout(posts, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        posts.clone()
    }
}

/// Reads a request, which is to be answered.
fn take(mut stream: TcpStream) -> io::Result<(TcpStream, Post)> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    let post = loop {
        if let Some(end) = all.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) {
            let head = String::from_utf8_lossy(&all[..end]).into_owned();
            let len = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if all.len() >= end + len.unwrap_or(0) {
                break Post { head, body: all.split_off(end) };
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => all.extend_from_slice(&buffer[..read]),
        }
    };
    Ok((stream, post))
}
