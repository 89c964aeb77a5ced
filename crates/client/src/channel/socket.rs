//! One TCP connection to one service of one server.
//!
//! A caller appends its frame to the connection's buffer and waits for its slot to be filled. Who finds nobody else
//! waiting writes at once; otherwise the connection's task writes for all, after whoever can run has run, so that many
//! requests leave in one system call. Replies that came in one read are put into their slots under one lock.
//! A slot's number is the low half of the call id; the high half counts its uses, so that a late reply finds nobody.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use proto::{Message, pb};
use rpc::CellCodec;
use rpc::frame::{Front, split_body, take_delimited, take_frame};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use super::encode::put_request;
use super::room::{READ_BYTES, make_room};
use super::{Reply, Request};
use crate::options::Options;
use crate::{Error, Result};

/// Replies longer than this end the connection.
const MAX_REPLY_BYTES: u64 = 1 << 31;
/// A caller that finds this much waiting to be written writes it itself.
const WRITE_NOW_BYTES: usize = 128 << 10;
/// Calls are looked through for lost ones this often.
const TICK: Duration = Duration::from_millis(500);
/// Calls under way on one connection at most: the low half of a call id.
const MAX_CALLS: usize = 1 << 16;

enum Slot {
    /// Free; the next free one.
    Free(Option<u32>),
    /// A caller waits.
    Waiting { waker: Option<Waker>, deadline_tick: u64 },
    /// The reply is here, the caller has not looked yet.
    Done(Result<(Bytes, Option<u32>)>),
    /// Nobody waits any more.
    Forgotten { deadline_tick: u64 },
}

struct State {
    /// Frames to write.
    out: BytesMut,
    /// Somebody is writing, and will look again before stopping.
    writing: bool,
    /// The socket takes no more; the task waits for it.
    blocked: bool,
    /// Slots and the number of uses of each.
    slots: Vec<(Slot, u16)>,
    first_free: Option<u32>,
    /// Callers that wait.
    waiting: usize,
    /// Ticks since the connection was made.
    now_tick: u64,
    /// Why there are no more calls.
    ended: Option<Error>,
}

impl State {
    fn take_slot(&mut self, slot: Slot) -> Option<u32> {
        let index = match self.first_free {
            Some(index) => {
                if let Slot::Free(next) = self.slots[index as usize].0 {
                    self.first_free = next;
                }
                index
            }
            None if self.slots.len() < MAX_CALLS => {
                self.slots.push((Slot::Free(None), 0));
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let entry = &mut self.slots[index as usize];
        entry.0 = slot;
        entry.1 = (entry.1 + 1) & 0x7FFF;
        Some(index)
    }

    fn release(&mut self, index: u32) {
        self.slots[index as usize].0 = Slot::Free(self.first_free);
        self.first_free = Some(index);
    }

    /// Puts a reply where its caller looks; the caller's waker comes back.
    fn fill(&mut self, index: u32, reply: Result<(Bytes, Option<u32>)>) -> Option<Waker> {
        let entry = &mut self.slots[index as usize].0;
        match entry {
            Slot::Waiting { waker, .. } => {
                let waker = waker.take();
                *entry = Slot::Done(reply);
                self.waiting -= 1;
                waker
            }
            Slot::Forgotten { .. } => {
                self.release(index);
                None
            }
            Slot::Free(_) | Slot::Done(_) => None,
        }
    }
}

struct Shared {
    /// Whether `State::ended` is set: callers ask before each call.
    is_ended: AtomicBool,
    server: Arc<str>,
    codec: CellCodec,
    rpc_timeout: Duration,
    state: Mutex<State>,
    wake: Notify,
    write: OwnedWriteHalf,
}

/// The connection. Dropping the last handle closes it.
pub(crate) struct Socket {
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Socket {
    /// Connects to `service` at `server` (`host:port`).
    pub(super) async fn connect(server: Arc<str>, service: &str, options: &Options) -> Result<Arc<Socket>> {
        let failed = |error: io::Error| Error::Io { server: server.clone(), error: Arc::new(error) };
        let connecting = tokio::time::timeout(options.connect_timeout, TcpStream::connect(&*server));
        let stream = connecting.await.map_err(|_| failed(io::ErrorKind::TimedOut.into()))?.map_err(failed)?;
        rpc::socket::prepare(&stream);
        let (read, write) = stream.into_split();
        let header = pb::ConnectionHeader {
            user_info: Some(pb::UserInformation { effective_user: options.user.clone(), real_user: None }),
            service_name: Some(service.to_owned()),
            cell_block_codec_class: Some(options.codec.class().to_owned()),
            version_info: Some(pb::VersionInfo {
                version: "2.6.4".to_owned(),
                version_major: Some(2),
                version_minor: Some(6),
                ..pb::VersionInfo::default()
            }),
            ..pb::ConnectionHeader::default()
        };
        let mut out = BytesMut::with_capacity(4096);
        out.extend_from_slice(b"HBas\0P");
        out.put_u32(header.encoded_len() as u32);
        header.encode_raw(&mut out);
        let shared = Arc::new(Shared {
            is_ended: AtomicBool::new(false),
            server,
            codec: options.codec,
            rpc_timeout: options.rpc_timeout,
            state: Mutex::new(State {
                out,
                writing: false,
                blocked: false,
                slots: Vec::new(),
                first_free: None,
                waiting: 0,
                now_tick: 0,
                ended: None,
            }),
            wake: Notify::new(),
            write,
        });
        let task = tokio::spawn(shared.clone().run(read));
        Ok(Arc::new(Socket { shared, task }))
    }

    /// Whether it takes calls no more.
    pub(super) fn is_ended(&self) -> bool {
        self.shared.is_ended.load(Ordering::Acquire)
    }

    /// `host:port`.
    pub(super) fn server(&self) -> &Arc<str> {
        &self.shared.server
    }

    /// How long a call may take unless it says otherwise.
    pub(super) fn rpc_timeout(&self) -> Duration {
        self.shared.rpc_timeout
    }

    /// Sends a call; its reply is what the returned future brings.
    pub(super) fn start<M: Message>(self: Arc<Self>, request: Request<'_, M>, timeout: Duration) -> Result<Pending> {
        let shared = &*self.shared;
        let (index, how) = {
            let mut state = shared.state.lock();
            let deadline_tick = state.now_tick + ticks(timeout);
            let slot = Slot::Waiting { waker: None, deadline_tick };
            let (index, was_empty) = shared.enqueue(&mut state, slot, &request, timeout)?;
            state.waiting += 1;
            (index, shared.who_writes(&mut state, was_empty))
        };
        shared.write_as(how);
        Ok(Pending { socket: self, index, taken: false })
    }

    /// Sends a call whose reply nobody waits for.
    pub(super) fn forget<M: Message>(&self, request: &Request<'_, M>) {
        let shared = &*self.shared;
        let timeout = shared.rpc_timeout;
        let how = {
            let mut state = shared.state.lock();
            let deadline_tick = state.now_tick + ticks(timeout);
            match shared.enqueue(&mut state, Slot::Forgotten { deadline_tick }, request, timeout) {
                Ok((_, was_empty)) => shared.who_writes(&mut state, was_empty),
                Err(_) => Writer::Other,
            }
        };
        shared.write_as(how);
    }
}

/// After so many ticks a call that waits no longer than `timeout` is lost.
fn ticks(timeout: Duration) -> u64 {
    timeout.as_millis().div_ceil(TICK.as_millis()) as u64 + 1
}

/// Who writes what was appended.
enum Writer {
    /// Whoever appended.
    Caller,
    /// The connection's task, which must be told.
    Task,
    /// Somebody who will look at the buffer anyway.
    Other,
}

impl Shared {
    fn enqueue<M: Message>(
        &self,
        state: &mut State,
        slot: Slot,
        request: &Request<'_, M>,
        timeout: Duration,
    ) -> Result<(u32, bool)> {
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        let index =
            state.take_slot(slot).ok_or_else(|| Error::Request(format!("{}: too many calls at once", self.server)))?;
        let call_id = u32::from(state.slots[index as usize].1) << 16 | index;
        let was_empty = state.out.is_empty();
        let timeout_ms = timeout.as_millis().min(u128::from(u32::MAX)) as u32;
        put_request(&mut state.out, call_id, request, timeout_ms);
        Ok((index, was_empty))
    }

    fn who_writes(&self, state: &mut State, was_empty: bool) -> Writer {
        if state.writing || state.blocked {
            Writer::Other
        } else if state.waiting <= 1 || state.out.len() > WRITE_NOW_BYTES {
            Writer::Caller
        } else if was_empty {
            Writer::Task
        } else {
            Writer::Other
        }
    }

    fn write_as(&self, how: Writer) {
        match how {
            Writer::Caller => self.flush(),
            Writer::Task => self.wake.notify_one(),
            Writer::Other => {}
        }
    }

    /// Writes what is there, until nothing is left or the socket takes no more. The lock is not held over a write.
    fn flush(&self) {
        let mut buffer = {
            let mut state = self.state.lock();
            if state.writing || state.out.is_empty() {
                return;
            }
            state.writing = true;
            std::mem::take(&mut state.out)
        };
        loop {
            let wrote = self.write.try_write(&buffer);
            match wrote {
                Ok(n) => buffer.advance(n),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let mut state = self.state.lock();
                    let later = std::mem::replace(&mut state.out, buffer);
                    state.out.unsplit(later);
                    state.writing = false;
                    state.blocked = true;
                    drop(state);
                    self.wake.notify_one();
                    return;
                }
                Err(e) => {
                    self.end(&Error::Io { server: self.server.clone(), error: Arc::new(e) });
                    return;
                }
            }
            if buffer.is_empty() {
                let mut state = self.state.lock();
                if state.out.is_empty() {
                    state.writing = false;
                    // The memory is used again unless a large request made it large.
                    if state.out.capacity() < buffer.capacity() && buffer.capacity() <= 4 * WRITE_NOW_BYTES {
                        buffer.clear();
                        state.out = buffer;
                    }
                    return;
                }
                std::mem::swap(&mut state.out, &mut buffer);
            }
        }
    }

    /// Ends the connection: tells those who wait, and those who will ask.
    fn end(&self, why: &Error) {
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            state.ended.get_or_insert_with(|| why.clone());
            self.is_ended.store(true, Ordering::Release);
            let why = state.ended.clone().unwrap_or_else(|| why.clone());
            for index in 0..state.slots.len() as u32 {
                wakers.extend(state.fill(index, Err(why.clone())));
            }
        }
        self.wake.notify_one();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The connection's task: reads replies, writes for those who left it to the task, looks for lost calls.
    async fn run(self: Arc<Self>, mut read: OwnedReadHalf) {
        let mut buffer = BytesMut::with_capacity(READ_BYTES);
        let mut last_len = 0;
        let mut wakers = Vec::new();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let why = loop {
            let blocked = self.state.lock().blocked;
            tokio::select! {
                n = read.read_buf(&mut buffer) => {
                    match n {
                        Ok(0) => break Error::ConnectionClosed { server: self.server.clone() },
                        Ok(_) => {}
                        Err(e) => break Error::Io { server: self.server.clone(), error: Arc::new(e) },
                    }
                    let handed_out = self.dispatch(&mut buffer, &mut last_len, &mut wakers);
                    // Also when it failed: replies before the broken one are in their slots.
                    wakers.drain(..).for_each(Waker::wake);
                    if let Err(why) = handed_out {
                        break why;
                    }
                }
                () = self.wake.notified() => {
                    // Whoever can run shall first append its request.
                    tokio::task::yield_now().await;
                    let state = self.state.lock();
                    if let Some(why) = &state.ended {
                        break why.clone();
                    }
                    if !state.blocked {
                        drop(state);
                        self.flush();
                    }
                }
                writable = self.write.writable(), if blocked => {
                    if let Err(e) = writable {
                        break Error::Io { server: self.server.clone(), error: Arc::new(e) };
                    }
                    self.state.lock().blocked = false;
                    self.flush();
                }
                _ = tick.tick() => self.sweep(),
            }
        };
        self.end(&why);
    }

    /// Hands out every whole reply in `buffer`, and makes room for what comes. `last_len` becomes the length of the last reply.
    fn dispatch(&self, buffer: &mut BytesMut, last_len: &mut usize, wakers: &mut Vec<Waker>) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            match take_frame(buffer, MAX_REPLY_BYTES) {
                Front::Frame(mut frame) => {
                    *last_len = frame.len();
                    let header = take_delimited(&mut frame).map_err(Error::malformed)?;
                    let header = pb::ResponseHeader::decode(header).map_err(Error::malformed)?;
                    let call_id = header.call_id();
                    let cells_len = header.cell_block_meta.map(|meta| meta.length());
                    let reply = match header.exception {
                        Some(exception) if call_id == u32::MAX => return Err(Error::remote(exception)),
                        Some(exception) => Err(Error::remote(exception)),
                        None => Ok((frame, cells_len)),
                    };
                    let (index, uses) = (call_id & 0xFFFF, (call_id >> 16) as u16);
                    if state.slots.get(index as usize).is_some_and(|slot| slot.1 == uses) {
                        wakers.extend(state.fill(index, reply));
                    }
                }
                Front::Partial { missing } => {
                    drop(state);
                    make_room(buffer, missing, *last_len);
                    return Ok(());
                }
                Front::TooLong { len } => return Err(Error::malformed(format!("a reply of {len} bytes"))),
            }
        }
    }

    /// Ends the wait of calls whose time is over.
    fn sweep(&self) {
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            state.now_tick += 1;
            let now = state.now_tick;
            for index in 0..state.slots.len() as u32 {
                match state.slots[index as usize].0 {
                    Slot::Waiting { deadline_tick, .. } if deadline_tick <= now => {
                        let late = Error::Timeout { server: self.server.clone(), method: "", timeout_ms: 0 };
                        wakers.extend(state.fill(index, Err(late)));
                    }
                    Slot::Forgotten { deadline_tick } if deadline_tick <= now => state.release(index),
                    _ => {}
                }
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The wait for a reply. Dropped, it leaves the reply to be thrown away.
pub(crate) struct Pending {
    socket: Arc<Socket>,
    index: u32,
    taken: bool,
}

impl Pending {
    /// Who was asked.
    pub(super) fn server(&self) -> &Arc<str> {
        &self.socket.shared.server
    }
}

impl Future for Pending {
    type Output = Result<Reply>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        assert!(!this.taken, "a reply is taken once");
        let shared = &*this.socket.shared;
        let filled = {
            let mut state = shared.state.lock();
            match &mut state.slots[this.index as usize].0 {
                Slot::Waiting { waker, .. } => {
                    match waker {
                        Some(waker) if waker.will_wake(context.waker()) => {}
                        _ => *waker = Some(context.waker().clone()),
                    }
                    return Poll::Pending;
                }
                slot @ Slot::Done(_) => {
                    let filled = std::mem::replace(slot, Slot::Free(None));
                    state.release(this.index);
                    filled
                }
                Slot::Free(_) | Slot::Forgotten { .. } => unreachable!("the slot is this call's until it is taken"),
            }
        };
        this.taken = true;
        let Slot::Done(reply) = filled else { unreachable!("matched above") };
        Poll::Ready(match reply {
            Ok((rest, cells_len)) => split_body(rest, true, cells_len)
                .map(|body| Reply { message: body.message, cells: body.cell_block, codec: shared.codec })
                .map_err(Error::malformed),
            Err(e) => Err(e),
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut state = self.socket.shared.state.lock();
        match state.slots[self.index as usize].0 {
            Slot::Waiting { deadline_tick, .. } => {
                state.slots[self.index as usize].0 = Slot::Forgotten { deadline_tick };
                state.waiting -= 1;
            }
            Slot::Done(_) => state.release(self.index),
            Slot::Free(_) | Slot::Forgotten { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::methods::Method;

    /// Both come in one read. The caller once slept for ever: its waker had been taken, and was dropped with the connection.
    #[tokio::test]
    async fn a_reply_before_a_broken_frame_reaches_its_caller() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let options = Options::rpc(&address);
        let socket = Socket::connect(Arc::from(&*address), "ClientService", &options).await.expect("a connection");
        let ask =
            || socket.clone().start(Request::new(Method::ClientGet, &pb::GetRequest::default()), options.rpc_timeout);
        let pending = ask().expect("sent");
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            assert!(stream.read(&mut [0; 4096]).await.expect("readable") > 0, "a request");
            let header = pb::ResponseHeader { call_id: Some(1 << 16), ..pb::ResponseHeader::default() };
            let mut out = BytesMut::new();
            rpc::frame::put_frame(&mut out, &header, Some(b"hello"), 0);
            out.extend_from_slice(b"\0\0\0\x02\x7F\0");
            tokio::io::AsyncWriteExt::write_all(&mut stream, &out).await.expect("sent");
            stream
        };
        let (reply, _open) = tokio::join!(tokio::time::timeout(Duration::from_secs(20), pending), server);
        assert_eq!(reply.expect("in time").expect("a reply").message, "hello");
        assert!(ask().is_err());
    }

    /// A caller that stops waiting gives its place on the connection back, at once or with the late reply; that reply reaches nobody else.
    #[tokio::test]
    async fn a_call_that_is_dropped_frees_its_place() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let options = Options::rpc(&address);
        let socket = Socket::connect(Arc::from(&*address), "ClientService", &options).await.expect("a connection");
        let ask =
            || socket.clone().start(Request::new(Method::ClientGet, &pb::GetRequest::default()), options.rpc_timeout);
        drop(ask().expect("sent"));
        let second = ask().expect("sent");
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            assert!(stream.read(&mut [0; 4096]).await.expect("readable") > 0, "requests");
            let mut out = BytesMut::new();
            for (call_id, text) in [(1 << 16, "late"), (1 << 16 | 1, "mine")] {
                let header = pb::ResponseHeader { call_id: Some(call_id), ..pb::ResponseHeader::default() };
                rpc::frame::put_frame(&mut out, &header, Some(text.as_bytes()), 0);
            }
            tokio::io::AsyncWriteExt::write_all(&mut stream, &out).await.expect("sent");
            stream
        };
        let (reply, _open) = tokio::join!(tokio::time::timeout(Duration::from_secs(20), second), server);
        assert_eq!(reply.expect("in time").expect("a reply").message, "mine");
        let state = socket.shared.state.lock();
        assert_eq!((state.slots.len(), state.waiting), (2, 0));
        assert!(state.slots.iter().all(|(slot, _)| matches!(slot, Slot::Free(_))), "both are free again");
    }
}
