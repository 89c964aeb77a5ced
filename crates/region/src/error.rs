//! What can go wrong in a region, and what the one who hears of it should do.
//!
//! The texts are HBase's where a client could see them: `rpc` maps [`ErrorKind`] to the Java exception class.

use base::SeqId;
use cell::print::Binary;
use std::sync::Arc;

/// Result of a region operation.
pub type Result<T> = std::result::Result<T, RegionError>;

/// What the caller should do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Remedy {
    /// Try again at this server, a little later.
    RetryHere,
    /// The region is not (or soon not) here: look it up again.
    RetryElsewhere,
    /// The request is wrong; it will never succeed.
    Reject,
    /// The server's log or the region's memory can no longer be trusted: stop the server, recovery decides.
    StopServer,
}

/// The exception class that HBase would have thrown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ErrorKind {
    /// `NoSuchColumnFamilyException`.
    NoSuchColumnFamily,
    /// `WrongRegionException`.
    WrongRegion,
    /// `RegionTooBusyException`.
    RegionTooBusy,
    /// `NotServingRegionException`.
    NotServingRegion,
    /// `FailedSanityCheckException`.
    FailedSanityCheck,
    /// `DoNotRetryIOException`.
    DoNotRetry,
    /// `RowTooBigException`.
    RowTooBig,
    /// `UnknownScannerException`.
    UnknownScanner,
    /// `IncompatibleFilterException`.
    IncompatibleFilter,
    /// Whatever class the filter's own error names.
    Filter,
    /// `CorruptHFileException`: a file cannot be read; the message names it.
    CorruptFile,
    /// `DroppedSnapshotException`: a flush failed after its point of no return; the server must stop.
    DroppedSnapshot,
    /// `RegionServerStoppedException`: the log failed.
    ServerStopped,
    /// Hadoop's `RemoteException`: the file system's server refused, and nothing more is known.
    Remote,
    /// Plain `IOException`.
    Io,
    /// Never sent: the answer needs the disk; run again with [`hfile::Residency::MayRead`].
    WouldBlock,
    /// It ended at a pause point.
    Interrupted,
}

/// A failed operation on a region.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegionError {
    /// A family that the table does not have.
    #[error("Column family {} does not exist in region {region} in table {table}", Binary(.family))]
    NoSuchColumnFamily {
        /// The family.
        family: Vec<u8>,
        /// Full region name.
        region: String,
        /// The table's whole descriptor, as HBase prints it.
        table: String,
    },
    /// A row outside the region.
    #[error("Requested row out of range for {operation} on HRegion {region}, startKey='{}', getEndKey()='{}', row='{}'", Binary(.start), Binary(.end), Binary(.row))]
    WrongRegion {
        /// What was tried.
        operation: &'static str,
        /// Full region name.
        region: String,
        /// First row of the region.
        start: Vec<u8>,
        /// End of the region, exclusive.
        end: Vec<u8>,
        /// The row asked for.
        row: Vec<u8>,
    },
    /// Over the memstore's blocking size, or a lock could not be had.
    #[error("{0}")]
    TooBusy(String),
    /// Closing or closed.
    #[error("{region} is {state}")]
    NotServing {
        /// Full region name.
        region: String,
        /// "closing", "closed", "not online".
        state: &'static str,
    },
    /// A read replica that does not know yet, or no more, what its primary has. In HBase's words.
    #[error("{0}: The region's reads are disabled. Cannot serve the request")]
    ReadsDisabled(Arc<str>),
    /// A mutation that is wrong in itself (row mismatch, timestamp).
    #[error("{0}")]
    FailedSanityCheck(String),
    /// A request that must not be repeated; the text is HBase's.
    #[error("{0}")]
    DoNotRetry(String),
    /// A row over `hbase.table.max.rowsize`.
    #[error("{0}")]
    RowTooBig(String),
    /// The scanner was closed.
    #[error("{0}")]
    UnknownScanner(String),
    /// A filter that cannot be used with this scan.
    #[error("{0}")]
    IncompatibleFilter(String),
    /// A filter failed.
    #[error(transparent)]
    Filter(filter::Error),
    /// A store file failed or is damaged.
    #[error("region {region}: {source}")]
    StoreFile {
        /// Encoded region name.
        region: Arc<str>,
        /// What the file said.
        source: Arc<hfile::Error>,
    },
    /// A file operation failed.
    #[error("region {region}: {source}")]
    Volume {
        /// Encoded region name.
        region: Arc<str>,
        /// What the volume said.
        source: Arc<fs::Error>,
    },
    /// The log refused an entry or failed to sync.
    #[error("region {region}: {source}")]
    Log {
        /// Encoded region name.
        region: Arc<str>,
        /// What the log said.
        source: Arc<wal::Error>,
    },
    /// An earlier write was lost by the log after it was put in memory.
    #[error("region {region}: the log lost the write with sequence id {seq_id}; the server must stop")]
    Poisoned {
        /// Encoded region name.
        region: Arc<str>,
        /// The first write that was lost.
        seq_id: SeqId,
    },
    /// What failed half way could not be undone either, and would come to light at the next opening: not while clients are told that it
    /// failed.
    #[error("region {region}: {what} could not be rolled back: {source}; the server must stop")]
    RollbackFailed {
        /// Encoded region name.
        region: Arc<str>,
        /// What was begun.
        what: &'static str,
        /// What the volume said.
        source: Arc<fs::Error>,
    },
    /// The region's files contradict each other.
    #[error("region {region}: {what}")]
    Damaged {
        /// Encoded region name.
        region: Arc<str>,
        /// Which file and what is wrong.
        what: String,
    },
    /// It was to end where it paused: its client waits no longer, or the server stops. Nothing was changed.
    #[error(transparent)]
    Interrupted(#[from] base::Interrupted),
    /// The write must have a tick to which the clock is still to come. Nothing was written; the same call may be made
    /// again after so many milliseconds. Never sent.
    #[error(
        "regionName={region}: the write follows a delete of its row within the same millisecond and must wait for the clock"
    )]
    AheadOfClock {
        /// Encoded region name.
        region: Arc<str>,
        /// How long, in milliseconds.
        wait_ms: u64,
    },
    /// The answer needs the disk; run again with [`hfile::Residency::MayRead`].
    #[error("the answer is not in memory")]
    WouldBlock,
}

impl RegionError {
    /// The exception class that tells a client of it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            RegionError::NoSuchColumnFamily { .. } => ErrorKind::NoSuchColumnFamily,
            RegionError::WrongRegion { .. } => ErrorKind::WrongRegion,
            RegionError::TooBusy(_) | RegionError::AheadOfClock { .. } => ErrorKind::RegionTooBusy,
            RegionError::NotServing { .. } => ErrorKind::NotServingRegion,
            RegionError::ReadsDisabled(_) => ErrorKind::Io,
            RegionError::FailedSanityCheck(_) => ErrorKind::FailedSanityCheck,
            RegionError::DoNotRetry(_) => ErrorKind::DoNotRetry,
            RegionError::RowTooBig(_) => ErrorKind::RowTooBig,
            RegionError::UnknownScanner(_) => ErrorKind::UnknownScanner,
            RegionError::IncompatibleFilter(_) => ErrorKind::IncompatibleFilter,
            RegionError::Filter(_) => ErrorKind::Filter,
            RegionError::StoreFile { source, .. } => match &**source {
                hfile::Error::WouldBlock => ErrorKind::WouldBlock,
                hfile::Error::Io(error) => of_volume(error),
                _ => ErrorKind::CorruptFile,
            },
            RegionError::Volume { source, .. } => of_volume(source),
            RegionError::Log { source, .. } => match &**source {
                // The disk is full, or the log behind: nothing was written, and it goes on by itself.
                wal::Error::Full { .. } | wal::Error::Busy { .. } => ErrorKind::RegionTooBusy,
                // What waits for room is not lost, but may come yet: not to be told as refused.
                source if source.is_full() => ErrorKind::Io,
                wal::Error::Unsettled { .. } => ErrorKind::Io,
                _ => ErrorKind::ServerStopped,
            },
            RegionError::Poisoned { .. } | RegionError::RollbackFailed { .. } => ErrorKind::ServerStopped,
            RegionError::Damaged { .. } => ErrorKind::CorruptFile,
            RegionError::WouldBlock => ErrorKind::WouldBlock,
            RegionError::Interrupted(_) => ErrorKind::Interrupted,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> Remedy {
        match self.kind() {
            ErrorKind::RegionTooBusy
            | ErrorKind::Io
            | ErrorKind::Remote
            | ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::CorruptFile
            | ErrorKind::UnknownScanner => Remedy::RetryHere,
            ErrorKind::NotServingRegion | ErrorKind::WrongRegion => Remedy::RetryElsewhere,
            ErrorKind::ServerStopped | ErrorKind::DroppedSnapshot => Remedy::StopServer,
            _ => Remedy::Reject,
        }
    }

    /// Whether a full disk is behind it.
    pub fn is_disk_full(&self) -> bool {
        match self {
            RegionError::Volume { source, .. } => source.is_full(),
            RegionError::Log { source, .. } => source.is_full(),
            RegionError::StoreFile { source, .. } => matches!(&**source, hfile::Error::Io(error) if error.is_full()),
            _ => false,
        }
    }

    /// Whether this only says that the disk is needed.
    pub fn is_would_block(&self) -> bool {
        self.kind() == ErrorKind::WouldBlock
    }

    pub(crate) fn volume(region: &Arc<str>, source: fs::Error) -> RegionError {
        RegionError::Volume { region: region.clone(), source: Arc::new(source) }
    }

    pub(crate) fn file(region: &Arc<str>, source: hfile::Error) -> RegionError {
        match source {
            hfile::Error::WouldBlock => RegionError::WouldBlock,
            source => RegionError::StoreFile { region: region.clone(), source: Arc::new(source) },
        }
    }

    pub(crate) fn log(region: &Arc<str>, source: wal::Error) -> RegionError {
        RegionError::Log { region: region.clone(), source: Arc::new(source) }
    }
}

fn of_volume(error: &fs::Error) -> ErrorKind {
    if error.remote().is_some() { ErrorKind::Remote } else { ErrorKind::Io }
}

impl From<filter::Error> for RegionError {
    fn from(error: filter::Error) -> RegionError {
        RegionError::Filter(error)
    }
}
