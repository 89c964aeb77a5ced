//! Scans of rows with one 1000-byte cell each.

use crate::Group;
use crate::data::{self, Engine, VALUE_BYTES};
use crate::measure::{Done, Session, Size};
use base::Rng;
use bytes::Bytes;
use cell::{CellBuffer, CellRef};
use filter::{Comparator, CompareOp, Filter};
use model::Scan;
use region::{Limits, Region};
use std::sync::Arc;
use wal::SyncMode;

pub const GROUP: Group = Group {
    names: &["scan.full.memory", "scan.full.cached", "scan.full.cold", "scan.range100", "scan.filtered"],
    needs_server: false,
    run,
};

/// Rows as `basalt-sql` writes them: a key of 40 bytes, an empty cell that says that the row is there, and three numbers. Counted, and with one
/// column read, as the endpoint of grouped aggregates goes over them.
pub const NARROW: Group = Group {
    names: &["narrow.count.memory", "narrow.count.cached", "narrow.column.memory", "narrow.column.cached"],
    needs_server: false,
    run: run_narrow,
};

/// Rows of a short scan.
const SHORT: u64 = 100;

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let rows_in_all = session.scale().rows;
    let engine = Engine::on_disk(session.scratch()?, SyncMode::Written)?;
    let region = engine.region()?;
    data::load(&region, 0..rows_in_all)?;
    let full = Scan::default();
    let size = Whole { rows: rows_in_all, bytes_of_row: VALUE_BYTES as u64 };
    let whole = |session: &mut Session<'_>, name: &str, scan: &Scan, found: u64| {
        size.measure(session, name, found, || rows(&region, scan, u64::MAX))
    };
    whole(session, "scan.full.memory", &full, rows_in_all)?;
    data::flush(&region)?;
    whole(session, "scan.full.cold", &Scan { cache_blocks: false, ..Scan::default() }, rows_in_all)?;
    // Every block into the cache.
    rows(&region, &full, u64::MAX)?;
    whole(session, "scan.full.cached", &full, rows_in_all)?;
    let comparator = Some(Comparator::Binary { value: Bytes::from_static(b"no such value") });
    let nothing = Arc::new(Filter::Value { op: CompareOp::Equal, comparator });
    whole(session, "scan.filtered", &Scan { filter: Some(nothing), ..Scan::default() }, 0)?;

    let rng = Rng::seeded(11);
    session.measure(
        "scan.range100",
        Size::Timed { most: u64::MAX, step: 1 },
        |_| Ok(()),
        |(), n| {
            let mut bytes = 0;
            for _ in 0..n {
                let scan = Scan { start_row: data::row(rng.below(rows_in_all)), ..Scan::default() };
                bytes += rows(&region, &scan, SHORT)? * VALUE_BYTES as u64;
            }
            Ok(Done { ops: n, bytes })
        },
    )
}

fn run_narrow(session: &mut Session<'_>) -> anyhow::Result<()> {
    let rows_in_all = session.scale().rows;
    let engine = Engine::on_disk(session.scratch()?, SyncMode::Written)?;
    let region = engine.region()?;
    let mutations: Vec<_> = (0..rows_in_all).map(data::narrow).collect();
    mutations.chunks(100).try_for_each(|chunk| data::apply(&region, chunk))?;
    let filter = Filter::all_of(vec![Filter::FirstKeyOnly, Filter::KeyOnly { len_as_val: false }]);
    let count = Scan { filter: Some(Arc::new(filter)), ..Scan::default() };
    let asked = [&b"_0"[..], b"core"].map(Bytes::from_static).into_iter().collect();
    let column = Scan { columns: [(Bytes::from_static(data::FAMILY), asked)].into(), ..Scan::default() };
    let size = Whole { rows: rows_in_all, bytes_of_row: 0 };
    let whole = |session: &mut Session<'_>, name: &str, scan: &Scan, each: u64| {
        size.measure(session, name, each * rows_in_all, || in_steps(&region, scan))
    };
    whole(session, "narrow.count.memory", &count, 1)?;
    whole(session, "narrow.column.memory", &column, 2)?;
    data::flush(&region)?;
    whole(session, "narrow.count.cached", &count, 1)?;
    whole(session, "narrow.column.cached", &column, 2)
}

/// A table that is scanned from end to end; a row is an operation.
struct Whole {
    rows: u64,
    bytes_of_row: u64,
}

impl Whole {
    /// Measures `read`, which is to find so many cells.
    fn measure(
        &self,
        session: &mut Session<'_>,
        name: &str,
        found: u64,
        read: impl Fn() -> anyhow::Result<u64>,
    ) -> anyhow::Result<()> {
        session.measure(
            name,
            Size::Timed { most: u64::MAX, step: self.rows },
            |_| Ok(()),
            |(), n| {
                for _ in 0..n / self.rows {
                    let seen = read()?;
                    anyhow::ensure!(seen == found, "{seen} cells, not {found}");
                }
                Ok(Done { ops: n, bytes: n * self.bytes_of_row })
            },
        )
    }
}

/// Goes over `scan` as an endpoint that folds cells does; returns the number of cells.
fn in_steps(region: &Arc<Region>, scan: &Scan) -> anyhow::Result<u64> {
    let mut scanner = region.scanner(scan)?;
    let (mut out, mut row_offsets, mut seen) = (CellBuffer::new(), Vec::new(), 0);
    loop {
        let mut limits = Limits { size_bytes: 256 << 10, partial_rows: true, ..Limits::default() };
        out.clear();
        row_offsets.clear();
        let mut view = |cells: &[CellRef<'_>]| seen += cells.len() as u64;
        let (progress, _) = scanner.view_rows(&mut limits, &mut out, &mut view, 1024, &mut row_offsets)?;
        seen += out.len() as u64;
        if !progress.more {
            return Ok(seen);
        }
    }
}

/// Steps through `scan` as the server does, emptying the buffer as replies leave; returns the number of cells.
pub fn rows(region: &Arc<Region>, scan: &Scan, most: u64) -> anyhow::Result<u64> {
    let mut scanner = region.scanner(scan)?;
    let (mut limits, mut out, mut seen) = (Limits::NONE, CellBuffer::new(), 0);
    while seen < most {
        let progress = scanner.next(&mut limits, &mut out)?;
        seen += progress.cells as u64;
        if !progress.more {
            break;
        }
        if out.len() >= 100 {
            out.clear();
        }
    }
    Ok(seen)
}
