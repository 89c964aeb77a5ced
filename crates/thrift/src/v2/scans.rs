//! Scans. Follows: `ThriftUtilities#scanFromThrift`.

use super::reads;
use super::types::*;
use crate::fault::Outcome;
use client::ScanOptions;
use model::Scan;

/// The scan, and how it travels: `options` where it says nothing.
pub(super) fn scan(from: TScan, mut options: ScanOptions) -> Outcome<(Scan, ScanOptions)> {
    let mut scan = Scan {
        start_row: from.start_row.unwrap_or_default(),
        stop_row: from.stop_row.unwrap_or_default(),
        columns: reads::columns(from.columns),
        filter: reads::filter(from.filter_string, from.filter_bytes)?,
        attributes: reads::attributes(from.attributes),
        reversed: from.reversed.unwrap_or_default(),
        cache_blocks: from.cache_blocks.unwrap_or(true),
        timeline: from.consistency == Some(TConsistency::TIMELINE),
        pread: from.read_type == Some(TReadType::PREAD),
        ..Scan::default()
    };
    reads::authorizations(from.authorizations, &mut scan.attributes);
    if let Some(asked) = from.max_versions {
        scan.max_versions = reads::max_versions(asked)?;
    }
    if let Some(range) = from.time_range {
        scan.time_range = reads::time_range(range.min_stamp, range.max_stamp)?;
    }
    for (family, range) in from.col_fam_time_range_map.into_iter().flatten() {
        scan.family_time_ranges.insert(family, reads::time_range(range.min_stamp, range.max_stamp)?);
    }
    scan.batch = batch(from.batch_size);
    if let Some(caching) = from.caching.and_then(|rows| u32::try_from(rows).ok()).filter(|rows| *rows > 0) {
        options.caching = caching;
    }
    options.limit = from.limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0);
    Ok((scan, options))
}

/// Cells of a row at once; whether the filter allows that, the server says.
pub(crate) fn batch(asked: Option<i32>) -> Option<u32> {
    asked.and_then(|cells| u32::try_from(cells).ok()).filter(|cells| *cells > 0)
}
