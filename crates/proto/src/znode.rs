//! What lies in coordination nodes.
//!
//! A reading aid over [`crate::pb`], which has the rest too.

pub use crate::pb::{
    ClusterId, ClusterUp, DeprecatedTableState, LoadBalancerState, Master, MetaRegionServer, RegionNormalizerState,
    ReplicationHLogPosition, ReplicationPeer, ReplicationState, ServerName, SnapshotCleanupState, SplitLogTask,
    SwitchState, TableCf,
};
