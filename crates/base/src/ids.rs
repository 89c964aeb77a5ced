//! Numbers that are all 64 bits wide and must never meet.

use std::fmt;

/// A region's sequence id: one for each log entry, strictly growing within a region, also its cells' MVCC number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SeqId(pub u64);

/// Cells with a sequence id at or below it are visible to a reader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReadPoint(pub u64);

impl ReadPoint {
    /// Sees everything, finished or not (READ_UNCOMMITTED).
    pub const ALL: ReadPoint = ReadPoint(u64::MAX);
}

/// Milliseconds since the Unix epoch; what HBase stamps cells with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    /// "Now, at the server": `HConstants.LATEST_TIMESTAMP`.
    pub const LATEST: TimestampMs = TimestampMs(i64::MAX);
}

impl fmt::Display for SeqId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TimestampMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
