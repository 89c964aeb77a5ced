//! A scan of a region from end to end whose cells are folded, not sent: in pieces that are bounded in time and memory,
//! each on a lane of the scheduler, so that no call keeps a thread or holds a wide row. Cells are looked at where they lie as far as that can be.

use crate::blocking::{Caller, on_lane};
use crate::errors::exception_of;
use crate::handlers::is_overdue;
use crate::server::RegionServer;
use base::PausePoint;
use cell::{CellBuffer, CellRef};
use model::Scan;
use region::{Limits, Progress, Reason, Region, RegionScanner};
use rpc::exception::Exception;
use scheduler::LaneName;
use std::sync::Arc;

/// How long one piece may keep its thread.
const PIECE_US: u64 = 50_000;
/// Cells that are looked at together, in bytes.
const STEP_BYTES: u64 = 256 << 10;
/// Rows that are taken together at most.
const STEP_ROWS: usize = 1024;

/// What is made of the cells.
pub(super) trait Fold: Send + 'static {
    /// The next cell.
    ///
    /// # Errors
    /// Its value is not what the fold takes.
    fn cell(&mut self, cell: CellRef<'_>) -> Result<(), Exception>;

    /// The cells since the last time were one row (one batch of it where the scan has a batch). Said once more, without
    /// cells, when the scan's last rows had nothing to give: so often HBase asks its scanner.
    fn end_of_result(&mut self) {}

    /// A whole row, seen where it lies: as if its cells had been said one by one, and the end of the result.
    ///
    /// # Errors
    /// As [`Fold::cell`].
    fn row(&mut self, cells: &[CellRef<'_>]) -> Result<(), Exception> {
        for cell in cells {
            self.cell(*cell)?;
        }
        self.end_of_result();
        Ok(())
    }

    /// The scan is over.
    ///
    /// # Errors
    /// What could not be said when the last result ended.
    fn finish(&mut self) -> Result<(), Exception> {
        Ok(())
    }
}

struct Walk<F> {
    scanner: RegionScanner,
    batch_cells: u32,
    cells: CellBuffer,
    /// Where in these the second row and each later one begins.
    row_offsets: Vec<usize>,
    /// Row whose cells so far may not be all.
    open_row: Option<Vec<u8>>,
    fold: F,
}

/// What has come of a piece.
enum Step<F, A, T> {
    More(Box<Walk<F>>, A),
    Answer(T),
}

/// Folds what `scan` finds in `region`, and gives back what `answer` makes of the whole: on a lane, like the rest, for that may be as large as an
/// answer.
///
/// # Errors
/// Those of the scan and of the fold; the client stopped waiting.
pub(super) async fn fold<F: Fold, T: Send + 'static>(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    scan: Scan,
    fold: F,
    mut answer: impl FnOnce(F) -> T + Send + 'static,
    caller: &Caller,
) -> Result<T, Exception> {
    let (at, target) = (server.clone(), region.clone());
    let mut walk = on_lane(server, region, LaneName::Read, caller, move |_| {
        let scanner = target.scanner(&scan).map_err(|error| exception_of(&at.escalate_fatal(error)))?;
        let batch_cells = scan.batch.unwrap_or(0);
        let (cells, row_offsets) = (CellBuffer::new(), Vec::new());
        Ok::<_, Exception>(Box::new(Walk { scanner, batch_cells, cells, row_offsets, open_row: None, fold }))
    })
    .await??;
    loop {
        let at = server.clone();
        let step = on_lane(server, region, LaneName::Read, caller, move |pause| {
            if walk.piece(&at, pause)? {
                return Ok(Step::More(walk, answer));
            }
            walk.fold.finish()?;
            Ok::<_, Exception>(Step::Answer(answer(walk.fold)))
        });
        match step.await?? {
            Step::More(rest, once_over) => (walk, answer) = (rest, once_over),
            Step::Answer(answer) => return Ok(answer),
        }
        if is_overdue(server, caller.deadline_us) {
            return Err(Exception::timeout("Client deadline exceeded, cannot return results"));
        }
    }
}

impl<F: Fold> Walk<F> {
    /// Goes on for a while. False at the end.
    fn piece(&mut self, server: &RegionServer, pause: &dyn PausePoint) -> Result<bool, Exception> {
        let clock = &server.env.clock;
        let end_us = clock.monotonic_us() + PIECE_US;
        loop {
            let mut limits = Limits {
                batch_cells: self.batch_cells,
                size_bytes: STEP_BYTES,
                partial_rows: true,
                deadline_us: Some(end_us),
                pause: Some(pause),
                ..Limits::default()
            };
            self.cells.clear();
            self.row_offsets.clear();
            let mut failed = None;
            let (fold, open_row) = (&mut self.fold, &mut self.open_row);
            let mut view = |cells: &[CellRef<'_>]| {
                // A row that seemed to go on has not.
                if open_row.take().is_some() {
                    fold.end_of_result();
                }
                if failed.is_none() {
                    failed = fold.row(cells).err();
                }
            };
            let (out, row_offsets) = (&mut self.cells, &mut self.row_offsets);
            let next = self.scanner.view_rows(&mut limits, out, &mut view, STEP_ROWS, row_offsets);
            let (progress, were_shown) = next.map_err(|error| exception_of(&server.escalate_fatal(error)))?;
            failed.map_or(Ok(()), Err)?;
            if !were_shown {
                self.fold_copied(progress)?;
            }
            if !progress.more {
                return Ok(false);
            }
            if clock.monotonic_us() >= end_us {
                return Ok(true);
            }
        }
    }

    /// Folds what a step has added.
    fn fold_copied(&mut self, progress: Progress) -> Result<(), Exception> {
        // A row that seemed to go on may not have.
        let mut row_ended_late = false;
        if let Some(open) = &self.open_row
            && (if self.cells.is_empty() { !progress.partial } else { self.cells.get(0).row() != &open[..] })
        {
            self.open_row = None;
            self.fold.end_of_result();
            row_ended_late = true;
        }
        let mut cells = self.cells.iter_from(0);
        let mut last_row_from = 0;
        for offset in &self.row_offsets {
            for cell in cells.by_ref().take(offset - last_row_from) {
                self.fold.cell(cell)?;
            }
            last_row_from = *offset;
            self.open_row = None;
            self.fold.end_of_result();
        }
        for cell in cells {
            self.fold.cell(cell)?;
        }
        let has_last_row = self.cells.len() > last_row_from;
        let cut = progress.partial && progress.reason != Reason::Batch;
        if cut {
            if has_last_row {
                self.open_row = Some(self.cells.get(last_row_from).row().to_vec());
            }
        } else if has_last_row || (!progress.more && !row_ended_late) {
            self.open_row = None;
            self.fold.end_of_result();
        }
        Ok(())
    }
}
