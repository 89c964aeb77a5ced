//! Sets up a read: pins each asked store's picture and opens what of it can have something to say ([`super::selection`]).
//!
//! Pinning and the read point go together: if no store's picture has changed between pinning it and taking the read
//! point, the pinned cells include all that the read point shows, and nothing in the files was dropped that it should
//! show. So no reader has to be known to anybody to see what it should. (That open scanners are, serves only to move them: [`super::update_readers`].)

use super::matcher::Matcher;
use super::rows::RowReader;
use super::selection::{Selection, Starts, is_single_row, sorted_columns};
use super::source::Source;
use super::store_scanner::{RowLimits, StoreScanner};
use crate::core::RegionCore;
use crate::error::{RegionError, Result};
use crate::mob::read::MobReads;
use crate::store::{Store, StoreView};
use base::ReadPoint;
use bytes::Bytes;
use hfile::Residency;
use model::Scan;
use std::sync::Arc;

/// One family of a read.
pub(super) struct Asked<'a> {
    pub store: &'a Store,
    pub columns: Option<Arc<[Bytes]>>,
    pub view: Arc<StoreView>,
}

/// Reads from a region.
#[derive(Clone, Copy)]
pub(crate) struct RegionReader<'r> {
    pub(super) core: &'r RegionCore,
}

impl<'r> RegionReader<'r> {
    pub(crate) fn new(core: &'r RegionCore) -> Self {
        RegionReader { core }
    }

    /// A reader over the rows of `scan`. `read_point` overrides what the scan asks for.
    pub(crate) fn open_rows(
        &self,
        scan: &Scan,
        read_point: Option<ReadPoint>,
        residency: Residency,
    ) -> Result<RowReader> {
        let mut asked = self.asked(scan)?;
        let current = loop {
            let current = self.core.read_point();
            let mut changed = false;
            for ask in &mut asked {
                if !ask.store.is_current(&ask.view) {
                    ask.view = ask.store.view();
                    changed = true;
                }
            }
            if !changed {
                break current;
            }
        };
        let own =
            if scan.read_uncommitted { ReadPoint::ALL } else { self.resumed(scan, &asked, current).unwrap_or(current) };
        let read_point = read_point.unwrap_or(own);
        let now = self.core.env.clock.now_ms().0;
        let filter = scan.filter.as_ref().map(|filter| filter.evaluator(scan.reversed, &self.core.env.rng));
        let on_demand =
            filter.is_some() && scan.load_column_families_on_demand.unwrap_or(self.core.settings.on_demand_families);
        let (mut essential, mut joined) = (Vec::with_capacity(asked.len()), Vec::new());
        for ask in &asked {
            let late = on_demand && filter.as_ref().is_some_and(|filter| !filter.is_family_essential(&ask.store.name));
            let scanner = self.open_store(scan, ask, read_point, now, residency)?;
            if late { joined.push(scanner) } else { essential.push(scanner) }
        }
        Ok(RowReader::new(self.core, scan, read_point, filter, essential, joined))
    }

    /// The read point that a client brings from a scanner it has lost, if it can still be served. It is older than what
    /// flushes and compactions keep, or of an earlier opening of the region, when rows were written again since: they would
    /// be missed. HBase misses them; here such a scan goes on with what is there now. (A row of which the client has a
    /// part may then go on with a later state.) One that is ahead is of an earlier opening too, whose last ids were lost with the end of its log:
    /// they are those of writes now that are not done. Follows otherwise: `RegionScannerImpl`'s constructor.
    fn resumed(&self, scan: &Scan, asked: &[Asked<'_>], current: ReadPoint) -> Option<ReadPoint> {
        let of_this_opening = |point: &ReadPoint| point.0 + 1 >= self.core.open_seq_id.0 && *point <= current;
        let whole = |point: &ReadPoint| asked.iter().all(|ask| ask.view.whole_from <= *point);
        scan.read_point.filter(|point| of_this_opening(point) && whole(point))
    }

    fn asked<'a>(&'a self, scan: &Scan) -> Result<Vec<Asked<'a>>> {
        if scan.columns.is_empty() {
            return Ok(self
                .core
                .stores
                .iter()
                .map(|store| Asked { store, columns: None, view: store.view() })
                .collect());
        }
        let mut asked = Vec::with_capacity(scan.columns.len());
        // A family that is not there is worse than a raw scan's columns, whichever comes first.
        if let Some(family) = scan.columns.keys().find(|family| self.core.store(family).is_none()) {
            return Err(self.core.no_such_family(family));
        }
        for (family, qualifiers) in &scan.columns {
            let store = self.core.store(family).ok_or_else(|| self.core.no_such_family(family))?;
            if scan.raw && !qualifiers.is_empty() {
                return Err(RegionError::DoNotRetry("Cannot specify any column for a raw scan".into()));
            }
            asked.push(Asked { store, columns: sorted_columns(qualifiers), view: store.view() });
        }
        Ok(asked)
    }

    fn open_store(
        &self,
        scan: &Scan,
        ask: &Asked<'_>,
        read_point: ReadPoint,
        now: i64,
        residency: Residency,
    ) -> Result<StoreScanner> {
        let store = ask.store;
        let matcher = Matcher::user(&store.rules, scan, &store.name, ask.columns.clone(), now);
        let selection = Selection::new(scan, ask, matcher.expired_before(), self.core.order());
        let wrap = |error| RegionError::file(self.core.name(), error);
        let mut starts = Starts::new(scan, ask);
        let position = |source: &mut Source, has_deletes: bool| starts.position(source, has_deletes);
        let mut merge = selection.open(&ask.view, read_point, residency, position).map_err(wrap)?;
        if scan.reversed {
            let start = (!scan.start_row.is_empty()).then_some(&scan.start_row[..]);
            merge.seek_row_back(start, scan.include_start_row).map_err(wrap)?;
        } else {
            merge.sources_moved().map_err(wrap)?;
        }
        let limits = RowLimits {
            is_single_row: is_single_row(scan),
            reversed: scan.reversed,
            offset: scan.store_offset,
            limit: scan.store_limit,
            last_row: (scan.include_stop_row && !scan.stop_row.is_empty()).then(|| scan.stop_row.clone()),
        };
        let mob = store.mob.as_ref().map(|mob| MobReads { store: mob.clone(), how: scan.mob, residency });
        let scanner = StoreScanner::new(self.core.name().clone(), merge, matcher, limits);
        Ok(scanner.with_mob(mob).with_selection(selection).with_row_reads(&store.row_reads))
    }
}
