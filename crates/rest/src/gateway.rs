//! What every request has at hand.

use crate::csrf::CsrfGuard;
use crate::media::Media;
use crate::metrics::Metrics;
use crate::models::{CellSet, encode};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::resources;
use crate::scanners::Scanners;
use crate::settings;
use base::{Charge, Config, Holder, Ledger, Rng};
use client::{Connection, Table};
use hyper::body::Incoming;
use model::TableName;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::Semaphore;
use trace::{Span, SpanKind, TraceParent, Tracer, TracerCell};

/// Bytes that a request holds besides its body: so many requests at a time are bounded, too.
const REQUEST_BYTES: u64 = 4 << 10;
/// A reply with more bytes is encoded and compressed away from the threads that answer others. It takes them a tenth of a millisecond.
pub(crate) const LARGE_REPLY_BYTES: usize = 64 << 10;

/// A REST gateway to a cluster, without its port.
pub struct Gateway {
    pub(crate) connection: Connection,
    pub(crate) read_only: bool,
    pub(crate) fetch_size: u32,
    pub(crate) max_reply_bytes: usize,
    pub(crate) scanners: Scanners,
    max_request_bytes: u64,
    ledger: Arc<Ledger>,
    /// Turns at work on large replies, which is done for half as many at a time as there are processors.
    large_replies: Arc<Semaphore>,
    rng: Rng,
    csrf: Option<CsrfGuard>,
    compresses: bool,
    pub(crate) metrics: Arc<Metrics>,
    tracer: TracerCell,
}

impl Gateway {
    /// To the cluster that `connection` leads to. What clients hold counts on `ledger`.
    pub fn new(connection: Connection, config: &Config, ledger: Arc<Ledger>) -> Gateway {
        let expire = Duration::from_millis(config.get(&settings::SCANNER_EXPIRE_MS));
        Gateway {
            connection,
            read_only: config.get(&settings::READ_ONLY),
            fetch_size: config.get(&settings::SCAN_FETCH_SIZE),
            max_reply_bytes: config.get(&settings::MAX_REPLY_BYTES) as usize,
            scanners: Scanners::new(config.get(&settings::SCANNER_CACHE_SIZE) as usize, expire),
            max_request_bytes: config.get(&settings::MAX_REQUEST_BYTES),
            ledger,
            large_replies: Arc::new(Semaphore::new((available_parallelism().map_or(1, usize::from) / 2).max(1))),
            rng: Rng::from_system(),
            csrf: CsrfGuard::from_config(config),
            compresses: settings::compresses(config),
            metrics: Arc::default(),
            tracer: TracerCell::default(),
        }
    }

    /// What it counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// From now on requests are traced by `tracer`. Only the first counts.
    pub fn trace_by(&self, tracer: Arc<Tracer>) {
        self.tracer.set(tracer);
    }

    /// Answers one request, within a span if it is traced: named as OpenTelemetry's agent for Java names those of HBase's gateway, a part of what the
    /// client says in `traceparent`.
    pub(crate) async fn answer(&self, request: hyper::Request<Incoming>) -> Reply {
        let Some(mut span) = self.tracer.get().and_then(|tracer| span_of(tracer, &request)) else {
            return self.answer_untold(request).await;
        };
        // Boxed, so that a request of which nobody is to hear is no larger.
        let reply = trace::within(Some(span.place().clone()), Box::pin(self.answer_untold(request))).await;
        span.set("http.response.status_code", u64::from(reply.status.as_u16()));
        if reply.status.is_server_error() {
            span.fail(reply.status.as_str(), reply.status.canonical_reason().unwrap_or_default());
        }
        reply
    }

    async fn answer_untold(&self, request: hyper::Request<Incoming>) -> Reply {
        self.metrics.requested();
        if let Some(Err(refused)) = self.csrf.as_ref().map(|csrf| csrf.check(request.method(), request.headers())) {
            return refused;
        }
        let Some(mut charge) = self.ledger.try_charge_share(Holder::Requests, REQUEST_BYTES) else {
            return Reply::crowded();
        };
        let request = match Request::read(request, self.max_request_bytes, &mut charge).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        let reply = resources::answer(self, &request).await.unwrap_or_else(|refused| refused);
        let reply = match self.compresses_for(&request) {
            true if reply.byte_len() > LARGE_REPLY_BYTES => {
                self.aside(move || reply.gzip()).await.unwrap_or_else(|refused| refused)
            }
            true => reply.gzip(),
            false => reply,
        };
        reply.within(&self.ledger)
    }

    /// Whether the answer is compressed.
    pub(crate) fn compresses_for(&self, request: &Request) -> bool {
        self.compresses && request.takes_gzip()
    }

    /// Does work for a large reply where it holds nobody up, in turn.
    async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Reply> {
        // Nobody closes it.
        let turn = self.large_replies.clone().acquire_owned().await.map_err(|_| Reply::unavailable())?;
        let working = tokio::task::spawn_blocking(move || {
            // A client that leaves meanwhile does not end the work, nor its turn.
            let _turn = turn;
            work()
        });
        working.await.map_err(|error| {
            tracing::error!("REST gateway: a large reply could not be made: {error}");
            Reply::unavailable()
        })
    }

    /// Rows as a reply. `gathered` counts what they hold where that is much, and its place is needed until they are encoded. The reply is counted
    /// before it is made: one that there is no room for costs nothing.
    ///
    /// # Errors
    /// 503 where there is no room for it.
    pub(crate) async fn reply_of(&self, set: CellSet, media: Media, gathered: Charge) -> Answer {
        let most_bytes = set.most_encoded_bytes();
        if most_bytes <= LARGE_REPLY_BYTES {
            return Ok(Reply::model(media, &set));
        }
        let charge = self.ledger.try_charge_reply(most_bytes as u64).ok_or_else(Reply::crowded)?;
        let encoding = move || {
            let bytes = encode(&set, media);
            drop((set, gathered));
            bytes
        };
        Ok(Reply::counted(media, self.aside(encoding).await?, charge))
    }

    /// Counts rows that are gathered for a reply.
    pub(crate) fn gathering(&self) -> Charge {
        self.ledger.charge(Holder::Scanners, 0)
    }

    /// Counts what a stream holds of replies.
    pub(crate) fn streaming(&self) -> Charge {
        self.ledger.charge(Holder::Replies, 0)
    }

    /// A table by the name in a path.
    pub(crate) fn table(&self, name: &str) -> Result<Table, Reply> {
        Ok(self.connection.table(&table_name(name)?))
    }

    /// An id that nobody guesses.
    pub(crate) fn scanner_id(&self) -> String {
        format!("{:016x}{:016x}", self.rng.next_u64(), self.rng.next_u64())
    }
}

/// The name in a path.
pub(crate) fn table_name(name: &str) -> Result<TableName, Reply> {
    TableName::parse(name).map_err(|error| Reply::bad_request(&error.to_string()))
}

/// Where the servlet of HBase's gateway is mounted.
const ROUTE: &str = "/*";

fn span_of(tracer: &Arc<Tracer>, request: &hyper::Request<Incoming>) -> Option<Span> {
    let parent =
        request.headers().get(TraceParent::HEADER).and_then(|parent| TraceParent::parse(parent.to_str().ok()?));
    let method = request.method().as_str();
    let mut span = tracer.begin(parent, SpanKind::Server, || format!("{method} {ROUTE}").into())?;
    span.set("http.request.method", method.to_owned());
    span.set("http.route", ROUTE);
    span.set("url.path", request.uri().path().to_owned());
    Some(span)
}
