//! What lies in files: logs, store files, descriptors, snapshots.
//!
//! A reading aid over [`crate::pb`], which has the rest too.

pub use crate::pb::{
    BulkLoadDescriptor, BytesBytesPair, ClusterId, ColumnFamilySchema, CompactionDescriptor, CryptoCipherMeta,
    FamilyScope, FileInfoProto, FileTrailerProto, FlushDescriptor, HBaseVersionFileContent, NameStringPair, Reference,
    RegionEventDescriptor, RegionInfo, ServerName, SnapshotDataManifest, SnapshotDescription, SnapshotFileInfo,
    SnapshotRegionManifest, StoreDescriptor, StoreFileEntry, StoreFileList, TableName, TableSchema, TableState,
    WalHeader, WalKey, WalTrailer, WrappedKey,
};
