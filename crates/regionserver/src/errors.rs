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
        // HBase's filters throw what is not declared, and that goes over so. A read that must touch the disk is run
        // again where it may; a client never hears of it.
        ErrorKind::IncompatibleFilter | ErrorKind::Filter | ErrorKind::WouldBlock | ErrorKind::Io => Kind::Io,
    };
    Exception::new(kind, error.to_string())
}
