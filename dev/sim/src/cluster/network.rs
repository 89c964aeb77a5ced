//! The network between processes: connections as TCP has them, in memory, through the code that serves sockets.
//!
//! Always true: bytes of one direction of a connection come in order and each once, late or never; a direction that is cut holds them until it is
//! mended, or the connection is reset. What a process has written and what the network had not taken when it died is lost. Answers are lost, and
//! whoever asks asks again; and a call of a master to a region server, or the reverse, may come a second time, later and on a connection of its own, as from a sender who
//! took the first for lost. Of the calls of `ClientService` those with a nonce do: an increment without one counts twice then, in HBase too; a put that comes again
//! hides what was put since; and one to hbase:meta brings back a row that was deleted, once a compaction has thrown the delete away.

use super::gate::Gate;
use base::Rng;
use parking_lot::Mutex;
use proto::methods::{Method, Service};
use proto::{Message, pb};
use rpc::transport::{Pipe, Transport, pipe};
use rpc::{Dialed, Network};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;

/// Bytes on their way between a process and the network.
const CAPACITY_BYTES: usize = 1 << 20;
/// Between two looks at a link that is cut.
const LOOK: Duration = Duration::from_millis(20);

/// A call that comes twice comes so much later at most.
const MOST_LATE_MS: u64 = 2_000;
/// What a connection begins with: `HBas`, a version, a kind of authentication.
const PREAMBLE_BYTES: usize = 6;

type Attach = Arc<dyn Fn(Pipe, SocketAddr) + Send + Sync>;

#[derive(Clone)]
struct Listener {
    gate: Arc<Gate>,
    handle: Handle,
    attach: Attach,
}

struct State {
    listeners: BTreeMap<(String, u16), Listener>,
    /// Directions that are cut: from, to.
    cut: BTreeSet<(Arc<str>, Arc<str>)>,
    /// A piece takes so many milliseconds at most.
    most_delay_ms: u64,
    /// One piece of so many resets its connection; 0: none.
    resets: u64,
    /// Of the calls that may come twice, one of so many does; 0: none.
    doubles: u64,
    rng: Rng,
}

/// All of it. Clones are the same.
#[derive(Clone)]
pub struct Net {
    state: Arc<Mutex<State>>,
    /// Whose runtime carries the bytes.
    carrier: Handle,
    connections: Arc<AtomicU64>,
    doubled: Arc<AtomicU64>,
}

impl Net {
    /// One without processes. `carrier`: a runtime that runs as long as the world does.
    pub fn new(seed: u64, carrier: Handle) -> Net {
        let state = State {
            listeners: BTreeMap::new(),
            cut: BTreeSet::new(),
            most_delay_ms: 3,
            resets: 0,
            doubles: 0,
            rng: Rng::seeded(seed ^ 0x4E45_5400),
        };
        Net { state: Arc::new(Mutex::new(state)), carrier, connections: Arc::default(), doubled: Arc::default() }
    }

    /// A process listens.
    pub fn listen(
        &self,
        (host, port): (&str, u16),
        gate: Arc<Gate>,
        handle: Handle,
        attach: impl Fn(Pipe, SocketAddr) + Send + Sync + 'static,
    ) {
        let listener = Listener { gate, handle, attach: Arc::new(attach) };
        self.state.lock().listeners.insert((host.to_owned(), port), listener);
    }

    /// A process is gone.
    pub fn forget(&self, gate: &Gate) {
        self.state.lock().listeners.retain(|_, listener| listener.gate.name() != gate.name());
    }

    /// The network as a process uses it.
    pub fn of(&self, gate: Arc<Gate>) -> Arc<Outlet> {
        Arc::new(Outlet { net: self.clone(), gate })
    }

    /// What goes from one process to another stays on its way from now on.
    pub fn cut(&self, from: &str, to: &str) {
        self.state.lock().cut.insert((Arc::from(from), Arc::from(to)));
    }

    /// A piece takes so many milliseconds at most.
    pub fn delay(&self, most_ms: u64) {
        self.state.lock().most_delay_ms = most_ms;
    }

    /// One piece of `one_in` resets its connection; 0: none.
    pub fn reset(&self, one_in: u64) {
        self.state.lock().resets = one_in;
    }

    /// One call of `one_in` comes twice, of those between a master and a region server and those of clients with a nonce; 0: none.
    pub fn double(&self, one_in: u64) {
        self.state.lock().doubles = one_in;
    }

    /// Calls that came twice.
    pub fn doubled(&self) -> u64 {
        self.doubled.load(Ordering::Relaxed)
    }

    /// All is well again.
    pub fn heal(&self) {
        let mut state = self.state.lock();
        state.cut.clear();
        (state.most_delay_ms, state.resets, state.doubles) = (3, 0, 0);
    }

    fn is_cut(&self, from: &Gate, to: &Gate) -> bool {
        let state = self.state.lock();
        state.cut.iter().any(|(a, b)| **a == *from.name() && **b == *to.name())
    }

    fn delay_of_piece(&self) -> Duration {
        let state = self.state.lock();
        Duration::from_millis(state.rng.below(state.most_delay_ms + 1))
    }

    fn resets_now(&self) -> bool {
        let state = self.state.lock();
        state.resets > 0 && state.rng.one_in(state.resets)
    }

    /// Whether a call is an order of a master to a region server, or a report of that one.
    fn is_order_or_report(from: &Gate, to: &Gate) -> bool {
        let are = |one: &Gate, other: &Gate| one.name().starts_with('m') && other.name().starts_with("rs");
        are(from, to) || are(to, from)
    }

    /// After how long a call comes again, if it does.
    fn doubles_after(&self, from: &Gate, to: &Gate, call: &[u8]) -> Option<Duration> {
        let state = self.state.lock();
        let may = |call: CallKind| match call {
            CallKind::Service => Self::is_order_or_report(from, to),
            CallKind::WithNonce => true,
            CallKind::OfClient => false,
        };
        let doubles = state.doubles > 0 && may(kind_of(call)) && state.rng.one_in(state.doubles);
        doubles.then(|| Duration::from_millis(state.rng.below(MOST_LATE_MS)))
    }

    /// Has who listens hear `bytes` on a connection of their own, and reads no answer.
    async fn say_again(self, from: Arc<Gate>, listener: Listener, bytes: Vec<u8>, after: Duration) {
        tokio::time::sleep(after).await;
        while self.is_cut(&from, &listener.gate) {
            tokio::time::sleep(LOOK).await;
        }
        let said = format!("hear a call of {} again", from.name());
        if listener.gate.is_dead() || listener.gate.pass_for(&said).is_err() {
            return;
        }
        self.doubled.fetch_add(1, Ordering::Relaxed);
        let mut far = self.attach(&listener);
        if far.write_all(&bytes).await.is_ok() {
            // What is closed at once is not answered, and may not be heard.
            tokio::time::sleep(Duration::from_millis(MOST_LATE_MS)).await;
        }
    }

    /// The network's end of a new connection to who listens.
    fn attach(&self, listener: &Listener) -> Pipe {
        let (far, theirs) = pipe(CAPACITY_BYTES);
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000 + (number % 40_000) as u16));
        let _inside = listener.handle.enter();
        (listener.attach)(theirs, peer);
        far
    }

    async fn connect(&self, from: &Arc<Gate>, host: &str, port: u16) -> io::Result<Pipe> {
        from.pass(&format!("connect to {host}:{port}"))?;
        tokio::time::sleep(self.delay_of_piece()).await;
        let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, format!("nobody listens at {host}:{port}"));
        loop {
            let listener = self.state.lock().listeners.get(&(host.to_owned(), port)).cloned().ok_or_else(refused)?;
            if listener.gate.is_dead() {
                return Err(refused());
            }
            if self.is_cut(from, &listener.gate) || self.is_cut(&listener.gate, from) {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            let (ours, near) = pipe(CAPACITY_BYTES);
            let far = self.attach(&listener);
            let ((near_in, near_out), (far_in, far_out)) = (near.split(), far.split());
            let (net, near_gate, far_gate) = (self.clone(), from.clone(), listener.gate.clone());
            // Both directions in one task: a reset ends both.
            self.carrier.spawn(async move {
                tokio::select! {
                    biased;
                    () = net.carry((&near_gate, near_in), (&far_gate, far_out), Some(&listener)) => {}
                    () = net.carry((&far_gate, far_in), (&near_gate, near_out), None) => {}
                }
            });
            return Ok(ours);
        }
    }

    /// Brings what comes out of one end to the other, until either end is closed. `hears`: who listens there, where these are calls.
    async fn carry(
        &self,
        (from, mut input): (&Arc<Gate>, impl AsyncRead + Unpin),
        (to, mut output): (&Arc<Gate>, impl AsyncWrite + Unpin),
        hears: Option<&Listener>,
    ) {
        let mut calls = Calls::default();
        let mut piece = vec![0; 64 * 1024];
        loop {
            let len = match input.read(&mut piece).await {
                Ok(len) if len > 0 => len,
                _ => return,
            };
            if from.pass_for(&format!("send {len} bytes to {}", to.name())).is_err() || self.resets_now() {
                return;
            }
            tokio::time::sleep(self.delay_of_piece()).await;
            while self.is_cut(from, to) {
                tokio::time::sleep(LOOK).await;
            }
            if output.write_all(&piece[..len]).await.is_err() {
                return;
            }
            let Some(listener) = hears else { continue };
            for call in calls.whole_ones(&piece[..len]) {
                if let Some(after) = self.doubles_after(from, to, &call) {
                    self.carrier.spawn(self.clone().say_again(from.clone(), listener.clone(), call, after));
                }
            }
        }
    }
}

/// Finds the calls in what goes over a connection: a preamble, then a length of 4 bytes before the header and before each call.
#[derive(Default)]
struct Calls {
    /// Preamble and header, once they are whole.
    head: Option<Vec<u8>>,
    /// The rest, which is not whole.
    rest: Vec<u8>,
}

impl Calls {
    /// Calls that are whole with this piece, each behind what introduces a connection.
    fn whole_ones(&mut self, piece: &[u8]) -> Vec<Vec<u8>> {
        self.rest.extend_from_slice(piece);
        let mut whole = Vec::new();
        loop {
            let before = if self.head.is_none() { PREAMBLE_BYTES } else { 0 };
            let Some(len) = self.rest.get(before..before + 4) else { return whole };
            let len = len.iter().fold(0_usize, |len, byte| len << 8 | usize::from(*byte));
            let end = before + 4 + len;
            if self.rest.len() < end {
                return whole;
            }
            let frame: Vec<u8> = self.rest.drain(..end).collect();
            match &self.head {
                None => self.head = Some(frame),
                Some(head) => whole.push([&head[..], &frame].concat()),
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    /// An order or a report, or a question.
    Service,
    /// A mutation that the server does once however often it comes.
    WithNonce,
    /// Another call of `ClientService`, of a client or of a master that writes to hbase:meta.
    OfClient,
}

/// What a call is, behind what introduces its connection.
fn kind_of(call: &[u8]) -> CallKind {
    let after_len = |bytes: &[u8], before: usize| -> Option<usize> {
        let len = bytes.get(before..before + 4)?.iter().fold(0_usize, |len, byte| len << 8 | usize::from(*byte));
        Some(before + 4 + len)
    };
    let frame = after_len(call, PREAMBLE_BYTES).and_then(|head| call.get(head + 4..));
    let Some(mut frame) = frame else { return CallKind::OfClient };
    let Ok(header) = pb::RequestHeader::decode_length_delimited(&mut frame) else { return CallKind::OfClient };
    let method = header.method_name.unwrap_or_default();
    if Service::Client.method(&method).is_none() {
        return CallKind::Service;
    }
    let has_nonce = method == Method::ClientMutate.info().name
        && pb::MutateRequest::decode_length_delimited(&mut frame).is_ok_and(|request| request.mutation.nonce.is_some());
    if has_nonce { CallKind::WithNonce } else { CallKind::OfClient }
}

/// The network as one process uses it.
pub struct Outlet {
    net: Net,
    gate: Arc<Gate>,
}

impl Network for Outlet {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> Dialed<'a> {
        Box::pin(self.net.connect(&self.gate, host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_may_come_twice_are_told_from_others() {
        let call = |method: &str, nonce: Option<u64>| {
            let header = pb::RequestHeader { method_name: Some(method.to_owned()), ..pb::RequestHeader::default() };
            let mutation = pb::MutationProto { nonce, ..pb::MutationProto::default() };
            let request = pb::MutateRequest { mutation, ..pb::MutateRequest::default() };
            let frame = [header.encode_length_delimited_to_vec(), request.encode_length_delimited_to_vec()].concat();
            [&b"HBas\0P\0\0\0\x02ab"[..], &(frame.len() as u32).to_be_bytes(), &frame].concat()
        };
        let kinds = [("Mutate", Some(5)), ("Mutate", None), ("Multi", Some(5)), ("ExecuteProcedures", None)]
            .map(|(method, nonce)| kind_of(&call(method, nonce)));
        let expected = [CallKind::WithNonce, CallKind::OfClient, CallKind::OfClient, CallKind::Service];
        assert_eq!((kinds, kind_of(b"HBas")), (expected, CallKind::OfClient));
    }

    #[test]
    fn calls_are_found_however_their_bytes_come() {
        let (head, one, two) = (&b"HBas\0P\0\0\0\x02ab"[..], &b"\0\0\0\x03one"[..], &b"\0\0\0\0"[..]);
        let sent = [head, one, two].concat();
        for size in 1..=sent.len() {
            let mut calls = Calls::default();
            let found: Vec<Vec<u8>> = sent.chunks(size).flat_map(|piece| calls.whole_ones(piece)).collect();
            assert_eq!(found, [[head, one].concat(), [head, two].concat()], "pieces of {size}");
        }
    }
}
