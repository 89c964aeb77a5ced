//! The calls: which method is answered where, and how a region is found.

mod admin;
mod bulk_load;
mod get;
mod multi;
pub(crate) mod mutate;
mod replay;
pub(crate) mod scan;
mod slow_log;

pub(crate) use admin::server_exception;

use crate::endpoints;
use crate::lease::ServeLease;
use crate::operations::Operation;
use crate::orders::Orders;
use crate::pressure::Admission;
use crate::server::RegionServer;
use crate::users::CountedReads;
use bytes::Bytes;
use convert::from_proto;
use proto::methods::{Method, Service};
use proto::{Message, pb};
use region::Region;
use rpc::exception::{Exception, Kind};
use rpc::service::{self, AdminService, ClientService, Response};
use rpc::{AnsweredCall, Call, CallObserver, CallReads, CallResult, Outcome};
use std::sync::Arc;

/// ClientService and AdminService of one region server.
pub struct RegionService {
    pub(crate) server: Arc<RegionServer>,
    /// Where the master is another process.
    pub(crate) orders: Option<Arc<Orders>>,
    /// Clients are answered while it holds; `None`: always.
    lease: Option<Arc<ServeLease>>,
}

impl RegionService {
    /// The services of `server`.
    pub fn new(server: Arc<RegionServer>) -> RegionService {
        RegionService { server, orders: None, lease: None }
    }

    /// The services of `server`, which takes the orders of a master in another process, and answers clients while `lease` holds.
    pub fn of_member(server: Arc<RegionServer>, orders: Arc<Orders>, lease: Arc<ServeLease>) -> RegionService {
        RegionService { server, orders: Some(orders), lease: Some(lease) }
    }

    /// All calls that came together over a connection were handed in: their log entries are written, in one piece if the
    /// log is free, else by whoever is at it.
    pub fn on_batch_end(&self) {
        self.server.logs().into_iter().for_each(|log| log.write_pending());
    }

    /// A call was answered on the network thread. Other methods than Get are timed where they are carried out; calls of services that are not the
    /// region server's are none of its business.
    pub fn on_answered_at_once(&self, call: &AnsweredCall<'_>) {
        if !matches!(call.method.service, Service::Client | Service::Admin) {
            return;
        }
        if call.method.method == Method::ClientGet {
            self.server.operations.ended(Operation::Get, call.processed_us);
        }
        self.server.slow_log.answered(call);
    }

    /// Answers a call to ClientService or AdminService; methods of other services are unsupported.
    pub fn call(&self, call: Call) -> Outcome {
        self.server.counts.count(call.method.method);
        call.observe(|| self.server.slow_log.clone());
        let load = self.server.users.load_of(&call).cloned();
        let reads = CountedReads::begin(load.as_ref());
        let outcome = match call.method.service {
            // Another may have the regions: clients are to look.
            Service::Client if self.lease.as_ref().is_some_and(|lease| !lease.holds()) => {
                Exception::server_stopped(&self.server.name.to_string()).into()
            }
            Service::Client => ClientService::dispatch(self, call),
            Service::Admin => AdminService::dispatch(self, call),
            _ => Exception::unsupported(call.method).into(),
        };
        // Whoever is told of the answer is told of these.
        let reads = reads.end();
        match outcome {
            Outcome::Ready(result) => Outcome::Ready(with_reads(result, reads)),
            Outcome::Future(future) if reads == CallReads::default() => Outcome::Future(future),
            Outcome::Future(future) => Outcome::later(async move { with_reads(future.await, reads) }),
            Outcome::Deferred => Outcome::Deferred,
        }
    }
}

impl ClientService for RegionService {
    fn get(&self, call: Call) -> Answer {
        get::get(&self.server, call)
    }

    fn mutate(&self, call: Call) -> Answer {
        mutate::mutate(&self.server, call)
    }

    fn multi(&self, call: Call) -> Answer {
        multi::multi(&self.server, call)
    }

    fn scan(&self, call: Call) -> Answer {
        scan::scan(&self.server, call)
    }

    rpc::answered_by! {
        exec_service(CoprocessorServiceRequest) -> CoprocessorServiceResponse = endpoints::exec_service;
        exec_region_server_service(CoprocessorServiceRequest) -> CoprocessorServiceResponse = endpoints::exec_server_service;
        prepare_bulk_load(PrepareBulkLoadRequest) -> PrepareBulkLoadResponse = bulk_load::prepare;
        bulk_load_hfile(BulkLoadHFileRequest) -> BulkLoadHFileResponse = bulk_load::load;
        cleanup_bulk_load(CleanupBulkLoadRequest) -> CleanupBulkLoadResponse = bulk_load::cleanup;
    }
}

/// An answer, or the exception that is one.
pub(crate) type Answer = Result<Outcome, Exception>;

/// The online region that `specifier` names.
///
/// # Errors
/// RegionOpening, NotServingRegion, or RegionServerStopped as HBase says them.
pub(crate) fn find_region(server: &RegionServer, specifier: &pb::RegionSpecifier) -> Result<Arc<Region>, Exception> {
    let name = from_proto::region_encoded_name(specifier)?;
    if let Some(region) = server.region(&name) {
        return Ok(region);
    }
    if server.stop.is_set() {
        return Err(Exception::server_stopped(&server.name.to_string()));
    }
    let shown = cell::print::to_string_binary(&specifier.value);
    if server.online.is_in_transition(&name) || server.moving.opens(&name) {
        return Err(Exception::region_opening(&format!("{shown} on {}", server.name)));
    }
    let why = match server.waiting_region(&name) {
        Some(_) => ": a volume with files of it has failed, and it opens again when that is back",
        None => "",
    };
    Err(Exception::new(Kind::NotServingRegion, format!("{shown} is not online on {}{why}", server.name)))
}

fn with_reads(mut result: CallResult, reads: CallReads) -> CallResult {
    if let Ok(reply) = &mut result {
        reply.reads += reads;
    }
    result
}

fn required<T>(field: Option<T>, message: &str, name: &str) -> Result<T, Exception> {
    field.ok_or_else(|| Exception::do_not_retry(format!("Missing required field {name} in {message}")))
}

/// Runs `work`, which may read and write files, on the blocking pool.
pub(crate) fn blocking<M: Message + 'static>(
    work: impl FnOnce() -> Result<M, Exception> + Send + 'static,
) -> service::Answer<M> {
    Ok(Response::future(run_blocking(work)))
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Exception> + Send + 'static,
) -> Result<T, Exception> {
    match crate::blocking::off_worker(work).await {
        Ok(result) => result,
        Err(error) => Err(Exception::io(format!("the call failed inside the server: {error}"))),
    }
}

/// What a write of `bytes` to `region` must endure now; hbase:meta is never held up.
pub(crate) fn admission(
    server: &RegionServer,
    region: &Region,
    bytes: usize,
) -> Result<Option<std::time::Duration>, Exception> {
    if region.info().table.is_meta() {
        return Ok(None);
    }
    let (held_bytes, marks) = (server.memstores_hold_bytes(), server.marks());
    let now_us = || server.env.clock.monotonic_us();
    let of_region_us = region.write_wait_us(bytes as u64);
    let of_all = server.memory_pace.admit(&server.env.memory, marks, held_bytes, bytes as u64, now_us);
    let waits = |delay: std::time::Duration| {
        let delay = delay.max(std::time::Duration::from_micros(of_region_us));
        if delay.is_zero() {
            return Ok(None);
        }
        server.operations.updates_blocked(delay.as_micros() as u64);
        Ok(Some(delay))
    };
    match of_all {
        Admission::Free => waits(std::time::Duration::ZERO),
        Admission::Delay(delay) => waits(delay),
        Admission::TooBusy => Err(Exception::region_too_busy(format!(
            "Over memstore limit of the server: {} of {} bytes are held; flushes are on their way. region={}, server={}",
            held_bytes,
            marks.limit_bytes,
            region.info().name_string(),
            server.name
        ))),
    }
}

/// Whether the client still waits for an answer to this call.
pub(crate) fn is_overdue(server: &RegionServer, deadline_us: Option<u64>) -> bool {
    deadline_us.is_some_and(|deadline| server.env.clock.monotonic_us() > deadline)
}

fn encoded(name: &Arc<str>) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}
