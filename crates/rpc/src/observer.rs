//! Whoever is told of calls when they are answered: of what was asked, how long it took, and how much the answer is.

use crate::{CallResult, ConnInfo};
use bytes::Bytes;
use proto::methods::MethodInfo;
use proto::pb;
use std::sync::Arc;

/// Told of the calls of a connection that are answered later than at once; of the others [`crate::Handler::on_answered_at_once`] is. Called on
/// whichever thread answers; must not block.
pub trait CallObserver: Send + Sync + std::fmt::Debug + 'static {
    /// The call ended so just now.
    fn answered(&self, call: &AnsweredCall<'_>);
}

/// What a call has read of store files, as its handler says. Follows: `RpcCall#getBlockBytesScanned`, `RpcCall#getFsReadTime`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallReads {
    /// Bytes of data blocks that were gone through, unpacked, wherever they came from.
    pub block_bytes_scanned: u64,
    /// How long reads of files took, in microseconds.
    pub fs_read_us: u64,
}

impl std::ops::AddAssign for CallReads {
    fn add_assign(&mut self, more: CallReads) {
        self.block_bytes_scanned += more.block_bytes_scanned;
        self.fs_read_us += more.fs_read_us;
    }
}

/// A call that was answered. Costs nothing to make: everything is borrowed from where it is kept for other reasons.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredCall<'a> {
    /// What was asked for.
    pub method: &'static MethodInfo,
    /// The encoded message.
    pub param: &'a Bytes,
    /// The connection it came over.
    pub conn: &'a ConnInfo,
    /// What the client attached to this call.
    pub attributes: &'a [pb::NameBytesPair],
    /// How long it waited before it was begun.
    pub queued_us: u64,
    /// How long it took from then on.
    pub processed_us: u64,
    /// Bytes of the answer, message and cells; `None`: an exception.
    pub response_bytes: Option<u64>,
    /// What it has read.
    pub reads: CallReads,
}

/// Bytes of an answer; `None` for an exception.
pub(crate) fn response_bytes(result: &CallResult) -> Option<u64> {
    result.as_ref().ok().map(|reply| (reply.message.len() + reply.cells.len()) as u64)
}

/// What is kept of a call that is answered later. Its message is shared, not copied.
#[derive(Debug, Clone)]
pub(crate) struct KeptCall {
    pub method: &'static MethodInfo,
    pub param: Bytes,
    pub conn: Arc<ConnInfo>,
    pub attributes: Vec<pb::NameBytesPair>,
    pub reads: CallReads,
}

impl KeptCall {
    /// It ended so, after so many microseconds of waiting and of work.
    pub fn answered(&self, (queued_us, processed_us): (u64, u64), result: &CallResult) -> AnsweredCall<'_> {
        let mut reads = self.reads;
        if let Ok(reply) = result {
            reads += reply.reads;
        }
        AnsweredCall {
            method: self.method,
            param: &self.param,
            conn: &self.conn,
            attributes: &self.attributes,
            queued_us,
            processed_us,
            response_bytes: response_bytes(result),
            reads,
        }
    }
}
