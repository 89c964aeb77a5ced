//! Replies, and the status that an error becomes. Follows: `ResourceBase#processException`, `GzipFilter`, `SecurityHeadersFilter`,
//! `ClickjackingPreventionFilter`.

use crate::body::ReplyBody;
use crate::media::Media;
use crate::models::{Model, encode};
use base::{Charge, Ledger};
use bytes::Bytes;
use client::Error;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS, X_XSS_PROTECTION};
use std::io::Write;
use std::sync::Arc;

/// What every reply says.
static SECURITY_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_XSS_PROTECTION, HeaderValue::from_static("1; mode=block")),
];

/// The row of a value.
pub const X_ROW: HeaderName = HeaderName::from_static("x-row");
/// Its column.
pub const X_COLUMN: HeaderName = HeaderName::from_static("x-column");
/// Its time.
pub const X_TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");

/// Ends every line of text that is a reply.
const CRLF: &str = "\r\n";

/// What a request is answered with.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// Headers besides those that every reply has.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: ReplyBody,
}

/// A reply either way: `?` ends a resource with what is wrong.
pub type Answer = Result<Reply, Reply>;

impl Reply {
    /// No body.
    pub fn empty(status: StatusCode) -> Reply {
        Reply { status, headers: Vec::new(), body: ReplyBody::whole("") }
    }

    /// Done, nothing to say.
    pub fn ok() -> Reply {
        Reply::empty(StatusCode::OK)
    }

    /// A line of text.
    pub fn text(status: StatusCode, text: &str) -> Reply {
        let body = ReplyBody::whole(format!("{text}{CRLF}"));
        Reply { status, headers: Vec::new(), body }.header(CONTENT_TYPE, Media::Text.name())
    }

    /// 200 with bytes.
    pub fn bytes(media: Media, bytes: impl Into<Bytes>) -> Reply {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(media.name()))];
        Reply { status: StatusCode::OK, headers, body: ReplyBody::whole(bytes) }
    }

    /// 200 with bytes that are counted already.
    pub fn counted(media: Media, bytes: Bytes, charge: Charge) -> Reply {
        let mut reply = Reply::bytes(media, "");
        reply.body = ReplyBody::Whole(Some(bytes), Some(charge));
        reply
    }

    /// Bytes of a whole body.
    pub fn byte_len(&self) -> usize {
        match &self.body {
            ReplyBody::Whole(Some(bytes), _) => bytes.len(),
            _ => 0,
        }
    }

    /// 200 with a model.
    pub fn model(media: Media, model: &dyn Model) -> Reply {
        Reply::bytes(media, encode(model, media))
    }

    /// 201 with the place of what was made.
    pub fn created(location: &str) -> Reply {
        Reply::empty(StatusCode::CREATED).header(hyper::header::LOCATION, location)
    }

    /// One more header; nothing where the value is none.
    pub fn header(mut self, name: HeaderName, value: &str) -> Reply {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Nobody may keep it.
    pub fn uncached(self) -> Reply {
        self.header(CACHE_CONTROL, "no-cache")
    }

    /// 404.
    pub fn not_found() -> Reply {
        Reply::text(StatusCode::NOT_FOUND, "Not found")
    }

    /// 403: only reads are let in.
    pub fn forbidden() -> Reply {
        Reply::text(StatusCode::FORBIDDEN, "Forbidden")
    }

    /// 400 with the reason.
    pub fn bad_request(why: &str) -> Reply {
        Reply::text(StatusCode::BAD_REQUEST, &format!("Bad request: {why}"))
    }

    /// 503.
    pub fn unavailable() -> Reply {
        Reply::text(StatusCode::SERVICE_UNAVAILABLE, "Unavailable")
    }

    /// 503 for want of memory.
    pub fn crowded() -> Reply {
        let text = "Unavailable: the gateway holds too many bytes of requests and replies; try again, or for less";
        Reply::text(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// What an operation's error becomes.
    pub fn of(error: &Error) -> Reply {
        let (status, word) = match error.short_class() {
            Some("AccessDeniedException") => (StatusCode::FORBIDDEN, "Forbidden"),
            Some("TableNotFoundException" | "NoSuchColumnFamilyException") => (StatusCode::NOT_FOUND, "Not found"),
            _ if matches!(error, Error::Request(_)) => (StatusCode::BAD_REQUEST, "Bad request"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "Unavailable"),
        };
        Reply::text(status, &format!("{word}{CRLF}{}", sentence(error)))
    }

    /// Compresses a whole body. A stream was compressed by whoever makes it.
    pub fn gzip(mut self) -> Reply {
        if let ReplyBody::Whole(bytes, _) = &mut self.body
            && let Some(plain) = bytes.as_ref().filter(|bytes| !bytes.is_empty())
        {
            let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::fast());
            // Writing to memory does not fail.
            if let Ok(()) = encoder.write_all(plain)
                && let Ok(zipped) = encoder.finish()
            {
                *bytes = Some(Bytes::from(zipped));
                return self.header(CONTENT_ENCODING, "gzip");
            }
        }
        self
    }

    /// Counts a whole body until it is sent; 503 in its place where there is no room.
    pub fn within(mut self, ledger: &Arc<Ledger>) -> Reply {
        if let ReplyBody::Whole(Some(bytes), kept) = &mut self.body
            && !bytes.is_empty()
        {
            if let Some(charge) = kept {
                charge.resize(bytes.len() as u64);
                return self;
            }
            *kept = ledger.try_charge_reply(bytes.len() as u64);
            if kept.is_none() {
                return Reply::crowded();
            }
        }
        self
    }

    /// For HTTP, with the headers that every reply has.
    pub fn into_response(self) -> hyper::Response<ReplyBody> {
        let mut response = hyper::Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.reserve(SECURITY_HEADERS.len() + self.headers.len());
        for (name, value) in &SECURITY_HEADERS {
            headers.insert(name, value.clone());
        }
        headers.extend(self.headers);
        response
    }
}

/// The class and what it says.
fn sentence(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    match error.class() {
        Some(class) if !line.starts_with(class) => format!("{class}: {line}"),
        _ => line.to_owned(),
    }
}
