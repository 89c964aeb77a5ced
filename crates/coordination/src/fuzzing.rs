//! Connections over bytes in memory, for fuzzers: what a peer sends is there from the start, what it is sent goes nowhere.

use crate::server::{Connection, EndpointOptions};
use crate::state::Shared;
use base::{ManualClock, Rng};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Serves two connections to one tree in turns, `chunk` bytes at a time, until both have had all their bytes. Needs a
/// Tokio runtime with time.
pub async fn converse(first: &[u8], second: &[u8], chunk: usize) {
    let shared = Arc::new(Shared::new(Arc::new(ManualClock::new(1)), Arc::new(Rng::seeded(1))));
    let peer = SocketAddr::from(([127, 0, 0, 1], 1));
    let tick_ms = EndpointOptions::default().tick_ms;
    let serve = |rest| Connection::new(Script { rest, chunk, rested: false }, peer, &shared, tick_ms).serve();
    // How a connection ended is its own business.
    let (_first, _second) = tokio::join!(serve(first), serve(second));
    shared.expire_sessions();
}

struct Script<'a> {
    rest: &'a [u8],
    chunk: usize,
    rested: bool,
}

impl AsyncRead for Script<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.rested, true) {
            // The other connection's turn.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.rested = false;
        let len = self.chunk.max(1).min(buf.remaining()).min(self.rest.len());
        let (now, later) = self.rest.split_at(len);
        buf.put_slice(now);
        self.rest = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
