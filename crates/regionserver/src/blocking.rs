//! Where work goes that reads or writes files: away from Tokio's workers. What users ask for runs on the lanes of the scheduler;
//! administration, which they cannot hold up there, on Tokio's blocking pool.

use crate::handlers::Answer;
use crate::server::RegionServer;
use crate::traces;
use crate::users::CountedReads;
use base::effort::NETWORK_THREAD_UNITS;
use base::{Interrupted, PausePoint};
use region::Region;
use rpc::exception::{Exception, Kind};
use rpc::{Call, CallResult, Cancellation, ClientLoad, Making, Outcome, Responder};
use scheduler::{Dropped, JobInfo, LaneName};
use std::sync::Arc;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::JoinError;
use trace::{CallTrace, Span};

/// Calls of a higher priority run beside those to system tables. Follows: `SimpleRpcScheduler` with `HConstants.QOS_THRESHOLD`.
const MOST_ORDINARY_PRIORITY: u32 = 10;

/// Runs `work` on the blocking pool. On a runtime of one thread (the simulator) it runs at once and on that thread, so
/// that one seed gives one run.
///
/// # Errors
/// `work` panicked.
pub(crate) async fn off_worker<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(work());
    }
    let place = trace::current();
    let work = move || {
        let _traced = trace::enter_at(place);
        work()
    };
    tokio::task::spawn_blocking(work).await
}

/// The lane for calls to `region`: `ordinary`, or that of system tables.
fn lane_of(region: &Region, priority: u32, ordinary: LaneName) -> LaneName {
    if region.info().table.is_system() { LaneName::Meta } else { lane_by_priority(priority, ordinary) }
}

/// The lane for calls of a priority as a client gives it: with `Get#setPriority` and its like, or of itself for system tables. What is
/// negative as HBase reads it means that none is set.
fn lane_by_priority(priority: u32, ordinary: LaneName) -> LaneName {
    let is_high = priority > MOST_ORDINARY_PRIORITY && i32::try_from(priority).is_ok();
    if is_high { LaneName::Meta } else { ordinary }
}

/// Who asks, and for how long: kept where a call is done step by step.
#[derive(Clone)]
pub(crate) struct Caller {
    client: u64,
    priority: u32,
    pub deadline_us: Option<u64>,
    cancellation: Cancellation,
    /// Where what it does is counted, if it is.
    pub load: Option<Arc<ClientLoad>>,
    /// Where it is traced.
    trace: Option<Arc<CallTrace>>,
}

impl Caller {
    pub(crate) fn of(call: &Call) -> Caller {
        let (priority, deadline_us) = (call.priority, call.deadline_us);
        let load = call.conn.load.get().cloned();
        let (cancellation, trace) = (call.cancellation(), call.trace().cloned());
        Caller { client: call.conn.id, priority, deadline_us, cancellation, load, trace }
    }

    /// The wait for the log on its behalf, if it is traced.
    pub(crate) fn log_wait(&self) -> Option<Span> {
        let _traced = trace::enter(self.trace.as_ref());
        traces::log_wait()
    }

    /// What a lane is told of it.
    fn job_info(&self) -> JobInfo {
        let cancellation = self.cancellation.clone();
        JobInfo {
            priority: ordinary_priority(self.priority),
            deadline_us: self.deadline_us,
            is_cancelled: Box::new(move || cancellation.is_cancelled()),
            ..JobInfo::of_client(self.client)
        }
    }
}

/// The priority within a lane.
fn ordinary_priority(priority: u32) -> u32 {
    if i32::try_from(priority).is_ok() { priority.min(MOST_ORDINARY_PRIORITY) } else { 0 }
}

/// A request with more bytes is decoded and carried out on a lane: a network thread would be held up by it.
pub(crate) const LARGE_REQUEST_BYTES: usize = 128 * 1024;
/// The same for one that takes so much when it is decoded, beyond its own bytes: some hundred actions.
const LARGE_DECODED_BYTES: usize = 256 * 1024;

/// Whether decoding the request alone is too much for a network thread.
pub(crate) fn is_large(call: &Call) -> bool {
    call.size_bytes > LARGE_REQUEST_BYTES || call.decoded_bytes() > LARGE_DECODED_BYTES
}

/// What the handler of a call works with: on a network thread, or on a lane, where the call has its responder already.
pub(crate) struct CallContext<'a> {
    pub call: &'a Call,
    /// The responder, if it was taken before.
    taken: Option<Responder>,
    /// Where it pauses, on a lane.
    pub pause: Option<&'a dyn PausePoint>,
    /// When the work on the call began.
    pub begun_us: u64,
    /// Log entries of the call are written with those of others, at the end of a batch that somebody holds.
    pub in_batch: bool,
}

impl<'a> CallContext<'a> {
    /// Nobody has taken the call on yet.
    pub(crate) fn new(call: &'a Call) -> CallContext<'a> {
        CallContext { call, taken: None, pause: None, begun_us: call.received_at_us, in_batch: call.is_in_batch() }
    }

    /// Whether work of `units` of effort may be done here.
    pub(crate) fn affords(&self, units: u64) -> bool {
        self.pause.is_some() || units <= NETWORK_THREAD_UNITS
    }

    /// Takes the call on. At most once.
    pub(crate) fn responder(&mut self) -> Responder {
        self.taken.take().unwrap_or_else(|| self.call.responder())
    }
}

/// What a lane is told of a call.
fn info_of(call: &Call) -> JobInfo {
    let peer = call.cancellation();
    // A peer that does not take its replies gets no more of them made.
    JobInfo { admit: Some(Box::new(move || !peer.is_backlogged())), ..Caller::of(call).job_info() }
}

/// Has a large request decoded and carried out by `work` on a lane for such calls, as it would be on a network thread.
pub(crate) fn large_on_lane(
    server: &Arc<RegionServer>,
    call: Call,
    ordinary: LaneName,
    work: impl FnOnce(&Arc<RegionServer>, &mut CallContext<'_>) -> Answer + Send + 'static,
) -> Outcome {
    let (at, info, runtime) = (server.clone(), info_of(&call), Handle::current());
    let mut responder = call.responder();
    let lane = lane_by_priority(call.priority, ordinary);
    let job: scheduler::Job = Box::new(move |run| {
        let pause = match run {
            Ok(pause) => pause,
            Err(dropped) => return responder.answer(Err(exception_of(dropped, &at.name().to_string()))),
        };
        responder.begin();
        let begun_us = at.env.clock.monotonic_us();
        // What asks for the runtime's timers finds them.
        let _entered = runtime.enter();
        // What it puts into the logs waits for nobody else's calls.
        let batches = at.logs().map(wal::Log::batch);
        let _traced = trace::enter(call.trace());
        let mut context =
            CallContext { call: &call, taken: Some(responder), pause: Some(pause), begun_us, in_batch: true };
        let reads = CountedReads::begin(call.conn.load.get());
        let outcome = work(&at, &mut context).unwrap_or_else(Outcome::from);
        drop(batches);
        let reads = reads.end();
        let mut responder = || {
            let mut responder = context.responder();
            responder.has_read(reads);
            responder
        };
        match outcome {
            Outcome::Deferred => {}
            Outcome::Ready(result) => responder().answer(result),
            Outcome::Future(later) => {
                let responder = responder();
                runtime.spawn(async move { responder.answer(later.await) });
            }
        }
    });
    server.scheduler.submit(lane, info, job);
    Outcome::Deferred
}

/// Answers the call, a read of `region`, on a lane. It is not begun when its client waits no longer, and learns of that where it pauses.
pub(crate) fn read_on_lane(
    server: &RegionServer,
    region: &Region,
    context: &mut CallContext<'_>,
    work: impl FnOnce(&dyn PausePoint) -> CallResult + Send + 'static,
) -> Outcome {
    let call = context.call;
    let info = info_of(call);
    let (mut responder, name) = (context.responder(), server.name().to_string());
    let lane = lane_of(region, call.priority, LaneName::Read);
    let load = call.conn.load.get().cloned();
    server.scheduler.submit(
        lane,
        info,
        Box::new(move |run| match run {
            Ok(pause) => {
                responder.begin();
                let reads = CountedReads::begin(load.as_ref());
                let traced = trace::enter(responder.trace());
                let result = work(pause);
                drop(traced);
                responder.has_read(reads.end());
                responder.answer(result);
            }
            Err(dropped) => responder.answer(Err(exception_of(dropped, &name))),
        }),
    );
    Outcome::Deferred
}

/// As [`read_on_lane`] for one row, which may be large and is not cut: what is gathered counts for its connection and in the ledger. A read for
/// which there is no room is given up ([`Interrupted::NoRoom`]), and begun again when the connection has taken its replies. `work` is
/// done once to its end.
pub(crate) fn row_on_lane(
    server: &Arc<RegionServer>,
    region: &Region,
    context: &mut CallContext<'_>,
    work: impl FnMut(&dyn PausePoint) -> Result<CallResult, NoRoom> + Send + 'static,
) -> Outcome {
    let call = context.call;
    let lane = lane_of(region, call.priority, LaneName::Read);
    let responder = context.responder();
    let read = RowRead { server: server.clone(), lane, caller: Caller::of(call), responder, work, tries: 0 };
    read.submit(info_of(call));
    Outcome::Deferred
}

/// A read was given up for want of room.
pub(crate) struct NoRoom;

/// Times that a read is begun before its client is told to come again.
const MOST_TRIES: u32 = 100;

struct RowRead<W> {
    server: Arc<RegionServer>,
    lane: LaneName,
    caller: Caller,
    responder: Responder,
    work: W,
    tries: u32,
}

impl<W: FnMut(&dyn PausePoint) -> Result<CallResult, NoRoom> + Send + 'static> RowRead<W> {
    fn submit(self, info: JobInfo) {
        let (scheduler, lane) = (self.server.scheduler.clone(), self.lane);
        scheduler.submit(lane, info, Box::new(move |run| self.run(run)));
    }

    fn run(mut self, run: Result<&dyn PausePoint, Dropped>) {
        let pause = match run {
            Ok(pause) => pause,
            Err(dropped) => {
                let name = self.server.name().to_string();
                return self.responder.answer(Err(exception_of(dropped, &name)));
            }
        };
        if self.tries == 0 {
            self.responder.begin();
        }
        self.tries += 1;
        let growing = Growing { pause, making: self.caller.cancellation.making() };
        let reads = CountedReads::begin(self.caller.load.as_ref());
        let traced = trace::enter(self.caller.trace.as_ref());
        let result = (self.work)(&growing);
        drop(traced);
        let reads = reads.end();
        match result {
            Ok(result) => {
                self.responder.has_read(reads);
                // From here on it counts as an answer; who gets it must not find it counted twice.
                drop(growing);
                self.responder.answer(result);
            }
            Err(NoRoom) if self.tries == MOST_TRIES => {
                let text =
                    format!("{}: the read was given up {MOST_TRIES} times; try again later", Interrupted::NoRoom);
                self.responder.answer(Err(Exception::new(Kind::CallQueueTooBig, text)));
            }
            Err(NoRoom) => {
                let (bytes, peer) = (growing.making.bytes(), self.caller.cancellation.clone());
                drop(growing);
                let admit: Box<dyn FnMut() -> bool + Send> = Box::new(move || peer.has_room_again(bytes));
                let info = JobInfo { admit: Some(admit), ..self.caller.job_info() };
                self.submit(info);
            }
        }
    }
}

/// Where the read of one row pauses: what it has gathered counts as a reply in the making.
struct Growing<'a> {
    pause: &'a dyn PausePoint,
    making: Making,
}

impl PausePoint for Growing<'_> {
    fn pause(&self) -> Result<(), Interrupted> {
        self.pause.pause()
    }

    fn check(&self) -> Result<(), Interrupted> {
        self.pause.check()
    }

    fn gathered(&self, bytes: u64) -> Result<(), Interrupted> {
        if self.making.may_be_gathered(bytes) { Ok(()) } else { Err(Interrupted::NoRoom) }
    }
}

/// Runs a piece of what `caller` asks of `region` on a lane and waits for what it gives.
///
/// # Errors
/// It was not begun, or panicked.
pub(crate) async fn on_lane<T: Send + 'static>(
    server: &RegionServer,
    region: &Region,
    ordinary: LaneName,
    caller: &Caller,
    work: impl FnOnce(&dyn PausePoint) -> T + Send + 'static,
) -> Result<T, Exception> {
    let (sender, receiver) = oneshot::channel();
    let (load, trace) = (caller.load.clone(), caller.trace.clone());
    let job: scheduler::Job = Box::new(move |run| {
        let reads = CountedReads::begin(load.as_ref());
        let traced = trace::enter(trace.as_ref());
        let value = run.map(work);
        drop((traced, reads));
        let _gone = sender.send(value);
    });
    server.scheduler.submit(lane_of(region, caller.priority, ordinary), caller.job_info(), job);
    match receiver.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(dropped)) => Err(exception_of(dropped, &server.name().to_string())),
        Err(_) => Err(Exception::io("the call failed inside the server: its work panicked")),
    }
}

/// The exception for work that was not begun.
fn exception_of(dropped: Dropped, server: &str) -> Exception {
    match dropped {
        Dropped::Interrupted(Interrupted::Stopping) => Exception::server_stopped(server),
        Dropped::Interrupted(interrupted) => Exception::timeout(format!("the call was not begun: {interrupted}")),
        Dropped::QueueFull { .. } => Exception::new(
            Kind::CallQueueTooBig,
            format!("Call queue is full on {server}, is hbase.ipc.server.max.callqueue.length too small? ({dropped})"),
        ),
        Dropped::Overloaded { .. } => {
            Exception::new(Kind::CallDropped, format!("Call dropped on {server}, server is overloaded: {dropped}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HBase's classes: NORMAL_QOS 0, QOS_THRESHOLD 10, ADMIN_QOS 100, HIGH_QOS 200; a client that sets none may send -1.
    #[test]
    fn a_call_of_high_priority_has_the_lane_of_system_tables() {
        let lane = |priority: i32| lane_by_priority(priority as u32, LaneName::Read);
        assert_eq!([-1, i32::MIN, 0, 4, 10].map(lane), [LaneName::Read; 5]);
        assert_eq!([11, 100, 200, i32::MAX].map(lane), [LaneName::Meta; 4]);
        assert_eq!([-1, 0, 7, 10, 200].map(|priority| ordinary_priority(priority as u32)), [0, 0, 7, 10, 10]);
    }
}
