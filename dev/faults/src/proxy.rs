//! A TCP proxy that misbehaves on demand: delays, cuts in the middle of a message, closes one half, swallows one
//! direction, sends requests twice.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::remote::Address;

/// How the proxy behaves from now on, also towards connections that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood {
    /// Longest wait of a piece, in either direction.
    pub delay_ms: u64,
    /// One piece in so many is cut in the middle, and the connection with it; 0: none.
    pub cut_one_in: u64,
    /// One piece in so many is the last of its direction, which is closed properly while the other goes on; 0: none.
    pub half_close_one_in: u64,
    /// Requests are taken and go nowhere.
    pub swallow_requests: bool,
    /// Replies are taken and go nowhere.
    pub swallow_replies: bool,
    /// One request in so many is sent a second time, at once or behind others; 0: none.
    pub repeat_one_in: u64,
}

/// Longest request that is carried. Nobody here sends longer ones.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// A connection's first bytes, before anything has a length: `HBas`, version, authentication.
const PREAMBLE_BYTES: usize = 6;
/// Requests that may pass between one and its repetition.
const MAX_BETWEEN: u64 = 3;

/// A running proxy.
pub struct Proxy {
    pub address: SocketAddr,
    mood: watch::Sender<Mood>,
    /// Connections cut or half closed and requests repeated so far.
    pub faults: Arc<AtomicU64>,
    pub open: Arc<AtomicUsize>,
    /// Raised to end all connections at once.
    generation: watch::Sender<u64>,
    acceptor: tokio::task::JoinHandle<()>,
}

struct Shared {
    target: Address,
    mood: watch::Receiver<Mood>,
    rng: Rng,
    faults: Arc<AtomicU64>,
    open: Arc<AtomicUsize>,
}

impl Proxy {
    /// A proxy to wherever `target` is.
    pub async fn start(target: Address, seed: u64) -> std::io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (mood, mood_seen) = watch::channel(Mood::default());
        let (generation, generation_seen) = watch::channel(0);
        let (faults, open) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let shared = Arc::new(Shared {
            target,
            mood: mood_seen,
            rng: Rng::seeded(seed),
            faults: faults.clone(),
            open: open.clone(),
        });
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (shared, mut generation) = (shared.clone(), generation_seen.clone());
                generation.mark_unchanged();
                tokio::spawn(async move {
                    shared.open.fetch_add(1, Ordering::Relaxed);
                    tokio::select! {
                        () = serve(client, &shared) => {}
                        _ = generation.changed() => {}
                    }
                    shared.open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(Proxy { address, mood, faults, open, generation, acceptor })
    }

    pub fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// Resets every connection.
    pub fn cut_all(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.generation.send_modify(|generation| *generation += 1);
    }
}

async fn serve(client: TcpStream, shared: &Shared) {
    let Some(target) = shared.target.get() else { return };
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    // When one direction is cut both end; when it is closed the other goes on.
    let requests = carry(Pieces::of_requests(client_read), server_write, shared, true);
    let replies = carry(Pieces::of_replies(server_read), client_write, shared, false);
    tokio::pin!(requests, replies);
    let (mut sent, mut answered) = (false, false);
    while !(sent && answered) {
        let cut = tokio::select! {
            end = &mut requests, if !sent => { sent = true; end }
            end = &mut replies, if !answered => { answered = true; end }
        };
        if cut {
            return;
        }
    }
}

/// What goes one way, in pieces: requests one by one, replies as they come.
struct Pieces {
    from: OwnedReadHalf,
    /// `None`: not looked at.
    requests: Option<u64>,
}

impl Pieces {
    fn of_requests(from: OwnedReadHalf) -> Pieces {
        Pieces { from, requests: Some(0) }
    }

    fn of_replies(from: OwnedReadHalf) -> Pieces {
        Pieces { from, requests: None }
    }

    /// The next piece; an empty one at the end.
    async fn next(&mut self, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        let Some(count) = &mut self.requests else {
            buffer.resize(16 * 1024, 0);
            let read = self.from.read(buffer).await?;
            buffer.truncate(read);
            return Ok(());
        };
        *count += 1;
        buffer.resize(if *count == 1 { PREAMBLE_BYTES } else { 4 }, 0);
        match self.from.read_exact(buffer).await {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                buffer.clear();
                return Ok(());
            }
            read => read?,
        };
        if let Some(len) = buffer.first_chunk::<4>().filter(|_| *count > 1) {
            let len = u32::from_be_bytes(*len) as usize;
            if len > MAX_REQUEST_BYTES {
                return Err(std::io::Error::other("no request"));
            }
            buffer.resize(4 + len, 0);
            self.from.read_exact(&mut buffer[4..]).await?;
        }
        Ok(())
    }

    /// Whether the last piece was a call: the preamble and the connection's header come before.
    fn is_call(&self) -> bool {
        self.requests.is_some_and(|count| count > 2)
    }
}

/// Carries one direction; whether it ended by being cut.
async fn carry(mut from: Pieces, mut to: OwnedWriteHalf, shared: &Shared, requests: bool) -> bool {
    let mut buffer = Vec::new();
    let mut mood = shared.mood.clone();
    // To be sent again, after so many pieces.
    let mut again: Option<(u64, Vec<u8>)> = None;
    loop {
        if from.next(&mut buffer).await.is_err() {
            return true;
        }
        if buffer.is_empty() {
            let _ = to.shutdown().await;
            return false;
        }
        let now = *mood.borrow_and_update();
        if now.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(shared.rng.below(now.delay_ms + 1))).await;
        }
        if (requests && now.swallow_requests) || (!requests && now.swallow_replies) {
            continue;
        }
        if now.cut_one_in > 0 && shared.rng.one_in(now.cut_one_in) {
            let part = shared.rng.below(buffer.len() as u64) as usize;
            let _ = to.write_all(&buffer[..part]).await;
            shared.faults.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        if now.repeat_one_in > 0 && from.is_call() && again.is_none() && shared.rng.one_in(now.repeat_one_in) {
            again = Some((shared.rng.below(MAX_BETWEEN + 1), buffer.clone()));
        }
        if to.write_all(&buffer).await.is_err() {
            return true;
        }
        match again.take() {
            Some((0, request)) => {
                shared.faults.fetch_add(1, Ordering::Relaxed);
                if to.write_all(&request).await.is_err() {
                    return true;
                }
            }
            Some((left, request)) => again = Some((left - 1, request)),
            None => {}
        }
        if now.half_close_one_in > 0 && shared.rng.one_in(now.half_close_one_in) {
            shared.faults.fetch_add(1, Ordering::Relaxed);
            let _ = to.shutdown().await;
            return false;
        }
    }
}
