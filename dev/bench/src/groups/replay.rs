//! What a start after a crash does with the log: read it, split it by region, bring the edits back.

use crate::Group;
use crate::data::{self, Engine};
use crate::measure::{Done, Session, Size};
use fs::{FilePath, MemVolume, Volume};
use model::Durability;
use std::sync::Arc;
use wal::SyncMode;

pub const GROUP: Group = Group { names: &["replay.read", "replay.split", "replay.open"], needs_server: false, run };

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let rows = session.scale().rows;
    let crashed = MemVolume::new();
    let log_dir = {
        let mut engine = Engine::new(Arc::new(crashed.clone()), SyncMode::Written)?;
        let region = engine.region()?;
        for start in (0..rows).step_by(1000) {
            for put in data::puts(start..(start + 1000).min(rows), Durability::AsyncWal) {
                data::apply(&region, std::slice::from_ref(&put))?;
            }
        }
        engine.close()?;
        engine.log_dir().clone()
    };
    let log_bytes: u64 = crashed.list(&log_dir)?.iter().map(|file| file.len).sum();
    session.measure(
        "replay.read",
        Size::Fixed(rows),
        |_| Ok(()),
        |(), _| {
            let mut entries = 0;
            for file in crashed.list(&log_dir)? {
                let mut reader = wal::Reader::open(&crashed, &log_dir.join(&file.name))?;
                while let Some(entry) = reader.next()? {
                    entries += u64::from(!entry.is_marker());
                }
            }
            anyhow::ensure!(entries == rows, "{entries} entries, not {rows}");
            Ok(Done { ops: entries, bytes: log_bytes })
        },
    )?;
    session.measure(
        "replay.split",
        Size::Fixed(rows),
        |_| Ok(crashed.snapshot()),
        |volume, _| Ok(Done { ops: split(volume, &log_dir)?, bytes: log_bytes }),
    )?;
    if !session.wants("replay.open") {
        return Ok(());
    }
    let split_log = crashed.snapshot();
    split(&split_log, &log_dir)?;
    session.measure(
        "replay.open",
        Size::Fixed(rows),
        |_| Ok((Engine::new(Arc::new(split_log.snapshot()), SyncMode::Written)?, None)),
        |(engine, region), n| {
            // Kept, so that closing it is not timed.
            *region = Some(engine.region()?);
            Ok(Done { ops: n, bytes: log_bytes })
        },
    )
}

fn split(volume: &MemVolume, log_dir: &FilePath) -> anyhow::Result<u64> {
    let mut regions = region::RegionDirectories { volume };
    let archive = rootdir::old_wals_dir();
    volume.create_dir_all(&archive)?;
    let report = wal::split_directory(volume, log_dir, &archive, &mut regions, &wal::SplitOptions::default())?;
    anyhow::ensure!(!report.files.is_empty(), "the log had nothing for the region: {report:?}");
    Ok(report.entries)
}
