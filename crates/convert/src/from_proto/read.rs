//! Gets and scans.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{ReadPoint, Rng};
use bytes::Bytes;
use model::read::Columns;
use model::{Get, MobRead, Scan, TimeRange};
use proto::pb;

use super::{Filters, filter, time_range};
use crate::error::Result;
use crate::{ConvertError, ConvertErrorKind};

const ISOLATION_LEVEL: &str = "_isolationlevel_";
const RAW: &str = "_raw_";

/// A Get.
///
/// # Errors
/// What HBase refuses: rows, time ranges, versions and filters that are not legal.
pub fn get(get: pb::Get) -> Result<Get> {
    get_of(get, &mut Filters::default())
}

/// A Get of a request with several, whose filters are `filters`.
///
/// # Errors
/// As [`get`]; and as [`Filters::take`].
pub fn get_of(get: pb::Get, filters: &mut Filters) -> Result<Get> {
    if get.closest_row_before() {
        // asynchbase knows a server without this operation by the class.
        return Err(ConvertError::new(
            ConvertErrorKind::RemovedOperation,
            "Get.closest_row_before",
            "Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking getClosestRowBefore removed in \
             hbase-2.0.0 replaced by reverse Scan.",
        ));
    }
    check_row(&get.row)?;
    Ok(Get {
        max_versions: versions(get.max_versions())?,
        store_limit: limit(get.store_limit),
        store_offset: limit(get.store_offset).unwrap_or(0),
        cache_blocks: get.cache_blocks(),
        existence_only: get.existence_only(),
        timeline: get.consistency() == pb::Consistency::Timeline,
        load_column_families_on_demand: get.load_column_families_on_demand,
        read_uncommitted: read_uncommitted(&get.attribute),
        mob: mob_read(&get.attribute),
        attributes: Vec::new(),
        query_metrics: get.query_metrics_enabled(),
        columns: columns(get.column),
        time_range: get.time_range.as_ref().map_or(Ok(TimeRange::ALL), time_range)?,
        family_time_ranges: family_time_ranges(get.cf_time_range)?,
        filter: get.filter.as_ref().map(|f| filters.take(f)).transpose()?,
        row: get.row,
    })
}

/// A Scan.
///
/// # Errors
/// What HBase refuses: rows, time ranges, versions and filters that are not legal.
pub fn scan(scan: pb::Scan) -> Result<Scan> {
    let start_row = scan.start_row.clone().unwrap_or_default();
    let stop_row = scan.stop_row.clone().unwrap_or_default();
    for (row, at, what) in [(&start_row, "Scan.start_row", "startRow"), (&stop_row, "Scan.stop_row", "stopRow")] {
        if row.len() > cell::MAX_ROW_LENGTH {
            let message = format!("{what}'s length must be less than or equal to {}", cell::MAX_ROW_LENGTH);
            return Err(ConvertError::illegal(at, message));
        }
    }
    // Clients before 2.0 mean a Get by equal rows and do not say whether the last one is included.
    let include_stop_row = scan.include_stop_row.unwrap_or_else(|| !start_row.is_empty() && start_row == stop_row);
    let filter = scan.filter.as_ref().map(filter).transpose()?;
    let batch = limit(scan.batch_size).filter(|b| *b > 0);
    if batch.is_some() && filter.as_ref().is_some_and(|f| has_filter_row(f, scan.reversed())) {
        return Err(ConvertError::new(
            ConvertErrorKind::IncompatibleFilter,
            "Scan.filter",
            "Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow",
        ));
    }
    #[allow(deprecated, reason = "clients before 2.0 send it")]
    let small = scan.small.unwrap_or(false);
    let pread = small || scan.read_type() == pb::scan::ReadType::Pread;
    Ok(Scan {
        include_start_row: scan.include_start_row(),
        include_stop_row,
        // Java's negative numbers of versions are as good as none
        max_versions: if scan.max_versions() > i32::MAX as u32 { 0 } else { scan.max_versions() },
        store_limit: limit(scan.store_limit),
        store_offset: limit(scan.store_offset).unwrap_or(0),
        batch,
        max_result_size: scan.max_result_size.filter(|s| *s > 0 && i64::try_from(*s).is_ok()),
        reversed: scan.reversed(),
        raw: attribute(&scan.attribute, RAW).is_some_and(|v| v.first().is_some_and(|b| *b != 0)),
        cache_blocks: scan.cache_blocks(),
        load_column_families_on_demand: scan.load_column_families_on_demand,
        allow_partial_results: scan.allow_partial_results(),
        need_cursor: scan.need_cursor_result(),
        read_uncommitted: read_uncommitted(&scan.attribute),
        read_point: scan.mvcc_read_point.filter(|p| *p > 0).map(ReadPoint),
        pread,
        is_get: false,
        mob: mob_read(&scan.attribute),
        timeline: scan.consistency() == pb::Consistency::Timeline,
        attributes: Vec::new(),
        query_metrics: scan.query_metrics_enabled(),
        time_range: scan.time_range.as_ref().map_or(Ok(TimeRange::ALL), time_range)?,
        family_time_ranges: family_time_ranges(scan.cf_time_range)?,
        columns: columns(scan.column),
        filter: filter.map(Arc::new),
        start_row,
        stop_row,
    })
}

fn has_filter_row(filter: &filter::Filter, reversed: bool) -> bool {
    filter.evaluator(reversed, &Arc::new(Rng::seeded(0))).has_filter_row()
}

/// A row that is to be read or written.
///
/// # Errors
/// It is empty or too long.
pub fn check_row(row: &[u8]) -> Result<()> {
    if row.is_empty() {
        return Err(ConvertError::illegal("row", "Row length is 0"));
    }
    if row.len() > cell::MAX_ROW_LENGTH {
        let message = format!("Row length {} is > {}", row.len(), cell::MAX_ROW_LENGTH);
        return Err(ConvertError::illegal("row", message));
    }
    Ok(())
}

pub(super) fn attribute<'a>(attributes: &'a [pb::NameBytesPair], name: &str) -> Option<&'a Bytes> {
    attributes.iter().find(|a| a.name == name).and_then(|a| a.value.as_ref())
}

/// Follows: `MobUtils#isRawMobScan` and its neighbours: one byte, not zero; anything else says no.
fn mob_read(attributes: &[pb::NameBytesPair]) -> MobRead {
    let flag = |name| attribute(attributes, name).is_some_and(|v| matches!(v[..], [b] if b != 0));
    MobRead {
        raw: flag("hbase.mob.scan.raw"),
        references_only: flag("hbase.mob.scan.ref.only"),
        cache_blocks: flag("hbase.mob.cache.blocks"),
        empty_on_miss: flag("empty.value.on.mobcell.miss"),
    }
}

fn read_uncommitted(attributes: &[pb::NameBytesPair]) -> bool {
    attribute(attributes, ISOLATION_LEVEL).is_some_and(|v| v.first() == Some(&1))
}

/// Versions travel unsigned, but HBase's are Java's `int`.
fn versions(value: u32) -> Result<u32> {
    if value == 0 || value > i32::MAX as u32 {
        let message = "maxVersions must be positive";
        return Err(ConvertError::new(ConvertErrorKind::IllegalVersions, "Get.max_versions", message));
    }
    Ok(value)
}

/// A limit that is not there or negative (as Java reads it) is none.
fn limit(value: Option<u32>) -> Option<u32> {
    value.filter(|v| *v <= i32::MAX as u32)
}

fn columns(columns: Vec<pb::Column>) -> Columns {
    let mut out = Columns::new();
    for column in columns {
        let whole_family = column.qualifier.is_empty();
        match out.entry(column.family) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(column.qualifier);
            }
            // A family asked for as a whole and by qualifier: the later word counts, as with addFamily and addColumn.
            std::collections::btree_map::Entry::Occupied(mut entry) if whole_family => entry.get_mut().clear(),
            std::collections::btree_map::Entry::Occupied(mut entry) => entry.get_mut().extend(column.qualifier),
        }
    }
    for qualifiers in out.values_mut() {
        qualifiers.sort_unstable();
        qualifiers.dedup();
    }
    out
}

fn family_time_ranges(ranges: Vec<pb::ColumnFamilyTimeRange>) -> Result<BTreeMap<Bytes, TimeRange>> {
    ranges.into_iter().map(|r| Ok((r.column_family, time_range(&r.time_range)?))).collect()
}
