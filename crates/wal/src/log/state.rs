//! What a log is doing: what its two locks protect.

use super::files::Cut;
use super::group::CommitDelay;
use super::{LogStats, SequenceIdAccounting};
use crate::low_replication::LowReplication;
use crate::seal::Follows;
use crate::slow_syncs::SlowSyncs;
use crate::ticket::Done;
use crate::{Level, SyncFailed};
use base::SeqId;
use fs::{Appender, FilePath};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether the log takes entries.
#[derive(Debug, Default)]
pub(super) enum Health {
    /// It does.
    #[default]
    Ok,
    /// The disk is full: none until a write succeeds.
    Stalled(SyncFailed),
    /// Never again; the server must stop.
    Failed(SyncFailed),
    /// Never again; it was told to end. It may still be full, and then be told again.
    Closed,
}

impl Health {
    pub(super) fn failure(&self) -> Option<&SyncFailed> {
        if let Health::Failed(failed) = self { Some(failed) } else { None }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Health::Failed(_) | Health::Closed)
    }

    /// A write met a full disk.
    pub(super) fn stall(&mut self, stalled: SyncFailed) {
        if !self.is_over() {
            *self = Health::Stalled(stalled);
        }
    }

    /// A write succeeded, or nothing waits for one.
    pub(super) fn unstall(&mut self) {
        if matches!(self, Health::Stalled(_)) {
            *self = Health::Ok;
        }
    }
}

/// The thread that [`crate::Log::run_syncer`] has, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Syncer {
    /// Those who wait sync.
    #[default]
    Absent,
    /// It looks for work before it sleeps.
    Busy,
    /// It sleeps until it is woken.
    Waiting,
}

/// The file before the one that the buffer goes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Predecessor {
    /// All of it that was acknowledged as written is on the disk.
    #[default]
    Durable,
    /// It has acknowledged entries that are not on the disk. Those of the next file name it: they count only if it is whole.
    Named(Follows),
    /// And it is being synced while the next one is written. No sync counts before that ends.
    Syncing(Follows),
}

impl Predecessor {
    pub(super) fn named(self) -> Option<Follows> {
        match self {
            Predecessor::Durable => None,
            Predecessor::Named(follows) | Predecessor::Syncing(follows) => Some(follows),
        }
    }

    pub(super) fn is_syncing(self) -> bool {
        matches!(self, Predecessor::Syncing(_))
    }
}

/// Where the entries are that were taken from the buffer and are not as safe as asked yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GroupState {
    /// There are none.
    #[default]
    Empty,
    /// In memory alone.
    Buffered,
    /// The appender has them.
    Written,
    /// They were meant for a file that failed, and must go to a new one.
    Orphaned,
}

#[derive(Default)]
pub(super) struct State {
    /// Entries that nobody has begun to write.
    pub(super) buffer: Vec<u8>,
    /// Position after the last entry.
    pub(super) appended: u64,
    /// All before is handed to the operating system.
    pub(super) written: u64,
    /// All before is on the disk.
    pub(super) synced: u64,
    /// All before must be synced even if the mode is [`crate::SyncMode::Written`].
    pub(super) sync_demanded: u64,
    /// Position where the file begins that the buffer goes to.
    pub(super) file_start: u64,
    pub(super) calls: Vec<(u64, Level, Done)>,
    pub(super) accounting: SequenceIdAccounting,
    /// Files before the current one, oldest first.
    pub(super) closed_files: Vec<ClosedFile>,
    /// The current file's name.
    pub(super) current: Option<FilePath>,
    pub(super) health: Health,
    pub(super) syncer: Syncer,
    pub(super) predecessor: Predecessor,
    pub(super) commit_delay: CommitDelay,
    /// For the syncer to do when it has time: what makes a later sync short.
    pub(super) behind: Vec<fs::Behind>,
    pub(super) stats: LogStats,
    pub(super) slow_syncs: SlowSyncs,
    pub(super) low_replication: LowReplication,
}

/// A file that gets no more entries.
pub(super) struct ClosedFile {
    pub(super) path: FilePath,
    pub(super) len_bytes: u64,
    pub(super) highest: BTreeMap<Arc<str>, SeqId>,
}

/// What the one who writes holds.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) file: Option<OpenFile>,
    /// Entries being written and synced: kept until they are safe, to be moved when they are not.
    pub(super) group: Vec<u8>,
    /// Position before and after the group.
    pub(super) group_start: u64,
    pub(super) group_end: u64,
    pub(super) group_state: GroupState,
    /// A file that follows the current one as soon as the group is settled, and what ends there.
    pub(super) next: Option<OpenFile>,
    pub(super) cut: Option<Cut>,
    /// Position up to which the operating system was asked to begin writing.
    pub(super) written_behind: u64,
    /// Who has to be told when the disk is let go.
    pub(super) ready: Vec<Ready>,
}

impl Disk {
    /// Makes all that waits in the buffer the next group.
    pub(super) fn take_group(&mut self, state: &mut State) {
        std::mem::swap(&mut self.group, &mut state.buffer);
        self.group_start = self.group_end;
        self.group_end = state.appended;
        // An empty group whose file failed leaves its lot to the next one.
        if self.group_state != GroupState::Orphaned {
            self.group_state = GroupState::Buffered;
        }
    }
}

/// What is to be called, and what with.
pub(super) type Ready = (Done, Result<(), SyncFailed>);

pub(super) struct OpenFile {
    pub(super) path: FilePath,
    pub(super) appender: Box<dyn Appender>,
}
