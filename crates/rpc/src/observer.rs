//! Whoever is told of calls when they are answered: of what was asked, when it was begun, and how it ended.

use crate::server::Inbox;
use crate::{CallResult, ConnInfo};
use bytes::Bytes;
use proto::methods::MethodInfo;
use proto::pb;
use std::sync::Arc;

/// Told of calls that were answered. Called on whichever thread answers; must not block.
pub trait CallObserver: Send + Sync + std::fmt::Debug + 'static {
    /// The call was begun at `begun_at_us`, on [`base::Clock::monotonic_us`], and ended so just now.
    fn answered(&self, call: &AnsweredCall, begun_at_us: u64, result: &CallResult);
}

/// What a call has read of store files, as its handler says. Follows: `RpcCall#getBlockBytesScanned`, `RpcCall#getFsReadTime`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallReads {
    /// Bytes of data blocks that were gone through, unpacked, wherever they came from.
    pub block_bytes_scanned: u64,
    /// How long reads of files took, in microseconds.
    pub fs_read_us: u64,
}

/// What is kept of a call until it is answered. Its message is shared, not copied.
#[derive(Debug, Clone)]
pub struct AnsweredCall {
    /// What was asked for.
    pub method: &'static MethodInfo,
    /// The encoded message.
    pub param: Bytes,
    /// The connection it came over.
    pub conn: Arc<ConnInfo>,
    /// What the client attached to this call.
    pub attributes: Vec<pb::NameBytesPair>,
    /// When it came, on [`base::Clock::monotonic_us`].
    pub received_at_us: u64,
    /// What it has read.
    pub reads: CallReads,
}

/// A call and who is told of its answer.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Has the observer: shared by the calls of one connection alone, so that counting its owners costs no cache line that all threads write to.
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) call: AnsweredCall,
}

impl Watched {
    /// Tells of the answer to a call that was begun when it came, and of what it has read.
    pub fn answered(mut self, reads: CallReads, result: &CallResult) {
        self.call.reads = reads;
        self.inbox.tell(&self.call, self.call.received_at_us, result);
    }
}
