//! What goes wrong in a filter, under the name of the exception that HBase throws.

/// The Java exception that HBase throws for it. All are unchecked ones; a server wraps them as it wraps any exception
/// of a scan or of decoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ErrorKind {
    /// An argument or a value of the wrong shape.
    IllegalArgument,
    /// Something that must be given is not there, a comparator for example.
    NullPointer,
    /// A value shorter than a comparator reads.
    IndexOutOfBounds,
    /// An operator that a filter does not know.
    Runtime,
    /// A regular expression that does not parse.
    PatternSyntax,
    /// A regular expression that parses in Java but that this server cannot run.
    UnsupportedOperation,
    /// A character set that is not known.
    UnsupportedCharset,
    /// A number too large to be compared.
    Arithmetic,
}

impl ErrorKind {
    /// The exception's full class name.
    pub fn java_class(self) -> &'static str {
        match self {
            ErrorKind::IllegalArgument => "java.lang.IllegalArgumentException",
            ErrorKind::NullPointer => "java.lang.NullPointerException",
            ErrorKind::IndexOutOfBounds => "java.lang.ArrayIndexOutOfBoundsException",
            ErrorKind::Runtime => "java.lang.RuntimeException",
            ErrorKind::PatternSyntax => "java.util.regex.PatternSyntaxException",
            ErrorKind::UnsupportedOperation => "java.lang.UnsupportedOperationException",
            ErrorKind::UnsupportedCharset => "java.nio.charset.UnsupportedCharsetException",
            ErrorKind::Arithmetic => "java.lang.ArithmeticException",
        }
    }
}

/// A filter that cannot be made or cannot decide.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {message}", .kind.java_class())]
pub struct Error {
    /// Which exception.
    pub kind: ErrorKind,
    /// Its message.
    pub message: String,
}

impl Error {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    pub(crate) fn illegal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::IllegalArgument, message)
    }
}
