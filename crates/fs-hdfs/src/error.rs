//! What HDFS says, as errors of files: the kind that callers decide by, and what to do.

use fs::FilePath;
use hdfs_native::HdfsError;
use std::io::{self, ErrorKind};

/// The failed operation on `path`.
pub(crate) fn failed(operation: &str, path: &FilePath, error: HdfsError) -> fs::Error {
    fs::Error::new(operation, path, source(error))
}

/// Whether nobody can tell if the NameNode did it: the connection was lost between question and answer.
pub(crate) fn is_in_doubt(error: &HdfsError) -> bool {
    matches!(error, HdfsError::IOError(_))
}

fn source(error: HdfsError) -> io::Error {
    let (kind, remedy) = match &error {
        HdfsError::IOError(source) => connection(source.kind()),
        HdfsError::FileNotFound(_) | HdfsError::BlocksNotFound(_) => (ErrorKind::NotFound, ""),
        HdfsError::AlreadyExists(_) => (ErrorKind::AlreadyExists, ""),
        HdfsError::IsADirectoryError(_) => (ErrorKind::IsADirectory, ""),
        HdfsError::ChecksumError => (ErrorKind::InvalidData, "look at the DataNodes' disks with hdfs fsck"),
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => exception(class, message),
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => (
            ErrorKind::PermissionDenied,
            "look at the Kerberos ticket or keytab, and at hadoop.security.authentication",
        ),
        HdfsError::UnsupportedFeature(_) | HdfsError::UnsupportedErasureCodingPolicy(_) => (ErrorKind::Unsupported, ""),
        _ => (ErrorKind::Other, ""),
    };
    if let (ErrorKind::Other, HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message)) =
        (kind, &error)
    {
        let message = message.lines().next().unwrap_or_default().to_owned();
        return io::Error::other(fs::RemoteFailure { class: class.clone(), message });
    }
    let text = match &error {
        // The first line is the sentence; a stack trace follows.
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => {
            format!("{}: {}", simple_name(class), message.lines().next().unwrap_or_default())
        }
        other => other.to_string(),
    };
    io::Error::new(kind, if remedy.is_empty() { text } else { format!("{text}; {remedy}") })
}

fn connection(kind: ErrorKind) -> (ErrorKind, &'static str) {
    let remedy = match kind {
        ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "is the NameNode running, and is hbase.rootdir (or dfs.namenode.rpc-address) its address?"
        }
        _ => "",
    };
    // A connection that ended is no end of a file.
    (if kind == ErrorKind::UnexpectedEof { ErrorKind::ConnectionReset } else { kind }, remedy)
}

/// By the Java class of what the NameNode threw.
fn exception(class: &str, message: &str) -> (ErrorKind, &'static str) {
    match simple_name(class) {
        "FileNotFoundException" | "NoSuchFileException" => (ErrorKind::NotFound, ""),
        "ParentNotDirectoryException" => (ErrorKind::NotADirectory, ""),
        "PathIsNotEmptyDirectoryException" => (ErrorKind::DirectoryNotEmpty, ""),
        // A path below a file.
        "AccessControlException" if message.contains("is not a directory") => (ErrorKind::NotADirectory, ""),
        "AccessControlException" | "AuthorizationException" => (
            ErrorKind::PermissionDenied,
            "run the server as the directory's owner (HADOOP_USER_NAME) or change its owner",
        ),
        "SafeModeException" => {
            (ErrorKind::ResourceBusy, "the NameNode is in safe mode: wait, or look at its DataNodes")
        }
        "StandbyException" | "RetriableException" | "RecoveryInProgressException" => (ErrorKind::ResourceBusy, ""),
        // Somebody else has taken the file over.
        "LeaseExpiredException" => (ErrorKind::StaleNetworkFileHandle, "another process has taken the file over"),
        "DSQuotaExceededException" | "NSQuotaExceededException" | "QuotaExceededException" => {
            (ErrorKind::QuotaExceeded, "raise the directory's quota or free space in it")
        }
        // A file renamed to where a directory is, or the reverse.
        "IOException" if message.contains("must both be directories") => (ErrorKind::AlreadyExists, ""),
        // No DataNode would take a block: mostly because none has room.
        "IOException" if message.contains("could only be") => {
            (ErrorKind::StorageFull, "no DataNode has room or none is running: look at hdfs dfsadmin -report")
        }
        _ => (ErrorKind::Other, ""),
    }
}

fn simple_name(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(class: &str, message: &str) -> fs::Error {
        failed("create", &FilePath::new("a/b"), HdfsError::RPCError(class.to_owned(), message.to_owned()))
    }

    #[test]
    fn exceptions_are_kinds_with_a_remedy() {
        let error = of("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot create /a/b.\n\tat X.y(Z)");
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        let text = error.to_string();
        assert!(text.contains("a/b") && text.contains("safe mode") && !text.contains("Z"), "{text}");
        assert!(of("java.io.FileNotFoundException", "Parent directory doesn't exist: /a").is_not_found());
        let class = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException";
        assert!(of(class, "The DiskSpace quota of /a is exceeded").is_full());
        assert!(
            of("java.io.IOException", "File /a/b could only be written to 0 of the 1 minReplication nodes.").is_full()
        );
        assert!(!of("java.io.IOException", "anything").is_full());
    }

    #[test]
    fn what_nobody_knows_keeps_its_class() {
        let error = of("org.apache.hadoop.hdfs.server.namenode.Odd", "so\n\tat X.y(Z)");
        let remote = error.remote().expect("the NameNode's own words");
        assert_eq!((&*remote.class, &*remote.message), ("org.apache.hadoop.hdfs.server.namenode.Odd", "so"));
        assert!(error.to_string().ends_with("a/b: Odd: so"), "{error}");
        assert_eq!(of("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "so").remote(), None);
    }

    #[test]
    fn a_lost_connection_is_no_end_of_a_file() {
        let error = HdfsError::IOError(ErrorKind::UnexpectedEof.into());
        assert!(is_in_doubt(&error));
        assert_eq!(failed("read", &FilePath::root(), error).kind(), ErrorKind::ConnectionReset);
    }
}
