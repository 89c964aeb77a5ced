//! One connection, from its first byte to its last.

mod liveness;
mod requests;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::{Holder, Ledger};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;

use self::liveness::{Liveness, Verdict, Waiting};
use self::requests::malformed;
pub(super) use self::requests::{CatchPanic, admit, panicked};
use super::Shared;
use super::answers::{Answered, Inbox, ParkedWriter};
use super::handshake::{Stage, Step, step};
use super::output::Output;
use crate::call::{CallResult, ConnInfo};
use crate::frame::{Front, take_frame};
use crate::transport::{Transport, TransportWriter};

/// First size of a connection's read buffer, and its size again when it has nothing to hold.
const READ_BYTES: usize = 8 * 1024;
/// The read buffer grows to this by itself; beyond it only as bytes of a large frame really come.
const READ_BYTES_MAX: usize = 256 * 1024;
/// A request header larger than this is not waited for when its frame is refused for its length.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// What a connection may hold of a request that is still coming, or of replies, before it counts in the sums over all connections.
const UNCOUNTED_BYTES: usize = 64 * 1024;
/// After so many bytes of requests other connections are let on: copying them out of the socket takes time.
const READ_IN_A_ROW_BYTES: usize = 512 * 1024;
/// Replies of so many bytes are sent before more requests are answered: they are still in the processor's cache when they are copied, and the
/// client can work on them meanwhile.
const SEND_BYTES: usize = 64 * 1024;
/// How long a closed connection's peer may take to read the last reply.
const LINGER: Duration = Duration::from_secs(1);

/// Serves the connection until either side ends it.
pub(super) async fn run<T: Transport>(
    mut stream: T,
    peer: SocketAddr,
    shared: &Arc<Shared>,
    stopped: watch::Receiver<bool>,
) {
    let mut input = BytesMut::with_capacity(READ_BYTES);
    let mut stop = stopped.clone();
    let shaken = tokio::select! {
        // In order here and below: one seed gives the simulator one run.
        biased;
        shaken = shake_hands(&mut stream, &mut input, shared, peer) => shaken,
        () = stop_asked(&mut stop) => return,
        () = tokio::time::sleep(shared.limits.load().handshake_timeout) => {
            tracing::debug!(%peer, "no connection header in time");
            return;
        }
    };
    let conn = match shaken {
        Ok(Some(conn)) => conn,
        Ok(None) => return linger(stream).await,
        Err(error) => {
            tracing::debug!(%peer, %error, "connection ended before its header");
            return;
        }
    };
    let mut connection = Connection::new(shared, conn, input);
    let (mut reader, writer) = stream.split();
    let writer = Arc::new(writer);
    let served = connection.serve::<T>(&mut reader, &writer, stopped).await;
    // Nobody sends any more, and the socket is one again.
    connection.inbox.close();
    let stream = Arc::into_inner(writer).and_then(|writer| T::unsplit(reader, writer));
    match (served, stream) {
        (Ok(()), Some(stream)) if connection.closing => linger(stream).await,
        (Ok(()), _) => {}
        (Err(error), _) => tracing::debug!(%peer, %error, "connection ended"),
    }
}

/// Returns when the server is to stop, or is gone.
async fn stop_asked(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// Reads up to the connection header. `None`: a reply was sent that ends the connection.
async fn shake_hands<T: Transport>(
    stream: &mut T,
    input: &mut BytesMut,
    shared: &Shared,
    peer: SocketAddr,
) -> io::Result<Option<Arc<ConnInfo>>> {
    let mut stage = Stage::Preamble;
    loop {
        match step(&mut stage, input, shared, peer) {
            Step::Wait => {
                input.reserve(READ_BYTES);
                if stream.read_buf(input).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Step::Send(reply) => stream.write_all(&reply).await?,
            Step::SendAndClose(reply) => {
                stream.write_all(&reply).await?;
                return Ok(None);
            }
            Step::Close(reason) => return Err(io::Error::new(io::ErrorKind::InvalidData, reason)),
            Step::Done(conn) => return Ok(Some(conn)),
        }
    }
}

/// Ends a connection whose last reply matters: closing while bytes of the peer are unread would reset the connection,
/// and the reply with it.
async fn linger<T: Transport>(mut stream: T) {
    let drain = async {
        stream.shutdown().await?;
        let mut sink = [0; 4096];
        while stream.read(&mut sink).await? > 0 {}
        io::Result::Ok(())
    };
    // Whatever happens here, the connection is over.
    let _ = tokio::time::timeout(LINGER, drain).await;
}

struct Connection {
    shared: Arc<Shared>,
    conn: Arc<ConnInfo>,
    input: BytesMut,
    /// Size to read into next.
    read_bytes: usize,
    output: Output,
    /// Calls whose replies are to come.
    in_flight: usize,
    /// Where their answers arrive.
    inbox: Arc<Inbox>,
    /// Kept for its memory; empty between uses.
    answers: Vec<Answered>,
    /// Replies were deferred since the handler was last told of the end of a batch.
    replies_pending: bool,
    /// No more requests are taken; the connection ends when the output has left.
    closing: bool,
    /// What of the input counts as queued: that of a request which has not come wholly, beyond what every connection has.
    held_bytes: usize,
    /// What of the output counts as unsent, over all connections.
    owed_bytes: usize,
    /// Since when it is not read from because its client does not take the replies that there are.
    unwritable_since_us: Option<u64>,
}

/// What is at the front of the input.
enum Input {
    /// The beginning of a request, or nothing; so many bytes are missing.
    Partial { missing: usize },
    /// There may be a whole request, but too much is on its way already.
    Held,
    /// There may be a whole request; first the replies so far are sent.
    SendFirst,
}

impl Connection {
    fn new(shared: &Arc<Shared>, conn: Arc<ConnInfo>, input: BytesMut) -> Connection {
        let inbox = Inbox::new(
            shared.counters.clone(),
            Some(shared.clock.clone()),
            shared.ledger.clone(),
            shared.limits.load().max_unsent_bytes,
        );
        shared.inboxes.add(&inbox);
        Connection {
            shared: shared.clone(),
            conn,
            input,
            read_bytes: READ_BYTES,
            output: Output::default(),
            in_flight: 0,
            inbox,
            answers: Vec::new(),
            replies_pending: false,
            closing: false,
            held_bytes: 0,
            owed_bytes: 0,
            unwritable_since_us: None,
        }
    }

    async fn serve<T: Transport>(
        &mut self,
        reader: &mut T::Reader,
        writer: &Arc<T::Writer>,
        mut stopped: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let (shared, inbox) = (self.shared.clone(), self.inbox.clone());
        let mut liveness = Liveness::new(&shared.limits.load(), Instant::now());
        let mut timer = std::pin::pin!(tokio::time::sleep(liveness.tick()));
        let (mut eof, mut stopping) = (false, false);
        let mut read_in_a_row = 0;
        loop {
            let input = match self.work(writer, &mut liveness)? {
                Some(input) => input,
                None => continue,
            };
            let unsent = !self.output.is_empty();
            if !unsent && (self.closing || ((eof || stopping) && self.in_flight == 0)) {
                return Ok(());
            }
            let reading = matches!(input, Input::Partial { .. }) && !eof && !stopping && !self.closing;
            let partial = reading && !self.input.is_empty();
            liveness.waits_for(Waiting { partial, unsent, in_flight: self.in_flight }, Instant::now);
            if let (true, Input::Partial { missing }) = (reading, &input) {
                self.make_room(*missing);
            }
            let waiting = self.in_flight;
            let is_parked = waiting > 0 && reading && !unsent;
            if is_parked {
                self.park_writer(writer);
            }

            tokio::select! {
                // What comes in without end is behind the rest; the clock is last: whatever is there is progress.
                biased;
                () = stop_asked(&mut stopped), if !stopping => stopping = true,
                () = poll_fn(|cx| inbox.poll_any(cx)), if waiting > 0 => {
                    if waiting > 1 {
                        // Others that waited for the same event are about to finish: let them join this write.
                        tokio::task::yield_now().await;
                    }
                }
                writable = writer.writable(), if unsent => writable?,
                read = reader.read_buf(&mut self.input), if reading => {
                    let read = read?;
                    eof = self.received(read);
                    liveness.progress(Instant::now());
                    read_in_a_row += read;
                    if read_in_a_row >= READ_IN_A_ROW_BYTES {
                        read_in_a_row = 0;
                        tokio::task::yield_now().await;
                    }
                }
                () = timer.as_mut() => {
                    let now = Instant::now();
                    liveness.set_timeouts(&shared.limits.load());
                    timer.as_mut().reset(now + liveness.tick());
                    if is_parked && self.unpark_writer() {
                        liveness.progress(Instant::now());
                    }
                    match liveness.check(now, Waiting { partial, unsent, in_flight: self.in_flight })? {
                        Verdict::Idle => return Ok(()),
                        Verdict::Quiet => self.shrink(),
                        Verdict::Active => {}
                    }
                }
            }
            if is_parked && self.unpark_writer() {
                liveness.progress(Instant::now());
            }
        }
    }

    /// Answers what there is and sends what goes. `None`: there is more to do at once.
    fn work<W: TransportWriter>(&mut self, writer: &Arc<W>, liveness: &mut Liveness) -> io::Result<Option<Input>> {
        if self.in_flight > 0 && self.take_answers() {
            liveness.progress(Instant::now());
        }
        let input = self.take_requests()?;
        if std::mem::take(&mut self.replies_pending) {
            self.shared.handler.on_batch_end();
            self.take_answers();
        }
        let written = if self.output.is_empty() { 0 } else { self.output.send(&**writer, &self.shared.counters)? };
        self.is_over_unsent_limit();
        if written > 0 {
            liveness.taken(written, Instant::now());
        }
        let again = matches!(input, Input::SendFirst) || (written > 0 && matches!(input, Input::Held));
        Ok((!again).then_some(input))
    }

    /// So many bytes came; whether they were the last.
    fn received(&mut self, bytes: usize) -> bool {
        self.shared.counters.received_bytes.fetch_add(bytes as u64, Relaxed);
        if self.input.len() == self.input.capacity() {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
        if bytes == 0 {
            // Quick calls that it waits for are still answered; as in HBase, nobody works for it for long.
            self.inbox.peer_has_left();
        }
        bytes == 0
    }

    /// Lets those who answer send while this task sleeps. Nothing is unsent, and whatever they do, this task would only wait on.
    fn park_writer<W: TransportWriter>(&mut self, socket: &Arc<W>) {
        self.inbox.park(ParkedWriter {
            output: std::mem::take(&mut self.output),
            in_flight: self.in_flight,
            has_sent: false,
            conn: self.conn.clone(),
            socket: socket.clone(),
        });
    }

    /// Ends what [`Connection::park_writer`] began; whether anything was sent meanwhile.
    fn unpark_writer(&mut self) -> bool {
        let Some(parked) = self.inbox.unpark() else { return false };
        (self.output, self.in_flight) = (parked.output, parked.in_flight);
        parked.has_sent
    }

    /// Follows: `NettyRpcServerChannelWritabilityHandler`.
    #[inline]
    fn note_unwritable(&mut self, is_unwritable: bool) {
        match (is_unwritable, self.unwritable_since_us) {
            (true, None) => self.unwritable_since_us = Some(self.shared.clock.monotonic_us()),
            (false, Some(since_us)) => {
                self.unwritable_since_us = None;
                let passed_us = self.shared.clock.monotonic_us().saturating_sub(since_us);
                self.shared.counters.unwritable_times.record(passed_us);
            }
            _ => {}
        }
    }

    /// Answers the whole requests in the input, as far as the limits allow.
    fn take_requests(&mut self) -> io::Result<Input> {
        let limits = self.shared.limits.load();
        let (max_calls, max_unsent, max_request) =
            (limits.max_calls, limits.max_unsent_bytes, limits.max_request_bytes);
        let unsent = self.output.len();
        // When the call before ended: next to nothing lies between it and the next one of the same bytes.
        let mut ended_at_us = None;
        while !self.closing {
            if self.output.len() >= unsent + SEND_BYTES {
                return Ok(Input::SendFirst);
            }
            let owed = self.output.len() + self.inbox.waiting_bytes() as usize;
            let is_unwritable = owed >= max_unsent || self.is_over_unsent_limit();
            self.note_unwritable(is_unwritable);
            if self.in_flight >= max_calls || is_unwritable {
                return Ok(Input::Held);
            }
            match take_frame(&mut self.input, max_request) {
                Front::Partial { missing } => {
                    if self.may_hold(missing) {
                        return Ok(Input::Partial { missing });
                    }
                    if !self.refuse_unread(Self::queue_is_full)? {
                        return Ok(Input::Partial { missing: 1 });
                    }
                }
                Front::Frame(frame) => {
                    count(&self.shared.ledger, Holder::Requests, &mut self.held_bytes, 0);
                    let received_at_us = ended_at_us.unwrap_or_else(|| self.shared.clock.monotonic_us());
                    let at_once = self.request(frame, received_at_us).map_err(malformed)?;
                    let now_us = self.shared.clock.monotonic_us();
                    let held_us = now_us.saturating_sub(received_at_us);
                    self.shared.counters.times.held(held_us, at_once.is_some());
                    if let Some(at_once) = at_once {
                        self.shared.handler.on_answered_at_once(&at_once.as_call(&self.conn, held_us));
                    }
                    ended_at_us = Some(now_us);
                }
                Front::TooLong { len } => {
                    if !self.refuse_unread(|connection| connection.too_long(len))? {
                        return Ok(Input::Partial { missing: 1 });
                    }
                }
            }
        }
        Ok(Input::Held)
    }

    /// Counts the request that is coming in, as far as it has come; false when all requests together are too much. Half of what
    /// may be queued is kept for those that have come. The last piece of one may always come.
    fn may_hold(&mut self, missing: usize) -> bool {
        let held = self.input.len().saturating_sub(UNCOUNTED_BYTES);
        let ledger = &self.shared.ledger;
        let queued = count(ledger, Holder::Requests, &mut self.held_bytes, held);
        held == 0 || missing <= READ_BYTES || ledger.allows(Holder::Requests, queued * 2)
    }

    /// Whether so much is unsent over all connections that this one, which has not taken what there is for it, gets no more.
    fn is_over_unsent_limit(&mut self) -> bool {
        let owed = self.output.len().saturating_sub(UNCOUNTED_BYTES);
        let ledger = &self.shared.ledger;
        if owed > 0 || self.owed_bytes > 0 {
            self.inbox.set_unsent(self.output.len());
        }
        let unsent = count(ledger, Holder::Replies, &mut self.owed_bytes, owed);
        owed > 0 && !ledger.allows(Holder::Replies, unsent + 1)
    }

    /// Room for what is missing, but no more than has already been earned by bytes that came.
    fn make_room(&mut self, missing: usize) {
        let earned = self.read_bytes.max(self.input.len());
        let wanted = missing.clamp(self.read_bytes, earned);
        let spare = self.input.capacity() - self.input.len();
        if spare < missing.min(wanted) || spare < self.read_bytes / 4 {
            // Takes back the memory of requests that are done with, if nothing of them is held any more.
            self.input.reserve(wanted);
        }
    }

    /// Gives back what a burst has made the buffers grow to.
    fn shrink(&mut self) {
        self.read_bytes = READ_BYTES;
        if self.input.is_empty() && self.in_flight == 0 {
            self.input = BytesMut::with_capacity(READ_BYTES);
        }
    }

    /// Puts the answers that have arrived out; whether there were any.
    fn take_answers(&mut self) -> bool {
        let mut answers = std::mem::take(&mut self.answers);
        self.inbox.take(&mut answers);
        let any = !answers.is_empty();
        for (id, result) in answers.drain(..) {
            self.in_flight -= 1;
            self.put(id, result);
        }
        self.answers = answers;
        any
    }

    fn put(&mut self, id: u32, result: CallResult) {
        self.output.answer(id, result, &self.conn, &self.shared.counters);
    }
}

/// Makes `counted` count as `now` on the ledger; what the holder has then.
fn count(ledger: &Ledger, holder: Holder, counted: &mut usize, now: usize) -> u64 {
    let before = std::mem::replace(counted, now);
    if now == before {
        // Mostly: nothing before, nothing now.
        return if now == 0 { 0 } else { ledger.held_bytes(holder) };
    }
    let (added, taken) = (now.saturating_sub(before) as u64, before.saturating_sub(now) as u64);
    if added > 0 {
        return ledger.add(holder, added);
    }
    ledger.take(holder, taken);
    ledger.held_bytes(holder)
}

/// Gives a connection `input`, `chunk` bytes at a time, and throws its replies away. Answers its header, if it came so far.
#[cfg(feature = "fuzzing")]
pub(super) fn converse(shared: &Arc<Shared>, mut input: &[u8], chunk: usize) -> Option<Arc<ConnInfo>> {
    let mut more = |buffer: &mut BytesMut| {
        let (now, later) = input.split_at(chunk.max(1).min(input.len()));
        buffer.extend_from_slice(now);
        input = later;
        !now.is_empty()
    };
    let (mut stage, mut input) = (Stage::Preamble, BytesMut::new());
    let conn = loop {
        match step(&mut stage, &mut input, shared, SocketAddr::from(([127, 0, 0, 1], 1))) {
            Step::Wait if more(&mut input) => {}
            Step::Send(_) => {}
            Step::Wait | Step::SendAndClose(_) | Step::Close(_) => return None,
            Step::Done(conn) => break conn,
        }
    };
    let mut connection = Connection::new(shared, conn.clone(), input);
    while connection.take_requests().is_ok() && !connection.closing {
        connection.take_answers();
        connection.output = Output::default();
        connection.make_room(1);
        if !more(&mut connection.input) {
            break;
        }
    }
    Some(conn)
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.inbox.close();
        self.inbox.set_unsent(0);
        count(&self.shared.ledger, Holder::Requests, &mut self.held_bytes, 0);
        count(&self.shared.ledger, Holder::Replies, &mut self.owed_bytes, 0);
    }
}
