//! Family `state` of `master:store`: where HBase's master keeps its switches. Either kind of master finds there what the other has set.
//!
//! ```text
//! load_balancer_on                  state:d   PBUF LoadBalancerState
//! split_enabled, merge_enabled      state:d   PBUF SwitchState
//! region_normalizer_on              state:d   PBUF RegionNormalizerState
//! snapshot_cleanup_enabled          state:d   PBUF SnapshotCleanupState
//! replication_peer_modification_on  state:d   PBUF ReplicationPeerModificationState
//! ```
//!
//! Each message has one field, a bool of number 1. Follows: `MasterStateStore`, `BooleanStateStore`.

use crate::master_store::contents::{QUALIFIER, Values};
use crate::master_store::{self, StoreError};
use base::{SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::Volume;
use proto::{Message, magic, pb};

const FAMILY: &str = "state";

/// A value by its row, with its timestamp.
pub(crate) type States = Values;

/// Makes `states` all that the family has; durable when it returns. Two small files' worth of calls.
///
/// # Errors
/// The volume's; the family has what it had, or this.
pub(crate) fn write(volume: &dyn Volume, states: &States) -> Result<(), StoreError> {
    let (info, region) = master_store::region()?;
    let mut cells = CellBuffer::new();
    for (row, (stamp, value)) in states {
        let type_code = CellType::Put.code();
        let (family, timestamp) = (FAMILY.as_bytes(), stamp.0);
        let spec = CellSpec { row, family, qualifier: QUALIFIER, timestamp, type_code, value, tags: &[] };
        cells.push_spec(&spec, SeqId(0));
    }
    let newest = states.values().map(|(stamp, _)| *stamp).max().unwrap_or(TimestampMs(0));
    let name = master_store::add_file(volume, &region, FAMILY, newest, &cells)?;
    master_store::archive_files(volume, &info, FAMILY, Some(&name))
}

/// A switch as HBase writes it: each of its messages has this form.
pub(crate) fn encode(on: bool) -> Vec<u8> {
    magic::encode(&pb::SwitchState { enabled: Some(on) }).to_vec()
}

/// The same read back; `None` where it is something else.
pub(crate) fn decode(value: &[u8]) -> Option<bool> {
    pb::SwitchState::decode(magic::strip_slice(value)?).ok()?.enabled
}
