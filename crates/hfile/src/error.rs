//! What can go wrong with an HFile.

use fs::FilePath;

/// A failure to read or write an HFile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bytes that cannot be what was written. Reading again will not help: restore the file or leave it out.
    #[error("{path} is damaged at offset {offset}: {what}; restore the file from a backup or move it away")]
    Corrupt {
        /// The file.
        path: FilePath,
        /// Where the damaged block or field starts.
        offset: u64,
        /// What does not fit.
        what: String,
    },
    /// The volume failed; the caller may try again.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// A block is not in the cache and the caller forbade reading ([`crate::Residency::CachedOnly`]). Run the
    /// operation again where it may block.
    #[error("a block is not in the cache and reading was forbidden; run again where it may block")]
    WouldBlock,
    /// A legal file that uses what is not served here.
    #[error("{path} needs {feature}, which is not supported; rewrite the file without it")]
    Unsupported {
        /// The file.
        path: FilePath,
        /// What it needs.
        feature: String,
    },
}

/// Result of an operation on an HFile.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn corrupt(path: &FilePath, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { path: path.clone(), offset, what: what.into() }
    }
}
