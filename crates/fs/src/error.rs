//! What can go wrong with a file, and on which one.

use crate::FilePath;
use std::io;

/// A failed file operation.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}{}: {source}", at(.offset))]
pub struct Error {
    /// What was tried: "read", "sync", "rename to x", ...
    pub operation: String,
    /// The file or directory, relative to the volume's root.
    pub path: FilePath,
    /// Where in the file, when that says something.
    pub offset: Option<u64>,
    /// What the system said.
    pub source: io::Error,
}

/// What a distributed file system's own server refused, by the Java class of what it threw: the `source` of an error of which nothing more is
/// known. Follows: Hadoop's `RemoteException`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .class.rsplit(['.', '$']).next().unwrap_or(.class))]
pub struct RemoteFailure {
    /// Full name of the class.
    pub class: String,
    /// What it says, without the stack.
    pub message: String,
}

/// Result of a file operation.
pub type Result<T> = std::result::Result<T, Error>;

fn at(offset: &Option<u64>) -> String {
    offset.map(|o| format!(" at offset {o}")).unwrap_or_default()
}

impl Error {
    /// An error of `operation` on `path`.
    pub fn new(operation: impl Into<String>, path: &FilePath, source: io::Error) -> Error {
        Error { operation: operation.into(), path: path.clone(), offset: None, source }
    }

    /// The same error with the place in the file.
    pub fn at(mut self, offset: u64) -> Error {
        self.offset = Some(offset);
        self
    }

    /// What kind of trouble the system reports.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// What the file system's server threw, where that is all that is known.
    pub fn remote(&self) -> Option<&RemoteFailure> {
        self.source.get_ref()?.downcast_ref()
    }

    /// Whether the file or directory does not exist.
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    /// Whether the disk (or a quota on it) is full.
    pub fn is_full(&self) -> bool {
        matches!(self.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}
