//! Gets and scans, as a client sends them.

use model::read::Columns;
use model::{Get, MobRead, Scan, TimeRange};
use proto::pb;

use super::{filter, name_bytes, time_range};

/// A Get.
pub fn get(get: &Get) -> pb::Get {
    let mut attribute = attributes(&get.attributes, get.mob);
    if get.read_uncommitted {
        attribute.push(name_bytes("_isolationlevel_", &[1u8][..]));
    }
    pb::Get {
        row: get.row.clone(),
        column: columns(&get.columns),
        attribute,
        filter: get.filter.as_deref().map(filter),
        time_range: Some(time_range(get.time_range)),
        max_versions: Some(get.max_versions),
        cache_blocks: Some(get.cache_blocks),
        store_limit: get.store_limit,
        store_offset: (get.store_offset > 0).then_some(get.store_offset),
        existence_only: get.existence_only.then_some(true),
        closest_row_before: None,
        consistency: get.timeline.then_some(pb::Consistency::Timeline.into()),
        cf_time_range: family_time_ranges(&get.family_time_ranges),
        load_column_families_on_demand: get.load_column_families_on_demand,
        query_metrics_enabled: Some(get.query_metrics),
    }
}

/// A Scan.
pub fn scan(scan: &Scan) -> pb::Scan {
    let mut attribute = attributes(&scan.attributes, scan.mob);
    if scan.raw {
        attribute.push(name_bytes("_raw_", &[0xFFu8][..]));
    }
    if scan.read_uncommitted {
        attribute.push(name_bytes("_isolationlevel_", &[1u8][..]));
    }
    let row = |row: &bytes::Bytes| (!row.is_empty()).then(|| row.clone());
    pb::Scan {
        column: columns(&scan.columns),
        attribute,
        start_row: row(&scan.start_row),
        stop_row: row(&scan.stop_row),
        filter: scan.filter.as_deref().map(filter),
        time_range: Some(time_range(scan.time_range)),
        max_versions: Some(scan.max_versions),
        cache_blocks: Some(scan.cache_blocks),
        batch_size: scan.batch,
        max_result_size: scan.max_result_size,
        store_limit: scan.store_limit,
        store_offset: (scan.store_offset > 0).then_some(scan.store_offset),
        load_column_families_on_demand: scan.load_column_families_on_demand,
        reversed: scan.reversed.then_some(true),
        allow_partial_results: scan.allow_partial_results.then_some(true),
        cf_time_range: family_time_ranges(&scan.family_time_ranges),
        mvcc_read_point: scan.read_point.map(|p| p.0),
        include_start_row: (!scan.include_start_row).then_some(false),
        include_stop_row: Some(scan.include_stop_row),
        read_type: scan.pread.then_some(pb::scan::ReadType::Pread.into()),
        consistency: scan.timeline.then_some(pb::Consistency::Timeline.into()),
        need_cursor_result: scan.need_cursor.then_some(true),
        query_metrics_enabled: Some(scan.query_metrics),
        ..pb::Scan::default()
    }
}

/// What the client attaches, and what it says of MOB files.
fn attributes(given: &[(String, bytes::Bytes)], mob: MobRead) -> Vec<pb::NameBytesPair> {
    let mut attributes: Vec<_> = given.iter().map(|(name, value)| name_bytes(name, value.clone())).collect();
    let flags = [
        ("hbase.mob.scan.raw", mob.raw),
        ("hbase.mob.scan.ref.only", mob.references_only),
        ("hbase.mob.cache.blocks", mob.cache_blocks),
        ("empty.value.on.mobcell.miss", mob.empty_on_miss),
    ];
    attributes.extend(flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name_bytes(name, &[0xFFu8][..])));
    attributes
}

fn columns(columns: &Columns) -> Vec<pb::Column> {
    columns.iter().map(|(f, q)| pb::Column { family: f.clone(), qualifier: q.clone() }).collect()
}

fn family_time_ranges(ranges: &std::collections::BTreeMap<bytes::Bytes, TimeRange>) -> Vec<pb::ColumnFamilyTimeRange> {
    let wire = |(f, r): (&bytes::Bytes, &TimeRange)| pb::ColumnFamilyTimeRange {
        column_family: f.clone(),
        time_range: time_range(*r),
    };
    ranges.iter().map(wire).collect()
}
