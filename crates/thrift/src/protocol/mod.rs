//! Thrift's two encodings over byte slices: [`Reader`], [`Writer`] with what it has [`Written`], and [`Boundary`], which finds the end of a message that no frame
//! bounds.
//!
//! Always true: a length or count is compared with the bytes that are there before anything is allocated for it; what a message is decoded
//! to is bounded, too; nesting is bounded ([`MAX_DEPTH`]). Follows: `TBinaryProtocol`, `TCompactProtocol`.

mod boundary;
mod reader;
mod writer;
mod written;

pub use boundary::Boundary;
pub use reader::Reader;
pub use writer::Writer;
pub use written::Written;

/// Structs, lists and maps within each other at most.
pub const MAX_DEPTH: usize = 64;

/// Longest name of a method.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// Which encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `TBinaryProtocol`.
    Binary,
    /// `TCompactProtocol`.
    Compact,
}

/// What is wrong with bytes that should be a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The bytes end before the value does.
    #[error("the message ends within a value")]
    Incomplete,
    /// Another protocol or none.
    #[error(
        "not a message of this protocol: it begins with {0:#04x}; check framed, buffered, binary and compact on both sides"
    )]
    NotThrift(u8),
    /// A length or count that the message cannot hold.
    #[error("a {what} of {size}, more than the message can hold")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// Length or count, as it was sent.
        size: i64,
    },
    /// Too many values within each other.
    #[error("more than {MAX_DEPTH} values within each other")]
    TooDeep,
    /// A type or number that the protocol does not have.
    #[error("{what} {code} is unknown")]
    Unknown {
        /// Of what.
        what: &'static str,
        /// As it was sent.
        code: i64,
    },
    /// A field that must be there is not.
    #[error("Required field '{0}' was not present!")]
    Missing(&'static str),
}

/// Types on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Bool = 2,
    Byte = 3,
    Double = 4,
    I16 = 6,
    I32 = 8,
    I64 = 10,
    Binary = 11,
    Struct = 12,
    Map = 13,
    Set = 14,
    List = 15,
}

impl Kind {
    fn from_binary(code: u8) -> Result<Kind, ProtocolError> {
        Ok(match code {
            2 => Kind::Bool,
            3 => Kind::Byte,
            4 => Kind::Double,
            6 => Kind::I16,
            8 => Kind::I32,
            10 => Kind::I64,
            11 => Kind::Binary,
            12 => Kind::Struct,
            13 => Kind::Map,
            14 => Kind::Set,
            15 => Kind::List,
            code => return Err(ProtocolError::Unknown { what: "type", code: code.into() }),
        })
    }

    fn from_compact(code: u8) -> Result<Kind, ProtocolError> {
        Ok(match code {
            1 | 2 => Kind::Bool,
            3 => Kind::Byte,
            4 => Kind::I16,
            5 => Kind::I32,
            6 => Kind::I64,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 => Kind::List,
            10 => Kind::Set,
            11 => Kind::Map,
            12 => Kind::Struct,
            code => return Err(ProtocolError::Unknown { what: "type", code: code.into() }),
        })
    }

    fn compact(self) -> u8 {
        match self {
            Kind::Bool => 1,
            Kind::Byte => 3,
            Kind::I16 => 4,
            Kind::I32 => 5,
            Kind::I64 => 6,
            Kind::Double => 7,
            Kind::Binary => 8,
            Kind::List => 9,
            Kind::Set => 10,
            Kind::Map => 11,
            Kind::Struct => 12,
        }
    }
}

/// What kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum MessageKind {
    Call = 1,
    Reply = 2,
    Exception = 3,
    Oneway = 4,
}

impl MessageKind {
    fn of(code: u8) -> Result<MessageKind, ProtocolError> {
        Ok(match code {
            1 => MessageKind::Call,
            2 => MessageKind::Reply,
            3 => MessageKind::Exception,
            4 => MessageKind::Oneway,
            code => return Err(ProtocolError::Unknown { what: "kind of message", code: code.into() }),
        })
    }
}

/// What stands before the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The method.
    pub name: String,
    /// The kind.
    pub kind: MessageKind,
    /// The client's number for the call.
    pub sequence: i32,
}
