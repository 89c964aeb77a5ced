//! Where work goes that reads or writes files: away from Tokio's workers. What users ask for runs on the lanes of the scheduler;
//! administration, which they cannot hold up there, on Tokio's blocking pool.

use crate::handlers::Answer;
use crate::server::RegionServer;
use base::effort::NETWORK_THREAD_UNITS;
use base::{Interrupted, PausePoint};
use region::Region;
use rpc::exception::{Exception, Kind};
use rpc::{Call, CallResult, Outcome, Responder};
use scheduler::{Dropped, JobInfo, LaneName};
use std::sync::Arc;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::JoinError;

/// Calls of a higher priority run beside those to system tables. Follows: `SimpleRpcScheduler` with `HConstants.PRIORITY_QOS`.
const MOST_ORDINARY_PRIORITY: u32 = 100;
/// The client of work that is not told apart by clients.
const ANY_CLIENT: u64 = 0;

/// Runs `work` on the blocking pool. On a runtime of one thread (the model world) it runs at once and on that thread, so
/// that one seed gives one run.
///
/// # Errors
/// `work` panicked.
pub(crate) async fn off_worker<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await
}

/// The lane for calls to `region`: `ordinary`, or that of system tables.
fn lane_of(region: &Region, priority: u32, ordinary: LaneName) -> LaneName {
    if region.info().table.is_system() || priority > MOST_ORDINARY_PRIORITY { LaneName::Meta } else { ordinary }
}

/// A request with more bytes is decoded and carried out on a lane: a network thread would be held up by it.
pub(crate) const LARGE_REQUEST_BYTES: usize = 128 * 1024;
/// The same for one that takes so much when it is decoded, beyond its own bytes: some hundred actions.
const LARGE_DECODED_BYTES: usize = 256 * 1024;

/// Whether decoding the request alone is too much for a network thread.
pub(crate) fn is_large(call: &Call) -> bool {
    call.size_bytes > LARGE_REQUEST_BYTES || call.decoded_bytes() > LARGE_DECODED_BYTES
}

/// A call that is answered now or promised an answer, on a network thread or on a lane, where it has been taken on already.
pub(crate) struct Promiser<'a> {
    pub call: &'a Call,
    /// Taken on before.
    taken: Option<Responder>,
    /// Where it pauses, on a lane.
    pub pause: Option<&'a dyn PausePoint>,
    /// Log entries of the call are written with those of others, at the end of a batch that somebody holds.
    pub in_batch: bool,
}

impl<'a> Promiser<'a> {
    /// Nobody has taken the call on yet.
    pub(crate) fn new(call: &'a Call) -> Promiser<'a> {
        Promiser { call, taken: None, pause: None, in_batch: call.is_in_batch() }
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
    let (cancellation, peer) = (call.cancellation(), call.cancellation());
    JobInfo {
        priority: call.priority.min(MOST_ORDINARY_PRIORITY),
        deadline_us: call.deadline_us,
        is_cancelled: Box::new(move || cancellation.is_cancelled()),
        // A peer that does not take its replies gets no more of them made.
        admit: Some(Box::new(move || !peer.is_backlogged())),
        ..JobInfo::of_client(call.conn.id)
    }
}

/// Has a large request decoded and carried out by `work` on a lane for such calls, as it would be on a network thread.
pub(crate) fn large_on_lane(
    server: &Arc<RegionServer>,
    call: Call,
    ordinary: LaneName,
    work: impl FnOnce(&Arc<RegionServer>, &mut Promiser<'_>) -> Answer + Send + 'static,
) -> Outcome {
    let (at, info, runtime) = (server.clone(), info_of(&call), Handle::current());
    let responder = call.responder();
    let lane = if call.priority > MOST_ORDINARY_PRIORITY { LaneName::Meta } else { ordinary };
    let job: scheduler::Job = Box::new(move |run| {
        let pause = match run {
            Ok(pause) => pause,
            Err(dropped) => return responder.answer(Err(exception_of(dropped, &at.name().to_string()))),
        };
        // What asks for the runtime's timers finds them.
        let _entered = runtime.enter();
        // What it puts into the logs waits for nobody else's calls.
        let batches = at.logs().map(wal::Log::batch);
        let mut promiser = Promiser { call: &call, taken: Some(responder), pause: Some(pause), in_batch: true };
        let outcome = work(&at, &mut promiser).unwrap_or_else(Outcome::from);
        drop(batches);
        match outcome {
            Outcome::Promised => {}
            Outcome::Ready(result) => promiser.responder().answer(result),
            Outcome::Later(later) => {
                let responder = promiser.responder();
                runtime.spawn(async move { responder.answer(later.await) });
            }
        }
    });
    server.scheduler.submit(lane, info, job);
    Outcome::Promised
}

/// Answers the call, a read of `region`, on a lane. It is not begun when its client waits no longer, and learns of that where it pauses.
pub(crate) fn read_on_lane(
    server: &RegionServer,
    region: &Region,
    promiser: &mut Promiser<'_>,
    work: impl FnOnce(&dyn PausePoint) -> CallResult + Send + 'static,
) -> Outcome {
    let call = promiser.call;
    let info = info_of(call);
    let (responder, name) = (promiser.responder(), server.name().to_string());
    let lane = lane_of(region, call.priority, LaneName::Read);
    server.scheduler.submit(
        lane,
        info,
        Box::new(move |run| match run {
            Ok(pause) => responder.answer(work(pause)),
            Err(dropped) => responder.answer(Err(exception_of(dropped, &name))),
        }),
    );
    Outcome::Promised
}

/// Runs a piece of work on `region` on a lane and waits for what it gives. Nobody waits after `deadline_us`.
///
/// # Errors
/// It was not begun, or panicked.
pub(crate) async fn on_lane<T: Send + 'static>(
    server: &RegionServer,
    region: &Region,
    ordinary: LaneName,
    deadline_us: Option<u64>,
    work: impl FnOnce(&dyn PausePoint) -> T + Send + 'static,
) -> Result<T, Exception> {
    let (sender, receiver) = oneshot::channel();
    let info = JobInfo { deadline_us, ..JobInfo::of_client(ANY_CLIENT) };
    let job: scheduler::Job = Box::new(move |run| _ = sender.send(run.map(work)));
    server.scheduler.submit(lane_of(region, 0, ordinary), info, job);
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
