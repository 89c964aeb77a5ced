//! Beginning a row: in the families that are always read, and in those that are read only for rows which the filter keeps.

use super::{Place, RowReader, next_row};
use crate::error::{RegionError, Result};
use crate::scan::store_scanner::Step;
use filter::Evaluator;
use std::cmp::Ordering;

impl RowReader {
    /// Begins the next row. False: there is none, or the filter does not want it.
    pub(super) fn start_row(&mut self) -> Result<bool> {
        if self.budget == 0 {
            self.budget = self.cells_per_check;
        }
        if self.filter.as_ref().is_some_and(Evaluator::filter_all_remaining) {
            self.ended = true;
            return Ok(false);
        }
        let Some(first) = next_row(&self.essential, self.order, self.reversed) else {
            self.ended = true;
            return Ok(false);
        };
        let cell = self.essential[first].peek().expect("it has a next row");
        let row = cell.key().row();
        if self.is_past_stop(row) {
            self.ended = true;
            return Ok(false);
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.row_bytes = 0;
        if let Some(filter) = &mut self.filter
            && filter.filter_row_key(cell)?
        {
            self.rows_filtered += 1;
            self.budget = self.budget.saturating_sub(1);
            if filter.filter_all_remaining() {
                self.ended = true;
                return Ok(false);
            }
            self.drop_row()?;
            return Ok(false);
        }
        if let [only] = &mut self.essential[..] {
            // The row is this one's.
            only.start_row();
        } else {
            for scanner in &mut self.essential {
                if scanner.peek_row() == Some(&self.row[..]) {
                    scanner.start_row();
                }
            }
        }
        self.place = Place::Essential;
        Ok(true)
    }

    /// Brings the families read on demand to the row.
    pub(super) fn start_joined(&mut self) -> Result<()> {
        for scanner in &mut self.joined {
            let behind = scanner.peek_row().is_some_and(|at| match self.order.rows(at, &self.row) {
                Ordering::Equal => false,
                Ordering::Less => !self.reversed,
                Ordering::Greater => self.reversed,
            });
            if behind {
                scanner.seek_row(&self.row)?;
            }
            if scanner.peek_row() == Some(&self.row[..]) {
                scanner.start_row();
            }
        }
        Ok(())
    }

    /// Passes over the row, by its key unwanted: cell by cell where the filter must see them to know when it wants nothing more.
    fn drop_row(&mut self) -> Result<()> {
        let Some(filter) = &mut self.filter else { return Ok(()) };
        let shown = filter.ends_by_cells() && !self.reversed;
        for scanner in &mut self.essential {
            if scanner.peek_row() != Some(&self.row[..]) {
                continue;
            }
            if shown {
                scanner.start_row();
                while matches!(scanner.step(Some(filter), &mut self.budget)?, Step::Cell | Step::Pause) {
                    if self.budget == 0 {
                        if self.gives_up {
                            return Err(RegionError::WouldBlock);
                        }
                        self.budget = self.cells_per_check;
                    }
                }
            } else {
                scanner.skip_row()?;
            }
        }
        filter.reset();
        Ok(())
    }
}
