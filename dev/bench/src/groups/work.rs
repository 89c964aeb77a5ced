//! Flushes and compactions.

use crate::Group;
use crate::data::{self, Engine};
use crate::measure::{Done, Session, Size};
use fs::{MemVolume, Volume};
use region::{CompactionKind, Region, Unthrottled};
use std::sync::Arc;
use wal::SyncMode;

pub const FLUSH: Group = Group { names: &["flush.disk", "flush.memory"], needs_server: false, run: flush };
pub const COMPACTION: Group =
    Group { names: &["compact.minor", "compact.major"], needs_server: false, run: compaction };

fn flush(session: &mut Session<'_>) -> anyhow::Result<()> {
    let rows = session.scale().rows;
    let parent = session.scratch()?;
    for on_disk in [true, false] {
        let name = if on_disk { "flush.disk" } else { "flush.memory" };
        session.measure(
            name,
            Size::Fixed(rows),
            |n| {
                let engine = if on_disk {
                    Engine::on_disk(crate::scratch::Scratch::below(parent.path())?, SyncMode::Written)?
                } else {
                    Engine::new(Arc::new(MemVolume::new()), SyncMode::Written)?
                };
                let region = engine.region()?;
                data::load(&region, 0..n)?;
                Ok((region, engine))
            },
            |(region, _), n| Ok(Done { ops: n, bytes: data::flush(region)? }),
        )?;
    }
    Ok(())
}

fn compaction(session: &mut Session<'_>) -> anyhow::Result<()> {
    let rows = session.scale().rows;
    // Four files over the same range, made once; each round rewrites a copy.
    let loaded = MemVolume::new();
    {
        let engine = Engine::new(Arc::new(loaded.clone()), SyncMode::Written)?;
        let region = engine.region()?;
        for file in 0..4 {
            data::load(&region, (file..rows).step_by(4))?;
            data::flush(&region)?;
        }
    }
    for (name, kind) in [("compact.minor", CompactionKind::Minor), ("compact.major", CompactionKind::Major)] {
        session.measure(
            name,
            Size::Fixed(rows),
            |_| {
                let volume: Arc<dyn Volume> = Arc::new(loaded.snapshot());
                let engine = Engine::new(volume, SyncMode::Written)?;
                Ok((engine.region()?, engine))
            },
            |(region, _), n| Ok(Done { ops: n, bytes: compact(region, kind)? }),
        )?;
    }
    Ok(())
}

fn compact(region: &Arc<Region>, kind: CompactionKind) -> anyhow::Result<u64> {
    let job = region.select_compaction(None, kind)?;
    let job = job.ok_or_else(|| anyhow::anyhow!("there was nothing to compact"))?;
    let outcome = region.compact(job, &Unthrottled)?;
    anyhow::ensure!(outcome.completed && outcome.input_files == 4, "{outcome:?}");
    Ok(outcome.input_bytes)
}
