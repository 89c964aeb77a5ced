//! Where one step of a scan may end, and what it came to. Follows: `ScannerContext`.

use base::PausePoint;
use cell::CellRef;

/// Limits of one or several steps of a scan. `used_bytes` grows from step to step until the caller resets it.
#[derive(Clone, Debug)]
pub struct Limits<'a> {
    /// Cells of one step at most; 0 for whole rows.
    pub batch_cells: u32,
    /// Bytes of results (as [`estimated_bytes`] counts them) after which a step ends, within a row only if
    /// `partial_rows`. `u64::MAX` for none.
    pub size_bytes: u64,
    /// Bytes so far.
    pub used_bytes: u64,
    /// Whether a row may be cut where the size or the time is used up.
    pub partial_rows: bool,
    /// Monotonic microseconds at which the step should end.
    pub deadline_us: Option<u64>,
    /// Asked now and then whether the step may go on.
    pub pause: Option<&'a dyn PausePoint>,
}

impl Limits<'_> {
    /// No limits.
    pub const NONE: Limits<'static> = Limits {
        batch_cells: 0,
        size_bytes: u64::MAX,
        used_bytes: 0,
        partial_rows: false,
        deadline_us: None,
        pause: None,
    };

    /// Whether the bytes are used up.
    pub fn is_full(&self) -> bool {
        self.used_bytes >= self.size_bytes
    }
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Limits::NONE
    }
}

/// Why a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The row is whole.
    RowDone,
    /// The batch is full.
    Batch,
    /// The bytes are used up.
    Size,
    /// The time is used up; there may be no cells.
    Time,
    /// Nothing is left in the region.
    End,
}

/// What a step of a scan came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Cells added.
    pub cells: usize,
    /// Whether the row goes on with the next step.
    pub partial: bool,
    /// Whether another step may find something.
    pub more: bool,
    /// Why it ended.
    pub reason: Reason,
}

/// What a cell counts towards a size limit: about what it takes of HBase's heap, so that replies are cut alike.
pub fn estimated_bytes(cell: CellRef<'_>) -> u64 {
    // KeyValue's object and array headers and its fields, rounded up to a multiple of 8.
    (cell.bytes().len() as u64 + 56 + 7) & !7
}
