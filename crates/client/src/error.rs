//! What can go wrong, and what to do about it. Follows: `ClientExceptionsUtil`, `RemoteWithExtrasException`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::TableName;
use proto::pb;

/// The client's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An exception that a server sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", if .message.is_empty() { .class } else { .message })]
pub struct RemoteException {
    /// Full name of the Java class.
    pub class: String,
    /// The server's stack trace, whose first line names class and message.
    pub message: String,
    /// Whether the server says that trying again is of no use.
    pub do_not_retry: bool,
    /// Whether the server says that it has too much to do.
    pub server_overloaded: bool,
    /// For a region that has moved: where to.
    pub moved_to: Option<(String, u16)>,
}

impl RemoteException {
    pub(crate) fn from_response(response: pb::ExceptionResponse) -> RemoteException {
        let moved_to = match (&response.hostname, response.port) {
            (Some(host), Some(port)) if !host.is_empty() => u16::try_from(port).ok().map(|port| (host.clone(), port)),
            _ => None,
        };
        RemoteException {
            do_not_retry: response.do_not_retry(),
            server_overloaded: response.server_overloaded(),
            class: response.exception_class_name.unwrap_or_default(),
            message: response.stack_trace.unwrap_or_default(),
            moved_to,
        }
    }

    /// From the exception of one action in a multi: there only name and text travel.
    pub(crate) fn from_pair(pair: pb::NameBytesPair) -> RemoteException {
        let message = pair.value.map(|v| String::from_utf8_lossy(&v).into_owned()).unwrap_or_default();
        let kind = rpc::Kind::ALL.iter().find(|kind| kind.class() == pair.name);
        RemoteException {
            do_not_retry: kind.is_some_and(|kind| kind.do_not_retry()),
            server_overloaded: kind.and_then(|kind| kind.server_overloaded()).unwrap_or(false),
            moved_to: moved_to(&message),
            class: pair.name,
            message,
        }
    }

    /// The class without its package.
    pub fn short_class(&self) -> &str {
        self.class.rsplit('.').next().unwrap_or(&self.class)
    }

    /// The first line of the message: the class and what it says.
    pub fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or(&self.class)
    }
}

/// `Region moved to: hostname=H port=P ...`, as the exception's text has it.
fn moved_to(message: &str) -> Option<(String, u16)> {
    let after = message.split_once("hostname=")?.1;
    let (host, rest) = after.split_once(' ')?;
    let port = rest.strip_prefix("port=")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some((host.to_owned(), port))
}

/// The wait at the end of a throttling exception's text: `... - wait 1hr, 2mins, 3sec, 4ms`. Follows:
/// `RpcThrottlingException#timeFromString`.
fn wait_of(message: &str) -> Option<Duration> {
    let (_, text) = message.rsplit_once(" - wait ")?;
    let mut wait = Duration::ZERO;
    for part in text.split(", ") {
        let digits = part.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = part.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let unit_ms = match unit.trim_end() {
            "hr" | "hrs" => 3_600_000,
            "min" | "mins" => 60_000,
            "sec" => 1000,
            "ms" => 1,
            _ => return None,
        };
        wait += Duration::from_millis(number.checked_mul(unit_ms)?);
    }
    Some(wait)
}

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The server refused.
    #[error("{0}")]
    Remote(Box<RemoteException>),
    /// A connection could not be made or broke.
    #[error("{server}: {error}")]
    Io {
        /// `host:port`.
        server: Arc<str>,
        /// What the system says.
        error: Arc<io::Error>,
    },
    /// The connection ended before the reply.
    #[error("{server}: the connection ended before the reply")]
    ConnectionClosed {
        /// `host:port`.
        server: Arc<str>,
    },
    /// No reply in time.
    #[error("{server}: no reply to {method} within {timeout_ms} ms")]
    Timeout {
        /// `host:port`.
        server: Arc<str>,
        /// The call.
        method: &'static str,
        /// The limit.
        timeout_ms: u64,
    },
    /// A reply that cannot be read.
    #[error("unreadable reply: {0}")]
    Malformed(String),
    /// hbase:meta knows no such table.
    #[error("table {0} is not found")]
    TableNotFound(TableName),
    /// The table is disabled.
    #[error("table {0} is disabled")]
    TableDisabled(TableName),
    /// hbase:meta has no usable region for a row at the moment.
    #[error("no region of {table} holds row {row} now: {why}")]
    NoRegion {
        /// The table.
        table: TableName,
        /// The row as `toStringBinary` prints it.
        row: String,
        /// What hbase:meta says instead.
        why: &'static str,
    },
    /// The cluster's address could not be learned.
    #[error("registry {registry}: {why}")]
    Registry {
        /// Who was asked.
        registry: String,
        /// What went wrong.
        why: String,
    },
    /// Tried until time or tries were over.
    #[error("failed after {tries} tries: {last}")]
    RetriesExhausted {
        /// How often.
        tries: u32,
        /// The last failure.
        last: Box<Error>,
    },
    /// A procedure of the master failed.
    #[error("{what}: {why}")]
    Procedure {
        /// What was asked.
        what: String,
        /// Java class and message.
        why: String,
        /// The Java class.
        class: String,
    },
    /// A request that makes no sense; nothing was sent.
    #[error("{0}")]
    Request(String),
}

impl Error {
    /// The Java class of the exception: the server's, or the one that HBase's own client throws in such a case. `None` where that would be a
    /// plain `IOException` or `IllegalArgumentException`.
    pub fn class(&self) -> Option<&str> {
        match self {
            Error::Remote(e) => Some(&e.class),
            Error::Procedure { class, .. } => Some(class),
            Error::RetriesExhausted { last, .. } => last.class(),
            Error::TableNotFound(_) => Some("org.apache.hadoop.hbase.TableNotFoundException"),
            Error::TableDisabled(_) => Some("org.apache.hadoop.hbase.TableNotEnabledException"),
            Error::NoRegion { .. } => Some("org.apache.hadoop.hbase.client.NoServerForRegionException"),
            Error::Timeout { .. } => Some("org.apache.hadoop.hbase.ipc.CallTimeoutException"),
            Error::ConnectionClosed { .. } => Some("org.apache.hadoop.hbase.exceptions.ConnectionClosedException"),
            Error::Io { .. } | Error::Malformed(_) | Error::Registry { .. } | Error::Request(_) => None,
        }
    }

    /// The Java class without its package.
    pub fn short_class(&self) -> Option<&str> {
        self.class().map(|class| class.rsplit(['.', '$']).next().unwrap_or(class))
    }

    pub(crate) fn remote(response: pb::ExceptionResponse) -> Error {
        Error::Remote(Box::new(RemoteException::from_response(response)))
    }

    pub(crate) fn malformed(what: impl std::fmt::Display) -> Error {
        Error::Malformed(what.to_string())
    }

    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Error::Remote(e) => !e.do_not_retry,
            Error::Io { .. } | Error::ConnectionClosed { .. } | Error::Timeout { .. } => true,
            Error::NoRegion { .. } | Error::Registry { .. } => true,
            Error::Malformed(_)
            | Error::TableNotFound(_)
            | Error::TableDisabled(_)
            | Error::RetriesExhausted { .. }
            | Error::Procedure { .. }
            | Error::Request(_) => false,
        }
    }

    /// Whether the region's location may be wrong (`ClientExceptionsUtil.isMetaClearingException`).
    pub(crate) fn doubts_location(&self) -> bool {
        match self {
            // What is refused for good is refused everywhere.
            Error::Remote(e) if e.do_not_retry => false,
            Error::Remote(e) => !matches!(
                e.short_class(),
                "RegionOpeningException"
                    | "RegionTooBusyException"
                    | "RpcThrottlingException"
                    | "MultiActionResultTooLarge"
                    | "RetryImmediatelyException"
                    | "CallQueueTooBigException"
                    | "CallDroppedException"
                    | "RequestTooBigException"
            ),
            Error::Io { .. } | Error::ConnectionClosed { .. } | Error::Timeout { .. } => true,
            _ => false,
        }
    }

    /// Whether the server itself is in doubt: none of its regions should be asked there without a new look.
    pub(crate) fn doubts_server(&self) -> bool {
        match self {
            Error::Io { .. } | Error::ConnectionClosed { .. } => true,
            Error::Remote(e) => {
                matches!(e.short_class(), "RegionServerStoppedException" | "RegionServerAbortedException")
            }
            _ => false,
        }
    }

    /// Whether tries or time are over.
    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(self, Error::RetriesExhausted { .. })
    }

    /// Whether the next try needs no pause.
    pub(crate) fn retries_at_once(&self) -> bool {
        matches!(self.short_class(), Some("RetryImmediatelyException" | "MultiActionResultTooLarge"))
    }

    /// Whether the region is not where it was thought to be: perhaps because its table is disabled.
    pub(crate) fn is_not_serving(&self) -> bool {
        matches!(self.short_class(), Some("NotServingRegionException" | "RegionOfflineException"))
    }

    /// How long a server that throttles says to wait.
    pub(crate) fn throttled_for(&self) -> Option<Duration> {
        match self {
            Error::Remote(e) if e.short_class() == "RpcThrottlingException" => wait_of(e.first_line()),
            _ => None,
        }
    }

    pub(crate) fn is_overload(&self) -> bool {
        matches!(self, Error::Remote(e) if e.server_overloaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_region_tells_where_to_in_its_text() {
        let text = "org.apache.hadoop.hbase.exceptions.RegionMovedException: Region moved to: hostname=h.example \
                    port=16020 startCode=7. As of locationSeqNum=3.";
        assert_eq!(moved_to(text), Some(("h.example".to_owned(), 16020)));
        assert_eq!(moved_to("hostname= port="), None);
        assert_eq!(moved_to("hostname=h port=99999 "), None);
    }

    #[test]
    fn a_throttling_exception_tells_how_long_to_wait() {
        let ms = |text: &str| wait_of(text).map(|wait| wait.as_millis());
        assert_eq!(ms("X: number of requests exceeded - wait 2hrs, 1min, 3sec, 4ms"), Some(7_263_004));
        assert_eq!(ms("read size limit exceeded - wait 0ms"), Some(0));
        for odd in ["", " - wait ", " - wait soon", " - wait 5", " - wait 99999999999999999999ms", "wait 1ms"] {
            assert_eq!(ms(odd), None, "{odd}");
        }
        assert_eq!(ms(&format!(" - wait {}hr", u64::MAX)), None);
    }

    /// What each class says: may it pass, is the location in doubt, is the whole server.
    #[test]
    fn classes_decide_what_is_tried_again_and_what_is_forgotten() {
        let of = |class: &str| {
            let pair = pb::NameBytesPair { name: format!("org.apache.hadoop.hbase.{class}"), value: None };
            Error::Remote(Box::new(RemoteException::from_pair(pair)))
        };
        for (class, may_pass, location, server) in [
            ("NotServingRegionException", true, true, false),
            ("exceptions.RegionMovedException", true, true, false),
            ("regionserver.RegionServerStoppedException", true, true, true),
            ("regionserver.RegionServerAbortedException", true, true, true),
            ("ipc.ServerNotRunningYetException", true, true, false),
            ("regionserver.WrongRegionException", true, true, false),
            ("exceptions.RegionOpeningException", true, false, false),
            ("RegionTooBusyException", true, false, false),
            ("quotas.RpcThrottlingException", true, false, false),
            ("MultiActionResultTooLarge", true, false, false),
            ("RetryImmediatelyException", true, false, false),
            ("CallQueueTooBigException", true, false, false),
            ("CallDroppedException", true, false, false),
            ("exceptions.RequestTooBigException", false, false, false),
            ("regionserver.NoSuchColumnFamilyException", false, false, false),
            ("DoNotRetryIOException", false, false, false),
            ("UnknownScannerException", false, false, false),
            ("security.AccessDeniedException", false, false, false),
        ] {
            let error = of(class);
            let says = (error.may_pass(), error.doubts_location(), error.doubts_server());
            assert_eq!(says, (may_pass, location, server), "{class}");
        }
        let lost = Error::Timeout { server: "s".into(), method: "Get", timeout_ms: 1 };
        assert!(lost.may_pass() && lost.doubts_location() && !lost.doubts_server());
        let closed = Error::ConnectionClosed { server: "s".into() };
        assert!(closed.may_pass() && closed.doubts_location() && closed.doubts_server());
        assert_eq!(Error::TableNotFound(TableName::meta()).short_class(), Some("TableNotFoundException"));
    }
}
