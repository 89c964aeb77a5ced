//! The endpoint: a listener and one task per connection.

use crate::jute::{JutePut, JuteReader, Malformed};
use crate::request::{Caller, Flow, handle};
use crate::state::{Event, Shared, TreeHandle};
use crate::{MAX_FRAME_BYTES, settings, words};
use base::{Clock, Config, Rng};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A peer must say who it is within this time.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A peer must take a reply within this time.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// What is to be kept must be durable within this time; the client is then in doubt, as with any ensemble that it loses.
const KEEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Replies are written when this many bytes of them wait.
const WRITE_AT_BYTES: usize = 256 << 10;

/// Room made for a read; a longer frame grows its buffer as its bytes arrive, not by what its length claims.
const READ_BYTES: usize = 4 << 10;

/// How the endpoint behaves.
#[derive(Clone, Copy, Debug)]
pub struct EndpointOptions {
    /// Sessions last between 2 and 20 ticks of silence.
    pub tick_ms: u32,
    /// Connections from one address; 0 for no limit.
    pub max_connections_per_address: u32,
}

impl Default for EndpointOptions {
    fn default() -> EndpointOptions {
        EndpointOptions::from_config(&Config::default())
    }
}

impl EndpointOptions {
    /// As the settings say.
    pub fn from_config(config: &Config) -> EndpointOptions {
        EndpointOptions {
            tick_ms: config.get(&settings::TICK_TIME_MS),
            max_connections_per_address: config.get(&settings::MAX_CLIENT_CONNECTIONS),
        }
    }
}

/// The embedded coordination endpoint, listening.
pub struct Endpoint {
    listener: TcpListener,
    shared: Arc<Shared>,
    options: EndpointOptions,
}

impl Endpoint {
    /// Takes the port; nobody is answered before [`Endpoint::run`].
    ///
    /// # Errors
    /// The system's, when the address cannot be had.
    pub async fn bind(
        address: SocketAddr,
        options: EndpointOptions,
        clock: Arc<dyn Clock>,
        rng: Arc<Rng>,
    ) -> io::Result<Endpoint> {
        let listener = TcpListener::bind(address).await?;
        Ok(Endpoint { listener, shared: Arc::new(Shared::new(clock, rng)), options })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The tree, for the server's own use.
    pub fn tree(&self) -> TreeHandle {
        TreeHandle::new(Arc::clone(&self.shared))
    }

    /// Serves until `shutdown` is ready; every connection is then closed.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let half_tick = Duration::from_millis(u64::from(self.options.tick_ms / 2).max(1));
        let mut ticks = tokio::time::interval(half_tick);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                _ = ticks.tick() => self.shared.expire_sessions(),
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(stream, peer, &mut connections),
                    Err(error) => {
                        // Out of descriptors, mostly: those who are connected go on, newcomers wait.
                        tracing::warn!(%error, "cannot accept a coordination connection");
                        tokio::time::sleep(half_tick.min(Duration::from_millis(100))).await;
                    }
                },
            }
        }
        connections.shutdown().await;
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr, connections: &mut JoinSet<()>) {
        let limit = self.options.max_connections_per_address as usize;
        let state = self.shared.lock();
        if limit != 0 && state.connections_from(peer) >= limit {
            tracing::warn!(%peer, limit, "too many coordination connections from one address: closed");
            return;
        }
        drop(state);
        // Without it replies would only come later.
        let _ = stream.set_nodelay(true);
        let connection = Connection::new(stream, peer, &self.shared, self.options.tick_ms);
        connections.spawn(async move {
            if let Err(end) = connection.serve().await {
                tracing::debug!(%peer, reason = %end, "coordination connection ended");
            }
        });
    }
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("a frame of {0} bytes is over the limit of {MAX_FRAME_BYTES}")]
    FrameTooLong(u32),
    #[error("the peer took too long")]
    TooSlow,
    #[error("the session is unknown or over")]
    NoSession,
    #[error("what it asked to be kept could not be written for too long")]
    NotKept,
    #[error("too many sessions")]
    TooManySessions,
}

pub(crate) struct Connection<S> {
    stream: S,
    id: u64,
    session: i64,
    events: mpsc::Receiver<Event>,
    shared: Arc<Shared>,
    tick_ms: u32,
    inbox: BytesMut,
    outbox: BytesMut,
    /// Up to this transaction what is kept must be durable before the outbox leaves.
    depends_on: i64,
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.sessions.detach(self.session, self.id);
        state.disconnect(self.id);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// One more connection, over `stream`.
    pub(crate) fn new(stream: S, peer: SocketAddr, shared: &Arc<Shared>, tick_ms: u32) -> Connection<S> {
        let (id, events) = shared.lock().connect(peer);
        let (inbox, outbox) = (BytesMut::new(), BytesMut::new());
        Connection { stream, id, session: 0, events, shared: Arc::clone(shared), tick_ms, inbox, outbox, depends_on: 0 }
    }

    /// Until either side ends it.
    pub(crate) async fn serve(mut self) -> Result<(), End> {
        if !timeout(HANDSHAKE_TIMEOUT, self.greet()).await.map_err(|_| End::TooSlow)?? {
            return Ok(());
        }
        loop {
            while let Some(frame) = self.next_frame()? {
                if self.answer(frame)? == Flow::Close {
                    return self.write_out().await;
                }
                if self.outbox.len() >= WRITE_AT_BYTES {
                    self.write_out().await?;
                }
            }
            self.write_out().await?;
            self.inbox.reserve(READ_BYTES);
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.put_event(&event),
                    // Cut off: the session is over, or goes on over another connection.
                    None => return Ok(()),
                },
                read = self.stream.read_buf(&mut self.inbox) => if read? == 0 { return Ok(()) },
            }
        }
    }

    /// The first frame: a four-letter word or the session. Whether the connection goes on.
    async fn greet(&mut self) -> Result<bool, End> {
        loop {
            if let Some(first) = self.inbox.first_chunk::<4>().copied()
                && words::is_word(first)
            {
                let answer = words::answer(first, &self.shared.lock());
                self.outbox.put_slice(answer.as_bytes());
                self.write_out().await?;
                self.stream.shutdown().await?;
                return Ok(false);
            }
            if let Some(frame) = self.next_frame()? {
                let result = self.open_session(frame);
                self.write_out().await?;
                return result.map(|()| true);
            }
            self.inbox.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.inbox).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// The next whole frame that has arrived.
    fn next_frame(&mut self) -> Result<Option<Bytes>, End> {
        let Some(length) = self.inbox.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length);
        if length as usize > MAX_FRAME_BYTES {
            return Err(End::FrameTooLong(length));
        }
        if self.inbox.len() < 4 + length as usize {
            return Ok(None);
        }
        self.inbox.advance(4);
        Ok(Some(self.inbox.split_to(length as usize).freeze()))
    }

    fn open_session(&mut self, frame: Bytes) -> Result<(), End> {
        let mut request = JuteReader::new(frame);
        let (_protocol, _last_zxid_seen) = (request.int()?, request.long()?);
        let (asked_ms, asked_session) = (request.int()?, request.long()?);
        let password = request.buffer()?;
        // Clients before 3.4 do not send the read-only flag and do not expect one back.
        let with_read_only = !request.is_empty();
        let lowest = 2 * self.tick_ms;
        let timeout_ms = u32::try_from(asked_ms).unwrap_or(0).clamp(lowest, lowest.saturating_mul(10));
        let now_us = self.shared.clock.monotonic_us();
        let mut state = self.shared.lock();
        let opened = if asked_session == 0 {
            let password = self.shared.rng.bytes_16();
            state.note_transaction();
            let id = state.sessions.open(password, timeout_ms, self.id, now_us).ok_or(End::TooManySessions)?;
            Some((id, timeout_ms))
        } else {
            state.sessions.resume(asked_session, &password, self.id, now_us).map(|(earlier, timeout_ms)| {
                if let Some(earlier) = earlier {
                    state.disconnect(earlier);
                }
                (asked_session, timeout_ms)
            })
        };
        let (session, timeout_ms) = opened.unwrap_or((0, 0));
        let password = state.sessions.password(session).unwrap_or_default();
        drop(state);
        self.session = session;
        let out = &mut self.outbox;
        out.put_u32(36 + u32::from(with_read_only));
        out.put_i32(0);
        out.put_u32(timeout_ms);
        out.put_i64(session);
        out.put_buffer(&password);
        if with_read_only {
            out.put_boolean(false);
        }
        if session == 0 { Err(End::NoSession) } else { Ok(()) }
    }

    /// Does one request. Events that fired before its reply are put before it.
    fn answer(&mut self, frame: Bytes) -> Result<Flow, End> {
        let now_us = self.shared.clock.monotonic_us();
        let now_ms = self.shared.clock.now_ms().0;
        let caller = Caller { connection: self.id, session: self.session, now_ms };
        let mut reply = BytesMut::new();
        let mut state = self.shared.lock();
        if !state.sessions.touch(self.session, now_us) {
            return Err(End::NoSession);
        }
        state.received += 1;
        let flow = handle(&mut state, &caller, frame, &mut reply)?;
        state.sent += 1;
        self.depends_on = self.depends_on.max(state.depends_on);
        let mut events = 0;
        while let Ok(event) = self.events.try_recv() {
            events += 1;
            self.outbox.extend_from_slice(&event.0);
            self.depends_on = self.depends_on.max(event.1);
        }
        state.sent += events;
        drop(state);
        self.outbox.unsplit(reply);
        Ok(flow)
    }

    fn put_event(&mut self, (frame, depends_on): &Event) {
        self.outbox.extend_from_slice(frame);
        self.depends_on = self.depends_on.max(*depends_on);
    }

    /// Waits until what the outbox tells of is durable. Its session is heard of meanwhile: the client waits for this end.
    async fn durable(&mut self) -> Result<(), End> {
        let mut durable = self.shared.durable.subscribe();
        let mut waited = Duration::ZERO;
        let turn = Duration::from_millis(u64::from(self.tick_ms).max(1)).min(KEEP_TIMEOUT);
        while timeout(turn, durable.wait_for(|durable| *durable >= self.depends_on)).await.is_err() {
            waited += turn;
            if waited >= KEEP_TIMEOUT {
                return Err(End::NotKept);
            }
            let now_us = self.shared.clock.monotonic_us();
            self.shared.lock().sessions.touch(self.session, now_us);
        }
        self.depends_on = 0;
        Ok(())
    }

    async fn write_out(&mut self) -> Result<(), End> {
        if !self.outbox.is_empty() {
            if self.depends_on > 0 {
                self.durable().await?;
            }
            let written = timeout(WRITE_TIMEOUT, self.stream.write_all(&self.outbox)).await;
            written.map_err(|_| End::TooSlow)??;
            self.outbox.clear();
        }
        Ok(())
    }
}
