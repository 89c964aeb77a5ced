//! Markers: entries that tell of flushes, compactions, region events and bulk loads. One cell of family METAFAMILY, whose qualifier
//! says what and whose value is a bare message. Follows `WALEdit`, `WALUtil`.

use base::SeqId;
use cell::{CellBuffer, CellRef, CellSpec, CellType};
use proto::{Message, pb};

/// The family of all markers.
pub const METAFAMILY: &[u8] = b"METAFAMILY";
const FLUSH: &[u8] = b"HBASE::FLUSH";
const COMPACTION: &[u8] = b"HBASE::COMPACTION";
const REGION_EVENT: &[u8] = b"HBASE::REGION_EVENT";
const BULK_LOAD: &[u8] = b"HBASE::BULK_LOAD";
const REPLICATION: &[u8] = b"HBASE::REPLICATION_MARKER";
/// Qualifier of an entry that only remembers the nonce in its key. HBase passes such a cell over, as any marker that
/// it does not know.
pub const NONCE: &[u8] = b"HBASE::NONCE";

/// A marker's message.
#[derive(Clone, Debug, PartialEq)]
pub enum Marker {
    /// A flush began, ended, failed or was not possible.
    Flush(pb::FlushDescriptor),
    /// A compaction replaced files.
    Compaction(pb::CompactionDescriptor),
    /// The region was opened or closed.
    RegionEvent(pb::RegionEventDescriptor),
    /// Files were loaded into the region.
    BulkLoad(pb::BulkLoadDescriptor),
    /// Replication's own.
    Replication(pb::ReplicationMarkerDescriptor),
}

/// Bytes in a marker's value that are no message.
#[derive(Debug, thiserror::Error)]
#[error("a marker {kind} cannot be read: {message}")]
pub struct BadMarker {
    kind: String,
    message: String,
}

/// The row of a region's markers: its start key, or one zero byte when that is empty.
pub fn row_for_region(start_key: &[u8]) -> &[u8] {
    if start_key.is_empty() { &[0] } else { start_key }
}

impl Marker {
    /// The marker in `cell`; `None` for data and for markers of a kind not known.
    ///
    /// # Errors
    /// When the value is not the message that the qualifier says.
    pub fn decode(cell: CellRef<'_>) -> Result<Option<Marker>, BadMarker> {
        if cell.family() != METAFAMILY {
            return Ok(None);
        }
        let (qualifier, value) = (cell.qualifier(), cell.value());
        let marker = if qualifier == FLUSH {
            pb::FlushDescriptor::decode(value).map(Marker::Flush)
        } else if qualifier == COMPACTION {
            pb::CompactionDescriptor::decode(value).map(Marker::Compaction)
        } else if qualifier.starts_with(REGION_EVENT) {
            pb::RegionEventDescriptor::decode(value).map(Marker::RegionEvent)
        } else if qualifier == BULK_LOAD {
            pb::BulkLoadDescriptor::decode(value).map(Marker::BulkLoad)
        } else if qualifier == REPLICATION {
            pb::ReplicationMarkerDescriptor::decode(value).map(Marker::Replication)
        } else {
            return Ok(None);
        };
        let kind = String::from_utf8_lossy(qualifier).into_owned();
        marker.map(Some).map_err(|e| BadMarker { kind, message: e.to_string() })
    }

    /// Appends the marker's cell to `out`; `row` is [`row_for_region`], `timestamp` is now.
    pub fn write(&self, row: &[u8], timestamp: i64, out: &mut CellBuffer) {
        let (qualifier, value): (&[u8], Vec<u8>) = match self {
            Marker::Flush(m) => (FLUSH, m.encode_to_vec()),
            Marker::Compaction(m) => (COMPACTION, m.encode_to_vec()),
            Marker::RegionEvent(m) => match m.event_type() {
                pb::region_event_descriptor::EventType::RegionOpen => {
                    (b"HBASE::REGION_EVENT::REGION_OPEN", m.encode_to_vec())
                }
                pb::region_event_descriptor::EventType::RegionClose => {
                    (b"HBASE::REGION_EVENT::REGION_CLOSE", m.encode_to_vec())
                }
            },
            Marker::BulkLoad(m) => (BULK_LOAD, m.encode_to_vec()),
            Marker::Replication(m) => (REPLICATION, m.encode_to_vec()),
        };
        let type_code = CellType::Put.code();
        let spec = CellSpec { row, family: METAFAMILY, qualifier, timestamp, type_code, value: &value, tags: b"" };
        out.push_spec(&spec, SeqId(0));
    }
}
