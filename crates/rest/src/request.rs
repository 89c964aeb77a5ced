//! A request that was read: its path, parameters, headers and body within their bounds.

use crate::media::{self, Media};
use crate::reply::Reply;
use crate::text::{parameters, percent_decoded};
use base::Charge;
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName};
use hyper::{HeaderMap, Method, StatusCode, Uri};
use std::io::Read;
use std::time::Duration;

/// How long a client may send nothing of a body, or take nothing of a reply.
pub const SILENCE: Duration = Duration::from_secs(60);

/// How keys of the path are encoded.
const ENCODING: HeaderName = HeaderName::from_static("encoding");

/// A request.
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path and the query, still encoded.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, inflated.
    pub body: Bytes,
}

impl Request {
    /// Reads a whole request. `charge` grows by what the body takes.
    ///
    /// # Errors
    /// 413 for a body of more than `most_bytes`, 503 where there is no room for it, 400 where it ends early.
    pub async fn read(
        request: hyper::Request<Incoming>,
        most_bytes: u64,
        charge: &mut Charge,
    ) -> Result<Request, Reply> {
        let (head, mut incoming) = request.into_parts();
        let mut body = BytesMut::new();
        while !incoming.is_end_stream() {
            let Ok(frame) = tokio::time::timeout(SILENCE, incoming.frame()).await else {
                let text = format!("Request Timeout: nothing of the body came for {} s", SILENCE.as_secs());
                return Err(Reply::text(StatusCode::REQUEST_TIMEOUT, &text));
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| Reply::bad_request(&format!("the body could not be read: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            room(body.len() as u64 + data.len() as u64, data.len() as u64, most_bytes, charge)?;
            body.extend_from_slice(&data);
        }
        let zipped = header(&head.headers, CONTENT_ENCODING).is_some_and(|c| c.to_ascii_lowercase().contains("gzip"));
        let body = if zipped && !body.is_empty() { inflate(&body, most_bytes, charge)? } else { body.freeze() };
        Ok(Request { method: head.method, uri: head.uri, headers: head.headers, body })
    }

    /// The first value of a query parameter, decoded.
    ///
    /// # Errors
    /// 400 for an escape that is none.
    pub fn parameter(&self, name: &str) -> Result<Option<String>, Reply> {
        Ok(self.all_parameters(name)?.into_iter().next())
    }

    /// Every value of a query parameter, decoded.
    ///
    /// # Errors
    /// As [`Request::parameter`].
    pub fn all_parameters(&self, name: &str) -> Result<Vec<String>, Reply> {
        let given = parameters(self.uri.query().unwrap_or_default()).into_iter().filter(|(key, _)| *key == name);
        given.map(|(_, value)| percent_decoded(value, true).map_err(|why| Reply::bad_request(&why))).collect()
    }

    /// A query parameter as it stands.
    pub fn raw_parameter(&self, name: &str) -> Option<&str> {
        let given = parameters(self.uri.query().unwrap_or_default());
        given.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// A query parameter that is a number.
    ///
    /// # Errors
    /// 404, as Jersey has it.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Reply> {
        let Some(text) = self.parameter(name)? else { return Ok(None) };
        let wrong = || Reply::text(StatusCode::NOT_FOUND, &format!("Not found: {name}={text} is not a number"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// A query parameter that is true or false.
    ///
    /// # Errors
    /// As [`Request::parameter`].
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Reply> {
        Ok(self.parameter(name)?.map_or(default, |text| text.eq_ignore_ascii_case("true")))
    }

    /// A header's text.
    pub fn header(&self, name: impl hyper::header::AsHeaderName) -> Option<&str> {
        header(&self.headers, name)
    }

    /// How rows and columns of the path are encoded.
    ///
    /// # Errors
    /// As [`Request::parameter`].
    pub fn key_encoding(&self) -> Result<Option<String>, Reply> {
        match self.header(ENCODING) {
            Some(encoding) => Ok(Some(encoding.to_owned())),
            None => self.parameter("e"),
        }
    }

    /// The media type for the answer.
    ///
    /// # Errors
    /// 406 when the client takes none of `offered`.
    pub fn accepted(&self, offered: &[Media]) -> Result<Media, Reply> {
        media::choose(self.header(ACCEPT), offered).ok_or_else(|| Reply::empty(StatusCode::NOT_ACCEPTABLE))
    }

    /// The media type of the body.
    ///
    /// # Errors
    /// 415 when it is none of `taken`.
    pub fn content(&self, taken: &[Media]) -> Result<Media, Reply> {
        let media = self.header(CONTENT_TYPE).and_then(Media::of).filter(|media| taken.contains(media));
        media.ok_or_else(|| Reply::empty(StatusCode::UNSUPPORTED_MEDIA_TYPE))
    }

    /// Whether the answer may be compressed.
    pub fn takes_gzip(&self) -> bool {
        self.header(ACCEPT_ENCODING).is_some_and(|codings| codings.to_ascii_lowercase().contains("gzip"))
    }

    /// The URL that was asked for, without its query.
    pub fn url(&self) -> String {
        let host = self.uri.authority().map(|authority| authority.as_str()).or_else(|| self.header(HOST));
        format!("http://{}{}", host.unwrap_or("localhost"), self.uri.path())
    }
}

fn header(headers: &HeaderMap, name: impl hyper::header::AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn room(whole: u64, more: u64, most_bytes: u64, charge: &mut Charge) -> Result<(), Reply> {
    if whole > most_bytes {
        let text = format!("Bad request: a body may have {most_bytes} bytes, see basalt.rest.max.request.bytes");
        return Err(Reply::text(StatusCode::PAYLOAD_TOO_LARGE, &text));
    }
    if !charge.try_grow_share(charge.bytes() + more) {
        return Err(Reply::crowded());
    }
    Ok(())
}

fn inflate(zipped: &[u8], most_bytes: u64, charge: &mut Charge) -> Result<Bytes, Reply> {
    let mut decoder = MultiGzDecoder::new(zipped);
    let mut body = Vec::new();
    let mut piece = vec![0; 16 << 10];
    loop {
        let n = decoder.read(&mut piece).map_err(|error| Reply::bad_request(&format!("gzip: {error}")))?;
        if n == 0 {
            return Ok(Bytes::from(body));
        }
        room((body.len() + n) as u64, n as u64, most_bytes, charge)?;
        body.extend_from_slice(&piece[..n]);
    }
}
