//! What the disk allows a log: entries per second when all that wait are made durable by one `fdatasync`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Bytes of a log entry of one cell with a 1000-byte value, about.
const ENTRY_BYTES: usize = 1_100;
/// Room that is written before, so that a sync need not note a new size.
const ROOM_BYTES: usize = 8 << 20;

/// Entries per second with `group` entries to a sync: the better of a growing file and one with room in it.
pub fn grouped_syncs_per_second(dir: &Path, group: usize, limit: Duration) -> anyhow::Result<f64> {
    let path = dir.join("fdatasync-probe");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let growing = rate(&file, group, limit / 2, false)?;
    let room = rate(&file, group, limit / 2, true)?;
    drop(file);
    std::fs::remove_file(&path).ok();
    Ok(growing.max(room))
}

fn rate(file: &File, group: usize, limit: Duration, with_room: bool) -> anyhow::Result<f64> {
    let bytes = vec![0x5A; ENTRY_BYTES * group];
    if with_room {
        file.write_all_at(&vec![0; ROOM_BYTES], 0)?;
        file.sync_all()?;
    } else {
        file.set_len(0)?;
    }
    let start = Instant::now();
    let (mut at, mut syncs) = (0, 0_u64);
    while start.elapsed() < limit {
        if with_room && at + bytes.len() > ROOM_BYTES {
            at = 0;
        }
        file.write_all_at(&bytes, at as u64)?;
        file.sync_data()?;
        at += bytes.len();
        syncs += 1;
    }
    Ok(syncs as f64 * group as f64 / start.elapsed().as_secs_f64())
}
