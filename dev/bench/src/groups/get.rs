//! Gets of random rows from memory, from cached blocks, from blocks that must be read.

use crate::Group;
use crate::data::{self, Engine, VALUE_BYTES};
use crate::measure::{Done, Session, Size};
use base::Rng;
use cell::CellBuffer;
use fs::MemVolume;
use hfile::{BlockCache, Residency, SecondLevel, SecondLevelOptions};
use model::Get;
use region::Region;
use std::sync::Arc;
use wal::SyncMode;

/// For indexes and Bloom filters, and few blocks beside them.
const SMALL_CACHE_BYTES: u64 = 4 << 20;

pub const GROUP: Group = Group {
    names: &[
        "get.memory",
        "get.cached",
        "get.cached.4files",
        "get.cold.4files",
        "get.absent.memory",
        "get.absent.4files",
        "get.missed.plain",
        "get.missed.second",
    ],
    needs_server: false,
    run,
};

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let rows = session.scale().rows;
    if ["get.memory", "get.cached", "get.absent.memory"].iter().any(|name| session.wants(name)) {
        let engine = Engine::new(Arc::new(MemVolume::new()), SyncMode::Written)?;
        let region = engine.region()?;
        data::load(&region, 0..rows)?;
        gets(session, "get.memory", &region, 0..rows, true, 1)?;
        gets(session, "get.absent.memory", &region, rows..2 * rows, true, 0)?;
        data::flush(&region)?;
        warm(&region)?;
        gets(session, "get.cached", &region, 0..rows, true, 1)?;
    }
    if ["get.cached.4files", "get.cold.4files", "get.absent.4files"].iter().any(|name| session.wants(name)) {
        // Four files over the whole range, each row in one of them.
        let engine = Engine::on_disk(session.scratch()?, SyncMode::Written)?;
        let region = engine.region()?;
        for file in 0..4 {
            data::load(&region, (file..rows).step_by(4))?;
            data::flush(&region)?;
        }
        gets(session, "get.cold.4files", &region, 0..rows, false, 1)?;
        warm(&region)?;
        gets(session, "get.cached.4files", &region, 0..rows, true, 1)?;
        gets(session, "get.absent.4files", &region, rows..2 * rows, true, 0)?;
    }
    for (name, second) in [("get.missed.plain", false), ("get.missed.second", true)] {
        if session.wants(name) {
            missed(session, name, second)?;
        }
    }
    Ok(())
}

/// A block cache too small for what is read, over a second level that has none of it, if `second`: what the second level costs who does not find
/// a block there. The files are in the page cache, so a disk hides nothing.
fn missed(session: &mut Session<'_>, name: &str, second: bool) -> anyhow::Result<()> {
    let options = SecondLevelOptions::new(4 << 30, 1);
    let second =
        second.then(|| SecondLevel::open(Arc::new(MemVolume::new()), options, Arc::new(|_| {}))).transpose()?;
    let cache = BlockCache::over(SMALL_CACHE_BYTES, second.map(Arc::new));
    let engine = Engine::on_disk_with_cache(session.scratch()?, SyncMode::Written, cache)?;
    let (region, rows) = (engine.region()?, session.scale().rows);
    data::load(&region, 0..rows)?;
    data::flush(&region)?;
    gets(session, name, &region, 0..rows, true, 1)
}

/// Brings every block into the cache.
fn warm(region: &Arc<Region>) -> anyhow::Result<()> {
    super::scan::rows(region, &model::Scan { pread: true, ..model::Scan::default() }, u64::MAX).map(|_| ())
}

/// Gets of rows drawn from `among`. Without `cache_blocks` data blocks are read anew each time; Bloom filters and
/// indexes are kept.
fn gets(
    session: &mut Session<'_>,
    name: &str,
    region: &Region,
    among: std::ops::Range<u64>,
    cache_blocks: bool,
    cells: usize,
) -> anyhow::Result<()> {
    if !session.wants(name) {
        return Ok(());
    }
    let rng = Rng::seeded(5);
    let pool: Vec<Get> = (0..32_768)
        .map(|_| {
            let get = Get::new(data::row(among.start + rng.below(among.end - among.start)));
            Get { cache_blocks, ..get }
        })
        .collect();
    let mut at = 0;
    session.measure(
        name,
        Size::Timed { most: u64::MAX, step: 1 },
        |_| Ok(CellBuffer::new()),
        |out, n| {
            for _ in 0..n {
                out.clear();
                at = (at + 1) % pool.len();
                region.get(&pool[at], out, Residency::MayRead)?;
                anyhow::ensure!(out.len() == cells, "{} cells, not {cells}", out.len());
            }
            Ok(Done { ops: n, bytes: n * (cells * VALUE_BYTES) as u64 })
        },
    )
}
