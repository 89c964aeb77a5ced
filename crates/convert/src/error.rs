//! What is wrong with a message.

use std::borrow::Cow;
use std::fmt;

/// Which of HBase's rules a message breaks: as far as its callers answer differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvertErrorKind {
    /// The message itself: a field is missing, an enumerator unknown, a text not UTF-8, a cell too long.
    Malformed,
    /// A value that HBase's constructors refuse (`IllegalArgumentException`).
    IllegalArgument,
    /// A name that is not legal.
    IllegalName,
    /// Something that HBase needs and does not check for (`NullPointerException`).
    NullArgument,
    /// A class of filters or comparators that is not known here.
    UnknownClass,
    /// Bytes of a filter or comparator that are not of its class (`DeserializationException`).
    Undecodable,
    /// The comparator of a condition, wrong in any way: `ProtobufUtil#toCheckAndMutate` does not tell them apart.
    IllegalComparator,
    /// A filter that does not go with the rest of the scan (`IncompatibleFilterException`).
    IncompatibleFilter,
    /// A number of versions that nothing can have; HBase's is a plain `IOException`.
    IllegalVersions,
    /// A cell of another row than its mutation's (`WrongRowIOException`).
    WrongRow,
    /// An operation that HBase has dropped (`UnknownProtocolException`).
    RemovedOperation,
    /// Each part is legal, and together they need too much memory: they may be sent again in several requests.
    TooLarge,
}

/// A message that is no legal value: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertError {
    kind: ConvertErrorKind,
    at: &'static str,
    message: Cow<'static, str>,
}

impl ConvertError {
    /// An error of `kind` in the field `at` (`Message.field`), told by `message`: in HBase's words where it has some.
    pub fn new(kind: ConvertErrorKind, at: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, at, message: message.into() }
    }

    /// The same under another rule: where HBase wraps what it got.
    pub(crate) fn with_kind(self, kind: ConvertErrorKind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn malformed(at: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ConvertErrorKind::Malformed, at, message)
    }

    pub(crate) fn illegal(at: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ConvertErrorKind::IllegalArgument, at, message)
    }

    /// Which rule is broken.
    pub fn kind(&self) -> ConvertErrorKind {
        self.kind
    }

    /// The field, `Message.field`.
    pub fn at(&self) -> &'static str {
        self.at
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

impl std::error::Error for ConvertError {}

/// Results of this crate.
pub(crate) type Result<T> = std::result::Result<T, ConvertError>;
