//! What a scan gets of a disk: whole scans of a file of which the operating system has nothing, beside plain sequential reads of the same file.

use crate::Group;
use crate::data::{self, Engine, VALUE_BYTES};
use crate::measure::{Done, Session, Size};
use anyhow::Context;
use hfile::{BlockCache, CacheOptions};
use model::Scan;
use rustix::fs::{Advice, OFlags, fadvise, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wal::SyncMode;

pub const GROUP: Group = Group {
    names: &["disk.sequential", "scan.disk", "scan.disk.half", "scan.disk.direct", "scan.disk.direct.half"],
    needs_server: false,
    run,
};

/// What a plain reader asks for at a time, past the page cache.
const READ_BYTES: usize = 1 << 20;
/// What `O_DIRECT` wants memory and places to be multiples of.
const ALIGN_BYTES: usize = 4096;
/// So many times the rows of other groups: a file is to take longer than a disk needs to begin.
const TIMES_ROWS: u64 = 5;

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    for (name, half, direct_reads) in
        [("scan.disk", "scan.disk.half", false), ("scan.disk.direct", "scan.disk.direct.half", true)]
    {
        let cache = BlockCache::with(CacheOptions { direct_reads, ..CacheOptions::new(64 << 20) });
        let scratch = session.scratch()?;
        let dir = scratch.path().to_owned();
        let engine = Engine::on_disk_with_cache(scratch, SyncMode::Written, cache)?;
        let (region, rows) = (engine.region()?, session.scale().rows * TIMES_ROWS);
        data::load(&region, 0..rows)?;
        data::flush(&region)?;
        let file = File::open(largest_file(&dir)?)?;
        // What is dirty cannot be dropped.
        file.sync_all()?;
        let file_bytes = file.metadata()?.len();
        let forget = || anyhow::Ok(fadvise(&file, 0, None, Advice::DontNeed)?);
        // Rows lie in the order of their names, not of their numbers.
        let mut names: Vec<_> = (0..rows).map(data::row).collect();
        names.sort_unstable();
        for (name, from) in [(name, 0), (half, rows / 2)] {
            let scan = Scan { cache_blocks: false, start_row: names[from as usize].clone(), ..Scan::default() };
            session.measure(
                name,
                Size::Fixed(rows - from),
                |_| forget(),
                |(), n| {
                    let seen = super::scan::rows(&region, &scan, u64::MAX)?;
                    anyhow::ensure!(seen == n, "{seen} rows, not {n}");
                    Ok(Done { ops: n, bytes: n * VALUE_BYTES as u64 })
                },
            )?;
        }
        if !direct_reads {
            // A file system that refuses is read through the page cache, with what the kernel reads ahead.
            fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::DIRECT).ok();
            let reads = file_bytes / READ_BYTES as u64;
            let mut memory = vec![0; READ_BYTES + ALIGN_BYTES];
            let start = memory.as_ptr().align_offset(ALIGN_BYTES);
            let plain = |(): &mut (), n: u64| {
                let whole = &mut memory[start..start + READ_BYTES];
                let mut bytes = 0;
                for at in 0..n {
                    bytes += file.read_at(whole, at * READ_BYTES as u64)? as u64;
                }
                Ok(Done { ops: n, bytes })
            };
            session.measure("disk.sequential", Size::Fixed(reads.max(1)), |_| forget(), plain)?;
        }
    }
    Ok(())
}

/// The one store file, which is larger than anything else below `dir`.
fn largest_file(dir: &Path) -> anyhow::Result<PathBuf> {
    let mut found: Option<(u64, PathBuf)> = None;
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let (entry, path) = entry.map(|entry| (entry.metadata(), entry.path()))?;
            let entry = entry?;
            if entry.is_dir() {
                dirs.push(path);
            } else if found.as_ref().is_none_or(|(bytes, _)| *bytes < entry.len()) {
                found = Some((entry.len(), path));
            }
        }
    }
    found.map(|(_, path)| path).context("there is no store file")
}
