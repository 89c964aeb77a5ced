//! A TCP proxy that misbehaves on demand: delays, cuts in the middle of a message, closes one half, swallows one
//! direction.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::Dice;
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
}

/// A running proxy.
pub struct Proxy {
    pub address: SocketAddr,
    mood: watch::Sender<Mood>,
    /// Connections cut or half closed so far.
    pub faults: Arc<AtomicU64>,
    pub open: Arc<AtomicUsize>,
    /// Raised to end all connections at once.
    generation: watch::Sender<u64>,
    acceptor: tokio::task::JoinHandle<()>,
}

struct Shared {
    target: Address,
    mood: watch::Receiver<Mood>,
    dice: Dice,
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
            dice: Dice::seeded(seed),
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
    let requests = carry(client_read, server_write, shared, true);
    let replies = carry(server_read, client_write, shared, false);
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

/// Carries one direction; whether it ended by being cut.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared, requests: bool) -> bool {
    let mut buffer = vec![0; 16 * 1024];
    let mut mood = shared.mood.clone();
    loop {
        let read = match from.read(&mut buffer).await {
            Ok(0) => {
                let _ = to.shutdown().await;
                return false;
            }
            Ok(read) => read,
            Err(_) => return true,
        };
        let now = *mood.borrow_and_update();
        if now.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(shared.dice.below(now.delay_ms + 1))).await;
        }
        if (requests && now.swallow_requests) || (!requests && now.swallow_replies) {
            continue;
        }
        if now.cut_one_in > 0 && shared.dice.one_in(now.cut_one_in) {
            let part = shared.dice.below(read as u64) as usize;
            let _ = to.write_all(&buffer[..part]).await;
            shared.faults.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return true;
        }
        if now.half_close_one_in > 0 && shared.dice.one_in(now.half_close_one_in) {
            shared.faults.fetch_add(1, Ordering::Relaxed);
            let _ = to.shutdown().await;
            return false;
        }
    }
}
