//! Replies on their way out: small ones share a buffer, large cell blocks are passed on as they are.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::atomic::Ordering::Relaxed;

use bytes::{Buf, Bytes, BytesMut};
use proto::pb;

use super::Counters;
use super::answers::Sink;
use crate::call::ConnInfo;
use crate::frame::{put_frame, put_reply};
use crate::{CallResult, Exception, Reply};

/// Cell blocks from this size on are not copied into the buffer.
const OWN_SEGMENT_BYTES: usize = 8 * 1024;
/// The buffer is not kept when a burst has made it larger than this.
const KEPT_BUFFER_BYTES: usize = 256 * 1024;
/// Segments per system call.
const SEGMENTS: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Output {
    /// Whole segments, in order, before the tail.
    segments: VecDeque<Bytes>,
    tail: BytesMut,
    len: usize,
}

impl Output {
    /// Bytes not sent yet.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds and counts the reply to a call.
    pub(super) fn answer(&mut self, call_id: u32, result: CallResult, conn: &ConnInfo, counters: &Counters) {
        match &result {
            Ok(reply) => counters.response_sizes.record((reply.message.len() + reply.cells.len()) as u64),
            Err(exception) => {
                counters.exceptions.fetch_add(1, Relaxed);
                counters.exceptions_by_kind.count(exception.kind());
            }
        }
        self.put(call_id, result, conn);
    }

    /// Adds the reply to a call.
    fn put(&mut self, call_id: u32, result: CallResult, conn: &ConnInfo) {
        match result.and_then(|reply| encode_cells(reply, conn)) {
            Ok((message, cells)) => {
                let before = self.tail.len();
                put_reply(&mut self.tail, call_id, &message, cells.len());
                self.len += self.tail.len() - before;
                self.put_cells(cells);
            }
            Err(exception) => self.put_exception(Some(call_id), &exception),
        }
    }

    fn put_cells(&mut self, cells: Bytes) {
        self.len += cells.len();
        if cells.len() < OWN_SEGMENT_BYTES {
            self.tail.extend_from_slice(&cells);
        } else {
            self.segments.push_back(self.tail.split().freeze());
            self.segments.push_back(cells);
        }
    }

    /// Adds a failure: of a call, or of the connection itself (`None`, which goes out as call -1).
    pub(super) fn put_exception(&mut self, call_id: Option<u32>, exception: &Exception) {
        self.put_header(&pb::ResponseHeader {
            call_id: Some(call_id.unwrap_or(u32::MAX)),
            exception: Some(exception.to_response()),
            cell_block_meta: None,
        });
    }

    fn put_header(&mut self, header: &pb::ResponseHeader) {
        let before = self.tail.len();
        put_frame(&mut self.tail, header, None, 0);
        self.len += self.tail.len() - before;
    }

    fn advance(&mut self, mut written: usize) {
        self.len -= written;
        while let Some(first) = self.segments.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.segments.pop_front();
        }
        self.tail.advance(written);
        if self.tail.is_empty() {
            // Gives the whole buffer back for the next batch of replies.
            self.tail.clear();
        }
    }

    /// Sends as much as goes now; how many bytes that was.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn send(&mut self, sink: &dyn Sink, counters: &Counters) -> io::Result<usize> {
        let mut total = 0;
        while self.len > 0 {
            let mut slices = [IoSlice::new(&[]); SEGMENTS];
            let mut used = 0;
            for segment in self.segments.iter().map(|s| &s[..]).chain([&self.tail[..]]).take(SEGMENTS) {
                slices[used] = IoSlice::new(segment);
                used += 1;
            }
            match sink.try_write(&slices[..used]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    counters.writes.fetch_add(1, Relaxed);
                    counters.sent_bytes.fetch_add(written as u64, Relaxed);
                    total += written;
                    self.advance(written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.len == 0 && self.tail.capacity() > KEPT_BUFFER_BYTES {
            self.tail = BytesMut::new();
        }
        Ok(total)
    }
}

/// The cells as the connection wants them. A handler that gives cells to a connection without a codec has a defect.
fn encode_cells(reply: Reply, conn: &ConnInfo) -> Result<(Bytes, Bytes), Exception> {
    if reply.cells.is_empty() {
        return Ok((reply.message, Bytes::new()));
    }
    let Some(codec) = conn.codec else {
        return Err(Exception::do_not_retry("a cell block for a connection that has no cell codec"));
    };
    let cells = codec.encode(reply.cells, reply.may_have_tags);
    let cells = match conn.compressor {
        Some(compressor) => compressor.compress(&cells),
        None => cells,
    };
    Ok((reply.message, cells))
}
