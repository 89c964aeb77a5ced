//! What each route does. Follows: the resources of `org.apache.hadoop.hbase.rest`.

mod change;
mod check;
mod cluster;
pub(crate) mod filter;
mod multiget;
mod namespaces;
mod read;
mod scan;
mod scanner;
mod tables;

use crate::gateway::Gateway;
use crate::media::MODELS;
use crate::metrics::Kind;
use crate::models::{Readable, decode};
use crate::reply::{Answer, Reply};
use crate::request::Request;
use crate::route::{Route, TableRoute};
use ::filter::Filter;
use hyper::{Method, StatusCode};

/// Answers a request.
pub async fn answer(gateway: &Gateway, request: &Request) -> Answer {
    let route = Route::of(request.uri.path()).map_err(|why| Reply::bad_request(&why))?;
    let Some(route) = route else { return Err(Reply::not_found()) };
    let action = Action::of(&request.method)?;
    // What nobody may change: every resource of HBase's asks this first.
    if gateway.read_only && action != Action::Get {
        return Err(Reply::forbidden());
    }
    let answer = answer_route(gateway, request, &route, action).await;
    let kind = Kind::of(&route, action, request.raw_parameter("check"));
    gateway.metrics.answered(kind, matches!(&answer, Ok(reply) if !reply.status.is_client_error()));
    answer
}

async fn answer_route(gateway: &Gateway, request: &Request, route: &Route, action: Action) -> Answer {
    match (route, action) {
        (Route::Root, Action::Get) => tables::list(gateway, request).await,
        (Route::Version, Action::Get) => cluster::version(request),
        (Route::ClusterVersion, Action::Get) => cluster::cluster_version(gateway, request).await,
        (Route::ClusterStatus, Action::Get) => cluster::status(gateway, request).await,
        (Route::Namespaces, Action::Get) => namespaces::list(gateway, request).await,
        (Route::Namespace(name), action) => namespaces::one(gateway, request, name, action).await,
        (Route::NamespaceTables(name), Action::Get) => namespaces::tables(gateway, request, name).await,
        (Route::Table(table, route), action) => of_table(gateway, request, table, route, action).await,
        _ => Err(not_allowed()),
    }
}

async fn of_table(gateway: &Gateway, request: &Request, table: &str, route: &TableRoute, action: Action) -> Answer {
    match (route, action) {
        (TableRoute::Exists, Action::Get) => tables::exists(gateway, table).await,
        (TableRoute::Regions, Action::Get) => tables::regions(gateway, request, table).await,
        (TableRoute::Schema, action) => tables::schema(gateway, request, table, action).await,
        (TableRoute::Scanner, Action::Put | Action::Post) => scanner::create(gateway, request, table),
        (TableRoute::ScannerInstance(id), Action::Get) => scanner::next(gateway, request, table, id).await,
        (TableRoute::ScannerInstance(id), Action::Delete) => scanner::close(gateway, table, id),
        (TableRoute::MultiGet(columns), Action::Get) => multiget::get(gateway, request, table, columns).await,
        (TableRoute::Scan(prefix), Action::Get) => scan::get(gateway, request, table, prefix).await,
        (TableRoute::Row(spec), Action::Get) => read::get(gateway, request, table, spec).await,
        (TableRoute::Row(spec), Action::Put | Action::Post) => change::put(gateway, request, table, spec).await,
        (TableRoute::Row(spec), Action::Delete) => change::delete(gateway, request, table, spec).await,
        _ => Err(not_allowed()),
    }
}

/// What a method asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// GET, and HEAD.
    Get,
    /// PUT.
    Put,
    /// POST.
    Post,
    /// DELETE.
    Delete,
}

impl Action {
    fn of(method: &Method) -> Result<Action, Reply> {
        match *method {
            Method::GET | Method::HEAD => Ok(Action::Get),
            Method::PUT => Ok(Action::Put),
            Method::POST => Ok(Action::Post),
            Method::DELETE => Ok(Action::Delete),
            _ => Err(not_allowed()),
        }
    }
}

fn not_allowed() -> Reply {
    Reply::empty(StatusCode::METHOD_NOT_ALLOWED)
}

/// The body as a model.
fn model_of<M: Readable>(request: &Request) -> Result<M, Reply> {
    let media = request.content(MODELS)?;
    decode(&request.body, media).map_err(|why| Reply::bad_request(&why))
}

/// The filter of a query: `filter_b64`, or `filter`, in the language of `ParseFilter`.
fn filter_of(request: &Request) -> Result<Option<Filter>, Reply> {
    let bytes = match request.raw_parameter("filter_b64") {
        Some(encoded) => {
            let encoded = crate::text::percent_decoded(encoded, false).map_err(|why| Reply::bad_request(&why))?;
            let decoded = crate::text::from_base64_url(encoded.as_bytes());
            Some(decoded.map_err(|why| Reply::bad_request(&why))?)
        }
        None => request.parameter("filter")?.map(Into::into),
    };
    let parse = |bytes: bytes::Bytes| ::filter::parse::parse_filter(&bytes);
    bytes.map(parse).transpose().map_err(|error| Reply::bad_request(&error.to_string()))
}

/// HBase refuses so few versions on reading.
fn versions(given: i32) -> Result<u32, Reply> {
    u32::try_from(given).ok().filter(|versions| *versions > 0).ok_or_else(|| {
        Reply::text(StatusCode::SERVICE_UNAVAILABLE, "Unavailable\r\njava.io.IOException: maxVersions must be positive")
    })
}
