//! What the master answers when it cannot do as asked, and what a region host tells it.

use proto::pb;
use std::fmt;

/// Which of HBase's exceptions a failure becomes. Coarse where a client does not care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A table of that name is there.
    TableExists,
    /// No table of that name.
    TableNotFound,
    /// The table must be disabled first.
    TableNotDisabled,
    /// The table must be enabled first.
    TableNotEnabled,
    /// A namespace of that name is there.
    NamespaceExists,
    /// No namespace of that name.
    NamespaceNotFound,
    /// A rule of namespaces or system tables forbids it.
    Constraint,
    /// A family may not be changed so.
    InvalidFamilyOperation,
    /// There is no such replication peer.
    ReplicationPeerNotFound,
    /// The master does not know such a region.
    UnknownRegion,
    /// The region is not in the state that is needed.
    DoNotRetryRegion,
    /// A namespace would hold more than it may.
    QuotaExceeded,
    /// It is not allowed now.
    AccessDenied,
    /// The regions cannot be merged.
    MergeRegion,
    /// A snapshot of that name is there.
    SnapshotExists,
    /// No snapshot of that name.
    SnapshotDoesNotExist,
    /// The snapshot cannot be taken.
    SnapshotCreation,
    /// The snapshot is damaged, or not whole.
    CorruptedSnapshot,
    /// The table cannot become again what the snapshot says.
    RestoreSnapshot,
    /// There is no such family.
    NoSuchColumnFamily,
    /// The time of the snapshot is over.
    SnapshotTtlExpired,
    /// The snapshot is neither there nor being taken.
    UnknownSnapshot,
    /// Something went wrong with a snapshot.
    HBaseSnapshot,
    /// Asking again will not help.
    DoNotRetry,
    /// A client had the procedure broken off.
    ProcedureAborted,
    /// The argument is not legal.
    IllegalArgument,
    /// A request of HBase's that is not served here.
    Unsupported,
    /// No endpoint of that name.
    UnknownProtocol,
    /// The master is still starting.
    PleaseHold,
    /// The master is going down.
    Stopped,
    /// HBase cannot do it now.
    HBaseIo,
    /// The file system's own server refused, and nothing more is known; another try may help.
    Remote,
    /// Files or regions failed; another try may help.
    Io,
}

/// A failure with the sentence that the client sees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MasterError {
    /// Which exception it becomes.
    pub kind: ErrorKind,
    /// Its message, in HBase's words where HBase has some.
    pub message: String,
}

/// The master's results.
pub type Result<T> = std::result::Result<T, MasterError>;

impl MasterError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl fmt::Display) -> MasterError {
        MasterError { kind, message: message.to_string() }
    }

    /// Asking again will not help.
    pub fn do_not_retry(message: impl fmt::Display) -> MasterError {
        MasterError::new(ErrorKind::DoNotRetry, message)
    }

    /// No table of that name.
    pub fn table_not_found(table: &model::TableName) -> MasterError {
        MasterError::new(ErrorKind::TableNotFound, table)
    }

    /// Whether the same step may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Io | ErrorKind::Remote)
    }

    /// Whether the master or its host is going down: the step is left for the next start.
    pub fn is_stopped(&self) -> bool {
        self.kind == ErrorKind::Stopped
    }
}

impl From<fs::Error> for MasterError {
    fn from(error: fs::Error) -> MasterError {
        let kind = if error.remote().is_some() { ErrorKind::Remote } else { ErrorKind::Io };
        MasterError::new(kind, error)
    }
}

impl From<convert::ConvertError> for MasterError {
    /// The sentence alone: the field is for whoever reads a file.
    fn from(error: convert::ConvertError) -> MasterError {
        MasterError::new(ErrorKind::IllegalArgument, error.message())
    }
}

impl From<HostError> for MasterError {
    fn from(error: HostError) -> MasterError {
        let kind = match error {
            HostError::Failed(_) | HostError::NotTaken(_) | HostError::Unreachable(_) => ErrorKind::Io,
            HostError::Refused(_) => ErrorKind::DoNotRetry,
            HostError::Stopping => ErrorKind::Stopped,
        };
        MasterError::new(kind, error)
    }
}

/// What a region host could not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It failed; another try may help (a full disk, a region that is just closing).
    #[error("{0}")]
    Failed(String),
    /// It will never work as asked (a row outside the region, a family that is not there).
    #[error("{0}")]
    Refused(String),
    /// The server was not reached and cannot have the order. What it had before it may have still.
    #[error("{0}")]
    NotTaken(String),
    /// There is no answer, or the server is dead. What it did by then is not known.
    #[error("{0}")]
    Unreachable(String),
    /// The server is going down.
    #[error("the region server is stopping")]
    Stopping,
}

impl ErrorKind {
    /// The Java class that it becomes.
    pub fn class(self) -> &'static str {
        self.exception().class()
    }

    /// The row of the table of exceptions.
    pub fn exception(self) -> rpc::Kind {
        use rpc::Kind;
        match self {
            ErrorKind::TableExists => Kind::TableExists,
            ErrorKind::TableNotFound => Kind::TableNotFound,
            ErrorKind::TableNotDisabled => Kind::TableNotDisabled,
            ErrorKind::TableNotEnabled => Kind::TableNotEnabled,
            ErrorKind::NamespaceExists => Kind::NamespaceExist,
            ErrorKind::NamespaceNotFound => Kind::NamespaceNotFound,
            ErrorKind::Constraint => Kind::Constraint,
            ErrorKind::InvalidFamilyOperation => Kind::InvalidFamilyOperation,
            ErrorKind::ReplicationPeerNotFound => Kind::ReplicationPeerNotFound,
            ErrorKind::UnknownRegion => Kind::UnknownRegion,
            ErrorKind::DoNotRetryRegion => Kind::DoNotRetryRegion,
            ErrorKind::MergeRegion => Kind::MergeRegion,
            ErrorKind::QuotaExceeded => Kind::QuotaExceeded,
            ErrorKind::AccessDenied => Kind::AccessDenied,
            ErrorKind::SnapshotExists => Kind::SnapshotExists,
            ErrorKind::SnapshotDoesNotExist => Kind::SnapshotDoesNotExist,
            ErrorKind::SnapshotCreation => Kind::SnapshotCreation,
            ErrorKind::CorruptedSnapshot => Kind::CorruptedSnapshot,
            ErrorKind::RestoreSnapshot => Kind::RestoreSnapshot,
            ErrorKind::NoSuchColumnFamily => Kind::NoSuchColumnFamily,
            ErrorKind::SnapshotTtlExpired => Kind::SnapshotTtlExpired,
            ErrorKind::UnknownSnapshot => Kind::UnknownSnapshot,
            ErrorKind::HBaseSnapshot => Kind::HBaseSnapshot,
            // An IllegalArgumentException does not come over the wire by itself: HBase wraps it.
            ErrorKind::DoNotRetry | ErrorKind::IllegalArgument | ErrorKind::Unsupported => Kind::DoNotRetry,
            ErrorKind::ProcedureAborted => Kind::ProcedureAborted,
            ErrorKind::UnknownProtocol => Kind::UnknownProtocol,
            ErrorKind::PleaseHold => Kind::PleaseHold,
            ErrorKind::Stopped => Kind::MasterStopped,
            ErrorKind::HBaseIo => Kind::HBaseIo,
            ErrorKind::Remote => Kind::HadoopRemote,
            ErrorKind::Io => Kind::Io,
        }
    }

    const ALL: [ErrorKind; 33] = [
        ErrorKind::QuotaExceeded,
        ErrorKind::AccessDenied,
        ErrorKind::TableExists,
        ErrorKind::TableNotFound,
        ErrorKind::TableNotDisabled,
        ErrorKind::TableNotEnabled,
        ErrorKind::NamespaceExists,
        ErrorKind::NamespaceNotFound,
        ErrorKind::Constraint,
        ErrorKind::InvalidFamilyOperation,
        ErrorKind::ReplicationPeerNotFound,
        ErrorKind::UnknownRegion,
        ErrorKind::DoNotRetryRegion,
        ErrorKind::MergeRegion,
        ErrorKind::SnapshotExists,
        ErrorKind::SnapshotDoesNotExist,
        ErrorKind::SnapshotCreation,
        ErrorKind::CorruptedSnapshot,
        ErrorKind::RestoreSnapshot,
        ErrorKind::NoSuchColumnFamily,
        ErrorKind::SnapshotTtlExpired,
        ErrorKind::UnknownSnapshot,
        ErrorKind::HBaseSnapshot,
        ErrorKind::DoNotRetry,
        ErrorKind::ProcedureAborted,
        ErrorKind::IllegalArgument,
        ErrorKind::Unsupported,
        ErrorKind::UnknownProtocol,
        ErrorKind::PleaseHold,
        ErrorKind::Stopped,
        ErrorKind::HBaseIo,
        ErrorKind::Remote,
        ErrorKind::Io,
    ];
}

impl MasterError {
    /// As a procedure's outcome carries it.
    pub fn to_foreign(&self) -> pb::ForeignExceptionMessage {
        let generic = pb::GenericExceptionMessage {
            class_name: Some(self.kind.class().to_owned()),
            message: Some(self.message.clone()),
            ..Default::default()
        };
        pb::ForeignExceptionMessage { source: Some("Basalt".to_owned()), generic_exception: Some(generic) }
    }

    /// Reads what [`MasterError::to_foreign`] wrote.
    pub fn from_foreign(message: Option<&pb::ForeignExceptionMessage>) -> MasterError {
        let generic = message.and_then(|message| message.generic_exception.as_ref());
        let class = generic.and_then(|generic| generic.class_name.as_deref()).unwrap_or_default();
        let kind = ErrorKind::ALL.into_iter().find(|kind| kind.class() == class).unwrap_or(ErrorKind::DoNotRetry);
        MasterError::new(kind, generic.and_then(|generic| generic.message.as_deref()).unwrap_or("the procedure failed"))
    }
}

impl From<MasterError> for rpc::Exception {
    fn from(error: MasterError) -> rpc::Exception {
        rpc::Exception::new(error.kind.exception(), error.message)
    }
}
