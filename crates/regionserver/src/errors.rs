//! From a region's error to the exception that the client sees.

use region::{ErrorKind, RegionError};
use rpc::exception::{Exception, Kind};

/// The exception for `error`, with HBase's class.
pub fn exception_of(error: &RegionError) -> Exception {
    let kind = match error.kind() {
        ErrorKind::NoSuchColumnFamily => Kind::NoSuchColumnFamily,
        ErrorKind::WrongRegion => Kind::WrongRegion,
        ErrorKind::RegionTooBusy => Kind::RegionTooBusy,
        ErrorKind::NotServingRegion => Kind::NotServingRegion,
        ErrorKind::FailedSanityCheck => Kind::FailedSanityCheck,
        ErrorKind::RowTooBig => Kind::RegionserverRowTooBig,
        ErrorKind::UnknownScanner => Kind::UnknownScanner,
        ErrorKind::CorruptFile => Kind::CorruptHFile,
        ErrorKind::DroppedSnapshot => Kind::DroppedSnapshot,
        ErrorKind::ServerStopped => Kind::RegionServerStopped,
        // The client has stopped waiting, or looks for the region elsewhere.
        ErrorKind::Interrupted => match error {
            RegionError::Interrupted(base::Interrupted::Stopping) => Kind::RegionServerStopped,
            RegionError::Interrupted(base::Interrupted::NoRoom) => Kind::CallQueueTooBig,
            _ => Kind::TimeoutIo,
        },
        ErrorKind::DoNotRetry => Kind::DoNotRetry,
        ErrorKind::Remote => Kind::HadoopRemote,
        // HBase's filters throw what is not declared, and that goes over so. A read that must touch the disk is run
        // again where it may; a client never hears of it.
        ErrorKind::IncompatibleFilter | ErrorKind::Filter | ErrorKind::WouldBlock | ErrorKind::Io => Kind::Io,
    };
    Exception::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As HBase's region server passes on what its HDFS client does not know.
    #[test]
    fn what_a_namenode_threw_comes_as_hadoops_remote_exception() {
        let failure = fs::RemoteFailure { class: "org.apache.hadoop.hdfs.Odd".into(), message: "so".into() };
        let of = |source| {
            let error = fs::Error::new("create", &fs::FilePath::new("a"), source);
            exception_of(&RegionError::Volume { region: "r".into(), source: std::sync::Arc::new(error) })
        };
        let exception = of(std::io::Error::other(failure));
        assert_eq!(
            (exception.class(), exception.kind().do_not_retry()),
            ("org.apache.hadoop.ipc.RemoteException", false)
        );
        assert!(exception.message().ends_with("cannot create a: Odd: so"), "{}", exception.message());
        assert_eq!(of(std::io::ErrorKind::NotFound.into()).kind(), Kind::Io);
    }
}
