//! Which call fails, and how; the count and the log of calls.

use crate::{Error, FilePath, Result};
use std::io;

/// A call of the volume or of one of its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named after the trait methods")]
pub enum Op {
    Open,
    Create,
    Rename,
    RemoveFile,
    RemoveDirAll,
    CreateDirAll,
    List,
    Stat,
    SyncDir,
    Read,
    Len,
    Append,
    Flush,
    Sync,
}

impl Op {
    pub(super) fn verb(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Create => "create",
            Op::Rename => "rename",
            Op::RemoveFile => "remove",
            Op::RemoveDirAll => "remove the directory",
            Op::CreateDirAll => "create the directory",
            Op::List => "list",
            Op::Stat | Op::Len => "stat",
            Op::SyncDir => "sync the directory",
            Op::Read => "read",
            Op::Append => "append to",
            Op::Flush => "write to",
            Op::Sync => "sync",
        }
    }
}

/// A call that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpRecord {
    /// What.
    pub op: Op,
    /// On which file or directory.
    pub path: FilePath,
}

/// How a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// `EIO`.
    Io,
    /// `ENOSPC`.
    Full,
    /// `EROFS`: an error made the system mount it for reading alone.
    ReadOnly,
    /// `ETIMEDOUT`: a remote disk that does not answer.
    TimedOut,
    /// `ETIMEDOUT`, though it was done: a name node whose answer is lost. Of calls on names alone; those on what is in files are left alone.
    NoAnswer,
    /// A read meets the end of the file too early.
    ShortRead,
    /// A read of more than 128 bytes succeeds with one bit wrong: a bad cable or memory. Other calls are left alone.
    FlippedBit,
    /// An append of more than 128 bytes succeeds and leaves one bit wrong: bad memory under the writer's buffer. Other calls are left alone.
    FlippedWrite,
    /// The machine is off.
    Stopped,
}

impl FaultKind {
    fn error(self) -> io::Error {
        match self {
            FaultKind::FlippedBit | FaultKind::FlippedWrite | FaultKind::NoAnswer => {
                unreachable!("no call fails of it before it is done")
            }
            FaultKind::Io => io::Error::from_raw_os_error(5),
            FaultKind::Full => io::ErrorKind::StorageFull.into(),
            FaultKind::ReadOnly => io::ErrorKind::ReadOnlyFilesystem.into(),
            FaultKind::TimedOut => io::ErrorKind::TimedOut.into(),
            FaultKind::ShortRead => io::ErrorKind::UnexpectedEof.into(),
            FaultKind::Stopped => io::Error::other("the machine stopped"),
        }
    }
}

/// A fault to come.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Only calls of this kind count.
    pub op: Option<Op>,
    /// Only calls on paths that contain this text count.
    pub path_contains: Option<String>,
    /// Which of the counted calls fails; 1 is the next.
    pub nth: u64,
    /// How.
    pub kind: FaultKind,
    /// Whether all counted calls after it fail too.
    pub forever: bool,
}

#[derive(Default)]
pub(super) struct Faults {
    count: u64,
    pending: Vec<Fault>,
    /// The call that was checked last is done, and its answer is lost.
    loses_answer: bool,
    log: Option<Vec<OpRecord>>,
}

impl Faults {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn record(&mut self) {
        self.log = Some(Vec::new());
    }

    pub(super) fn log(&self) -> &[OpRecord] {
        self.log.as_deref().unwrap_or_default()
    }

    pub(super) fn add(&mut self, fault: Fault) {
        assert!(fault.nth > 0, "calls are counted from 1");
        self.pending.push(fault);
    }

    /// Whether the next call of any kind meets a machine that is off.
    pub(super) fn is_stopped(&self) -> bool {
        self.pending.iter().any(|f| f.kind == FaultKind::Stopped && f.op.is_none() && f.nth <= 1)
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Whether the call that was checked last has no answer.
    pub(super) fn loses_answer(&self) -> bool {
        self.loses_answer
    }

    /// Counts a call; an error when it is to fail, true when what it reads or appends is to be damaged.
    pub(super) fn check(&mut self, op: Op, path: &FilePath) -> Result<bool> {
        self.count += 1;
        if let Some(log) = &mut self.log {
            log.push(OpRecord { op, path: path.clone() });
        }
        let mut kind = None;
        self.pending.retain_mut(|fault| {
            let counts = fault.op.is_none_or(|o| o == op)
                && fault.path_contains.as_deref().is_none_or(|text| path.as_str().contains(text));
            if !counts {
                return true;
            }
            fault.nth = fault.nth.saturating_sub(1);
            if fault.nth > 0 {
                return true;
            }
            kind = kind.or(Some(fault.kind));
            fault.forever
        });
        self.loses_answer = kind == Some(FaultKind::NoAnswer);
        match kind {
            Some(FaultKind::NoAnswer) => Ok(false),
            Some(FaultKind::FlippedBit) => Ok(op == Op::Read),
            Some(FaultKind::FlippedWrite) => Ok(op == Op::Append),
            Some(kind) => Err(Error::new(op.verb(), path, kind.error())),
            None => Ok(false),
        }
    }
}
