//! What travels between processes: headers of the protocol and the messages of the services.
//!
//! A reading aid over [`crate::pb`], which has the rest too.

pub use crate::pb::{
    Action, BulkLoadHFileRequest, BulkLoadHFileResponse, CellBlockMeta, Column, Comparator, CompareType, Condition,
    ConnectionHeader, ConnectionHeaderResponse, CoprocessorServiceCall, CoprocessorServiceRequest,
    CoprocessorServiceResponse, CoprocessorServiceResult, Cursor, ExceptionResponse, Filter, Get, GetRequest,
    GetResponse, MultiRegionLoadStats, MultiRequest, MultiResponse, MutateRequest, MutateResponse, MutationProto,
    NameBytesPair, NameInt64Pair, NameStringPair, RegionAction, RegionActionResult, RegionLoadStats, RegionSpecifier,
    RequestHeader, ResponseHeader, Result, ResultOrException, RpctInfo, Scan, ScanMetrics, ScanRequest, ScanResponse,
    SecurityPreamableResponse, TimeRange, UserInformation, VersionInfo,
};
