//! Reads as values: [`Get`] and [`Scan`]. A Get is a one-row scan ([`Get::to_scan`]).

use base::ReadPoint;
use bytes::Bytes;
use filter::Filter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Timestamps in `min..max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Inclusive.
    pub min: i64,
    /// Exclusive.
    pub max: i64,
}

impl TimeRange {
    /// Every timestamp.
    pub const ALL: TimeRange = TimeRange { min: 0, max: i64::MAX };

    /// Whether `timestamp` is inside. The full range also holds `i64::MAX` itself.
    #[inline]
    pub fn contains(&self, timestamp: i64) -> bool {
        timestamp >= self.min && (timestamp < self.max || self.max == i64::MAX)
    }

    /// Whether no timestamp is excluded.
    pub fn is_all(&self) -> bool {
        self.min <= 0 && self.max == i64::MAX
    }
}

impl Default for TimeRange {
    fn default() -> Self {
        TimeRange::ALL
    }
}

/// Columns asked for: family to qualifiers in byte order; no qualifiers means the whole family; an empty map means all.
pub type Columns = BTreeMap<Bytes, Vec<Bytes>>;

/// What to read of one row. Defaults are HBase's.
#[derive(Clone, Debug, PartialEq)]
pub struct Get {
    /// The row.
    pub row: Bytes,
    /// Columns; empty for all.
    pub columns: Columns,
    /// Newest versions per column.
    pub max_versions: u32,
    /// Timestamps wanted.
    pub time_range: TimeRange,
    /// Overrides `time_range` for a family.
    pub family_time_ranges: BTreeMap<Bytes, TimeRange>,
    /// Cells per family to return at most.
    pub store_limit: Option<u32>,
    /// Cells per family to pass over first.
    pub store_offset: u32,
    /// Filter.
    pub filter: Option<Arc<Filter>>,
    /// Whether blocks read go to the cache.
    pub cache_blocks: bool,
    /// Only whether something is there.
    pub existence_only: bool,
    /// Read filter-essential families first; `None` leaves it to the filter and the server's default.
    pub load_column_families_on_demand: Option<bool>,
    /// TIMELINE consistency was asked for (a primary answers either way).
    pub timeline: bool,
    /// See uncommitted writes.
    pub read_uncommitted: bool,
    /// Values in MOB files.
    pub mob: MobRead,
    /// What else the client attaches. A server reads what it knows of them into the fields above, and keeps none here.
    pub attributes: Vec<(String, Bytes)>,
    /// Whether the answer is to say what it cost.
    pub query_metrics: bool,
}

impl Get {
    /// Everything of `row`, newest version.
    pub fn new(row: impl Into<Bytes>) -> Get {
        Get {
            row: row.into(),
            columns: Columns::new(),
            max_versions: 1,
            time_range: TimeRange::ALL,
            family_time_ranges: BTreeMap::new(),
            store_limit: None,
            store_offset: 0,
            filter: None,
            cache_blocks: true,
            existence_only: false,
            load_column_families_on_demand: None,
            timeline: false,
            read_uncommitted: false,
            mob: MobRead::default(),
            attributes: Vec::new(),
            query_metrics: false,
        }
    }

    /// The scan of just this row.
    pub fn to_scan(&self) -> Scan {
        Scan {
            start_row: self.row.clone(),
            stop_row: self.row.clone(),
            include_stop_row: true,
            columns: self.columns.clone(),
            max_versions: self.max_versions,
            time_range: self.time_range,
            family_time_ranges: self.family_time_ranges.clone(),
            store_limit: self.store_limit,
            store_offset: self.store_offset,
            filter: self.filter.clone(),
            cache_blocks: self.cache_blocks,
            load_column_families_on_demand: self.load_column_families_on_demand,
            read_uncommitted: self.read_uncommitted,
            mob: self.mob,
            is_get: true,
            ..Scan::default()
        }
    }
}

/// How values in MOB files are read: what a read's attributes say of them. Follows: `MobConstants`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MobRead {
    /// The references themselves (`hbase.mob.scan.raw`).
    pub raw: bool,
    /// Only cells that are references (`hbase.mob.scan.ref.only`).
    pub references_only: bool,
    /// Whether blocks of MOB files go to the cache (`hbase.mob.cache.blocks`).
    pub cache_blocks: bool,
    /// A MOB file that is not there gives an empty value rather than an error (`empty.value.on.mobcell.miss`).
    pub empty_on_miss: bool,
}

/// What to read of a range of rows. Defaults are HBase's.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// First row (for a reversed scan the greatest); empty is the table's end in that direction.
    pub start_row: Bytes,
    /// Whether `start_row` itself is wanted.
    pub include_start_row: bool,
    /// Last row; empty is the table's other end.
    pub stop_row: Bytes,
    /// Whether `stop_row` itself is wanted.
    pub include_stop_row: bool,
    /// Columns; empty for all.
    pub columns: Columns,
    /// Newest versions per column.
    pub max_versions: u32,
    /// Timestamps wanted.
    pub time_range: TimeRange,
    /// Overrides `time_range` for a family.
    pub family_time_ranges: BTreeMap<Bytes, TimeRange>,
    /// Cells per family and row to return at most.
    pub store_limit: Option<u32>,
    /// Cells per family and row to pass over first.
    pub store_offset: u32,
    /// Cells per result; `None` for whole rows.
    pub batch: Option<u32>,
    /// Bytes per reply that the client wants at most; `None` leaves it to the server.
    pub max_result_size: Option<u64>,
    /// Rows descending.
    pub reversed: bool,
    /// Delete markers and masked cells too.
    pub raw: bool,
    /// Filter.
    pub filter: Option<Arc<Filter>>,
    /// Whether blocks read go to the cache.
    pub cache_blocks: bool,
    /// Read filter-essential families first; `None` leaves it to the filter and the server's default.
    pub load_column_families_on_demand: Option<bool>,
    /// Rows may be cut between replies even if the client did not say it handles partial results.
    pub allow_partial_results: bool,
    /// Results of a heartbeat carry the row reached.
    pub need_cursor: bool,
    /// See uncommitted writes.
    pub read_uncommitted: bool,
    /// Read at this point (a client that reopens a region in the middle of a row).
    pub read_point: Option<ReadPoint>,
    /// Random reads rather than streaming (`ReadType.PREAD`, small scans).
    pub pread: bool,
    /// Made from a Get.
    pub is_get: bool,
    /// Values in MOB files.
    pub mob: MobRead,
    /// TIMELINE consistency was asked for: replicas may answer.
    pub timeline: bool,
    /// What else the client attaches. A server reads what it knows of them into the fields above, and keeps none here.
    pub attributes: Vec<(String, Bytes)>,
    /// Whether each result is to say what it cost.
    pub query_metrics: bool,
}

impl Default for Scan {
    fn default() -> Self {
        Scan {
            start_row: Bytes::new(),
            include_start_row: true,
            stop_row: Bytes::new(),
            include_stop_row: false,
            columns: Columns::new(),
            max_versions: 1,
            time_range: TimeRange::ALL,
            family_time_ranges: BTreeMap::new(),
            store_limit: None,
            store_offset: 0,
            batch: None,
            max_result_size: None,
            reversed: false,
            raw: false,
            filter: None,
            cache_blocks: true,
            load_column_families_on_demand: None,
            allow_partial_results: false,
            need_cursor: false,
            read_uncommitted: false,
            read_point: None,
            pread: false,
            is_get: false,
            mob: MobRead::default(),
            timeline: false,
            attributes: Vec::new(),
            query_metrics: false,
        }
    }
}

impl Scan {
    /// The time range that counts for `family`.
    pub fn time_range_of(&self, family: &[u8]) -> TimeRange {
        self.family_time_ranges.get(family).copied().unwrap_or(self.time_range)
    }
}
