//! A value between SQL and bytes.

use crate::Decimal;

/// A value that is not NULL. Text and bytes are borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Of the integer types, signed or not.
    Int(i64),
    /// Of `FLOAT` and `UNSIGNED_FLOAT`.
    Float(f32),
    /// Of `DOUBLE` and `UNSIGNED_DOUBLE`.
    Double(f64),
    /// Of `DECIMAL`.
    Decimal(Decimal),
    /// Of `CHAR` and `VARCHAR`.
    Text(&'a str),
    /// Of `BINARY` and `VARBINARY`.
    Bytes(&'a [u8]),
    /// Of `BOOLEAN`.
    Bool(bool),
    /// Of `DATE` and `TIME`: milliseconds since 1970-01-01 00:00 UTC.
    Millis(i64),
    /// Of `TIMESTAMP`.
    Timestamp {
        /// Milliseconds since 1970-01-01 00:00 UTC.
        ms: i64,
        /// Nanoseconds within the millisecond, below 1,000,000.
        nanos: u32,
    },
}

/// Why a value has no bytes, or bytes no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeError {
    /// A value of another kind than the type's.
    Kind {
        /// The type.
        expected: String,
        /// The value.
        value: String,
    },
    /// A value that the type has no room for.
    OutOfRange {
        /// The type.
        expected: String,
        /// The value.
        value: String,
    },
    /// A text or byte string that is longer than the type allows.
    TooLong {
        /// The type.
        expected: String,
        /// Its length.
        length: usize,
    },
    /// Bytes that no value of the type has.
    Malformed {
        /// The type.
        expected: String,
        /// What is wrong.
        why: String,
    },
    /// A value that cannot stand in a row key.
    NotInKey(String),
}

impl std::fmt::Display for TypeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TypeError::Kind { expected, value } => write!(f, "{value} is no value of type {expected}"),
            TypeError::OutOfRange { expected, value } => write!(f, "{value} is out of range for type {expected}"),
            TypeError::TooLong { expected, length } => {
                write!(f, "value too long for type {expected}: its length is {length}")
            }
            TypeError::Malformed { expected, why } => write!(f, "stored bytes are no value of type {expected}: {why}"),
            TypeError::NotInKey(why) => write!(f, "value cannot stand in a primary key: {why}"),
        }
    }
}

impl std::error::Error for TypeError {}
