//! Which address answers what.

mod details;

use crate::page::{self, Face, Order, PageRequest, RegionList};
use crate::query::Query;
use crate::rates::Samples;
use crate::settings::MetricsPages;
use crate::status::{GatewayKind, Status, StatusSource};
use crate::{beans, conf, jmx, prometheus};
use base::Clock;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode, Uri};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Pages being drawn at a time: a flood of readers must not take the threads that serve clients.
const MAX_DRAWING: usize = 2;

/// The pages.
pub struct Site {
    source: Arc<dyn StatusSource>,
    face: Face,
    clock: Arc<dyn Clock>,
    samples: Mutex<Samples>,
    drawing: Semaphore,
    metrics: MetricsPages,
}

/// What an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Status(&'static str),
    GatewayStatus,
    Jmx,
    Prometheus,
    Conf,
    Health,
    Style,
    /// A page that needs more than the status.
    Details(Detail),
    ToStatus,
    Nowhere,
}

/// A page that is drawn from [`crate::Details`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Table,
    Tables,
    Region,
    Procedures,
    Snapshots,
    Snapshot,
    SnapshotSizes,
    Quotas,
    SlowCalls,
    InTransition,
    Checks,
    Group,
    Nodes,
    Process,
    Stacks,
    Configuration,
    Log,
    LogText,
    LogLevel,
    Dump,
    Keys,
    Profiles,
    Profile,
}

impl Detail {
    /// Whether a region server has it whose master is another process.
    fn is_of_region_server(self) -> bool {
        use Detail::{Keys, Process, Region, SlowCalls, Table};
        matches!(self, Keys | Process | Region | SlowCalls | Table)
    }

    /// Whether a process that is no server has it, too.
    fn is_of_any_process(self) -> bool {
        use Detail::{Configuration, Dump, Log, LogLevel, LogText, Profile, Profiles, Stacks};
        matches!(self, Stacks | Configuration | Log | LogText | LogLevel | Dump | Profiles | Profile)
    }
}

/// Addresses of HBase's, and four of our own: `/configuration`, `/healthz`, `/keys`, `/logs/basalt.log`.
fn place(face: Face, path: &str) -> Place {
    match face {
        Face::Server => place_of_server(path),
        Face::Master => match place_of_server(path) {
            // No call of a client's passes here, and which keys are read and written is seen where they are.
            Place::Details(Detail::Keys) => Place::Nowhere,
            place => place,
        },
        Face::RegionServer => place_of_region_server(path),
        Face::Gateway(kind) => place_of_gateway(kind, path),
    }
}

/// A gateway has what any process has, and a status of its own.
fn place_of_gateway(kind: GatewayKind, path: &str) -> Place {
    if path == kind.status_path() {
        return Place::GatewayStatus;
    }
    if path == kind.process_path() {
        return Place::Details(Detail::Process);
    }
    match place_of_server(path) {
        Place::Status(_) => Place::Nowhere,
        Place::Details(detail) if !detail.is_of_any_process() => Place::Nowhere,
        place => place,
    }
}

/// A region server alone has what is its own and what any process has.
fn place_of_region_server(path: &str) -> Place {
    match place_of_server(path) {
        Place::Status("/master-status") => Place::Nowhere,
        Place::Details(detail) if !detail.is_of_any_process() && !detail.is_of_region_server() => Place::Nowhere,
        place => place,
    }
}

fn place_of_server(path: &str) -> Place {
    let detail = match path {
        "/master-status" => return Place::Status("/master-status"),
        "/rs-status" => return Place::Status("/rs-status"),
        "/jmx" => return Place::Jmx,
        "/prometheus" | "/metrics" => return Place::Prometheus,
        "/conf" => return Place::Conf,
        "/healthz" => return Place::Health,
        "/static/" | "/static/style.css" => return Place::Style,
        "/" | "/index.html" | "/master.jsp" | "/regionserver.jsp" => return Place::ToStatus,
        "/table.jsp" => Detail::Table,
        "/tablesDetailed.jsp" => Detail::Tables,
        "/region.jsp" => Detail::Region,
        "/procedures.jsp" => Detail::Procedures,
        "/userSnapshots.jsp" => Detail::Snapshots,
        "/snapshot.jsp" => Detail::Snapshot,
        "/snapshotsStats.jsp" => Detail::SnapshotSizes,
        "/quotas.jsp" => Detail::Quotas,
        "/operationDetails.jsp" | "/rsOperationDetails.jsp" => Detail::SlowCalls,
        "/rits.jsp" => Detail::InTransition,
        "/hbck.jsp" => Detail::Checks,
        "/rsgroup.jsp" => Detail::Group,
        "/zk.jsp" => Detail::Nodes,
        "/processMaster.jsp" | "/processRS.jsp" => Detail::Process,
        "/stacks" => Detail::Stacks,
        "/configuration" => Detail::Configuration,
        "/logs" | "/logs/" => Detail::Log,
        "/logs/basalt.log" => Detail::LogText,
        "/logLevel" => Detail::LogLevel,
        "/dump" => Detail::Dump,
        "/keys" => Detail::Keys,
        "/prof" => Detail::Profiles,
        "/prof-output-hbase" => Detail::Profile,
        _ => return Place::Nowhere,
    };
    Place::Details(detail)
}

type Answer = Response<Full<Bytes>>;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

impl Site {
    /// Pages of `source`; rates are counted from now.
    pub fn new(source: Arc<dyn StatusSource>, clock: Arc<dyn Clock>, metrics: MetricsPages) -> Site {
        let face = match source.gateway() {
            Some(gateway) => Face::Gateway(gateway.kind),
            None if source.is_region_server_alone() => Face::RegionServer,
            None if source.is_master_alone() => Face::Master,
            None => Face::Server,
        };
        let (samples, drawing) = (Mutex::default(), Semaphore::new(MAX_DRAWING));
        let site = Site { source, face, clock, samples, drawing, metrics };
        site.sample();
        site
    }

    /// Looks at the counters, for rates.
    pub fn sample(&self) {
        let (now_us, requests) = (self.clock.monotonic_us(), self.source.requests());
        self.samples.lock().record(now_us, requests);
    }

    /// Answers a request; `form` is the body of a POST.
    pub async fn answer(self: &Arc<Self>, method: &Method, uri: &Uri, form: Option<&str>) -> Answer {
        let shown = match uri.path() {
            "/jmx" => self.metrics.jmx,
            "/metrics" => self.metrics.metrics,
            "/prometheus" => self.metrics.prometheus,
            _ => true,
        };
        let place = if shown { place(self.face, uri.path()) } else { Place::Nowhere };
        let takes_forms = matches!(place, Place::Details(Detail::LogLevel | Detail::Profiles));
        if *method == Method::POST && takes_forms {
            return self.draw(place, Query::parse(form.unwrap_or_default()), true).await;
        }
        if method != Method::GET && method != Method::HEAD {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match place {
            // No thread is needed to say that one lives.
            Place::Health if self.source.is_serving() => plain(StatusCode::OK, "OK\n"),
            Place::Health => plain(StatusCode::SERVICE_UNAVAILABLE, "not serving\n"),
            Place::Style => respond(StatusCode::OK, "text/css; charset=utf-8", page::frame::STYLE.to_owned()),
            Place::ToStatus => redirect(self.face.status_path()),
            Place::Nowhere => respond(StatusCode::NOT_FOUND, HTML, page::not_found(uri.path(), self.face)),
            place => self.draw(place, Query::parse(uri.query().unwrap_or_default()), false).await,
        }
    }

    /// Draws a page on a thread where a moment's work disturbs nobody.
    async fn draw(self: &Arc<Self>, place: Place, query: Query, changes: bool) -> Answer {
        let Ok(_permit) = self.drawing.acquire().await else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
        };
        let site = self.clone();
        let drawn = tokio::task::spawn_blocking(move || match place {
            Place::Conf => site.conf(&query),
            Place::Details(detail) => site.detail_answer(detail, &query, changes),
            place => site.status_answer(place, &query),
        });
        drawn.await.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "this page could not be drawn\n"))
    }

    fn conf(&self, query: &Query) -> Answer {
        let mut properties = self.source.configuration();
        properties.sort_by(|a, b| a.key.cmp(&b.key));
        match query.get("format") {
            None | Some("xml") => respond(StatusCode::OK, "text/xml; charset=utf-8", conf::xml(&properties)),
            Some("json") => respond(StatusCode::OK, JSON, conf::json(&properties)),
            Some(_) => plain(StatusCode::BAD_REQUEST, "format is xml or json\n"),
        }
    }

    fn status_answer(&self, place: Place, query: &Query) -> Answer {
        let status: Status = self.source.status();
        let now_ms = self.clock.now_ms().0;
        let rates = self.samples.lock().rates(self.clock.monotonic_us(), status.requests);
        if let Place::Status(path) = place {
            let details = self.source.details();
            let request = PageRequest {
                regions: region_list(path, query.get("table").filter(|table| !table.is_empty()), query),
                running: &details.map(|details| details.running()).unwrap_or_default(),
                slow_calls: &details.map(|details| details.slow_calls()).unwrap_or_default(),
                now_ms,
                face: self.face,
                serving: self.source.is_serving(),
            };
            return respond(StatusCode::OK, HTML, page::draw(&status, &rates, &request));
        }
        if place == Place::GatewayStatus
            && let Some(gateway) = self.source.gateway()
        {
            return respond(StatusCode::OK, HTML, page::gateway(&gateway, &status, &rates, now_ms));
        }
        let mut beans = beans::all(self.source.metrics(now_ms), &status, &rates);
        if place == Place::Prometheus {
            let text = prometheus::write(&beans, query.get("qry").unwrap_or(""));
            return respond(StatusCode::OK, prometheus::MEDIA_TYPE, text);
        }
        if let Some(process) = self.source.process() {
            beans.extend(beans::of_java(&process.runtime(), now_ms));
        }
        let answer = jmx::answer(&beans, query);
        let code = if answer.ok { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let media_type = if answer.script { "application/javascript; charset=utf-8" } else { JSON };
        respond(code, media_type, answer.text)
    }
}

/// Which regions a query asks for.
fn region_list<'a>(path: &'static str, table: Option<&'a str>, query: &'a Query) -> RegionList<'a> {
    RegionList {
        path,
        table,
        search: query.get("q").filter(|text| !text.is_empty()),
        order: Order::named(query.get("sort").unwrap_or("")),
        from: query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0),
    }
}

fn plain(code: StatusCode, text: &'static str) -> Answer {
    respond(code, TEXT, text.to_owned())
}

fn redirect(to: &str) -> Answer {
    let mut answer = plain(StatusCode::FOUND, "");
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/master-status"));
    answer.headers_mut().insert(header::LOCATION, to);
    answer
}

fn respond(code: StatusCode, media_type: &'static str, body: String) -> Answer {
    /// Nothing is loaded, run, framed or kept.
    const HEADERS: [(HeaderName, &str); 5] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ];
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
