//! Bodies of replies: whole ones that are counted until they are sent, and streams.

use base::Charge;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::Receiver;

/// What a reply carries.
pub enum ReplyBody {
    /// All of it; sent when it is taken out.
    Whole(Option<Bytes>, Option<Charge>),
    /// Pieces as they come. An error ends the connection: the status has been sent.
    Stream(Receiver<io::Result<Bytes>>),
}

impl ReplyBody {
    /// All of it.
    pub fn whole(bytes: impl Into<Bytes>) -> ReplyBody {
        ReplyBody::Whole(Some(bytes.into()), None)
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            ReplyBody::Whole(bytes, _) => {
                let bytes = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            ReplyBody::Stream(pieces) => pieces.poll_recv(cx).map(|piece| Some(piece?.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ReplyBody::Whole(bytes, _) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Whole(bytes, _) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            ReplyBody::Stream(_) => SizeHint::default(),
        }
    }
}
