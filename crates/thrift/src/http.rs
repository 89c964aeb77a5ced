//! Thrift over HTTP: a POST whose body is a message of the binary protocol, answered with a message.
//!
//! Follows: `ThriftHttpServlet`, `ThriftServer#setupHTTPServer`.

use crate::dispatch::{Manner, Service, handle};
use crate::protocol::{Protocol, Written};
use crate::server::{Gateway, ServerOptions};
use base::{Charge, Holder, Ledger};
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io::IoSlice;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_io_timeout::TimeoutStream;

/// The type of both bodies.
const THRIFT: HeaderValue = HeaderValue::from_static("application/x-thrift");
/// Bytes of a request line with its headers, as HBase has it.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Header lines.
const MAX_HEADERS: usize = 256;
/// What HBase sends with each answer (`SecurityHeadersFilter`, `ClickjackingPreventionFilter`).
const SECURITY_HEADERS: [(&str, &str); 3] =
    [("X-Content-Type-Options", "nosniff"), ("X-XSS-Protection", "1; mode=block"), ("X-Frame-Options", "DENY")];

/// A reply and its place on the ledger, until the socket has taken it.
struct Counted {
    reply: Written,
    _charge: Option<Charge>,
}

impl Buf for Counted {
    fn remaining(&self) -> usize {
        self.reply.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.reply.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.reply.chunks_vectored(slices)
    }

    fn advance(&mut self, count: usize) {
        self.reply.advance(count);
    }
}

/// Whom a connection is with.
#[derive(Clone, Copy)]
pub struct From {
    /// Its address.
    pub peer: IpAddr,
    /// Whether exceptions name the Java class.
    pub with_class: bool,
}

/// A request that is not answered by the service.
struct Refused(StatusCode, String);

/// Answers the requests of a connection until its client leaves, or does nothing for the socket's time.
///
/// # Errors
/// It was left.
pub async fn serve<S: Service>(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    gateway: &Gateway,
    service: &S,
    from: From,
) -> Result<(), hyper::Error> {
    let Gateway { options, .. } = gateway;
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(options.socket_timeout));
    let answering = service_fn(move |request: Request<Incoming>| async move {
        let answer = match answer(request, gateway, service, from).await {
            Ok(reply) => (StatusCode::OK, THRIFT, reply),
            Err(Refused(status, why)) => (
                status,
                HeaderValue::from_static("text/plain"),
                Counted { reply: Bytes::from(why).into(), _charge: None },
            ),
        };
        Ok::<_, Infallible>(response(answer))
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.socket_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(Box::pin(socket)), answering)
        .await
}

fn response((status, kind, body): (StatusCode, HeaderValue, Counted)) -> Response<Full<Counted>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    for (name, value) in SECURITY_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

async fn answer<S: Service>(
    request: Request<Incoming>,
    gateway: &Gateway,
    service: &S,
    from: From,
) -> Result<Counted, Refused> {
    let Gateway { options, ledger, stopwatch, impersonation, .. } = gateway;
    if request.method() != Method::POST {
        let why = "a message of Thrift comes with POST\n".to_owned();
        return Err(Refused(StatusCode::METHOD_NOT_ALLOWED, why));
    }
    let refused = |why: String| Refused(StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n"));
    let on_behalf = match request.headers().get("doAs") {
        Some(user) => {
            let user = user.to_str().ok().filter(|user| !user.is_empty());
            let user = user.ok_or_else(|| refused("doAs names nobody".to_owned()))?;
            Some(service.over(impersonation.connection(user, from.peer).await.map_err(refused)?))
        }
        None => None,
    };
    let service = on_behalf.as_ref().unwrap_or(service);
    let (message, charge) = body(request.into_body(), options, ledger).await?;
    let handled =
        handle(service, Manner { protocol: Protocol::Binary, with_class: from.with_class }, stopwatch, &message).await;
    drop((message, charge));
    let mut handled = handled.map_err(|error| Refused(StatusCode::BAD_REQUEST, format!("{error}\n")))?;
    // A message that wants no answer has an empty one: HTTP always answers.
    let reply = handled.reply.take().unwrap_or_else(Written::empty);
    let fits = reply.len() <= options.max_message_bytes;
    let charge = fits.then(|| ledger.try_charge_reply(reply.len() as u64)).flatten();
    let reply = if charge.is_some() { reply } else { handled.refusal() };
    Ok(Counted { reply, _charge: charge })
}

/// The whole body. Memory follows what came, never what was announced.
async fn body(
    mut incoming: Incoming,
    options: &ServerOptions,
    ledger: &Arc<Ledger>,
) -> Result<(Bytes, Charge), Refused> {
    let max_bytes = options.max_message_bytes;
    let too_large = || {
        let why = format!("a message of more than {max_bytes} bytes; basalt.thrift.max.message.size allows no more\n");
        Refused(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    if incoming.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    let (mut whole, mut charge) = (BytesMut::new(), ledger.charge(Holder::Requests, 0));
    loop {
        // Of the body alone: a call may take longer than its client may be silent.
        let Ok(frame) = tokio::time::timeout(options.socket_timeout, incoming.frame()).await else {
            let why = format!("nothing of the message came for {:?}\n", options.socket_timeout);
            return Err(Refused(StatusCode::REQUEST_TIMEOUT, why));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| Refused(StatusCode::BAD_REQUEST, format!("{error}\n")))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > max_bytes {
            return Err(too_large());
        }
        whole.reserve(data.len());
        if !charge.try_grow_share(whole.capacity() as u64) {
            let why = "the gateway holds too many bytes of requests; try again later\n".to_owned();
            return Err(Refused(StatusCode::SERVICE_UNAVAILABLE, why));
        }
        whole.extend_from_slice(&data);
    }
    Ok((whole.freeze(), charge))
}
