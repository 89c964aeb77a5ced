//! Posts to a collector: HTTP/1.1, one connection for each batch, which comes every five seconds at the most.

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::http::uri::Scheme;
use hyper::{Request, Response, Uri, header};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// A collector answers with a small message, or with the reason of an error.
const MOST_ANSWER_BYTES: usize = 64 * 1024;
/// An answer that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Failures of which one is logged.
const LOGGED_ONE_IN: u64 = 60;

/// Where batches are posted to.
#[derive(Debug)]
pub(crate) struct Collector {
    authority: String,
    runtime: Handle,
    failures: AtomicU64,
}

impl Collector {
    /// The collector at `endpoint`.
    pub fn of(endpoint: &str) -> Result<Collector, String> {
        let uri: Uri = endpoint.parse().map_err(|error| format!("{endpoint:?} is no URL: {error}"))?;
        if uri.scheme() == Some(&Scheme::HTTPS) {
            return Err(format!(
                "{endpoint}: https is not spoken here; send to a collector beside the server, which forwards by it"
            ));
        }
        let (Some(host), true) = (uri.host(), uri.scheme() == Some(&Scheme::HTTP)) else {
            return Err(format!("{endpoint:?} is no URL of a collector: write http://host:4318"));
        };
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        let runtime = Handle::try_current().map_err(|error| error.to_string())?;
        Ok(Collector { authority, runtime, failures: AtomicU64::new(0) })
    }

    fn failed(&self, error: &HttpError) {
        if self.failures.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOGGED_ONE_IN) {
            tracing::warn!(
                "spans were not exported and are dropped; is there a collector at {} (basalt.trace.otlp.endpoint)? {error}",
                self.authority
            );
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let authority = self.authority.clone();
        let host = header::HeaderValue::from_str(&authority)?;
        request.headers_mut().insert(header::HOST, host);
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        *request.uri_mut() = path.parse()?;
        // Whoever sends waits on a thread of its own, without a runtime.
        let posting = self.runtime.spawn(async move { tokio::time::timeout(PATIENCE, post(authority, request)).await });
        let answered: Result<_, HttpError> = match posting.await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Err(format!("no answer within {} s", PATIENCE.as_secs()).into()),
            Err(error) => Err(error.into()),
        };
        match &answered {
            Err(error) => self.failed(error),
            Ok(answer) if !answer.status().is_success() => {
                self.failed(&format!("it answers {}", answer.status()).into())
            }
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
        }
        answered
    }
}

async fn post(authority: String, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let stream = TcpStream::connect(&authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driving = tokio::spawn(connection);
    let answer = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MOST_ANSWER_BYTES).collect().await?.to_bytes();
    driving.abort();
    Ok(Response::from_parts(head, body))
}
