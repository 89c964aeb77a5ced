//! Scans of rows with one 1000-byte cell each.

use crate::Group;
use crate::data::{self, Engine, VALUE_BYTES};
use crate::measure::{Done, Session, Size};
use base::Rng;
use bytes::Bytes;
use cell::CellBuffer;
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

/// Rows of a short scan.
const SHORT: u64 = 100;

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let rows_in_all = session.scale().rows;
    let engine = Engine::on_disk(session.scratch()?, SyncMode::Written)?;
    let region = engine.region()?;
    data::load(&region, 0..rows_in_all)?;
    let full = Scan::default();
    let whole = |session: &mut Session<'_>, name: &str, scan: &Scan, found: u64| {
        session.measure(
            name,
            Size::Timed { most: u64::MAX, step: rows_in_all },
            |_| Ok(()),
            |(), n| {
                for _ in 0..n / rows_in_all {
                    let seen = rows(&region, scan, u64::MAX)?;
                    anyhow::ensure!(seen == found, "{seen} rows, not {found}");
                }
                Ok(Done { ops: n, bytes: n * VALUE_BYTES as u64 })
            },
        )
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
