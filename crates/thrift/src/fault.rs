//! What a method throws. The exceptions of both IDLs have the same layout, so that one type stands for both.

use crate::protocol::{ProtocolError, Writer};
use crate::v1::types::{AlreadyExists, IOError, IllegalArgument};
use crate::wire::Wire;
use client::Error;

/// Why a method has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// `IOError`, `TIOError`.
    Io {
        /// The Java class of its cause.
        class: Option<String>,
        /// What its cause says.
        message: String,
        /// Whether the same call may succeed later.
        can_retry: bool,
    },
    /// `IllegalArgument`, `TIllegalArgument`, from a method that declares it.
    Illegal(String),
    /// `AlreadyExists`.
    Exists(String),
    /// Java's `IllegalArgumentException`, which most methods do not declare.
    Argument(String),
}

/// What a method answers.
pub type Outcome<T> = Result<T, Fault>;

impl Fault {
    /// An `IOException` without a class of its own.
    pub fn io(message: impl Into<String>) -> Fault {
        Fault::Io { class: Some("java.io.IOException".to_owned()), message: message.into(), can_retry: true }
    }

    /// As methods of Thrift 1 throw it that declare `IllegalArgument`: with Java's class.
    pub fn declared(self) -> Fault {
        match self {
            Fault::Argument(why) => Fault::Illegal(format!("java.lang.IllegalArgumentException: {why}")),
            other => other,
        }
    }

    /// Writes the field of a result, if the exception is one of the IDL's; else what it says.
    pub(crate) fn write(self, writer: &mut Writer, with_class: bool) -> Result<(), String> {
        let mut last = 0;
        match self {
            Fault::Io { class, message, can_retry } => {
                let message = match class {
                    Some(class) if with_class => format!("{class}: {message}"),
                    _ => message,
                };
                IOError { message, can_retry }.write_field(writer, 1, &mut last);
            }
            Fault::Illegal(message) => IllegalArgument { message }.write_field(writer, 2, &mut last),
            Fault::Exists(message) => AlreadyExists { message }.write_field(writer, 3, &mut last),
            Fault::Argument(why) => return Err(why),
        }
        Ok(())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        if let Error::Request(why) = error {
            return Fault::Argument(why);
        }
        let can_retry = match &error {
            Error::Remote(remote) => !remote.do_not_retry,
            Error::TableNotFound(_) | Error::TableDisabled(_) | Error::Procedure { .. } => false,
            _ => true,
        };
        let class = Some(error.class().unwrap_or("java.io.IOException").to_owned());
        let message = match &error {
            Error::Remote(remote) => {
                // Java's client makes the exception's message of the server's stack trace, which begins with the class.
                let line = remote.first_line();
                if line.starts_with(&remote.class) { line.to_owned() } else { format!("{}: {line}", remote.class) }
            }
            Error::TableNotFound(table) => table.to_string(),
            Error::TableDisabled(table) => format!("{table} is disabled."),
            Error::Procedure { why, class, .. } => {
                why.strip_prefix(class.as_str()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(why).to_owned()
            }
            other => other.to_string(),
        };
        Fault::Io { class, message, can_retry }
    }
}

impl From<model::NameError> for Fault {
    fn from(error: model::NameError) -> Fault {
        Fault::Argument(error.0)
    }
}

impl From<filter::Error> for Fault {
    fn from(error: filter::Error) -> Fault {
        Fault::Argument(error.to_string())
    }
}

/// `TApplicationException`'s numbers.
#[derive(Debug, Clone, Copy)]
pub enum Application {
    /// No such method.
    UnknownMethod = 1,
    /// Not a call.
    MessageKind = 2,
    /// Something that the IDL does not declare.
    Internal = 6,
    /// Arguments that cannot be read.
    Protocol = 7,
}

/// Writes a `TApplicationException`.
pub(crate) fn write_application(writer: &mut Writer, kind: Application, message: &str) {
    let mut last = 0;
    message.to_owned().write_field(writer, 1, &mut last);
    (kind as i32).write_field(writer, 2, &mut last);
    writer.stop();
}

impl From<ProtocolError> for Fault {
    fn from(error: ProtocolError) -> Fault {
        Fault::Argument(error.to_string())
    }
}
