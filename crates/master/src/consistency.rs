//! Whether the regions that hbase:meta has of a table follow each other without holes and overlaps, and what mends it.
//! The catalog janitor looks, an operator has it mended. Follows: `ReportMakingVisitor`, `MetaFixer`.

use crate::cluster::{Cluster, RegionNode, RegionState, TableState};
use crate::locks::LockSet;
use crate::master::Master;
use crate::procedure::region::merge::{self, further};
use crate::procedure::{Caller, table_locks};
use crate::{ErrorKind, Result, meta};
use bytes::Bytes;
use model::{RegionInfo, TableName};
use std::collections::HashSet;
use std::sync::Arc;

/// Rows of a table that no region has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The table.
    pub table: TableName,
    /// Its first row.
    pub start: Bytes,
    /// The row after it; empty for the end of the table.
    pub end: Bytes,
}

/// What a run of the catalog janitor found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogReport {
    /// In the order of tables and rows.
    pub holes: Vec<Hole>,
    /// Pairs of regions that have rows in common, in the order of tables and rows.
    pub overlaps: Vec<(RegionInfo, RegionInfo)>,
    /// Rows of hbase:meta that tell of no region: their `info:regioninfo` is missing or cannot be read. Printable.
    pub empty_region_infos: Vec<String>,
}

/// Whether two regions of a table have rows in common.
pub(crate) fn overlap(a: &RegionInfo, b: &RegionInfo) -> bool {
    let begins_before_end = |a: &RegionInfo, b: &RegionInfo| b.end_key.is_empty() || a.start_key < b.end_key;
    begins_before_end(a, b) && begins_before_end(b, a)
}

/// Looks at every table that is not disabled.
pub(crate) fn check(cluster: &Cluster) -> CatalogReport {
    let mut report = CatalogReport::default();
    for (table, state) in cluster.tables() {
        if !matches!(state, TableState::Disabled | TableState::Disabling) && !table.name.is_meta() {
            check_table(cluster, &table.name, &mut report);
        }
    }
    report
}

fn check_table(cluster: &Cluster, table: &TableName, report: &mut CatalogReport) {
    let mut hole = |start: &Bytes, end: &Bytes| {
        report.holes.push(Hole { table: table.clone(), start: start.clone(), end: end.clone() });
    };
    // The region before, and the one of those before that reaches furthest.
    let mut seen: Option<(&RegionInfo, &RegionInfo)> = None;
    for info in cluster.regions_of(table).filter(|node| node.is_live()).map(|node| &node.info) {
        match seen {
            None if info.start_key.is_empty() => {}
            None => hole(&Bytes::new(), &info.start_key),
            Some((previous, _)) if overlap(previous, info) => {
                report.overlaps.push((previous.clone(), info.clone()));
            }
            Some((_, furthest)) if overlap(furthest, info) => {
                report.overlaps.push((furthest.clone(), info.clone()));
            }
            Some((_, furthest)) if furthest.end_key != info.start_key => hole(&furthest.end_key, &info.start_key),
            Some(_) => {}
        }
        seen = Some((info, seen.map_or(info, |(_, furthest)| further(furthest, info))));
    }
    match seen {
        // hbase:meta has lost all of it.
        None => hole(&Bytes::new(), &Bytes::new()),
        Some((_, furthest)) if !furthest.end_key.is_empty() => hole(&furthest.end_key, &Bytes::new()),
        Some(_) => {}
    }
}

/// The merges that take overlaps away, each of at most so many regions.
pub(crate) fn merges(overlaps: &[(RegionInfo, RegionInfo)], most_regions: usize) -> Vec<Vec<RegionInfo>> {
    let mut merges: Vec<Vec<RegionInfo>> = Vec::new();
    // A region is in one merge only: the second would fail.
    let mut taken = HashSet::new();
    let mut furthest: Option<&RegionInfo> = None;
    for (first, second) in overlaps {
        let goes_on = furthest.is_some_and(|furthest| {
            furthest.table == first.table && (overlap(furthest, first) || overlap(furthest, second))
        });
        if !goes_on || merges.last().is_none_or(|merge| merge.len() >= most_regions) {
            merges.push(Vec::new());
            furthest = None;
        }
        for info in [first, second] {
            if taken.insert(Arc::clone(info.encoded_name()))
                && let Some(merge) = merges.last_mut()
            {
                merge.push(info.clone());
            }
            furthest = Some(furthest.map_or(info, |furthest| further(furthest, info)));
        }
    }
    merges.retain(|merge| merge.len() > 1);
    merges
}

/// Fills the holes and merges the overlaps that the janitor's last run found; nothing before its first.
///
/// # Errors
/// What the volume or hbase:meta say; what was mended stays mended.
pub(crate) async fn fix(master: &Arc<Master>) -> Result<()> {
    let report = master.catalog_report.lock().clone();
    let Some(report) = report else {
        tracing::info!("the catalog janitor has made no report yet; run 'catalogjanitor_run' in the shell first");
        return Ok(());
    };
    for hole in &report.holes {
        fill(master, hole).await?;
    }
    let most_regions = master.settings().fix_max_merge_count;
    for merge in merges(&report.overlaps, most_regions) {
        let names: Vec<String> = merge.iter().map(|info| info.encoded_name().to_string()).collect();
        match merge::submit(master, &names, &Caller::default()).await {
            Err(error) if matches!(error.kind, ErrorKind::MergeRegion | ErrorKind::UnknownRegion) => {
                tracing::warn!(%error, regions = ?names, "overlapping regions cannot be merged");
            }
            submitted => drop(submitted?),
        }
    }
    Ok(())
}

/// An empty region in the place of a hole, if it is still there. Its directory comes first: what is written to a region
/// without one is lost when the log is split.
async fn fill(master: &Arc<Master>, hole: &Hole) -> Result<()> {
    let locks = master.procedures.locks.lock(table_locks(&hole.table)).await;
    fill_locked(master, hole, &locks).await
}

/// Whether the hole is there now.
pub(crate) fn is_there(master: &Master, hole: &Hole) -> bool {
    let mut now = CatalogReport::default();
    check_table(&master.cluster.read(), &hole.table, &mut now);
    now.holes.contains(hole)
}

/// As [`fill`], under the table's locks.
///
/// # Errors
/// What the volume or hbase:meta say.
pub(crate) async fn fill_locked(master: &Arc<Master>, hole: &Hole, _locks: &LockSet) -> Result<()> {
    if !is_there(master, hole) {
        return Ok(());
    }
    let table = master.tables.must_exist(&hole.table)?;
    let known = master.tables.all_regions(&hole.table);
    let id = master.catalog.next_region_id(&known);
    let info = RegionInfo::new(hole.table.clone(), hole.start.clone(), hole.end.clone(), id);
    let made = info.clone();
    let make = move |volume: &dyn fs::Volume| {
        rootdir::create_region_dir(volume, &made, &table)?;
        Ok(volume.sync_dir(&rootdir::table_dir(&made.table))?)
    };
    master.files.run(make).await?;
    let stamp = master.catalog.stamp();
    master.catalog.write(vec![meta::put_region(&info, RegionState::Closed, stamp)]).await?;
    let node = RegionNode::new(info.clone(), RegionState::Closed, master.clock.now_ms());
    master.cluster.write().put_region(node);
    tracing::info!(region = %info.name_string(), "a region fills a hole of hbase:meta");
    master.assignment.assign(vec![info]).await
}
