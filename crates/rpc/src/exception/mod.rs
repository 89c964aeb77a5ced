//! Errors as the client sees them: a Java class name, a text, and hints for the retry.
//!
//! A client decides what to do by the class, so every failure of a call becomes an [`Exception`] of one [`Kind`], and
//! the table behind `Kind` is the only place where class names are written. Storage crates do not know it; the servers
//! turn their errors into kinds.
//!
//! Follows `ServerCall#setExceptionResponse`, `ResponseConverter#buildException`, `StringUtils#stringifyException`.

mod kind;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use convert::{ConvertError, ConvertErrorKind};
use proto::pb;

pub use kind::Kind;

const DESERIALIZATION: &str = "org.apache.hadoop.hbase.exceptions.DeserializationException";

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    kind: Kind,
    message: Cow<'static, str>,
    /// The text on the wire is the message alone, without the class before it.
    bare: bool,
    /// HBase's code does not declare it: the whole call fails.
    unchecked: bool,
    moved_to: Option<(String, u16)>,
}

impl Exception {
    /// An exception of `kind` that says `message`.
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), bare: false, unchecked: false, moved_to: None }
    }

    /// As [`Exception::new`], but the text on the wire is only `message`: errors of the connection and of requests
    /// that could not be read look so, and clients compare their beginning.
    pub fn bare(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { bare: true, ..Self::new(kind, message) }
    }

    /// `DoNotRetryIOException`: it will not work next time either.
    pub fn do_not_retry(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::DoNotRetry, message)
    }

    /// What HBase's code throws without declaring it, under the name of its class: the call as a whole fails with an
    /// `IOException`, and the client tries again, in vain.
    pub fn thrown(class: &str, message: impl std::fmt::Display) -> Self {
        Self { unchecked: true, ..Self::new(Kind::Io, format!("{class}: {message}")) }
    }

    /// Whether it is of [`Exception::thrown`].
    pub fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    /// `IOException`: the client tries again.
    pub fn io(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Io, message)
    }

    /// The region of that name (printable) is not here: the client looks for it again.
    pub fn not_serving_region(name: &str) -> Self {
        Self::new(Kind::NotServingRegion, format!("{name} is not online"))
    }

    /// The region is at another server now; the client goes there without asking.
    pub fn region_moved(host: &str, port: u16, start_code: u64, location_seq_num: u64) -> Self {
        let message = format!(
            "Region moved to: hostname={host} port={port} startCode={start_code}. As of locationSeqNum={location_seq_num}."
        );
        Self { moved_to: Some((host.to_owned(), port)), ..Self::new(Kind::RegionMoved, message) }
    }

    /// The region is being opened here: the client tries here again.
    pub fn region_opening(name: &str) -> Self {
        Self::new(Kind::RegionOpening, format!("Region is opening: {name}"))
    }

    /// The region cannot take more right now: the client tries again, later.
    pub fn region_too_busy(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::RegionTooBusy, message)
    }

    /// The row is outside the region that the request names.
    pub fn wrong_region(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::WrongRegion, message)
    }

    /// The table has no such family.
    pub fn no_such_family(family: &[u8], table: &str, region: &str) -> Self {
        let family = cell::print::Binary(family);
        let message = format!("Column family {family} does not exist in region {region} in table {table}");
        Self::new(Kind::NoSuchColumnFamily, message)
    }

    /// The mutation breaks a rule that no retry mends.
    pub fn failed_sanity_check(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::FailedSanityCheck, message)
    }

    /// No scanner has that id: it was closed, has expired, or never was.
    pub fn unknown_scanner(id: u64) -> Self {
        Self::new(
            Kind::UnknownScanner,
            format!(
                "Unknown scanner '{id}'. This can happen due to any of the following reasons: a) Scanner id given is \
                 wrong, b) Scanner lease expired because of long wait between consecutive client checkins, c) Server \
                 may be closing down, d) RegionServer restart during upgrade."
            ),
        )
    }

    /// The scanner was asked out of turn.
    pub fn out_of_order_scanner_next(expected: u64, got: u64, request: &str) -> Self {
        Self::new(
            Kind::OutOfOrderScannerNext,
            format!("Expected nextCallSeq: {expected} But the nextCallSeq got from client: {got}; request={request}"),
        )
    }

    /// The scanner broke and must be opened again by the client.
    pub fn scanner_reset(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::ScannerReset, message)
    }

    /// The reply of a multi call grew too large; the rest of its actions must be sent again at once.
    pub fn multi_too_large(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::MultiActionResultTooLarge, message)
    }

    /// No table of that name.
    pub fn table_not_found(table: &str) -> Self {
        Self::new(Kind::TableNotFound, table.to_owned())
    }

    /// A table of that name is there.
    pub fn table_exists(table: &str) -> Self {
        Self::new(Kind::TableExists, table.to_owned())
    }

    /// The table must be disabled first.
    pub fn table_not_disabled(table: &str) -> Self {
        Self::new(Kind::TableNotDisabled, table.to_owned())
    }

    /// The table must be enabled first.
    pub fn table_not_enabled(table: &str) -> Self {
        Self::new(Kind::TableNotEnabled, table.to_owned())
    }

    /// No namespace of that name.
    pub fn namespace_not_found(namespace: &str) -> Self {
        Self::new(Kind::NamespaceNotFound, namespace.to_owned())
    }

    /// A namespace of that name is there.
    pub fn namespace_exists(namespace: &str) -> Self {
        Self::new(Kind::NamespaceExist, format!("Namespace {namespace} already exists"))
    }

    /// A namespace may not be changed so.
    pub fn constraint(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Constraint, message)
    }

    /// A family may not be changed so.
    pub fn invalid_family_operation(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::InvalidFamilyOperation, message)
    }

    /// The master does not know such a region.
    pub fn unknown_region(name: &str) -> Self {
        Self::new(Kind::UnknownRegion, name.to_owned())
    }

    /// The server has begun to start and takes no calls yet.
    pub fn server_not_running_yet(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::ServerNotRunningYet, message)
    }

    /// The server is going down.
    pub fn server_stopped(server: &str) -> Self {
        Self::new(Kind::RegionServerStopped, format!("Server {server} stopping"))
    }

    /// The server has given up.
    pub fn server_aborted(server: &str) -> Self {
        Self::new(Kind::RegionServerAborted, format!("Server {server} aborting"))
    }

    /// The master is still starting.
    pub fn please_hold() -> Self {
        Self::new(Kind::PleaseHold, "Master is initializing")
    }

    /// The master runs but its services do not, or it is not the active one.
    pub fn master_not_running(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::MasterNotRunning, message)
    }

    /// The call took too long.
    pub fn timeout(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::TimeoutIo, message)
    }

    /// HBase has this method, Basalt does not have it yet.
    pub fn unsupported(method: &proto::methods::MethodInfo) -> Self {
        let (service, name) = (method.service.name(), method.name);
        Self::do_not_retry(format!("{service}.{name} is not supported by this version of Basalt"))
    }

    /// HBase has no such method: what a server answers to a name it does not know.
    pub fn unknown_method(name: &str) -> Self {
        let cause = Kind::UnsupportedOperation.class();
        Self::do_not_retry(format!("{cause}: {name}"))
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The Java class.
    pub fn class(&self) -> &'static str {
        self.kind.class()
    }

    /// The message without the class.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The message with `more` put before it (what was being done, on which region).
    #[must_use]
    pub fn context(mut self, more: &str) -> Self {
        self.message = format!("{more}: {}", self.message).into();
        self
    }

    /// The text that goes for Java's stack trace: its first line is `class: message`.
    pub fn stack_trace(&self) -> String {
        if self.bare { self.message.clone().into_owned() } else { format!("{}: {}\n", self.class(), self.message) }
    }

    /// As the header of a reply carries it.
    pub fn to_response(&self) -> pb::ExceptionResponse {
        pb::ExceptionResponse {
            exception_class_name: Some(self.class().to_owned()),
            stack_trace: Some(self.stack_trace()),
            hostname: self.moved_to.as_ref().map(|(host, _)| host.clone()),
            port: self.moved_to.as_ref().map(|(_, port)| i32::from(*port)),
            do_not_retry: Some(self.kind.do_not_retry()),
            server_overloaded: self.kind.server_overloaded(),
        }
    }

    /// As the results of a multi call carry it.
    pub fn to_name_bytes_pair(&self) -> pb::NameBytesPair {
        pb::NameBytesPair { name: self.class().to_owned(), value: Some(Bytes::from(self.stack_trace())) }
    }

    /// As procedure results carry it. `source` names the server.
    pub fn to_foreign(&self, source: &str) -> pb::ForeignExceptionMessage {
        pb::ForeignExceptionMessage {
            source: Some(source.to_owned()),
            generic_exception: Some(pb::GenericExceptionMessage {
                class_name: Some(self.class().to_owned()),
                message: Some(self.message.clone().into_owned()),
                error_info: None,
                trace: Vec::new(),
            }),
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class(), self.message)
    }
}

impl std::error::Error for Exception {}

impl From<cell::CellError> for Exception {
    fn from(error: cell::CellError) -> Self {
        Self::do_not_retry(error.to_string())
    }
}

impl From<ConvertError> for Exception {
    /// What HBase throws for such a message, in its words. Where it throws an unchecked exception the call fails as a whole with a
    /// plain `IOException`: [`Exception::thrown`].
    fn from(error: ConvertError) -> Self {
        let message = error.message().to_owned();
        match error.kind() {
            ConvertErrorKind::Malformed | ConvertErrorKind::IllegalName => Self::do_not_retry(message),
            ConvertErrorKind::IllegalArgument => Self::thrown("java.lang.IllegalArgumentException", message),
            ConvertErrorKind::NullArgument => Self::thrown("java.lang.NullPointerException", message),
            ConvertErrorKind::UnknownClass => {
                Self::do_not_retry(format!("java.lang.ClassNotFoundException: {message}"))
            }
            ConvertErrorKind::Undecodable => Self::do_not_retry(format!("{DESERIALIZATION}: {message}")),
            ConvertErrorKind::IllegalComparator => Self::thrown(DESERIALIZATION, message),
            ConvertErrorKind::IncompatibleFilter => {
                Self::thrown("org.apache.hadoop.hbase.filter.IncompatibleFilterException", message)
            }
            ConvertErrorKind::IllegalVersions => Self::io(message),
            ConvertErrorKind::WrongRow => Self::new(Kind::WrongRow, message),
            ConvertErrorKind::RemovedOperation => Self::new(Kind::UnknownProtocol, message),
            ConvertErrorKind::TooLarge => Self::multi_too_large(message),
        }
    }
}

#[cfg(test)]
mod tests;
