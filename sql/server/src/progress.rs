//! How far the scans of a query are, in regions: for `pg_stat_progress_query`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::aggregate::HBaseAggregateExec;
use crate::scan::{HBaseScanExec, ScanSpec};
use crate::session::Session;
use crate::top_rows::HBaseTopRowsExec;

/// Of one scan: what its partitions have done together.
#[derive(Debug)]
pub struct Progress {
    /// The relation's name.
    pub relation: String,
    /// Whether the servers aggregate or sort, so that few rows come.
    pub is_aggregate: bool,
    /// Regions that are to be read.
    pub regions_total: u64,
    regions_done: AtomicU64,
    rows: AtomicU64,
}

impl Progress {
    /// Of a scan that has not begun.
    pub fn new(spec: &ScanSpec, is_aggregate: bool) -> Arc<Progress> {
        Arc::new(Progress {
            relation: spec.mapping.name.clone(),
            is_aggregate,
            regions_total: spec.regions.iter().map(|regions| regions.len() as u64).sum(),
            regions_done: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        })
    }

    /// Regions that are read to their ends.
    pub fn regions_done(&self) -> u64 {
        self.regions_done.load(Ordering::Relaxed)
    }

    /// Rows that came from the servers.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// One partition's part in it.
pub struct Part {
    progress: Arc<Progress>,
    /// First keys of its regions, in order.
    regions: Arc<[Bytes]>,
    is_reversed: bool,
    done: usize,
}

impl Part {
    /// Of a scan's partition that has not begun.
    pub fn new(progress: &Arc<Progress>, spec: &ScanSpec, partition: usize) -> Part {
        let regions = spec.regions.get(partition).cloned().unwrap_or_default();
        Part { progress: Arc::clone(progress), regions, is_reversed: spec.scan.reversed, done: 0 }
    }

    /// So many rows more have come, the last one of which is `row`.
    pub fn came_to(&mut self, row: &[u8], rows: usize) {
        self.progress.rows.fetch_add(rows as u64, Ordering::Relaxed);
        let begun = self.regions.partition_point(|start| **start <= *row);
        self.are_done(if self.is_reversed { self.regions.len() - begun } else { begun.saturating_sub(1) });
    }

    /// Another region has answered for all its rows.
    pub fn next_region(&mut self) {
        self.are_done((self.done + 1).min(self.regions.len()));
    }

    /// The last row has come, after so many more.
    pub fn end(&mut self, rows: usize) {
        self.progress.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.are_done(self.regions.len());
    }

    fn are_done(&mut self, done: usize) {
        // Rows may come again from a region that they came from before: what was said stands.
        if let Some(more) = done.checked_sub(self.done) {
            self.progress.regions_done.fetch_add(more as u64, Ordering::Relaxed);
            self.done = done;
        }
    }
}

/// Tells the session which scans its statement's plan has. The last rule: a plan that is changed has others.
#[derive(Debug)]
pub struct NoteScans;

impl PhysicalOptimizerRule for NoteScans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(session) = Session::current() else { return Ok(plan) };
        let mut scans = Vec::new();
        plan.apply(|node| {
            let scan = node.downcast_ref::<HBaseScanExec>().map(HBaseScanExec::progress);
            let aggregate = || node.downcast_ref::<HBaseAggregateExec>().map(HBaseAggregateExec::progress);
            let top_rows = || node.downcast_ref::<HBaseTopRowsExec>().map(HBaseTopRowsExec::progress);
            scans.extend(scan.or_else(aggregate).or_else(top_rows));
            Ok(TreeNodeRecursion::Continue)
        })?;
        session.reads(scans);
        Ok(plan)
    }

    fn name(&self) -> &str {
        "note_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(is_reversed: bool) -> Part {
        let progress = Arc::new(Progress {
            relation: "t".to_owned(),
            is_aggregate: false,
            regions_total: 3,
            regions_done: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        });
        let regions = ["", "g", "p"].map(|start| Bytes::from_static(start.as_bytes())).into();
        Part { progress, regions, is_reversed, done: 0 }
    }

    #[test]
    fn regions_are_done_when_rows_of_the_next_one_come() {
        for (is_reversed, rows) in [(false, ["a", "f", "g", "q"]), (true, ["z", "p", "ozz", "a"])] {
            let mut part = part(is_reversed);
            let done: Vec<u64> = rows
                .iter()
                .map(|row| {
                    part.came_to(row.as_bytes(), 10);
                    part.progress.regions_done()
                })
                .collect();
            assert_eq!(done, [0, 0, 1, 2], "reversed: {is_reversed}");
            part.end(1);
            assert_eq!((part.progress.regions_done(), part.progress.rows()), (3, 41));
        }
    }

    #[test]
    fn more_answers_than_regions_are_no_more_than_all() {
        let mut part = part(false);
        (0..5).for_each(|_| part.next_region());
        part.end(0);
        assert_eq!(part.progress.regions_done(), 3);
    }
}
