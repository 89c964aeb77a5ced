//! Every Java exception class that a server sends, in one table. Follows: the classes' own `extends` clauses.

/// One row per class: how it is called on the wire and what a client does with it.
macro_rules! classes {
    ($($(#[$meta:meta])* $name:ident = $class:literal, $retry:ident $(, $overloaded:ident)?;)*) => {
        /// A Java exception class that HBase clients know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$meta])* $name,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// The full name of the class: the client makes an object of it by that name.
            pub const fn class(self) -> &'static str {
                match self { $(Kind::$name => $class,)* }
            }

            /// Whether the class is a `DoNotRetryIOException`.
            pub const fn do_not_retry(self) -> bool {
                match self { $(Kind::$name => classes!(@retry $retry),)* }
            }

            /// Whether the client should take the server to be overloaded and hold back; `None` where the class
            /// does not say (it is not an `HBaseServerException`).
            pub const fn server_overloaded(self) -> Option<bool> {
                match self { $(Kind::$name => classes!(@overloaded $($overloaded)?),)* }
            }
        }
    };
    (@retry retry) => { false };
    (@retry no_retry) => { true };
    (@overloaded) => { None };
    (@overloaded overloaded) => { Some(true) };
    (@overloaded not_overloaded) => { Some(false) };
}

classes! {
    /// Stream ended.
    Eof = "java.io.EOFException", retry;
    /// Store file vanished; region is reopened.
    FileNotFound = "java.io.FileNotFoundException", retry;
    /// Any other failure; client retries.
    Io = "java.io.IOException", retry;
    /// Server may abort by policy.
    OutOfMemoryError = "java.lang.OutOfMemoryError", retry;
    /// Wrapped in DoNotRetryIOException, for example access control not loaded.
    UnsupportedOperation = "java.lang.UnsupportedOperationException", retry;
    /// A queued call was dropped (CoDel or queue change).
    CallDropped = "org.apache.hadoop.hbase.CallDroppedException", retry, overloaded;
    /// Call queue length or size limit reached.
    CallQueueTooBig = "org.apache.hadoop.hbase.CallQueueTooBigException", retry, overloaded;
    /// Region server clock differs too much from master.
    ClockOutOfSync = "org.apache.hadoop.hbase.ClockOutOfSyncException", retry;
    /// Old concurrent schema change.
    ConcurrentTableModification = "org.apache.hadoop.hbase.ConcurrentTableModificationException", no_retry;
    /// Base class and general permanent failure.
    DoNotRetry = "org.apache.hadoop.hbase.DoNotRetryIOException", no_retry;
    /// Flush failed after snapshot of memstore.
    DroppedSnapshot = "org.apache.hadoop.hbase.DroppedSnapshotException", retry;
    /// Base class.
    HBaseIo = "org.apache.hadoop.hbase.HBaseIOException", retry;
    /// Base with the server-overloaded flag.
    HBaseServer = "org.apache.hadoop.hbase.HBaseServerException", retry, not_overloaded;
    /// Bad family change (exists, missing, last one).
    InvalidFamilyOperation = "org.apache.hadoop.hbase.InvalidFamilyOperationException", no_retry;
    /// Master not reachable or not active.
    MasterNotRunning = "org.apache.hadoop.hbase.MasterNotRunningException", retry;
    /// Multi response reached the size limit; the rest must be sent again.
    MultiActionResultTooLarge = "org.apache.hadoop.hbase.MultiActionResultTooLarge", retry;
    /// Namespace exists.
    NamespaceExist = "org.apache.hadoop.hbase.NamespaceExistException", no_retry;
    /// Namespace missing.
    NamespaceNotFound = "org.apache.hadoop.hbase.NamespaceNotFoundException", no_retry;
    /// Meta not online.
    NotAllMetaRegionsOnline = "org.apache.hadoop.hbase.NotAllMetaRegionsOnlineException", no_retry;
    /// Region not on this server.
    NotServingRegion = "org.apache.hadoop.hbase.NotServingRegionException", retry;
    /// Master initializing.
    PleaseHold = "org.apache.hadoop.hbase.PleaseHoldException", retry;
    /// Base.
    Region = "org.apache.hadoop.hbase.RegionException", retry;
    /// Memstore above the blocking limit, or lock wait too long.
    RegionTooBusy = "org.apache.hadoop.hbase.RegionTooBusyException", retry;
    /// Unknown peer.
    ReplicationPeerNotFound = "org.apache.hadoop.hbase.ReplicationPeerNotFoundException", no_retry;
    /// Base: partial answer, send the rest at once.
    RetryImmediately = "org.apache.hadoop.hbase.RetryImmediatelyException", retry;
    /// Service not running.
    ServiceNotRunning = "org.apache.hadoop.hbase.ServiceNotRunningException", retry;
    /// Table exists.
    TableExists = "org.apache.hadoop.hbase.TableExistsException", no_retry;
    /// Descriptor file missing.
    TableInfoMissing = "org.apache.hadoop.hbase.TableInfoMissingException", retry;
    /// Table must be disabled.
    TableNotDisabled = "org.apache.hadoop.hbase.TableNotDisabledException", no_retry;
    /// Table must be enabled.
    TableNotEnabled = "org.apache.hadoop.hbase.TableNotEnabledException", no_retry;
    /// Unknown table.
    TableNotFound = "org.apache.hadoop.hbase.TableNotFoundException", no_retry;
    /// Region unknown to the master.
    UnknownRegion = "org.apache.hadoop.hbase.UnknownRegionException", no_retry;
    /// Scanner id unknown or expired.
    UnknownScanner = "org.apache.hadoop.hbase.UnknownScannerException", no_retry;
    /// Master already handled the server as dead.
    YouAreDead = "org.apache.hadoop.hbase.YouAreDeadException", retry;
    /// Permanent region failure (bad state for request).
    DoNotRetryRegion = "org.apache.hadoop.hbase.client.DoNotRetryRegionException", no_retry;
    /// Row larger than hbase.table.max.rowsize.
    RowTooBig = "org.apache.hadoop.hbase.client.RowTooBigException", no_retry;
    /// A cell of another row in a mutation.
    WrongRow = "org.apache.hadoop.hbase.client.WrongRowIOException", retry;
    /// Namespace or server group constraint; table constraint has its own class.
    Constraint = "org.apache.hadoop.hbase.constraint.ConstraintException", no_retry;
    /// Coprocessor failure.
    Coprocessor = "org.apache.hadoop.hbase.coprocessor.CoprocessorException", no_retry;
    /// Error from another member of a barrier procedure.
    Foreign = "org.apache.hadoop.hbase.errorhandling.ForeignException", retry;
    /// A mutation fails sanity checks (timestamp too far, unknown family in batch).
    FailedSanityCheck = "org.apache.hadoop.hbase.exceptions.FailedSanityCheckException", no_retry;
    /// Illegal argument as I/O error.
    IllegalArgumentIo = "org.apache.hadoop.hbase.exceptions.IllegalArgumentIOException", retry;
    /// Master is stopped.
    MasterStopped = "org.apache.hadoop.hbase.exceptions.MasterStoppedException", no_retry;
    /// Merge not possible.
    MergeRegion = "org.apache.hadoop.hbase.exceptions.MergeRegionException", no_retry;
    /// next_call_seq does not match.
    OutOfOrderScannerNext = "org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException", no_retry;
    /// Region moved; location is parsed from the text.
    RegionMoved = "org.apache.hadoop.hbase.exceptions.RegionMovedException", retry;
    /// Region is opening.
    RegionOpening = "org.apache.hadoop.hbase.exceptions.RegionOpeningException", retry;
    /// Request bigger than hbase.ipc.max.request.size (sent before reading the request when the version is known).
    RequestTooBig = "org.apache.hadoop.hbase.exceptions.RequestTooBigException", no_retry;
    /// Server scanner state is lost (I/O error).
    ScannerReset = "org.apache.hadoop.hbase.exceptions.ScannerResetException", no_retry;
    /// Operation time-out (sync, procedure).
    TimeoutIo = "org.apache.hadoop.hbase.exceptions.TimeoutIOException", retry;
    /// Region state not as expected.
    UnexpectedState = "org.apache.hadoop.hbase.exceptions.UnexpectedStateException", retry;
    /// No such coprocessor endpoint.
    UnknownProtocol = "org.apache.hadoop.hbase.exceptions.UnknownProtocolException", no_retry;
    /// Bad HFile.
    CorruptHFile = "org.apache.hadoop.hbase.io.hfile.CorruptHFileException", no_retry;
    /// Unknown authentication byte in the preamble.
    BadAuth = "org.apache.hadoop.hbase.ipc.BadAuthException", no_retry;
    /// Decommissioned host may not join.
    DecommissionedHostRejected = "org.apache.hadoop.hbase.ipc.DecommissionedHostRejectedException", retry;
    /// Header has no service name.
    EmptyServiceName = "org.apache.hadoop.hbase.ipc.EmptyServiceNameException", no_retry;
    /// Base of connection set-up failures.
    FatalConnection = "org.apache.hadoop.hbase.ipc.FatalConnectionException", no_retry;
    /// Security feature missing.
    SecurityNotEnabled = "org.apache.hadoop.hbase.ipc.SecurityNotEnabledException", retry;
    /// Server is starting.
    ServerNotRunningYet = "org.apache.hadoop.hbase.ipc.ServerNotRunningYetException", retry;
    /// Unknown service name in the header.
    UnknownService = "org.apache.hadoop.hbase.ipc.UnknownServiceException", no_retry;
    /// Codec class unknown.
    UnsupportedCellCodec = "org.apache.hadoop.hbase.ipc.UnsupportedCellCodecException", no_retry;
    /// Compression class unknown.
    UnsupportedCompressionCodec = "org.apache.hadoop.hbase.ipc.UnsupportedCompressionCodecException", no_retry;
    /// Cipher not supported.
    UnsupportedCrypto = "org.apache.hadoop.hbase.ipc.UnsupportedCryptoException", no_retry;
    /// Preamble version not 0.
    WrongVersion = "org.apache.hadoop.hbase.ipc.WrongVersionException", no_retry;
    /// Unknown procedure.
    NoSuchProcedure = "org.apache.hadoop.hbase.master.NoSuchProcedureException", retry;
    /// Invalid procedure submitted.
    BadProcedure = "org.apache.hadoop.hbase.procedure2.BadProcedureException", retry;
    /// Procedure aborted.
    ProcedureAborted = "org.apache.hadoop.hbase.procedure2.ProcedureAbortedException", retry;
    /// Carrier of a procedure's error (ForeignExceptionMessage).
    RemoteProcedure = "org.apache.hadoop.hbase.procedure2.RemoteProcedureException", retry;
    /// Region or table quota exceeded.
    QuotaExceeded = "org.apache.hadoop.hbase.quotas.QuotaExceededException", no_retry;
    /// Throttle quota reached; wait interval is parsed from the text.
    RpcThrottling = "org.apache.hadoop.hbase.quotas.RpcThrottlingException", retry;
    /// Space quota violation policy forbids the action; policy parsed from the text.
    SpaceLimiting = "org.apache.hadoop.hbase.quotas.SpaceLimitingException", no_retry;
    /// Old throttle class, removed use.
    Throttling = "org.apache.hadoop.hbase.quotas.ThrottlingException", no_retry;
    /// Scanner lease not found.
    Lease = "org.apache.hadoop.hbase.regionserver.LeaseException", no_retry;
    /// Unknown family.
    NoSuchColumnFamily = "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException", no_retry;
    /// Server aborted.
    RegionServerAborted = "org.apache.hadoop.hbase.regionserver.RegionServerAbortedException", retry;
    /// Server stopped.
    RegionServerStopped = "org.apache.hadoop.hbase.regionserver.RegionServerStoppedException", retry;
    /// Row larger than hbase.table.max.rowsize.
    RegionserverRowTooBig = "org.apache.hadoop.hbase.regionserver.RowTooBigException", no_retry;
    /// Row out of the region's range.
    WrongRegion = "org.apache.hadoop.hbase.regionserver.WrongRegionException", retry;
    /// The access controller refuses an action.
    AccessDenied = "org.apache.hadoop.hbase.security.AccessDeniedException", no_retry;
    /// Unknown visibility label.
    InvalidLabel = "org.apache.hadoop.hbase.security.visibility.InvalidLabelException", no_retry;
    /// Label exists.
    LabelAlreadyExists = "org.apache.hadoop.hbase.security.visibility.LabelAlreadyExistsException", no_retry;
    /// Labels not loaded.
    VisibilityControllerNotReady = "org.apache.hadoop.hbase.security.visibility.VisibilityControllerNotReadyException", retry;
    /// Snapshot data is incomplete.
    CorruptedSnapshot = "org.apache.hadoop.hbase.snapshot.CorruptedSnapshotException", no_retry;
    /// Base of snapshot errors, carries description.
    HBaseSnapshot = "org.apache.hadoop.hbase.snapshot.HBaseSnapshotException", no_retry;
    /// Restore failed.
    RestoreSnapshot = "org.apache.hadoop.hbase.snapshot.RestoreSnapshotException", no_retry;
    /// Snapshot could not be taken.
    SnapshotCreation = "org.apache.hadoop.hbase.snapshot.SnapshotCreationException", no_retry;
    /// Unknown snapshot.
    SnapshotDoesNotExist = "org.apache.hadoop.hbase.snapshot.SnapshotDoesNotExistException", no_retry;
    /// Snapshot exists.
    SnapshotExists = "org.apache.hadoop.hbase.snapshot.SnapshotExistsException", no_retry;
    /// Snapshot expired.
    SnapshotTtlExpired = "org.apache.hadoop.hbase.snapshot.SnapshotTTLExpiredException", no_retry;
    /// Only some regions open.
    TablePartiallyOpen = "org.apache.hadoop.hbase.snapshot.TablePartiallyOpenException", retry;
    /// Snapshot not in progress.
    UnknownSnapshot = "org.apache.hadoop.hbase.snapshot.UnknownSnapshotException", no_retry;
    /// Hadoop wrapper used to rebuild the class by reflection with a single String constructor.
    HadoopRemote = "org.apache.hadoop.ipc.RemoteException", retry;
    /// Authorization of the connection failed; fatal to connection.
    HadoopAccessControl = "org.apache.hadoop.security.AccessControlException", retry;
}
