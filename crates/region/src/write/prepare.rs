//! Turns a mutation into the cells that are logged and inserted: stamped, deletes spelled out. Follows:
//! `HRegion#prepareDeleteTimestamps`.

use super::Writer;
use crate::error::Result;
use crate::ticks::{Moment, Taken};
use base::ReadMode;
use cell::{CellBuffer, CellRef, CellSpec, CellType};
use model::{Mutation, MutationKind};

/// The timestamp that the server is to fill in.
pub(super) const LATEST: i64 = i64::MAX;

/// A group's cells, ready for log and memstore.
pub(super) struct Prepared {
    /// When.
    pub moment: Moment,
    /// Milliseconds that LATEST stands for in the mutation that is prepared.
    pub tick: i64,
    /// Timestamp of what a check saw; puts are not stamped earlier, so that it does not eclipse them.
    pub seen: i64,
    /// The newest marker with a stamp of the server in the mutation that is prepared, if it hides what is stamped from
    /// now on.
    pub marker: Option<i64>,
    /// The ticks taken that later writes must look out for.
    pub taken: Vec<Taken>,
    /// Cells in cell-block layout.
    pub run: Vec<u8>,
    /// Number of cells in `run`.
    pub cells: usize,
    /// Those of them that are logged, where some mutations skip the log and others do not, and their number.
    pub logged: Option<(Vec<u8>, usize)>,
    /// What came of each mutation; `None` for those passed over.
    pub outcomes: Vec<Option<Result<Option<CellBuffer>>>>,
    touched: u64,
}

impl Prepared {
    pub(super) fn new(moment: Moment, group: &[Mutation]) -> Prepared {
        let bytes: usize = group.iter().map(|mutation| mutation.cells.bytes().len() + 64).sum();
        Prepared {
            moment,
            tick: moment.now,
            seen: 0,
            marker: None,
            taken: Vec::new(),
            run: Vec::with_capacity(bytes),
            cells: 0,
            logged: None,
            outcomes: Vec::with_capacity(group.len()),
            touched: 0,
        }
    }

    /// A mutation comes with this tick.
    pub(super) fn begin(&mut self, tick: i64) {
        (self.tick, self.marker) = (tick, None);
    }

    /// The server has stamped a marker.
    pub(super) fn mark(&mut self, timestamp: i64) {
        // What lies behind hides nothing that comes; what lies ahead of the tick was stamped by a client.
        if (self.moment.now..=self.tick).contains(&timestamp) {
            self.marker = self.marker.max(Some(timestamp));
        }
    }

    /// The cells for the log, and their number.
    pub(super) fn for_log(&self) -> (&[u8], usize) {
        self.logged.as_ref().map_or((&self.run, self.cells), |(run, cells)| (run, *cells))
    }

    /// Whether there may be cells for store number `store`.
    pub(super) fn touches(&self, store: usize) -> bool {
        self.touched & (1 << store.min(63)) != 0
    }

    pub(super) fn touch(&mut self, store: usize) {
        self.touched |= 1 << store.min(63);
    }

    /// Copies a cell; `timestamp` replaces LATEST.
    pub(super) fn push(&mut self, cell: CellRef<'_>, timestamp: i64) {
        let bytes = cell.bytes();
        self.run.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        let start = self.run.len();
        self.run.extend_from_slice(bytes);
        if cell.timestamp() == LATEST {
            let at = start + 8 + cell.key().bytes().len() - 9;
            self.run[at..at + 8].copy_from_slice(&timestamp.to_be_bytes());
        }
        self.cells += 1;
    }

    pub(super) fn push_spec(&mut self, spec: &CellSpec<'_>) {
        self.run.extend_from_slice(&(spec.encoded_len() as u32).to_be_bytes());
        spec.write(&mut self.run);
        self.cells += 1;
    }
}

/// Whether the cell deletes "the latest version", whichever that is.
pub(super) fn deletes_latest_version(cell: CellRef<'_>) -> bool {
    cell.type_code() == CellType::Delete.code() && cell.timestamp() == LATEST
}

/// Family and qualifier.
pub(super) type Column<'a> = (&'a [u8], &'a [u8]);

pub(super) fn column_of(cell: CellRef<'_>) -> Column<'_> {
    (cell.family(), cell.qualifier())
}

impl Writer<'_> {
    /// Adds the cells of one mutation. The caller holds the row's lock, or only wants the blocks in memory.
    pub(super) fn prepare(
        &self,
        mutation: &Mutation,
        mode: ReadMode<'_>,
        prepared: &mut Prepared,
    ) -> Result<Option<CellBuffer>> {
        match mutation.kind {
            MutationKind::Put => {
                let timestamp = prepared.tick.max(prepared.seen);
                for cell in &mutation.cells {
                    prepared.touch(self.core.store_index(cell.family()));
                    // Of a marker, too, LATEST is the moment, even if it deletes one version: HBase looks for the
                    // latest in deletes alone.
                    if cell.is_delete() && cell.timestamp() == LATEST {
                        prepared.mark(timestamp);
                    }
                    prepared.push(cell, timestamp);
                }
                Ok(None)
            }
            MutationKind::Delete if mutation.cells.is_empty() => {
                let timestamp = if mutation.timestamp == LATEST { prepared.tick } else { mutation.timestamp };
                if mutation.timestamp == LATEST {
                    prepared.mark(timestamp);
                }
                for (i, store) in self.core.stores.iter().enumerate() {
                    prepared.touch(i);
                    prepared.push_spec(&CellSpec {
                        row: &mutation.row,
                        family: &store.name,
                        qualifier: b"",
                        timestamp,
                        type_code: CellType::DeleteFamily.code(),
                        value: b"",
                        tags: b"",
                    });
                }
                Ok(None)
            }
            MutationKind::Delete => {
                let mut newest = self.newest_versions(mutation, mode)?;
                for cell in &mutation.cells {
                    prepared.touch(self.core.store_index(cell.family()));
                    let version = match deletes_latest_version(cell) {
                        true => newest.get_mut(&column_of(cell)).and_then(Iterator::next),
                        false => None,
                    };
                    let timestamp = version.unwrap_or(prepared.tick);
                    if cell.timestamp() == LATEST {
                        prepared.mark(timestamp);
                    }
                    prepared.push(cell, timestamp);
                }
                Ok(None)
            }
            MutationKind::Append | MutationKind::Increment => self.prepare_change(mutation, mode, prepared),
        }
    }
}
